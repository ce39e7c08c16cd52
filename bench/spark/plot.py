"""The measurements as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from bench.spark.beside import BYTEWAX, PYTHON
from bench.spark.ways import AHEAD, BARE, SPARK_WAYS, SPECSTREAM
from specstream.figures.palette import SPARE
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure

__all__ = ["ORDER", "draw_rates"]

ORDER = (SPECSTREAM, AHEAD, BARE, *SPARK_WAYS, BYTEWAX, PYTHON)
# Spark's own ways have one colour.
LOOKS = {
    SPARK_WAYS[0]: SPARE[0],
    SPARK_WAYS[1]: replace(SPARE[0], hatch="///"),
    BYTEWAX: SPARE[1],
}


@in_style
def draw_rates(data: Mapping[str, Any]) -> Figure:
    """One panel per operator: rows per second by way, for each size of a batch.

    Args:
        data: as ``--json`` writes it.
    """
    rows = data["rows"]
    titles = list(dict.fromkeys(row["title"] for row in rows))
    names = [name for name in ORDER if any(name in row["measured"] for row in rows)]
    figure, panels = new_figure(
        "The same compiled function and the same rows in Spark;\n"
        "specstream with order, exactly once and metrics\n"
        f"{data['machine']['processor']}",
        1.6 + 0.75 * len(titles) + bars_height(len(rows), len(names)),
        rows=len(titles),
        height_ratios=[sum(row["title"] == title for row in rows) for title in titles],
    )
    for axes, title in zip(panels[:, 0], titles, strict=True):
        draw_bars(
            axes,
            {
                f"{row['rows']:,} rows a batch": {
                    name: row["measured"][name]["rate"] / 1e6
                    for name in names
                    if name in row["measured"]
                }
                for row in rows
                if row["title"] == title
            },
            "{:.2f}",
            LOOKS,
        )
        axes.set_title(title)
        axes.set_xlabel("million rows per second")
    legend(figure, names, LOOKS, bars=True)
    return figure

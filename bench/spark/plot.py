"""The measurements as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.spark.beside import BYTEWAX, PYTHON
from bench.spark.rounds import Row
from bench.spark.ways import AHEAD, BARE, SPARK_WAYS, SPECSTREAM

__all__ = ["ORDER", "save_plot"]

ORDER = (SPECSTREAM, AHEAD, BARE, *SPARK_WAYS, BYTEWAX, PYTHON)
COLOURS = dict(
    zip(
        ORDER,
        ("#2ca02c", "#98df8a", "#7f7f7f", "#1f77b4", "#9467bd", "#ff7f0e", "#d62728"),
        strict=True,
    )
)


def save_plot(rows: Sequence[Row], processor: str, path: Path) -> None:
    """One panel per operator: rows per second by way, for each size of a batch."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    titles = list(dict.fromkeys(row.title for row in rows))
    figure, panels = plt.subplots(
        1, len(titles), figsize=(4.6 * len(titles), 5), layout="constrained", squeeze=False
    )
    height = 0.85 / len(ORDER)
    for title, panel in zip(titles, panels[0], strict=True):
        own = [row for row in rows if row.title == title]
        for place, row in enumerate(own):
            for number, name in enumerate(ORDER):
                measured = row.measured.get(name)
                if measured is None:
                    continue
                at = place - 0.425 + (number + 0.5) * height
                panel.barh(at, measured.rate / 1e6, height, color=COLOURS[name])
                text = f" {measured.rate / 1e6:.2f}M" if measured.rate >= 1e4 else " <0.01M"
                panel.text(measured.rate / 1e6, at, text, va="center", fontsize=8)
        panel.set_title(title)
        panel.set_xlabel("million rows per second")
        panel.set_yticks(range(len(own)), [f"{row.rows:,}\nrows a batch" for row in own])
        panel.invert_yaxis()
        panel.margins(x=0.15)
        panel.spines[["top", "right"]].set_visible(False)
    handles = [Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in ORDER]
    figure.legend(handles, ORDER, loc="outside lower center", ncols=4)
    figure.suptitle(
        "The same compiled function and the same rows; specstream with order, exactly once and "
        f"metrics\n{processor}"
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)

"""The speed table as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.speed.loads import KINDS
from bench.speed.table import CONTESTANTS, Row

__all__ = ["save_plot"]

COLOURS = dict(
    zip(CONTESTANTS, ("#1f77b4", "#9467bd", "#7f7f7f", "#d62728", "#2ca02c"), strict=True)
)


def save_plot(rows: Sequence[Row], processor: str, path: Path) -> None:
    """One panel per kind: bars of speed with their quartiles, and the target as a line."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.patches import Rectangle

    titles = list(dict.fromkeys(row.title for row in rows))
    figure, panels = plt.subplots(
        1, len(KINDS), figsize=(13, 1.5 + 0.75 * len(titles)), sharey=True, layout="constrained"
    )
    height = 0.8 / len(CONTESTANTS)
    for kind, panel in zip(KINDS, panels, strict=True):
        for row in (row for row in rows if row.kind == kind):
            place = titles.index(row.title)
            for number, name in enumerate(CONTESTANTS):
                result = row.results.get(name)
                if result is None:
                    continue
                panel.barh(
                    place - 0.4 + (number + 0.5) * height,
                    result.speed,
                    height,
                    xerr=[[result.speed - result.low], [result.high - result.speed]],
                    color=COLOURS[name],
                    ecolor="black",
                    error_kw={"linewidth": 0.6},
                    label=name,
                )
            panel.plot([row.target] * 2, [place - 0.42, place + 0.42], color="black", linewidth=1.5)
        panel.axvline(1, color="black", linewidth=0.5, linestyle=":")
        panel.set_title(kind)
        panel.set_xlabel("speed relative to the log-free clone; black: target")
        panel.set_yticks(range(len(titles)), titles)
    panels[0].invert_yaxis()
    handles = [Rectangle((0, 0), 1, 1, color=COLOURS[name]) for name in CONTESTANTS]
    figure.legend(handles, CONTESTANTS, loc="outside lower center", ncols=len(CONTESTANTS))
    figure.suptitle(f"Two threads against one, events that update K words of 8 MB\n{processor}")
    figure.savefig(path, dpi=110)
    plt.close(figure)

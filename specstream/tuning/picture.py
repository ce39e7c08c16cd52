"""Measurements as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from specstream.files.writing import writing
from specstream.tuning.contest import Measurement

__all__ = ["save_bars"]

PLAIN_COLOUR, AUTO_COLOUR, MARKED_COLOUR, OTHER_COLOUR = "#7f7f7f", "#9467bd", "#2ca02c", "#1f77b4"


def save_bars(
    path: Path,
    title: str,
    axis: str,
    rows: Sequence[tuple[str, Measurement]],
    marked: str,
    log_scale: bool = False,
) -> None:
    """Bars of speed with their quartiles, the fastest on top; a line at the baseline.

    Args:
        path: of the picture; its ending says the format.
        title: above it.
        axis: what the bars are.
        rows: names and measurements.
        marked: name of the bar to set off.
        log_scale: for speeds that lie orders of magnitude apart.
    """
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(9, 1.6 + 0.3 * len(rows)), layout="constrained")
    ordered = sorted(rows, key=lambda row: row[1].speed)
    for place, (name, measured) in enumerate(ordered):
        if name == marked:
            colour = MARKED_COLOUR
        elif name.startswith("plain"):
            colour = PLAIN_COLOUR
        else:
            colour = AUTO_COLOUR if "Auto" in name else OTHER_COLOUR
        panel.barh(
            place,
            measured.speed,
            xerr=[[measured.speed - measured.low], [measured.high - measured.speed]],
            color=colour,
            error_kw={"linewidth": 0.7},
        )
        text = f"{measured.speed:.3g}"
        panel.annotate(
            text, (measured.high, place), xytext=(4, 0), textcoords="offset points", va="center",
            fontsize=8,
        )  # fmt: skip
    panel.set_yticks(range(len(ordered)), [name for name, _ in ordered])
    panel.axvline(1.0, color="black", linewidth=0.8, linestyle=":")
    if log_scale:
        panel.set_xscale("log")
    panel.margins(x=0.1)
    panel.set_xlabel(axis)
    panel.set_title(title, loc="left", fontsize=10)
    with writing(path):
        figure.savefig(path, dpi=110)
    plt.close(figure)

"""The picture: payments and decisions over time, and how many of the frauds were found."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.dates import ConciseDateFormatter
from matplotlib.figure import Figure

from specstream.figures.palette import SPARE
from specstream.figures.style import from_zero, in_style, new_figure, plain_ticks

__all__ = ["draw"]

GREY, MISSED = "#c4c4c4", "#d9d9d9"
LOOKS = dict(zip(("velocity", "amount", "travel", "merchant"), SPARE, strict=False))


@in_style
def draw(
    payments: pd.DataFrame, decisions: pd.DataFrame, kinds: dict[str, dict[str, int]]
) -> Figure:
    """One panel, or two where frauds are known.

    Args:
        payments: with the columns time and amount (cents).
        decisions: with the columns time, amount and reason.
        kinds: by kind of fraud, how many there were and how many are found; may be empty.
    """
    ratios = [4.2, 0.7 + 0.32 * len(kinds)] if kinds else [4.2]
    figure, panels = new_figure(
        "Payments that were declined or are to be reviewed, and why",
        1.2 + sum(ratios),
        rows=len(ratios),
        height_ratios=ratios,
    )
    amounts = panels[0, 0]
    amounts.scatter(
        payments["time"], payments["amount"].clip(lower=1) / 100, s=1.5, color=GREY,
        linewidth=0, label="all payments", rasterized=True,
    )  # fmt: skip
    for reason, look in LOOKS.items():
        of = decisions[decisions["reason"] == reason]
        amounts.scatter(
            of["time"], of["amount"].astype(float).clip(lower=0.01), s=26, color=look.colour,
            marker=look.marker, edgecolor="white", linewidth=0.5, label=reason, zorder=3,
        )  # fmt: skip
    amounts.set_yscale("log")
    plain_ticks(amounts.yaxis)
    amounts.set_title("Amounts, by the reason of the decision")
    amounts.set_ylabel("amount")
    dates: Any = ConciseDateFormatter
    amounts.xaxis.set_major_formatter(dates(amounts.xaxis.get_major_locator()))
    amounts.set_xlabel("time (UTC)")
    shown = amounts.legend(
        loc="upper left", bbox_to_anchor=(-0.1, -0.16), ncols=5, handlelength=0.8, columnspacing=1.2
    )
    shown.legend_handles[0].set_sizes([20.0])  # a point of the panel would not be seen

    if kinds:
        bars = panels[1, 0]
        for place, of_kind in enumerate(kinds.values()):
            frauds, found = of_kind["frauds"], of_kind["found"]
            bars.barh(place, 100.0, 0.66, color=MISSED)
            bars.barh(place, 100.0 * found / frauds, 0.66, color=SPARE[2].colour)
            bars.text(102.0, place, f"{found} of {frauds}", va="center")
        bars.set_yticks(range(len(kinds)), list(kinds))
        bars.set_ylim(len(kinds) - 0.5, -0.5)
        bars.set_title("Frauds that were found, by kind")
        bars.set_xlabel("of the payments of this kind (%)")
        from_zero([bars], 1.2, "x")
        bars.set_xticks([0, 25, 50, 75, 100])
    return figure

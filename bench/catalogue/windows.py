"""A picture of the windows over one stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.figure import Figure

import specstream as ss
from bench.catalogue.runs import CAME, dots
from specstream.figures.palette import SPARE
from specstream.figures.style import in_style, new_figure

__all__ = ["windows"]

_TIMES = (1, 4, 6, 9, 17, 19, 20, 22, 33, 35, 42, 44, 47, 49, 58)
_DOORS = ("", "out", "", "", "in", "", "out", "", "", "in", "", "", "out", "in", "")


class _Count(ss.Record):
    """How many events a window has."""

    events: int = 0


def _add(count: Any, event: Any) -> None:
    count.events += 1


def _starts(event: Any) -> bool:
    return bool(event.door == "out")


def _arrives(event: Any) -> bool:
    return bool(event.door == "in")


@in_style
def windows() -> Figure:
    """The windows of one stream, whose events are the dots, and how many events each has."""
    day = {"time": list(_TIMES), "door": list(_DOORS)}
    columns = {"door": str}
    of = ss.windows
    made = {
        "by_time: 20 long": of.by_time(_Count, _add, 20, event=columns),
        "by_time: 20 long, every 10": of.by_time(_Count, _add, 20, 10, event=columns),
        "by_count: 5 events": of.by_count(_Count, _add, 5, event=columns),
        "by_session: gap of 8": of.by_session(_Count, _add, 8, event=columns),
        "by_landmark: from out to in": of.by_landmark(
            _Count, _add, _starts, _arrives, event=columns
        ),
    }
    figure, panels = new_figure("", 4.4)
    axes, place, ticks = panels[0, 0], 1.0, []
    dots(axes, _TIMES, np.zeros(len(_TIMES)), "events", CAME)
    for (title, operator), look in zip(made.items(), SPARE, strict=True):
        end = {} if title.startswith(("by_count", "by_landmark")) else {"end": True}
        found = operator.run_sequential(day, order_by="time", **end).output.to_pylist()
        overlap = len({row["start"] % 20 for row in found}) == 2 and "every" in title
        paper = {"facecolor": "white", "edgecolor": "none", "pad": 1.0}
        axes.text(-10, place, title, fontweight="bold", va="center", bbox=paper)
        text = "black" if look in SPARE[3:] else "white"
        for row in found:
            start, stop = row["start"], row["end"]
            if title.startswith("by_count"):
                start, stop = _TIMES[start], _TIMES[stop - 1]
            at = place + 0.75 + (0.75 if overlap and start % 20 else 0.0)
            axes.barh(at, stop - start, 0.62, left=start, color=look.colour, edgecolor="white")
            middle, said = (start + stop) / 2, str(row["events"])
            axes.text(middle, at, said, color=text, ha="center", va="center")
        ticks.append(place)
        place += 2.5 if overlap else 1.75
    for time in _TIMES:
        axes.plot([time, time], [0, place - 0.6], color=CAME.colour, linewidth=0.5, zorder=0.2)
    axes.set_ylim(place - 0.5, -0.5)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.set_xlabel("time")
    return figure

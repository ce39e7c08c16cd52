"""What was measured, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from bench.interpreted.measure import LOOK_UP, NUMPY, PURE
from specstream.figures.palette import LOOKS as KNOWN
from specstream.figures.palette import QUIET, Look
from specstream.figures.style import in_style, legend, new_figure, plain_ticks, plot_line

__all__ = ["LOOKS", "draw_interpreted"]

EACH = "one for each thread"
ALWAYS, AUTO = "two threads, horizon 4", "two threads, auto"
BY_THREADS = {
    NUMPY: KNOWN["value"],
    LOOK_UP: KNOWN["Auto"],
    PURE: KNOWN["eager"],
    EACH: Look(QUIET, "", ":", "", 1.4),
}
BY_LENGTH = {
    ALWAYS: Look(KNOWN["plain"].colour, "D", "--", "", 1.4),
    AUTO: Look(KNOWN["lock"].colour, "v", "-", "", 1.4),
}
LOOKS = {**BY_THREADS, **BY_LENGTH}


@in_style
def draw_interpreted(data: Mapping[str, Any]) -> Figure:
    """Speed by threads, and by the length of an event.

    Args:
        data: as ``--json`` writes it.
    """
    figure, panels = new_figure(
        f"Interpreted operators: speed relative to one event after the other\n"
        f"{data['machine']['processor']}, {data['machine']['cores']} cores",
        4.4,
        1,
        3,
    )
    by_threads, *by_length = panels[0]
    most = 1
    for name, of in data["parts"]["threads"].items():
        numbers = [int(one) for one in of["speed"]]
        most = max(most, *numbers)
        speeds = [one[1] for one in of["speed"].values()]
        plot_line(by_threads, numbers, speeds, name, BY_THREADS[name])
    by_threads.plot([1, most], [1, most], color=QUIET, linestyle=":", label=EACH)
    by_threads.set_xscale("log", base=2)
    by_threads.set_yscale("log", base=2)
    by_threads.set_xlabel("threads")
    by_threads.set_ylabel("times as fast")
    by_threads.set_title("more threads")
    for axes, (kind, operators) in zip(by_length, data["parts"]["lengths"].items(), strict=True):
        lengths = [one["microseconds"] for one in operators.values()]
        for label, key in {ALWAYS: "always", AUTO: "auto"}.items():
            speeds = [one[key][1] for one in operators.values()]
            plot_line(axes, lengths, speeds, label, BY_LENGTH[label])
        axes.axhline(1, color=QUIET, linewidth=1)
        axes.set_xscale("log")
        axes.set_ylim(0, 2.1)
        axes.set_xlabel("length of an event (µs)")
        axes.set_title(kind)
    for axes in panels[0]:
        axes.grid(axis="y")
        plain_ticks(axes.xaxis)
        plain_ticks(axes.yaxis)
    legend(figure, LOOKS, LOOKS)
    return figure

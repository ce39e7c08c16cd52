"""The picture: speed against threads."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.figure import Figure

from specstream.figures.palette import SPARE
from specstream.figures.style import from_zero, in_style, line_at, new_figure

__all__ = ["draw"]

TITLES = {
    "model": "Scored by a trained network: speed against threads",
    "lookup": "Asking a service over the network: speed against threads",
}


@in_style
def draw(program: str, speeds: Mapping[int, float]) -> Figure:
    """One panel.

    Args:
        program: which of the two.
        speeds: how many times as fast as one thread, by the number of threads.
    """
    figure, panels = new_figure(TITLES[program], 3.6)
    panel = panels[0, 0]
    look = SPARE[0]
    places = range(len(speeds))
    panel.plot(places, list(speeds.values()), color=look.colour, marker=look.marker)
    for place, ratio in zip(places, speeds.values(), strict=True):
        panel.annotate(
            f"{ratio:.1f}", (place, ratio), (0, 7), textcoords="offset points", ha="center"
        )
    line_at(panel, 1.0)
    panel.set_xticks(places, [str(count) for count in speeds])
    panel.set_xlabel("threads")
    panel.set_ylabel("times as fast as one thread")
    from_zero([panel], 1.15)
    return figure

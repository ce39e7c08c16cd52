"""Measurements, and a forecast for more cores, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from specstream.figures.palette import look
from specstream.figures.style import (
    bars_height,
    draw_bars,
    from_zero,
    in_style,
    legend,
    line_at,
    new_figure,
    plain_ticks,
    plot_line,
    save,
)
from specstream.tuning.forecast.forecast import Forecast

__all__ = ["Quartiles", "draw_forecast", "draw_measurements", "save_forecast", "save_measurements"]


class Quartiles(Protocol):
    """What is drawn of a :class:`~specstream.tuning.contest.Measurement`."""

    @property
    def speed(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@in_style
def draw_measurements(
    title: str, axis: str, rows: Sequence[tuple[str, Quartiles]], marked: str = ""
) -> Figure:
    """Bars of speed with their quartiles, the fastest on top; a line at the baseline.

    Args:
        title: above it.
        axis: what the bars are.
        rows: names and measurements.
        marked: name of the bar that is the answer, if any is.
    """
    figure, panels = new_figure(title, 1.0 + bars_height(len(rows), 1, 0.35))
    axes = panels[0, 0]
    ordered = sorted(rows, key=lambda row: -row[1].speed)
    draw_bars(
        axes,
        {
            f"{name}  \N{LEFTWARDS ARROW} use this" if name == marked else name: {
                name: (found.low, found.speed, found.high)
            }
            for name, found in ordered
        },
        "{:.3g}",
        gap=0.35,
    )
    line_at(axes, 1.0, "y")
    axes.set_xlabel(f"{axis}; line: quartiles")
    return figure


def save_measurements(
    path: Path, title: str, axis: str, rows: Sequence[tuple[str, Quartiles]], marked: str = ""
) -> None:
    """:func:`draw_measurements` into a file, whose ending says the format."""
    save(draw_measurements(title, axis, rows, marked), path)


@in_style
def draw_forecast(title: str, forecast: Forecast) -> Figure:
    """The best speed by number of cores, and the real runs that the forecast was compared with."""
    figure, panels = new_figure(title, 4.6)
    axes = panels[0, 0]
    cores = [1, *dict.fromkeys(one.threads for one in forecast.best)]
    protocols = list(dict.fromkeys(one.protocol for one in forecast.best))
    handles: list[Any] = []
    for number, protocol in enumerate(protocols):
        own = look(protocol)
        best = [one.speed for one in forecast.best if one.protocol == protocol]
        plot_line(axes, cores, [1.0, *best], f"forecast, {protocol}", own)
        checks = [check for check in forecast.checks if check.protocol == protocol]
        # Side by side, or the protocols would cover each other.
        threads = [check.threads * (0.94, 1.06)[number % 2] for check in checks]
        simulated = [check.forecast for check in checks]
        measured = [check.measured for check in checks]
        axes.vlines(threads, simulated, measured, color=own.colour, linewidth=0.8)
        axes.scatter(threads, simulated, marker="x", color=own.colour, s=40)
        axes.scatter(threads, measured, marker="s", facecolors="none", edgecolors=own.colour, s=40)
        handles.append(_handle(f"forecast, {protocol}", own.colour, own.marker, own.line))
        handles.append(_handle(f"compared, {protocol}", own.colour, "x"))
        handles.append(_handle(f"real run, {protocol}", own.colour, "s", markerfacecolor="none"))
    # Up to where something is: one for each core would dwarf it.
    top = 1.15 * max(axes.dataLim.y1, 2.0)
    ideal = look("ideal")
    axes.plot([1, top], [1, top], color=ideal.colour, linestyle=ideal.line, linewidth=1.0)
    handles.append(_handle("one for each core", ideal.colour, "", ideal.line))
    line_at(axes, 1.0)
    axes.set_xscale("log", base=2)
    plain_ticks(axes.xaxis, cores)
    axes.minorticks_off()
    axes.set_xlabel("cores")
    axes.set_ylabel("speed relative to plain")
    axes.grid(axis="y")
    from_zero([axes], 1.0)
    legend(figure, [], others=handles)
    return figure


def _handle(name: str, colour: str, marker: str, line: str = "", **more: Any) -> Line2D:
    drawn: dict[str, Any] = {"color": colour, "marker": marker, "linestyle": line, **more}
    return Line2D([], [], label=name, **drawn)


def save_forecast(path: Path, title: str, forecast: Forecast) -> None:
    """:func:`draw_forecast` into a file, whose ending says the format."""
    save(draw_forecast(title, forecast), path)

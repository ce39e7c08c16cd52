"""A forecast as a table, text and plain data."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from specstream.tuning.forecast.forecast import Check, Forecast

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["LEFT_OUT", "forecast_table", "forecast_text", "forecast_to_dict"]

# What the machine has not; most of it makes real ones slower.
LEFT_OUT = (
    "what cores share: caches, memory bandwidth, power, execution units",
    "the distance of sockets, which are farther apart than cores",
    "what a run does differently that has read too early and will be dropped",
    "when within an event a word is read or stored to: it is taken to be spread evenly",
    "that rows and slices are logged as a whole: here word by word",
    "what waking takes here: that of an idle server is taken",
    "operations on boosted fields: their locks, and that one of them runs at a time",
    "where an event of Python's gives the lock of the interpreter back: once, in its middle",
    "other processes",
)

# A forecast that is farther off than this is said to be.
FAR_OFF = 0.25
# Two threads on a machine that has two cores to give run at more than this of one.
BUSY = 1.5


def forecast_table(title: str, forecast: Forecast) -> Table:
    """Speeds by number of cores, then the comparison with real runs."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in ("forecast", "measured", "error", "aborts"):
        table.add_column(column, justify="right")
    for check in forecast.checks:
        table.add_row(
            _name(check), f"{check.forecast:.2f}", f"{check.measured:.2f}", f"{check.error:+.0%}"
        )
    table.add_section()
    for one in forecast.best:
        name = f"{one.threads} cores, horizon {one.horizon}, chunk {one.chunk}, {one.protocol}"
        table.add_row(name, f"{one.speed:.2f}", "", "", f"{one.aborts:.1%}")
    return table


def _name(check: Check) -> str:
    threads = "1 thread, forced" if check.forced else f"{check.threads} threads"
    return f"{threads}, horizon {check.horizon}, chunk {check.chunk}, {check.protocol}"


def forecast_text(forecast: Forecast, capacity: float | None = None) -> str:
    """What to make of it.

    Args:
        forecast: what came out.
        capacity: what threads that share nothing ran at, relative to one; None: not known.
    """
    best = max(forecast.best, key=lambda one: one.speed)
    lines = [
        f"{forecast.events:,} events were recorded on one thread and replayed; speed is relative "
        "to plain."
    ]
    if forecast.held is not None:
        lines.append(
            f"{forecast.held:.0%} of their time held the lock of the interpreter, which one thread "
            "has at a time, whatever the cores."
        )
    if best.speed < 1.0:
        lines.append("By the forecast, plain is the answer with more cores as well.")
    else:
        lines.append(
            f"By the forecast, {best.threads} cores are worth {best.speed:.2f} of one, under "
            f"protocol {best.protocol}."
        )
    if forecast.worst > FAR_OFF:
        lines.append(
            f"The forecast is up to {forecast.worst:.0%} off from real runs here: do not rely on "
            "it."
        )
        if capacity is not None and capacity < BUSY:
            lines.append(
                f"The machine was busy: threads that share nothing ran at {capacity:.2f} of one, "
                "so real runs on two say little. Compare again when it is quiet."
            )
    lines.append("It leaves out:")
    lines += [f"- {one};" for one in LEFT_OUT[:-1]]
    lines.append(f"- {LEFT_OUT[-1]}.")
    return "\n".join(lines)


def forecast_to_dict(forecast: Forecast) -> dict[str, Any]:
    """As plain data, for JSON; the error of each check and what is left out included."""
    return {
        **asdict(forecast),
        "left_out": list(LEFT_OUT),
        "checks": [_check_to_dict(check) for check in forecast.checks],
    }


def _check_to_dict(check: Check) -> dict[str, Any]:
    plain = asdict(check)
    return {**plain, "predicted": plain.pop("forecast"), "error": check.error}

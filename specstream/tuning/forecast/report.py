"""A forecast as a table, a picture, text and plain data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specstream.files.writing import writing
from specstream.tuning.forecast.forecast import Check, Forecast

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["LEFT_OUT", "forecast_table", "forecast_text", "forecast_to_dict", "save_forecast"]

# What is not simulated; most of it makes real machines slower.
LEFT_OUT = (
    "what cores share: caches, memory bandwidth, power, execution units",
    "the distance of sockets, which are farther apart than cores",
    "what a run does differently that has read too early and will be dropped",
    "when within an event a word is read or stored to: it is taken to be spread evenly",
    "that stores of a run in place become visible one by one: here all do at its end",
    "under eager, records that several distant words share because there are too many words",
    "operations on boosted fields: their locks, and that one of them runs at a time",
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


def save_forecast(path: Path, title: str, forecast: Forecast) -> None:
    """The best speed by number of cores, and the real runs that the forecast was compared with."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(7, 4.2), layout="constrained")
    cores = [1, *dict.fromkeys(one.threads for one in forecast.best)]
    for color, protocol in zip(("#1f77b4", "#2ca02c"), forecast.costs, strict=False):
        best = [one.speed for one in forecast.best if one.protocol == protocol]
        panel.plot(cores, [1.0, *best], marker="o", color=color, label=f"forecast, {protocol}")
        checks = [check for check in forecast.checks if check.protocol == protocol]
        # Side by side, or the protocols would cover each other.
        threads = [check.threads * (0.97 if color == "#1f77b4" else 1.03) for check in checks]
        simulated = [check.forecast for check in checks]
        measured = [check.measured for check in checks]
        panel.vlines(threads, simulated, measured, color="#7f7f7f", linewidth=0.8)
        panel.scatter(threads, simulated, marker="x", color=color, label=f"compared, {protocol}")
        panel.scatter(
            threads, measured, marker="s", facecolors="none", edgecolors=color, s=24,
            label=f"real run, {protocol}",
        )  # fmt: skip
    panel.plot(cores, cores, color="black", linewidth=0.6, linestyle=":", label="one for each core")
    panel.axhline(1.0, color="black", linewidth=0.6)
    panel.set_xscale("log", base=2)
    panel.set_yscale("log", base=2)
    panel.set_xticks(cores, [str(count) for count in cores])
    panel.yaxis.set_major_formatter(lambda value, position: f"{value:g}")
    panel.set_xlabel("cores")
    panel.set_ylabel("speed relative to plain")
    panel.set_title(title, loc="left", fontsize=10)
    panel.legend(fontsize=8)
    with writing(path):
        figure.savefig(path, dpi=110)
    plt.close(figure)

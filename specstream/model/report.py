"""What the model says, as a table, a picture, text and plain data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specstream.model.prediction import Check, Forecast

if TYPE_CHECKING:
    from rich.table import Table

__all__ = ["forecast_table", "forecast_text", "forecast_to_dict", "save_forecast"]

# A model that is farther off than this is said to be.
FAR_OFF = 0.25


def forecast_table(title: str, forecast: Forecast) -> Table:
    """Predictions by number of cores, then the comparison with real runs."""
    from rich.table import Table

    table = Table(title=title, title_justify="left")
    table.add_column("")
    for column in ("speed by the model", "measured", "error", "aborts"):
        table.add_column(column, justify="right")
    for check in forecast.checks:
        table.add_row(
            _name(check), f"{check.predicted:.2f}", f"{check.measured:.2f}", f"{check.error:+.0%}"
        )
    table.add_section()
    for one in forecast.best:
        name = f"{one.threads} cores, horizon {one.horizon}, chunk {one.chunk}"
        table.add_row(name, f"{one.speed:.2f}", "", "", f"{one.aborts:.1%}")
    return table


def _name(check: Check) -> str:
    threads = "1 thread, forced" if check.forced else f"{check.threads} threads"
    return f"{threads}, horizon {check.horizon}, chunk {check.chunk}"


def forecast_text(forecast: Forecast) -> str:
    """What to make of it."""
    best = max(forecast.best, key=lambda one: one.speed)
    lines = [
        f"{forecast.events:,} events were recorded on one thread and replayed; speed is relative "
        "to plain."
    ]
    if best.speed < 1.0:
        lines.append("By the model, plain is the answer with more cores as well.")
    else:
        lines.append(f"By the model, {best.threads} cores are worth {best.speed:.2f} of one.")
    if forecast.worst > FAR_OFF:
        lines.append(
            f"The model is up to {forecast.worst:.0%} off from real runs here: do not rely on it."
        )
    lines.append(
        "It leaves out what cores share (caches, memory, power), the distance of sockets, other "
        "processes, and what a doomed run does differently."
    )
    return "\n".join(lines)


def forecast_to_dict(forecast: Forecast) -> dict[str, Any]:
    """As plain data, for JSON; the error of each check included."""
    return {
        **asdict(forecast),
        "checks": [{**asdict(check), "error": check.error} for check in forecast.checks],
    }


def save_forecast(path: Path, title: str, forecast: Forecast) -> None:
    """The best speed by number of cores, and the real runs that the model was compared with."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panel = plt.subplots(figsize=(7, 4.2), layout="constrained")
    cores = [1, *(one.threads for one in forecast.best)]
    panel.plot(cores, [1.0, *(one.speed for one in forecast.best)], marker="o", label="model, best")
    for check in forecast.checks:
        at = [check.threads] * 2
        panel.plot(at, [check.predicted, check.measured], color="#7f7f7f", linewidth=0.8)
    threads = [check.threads for check in forecast.checks]
    predicted = [check.predicted for check in forecast.checks]
    measured = [check.measured for check in forecast.checks]
    panel.scatter(threads, predicted, marker="x", color="#1f77b4", label="model, compared")
    panel.scatter(threads, measured, marker="s", color="#d62728", s=18, label="real run")
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
    figure.savefig(path, dpi=110)
    plt.close(figure)

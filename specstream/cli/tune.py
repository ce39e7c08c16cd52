"""The commands ``specstream tune`` and ``specstream bench``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from specstream.cli.options import check_plot, stream_options

__all__ = ["bench", "tune"]


@contextmanager
def progress(seconds: float) -> Iterator[Callable[[str], None]]:
    """A line on stderr: what is going on, and how much of the time is used up."""
    import time

    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    with Progress(
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
    ) as bar:
        task = bar.add_task("reading", total=seconds)
        began: list[float] = []

        def say(text: str) -> None:
            if text.startswith("round") and not began:
                began.append(time.perf_counter())
            done = time.perf_counter() - began[0] if began else 0.0
            bar.update(task, description=text, completed=min(done, seconds))

        yield say


def available_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0))


def expression(target: str, given: tuple[str, ...], operator: Any) -> str:
    """How Python code names the operator that a command line names."""
    where, _, name = target.rpartition(":")
    known = (f"_operators_{Path(where).stem}", where)
    direct = any(getattr(sys.modules.get(at), name, None) is operator for at in known)
    return name if direct else f"{name}({', '.join(given)})"


def about_stream(rows: int, left_out: int) -> str:
    """How much of the input was used."""
    return f"{rows:,} events" + (f", {left_out:,} more left out (--events)" if left_out else "")


@click.command()
@stream_options()
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    help="Most threads to try; by default as many as there are cores.",
)
@click.option(
    "--protocol",
    "protocols",
    multiple=True,
    type=click.Choice(["value", "eager"]),
    help="Protocol to try; repeatable; both by default.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=20.0,
    show_default=True,
    help="Time for measuring; reading and compiling come before.",
)
@click.option(
    "--cores",
    type=click.IntRange(2, 256),
    help="Replay the events in a model of a machine with so many cores.",
)
def tune(
    target: str,
    arguments: tuple[str, ...],
    input_: Path,
    order_by: str,
    source: str | None,
    events: int,
    plot: Path | None,
    as_json: bool,
    threads: int | None,
    protocols: tuple[str, ...],
    seconds: float,
    cores: int | None,
) -> None:
    """Find the engine's setting for an operator, on your own data.

    Runs the operator over the input with different threads, horizons, chunks and protocols, plain
    and Auto among them, in interleaved rounds; prints what they gained, and the line to write. All
    settings give the same rows, which is checked. With --cores, a model of the scheduler says what
    a larger machine would make of the same events, and how far the model is from this one.
    """
    from specstream.cli import check_input, load_operator, parse_arguments, reported_errors

    with reported_errors():
        from specstream.model.prediction import predict
        from specstream.model.report import (
            forecast_table,
            forecast_text,
            forecast_to_dict,
            save_forecast,
        )
        from specstream.tuning import machine
        from specstream.tuning.picture import save_bars
        from specstream.tuning.search import search
        from specstream.tuning.stream import read_stream
        from specstream.tuning.table import figures_table, print_table

        check_plot(plot)
        operator = load_operator(target, parse_arguments(arguments))
        check_input(input_, operator, order_by, source)
        most = threads or available_cores()
        with progress(seconds) as say:
            stream = read_stream(input_, operator, order_by, source, events)
            finding = search(
                operator,
                stream,
                seconds,
                most,
                protocols or ("value", "eager"),
                machine.free_memory() // 2,
                say,
            )
            forecast = None
            if cores is not None:
                forecast = predict(
                    operator,
                    stream,
                    cores,
                    available_cores(),
                    min(seconds / 4, 5.0),
                    say,
                    protocols or ("value", "eager"),
                )
            say("what the cores can do")
            capacity = machine.capacity(most) if most > 1 else 1.0
        name = expression(target, arguments, operator)
        rows = [(str(one.candidate), one.figures) for one in finding.tried]
        about = machine.describe()
        title = (
            f"{operator.name}: {about_stream(stream.count, stream.left_out)}; "
            f"{finding.nanoseconds:,.0f} ns/event plain"
        )
        if plot is not None:
            save_bars(
                plot,
                f"{title}\n{about['processor']}, {about['cores']} cores",
                "speed relative to plain",
                rows,
                str(finding.best),
            )
            if forecast is not None:
                save_forecast(
                    plot.with_stem(f"{plot.stem}-cores"),
                    f"{operator.name}: what more cores would bring, by the model",
                    forecast,
                )
        summary: dict[str, Any] = {
            "operator": operator.name,
            "events": stream.count,
            "batch": finding.batch,
            "short": finding.short,
            "plain_nanoseconds": finding.nanoseconds,
            "conversion_nanoseconds": finding.around,
            "seconds": finding.seconds,
            "answer": "plain" if finding.best.is_plain else "speculation",
            "engine": finding.best.line(name),
            "reason": finding.reason,
            "best": asdict(finding.best),
            "candidates": [
                {**asdict(one.candidate), "last": one.last, **asdict(one.figures)}
                for one in finding.tried
            ],
            "machine": {**about, "threads": most, "capacity": capacity},
            "model": None if forecast is None else forecast_to_dict(forecast),
        }
        if as_json:
            click.echo(json.dumps(summary))
            return
        print_table(figures_table(title, rows, str(finding.best)))
        click.echo("Speed is relative to plain in the same round; the conversion from and to Arrow")
        click.echo(f"takes {finding.around:,.0f} ns/event more, whatever the setting.")
        if most > 1:
            click.echo(f"{most} threads that share nothing ran at {capacity:.2f} of one.")
        if finding.short:
            click.echo(
                "The input is short: a batch takes less than 2 ms, and starting it is part of it."
            )
        answer = "Plain is the answer" if finding.best.is_plain else f"Use {finding.best}"
        click.echo(f"\n{answer}: {finding.reason}.\n\n    {finding.best.line(name)}\n")
        if forecast is not None:
            print_table(forecast_table(f"{operator.name}: more cores, by the model", forecast))
            click.echo(forecast_text(forecast, capacity if most > 1 else None))


@click.command()
@stream_options()
@click.option(
    "--locked",
    metavar="MODULE:OPERATOR",
    help="The same operator with locks of your own (ss.locks), to compare with.",
)
@click.option(
    "--threads",
    type=click.IntRange(1, 256),
    help="Threads of those that have several; by default as many as there are cores.",
)
@click.option(
    "--seconds",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="Time for measuring; reading and compiling come before.",
)
def bench(
    target: str,
    arguments: tuple[str, ...],
    input_: Path,
    order_by: str,
    source: str | None,
    events: int,
    plot: Path | None,
    as_json: bool,
    locked: str | None,
    threads: int | None,
    seconds: float,
) -> None:
    """Set an operator beside locks, its plain run, and pure Python.

    All run the same events in interleaved rounds: plain on one thread, specstream with Auto, one
    global lock around the operator, the version of --locked if there is one, and pure Python. A run
    under locks has no order: what it emits differs from run to run.
    """
    from specstream.cli import check_input, load_operator, parse_arguments, reported_errors

    with reported_errors():
        from specstream.tuning import machine
        from specstream.tuning.picture import save_bars
        from specstream.tuning.rivals import BASELINE, compare
        from specstream.tuning.stream import read_stream
        from specstream.tuning.table import figures_table, print_table

        check_plot(plot)
        operator = load_operator(target, parse_arguments(arguments))
        check_input(input_, operator, order_by, source)
        own = None
        if locked is not None:
            own = load_operator(locked, parse_arguments(arguments))
            if own.layout.words("locks") == 0:
                raise click.ClickException(
                    f"--locked {locked}: its state declares no locks, so threads would write over "
                    "each other: declare locks = ss.locks(n), and take them in the operator"
                )
            if set(own.event.names) - set(operator.event.names):
                raise click.ClickException(
                    f"--locked {locked}: it reads other columns ({', '.join(own.event.names)}) "
                    f"than {target} ({', '.join(operator.event.names)})"
                )
        most = threads or available_cores()
        with progress(seconds) as say:
            stream = read_stream(input_, operator, order_by, source, events)
            found = compare(operator, own, stream, seconds, most, say)
            say("what the cores can do")
            capacity = machine.capacity(most) if most > 1 else 1.0
        about = machine.describe()
        rows = list(found.figures.items())
        title = (
            f"{operator.name}: {about_stream(stream.count, stream.left_out)}; "
            f"{found.nanoseconds:,.0f} ns/event plain"
        )
        if plot is not None:
            save_bars(
                plot,
                f"{title}\n{about['processor']}, {about['cores']} cores",
                "speed relative to plain",
                rows,
                next(name for name in found.figures if name.startswith("specstream")),
                log_scale=True,
            )
        if as_json:
            summary = {
                "operator": operator.name,
                "events": stream.count,
                "batch": found.batch,
                "baseline": BASELINE,
                "contestants": [
                    {"name": name, "chunk": found.settings.get(name), **asdict(figures)}
                    for name, figures in rows
                ],
                "machine": {**about, "threads": most, "capacity": capacity},
            }
            click.echo(json.dumps(summary))
            return
        print_table(figures_table(title, rows, BASELINE, with_answer=True))
        click.echo("Speed is relative to plain in the same round.")
        if most > 1:
            click.echo("A run under locks has no order: what it emits differs from run to run.")
            click.echo(f"{most} threads that share nothing ran at {capacity:.2f} of one.")

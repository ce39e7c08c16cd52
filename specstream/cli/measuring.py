"""What ``tune`` and ``bench`` have in common: their options, their progress, their titles."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from specstream.cli.options import SecondsRange

__all__ = ["about_stream", "most_threads_option", "progress", "seconds_option"]


def most_threads_option(text: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--threads``: as many as there are cores, unless it says otherwise."""
    return click.option("--threads", type=click.IntRange(1, 256), help=text)


def seconds_option(default: float) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """``--seconds``."""
    return click.option(
        "--seconds",
        type=SecondsRange(min=0.1),
        default=default,
        show_default=True,
        help="Time for measuring; excludes reading and compiling.",
    )


@contextmanager
def progress(seconds: float) -> Iterator[Callable[[str], None]]:
    """A line on stderr: what is going on, and how much of the time is used up."""
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


def about_stream(rows: int, left_out: int) -> str:
    """How much of the input was used."""
    return f"{rows:,} events" + (f", {left_out:,} more left out (--events)" if left_out else "")

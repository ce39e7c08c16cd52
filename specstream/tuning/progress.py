"""What is going on while something is measured, and how much of its time is used up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

__all__ = ["progress"]


@contextmanager
def progress(seconds: float) -> Iterator[Callable[[str], None]]:
    """A line on stderr, or below a notebook's cell; nothing where stderr is a file."""
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

"""What ``tune`` and ``bench`` have in common: their options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from specstream.cli.options import SecondsRange

__all__ = ["most_threads_option", "seconds_option"]


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

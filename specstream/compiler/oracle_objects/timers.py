"""What timers of the state are called, in errors and by those who get them."""

from __future__ import annotations

from typing import Any

from specstream.declarations.state_layout import Field

__all__ = ["timer_key", "timer_text"]


def timer_text(key: Any, field: Field) -> str:
    """A timer in errors; that of a vertex with its name."""
    vertex = field.name.rpartition(".")[0]
    return f"{plain(key)!r} of vertex {vertex!r}" if vertex else repr(plain(key))


def timer_key(key: Any, field: Field) -> Any:
    """A timer's key as Python's own values; that of a vertex with its name in front."""
    vertex = field.name.rpartition(".")[0]
    return (vertex, plain(key)) if vertex else plain(key)


def plain(key: Any) -> Any:
    """A timer's key in the oracle as Python's own values."""
    if isinstance(key, tuple):
        return tuple(map(plain, key))
    return key if isinstance(key, bool) else int(key) if isinstance(key, int) else str(key)

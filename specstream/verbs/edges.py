"""What a stream begins and ends with: its first row, rows in front of it, its last row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from specstream.declarations.options import integer
from specstream.definition.operator import Operator
from specstream.verbs.accumulate import first_values
from specstream.verbs.counting import at_end
from specstream.verbs.writing import Keys, Writer, indented, literal, verb

__all__ = ["freeze", "last", "start_with"]


@verb
def freeze(
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    limit: int = 2**24,
    name: str = "freeze",
) -> Operator:
    """With each event the first event's row, again; of each key, if there is one.

    Once it has that it writes nothing, and conflicts with nobody.

    Args:
        event: as of :func:`map`, as are ``key``, ``to_all``, ``forget`` and ``name``.
        key: see there.
        to_all: see there.
        forget: see there.
        limit: the most keys.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> op = ss.verbs.freeze(event={"x": int})
    >>> with ss.Engine(op) as engine:
    ...     engine.process({"x": [7, 8, 9]})["x"].to_pylist()
    [7, 7, 7]
    """
    writer = Writer("freeze", name, event, sign="1=", limit=limit)
    writer.keys = Keys.of("freeze", writer.event, key, to_all, forget)
    writer.pass_on()
    kept = writer.kept(writer.others)
    cell = writer.cell("first", is_known=(bool, False), **kept.values())
    columns, first = writer.named(writer.others)
    first += cell.store(is_known="True", **kept.stored(columns))
    sent = writer.emission(kept.given())
    return writer.made(
        [
            *cell.load(),
            "if not is_known:",
            *indented(first),
            *indented(cell.load()),
            *sent,
        ]
    )


@verb
def last(
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    limit: int = 2**24,
    name: str = "last",
) -> Operator:
    """The last event, when the stream ends; of each key, in the order of their first events. A
    chain by nature without a key.

    Each event is kept, so that without a key such an operator keeps to one core. The stream ends
    with ``process(..., end=True)`` or ``finish()``, with ``order_by=``, as timers do.

    Args:
        event: as of :func:`map`, as are ``key``, ``to_all`` and ``name``.
        key: see there.
        to_all: see there.
        limit: the most keys.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> closing = ss.verbs.last(event={"x": int})
    >>> day = {"time": [1, 2], "x": [7, 8]}
    >>> with ss.Engine(closing) as engine:
    ...     engine.process(day, order_by="time", end=True).to_pylist()
    [{'x': 8}]
    """
    writer = Writer("last", name, event, sign="last", limit=limit)
    writer.keys = Keys.of("last", writer.event, key, to_all, None)
    writer.pass_on()
    kept = writer.kept(writer.others)
    cell = writer.cell("latest", is_known=(bool, False), **kept.values())
    columns, lines = writer.named(writer.others)
    lines += cell.store(is_known="True", **kept.stored(columns))
    return at_end(writer, lines, cell, kept, "is_known")


@verb
def start_with(
    row: Any,
    /,
    *,
    event: Any,
    times: int = 1,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    limit: int = 2**24,
    name: str = "start_with",
) -> Operator:
    """A row before the first event's, in its phase; of each key, if there is one.

    Of an empty stream there is none. Once it was sent, nothing is written any more.

    Args:
        row: its columns by name, without those of the key; one column may be a bare value. Of times
            the number that an operator has.
        event: as of :func:`map`, as are ``key``, ``to_all``, ``forget`` and ``name``.
        times: how often, 0 to 1,000,000.
        key: see there.
        to_all: see there.
        forget: see there.
        limit: the most keys.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> led = ss.verbs.start_with({"x": 0}, times=2, event={"x": int})
    >>> with ss.Engine(led) as engine:
    ...     engine.process({"x": [7, 8]})["x"].to_pylist()
    [0, 0, 7, 8]
    """
    what = "start_with"
    times = integer(f"{what}: times", times, 0, 1_000_000)
    writer = Writer(what, name, event, sign=f"{times}+", limit=limit)
    writer.keys = Keys.of(what, writer.event, key, to_all, forget)
    writer.pass_on()
    given = dict(row) if isinstance(row, Mapping) else row
    values = first_values(f"{what}: row", given, writer.others)
    cell = writer.cell("begun", is_begun=(bool, False))
    first = writer.emission([literal(one) for one in values.values()])
    return writer.made(
        [
            *cell.load(),
            "if not is_begun:",
            *indented(cell.store(is_begun="True")),
            f"    for _ in range({times}):",
            *indented(indented(first)),
            *writer.emission(writer.values(writer.others)),
        ]
    )

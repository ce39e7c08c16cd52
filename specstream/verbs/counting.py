"""Which events go on, told from their number: the first ones, all but the first, every n-th."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.container_fields import timers
from specstream.declarations.durations import UNIT_TICKS, nanoseconds
from specstream.declarations.options import flag, integer, one_of, refused
from specstream.declarations.state_layout import scalar
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.structures import increment
from specstream.verbs.writing import Cell, Kept, Keys, Writer, indented, verb

__all__ = ["END", "every", "skip", "take"]

END = 2**63 - 1
"""The time of a timer that fires when the stream ends, and not before."""
_MOST = 2**62


@verb
def skip(
    n: int,
    /,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    limit: int = 2**24,
    name: str = "skip",
) -> Operator:
    """All events but the first ``n``; of each key, if there is one.

    Once they have passed it writes nothing, and conflicts with nobody.

    Args:
        n: how many, 0 to 2**62.
        event: as of :func:`map`, as are ``key``, ``to_all``, ``forget`` and ``name``.
        key: see there.
        to_all: see there.
        forget: see there.
        limit: the most keys.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> op = ss.verbs.skip(2, event={"x": int})
    >>> with ss.Engine(op) as engine:
    ...     engine.process({"x": [1, 2, 3]}).to_pylist()
    [{'x': 3}]
    """
    return _passed("skip", f"{n}…", n, event, Keys((), to_all, forget), key, limit, name)


@verb
def take(
    n: int,
    /,
    *,
    event: Any,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    limit: int = 2**24,
    name: str = "take",
) -> Operator:
    """The first ``n`` events; of each key, if there is one.

    Once they have passed it writes nothing, and conflicts with nobody.

    Args:
        n: how many, 0 to 2**62.
        event: as of :func:`map`, as are ``key``, ``to_all``, ``forget`` and ``name``.
        key: see there.
        to_all: see there.
        forget: see there.
        limit: the most keys.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> op = ss.verbs.take(2, event={"x": int})
    >>> with ss.Engine(op) as engine:
    ...     engine.process({"x": [1, 2, 3]})["x"].to_pylist()
    [1, 2]
    """
    return _passed("take", f"…{n}", n, event, Keys((), to_all, forget), key, limit, name)


def _passed(
    what: str, sign: str, n: int, event: Any, given: Keys, key: Any, limit: int, name: str
) -> Operator:
    n = integer(f"{what}: n", n, 0, _MOST)
    writer = Writer(what, name, event, sign=sign, limit=limit)
    writer.keys = Keys.of(what, writer.event, key, given.to_all, given.forget)
    writer.pass_on()
    cell = writer.cell("passed", passed=(int, 0))
    counted = [f"if passed < {n}:", *indented(cell.store(passed="passed + 1"))]
    sent = indented(writer.emission(writer.values(writer.others)))
    body = [*counted, *sent] if what == "take" else [*counted, "else:", *sent]
    return writer.made([*cell.load(), *body])


@verb
def every(
    n: int | str | datetime.timedelta,
    /,
    *,
    event: Any,
    last: bool = False,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    unit: str = "us",
    limit: int = 2**24,
    name: str = "every",
) -> Operator:
    """The events 0, n, 2n, and so on; or with a duration the first event, and then each first one
    that is so long after the last that was given.

    Without a key the events are counted by a predicted counter
    (:func:`specstream.structures.increment`), so that they run on all cores.

    Args:
        n: from one to the next, 1 to 2**62, or a duration, like ``"1 minute"``.
        event: as of :func:`map`, as are ``key``, ``to_all``, ``forget`` and ``name``.
        last: when the stream ends, the last event too, unless it was given. Each event is kept for
            that, which makes a chain of them.
        key: see there.
        to_all: see there.
        forget: see there.
        unit: of times, to which an order column of times is cast: "s", "ms", "us", "ns" or "day".
        limit: the most keys.
        name: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> thirds = ss.verbs.every(3, event={"x": int})
    >>> with ss.Engine(thirds) as engine:
    ...     engine.process({"x": list(range(8))})["x"].to_pylist()
    [0, 3, 6]
    """
    is_time = isinstance(n, str | datetime.timedelta)
    writer = Writer("every", name, event, sign=f"↓{n}", limit=limit)
    writer.keys = Keys.of("every", writer.event, key, to_all, forget)
    writer.pass_on()
    keeps = flag("every: last", last)
    if isinstance(n, str | datetime.timedelta):
        period = _ticks(n, unit)
    else:
        period = integer("every: n", n, 1, _MOST)
    is_counted = not (is_time or keeps or writer.keys.columns)
    if is_counted:
        writer.names["increment"] = increment
        writer.fields["passed"] = scalar(int)
        sent = indented(writer.emission(writer.values(writer.others)))
        return writer.made([f'if (increment(state, "passed") - 1) % {period} == 0:', *sent])
    kept = writer.kept(writer.others)
    values: dict[str, tuple[type, Any]] = (
        {"is_given": (bool, False), "given": (int, 0)} if is_time else {"passed": (int, 0)}
    )
    if keeps:
        values = {**values, "waits": (bool, False), **kept.values()}
    cell = writer.cell("of_key", **values)
    lines = cell.load()
    if is_time:
        lines += [
            "now = event.timestamp",
            f"is_due = not is_given or now - given >= {period}",
        ]
        due = {"is_given": "True", "given": "now"}
        other: dict[str, str] = {}
    else:
        lines.append(f"is_due = passed % {period} == 0")
        due = other = {"passed": "passed + 1"}
    if keeps:
        columns, named = writer.named(writer.others)
        lines += named
        due = {**due, "waits": "False"}
        other = {**other, "waits": "True", **kept.stored(columns)}
    lines += ["if is_due:"]
    lines += indented(cell.store(**due))
    lines += indented(writer.emission(writer.values(writer.others)))
    if other:
        lines += ["else:", *indented(cell.store(**other))]
    unit_of_times = unit if is_time else None
    if not keeps:
        return writer.made(lines, time_unit=unit_of_times)
    return at_end(writer, lines, cell, kept, "waits", unit_of_times)


def at_end(
    writer: Writer,
    lines: list[str],
    cell: Cell,
    kept: Kept,
    test: str,
    time_unit: str | None = None,
) -> Operator:
    """An operator that sends what a cell keeps when the stream ends, of each key for which a test
    holds."""
    writer.fields["timers"] = timers(int)
    writer.fields["is_begun"] = scalar(bool)
    writer.names["END"] = END
    lines = [
        *lines,
        "if not state.is_begun:",
        "    state.is_begun = True",
        "    state.timers.set(0, END)",
    ]
    sent = indented(_sent_at_end(writer, kept))
    if cell.is_keyed:
        entries = [f"for key, entry in state.{cell.name}.items():"]
        body = [*cell.unpack("entry"), f"if {test}:", *sent]
        fired = [*entries, *indented(body)]
    else:
        fired = [*cell.load(), f"if {test}:", *sent]
    made = writer.made(lines, on_timer=fired, time_unit=time_unit)
    made.speaks_at_end = True
    return made


def _sent_at_end(writer: Writer, kept: Kept) -> list[str]:
    parts = [*(writer.key_parts() if writer.keys.columns else ()), *kept.given()]
    return [f"emit({', '.join(parts)})"]


def _ticks(given: str | datetime.timedelta, unit: str) -> int:
    one_of("every: unit", unit, tuple(UNIT_TICKS))
    length, tick = nanoseconds("every: n", given), UNIT_TICKS[unit]
    if length <= 0:
        raise refused("every: n", given, "a duration above zero, like '1 minute'")
    if length % tick:
        raise ConfigurationError(
            f"every: n={given!r} is no whole number of {unit}: give a finer unit="
        )
    return length // tick

# fmt: off
"""The definitions of rules, on lists: the user's own function, unrewritten, reads a whole trace.

A rule has :data:`NAMES` among its globals; they speak from the one position in the one trace that
is read. A part is true, false, or None where the unseen rest decides. As Python's ``and`` and
``if`` know two values, a function is run with both outcomes of each call that is None, and is None
if the results differ. The same call at one position has one outcome; calls at different positions
are independent, as in three-valued tables.
"""
from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf
from types import CodeType, FunctionType
from typing import Any
from unittest import mock

__all__ = ["NAMES", "anchored", "settled_at", "verdicts"]

Function = Callable[[Any], object]
Verdicts = list[bool | None]
# What is true of an event behind the end. "open": nothing is known, but all time passes, so what is
# bounded in time is over; "running": a bound is over when an event lies behind it; "closed": as
# finite traces have it; "weak": as closed, but what `next_event` waits for holds.
UNSEEN = {"open": None, "running": None, "closed": False, "weak": True}

def _join(decides: bool, values: Iterable[bool | None]) -> bool | None:
    unknown = False
    for value in values:
        if value is decides:
            return decides
        unknown |= value is None
    return None if unknown else not decides
_any, _all = partial(_join, True), partial(_join, False)

def _identity(value: Any) -> Hashable:
    """What a function is: its code, wherever it stands, and all that it takes from around it."""
    if isinstance(value, CodeType):
        parts = (value.co_code, value.co_names, *value.co_consts)
    elif isinstance(value, partial):
        parts = (value.func, *value.args, *value.keywords, *value.keywords.values())
    elif isinstance(value, FunctionType):
        taken = [*(value.__defaults__ or ()), *(c.cell_contents for c in value.__closure__ or ())]
        parts = (value.__code__, id(value.__globals__), str(value.__kwdefaults__), *taken)
    else:
        return value if isinstance(value, Hashable) else repr(value)
    return (type(value), *map(_identity, parts))

class _UnknownError(BaseException):
    """Stops a function at a call of which both outcomes are to be tried."""

class _Trace:
    def __init__(self, events: Sequence[Any], end: str) -> None:
        self.events, self.end, self.position = events, end, 0
        self.chosen, self.known = dict[Hashable, bool](), dict[Hashable, bool | None]()

    def truth(self, f: Function, position: int) -> bool | None:
        if not 0 <= position < len(self.events):
            return UNSEEN[self.end] if position >= 0 else False
        name = (_identity(f), position)
        if name not in self.known:
            before, outcomes = (self.position, self.chosen), set[bool]()
            waiting: list[dict[Hashable, bool]] = [{}]
            while waiting and len(outcomes) < 2:
                self.position, self.chosen = position, waiting.pop()
                try:
                    outcomes.add(bool(f(self.events[position])))
                except _UnknownError as call:
                    waiting += [{**self.chosen, call.args[0]: outcome} for outcome in (False, True)]
            self.position, self.chosen = before
            self.known[name] = outcomes.pop() if len(outcomes) == 1 else None
        return self.known[name]

    def both(self, g: Function, j: int, f: Function, start: int, stop: int) -> bool | None:
        return _all(self.truth(*part) for part in [(g, j), *((f, k) for k in range(start, stop))])
    def gap(self, j: int) -> Any:
        return abs(self.events[j].time - self.events[self.position].time)
    def past(self, within: float = inf, after: float = 0) -> list[int]:
        return [j for j in range(self.position + 1) if after <= self.gap(j) <= within]

    def future(self, within: float = inf, after: float = 0) -> list[int]:
        """The last position is behind the end if an event may still come within the bounds."""
        positions = range(self.position, count := len(self.events))
        comes = {"open": within == inf, "running": self.gap(-1) <= within}.get(self.end, False)
        return [j for j in positions if after <= self.gap(j) <= within] + [count] * comes

DEFINITIONS: dict[str, Callable[..., bool | None]] = {
    "previous_event": lambda s, i, f, n=1: s.truth(f, i - n),
    "next_event":     lambda s, i, f, n=1: s.truth(f, i + n),
    "once":           lambda s, i, f, **b: _any(s.truth(f, j) for j in s.past(**b)),
    "historically":   lambda s, i, f, **b: _all(s.truth(f, j) for j in s.past(**b)),
    "eventually":     lambda s, i, f, **b: _any(s.truth(f, j) for j in s.future(**b)),
    "always":         lambda s, i, f, **b: _all(s.truth(f, j) for j in s.future(**b)),
    "since": lambda s, i, f, g, **b: _any(s.both(g, j, f, j + 1, i + 1) for j in s.past(**b)),
    "until": lambda s, i, f, g, **b: _any(s.both(g, j, f, i, j) for j in s.future(**b)),
    "unless": lambda s, i, f, g, within=inf, after=0: _any(
        [_all(s.truth(f, j) for j in s.future(within)),
         _any(s.both(g, j, f, i, j) for j in s.future(within, after))]),
}
_now = _Trace([], "open")

def _operator(name: str, *given: Any, **bounds: float) -> bool:
    call = (name, _now.position, *map(_identity, given), *sorted(bounds.items()))
    if call not in _now.chosen and call not in _now.known:
        _now.known[call] = DEFINITIONS[name](_now, _now.position, *given, **bounds)
    if (value := _now.chosen.get(call, _now.known.get(call))) is None:
        raise _UnknownError(call)
    return value

NAMES: dict[str, Callable[..., bool]] = {name: partial(_operator, name) for name in DEFINITIONS}
NAMES["implies"] = lambda a, b: bool(b) if a else True

def _read(rule: Function, events: Sequence[Any], end: str, positions: Iterable[int]) -> Verdicts:
    global _now
    _now = _Trace(events, end)
    return [_now.truth(rule, position) for position in positions]

def verdicts(rule: Function, events: Sequence[Any], *, at_end: str = "open", key: Any = None,
             operators: Mapping[str, Callable[..., bool]] | None = None) -> Verdicts:
    """The verdict at each event; `operators` stand in for those in the globals of the rule."""
    names = [key] if isinstance(key, str) else key or []
    keys = [tuple(getattr(event, name) for name in names) for event in events]
    found: dict[int, bool | None] = {}
    with mock.patch.dict(getattr(rule, "__globals__", {}), operators or {}):
        for one in set(keys):
            places = [j for j, other in enumerate(keys) if other == one]
            read = _read(rule, [events[j] for j in places], at_end, range(len(places)))
            found.update(zip(places, read, strict=True))
    return [found[j] for j in range(len(events))]

def anchored(rule: Function, events: Sequence[Any], *, at_end: str | None = None) -> Verdicts:
    """After each event, the verdict at the first; with ``at_end`` once more, after the end."""
    found = [_read(rule, events[: j + 1], "running", [0])[0] for j in range(len(events))]
    return [*found, *_read(rule, events, at_end, [0])] if at_end and events else found

def settled_at(rule: Function, events: Sequence[Any], position: int, alphabet: Sequence[Any],
               most: int) -> tuple[int, bool | None] | None:
    """The first event after which all continuations agree; ``time`` in the alphabet is a gap."""
    def outcomes(trace: list[Any], more: int) -> Iterator[bool | None]:
        yield from (_read(rule, trace, end, [position])[0] for end in ("closed", "weak"))
        for event in alphabet if more else []:
            after = event._replace(time=trace[-1].time + event.time)
            yield from outcomes([*trace, after], more - 1)
    for last in range(position, len(events)):
        found = outcomes(list(events[: last + 1]), most)
        verdict = next(found)
        if all(other == verdict for other in found):
            return last, verdict
    return None

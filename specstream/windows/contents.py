"""What is kept of windows that end at regular places: of times, or of numbers of events.

A window has the positions from ``start`` to ``start + length``, the end excluded, and there is one
for each multiple of ``step``. Four ways to know what it comes to when it ends:

- *Each window by itself*: an event is added to all windows that it is in. All it needs is ``add``,
  and it costs ``length / step`` additions an event.
- *Panes that are merged* (with ``merge``): positions are cut into *panes*, of which every window
  consists; an event is added to its pane only. The panes of a window are merged by two stacks: the
  one in front has, for each of its panes, what it and all behind it in the stack come to; the one
  at the back is a running total. When the front is used up, the back becomes the front. So a pane
  is merged about three times, however many panes a window has. Panes without an event are not
  merged: ``merge`` is only given records that have events, on either side.
- *Panes that are removed again* (with ``remove`` too): a running total of all panes of the window,
  from which those are removed that it has left.
- *All rows* (``collect``): what was kept of each event, for any function of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specstream.declarations.records import Record, record_fields
from specstream.errors import ConfigurationError
from specstream.windows.declared import kept_in_dict, takes

__all__ = ["Contents", "Grid", "Kept", "contents_of"]

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls


MOST_FRONTS = 2**26
"""By default, so that the state of long windows with short steps stays below its limit of words."""


@dataclass(frozen=True)
class Grid:
    """Where windows begin and end.

    Attributes:
        length: positions in one.
        step: from the beginning of one to that of the next.
        origin: a position where one begins.
        least: no window begins before it.
    """

    length: int
    step: int
    origin: int
    least: int

    @property
    def pane(self) -> int:
        """Positions that are in the same windows, whichever."""
        return math.gcd(self.length, self.step)


@dataclass(frozen=True)
class Contents:
    """How they are kept: the fields of the state, and functions that operators call.

    Attributes:
        fields: of the state.
        put: ``put(state, key, position, event)`` notes an event.
        value: ``value(state, place)`` of the window that begins at the last part of ``place``; what
            later windows do not need is forgotten.
    """

    fields: dict[str, Any]
    put: Callable[..., Any]
    value: Callable[..., Any]


@dataclass(frozen=True)
class Kept:
    """What is kept, whichever way.

    Attributes:
        record: says what is known of a window, or, if all rows are kept, of an event.
        add: the user's function.
        values: of a window, the columns that are its own.
        grid: where windows begin and end.
        place: type of what is kept by key and number.
        limit: entries of a container.
        full: what is said when one is full.
        opened: ``opened(state, place)`` is called when a window has its first event.
        goes_on: ``goes_on(state, place)``: whether the window behind that one has an event too.
        is_past: ``is_past(state, key, pane)``: whether a window that has ended had this pane, or
            one behind it, which ``spans`` says.
    """

    record: Any
    add: Any
    values: Any
    grid: Grid
    place: Any
    limit: int
    full: str
    opened: Any
    goes_on: Any
    is_past: Any


class Span(Record):
    """Numbers of the panes of a key's last window; of the stacks, where the back one begins."""

    first: int = 0
    boundary: int = 0
    until: int = 0


class Rows(Record):
    """Numbers of the rows that are kept of a key."""

    first: int = 0
    following: int = 0


def contents_of(what: str, of: Kept, merge: Any, remove: Any, collect: bool) -> Contents:
    """How windows are kept that have these functions.

    Raises:
        ConfigurationError: they do not go together.
    """
    if remove is not None and merge is None:
        raise ConfigurationError(f"{what}: remove= takes back what merge= adds: give both")
    if collect and merge is not None:
        raise ConfigurationError(
            f"{what}: collect=True keeps all rows of a window, and merge= none: give one"
        )
    takes(what, "add", of.add, *(("event",) if collect else ("window", "event")))
    if collect:
        return collected(of)
    if merge is None:
        return each_window(of)
    takes(what, "merge", merge, "window", "other")
    if remove is None:
        return merged(of, merge)
    takes(what, "remove", remove, "window", "other")
    return removed(of, merge, remove)


def each_window(of: Kept) -> Contents:
    """Each window by itself."""
    record, add, values, opened = of.record, of.add, of.values, of.opened
    length, step, origin, least = of.grid.length, of.grid.step, of.grid.origin, of.grid.least

    def put(state, key, position, event):
        last = (position - origin) // step * step + origin
        for start in range(last, max(position - length, least - 1), -step):
            at = (*key, start)
            if at not in state.windows:
                state.windows[at] = record()
                opened(state, at)
            add(state.windows[at], event)

    def value(state, at):
        return values(state.windows.pop(at))

    return Contents({"windows": kept_in_dict(of, of.place, record)}, put, value)


def merged(of: Kept, merge: Any) -> Contents:
    """Panes that are merged by two stacks."""
    record, values, goes_on = of.record, of.values, of.goes_on
    size, origin = of.grid.pane, of.grid.origin
    panes = of.grid.length // size
    copied = _copies(record)

    def flip(state, key, first, until):
        """What is behind becomes the front, from its last pane to the first one."""
        for pane in range(until - 1, first - 1, -1):
            at, behind = (*key, pane), (*key, pane + 1)
            if at in state.panes:
                state.fronts[at] = copied(state.panes[at])
                del state.panes[at]
                if behind in state.fronts:
                    merge(state.fronts[at], state.fronts[behind])
            elif behind in state.fronts:
                state.fronts[at] = copied(state.fronts[behind])

    def value(state, at):
        key = at[:-1]
        whole = (*key, 0)
        first = (at[-1] - origin) // size
        until = first + panes
        if whole not in state.spans:
            state.spans[whole] = Span(first, first, first)
        span = state.spans[whole]
        for pane in range(span.first, min(first, span.boundary)):
            state.fronts.pop((*key, pane), record())
        if first >= span.boundary:
            for pane in range(span.boundary, min(span.until, first)):
                state.panes.pop((*key, pane), record())
            flip(state, key, first, until)
            span.boundary = until
            state.backs.pop(whole, record())
        else:
            for pane in range(span.until, until):
                if (*key, pane) in state.panes:
                    if whole in state.backs:
                        merge(state.backs[whole], state.panes[(*key, pane)])
                    else:
                        state.backs[whole] = copied(state.panes[(*key, pane)])
        span.first = first
        span.until = until
        # One of the two has an event, as the window has.
        if (*key, first) in state.fronts:
            total = copied(state.fronts[(*key, first)])
            if whole in state.backs:
                merge(total, state.backs[whole])
        else:
            total = copied(state.backs[whole])
        if not goes_on(state, at):
            for pane in range(first, span.boundary):
                state.fronts.pop((*key, pane), record())
            for pane in range(span.boundary, until):
                state.panes.pop((*key, pane), record())
            state.backs.pop(whole, record())
            del state.spans[whole]
        return values(total)

    fields = {
        "panes": kept_in_dict(of, of.place, record),
        # With panes without an event in front of others; a window that ends has to find room.
        "fronts": kept_in_dict(
            of, of.place, record, max(of.limit, min(of.limit * panes, MOST_FRONTS))
        ),
        "backs": kept_in_dict(of, of.place, record),
        "spans": kept_in_dict(of, of.place, Span),
    }
    return Contents(fields, _into_panes(of), value)


def removed(of: Kept, merge: Any, remove: Any) -> Contents:
    """Panes that are removed again.

    ``span.boundary`` is behind the last pane that has events: once a window begins there or later,
    nothing of the total is left, whatever ``remove`` would make of it.
    """
    record, values, goes_on = of.record, of.values, of.goes_on
    size, origin = of.grid.pane, of.grid.origin
    panes = of.grid.length // size
    copied = _copies(record)

    def value(state, at):
        key = at[:-1]
        whole = (*key, 0)
        first = (at[-1] - origin) // size
        until = first + panes
        if whole not in state.spans:
            state.spans[whole] = Span(first, first, first)
        span = state.spans[whole]
        for pane in range(span.first, min(first, span.until)):
            if (*key, pane) in state.panes:
                if span.boundary > first:
                    remove(state.totals[whole], state.panes[(*key, pane)])
                del state.panes[(*key, pane)]
        if span.boundary <= first:
            state.totals.pop(whole, record())
        for pane in range(max(first, span.until), until):
            if (*key, pane) in state.panes:
                if whole in state.totals:
                    merge(state.totals[whole], state.panes[(*key, pane)])
                else:
                    state.totals[whole] = copied(state.panes[(*key, pane)])
                span.boundary = pane + 1
        span.first = first
        span.until = until
        row = values(state.totals[whole])
        if not goes_on(state, at):
            for pane in range(first, until):
                state.panes.pop((*key, pane), record())
            del state.spans[whole], state.totals[whole]
        return row

    fields = {
        "panes": kept_in_dict(of, of.place, record),
        "totals": kept_in_dict(of, of.place, record),
        "spans": kept_in_dict(of, of.place, Span),
    }
    return Contents(fields, _into_panes(of), value)


def _copies(record: Any) -> Any:
    """A function that copies records: ``merge`` is not asked to put one into an empty one."""
    names = tuple(one.name for one in record_fields(record))

    def copied(other):
        return record(*tuple(getattr(other, name) for name in names))

    return copied


def _into_panes(of: Kept) -> Any:
    """Adds an event to its pane, and opens the windows of one that is new."""
    record, add, opened, size = of.record, of.add, of.opened, of.grid.pane
    length, step, origin, least = of.grid.length, of.grid.step, of.grid.origin, of.grid.least
    is_past = of.is_past

    def put(state, key, position, event):
        last = (position - origin) // step * step + origin
        if last + length <= position:
            return  # between two windows
        pane = (position - origin) // size
        at = (*key, pane)
        is_new = at not in state.panes
        if is_new:
            state.panes[at] = record()
        # What a window that has ended has had of a pane stays in the record of the next ones.
        if is_new or is_past(state, (*key, 0), pane):
            for start in range(last, max(position - length, least - 1), -step):
                opened(state, (*key, start))
        add(state.panes[at], event)

    return put


def collected(of: Kept) -> Contents:
    """All rows."""
    add, values, opened, goes_on = of.add, of.values, of.opened, of.goes_on
    length, step, origin, least = of.grid.length, of.grid.step, of.grid.origin, of.grid.least

    def put(state, key, position, event):
        last = (position - origin) // step * step + origin
        if last + length <= position:
            return  # between two windows
        whole = (*key, 0)
        if whole not in state.kept:
            state.kept[whole] = Rows()
        kept = state.kept[whole]
        state.rows[(*key, kept.following)] = add(event)
        state.positions[(*key, kept.following)] = position
        kept.following += 1
        for start in range(last, max(position - length, least - 1), -step):
            opened(state, (*key, start))

    def value(state, at):
        key = at[:-1]
        whole = (*key, 0)
        kept = state.kept[whole]
        while kept.first < kept.following and state.positions[(*key, kept.first)] < at[-1]:
            del state.rows[(*key, kept.first)], state.positions[(*key, kept.first)]
            kept.first += 1
        end = at[-1] + length
        row = values(
            [
                state.rows[(*key, number)]
                for number in range(kept.first, kept.following)
                if at[-1] <= state.positions[(*key, number)] < end
            ]
        )
        if not goes_on(state, at):
            while kept.first < kept.following and state.positions[(*key, kept.first)] < end:
                del state.rows[(*key, kept.first)], state.positions[(*key, kept.first)]
                kept.first += 1
            if kept.first == kept.following:
                del state.kept[whole]
        return row

    fields = {
        "rows": kept_in_dict(of, of.place, of.record),
        "positions": kept_in_dict(of, of.place, int),
        "kept": kept_in_dict(of, of.place, Rows),
    }
    return Contents(fields, put, value)

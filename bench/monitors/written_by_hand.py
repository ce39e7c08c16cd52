"""Rules as the operators that one would write for them.

Each tells violations, with the rows of its rule: the key where it has one, ``time`` of the event,
``verdict``, which is false, and ``decided``. The order column is a column of integers, but for
``paid_in_time`` and ``four_eyes``, which have times in microseconds. Those of *Timescales* are the
forms for each event (``whole=False``). They say what the rules say for traces as there are here: an
order is placed once, a collection is of one map, locks are released by who took them up to the
first violation.

>>> import specstream as ss
>>> from bench.monitors.written_by_hand import response
>>> asked, answered = [True, False, True, False], [False, True, False, False]
>>> table = {"p": asked, "s": answered, "time": [0, 3, 9, 30]}
>>> with ss.Engine(response(10)) as engine:
...     print(*engine.process(table, order_by="time").to_pylist())
{'time': 9, 'verdict': False, 'decided': 19}
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import specstream as ss
from bench.monitors.timescales import bounds

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

__all__ = ["DEJAVU", "PAST", "four_eyes", "paid_in_time", "response"]

DAY = 24 * 3_600_000_000
TIME = ss.timestamp("us", None)
ROW = {"time": int, "verdict": bool, "decided": int}
NEVER = -(2**62)


class Orders(ss.State):
    """Deadlines by order."""

    due = ss.timers(str)


def _too_late(state, timer, emit):
    emit(timer.key, timer.at - 30 * 60_000_000 - 1, False, timer.at - 1)


@ss.operator(
    state=Orders,
    event={"order": str, "kind": str},
    emits={"order": str, "time": TIME, "verdict": bool, "decided": TIME},
    on_timer=_too_late,
    time_unit="us",
)
def paid_in_time(state, event, emit):
    """An order is placed once; at the deadline itself it may still be paid."""
    if event.kind == "placed":
        state.due.set(event.order, event.timestamp + 30 * 60_000_000 + 1)
    elif event.kind in ("paid", "cancelled"):
        state.due.cancel(event.order)


class Approval(ss.Record):
    """The last approval of a payment, and the last one by somebody else."""

    by: str = ""
    at: int = NEVER
    before_at: int = NEVER
    before_by: str = ""


class Approvals(ss.State):
    """By payment."""

    of = ss.dict(str, Approval, expire_after="8 days")


@ss.operator(
    state=Approvals,
    event={"what": str, "payment": str, "by": str, "amount": float},
    emits={"time": TIME, "verdict": bool, "decided": TIME},
    time_unit="us",
)
def four_eyes(state, event, emit):
    """Of the approvals by somebody else the last one counts, so two persons are enough."""
    if event.what == "approve":
        if event.payment in state.of:
            last = state.of[event.payment]
            if last.by != event.by:
                state.of[event.payment] = Approval(event.by, event.timestamp, last.at, last.by)
            else:
                state.of[event.payment] = Approval(
                    event.by, event.timestamp, last.before_at, last.before_by
                )
        else:
            state.of[event.payment] = Approval(event.by, event.timestamp, NEVER, "")
    elif event.what == "release" and event.amount > 10_000:
        approved = NEVER
        if event.payment in state.of:
            last = state.of[event.payment]
            approved = last.at if last.by != event.by else last.before_at
        if approved < event.timestamp - 7 * DAY:
            emit(event.timestamp, False, event.timestamp)


class Scopes(ss.State):
    """What the properties of *Timescales* need, each a part of it."""

    last = ss.scalar(int, fill=NEVER)
    holds = ss.scalar(bool)
    begun = ss.scalar(bool)
    times = ss.deque(int)
    waits_since = ss.scalar(int, fill=NEVER)


def _monitor(
    columns: str, state: Any = Scopes, on_timer: Any = None
) -> Callable[[Any], ss.Operator]:
    event = dict.fromkeys(columns, bool)

    def made(function: Any) -> ss.Operator:
        return ss.operator(
            state=state, event=event, emits=ROW, on_timer=on_timer, name=function.__name__
        )(function)

    return made


def absence_after_q(high: int) -> ss.Operator:
    """No p for so long after q."""

    @_monitor("qp")
    def absence(state, event, emit):
        if event.q:
            state.last = event.timestamp
            state.holds = True
        elif event.p:
            state.holds = False
        if not state.holds and state.last >= event.timestamp - high:
            emit(event.timestamp, False, event.timestamp)

    return absence


def always_before_r(high: int) -> ss.Operator:
    """p for so long before r."""

    @_monitor("pr")
    def always(state, event, emit):
        if not event.p:
            state.last = event.timestamp
        if event.r and state.last >= event.timestamp - high:
            emit(event.timestamp, False, event.timestamp)

    return always


def absence_between_q_and_r(high: int) -> ss.Operator:
    """At r, a q that is neither too near nor too far, and no p since."""
    low = bounds(high)[0]

    @_monitor("qpr")
    def absence(state, event, emit):
        if event.p and state.times:
            state.times.clear()
        if event.q:
            state.times.append(event.timestamp)
            if not state.begun:
                state.begun = True
        while state.times and state.times[0] < event.timestamp - high:
            state.times.popleft()
        late = not state.times or state.times[0] > event.timestamp - low
        if event.r and not event.q and state.begun and late:
            emit(event.timestamp, False, event.timestamp)

    return absence


def recurrence_globally(high: int) -> ss.Operator:
    """p at least so often."""

    @_monitor("p")
    def recurrence(state, event, emit):
        if event.p:
            state.last = event.timestamp
        elif state.last < event.timestamp - high:
            emit(event.timestamp, False, event.timestamp)

    return recurrence


def recurrence_between_q_and_r(high: int) -> ss.Operator:
    """At r, p at least so often since q."""

    @_monitor("qpr")
    def recurrence(state, event, emit):
        if event.p or event.q:
            state.last = event.timestamp
        if event.q:
            state.holds = True
            state.begun = True
        elif state.holds and state.last < event.timestamp - high:
            state.holds = False
        if event.r and not event.q and state.begun and not state.holds:
            emit(event.timestamp, False, event.timestamp)

    return recurrence


def response_globally(high: int) -> ss.Operator:
    """Of past: s with a p in time before it, and no p that has waited for too long."""
    low = bounds(high)[0]

    @_monitor("ps")
    def response(state, event, emit):
        now = event.timestamp
        if event.s and state.waits_since != NEVER:
            state.waits_since = NEVER
        if event.p:
            state.times.append(now)
            if state.waits_since == NEVER:
                state.waits_since = now
        while state.times and state.times[0] < now - high:
            state.times.popleft()
        asked = event.s and (not state.times or state.times[0] > now - low)
        if asked or (state.waits_since != NEVER and state.waits_since <= now - high):
            emit(now, False, now)

    return response


class Waiting(ss.State):
    """Events that wait for an answer, oldest first, and the deadline of each by its number."""

    times = ss.deque(int)
    first = ss.scalar(int)
    deadlines = ss.timers(int)


def response(high: int) -> ss.Operator:
    """Of future: s in time after p."""
    low = bounds(high)[0]

    def passed(state, timer, emit):
        state.first += 1
        emit(state.times.popleft(), False, timer.at - 1)

    @_monitor("ps", Waiting, passed)
    def answered(state, event, emit):
        if event.p:
            deadline = event.timestamp + high + 1
            state.deadlines.set(state.first + len(state.times), deadline)
            state.times.append(event.timestamp)
        if event.s:
            while state.times and state.times[0] <= event.timestamp - low:
                state.times.popleft()
                state.deadlines.cancel(state.first)
                state.first += 1

    return answered


# For each of *Timescales*, the operator of an upper bound, of past.
PAST: dict[str, Callable[[int], ss.Operator]] = {
    one.__name__: one
    for one in (
        absence_after_q,
        always_before_r,
        absence_between_q_and_r,
        recurrence_globally,
        recurrence_between_q_and_r,
        response_globally,
    )
}


class Rights(ss.State):
    """Who is logged in, and which files are open."""

    users = ss.set(int)
    files = ss.set(int)


@ss.operator(state=Rights, event={"kind": str, "user": int, "file": int}, emits=ROW)
def access(state, event, emit):
    """An access by a user who is logged in, to a file that is open."""
    if event.kind == "access":
        if event.user not in state.users or event.file not in state.files:
            emit(event.timestamp, False, event.timestamp)
    elif event.kind == "login":
        state.users.add(event.user)
    elif event.kind == "logout":
        state.users.discard(event.user)
    elif event.kind == "open":
        state.files.add(event.file)
    else:
        state.files.discard(event.file)


@ss.operator(state=Rights, event={"kind": str, "file": int, "mode": int}, emits=ROW)
def file(state, event, emit):
    """A file that is closed is open."""
    if event.kind == "open":
        state.files.add(event.file)
    elif event.file in state.files:
        state.files.remove(event.file)
    else:
        emit(event.timestamp, False, event.timestamp)


class Queue(ss.State):
    """The places of all who have entered, when those who are inside did, and who has left."""

    places = ss.dict(int, int)
    inside = ss.dict(int, int)
    left = ss.set(int)


@ss.operator(state=Queue, event={"kind": str, "x": int}, emits=ROW)
def fifo(state, event, emit):
    """Who leaves before the one in front of him is told as a violation of that one's entry."""
    if event.kind == "enter":
        if event.x in state.places:
            emit(event.timestamp, False, event.timestamp)
        else:
            place = len(state.places)
            state.places[event.x] = place
            state.inside[place] = event.timestamp
    elif event.x in state.left or event.x not in state.places:
        emit(event.timestamp, False, event.timestamp)
    else:
        place = state.places[event.x]
        if place - 1 in state.inside:
            emit(state.inside[place - 1], False, event.timestamp)
        state.inside.pop(place, 0)
        state.left.add(event.x)


class Locks(ss.State):
    """When a thread took a lock; how many it has; which locks are held."""

    taken = ss.dict((int, int), int)
    many = ss.dict(int, int)
    held = ss.set(int)


@ss.operator(state=Locks, event={"kind": str, "thread": int, "lock": int}, emits=ROW)
def lock(state, event, emit):
    """Who sleeps with locks is told as a violation of the events that took them."""
    this = (event.thread, event.lock)
    if event.kind == "acq":
        if event.lock in state.held:
            emit(event.timestamp, False, event.timestamp)
        else:
            state.held.add(event.lock)
            state.taken[this] = event.timestamp
            state.many[event.thread] = state.many.get(event.thread, 0) + 1
    elif event.kind == "rel":
        if this in state.taken:
            del state.taken[this]
            state.held.remove(event.lock)
            if state.many[event.thread] == 1:
                del state.many[event.thread]
            else:
                state.many[event.thread] -= 1
        else:
            emit(event.timestamp, False, event.timestamp)
    elif event.thread in state.many:
        for thread, which in state.taken:
            if thread == event.thread:
                emit(state.taken[thread, which], False, event.timestamp)


class Iterators(ss.State):
    """The map of a collection, the collection of an iterator, and when something happened."""

    map_of = ss.dict(int, int)
    collection_of = ss.dict(int, int)
    made = ss.dict(int, int)
    updated = ss.dict(int, int)


@ss.operator(
    state=Iterators,
    event={"kind": str, "map": int, "collection": int, "iterator": int},
    emits=ROW,
)
def iterator(state, event, emit):
    """Nothing more comes of an iterator whose map was updated."""
    if event.kind == "next":
        if event.iterator in state.collection_of:
            of = state.map_of.get(state.collection_of[event.iterator], -1)
            if state.updated.get(of, NEVER) > state.made[event.iterator]:
                emit(event.timestamp, False, event.timestamp)
    elif event.kind == "update":
        state.updated[event.map] = event.timestamp
    elif event.kind == "create":
        state.map_of[event.collection] = event.map
    else:
        state.collection_of[event.iterator] = event.collection
        state.made[event.iterator] = event.timestamp


# For each of the DejaVu benchmark that a rule can say, but for "deadlock".
DEJAVU: dict[str, ss.Operator] = {
    "access": access,
    "file": file,
    "fifo": fifo,
    "lock": lock,
    "iterator": iterator,
}

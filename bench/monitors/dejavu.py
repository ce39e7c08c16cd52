"""The properties of the DejaVu benchmark, with data, and traces for them.

After Havelund, Peled and Ulus, *First-order temporal logic monitoring with BDDs* (2017; 2018, with
locks), and DejaVu's example of an unsafe iterator. ``[p, q)`` there is "p, and no q since".

A formula that quantifies over data says "for each user" or "there is a lock". A rule says of which
event the value is: ``e.user`` has the value of the event that is asked about. What a rule cannot
say is what depends on a value of the event that is *found*: "since thread s took the lock, s has
not released it", for any s. Three are therefore said from the other end, and agree in where they
are first violated (``same="first"``), not in which event is to blame:

- fifo: of who enters: the next one does not leave earlier. Who leaves is compared with its
  neighbour only, which suffices up to the first violation.
- lock: of who takes a lock: no sleep before its release. That others hold a lock, too, is asked
  without asking who releases it, which suffices up to the first violation.
- deadlock: of who takes a lock: no other one taken, before its release, with which another thread
  takes it later.

One cannot be said: for data races there must be one lock for all accesses of a variable.

reelay's quantifiers range over all values, those that never came included, in sets of 20 bits a
variable; where a field is missing it has its value before. Neither matters here: each atom asks for
a kind, and events have the fields of their kind. With fifo it keeps the orders of all pairs, with
race the locks of all pairs of threads, so that its time for an event grows with the number of
values: keep those traces small. DejaVu's own run of fifo at 10,000 events took minutes.

>>> from bench.monitors.dejavu import PROPERTIES, events_for_reelay
>>> log = PROPERTIES["access"].trace(1000, 100, seed=1)
>>> list(log)
['time', 'kind', 'user', 'file']
>>> events_for_reelay(PROPERTIES["access"], log)[0]
{'kind': 'login', 'user': '0'}
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["PROPERTIES", "Property", "events_for_reelay"]

Columns = dict[str, np.ndarray]
READ, WRITE = 1, 2


class Log:
    """Events, one after the other."""

    def __init__(self, kinds: dict[str, tuple[str, ...]], seed: int) -> None:
        self.kinds = kinds
        self.names = tuple(dict.fromkeys(name for names in kinds.values() for name in names))
        self.rng = np.random.default_rng(seed)
        self.rows: list[tuple[str, tuple[int, ...]]] = []
        self._drawn: list[float] = []

    def __len__(self) -> int:
        return len(self.rows)

    def add(self, kind: str, *values: int) -> None:
        """An event; values of its kind's fields."""
        self.rows.append((kind, values))

    def below(self, n: int) -> int:
        """A number at random, less than n."""
        if not self._drawn:
            self._drawn = self.rng.random(10_000).tolist()
        return int(self._drawn.pop() * n)

    def columns(self) -> Columns:
        """Times, which are the positions, kinds, and a column for each field, 0 where none is."""
        made: dict[str, Any] = {name: np.zeros(len(self.rows), np.int64) for name in self.names}
        for at, (kind, values) in enumerate(self.rows):
            for name, value in zip(self.kinds[kind], values, strict=True):
                made[name][at] = value
        time = np.arange(len(self.rows), dtype=np.int64)
        return {"time": time, "kind": np.array([kind for kind, _ in self.rows]), **made}


@dataclass(frozen=True)
class Property:
    """A property.

    Attributes:
        name: of it.
        kinds: of events, and the fields of each.
        rule: a module with ``def rule(e)``, or None.
        reelay: the formula as published, in reelay's words.
        same: ``each``: the rule's verdict at each event is the formula's; ``first``: the rule is
            first violated, and that is known, at the event at which the formula is first false.
        fill: adds so many events, of so many values, that satisfy it.
        fail: adds events that violate it.
    """

    name: str
    kinds: dict[str, tuple[str, ...]]
    rule: str | None
    reelay: str
    same: str
    fill: Callable[[Log, int, int], None]
    fail: Callable[[Log], None]

    @property
    def event(self) -> dict[str, type]:
        """The columns of an event."""
        names = [name for fields in self.kinds.values() for name in fields]
        return {"kind": str, **dict.fromkeys(names, int)}

    def trace(self, events: int, data: int, seed: int, failing: bool = False) -> Columns:
        """A trace.

        Args:
            events: about so many.
            data: at most so many values of a field live at a time, and no more than a fifth of the
                events.
            seed: of what is at random.
            failing: whether its end violates the property.
        """
        log = Log(self.kinds, seed)
        self.fill(log, events, max(4, min(data, events // 5)))
        if failing:
            self.fail(log)
        return log.columns()


def events_for_reelay(which: Property, columns: Columns) -> list[dict[str, str]]:
    """Dicts of texts, with the fields of their kind whose value is not the one they had last."""
    names = [name for name in columns if name != "time"]
    lists = {name: columns[name].tolist() for name in names}
    last: dict[str, Any] = {}
    events = []
    for at, kind in enumerate(lists["kind"]):
        event = {}
        for name in ("kind", *which.kinds[kind]):
            value = lists[name][at]
            if last.get(name) != value:
                last[name] = value
                event[name] = str(value)
        events.append(event)
    return events


def _text(text: str) -> str:
    return textwrap.dedent(text).lstrip()


def _formula(text: str) -> str:
    return " ".join(text.split())


def _fill_access(log: Log, events: int, data: int) -> None:
    logged, opened = [True] * data, [True] * data
    for which in range(data):
        log.add("login", which)
        log.add("open", which)
    while len(log) < events:
        user, file, choice = log.below(data), log.below(data), log.below(10)
        if choice == 0:
            log.add("logout" if logged[user] else "login", user)
            logged[user] = not logged[user]
        elif choice == 1:
            log.add("close" if opened[file] else "open", file)
            opened[file] = not opened[file]
        else:
            if not logged[user]:
                log.add("login", user)
                logged[user] = True
            if not opened[file]:
                log.add("open", file)
                opened[file] = True
            log.add("access", user, file)


def _fail_access(log: Log) -> None:
    log.add("login", 0)
    log.add("open", 0)
    log.add("close", 0)
    log.add("access", 0, 0)


_ACCESS = Property(
    "access",
    {
        "login": ("user",),
        "logout": ("user",),
        "open": ("file",),
        "close": ("file",),
        "access": ("user", "file"),
    },
    _text("""
        from specstream.rules import implies, since


        def rule(e):
            return implies(
                e.kind == "access",
                since(
                    lambda b: not (b.kind == "logout" and b.user == e.user),
                    lambda b: b.kind == "login" and b.user == e.user,
                )
                and since(
                    lambda b: not (b.kind == "close" and b.file == e.file),
                    lambda b: b.kind == "open" and b.file == e.file,
                ),
            )
    """),
    _formula("""
        forall[u,f]. {kind: access, user: *u, file: *f} -> (
            (not {kind: logout, user: *u} since {kind: login, user: *u})
            and (not {kind: close, file: *f} since {kind: open, file: *f})
        )
    """),
    "each",
    _fill_access,
    _fail_access,
)


def _fill_file(log: Log, events: int, data: int) -> None:
    opened = [False] * data
    for which in range(data):
        log.add("open", which, READ)
        opened[which] = True
    while len(log) < events:
        which = log.below(data)
        if opened[which]:
            log.add("close", which)
        else:
            log.add("open", which, READ + log.below(2))
        opened[which] = not opened[which]


def _fail_file(log: Log) -> None:
    log.add("open", 0, WRITE)
    log.add("close", 0)
    log.add("close", 0)


# In which mode it was opened does not matter, so the rule need not ask.
_FILE = Property(
    "file",
    {"open": ("file", "mode"), "close": ("file",)},
    _text("""
        from specstream.rules import implies, previous_event, since


        def rule(e):
            return implies(
                e.kind == "close",
                previous_event(
                    lambda p: since(
                        lambda b: not (b.kind == "close" and b.file == e.file),
                        lambda b: b.kind == "open" and b.file == e.file,
                    )
                ),
            )
    """),
    _formula("""
        forall[f]. {kind: close, file: *f} -> (
            exists[m]. pre(not {kind: close, file: *f} since {kind: open, file: *f, mode: *m})
        )
    """),
    "each",
    _fill_file,
    _fail_file,
)


def _fill_fifo(log: Log, events: int, data: int) -> None:
    for which in range(data):
        log.add("enter", which)
    first, behind = 0, data
    while len(log) < events:
        if first < behind and log.below(2):
            log.add("exit", first)
            first += 1
        else:
            log.add("enter", behind)
            behind += 1


def _fail_fifo(log: Log) -> None:
    behind = 1 + max(values[0] for _, values in log.rows)
    log.add("enter", behind)
    log.add("enter", behind + 1)
    log.add("exit", behind + 1)


_FIFO = Property(
    "fifo",
    {"enter": ("x",), "exit": ("x",)},
    _text("""
        from specstream.rules import implies, next_event, once, previous_event, until


        def again(e):
            return previous_event(lambda p: once(lambda b: b.kind == e.kind and b.x == e.x))


        def entered(e):
            return previous_event(lambda p: once(lambda b: b.kind == "enter" and b.x == e.x))


        def overtaken(e):
            return next_event(
                lambda n: until(
                    lambda b: b.kind == "exit" and b.x != e.x,
                    lambda c: c.kind == "enter"
                    and until(
                        lambda d: not (d.kind == "exit" and d.x == e.x),
                        lambda d: d.kind == "exit" and d.x == c.x,
                    ),
                )
            )


        def rule(e):
            return (
                not again(e)
                and implies(e.kind == "exit", entered(e))
                and implies(e.kind == "enter", not overtaken(e))
            )
    """),
    _formula("""
        forall[x].
            ({kind: enter, x: *x} -> not (pre(once {kind: enter, x: *x})))
            and ({kind: exit, x: *x} -> not (pre(once {kind: exit, x: *x})))
            and ({kind: exit, x: *x} -> pre(once {kind: enter, x: *x}))
            and (forall[y]. ({kind: exit, x: *y}
                    and once({kind: enter, x: *y} and pre(once {kind: enter, x: *x})))
                -> pre(once {kind: exit, x: *x}))
    """),
    "first",
    _fill_fifo,
    _fail_fifo,
)


def _fill_lock(log: Log, events: int, data: int) -> None:
    held_by: list[int | None] = [None] * data
    holds = [0] * data
    while len(log) < events:
        lock, thread, holder = log.below(data), log.below(data), None
        if not holds[thread] and not log.below(10):
            log.add("sleep", thread)
            continue
        holder = held_by[lock]
        if holder is None:
            log.add("acq", thread, lock)
            held_by[lock] = thread
            holds[thread] += 1
        else:
            log.add("rel", holder, lock)
            held_by[lock] = None
            holds[holder] -= 1


def _fail_lock(log: Log) -> None:
    log.add("rel", 1, 1 + max(values[-1] for _, values in log.rows))


_LOCK = Property(
    "lock",
    {"acq": ("thread", "lock"), "rel": ("thread", "lock"), "sleep": ("thread",)},
    _text("""
        from specstream.rules import implies, previous_event, since, until


        def held(e):
            return previous_event(
                lambda p: since(
                    lambda b: not (b.kind == "rel" and b.lock == e.lock),
                    lambda b: b.kind == "acq" and b.lock == e.lock,
                )
            )


        def own(e):
            return previous_event(
                lambda p: since(
                    lambda b: not (
                        b.kind == "rel" and b.thread == e.thread and b.lock == e.lock
                    ),
                    lambda b: b.kind == "acq" and b.thread == e.thread and b.lock == e.lock,
                )
            )


        def sleeps(e):
            return until(
                lambda b: not (b.kind == "rel" and b.thread == e.thread and b.lock == e.lock),
                lambda b: b.kind == "sleep" and b.thread == e.thread,
            )


        def rule(e):
            return implies(e.kind == "acq", not held(e) and not sleeps(e)) and implies(
                e.kind == "rel", own(e)
            )
    """),
    _formula("""
        forall[t,l].
            ({kind: sleep, thread: *t}
                -> not (not {kind: rel, thread: *t, lock: *l}
                    since {kind: acq, thread: *t, lock: *l}))
            and ({kind: acq, thread: *t, lock: *l}
                -> not (exists[s]. pre(not {kind: rel, thread: *s, lock: *l}
                    since {kind: acq, thread: *s, lock: *l})))
            and ({kind: rel, thread: *t, lock: *l}
                -> pre(not {kind: rel, thread: *t, lock: *l}
                    since {kind: acq, thread: *t, lock: *l}))
    """),
    "first",
    _fill_lock,
    _fail_lock,
)


def _fill_deadlock(log: Log, events: int, data: int) -> None:
    """Locks are taken in the order of their numbers, by up to eight threads in turn."""
    threads = min(8, data // 4)
    plans: list[list[tuple[str, int]]] = [[] for _ in range(threads)]
    of: list[int] = list(range(threads))
    while len(log) < events or any(plans):
        one = log.below(threads)
        if not plans[one]:
            if len(log) >= events:
                continue
            of[one] = one + threads * log.below(data // threads)
            low = log.below(data - 2)
            taken = [("acq", lock) for lock in range(low, low + 3)]
            plans[one] = [("rel", lock) for lock in range(low, low + 3)] + taken[::-1]
        kind, lock = plans[one].pop()
        log.add(kind, of[one], lock)


def _fail_deadlock(log: Log) -> None:
    for thread, first, second in ((1, 1, 2), (2, 2, 1)):
        log.add("acq", thread, first)
        log.add("acq", thread, second)
        log.add("rel", thread, second)
        log.add("rel", thread, first)


_DEADLOCK = Property(
    "deadlock",
    {"acq": ("thread", "lock"), "rel": ("thread", "lock")},
    _text("""
        from specstream.rules import eventually, implies, next_event, previous_event, since, until


        def rule(e):
            return implies(
                e.kind == "acq",
                not next_event(
                    lambda n: until(
                        lambda b: not (
                            b.kind == "rel" and b.thread == e.thread and b.lock == e.lock
                        ),
                        lambda c: c.kind == "acq"
                        and c.thread == e.thread
                        and next_event(
                            lambda m: eventually(
                                lambda d: d.kind == "acq"
                                and d.lock == e.lock
                                and previous_event(
                                    lambda p: since(
                                        lambda f: not (
                                            f.kind == "rel"
                                            and f.thread == d.thread
                                            and f.lock == c.lock
                                        ),
                                        lambda f: f.kind == "acq"
                                        and f.thread == d.thread
                                        and f.lock == c.lock,
                                    )
                                )
                            )
                        ),
                    )
                ),
            )
    """),
    _formula("""
        forall[t1,t2,l1,l2].
            (pre(not {kind: rel, thread: *t1, lock: *l1} since {kind: acq, thread: *t1, lock: *l1})
                and {kind: acq, thread: *t1, lock: *l2})
            -> not (pre(once(
                pre(not {kind: rel, thread: *t2, lock: *l2}
                    since {kind: acq, thread: *t2, lock: *l2})
                and {kind: acq, thread: *t2, lock: *l1})))
    """),
    "first",
    _fill_deadlock,
    _fail_deadlock,
)


def _fill_race(log: Log, events: int, data: int) -> None:
    """Each variable has a lock of its own number; a thread holds some others as well."""
    while len(log) < events:
        thread, var = log.below(data), log.below(data)
        other = (var + 1 + log.below(data - 1)) % data
        for lock in (other, var):
            log.add("acq", thread, lock)
        log.add("rel", thread, other)
        log.add("read", thread, var)
        log.add("write", thread, var)
        log.add("rel", thread, var)


def _fail_race(log: Log) -> None:
    var = 1 + max(values[1] for _, values in log.rows)
    for thread, kind in ((1, "read"), (2, "write")):
        log.add("acq", thread, thread)
        log.add(kind, thread, var)
        log.add("rel", thread, thread)


def _touches(thread: str) -> str:
    return " or ".join(
        f"{{kind: {kind}, thread: *{thread}, var: *x}}" for kind in ("read", "write")
    )


def _guarded(thread: str) -> str:
    holds = (
        f"(not {{kind: rel, thread: *{thread}, lock: *l}} "
        f"since {{kind: acq, thread: *{thread}, lock: *l}})"
    )
    return f"historically(({_touches(thread)}) -> {holds})"


_RACE = Property(
    "race",
    {
        "acq": ("thread", "lock"),
        "rel": ("thread", "lock"),
        "read": ("thread", "var"),
        "write": ("thread", "var"),
    },
    None,
    _formula(f"""
        forall[t1,t2,x].
            (once({_touches("t1")}) and once {{kind: write, thread: *t2, var: *x}})
            -> (exists[l]. {_guarded("t1")} and {_guarded("t2")})
    """),
    "each",
    _fill_race,
    _fail_race,
)


def _fill_iterator(log: Log, events: int, data: int) -> None:
    """A collection of each map, and an iterator of each collection, until its map is updated."""
    newest = 0
    iterators = [0] * data
    for one in range(data):
        newest += 1
        log.add("create", one, newest)
        log.add("iterator", newest, newest)
        iterators[one] = newest
    while len(log) < events:
        one = log.below(data)
        if log.below(10):
            log.add("next", iterators[one])
        else:
            newest += 1
            log.add("update", one)
            log.add("create", one, newest)
            log.add("iterator", newest, newest)
            iterators[one] = newest


def _fail_iterator(log: Log) -> None:
    newest = 1 + max(values[-1] for kind, values in log.rows if kind == "iterator")
    log.add("create", 0, newest)
    log.add("iterator", newest, newest)
    log.add("update", 0)
    log.add("next", newest)


_ITERATOR = Property(
    "iterator",
    {
        "create": ("map", "collection"),
        "iterator": ("collection", "iterator"),
        "update": ("map",),
        "next": ("iterator",),
    },
    _text("""
        from specstream.rules import once


        def rule(e):
            return not (
                e.kind == "next"
                and once(
                    lambda b: b.kind == "update"
                    and once(
                        lambda c: c.kind == "iterator"
                        and c.iterator == e.iterator
                        and once(
                            lambda d: d.kind == "create"
                            and d.collection == c.collection
                            and d.map == b.map
                        )
                    )
                )
            )
    """),
    _formula("""
        forall[m,c,i]. not ({kind: next, iterator: *i} and once({kind: update, map: *m}
            and once({kind: iterator, collection: *c, iterator: *i}
                and once {kind: create, map: *m, collection: *c})))
    """),
    "each",
    _fill_iterator,
    _fail_iterator,
)

PROPERTIES = {one.name: one for one in (_ACCESS, _FILE, _FIFO, _LOCK, _DEADLOCK, _RACE, _ITERATOR)}

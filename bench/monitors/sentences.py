"""Twenty more rules, of sentences that people say, each beside the operator written by hand.

All are of one stream: what happened, who did it, and a reading; times are integers, several events
may have one. An operator tells violations with the rows of its rule: ``time`` of the event,
``verdict``, which is false, and ``decided``.

>>> from bench.monitors.sentences import SENTENCES, day
>>> len(SENTENCES), list(day(3, seed=1))
(20, ['time', 'what', 'who', 'x'])
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import specstream as ss

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

__all__ = ["EVENT", "SENTENCES", "Sentence", "day"]

EVENT = {"what": str, "who": int, "x": float}
ROW = {"time": int, "verdict": bool, "decided": int}
NEVER = -(2**62)
WORDS = ("open", "shut", "run", "ask", "answer", "pack", "send", "leak", "ok", "ok")


def day(events: int, seed: int) -> dict[str, np.ndarray]:
    """Events at random: an answer is frequent, times are mostly close."""
    rng = np.random.default_rng(seed)
    share = np.array([0.04, 0.04, 0.04, 0.12, 0.24, 0.12, 0.08, 0.04, 0.14, 0.14])
    return {
        "time": np.cumsum(rng.choice([0, 1, 1, 2, 5], events)),
        "what": rng.choice(np.array(WORDS), events, p=share / share.sum()),
        "who": rng.integers(0, 8, events),
        "x": np.round(rng.normal(20.0, 5.0, events), 2),
    }


@dataclass(frozen=True)
class Sentence:
    """A rule.

    Attributes:
        says: in words.
        rule: what the rule returns.
        operator: the same by hand.
        options: of the rule.
    """

    says: str
    rule: str
    operator: ss.Operator
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The module with ``def rule(e)``."""
        names = "always, eventually, historically, implies, next_event, once, previous_event"
        head = f"from specstream.rules import {names}, since, unless, until\n"
        return f"{head}\n\ndef rule(e):\n    return {self.rule}\n"


class Seen(ss.State):
    """What the operators of past need, each a part of it."""

    count = ss.scalar(int)
    last = ss.scalar(int, fill=NEVER)
    holds = ss.scalar(bool)
    before = ss.scalar(float)
    times = ss.deque(int)
    packed = ss.set(int)
    at = ss.dict(int, int)


class Waiting(ss.State):
    """Events that wait for another one, oldest first, and the deadline of each by its number."""

    times = ss.deque(int)
    first = ss.scalar(int)
    deadlines = ss.timers(int)


SENTENCES: dict[str, Sentence] = {}


def _sentence(
    rule: str, state: Any = None, on_timer: Any = None, emits: Any = None, **options: Any
) -> Callable[[Any], ss.Operator]:
    def made(function: Any) -> ss.Operator:
        operator = ss.operator(
            state=state,
            event=EVENT,
            emits=emits or ROW,
            on_timer=on_timer,
            name=function.__name__,
        )(function)
        SENTENCES[function.__name__] = Sentence(function.__doc__, rule, operator, options)
        return operator

    return made


# ---- of one event ----


@_sentence("e.what != 'leak'")
def never(event, emit):
    """There is never a leak."""
    if event.what == "leak":
        emit(event.timestamp, False, event.timestamp)


@_sentence("implies(e.what == 'run', 10.0 <= e.x <= 30.0)")
def in_range(event, emit):
    """It runs between 10 and 30 degrees."""
    if event.what == "run" and not 10.0 <= event.x <= 30.0:
        emit(event.timestamp, False, event.timestamp)


# ---- of events before ----


@_sentence("implies(e.what == 'send', once(lambda b: b.what == 'pack'))", Seen)
def precedence(state, event, emit):
    """Nothing is sent before anything was packed."""
    if event.what == "pack":
        if not state.holds:
            state.holds = True
    elif event.what == "send" and not state.holds:
        emit(event.timestamp, False, event.timestamp)


@_sentence("implies(e.what == 'send', once(lambda b: b.what == 'pack', within=20))", Seen)
def precedence_in_time(state, event, emit):
    """Nothing is sent unless something was packed in the last 20 minutes."""
    if event.what == "pack":
        state.last = event.timestamp
    elif event.what == "send" and state.last < event.timestamp - 20:
        emit(event.timestamp, False, event.timestamp)


@_sentence(
    "implies(e.what == 'send', once(lambda b: b.what == 'pack' and b.who == e.who))",
    Seen,
)
def precedence_by_person(state, event, emit):
    """Who sends has packed."""
    if event.what == "pack":
        if event.who not in state.packed:
            state.packed.add(event.who)
    elif event.what == "send" and event.who not in state.packed:
        emit(event.timestamp, False, event.timestamp)


@_sentence(
    "implies(e.what == 'run', not since(lambda d: d.what != 'shut', lambda d: d.what == 'open'))",
    Seen,
)
def between(state, event, emit):
    """While the door is open, it does not run."""
    if event.what == "open":
        state.holds = True
    elif event.what == "shut":
        state.holds = False
    elif event.what == "run" and state.holds:
        emit(event.timestamp, False, event.timestamp)


@_sentence(
    "implies(e.what == 'run', not once(lambda d: d.what == 'open', within=10, after=3))", Seen
)
def not_after(state, event, emit):
    """It does not run from 3 to 10 minutes after the door was opened."""
    now = event.timestamp
    if event.what == "open":
        state.times.append(now)
    elif event.what == "run":
        while len(state.times) > 0 and state.times[0] < now - 10:
            state.times.popleft()
        if len(state.times) > 0 and state.times[0] <= now - 3:
            emit(now, False, now)


@_sentence("not (e.x > 28.0 and previous_event(lambda b: b.x > 28.0))", Seen)
def twice_in_a_row(state, event, emit):
    """It is never too warm twice in a row."""
    if event.x > 28.0 and state.before > 28.0:
        emit(event.timestamp, False, event.timestamp)
    state.before = event.x


@_sentence("implies(e.what == 'leak', previous_event(lambda b: b.what == 'run', 2))", Seen)
def two_before(state, event, emit):
    """Before a leak by two it ran."""
    if event.what == "leak" and state.count == 0:
        emit(event.timestamp, False, event.timestamp)
    # Whether the one before the last ran, and whether the last one did.
    state.count = 1 if state.holds else 0
    state.holds = event.what == "run"


@_sentence("implies(e.what == 'send', historically(lambda b: b.what != 'leak', within=50))", Seen)
def clean(state, event, emit):
    """Nothing is sent within 50 minutes of a leak."""
    if event.what == "leak":
        state.last = event.timestamp
    elif event.what == "send" and state.last >= event.timestamp - 50:
        emit(event.timestamp, False, event.timestamp)


@_sentence(
    "implies(e.what == 'answer', once(lambda b: b.what == 'ask' and b.who == e.who, within=100))",
    Seen,
)
def asked(state, event, emit):
    """Who is answered has asked within 100 minutes."""
    if event.what == "ask":
        state.at[event.who] = event.timestamp
    elif event.what == "answer" and state.at.get(event.who, NEVER) < event.timestamp - 100:
        emit(event.timestamp, False, event.timestamp)


@_sentence(
    "implies(e.what == 'send', since(lambda b: b.what != 'leak', lambda b: b.what == 'pack',"
    " within=30))",
    Seen,
)
def packed_since(state, event, emit):
    """What is sent was packed within 30 minutes, and there was no leak since."""
    if event.what == "pack":
        state.last = event.timestamp
    elif event.what == "leak":
        state.last = NEVER
    elif event.what == "send" and state.last < event.timestamp - 30:
        emit(event.timestamp, False, event.timestamp)


# ---- of events after ----


def _passed(state, timer, emit):
    state.first += 1
    emit(state.times.popleft(), False, timer.at - 1)


@_sentence(
    "implies(e.what == 'ask', eventually(lambda l: l.what == 'answer', within=10))",
    Waiting,
    _passed,
)
def response(state, event, emit):
    """What is asked is answered within 10 minutes."""
    if event.what == "ask":
        state.deadlines.set(state.first + len(state.times), event.timestamp + 11)
        state.times.append(event.timestamp)
    elif event.what == "answer":
        while len(state.times) > 0:
            state.times.popleft()
            state.deadlines.cancel(state.first)
            state.first += 1


@_sentence(
    "implies(e.what == 'pack', eventually(lambda l: l.what == 'send', within=60, after=1))",
    Waiting,
    _passed,
)
def sent_later(state, event, emit):
    """What is packed is sent within 60 minutes, and not in the same one."""
    if event.what == "pack":
        state.deadlines.set(state.first + len(state.times), event.timestamp + 61)
        state.times.append(event.timestamp)
    elif event.what == "send":
        while len(state.times) > 0 and state.times[0] < event.timestamp:
            state.times.popleft()
            state.deadlines.cancel(state.first)
            state.first += 1


@_sentence("implies(e.what == 'open', always(lambda l: l.what != 'run', within=5))", Seen)
def quiet(state, event, emit):
    """Once the door is opened it does not run for 5 minutes."""
    now = event.timestamp
    if event.what == "open":
        state.times.append(now)
    elif event.what == "run":
        while len(state.times) > 0:
            opened = state.times.popleft()
            if opened >= now - 5:
                emit(opened, False, now)


@_sentence(
    "implies(e.what == 'leak', unless(lambda l: l.what != 'send', lambda l: l.what == 'ok'))",
    Seen,
)
def cleared(state, event, emit):
    """After a leak nothing is sent before all is well, if ever."""
    if event.what == "leak":
        state.times.append(event.timestamp)
    elif event.what == "ok":
        if len(state.times) > 0:
            state.times.clear()
    elif event.what == "send":
        while len(state.times) > 0:
            emit(state.times.popleft(), False, event.timestamp)


@_sentence("implies(e.what == 'leak', next_event(lambda l: l.what != 'send'))", Seen)
def next_one(state, event, emit):
    """What follows a leak at once is not sent."""
    if state.holds:
        state.holds = False
        if event.what == "send":
            emit(state.last, False, event.timestamp)
    if event.what == "leak":
        state.holds = True
        state.last = event.timestamp


# ---- by person ----


class Run(ss.State):
    """What is known of a person."""

    is_open = ss.set(int)
    last = ss.dict(int, float)
    shut = ss.dict(int, int)


BY_PERSON = {"who": int, **ROW}


@_sentence(
    "implies(e.what == 'run', not since(lambda d: d.what != 'shut', lambda d: d.what == 'open'))",
    Run,
    emits=BY_PERSON,
    key="who",
)
def between_by_person(state, event, emit):
    """While somebody's door is open, he does not run it."""
    if event.what == "open":
        if event.who not in state.is_open:
            state.is_open.add(event.who)
    elif event.what == "shut":
        state.is_open.discard(event.who)
    elif event.what == "run" and event.who in state.is_open:
        emit(event.who, event.timestamp, False, event.timestamp)


@_sentence(
    "not (e.x > 28.0 and previous_event(lambda b: b.x > 28.0))",
    Run,
    emits=BY_PERSON,
    key="who",
)
def twice_by_person(state, event, emit):
    """Nobody reads twice in a row that it is too warm."""
    if event.x > 28.0 and state.last.get(event.who, 0.0) > 28.0:
        emit(event.who, event.timestamp, False, event.timestamp)
    state.last[event.who] = event.x


@_sentence(
    "implies(e.what == 'shut', next_event(lambda l: l.what != 'shut'))",
    Run,
    emits=BY_PERSON,
    key="who",
)
def shut_once(state, event, emit):
    """Who has shut the door does not shut it next."""
    if event.who in state.shut:
        shut = state.shut.pop(event.who)
        if event.what == "shut":
            emit(event.who, shut, False, event.timestamp)
    if event.what == "shut":
        state.shut[event.who] = event.timestamp

"""Operators that ask for texts which compiled code does not know, alone, in timers, beside boosted
fields and in pipelines."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from typing import Any

import specstream as ss
from specstream.structures import boosted_set

EVENT: dict[str, Any] = {"at": int, "amount": int}
EMITS: dict[str, Any] = {"at": int, "text": str, "total": int}


class Asking(ss.State):
    total = ss.scalar(int)
    held = ss.dict(int, int, limit=64)
    refused = ss.list(int, limit=4000)


@ss.operator(state=Asking, event=EVENT, emits=EMITS)
def asking(state, event, emit):
    """Keys come and go before and behind what is asked; what is raised at last depends on it."""
    key = event.at % 7
    state.total += event.amount
    state.held[key] = state.held.get(key, 0) + 1
    try:
        emit(event.at, f"{math.sqrt(state.total % 11 - 4) > 1.0}", state.total)
    except ValueError as error:
        del state.held[key]
        state.refused.append(event.amount)
        emit(event.at, str(error), len(state.held))
    try:
        emit(event.at, "found", state.held[event.amount % 9])
    except KeyError as error:
        emit(event.at, f"{error} of {len(state.held)}", len(state.refused))
        if event.amount % 5 == 0:
            raise


class Reminding(ss.State):
    total = ss.scalar(int)
    due = ss.timers(int, limit=64)
    fired = ss.dict(int, int, limit=64)


def reminds(state, timer, emit):
    state.total += 1
    try:
        emit(timer.key, f"{math.sqrt(3 - state.total % 7) > 1.0}", state.total)
    except ValueError as error:
        state.fired[timer.key] = state.fired.get(timer.key, 0) + 1
        emit(timer.key, f"{timer.key} {error}", state.total)
        if state.total % 4 == 0:
            state.due.set(timer.key + 16, timer.at + 5)


@ss.operator(state=Reminding, event=EVENT, emits=EMITS, on_timer=reminds)
def reminding(state, event, emit):
    state.total += event.amount
    state.due.set(event.at % 11, event.timestamp + event.amount % 9)
    try:
        emit(event.at, "found", state.fired[event.at % 11])
    except KeyError as error:
        emit(event.at, f"{error} at {state.total}", state.total)


class Boosted(ss.State):
    total = ss.scalar(int)
    halted = boosted_set(capacity=100)


@ss.operator(state=Boosted, event=EVENT, emits=EMITS)
def halting_asking(state, event, emit):
    changed = state.halted.insert(event.at % 17)
    if event.amount % 3 == 0:
        changed = state.halted.remove(event.at % 17)
    if changed:
        state.total += event.amount
    try:
        emit(event.at, f"{math.sqrt(state.total % 11 - 4) > 1.0}", state.total)
    except ValueError as error:
        state.halted.insert(3)
        emit(event.at, str(error), -state.total)


@ss.operator(state=Asking, event=EVENT, emits=EVENT, interpreted=True)
def before(state, event, emit):
    state.total += 1
    for _ in range(state.total % 3):
        emit(event.at, event.amount)


OPERATORS = [asking, reminding, halting_asking]


def chain() -> ss.Pipeline:
    """One that asks behind one that Python runs, which sends it none, one or two."""
    pipeline = ss.Pipeline("chain")
    source = pipeline.source("in", EVENT)
    pipeline.sink("out", pipeline.add(asking, pipeline.add(before, source)))
    return pipeline

"""Rules beside what we have written ourselves: operators, a sum, a filter, one thread.

Rows are compared first, and then both run in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.monitors import business, dejavu, formulas, timescales, written_by_hand
from bench.monitors.sentences import EVENT, SENTENCES, day
from bench.monitors.timescales import bounds, trace
from bench.options import Say
from bench.rules.beside import SEED
from bench.rules.rounds import (
    ONE_THREAD,
    Amount,
    DiffersError,
    compared,
    interleaved,
    process,
    rule_of,
    short,
    stopped,
    table,
    within_time,
)

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

__all__ = ["by_hand", "others", "same_rows_of", "threads", "twenty"]

ATOM = 5e-6
MANY = 20


def same_rows_of(ours: pa.Table, other: pa.Table, columns: list[str]) -> None:
    """Raises DiffersError unless the rows are the same, whatever their order."""
    keys = [(name, "ascending") for name in columns]
    first, second = (rows.select(columns).sort_by(keys) for rows in (ours, other))
    if first.num_rows != second.num_rows:
        raise DiffersError(f"{first.num_rows:,} rows, by hand {second.num_rows:,}")
    if not first.equals(second):
        differ = next(
            (one, two)
            for one, two in zip(first.to_pylist(), second.to_pylist(), strict=True)
            if one != two
        )
        raise DiffersError(f"ours {differ[0]}, by hand {differ[1]}")


def _beside(
    rule: ss.Operator,
    operator: ss.Operator,
    make: Callable[[int], pa.Table],
    amount: Amount,
) -> dict[str, Any]:
    """A rule and an operator for the same events: rows, then times."""
    data = within_time(rule, make, amount.events, 200, amount.seconds)
    ours, other = process(rule, data)[0], process(operator, data)[0]
    same_rows_of(ours, other, [name for name in other.column_names if name != "because"])
    seconds = interleaved(
        {"ours": lambda: process(rule, data)[1], "hand": lambda: process(operator, data)[1]},
        amount.rounds,
        amount.row,
    )
    return {
        "events": data.num_rows,
        "violations": ours.num_rows,
        **compared(seconds["ours"], seconds["hand"], data.num_rows),
    }


def _business(name: str, amount: Amount) -> dict[str, Any]:
    text, event, options = business.RULES[name]
    rule = rule_of(text, name, event, **options)
    operator: ss.Operator = getattr(written_by_hand, name)
    return _beside(rule, operator, lambda events: table(_events(name, events), "us"), amount)


def _events(name: str, events: int) -> dict[str, np.ndarray]:
    if name == "paid_in_time":
        return business.orders(events, SEED)
    return business.payments(events, SEED)


def _timescales(which: timescales.Property, high: int, is_past: bool, amount: Amount) -> Any:
    low = bounds(high)[0]
    formula = which.past(low, high, whole=False) if is_past else which.future(low, high)
    rule = rule_of(formulas.rule(formula), which.name, dict.fromkeys(which.columns, bool))
    make = written_by_hand.PAST[which.name] if is_past else written_by_hand.response
    operator = make(high)

    def data(events: int) -> pa.Table:
        return table(trace(which.name, high, events, SEED, failing=True))

    return _beside(rule, operator, data, amount)


def _dejavu(which: dejavu.Property, values: int, amount: Amount) -> dict[str, Any]:
    assert which.rule is not None
    rule = rule_of(which.rule, which.name, which.event)

    def data(events: int) -> pa.Table:
        return table(which.trace(events, values, SEED, failing=True))

    return _beside(rule, written_by_hand.DEJAVU[which.name], data, amount)


def _sentence(name: str, amount: Amount) -> dict[str, Any]:
    which = SENTENCES[name]
    rule = rule_of(which.text, name, EVENT, **which.options)
    return _beside(rule, which.operator, lambda events: table(day(events, SEED)), amount)


def by_hand(amount: Amount, say: Say) -> dict[str, Any]:
    """All rules for which there is an operator by hand, beside it."""
    measures: dict[str, Callable[[], dict[str, Any]]] = {
        name: partial(_business, name, amount) for name in business.RULES
    }
    for high in amount.bounds:
        for name in written_by_hand.PAST:
            which = timescales.PROPERTIES[name]
            measures[f"{name}, {high}"] = partial(_timescales, which, high, True, amount)
        which = timescales.PROPERTIES["response_globally"]
        measures[f"response_globally, future, {high}"] = partial(
            _timescales, which, high, False, amount
        )
    values = amount.sizes[-1][1]
    for name in written_by_hand.DEJAVU:
        measures[name] = partial(_dejavu, dejavu.PROPERTIES[name], values, amount)
    for name in SENTENCES:
        measures[f"sentence {name}"] = partial(_sentence, name, amount)
    rows = []
    for name, measure in measures.items():
        say(f"{name}, by hand")
        rows.append(stopped({"name": name}, measure))
    return {"rows": rows}


# ---- twenty of one stream ----


def _twenty() -> list[ss.Operator]:
    event = dict.fromkeys("pqrs", bool)
    return [
        rule_of(formulas.rule(which.past(*bounds(high), whole=False)), f"{name}_{high}", event)
        for high in (10, 100)
        for name, which in timescales.PROPERTIES.items()
    ]


# How often columns are true: so that rules tell a violation of few events, or two of each.
SHARES = {
    "few violations": {"p": 0.5, "q": 0.0005, "r": 0.0005, "s": 0.5},
    "many violations": {"p": 0.2, "q": 0.02, "r": 0.02, "s": 0.2},
}


def _stream(events: int, shares: Mapping[str, float]) -> pa.Table:
    rng = np.random.default_rng(SEED)
    columns = {name: rng.random(events) < share for name, share in shares.items()}
    return table({"time": np.arange(events), **columns})


def twenty(amount: Amount, say: Say) -> dict[str, Any]:
    """Twenty rules as vertices of a pipeline, beside the sum of the twenty alone."""
    rows = []
    for name, shares in SHARES.items():
        say(f"{MANY} rules of one stream, {name}")
        rows.append(stopped({"name": f"{MANY} rules, {name}"}, partial(_sum, shares, amount)))
    return {"rows": rows}


def _sum(shares: Mapping[str, float], amount: Amount) -> dict[str, Any]:
    rules, data = _twenty(), _stream(amount.events, shares)
    pipeline = ss.Pipeline("twenty")
    stream = pipeline.source("events", dict.fromkeys("pqrs", bool))
    for rule in rules:
        pipeline.sink(rule.name, stream.add(rule))

    def all_at_once() -> tuple[Any, float]:
        return process(pipeline, {"events": data})

    sinks, _ = all_at_once()
    rows = 0
    for rule in rules:
        alone = process(rule, data)[0]
        same_rows_of(sinks[rule.name].select(alone.column_names), alone, alone.column_names)
        rows += alone.num_rows
    seconds = interleaved(
        {
            "pipeline": lambda: all_at_once()[1],
            "sum": lambda: sum(process(rule, data)[1] for rule in rules),
        },
        amount.rounds,
        amount.row,
    )
    return {
        "events": data.num_rows,
        "violations": rows,
        **compared(seconds["pipeline"], seconds["sum"], data.num_rows),
    }


# ---- events that no rule concerns ----


@ss.operator(event={"order": str, "kind": str}, emits={"order": str, "kind": str})
def of_orders(event, emit):
    """What `paid_in_time` asks of the kind."""
    if event.kind == "placed" or event.kind in ("paid", "cancelled"):
        emit(event.order, event.kind)


@ss.operator(
    event={"what": str, "payment": str, "by": str, "amount": float},
    emits={"payment": str, "amount": float},
)
def of_payments(event, emit):
    """What `four_eyes` asks of what was done."""
    if (event.what == "release" and event.amount > 10_000) or event.what == "approve":
        emit(event.payment, event.amount)


def _other_kind(name: str, events: int) -> pa.Table:
    """The same events, all of another kind."""
    columns = _events(name, events)
    kind = "kind" if name == "paid_in_time" else "what"
    columns[kind] = np.full(len(columns["time"]), "looked at")
    return table(columns, "us")


def others(amount: Amount, say: Say) -> dict[str, Any]:
    """Events that no rule concerns, beside a filter that lets none of them go."""
    rows = []
    for name, operator in {"paid_in_time": of_orders, "four_eyes": of_payments}.items():
        say(f"{name}, of no concern")
        rows.append(stopped({"name": name}, partial(_of_no_concern, name, operator, amount)))
    return {"rows": rows}


def _of_no_concern(name: str, operator: ss.Operator, amount: Amount) -> dict[str, Any]:
    text, event, options = business.RULES[name]
    rule, data = rule_of(text, name, event, **options), _other_kind(name, amount.events)
    for one in (rule, operator):
        if process(one, data)[0].num_rows:
            raise DiffersError(f"{one.name} tells of events that do not concern it")
    seconds = interleaved(
        {"ours": lambda: process(rule, data)[1], "filter": lambda: process(operator, data)[1]},
        amount.rounds,
        amount.row,
    )
    # How many times as long the rule takes.
    found = compared(seconds["filter"], seconds["ours"], data.num_rows)
    return {
        "events": data.num_rows,
        "ours": found["other"],
        "other": found["ours"],
        "ratio": found["ratio"],
        "rounds": found["rounds"],
    }


# ---- two threads ----


def worked(x: int, turns: int) -> int:
    """A loop of arithmetic, of which each turn needs the one before."""
    for _ in range(turns):
        x = (x * x + 12_345) & 0x7FFFFFFF
    return x


_HEAVY = """\
from bench.rules.alone import worked
from specstream.rules import implies, previous_event


def rule(e):
    return implies(worked(e.x, e.turns) % 7 == 0, previous_event(lambda b: b.x % 2 == 0))
"""


def _heavy(events: int, turns: int) -> pa.Table:
    rng = np.random.default_rng(SEED)
    columns: Mapping[str, np.ndarray] = {
        "time": np.arange(events),
        "k": rng.integers(0, 10_000, events),
        "x": rng.integers(0, 1_000_000, events),
        "turns": np.full(events, turns),
    }
    return table(columns)


def threads(amount: Amount, say: Say) -> dict[str, Any]:
    """A keyed rule whose atom takes five microseconds, on two threads beside one."""
    say("one thread and two")
    return {**stopped({"name": "two threads"}, partial(_two, amount))}


def _two(amount: Amount) -> dict[str, Any]:
    event = dict.fromkeys(("k", "x", "turns"), int)
    rule = rule_of(_HEAVY, "heavy", event, key="k")
    few, tries = amount.heavy // 4, 1000
    calibrating = _heavy(few, tries)
    process(rule, calibrating)
    took = min(process(rule, calibrating)[1] for _ in range(3)) / few
    data = _heavy(amount.heavy, max(1, round(tries * ATOM / took)))
    settings: dict[str, dict[str, Any]] = {"one": ONE_THREAD, "two": {"threads": 2}}
    rows = {name: process(rule, data, options)[0] for name, options in settings.items()}
    if not rows["one"].equals(rows["two"]):
        raise DiffersError("two threads tell other rows")
    seconds = interleaved(
        {
            name: lambda options=options: process(rule, data, options)[1]  # type: ignore[misc]
            for name, options in settings.items()
        },
        amount.rounds,
        amount.row,
    )
    found = compared(seconds["two"], seconds["one"], amount.heavy)
    return {
        "events": amount.heavy,
        "violations": rows["one"].num_rows,
        "microseconds": short(found["other"] / 1e3),
        **found,
    }

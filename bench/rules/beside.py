"""Rules beside other monitors: verdicts first, of every event, then times.

A monitor that cannot take all events in time gets fewer, and its time of an event is that of those.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib.metadata import version
from typing import Any

import numpy as np
import pyarrow as pa

from bench.monitors import dejavu, formulas, timescales
from bench.monitors.formulas import Formula
from bench.monitors.peers import Mstlo, Peer, Run, installed
from bench.monitors.timescales import bounds, trace
from bench.options import Say
from bench.rules.rounds import (
    Amount,
    DiffersError,
    SlowError,
    affordable,
    compared,
    interleaved,
    nanoseconds,
    process,
    rule_of,
    short,
    stopped,
    table,
    told,
    within_time,
)

__all__ = ["DATA", "FORMS", "data", "future", "past", "versions"]

Columns = dict[str, np.ndarray]
SEED = 1
# Of the past: at each event, and as published, whether it has held at all events so far.
FORMS = {"each": False, "published": True}
DATA = ("access", "file", "fifo", "lock")
_PACKAGES = {"reelay": "reelay", "mstlo": "mstlo-python", "rtamt": "rtamt"}


def versions() -> dict[str, str]:
    """Of the monitors that are installed."""
    return {name: version(_PACKAGES[name]) for name in installed()}


class Compiled:
    """A formula as a rule: one that tells violations, and one that tells all verdicts."""

    def __init__(self, name: str, text: str, event: Mapping[str, type]) -> None:
        self.violations = rule_of(text, name, event)
        self.all = rule_of(text, name, event, report="all")

    def verdicts(self, columns: Columns) -> np.ndarray:
        """One for each event, after both were found to say the same.

        Raises:
            DiffersError: they do not.
        """
        events, data = len(columns["time"]), table(columns)
        verdicts = told(process(self.all, data)[0], events)
        false = np.flatnonzero(~verdicts)
        violated = np.sort(process(self.violations, data)[0]["time"].to_numpy())
        if not np.array_equal(false, violated):
            raise DiffersError(
                f"{len(violated):,} violations, and {len(false):,} verdicts that are false"
            )
        return verdicts


def mixed(columns: str, events: int, high: int, dense: bool) -> Columns:
    """Bools at random: each column as often true as it likes, or about once in a bound."""
    rng = np.random.default_rng(SEED)
    made: Columns = {"time": np.arange(events)}
    for name in columns:
        made[name] = rng.random(events) < rng.random() * (1.0 if dense else 4.0 / high)
    return made


def equal(who: str, ours: np.ndarray, theirs: np.ndarray, least: int) -> None:
    """Raises DiffersError where they differ in a verdict, or one has told too few."""
    if len(theirs) < least:
        raise DiffersError(f"{who} tells {len(theirs):,} verdicts, of {least:,}")
    differ = np.flatnonzero(ours[: len(theirs)] != theirs)
    if len(differ):
        at = int(differ[0])
        raise DiffersError(
            f"event {at:,} and {len(differ) - 1:,} more: ours {ours[at].item()}, "
            f"{who} {theirs[at].item()}"
        )


class Beside:
    """A monitor with a formula, and a trace that it takes in time.

    Attributes:
        columns: of the trace.
        events: of it.
        said: what the monitor has said of them.
    """

    def __init__(
        self,
        peer: Peer,
        text: str,
        make: Callable[[int], Columns],
        prepare: Callable[[Columns], Any],
        events: tuple[int, int],
        amount: Amount,
        robust: bool = False,
    ) -> None:
        self.peer, self.text, self.robust = peer, text, robust
        many = 0

        def seconds(wanted: int) -> float:
            nonlocal many
            many, self.columns = wanted, make(wanted)
            self.prepared = prepare(self.columns)
            self.said = self.run()
            return self.said.seconds

        least, most = events
        chosen = affordable(most, least, amount.peer, seconds)
        if chosen != many:
            seconds(chosen)
        self.events = len(self.columns["time"])

    def run(self) -> Run:
        """Once more."""
        return self.peer.run(self.text, self.prepared, self.robust)


def _of(which: timescales.Property, high: int) -> Callable[[int], Columns]:
    return lambda events: trace(which.name, high, events, SEED, failing=True)


def past(amount: Amount, say: Say) -> dict[str, Any]:
    """The properties of *Timescales*, past, beside reelay."""
    peers = [peer for name, peer in installed().items() if name == "reelay"]
    found: dict[str, Any] = {"rows": [], "growth": []}
    for which in timescales.PROPERTIES.values():
        for form, whole in FORMS.items():
            say(f"{which.name}, {form}")
            name = {"name": which.name, "form": form}
            _property(which, partial(_past, which, whole), peers, name, amount, 0, found)
    return found


def _past(which: timescales.Property, whole: bool, high: int) -> Formula:
    return which.past(*bounds(high), whole=whole)


def future(amount: Amount, say: Say) -> dict[str, Any]:
    """Their future forms, beside mstlo and rtamt."""
    peers = [peer for name, peer in installed().items() if name != "reelay"]
    found: dict[str, Any] = {"rows": [], "growth": []}
    for which in timescales.PROPERTIES.values():
        say(f"{which.name}, future")
        name, horizon = {"name": which.name}, which.horizon
        _property(which, partial(_future, which), peers, name, amount, horizon, found)
    return found


def _future(which: timescales.Property, high: int) -> Formula:
    return which.future(*bounds(high))


def _property(
    which: timescales.Property,
    formula: Callable[[int], Formula],
    peers: list[Peer],
    name: Mapping[str, Any],
    amount: Amount,
    horizon: int,
    found: dict[str, Any],
) -> None:
    """Adds a row for each bound, and how an event's time grows from one to the other."""
    # Each is compiled once, and each trace made once.
    rule = cache(lambda high: _rule(which, formula(high)))
    made = {high: cache(_of(which, high)) for high in amount.bounds}
    rows = [
        stopped(
            {**name, "bound": high},
            lambda high=high: _one(  # type: ignore[misc]
                which, rule(high), formula(high), high, made[high], amount, peers, horizon * high
            ),
        )
        for high in amount.bounds
    ]
    found["rows"] += rows
    found["growth"].append(stopped(name, partial(_growing, rule, made, rows, amount)))


def _rule(which: timescales.Property, formula: Formula) -> Compiled:
    return Compiled(which.name, formulas.rule(formula), dict.fromkeys(which.columns, bool))


def _growing(
    rule: Callable[[int], Compiled],
    made: Mapping[int, Callable[[int], Columns]],
    rows: list[dict[str, Any]],
    amount: Amount,
) -> dict[str, Any]:
    """An event of the highest bound to one of the lowest, as many of each as all rows can take."""
    found = [row.get("events", 0) for row in rows]
    if not all(found):
        raise SlowError("a bound has no time")
    low, high = min(made), max(made)
    rules = {one: rule(one).violations for one in (low, high)}
    tables = {one: table(made[one](min(found))) for one in rules}
    for one, operator in rules.items():
        process(operator, tables[one])
    seconds = interleaved(
        {
            "low": lambda: process(rules[low], tables[low])[1],
            "high": lambda: process(rules[high], tables[high])[1],
        },
        amount.rounds,
        amount.row,
    )
    told = compared(seconds["low"], seconds["high"], tables[low].num_rows, tables[high].num_rows)
    return {"ratio": told["ratio"], "events": min(found), "rounds": told["rounds"]}


def _one(
    which: timescales.Property,
    rule: Compiled,
    formula: Formula,
    high: int,
    make: Callable[[int], Columns],
    amount: Amount,
    peers: list[Peer],
    horizon: int,
) -> dict[str, Any]:
    """A property of a bound beside the peers: verdicts, then times."""
    least = 2 * horizon + 3 * high
    data = within_time(
        rule.violations, lambda events: table(make(events)), amount.events, least, amount.seconds
    )
    beside = [
        Beside(peer, peer.write(formula), make, peer.prepare, (least, data.num_rows), amount)
        for peer in peers
    ]
    for one in beside:
        ours = rule.verdicts(one.columns)
        equal(one.peer.name, ours, one.said.verdicts, one.events - horizon)
        for dense in (True, False):
            events = amount.mixed + horizon
            columns = mixed(which.columns, events, high, dense)
            # mstlo's `until` asks for its left side at the end, too; this one says ours.
            exact = Mstlo(exact=True) if one.peer.name == "mstlo" else one.peer
            run = exact.run(exact.write(formula), exact.prepare(columns))
            equal(exact.name, rule.verdicts(columns), run.verdicts, events - horizon)
    return _timed(rule, data, amount, {one.peer.name: one for one in beside})


def _timed(
    rule: Compiled, data: pa.Table, amount: Amount, beside: Mapping[str, Any]
) -> dict[str, Any]:
    events = data.num_rows
    process(rule.violations, data)
    process(rule.all, data)
    gc.collect()
    seconds = interleaved(
        {
            "ours": lambda: process(rule.violations, data)[1],
            "all": lambda: process(rule.all, data)[1],
            **{
                name: lambda one=one: one.run().seconds  # type: ignore[misc]
                for name, one in beside.items()
            },
        },
        amount.beside,
        amount.row,
    )
    found: dict[str, Any] = {
        "events": events,
        "rounds": len(seconds["ours"]),
        "ours": nanoseconds(seconds["ours"], events),
        "all": nanoseconds(seconds["all"], events),
    }
    for name, one in beside.items():
        with_it = compared(seconds["ours"], seconds[name], events, one.events)
        found[name] = {
            "events": one.events,
            "takes": with_it["other"],
            "ratio": with_it["ratio"],
        }
    return found


# ---- with data ----


def at_random(which: dejavu.Property, events: int, seed: int) -> Columns:
    """Events of any kind, with two values."""
    log = dejavu.Log(which.kinds, seed)
    for _ in range(events):
        kind = list(which.kinds)[log.below(len(which.kinds))]
        log.add(kind, *(log.below(2) for _ in which.kinds[kind]))
    return log.columns()


def same_with_data(
    which: dejavu.Property, rule: Compiled, columns: Columns, verdicts: np.ndarray
) -> None:
    """Whether the rule says what the formula says: at each event, or when it is first violated."""
    if which.same == "each":
        equal("reelay", rule.verdicts(columns), verdicts, len(columns["time"]))
        return
    false = np.flatnonzero(~verdicts)
    rows, _ = process(rule.violations, table(columns))
    first = min(rows["decided"].to_pylist(), default=None)
    if first != (int(false[0]) if len(false) else None):
        raise DiffersError(
            f"first violated at {first}, reelay at {int(false[0]) if len(false) else None}"
        )


def data(amount: Amount, say: Say) -> dict[str, Any]:
    """Four of the DejaVu benchmark, beside reelay with quantifiers."""
    rows = []
    for name in DATA:
        mine = []
        for events, values in amount.sizes:
            say(f"{name}, {events:,} events, {values:,} values")
            row = {"name": name, "size": events, "values": values}
            which = dejavu.PROPERTIES[name]
            mine.append(stopped(row, partial(_with_data, which, events, values, amount)))
        _flat(mine)
        rows += mine
    return {"seconds": amount.peer, "rows": rows}


def _with_data(which: dejavu.Property, events: int, values: int, amount: Amount) -> dict[str, Any]:
    """One of a size: verdicts, then times."""
    assert which.rule is not None
    rule = Compiled(which.name, which.rule, which.event)

    @cache
    def make(many: int) -> Columns:
        return which.trace(many, values, SEED, failing=True)

    data = within_time(rule.violations, lambda many: table(make(many)), events, 200, amount.seconds)
    beside = {}
    if peer := installed().get("reelay"):
        prepare = partial(dejavu.events_for_reelay, which)
        one = Beside(peer, which.reelay, make, prepare, (200, data.num_rows), amount)
        same_with_data(which, rule, one.columns, one.said.verdicts)
        for seed in range(8):
            columns = at_random(which, 100, seed)
            run = peer.run(which.reelay, prepare(columns))
            same_with_data(which, rule, columns, run.verdicts)
        beside["reelay"] = one
    return _timed(rule, data, amount, beside)


def _flat(rows: list[dict[str, Any]]) -> None:
    """Writes into rows how an event's time has grown from the least of fewer, equal values."""
    before: dict[int, float] = {}
    for row in rows:
        if "ours" in row:
            took = row["ours"]
            least = before.get(row["values"], took)
            row["grown"] = short(took / least)
            before[row["values"]] = min(least, took)

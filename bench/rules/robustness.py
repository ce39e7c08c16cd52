"""The robustness of rules beside other monitors: values first, of every event, then times.

``always``, ``eventually`` and ``until`` up to a bound, of two random walks. mstlo's ``until`` asks
for its left side at the end, too: as it is it is timed, and compared as ours in its words.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Any

import numpy as np

from bench.monitors import formulas, timescales
from bench.monitors.formulas import Formula, positive
from bench.monitors.peers import Mstlo, Peer, installed
from bench.options import Say
from bench.rules.beside import SEED, Beside, Columns, equal
from bench.rules.rounds import (
    Amount,
    DiffersError,
    SlowError,
    compared,
    interleaved,
    nanoseconds,
    process,
    rule_of,
    stopped,
    table,
    within_time,
)

__all__ = ["FORMULAS", "robustness"]

X, Y = positive("x"), positive("y")
FORMULAS: dict[str, Callable[[int], Formula]] = {
    "always": lambda bound: formulas.always(X, bound),
    "eventually": lambda bound: formulas.eventually(X, bound),
    "until": lambda bound: formulas.until(X, Y, bound),
}


@cache
def _walks(events: int) -> Columns:
    return timescales.robust(events, SEED)


def _rule(formula: Formula, name: str) -> Any:
    event = {"x": float, "y": float}
    text = formulas.rule(formula)
    return rule_of(text, name, event, None, robustness=True, at_end="closed")


def values(rule: Any, columns: Columns) -> np.ndarray:
    """By how much a rule holds at each event.

    Raises:
        DiffersError: an event has no row, or two.
    """
    rows = process(rule, table(columns))[0]
    times = rows["time"].to_numpy()
    if not np.array_equal(np.sort(times), columns["time"]):
        raise DiffersError(f"{len(times):,} values of {len(columns['time']):,} events")
    told: np.ndarray = rows["robustness"].to_numpy()[np.argsort(times)]
    return told


def robustness(amount: Amount, say: Say) -> dict[str, Any]:
    """All words and bounds, and how an event's time grows with the bound."""
    peers = [peer for name, peer in installed().items() if name != "reelay"]
    rows, growth = [], []
    for name, make in FORMULAS.items():
        rules = {bound: _rule(make(bound), name) for bound in amount.reaches}
        mine = []
        for bound, rule in rules.items():
            say(f"robustness: {name} within {bound:,}")
            row = {"name": name, "bound": bound}
            mine.append(stopped(row, partial(_one, rule, make(bound), bound, peers, amount)))
        rows += mine
        growth.append(stopped({"name": name}, partial(_growing, rules, mine, amount)))
    _walks.cache_clear()
    return {"rows": rows, "growth": growth}


def _one(
    rule: Any, formula: Formula, bound: int, peers: list[Peer], amount: Amount
) -> dict[str, Any]:
    least = bound + 500
    data = within_time(
        rule, lambda events: table(_walks(events)), amount.events, least, amount.seconds
    )
    beside = {}
    for peer in peers:
        sizes = (min(least, data.num_rows), data.num_rows)
        one = Beside(peer, peer.write(formula), _walks, peer.prepare, sizes, amount, robust=True)
        said, columns = one.said.verdicts, one.columns
        if peer.name == "mstlo" and formula.word == "until":
            exact, columns = Mstlo(exact=True), _walks(amount.mixed + bound)
            said = exact.run(exact.write(formula), exact.prepare(columns), robust=True).verdicts
        # rtamt may have a minus zero, where rules have none.
        equal(peer.name, values(rule, columns), said + 0.0, len(columns["time"]) - bound)
        beside[peer.name] = one
    process(rule, data)
    seconds = interleaved(
        {
            "ours": lambda: process(rule, data)[1],
            **{
                name: lambda one=one: one.run().seconds  # type: ignore[misc]
                for name, one in beside.items()
            },
        },
        amount.beside,
        amount.row,
    )
    events, ours = data.num_rows, seconds["ours"]
    found: dict[str, Any] = {
        "events": events,
        "rounds": len(ours),
        "ours": nanoseconds(ours, events),
    }
    for name, one in beside.items():
        with_it = compared(ours, seconds[name], events, one.events)
        found[name] = {
            "events": one.events,
            "takes": with_it["other"],
            "ratio": with_it["ratio"],
        }
    return found


def _growing(rules: dict[int, Any], rows: list[dict[str, Any]], amount: Amount) -> dict[str, Any]:
    """An event of the highest bound to one of the lowest, of one trace."""
    found = [row.get("events", 0) for row in rows]
    if not all(found):
        raise SlowError("a bound has no time")
    data = table(_walks(min(found)))
    low, high = (rules[bound] for bound in (min(rules), max(rules)))
    for rule in (low, high):
        process(rule, data)
    seconds = interleaved(
        {"low": lambda: process(low, data)[1], "high": lambda: process(high, data)[1]},
        amount.rounds,
        amount.row,
    )
    ratio = compared(seconds["low"], seconds["high"], data.num_rows)
    return {"ratio": ratio["ratio"], "events": data.num_rows, "rounds": ratio["rounds"]}

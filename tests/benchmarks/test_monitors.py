"""What ``bench.monitors`` compares is the same: formulas, rules, other monitors, operators."""

from __future__ import annotations

import ast
import doctest
import itertools
import math
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from bench.monitors import business, definition, dejavu, sentences, timescales, written_by_hand
from bench.monitors.business import RULES
from bench.monitors.definition import values
from bench.monitors.differences import DIFFERENCES, Known
from bench.monitors.formulas import (
    CannotSayError,
    Formula,
    atom,
    bounded_by_hand,
    closed_by_hand,
    implies,
    mstlo,
    negated,
    once,
    positive,
    reelay,
    rtamt,
    rule,
    since,
    until,
)
from bench.monitors.peers import PEERS, Mstlo, Peer, Rtamt, Run, installed
from bench.monitors.sentences import EVENT, SENTENCES, day
from bench.monitors.timescales import bounds, trace
from bench.rules import agreement
from bench.rules.alone import same_rows_of
from bench.rules.rounds import rule_of

Columns = dict[str, np.ndarray]
# Of an old ANTLR, which rtamt needs.
pytestmark = pytest.mark.filterwarnings("ignore:typing.io is deprecated:DeprecationWarning")
NAMES = list(timescales.PROPERTIES)
HIGH = 10
UNITS = {"minutes": 60_000_000, "days": 86_400_000_000}


def truth(formula: Formula, columns: Columns) -> np.ndarray:
    """The definition, in bools."""
    return np.array(values(formula, columns)) > 0


def run_rule(text: str, columns: Columns) -> list[bool]:
    """The text of a rule, run as Python over a finished trace."""
    names = list(columns)
    lists = zip(*(columns[name].tolist() for name in names), strict=True)
    events = [SimpleNamespace(**dict(zip(names, row, strict=True))) for row in lists]
    at: list[int] = []

    def holds(j: int, function: Any) -> bool:
        at.append(j)
        try:
            return bool(function(events[j]))
        finally:
            at.pop()

    def length(given: Any) -> float:
        if isinstance(given, str):
            number, unit = given.split()
            return int(number) * UNITS[unit]
        return math.inf if given is None else float(given)

    def some(every: Any, within: Any, after: Any) -> Iterator[int]:
        here = events[at[-1]].time
        far = (j for j in every if length(after) <= abs(events[j].time - here) <= length(within))
        return iter(list(far))

    def past(within: Any, after: Any) -> Iterator[int]:
        return some(range(at[-1] + 1), within, after)

    def future(within: Any, after: Any) -> Iterator[int]:
        return some(range(at[-1], len(events)), within, after)

    def since_(f: Any, g: Any, within: Any = None, after: Any = 0) -> bool:
        i = at[-1]
        return any(
            holds(j, g) and all(holds(k, f) for k in range(j + 1, i + 1))
            for j in past(within, after)
        )

    def until_(f: Any, g: Any, within: Any = None, after: Any = 0) -> bool:
        i = at[-1]
        return any(
            holds(j, g) and all(holds(k, f) for k in range(i, j)) for j in future(within, after)
        )

    words = {
        "implies": lambda a, b: not a or b,
        "previous_event": lambda f: at[-1] > 0 and holds(at[-1] - 1, f),
        "next_event": lambda f: at[-1] + 1 < len(events) and holds(at[-1] + 1, f),
        "once": lambda f, within=None, after=0: any(holds(j, f) for j in past(within, after)),
        "historically": lambda f, within=None, after=0: all(
            holds(j, f) for j in past(within, after)
        ),
        "eventually": lambda f, within=None, after=0: any(
            holds(j, f) for j in future(within, after)
        ),
        "always": lambda f, within=None, after=0: all(holds(j, f) for j in future(within, after)),
        "since": since_,
        "until": until_,
    }
    space: dict[str, Any] = dict(words)
    exec(re.sub(r"^from specstream\.rules import .*\n", "", text), space)
    return [holds(i, space["rule"]) for i in range(len(events))]


def random_trace(columns: str, events: int, seed: int) -> Columns:
    """Bools at random, each column as often true as it likes."""
    rng = np.random.default_rng(seed)
    made: Columns = {"time": np.arange(events)}
    return made | {name: rng.random(events) < rng.random() for name in columns}


def formulas_of(name: str) -> list[Formula]:
    """All forms of a property."""
    which = timescales.PROPERTIES[name]
    low, high = bounds(HIGH)
    return [which.past(low, high), which.past(low, high, whole=False), which.future(low, high)]


def same(first: Columns, second: Columns) -> bool:
    """Whether they have the same columns with the same values."""
    return list(first) == list(second) and all(
        np.array_equal(first[name], second[name]) for name in first
    )


@pytest.mark.parametrize("name", NAMES)
def test_traces_of_timescales(name: str) -> None:
    low, high = bounds(HIGH)
    which = timescales.PROPERTIES[name]
    made = trace(name, HIGH, 150, seed=1)
    assert same(made, trace(name, HIGH, 150, seed=1))
    assert not same(made, trace(name, HIGH, 150, seed=2))
    assert len(made["time"]) >= 150
    assert made["time"].tolist() == list(range(len(made["time"])))
    failing = trace(name, HIGH, 60, seed=1, failing=True)
    for formula in formulas_of(name):
        assert truth(formula, made).all()
        assert not truth(formula, failing).all()
    assert not truth(which.past(low, high), failing)[-1]


@pytest.mark.parametrize("name", NAMES)
def test_rules_say_what_the_formulas_say(name: str) -> None:
    for formula, seed in itertools.product(formulas_of(name), range(3)):
        text = rule(formula)
        assert [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
        for columns in (
            random_trace(timescales.PROPERTIES[name].columns, 40, seed),
            trace(name, HIGH, 30, seed, failing=True),
        ):
            assert run_rule(text, columns) == truth(formula, columns).tolist()


@pytest.mark.parametrize("rewritten", [bounded_by_hand, closed_by_hand])
def test_an_until_of_another_monitor_is_ours(rewritten: Callable[[Formula], Formula]) -> None:
    for seed in range(20):
        columns = timescales.robust(30, seed)
        ours = until(positive("x"), positive("y"), within=3 + seed % 4, after=seed % 4)
        assert values(rewritten(ours), columns) == values(ours, columns)
        assert bounded_by_hand(ours) != ours


def test_what_a_monitor_cannot_say() -> None:
    p, q = positive("p"), positive("q")
    for write, formula in [
        (reelay, until(p, q, 3)),
        (mstlo, once(p, 3)),
        (mstlo, until(p, q)),
        (rtamt, since(p, q, after=3)),
    ]:
        with pytest.raises(CannotSayError):
            write(formula)


def peers(*more: Peer) -> list[Peer]:
    """The monitors that are installed, and variants of them."""
    found = installed()
    if not found:
        pytest.skip("no other monitor is installed: bench/monitors/requirements.txt")
    return [peer for peer in (*PEERS.values(), *more) if peer.name in found]


def agrees(peer: Peer, formula: Formula, columns: Columns) -> bool:
    """Whether it cannot say the formula, or says the same where it says something."""
    try:
        text = peer.write(formula)
    except CannotSayError:
        return True
    verdicts = peer.run(text, peer.prepare(columns)).verdicts
    assert len(verdicts) == len(columns["time"]) or peer.name == "mstlo"
    return bool((verdicts == truth(formula, columns)[: len(verdicts)]).all())


@pytest.mark.parametrize("name", NAMES)
def test_monitors_agree_on_traces_of_timescales(name: str) -> None:
    every = peers(Mstlo(eager=True), Rtamt(by_hand=False))
    horizon = timescales.PROPERTIES[name].horizon * HIGH
    for failing, peer, formula in itertools.product((False, True), every, formulas_of(name)):
        assert agrees(peer, formula, trace(name, HIGH, horizon + 60, 3, failing)), peer.name


@pytest.mark.parametrize("name", NAMES)
def test_monitors_agree_on_any_trace(name: str) -> None:
    """But for mstlo's ``until`` as it is, which asks for its left side at the end as well."""
    every = [peer for peer in peers(Mstlo(exact=True), Mstlo(True, True)) if peer != PEERS["mstlo"]]
    horizon = timescales.PROPERTIES[name].horizon * HIGH
    for seed, peer, formula in itertools.product(range(3), every, formulas_of(name)):
        columns = random_trace(timescales.PROPERTIES[name].columns, horizon + 40, seed)
        assert agrees(peer, formula, columns), peer.name


def test_until_of_mstlo_asks_for_both() -> None:
    if "mstlo" not in installed():
        pytest.skip("mstlo is not installed: bench/monitors/requirements.txt")
    columns: Columns = {"time": np.arange(3)} | {
        name: np.array(column)
        for name, column in {"p": [True, False, True], "q": [False, True, False]}.items()
    }
    ours = until(positive("p"), positive("q"), 1)
    said = [Mstlo(exact=exact) for exact in (False, True)]
    told = [peer.run(peer.write(ours), peer.prepare(columns)).verdicts[0] for peer in said]
    assert told == [False, True]


@pytest.mark.parametrize("known", DIFFERENCES, ids=lambda one: f"{one.peer} {one.theirs}")
def test_known_differences(known: Known) -> None:
    """Rules say what the definition says, the other monitor what is written of it."""
    kind = float if known.robust else bool
    options: dict[str, Any] = {"robustness": True} if known.robust else {"report": "all"}
    event = dict.fromkeys(known.columns, kind)
    made = rule_of(rule(known.formula), "known", event, options.pop("report", None), **options)
    rows = made.run_sequential(table(known.trace), order_by="time", end=True).output.to_pylist()
    told_by_rules = {row["time"]: row.get("robustness", row.get("verdict")) for row in rows}
    # Without a bound nothing is told of an open end.
    assert told_by_rules.get(known.at, known.ours) == known.ours
    if known.peer not in installed():
        pytest.skip(f"{known.peer} is not installed: bench/monitors/requirements.txt")
    peer = PEERS[known.peer]
    try:
        verdicts = peer.run(known.theirs, peer.prepare(known.trace), known.robust).verdicts
        said: Any = verdicts[known.at].item() if known.at < len(verdicts) else None
    except (AttributeError, IndexError, UnboundLocalError) as error:
        said = type(error).__name__
    assert repr(said) == repr(known.said if known.said is None else type(said)(known.said))
    assert repr(said) != repr(known.ours)


@pytest.mark.parametrize("name", list(agreement.QUESTIONS))
def test_random_formulas(name: str) -> None:
    """A few of what ``python -m bench agreement`` compares."""
    of = agreement.QUESTIONS[name]
    if of.peer.name not in installed():
        pytest.skip(f"{of.peer.name} is not installed: bench/monitors/requirements.txt")
    found = agreement.compared(of, 6, 2, 1, lambda text: None)
    assert (found["wrong"], found["differences"]) == (0, [])
    assert found["verdicts"] >= 300


class Contrary:
    """A monitor to which nothing holds."""

    name = "contrary"

    def write(self, formula: Formula) -> str:
        return "false"

    def prepare(self, columns: Columns) -> int:
        return len(columns["time"])

    def run(self, formula: str, prepared: int, robust: bool = False) -> Run:
        return Run(np.zeros(prepared, dtype=bool), 0.0)


def test_a_difference_is_made_small() -> None:
    of = agreement.Question("contrary", Contrary(), agreement.PAST)
    columns = {"time": np.arange(6)} | {name: np.ones(6, bool) for name in "pqr"}
    formula = implies(once(atom("p"), within=3), since(atom("q"), atom("r")))
    found = agreement.smallest(of, formula, columns)
    assert found.formula in {"e.p", "e.q", "e.r"}
    assert len(found.columns["time"]) <= 2
    assert found.said == {"ours": "True", "other": "False", "definition": "True"}


@pytest.mark.parametrize("word", ["always", "eventually", "until"])
def test_robustness(word: str) -> None:
    parts = (positive("x"), positive("y")) if word == "until" else (positive("x"),)
    columns = timescales.robust(60, seed=1)
    for bound in (0, 5, 20):
        formula = Formula(word, parts, within=bound)
        expected = values(formula, columns)
        for peer in peers(Mstlo(exact=True)):
            if peer.name == "reelay" or (word == "until" and peer == PEERS["mstlo"]):
                continue
            seen = peer.run(peer.write(formula), peer.prepare(columns), robust=True).verdicts
            assert seen.tolist() == expected[: len(seen)], peer.name
            assert len(seen) >= 60 - bound


class Past:
    """Values at each event, of formulas that quantify over data."""

    def __init__(self, columns: Columns) -> None:
        self.columns = {name: column.tolist() for name, column in columns.items()}
        self.length = len(columns["time"])
        names = [name for name in columns if name not in ("time", "kind")]
        # One more than there are: what holds for all values holds for those that never came.
        self.domain = range(-1, 1 + max(max(self.columns[name]) for name in names))

    def event(self, kind: str, **fields: int) -> list[bool]:
        """Whether it is of this kind, with these fields."""
        lists = [self.columns[name] for name in fields]
        return [
            is_kind == kind
            and all(one[i] == value for one, value in zip(lists, fields.values(), strict=True))
            for i, is_kind in enumerate(self.columns["kind"])
        ]

    def since(self, f: list[bool], g: list[bool]) -> list[bool]:
        """As defined."""
        return [
            any(g[j] and all(f[j + 1 : i + 1]) for j in range(i + 1)) for i in range(self.length)
        ]

    def between(self, begins: list[bool], ends: list[bool]) -> list[bool]:
        """``[p, q)`` of DejaVu."""
        return self.since([not end for end in ends], begins)

    def once(self, f: list[bool]) -> list[bool]:
        """As defined."""
        return [any(f[: i + 1]) for i in range(self.length)]

    def always(self, f: list[bool]) -> list[bool]:
        """So far."""
        return [all(f[: i + 1]) for i in range(self.length)]

    def before(self, f: list[bool]) -> list[bool]:
        """At the event before."""
        return [False, *f[:-1]]


def both_(*parts: list[bool]) -> list[bool]:
    return [all(row) for row in zip(*parts, strict=True)]


def either_(*parts: list[bool]) -> list[bool]:
    return [any(row) for row in zip(*parts, strict=True)]


def not_(part: list[bool]) -> list[bool]:
    return [not value for value in part]


def implies_(left: list[bool], right: list[bool]) -> list[bool]:
    return either_(not_(left), right)


def published(name: str, columns: Columns) -> list[bool]:
    """The formulas of DejaVu, for each value there is and one that there is not."""
    p = Past(columns)
    d, e = p.domain, p.event

    def held(t: int, h: int) -> list[bool]:
        return p.between(e("acq", thread=t, lock=h), e("rel", thread=t, lock=h))

    if name == "access":
        return both_(
            *(
                implies_(
                    e("access", user=u, file=f),
                    both_(
                        p.between(e("login", user=u), e("logout", user=u)),
                        p.between(e("open", file=f), e("close", file=f)),
                    ),
                )
                for u in d
                for f in d
            )
        )
    if name == "file":
        return both_(
            *(
                implies_(
                    e("close", file=f),
                    either_(
                        *(
                            p.before(p.between(e("open", file=f, mode=m), e("close", file=f)))
                            for m in d
                        )
                    ),
                )
                for f in d
            )
        )
    if name == "fifo":
        entered = {x: p.once(e("enter", x=x)) for x in d}
        left = {x: p.once(e("exit", x=x)) for x in d}
        return both_(
            *(implies_(e("enter", x=x), not_(p.before(entered[x]))) for x in d),
            *(implies_(e("exit", x=x), not_(p.before(left[x]))) for x in d),
            *(implies_(e("exit", x=x), p.before(entered[x])) for x in d),
            *(
                implies_(
                    both_(e("exit", x=y), p.once(both_(e("enter", x=y), p.before(entered[x])))),
                    p.before(left[x]),
                )
                for x in d
                for y in d
            ),
        )
    if name == "lock":
        return both_(
            *(
                part
                for t in d
                for h in d
                for part in (
                    implies_(e("sleep", thread=t), not_(held(t, h))),
                    implies_(
                        e("acq", thread=t, lock=h),
                        not_(either_(*(p.before(held(s, h)) for s in d))),
                    ),
                    implies_(e("rel", thread=t, lock=h), p.before(held(t, h))),
                )
            )
        )
    if name == "deadlock":
        # Thread t takes h while it holds k.
        nested = {
            (k, h): [both_(p.before(held(t, k)), e("acq", thread=t, lock=h)) for t in d]
            for k in d
            for h in d
        }
        return both_(
            *(
                implies_(one, not_(p.before(p.once(other))))
                for k, h in nested
                for one in nested[k, h]
                for other in nested[h, k]
            )
        )
    if name == "race":

        def touches(t: int, x: int) -> list[bool]:
            return either_(e("read", thread=t, var=x), e("write", thread=t, var=x))

        def guarded(t: int, x: int, h: int) -> list[bool]:
            return p.always(implies_(touches(t, x), held(t, h)))

        return both_(
            *(
                implies_(
                    both_(p.once(touches(t, x)), p.once(e("write", thread=u, var=x))),
                    either_(*(both_(guarded(t, x, h), guarded(u, x, h)) for h in d)),
                )
                for t in d
                for u in d
                for x in d
            )
        )
    return both_(
        *(
            not_(
                both_(
                    e("next", iterator=i),
                    p.once(
                        both_(
                            e("update", map=m),
                            p.once(
                                both_(
                                    e("iterator", collection=c, iterator=i),
                                    p.once(e("create", map=m, collection=c)),
                                )
                            ),
                        )
                    ),
                )
            )
            for m in d
            for c in d
            for i in d
        )
    )


def random_log(name: str, events: int, seed: int) -> Columns:
    """Events of any kind, with few values."""
    kinds = dejavu.PROPERTIES[name].kinds
    log = dejavu.Log(kinds, seed)
    for _ in range(events):
        kind = list(kinds)[log.below(len(kinds))]
        log.add(kind, *(log.below(2) for _ in kinds[kind]))
    return log.columns()


def logs(name: str) -> Iterator[Columns]:
    """Small ones of all sorts."""
    for seed in range(8):
        yield random_log(name, 14, seed)
    for failing in (False, True):
        yield dejavu.PROPERTIES[name].trace(16, 4, 5, failing)


@pytest.mark.parametrize("name", list(dejavu.PROPERTIES))
def test_traces_with_data(name: str) -> None:
    which = dejavu.PROPERTIES[name]
    made = which.trace(40, 4, seed=1)
    assert same(made, which.trace(40, 4, seed=1))
    assert not same(made, which.trace(40, 4, seed=2))
    assert made["time"].tolist() == list(range(len(made["time"])))
    assert list(made) == ["time", *which.event]
    assert all(published(name, made))
    assert not all(published(name, which.trace(20, 4, seed=1, failing=True)))
    large = which.trace(5_000, 100, seed=1)
    assert 5_000 <= len(large["time"]) <= 5_100


@pytest.mark.parametrize("name", list(dejavu.PROPERTIES))
def test_reelay_has_the_published_formula(name: str) -> None:
    if "reelay" not in installed():
        pytest.skip("reelay is not installed: bench/monitors/requirements.txt")
    which = dejavu.PROPERTIES[name]
    for columns in logs(name):
        seen = PEERS["reelay"].run(which.reelay, dejavu.events_for_reelay(which, columns)).verdicts
        assert seen.tolist() == published(name, columns)


@pytest.mark.parametrize("name", list(dejavu.PROPERTIES))
def test_rules_with_data(name: str) -> None:
    which = dejavu.PROPERTIES[name]
    if which.rule is None:
        return
    for columns in logs(name):
        formula = published(name, columns)
        if which.same == "each":
            assert run_rule(which.rule, columns) == formula
            continue
        expected = formula.index(False) if False in formula else None
        first = None
        for end in range(1, len(formula) + 1):
            if not all(
                run_rule(which.rule, {name: column[:end] for name, column in columns.items()})
            ):
                first = end - 1
                break
        assert first == expected


def table(columns: Columns, unit: str | None = None) -> pa.Table:
    """For an operator."""
    made = {name: pa.array(column.tolist()) for name, column in columns.items()}
    if unit:
        made["time"] = pa.array(columns["time"], pa.timestamp(unit))
    return pa.table(made)


def told(operator: ss.Operator, data: pa.Table) -> list[tuple[Any, ...]]:
    """Rows of an operator in plain Python, times as numbers."""
    rows = operator.run_sequential(data, order_by="time", end=True).output
    for name in ("time", "decided"):
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, rows[name].cast(pa.int64()))
    return [tuple(row.values()) for row in rows.to_pylist()]


def violated(columns: Columns, verdicts: Any) -> list[int]:
    """The times of the events with a false verdict."""
    return [int(at) for at, holds in zip(columns["time"], verdicts, strict=True) if not holds]


@pytest.mark.parametrize("name", list(written_by_hand.PAST))
def test_written_by_hand_past(name: str) -> None:
    low, high = bounds(HIGH)
    which = timescales.PROPERTIES[name]
    for seed in range(4):
        columns = random_trace(which.columns, 60, seed)
        columns["time"] = np.cumsum(np.random.default_rng(seed).integers(0, 4, 60))
        times = violated(columns, truth(which.past(low, high, whole=False), columns))
        rows = told(written_by_hand.PAST[name](HIGH), table(columns))
        assert rows == [(at, False, at) for at in times]


def test_written_by_hand_future() -> None:
    for seed in range(4):
        columns = random_trace("ps", 60, seed)
        columns["s"] &= np.random.default_rng(seed).random(60) < 0.2
        columns["time"] = np.cumsum(np.random.default_rng(seed).integers(0, 4, 60))
        formula = timescales.PROPERTIES["response_globally"].future(*bounds(HIGH))
        times = violated(columns, truth(formula, columns))
        rows = told(written_by_hand.response(HIGH), table(columns))
        assert rows == [(at, False, at + HIGH) for at in times]
        assert times


@pytest.mark.parametrize("name", list(written_by_hand.DEJAVU))
def test_written_by_hand_with_data(name: str) -> None:
    which = dejavu.PROPERTIES[name]
    assert which.rule is not None
    for seed, failing in itertools.product(range(3), (False, True)):
        columns = which.trace(20, 4, seed, failing)
        times = violated(columns, run_rule(which.rule, columns))
        rows = told(written_by_hand.DEJAVU[name], table(columns))
        assert [row[0] for row in rows] == times
        assert bool(times) is failing


@pytest.mark.parametrize("name", list(SENTENCES))
def test_sentences_by_hand(name: str) -> None:
    which = SENTENCES[name]
    made = rule_of(which.text, name, EVENT, **which.options)
    violations = 0
    for seed in range(4):
        data = table(day(400, seed))
        ours, other = (
            one.run_sequential(data, order_by="time", end=True).output
            for one in (made, which.operator)
        )
        same_rows_of(ours, other, list(other.column_names))
        violations += ours.num_rows
    assert 0 < violations < 1600


def test_orders_by_hand() -> None:
    text = RULES["paid_in_time"][0]
    columns = business.orders(300, seed=1, late=0.2, open_at_once=50)
    assert same(columns, business.orders(300, seed=1, late=0.2, open_at_once=50))
    assert (np.diff(columns["time"]) >= 0).all()
    expected: list[tuple[Any, ...]] = []
    for order in dict.fromkeys(columns["order"].tolist()):
        of = columns["order"] == order
        own = {name: column[of] for name, column in columns.items()}
        times = violated(own, run_rule(text, own))
        expected.extend((order, at, False, at + 30 * business.MINUTE) for at in times)
    rows = told(written_by_hand.paid_in_time, table(columns, "us"))
    assert sorted(rows) == sorted(expected)
    assert expected


def test_payments_by_hand() -> None:
    columns = business.payments(200, seed=1, wrong=0.3)
    assert same(columns, business.payments(200, seed=1, wrong=0.3))
    times = violated(columns, run_rule(RULES["four_eyes"][0], columns))
    rows = told(written_by_hand.four_eyes, table(columns, "us"))
    assert rows == [(at, False, at) for at in times]
    assert times


@pytest.mark.parametrize("module", [timescales, definition, dejavu, sentences, written_by_hand])
def test_examples(module: Any) -> None:
    assert doctest.testmod(module).failed == 0


def test_formulas_as_others_write_them() -> None:
    p, s = (Formula("atom", column=name) for name in "ps")
    ours = implies(p, negated(since(negated(s), p, after=3, within=10)))
    assert reelay(ours) == "({p}) -> (not ((not ({s})) since[3:10] ({p})))"
    assert rtamt(ours) == "(x_p) implies (not ((not (x_s)) since[3:10] (x_p)))"
    assert mstlo(until(p, s, 5)) == "(p > 0.5) U[0,5] (s > 0.5)"
    assert rule(ours) == (
        "from specstream.rules import implies, since\n\n\ndef rule(e):\n"
        "    return implies(e.p, not since(lambda b: not b.s, lambda b: b.p, after=3, within=10))\n"
    )

"""By how much rules hold equals the definitions in every bit, and is told when it is known."""

from __future__ import annotations

import linecache
import math
import runpy
import struct
import sys
import types
from collections.abc import Sequence
from math import inf
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.daily import share_of
from support.random_margins import EVENT, Event, random_formula, random_trace, text_of
from support.robustness import told
from support.verdicts import NAMES, verdicts
from support.witness import Timed, assert_agrees_in_time

import specstream as ss
from specstream.errors import ConfigurationError, DeclarationError

RULES = vars(ss.rules)
Row = tuple[int, bytes, int | None]
# What rtamt has too, in discrete time.
SHARED = (
    *("not", "and", "or", "implies", "previous_event", "next_event"),
    *("once", "historically", "since", "eventually", "always", "until", "unless"),
)


def rule_of(text: str, event: Any = EVENT, names: Any = None, **options: Any) -> ss.rules.Rule:
    source = text if "def rule" in text else f"def rule(e):\n    return {text}\n"
    filename = f"<test of robustness {hash(source)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    scope: dict[str, Any] = {**RULES, "math": math, **(names or {})}
    exec(compile(source, filename, "exec"), scope)
    return ss.rule(event=event, **{"robustness": True, **options})(scope["rule"])


def table_of(events: Sequence[Event]) -> pa.Table:
    types = {"time": pa.int64(), "x": pa.float64(), "y": pa.int64(), "k": pa.int64()}
    return pa.table(
        {name: pa.array([getattr(e, name) for e in events], of) for name, of in types.items()}
    )


def bits(value: float) -> bytes:
    return struct.pack("d", value)


def expected(formula: Any, events: Sequence[Event], at_end: str = "open") -> list[Row]:
    return [
        (event.time, bits(one[0]), None if one[1] == inf else math.floor(one[1]))
        for event, one in zip(events, told(formula, events, at_end), strict=True)
        if one is not None
    ]


def rows_of(output: pa.Table, key: int | None = None) -> list[Row]:
    return [
        (row["time"], bits(row["robustness"]), row["decided"])
        for row in output.to_pylist()
        if key is None or row["k"] == key
    ]


@pytest.mark.parametrize("seed", range(share_of(120)))
def test_random_rules_equal_the_definitions(seed: int) -> None:
    random = Random(seed)
    formula = random_formula(random, 1 + seed % 3)
    at_end = random.choice(("open", "closed"))
    rule = rule_of(text_of(formula), at_end=at_end)
    for length in (0, 5, 40):
        events = random_trace(random, length)
        output = rule.run_sequential(table_of(events), order_by="time", end=True).output
        assert rows_of(output) == expected(formula, events, at_end), text_of(formula)


@pytest.mark.parametrize("seed", range(share_of(60)))
def test_each_key_is_a_trace_of_its_own(seed: int) -> None:
    random = Random(1000 + seed)
    formula = random_formula(random, 1 + seed % 3)
    at_end = random.choice(("open", "closed"))
    rule = rule_of(text_of(formula), key="k", at_end=at_end, limit=2**16)
    events = random_trace(random, 60)
    output = rule.run_sequential(table_of(events), order_by="time", end=True).output
    for key in (0, 1):
        of_key = [event for event in events if event.k == key]
        assert rows_of(output, key) == expected(formula, of_key, at_end), text_of(formula)


@pytest.mark.parametrize("seed", range(share_of(60)))
def test_values_are_told_as_soon_as_they_are_known(seed: int) -> None:
    random = Random(2000 + seed)
    formula = random_formula(random, 1 + seed % 3)
    events = random_trace(random, 40)
    rule = rule_of(text_of(formula))
    output = rule.run_sequential(table_of(events), order_by="time", end=True, keys=True).output
    last = events[-1].time
    known = [one[1] for one in told(formula, events) if one is not None]
    for at, when in zip(output["timestamp"].to_pylist(), known, strict=True):
        # Behind a deadline its timer tells.
        assert at == math.ceil(when) or math.ceil(when) > last, text_of(formula)


def test_a_difference_that_leaves_64_bits_has_the_right_sign() -> None:
    events = [Event(at, 0.0, y, 0) for at, y in enumerate((2**63 - 1, -(2**63), 0))]
    for text, signs in (("e.y > -5", [1, -1, 1]), ("e.y <= 5", [-1, 1, 1])):
        output = rule_of(text).run_sequential(table_of(events), order_by="time", end=True).output
        assert np.sign(output["robustness"].to_numpy()).tolist() == signs


@pytest.mark.parametrize("seed", range(share_of(90)))
def test_the_sign_is_that_of_the_verdict(seed: int) -> None:
    random = Random(3000 + seed)
    text = text_of(random_formula(random, 1 + seed % 3))
    events = [event._replace(k=at) for at, event in enumerate(random_trace(random, 40))]
    at_end = random.choice(("open", "closed"))
    rule = rule_of(text, at_end=at_end, keep="k")
    output = rule.run_sequential(table_of(events), order_by="time", end=True).output
    scope: dict[str, Any] = dict(NAMES)
    exec(f"def rule(e):\n    return {text}\n", scope)
    verdict = verdicts(scope["rule"], events, at_end=at_end)
    for row in output.to_pylist():
        if row["robustness"] != 0.0:
            assert verdict[row["k"]] is (row["robustness"] > 0.0), (text, row)


@pytest.mark.parametrize("name", ["past", "windows", "until"])
def test_without_it_the_same_rule_tells_the_verdict(name: str) -> None:
    events = [event._replace(k=at) for at, event in enumerate(random_trace(Random(5), 60))]
    signs, told_true = (
        {
            row["k"]: row.get("verdict", row.get("robustness", 0.0) > 0.0)
            for row in rule_of(CHECKED[name], keep="k", **options)
            .run_sequential(table_of(events), order_by="time", end=True)
            .output.to_pylist()
            if row.get("robustness") != 0.0
        }
        for options in ({}, {"robustness": False, "report": "all"})
    )
    assert signs.items() <= told_true.items()


def in_stl(formula: Any) -> str:
    """A formula as rtamt writes it."""
    name, *given = formula
    if name in (">=", ">", "<=", "<"):
        return f"({given[0]} {name} {given[1]})"
    if name == "not":
        return f"(not {in_stl(given[0])})"
    if name in ("and", "or", "implies"):
        return f"({in_stl(given[0])} {name} {in_stl(given[1])})"
    if name.endswith("_event"):
        word = {"previous_event": "(s_prev ", "next_event": "(s_next "}[name]
        return f"{word * given[0]}{in_stl(given[1])}{')' * given[0]}"
    bounds = "" if given[1] == inf else f"[{given[0]}:{given[1]}]"
    parts = [in_stl(one) for one in given[2:]]
    return (
        f"({parts[0]} {name}{bounds} {parts[1]})" if parts[1:] else f"({name}{bounds} {parts[0]})"
    )


def without_lone_after(formula: Any) -> Any:
    """rtamt has both bounds, or none."""
    name, *given = formula
    if name in ("once", "historically", "since") and given[1] == inf:
        given[0] = 0
    return (name, *(without_lone_after(one) if isinstance(one, tuple) else one for one in given))


@pytest.mark.parametrize("part", range(4))
def test_rtamt_gives_the_same(part: int) -> None:
    """In every bit, but for these, of which the first can be seen only here:

    - rtamt has a minus zero: ``not`` of 0.0. Here there is none, so that equal values have equal
      bits in whatever order they are compared; its is made one by adding 0.0.
    - its ``prev`` and ``next`` give +inf where there is no event, so that ``not prev p`` fails
      there; in rules nothing holds of an event that is not there, which are its ``s_prev`` and
      ``s_next``.
    - its ``iff`` is ``-abs(a - b)``, never positive, so that its sign is not the verdict's; here it
      is what ``(a and b) or (not a and not b)`` gives. It is left out.
    - bounds count samples there and time here: the trace has an event at each time.
    - a trace of one sample raises UnboundLocalError there.
    - what the end cuts off is closed there: ``at_end="closed"``.
    """
    # It pins packages that break others: it is installed for benchmarks alone.
    rtamt = pytest.importorskip("rtamt")
    for seed in range(part, share_of(1000, 10), 4):
        random = Random(4000 + seed)
        formula = without_lone_after(random_formula(random, 1 + seed % 3, SHARED))
        some = [event for event in random_trace(random, 30) if math.isfinite(event.x)]
        events = [event._replace(time=at) for at, event in enumerate(some)]
        assert len(events) > 1
        specification = rtamt.StlDiscreteTimeSpecification()
        for name in ("x", "y", "out"):
            specification.declare_var(name, "float")
        specification.spec = f"out = {in_stl(formula)}"
        specification.parse()
        columns = {"x": [e.x for e in events], "y": [float(e.y) for e in events]}
        theirs = specification.evaluate({"time": list(range(len(events))), **columns})
        rule = rule_of(text_of(formula), at_end="closed")
        output = rule.run_sequential(table_of(events), order_by="time", end=True).output
        ours = [bits(one) for one in output["robustness"].to_pylist()]
        assert ours == [bits(value + 0.0) for _, value in theirs], in_stl(formula)


CHECKED = {
    "past": "since(lambda f: f.x > -1, lambda f: f.y >= 0 and previous_event(lambda g: g.x < 2, 2),"
    " within=9, after=2) or historically(lambda f: f.x < 3, within=4)",
    "windows": "e.x > 0 and always(lambda f: f.x <= 2, within=5) == eventually("
    "lambda f: f.y > 2, within=6, after=2)",
    "until": "until(lambda f: f.x > -1, lambda f: f.y >= 3, within=6) or unless("
    "lambda f: f.x > -1, lambda f: f.y >= 3, after=2, within=7)",
    "nested": "once(lambda f: next_event(lambda g: always(lambda h: h.x > e_least, within=3), 2),"
    " after=1, within=8)",
}


@pytest.mark.parametrize("key", [(), "k"])
@pytest.mark.parametrize("name", CHECKED)
def test_all_settings_agree(name: str, key: Any) -> None:
    rule = rule_of(
        CHECKED[name], names={"e_least": -0.5}, key=key, keep="y", at_end="closed", limit=2**16
    )
    table = table_of(random_trace(Random(len(name)), 60))
    assert ss.testing.check(rule, table, order_by="time").output.num_rows == 60


@pytest.mark.parametrize("name", CHECKED)
def test_the_text_runs_as_plain_python(name: str) -> None:
    rule = rule_of(CHECKED[name], names={"e_least": -0.5}, key="k", limit=2**16)
    table = table_of(random_trace(Random(7), 60)).append_column("source", pa.array([0] * 60))
    assert_agrees_in_time(rule, table, 0, False, "time", "source")


def test_time_tells_step_by_step() -> None:
    rule = rule_of("always(lambda f: f.x <= 2, within=5)", key="k")
    with ss.Engine(rule) as engine:

        def rows(*events: tuple[int, float, int], end: bool = False) -> list[list[Any]]:
            table = table_of([Event(time, x, 0, k) for time, x, k in events])
            output = engine.process(table, order_by="time", end=end)
            return [list(row.values()) for row in output.to_pylist()]

        assert rows((0, 1.0, 0)) == []
        assert rows((5, 1.5, 1), (5, 3.0, 0)) == []  # on the deadline
        assert rows((6, 0.0, 1)) == [[0, 0, -1.0, 5]]  # another key's time passes it
        assert rows((6, 0.0, 1)) == []
        assert rows(end=True) == [
            [1, 5, 0.5, 10],
            [0, 5, -1.0, 10],
            [1, 6, 2.0, 11],
            [1, 6, 2.0, 11],
        ]


def test_a_frontier_tells() -> None:
    rule = rule_of("eventually(lambda f: f.x > 2, within=5)")
    with ss.Engine(rule) as engine:
        events = table_of([Event(0, 1.0, 0, 0), Event(4, 3.0, 0, 0)])
        engine.submit(events, order_by="time", source="only")
        for to, values in ((5, []), (6, [1.0]), (10, [1.0])):
            engine.advance("only", to)
            assert engine.poll(timeout=None)["robustness"].to_pylist() == values[-1:] * (to != 5)
            if to == 6:
                engine.advance("only", 9)
                assert engine.poll(timeout=None).num_rows == 0


@pytest.mark.parametrize("key", [(), "k"])
def test_keys_that_nothing_waits_for_take_no_memory(key: Any) -> None:
    text = "until(lambda f: f.x > -1, lambda f: f.y >= 3, within=6, after=2)"
    rule = rule_of(f"{text} and always(lambda f: f.x < 2, within=3)", key=key)
    with ss.Engine(rule) as engine:
        events = random_trace(Random(3), 200)
        engine.process(table_of(events), order_by="time", end=True)
        left = {name: held for name, held in engine.state.to_dict().items() if name != "timers"}
    assert not any(len(held) for held in left.values() if np.ndim(held)), left


def steps(rule: ss.rules.Rule, events: Sequence[Event]) -> int:
    """How many lines of a rule's text run."""
    count = 0
    filename = rule.function.__code__.co_filename

    def traced(frame: types.FrameType, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != filename:
            return None
        count += event == "line"
        return traced

    table = table_of(events).append_column("source", pa.array([0] * len(events)))
    sys.settrace(traced)
    try:
        Timed(rule, 0, False).run(table, "time", "source")
    finally:
        sys.settrace(None)
    return count


@pytest.mark.parametrize("at_end", ["open", "closed"])
@pytest.mark.parametrize(
    "form",
    [
        "once(lambda f: f.x > 0, within={w})",
        "historically(lambda f: f.x > 0, within={w}, after={a})",
        "since(lambda f: f.x > -1, lambda f: f.y > 0, within={w})",
        "since(lambda f: f.x > -1, lambda f: f.y > 0, within={w}, after={a})",
        "eventually(lambda f: f.x > 0, within={w})",
        "always(lambda f: f.x > 0, within={w}, after={a})",
        "until(lambda f: f.x > -1, lambda f: f.y > 0, within={w})",
        "unless(lambda f: f.x > -1, lambda f: f.y > 0, within={w}, after={a})",
        "always(lambda f: eventually(lambda g: g.x > 0, within={w}), within={w})",
    ],
)
def test_a_long_bound_costs_what_a_short_one_does(form: str, at_end: str) -> None:
    events = [event._replace(time=at) for at, event in enumerate(random_trace(Random(1), 2000))]
    counts = [steps(rule_of(form.format(w=w, a=w // 2), at_end=at_end), events) for w in (10, 500)]
    assert counts[1] < 2 * counts[0]


def refused(text: str, error: Any = DeclarationError, event: Any = None, **options: Any) -> str:
    columns = {**EVENT, "up": bool, "name": str} if event is None else event
    with pytest.raises(error) as caught:
        rule_of(text, columns, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason", "way_out"),
    [
        ("e.up", "e.up is no comparison of numbers", "(1 if e.up else -1) > 0"),
        ("e.x > 0 and not e.up", "e.up is no comparison", "a >= b"),
        ("e.y == 3", "e.y == 3 is no comparison of numbers", "abs(e.y - 3) <= 0.5"),
        ("e.y != 3", "e.y != 3 is no comparison of numbers", "abs(e.y - 3) <= 0.5"),
        ("e.name == 'a'", "e.name == 'a' is no comparison of numbers", "a >= b"),
        ("e.name > 'a'", "e.name > 'a' is no comparison of numbers", "a >= b"),
        ("e.up >= False", "e.up >= False is no comparison of numbers", "a >= b"),
        ("math.isnan(e.x)", "math.isnan(e.x) is no comparison", "a >= b"),
        ("e.y in (1, 2)", "e.y in (1, 2) is no comparison", "a >= b"),
        ("0 < e.x < e.up", "e.x < e.up is no comparison", "a >= b"),
        ("always(lambda f: f.x > 0)", "always(lambda f: f.x > 0) has no end", "within="),
        (
            "once(lambda f: until(lambda g: g.x > 0, lambda g: g.y > 0, after=2))",
            "no end",
            "within=",
        ),
        ("once(lambda f: f.x > e.x)", "once(lambda f: f.x > e.x) compares two events", "alone"),
        ("all(once(lambda f: f.x > 1) for n in (1, 2))", "what an event holds", "and, or, not"),
    ],
)
def test_what_has_no_number_is_refused(text: str, reason: str, way_out: str) -> None:
    said = refused(text)
    assert said.startswith("rule 'rule', line 2: ")
    assert reason in said
    assert way_out in said


def test_options_that_do_not_go_together_are_refused() -> None:
    for given in ({"anchored": True}, {"report": "all"}, {"report": "violations"}):
        said = refused("e.x > 0", ConfigurationError, **given)
        assert "robustness=True" in said
        assert next(iter(given)) in said
    assert "robustness" in refused("e.x > 0", ConfigurationError, robustness="yes")
    taken = {**EVENT, "robustness": float}
    assert "'robustness'" in refused("e.x > 0", ConfigurationError, taken, keep="robustness")


def values(rule: ss.rules.Rule, *events: Event) -> list[float]:
    output = rule.run_sequential(table_of(events), order_by="time", end=True).output
    found: list[float] = output["robustness"].to_pylist()
    return found


def far(event: Any, least: float) -> bool:
    return bool(event.x > least)


def test_conditions_are_those_of_python() -> None:
    event = Event(0, 1.5, 3, 0)
    for text, value in {
        "0 < e.x < 2": 0.5,
        "1 if e.x > 0 else 0": None,
        "(e.x > 1) if e.y > 5 else (e.x > 4)": -2.0,
        "bool(e.x > 1)": 0.5,
        "all((e.x > 1, e.y > 5))": -2.0,
        "any([e.x > 1, e.y > 5])": 0.5,
        "(e.x > 1) == (e.y > 5)": -0.5,
        "(e.x > 1) != (e.y > 5)": 0.5,
        "abs(e.x - 4) <= 3 * math.sqrt(4.0)": 3.5,
        "True": inf,
        "not True or e.x > 1": 0.5,
        "far(e, least=1)": 0.5,
        "next_event(lambda f: True)": -inf,
    }.items():
        if value is None:
            assert "no comparison" in refused(text)
            continue
        assert values(rule_of(text, names={"far": far}, at_end="closed"), event) == [value], text


def test_where_there_is_no_difference_the_verdict_is_an_infinity() -> None:
    rule = rule_of("e.x >= limit", names={"limit": inf})
    found = values(rule, *(Event(0, x, 0, 0) for x in (inf, 1.0, -inf, math.nan)))
    assert found == [inf, -inf, -inf, -inf]
    assert values(rule_of("e.x > limit", names={"limit": inf}), Event(0, inf, 0, 0)) == [-inf]


def test_there_is_no_minus_zero() -> None:
    for text in ("e.x >= 0", "not e.x > 0", "not not e.x < 0", "once(lambda f: not f.x >= 0)"):
        found = values(rule_of(text), Event(0, 0.0, 0, 0), Event(1, -0.0, 0, 0))
        assert list(map(bits, found)) == [bits(0.0)] * 2, text


def test_names_of_the_file_are_not_those_of_the_text() -> None:
    some = ("inf", "margin", "wake", "once", "rows", "always_open", "row_1")
    names = dict.fromkeys(some, -1.0)
    text = "e.x > inf and e.x > margin and e.x > wake and e.x > rows and e.x > always_open and "
    text += (
        "e.x > row_1 and always(lambda f: f.x > inf, within=2) and ss_once(lambda f: f.x > once)"
    )
    rule = rule_of(text, names={**names, "ss_once": ss.rules.once}, key="k", keep="y", limit=2**16)
    assert values(rule, Event(0, 1.5, 0, 0)) == [2.5]


def test_rows_have_the_columns_of_the_event() -> None:
    columns = {"x": float, "who": str, "note": ss.nullable(str)}
    rule = rule_of("always(lambda f: f.x > 1, within=5)", columns, key="who", keep="note")
    events = {"x": [2.0, 0.0], "who": ["ann", "bob"], "note": [None, "hot"], "time": [0, 9]}
    assert rule.run_sequential(events, order_by="time", end=True).output.to_pylist() == [
        {"who": "ann", "time": 0, "robustness": 1.0, "decided": 5, "note": None},
        {"who": "bob", "time": 9, "robustness": -1.0, "decided": 14, "note": "hot"},
    ]


@pytest.mark.parametrize("name", CHECKED)
def test_the_source_is_a_module_that_runs_alone(name: str, tmp_path: Path) -> None:
    rule = rule_of(CHECKED[name], names={"e_least": -0.5}, key="k", keep="y", limit=2**16)
    path = tmp_path / "alone.py"
    path.write_text(rule.source)
    alone = runpy.run_path(str(path))["rule"]
    table = table_of(random_trace(Random(8), 40))
    one, other = (of.run_sequential(table, order_by="time", end=True) for of in (rule, alone))
    assert one.output.equals(other.output)
    assert one.output.num_rows > 0


def test_a_stream_by_key_takes_such_a_rule() -> None:
    p = ss.Pipeline("cool")
    rule = rule_of("always(lambda f: f.x <= 2, within=5)", keep="y")
    p.sink("out", p.source("events", EVENT).by("k").add(rule))
    table = table_of(random_trace(Random(8), 40))
    alone = rule_of("always(lambda f: f.x <= 2, within=5)", key="k", keep="y")
    with ss.Engine(p) as engine:
        output = engine.process(table, order_by="time", end=True)
    assert output.equals(alone.run_sequential(table, order_by="time", end=True).output)

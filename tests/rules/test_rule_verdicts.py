"""What rules tell, beside the definitions: every operator at every place, all settings, defects."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import datetime
import itertools
import linecache
import random
from types import SimpleNamespace
from typing import Any

import pytest
from support import verdicts as definitions
from support.random_rules import Event, random_rule, random_trace
from support.rule_runs import COLUMNS, OPERATORS, function, made, rows_by_event, settled, table

import specstream as ss
from specstream.rules import generate

LONG = 4_000
# Conditions of two events that share something, as people write them.
SHARED = (
    "once(lambda b: b.p and b.k == e.k{bounds})",
    "once(lambda b: b.k == e.k and b.x != e.x and b.q{bounds})",
    "once(lambda b: b.k == e.k and (b.x > e.x or previous_event(lambda c: c.p)))",
    "historically(lambda b: implies(b.k == e.k, b.x > 0){bounds})",
    "since(lambda b: not (b.k == e.k and b.q), lambda b: b.p and b.k == e.k{bounds})",
    "since(lambda b: b.k != e.k or b.x > 1, lambda b: b.k == e.k and b.q{bounds})",
    "previous_event(lambda a: since(lambda b: b.k != e.k or b.p, lambda b: b.q and b.k == e.k))",
    "previous_event(lambda a: once(lambda b: b.q and b.x == e.k and b.k == e.k))",
    "eventually(lambda b: b.p and b.k == e.k and b.x > e.x{bounds})",
    "eventually(lambda b: b.q and b.x > e.x{bounds})",
    "always(lambda b: implies(b.k == e.k, b.x < 3){bounds})",
    "until(lambda b: not (b.k == e.k and b.q), lambda b: b.k == e.k and b.p{bounds})",
    "until(lambda b: not (b.k == e.k and b.x == e.x and b.q), lambda b: b.x == e.x and b.p)",
    "unless(lambda b: b.x != e.x + 1, lambda b: b.q{bounds})",
    "next_event(lambda b: b.x >= e.x, 2)",
    "all(eventually(lambda b: b.x == n and b.k == e.k{bounds}) for n in range(e.x))",
    "any(next_event(lambda b: b.x == n) for n in range(e.x) if n != e.k)",
    "all(until(lambda b: b.k != n, lambda b: b.p{bounds}) for n in (1, 2))",
)
# Operators that look ahead inside of others, settled by time or by the end of the input.
NESTED = (
    "always(lambda b: implies(b.q, eventually(lambda c: c.x > 2, within=5)), within=20)",
    "eventually(lambda b: b.p and always(lambda c: c.x > 0, within=3), within=8)",
    "eventually(lambda b: b.p and not eventually(lambda c: c.q, within=3, after=1))",
    "next_event(lambda b: always(lambda c: c.x < 3, within=2), 2)",
    "eventually(lambda b: b.q and once(lambda c: eventually(lambda d: d.p, within=2), within=3))",
    "always(lambda b: implies(b.p, since(lambda c: c.x > 0 or eventually(lambda d: d.q, within=2),"
    " lambda c: c.q, after=1)), within=6)",
    "implies(e.p, unless(lambda b: until(lambda c: c.p, lambda c: c.q, within=4),"
    " lambda b: always(lambda c: c.x < 3, within=2, after=1), within=6, after=1))",
)
BOUNDS = ("", ", within=5", ", after=2", ", within=4, after=1")


def of(condition: str) -> str:
    return f"def rule(e):\n    return {condition}\n"


def compare(text: str, trace: Any, key: str | None = None, at_end: str = "open") -> None:
    rule = made(text, key=key or (), at_end=at_end)
    run = rule.run_sequential(table(trace), order_by="time", end=True)
    expected = settled(text, trace, at_end=at_end, key=key)
    assert rows_by_event(run.output.to_pylist()) == expected, f"{text}\n{rule.source}\n{trace}"


def compared_at_random(first: int, count: int, **options: Any) -> None:
    for seed in range(first, first + count):
        chosen = random.Random(seed)
        text = random_rule(chosen, chosen.randrange(1, 5), **options)
        trace = random_trace(chosen, chosen.randrange(41))
        compare(text, trace, chosen.choice([None, "k"]), chosen.choice(["open", "closed"]))


# ---- the definitions ----


def test_random_rules_equal_the_definitions() -> None:
    compared_at_random(0, 25)


def test_random_rules_of_several_events_equal_the_definitions() -> None:
    compared_at_random(1_000, 35, captured=True)


@pytest.mark.long
def test_many_random_rules_equal_the_definitions() -> None:
    compared_at_random(10_000, LONG)
    compared_at_random(20_000, LONG, captured=True)


@pytest.mark.parametrize("condition", SHARED)
def test_conditions_of_two_events_equal_the_definitions(condition: str) -> None:
    forms = itertools.product(BOUNDS, (None, "k"), ("{}", "implies(e.p, {})", "not {}"))
    # Another part of them for each condition, as they are many.
    for at, (bounds, key, form) in list(enumerate(forms))[SHARED.index(condition) % 7 :: 7]:
        trace = random_trace(random.Random(at), 40)
        text = of(form.format(condition.format(bounds=bounds)))
        compare(text, trace, key, ("open", "closed")[at % 2])


@pytest.mark.parametrize("condition", NESTED)
def test_operators_inside_of_others_equal_the_definitions(condition: str) -> None:
    for at, (key, at_end) in enumerate(itertools.product((None, "k"), ("open", "closed"))):
        assert "Seen" not in made(of(condition), key=key or (), at_end=at_end).source
        for seed in range(3):
            trace = random_trace(random.Random(f"{condition} {at} {seed}"), 40)
            compare(of(condition), trace, key, at_end)


def test_operators_inside_of_others_are_told_as_soon_as_all_events_gone_through_tell(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trace = table(random_trace(random.Random(5), 60))

    def told(condition: str, key: tuple[str, ...]) -> list[tuple[Any, ...]]:
        rows = made(of(condition), key=key).run_sequential(trace, order_by="time", end=True).output
        return sorted((one["i"], one["verdict"], one["decided"]) for one in rows.to_pylist())

    both = [(condition, key) for condition in NESTED[:2] for key in ((), ("k",))]
    found = [told(*one) for one in both]
    monkeypatch.setattr(generate, "is_nested", lambda *_: False)
    assert found == [told(*one) for one in both]


def test_rules_of_one_operator_equal_the_definitions_on_all_short_traces() -> None:
    events = [Event(0, p, q, 0, 0) for p in (False, True) for q in (False, True)]
    for condition in (
        "until(lambda b: b.p, lambda b: b.q)",
        "since(lambda b: b.p, lambda b: b.q)",
        "unless(lambda b: b.p, lambda b: b.q, within=1)",
        "implies(e.p, eventually(lambda b: b.q, within=2, after=1))",
    ):
        rule = made(of(condition))
        for length in range(5):
            for given in itertools.product(events, repeat=length):
                trace = [one._replace(time=at) for at, one in enumerate(given)]
                run = rule.run_sequential(table(trace), order_by="time", end=True)
                assert rows_by_event(run.output.to_pylist()) == settled(of(condition), trace)


TURNS_AROUND = """
def apart(some, a, b):
    return sum(abs(p.x - q.x) for p in some if p.id == a for q in some if q.id == b)


def rule(e):
    return all(
        implies(
            abs(w.x - b.x) < 6,
            next_event(lambda l: apart(pingus(l.snapshot), w.id, b.id) > abs(w.x - b.x), 3),
        )
        for w in pingus(e.snapshot) if w.status == "WALKER"
        for b in pingus(e.snapshot) if b.status == "BLOCKER"
    )
"""


def test_turns_around_says_what_the_paper_says() -> None:
    # A walker within 6 of a blocker has turned around three snapshots later.
    pingus = ss.formats.xml("//character", id=int, status=str, x=float)
    chosen = random.Random(1)
    snapshots = []
    for _ in range(60):
        characters = [("WALKER", chosen.randrange(20)) for _ in range(3)]
        characters += [("BLOCKER", chosen.randrange(20)) for _ in range(chosen.randrange(3))]
        inside = "".join(
            f"<character><id>{at}</id><status>{status}</status><x>{x}</x></character>"
            for at, (status, x) in enumerate(characters)
        )
        snapshots.append(f"<game>{inside}</game>")
    Snapshot = collections.namedtuple("Snapshot", ["time", "snapshot"])
    given = {"pingus": pingus}
    rule = ss.rule(event={"snapshot": str}, report="all", name="turns_around")(
        function(TURNS_AROUND, {**OPERATORS, **given})
    )
    table = {"snapshot": snapshots, "time": list(range(60))}
    run = ss.testing.check(rule, table, order_by="time")
    found = {row["time"]: row["verdict"] for row in run.output.to_pylist()}
    expected = definitions.verdicts(
        function(TURNS_AROUND, {**definitions.NAMES, **given}),
        [Snapshot(at, one) for at, one in enumerate(snapshots)],
    )
    assert found == {at: one for at, one in enumerate(expected) if one is not None}
    assert set(found.values()) == {True, False}


# ---- engines ----


@pytest.mark.parametrize(
    ("condition", "key"),
    [
        ("implies(e.p, eventually(lambda b: b.q, within=5))", "k"),
        ("implies(e.p, always(lambda b: not b.q, within=6, after=1))", "k"),
        ("implies(e.p, until(lambda b: b.x < 3, lambda b: b.q, within=6))", None),
        ("implies(e.p, eventually(lambda b: b.k == e.k and b.x > e.x, within=6))", None),
        ("next_event(lambda b: b.x >= e.x, 2)", "k"),
        ("eventually(lambda b: b.q) or always(lambda b: b.x < 3, within=4)", "k"),
        ("eventually(lambda b: b.p and always(lambda c: c.x > 0, within=3), within=8)", "k"),
        (NESTED[-1], "k"),
        (NESTED[-2], None),
        ("once(lambda b: b.k == e.k and b.x > e.x, within=6)", None),
        ("since(lambda b: not (b.k == e.k and b.q), lambda b: b.k == e.k and b.x == 2)", None),
        ("historically(lambda b: b.x < 3, within=5, after=2)", "k"),
        ("all(eventually(lambda b: b.x == n, within=7) for n in range(e.x))", "k"),
    ],
)
def test_engines_tell_on_all_settings_what_the_definitions_say(
    condition: str, key: str | None
) -> None:
    text = of(condition)
    trace = random_trace(random.Random(condition), 40)
    rule = made(text, key=key or (), at_end="closed")
    run = ss.testing.check(rule, table(trace), order_by="time")
    expected = settled(text, trace, at_end="closed", key=key)
    assert rows_by_event(run.output.to_pylist()) == expected


def test_rules_are_vertices_of_pipelines() -> None:
    p = ss.Pipeline("watched")
    x = p.source("x", COLUMNS)
    late, low = (
        made(of("implies(e.p, eventually(lambda b: b.q, within=4))"), key="k"),
        made(of("historically(lambda b: b.x < 3, within=3)")),
    )
    p.sink("late", x.add(late, name="late"))
    p.sink("low", x.add(low, name="low"))
    trace = random_trace(random.Random(7), 60)
    run = ss.testing.check(p, table(trace), order_by="time")
    output: Any = run.output
    for name, rule in (("late", late), ("low", low)):
        alone = rule.run_sequential(table(trace), order_by="time", end=True).output
        assert rows_by_event(output[name].to_pylist()) == rows_by_event(alone.to_pylist())


def test_the_source_runs_alone_and_tells_the_same() -> None:
    for seed in range(12):
        chosen = random.Random(seed)
        text = random_rule(chosen, 3, captured=seed % 2 == 0)
        rule = made(text, key="k", at_end="closed")
        namespace: dict[str, Any] = {"__name__": "alone"}
        name = f"<source {seed}>"
        linecache.cache[name] = (0, None, rule.source.splitlines(keepends=True), name)
        exec(compile(rule.source, name, "exec", dont_inherit=True), namespace)
        trace = table(random_trace(chosen, 30))
        alone = namespace["tried"].run_sequential(trace, order_by="time", end=True)
        assert alone.output.equals(rule.run_sequential(trace, order_by="time", end=True).output)


def test_names_of_the_file_are_apart_from_those_of_the_text() -> None:
    # The text has locals, functions and classes of these names.
    names = ("goal", "last", "now", "increment", "Waiting", "passed", "first", "known", "status")
    values = {name: at for at, name in enumerate(names)}
    condition = "implies(e.x > {}, eventually(lambda b: b.x == {} - {}, within=5))"
    trace = random_trace(random.Random(1), 40)
    for name, at in values.items():
        text = of(condition.format(name, name, name))
        same = of(condition.format(at, at, at))
        rule = ss.rule(event=COLUMNS, report="all", keep=["i"], key="k", name="tried")(
            function(text, {**OPERATORS, **values})
        )
        run = rule.run_sequential(table(trace), order_by="time", end=True)
        assert rows_by_event(run.output.to_pylist()) == settled(same, trace, key="k")


def test_a_look_back_of_no_time_sees_events_of_the_same_time() -> None:
    unless = "unless(lambda c: c.p, lambda c: c.p, after=1, within=4)"
    text = of(f"historically(lambda b: {unless}, within=0)")
    compare(text, [event(0), event(0, p=True)], at_end="closed")


# ---- when it is told ----

PAID = of("implies(e.p, eventually(lambda b: b.q, within=5))")


def event(time: int, p: bool = False, q: bool = False, k: int = 0, x: int = 0) -> Event:
    return Event(time, p, q, x, k)


def told(trace: list[Event], *, cut: int = 1, end: bool = False, **options: Any) -> list[Any]:
    """Rows by step, of an engine that gets so many events at once."""
    rule = made(PAID, report="violations", key="k", **options)
    columns = table(trace)
    steps = []
    with ss.Engine(rule, threads=1) as engine:
        for first in range(0, len(trace), cut):
            part = {name: values[first : first + cut] for name, values in columns.items()}
            found = engine.process(part, order_by="time")
            steps.append([(row["i"], row["decided"]) for row in found.to_pylist()])
        if end:
            none = {name: values[:0] for name, values in columns.items()}
            found = engine.process(none, order_by="time", end=True)
            steps.append([(row["i"], row["decided"]) for row in found.to_pylist()])
    return steps


@pytest.mark.parametrize("answer", [4, 5, 6])
def test_an_event_exactly_at_the_deadline_still_counts(answer: int) -> None:
    trace = [event(0, p=True), event(answer, q=True), event(9)]
    expected: list[Any] = [[], [(0, 5)], []] if answer == 6 else [[], [], []]
    assert told(trace) == expected


def test_the_second_of_two_events_at_the_deadline_still_counts() -> None:
    assert told([event(0, p=True), event(5), event(5, q=True), event(6)]) == [[], [], [], []]


def test_a_silent_key_is_told_when_the_time_of_another_one_passes() -> None:
    trace = [event(0, p=True), event(5, k=1), event(6, k=1)]
    assert told(trace) == [[], [], [(0, 5)]]


def test_the_end_lets_all_time_pass() -> None:
    assert told([event(0, p=True), event(1, p=True)], end=True) == [[], [], [(0, 5), (1, 6)]]


def test_batches_may_be_cut_anywhere() -> None:
    trace = random_trace(random.Random(3), 60)
    whole = [row for step in told(trace, cut=60, end=True) for row in step]
    assert len(whole) > 3
    for cut in (1, 2, 7):
        assert [row for step in told(trace, cut=cut, end=True) for row in step] == whole


def test_a_watermark_alone_tells_what_is_late() -> None:
    rule = made(PAID, report="violations", key="k")
    with ss.Engine(rule, threads=1) as engine:
        columns = table([event(0, p=True)])
        engine.submit(columns, order_by="time", source="a")
        engine.advance("a", 5)
        assert engine.poll(timeout=None).num_rows == 0
        engine.advance("a", 6)
        assert engine.poll(timeout=None)["decided"].to_pylist() == [5]


def test_a_verdict_is_told_once_when_all_continuations_agree() -> None:
    alphabet = [event(1, p, q) for p in (False, True) for q in (False, True)]
    for condition in (
        "implies(e.p, eventually(lambda b: b.q))",
        "until(lambda b: b.p, lambda b: b.q)",
        "next_event(lambda b: b.q) or eventually(lambda b: b.p)",
        "eventually(lambda b: b.q) if e.p else always(lambda b: not b.q)",
        "eventually(lambda b: b.q) or not eventually(lambda b: b.q)",
    ):
        text = of(condition)
        rule, read = made(text), function(text, definitions.NAMES)
        for given in itertools.product(alphabet, repeat=3):
            trace = [one._replace(time=at) for at, one in enumerate(given)]
            run = rule.run_sequential(table(trace), order_by="time")
            found = {row["i"]: row["decided"] for row in run.output.to_pylist()}
            for at in range(len(trace)):
                expected = definitions.settled_at(read, trace, at, alphabet, 2)
                assert found.get(at) == (None if expected is None else expected[0]), text


def test_a_waiting_event_does_not_hold_back_a_later_one() -> None:
    rule = made(of("eventually(lambda b: b.q) or e.x == 1"))
    columns = table([event(0), event(1, x=1), event(2, q=True)])
    run = rule.run_sequential(columns, order_by="time")
    assert [(row["i"], row["decided"]) for row in run.output.to_pylist()] == [
        (1, 1),
        (0, 2),
        (2, 2),
    ]


def test_what_time_does_not_settle_is_counted_in_the_state() -> None:
    rule = made(of("eventually(lambda b: b.q)"))
    with ss.Engine(rule) as engine:
        columns = table([event(0), event(1)])
        assert engine.process(columns, order_by="time", end=True).num_rows == 0
        assert len(engine.state.waiting) == 2


def test_what_nobody_can_ask_for_any_more_is_forgotten() -> None:
    trace = [event(at, p=at % 3 == 0, q=at % 3 == 1, k=at) for at in range(300)]
    for condition in (
        "implies(e.p, eventually(lambda b: b.q, within=5))",
        "once(lambda b: b.q, within=5)",
        "once(lambda b: b.q, within=5, after=2)",
        "always(lambda b: b.x == 0, within=4)",
    ):
        rule = made(of(condition), key="k", report="violations")
        with ss.Engine(rule) as engine:
            engine.process(table(trace), order_by="time")
            for name, value in engine.state.to_dict().items():
                if isinstance(value, dict):
                    assert len(value) < 20, (condition, name)


def test_a_trace_of_which_nothing_is_open_takes_no_memory() -> None:
    trace = table(random_trace(random.Random(8), 200))
    for condition in NESTED[:2]:
        with ss.Engine(made(of(condition), key="k")) as engine:
            engine.process(trace, order_by="time", end=True)
            held = {
                name: value
                for name, value in engine.state.to_dict().items()
                if isinstance(value, dict) and value
            }
            assert not held


# ---- the first event alone ----


def test_rules_of_first_events_say_how_they_stand() -> None:
    rule = made(of("implies(e.p, eventually(lambda b: b.q))"), anchored=True, keep=())
    trace = [event(0, p=True), event(1), event(2), event(3, q=True)]
    run = rule.run_sequential(table(trace), order_by="time")
    assert run.output["verdict"].to_pylist() == [None, None, None, True]


def test_random_rules_of_first_events_equal_the_definitions() -> None:
    for seed in range(25):
        chosen = random.Random(seed)
        text = random_rule(chosen, 3, captured=seed % 3 == 0, bounds=False)
        trace = random_trace(chosen, chosen.randrange(12))
        at_end = chosen.choice(["open", "closed"])
        rule = made(text, anchored=True, keep=(), at_end=at_end)
        run = rule.run_sequential(table(trace), order_by="time", end=True)
        found = run.output["verdict"].to_pylist()
        expected = definitions.anchored(function(text, definitions.NAMES), trace, at_end=at_end)
        assert found[: len(trace)] == expected[: len(trace)], text
        # Behind the end there is a row where the end has settled it.
        assert found[-1:] == expected[-1:], text


# ---- defects that the comparison finds ----


@pytest.mark.parametrize(
    ("condition", "right", "wrong"),
    [
        ("implies(e.p, eventually(lambda b: b.q, within=5))", ">= at", "> at"),
        ("implies(e.p, eventually(lambda b: b.q, within=5))", "now + 6", "now + 60"),
        ("implies(e.p, eventually(lambda b: b.q, within=5))", "one.time + 5", "one.time + 6"),
        ("eventually(lambda b: b.q, within=5, after=2)", "one.time >= 2", "one.time > 2"),
        ("once(lambda b: b.q, within=5)", "<= 5", "< 5"),
        ("once(lambda b: b.q, within=5, after=2)", ">= 2", "> 2"),
        ("implies(e.p, until(lambda b: b.x < 3, lambda b: b.q))", "elif not held", "elif False"),
        ("eventually(lambda b: b.x > e.x, within=5)", "one.x", "event.x"),
        ("once(lambda b: b.k == e.k and b.q)", "_slice = event.k", "_slice = event.x"),
        ("eventually(lambda b: b.q, within=5)", "state.first = number", "pass"),
        ("eventually(lambda b: b.q)", "set(0, 9223372036854775807)", "set(0, now + 1)"),
        ("implies(e.p, always(lambda b: b.x > 0))", "not event.p", "False"),
    ],
)
def test_planted_defects_are_found(
    condition: str, right: str, wrong: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = generate.written

    def written(*given: Any) -> Any:
        found = write(*given)
        assert right in found.text
        found.text = found.text.replace(right, wrong)
        return found

    at_end = "closed" if "within" not in condition else "open"
    traces = [random_trace(random.Random(seed), 40) for seed in range(20)]
    text = of(condition)
    for trace in traces:
        compare(text, trace, at_end=at_end)
    monkeypatch.setattr("specstream.rules.declared.written", written)
    differences = 0
    for trace in traces:
        try:
            compare(text, trace, at_end=at_end)
        except Exception:
            differences += 1
    assert differences > 0


# ---- what is refused ----


def refused(condition: str, **options: Any) -> str:
    with pytest.raises(ss.SpecstreamError) as caught:
        made(of(condition), **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("condition", "reason"),
    [
        ("eventually(e.p)", "a value of this event"),
        ("eventually(lambda: True)", "a function of"),
        ("eventually(lambda b, c: True)", "a function of"),
        ("eventually(lambda b: b.q, within=2, after=3)", "less than after=3"),
        ("eventually(lambda b: b.q, within=-1)", "within=-1"),
        ("eventually(lambda b: b.q, witihn=3)", "did you mean within=?"),
        ("eventually(lambda b: b.q, within=e.x)", "depends on e"),
        ("eventually(lambda b: b.pp)", "no column 'pp'"),
        ("next_event(lambda b: b.q, 0)", "n=0"),
        ("next_event(lambda b: b.q, within=3)", "no option within"),
        ("once(lambda b: b.q) + 1 > 1", "expected truth values"),
        ("eventually(lambda b: b.q, within='5 minutes', after=3)", "both of one kind"),
        (
            "once(lambda b: b.q, within='1 day') and eventually(lambda b: b.q, within=3)",
            "within=3 a number",
        ),
        ("implies(e.p)", "two truth values"),
        ("until(lambda b: b.p)", "given 1 functions; expected 2"),
    ],
)
def test_what_no_rule_can_say_is_refused(condition: str, reason: str) -> None:
    message = refused(condition)
    assert reason in message
    assert "rule 'tried'" in message


def test_operators_outside_of_rules_are_refused() -> None:
    for name in ("once", "eventually", "previous_event"):
        with pytest.raises(ss.ConfigurationError, match="outside of a rule"):
            OPERATORS[name](lambda e: True)


def test_options_of_rules_are_checked() -> None:
    assert "key='kk'" in refused("e.p", key="kk")
    assert "keep= names 'ii'" in refused("e.p", keep=["ii"])
    assert "at_end" in refused("e.p", at_end="shut")
    assert "report" in refused("e.p", report="some")
    with pytest.raises(ss.ConfigurationError, match="is called"):
        made(of("e.p"))({"p": True})


# ---- what was found from outside ----

LIMIT = 1


def of_default(e, limit=LIMIT):
    return e.x == limit


WITH_DEFAULTS = [lambda e, limit=limit: e.x == limit for limit in (1, 2, 3)]
LIMIT = 2


def verdicts_of(condition: Any, event: Any, columns: Any, **options: Any) -> list[Any]:
    rule = ss.rule(event=event, report="all", name="tried", **options)(condition)
    rows = rule.run_sequential(columns, order_by="time", end=True).output.to_pylist()
    found = [row["verdict"] for row in sorted(rows, key=lambda row: row["time"])]
    at_all = [rule.why(columns, order_by="time", at=at).verdict for at in range(len(found))]
    assert found == at_all
    return found


def test_defaults_are_those_that_a_function_has() -> None:
    columns = {"x": [1, 2, 3], "time": [0, 1, 2]}
    assert verdicts_of(of_default, {"x": int}, columns) == [True, False, False]
    once = OPERATORS["once"]
    found = verdicts_of(lambda e: once(of_default, within=1), {"x": int}, columns)
    assert found == [True, True, False]
    for at, one in enumerate(WITH_DEFAULTS):
        assert verdicts_of(one, {"x": int}, columns) == [at == row for row in range(3)]


def reasons_of(condition: Any, **options: Any) -> list[Any]:
    rule = ss.rule(event={"x": int}, name="tried", **options)(condition)
    rows = rule.run_sequential({"x": [1, 2, 3], "time": [0, 1, 2]}, order_by="time", end=True)
    return [(row["time"], row["because"]) for row in rows.output.to_pylist()]


def test_what_is_open_is_not_to_be_blamed() -> None:
    always, eventually, historically = (
        OPERATORS[name] for name in ("always", "eventually", "historically")
    )
    found = reasons_of(
        lambda e: eventually(lambda b: b.x == 3, within=5) and always(lambda b: b.x < 2, within=5)
    )
    assert dict(found)[0] == "always(lambda b: b.x < 2, within=5)"
    # A negation is part of what is blamed.
    found = reasons_of(lambda e: not always(lambda b: b.x > 0, within=1))
    assert {because for _, because in found} == {"not always(lambda b: b.x > 0, within=1)"}
    found = reasons_of(lambda e: e.x > 0 and not historically(lambda b: b.x > 0))
    assert {because for _, because in found} == {"not historically(lambda b: b.x > 0)"}


def test_nulls_have_no_order() -> None:
    once, eventually = OPERATORS["once"], OPERATORS["eventually"]
    columns = {"x": [1, None], "y": [0, 5], "time": [0, 1]}
    for condition in (
        lambda e: e.x < 1,
        lambda e: e.x + 1 > 0,
        lambda e: -e.x < 3,
        lambda e: once(lambda b: b.x < 1, within=0),
        lambda e: eventually(lambda b: b.y > e.x, within=0),
        lambda e: once(lambda b: b.x < e.y, within=0),
    ):
        rule = ss.rule(event={"x": ss.nullable(int), "y": int}, report="all", name="tried")(
            condition
        )
        with ss.Engine(rule, errors="side") as engine:
            told = engine.process(columns, order_by="time", end=True)
            assert told["time"].to_pylist() == [0]
            failed = engine.failed_events()
        assert failed is not None
        assert failed["error"].to_pylist() == ["TypeError"]
        with pytest.raises(TypeError):
            rule.why(columns, order_by="time", at=1)


def test_an_end_that_is_told_says_nothing_of_units(recwarn: pytest.WarningsRecorder) -> None:
    eventually = OPERATORS["eventually"]
    rule = ss.rule(event={"x": int}, at_end="closed", name="tried")(
        lambda e: eventually(lambda b: b.x == 9)
    )
    rows = rule.run_sequential(
        {"x": [1], "time": [datetime.datetime(2026, 1, 1)]}, order_by="time", end=True
    )
    assert rows.output.num_rows == 1
    assert not recwarn.list


def again(e: Any) -> Any:
    return again(e)


def test_wrong_helpers_and_options_say_so() -> None:
    with pytest.raises(ss.DeclarationError, match=r"rule 'tried', line \d+: again calls itself"):
        ss.rule(event={"x": int}, name="tried")(lambda e: again(e))
    with pytest.raises(ss.DeclarationError, match="rule 'tried': "):
        ss.rule(event={"x": int}, name="tried")(lambda e: e["x"])
    for options in ({"key": 3}, {"keep": 3}, {"keep": ["x", "x"]}):
        given: dict[str, Any] = options
        with pytest.raises(ss.ConfigurationError, match=f"rule 'tried': {next(iter(options))}="):
            ss.rule(event={"x": int}, name="tried", **given)(lambda e: e.x > 1)


def test_nulls_of_two_events_are_equal_to_each_other_alone() -> None:
    event = {"x": ss.nullable(int), "y": ss.nullable(str)}
    next_event, once, eventually, previous_event = (
        OPERATORS[name] for name in ("next_event", "once", "eventually", "previous_event")
    )
    for x in ([0, None, 0], [None, None, None], [None, 0, None]):
        columns = {"x": x, "y": [None if one is None else "" for one in x], "time": [1, 2, 4]}
        for condition in (
            lambda e: next_event(lambda b: b.x == e.x),
            lambda e: next_event(lambda b: b.x != e.x),
            lambda e: previous_event(lambda b: b.y == e.y),
            lambda e: once(lambda b: b.y != e.y),
            lambda e: eventually(lambda b: b.x == e.x, within=2, after=1),
        ):
            verdicts_of(condition, event, columns, at_end="closed")


def test_what_is_guarded_is_not_asked() -> None:
    event, columns = {"n": int, "d": int}, {"n": [10, 1], "d": [1, 0], "time": [0, 1]}
    once, eventually, implies = (OPERATORS[name] for name in ("once", "eventually", "implies"))
    for condition in (
        lambda e: e.d == 0 or once(lambda b: b.n == 10 // e.d),
        lambda e: e.d == 0 or eventually(lambda b: b.n == 10 // e.d, within=3),
        lambda e: e.d != 0 and not once(lambda b: b.n == 10 // e.d),
        lambda e: implies(e.d != 0, once(lambda b: b.n == 10 // e.d)),
    ):
        assert len(verdicts_of(condition, event, columns)) == 2


BLAMED = [
    # Formula; for the truth of p, q and r of an event, the parts that fail.
    ("implies(e.q, e.p) and e.r", {"e.p": "implies(e.q, e.p)", "e.r": "e.r"}),
    (
        "implies(eventually(lambda b: b.q, within=0), e.p and e.r) and unless("
        "lambda b: b.q, lambda b: b.r, within=0)",
        {
            "e.p and e.r": "implies(e.q, e.p and e.r)",
            "unless(lambda b: b.q, lambda b: b.r, within=0)": "e.q or e.r",
        },
    ),
]


@pytest.mark.parametrize(("text", "meanings"), BLAMED)
def test_a_part_that_holds_is_not_to_blame(text: str, meanings: dict[str, str]) -> None:
    """An implication whose left side fails holds, though its right side fails as well."""
    truths = list(itertools.product((False, True), repeat=3))
    columns: dict[str, Any] = {name: [row[at] for row in truths] for at, name in enumerate("pqr")}
    columns["time"] = list(range(len(truths)))
    condition = function(f"def rule(e):\n    return {text}\n", OPERATORS)
    rule = ss.rule(event=dict.fromkeys("pqr", bool), name="tried")(condition)
    rows = rule.run_sequential(columns, order_by="time", end=True).output.to_pylist()
    told = {row["time"]: row["because"].strip("()") for row in rows}
    for at, row in enumerate(truths):
        event = SimpleNamespace(**dict(zip("pqr", row, strict=True)))
        failed = [
            part
            for part, meaning in meanings.items()
            if not eval(meaning, {"implies": lambda a, b: not a or b, "e": event})
        ]
        assert (at in told) == bool(failed)
        assert at not in told or told[at] in [one.strip("()") for one in failed]


def test_an_event_whose_key_is_null_is_dropped() -> None:
    event = {"x": int, "who": ss.nullable(str)}
    columns = {"x": [1, 1, 2, 1], "who": ["a", None, "a", "z"], "time": [0, 1, 2, 9]}
    eventually, next_event = OPERATORS["eventually"], OPERATORS["next_event"]
    for condition in (
        lambda e: eventually(lambda b: b.x == 2, within=3) or e.who == "y",
        lambda e: eventually(lambda b: b.x > e.x, within=3),
        lambda e: next_event(lambda b: b.x > e.x),
    ):
        made = ss.rule(event=event, key="who", report="all", at_end="closed", name="tried")
        rule = made(condition)
        run = ss.testing.check(rule, columns, order_by="time")
        assert sorted(row["who"] for row in run.output.to_pylist()) == ["a", "a", "z"]


def test_the_text_can_be_read_when_python_has_forgotten_it() -> None:
    rule = made(PAID)
    linecache.clearcache()
    p = ss.Pipeline("later")
    p.sink("out", p.source("x", COLUMNS).add(rule))
    columns = table([event(0, p=True), event(9)])
    run = p.run_sequential(columns, order_by="time", end=True)
    assert run.output["verdict"].to_pylist() == [False, True]

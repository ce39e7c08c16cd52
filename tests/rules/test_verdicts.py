"""The definitions of rules say what the words of rules mean, worked out by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from random import Random
from typing import Any, NamedTuple

import pytest
from support.random_rules import FUTURE, OPERATORS, PAST, Event, random_rule, random_trace
from support.verdicts import NAMES, anchored, settled_at, verdicts

Rule = Callable[[Any], object]
WORDS = {"T": True, "F": False, "-": None}
# One side holds where the other does; w stands for bounds.
LAWS = [
    ("historically(f, w)", "not once(lambda x: not f(x), w)"),
    ("always(f, w)", "not eventually(lambda x: not f(x), w)"),
    ("once(f, w)", "since(lambda x: True, f, w)"),
    ("eventually(f, w)", "until(lambda x: True, f, w)"),
]
LAWS_OF_CLOSED = [
    ("unless(f, g, w)", "not until(lambda x: not g(x), lambda x: not f(x) and not g(x), w)"),
    ("unless(f, g, w)", "until(f, g, w) or always(f, w)"),
    ("until(f, g)", "g(e) or (f(e) and next_event(lambda x: until(f, g)))"),
    ("since(f, g)", "g(e) or (f(e) and previous_event(lambda x: since(f, g)))"),
    ("next_event(f, 2)", "next_event(lambda x: next_event(f))"),
    ("previous_event(f, 3)", "previous_event(lambda x: previous_event(f, 2))"),
]
REST = list(itertools.product((False, True), (False, True), (0, 3), (1,)))


class Letter(NamedTuple):
    what: str
    time: int


def a(event: Letter) -> bool:
    return event.what == "a"


def b(event: Letter) -> bool:
    return event.what == "b"


def c(event: Letter) -> bool:
    return event.what == "c"


def letters(text: str) -> list[Letter]:
    """``a b7 c``: events one after another, from time 0, or at a time of their own."""
    events: list[Letter] = []
    for word in text.split():
        time = events[-1].time + 1 if events else 0
        events.append(Letter(word[0], int(word[1:] or time)))
    return events


def rule_of(text: str, **names: object) -> Rule:
    scope: dict[str, Any] = {**NAMES, "a": a, "b": b, "c": c, **names}
    exec(text if "def rule" in text else f"def rule(e): return {text}", scope)
    rule: Rule = scope["rule"]
    return rule


def told(text: str) -> list[bool | None]:
    return [WORDS[letter] for letter in text.replace(" ", "")]


@pytest.mark.parametrize(
    ("text", "trace", "opened", "closed"),
    [
        ("previous_event(a)", "a b a c", "F T F T", ""),
        ("previous_event(a, 2)", "a b a c", "F F T F", ""),
        ("previous_event(a, n=9)", "a b a c", "F F F F", ""),
        ("not previous_event(a)", "a b", "T F", ""),
        ("next_event(a)", "a b a c", "F T F -", "F T F F"),
        ("next_event(a, 2)", "a b a c", "T F - -", "T F F F"),
        ("once(b)", "a b a c", "F T T T", ""),
        ("historically(a)", "a a b a", "T T F F", ""),
        ("eventually(b)", "a b a", "T T -", "T T F"),
        ("always(a)", "a b a", "F F -", "F F T"),
        # At the event of g itself f is not asked, and after it up to this one it is.
        ("since(a, b)", "a b a c a", "F T T F F", ""),
        ("since(a, b)", "b b c b", "T T F T", ""),
        ("until(a, b)", "a a b c", "T T T F", ""),
        ("until(a, b)", "b a a", "T - -", "T F F"),
        ("until(a, b)", "a c b", "F F T", ""),
        ("unless(a, b)", "b a a", "T - -", "T T T"),
        ("unless(a, b)", "a a c a b", "F F F T T", ""),
        ("implies(a(e), eventually(b))", "a c c b", "T T T T", ""),
        ("implies(a(e), eventually(b))", "a c b a c", "T T T - T", "T T T F T"),
        # Operators inside one another speak from where the inner one is.
        ("once(lambda x: next_event(b))", "a c b c", "F T T T", ""),
        ("eventually(lambda x: previous_event(b))", "b a c", "T T -", "T T F"),
        ("previous_event(lambda x: next_event(b))", "a b c b", "F T F T", ""),
        ("always(lambda x: next_event(a))", "c a a", "- - -", "F F F"),
        ("eventually(lambda x: next_event(b), within=1)", "a c b c", "T T - -", "T T F F"),
        # Past of the rest may be all that it takes: tables over the parts do not see it.
        ("always(lambda x: once(b))", "a b a", "F - -", "F T T"),
    ],
)
def test_each_operator_is_what_its_definition_says(
    text: str, trace: str, opened: str, closed: str
) -> None:
    rule = rule_of(text)
    assert verdicts(rule, letters(trace)) == told(opened)
    assert verdicts(rule, letters(trace), at_end="closed") == told(closed or opened)


@pytest.mark.parametrize(
    ("text", "trace", "expected"),
    [
        ("eventually(b, within=5)", "a b{}", "T T F"),
        ("eventually(b, after=5)", "a b{} c99", "- T T"),
        ("eventually(b, within=9, after=5)", "a b{}", "F T T"),
        ("always(a, within=5)", "a b{}", "F F T"),
        ("always(a, within=9, after=5)", "a b{}", "T F F"),
        ("until(a, b, within=5)", "a a b{}", "T T F"),
        ("until(a, b, within=9, after=5)", "a a b{}", "F T T"),
        ("unless(a, b, within=5)", "a c{} b", "F F T"),
        ("unless(a, b, within=9, after=5)", "a b{} a c9", "F T T"),
        ("eventually(lambda x: c(x) and once(b, within=5))", "a b1 c{}", "T T -"),
    ],
)
def test_an_event_at_the_deadline_counts(text: str, trace: str, expected: str) -> None:
    first = [4, 5, 6] if "b1" not in trace else [5, 6, 7]
    found = [verdicts(rule_of(text), letters(trace.format(time)))[0] for time in first]
    assert found == told(expected)


@pytest.mark.parametrize(
    ("text", "trace", "expected"),
    [
        ("once(b, within=5)", "b a{}", "T T F"),
        ("once(b, after=5)", "b a{}", "F T T"),
        ("historically(a, within=5)", "b a{}", "F F T"),
        ("historically(a, within=9, after=5)", "b a{}", "T F F"),
        ("since(a, b, within=5)", "b a1 a{}", "T T F"),
        ("since(a, b, within=9, after=5)", "b a1 a{}", "F T T"),
    ],
)
def test_an_event_at_the_edge_of_the_past_counts(text: str, trace: str, expected: str) -> None:
    found = [verdicts(rule_of(text), letters(trace.format(time)))[-1] for time in (4, 5, 6)]
    assert found == told(expected)


def test_events_of_one_time_are_in_their_order() -> None:
    trace = letters("a5 b5 c5 c6")
    assert verdicts(rule_of("once(b, within=0)"), trace) == told("F T T F")
    assert verdicts(rule_of("eventually(b, within=0)"), trace) == told("T T F F")
    assert verdicts(rule_of("until(a, b, within=0)"), trace) == told("T T F F")
    assert verdicts(rule_of("eventually(b, after=1, within=9)"), trace) == told("F F F F")
    assert verdicts(rule_of("next_event(c)"), trace) == told("F T T -")


@pytest.mark.parametrize("at_end", ["open", "closed"])
def test_of_an_empty_trace_nothing_is_told(at_end: str) -> None:
    rule = rule_of("always(a)")
    assert verdicts(rule, [], at_end=at_end) == anchored(rule, [], at_end=at_end) == []


def test_both_outcomes_are_tried_of_what_is_unknown() -> None:
    trace = letters("a")
    for text in (
        "eventually(b) or not eventually(b)",
        "(1 if always(a) else 2) < 3",
        "eventually(lambda x: b(x)) == eventually(lambda y: b(y))",
        "eventually(lambda x: always(a) or not always(a))",
        "all(next_event(lambda x: n) or not next_event(lambda x: n) for n in (True, False))",
    ):
        assert verdicts(rule_of(text), trace) == [True], text
    for text in ("eventually(b) == eventually(c)", "1 if always(a) else 0", "next_event(b, 2)"):
        assert verdicts(rule_of(text), trace) == [None], text


def test_anchored_speaks_of_the_first_event_until_it_is_told() -> None:
    assert anchored(rule_of("implies(a(e), eventually(b))"), letters("a c c b c")) == told("---TT")
    assert anchored(rule_of("always(a)"), letters("a a b a")) == told("--FF")
    assert anchored(rule_of("once(a)"), letters("b a")) == told("FF")
    assert anchored(rule_of("next_event(b, 2)"), letters("a a b")) == told("--T")
    bounded = rule_of("eventually(b, within=5)")
    assert anchored(bounded, letters("a c5 b5")) == told("--T")
    assert anchored(bounded, letters("a c5 c6 b6")) == told("--FF")
    assert anchored(bounded, letters("a c5"), at_end="open") == told("--F")
    assert anchored(rule_of("always(a)"), letters("a a"), at_end="open") == told("---")
    assert anchored(rule_of("always(a)"), letters("a a"), at_end="closed") == told("--T")


def test_a_verdict_is_settled_when_every_continuation_agrees() -> None:
    alphabet = [Letter(what, gap) for what in "abc" for gap in (0, 1)]

    def settled(text: str, trace: str, position: int = 0) -> tuple[int, bool | None] | None:
        return settled_at(rule_of(text), letters(trace), position, alphabet, 3)

    assert settled("implies(a(e), eventually(b))", "a c c b c") == (3, True)
    assert settled("implies(a(e), eventually(b))", "a c c b c", 1) == (1, True)
    assert settled("eventually(b)", "a c c") is None
    assert settled("always(a)", "a a c") == (2, False)
    assert settled("always(lambda x: next_event(a))", "a a") is None
    assert settled("always(lambda x: once(b))", "b a a") == (0, True)
    assert settled("next_event(b, 2)", "a b c") == (2, False)
    assert settled("eventually(b, within=2)", "a c2 c3") == (2, False)
    assert settled("eventually(b, within=2)", "a c2 b2") == (2, True)
    assert settled("until(a, b)", "a a c") == (2, False)
    assert settled("unless(a, b, within=1)", "a a1 a2") == (2, True)
    assert settled("eventually(b) or not eventually(b)", "a c") == (0, True)


class Payment(NamedTuple):
    time: int
    what: str
    payment: str
    by: str
    amount: float


def test_what_is_captured_has_its_value_at_the_outer_event() -> None:
    four_eyes = rule_of(
        """
def rule(e):
    return implies(
        e.what == "release" and e.amount > 10_000,
        once(
            lambda before: before.what == "approve"
            and before.payment == e.payment
            and before.by != e.by,
            within=7,
        ),
    )
"""
    )
    payments = [
        Payment(0, "approve", "one", "ann", 0),
        Payment(1, "approve", "two", "bob", 0),
        Payment(2, "release", "one", "ann", 20_000),  # her own approval
        Payment(3, "release", "two", "ann", 20_000),
        Payment(4, "release", "six", "ann", 10_000),  # not above the amount
        Payment(7, "release", "one", "bob", 20_000),  # on the seventh day
        Payment(8, "release", "one", "bob", 20_000),
    ]
    assert verdicts(four_eyes, payments) == told("T T F T T T F")


def test_functions_nested_three_deep_see_all_events_around_them() -> None:
    # After this one, x of its k grows, and before that it was at least once as it is here.
    rule = rule_of(
        """
def rule(e):
    return eventually(
        lambda b: b.k == e.k
        and b.x > e.x
        and once(lambda c: c.k == b.k and c.x == e.x and c.time < b.time, within=2)
    )
"""
    )
    trace = [
        Event(time, True, True, x, k) for time, x, k in [(0, 1, 0), (1, 1, 1), (2, 2, 0), (5, 2, 1)]
    ]
    assert verdicts(rule, trace, at_end="closed") == told("T F F F")
    assert verdicts(rule, trace, at_end="open") == told("T - - -")
    within = rule_of(
        "until(lambda b: b.k != e.k or b.x == e.x, lambda b: b.k == e.k and b.x > e.x)"
    )
    assert verdicts(within, trace) == told("T T - -")


def test_quantifiers_are_those_of_python() -> None:
    trace = [Event(time, False, False, x, 0) for time, x in enumerate([2, 0, 1, 3])]
    rule = rule_of("all(eventually(lambda b: b.x == n) for n in range(e.x))")
    assert verdicts(rule, trace) == told("T T - -")
    assert verdicts(rule, trace, at_end="closed") == told("T T F F")
    assert verdicts(rule_of("any(once(lambda b: b.x == n) for n in range(e.x))"), trace) == told(
        "F F T T"
    )


def test_each_key_is_a_trace_of_its_own() -> None:
    trace = [
        Event(time, p, False, 0, k) for time, p, k in [(0, True, 0), (1, False, 1), (2, False, 0)]
    ]
    assert verdicts(rule_of("previous_event(lambda b: b.p)"), trace, key="k") == told("F F T")
    assert verdicts(rule_of("next_event(lambda b: b.p)"), trace, key="k") == told("F - -")
    assert verdicts(rule_of("next_event(lambda b: b.p)"), trace, key=("k", "p")) == told("- - -")


def test_the_operators_of_a_module_are_replaced_while_its_rule_is_read() -> None:
    wrong = {"once": lambda f: pytest.fail("the other operator was called")}
    rule = rule_of("once(a)", **wrong)
    assert verdicts(rule, letters("b a b"), operators=NAMES) == told("F T T")
    with pytest.raises(pytest.fail.Exception):
        verdicts(rule, letters("a"))


def random_cases(count: int, **options: Any) -> list[tuple[str, Rule, list[Event]]]:
    cases = []
    for seed in range(count):
        random = Random(seed)
        text = random_rule(random, 1 + seed % 4, captured=seed % 2 == 1, **options)
        cases.append((text, rule_of(text), random_trace(random, random.randrange(12))))
    return cases


def test_nothing_that_is_told_is_taken_back() -> None:
    for text, rule, trace in random_cases(80):
        opened = verdicts(rule, trace)
        later = [Event(trace[-1].time + 10**6 if trace else 0, *rest) for rest in REST]
        for more in ([], *([event] for event in later), later):
            closed = verdicts(rule, [*trace, *more], at_end="closed")
            assert all(x in (None, y) for x, y in zip(opened, closed, strict=False)), text
        for j, first in enumerate(anchored(rule, trace)):
            for last in range(j, len(trace)):
                now = verdicts(rule, trace[: last + 1], at_end="closed")[0]
                assert first in (None, now), text


def test_without_the_future_everything_is_told() -> None:
    for text, rule, trace in random_cases(40, kinds=PAST):
        assert None not in verdicts(rule, trace), text
        if trace:
            assert settled_at(rule, trace, 0, [trace[0]], 2) == (0, verdicts(rule, trace)[0])


def test_the_operators_obey_the_laws_that_join_them() -> None:
    laws = [(law, end) for law in LAWS for end in ("open", "closed")]
    laws += [(law, "closed") for law in LAWS_OF_CLOSED]
    for (_, f, trace), (_, g, _) in itertools.pairwise(random_cases(60)):
        for (law, end), bounds in itertools.product(laws, ("", "within=3")):
            one, other = (rule_of(side.replace(", w", f", {bounds}"), f=f, g=g) for side in law)
            assert verdicts(one, trace, at_end=end) == verdicts(other, trace, at_end=end), law


def test_random_rules_have_every_form() -> None:
    texts = [text for text, _, _ in random_cases(1500)]
    forms = (
        "not (",
        " and ",
        " or ",
        "implies(",
        " if ",
        ") == (",
        "partial(",
        "least=",
        "(f0)",
        "f0(e)",
    )
    captured = (
        ".k == e.k and ",
        ".x - e.x",
        "for n0 in (1, 2)",
        "for n0 in range(e.x)",
        "range(n0)",
    )
    bounds = ("within=", "after=", "n=3", ", 2)")
    for form in (*OPERATORS, *forms, *captured, *bounds):
        assert any(form in text for text in texts), form
    flat = [
        text for text, _, _ in random_cases(60, kinds=("once", "until"), bounds=False, nested=False)
    ]
    assert not any(name in text for text in flat for name in ("within", *FUTURE) if name != "until")

"""Properties are Python: ``and`` and ``or`` give values and guard, and a truth is a value."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from collections.abc import Callable
from typing import Any

import pytest

import specstream as ss


class Small(ss.State):
    n = ss.scalar(int)
    b = ss.scalar(bool)
    a = ss.array(int, 2)
    q = ss.deque(int, maxlen=2)
    d = ss.dict(int, int)


@ss.operator(state=Small, event={"x": int}, emits={"n": int})
def small(state, event, emit):
    state.n = event.x
    state.b = event.x == 1
    state.a[1] = event.x
    if len(state.q) == 0:
        state.q.append(3)
    state.d[event.x] = 1
    emit(event.x)


def fits(event):
    return 0 <= event.x <= 2


LIMITS: dict[str, Any] = {"assume": fits, "events": 2, "effort": 0.5, "time": 20}
STREAMS = [[], [0], [1], [2], [0, 1], [1, 2], [2, 0], [2, 2]]


def value_of_or(state):
    return (state.n or 5) != 5


def value_of_and(state):
    return state.b != (state.n > 1 and state.n > 0)


def either_kind(state):
    return (state.n or state.b) != 2


def any_and_all(state):
    return any(v == 1 for v in state.a) != all(v == 0 for v in state.a)


def truth_of_or(state):
    return (state.n > 1 or state.n < 1) == (state.n != 1)


def number_of_or(state):
    return int(state.n > 1 or state.n < 0) != 2


def guarded_key(state):
    return 0 not in state.d or state.d[0] >= 0


def guarded_by_if(state):
    return state.d[0] >= 0 if 0 in state.d else True


def guarded_first(state):
    return not state.q or state.q[0] == 3


def guarded_division(state):
    return state.n == 0 or 6 // state.n >= 3


def of_a_power(state):
    return state.n**2 < 10


def of_all_in_a_statement(state):
    if all(v == 0 for v in state.a):
        return state.n == 0
    return True


PROPERTIES = [
    *(value_of_or, value_of_and, either_kind, any_and_all, truth_of_or, number_of_or),
    *(guarded_key, guarded_by_if, guarded_first, guarded_division, of_a_power),
    of_all_in_a_statement,
]


def holds(of: Callable[[Any], bool]) -> bool:
    """By trying it: of plain Python values of the state."""
    for stream in STREAMS:
        view = small.run_sequential({"x": stream}).state
        state = type("state", (), {})()
        state.n, state.b, state.a = view.n, view.b, view.a.tolist()
        state.q, state.d = list(view.q), view.d.copy()
        if not of(state):
            return False
    return True


@pytest.mark.parametrize("of", PROPERTIES)
def test_what_is_said_is_what_python_says(of: Callable[[Any], bool]) -> None:
    found = ss.verify.check(small, always=of, **LIMITS).verdicts[0]
    if holds(of):
        assert found.said in ("proved", "holds", "undecided"), found
    else:
        assert found.said in ("refuted", "undecided"), found
    expected = {value_of_or: "refuted", guarded_key: "proved", guarded_division: "proved"}
    assert found.said == expected.get(of, found.said), found


def test_most_of_them_are_decided() -> None:
    report = ss.verify.check(small, always=PROPERTIES[:10], **LIMITS)
    assert sum(one.said in ("proved", "refuted") for one in report.verdicts) >= 8, str(report)


def at_most(bound: int) -> Callable[[Any], bool]:
    def bounded(state):
        return state.n <= bound

    return bounded


def test_properties_of_one_name_have_a_verdict_each() -> None:
    report = ss.verify.check(small, always=[at_most(1), at_most(2)], assume=fits)
    said = [(one.name, one.said) for one in report.verdicts]
    assert said == [("bounded", "refuted"), ("bounded (2)", "proved")]


class Names(ss.State):
    seen = ss.set(int)


@ss.operator(state=Names, event={"x": int}, emits={"n": int})
def names(state, event, emit):
    state.seen.add(event.x)
    emit(len(state.seen))


def test_how_many_a_set_has() -> None:
    def grows(rows):
        return rows[0].n >= 1

    report = ss.verify.check(names, each=grows, events=2, effort=0.5)
    assert report.verdicts[0].said in ("proved", "holds")


def test_times_and_numbers_of_events_in_questions() -> None:
    def early(event):
        return event.sequence < 1 and event.timestamp >= 0

    found = ss.verify.check(small, each=early, assume=fits, events=2).verdicts[0]
    assert (found.said, found.events) in [("refuted", 2), ("undecided", 1), ("undecided", 0)]

    def answers(event):
        return (event.x == 1 or event.x == 2) != (event.x == 5)

    asked = ss.verify.within(2, None, answers)
    assert ss.verify.check(small, within=asked, assume=fits).verdicts[0].said == "refuted"


def test_what_properties_do_not_have_is_refused_by_name() -> None:
    def with_default(state):
        return max(state.q, default=0) < 4

    with pytest.raises(ss.ConfigurationError, match="max with default="):
        ss.verify.check(small, always=with_default)

    def first(state):
        return state.q[0]

    with pytest.raises(ss.ConfigurationError, match="raises IndexError"):
        ss.verify.smallest(small, first)


class Lately(ss.State):
    d = ss.dict(int, int, expire_after=2)


@ss.operator(state=Lately, event={"k": int}, emits={"n": int})
def lately(state, event, emit):
    state.d[event.k] = 1
    emit(len(state.d))


def test_how_many_have_expired_is_not_known_and_no_defect() -> None:
    def one_row(rows):
        return rows[0].n <= 1

    report = ss.verify.check(lately, each=one_row, events=2, effort=0.5)
    assert "please report" not in str(report), str(report)
    assert report.said in ("refuted", "undecided")


def test_types_in_a_property_say_nothing_about_values() -> None:
    def at_most(state: Small, bound: "int | None" = 3) -> Any:
        return state.n <= (bound or 0)

    def small_numbers(state: Small) -> bool:
        n: int = state.n
        _count: Callable[..., Any]
        return at_most(state) and n < 4

    report = ss.verify.check(small, always=small_numbers, **LIMITS)
    assert [one.said for one in report.verdicts if one.name == "small_numbers"] == ["proved"]

    def stores(state: Small) -> bool:
        state.n: int = 1  # type: ignore[misc]
        return True

    with pytest.raises(ss.ConfigurationError, match="stores something"):
        ss.verify.check(small, always=stores, **LIMITS)

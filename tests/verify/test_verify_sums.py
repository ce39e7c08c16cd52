"""What a dict keeps count of, times that are equal, and what holds only from a later event on."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import pytest

import specstream as ss
from specstream.verify import solvers


class Stock(ss.State):
    held = ss.dict(int, int, limit=2)


@ss.operator(state=Stock, event={"item": int, "count": int}, emits={})
def stock(state, event, emit):
    if event.count == 0:
        if event.item in state.held:
            del state.held[event.item]
    elif 0 < event.count < 10:
        state.held[event.item] = event.count


def at_most_18(state):
    return sum(state.held.values()) <= 18


def empty_or_more(state):
    return (len(state.held) == 0) == (sum(state.held.values()) == 0)


def gone(event, after):
    return event.count != 0 or event.item not in after.held


def test_sums_counts_and_keys_follow_what_is_deleted() -> None:
    report = ss.verify.check(stock, always=[at_most_18, empty_or_more], each=gone, events=3)
    assert [one.said for one in report.verdicts] == ["holds", "holds", "proved"], str(report)


def test_a_full_dict_is_found_at_its_third_entry() -> None:
    (found,) = ss.verify.check(stock, events=3).findings
    assert (found.what, len(found.table)) == ("raises OverflowError", 3)


class Last(ss.State):
    at = ss.scalar(int)
    same = ss.scalar(bool)
    first = ss.scalar(int, fill=5)


@ss.operator(state=Last, event={"x": int}, emits={})
def times(state, event, emit):
    state.same = state.at == event.timestamp
    state.at = event.timestamp
    state.first = 0


def no_two_of_one_time(state):
    return not state.same


def test_two_events_may_be_of_one_time() -> None:
    def later(event):
        return event.timestamp > 0

    found = ss.verify.check(times, always=no_two_of_one_time, assume=later).verdicts[0]
    assert (found.said, found.events) == ("refuted", 2)
    assert found.table is not None
    assert found.table.values[0]["time"] == found.table.values[1]["time"]


def test_what_does_not_hold_at_first_is_not_proved() -> None:
    def is_zero(state):
        return state.first == 0

    found = ss.verify.check(times, always=is_zero, events=0).verdicts[0]
    assert (found.said, found.events) == ("refuted", 0)


def test_a_helper_that_does_not_hold_at_first_helps_nothing() -> None:
    class Counting(ss.State):
        above = ss.scalar(int, fill=5)
        count = ss.scalar(int)

    @ss.operator(state=Counting, event={"x": int}, emits={})
    def counts(state, event, emit):
        if state.above > 2:
            state.count += 1

    def few(state):
        return 0 <= state.count < 20

    found = ss.verify.check(counts, always=few).verdicts[0]
    assert (found.said, found.events) == ("holds", 8)


def test_what_one_solver_finds_alone_is_not_confirmed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other one is made to find nothing."""
    monkeypatch.setattr(solvers, "_bitwuzla", lambda *given: False)

    def is_less(state):
        return state.first <= 5

    assert ss.verify.check(times, always=is_less).said == "proved"
    report = ss.verify.check(times, always=is_less, confirm=True)
    assert report.said == "holds"
    assert not report.confirmed


class Highest(ss.State):
    value = ss.scalar(int)


@ss.operator(state=Highest, event={"x": int, "y": int | None}, emits={})
def highest(state, event, emit):
    if event.y is None:
        state.value = max(state.value, event.x)


def test_a_null_is_none_in_a_property() -> None:
    def fits(event):
        return 0 <= event.x <= 2 and (event.y is None or event.y == 1)

    def is_zero(state):
        return state.value == 0

    def is_small(event):
        return event.y < 1  # raises where it is null: no such event fits

    found = ss.verify.check(highest, always=is_zero, assume=fits).verdicts[0]
    assert (found.said, found.events) == ("refuted", 1)
    assert found.table is not None
    assert found.table.values[0]["y"] is None
    assert ss.verify.smallest(highest, highest_value, assume=fits).verdicts[0].bound == 2
    assert ss.verify.check(highest, always=is_zero, assume=is_small).said == "proved"


def highest_value(state):
    return state.value


class Seen(ss.Record):
    count: int = 0


class Several(ss.State):
    names = ss.set(str, limit=2)
    lately = ss.dict(str, int, expire_after=2)
    seen = ss.dict(str, Seen)
    most = ss.scalar(int)


@ss.operator(state=Several, event={"name": str}, emits={"most": int})
def several(state, event, emit):
    state.names.add(event.name)
    state.lately[event.name] = 1
    one = state.seen.setdefault(event.name, Seen())
    if one.count < 3:
        one.count += 1
    state.most = max(state.most, one.count)
    emit(state.most)


def most(state):
    return state.most


def most_of_vertex(state):
    return state.several.most


def test_sets_and_records_of_a_pipeline_and_what_expires() -> None:
    p = ss.Pipeline("p")
    p.sink("out", p.add(several, p.source("in", {"name": str})))
    for operator, size in ((several, most), (p, most_of_vertex)):
        found = ss.verify.smallest(operator, size, events=4).verdicts[0]
        assert (found.said, found.bound) == ("proved", 3), found

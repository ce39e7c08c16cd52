"""Pipelines over unknown values: each path of a phase is run, and properties are about vertices."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import pytest

import specstream as ss

X = {"value": int}


class Total(ss.State):
    sum = ss.scalar(int)
    seen = ss.scalar(int)


@ss.operator(state=Total, event=X, emits={"sum": int, "is_odd": bool})
def totals(state, event, emit):
    if 0 <= event.value < 10 and state.seen < 1000:
        state.sum += event.value
        state.seen += 1
        emit(state.sum, state.sum % 2 == 1)


@ss.operator(event={"sum": int, "is_odd": bool}, emits={"half": int})
def halves(event, emit):
    if not event.is_odd:
        emit(event.sum // 2)


def two_vertices() -> ss.Pipeline:
    p = ss.Pipeline("two")
    sums = p.add(totals, p.source("x", X))
    p.sink("halves", p.add(halves, sums))
    return p


def small(state):
    return 0 <= state.totals.sum <= 9 * state.totals.seen <= 9000


def never_negative(rows):
    return all(row.half >= 0 for row in rows)


def test_a_property_of_a_vertex_is_proved_and_one_that_fails_is_refuted() -> None:
    report = ss.verify.check(two_vertices(), always=small)
    assert report.said == "proved", str(report)
    assert report.validated == report.paths - 1 > 3, str(report)  # one takes 1000 events

    def tiny(state):
        return state.totals.sum < 15

    found = ss.verify.check(two_vertices(), always=tiny).verdicts[0]
    assert (found.said, found.events) == ("refuted", 2)
    assert sum(one["value"] for one in found.table.values) >= 15


def test_a_field_that_a_vertex_does_not_have_is_refused_by_name() -> None:
    def wrong(state):
        return state.totals.count == 0

    with pytest.raises(ss.ConfigurationError, match=r"'totals' has no field 'count'.*sum, seen"):
        ss.verify.check(two_vertices(), always=wrong)


class Sides(ss.State):
    last = ss.scalar(int)


@ss.operator(
    state=Sides,
    inputs={"left": {"a": int}, "right": {"b": int}},
    emits={"a": int, "b": int | None},
)
def both(state, event, emit):
    if event.changed("left"):
        state.last = event.left.a
    emit(state.last, event.right.b if event.known("right") else None)


def two_sources() -> ss.Pipeline:
    p = ss.Pipeline("sides")
    left, right = p.source("left", {"a": int}), p.source("right", {"b": int})
    pairs = p.add(both, left=left, right=right)
    p.sink("pairs", pairs)
    p.sink("raw", right)
    return p


def test_several_sources_and_sinks_do_what_the_model_says() -> None:
    report = ss.verify.check(two_sources())
    assert report.validated == report.paths >= 3, str(report)
    assert not report.undecided

    def never_five(state):
        return state.both.last != 5

    found = ss.verify.check(two_sources(), always=never_five).verdicts[0]
    assert (found.said, found.events) == ("refuted", 1)
    assert found.table.values == [{"stream": "left", "left.a": 5, "right.b": None}]


def of_verbs() -> ss.Pipeline:
    p = ss.Pipeline("figure_1")
    x = p.source("x", X)
    p.sink("out", x.zip(x.every(2)).map(lambda a, b: a.value + b.value, sum=int))
    return p


def test_verbs_are_pipelines_as_well() -> None:
    report = ss.verify.check(of_verbs(), rounds=2)
    assert not report.undecided, str(report)
    assert report.validated > 1
    assert any(one.what == "wraps +" for one in report.findings)


def test_what_a_vertex_raises_is_found_with_its_line() -> None:
    @ss.operator(event={"sum": int, "is_odd": bool}, emits={"share": int})
    def shares(event, emit):
        emit(100 // event.sum)

    p = ss.Pipeline("shares")
    p.sink("out", p.add(shares, p.add(totals, p.source("x", X))))
    report = ss.verify.check(p)
    (found,) = [one for one in report.findings if one.what == "raises ZeroDivisionError"]
    assert [one["value"] for one in found.table.values] == [0]


RATES = {"AAPL": 3, "MSFT": 5}
KINDS = {"AAPL", "SAP"}


@ss.operator(event={"ticker": str, "n": int}, emits={"fee": int, "told": str})
def fees(event, emit):
    """Dicts and sets of a module and of the event's own, asked for by what is not known."""
    seen = {event.n: 1}
    seen[3] = seen.get(3, 0) + 1
    if event.ticker in KINDS:
        emit(RATES.get(event.ticker, 1) * seen[event.n], f"{event.ticker} {len(seen)}")


class Recent(ss.State):
    seen = ss.array(int, 4)


@ss.operator(state=Recent, event={"at": int}, emits={})
def counts_at(state, event, emit):
    state.seen[event.at % 4] += 1
    if state.seen[event.at % 4] == 3:
        state.seen[event.at % 4] = 0


def test_keys_that_are_not_known_and_elements_of_shorter_streams() -> None:
    def at_most_6(rows):
        return all(row.fee in (1, 2, 3, 6) for row in rows)

    report = ss.verify.check(fees, each=at_most_6)
    assert report.said == "proved", str(report)
    assert report.validated == report.paths, str(report)

    report = ss.verify.check(counts_at)
    assert not report.undecided, str(report)
    assert report.validated == report.paths

"""``ss.verify``: what is found, proved and refuted, and which questions are wrong."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import re
import subprocess
import sys
from pathlib import Path

import pytest

import specstream as ss
from examples.verify import average, bank_before
from specstream.compiler.language.definitions import keep_text
from specstream.operators.business import bank_transfers, token_bucket
from specstream.verify.properties import PropertyError


def verdicts(report):
    return {one.name: one.said for one in report.verdicts}


def test_findings_of_the_bank_before():
    report = ss.verify.check(bank_before.transfers)
    found = [(one.what, one.table.values) for one in report.findings]
    least = {"payer": 0, "payee": 0, "amount": -9223372036854775708}
    assert ("wraps -", [least]) in found
    assert ("raises IndexError", [{"payer": 10000, "payee": 0, "amount": 0}]) in found
    assert report.validated == report.paths
    assert report.exit_status() == 0


def test_the_bank_before_is_refuted_in_one_event_and_proved_of_positive_amounts():
    asked = [bank_before.solvent, bank_before.conserved]
    report = ss.verify.check(bank_before.transfers, always=asked)
    assert verdicts(report) == {"solvent": "refuted", "conserved": "refuted"}
    for one in report.verdicts:
        assert one.table is not None
        assert len(one.table) == 1
    with pytest.raises(ss.verify.Refuted, match=r"refuted +solvent"):
        report.raise_unless()
    report = ss.verify.check(bank_before.transfers, always=asked, assume=bank_before.positive)
    report.raise_unless("proved")


@pytest.mark.slow
def test_bank_transfers_is_solvent_and_keeps_the_money():
    def solvent(state):
        return all(balance >= 0 for balance in state.balances.values())

    report = ss.verify.check(bank_transfers(), always=solvent)
    report.raise_unless("proved")
    # All but the two on which the dict is full: no stream of a few events gets there.
    assert (report.validated, report.paths) == (11, 13)


def test_the_bank_of_the_readme_is_clean():
    """Its raises are meant; nothing wraps, and no money is made or lost."""
    text = Path("README.md").read_text()
    found = re.search(r"```python\n(.*?)table = ", text, re.DOTALL)
    assert found is not None
    keep_text("<readme>", found[1])
    names = {"__name__": "readme"}
    exec(compile(found[1], "<readme>", "exec"), names)
    transfers: ss.Operator = names["transfers"]  # type: ignore[assignment]
    report = ss.verify.check(transfers, always=[bank_before.solvent, bank_before.conserved])
    report.raise_unless("proved")
    report = ss.verify.check(transfers)
    assert {one.what for one in report.findings} == {"raises ValueError", "raises IndexError"}


@pytest.mark.slow
def test_the_level_of_a_token_bucket():
    """The helper is found: the time in a bucket is that of its last write."""

    def level(state):
        return all(0 <= bucket.level <= 40 for bucket in state.buckets.values())

    report = ss.verify.check(token_bucket(10, 1, 4), always=level)
    report.raise_unless("proved")
    assert "buckets.at is the time of the last write" in report.verdicts[0].helpers


class Counter(ss.State):
    x = ss.scalar(int, fill=1)


@ss.operator(state=Counter, event={"up": bool}, emits={"x": int})
def by_two(state, event, emit):
    if event.up and state.x < 1000:
        state.x += 2
    emit(state.x)


def not_four(state):
    return state.x != 4


def odd(state):
    return state.x % 2 == 1


def test_a_failing_step_is_no_counterexample():
    report = ss.verify.check(by_two, always=not_four)
    assert verdicts(report) == {"not_four": "holds"}
    assert "may be unreachable" in report.verdicts[0].reason
    assert report.exit_status("proved") == 3
    report = ss.verify.check(by_two, always=[not_four, odd])
    assert verdicts(report) == {"not_four": "proved", "odd": "proved"}


def test_an_initial_state_that_breaks_it_is_refuted_by_an_empty_table():
    def even(state):
        return state.x % 2 == 0

    report = ss.verify.check(by_two, always=even)
    (one,) = report.verdicts
    assert one.table is not None
    assert (one.said, one.events, len(one.table)) == ("refuted", 0, 0)


def test_the_shortest_stream_is_found():
    def small(state):
        return state.x < 6

    report = ss.verify.check(by_two, always=small)
    (one,) = report.verdicts
    assert one.said == "refuted"
    assert one.table is not None
    assert one.table.values == [{"up": True}] * 3


def test_properties_of_each_event():
    def told(before, event, rows, after):
        return len(rows) == 1 and rows[0].x == after.x and after.x >= before.x

    def silent(rows):
        return len(rows) == 0

    report = ss.verify.check(by_two, each=[told, silent], always=odd)
    assert verdicts(report) == {"told": "proved", "silent": "refuted", "odd": "proved"}


def test_strings_in_properties():
    class Last(ss.State):
        kind = ss.scalar(str)
        seen = ss.dict(str, int)

    @ss.operator(state=Last, event={"kind": str}, emits={"kind": str})
    def last(state, event, emit):
        if event.kind == "open" or event.kind == "closed":
            state.kind = event.kind
            state.seen[event.kind] = 1
            emit(event.kind)

    def one_of_three(state):
        return state.kind in ("", "open", "closed")

    def never_closed(state):
        return state.kind != "closed"

    def not_seen(state):
        return "open" not in state.seen

    def told(event, rows):
        return len(rows) == 0 or rows[0].kind == event.kind

    report = ss.verify.check(last, always=[one_of_three, never_closed, not_seen], each=told)
    assert [one.said for one in report.verdicts] == ["proved", "refuted", "refuted", "proved"]
    assert report.verdicts[1].table is not None
    assert report.verdicts[1].table.values == [{"kind": "closed"}]


@pytest.mark.slow
def test_window_sums_two_ways():
    report = ss.verify.same(average.old, average.new)
    assert report.said == "proved"
    assert "total is sum(values)" in report.verdicts[0].helpers
    report = ss.verify.same(average.old, average.wrong)
    assert report.said == "refuted"
    assert report.verdicts[0].events == 4


def test_an_event_that_raises_changes_nothing():
    class Two(ss.State):
        a = ss.scalar(int)
        b = ss.scalar(int)

    @ss.operator(state=Two, event={"x": int}, emits={})
    def both(state, event, emit):
        state.a = event.x
        if event.x < 0:
            raise ValueError("negative")
        state.b = event.x

    def equal(state):
        return state.a == state.b

    assert ss.verify.check(both, always=equal).said == "proved"


def test_what_has_no_meaning_is_undecided_with_its_line():
    class Timed(ss.State):
        timers = ss.timers(int)

    def fired(state, timer, emit):
        emit(timer.key)

    @ss.operator(state=Timed, event={"x": int}, emits={"x": int}, on_timer=fired)
    def late(state, event, emit):
        state.timers.set(event.x, event.timestamp + 5)

    report = ss.verify.check(late, each=lambda rows: len(rows) == 0)
    assert report.said == "undecided"
    assert "timers" in report.verdicts[0].reason


def test_phases_of_one_time_are_undecided():
    p = ss.Pipeline("p", phases="time")
    left, right = p.source("left", {"up": bool}), p.source("right", {"up": bool})
    p.sink("rows", p.add(by_two, left))
    p.sink("others", right)
    report = ss.verify.check(p, each=lambda rows: len(rows) == 1)
    assert report.said == "undecided"
    assert "events of one time" in report.verdicts[0].reason


def test_a_loop_that_is_cut_is_undecided_and_names_the_line():
    class Total(ss.State):
        total = ss.scalar(int)

    @ss.operator(state=Total, event={"n": int}, emits={})
    def counts(state, event, emit):
        for _ in range(event.n):
            state.total += 1
        if state.total > 100:
            state.total = 0

    def small(state):
        return state.total >= 0

    report = ss.verify.check(counts, always=small, rounds=3)
    (one,) = report.verdicts
    assert one.said == "undecided"
    assert "a loop was left after rounds= turns" in one.reason
    assert f"line {counts.function.__code__.co_firstlineno + 2}" in one.reason


def test_wrong_questions_have_their_line():
    def stores(state):
        state.x = 3
        return True

    def no_field(state):
        return state.y > 0

    def no_bool(state):
        return state.x

    def no_name(state):
        return state.x > limit  # type: ignore[name-defined]  # noqa: F821 - the mistake

    def no_parameter(event):
        return event.up

    for function, line, message in (
        (stores, 1, "stores something; a property changes nothing"),
        (no_field, 1, "the state has no field 'y'; it has x"),
        (no_bool, 0, "it returns no bool"),
        (no_name, 1, "there is no name 'limit'"),
        (no_parameter, 0, r"takes \(event\); always= takes any of \(state\)"),
    ):
        with pytest.raises(PropertyError, match=message) as raised:
            ss.verify.check(by_two, always=function)
        assert f":{function.__code__.co_firstlineno + line}:" in str(raised.value)


def test_assumptions_that_no_event_fits_are_refused():
    def never(event):
        return event.up and not event.up

    with pytest.raises(PropertyError, match="assume=never: no event fits it"):
        ss.verify.check(by_two, always=odd, assume=never)


def test_interpreted_operators_are_undecided():
    @ss.operator(state=Counter, event={"up": bool}, emits={}, interpreted=True)
    def any_python(state, event, emit):
        state.x += 2

    report = ss.verify.check(any_python, always=odd)
    assert report.said == "undecided"
    assert "is interpreted" in report.verdicts[0].reason


def test_import_loads_no_solver_and_names_the_extra():
    code = (
        "import sys, specstream\n"
        "assert not {'z3', 'bitwuzla'} & set(sys.modules)\n"
        "sys.modules['z3'] = None\n"
        "try:\n    specstream.verify.check\n"
        "except ImportError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert 'specstream.verify needs z3: pip install "specstream[verify]"' in done.stdout

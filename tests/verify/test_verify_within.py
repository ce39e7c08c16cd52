"""Deadlines, the least bound of a number, and a stream through all paths."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import itertools

import pytest

import specstream as ss


class Alarm(ss.State):
    left = ss.scalar(int)
    armed = ss.scalar(bool)


@ss.operator(state=Alarm, event={"press": bool}, emits={"rang": bool})
def alarm(state, event, emit):
    """Rings two events after the one that is pressed while it is not armed."""
    if state.armed:
        state.left -= 1
        if state.left == 0:
            state.armed = False
            emit(True)
    elif event.press:
        state.armed = True
        state.left = 2


def pressed(before, event):
    return event.press and not before.armed


def rings(rows):
    return len(rows) > 0


def events_until_it_rings(most: int) -> int:
    """By trying all streams: the longest wait, the pressing event among it."""
    longest = 0
    for stream in itertools.product((False, True), repeat=most):
        run = alarm.run_sequential({"press": list(stream)}, keys=True)
        rung = set(run.output["sequence"].to_pylist())
        waiting = 0
        armed = False
        for at, press in enumerate(stream):
            if at in rung:
                waiting, armed = 0, False
            elif armed:
                waiting += 1
            elif press:
                waiting, armed = 1, True
            longest = max(longest, waiting)
    return longest + 1


def test_a_deadline_is_proved_at_the_least_number_and_refuted_below() -> None:
    least = events_until_it_rings(6)
    assert least == 3
    for events in range(1, 6):
        asked = ss.verify.within(events, pressed, rings)
        found = ss.verify.check(alarm, within=asked).verdicts[0]
        if events >= least:
            assert found.said == "proved", (events, found)
        else:
            assert (found.said, found.events) == ("refuted", events), found
            assert found.table.values[0] == {"press": True}


def test_without_a_trigger_an_operator_is_never_silent_for_so_long() -> None:
    found = ss.verify.check(alarm, within=ss.verify.within(4)).verdicts[0]
    assert (found.said, found.events) == ("refuted", 4)
    assert found.name == "a row within 4 events"


def test_a_trigger_that_never_comes_is_an_error() -> None:
    def impossible(before, after):
        return before.armed and after.left == before.left + 1

    with pytest.raises(ss.ConfigurationError, match="no event asks for an answer"):
        ss.verify.check(alarm, within=ss.verify.within(3, impossible, rings))
    with pytest.raises(ss.ConfigurationError, match=r"within=3; expected what"):
        ss.verify.check(alarm, within=3)
    with pytest.raises(ss.ConfigurationError, match="events"):
        ss.verify.within(0)


class Queue(ss.State):
    waiting = ss.deque(int)
    short = ss.deque(int, maxlen=3)


@ss.operator(state=Queue, event={"x": int, "stop": bool}, emits={"x": int})
def queue(state, event, emit):
    if event.stop and len(state.waiting) > 0:
        emit(state.waiting.popleft())
    else:
        state.waiting.append(event.x)
        state.short.append(event.x)


def test_the_least_bound_and_a_stream_along_which_a_queue_grows() -> None:
    def kept(state):
        return len(state.short)

    def waits(state):
        return len(state.waiting)

    found = ss.verify.smallest(queue, kept).verdicts[0]
    assert (found.said, found.bound) == ("proved", 3)
    found = ss.verify.smallest(queue, waits).verdicts[0]
    assert found.said == "refuted"
    assert "grows by 1 every 1 event" in found.reason
    with pytest.raises(ss.ConfigurationError, match="returns bool, no int"):
        ss.verify.smallest(queue, lambda state: len(state.waiting) > 1)


class Steps(ss.State):
    done = ss.scalar(int)


def done(state):
    return state.done


def test_a_bound_beyond_short_streams_is_found_by_repeating_them() -> None:
    @ss.operator(state=Steps, event={"x": int}, emits={})
    def up_to_20(state, event, emit):
        if state.done < 20:
            state.done += 1

    found = ss.verify.smallest(up_to_20, done).verdicts[0]
    assert (found.said, found.bound, len(found.table)) == ("proved", 20, 20)


def test_the_greatest_of_short_streams_is_no_bound_without_a_proof() -> None:
    @ss.operator(state=Steps, event={"x": int}, emits={})
    def in_order(state, event, emit):
        if event.x == state.done and state.done < 20:
            state.done += 1

    found = ss.verify.smallest(in_order, done, events=3).verdicts[0]
    assert (found.said, found.events, found.bound) == ("holds", 3, 3)


def test_one_stream_takes_all_paths() -> None:
    found = ss.verify.cover(alarm)
    assert found.reached == found.paths
    assert not found.unreached
    run = alarm.run_sequential(found.table)
    assert run.output.num_rows >= 1

    @ss.operator(event={"x": int}, emits={"x": int})
    def partly(event, emit):
        if event.x > 3 and event.x < 2:
            emit(event.x)

    found = ss.verify.cover(partly)
    assert [len(lines) for lines in found.unreached.values()] == [1]


def test_a_proof_is_confirmed_by_the_other_solver() -> None:
    def counts_down(state):
        return 0 <= state.left <= 2

    report = ss.verify.check(alarm, always=counts_down, confirm=True)
    assert report.said == "proved"
    assert report.confirmed
    assert "second solver" in str(report)


def test_too_little_memory_is_undecided_and_not_wrong() -> None:
    def counts_down(state):
        return 0 <= state.left <= 2

    report = ss.verify.check(alarm, always=counts_down, memory=16)
    assert report.said in ("undecided", "proved")
    assert ss.verify.check(alarm, always=counts_down).said == "proved"
    with pytest.raises(ss.ConfigurationError, match="memory"):
        ss.verify.check(alarm, memory=1)

"""The loop by hand runs the function as it is written, where it gives the sequential rows."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import pyarrow as pa
import pytest

import specstream as ss
from specstream.tuning.by_hand import LoopByHand, NoLoop
from specstream.tuning.contest import UNORDERED

EVENTS = pa.table({"user": ["ann", "bob", "ann"] * 50, "x": [1, 2, 3] * 50})
COLUMNS = {"user": str, "x": int}


class Seen(ss.State):
    total = ss.array(float, 4)
    by_user = ss.dict(str, int)
    last = ss.deque(int, maxlen=2)
    count = ss.scalar(int, fill=5)


@ss.operator(state=Seen, event=COLUMNS, emits={"user": str, "count": int, "total": float})
def counts(state, event, emit):
    state.count += 1
    state.by_user[event.user] = state.by_user.get(event.user, 0) + event.x
    state.last.append(event.x)
    state.total[event.x] += 0.5 * state.last[0]
    emit(event.user, state.by_user[event.user] + state.count, state.total[event.x])


@ss.operator(state=Seen, event=COLUMNS, emits={"count": int})
def overflows(state, event, emit):
    state.count = (state.count * 6364136223846793005 + 1442695040888963407) % 2**63
    state.count *= 3
    emit(state.count)


class Timed(ss.State):
    timers = ss.timers(str)


def nothing(state, timer, emit):
    emit(0)


@ss.operator(state=Timed, event=COLUMNS, emits={"count": int}, on_timer=nothing)
def timed(state, event, emit):
    state.timers.set(event.user, 5)


@ss.operator(state=Seen, event=COLUMNS, emits={"count": float})
def draws(state, event, emit):
    emit(event.random(0))


def loop(operator: ss.Operator) -> LoopByHand:
    return LoopByHand(operator, 0.001, UNORDERED, lambda count: EVENTS.slice(0, count))


def test_it_takes_a_time_for_each_batch_and_goes_on_with_its_state() -> None:
    by_hand = loop(counts)
    for number in range(3):
        assert by_hand.run(EVENTS, number) is None
    assert set(by_hand.times) == {0, 1, 2}
    assert all(seconds > 0 for seconds in by_hand.times.values())
    assert by_hand.state.count > 5 + 3
    by_hand.restart()
    assert by_hand.state.count == 5


@pytest.mark.parametrize(
    ("operator", "why"),
    [
        (overflows, "other rows|OverflowError|too large"),
        (timed, "'timers' is none of Python's containers"),
        (draws, "AttributeError"),
    ],
)
def test_what_it_cannot_run_is_said(operator: ss.Operator, why: str) -> None:
    with pytest.raises(NoLoop, match=why):
        loop(operator)

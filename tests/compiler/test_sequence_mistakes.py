"""What cannot be done with a sequence of the state: told with its line, why, and what to write."""

# Operators carry no types, as those of users do not; these are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from test_mistakes import THEIRS

import specstream as ss


class S(ss.State):
    xs = ss.list(float)
    rows = ss.list((str, int))
    names = ss.list(str)
    numbers = ss.list(int)
    q = ss.deque(int, maxlen=3)
    h = ss.priority_queue((float, int))
    d = ss.dict(str, int)
    x = ss.scalar(float)
    cells = ss.array(float, 4)


EVENT = {"a": int, "name": str}
WRONG: dict[Callable[..., None], tuple[str, str]] = {}


def refused(problem: str, hint: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def add(function: Callable[..., None]) -> Callable[..., None]:
        WRONG[function] = problem, hint
        return function

    return add


@refused("field 'xs' is declared float and gets string", "keep it in a field")
def a_string_among_floats(state, event, emit):
    state.xs.append(event.name)


@refused("field 'numbers' is declared int and gets float64", "int(x)")
def a_float_among_ints(state, event, emit):
    state.numbers[0] = 0.5


@refused("holds tuple[str, int] and gets a tuple of 3 values", "give it 2")
def a_longer_tuple(state, event, emit):
    state.rows.append((event.name, 1, 2))


@refused("holds tuple[str, int] and gets int64", "put in a tuple of (str, int)")
def no_tuple(state, event, emit):
    state.rows.insert(0, event.a)


@refused("'rows', value 1 of the tuple, is declared int and gets float64", "int(x)")
def a_tuple_of_other_parts(state, event, emit):
    state.rows[0] = (event.name, 0.5)


@refused("index takes 1 to 3 value(s) here", "see Python's")
def nothing_to_look_for(state, event, emit):
    values = [event.a]
    state.x = float(values.index())


@refused("field 'xs' holds float and gets None", "leave it out")
def none(state, event, emit):
    state.xs.append(None)


@refused("a list of the state has no method 'push'", "it has append")
def a_method_of_another_kind(state, event, emit):
    state.xs.push(1.0)


@refused("a deque of the state has no method 'apendleft'", "did you mean 'appendleft'?")
def a_misspelt_method(state, event, emit):
    state.q.apendleft(event.a)


@refused("a priority queue of the state has no method 'append'", "push")
def append_to_a_queue(state, event, emit):
    state.h.append((0.5, 1))


@refused("append of state.xs gets 2 values", "it takes 1")
def two_values(state, event, emit):
    state.xs.append(1.0, 2.0)


@refused("field 'xs' is a list and cannot be replaced", "state.xs.clear()")
def another_list(state, event, emit):
    state.xs = [1.0]


@refused("a deque has no slices", "list(state.q)[a:b]")
def a_slice_of_a_deque(state, event, emit):
    state.x = state.q[1:]


@refused("the copy of state.q is a deque, which needs a name", "write copied = state.q.copy()")
def a_copy_in_a_helper(state, event, emit):
    def copied(values):
        made = values.copy()
        return len(made)

    state.x = copied(state.q) * 1.0


@refused("the copy of state.q is a deque, which needs a name", "or make a list, list(state.q)")
def a_copy_without_a_name(state, event, emit):
    state.x = len(state.q.copy()) * 1.0


@refused("x[i] is not supported for a priority queue", "state.h.peek()")
def an_item_of_a_queue(state, event, emit):
    state.x = state.h[0][0]


@refused("reversed() is not supported for a priority queue", "a loop over it")
def a_queue_backwards(state, event, emit):
    for x, _ in reversed(state.h):
        state.x = x


@refused("a pattern of 2 parts meets state.xs", "write match list(state.xs):")
def a_list_matched(state, event, emit):
    match state.xs:
        case [a, b]:
            state.x = a + b


@refused("{'a': n} is a pattern of a dict", "if 'a' in state.d: value = state.d['a']")
def a_dict_matched(state, event, emit):
    match state.d:
        case {"a": n}:
            state.x = n


@refused(
    "*= is not supported for a deque of the state, state.q",
    "state.q.extend(list(state.q) * (n - 1))",
)
def a_deque_several_times(state, event, emit):
    state.q *= event.a


@refused("*= is not supported for a priority queue of the state, state.h", "state.h.push(x)")
def a_queue_several_times(state, event, emit):
    state.h *= 2


@refused("|= of state.d takes a dict and gets list", "write state.d.update(pairs)")
def pairs_for_a_dict(state, event, emit):
    state.d |= [(event.name, 1)]


@refused("|= of d takes a dict and gets list", "write d.update(pairs)")
def pairs_for_a_dict_of_its_own(state, event, emit):
    d = {1: 2}
    d |= [(event.a, 1)]


@refused(
    "setdefault of state.d gets a value that may be None", "is not None: state.d.setdefault(key"
)
def what_may_be_none_for_a_default(state, event, emit):
    state.d.setdefault(event.name, state.d.get("x"))


@refused("setdefault of state.d gets None", "state.d.setdefault(key, 0)")
def no_default(state, event, emit):
    state.d.setdefault(event.name)


@refused("is declared float and gets a list of the state", "list(x)")
def a_list_for_a_number(state, event, emit):
    state.x = state.xs


@refused("sum of state.rows", "write a loop")
def a_sum_of_tuples(state, event, emit):
    state.x = sum(state.rows)


@refused("+= puts int64 behind a list", "state.numbers.append(x)")
def a_number_behind(state, event, emit):
    state.numbers += event.a


@refused("a deque of the state is compared with list", "list(x)")
def a_deque_and_a_list(state, event, emit):
    state.x = 1.0 if state.q == [1] else 0.0


@refused("+ between a deque of the state and a deque of the state", "list(state.q)")
def a_sum_of_deques(state, event, emit):
    state.xs += state.q + state.q


@refused("a value is list here and a list of the state elsewhere", "list(x) makes a list")
def one_list_or_another(state, event, emit):
    values = state.numbers if event.a > 0 else [event.a]
    values.append(1)


@pytest.mark.parametrize("function", WRONG, ids=lambda one: one.__name__)
def test_a_mistake_is_told_with_its_line_and_what_to_write(function: Callable[..., None]) -> None:
    problem, hint = WRONG[function]
    with pytest.raises(ss.CompileError) as caught:
        ss.Engine(ss.operator(state=S, event=EVENT, emits={})(function), horizon=0)
    said, _, told = str(caught.value).partition("; ")
    assert problem in said
    assert hint in told
    assert 0 < caught.value.line - function.__code__.co_firstlineno < 6
    assert not THEIRS.search(re.sub(r"/\S+", "", str(caught.value)))


def test_a_deque_several_times_is_told_of_by_the_oracle_as_by_the_compiler() -> None:
    operator = ss.operator(state=S, event=EVENT, emits={})(a_deque_several_times)
    with pytest.raises(ss.CompileError, match=r"of the state, state.q; write state.q.extend\(list"):
        operator.run_sequential({"a": [1], "name": ["a"]})


def test_a_copy_without_a_name_is_told_of_by_the_oracle_as_by_the_compiler() -> None:
    operator = ss.operator(state=S, event=EVENT, emits={})(a_copy_without_a_name)
    with pytest.raises(ss.CompileError, match=r"the copy of state.q .*; write copied = state.q"):
        operator.run_sequential({"a": [1], "name": ["a"]})


@ss.operator(state=S, event=EVENT, emits={"n": int})
def mended(state, event, emit):
    """What the messages lead to."""
    state.numbers.append(int(0.5))
    state.rows.append((event.name, int(1.5)))
    best = None
    if event.a > 0:
        best = 0.5
    if best is not None:
        state.xs.append(best)
    state.q.appendleft(event.a)
    state.h.push((0.5, 1))
    state.q.extend(list(state.q) * (3 - 1))
    state.d.update([(event.name, 1)])
    there = state.d.get("x")
    if there is not None:
        state.d.setdefault(event.name, there)
    state.d.setdefault(event.name, 0)
    if "a" in state.d:
        state.x = state.d["a"] * 1.0
    state.xs.clear()
    state.xs.extend([1.0])
    state.x = state.h.peek()[0] + sum(list(state.q)[1:])
    for x, _ in state.h:
        state.x += x
    copied = state.q.copy()
    copied.extendleft([3])
    state.x += len(copied) + len(list(state.q))
    values = list(state.numbers) if event.a > 0 else [event.a]
    values.append(1)
    state.cells[:1] = list(state.xs)
    state.numbers += list(state.q) + list(state.q)
    if list(state.q) == [1]:
        state.x = 0.0
    emit(len(state.numbers) + len(values) + state.q.maxlen)


def test_what_to_write_instead_is_an_operator() -> None:
    ss.Engine(mended, horizon=0).close()

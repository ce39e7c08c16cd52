"""Order, length and parts of strings that the state holds: engine, oracle and Python agree."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import bisect
import heapq
import linecache
import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness
from support.daily import share_of

import specstream as ss

# Astral letters, prefixes of one another, composed and decomposed, and none at all.
WORDS = ("", "a", "ab", "abc", "b", "ä", "a\u0308", "Z", "\U0001f600", "\uffff", "0", "10", "9")
PATHS: dict[str, dict[str, Any]] = {
    "plain": {"horizon": 0},
    "value": {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"},
    "eager": {"threads": 2, "horizon": 4, "chunk": 1, "protocol": "eager"},
}


class Kept(ss.State):
    last = ss.scalar(str)
    most = ss.scalar(str, fill="b")
    counts = ss.dict(str, int)
    pairs = ss.dict((str, int), float)
    seen = ss.set(str)
    words = ss.list(str)
    recent = ss.deque(str, maxlen=5)
    waiting = ss.priority_queue((str, int))
    grid = ss.array(str, 4)


def ranked(state, event, emit):
    state.counts[event.s] = state.counts.get(event.s, 0) + 1
    for word, count in sorted(state.counts.items(), key=lambda one: (-one[1], one[0]))[:3]:
        emit(word, count)


def least_and_greatest(state, event, emit):
    state.counts[event.s] = event.i
    emit(min(state.counts), 0)
    emit(max(state.counts, key=lambda word: (state.counts[word] % 2, word)), 1)
    emit(max(state.counts.items(), key=lambda one: one[0])[0], 2)


def kept_in_order(state, event, emit):
    bisect.insort(state.words, event.s)
    if len(state.words) > 6:
        del state.words[3]
    emit(state.words[0], bisect.bisect_left(state.words, event.t))


def sorted_in_place(state, event, emit):
    state.words.append(event.s)
    state.words.sort(reverse=event.i % 2 == 0)
    emit(state.words[-1], len(state.words))


def sets_and_pairs(state, event, emit):
    state.seen.add(event.s)
    state.pairs[(event.t, event.i)] = 1.0
    emit(sorted(state.seen)[-1], len(state.seen))
    first = min(state.pairs)
    emit(first[0], first[1])


def by_priority(state, event, emit):
    state.waiting.push((event.s, event.i))
    if event.i % 3 == 0:
        word, number = state.waiting.pop()
        emit(word, number)


def heaps_of_its_own(state, event, emit):
    heap = [(word, at) for at, word in enumerate(state.recent)]
    heapq.heapify(heap)
    heapq.heappush(heap, (event.s, 9))
    state.recent.append(event.s)
    while heap:
        word, at = heapq.heappop(heap)
        emit(word, at)


def running(state, event, emit):
    state.most = max(state.most, event.s)
    state.last = min(event.t, state.most, state.last) if event.i % 2 else event.t
    emit(state.last, len(state.most))


def compared(state, event, emit):
    between = "a" < state.last <= event.s
    emit(state.last, int(between) + 2 * (event.t >= state.last) + 4 * ([state.last] > [event.s]))
    if not state.last < event.s:
        state.last = event.t
    else:
        state.last = event.s


def lengths(state, event, emit):
    state.recent.append(event.s)
    state.grid[event.i % 4] = event.s
    longest = max(state.recent, key=len)
    emit(longest, sum(len(word) for word in state.recent) + len(state.grid[0]))


def parts(state, event, emit):
    found = [word for word in state.recent if word.startswith(event.t) or word.endswith("b")]
    inside = sum(1 for word in state.recent if event.s in word) + int(state.last in event.s)
    emit(state.last, len(found) * 100 + inside * 10 + int(event.s.startswith(state.last)))
    state.recent.append(event.s)
    state.last = event.t


def of_a_helper(state, event, emit):
    state.recent.append(event.s)
    emit(first_of(state.recent[0], state.recent[-1]), int(is_before(state.last, event.s)))
    state.last = event.t


def first_of(one, other):
    return one if one < other else other


def is_before(one, other):
    return one < other


FUNCTIONS: list[Callable[..., None]] = [
    *(ranked, least_and_greatest, kept_in_order, sorted_in_place, sets_and_pairs, by_priority),
    *(heaps_of_its_own, running, compared, lengths, parts, of_a_helper),
]
EVENT = {"s": str, "t": str, "i": int}
EMITS = {"word": str, "value": int}


def operator_of(function: Callable[..., None]) -> ss.Operator:
    return ss.operator(state=Kept, event=EVENT, emits=EMITS)(function)


def rows(seed: int, count: int = 60) -> pa.Table:
    chosen = random.Random(seed)
    return pa.table(
        {
            "s": [chosen.choice(WORDS) for _ in range(count)],
            "t": [chosen.choice(WORDS) for _ in range(count)],
            "i": [chosen.randrange(10) for _ in range(count)],
        }
    )


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_engine_oracle_and_python_agree(function: Callable[..., None]) -> None:
    operator = operator_of(function)
    table = rows(FUNCTIONS.index(function))
    assert witness.assert_agrees(operator, table) == table.num_rows
    expected = run_oracle(operator, table)
    for options in PATHS.values():
        assert_identical(run_engine(operator, table, **options), expected)


@pytest.mark.parametrize("seed", range(share_of(20)))
def test_random_conditions_of_strings_agree(seed: int) -> None:
    chosen = random.Random(seed)

    def text() -> str:
        some = ["state.last", "state.most", "event.s", "state.grid[event.i % 4]", "(event.t)"]
        return chosen.choice([*some, *some, repr(chosen.choice(WORDS)), f"min({some[0]}, event.s)"])

    def truth(depth: int) -> str:
        if depth and chosen.random() < 0.6:
            form = chosen.choice(["({} and {})", "({} or {})", "(not {} or {})"])
            return form.format(truth(depth - 1), truth(depth - 1))
        sign = chosen.choice(["<", "<=", ">", ">=", "==", "!=", "in", "not in"])
        forms = [f"{text()} {sign} {text()}", f"len({text()}) > {chosen.randrange(3)}"]
        forms += [f"{text()}.{chosen.choice(('startswith', 'endswith'))}({text()})"]
        forms += [f"({text()}, event.i) < ({text()}, 4)", f"{text()} < {text()} < {text()}"]
        return chosen.choice(forms)

    body = "".join(
        f"    if {truth(2)}:\n        state.{field} = {text()}\n        emit(state.last, {at})\n"
        for at, field in enumerate(("last", "most", "grid[event.i % 4]", "last", "most"))
    )
    source = f"def drawn(state, event, emit):\n{body}"
    name = f"<conditions of strings {seed}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"__name__": "drawn"}
    exec(compile(source, name, "exec"), namespace)
    operator = operator_of(namespace["drawn"])
    table = rows(1_000 + seed)
    assert witness.assert_agrees(operator, table) == table.num_rows, source
    for options in (PATHS["plain"], PATHS["value"]):
        assert_identical(run_engine(operator, table, **options), run_oracle(operator, table))


def test_a_column_that_is_only_compared_has_its_texts() -> None:
    # All else that is done with t is to compare it with texts that are written out.
    @ss.operator(state=Kept, event=EVENT, emits=EMITS)
    def only(state, event, emit):
        emit(state.last, int(event.t < state.last) + 2 * int(event.t == "b"))
        emit(max(state.last, event.t), int(state.last in event.t))
        state.last = event.s

    table = rows(7)
    assert witness.assert_agrees(only, table) == table.num_rows
    assert_identical(run_engine(only, table, horizon=0), run_oracle(only, table))


def test_texts_outlive_snapshots_and_rollbacks() -> None:
    operator, table = operator_of(ranked), rows(3)
    expected = run_oracle(operator, table).output
    found = []
    with ss.Engine(operator) as engine:
        found.append(engine.process(table.slice(0, 20)))
        before = engine.savepoint()
        engine.process(rows(4))
        engine.rollback(before)
        found.append(engine.process(table.slice(20, 20)))
        snapshot = engine.snapshot()
    with ss.Engine(operator, restore=snapshot, threads=2) as engine:
        found.append(engine.process(table.slice(40)))
    assert pa.concat_tables(found).equals(expected)


def test_events_that_come_one_by_one_are_compared_while_texts_come() -> None:
    operator, count = operator_of(running), 300
    table = rows(5, count).append_column("time", pa.array(range(count)))
    table = table.set_column(0, "s", pa.array([f"word {at * 7 % count}" for at in range(count)]))
    expected = operator.run_sequential(table, order_by="time").output
    with ss.Engine(operator, threads=2, early=True) as engine:
        for first in range(0, count, 10):
            engine.submit(table.slice(first, 10), order_by="time", source="x")
        engine.advance("x", count)
        found = engine.poll(timeout=None)
    assert found.select(["word", "value"]).equals(expected.select(["word", "value"]))


@pytest.mark.parametrize(
    ("condition", "said"),
    [
        ("state.last < event.i", "< between a string and int64"),
        ("state.last.startswith(event.i)", "startswith of a string of the state takes one string"),
        ("event.i in state.last", "`in` of a string takes a string, not int64"),
        ("state.last.isdigit()", "isdigit of a string: .* have no letters here"),
        ("state.last[0] == 'a'", r"\[\] of a string: .* have no letters here"),
        ("state.grid.max() == 'a'", "max of a string|have no least one here"),
    ],
)
def test_what_strings_of_the_state_do_not_have_is_refused(condition: str, said: str) -> None:
    source = f"def asks(state, event, emit):\n    if {condition}:\n        emit('', 1)\n"
    name = f"<asks {condition}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace: dict[str, Any] = {"__name__": "asks"}
    exec(compile(source, name, "exec"), namespace)
    with pytest.raises(ss.CompileError, match=said) as found:
        ss.Engine(operator_of(namespace["asks"]), horizon=0)
    assert found.value.line == 2

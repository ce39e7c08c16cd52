"""Every state over a finite domain: beside a search of a few lines over the sequential run, and
beside what is said of every value."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import importlib
import itertools
import pkgutil
import random
from typing import Any

import corpus
import numpy as np
import pyarrow as pa
import pytest
from corpus.case import CASES
from support.daily import share_of

import specstream as ss
from specstream.compiler.language.definitions import keep_text
from specstream.verify.counterexample import plain_state
from specstream.verify.domain import Domain
from specstream.verify.paths import NotModelled
from specstream.verify.rerun import event_values
from specstream.verify.transitions import Transitions

VALUES = [(x, y) for x in (0, 1, 2) for y in (None, 1)]
DOMAIN: dict[str, Any] = {"x": range(3), "y": [None, 1]}
STATEMENTS = (
    *("state.n += 1", "state.n = 0", "state.n = event.x", "state.flag = not state.flag"),
    *("state.n = (state.n * 3 + event.x) % 5", "state.q.append(event.x)", "state.d[event.x] = 1"),
    *("if len(state.q) > 0:\n    emit(state.q.popleft())", "state.d.pop(event.x, 0)"),
    *("emit(state.n)", "if state.n > 3:\n    raise ValueError('big')", "state.queue.push(event.x)"),
    *("if len(state.queue) > 2:\n    emit(state.queue.pop())", "state.best = Best(event.x, 1)"),
    *("if state.best.x == 2:\n    emit(state.best.count)", "state.seen.add(event.x)"),
    *("state.a[event.x] = state.n", "if len(state.seen) == 3:\n    state.seen.clear()"),
)
CONDITIONS = ("event.x == 1", "state.flag", "event.y is None", "state.n > 2", "event.x in state.d")
TEXT = """import specstream as ss


class Best(ss.Record):
    x: int
    count: int


class S(ss.State):
    n = ss.scalar(int)
    flag = ss.scalar(bool)
    q = ss.deque(int, maxlen=2)
    d = ss.dict(int, int)
    queue = ss.priority_queue(int, limit=3)
    best = ss.scalar(Best)
    seen = ss.set(int)
    a = ss.array(int, 3)


@ss.operator(state=S, event={{"x": int, "y": int | None}}, emits={{"a": int}})
def op(state, event, emit):
{body}
    state.n = min(max(state.n, 0), 4)
"""


def program(seed: int) -> Any:
    """A random operator of a few states; None: it is none."""
    rng = random.Random(seed)
    lines: list[str] = []
    for _ in range(rng.randint(2, 4)):
        some = rng.choice(STATEMENTS).split("\n")
        if rng.random() < 0.5:
            some = [f"if {rng.choice(CONDITIONS)}:", *(f"    {line}" for line in some)]
        lines += some
    text = TEXT.format(body="\n".join(f"    {line}" for line in lines))
    file = f"<random states {seed}>"
    keep_text(file, text)
    names: dict[str, Any] = {"__name__": "random_states"}
    exec(compile(text, file, "exec"), names)
    return names["op"]


class Searched:
    """The states that streams lead to, each found by running its stream from the beginning."""

    def __init__(self, operator: Any, most: int) -> None:
        self.operator = operator
        self.streams: dict[str, tuple[Any, ...]] = {self.run(())[0]: ()}
        self.edges: dict[str, list[tuple[str, int]]] = {}
        for state in (found := list(self.streams)):
            for one in VALUES:
                after, rows = self.run((*self.streams[state], one))
                self.edges.setdefault(state, []).append((after, rows))
                if after not in self.streams:
                    self.streams[after] = (*self.streams[state], one)
                    found.append(after)
            if len(found) > most:
                break
        self.is_whole = len(self.edges) == len(self.streams)

    def run(self, stream: Any) -> tuple[str, int]:
        """The state behind a stream, and the number of rows of its last event."""
        columns = {name: [one[at] for one in stream] for at, name in enumerate("xy")}
        table = pa.table({name: pa.array(of, pa.int64()) for name, of in columns.items()})
        run = self.operator.run_sequential(table, keys=True, on_error="skip")
        rows = run.output["sequence"].to_pylist().count(len(stream) - 1)
        return repr(plain_state(self.operator, run.state)), rows

    def late(self, most: int) -> int | None:
        """Length of the shortest stream whose last events emit no row; None: there is none."""
        first = next(iter(self.streams))
        layer, seen = {(first, 0)}, {(first, 0)}
        for count in itertools.count(1):
            following = {
                (after, 0 if rows else silent + 1)
                for state, silent in layer
                for after, rows in self.edges[state]
            }
            if any(silent >= most for _, silent in following):
                return count
            layer = following - seen
            seen |= following
            if not layer:
                return None
        raise AssertionError

    def traps(self) -> list[int]:
        """Lengths of the shortest streams to states from which no stream emits."""
        good = {state for state, edges in self.edges.items() if any(rows for _, rows in edges)}
        while True:
            more = {
                one for one, edges in self.edges.items() if any(after in good for after, _ in edges)
            }
            if more <= good:
                return [len(of) for state, of in self.streams.items() if state not in good]
            good |= more


def silent(rows):
    return len(rows) == 0


def low(state):
    return state.n < 4


def compare(seed: int) -> bool:
    """Compares what is said of a random operator with the search; whether all is known."""
    operator = program(seed)
    searched = Searched(operator, 150)
    if not searched.is_whole:
        return False
    within = random.Random(seed).randint(1, 4)
    report = ss.verify.check(
        operator,
        domain=DOMAIN,
        always=low,
        each=silent,
        within=ss.verify.within(within),
        can_always="rows",
    )
    found = {one.kind: one for one in report.verdicts}
    wrong = {
        "always": [len(of) for state, of in searched.streams.items() if "n=4" in state],
        "each": [
            len(searched.streams[state]) + 1
            for state, edges in searched.edges.items()
            if any(rows for _, rows in edges)
        ],
        "within": [one for one in [searched.late(within)] if one is not None],
        "can_always": searched.traps(),
    }
    for kind, lengths in wrong.items():
        assert found[kind].said == ("refuted" if lengths else "proved"), (seed, kind, str(report))
        assert not lengths or found[kind].events == min(lengths), (seed, kind, str(report))
    whole = ss.verify.check(operator, domain=DOMAIN)
    # A priority queue may lie in memory in several ways, which nobody sees.
    heaps = "queue" in operator.program.attributes
    assert whole.closed, seed
    assert whole.states == len(searched.streams) or (heaps and whole.states > 0), seed
    return True


@pytest.mark.parametrize("first", [0, 100])
def test_verdicts_and_lengths_are_those_of_a_search_by_hand(first: int) -> None:
    assert sum(map(compare, range(first, first + share_of(18)))) > 1


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_of_many_operators(first: int) -> None:
    assert sum(map(compare, range(first, first + 20))) > 5


# ---- states as bytes, of every operator of the corpus ----


def cases() -> list[Any]:
    for one in pkgutil.iter_modules(corpus.__path__):
        importlib.import_module(f"corpus.{one.name}")
    return [one for one in CASES if not one.pending and not one.defect]


def domain_of(operator: Any, table: pa.Table, rows: list[int], steps: tuple[int, ...]) -> Domain:
    found = Domain.__new__(Domain)
    found.operator, found.steps = operator, steps
    several = table.take(rows).combine_chunks()
    found.values = event_values(operator, several, None)
    return found


def walk(operator: Any, table: pa.Table, events: int) -> None:
    """Random events, each from the state as bytes, beside the sequential run of all of them."""
    rng = random.Random(operator.name)
    rows = [rng.randrange(table.num_rows) for _ in range(12)]
    steps = (0, 1, 1000) if operator.program.reads_timestamp else (0,)
    domain = domain_of(operator, table, rows, steps)
    of, other = (Transitions(operator, domain, frozenset()) for _ in range(2))
    state, stream, emitted, errors = of.start, [], [], 0
    for _ in range(events):
        for _ in range(2):  # what an event does not, and one after it does
            at = rng.randrange(len(of))
            of.load(state)
            outcome = of.step(at)
        other.load(state)
        assert other.step(at) == outcome
        assert of.step(at) == outcome  # it is back in the state that it was in
        stream.append(at)
        state = outcome.after
        emitted += of.rows(outcome)
        errors += outcome.error is not None
    whole = domain.table(stream)
    run = operator.run_sequential(whole.table, on_error="skip", order_by=whole.order_by)
    failed = [one for row, one in run.raised if row is not None]
    assert (errors, len(emitted)) == (len(failed), run.output.num_rows)
    assert repr([vars(one) for one in emitted]) == repr(run.output.to_pylist())
    seen = of.seen(state)
    expected = plain_state(operator, run.state)
    for one in operator.layout.fields:
        is_timed = one.container is not None and one.is_timers
        if one.space == "state" and not is_timed:
            assert repr(getattr(seen, one.name)) == repr(getattr(expected, one.name)), one.name


@pytest.mark.parametrize("part", range(4))
def test_any_operator_runs_from_any_state(part: int) -> None:
    ran = 0
    for one in cases()[part::4]:
        table = one.stream(np.random.default_rng(one.number))
        try:
            walk(one.operator, table, share_of(60, 4))
        except NotModelled:  # it draws
            continue
        ran += 1
    assert ran > 10

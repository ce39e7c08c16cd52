"""Random operators and pipelines: what is proved or refuted of them, beside all streams of a few
events, which are run.

The streams share nothing with the model but the sequential run; their values are few, and
``assume=`` says so.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest
from support.daily import share_of

import specstream as ss
from specstream.compiler.language.definitions import keep_text

EVENTS = 3
VALUES = [(x, y) for x in (0, 1, 2) for y in (None, 1)]
CONDITIONS = (
    *("event.x == 1", "state.n < 3", "state.flag", "state.n % 2 == 0", "len(state.q) > 1"),
    *("event.x in state.d", "state.d.get(event.x, 0) > 1", "state.n == event.x"),
    *("event.y is None", "not state.flag and event.x > 0"),
)
STATEMENTS = (
    *(
        "state.n += 1",
        "state.n = 0",
        "state.n -= 1",
        "state.n = event.x",
        "state.n += len(state.q)",
    ),
    *("state.flag = not state.flag", "state.flag = True", "state.n = min(state.n, 4)"),
    *("emit(state.n, event.x)", "emit(event.x + state.n, 0)", "state.q.append(event.x)"),
    *("if len(state.q) > 0:\n    emit(state.q.popleft(), 1)", "state.d.pop(event.x, 0)"),
    *("state.d[event.x] = state.d.get(event.x, 0) + 1", "state.n = max(state.n, event.x)"),
    *("if state.n > 3:\n    raise ValueError('big')", "for v in state.q:\n    state.n += v"),
)
TEXT = """import specstream as ss


class S(ss.State):
    n = ss.scalar(int)
    flag = ss.scalar(bool)
    q = ss.deque(int, maxlen=3)
    d = ss.dict(int, int)


@ss.operator(state=S, event={{"x": int, "y": int | None}}, emits={{"a": int, "b": int}})
def op(state, event, emit):
{body}


@ss.operator(event={{"a": int, "b": int}}, emits={{"a": int}})
def second(event, emit):
    if event.b {comparison} {number}:
        emit(event.a)


def fits(event):
    return 0 <= event.x <= 2 and (event.y is None or event.y == 1)


def size(state):
    return state.{vertex}n


def below(state):
    return state.{vertex}n < {bound}


def trigger(event):
    return event.x == 1


def few(rows):
    return len(rows) <= {rows}
"""


def statement(rng: random.Random, depth: int = 0) -> list[str]:
    if depth == 2 or rng.random() < 0.65:
        return rng.choice(STATEMENTS).split("\n")
    lines = [f"if {rng.choice(CONDITIONS)}:"]
    lines += [f"    {line}" for line in statement(rng, depth + 1)]
    if rng.random() < 0.5:
        lines += ["else:", *(f"    {line}" for line in statement(rng, depth + 1))]
    return lines


class Program:
    """A random operator, or a pipeline of it and another, with questions."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        self.is_pipeline = rng.random() < 0.5
        self.bound, self.rows, self.within = rng.randint(1, 6), rng.randint(0, 2), rng.randint(1, 3)
        body = [line for _ in range(rng.randint(1, 4)) for line in statement(rng)]
        text = TEXT.format(
            body="\n".join(f"    {line}" for line in body),
            comparison=rng.choice(["<", ">", "=="]),
            number=rng.randint(0, 3),
            vertex="op." if self.is_pipeline else "",
            bound=self.bound,
            rows=self.rows,
        )
        file = f"<random operator {seed}>"
        keep_text(file, text)
        self.names: dict[str, Any] = {"__name__": "random_operator"}
        exec(compile(text, file, "exec"), self.names)
        self.trigger = self.names["trigger"] if rng.random() < 0.5 else None
        self.operator = self._made(rng)

    def _made(self, rng: random.Random) -> Any:
        if not self.is_pipeline:
            return self.names["op"]
        p = ss.Pipeline("p")
        sums = p.add(self.names["op"], p.source("in", {"x": int, "y": int | None}))
        p.sink("out", p.add(self.names["second"], sums))
        if rng.random() < 0.5:
            p.sink("raw", sums)
        return p

    def run(self, stream: Any) -> tuple[list[int], int]:
        """Of each row the event that emitted it, and the number of the state."""
        columns = {name: [one[at] for one in stream] for at, name in enumerate("xy")}
        table = pa.table({name: pa.array(of, pa.int64()) for name, of in columns.items()})
        run = self.operator.run_sequential(table, keys=True, on_error="skip")
        tables = run.output.values() if isinstance(run.output, dict) else [run.output]
        state = run.state.op if self.is_pipeline else run.state
        return [at for one in tables for at in one["sequence"].to_pylist()], state.n

    def is_late(self, stream: Any, rows: list[int]) -> bool:
        waiting = 0
        for at, (x, _) in enumerate(stream):
            asks = self.trigger is None or x == 1
            waiting = 0 if at in rows else waiting + 1 if waiting else int(asks)
            if waiting >= self.within:
                return True
        return False


def compare(seed: int) -> int:
    """Compares what is said of a program with all short streams; how much is known."""
    try:
        program = Program(seed)
    except ss.SpecstreamError:
        return 0  # a random function that is no operator
    names, operator = program.names, program.operator
    runs = {
        stream: program.run(stream)
        for count in range(EVENTS + 1)
        for stream in itertools.product(VALUES, repeat=count)
    }
    limits: dict[str, Any] = {"assume": names["fits"], "events": EVENTS, "effort": 1}
    report = ss.verify.check(
        operator,
        always=names["below"],
        each=names["few"],
        within=ss.verify.within(program.within, program.trigger),
        **limits,
    )
    wrong = {
        "always": [one for one, (_, n) in runs.items() if n >= program.bound],
        "each": [
            one
            for one, (rows, _) in runs.items()
            if one and rows.count(len(one) - 1) > program.rows
        ],
        "within": [one for one, (rows, _) in runs.items() if program.is_late(one, rows)],
    }
    assert not any("the model is not" in one for one in report.undecided), (seed, str(report))
    for verdict in report.verdicts:
        shortest = min(map(len, wrong[verdict.kind]), default=None)
        if verdict.said in ("proved", "holds"):
            assert shortest is None, (seed, str(report), wrong[verdict.kind][0])
        elif verdict.said == "refuted":
            assert verdict.events == shortest, (seed, str(report))
    compare_with_all_states(program, report, wrong)
    found = ss.verify.smallest(operator, names["size"], **limits).verdicts[0]
    if found.bound is not None:
        assert found.bound >= max(n for _, n in runs.values()), (seed, str(found))
    known = [found, *report.verdicts]
    return sum(one.said in ("proved", "refuted") for one in known)


def compare_with_all_states(program: Program, said: Any, wrong: dict[str, list[Any]]) -> None:
    """What is said of all states, beside the streams, and beside what was said of every value."""
    names = program.names
    report = ss.verify.check(
        program.operator,
        domain={"x": range(3), "y": [None, 1]},
        events=EVENTS + 2,
        always=names["below"],
        each=names["few"],
        within=ss.verify.within(program.within, program.trigger),
    )
    for verdict, other in zip(report.verdicts, said.verdicts, strict=True):
        shortest = min(map(len, wrong[verdict.kind]), default=None)
        if shortest is not None:
            assert (verdict.said, verdict.events) == ("refuted", shortest), str(report)
        elif verdict.said == "refuted":
            assert verdict.events > EVENTS, str(report)
            assert other.said != "proved", (str(report), str(said))
        elif verdict.said == "proved":
            assert other.said != "refuted", (str(report), str(said))


@pytest.mark.parametrize("first", [0, 100, 200])
def test_what_is_said_of_random_operators(first: int) -> None:
    known = sum(map(compare, range(first, first + share_of(10))))
    assert known > share_of(10)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1500, 20))
def test_what_is_said_of_many_random_operators(first: int) -> None:
    assert sum(map(compare, range(first, first + 20))) > 20

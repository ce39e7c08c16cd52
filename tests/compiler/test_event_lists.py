"""Lists that Python makes of an event, gone through and used by compiled code: on every path the
same, and what plain Python makes of them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
# mypy: disable-error-code=annotation-unchecked

from __future__ import annotations

import ast
import gc
import importlib.util
import os
import pickle
import random
import re
import sys
import textwrap
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import PATHS, assert_identical, run_engine, run_oracle
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support import witness
from support.compiler.list_fragments import EMITS, EVENT, FRAGMENTS, HELPERS, MINE

import specstream as ss
from specstream.columns.derived import derived_columns
from specstream.columns.lists import Addresses, joined
from specstream.columns.strings import StringTable


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 16)


def declared(function: Callable[..., None], **options: Any) -> ss.Operator:
    made: ss.Operator = ss.operator(state=S, event=EVENT, emits=EMITS, **options)(function)
    return made


# ---- random programs over random strings ----

PIECES = ["a", "bb", "x", "12", "B.", "ab!", "é", "end", ""]
TEXT = st.lists(st.sampled_from(PIECES), max_size=5).flatmap(
    lambda words: st.sampled_from([" ", "  ", "\n"]).map(lambda gap: gap.join(words))
)
CSV = st.lists(st.sampled_from(["1", "2", "-3", "007", " 4", "1.5", "a", ""]), min_size=1).map(
    ",".join
)
PAIR = st.sampled_from(["a:1", "bb:22", "a:1;b:2", "x", "1:2", "3:4", "10:-1", "a:1:2", ":", ""])
ROWS = st.lists(st.tuples(TEXT, CSV, PAIR), min_size=1, max_size=20)
WRAPPED = [
    "{}",
    "if state.n % 2 == 0:\n{}",
    "try:\n{}\nexcept (ValueError, IndexError):\n    out += 1000",
    "try:\n{}\nfinally:\n    state.n += 1",
    "for turn{0} in range(2):\n{}",
]
OPTIONS: list[dict[str, Any]] = [one for one in PATHS.values() if one is not None]


def program(chosen: list[tuple[int, int]]) -> str:
    """The text of a module whose operator does these, each in one of the ways."""
    lines = ["def process(state, event, emit):", "    out = 0", MINE]
    for number, (which, how) in enumerate(chosen):
        text = own_names(FRAGMENTS[which], f"_{number}")
        wrapped = WRAPPED[how].replace("{0}", f"_{number}")
        inner = text if wrapped == "{}" else textwrap.indent(text, "    ")
        lines.append(textwrap.indent(wrapped.replace("{}", inner), "    "))
    return "\n".join([HELPERS, *lines, "    emit(out, state.n, mine)", ""])


def own_names(text: str, number: str) -> str:
    """A fragment whose locals are no other's, as they may be of other types there."""
    tree = ast.parse(text)
    nodes = [(node, field) for node in ast.walk(tree) for field in ("id", "name", "arg")]
    nodes = [(node, field) for node, field in nodes if isinstance(getattr(node, field, 0), str)]
    nodes = [(node, field) for node, field in nodes if not isinstance(node, ast.keyword)]
    stored = {
        getattr(node, field)
        for node, field in nodes
        if isinstance(getattr(node, "ctx", ast.Store()), ast.Store)
    }
    for node, field in nodes:
        if getattr(node, field) in stored - {"out", "mine"}:
            setattr(node, field, getattr(node, field) + number)
    return ast.unparse(tree)


def loaded(text: str, folder: Path) -> ss.Operator:
    name = f"lists_{abs(hash(text))}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    made: ss.Operator = ss.operator(state=module.S, event=EVENT, emits=EMITS)(module.process)
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("lists")


@settings(
    max_examples=int(os.environ.get("EXAMPLES", "40")) // 13,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(
    chosen=st.lists(
        st.tuples(st.integers(0, len(FRAGMENTS) - 1), st.integers(0, len(WRAPPED) - 1)),
        min_size=2,
        max_size=5,
    ),
    rows=ROWS,
    options=st.sampled_from(OPTIONS),
)
def test_random_programs_are_what_python_makes_of_them(
    chosen: list[tuple[int, int]],
    rows: list[tuple[str, str, str]],
    options: dict[str, Any],
    folder: Path,
) -> None:
    text = program(chosen)
    note(text[len(HELPERS) :])
    operator = loaded(text, folder)
    table = pa.table(dict(zip(EVENT, map(list, zip(*rows * 3, strict=True)), strict=True)))
    expected = run_oracle(operator, table)
    assert_identical(run_engine(operator, table, threads=1, horizon=0), expected)
    assert_identical(run_engine(operator, table, **options), expected)
    witness.assert_agrees(operator, table)


# ---- one operator on every path, and on every way into an engine ----


@ss.pure
def halves(text: str) -> list[tuple[str, float]]:
    return [(one, len(one) / 2) for one in text.split("a")]


def total_of(parts, start):
    for part in parts:
        start += part == "2"
    return start + len(parts)


def many(state, event, emit):
    """Loops, names, patterns and comprehensions over lists of the event."""
    out, mine = 0, "none"
    words = event.text.split()
    for i, word in enumerate(words):
        word = word.strip(".,!")
        if word.isdigit():
            state.n += int(word)
        elif word in ("a", "bb"):
            state.a[(len(word) + i) % 16] += 1
            mine = word
    for one, half in halves(event.text):
        state.x += half
        out += one == mine
    match event.pair.split(":"):
        case [key, count] if count.isdigit():
            out += int(count)
            mine = key
        case [_, *rest]:
            out += len(rest)
    numbers = [int(p) for p in event.csv.split(",") if p.strip("-").isdigit()]
    numbers.append(state.n % 5)
    numbers.sort()
    out += numbers[0] + total_of(event.csv.split(","), len(words))
    for part in event.csv.split(","):
        try:
            state.n += int(part)
        except ValueError:
            out += 100
    first, *others = event.csv.split(",")
    if mine in words:
        others.append(first)
    emit(out + len(others), state.n, first)
    state.n += float(first) > 2


MANY = declared(many)
FEW: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 4, "chunk": 2},
    {"threads": 2, "horizon": 4, "chunk": 2, "protocol": "eager"},
]


def events(count: int = 120, seed: int = 3) -> pa.Table:
    rng = random.Random(seed)

    def drawn(pieces: list[str], gap: str, least: int = 0) -> str:
        return gap.join(rng.choice(pieces) for _ in range(rng.randrange(least, 6)))

    return pa.table(
        {
            "text": [drawn(PIECES, " ") for _ in range(count)],
            "csv": [drawn(["1", "2", "-3", "44", "1.5", "a"], ",", 1) for _ in range(count)],
            "pair": [rng.choice(["a:1", "bb:2", "x", "1:2:3", ""]) for _ in range(count)],
        }
    )


@pytest.mark.slow
@pytest.mark.parametrize("options", FEW, ids=["plain", "two threads", "eager"])
def test_it_is_the_same_on_every_path(options: dict[str, Any]) -> None:
    expected = run_oracle(MANY, events())
    assert 5 < len(expected.raised) < 60
    assert_identical(run_engine(MANY, events(), **options), expected)


def test_it_is_the_same_in_every_variant() -> None:
    expected = run_oracle(MANY, events(60))
    copy = pickle.loads(pickle.dumps(MANY))
    ahead: dict[str, Any] = {"threads": 2, "horizon": 4, "chunk": 2, "execution": "speculate"}
    for options in ({"profile": True}, {"limits": ss.Limits(elements=200)}):
        assert_identical(run_engine(copy, events(60), **ahead, **options), expected)
    expected = run_oracle(CALM, events(60))
    for execution in ("locked", "log_free"):
        found = run_engine(CALM, events(60), threads=1, execution=execution)
        assert_identical(found, expected)
    assert witness.assert_agrees(MANY, events()) == events().num_rows


def in_order(table: pa.Table) -> pa.Table:
    times = pa.array(range(0, 10 * table.num_rows, 10))
    sources = pa.array([f"s{at % 3}" for at in range(table.num_rows)])
    return table.append_column("t", times).append_column("source", sources)


def calm(state, event, emit):
    """The same where nothing raises."""
    out = 0
    for part in event.csv.split(","):
        out += len(part.strip("-")) * len(event.text.split())
        state.n += part == "44"
    words = event.text.split()
    words.append("end")
    emit(out, state.n, words[state.n % 2 - 1])


CALM = declared(calm)


@pytest.mark.slow
@pytest.mark.parametrize("by", ["table", "event", "restored", "rolled back"])
def test_lists_live_as_long_as_the_events_that_wait(by: str) -> None:
    table = in_order(events(200))
    expected = CALM.run_sequential(table, order_by="t", source="source")
    shuffled = table.take(pa.array(np.random.default_rng(3).permutation(table.num_rows)))
    options: dict[str, Any] = {"threads": 2, "horizon": 8, "chunk": 2}
    with ss.Engine(CALM, sources=["s0", "s1", "s2"], **options) as engine:
        if by == "event":
            for row in shuffled.to_pylist():
                engine.submit_event(row.pop("t"), row.pop("source"), **row)
        else:
            for at in range(0, shuffled.num_rows, 37):
                piece = shuffled.slice(at, 37)
                engine.submit(piece, order_by="t", source_column="source")
        if by == "rolled back":
            engine.rollback(engine.savepoint())
        image = engine.snapshot()
        if by != "restored":
            finish(engine, expected)
    if by == "restored":
        copy = pickle.loads(pickle.dumps(CALM))
        with ss.Engine(copy, restore=image, sources=["s0", "s1", "s2"], **options) as engine:
            finish(engine, expected)


def finish(engine: ss.Engine, expected: Any) -> None:
    """Lets everything commit, and compares; what nobody holds is gone and overwritten."""
    gc.collect()
    litter = [np.full(size, -1, np.int64) for size in range(1, 2000, 7)]
    parts = []
    for source in ("s0", "s1", "s2"):
        engine.advance(source)
    while engine.stats.pending:
        parts.append(engine.poll(timeout=5))
    assert litter
    assert pa.concat_tables([*parts, engine.poll()]).equals(expected.output)
    assert engine.state.n == expected.state.n


def test_what_is_taken_of_a_column_of_lists_holds_them() -> None:
    texts, table = StringTable(), events(50)
    columns = [np.zeros(50, np.int64)] * 2
    columns += [np.array([texts.add(text) for text in table[name].to_pylist()]) for name in EVENT]
    made = [
        one for one in derived_columns(CALM.event, columns, texts) if isinstance(one, Addresses)
    ]
    assert made
    for one in made:
        (words,) = one.held
        for taken in (one[3:7], one[np.array([5, 3])], joined([one[:9], one[40:]]), one.copy()):
            assert isinstance(taken, Addresses)
            assert any(held is words for held in taken.held)
    assert joined([columns[0], columns[1]]).tolist() == [0] * 100


# ---- what they hold, and what is raised ----


def kinds(state, event, emit):
    out = 0
    for flag in [c == "a" for c in event.text]:
        out += flag
    for number in [float(p) for p in event.csv.split(",")]:
        state.x += number
    for k, v in re.findall(r"(\w):(\d+)", event.pair):
        out += int(v)
        if k == "x":
            return
    if True in [c.isdigit() for c in event.text] and state.n > 3:
        out += 10
    exact = [int(p) for p in event.csv.split(",")]
    emit(out, exact[-1], event.csv.split(",")[0])


def test_elements_are_numbers_bools_and_strings() -> None:
    operator = declared(kinds)
    table = pa.table(
        {
            "text": ["a1a", "", "aé", "b"],
            "csv": ["1,2", "9223372036854775808", "-9223372036854775808,1", "x"],
            "pair": ["a:1;b:2", "x:1", "", ""],
        }
    )
    expected = run_oracle(operator, table)
    assert [(row, kind) for row, kind, _ in expected.raised] == [(3, "ValueError")]
    assert_identical(run_engine(operator, table, threads=1, horizon=0), expected)
    table = table.set_column(2, "pair", pa.array([""] * 4))
    expected = run_oracle(operator, table)
    assert [kind for _, kind, _ in expected.raised] == ["OverflowError", "ValueError"]
    assert_identical(run_engine(operator, table, threads=1, horizon=0), expected)


def late(state, event, emit):
    for part in event.csv.split(","):
        state.n += 1
        emit(int(part), state.n, part)


def test_an_element_raises_where_the_operator_gets_to_it() -> None:
    operator = declared(late)
    with ss.Engine(operator, threads=1) as engine, pytest.raises(ValueError, match="'x'") as caught:
        engine.process({"text": [""], "csv": ["1,2,x"], "pair": [""]})
    assert str(caught.value) == "invalid literal for int() with base 10: 'x'"
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert (frames[-1].filename, frames[-1].line) == (__file__, "emit(int(part), state.n, part)")


@ss.pure
def liar(text: str) -> list[int]:
    return [text]  # type: ignore[list-item]


def lied_to(state, event, emit):
    for one in liar(event.text):
        emit(one, 0, event.text)


def of_a_null(state, event, emit):
    for part in event.text.split():
        emit(1, 2, part)


def test_what_is_no_such_list_is_an_exception_of_the_event() -> None:
    table = pa.table({"text": ["a"], "csv": [""], "pair": [""]})
    expected = run_oracle(declared(lied_to), table)
    assert expected.raised[0][1:] == (
        "TypeError",
        "liar(event.text) gives 'a' (str), and is declared int: annotate what it gives",
    )
    assert_identical(run_engine(declared(lied_to), table, horizon=0), expected)
    nullable = ss.operator(state=S, event={"text": ss.nullable(str)}, emits=EMITS)(of_a_null)
    table = pa.table({"text": ["a b", None]})
    expected = run_oracle(nullable, table)
    assert [(row, kind) for row, kind, _ in expected.raised] == [(1, "AttributeError")]
    assert_identical(run_engine(nullable, table, horizon=0), expected)


def itself(words, is_given=True):
    given = words
    return given if is_given else []


def changed_elsewhere(state, event, emit):
    def shortened(words):
        return words.pop()

    longer = lambda words, *, by: words.append(by)  # noqa: E731
    words = event.text.split()
    last = shortened(words) if words else ""
    emit(len(words), 1, last)
    parts = event.csv.split(",")
    longer(by="more", words=parts)
    emit(len(parts), 2, parts[-1])
    pairs = event.pair.split(";")
    same = itself(pairs)
    same.append(last)
    itself(words=same).append("end")
    emit(len(pairs), 3, pairs[-1])


def test_a_list_that_a_function_changes_or_gives_back_is_one_list() -> None:
    table = pa.table({"text": ["a b", "", "c"], "csv": ["1,2", "", "x"], "pair": ["a;b", "", "c"]})
    operator = declared(changed_elsewhere)
    witness.assert_agrees(operator, table)
    expected = run_oracle(operator, table)
    assert expected.output["out"].to_pylist() == [1, 3, 4, 0, 2, 3, 0, 2, 3]
    assert_identical(run_engine(operator, table, threads=1, horizon=0), expected)


class Reader:
    """Takes a text apart, word by word."""

    def __init__(self, text: str) -> None:
        self.words = text.split()
        self.at = 0

    def read(self, otherwise: str) -> str:
        self.step()
        return self.words.pop(0) if self.words else otherwise

    def step(self) -> None:
        self.at += 1

    def size(self) -> int:
        return len(self.words)


def step(reader: Reader) -> int:
    reader.step()
    return 1


def one_object(state, event, emit):
    reader = Reader(event.text)
    looked_at = Reader(event.csv)
    emit(looked_at.size(), looked_at.size() + 1, reader.read(event.pair))


def one_object_twice(state, event, emit):
    reader = Reader(event.text)
    emit(step(reader), 1, reader.read("none"))


def gone_through_once(state, event, emit):
    parts = iter(event.text.split())
    found = re.finditer(r"\d", event.csv)
    emit(sum(1 for _ in found), 2, next(parts, event.pair))


@pytest.mark.parametrize("function", [gone_through_once, one_object])
def test_what_changes_as_it_is_read_is_the_events_own(function: Callable[..., None]) -> None:
    """Not that of all events whose text is the same."""
    table = pa.table({"text": ["a b", "a b", ""], "csv": ["1,2"] * 3, "pair": ["c", "d", "e"]})
    operator = declared(function)
    witness.assert_agrees(operator, table)
    expected = run_oracle(operator, table)
    assert expected.output["mine"].to_pylist() == ["a", "a", "e"]
    assert_identical(run_engine(operator, table, threads=1, horizon=0), expected)


def nested(state, event, emit):
    rows = [kv.split(":") for kv in event.pair.split(";")]
    for part in rows[state.n]:
        emit(1, 2, part)


def too_many(state, event, emit):
    for w in event.text.split():
        found = w.count("a") + state.n
        found += w.count("b") * state.n + w.count("c") * state.n + w.count("d") * state.n
        found += w.count("e") * state.n + w.count("f") * state.n + w.count("g") * state.n
        emit(found, w.count("h"), w)


def of_the_state(state, event, emit):
    for word in event.text.split():
        emit(1, 2, word[: state.n])


def as_a_set(state, event, emit):
    found = frozenset(event.text.split())
    emit(len(found), 2, min(found))
    for one in found:
        emit(1, 2, one)


def two_at_once(state, event, emit):
    parts = iter(event.text.split())
    first = next(parts, "")
    emit(1, 2, next(parts, first))


def in_a_loop(state, event, emit):
    found = re.finditer(r"\d", event.csv)
    while (one := next(found, None)) is not None:
        emit(1, 2, one[0])


REFUSED: list[tuple[Callable[..., None], int, str]] = [
    (nested, 2, "rows is a list of list of str"),
    (too_many, 1, r"of each element of event\.text\.split\(\) are needed.*@ss\.pure"),
    (of_the_state, 2, "of a string: this one does not depend on the event alone"),
    (as_a_set, 3, "a loop over found"),
    (two_at_once, 2, r"'parts' is an iterator.*make a list of it.*parts = list\("),
    (one_object_twice, 2, "'reader' is a Reader, which a function changes, .* several places"),
    (in_a_loop, 2, "'found' is an iterator.*in a loop"),
]


@pytest.mark.parametrize(("function", "line", "message"), REFUSED, ids=lambda one: str(one)[:20])
def test_what_cannot_be_is_refused_with_its_line(
    function: Callable[..., None], line: int, message: str
) -> None:
    with pytest.raises(ss.CompileError, match=message) as caught:
        ss.Engine(declared(function), horizon=0).close()
    assert f":{function.__code__.co_firstlineno + line}:" in str(caught.value)

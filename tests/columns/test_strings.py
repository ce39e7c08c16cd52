"""The string table: every code gives its text, whatever the number of strings and how they came."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import specstream as ss
from specstream.columns.strings import StringTable, string_code, string_codes

TEXTS = st.text(max_size=6)
# Their codes are equal.
SAME = ("f4e2547ac89eee16", "da389dafeeb51fcc")


class Count(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Count, event={"name": str}, emits={"name": str})
def echo(state, event, emit):
    state.n += 1
    emit(event.name)


def large(texts: list[str]) -> pa.LargeStringArray:
    return pa.array(texts, pa.large_string())


@given(st.lists(TEXTS))
def test_codes_of_many_are_those_of_one(texts: list[str]) -> None:
    array = large(["cut off", *texts]).slice(1)
    assert string_codes(array).tolist() == [string_code(text) for text in texts]


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), TEXTS),
            st.tuples(st.just("add_all"), st.lists(TEXTS)),
            st.tuples(st.just("sweep"), st.sets(st.integers(0, 12))),
        )
    )
)
def test_the_table_is_a_list_without_repetitions(steps: list[tuple[str, object]]) -> None:
    table = StringTable(["literal"])
    model = ["literal"]
    for what, argument in steps:
        if what == "add":
            assert table.add(str(argument)) == string_code(str(argument))
            model += [str(argument)] if argument not in model else []
        elif what == "add_all":
            assert isinstance(argument, list)
            assert table.add_all(large(argument)).tolist() == list(map(string_code, argument))
            model += [text for text in dict.fromkeys(argument) if text not in model]
        else:
            assert isinstance(argument, set)
            kept = [text for at, text in enumerate(model) if at in argument]
            left = np.array([string_code(text) for text in kept], np.int64)
            assert table.sweep([left]) == len(model) - len(kept)
            model = kept
        assert len(table) == len(model)
        assert table.strings() == model
        codes = np.array([string_code(text) for text in [*model, "absent"]], np.int64)
        assert table.texts(codes).to_pylist() == [*model, None]
        assert [table.text(int(code)) for code in codes] == [*model, None]


def test_codes_with_equal_low_bits_are_told_apart() -> None:
    """As somebody chooses them who wants all of them in one place of a table."""
    names = [f"t{number}" for number in range(200_000)]
    codes = string_codes(large(names))
    chosen = np.flatnonzero(codes & 1023 == 5)
    names = [names[at] for at in chosen]
    assert len(names) > 150
    table = StringTable()
    for begin in range(0, len(names), 50):
        table.add_all(large(names[begin : begin + 50]))
    absent = np.setdiff1d(codes, codes[chosen])
    assert table.texts(codes[chosen]).to_pylist() == names
    assert table.texts(absent).null_count == len(absent)
    table.sweep([codes[chosen[:100]]])
    assert table.texts(codes[chosen]).to_pylist() == names[:100] + [None] * (len(names) - 100)


def test_two_strings_with_one_code_are_an_error() -> None:
    """Two that were found by trying 2^33: at once, later, and one at a time."""
    one, other = SAME
    assert string_code(one) == string_code(other)
    message = f"'{one}' and '{other}' have the same 64-bit code {string_code(one)}"
    table = StringTable()
    with pytest.raises(ss.InputError, match=message):
        table.add_all(large(["before", one, "between", other, "behind"]))
    assert len(table) == 0
    assert table.texts(string_codes(large(["before", one]))).null_count == 2
    for add in (table.add, lambda text: table.add_all(large(["new", text, "newer"]))):
        table.add(one)
        with pytest.raises(ss.InputError, match=message):
            add(other)
        assert table.strings() == [one]
        assert table.text(string_code("new")) is None
    assert table.sweep([]) == 1
    table.add(other)
    assert table.strings() == [other]
    with ss.Engine(echo, horizon=0) as engine:
        with pytest.raises(ss.InputError, match=message):
            engine.process({"name": [one, other]})
        assert engine.process({"name": [other]})["name"].to_pylist() == [other]


def test_a_string_that_is_no_text_is_refused() -> None:
    with pytest.raises(ss.InputError, match=r"'\\ud800' has a lone surrogate"):
        StringTable().add("\ud800")


def test_texts_are_found_while_others_are_added() -> None:
    table = StringTable(["first"])
    code = string_code("first")
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            wrong.extend(found for found in [table.text(code)] if found != "first")

    reader = threading.Thread(target=read)
    reader.start()
    for begin in range(0, 40_000, 100):
        table.add_all(large([f"t{number}" for number in range(begin, begin + 100)]))
    done.set()
    reader.join()
    assert wrong == []
    assert len(table) == 40_001


def test_a_dictionary_gives_the_strings_that_are_in_use() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2, 3]), ["a", "unused", "b", "a"])
    with ss.Engine(echo, threads=2, horizon=8, chunk=1) as engine:
        assert engine.process({"name": column})["name"].to_pylist() == ["b", "a", "b", "a"]
        assert engine.durable.strings.strings() == ["a", "b"]
        for of in (pa.string_view(), pa.large_string()):
            output = engine.process({"name": pa.array(["x", "ä"], of)})
            assert output["name"].to_pylist() == ["x", "ä"]


class Seen(ss.State):
    n = ss.scalar(int)
    names = ss.set(str)


@ss.operator(state=Seen, event={"name": str}, emits={"name": str})
def collect(state, event, emit):
    state.n += 1
    state.names.add(event.name)
    emit(event.name)


def run_distinct(count: int, batches: int) -> None:
    """So many distinct keys through an engine, a snapshot, and a rewind."""
    size = count // batches
    with ss.Engine(collect, threads=2, horizon=8, chunk=64) as engine:
        for number in range(batches):
            numbers = pa.array(range(number * size, (number + 1) * size)).cast(pa.string())
            if number == batches - 1:
                mark = engine.savepoint()
            assert engine.process({"name": numbers})["name"].combine_chunks().equals(numbers)
        assert len(engine.durable.strings) == count + len(collect.program.strings)
        # 40 bytes of each string, of which its text takes up to eight, and slots of two indexes,
        # which are at least a third full; and room to grow.
        assert engine.stats.string_bytes < 96 * count
        snapshot = engine.snapshot()
        engine.rollback(mark)
        engine.snapshot()
        assert len(engine.durable.strings) == count - size + len(collect.program.strings)
    with ss.Engine(collect, horizon=0, restore=snapshot) as engine:
        assert len(engine.durable.strings) == count + len(collect.program.strings)
        some = random.Random(1).sample(range(count), 100)
        codes = [string_code(str(number)) for number in some]
        assert [engine.durable.strings.text(code) for code in codes] == list(map(str, some))
        assert engine.state.n == count
        assert engine.snapshot() == snapshot


@pytest.mark.slow
@pytest.mark.long
def test_a_million_distinct_strings() -> None:
    run_distinct(1_000_000, 5)

"""The string table: every code gives its text, whatever the number of strings and how they came."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import hashlib
import random
import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import specstream as ss
from specstream.columns import strings
from specstream.columns.strings import StringTable, string_code, string_codes

TEXTS = st.text(max_size=6)


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
            st.tuples(st.just("add_all"), st.lists(TEXTS, unique=True)),
            st.tuples(st.just("truncate"), st.integers(0, 12)),
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
            model += [text for text in argument if text not in model]
        else:
            assert isinstance(argument, int)
            table.truncate(argument)
            del model[argument:]
        assert len(table) == len(model)
        assert table.strings() == model
        codes = np.array([string_code(text) for text in [*model, "absent"]], np.int64)
        assert table.texts(codes).to_pylist() == [*model, None]
        assert [table.text(int(code)) for code in codes] == [*model, None]


def test_neighbouring_codes_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Codes that begin their search at one slot, many of them, in one batch and in several."""
    codes = {f"t{i}": 1 + i * 2**40 for i in range(500)}
    monkeypatch.setattr(
        strings, "string_codes", lambda texts: np.array([codes[t] for t in texts.to_pylist()])
    )
    table = StringTable()
    names = list(codes)
    for begin in range(0, 500, 100):
        table.add_all(large(names[begin : begin + 100]))
    assert table.texts(np.array([*codes.values(), 2])).to_pylist() == [*names, None]
    table.truncate(250)
    assert table.texts(np.array([*codes.values()])).to_pylist() == [*names[:250], *[None] * 250]


def test_two_strings_with_one_code_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """BLAKE2b of half a byte, so that codes meet: at once, later, and one at a time."""
    whole = hashlib.blake2b

    class Weak:
        def __init__(self, data: bytes, digest_size: int) -> None:
            self.data = bytes(data)

        def digest(self) -> bytes:
            return bytes([whole(self.data).digest()[0] & 15, *[0] * 7])

    monkeypatch.setattr(hashlib, "blake2b", Weak)
    texts = [f"t{i}" for i in range(40)]
    first: dict[int, list[str]] = {}
    for text in texts:
        first.setdefault(string_code(text), []).append(text)
    one, other = next(group for group in first.values() if len(group) > 1)[:2]
    message = f"'{one}' and '{other}' have the same 64-bit code"
    table = StringTable()
    with pytest.raises(ss.InputError, match=message):
        table.add_all(large([one, other]))
    assert len(table) == 0
    for add in (table.add, lambda text: table.add_all(large([text]))):
        table.add(one)
        with pytest.raises(ss.InputError, match=message):
            add(other)
        assert table.strings() == [one]
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


def run_distinct(count: int, batches: int) -> None:
    """So many distinct keys through an engine, a snapshot, and a rewind."""
    size = count // batches
    with ss.Engine(echo, threads=2, horizon=8, chunk=64) as engine:
        for number in range(batches):
            numbers = pa.array(range(number * size, (number + 1) * size)).cast(pa.string())
            if number == batches - 1:
                mark = engine.savepoint()
            assert engine.process({"name": numbers})["name"].combine_chunks().equals(numbers)
        assert len(engine.durable.strings) == count
        # The texts, of up to eight bytes, their offsets, codes and slots; and room to grow.
        assert engine.stats.string_bytes < 64 * count
        snapshot = engine.snapshot()
        engine.rollback(mark)
        assert len(engine.durable.strings) == count - size
    with ss.Engine(echo, horizon=0, restore=snapshot) as engine:
        assert len(engine.durable.strings) == count
        some = random.Random(1).sample(range(count), 100)
        codes = [string_code(str(number)) for number in some]
        assert [engine.durable.strings.text(code) for code in codes] == list(map(str, some))
        assert engine.state.n == count
        assert engine.snapshot() == snapshot


@pytest.mark.slow
@pytest.mark.long
def test_a_million_distinct_strings() -> None:
    run_distinct(1_000_000, 5)

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


LAYOUTS = [pa.string(), pa.large_string(), pa.string_view()]
NULLABLE = st.lists(st.one_of(st.none(), st.text(max_size=16)), max_size=40)


@given(NULLABLE, st.sampled_from(LAYOUTS), st.integers(0, 9), st.integers(0, 40), st.booleans())
def test_every_layout_gives_the_codes_of_its_texts(
    texts: list[str | None], of: pa.DataType, begin: int, length: int, encode: bool
) -> None:
    """Slices, nulls, views, dictionaries with and without unused values, several chunks."""
    array = pa.array(texts, of)
    if encode:
        array = array.cast(pa.large_string()).dictionary_encode()
    part, held = array.slice(begin, length), texts[begin : begin + length]
    for given_ in (part, pa.chunked_array([part, array, part.slice(1)], array.type)):
        expected = held if given_ is part else [*held, *texts, *held[1:]]
        table = StringTable(["first"])
        codes = table.add_all(given_)
        assert codes.tolist() == [0 if one is None else string_code(one) for one in expected]
        distinct = dict.fromkeys(["first", *(one for one in expected if one is not None)])
        if encode:  # those of a dictionary come in its order
            assert sorted(table.strings()) == sorted(distinct)
        else:
            assert table.strings() == list(distinct)
        assert table.texts(codes).to_pylist() == expected
        assert table.add_all(given_).tolist() == codes.tolist()


@pytest.mark.parametrize("of", LAYOUTS)
def test_what_is_no_utf8_is_refused_with_all_that_came_with_it(of: pa.DataType) -> None:
    wrong = [b"ok", "längere Texte als zwölf Zeichen".encode() + b"\xed\xa0\x80", b"also ok"]
    binary = [pa.binary(), pa.large_binary(), pa.binary_view()][LAYOUTS.index(of)]
    table = StringTable(["first"])
    with pytest.raises(ss.InputError, match=r"^string b'l\\xc3.*\\x80' is no UTF-8 text"):
        table.add_all(pa.array(wrong, binary).view(of))
    assert table.strings() == ["first"]


class Model:
    """A table as a dict of the texts' numbers."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.next = 0

    def add(self, text: str) -> None:
        if text not in self.numbers:
            self.numbers[text] = self.next
            self.next += 1

    def since(self, number: int) -> list[str]:
        return [text for text, of in self.numbers.items() if of >= number]


def check_against(table: StringTable, model: Model, mark: int, texts: list[str]) -> None:
    assert len(table) == len(model.numbers)
    assert table.mark == model.next
    assert table.strings() == list(model.numbers)
    assert table.since(mark).to_pylist() == model.since(mark)
    codes = np.array([string_code(text) for text in texts], np.int64)
    assert table.texts(codes).to_pylist() == [
        text if text in model.numbers else None for text in texts
    ]


@pytest.mark.parametrize("seed", range(4))
def test_sweeps_leave_what_is_referred_to(seed: int) -> None:
    dice = random.Random(seed)
    table, model = StringTable(), Model()
    table.track_drops = seed % 2 == 0
    every = [f"{number:0{5 + number % 60}}" for number in range(4000)]
    dropped: set[int] = set()
    kept, before = table.to_arrow(), list[str]()
    for _ in range(30):
        some = [dice.choice(every) for _ in range(dice.randrange(900))]
        half = len(some) // 2
        table.add_all(pa.chunked_array([some[:half], some[half:]], pa.string()))
        for text in some:
            model.add(text)
        alone = dice.choice(every)
        assert table.add(alone) == string_code(alone)
        model.add(alone)
        mark = dice.randrange(model.next)
        check_against(table, model, mark, dice.sample(every, 50))
        assert kept.to_pylist() == before
        if dice.random() < 0.6:
            share = dice.choice([0, 0.02, 0.5, 1])
            left = [text for text in model.numbers if dice.random() < share]
            words = [string_code(text) for text in left]
            words += [dice.getrandbits(63) for _ in range(100)] + [0, 1, -1]
            dice.shuffle(words)
            gone = set(model.numbers) - set(left)
            referred = [np.array(words[::2], np.int64), np.array(words[1::2], np.int64)]
            assert table.sweep(iter(referred)) == len(gone)
            model.numbers = {text: of for text, of in model.numbers.items() if text not in gone}
            dropped |= {string_code(text) for text in gone}
            check_against(table, model, mark, dice.sample(every, 50))
            if dice.random() < 0.5:
                told = table.take_dropped().tolist()
                assert sorted(told) == (sorted(dropped) if table.track_drops else [])
                dropped.clear()
        kept, before = table.to_arrow(), list(model.numbers)


def test_a_sweep_that_fails_drops_nothing_and_the_next_one_drops() -> None:
    table = StringTable(["a", "b", "c"])

    def referred():
        yield np.array([string_code("a")])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        table.sweep(referred())
    assert table.strings() == ["a", "b", "c"]
    assert table.sweep([np.array([string_code("b")])]) == 2
    assert table.strings() == ["b"]


def test_what_comes_while_it_is_asked_since_when_strings_stay_stays() -> None:
    table = StringTable(["a", "b", "c"])

    def since() -> None:
        table.add("new")
        table.add("a")
        # Whoever has added them was not running when this was looked at.

    assert table.sweep([np.array([string_code("c")])], since) == 1
    assert table.strings() == ["a", "c", "new"]


def test_what_is_met_or_added_while_a_sweep_runs_stays() -> None:
    table = StringTable(["a", "b", "c", "d"])

    def referred():
        table.add("a")
        table.add_all(pa.array(["b", "new"]))
        yield np.array([string_code("c")])
        table.add("newer")

    assert table.sweep(referred()) == 1
    assert table.strings() == ["a", "b", "c", "new", "newer"]
    assert table.sweep([]) == 5
    # Not from what the table had at hand before.
    assert table.text(table.add("a")) == "a"
    assert table.mark == 7


def test_memory_goes_with_what_is_left() -> None:
    """Whatever is left lies anywhere; and a table that stays small does not grow by sweeps."""
    table = StringTable()
    least = table.memory
    codes = table.add_all(large([f"order-{number:014}" for number in range(300_000)]))
    full = table.memory
    assert full > 300_000 * (20 + 32)
    for step in (2, 16, 1024):
        assert table.sweep([codes[::step]]) > 0
        # Chunks half full at least, and slots of two indexes.
        assert table.memory < least + 2 * len(table) * (56 + 2 * 26) + 8192
    assert table.sweep([]) == len(codes[::1024])
    assert table.memory <= least
    for number in range(300):
        table.add_all(large([f"{number}-{row}" for row in range(100)]))
        table.sweep([np.array([string_code(f"{one}-0") for one in range(number + 1)])])
    assert len(table) == 300
    assert table.memory < least + 2 * 300 * (40 + 2 * 26) + 8192


def test_threads_add_look_up_and_sweep_at_the_same_time() -> None:
    table = StringTable()
    kept = table.add_all(large([f"kept {number}" for number in range(500)]))
    wrong: list[object] = []
    done = threading.Event()

    def add(name: str) -> None:
        try:
            for begin in range(0, 20_000, 400):
                texts = [f"{name} {number}" for number in range(begin, begin + 400)]
                assert table.add_all(pa.array(texts)).tolist() == [*map(string_code, texts)]
                assert table.add("both") == string_code("both")
        except BaseException as error:
            wrong.append(error)

    def read() -> None:
        of = {"kept", "x", "y", "both"}
        while not done.is_set():
            if table.texts(kept).to_pylist() != [f"kept {number}" for number in range(500)]:
                wrong.append("a text that was referred to")
            wrong.extend(text for text in table.strings() if text.split()[0] not in of)

    def sweep() -> None:
        while not done.is_set():
            table.sweep([kept])

    adders = [threading.Thread(target=add, args=(name,)) for name in "xy"]
    others = [threading.Thread(target=read), threading.Thread(target=sweep)]
    for thread in (*adders, *others):
        thread.start()
    for thread in adders:
        thread.join()
    done.set()
    for thread in others:
        thread.join()
    assert wrong == []
    table.sweep([kept])
    assert table.strings() == [f"kept {number}" for number in range(500)]
    assert table.mark >= 40_500


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

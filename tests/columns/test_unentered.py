"""Columns of strings that are not entered: which they are, and that nobody can tell."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.operators.unentered_columns import (
    ENTERED,
    FEES,
    HARMLESS,
    NULLABLE,
    column,
    entering,
    harmless,
    harmless_table,
)

import specstream as ss
from specstream.columns.unentered import ColumnTexts, numbers_of, other_number
from specstream.declarations.codes import string_code


def test_columns_that_meet_literals_alone_are_not_entered() -> None:
    found = dict(harmless.program.unentered)
    assert set(found) == {*HARMLESS, *NULLABLE}
    assert found["h_pair"] == ("BUY", "SELL")
    assert found["h_capture"] == ("BUY", "SELL", "one")
    assert found["h_staged"] == found["h_unread"] == found["n_ask"] == found["h_said"] == ()
    assert found["h_dict"] == tuple(sorted(FEES))


def test_columns_that_meet_anything_else_are_entered() -> None:
    assert entering.program.unentered == ()
    rng = random.Random(6)
    table = pa.table({"i": [0, 1] * 30, **{name: column(rng, 60, False, 0) for name in ENTERED}})
    with ss.Engine(entering) as engine:
        expected = entering.run_sequential(table)
        assert engine.process(table) == expected.output
        assert engine.state.bits == expected.state.bits
        assert dict(engine.state.texts) == dict(expected.state.texts)


@pytest.mark.parametrize("errors", ["side", "raise"])
def test_an_engine_that_does_not_enter_them_gives_what_the_oracle_gives(errors: Any) -> None:
    rng = random.Random(1)
    with ss.Engine(harmless, errors=errors, threads=2, horizon=4, chunk=3) as engine:
        known = len(engine.parts.committed.strings)
        for new in range(6):
            table = harmless_table(rng, 200, new)
            expected = harmless.run_sequential(
                table, errors=errors, on_error="skip", initial=engine.state.to_dict()
            )
            if errors == "side":
                assert engine.process(table) == expected.output
                mine, theirs = engine.failed_events(), expected.failed_events
                assert mine is not None
                assert theirs is not None
                assert mine.num_rows
                assert mine.drop_columns(["sequence", "timestamp"]) == theirs.drop_columns(
                    ["sequence", "timestamp"]
                )
            else:
                with pytest.raises((ValueError, AssertionError, KeyError)) as raised:
                    engine.process(table)
                row, error = expected.raised[0]
                assert str(raised.value) == str(error)
                assert [one.partition("row ")[2] for one in raised.value.__notes__] == [
                    one.partition("row ")[2] for one in error.__notes__
                ]
                assert row == int(raised.value.__notes__[0].partition("row ")[2].split()[0])
        assert len(engine.parts.committed.strings) == known


def test_rows_in_another_order_and_rejected_rows() -> None:
    rng = random.Random(2)
    table = harmless_table(rng, 300)
    # Arrow takes no rows out of views.
    table = table.cast(
        pa.schema(
            [
                one.with_type(pa.string()) if one.type == pa.string_view() else one
                for one in table.schema
            ]
        )
    )
    table = table.append_column("t", pa.array(rng.choices(range(50), k=300)))
    holes = pa.array([None if at % 7 == 3 else "BUY" for at in range(300)])
    table = table.set_column(table.column_names.index("h_eq"), "h_eq", holes)
    options: dict[str, Any] = {"order_by": "t", "source": "h_unread"}
    expected = harmless.run_sequential(
        table, errors="side", rejected_rows="side", keys=True, **options
    )
    with ss.Engine(harmless, errors="side", rejected_rows="side", keys=True) as engine:
        assert engine.process(table, **options) == expected.output
        assert engine.failed_events() == expected.failed_events
        assert engine.rejected_rows() == expected.rejected_rows


def test_what_is_no_utf8_is_refused_where_python_reads_it_and_shown_elsewhere() -> None:
    wrong = pa.array([b"\xff", b"ok"]).cast(pa.string(), safe=False)
    rng = random.Random(3)
    table = harmless_table(rng, 2)

    def with_wrong(name: str) -> pa.Table:
        return table.set_column(table.column_names.index(name), name, wrong)

    with ss.Engine(harmless, errors="side") as engine:
        with pytest.raises(ss.InputError, match=r"string b'\\xff' is no UTF-8 text"):
            engine.process(with_wrong("h_staged"))
        assert engine.stats.events == 0
        two = with_wrong("h_said").set_column(
            table.column_names.index("h_raise"), "h_raise", pa.array(["two", "BUY"])
        )
        engine.process(two)
        failed = engine.failed_events()
        assert failed is not None
        assert failed["message"][0].as_py() == "not two, of �"
        assert failed["h_said"][0].as_py() == "�"


def test_hooks_are_told_the_texts() -> None:
    rng = random.Random(4)
    table = harmless_table(rng, 40)
    told = []
    with ss.Engine(
        harmless, errors="side", on_commit=lambda one: told.append(one.values)
    ) as engine:
        engine.process(table)
    rows = {tuple(row.items()) for row in table.to_pylist()}
    assert told
    assert all(tuple(one.items()) in rows for one in told)


@pytest.mark.parametrize("count", [0, 1, 2, 40, 300])
def test_literals_are_found_by_their_bytes(count: int) -> None:
    rng = random.Random(count)
    letters = ["a", "b", "é"]
    literals = tuple(
        {
            "".join(rng.choices(letters, k=rng.choice([0, 1, 3, 4, 7, 8, 9, 16, 17, 40])))
            for _ in range(count)
        }
    )
    texts = [
        "".join(rng.choices(letters, k=rng.choice([0, 1, 3, 4, 8, 9, 17, 40]))) for _ in range(500)
    ]
    values: list[str | None] = [*texts, *literals, *literals, None, "a\0", "\0"]
    rng.shuffle(values)
    other = other_number(literals)
    expected = [
        0 if one is None else string_code(one) if one in literals else other for one in values
    ]
    for of in (pa.string(), pa.large_string(), pa.string_view()):
        array = pa.array([None, "x", *values], of)[2:]
        found = numbers_of(array, literals).tolist()
        assert found == (expected if literals else [0] * len(values))
    encoded = pa.array(values).dictionary_encode()
    if literals:
        assert numbers_of(encoded, literals).tolist() == expected


def test_texts_of_some_events_are_copied() -> None:
    dictionary = pa.array(["a", "b", None, "a", "c"] * 3).dictionary_encode()[1:]
    texts = ColumnTexts(dictionary).ordered(np.array([3, 2, 1, 0]))
    assert [texts[at] for at in range(4)] == ["c", "a", None, "b"]
    some = texts.take(np.array([1, 3]))
    assert some.array() == pa.array(["a", "b"])
    assert len(some) == 2


def test_it_is_explained() -> None:
    text = str(harmless.explain())
    assert "h_eq: str, its texts not kept" in text
    assert "its texts" not in str(entering.explain())

"""Operators as people write them: engine, oracle, plain Python and another program agree."""

from __future__ import annotations

import importlib
import math
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from corpus.case import CASES, Case
from support import witness

import specstream as ss

DOMAINS = sorted(
    path.stem
    for path in (Path(__file__).parents[1] / "corpus").glob("*.py")
    if path.stem not in ("__init__", "case")
)
for domain in DOMAINS:
    importlib.import_module(f"corpus.{domain}")


TWO_THREADS: dict[str, Any] = {"threads": 2, "horizon": 8, "chunk": 4}


def marked(one: Case) -> Any:
    marks = []
    if one.number % 8:
        marks.append(pytest.mark.slow)
    if one.number % 2:
        marks.append(pytest.mark.long)
    if one.pending:
        marks.append(pytest.mark.xfail(raises=ss.CompileError, strict=True, reason=one.pending))
    elif one.defect:
        marks.append(pytest.mark.xfail(strict=True, reason=one.defect))
    return pytest.param(one, id=one.name, marks=marks)


EVERY = [marked(one) for one in CASES]


def in_pieces(one: Case, sizes: tuple[int, ...]) -> pa.Table:
    """The output of one engine that is given the stream in batches."""
    parts, at = [], 0
    with ss.Engine(one.operator, threads=2, horizon=4, chunk=2) as engine:
        for turn in range(one.table.num_rows):
            size = sizes[turn % len(sizes)]
            parts.append(engine.process(one.table.slice(at, size)))
            at += size
            if at >= one.table.num_rows:
                return pa.concat_tables(parts)
    raise AssertionError("no batch was the last one")


@pytest.mark.slow
@pytest.mark.parametrize("one", EVERY)
def test_every_path_and_program_agrees(one: Case) -> None:
    # First, because what is refused is refused by the compiler.
    plain = run_engine(one.operator, one.table, threads=1, horizon=0)
    expected = run_oracle(one.operator, one.table)
    assert bool(expected.raised) == one.raises, expected.raised[:3]
    assert_identical(plain, expected)
    assert_identical(run_engine(one.operator, one.table, **TWO_THREADS), expected)
    if one.number % 7 == 0:
        eager = run_engine(one.operator, one.table, protocol="eager", **TWO_THREADS)
        assert_identical(eager, expected)
    if one.number % 7 == 1 and not one.raises:
        assert in_pieces(one, (1, 17, 5)).equals(expected.output)
    kept = witness.assert_agrees(
        one.operator, one.table, replaced=one.replaced, are_none=one.are_none
    )
    assert kept == one.table.num_rows
    rows = rows_of(expected.output)
    assert rows or one.raises, "an operator that emits nothing says nothing"
    if one.expected is not None:
        assert_same_rows(rows, one.expected(one.table))


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def assert_same_rows(found: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    """Equal; floats, which another program may add up in another order, nearly so."""
    assert len(found) == len(expected)
    for number, (ours, theirs) in enumerate(zip(found, expected, strict=True)):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert is_same(one, other), f"row {number}: {ours} is not {theirs}"


def is_same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and other is not None:
        both_nan = one != one and other != other
        return both_nan or math.isclose(one, other, rel_tol=1e-9, abs_tol=1e-9)
    return bool(one == other)


def test_the_corpus_is_large_and_mostly_has_another_program() -> None:
    assert len(CASES) >= 80
    assert len({one.name for one in CASES}) == len(CASES)
    assert sum(one.expected is not None for one in CASES) >= len(CASES) // 2
    assert all(100 <= one.table.num_rows <= 300 for one in CASES)

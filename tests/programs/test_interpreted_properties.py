"""Random operators, interpreted: always the answer of their own sequential run, bit for bit.

The two share the wrappers of state, event and emit, and nothing below them: the sequential run
works on dicts and lists of Python's (:mod:`specstream.interpreted.memory`), an engine on its logs.
The third witness (:mod:`witness`), which shares nothing with either, says what the function means.
"""

from __future__ import annotations

import itertools
import os
import random
import re
import warnings
from pathlib import Path

import pyarrow as pa
import pytest
from conftest import run_oracle
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support import generated, witness
from support.generated.streams import (
    OPTIONS,
    ROWS,
    Row,
    assert_same_in_engines,
    assert_same_on_a_journey,
    table_of,
)

import specstream as ss

pytestmark = pytest.mark.slow

numbers = itertools.count(1_000_000)

# Each goes through several engines. A thousand are for a quiet night.
EXAMPLES = int(os.environ.get("EXAMPLES", "4"))
# Where a program calculates with the code of a string.
CODES = re.compile(r"code\b.{0,8}[&|^%<>]|1023")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("interpreted")


def assert_agrees_with_witness(
    operator: ss.Operator, text: str, table: pa.Table, seed: int
) -> None:
    """The sequential run gives what the third witness saw, where both are Python.

    The witness's nulls and codes of strings are those of compiled operators. So programs that
    calculate with codes are left out, and events with nulls. On arrays an interpreted operator has
    NumPy's arithmetic, which warns where Python's raises: then they may differ.
    """
    if CODES.search(text):
        return
    for name in ("value", "code"):
        table = table.filter(table[name].is_valid())
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        try:
            witness.assert_agrees(operator, table, seed, are_none=True)
        except AssertionError:
            if not any(issubclass(one.category, RuntimeWarning) for one in met):
                raise


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    program=st.integers(0, 2**32 - 1),
    statements=st.integers(1, 6),
    rows=st.lists(ROWS, min_size=1, max_size=40),
    repeat=st.integers(0, 100),
    paths=st.lists(OPTIONS, min_size=2, max_size=4),
    seed=st.integers(0, 2**64 - 1),
    dice=st.integers(0, 2**32 - 1),
)
def test_random_interpreted_operators_give_the_answer_of_the_sequential_run(
    program: int,
    statements: int,
    rows: list[Row],
    repeat: int,
    paths: list[dict[str, object]],
    seed: int,
    dice: int,
    folder: Path,
) -> None:
    writer = generated.Writer(random.Random(program), is_python=True)
    text = writer.operator(statements).replace("@ss.operator(", "@ss.operator(interpreted=True,")
    note(text[len(generated.HEADER) :])
    operator = generated.load(text, folder, next(numbers))
    assert operator.is_interpreted
    table = table_of(rows, repeat)
    expected = run_oracle(operator, table, seed=seed, keys=True)
    assert_agrees_with_witness(operator, text[len(generated.HEADER) :], table.slice(0, 50), seed)
    assert_same_in_engines(operator, table, expected, paths, seed)
    assert_same_on_a_journey(operator, table, expected, paths, seed, dice)

"""Random operators with timers and entries that expire, however their input comes: always the
answer of the sequential run and of plain Python, bit for bit."""

from __future__ import annotations

import itertools
import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Result, assert_identical, partial_of, run_oracle
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st
from support import contents, generated, witness
from support.engine.journeys import Journey
from support.generated.timers import TimedWriter

import specstream as ss

pytestmark = pytest.mark.slow

numbers = itertools.count()
ORDER: dict[str, Any] = {"order_by": "time", "source": "from"}
SETTINGS = ss.testing.settings()
# Each is compiled for several paths, which takes seconds. A thousand are for a quiet night.
EXAMPLES = int(os.environ.get("EXAMPLES", "2"))


def table_of(rows: int, seed: int) -> pa.Table:
    """Events of two sources in their order, some at once and some long after the others."""
    rng = np.random.default_rng(seed)
    time = np.cumsum(
        rng.choice([0, 0, 1, 1, 2, 9, 40], rows, p=[0.2, 0.2, 0.2, 0.2, 0.1, 0.08, 0.02])
    )
    source = rng.integers(0, 2, rows)
    order = np.lexsort((source, time))
    value = pa.array(rng.choice([0.0, -0.0, 1.5, -3.25, 1e30], rows), mask=rng.random(rows) < 0.1)
    when = rng.integers(-(10**12), 10**12, rows)
    return pa.table(
        {
            "time": time[order] - 30,
            "from": source[order],
            "key": rng.choice([*range(-3, 9), 2**40, -(2**63)], rows, p=[0.08] * 12 + [0.02] * 2),
            "value": value,
            "on": rng.random(rows) < 0.5,
            "code": rng.choice(np.array(["one", "two", "", "ä", None], object), rows),
            "when": pa.array(when, pa.timestamp("ms", "UTC")),
            "price": pa.array(rng.integers(0, 10**4, rows)).cast(pa.decimal128(22, 3)),
        }
    )


def run_cut(
    operator: ss.Operator, table: pa.Table, paths: list[dict[str, Any]], dice: int, **common: Any
) -> Result:
    """Pieces of the table, each by an engine that may be another one, to the end of the input."""
    with Journey(operator, paths, random.Random(dice), keys=True, **common) as journey:
        journey.tell(journey.engine.process(table.slice(0, 0), **ORDER), 0)
        # The position behind the last event is that behind the end.
        while True:
            journey.step()
            at = journey.told.position
            if at > table.num_rows:
                break
            piece = table.slice(at, journey.dice.randint(0, table.num_rows // 2 + 1))
            reached = at + piece.num_rows
            ends = reached == table.num_rows and journey.dice.random() < 0.5
            try:
                output = journey.engine.process(piece, **ORDER, end=ends)
                journey.tell(output, reached + ends)
            except Exception as error:
                partial = partial_of(error)
                is_event = not hasattr(error, "specstream_timer")
                journey.tell(partial.output, at + partial.consumed + is_event, error)
        told = journey.told
        state = contents.of_view(journey.engine.state)
        return Result(pa.concat_tables(told.parts), state, told.raised)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("generated")


def check(program: int, statements: int, rows: int, dice: int, folder: Path) -> witness.Testimony:
    """One program on some settings; what the witness saw of it."""
    writer = TimedWriter(random.Random(program), is_python=program % 4 > 0)
    text = writer.operator(statements, by_arrival=program % 3 == 0)
    note(text[len(generated.HEADER) :])
    operator = generated.load(text, folder, next(numbers))
    table = table_of(rows, dice)
    seen = witness.Testimony({})
    if writer.is_python:
        seen = witness.assert_agrees_in_time(operator, table, dice, writer.asks_none, **ORDER)
    some = random.Random(dice).sample(SETTINGS, 3)
    some += random.Random(dice).sample([one for one in SETTINGS if not one.batches], 1)
    ss.testing.check(operator, table, **ORDER, seed=dice, settings=some)
    paths = [{**one.options} for one in some]
    expected = run_oracle(operator, table, **ORDER, end=True, seed=dice, keys=True)
    assert_identical(run_cut(operator, table, paths, dice, seed=dice), expected)
    return seen


@settings(
    max_examples=EXAMPLES,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    program=st.integers(0, 2**32 - 1),
    statements=st.integers(1, 6),
    rows=st.integers(0, 150),
    dice=st.integers(0, 2**32 - 1),
)
def test_random_operators_with_timers(
    program: int, statements: int, rows: int, dice: int, folder: Path
) -> None:
    check(program, statements, rows, dice, folder)

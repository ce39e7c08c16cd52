"""Engine, oracle and witness give the same rows and states of random pipelines (rule PL-1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from graphs import events_of, random_pipeline
from phases import Phases, salts
from vertices import SOURCE, adding, always, both, eight, failing, keyed, sometimes

import specstream as ss

SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 3, "horizon": 6, "chunk": 2},
    {"threads": 2, "horizon": 8, "chunk": 1, "protocol": "eager"},
]


def tables(p: ss.Pipeline, output: Any) -> dict[str, pa.Table]:
    return output if isinstance(output, dict) else {next(iter(p._graph.sinks)): output}


def rows(p: ss.Pipeline, output: Any) -> dict[str, list[tuple[Any, ...]]]:
    """Of each sink."""
    return {
        name: [tuple(row.values()) for row in table.to_pylist()]
        for name, table in tables(p, output).items()
    }


def assert_same_state(view: Any, expected: Any) -> None:
    found, wanted = view.to_dict(), expected.to_dict()
    assert list(found) == list(wanted)
    for name, value in wanted.items():
        if isinstance(value, np.ndarray):
            assert np.array(found[name]).tobytes() == value.tobytes(), name
        else:
            assert found[name] == value, name


def check(p: ss.Pipeline, count: int, seed: int, settings: list[dict[str, Any]]) -> int:
    """All agree; how many phases have raised."""
    table, each = events_of(p, count, seed)
    seen = Phases(p, salts(p))
    for source, values in each:
        seen.phase(source, values)
    expected = p.run_sequential(table, on_error="skip")
    assert rows(p, expected.output) == seen.rows
    assert [row for row, _ in expected.raised] == seen.raised
    for options in settings:
        with ss.Engine(p, **options) as engine:
            parts, at, cut = [], 0, count // 3
            while at < count:
                try:
                    parts.append(engine.process(table.slice(at, cut)))
                    at += cut
                except ValueError as error:
                    partial = error.specstream_partial  # type: ignore[attr-defined]
                    parts.append(partial.output)
                    at += partial.consumed + 1
                cut = count
            for name, whole in tables(p, expected.output).items():
                found = pa.concat_tables([tables(p, part)[name] for part in parts])
                assert found.equals(whole), (options, name)
            assert_same_state(engine.state, expected.state)
    return len(seen.raised)


@pytest.mark.parametrize("seed", range(6))
def test_a_random_pipeline(seed: int) -> None:
    check(random_pipeline(seed, most=5), 40, seed, SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 102))
def test_a_large_random_pipeline(seed: int) -> None:
    check(random_pipeline(seed, most=12), 60, seed, SETTINGS)


@pytest.mark.slow
def test_a_pipeline_of_many_vertices() -> None:
    """Those that have a message are found by their bits."""
    few = [sometimes, sometimes, adding, keyed, both, eight]
    check(random_pipeline(201, most=80, least=70, of=few), 30, 201, SETTINGS[:2])


def failing_pipeline() -> ss.Pipeline:
    """The vertex in the middle raises, when others have done their part of the phase."""
    p = ss.Pipeline("failing")
    ticks = p.source("ticks", SOURCE)
    first = p.add(always, ticks)
    second = p.add(failing, first)
    p.sink("all", p.add(keyed, p.add(both, a=first, b=second)))
    p.sink("first", first)
    return p


def test_phases_that_raise_are_applied_nowhere() -> None:
    assert check(failing_pipeline(), 100, 1, SETTINGS) > 1


def test_an_error_names_vertex_path_and_event() -> None:
    p = failing_pipeline()
    table, _ = events_of(p, 100, 1)
    notes = []
    with pytest.raises(ValueError, match="four") as of_oracle:
        p.run_sequential(table)
    with ss.Engine(p) as engine, pytest.raises(ValueError, match="four") as of_engine:
        engine.process(table)
    for raised in (of_oracle, of_engine):
        notes.append(" ".join(raised.value.__notes__))
        assert "vertex 'failing' of pipeline 'failing', path (0)" in notes[-1]
    assert "(timestamp, source, sequence) =" in notes[1]

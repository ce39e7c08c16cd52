"""Engine, oracle and witness give the same rows and states of random pipelines (rule PL-1)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.engine.timed import cuts
from support.pipelines.graphs import events_of, random_pipeline
from support.pipelines.phases import Phases, salts, source_number
from support.pipelines.vertices import (
    SOURCE,
    TIMED,
    VERTICES,
    adding,
    always,
    both,
    eight,
    failing,
    keyed,
    sometimes,
)

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


def check(
    p: ss.Pipeline, count: int, seed: int, settings: list[dict[str, Any]], timed: bool = False
) -> Phases:
    """All agree; what the witness has seen."""
    table, each = events_of(p, count, seed, timed)
    order: dict[str, Any] = {"order_by": "t"} if timed else {}
    seen = Phases(p, salts(p))
    several = len(p._graph.sources) > 1
    for number, (source, values) in enumerate(each):
        of = source_number(source) if several else 0
        seen.phase(source, values, (values["t"], of, number) if timed else None)
    if timed:
        seen.end()
    expected = p.run_sequential(table, on_error="skip", end=timed, **order)
    assert rows(p, expected.output) == seen.rows
    assert [row for row, _ in expected.raised] == seen.raised
    for name, timers in seen.timers().items():
        found = getattr(expected.state, name).timers
        assert list(found.items()) == [(key, at) for key, (at, _) in timers.held.items()], name
    for number, options in enumerate(settings):
        pieces = cuts(np.random.default_rng([seed, number]), count, 3)
        with ss.Engine(p, **options) as engine:
            parts = []
            for piece, (at, end) in enumerate(pieces, start=1):
                ends = timed and piece == len(pieces)
                while True:
                    try:
                        part = table.slice(at, end - at)
                        parts.append(engine.process(part, **order, end=ends))
                        break
                    except ValueError as error:
                        partial = error.specstream_partial  # type: ignore[attr-defined]
                        parts.append(partial.output)
                        at += partial.consumed + (not hasattr(error, "specstream_timer"))
            for name, whole in tables(p, expected.output).items():
                found = pa.concat_tables([tables(p, part)[name] for part in parts])
                assert found.equals(whole), (options, name)
            assert_same_state(engine.state, expected.state)
    return seen


@pytest.mark.parametrize("seed", range(6))
def test_a_random_pipeline(seed: int) -> None:
    check(random_pipeline(seed, most=5), 40, seed, SETTINGS)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [100])
def test_a_large_random_pipeline(seed: int) -> None:
    check(random_pipeline(seed, most=12), 60, seed, SETTINGS)


@pytest.mark.parametrize("seed", [302, 306, 314])
def test_a_random_pipeline_with_timers(seed: int) -> None:
    p = random_pipeline(seed, most=6, of=[*VERTICES, *(5 * TIMED)])
    check(p, 60, seed, SETTINGS, timed=True)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("seed", [403])
def test_a_large_random_pipeline_with_timers(seed: int) -> None:
    p = random_pipeline(seed, most=14, of=[*VERTICES, *(3 * TIMED), failing])
    seen = check(p, 150, seed, SETTINGS, timed=True)
    assert seen.fired > 50


@pytest.mark.slow
@pytest.mark.long
def test_a_pipeline_of_many_vertices_with_timers() -> None:
    few = [*(2 * [sometimes, adding, both]), *TIMED]
    p = random_pipeline(202, most=70, least=66, of=few)
    assert check(p, 30, 202, SETTINGS[:1], timed=True).fired > 20


@pytest.mark.slow
@pytest.mark.long
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
    assert len(check(failing_pipeline(), 100, 1, SETTINGS).raised) > 1


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

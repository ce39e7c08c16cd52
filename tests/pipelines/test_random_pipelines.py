"""Random pipelines have all that rule PL-1 asks for, and what looks at them sees what is wrong."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import strategies as st
from support.daily import share_of
from support.pipelines.graphs import events_of, random_pipeline
from support.pipelines.phases import Phases, salts
from support.pipelines.vertices import RAISING, VERTICES
from support.stress import pipelines as stress_pipelines


def test_they_have_everything() -> None:
    found: dict[str, Counter[Any]] = {
        what: Counter() for what in ("vertices", "in", "out", "sources", "sinks", "operators")
    }
    for seed in range(400):
        draw = random.Random(seed)
        p = random_pipeline(draw, draw.choice(stress_pipelines.SIZES), raising=True)
        graph = p._graph
        readers: Counter[str] = Counter()
        for vertex in graph.vertices.values():
            streams = {one.stream for one in vertex.inputs}
            found["in"][len(streams)] += 1
            found["operators"][vertex.operator.name] += 1
            readers.update(streams)
        found["out"][max(readers.values())] += 1
        for what in ("vertices", "sources", "sinks"):
            found[what][len(getattr(graph, what))] += 1
    assert set(range(1, 9)) <= set(found["vertices"])
    assert max(found["vertices"]) > 35
    assert set(found["in"]) == set(range(1, 9))
    assert set(range(1, 9)) <= set(found["out"])
    assert set(found["sources"]) == {1, 2, 3}
    assert len(found["sinks"]) > 5
    assert set(found["operators"]) == {one.name for one in [*VERTICES, *RAISING]}
    assert min(found["operators"].values()) > 50


@pytest.mark.slow
def test_operators_emit_never_sometimes_always_and_many_and_raise() -> None:
    """Of rows for one run of a vertex, over all graphs."""
    rows: dict[str, set[int]] = {}
    raised = 0
    for seed in range(30):
        p = random_pipeline(seed, most=8, raising=True)
        seen = Phases(p, salts(p))
        for source, values in events_of(p, 60, seed)[1]:
            seen.phase(source, values)
        for name, counts in seen.emitted.items():
            rows.setdefault(p._graph.vertices[name].operator.name, set()).update(counts)
        raised += len(seen.raised)
    assert rows["never"] == {0}
    assert rows["sometimes"] == {0, 1}
    assert rows["always"] == {1}
    assert rows["several"] == {0, 1, 2, 3}
    assert max(rows["many"]) > 9
    assert raised > 20


@hypothesis.settings(max_examples=share_of(25))
@hypothesis.given(st.randoms(use_true_random=False), st.integers(0, 1000))
def test_the_oracle_and_the_witness_agree(draw: random.Random, seed: int) -> None:
    p = random_pipeline(draw, most=10, raising=True)
    table, each = events_of(p, 12, seed)
    seen = Phases(p, salts(p))
    for source, values in each:
        seen.phase(source, values)
    expected = p.run_sequential(table, on_error="skip")
    told = stress_pipelines.Told(p)
    told.add(expected.output)
    stress_pipelines.same_rows(told.rows, seen)
    stress_pipelines.same_state(expected.state.to_dict(), seen)
    assert [row for row, _ in expected.raised] == seen.raised


@pytest.mark.slow
@hypothesis.settings(max_examples=2, phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate])
@hypothesis.given(st.integers(0, 10**9))
@hypothesis.example(14)  # of phases by time, with timers
def test_engines_agree_with_them(seed: int) -> None:
    """In all settings; `make stress-pipelines` goes on with this."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPECSTREAM_CACHE_DIR", "")  # what is met once need not be kept
        stress_pipelines.attempt(seed, engines=6, most=4)


def test_a_row_or_a_field_that_differs_is_found() -> None:
    p = random_pipeline(3, most=6)
    table, each = events_of(p, 30, 3)
    seen = Phases(p, salts(p))
    for source, values in each:
        seen.phase(source, values)
    state = p.run_sequential(table).state.to_dict()
    stress_pipelines.same_state(state, seen)
    for name, value in state.items():
        if isinstance(value, np.ndarray) and value.shape == () and value:
            with pytest.raises(AssertionError, match=name):
                stress_pipelines.same_state({**state, name: value * 0}, seen)
    rows = {name: list(of) for name, of in seen.rows.items()}
    stress_pipelines.same_rows(rows, seen)
    name = max(rows, key=lambda one: len(rows[one]))
    rows[name].pop()
    with pytest.raises(AssertionError, match=f"sink {name} has"):
        stress_pipelines.same_rows(rows, seen)

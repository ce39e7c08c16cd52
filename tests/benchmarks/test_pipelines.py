"""The benchmark of pipelines: all that it compares do the same, and its page says what it saw."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from bench.pipelines import __main__ as command
from bench.pipelines import page as page_module
from bench.pipelines.graphs import GRAPHS, SINGLE, Graph, quiet_pipeline, single
from bench.pipelines.measure import FULL, QUICK, _levels, verify
from bench.pipelines.page import expectations, page
from bench.pipelines.vertices import CHEAP
from bench.stored import to_text
from specstream.compiler.phases import phase_body as phases
from specstream.tuning.machine import describe

FOLDER = Path(__file__).parents[2] / "docs" / "research"
DATA: dict[str, Any] = json.loads((FOLDER / "pipelines.json").read_text())


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_pipeline_engines_and_function_give_the_rows_of_plain_python(graph: Graph) -> None:
    assert verify(graph, 150) >= 1
    assert len(graph.pipeline().describe().vertices) == len(graph.engines)


# By graph: pairs of the state of the vertices and that of the one function.
STATES: dict[str, Callable[[Any, Any], list[tuple[Any, Any]]]] = {
    "edges": lambda p, f: [(getattr(p, f"v{n + 1}").cells, f.cells[n]) for n in range(10)],
    "heavy": lambda p, f: [(p.heavy.cells, f.cells), (p.count.counts, f.counts)],
    "cheap": lambda p, f: [(getattr(p, f"v{n + 1}").cells, f.cells[n]) for n in range(CHEAP)],
    "hot": lambda p, f: [([p.hot.total], [f.total]), (p.free.cells, f.cells)],
    "trading": lambda p, f: [
        (sorted(p.averages.stocks.items()), sorted(f.stocks.items())),
        (sorted(p.options.values.items()), sorted(f.values.items())),
        ([p.billing.number], [f.number]),
    ],
}


@pytest.mark.slow
@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.name)
def test_the_one_function_has_the_state_that_the_vertices_have(graph: Graph) -> None:
    batch = graph.events(400, 2, 8)
    pipeline, engine = ss.Engine(graph.pipeline(), threads=2), ss.Engine(graph.function, threads=2)
    with pipeline, engine:
        pipeline.process(graph.of_pipeline(batch), **graph.order)
        engine.process(graph.of_function(batch), **graph.order)
        for of_vertex, of_function in STATES[graph.name](pipeline.state, engine.state):
            assert list(of_vertex) == list(of_function)
            assert any(of_vertex)


@pytest.mark.slow
def test_a_quick_run_measures_all_parts_and_writes_data_picture_and_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unfinished = tmp_path / "unfinished.json"
    monkeypatch.setattr(command, "UNFINISHED", unfinished)
    parts = command.all_parts()
    assert set(parts) == set(DATA["parts"])
    # What an interrupted run has done is not done again.
    machine, quick = describe(), {"quick": True}
    done = {name: DATA["parts"][name] for name in parts if name not in ("cheap", "heavy-asleep")}
    unfinished.write_text(to_text({"machine": machine, **quick, "parts": done}))
    folder, file = tmp_path / "speed", tmp_path / "measured.json"
    arguments = ["--quick", "--resume", "--plot", str(folder), "--json", str(file)]
    monkeypatch.setattr("sys.argv", ["pipelines", *arguments])
    assert command.main() == 0
    assert not unfinished.exists()
    measured = json.loads(file.read_text())
    assert measured["parts"]["edges"] == DATA["parts"]["edges"]
    assert measured["parts"]["cheap"] != DATA["parts"]["cheap"]
    assert measured["parts"]["cheap"].keys() == DATA["parts"]["cheap"].keys()
    of, stored = (one["parts"]["cheap"]["contestants"] for one in (measured, DATA))
    assert of.keys() == stored.keys()
    assert all(len(one["speed"]) == 3 and one["nanoseconds"] > 0 for one in of.values())
    assert min(map(min, measured["parts"]["heavy-asleep"]["speed"].values())) > 0
    assert "What was expected" in capsys.readouterr().out
    assert (folder / "pipelines.md").read_text() == page(measured)
    assert (folder / "pipelines.png").read_bytes().startswith(b"\x89PNG")
    assert json.loads((folder / "pipelines.json").read_text()) == measured


@pytest.mark.slow
@pytest.mark.parametrize("part", ["quiet", "one-vertex"])
def test_small_parts_have_what_the_page_shows(part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    few = replace(QUICK, sizes=(1, 3, 66), rounds=1)
    found = command.all_parts()[part](few, lambda text: None)
    assert [one.keys() for one in found[:2]] == [one.keys() for one in DATA["parts"][part][:2]]
    seen = expectations({"parts": {part: found}})
    assert len(seen) == (2 if part == "quiet" else len(found))
    if part == "quiet":
        assert {one["vertices"] for one in found} == {1, 3, 66}


def test_the_page_is_what_the_stored_data_say() -> None:
    assert page(DATA) == (FOLDER / "pipelines.md").read_text()
    text = (FOLDER / "pipelines.json").read_text()
    assert text == to_text(DATA)
    assert not DATA["quick"]


def test_the_page_says_other_things_of_other_data() -> None:
    """Sentences that hold, whatever comes out next time."""
    other = json.loads(json.dumps(DATA))
    parts = other["parts"]
    parts["edges"]["contestants"]["pipeline, 2 threads"]["speed"] = [1.1, 1.11, 1.12]
    parts["edges"]["capacity"] = 1.23
    parts["hot"]["contestants"]["engines, 2 threads"]["speed"] = [0.2, 0.2, 0.2]
    for one in parts["quiet"]:
        one["ratio"] = [1.0, 1.0, 1.0]
    text = page(other)
    assert "10 µs at 1.11 times the speed" in text
    assert (
        "random edges, all change: pipeline, 2 threads | at least 1.85 | 1.11 (1.10-1.12) | **no**"
        in text
    )
    assert "two threads that share nothing 1.23" in " ".join(text.split())
    assert "slower than the pipeline" in " ".join(text.split())
    assert "(1.00) |" in text
    for load, is_said in ((0.3, False), (4.0, True)):
        other["machine"]["load"] = load
        assert ("**Provisional:**" in page(other)) == is_said
    held = {one.what: one.holds for one in expectations(other)}
    assert all(holds for what, holds in held.items() if what.startswith("a quiet phase"))
    assert page(DATA) != text


def test_what_is_expected_is_what_was_asked_for() -> None:
    asked = [(one.bound, one.least) for one in expectations(DATA)]
    assert asked[:3] == [(1.85, True), (1.9, True), (0.9, True)]
    assert asked[3:5] == [(1.2, False)] * 2
    assert asked[5:] == [(0.98, True)] * 6
    assert FULL.sizes[-1] == 1000
    assert page_module.IN_LINE == phases.MOST_IN_LINE


@pytest.mark.parametrize("size", [1, 5, 66])
def test_a_gate_that_nothing_passes_keeps_all_vertices_quiet(size: int) -> None:
    pipeline = quiet_pipeline(size)
    assert len(pipeline.describe().vertices) == size
    run = pipeline.run_sequential({"level": [3, 3, 3, 4, 4], "work": [0] * 5})
    assert run.output.num_rows == 2


def test_one_event_in_100_000_passes_also_from_batch_to_batch() -> None:
    levels = np.concatenate([_levels(500_000, seed, 0)["level"].to_numpy() for seed in (7, 8)])
    assert (np.diff(levels) != 0).sum() == 10


@pytest.mark.parametrize("name", SINGLE)
def test_a_pipeline_of_one_vertex_does_what_its_operator_does(name: str) -> None:
    operator, events, _ = SINGLE[name]
    batch: pa.Table = events(200, 1)
    assert single(operator).run_sequential(batch).output == operator.run_sequential(batch).output

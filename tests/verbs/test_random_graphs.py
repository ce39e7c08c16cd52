"""Random graphs of all verbs equal the model, step by step, on all settings, restored at random."""

# The model carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from support.daily import share_of
from support.verb_graphs import EVENT, Graph, events_of, graph
from support.verbs_model import Model

import specstream as ss

SCHEMA = pa.schema(
    [
        ("time", pa.int64()),
        ("k", pa.string()),
        ("v", pa.int64()),
        ("n", pa.int64()),
        ("b", pa.bool_()),
    ]
)
Events = list[tuple[str, dict[str, Any], int]]
Rows = dict[str, list[dict[str, Any]]]


def data_of(of: Graph, events: Events) -> Any:
    """The events as tables of their sources."""
    tables = {
        source: pa.table(
            {
                "time": [time for name, _, time in events if name == source],
                **{
                    column: [row[column] for name, row, _ in events if name == source]
                    for column in EVENT
                },
            },
            SCHEMA,
        )
        for source in of.sources
    }
    return tables[of.sources[0]] if len(of.sources) == 1 else tables


def rows_of(of: Graph, output: Any) -> Rows:
    tables = output if isinstance(output, dict) else {f"of_{of.nodes[0].name}": output}
    return {node.name: tables[f"of_{node.name}"].to_pylist() for node in of.nodes}


def joined(parts: list[Rows]) -> Rows:
    return {name: [row for part in parts for row in part[name]] for name in parts[0]}


@pytest.mark.parametrize("part", range(share_of(9)))
def test_the_sequential_run_of_random_graphs_equals_the_model(part: int) -> None:
    for seed in range(part * 8, part * 8 + 8):
        of, events = graph(seed), events_of(seed, graph(seed).sources)
        model = Model(of.sources, of.ordered())
        expected = joined([*(model.event(*one) for one in events), model.end()])
        run = of.pipeline.run_sequential(data_of(of, events), order_by="time", end=True)
        assert rows_of(of, run.output) == expected, seed


SETTINGS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 6, "chunk": 1},
    {"threads": 2, "horizon": 6, "chunk": 1, "protocol": "eager"},
]


@pytest.mark.parametrize("seed", range(1000, 1000 + share_of(30, 10)))
def test_engines_equal_the_model_one_event_at_a_time_and_in_batches(seed: int) -> None:
    of = graph(seed, most=8)
    events = events_of(seed, of.sources, 30)
    model, rng = Model(of.sources, of.ordered()), random.Random(seed)
    expected = [*(model.event(*one) for one in events), model.end()]
    options = SETTINGS[seed % len(SETTINGS)]
    with ss.Engine(of.pipeline, **options) as engine:
        begun = engine.snapshot()
        for at, one in enumerate(events):
            is_last = at == len(events) - 1
            before = engine.snapshot()
            output = engine.process(data_of(of, [one]), order_by="time", end=is_last)
            wanted = joined([expected[at], expected[-1]]) if is_last else expected[at]
            assert rows_of(of, output) == wanted, (seed, at)
            engine.restore(before)  # back, and again
            output = engine.process(data_of(of, [one]), order_by="time", end=is_last)
            assert rows_of(of, output) == wanted, (seed, at)
        engine.restore(begun)
        found, at = [], 0
        while at < len(events):
            until = min(at + rng.randint(1, 12), len(events))
            batch = data_of(of, events[at:until])
            output = engine.process(batch, order_by="time", end=until == len(events))
            found.append(rows_of(of, output))
            at = until
        assert joined(found) == joined(expected), seed


@pytest.mark.parametrize("seed", range(2000, 2000 + share_of(6)))
def test_random_graphs_agree_in_all_settings(seed: int) -> None:
    of = graph(seed, most=6)
    ss.testing.check(of.pipeline, data_of(of, events_of(seed, of.sources)), order_by="time")

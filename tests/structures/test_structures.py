"""Structures over the state: under aborts they are what the sequential run makes of them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Path, assert_identical, run_oracle

import specstream as ss
from specstream.structures import allocate, heap, release

BLOCKS = 50


class Lists(ss.State):
    nodes = heap(blocks=BLOCKS, words=2)
    tops = ss.array(int, 4)
    lost = ss.scalar(int)


@ss.operator(
    state=Lists, event={"list": int, "value": int}, emits={"node": int, "value": int}, name="lists"
)
def lists(state, event, emit):
    """Pushes a value onto one of four lists, or pops one; a value of -1 raises after its work."""
    which = event.list % 4
    if event.value >= 0:
        if state.nodes[0, 2] == BLOCKS:
            state.lost += 1
        else:
            node = allocate(state.nodes)
            state.nodes[node, 1] = event.value
            state.nodes[node, 2] = state.tops[which]
            state.tops[which] = node
            emit(node, event.value)
    elif state.tops[which] != 0:
        node = state.tops[which]
        state.tops[which] = state.nodes[node, 2]
        emit(node, state.nodes[node, 1])
        release(state.nodes, node)
        if event.value == -2:
            release(state.nodes, node)


def events(count: int, seed: int, raising: bool = False) -> pa.Table:
    rng = np.random.default_rng(seed)
    values = np.where(rng.random(count) < 0.5, rng.integers(0, 100, count), -1)
    if raising:
        values[rng.random(count) < 0.02] = -2
    return pa.table({"list": rng.integers(0, 4, count), "value": values})


@pytest.mark.parametrize("raising", [False, True])
def test_lists_of_allocated_nodes(path: Path, raising: bool) -> None:
    table = events(2000, 3, raising)
    assert_identical(path(lists, table), run_oracle(lists, table))


def used(nodes: Any) -> int:
    """Blocks that hang on a list, or would if they were released."""
    return int((nodes[1 : int(nodes[0, 1]) + 1, 0] == -1).sum())


@pytest.mark.parametrize("protocol", ["value", "eager"])
def test_the_balance_is_even_after_half_of_the_runs_aborted(protocol: str) -> None:
    """Sixteen at a time run on one state, ahead of their turn: all but the first are in vain."""
    with ss.Engine(lists, threads=2, horizon=15, chunk=1, protocol=protocol) as engine:
        for start in range(0, 480, 16):
            ran = engine.stats.speculative_runs
            engine.submit(
                {"time": range(start, start + 16), "list": [0] * 16, "value": [1, -1] * 8},
                order_by="time",
            )
            deadline = time.monotonic() + 20
            while engine.stats.speculative_runs < ran + 16:
                assert time.monotonic() < deadline
                time.sleep(0.0005)
            engine.advance(0, start + 15)
            while engine.stats.pending:
                engine.poll(timeout=1)
        engine.advance(0)
        stats, state = engine.stats, engine.state
    assert stats.events == 480
    assert sum(stats.aborts.values()) > 0.4 * stats.speculative_runs
    assert state.nodes[0].tolist() == [1, 1, 0], "one block was ever needed, and it is free again"
    assert used(state.nodes) == 0


def test_a_full_heap_and_a_block_released_twice_are_errors() -> None:
    @ss.operator(state=Lists, event={"x": int}, name="direct")
    def direct(state, event, emit):
        if event.x > 0:
            allocate(state.nodes)
        else:
            release(state.nodes, -event.x)

    with ss.Engine(direct, threads=2, horizon=4, chunk=2) as engine:
        with pytest.raises(MemoryError, match="all blocks of the heap are in use"):
            engine.process({"x": [1] * (BLOCKS + 1)})
        assert engine.state.nodes[0, 2] == BLOCKS
        for wrong in ([-3, -3], [0], [-BLOCKS - 1]):
            with pytest.raises(ValueError, match="the block is not in use"):
                engine.process({"x": wrong})
        assert engine.state.nodes[0, 2] == BLOCKS - 1


@pytest.mark.parametrize("sizes", [(0, 1), (1, 0), (1.5, 1), (1, True)])
def test_sizes_are_checked(sizes: Any) -> None:
    with pytest.raises(ss.DeclarationError, match=r"heap: (blocks|words)="):
        heap(*sizes)

"""The benchmarks' own part of measuring: families, their best setting, rounds that are kept."""

from __future__ import annotations

import pytest

import specstream as ss
from bench import locked
from bench.harness import BASELINE, Effort, engine_contestant, measure
from bench.workloads import Workload, listing_4_2, values
from specstream.tuning.contest import Arena, EngineContestant

pytestmark = pytest.mark.slow

WORKLOAD = Workload(
    name="listing",
    title="Listing 4.2",
    operator=listing_4_2(10),
    rival=locked.listing_4_2(10),
    fine=locked.listing_4_2(10, 10),
    events=values(20),
    warm_up=100,
    settings=((2, 1), (4, 8)),
    target={"plain": 0.5},
)


def test_all_contestants_of_a_workload_are_measured_in_the_same_rounds() -> None:
    found = measure(WORKLOAD, Effort(2, 1e-4, 1, 1), lambda text: None)
    results = {result.contestant: result for result in found.results}
    assert list(results) == [
        "sequential check", BASELINE, "plain", "lock, 1 thread", "lock, 2 threads",
        "fine locks, 1 thread", "fine locks, 2 threads", "speculation, 1 thread",
        "forced speculation, 1 thread", "speculation, 2 threads", "automatic, 2 threads",
    ]  # fmt: skip
    assert {result.measured.rounds for result in found.results} == {2}
    assert results[BASELINE].measured.speed == 1.0
    assert results["plain"].target == 0.5
    assert results["lock, 2 threads"].setting in ("chunk 1", "chunk 8", "chunk 64")
    assert results["speculation, 2 threads"].setting in (
        "horizon 2, chunk 1",
        "horizon 4, chunk 8",
    )
    assert results["forced speculation, 1 thread"].measured.aborts == 0.0
    assert results["plain"].measured.aborts is None
    assert found.capacity > 0


def test_a_warm_state_counts_as_part_of_the_answer() -> None:
    base = engine_contestant(BASELINE, WORKLOAD, 1, (0, 1), "log_free")
    cold = EngineContestant("cold", WORKLOAD.operator, threads=1, horizon=0)
    try:
        with pytest.raises(ss.SpecstreamError, match="'cold' gave other rows than 'log-free'"):
            Arena([WORKLOAD.events(50, 1)], base).round([cold])
    finally:
        base.close()
        cold.close()

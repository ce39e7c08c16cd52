"""The runtime on a virtual machine of more cores than there are; see bench/cores."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from bench.cores.native import COSTS, Load, on_machine, real
from bench.cores.table import Cell, durations, ideal, speed_on_machine

MICRO = 1_000
SHORT = durations(2 * MICRO, 0.5, 400)


def of_ideal(cell: Cell, sigma: float, count: int) -> float:
    times = durations(cell.time, sigma, count)
    speed = speed_on_machine(Load(times, cell.threads, cell.horizon))
    return speed / ideal(times, cell.threads, cell.horizon)


def test_one_core_takes_as_long_as_the_events() -> None:
    seen = on_machine(Load(SHORT, 1, 0))
    assert SHORT.sum() / 1e9 < seen.seconds < 1.1 * SHORT.sum() / 1e9


def test_a_run_can_be_repeated() -> None:
    load = Load(SHORT, 6, 24)
    assert on_machine(load) == on_machine(load)


@pytest.mark.parametrize(
    "setting",
    [(3, 4, 1), (16, 64, 5), (1, 8, 1)],
    ids=["three", "chunks", "one"],
)
def test_the_answer_is_that_of_one_core_and_of_real_threads(
    setting: tuple[int, int, int],
) -> None:
    # Few words: events conflict.
    load = Load(SHORT, *setting, words=40, writes=5)
    alone = on_machine(replace(load, threads=1, horizon=0, chunk=1))
    there = on_machine(load)
    assert there.sum == alone.sum == real(load, asleep=False).sum
    assert (there.reruns > 0) == (load.threads > 1)


def test_words_that_are_read_in_a_row_give_the_same_answer_on_all_cores() -> None:
    load = Load(SHORT, 4, 8, 4, reads=50, run=20, writes=4, words=200)
    alone = on_machine(replace(load, threads=1, horizon=0, chunk=1))
    there = on_machine(load)
    assert there.sum == alone.sum == real(load, asleep=False).sum
    assert there.reruns > 0


def test_more_costs_take_more_time() -> None:
    load = Load(SHORT, 8, 32)
    dear = on_machine(load, COSTS | {"transfer": 10 * COSTS["transfer"]})
    assert dear.seconds > 1.2 * on_machine(load).seconds
    assert dear.sum == on_machine(load).sum


@pytest.mark.parametrize("cell", [Cell(50 * MICRO, 4, 16), Cell(200 * MICRO, 32, 512)], ids=str)
def test_equal_events_scale(cell: Cell) -> None:
    assert of_ideal(cell, 0.0, 40 * cell.threads) > 0.95


def test_the_ideal_is_bounded_by_the_longest_event_and_the_horizon() -> None:
    times = np.array([100, *[1] * 99])
    assert ideal(times, 10, 1000) == pytest.approx(199 / 100)
    assert ideal(times, 10, 10) == pytest.approx(199 / 109)
    # The head, and three behind it; the machine is no better.
    assert ideal(np.full(100, 5), 10, 3) == 4.0
    assert of_ideal(Cell(50 * MICRO, 10, 3), 0.0, 100) < 1.0


def test_commits_do_not_wait_for_one_line_after_the_other() -> None:
    times = np.full(1500, 200)
    load = Load(times, 8, 64, reads=20, writes=5, words=500_000)
    assert len(times) / on_machine(load).seconds > 3.5e6


def test_where_many_conflict_they_run_again_beside_each_other() -> None:
    times = durations(20 * MICRO, 0.5, 2000)
    load = Load(times, 8, 32, writes=2, words=200)
    seen = on_machine(load)
    assert seen.reruns > len(times)
    assert times.sum() / 1e9 / seen.seconds > 2.2  # with one after the other it is 1.3

"""The speed table's C harness does what the compiled operator does; or its numbers mean nothing."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from bench.speed.loads import LOADS, Load, events_of
from bench.speed.native import NativeContestant, library
from bench.workloads import MULTIPLIER, UPDATED_WORDS, updates

pytestmark = pytest.mark.slow

HALF_HOT = next(load for load in LOADS if load.hot == 0.5)


def events(load: Load, count: int) -> pa.Table:
    """The busy loops of both kinds turn equally often."""
    return events_of(load, native=20, compiled=20)(count, 7)


@pytest.mark.parametrize("count", [5, 20, 100])
def test_the_c_harness_equals_the_compiled_operator(count: int) -> None:
    table = events(HALF_HOT, 3_000)
    with ss.Engine(updates(UPDATED_WORDS, count), horizon=0) as engine:
        expected = engine.process(table)["busy"].to_numpy()
        words = engine.state.values.copy()
    for options in (
        (1, 0, 1, "log_free"),
        (1, 0, 1, "ordered"),
        (2, 8, 4, "ordered"),
        (2, 8, 4, "ordered", "eager"),
        (1, 4, 16, "speculate"),
        (1, 4, 16, "speculate", "eager"),
        (1, 0, 8, "locked"),
    ):
        contestant = NativeContestant("C", count, *options)
        try:
            rows = contestant.warm_up(table)
            assert (rows[:, 0] == np.arange(3_000)).all(), options
            assert (rows[:, 1] == expected).all(), options
            assert (contestant.state == words).all(), options
            if "speculate" in options:
                contestant.run(table, 0)
                assert contestant.aborts([0]) is not None
                contestant.restart()
                assert (contestant.state == words).all(), options
        finally:
            contestant.close()


def test_the_c_harness_and_the_runtime_find_what_the_other_one_has_stored() -> None:
    """Compiled operators are held to the same in tests/native/test_interface.py."""
    ffi, lib = library()
    slots, redo = ffi.new("struct ss_slot[]", 1 << 13), ffi.new("struct ss_write[32]")
    reads, state = ffi.new("struct ss_read[32]"), np.zeros(1 << 14, np.uint64)
    run = ffi.new("struct ss_run *")
    run.state = ffi.cast("uint64_t *", state.ctypes.data)
    run.slots, run.slot_mask, run.epoch_key = slots, len(slots) - 1, 6 << 32
    run.redo, run.redo_limit = redo, len(redo)
    run.read_top, run.read_end = reads, reads + len(reads)
    run.speculative = 1
    words = (0, 5, 2047, 2048, 2049, 6149, 8191, 8192, 10_000)
    for word in words:
        lib.speed_store(run, word, 7 + word)
        assert slots[lib.ss_index_hash(word) & run.slot_mask].key == run.epoch_key | word
        assert lib.ss_load(run, word) == 7 + word
        lib.ss_store(run, word + 50, 9 + word)
        assert lib.speed_load(run, word + 50) == 9 + word
    assert run.read_top == reads, "all was found in the redo log"


@pytest.mark.parametrize("load", LOADS, ids=lambda load: load.name)
def test_as_many_events_hit_the_hot_word_as_the_load_says(load: Load) -> None:
    table = events_of(load, native=550, compiled=550)(20_000, 3)
    value = table["value"].to_numpy()
    first = ((value ^ (value >> 32)) * np.int64(MULTIPLIER) >> 32) % UPDATED_WORDS
    assert abs((first == 0).mean() - load.hot) < 0.02
    work = table["work"].to_numpy()
    assert abs(work.mean() - 550) < 10
    assert work.max() == (10 if load.varied else 1) * work.min()

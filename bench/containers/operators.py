"""The same aggregate by key, written three times: what a dict of the state is compared with."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import pyarrow as pa

import specstream as ss

__all__ = ["by_hand", "events_of", "keys_of", "of_state", "ranks_of", "typed_dict"]

Keys = npt.NDArray[np.int64]


class Totals(ss.State):
    totals = ss.dict(int, (int, float))


@ss.operator(state=Totals, event={"key": int, "x": float}, emits={"mean": float}, name="ss.dict")
def of_state(state, event, emit):  # type: ignore[no-untyped-def]
    """Number and sum by key."""
    count, total = state.totals.get(event.key, (0, 0.0))
    count += 1
    total += event.x
    state.totals[event.key] = (count, total)
    if count % 64 == 0:
        emit(total / count)


def by_hand(keys: int) -> ss.Operator:
    """The same over arrays: open addressing, at most half full, as one writes it by hand."""
    slots = 1 << (2 * keys - 1).bit_length()
    mask = slots - 1

    class Table(ss.State):
        used = ss.array(int, slots)
        keys = ss.array(int, slots)
        counts = ss.array(int, slots)
        totals = ss.array(float, slots)

    @ss.operator(state=Table, event={"key": int, "x": float}, emits={"mean": float}, name="by hand")
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        mixed = event.key * 0x2545F4914F6CDD1D
        slot = (mixed ^ (mixed >> 29)) & mask
        while state.used[slot] != 0 and state.keys[slot] != event.key:
            slot = (slot + 1) & mask
        if state.used[slot] == 0:
            state.used[slot] = 1
            state.keys[slot] = event.key
        count = state.counts[slot] + 1
        total = state.totals[slot] + event.x
        state.counts[slot] = count
        state.totals[slot] = total
        if count % 64 == 0:
            emit(total / count)

    return process


@numba.njit(cache=False)
def _typed(table: Any, keys: Any, values: Any, out: Any) -> int:
    emitted = 0
    for row in range(len(keys)):
        key = keys[row]
        if key in table:
            count, total = table[key]
        else:
            count, total = 0, 0.0
        count += 1
        total += values[row]
        table[key] = (count, total)
        if count % 64 == 0:
            out[emitted] = total / count
            emitted += 1
    return emitted


def typed_dict() -> Callable[[pa.Table], float]:
    """A loop over Numba's typed dict: what gives seconds for a table; the dict stays."""
    table = numba.typed.Dict.empty(
        numba.types.int64, numba.types.Tuple((numba.types.int64, numba.types.float64))
    )

    def run(events: pa.Table) -> float:
        keys, values = events["key"].to_numpy(), events["x"].to_numpy()
        out = np.empty(len(keys))
        began = time.perf_counter()
        _typed(table, keys, values, out)
        return time.perf_counter() - began

    return run


def keys_of(keys: int, count: int, seed: int, exponent: float | None = None) -> Keys:
    """So many draws of so many keys, all alike or by Zipf's law; what a key is says nothing of how
    often it comes."""
    ranks = ranks_of(keys, count, np.random.default_rng(seed), exponent)
    return np.asarray(ranks * 0x9E3779B1 % (1 << 40), np.int64)


def ranks_of(
    keys: int, count: int, rng: np.random.Generator, exponent: float | None = None
) -> Keys:
    """So many draws of so many ranks, all alike or by Zipf's law; 0 is the most frequent."""
    if exponent is None:
        return np.asarray(rng.integers(0, keys, count), np.int64)
    shares = np.arange(1.0, keys + 1) ** -exponent
    return np.searchsorted(np.cumsum(shares) / shares.sum(), rng.random(count)).astype(np.int64)


def events_of(keys: Keys, seed: int) -> pa.Table:
    """Events with these keys."""
    return pa.table({"key": keys, "x": np.random.default_rng(seed).random(len(keys))})

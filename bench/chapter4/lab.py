"""``native.c`` from Python: costs of single accesses, transactions and aborts."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.native import shared_library

__all__ = ["ACCESSES", "METHODS", "TRANSACTIONAL", "WORDS", "Lab", "opened", "random_words"]

METHODS = ("none", "atomic", "mutex", "spin lock", "value", "eager")
TRANSACTIONAL = ("value", "eager")
ACCESSES = ("read", "write", "increment")

# The operator of 4.5.1 has 512 MB of state.
WORDS = 512 * 2**20 // 8

DECLARATIONS = """
struct lab;
struct phases { double create; double access; double commit; };
struct rerun { double first; double abort; double again; };
struct lab *lab_open(uint64_t *state, uint64_t words, int method);
void lab_close(struct lab *lab);
struct phases lab_phases(struct lab *lab, int method, int access, const uint32_t *words,
                         int64_t count, int64_t batches);
double lab_tasks(struct lab *lab, int method, int access, const uint32_t *words, int64_t count,
                 int64_t tasks, int64_t rounds);
double lab_undo(struct lab *lab, int method, int access, const uint32_t *words, int64_t count,
                int64_t batches);
double lab_interference(struct lab *lab, int method, int access, const uint32_t *words,
                        int64_t count, int64_t batches, int64_t changed, int core, int other_core);
struct rerun lab_rerun(struct lab *lab, int method, int access, const uint32_t *words,
                       int64_t count, int64_t batches, int64_t changed, int core, int other_core);
"""

Words = npt.NDArray[np.uint32]


@functools.cache
def _library() -> tuple[Any, Any]:
    return shared_library(Path(__file__).with_name("native.c"), DECLARATIONS)


@functools.cache
def _state() -> npt.NDArray[np.uint64]:
    """The state, every page of it touched."""
    return np.ones(WORDS, np.uint64)


_generator = np.random.default_rng(1)


def random_words(count: int, batches: int) -> Words:
    """Word indices (batches * count,), others at each call, so that nobody finds them in a cache.

    They are distinct within a batch for all practical purposes.
    """
    return _generator.integers(0, WORDS, count * batches, dtype=np.uint32)


class Lab:
    """An engine with a state of 512 MB whose transactions are run by hand, and timed by phases.

    Durations are nanoseconds. ``words`` holds the words of one batch after the other.
    """

    def __init__(self, method: str) -> None:
        self._ffi, self._lib = _library()
        self.method = METHODS.index(method)
        self.state = _state()
        pointer = self._ffi.cast("uint64_t *", self.state.ctypes.data)
        self._lab = self._lib.lab_open(pointer, len(self.state), self.method)
        if self._lab == self._ffi.NULL:
            raise MemoryError("no memory or no threads for the laboratory")
        # The first transactions touch the memory of the logs.
        self.phases("increment", random_words(1000, 4), 1000)

    def close(self) -> None:
        self._lib.lab_close(self._lab)

    def _time(self, what: str, access: str, words: Words, count: int, *more: int) -> Any:
        """What a function of ``native.c`` measures in the batches of ``count`` words."""
        first = self._ffi.cast("uint32_t *", words.ctypes.data)
        time = getattr(self._lib, what)
        batches = len(words) // count
        return time(self._lab, self.method, ACCESSES.index(access), first, count, batches, *more)

    def phases(self, access: str, words: Words, count: int) -> dict[str, float]:
        """Creation, accesses and commit of a transaction of ``count`` accesses, mean."""
        phases = self._time("lab_phases", access, words, count)
        return {"create": phases.create, "access": phases.access, "commit": phases.commit}

    def tasks(self, access: str, words: Words, count: int, rounds: int) -> float:
        """A task of so many rounds of a busy loop and ``count`` accesses, mean."""
        took: float = self._time("lab_tasks", access, words, count, rounds)
        return took

    def undo(self, access: str, words: Words, count: int) -> float:
        """Aborting a transaction that has made ``count`` accesses, mean."""
        took: float = self._time("lab_undo", access, words, count)
        return took

    def interference(self, access: str, words: Words, count: int, changed: int) -> float:
        """One access to a word accessed before, where another core changed ``changed`` of them."""
        with _two_cores() as cores:
            took: float = self._time("lab_interference", access, words, count, changed, *cores)
        if took < 0:
            raise RuntimeError("threads cannot be placed on cores here")
        return took

    def rerun(self, access: str, words: Words, count: int, changed: int) -> dict[str, float]:
        """First run, abort, and second run of a transaction that loses to another core's."""
        with _two_cores() as cores:
            rerun = self._time("lab_rerun", access, words, count, changed, *cores)
        if rerun.first == -1:
            raise RuntimeError("threads cannot be placed on cores here")
        if rerun.first == -2:
            raise AssertionError("a transaction committed whose words had been changed")
        return {"first": rerun.first, "abort": rerun.abort, "again": rerun.again}


@contextmanager
def _two_cores() -> Iterator[tuple[int, int]]:
    """One for this thread, one for the other; afterwards this thread may use all of them again."""
    mine = os.sched_getaffinity(0)
    if len(mine) < 2:
        raise RuntimeError("this experiment needs two cores")
    try:
        yield min(mine), max(mine)
    finally:
        os.sched_setaffinity(0, mine)


@contextmanager
def opened(method: str) -> Iterator[Lab]:
    lab = Lab(method)
    try:
        yield lab
    finally:
        lab.close()

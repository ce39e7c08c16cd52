"""``native.c`` from Python: costs of single accesses, transactions and aborts."""

from __future__ import annotations

import functools
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bench.native import shared_library

__all__ = [
    "ACCESSES",
    "CONTROLS",
    "METHODS",
    "MOST_RECORDS",
    "SMALL_RECORDS",
    "TRANSACTIONAL",
    "WORDS",
    "Lab",
    "Words",
    "handover",
    "opened",
    "opened_all",
    "random_words",
]

METHODS = ("none", "atomic", "mutex", "spin lock", "value", "eager")
TRANSACTIONAL = ("value", "eager")
# What is none of the methods, but shows what a difference is due to: a lock without an atomic
# instruction; an atomic operation on a word as large as a lock's, which acquires nothing; `value`
# with a lock array beside it.
CONTROLS = ("lock calls", "lock word", "value, lock array")
ACCESSES = ("read", "write", "increment")

# The operator of 4.5.1 has 512 MB of state.
WORDS = 512 * 2**20 // 8

# Entries of the lock array of `eager`, of 8 bytes: as by default, and so few that the cache nearest
# to the core holds them.
MOST_RECORDS = 1 << 20
SMALL_RECORDS = 1 << 11

FETCHED, ANEW, RUN_BEFORE, UNSEARCHED = 1, 2, 4, 8

DECLARATIONS = """
struct lab;
struct phases { double create; double access; double commit; };
struct rerun { double first; double abort; double again; };
struct lab *lab_open(uint64_t *state, uint64_t words, int method, uint64_t records);
void lab_close(struct lab *lab);
struct phases lab_phases(struct lab *lab, int method, int access, const uint32_t *words,
                         int64_t count, int64_t batches, int how);
double lab_tasks(struct lab *lab, int method, int access, const uint32_t *words, int64_t count,
                 int64_t tasks, int64_t rounds, int how);
double lab_undo(struct lab *lab, int method, int access, const uint32_t *words, int64_t count,
                int64_t batches, bool outside);
double lab_interference(struct lab *lab, int method, int access, const uint32_t *words,
                        int64_t count, int64_t batches, int64_t changed, bool unprotected,
                        int core, int other_core);
double lab_handover(int64_t rounds, int core, int other_core);
double lab_swaps(struct lab *lab, const uint32_t *words, int64_t count, int64_t batches,
                 int64_t changed, int core, int other_core);
struct rerun lab_rerun(struct lab *lab, int method, int access, const uint32_t *words,
                       int64_t count, int64_t batches, int64_t changed, int how,
                       int core, int other_core);
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

    Args:
        method: one of METHODS or CONTROLS.
        records: entries of the lock array of ``eager``.
    """

    def __init__(self, method: str, records: int = MOST_RECORDS) -> None:
        self._ffi, self._lib = _library()
        self.method = (*METHODS, *CONTROLS).index(method)
        self.state = _state()
        pointer = self._ffi.cast("uint64_t *", self.state.ctypes.data)
        self._lab = self._lib.lab_open(pointer, len(self.state), self.method, records)
        if self._lab == self._ffi.NULL:
            raise MemoryError("no memory or no threads for the laboratory")
        # The first transactions touch the memory of the logs and of the lock array.
        self.phases("increment", random_words(1000, 16), 1000)

    def close(self) -> None:
        self._lib.lab_close(self._lab)

    def _time(self, what: str, access: str, words: Words, count: int, *more: int) -> Any:
        """What a function of ``native.c`` measures in the batches of ``count`` words."""
        first = self._ffi.cast("uint32_t *", words.ctypes.data)
        time = getattr(self._lib, what)
        batches = len(words) // count
        return time(self._lab, self.method, ACCESSES.index(access), first, count, batches, *more)

    def phases(
        self, access: str, words: Words, count: int, fetched: bool = False, anew: bool = False
    ) -> dict[str, float]:
        """Creation, accesses and commit of a transaction of ``count`` accesses, mean.

        Args:
            fetched: the words, not what protects them, are in the cache.
            anew: descriptor and logs are allocated for each transaction, and collected later, which
                is counted as creation.
        """
        how = FETCHED * fetched + ANEW * anew
        phases = self._time("lab_phases", access, words, count, how)
        return {"create": phases.create, "access": phases.access, "commit": phases.commit}

    def tasks(
        self, access: str, words: Words, count: int, rounds: int, anew: bool = False
    ) -> float:
        """A task of so many rounds of a busy loop and ``count`` accesses, mean."""
        took: float = self._time("lab_tasks", access, words, count, rounds, ANEW * anew)
        return took

    def undo(self, access: str, words: Words, count: int, outside: bool = False) -> float:
        """Aborting a transaction that has made ``count`` accesses, mean.

        Args:
            outside: the accesses were made beside the transaction, which has made none.
        """
        took: float = self._time("lab_undo", access, words, count, outside)
        return took

    def interference(
        self, access: str, words: Words, count: int, changed: int, unprotected: bool = False
    ) -> float:
        """One access to a word accessed before, where another core changed ``changed`` of them.

        Args:
            unprotected: the other core changes the words alone, and no lock or record of theirs.
        """
        with _two_cores() as cores:
            took = self._time(
                "lab_interference", access, words, count, changed, unprotected, *cores
            )
        return _placed(took)

    def swaps(self, words: Words, count: int, changed: int = 0) -> float:
        """One exchange of an entry of a lock array, exchanged before; another core ``changed``
        so many of them meanwhile."""
        first = self._ffi.cast("uint32_t *", words.ctypes.data)
        with _two_cores() as cores:
            took = self._lib.lab_swaps(
                self._lab, first, count, len(words) // count, changed, *cores
            )
        return _placed(took)

    def rerun(
        self,
        access: str,
        words: Words,
        count: int,
        changed: int,
        fetched: bool = False,
        unsearched: bool = False,
    ) -> dict[str, float]:
        """First run, abort, and second run of a transaction that loses to another core's.

        Args:
            fetched: an earlier run has brought its data into the cache.
            unsearched: the abort does not look for the words whose locks were stolen.
        """
        how = RUN_BEFORE * fetched + UNSEARCHED * unsearched
        with _two_cores() as cores:
            rerun = self._time("lab_rerun", access, words, count, changed, how, *cores)
        if rerun.first == -1:
            raise RuntimeError("threads cannot be placed on cores here")
        if rerun.first == -2:
            raise AssertionError("a transaction committed whose words had been changed")
        return {"first": rerun.first, "abort": rerun.abort, "again": rerun.again}


def handover(rounds: int) -> float:
    """Nanoseconds until one core sees what the other one has written, mean.

    Two cores that share the cache next to them, as two hardware threads of one core do, take a
    fraction of what two cores with caches of their own take.
    """
    with _two_cores() as cores:
        return _placed(_library()[1].lab_handover(rounds, *cores))


def _placed(took: float) -> float:
    if took < 0:
        raise RuntimeError("threads cannot be placed on cores here")
    return took


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
def opened(method: str, records: int = MOST_RECORDS) -> Iterator[Lab]:
    lab = Lab(method, records)
    try:
        yield lab
    finally:
        lab.close()


@contextmanager
def opened_all(methods: Sequence[str] = METHODS) -> Iterator[dict[str, Lab]]:
    """A lab for each method, all at the same state, so that they can take turns."""
    with ExitStack() as stack:
        yield {method: stack.enter_context(opened(method)) for method in methods}

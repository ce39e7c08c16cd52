"""The engine of the C runtime: whoever calls into it does so by way of this file.

It adds nothing to the C functions but types, and what belongs to every call of one of them.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from specstream._native import ffi, lib
from specstream.columns.strings import StringTable
from specstream.compiler.backend.numba_types import VARIANTS, Variant
from specstream.declarations.containers import KEYED
from specstream.declarations.state_layout import Field, Layout
from specstream.definition.operator import Operator

if TYPE_CHECKING:
    from specstream._native import (
        Array,
        CData,
        Pointer,
        ss_config_p,
        ss_container,
        ss_early_figures,
        ss_early_told,
        ss_engine_p,
        ss_frontier_p,
        ss_hook,
        ss_hot_place,
        ss_memory,
        ss_occasion,
        ss_operation_entry,
        ss_outcome,
        ss_recorder_p,
        ss_region,
        ss_segment_p,
        ss_statistics,
        uint64_t,
    )

__all__ = ["ABORT_REASONS", "WAIT_MILLISECONDS", "Native", "configuration", "memory_needed"]

Words = npt.NDArray[np.int64]

# Between two looks at the interpreter's signals.
WAIT_MILLISECONDS = 50
# From a request to stop until the event in flight is rolled back.
GRACE_SECONDS = 1.0
_NOWHERE = 2**64 - 1  # SS_NOWHERE, which is beyond what cffi takes for a constant
_NOBODY: frozenset[int] = frozenset()
_FRONTIER = ffi.typeof("struct ss_frontier *")
_JOB = ffi.typeof("struct ss_job *")
_HOT_PLACES = 512  # that a thread remembers; see profile.c

ABORT_REASONS = {
    "conflict": lib.SS_ABORT_CONFLICT,
    "raised": lib.SS_ABORT_RAISED,
    "log_full": lib.SS_ABORT_LOG_FULL,
    "runaway": lib.SS_ABORT_RUNAWAY,
    "inconsistent_snapshot": lib.SS_ABORT_INCONSISTENT_SNAPSHOT,
    "locked": lib.SS_ABORT_LOCKED,
    "stolen": lib.SS_ABORT_STOLEN,
    "reordered": lib.SS_ABORT_REORDERED,
    "hook": lib.SS_ABORT_HOOK,
    "fault": lib.SS_ABORT_FAULT,
    "shadow": lib.SS_ABORT_SHADOW,
    "timer": lib.SS_ABORT_TIMER,
    "revoked": lib.SS_ABORT_REVOKED,
}


def configuration(
    operator: Operator, words: npt.NDArray[np.int64], **options: Any
) -> tuple[ss_config_p, tuple[CData, CData]]:
    """A ``struct ss_config`` for an operator whose state is in ``words``; and what it points to.

    Args:
        operator: whose state, scratch, locks and operations it tells of.
        words: the state; whoever has the configuration keeps it alive.
        options: the other members; ``record_shift`` among them.
    """
    layout: Layout = operator.layout
    regions = layout.regions(options["record_shift"])
    native_regions: Array[ss_region] = ffi.new("struct ss_region[]", regions)
    ranks = {field.name: rank for rank, field in enumerate(layout.all_timers, start=1)}
    containers: Array[ss_container] = ffi.new(
        "struct ss_container[]",
        [_container(field) | {"rank": ranks.get(field.name, 0)} for field in layout.containers],
    )
    config: ss_config_p = ffi.new(
        "struct ss_config *",
        {
            "state": ffi.cast("uint64_t *", words.ctypes.data),
            "state_words": layout.state_words,
            "scratch_words": layout.words("scratch"),
            "emit_words": operator.emits.row_words,
            "emits_to_sinks": operator.emits.has_sinks,
            "locks": layout.words("locks"),
            "regions": native_regions,
            "region_count": len(regions),
            "containers": containers,
            "container_count": len(containers),
            "timers": 0 if layout.timers is None else layout.containers.index(layout.timers) + 1,
            "operations": len(layout.operations),
            "boosted_first": min((f.offset for f, _ in layout.operations), default=0),
            "boosted_end": max((f.offset + f.words for f, _ in layout.operations), default=0),
            **options,
        },
    )
    return config, (native_regions, containers)


def _container(field: Field) -> dict[str, int]:
    """The ``struct ss_container`` of a field."""
    of = field.container
    assert of is not None
    keyed = dict.fromkeys(KEYED, lib.SS_KEYED)
    kinds = {**keyed, "deque": lib.SS_DEQUE}
    return {
        "kind": kinds.get(of.kind, lib.SS_LIST),
        "header": field.offset,
        "region": of.region,
        "room": of.room,
        "limit": of.limit,
        "key_words": of.key.words,
        "entry_words": of.entry_words,
        "expires": of.expires,
    }


def memory_needed(config: ss_config_p, horizon: int, mode: int) -> ss_memory:
    """The ``struct ss_memory`` of an engine that is not there yet, for jobs with that horizon."""
    return lib.ss_memory_needed(config, horizon, mode)


class Native:
    """An engine of the runtime, from the start of its threads to their end.

    Attributes:
        pointer: ``struct ss_engine *``; NULL when it was freed.
        threads: ids of its threads; none when it was freed.
        edition: another number whenever a job may change the state, or somebody else does.
        release_turn: gives the turn to the workers. Of C, so that no signal handler can raise
            before it has begun (interrupts.py).
    """

    def __init__(self, config: ss_config_p, name: str) -> None:
        self._name = name
        self.edition = 0
        self.pointer: ss_engine_p = lib.ss_engine_new(config)
        self.threads = _NOBODY
        if self.pointer == ffi.NULL:
            raise MemoryError(f"engine of {name!r}: no memory or no threads to be had")
        self.release_turn = partial(lib.ss_engine_release_turn, self.pointer)
        self.threads = frozenset(
            lib.ss_engine_thread(self.pointer, number) for number in range(config.threads)
        )

    @property
    def is_freed(self) -> bool:
        """Whether :meth:`free` was called."""
        return bool(self.pointer == ffi.NULL)

    def free(self) -> None:
        """Ends its threads; nothing else may be called afterwards."""
        try:
            lib.ss_engine_free(self.pointer)
        finally:
            self.pointer, self.threads = ffi.NULL, _NOBODY  # no call: see interrupts.py

    # ---- code ----

    def set_entry(self, variant: Variant, address: int) -> None:
        """Has the workers call this code for a variant of the operator."""
        lib.ss_engine_set_entry(self.pointer, VARIANTS[variant], ffi.cast("ss_entry", address))

    def set_operation(self, number: int, field: Field, addresses: list[int]) -> None:
        """Likewise for an operation on a boosted field, and for its inverse if it has one."""
        entry: ss_operation_entry
        inverse: list[ss_operation_entry]
        entry, *inverse = [ffi.cast("ss_operation_entry", address) for address in addresses]
        native = {"entry": entry, "first": field.offset, "words": field.words}
        if inverse:
            native["inverse"] = inverse[0]
        lib.ss_engine_set_operation(self.pointer, number, ffi.new("struct ss_boosted *", native))

    def use_strings(self, strings: StringTable) -> None:
        """Has machine code find the texts of strings in this table."""
        self._strings = strings  # which has to be there as long as the engine
        lib.ss_engine_use_strings(self.pointer, strings.pointer)

    def interpret(self, context: CData) -> None:
        """Has the workers call Python, with ``context``, a handle, in place of machine code."""
        # Kept here, as in set_hook.
        self._interpreter = context
        lib.ss_engine_interpret(self.pointer, lib.ss_python_interpreter, context)

    def interpret_vertices(self, context: CData) -> None:
        """Has machine code call Python, likewise, where it comes to an interpreted vertex."""
        self._interpreter = context
        lib.ss_engine_interpret_vertices(self.pointer, lib.ss_python_interpreter, context)

    def set_hook(self, kinds: int, function: ss_hook, context: CData) -> None:
        """Has it call ``function`` with ``context``, a handle, at occasions of these kinds."""
        # Kept here, because a handle keeps its object: in the object it would be a circle.
        self._context = context
        lib.ss_engine_set_hook(self.pointer, kinds, function, context)

    def set_answering(self, context: CData) -> None:
        """Has it ask Python, with ``context``, a handle, what compiled code does not know."""
        self._answering = context  # kept here, as in set_hook
        lib.ss_engine_set_answering(self.pointer, lib.ss_python_answering, context)

    def record(self, recorder: ss_recorder_p) -> None:
        """Has it note each run in a ``struct ss_recorder``, which the caller keeps alive."""
        lib.ss_engine_record(self.pointer, recorder)

    # ---- jobs ----

    def start(self, **job: Any) -> None:
        """Starts a job; ``job`` has the members of ``struct ss_job``.

        Raises:
            MemoryError: there is none for its logs.
        """
        self.edition += 1
        if not lib.ss_engine_start(self.pointer, ffi.new(_JOB, job)):
            raise MemoryError(
                f"engine of {self._name!r}: no memory for logs: use a smaller horizon"
            )

    def wait(self, milliseconds: int) -> bool:
        """Waits for the end of the job; whether it has come."""
        return bool(lib.ss_engine_wait(self.pointer, milliseconds))

    def stop(self) -> None:
        """Asks the job to end at its next event."""
        lib.ss_engine_stop(self.pointer)

    def end_job(self) -> None:
        """Ends the job in flight, whatever its events do; the threads are idle afterwards."""
        lib.ss_engine_stop(self.pointer)
        deadline = time.monotonic() + GRACE_SECONDS
        while True:
            try:
                if lib.ss_engine_wait(self.pointer, WAIT_MILLISECONDS):
                    return
            except KeyboardInterrupt:
                deadline = time.monotonic()  # a second Ctrl-C: no more grace
            if time.monotonic() >= deadline:
                lib.ss_engine_kill(self.pointer)

    def outcome(self) -> ss_outcome:
        """The ``struct ss_outcome`` of the job, as it stands."""
        return lib.ss_engine_outcome(self.pointer)

    @staticmethod
    def words(first: Pointer[uint64_t], count: int, width: int) -> npt.NDArray[np.int64]:
        """A copy of rows of ``width`` words each."""
        buffer = ffi.buffer(first, count * width * 8) if count else b""
        return np.frombuffer(buffer, np.int64).reshape(-1, width).copy()

    @staticmethod
    def rows(outcome: ss_outcome | ss_occasion, width: int) -> npt.NDArray[np.int64]:
        """A job's emitted rows, of ``width`` words each; valid until the next job."""
        buffer = ffi.buffer(outcome.rows, outcome.row_count * width * 8)
        return np.frombuffer(buffer, np.int64).reshape(-1, width)

    @staticmethod
    def firings(outcome: ss_outcome) -> list[tuple[int, int]]:
        """Number and time of the timers that have emitted rows, in order."""
        count = outcome.firing_count
        return [(one.number, one.time) for one in outcome.firings[0:count]] if count else []

    # ---- the open job ----

    def submit(self, segment: ss_segment_p) -> None:
        """Hands a ``struct ss_segment`` to the open job, and sets ``submitted`` in it.

        Raises:
            MemoryError: there is none for its events.
        """
        if not lib.ss_engine_submit(self.pointer, segment):
            raise MemoryError(f"engine of {self._name!r}: no memory for more events")

    def advance(self, frontier: tuple[int, int]) -> None:
        """Events of the open job below (timestamp, source) may commit."""
        at: ss_frontier_p = ffi.new(_FRONTIER)
        at.timestamp, at.source = frontier
        lib.ss_engine_advance(self.pointer, at[0])

    def go_on_ending(self, stamp: int) -> None:
        """Before the open job is told of a frontier, or while there is no job: at the end only
        timers with a stamp up to this one fire; 0: the end is another one."""
        lib.ss_engine_go_on_ending(self.pointer, stamp)

    def await_news(self, seconds: float) -> bool:
        """Waits until the open job has something to tell; whether it has."""
        return bool(lib.ss_engine_await(self.pointer, int(1e9 * seconds)))

    def is_settled(self) -> bool:
        """With the turn: no event of the open job can commit now."""
        return bool(lib.ss_engine_is_settled(self.pointer))

    def clear_rows(self) -> None:
        """With the turn: forgets the rows that were taken; later ones have another ``edition``."""
        lib.ss_engine_clear_rows(self.pointer)

    def resume(self, failed_row: int) -> None:
        """The open job goes on behind an event that has failed, if it is this one."""
        lib.ss_engine_resume(self.pointer, failed_row)

    def take_back_timer(self) -> None:
        """With the turn, after a job that a timer has ended which failed: it has not fired, and is
        set as it was. May be called again.

        Raises:
            MemoryError: there is none for its entry.
        """
        self.edition += 1
        if not lib.ss_engine_take_back_timer(self.pointer):
            raise MemoryError(f"engine of {self._name!r}: no memory for a timer that has failed")

    # ---- early results ----

    def confirm(self, segment: ss_segment_p) -> None:
        """The event of a tentative segment is as it is."""
        lib.ss_engine_confirm(self.pointer, segment)

    def withdraw(self, segment: ss_segment_p) -> None:
        """The event of a tentative segment never came."""
        lib.ss_engine_withdraw(self.pointer, segment)

    def tell_early(self) -> ss_early_told:
        """With the turn: the ``struct ss_early_told`` of the open job."""
        return lib.ss_engine_tell_early(self.pointer)

    def told_early(self, news: bool) -> None:
        """With the turn: what that gave was told, the news with the rest or not."""
        lib.ss_engine_told_early(self.pointer, news)

    def await_early(self, seconds: float) -> bool:
        """Waits until what was submitted is applied; whether it is."""
        return bool(lib.ss_engine_await_early(self.pointer, int(1e9 * seconds)))

    def early_figures(self) -> ss_early_figures:
        """The ``struct ss_early_figures`` of the open job, as it stands."""
        return lib.ss_engine_early_figures(self.pointer)

    def early_words(self) -> Words:
        """With the turn: what applied transactions have read, stored, overwritten and emitted, and
        the rows that are told or wait to be; a copy, in no order."""
        count = lib.ss_engine_early_words(self.pointer, ffi.NULL, 0)
        words = np.empty(count, np.int64)
        lib.ss_engine_early_words(self.pointer, ffi.from_buffer("uint64_t[]", words), count)
        return words

    def early_image(self, count: int) -> Words | None:
        """With the turn: the ``count`` words of the state as it is applied, live; None: there are
        no early results."""
        image = lib.ss_engine_early_image(self.pointer)
        if image == ffi.NULL:
            return None
        return np.frombuffer(ffi.buffer(image, 8 * count), np.int64)

    def formed(self) -> tuple[int, int]:
        """How many transactions the open job has formed, and how many before the first of those
        that may be running."""
        formed = lib.ss_engine_formed(self.pointer)
        return int(formed.all), int(formed.before_first)

    # ---- the turn ----

    def try_turn(self, held: Pointer[bool]) -> bool:
        """Waits a little for the turn; ``held``, a ``bool *``, is set where it is taken.

        It is given back by ``release_turn``.
        """
        return bool(lib.ss_engine_try_turn(self.pointer, WAIT_MILLISECONDS, held))

    def state_changed(self) -> None:
        """With the turn, and no job: the state was written to by somebody who is no worker."""
        lib.ss_engine_state_changed(self.pointer)

    def change(self, begins: bool) -> None:
        """With the turn, before and after such a change: who looks without the turn is told."""
        self.edition += 1
        lib.ss_engine_change(self.pointer, begins)

    # ---- keys ----

    def look(self, container: int, key: Words | None, width: int) -> Words | bool | None:
        """Without the turn: the row of a key of a container, as it is committed.

        It has ``width`` words; None: it is not there. Without a key it is one word, the number of
        entries. False: there was no instant at which the state was whole; take the turn.
        """
        row = np.empty(width, np.int64)
        found = lib.ss_engine_look(
            self.pointer,
            container,
            ffi.NULL if key is None else ffi.from_buffer("uint64_t[]", key),
            ffi.from_buffer("uint64_t[]", row, require_writable=True),
        )
        if found == lib.SS_LOOK_AGAIN:
            return False
        return row if found == lib.SS_LOOK_FOUND else None

    def find(self, container: int, key: Words) -> int | None:
        """With the turn: the first word of a key's entry."""
        found = lib.ss_engine_find(self.pointer, container, ffi.from_buffer("uint64_t[]", key))
        return None if found == _NOWHERE else int(found)

    def find_applied(self, container: int, key: Words) -> int | None:
        """With the turn: the same in :meth:`early_image`, if there is one."""
        at = ffi.from_buffer("uint64_t[]", key)
        found = lib.ss_engine_find_applied(self.pointer, container, at)
        return None if found == _NOWHERE else int(found)

    def is_idle(self) -> bool:
        """Whether no job is in flight; for a forked process, as it takes no mutex."""
        return bool(lib.ss_engine_is_idle(self.pointer))

    # ---- what it counts ----

    def statistics(self) -> ss_statistics:
        """The ``struct ss_statistics``, as it stands."""
        return lib.ss_engine_statistics(self.pointer)

    def ask(self, nanoseconds: int) -> None:
        """Waits so long at most for a plain run to count what it has done."""
        lib.ss_engine_ask(self.pointer, nanoseconds)

    def hot_places(self) -> Iterator[ss_hot_place]:
        """Between two jobs: each ``struct ss_hot_place`` that the threads remember.

        One is valid until the next one is asked for.
        """
        room = len(self.threads) * _HOT_PLACES
        found: Array[ss_hot_place] = ffi.new("struct ss_hot_place[]", room)
        for at in range(min(lib.ss_engine_hot_places(self.pointer, found, room), room)):
            yield found[at]

    def memory(self) -> int:
        """Bytes of logs and buffers."""
        return int(lib.ss_engine_memory(self.pointer))

    def waiting(self) -> int:
        """Length of the wait queue."""
        return int(lib.ss_engine_waiting(self.pointer))

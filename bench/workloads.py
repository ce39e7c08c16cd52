"""What is measured: operators, their rivals under a lock, and the events they get."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import specstream as ss
from bench import locked
from specstream.declarations.element_types import type_named
from specstream.operators import nearest_neighbours, top_k
from specstream.tuning.machine import MULTIPLIER, busy_loop

__all__ = ["MULTIPLIER", "Workload", "all_workloads", "busy_loop", "values"]

TOP_K: dict[str, Any] = {"k": 5, "rows": 5, "width": 1024}
NEIGHBOURS: dict[str, Any] = {"grid": 100, "per_bucket": 10, "k": 3}
UPDATED_WORDS = 1 << 20  # 8 MB


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One operator under one load.

    Attributes:
        name: short, for ``--only``.
        title: what the table says.
        operator: the plain function.
        rival: the same under one global lock.
        fine: the same under fine-grained locks.
        events: makes a table of that many events; another one for every seed.
        warm_up: events that bring the state to what it is like after a long run.
        settings: (horizon, chunk) pairs to choose the best from.
        target: what is asked for, by contestant: speed relative to the log-free clone.
    """

    name: str
    title: str
    operator: ss.Operator
    rival: ss.Operator
    fine: ss.Operator
    events: Callable[[int, int], pa.Table]
    warm_up: int
    settings: tuple[tuple[int, int], ...]
    target: dict[str, float]


def listing_4_2(size: int) -> ss.Operator:
    """Listing 4.2 of Brito 2010, 4.5.3: one word is read and written, then a busy loop.

    The loop is a chain whose last value is emitted. Shift and multiplication alternate: of a chain
    of multiplications and additions alone an optimiser makes one per eight rounds. ``work`` is the
    number of its rounds.
    """

    class Local(ss.State):
        local_state = ss.array(int, size)

    @ss.operator(
        state=Local,
        event={"value": int, "work": int},
        emits={"result": int, "busy": int},
        name=f"listing_4_2_{size}",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        entry = event.value % size
        result = state.local_state[entry]
        state.local_state[entry] = result + 1
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        emit(result, busy)

    return process


def updates(words: int, count: int) -> ss.Operator:
    """``count`` words of a large state are incremented; a hash of the event's value says which."""

    class Words(ss.State):
        values = ss.array(int, words)

    @ss.operator(
        state=Words, event={"value": int, "work": int}, emits={"busy": int}, name="updates"
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        busy = event.value
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        at = event.value
        for _ in range(count):
            at = (at ^ (at >> 32)) * MULTIPLIER
            state.values[(at >> 32) % words] += 1
        emit(busy)

    return process


def slowed(base: ss.Operator) -> ss.Operator:
    """An operator after so many rounds of the busy loop as each event says."""
    types = {"int": int, "float": float, "bool": bool, "str": str}
    fields: dict[str, Any] = {"never": ss.scalar(int)}  # what the loop's result might change
    for field in base.layout.fields:
        of = type_named(field.storage.name)
        fields[field.name] = (
            ss.scratch(of, field.shape)
            if field.space == "scratch"
            else ss.locks(field.size)
            if field.space == "locks"
            else ss.array(of, field.shape, fill=field.fill)
            if field.shape
            else ss.scalar(of, field.fill)
        )
    process = base.function

    @ss.operator(
        state=type("Slowed", (ss.State,), fields),
        event={**{name: types[column.kind] for name, column in base.event}, "work": int},
        emits={name: types[column.kind] for name, column in base.emits},
        name=f"{base.name}_slowed",
    )
    def slow(state, event, emit):  # type: ignore[no-untyped-def]
        busy = event.work
        for _ in range(event.work):
            busy = (busy ^ (busy >> 32)) * MULTIPLIER
        if busy == 1:
            state.never += 1
        process(state, event, emit)

    return slow


def with_work(
    events: Callable[[int, int], pa.Table], rounds: int
) -> Callable[[int, int], pa.Table]:
    """Events of :func:`slowed`."""
    return lambda count, seed: events(count, seed).append_column(
        "work", pa.array(np.full(count, rounds))
    )


def skewed_items(count: int, seed: int) -> pa.Table:
    """Integer items whose frequencies follow Zipf's law with exponent 1.3."""
    return pa.table({"item": np.random.default_rng(seed).zipf(1.3, count).astype(np.int64)})


def uniform_points(count: int, seed: int) -> pa.Table:
    """Points anywhere in the unit square."""
    generator = np.random.default_rng(seed)
    return pa.table({"x": generator.random(count), "y": generator.random(count)})


def values(work: int) -> Callable[[int, int], pa.Table]:
    """Random values, each with so many rounds of the busy loop."""

    def events(count: int, seed: int) -> pa.Table:
        value: npt.NDArray[Any] = np.random.default_rng(seed).integers(0, 2**62, count)
        return pa.table({"value": value, "work": np.full(count, work)})

    return events


def seconds_per_event(operator: ss.Operator, events: pa.Table, repeat: int = 7) -> float:
    """The least of a few runs of the log-free clone: for calibration, where noise only adds."""
    with ss.Engine(operator, threads=1, execution="log_free") as engine:
        least = float("inf")
        for _ in range(repeat):
            before = engine.stats.seconds
            engine.process(events)
            least = min(least, (engine.stats.seconds - before) / events.num_rows)
    return least


def rounds_for(operator: ss.Operator, seconds: float, whole_event: bool = False) -> int:
    """Rounds of the busy loop that take so long; ``whole_event``: together with the rest of it."""
    empty = seconds_per_event(operator, values(0)(20_000, 1))
    round_time = (seconds_per_event(operator, values(5_000)(400, 1)) - empty) / 5_000
    return max(0, round((seconds - empty if whole_event else seconds) / round_time))


SHORT = ((2, 4), (4, 8), (8, 32), (4, 64))
LONG = ((1, 1), (2, 1), (4, 1), (8, 1), (4, 4))


def all_workloads(wanted: Callable[[str], bool]) -> list[Workload]:
    """Those whose name is wanted; calibrates the busy loops."""
    return [
        *_ready(wanted),
        *_as_long_as_in_the_text(wanted),
        *_listings(wanted),
        *_updates(wanted),
    ]


def _ready(wanted: Callable[[str], bool]) -> Iterator[Workload]:
    if wanted("top_k"):
        yield Workload(
            name="top_k",
            title="top-k, 5 of Zipf(1.3) items, sketch 5 x 1024",
            operator=top_k(**TOP_K),
            rival=locked.top_k(**TOP_K),
            fine=locked.top_k(**TOP_K, fine=True),
            events=skewed_items,
            warm_up=50_000,
            settings=SHORT,
            target={"plain": 0.90},
        )
    if wanted("nearest_neighbours"):
        yield Workload(
            name="nearest_neighbours",
            title="nearest neighbours, 3 of uniform points, 100 x 100 buckets of 10",
            operator=nearest_neighbours(**NEIGHBOURS),
            rival=locked.nearest_neighbours(**NEIGHBOURS),
            fine=locked.nearest_neighbours(**NEIGHBOURS, fine=True),
            events=uniform_points,
            warm_up=200_000,
            settings=((2, 2), (4, 4), (4, 8), (8, 8)),
            target={"plain": 0.95},
        )


def _as_long_as_in_the_text(wanted: Callable[[str], bool]) -> Iterator[Workload]:
    """The ready operators where an event costs what it did in the dissertation, Table 4.3."""
    for name, seconds, ready, rival, parameters, events in (
        ("top_k-12us", 12e-6, top_k, locked.top_k, TOP_K, skewed_items),
        (
            "nearest_neighbours-27us",
            27e-6,
            nearest_neighbours,
            locked.nearest_neighbours,
            NEIGHBOURS,
            uniform_points,
        ),
    ):
        if wanted(name):
            yield Workload(
                name=name,
                title=f"{ready.__name__}, {seconds * 1e6:.0f} us of work before each event",
                operator=slowed(ready(**parameters)),
                rival=slowed(rival(**parameters)),
                fine=slowed(rival(**parameters, fine=True)),
                events=with_work(events, rounds_for(busy_loop, seconds)),
                warm_up=5_000,
                settings=LONG,
                target={"speculation, 2 threads": 1.8},
            )


def _listings(wanted: Callable[[str], bool]) -> Iterator[Workload]:
    for size in (100, 10):
        operator = listing_4_2(size)
        for label, seconds in (
            ("110ns", 110e-9),
            ("1us", 1e-6),
            ("6us", 6e-6),
            ("20us", 20e-6),
            ("100us", 100e-6),
        ):
            name = f"listing_4_2-{size}-{label}"
            if not wanted(name):
                continue
            target = {("6us", 100): 1.5, ("100us", 100): 1.7}.get((label, size))
            yield Workload(
                name=name,
                title=f"Listing 4.2, state {size}, {label} of work",
                operator=operator,
                rival=locked.listing_4_2(size),
                fine=locked.listing_4_2(size, size),
                events=values(rounds_for(operator, seconds)),
                warm_up=1_000,
                settings=((2, 1), (2, 4), (4, 8), (4, 64)) if seconds < 3e-6 else LONG,
                target={} if target is None else {"speculation, 2 threads": target},
            )


def _updates(wanted: Callable[[str], bool]) -> Iterator[Workload]:
    if wanted("updates"):
        operator = updates(UPDATED_WORDS, 5)
        yield Workload(
            name="updates",
            title="5 updates of 8 MB, about 110 ns an event",
            operator=operator,
            rival=locked.updates(UPDATED_WORDS, 5),
            fine=locked.updates(UPDATED_WORDS, 5, locked.PARTS),
            events=values(rounds_for(operator, 110e-9, whole_event=True)),
            warm_up=50_000,
            settings=SHORT,
            target={},
        )

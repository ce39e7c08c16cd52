"""Random pipelines, and events for them."""

from __future__ import annotations

import random
from typing import Any, Literal

import pyarrow as pa

import specstream as ss
from support.pipelines.vertices import (
    IN_PYTHON,
    MULTIPLYING,
    RAISING,
    SOURCE,
    TIMED,
    TIMED_BY_TIME,
    VERTICES,
    always,
    both,
)

__all__ = ["events_of", "random_pipeline"]


# Multipliers one behind the other.
MOST_MULTIPLIED = 4
READERS = 8


def random_pipeline(
    seed: int | random.Random,
    most: int = 8,
    sources: int | None = None,
    of: list[ss.Operator] | None = None,
    least: int = 1,
    raising: bool = False,
    timed: bool = False,
    phases: Literal["event", "time"] = "event",
    in_python: float = 0.0,
) -> ss.Pipeline:
    """A pipeline of at most so many vertices; whatever nobody reads has a sink, or goes into one
    where there are many.

    Args:
        seed: or what to draw from.
        most: vertices.
        sources: how many; by default one to three.
        of: operators to choose from.
        least: vertices.
        raising: up to two vertices raise now and then.
        timed: some have timers.
        phases: what a phase is.
        in_python: how many of the vertices are interpreted.
    """
    with_timers = TIMED_BY_TIME if phases == "time" else TIMED
    of = of or ([*VERTICES, *(2 * with_timers)] if timed else VERTICES)
    draw = random.Random(seed) if isinstance(seed, int) else seed
    name = f"random_{seed}" if isinstance(seed, int) else "random"
    p = ss.Pipeline(name, phases=phases)
    count = draw.choice([1, 1, 2, 3]) if sources is None else sources
    streams = [p.source(f"s{n}", SOURCE) for n in range(count)]
    unread = {one.name: one for one in streams}
    multiplied = dict.fromkeys(unread, 0)
    size = draw.randint(least, most)
    raises = {draw.randrange(size) for _ in range(draw.randint(0, 2))} if raising else set()
    # A stream that many read, from here on.
    hub_from, hub = draw.randrange(2 * size), None
    readers = 0
    for n in range(size):
        operator = draw.choice(RAISING if n in raises else of)
        # The later ones more often, so that there are long ways as well.
        chosen = [
            streams[max(draw.randrange(len(streams)), draw.randrange(len(streams)))]
            for _ in range(max(len(operator.inputs), 1))
        ]
        if len(chosen) > 3 and len(streams) >= len(chosen) and draw.random() < 0.5:
            chosen = draw.sample(streams, len(chosen))
        if unread and draw.random() < (0.5 if least == 1 else 0.9):
            chosen[0] = draw.choice(list(unread.values()))
        if n == hub_from:
            hub = draw.choice(streams)
        if hub is not None and readers < READERS and draw.random() < 0.8:
            chosen[-1] = hub
            readers += 1
        times = max(multiplied[one.name] for one in chosen) + (operator in MULTIPLYING)
        if times > MOST_MULTIPLIED:
            few = [one for one in of if not one.inputs and one not in MULTIPLYING]
            operator = draw.choice(few or [always])
            chosen, times = chosen[:1], multiplied[chosen[0].name]
        name = f"v{n}"
        if in_python and draw.random() < in_python:
            operator = IN_PYTHON[operator]
        if operator.inputs:
            given = dict(zip(operator.inputs, chosen, strict=True))
            made = p.add(operator, name=name, **given)
        else:
            made = p.add(operator, chosen[0], name=name)
        for one in chosen:
            unread.pop(one.name, None)
        streams.append(made)
        unread[name] = made
        multiplied[name] = times
    while least > 1 and len(unread) > 3:
        first, second = list(unread.values())[:2]
        del unread[first.name], unread[second.name]
        name = f"join_{len(streams)}"
        streams.append(p.add(both, a=first, b=second, name=name))
        unread[name] = streams[-1]
    for one in unread.values():
        p.sink(f"of_{one.name}", one)
    for one in draw.sample(streams, min(len(streams), draw.randint(0, 2))):
        if one.name not in unread:
            p.sink(f"of_{one.name}", one)
    return p


def events_of(
    p: ss.Pipeline, count: int, seed: int, timed: bool = False
) -> tuple[pa.Table, list[tuple[str, Any]]]:
    """Events as the pipeline's table has them, and one by one with their sources; in the order of
    their times, "t", if they have some."""
    draw = random.Random(seed)
    names = list(p._graph.sources)
    each = []
    for _ in range(count):
        values = {
            "x": draw.randint(0, 99),
            "y": draw.random(),
            "s": draw.choice(["some", "", "other", "é"]),
            "n": draw.choice([None, 0, 7, 12]),
        }
        each.append((draw.choice(names), values))
    times = []
    if timed:
        times = sorted(draw.randint(0, count) for _ in range(count))
        # Of one time in the order of their names, and each source's as they come.
        order = sorted(range(count), key=lambda at: (times[at], each[at][0]))
        each = [(each[at][0], each[at][1] | {"t": times[at]}) for at in order]
    if len(names) == 1:
        table = {one: [values[one] for _, values in each] for one in SOURCE}
        types = {"x": pa.int64(), "y": pa.float64(), "s": pa.string(), "n": pa.int64()}
        made = pa.table({name: pa.array(table[name], types[name]) for name in table})
        return made.append_column("t", pa.array(times)) if timed else made, each
    columns: dict[str, list[Any]] = {"stream": [source for source, _ in each]}
    for name in names:
        for one in SOURCE:
            columns[f"{name}.{one}"] = [v[one] if of == name else None for of, v in each]
    kinds = {name: p.event.columns[p.event.names.index(name)].arrow for name in columns}
    made = pa.table({name: pa.array(columns[name], kinds[name]) for name in columns})
    return made.append_column("t", pa.array(times)) if timed else made, each

"""Finding the best setting in limited time: successive halving.

All candidates run a few interleaved rounds, the slower half leaves, the rest runs again, until few
are left and get the rest of the time. Plain is the baseline of every round and stays to the end;
so does Auto, which one would rather use than a fixed setting that is hardly better, because it goes
on looking when the data change.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.tuning.candidates import PLAIN, Candidate, candidates
from specstream.tuning.contest import (
    SHORTEST_BATCH,
    Arena,
    EngineContestant,
    Measurement,
    time_per_event,
)
from specstream.tuning.stream import Stream

__all__ = ["Finding", "Tried", "search"]

# Of plain, in one round: long enough for what starting a batch costs not to count.
BATCH_SECONDS = 0.015
FINALISTS = 4
# A gain below this is not worth threads.
WORTH = 1.03
# A setting that is this close to the best is as good.
AS_GOOD = 0.97


@dataclass(frozen=True)
class Tried:
    """A candidate and what it did.

    Attributes:
        last: it stayed to the end; the others have left after fewer rounds.
    """

    candidate: Candidate
    measured: Measurement
    last: bool


@dataclass(frozen=True)
class Finding:
    """What a search has found.

    Attributes:
        tried: all candidates, those that stayed to the end first, by speed.
        best: the one to use.
        reason: why, in a sentence.
        nanoseconds: per event, plain.
        around: nanoseconds per event that the conversion from and to Arrow takes, whatever the
            setting.
        batch: events in one round.
        short: the data are too few for the measurements to be worth much.
        seconds: what the rounds took.
    """

    tried: list[Tried]
    best: Candidate
    reason: str
    nanoseconds: float
    around: float
    batch: int
    short: bool
    seconds: float


def search(
    operator: Operator,
    stream: Stream,
    seconds: float,
    most_threads: int,
    protocols: tuple[str, ...] = ("value", "eager"),
    most_memory: int | None = None,
    say: Callable[[str], None] = lambda text: None,
) -> Finding:
    """Tries settings on a stream.

    Args:
        operator: what to run.
        stream: the user's events.
        seconds: for the rounds; compiling comes before.
        most_threads: largest number of threads to try.
        protocols: to try.
        most_memory: bytes that the engines may take together; None: as much as they need.
        say: told now and then what is going on.

    Raises:
        ConfigurationError: the operator is declared with ``speculate=False``.
        SpecstreamError: a setting gave other rows than the sequential run.
        Exception: what the operator raises on these events.
    """
    if not operator.speculates:
        raise ConfigurationError(
            f"operator {operator.name!r} is declared with speculate=False: its events run one "
            "after the other, and there is nothing to tune"
        )
    say("compiling")
    plain = EngineContestant(str(PLAIN), operator, stream.order, **PLAIN.options())
    contestants: dict[Candidate, EngineContestant] = {PLAIN: plain}
    try:
        each = time_per_event(plain, stream.first)
        batch = max(1, min(stream.count, round(BATCH_SECONDS / each)))
        arena = Arena(stream.batches(batch), plain)
        memory = plain.engine.stats.state_bytes
        for candidate in candidates(each, most_threads, protocols):
            if candidate.is_plain or (most_memory is not None and memory > most_memory):
                continue
            contestant = EngineContestant(
                str(candidate), operator, stream.order, **candidate.options()
            )
            contestants[candidate] = contestant
            # The state, its mark, and the logs.
            stats = contestant.engine.stats
            memory += 2 * stats.state_bytes + stats.memory
        say("warming up")
        arena.round(list(contestants.values()))
        began = time.perf_counter()
        tried = _halve(arena, contestants, seconds, say)
        best, reason = decide(tried)
        return Finding(
            tried,
            best,
            reason,
            next(one.measured.nanoseconds for one in tried if one.candidate.is_plain),
            (min(plain.walls.values()) - min(plain.times.values())) * 1e9,
            batch,
            batch * each < SHORTEST_BATCH,
            time.perf_counter() - began,
        )
    finally:
        for contestant in contestants.values():
            contestant.close()


def _halve(
    arena: Arena,
    contestants: dict[Candidate, EngineContestant],
    seconds: float,
    say: Callable[[str], None],
) -> list[Tried]:
    left = dict(contestants)
    gone: list[Tried] = []
    levels = 1
    while len(left) > FINALISTS << (levels - 1):
        levels += 1
    share = seconds / (levels + 1)
    for _ in range(levels - 1):
        rounds = arena.rounds_for(list(left.values()), share, 3, say)
        ranking = _ranked(arena, left, rounds)
        staying = max(FINALISTS, len(ranking) // 2)
        for place, one in enumerate(ranking):
            candidate = one.candidate
            if place >= staying and not candidate.is_plain and not candidate.is_auto:
                gone.append(one)
                left.pop(candidate).close()
    # The last level counts, and gets the time of two.
    rounds = arena.rounds_for(list(left.values()), 2 * share, 5, say)
    last = [Tried(one.candidate, one.measured, True) for one in _ranked(arena, left, rounds)]
    return last + sorted(gone, key=lambda one: -one.measured.speed)


def _ranked(
    arena: Arena, contestants: dict[Candidate, EngineContestant], rounds: range
) -> list[Tried]:
    tried = [
        Tried(candidate, arena.measured(contestant, rounds), False)
        for candidate, contestant in contestants.items()
    ]
    return sorted(tried, key=lambda one: -one.measured.speed)


def decide(tried: list[Tried]) -> tuple[Candidate, str]:
    """The setting to use, and why.

    Plain, unless something is faster for certain; of what is as good as the best, Auto before a
    fixed setting, and fewer threads before more.

    >>> def one(candidate, speed):
    ...     return Tried(candidate, Measurement(speed, speed, speed, 100.0, None, 5, 1.0), True)
    >>> decide([one(PLAIN, 1.0), one(Candidate(2, 8, 4), 0.8)])[0] == PLAIN
    True
    >>> str(decide([one(Candidate(2, 8, 4), 1.5), one(Candidate(2, "auto", "auto"), 1.48)])[0])
    '2 threads, Auto'
    >>> str(decide([one(Candidate(8, 8, 4), 1.5), one(Candidate(2, 8, 1), 1.49)])[0])
    '2 threads, horizon 8, chunk 1, value'
    """
    rivals = [one for one in tried if one.last and not one.candidate.is_plain]
    if not rivals:
        return PLAIN, "one thread is all there is, and one thread never gains by speculating"
    best = max(rivals, key=lambda one: one.measured.speed)
    found = best.measured
    if found.speed < WORTH or found.low <= 1.0:
        return PLAIN, (
            f"no setting is faster for certain: the best, {best.candidate}, runs at "
            f"{found.speed:.2f} of plain ({found.low:.2f} to {found.high:.2f})"
        )
    good = [one for one in rivals if one.measured.speed >= AS_GOOD * found.speed]
    chosen = min(
        good,
        key=lambda one: (one.candidate.threads, not one.candidate.is_auto, -one.measured.speed),
    )
    more = "" if chosen is best else f"; the fastest, {best.candidate}, at {found.speed:.2f}"
    return chosen.candidate, f"it runs at {chosen.measured.speed:.2f} of plain{more}"

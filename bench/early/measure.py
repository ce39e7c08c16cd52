"""What is measured: latency where two sources are merged, and streams with late events.

Sources that are merged are those of Figure 5.7 of Brito 2010: A sends with a mean rate, B with that
rate divided by 1 + d, both with exponential intervals. An event is in transit for a while, without
overtaking others of its source. Its latency is the time from its arrival to the moment when the
program has its row; where the program is late to submit it, that counts as well.

Streams with late events are in event time, and are fed as fast as they go: so many events a second,
of which a share comes later than its time by up to a delay, evenly spread. The frontier stays
behind by that delay, so that no event is refused.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

import specstream as ss
from bench.chapter4.margin import quartiles
from bench.chapter4.paced_sources import DIFFERENCES, LOOK, RATE, SETTLING
from bench.early.told import Log, look, standing
from specstream.operators import top_k
from specstream.tuning.contest import same_rows

__all__ = [
    "CURVES",
    "DELAYS",
    "EARLY",
    "FINAL",
    "FULL",
    "QUICK",
    "SHARES",
    "THREADS",
    "Amount",
    "delays",
    "rates",
]

Say = Callable[[str], None]

# Seconds that an event of Figure 5.7 is in transit, on average; what arrives is in order by source.
TRANSIT = 0.0002
# Items and how their frequencies fall; the list of the most frequent ones.
ITEMS, SKEW, MOST = 1_000, 1.2, 5

PLAIN, SPECULATIVE, WITH_EARLY = "final, no speculation", "final, speculation", "final, with early"
EARLY = "early"
FINAL = (PLAIN, SPECULATIVE, WITH_EARLY)
CURVES = (*FINAL, EARLY)
SETTINGS: Mapping[str, Mapping[str, Any]] = {
    PLAIN: {"horizon": 0},
    SPECULATIVE: {"horizon": 16, "chunk": 1},
    WITH_EARLY: {"horizon": 16, "chunk": 1, "early": True},
}

# Events per second of event time, and seconds of it between two submits.
DENSITY, TICK = 1_000, 0.05
ACCOUNTS = 1_000
DELAYS = (0.1, 1.0, 10.0)
SHARES = (0.01, 0.1, 0.5)
THREADS = (1, 2)
MICRO = 1_000_000


@dataclass(frozen=True)
class Amount:
    """How much to measure.

    Attributes:
        differences: between the rates of the sources.
        seconds: that these send.
        rounds: of those.
        delays: of late events, seconds.
        shares: of events that are late.
        threads: of the engines.
        event_seconds: of event time.
        repeats: rounds of those.
    """

    differences: tuple[float, ...]
    seconds: float
    rounds: int
    delays: tuple[float, ...]
    shares: tuple[float, ...]
    threads: tuple[int, ...]
    event_seconds: float
    repeats: int


FULL = Amount(
    differences=DIFFERENCES,
    seconds=1.5,
    rounds=5,
    delays=DELAYS,
    shares=SHARES,
    threads=THREADS,
    event_seconds=20.0,
    repeats=3,
)
QUICK = Amount(
    differences=(DIFFERENCES[0], DIFFERENCES[-1]),
    seconds=0.2,
    rounds=1,
    delays=DELAYS[:2],
    shares=(SHARES[0], SHARES[-1]),
    threads=THREADS,
    event_seconds=2.0,
    repeats=1,
)


class Accounts(ss.State):
    """What each has."""

    balances = ss.array(int, ACCOUNTS)


@ss.operator(
    state=Accounts,
    event={"account": int, "amount": int},
    emits={"account": int, "balance": int},
)
def book(state, event, emit):  # type: ignore[no-untyped-def]
    """Adds to an account and tells what it has then."""
    balance = state.balances[event.account] + event.amount
    state.balances[event.account] = balance
    emit(event.account, balance)


def _check(found: pa.Table, expected: pa.Table, what: str) -> None:
    if not same_rows(found, expected):
        raise AssertionError(f"{what}: other rows than the sequential run")


# ---- two sources ----


class Arrival(NamedTuple):
    """An event: when it comes, in seconds, its source, its time, in microseconds, and its item."""

    at: float
    source: str
    time: int
    item: int


def arrivals(difference: float, seconds: float, seed: int) -> list[Arrival]:
    """All events of both sources, in the order in which they come."""
    generator = np.random.default_rng(seed)
    shares = np.arange(1, ITEMS + 1) ** -SKEW
    found = []
    for source, mean in (("A", 1 / RATE), ("B", (1 + difference) / RATE)):
        sent = np.cumsum(generator.exponential(mean, int(2 * seconds / mean) + 10))
        sent = sent[sent < seconds]
        # No two of one time, as that is what their rows are known by.
        times = np.maximum.accumulate(
            (MICRO * sent).astype(np.int64) - np.arange(len(sent))
        ) + np.arange(len(sent))
        come = np.maximum.accumulate(times / MICRO + generator.exponential(TRANSIT, len(sent)))
        items = generator.choice(ITEMS, len(sent), p=shares / shares.sum())
        found += [
            Arrival(float(at), source, int(when), int(item))
            for at, when, item in zip(come, times, items, strict=True)
        ]
    return sorted(found)


@dataclass(frozen=True)
class Merged:
    """One stream of events, merged by one engine.

    Attributes:
        latency: seconds, by what of CURVES there is.
        revised: share of the rows that were told early; None: none are told.
        call: seconds of a call of ``poll_early``, median; None: there is none.
    """

    latency: dict[str, list[float]]
    revised: float | None
    call: float | None


# What compiles the code that runs when the first event comes; they are in all streams.
FIRST = [Arrival(-1.0, source, -1, 0) for source in ("A", "B")]


def merge(name: str, events: Sequence[Arrival], operator: ss.Operator) -> Merged:
    """Submits each event when it comes, and looks for rows until all are there.

    Raises:
        AssertionError: the rows are not those of the sequential run.
    """
    all_events = [*FIRST, *events]
    table = pa.table(
        {
            "source": [one.source for one in all_events],
            "time": [one.time for one in all_events],
            "item": [one.item for one in all_events],
        }
    )
    run = operator.run_sequential(table, order_by="time", source="source", keys=True).output
    keys = list(zip(run["timestamp"].to_pylist(), run["source"].to_pylist(), strict=True))
    expected = run.select(list(operator.emits.names))
    come = {(one.time, one.source): one.at for one in events}
    end = min(max(e.time for e in events if e.source == source) for source in ("A", "B"))
    rows: list[tuple[Any, ...]] = []
    seen: list[float] = []
    answers: list[tuple[float, pa.Table]] = []
    calls: list[float] = []
    early = bool(SETTINGS[name].get("early"))
    with ss.Engine(operator, threads=1, sources=["A", "B"], **SETTINGS[name]) as engine:

        def collect(timeout: float | None) -> None:
            rows.extend(engine.poll_rows(timeout=timeout))
            now = time.perf_counter() - began
            seen.extend([now] * (len(rows) - len(seen)))

        def ask() -> None:
            asked = time.perf_counter()
            changes = engine.poll_early(timeout=None).changes
            now = time.perf_counter()
            calls.append(now - asked)
            if changes.num_rows:
                answers.append((now - began, changes))

        began = time.perf_counter()
        if early:
            ask()
        for one in FIRST:
            engine.submit_event(one.time, one.source, ordered=True, item=one.item)
        for source in ("A", "B"):
            engine.advance(source, 0)
        while engine.stats.events < len(FIRST):
            collect(0.05)
        if early:
            ask()
        calls.clear()
        began = time.perf_counter()
        told = True
        for one in events:
            while (rest := one.at - (time.perf_counter() - began)) > 0:
                if early and not told:
                    ask()
                    collect(0.0)
                    told = True
                else:
                    collect(min(rest, LOOK))
            # Integer keys are what a program that wants low latency uses.
            engine.submit_event(one.time, one.source, ordered=True, item=one.item)
            told = False
        if early:
            ask()
        collect(None)
        free = sum(key[0] < end for key in keys)
        # What waits for the other source has no end.
        for source in ("A", "B"):
            engine.advance(source, events[-1].time + MICRO * 10)
        collect(None)
        if early:
            ask()
    names = list(operator.emits.names)
    found = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    _check(found, expected, name)
    # The queue is empty when it begins.
    counted = range(int(SETTLING * free), free)
    latency = {name: [seen[at] - come[keys[at]] for at in counted if keys[at] in come]}
    if not early:
        return Merged(latency, None, None)
    _check(standing(answers, names), expected, "early rows, when all are final")
    log = look(answers, names)
    latency[EARLY] = [
        log.first[*keys[at], 0] - come[keys[at]] for at in counted if keys[at] in come
    ]
    return Merged(latency, log.share_revised, statistics.median(calls))


def waiting(events: Sequence[Arrival]) -> float:
    """Seconds that an infinitely fast operator waits for the other source, median."""
    by_source = {name: [one for one in events if one.source == name] for name in ("A", "B")}
    waits = []
    for one in events:
        others = by_source["B" if one.source == "A" else "A"]
        at = int(np.searchsorted([other.time for other in others], one.time))
        if at < len(others):
            waits.append(max(0.0, others[at].at - one.at))
    return statistics.median(waits)


def rates(amount: Amount, say: Say) -> dict[str, Any]:
    """Figure 5.7: latency of final and early rows, by how much the rates differ."""
    operator = top_k(MOST)
    taken: dict[float, dict[str, list[Merged]]] = {
        difference: {name: [] for name in SETTINGS} for difference in amount.differences
    }
    waits: dict[float, list[float]] = {difference: [] for difference in amount.differences}
    for number in range(amount.rounds):
        for place, difference in enumerate(amount.differences):
            say(f"two sources, round {number + 1}, {100 * difference:.0f} % slower")
            events = arrivals(difference, amount.seconds, 100 * number + place)
            waits[difference].append(waiting(events))
            for name in SETTINGS if number % 2 == 0 else reversed([*SETTINGS]):
                taken[difference][name].append(merge(name, events, operator))
    return {
        "rate": RATE,
        "seconds": amount.seconds,
        "rounds": amount.rounds,
        "transit": 1000 * TRANSIT,
        "points": [
            {"difference": difference, **_of_point(taken[difference], waits[difference])}
            for difference in amount.differences
        ],
    }


def _of_point(taken: Mapping[str, Sequence[Merged]], waits: Sequence[float]) -> dict[str, Any]:
    latency = {
        curve: [one.latency[curve] for one in taken[WITH_EARLY if curve == EARLY else curve]]
        for curve in CURVES
    }
    medians = {curve: [statistics.median(one) for one in of] for curve, of in latency.items()}
    early = taken[WITH_EARLY]

    def ratio(one: str, other: str) -> list[float]:
        return quartiles([a / b for a, b in zip(medians[one], medians[other], strict=True)])

    return {
        "rows": sum(map(len, latency[EARLY])),
        "waiting": 1000 * statistics.median(waits),
        "milliseconds": {
            curve: {
                "median": [1000 * value for value in quartiles(medians[curve])],
                "99 %": [
                    1000 * value
                    for value in quartiles([float(np.percentile(one, 99)) for one in of])
                ],
            }
            for curve, of in latency.items()
        },
        "final to early": ratio(PLAIN, EARLY),
        "speculation to none": ratio(SPECULATIVE, PLAIN),
        "revised": quartiles([one.revised for one in early if one.revised is not None]),
        "call": 1000 * statistics.median([one.call for one in early if one.call is not None]),
    }


# ---- late events ----


@dataclass(frozen=True)
class Stream:
    """Events with their arrivals, as they are submitted.

    Attributes:
        ticks: what comes in each, and where the frontier is behind it, in microseconds.
        expected: rows of the sequential run.
        events: how many there are.
    """

    ticks: list[tuple[pa.Table, int]]
    expected: pa.Table
    events: int


def stream(delay: float, share: float, seconds: float, seed: int) -> Stream:
    """``DENSITY`` events a second, a share of them late by up to ``delay`` seconds."""
    generator = np.random.default_rng(seed)
    count = int(DENSITY * seconds)
    times = np.arange(count) * (MICRO // DENSITY)
    late = generator.random(count) < share
    come = times + np.where(late, generator.uniform(0, delay * MICRO, count), 0.0)
    order = np.argsort(come, kind="stable")
    columns = {
        "time": times,
        "account": generator.integers(ACCOUNTS, size=count),
        "amount": generator.integers(-100, 100, count),
    }
    table = pa.table({name: of[order] for name, of in columns.items()})
    tick = int(TICK * MICRO)
    # Until the frontier has passed the last event.
    ends = np.arange(tick, int(times[-1] + delay * MICRO) + 2 * tick + 1, tick)
    places = np.searchsorted(come[order], ends)
    ticks = [
        (table.slice(first, last - first), int(end - delay * MICRO))
        for end, first, last in zip(ends, [0, *places], places, strict=False)
    ]
    expected = book.run_sequential(table, order_by="time").output
    return Stream(ticks, expected, count)


@dataclass(frozen=True)
class Fed:
    """One run over a stream.

    Attributes:
        seconds: that it took.
        log: what was told early; None: nothing is.
        revoking: seconds of taking back and publishing again.
        counts: what became of transactions that were revoked, and how often any were.
        bytes: that were held at most for what is applied and not final.
    """

    seconds: float
    log: Log | None
    revoking: float
    counts: Mapping[str, int]
    bytes: int


def feed(of: Stream, early: bool, threads: int, asks: bool = True) -> Fed:
    """Submits each tick, moves the frontier and takes what there is to be had.

    Args:
        early: whether events are applied early.
        asks: whether early results are asked for, after each tick.

    Raises:
        AssertionError: the rows are not those of the sequential run.
    """
    horizon = 0 if threads == 1 else 8
    rows: list[pa.Table] = []
    answers: list[tuple[float, pa.Table]] = []
    with ss.Engine(book, threads=threads, horizon=horizon, chunk=1, early=early) as engine:
        # Compiles.
        engine.submit_event(-2 * MICRO, ordered=True, account=0, amount=0)
        if early and asks:
            engine.poll_early(timeout=None)
        engine.advance(0, -MICRO)
        engine.poll(timeout=None)
        if early and asks:
            engine.poll_early(timeout=None)
        frontier = -MICRO
        began = time.perf_counter()
        for number, (table, to) in enumerate(of.ticks):
            if table.num_rows:
                engine.submit(table, order_by="time")
            if to > frontier:
                engine.advance(0, to)
            rows.append(engine.poll(timeout=None))
            if early and asks:
                answers.append((number * TICK, engine.poll_early(timeout=None).changes))
        seconds = time.perf_counter() - began
        figures = engine.parts.native.early_figures()
        counts = {
            name: int(getattr(figures, name))
            for name in ("passes", "revoked", "republished", "rerun")
        }
        revoking, most = figures.nanoseconds / 1e9, int(figures.most_bytes)
    what = f"late events, {threads} threads, early {early}"
    _check(pa.concat_tables(rows), of.expected, what)
    if not (early and asks):
        return Fed(seconds, None, revoking, counts, most)
    answers = [(at, changes) for at, changes in answers if changes.num_rows]
    names = list(book.emits.names)
    _check(standing(answers, names), of.expected, f"{what}, when all are final")
    return Fed(seconds, look(answers, names), revoking, counts, most)


# How a stream is run: without early results, with them, and with them where nobody asks for any.
WAYS: Mapping[str, Mapping[str, bool]] = {
    "none": {"early": False},
    "told": {"early": True},
    "untold": {"early": True, "asks": False},
}


def delays(amount: Amount, say: Say) -> dict[str, Any]:
    """What early results bring and cost, by delay, share of late events and threads."""
    points = [
        (delay, share, threads)
        for delay in amount.delays
        for share in amount.shares
        for threads in amount.threads
    ]
    taken: dict[Any, list[dict[str, Fed]]] = {point: [] for point in points}
    for number in range(amount.repeats):
        for delay in amount.delays:
            for share in amount.shares:
                of = stream(delay, share, amount.event_seconds, number)
                for threads in amount.threads:
                    say(
                        f"late events, round {number + 1}, {delay:g} s, {100 * share:g} %, "
                        f"{threads} threads"
                    )
                    found = {}
                    for name in WAYS if number % 2 == 0 else reversed([*WAYS]):
                        found[name] = feed(of, threads=threads, **WAYS[name])
                    taken[delay, share, threads].append(found)
    return {
        "density": DENSITY,
        "tick": TICK,
        "accounts": ACCOUNTS,
        "seconds": amount.event_seconds,
        "rounds": amount.repeats,
        "points": [
            {"delay": delay, "late": share, "threads": threads, **_of_late(of, delay)}
            for (delay, share, threads), of in taken.items()
        ],
    }


def _of_late(taken: Sequence[Mapping[str, Fed]], delay: float) -> dict[str, Any]:
    leads, revised = [], []
    early = [found["told"] for found in taken]
    for one in early:
        assert one.log is not None
        leads.append([one.log.final[row] - at for row, at in one.log.first.items()])
        revised.append(one.log.share_revised)
    events = int(DENSITY * delay)
    return {
        "lead": {
            "median": quartiles([statistics.median(one) for one in leads]),
            "99 %": quartiles([float(np.percentile(one, 99)) for one in leads]),
        },
        "revised": quartiles(revised),
        "revoking": quartiles([one.revoking / one.seconds for one in early]),
        "throughput": {
            way: quartiles([found["none"].seconds / found[way].seconds for found in taken])
            for way in ("told", "untold")
        },
        "events per second": quartiles([len(leads[0]) / one.seconds for one in early]),
        "bytes": statistics.median(one.bytes for one in early),
        "bytes per event": statistics.median(one.bytes / events for one in early),
        **{name: statistics.median(one.counts[name] for one in early) for name in early[0].counts},
    }

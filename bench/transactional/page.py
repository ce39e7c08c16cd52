"""The page: its tables and sentences come from the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.pages import (
    Expectation,
    compared,
    disturbed,
    duration,
    expected,
    measured_on,
    table,
    wrapped,
)
from bench.transactional.measure import SETTINGS, Seen
from bench.transactional.schemes import AUTO, COARSE, DETERMINISTIC, FINE, PLAIN, RIVALS
from bench.transactional.workloads import AXES, WORKLOADS, Knobs

__all__ = ["at", "expectations", "page"]

# What was expected: of two threads with much work, of Auto where it gains least, of a skewed load.
TWO_THREADS = 1.8
NO_LOSS = 0.95
SKEWED = 0.8

_COLUMNS = ("value", "eager", AUTO, DETERMINISTIC, FINE, COARSE)
_WORDS = {
    "skew": "skew {:g}",
    "length": "{:g} µs of work",
    "reads": "{:g}% only read",
    "aborts": "{:g}% refused",
    "multi": "{:g}% with many keys",
}
# What their abstracts say.
_TSTREAM = "[TStream](https://doi.org/10.1109/ICDE48307.2020.00136) (Zhang and others, ICDE 2020)"
_MORPHSTREAM = (
    "[MorphStream](https://www.bifold.berlin/impact-transfer/publications/view/publication-detail/"
    "morphstream-adaptive-scheduling-for-scalable-transactional-stream-processing-on-multicores) "
    "(Mao and others, SIGMOD 2023)"
)


def at(of: Mapping[str, Any], knob: str) -> dict[float, Mapping[str, Any]]:
    """The points along a knob, by its value; that of the usual setting is among them."""
    points = of["points"]
    found = {one["value"]: one for one in points if one["knob"] == knob}
    found[getattr(Knobs(), knob)] = points[0]
    return dict(sorted(found.items()))


def _seen(point: Mapping[str, Any], scheme: str) -> Seen:
    return Seen(*point["schemes"][scheme])


def _where(point: Mapping[str, Any]) -> str:
    """What a point is called."""
    knob, value = point["knob"], point["value"]
    if not knob:
        return "the usual setting"
    factor = {"length": 1e6, "skew": 1.0}.get(knob, 100.0)
    return _WORDS[knob].format(factor * value)


# ---- what was expected ----


def expectations(data: Mapping[str, Any]) -> list[Expectation]:
    """All that was measured and about which something was expected."""
    return [one for of in data["workloads"].values() for one in _expectations(of)]


def _expectations(of: Mapping[str, Any]) -> Iterator[Expectation]:
    title, usual = of["title"], of["points"][0]
    yield Expectation(
        f"{title}: value, relative to deterministic locks",
        1.0,
        True,
        usual["to deterministic"]["value"],
        f"relative to one thread the locks reached {_seen(usual, DETERMINISTIC).speed:.2f}, and "
        f"value {_seen(usual, 'value').speed:.2f}{_dropped(_seen(usual, 'value'))}",
    )
    longest = [*at(of, "length").values()][-1]
    value = _seen(longest, "value")
    yield Expectation(
        f"{title}: value on two threads, {_where(longest)}",
        TWO_THREADS,
        True,
        value.quartiles,
        f"two threads that share nothing reached {longest['capacity']:.2f}{_dropped(value)}",
    )
    least = min(of["points"], key=lambda point: _seen(point, AUTO).speed)
    yield Expectation(
        f"{title}: Auto, where it gains least ({_where(least)})",
        NO_LOSS,
        True,
        _seen(least, AUTO).quartiles,
        f"an event takes {duration(_seen(least, PLAIN).nanoseconds)} on one thread and "
        f"{duration(_seen(least, AUTO).nanoseconds)} with Auto",
    )
    (_, even), *_, (_, skewed) = at(of, "skew").items()
    before, after = _seen(even, "value"), _seen(skewed, "value")
    yield Expectation(
        f"{title}: value with {_where(skewed)}, relative to none",
        SKEWED,
        True,
        [after.low / before.high, after.speed / before.speed, after.high / before.low],
        f"it reached {before.speed:.2f} without skew{_dropped(before)} and {after.speed:.2f} with "
        f"it{_dropped(after)}; fine-grained locks, which keep no order, "
        f"{_seen(even, FINE).speed:.2f} and {_seen(skewed, FINE).speed:.2f}",
    )


def _dropped(seen: Seen) -> str:
    """What is said of dropped runs, where that is more than nothing."""
    if seen.dropped is None or seen.dropped < 0.0005:
        return ""
    return f" ({seen.dropped:.1%} of the speculative runs dropped)"


# ---- the page ----


def page(data: Mapping[str, Any]) -> str:
    """The page as Markdown.

    Args:
        data: as ``--json`` writes it, of all workloads.
    """
    of = data["workloads"]
    blocks = [
        "# Transactional streams: how fast",
        _summary(of),
        *disturbed(data["machine"]),
        wrapped(
            "`make bench-transactional` measures it and writes this page: tables, picture and "
            "sentences come from what it has measured. The workloads are those that the literature "
            "on transactional stream processing has its engines measured with, written anew as "
            "operators:"
        ),
        "\n".join(wrapped(f"- *{one.title}*: {one.detail}.", "  ") for one in WORKLOADS.values()),
        "## Schemes",
        _schemes(),
        "## The usual setting",
        _usual(of),
        wrapped(
            f"Speed on two threads, relative to one thread without speculation; *one thread* is "
            f"its throughput. {_usual_setting()} {_capacity(of)}"
        ),
        "## By what an event is like",
        "![Speed of each scheme by knob, and by number of sleeping threads](transactional.png)",
        wrapped(
            "Each knob is turned alone, from the usual setting. One scheme is faster than another "
            "where the quartiles of their rounds do not overlap."
        ),
        _knobs(of),
        "## What was expected",
        expected(expectations(data)),
        "## Latency",
        _latency(of),
        "## Asleep",
        _asleep(of),
        "## Beside the literature",
        _literature(of),
        measured_on(data["machine"]),
    ]
    return "\n\n".join(blocks) + "\n"


def _summary(of: Mapping[str, Any]) -> str:
    ordered = ("value", "eager", AUTO, DETERMINISTIC)
    told = []
    for one in of.values():
        usual = one["points"][0]
        best = max(ordered, key=lambda name: _seen(usual, name).speed)
        told.append(f"{one['title']} {_seen(usual, best).speed:.2f} ({best})")
    return wrapped(
        "The fastest scheme with the answer of one sequential run, on two threads, relative to "
        f"one: {', '.join(told)}; events with {1e6 * Knobs().length:g} µs of work."
    )


def _schemes() -> str:
    settings = ", ".join(f"{horizon} and {chunk}" for horizon, chunk in SETTINGS)
    rows = [
        ("value, eager", "speculation, under either protocol; the best of the horizons and chunks "
         f"{settings}", "yes"),
        (AUTO, "what one gets who chooses nothing", "yes"),
        (DETERMINISTIC, "an event's locks, one for each key, are asked for in the order of the "
         "events, and served in it", "yes"),
        (FINE, "one for each key; an event takes all of its own first, in sorted order", "no"),
        (COARSE, "one, around all accesses of an event", "no"),
    ]  # fmt: skip
    text = wrapped(
        "Deterministic locks are ordered locking, as deterministic databases such as Calvin have "
        "it: the keys of an event have to be known before it runs, which speculation does not ask "
        "for. Locks take 1, 8 or 64 events at a time, whichever is fastest. Who has the answer of "
        "the sequential run gives that of plain Python, rows and state, which is looked at before "
        "and, for rows, with every batch; of the others it is looked at before that no money, item "
        "or report is lost."
    )
    head = ("scheme", "", "the sequential answer")
    return f"{table(head, *rows)}\n\n{text}"


def _usual_setting() -> str:
    knobs = Knobs()
    return (
        f"Keys follow Zipf's law with exponent {knobs.skew:g}; an event has "
        f"{1e6 * knobs.length:g} µs of work, half before its accesses and half after them, which "
        f"locks leave outside; {knobs.reads:.0%} only read, where there are such; "
        f"{knobs.aborts:.0%} ask for more than there is and change nothing; {knobs.multi:.0%} have "
        "many keys."
    )


def _capacity(of: Mapping[str, Any]) -> str:
    low, *_, high = sorted(point["capacity"] for one in of.values() for point in one["points"])
    return (
        f"Two threads that share nothing reached {low:.2f} to {high:.2f} times the speed of one "
        "in these rounds, which is what the machine gave."
    )


def _usual(of: Mapping[str, Any]) -> str:
    rows: list[Sequence[str]] = [("workload", "one thread", *_COLUMNS)]
    for one in of.values():
        usual = one["points"][0]
        rate = 1e6 / _seen(usual, PLAIN).nanoseconds
        speeds = [f"{_seen(usual, name).speed:.2f}" for name in _COLUMNS]
        rows.append((one["title"], f"{rate:,.0f},000 events/s", *speeds))
    return table(*rows)


def _knobs(of: Mapping[str, Any]) -> str:
    """For each knob what it does to the schemes, at both of its ends."""
    blocks = []
    for knob in AXES:
        having = [one for name, one in of.items() if knob in WORKLOADS[name].knobs]
        rows: list[Sequence[str]] = []
        for one in having:
            (_, first), *_, (_, last) = at(one, knob).items()
            if not rows:
                rows.append(
                    (f"from {_ended(first, knob, 0)} to {_ended(last, knob, -1)}", *_COLUMNS)
                )
            cells = [
                f"{_seen(first, name).speed:.2f} → {_seen(last, name).speed:.2f}"
                for name in _COLUMNS
            ]
            rows.append((one["title"], *cells))
        blocks.append(table(*rows))
        blocks.append(wrapped(" ".join(_remark(one, knob) for one in having)))
    return "\n\n".join(blocks)


def _ended(point: Mapping[str, Any], knob: str, end: int) -> str:
    """The point at an end of a knob, also where it is the usual one."""
    return _where(point) if point["knob"] else _where({"knob": knob, "value": AXES[knob][end]})


def _remark(one: Mapping[str, Any], knob: str) -> str:
    """Which scheme with the sequential answer is the fastest at the end of a knob."""
    last = [*at(one, knob).values()][-1]
    value = _seen(last, "value")
    locks, fine = (
        compared(value.quartiles, _seen(last, name).quartiles, what)
        for name, what in ((DETERMINISTIC, "deterministic"), (FINE, "fine-grained locks"))
    )
    where = f"{one['title']}, {_ended(last, knob, -1)}"
    return f"{where}: value is {locks} and {fine}{_dropped(value)}."


def _latency(of: Mapping[str, Any]) -> str:
    rows: list[Sequence[str]] = [("workload", *RIVALS)]
    for one in of.values():
        cells = (one["latency"][name] for name in RIVALS)
        rows.append((one["title"], *(f"{middle:.1f} ({high:.1f})" for middle, high in cells)))
    text = wrapped(
        "Microseconds from taking an event out of its queue until it is committed, median and in "
        "brackets the 99th percentile: two threads, a horizon of 4, one event at a time, the usual "
        "setting. Under locks nothing commits; there an event ends when it has run, and its row "
        "may wait for that of an earlier one."
    )
    return f"{text}\n\n{table(*rows)}"


def _asleep(of: Mapping[str, Any]) -> str:
    first = next(iter(of.values()))["asleep"]
    threads = [*first["schemes"]["value"]]
    rows: list[Sequence[str]] = [("workload", "scheme", *(f"{one} threads" for one in threads))]
    for one in of.values():
        for name in RIVALS:
            seen = [Seen(*one["asleep"]["schemes"][name][count]) for count in threads]
            cells = [f"{each.speed:.2f}{_dropped(each)}" for each in seen]
            rows.append((one["title"], name, *cells))
    text = wrapped(
        f"Events sleep for {first['milliseconds']:g} ms in place of working, half of it before "
        "their accesses and half after them, so that more threads than cores can be looked at. "
        "The half behind is within a transaction, and outside of locks: what speculation has read "
        "has to hold while it sleeps. The horizon is the number of threads or four times that, "
        "whichever is faster. Speed relative to one thread:"
    )
    return f"{text}\n\n{table(*rows)}"


# ---- beside the literature ----


def _highest(of: Mapping[str, Any], name: str) -> str:
    """Where a scheme gains most over deterministic locks, on two busy threads."""
    ratio, point, title = max(
        (
            (point["to deterministic"][name][1], point, one["title"])
            for one in of.values()
            for point in one["points"]
        ),
        key=lambda found: float(found[0]),
    )
    return f"{ratio:.2f} ({title}, {_where(point)})"


def _highest_asleep(of: Mapping[str, Any]) -> str:
    ratios = []
    for one in of.values():
        schemes = one["asleep"]["schemes"]
        for threads, value in schemes["value"].items():
            ratio = Seen(*value).speed / Seen(*schemes[DETERMINISTIC][threads]).speed
            ratios.append((ratio, f"{one['title']}, {threads} threads"))
    ratio, where = max(ratios)
    return f"{ratio:.2f} ({where})"


def _latencies(of: Mapping[str, Any]) -> str:
    low, *_, high = sorted(
        one["latency"]["value"][0] / one["latency"][DETERMINISTIC][0] for one in of.values()
    )
    return f"{low:.2f} to {high:.2f} times that of deterministic locks, median, value"


def _literature(of: Mapping[str, Any]) -> str:
    rows = [
        ("", "theirs", "here"),
        (
            f"{_TSTREAM}: throughput",
            "up to 4.8 times the state of the art",
            f"value to deterministic locks: up to {_highest(of, 'value')}; asleep up to "
            f"{_highest_asleep(of)}",
        ),
        ("TStream: latency", "similar to the state of the art", _latencies(of)),
        (
            "TStream: skewed keys, and events that access several parts of the state",
            '"highly tolerant"',
            f"value keeps {_kept(of, 'skew')} of its speed with skew {AXES['skew'][-1]:g}, and "
            f"{_kept(of, 'multi')} where all events have many keys",
        ),
        (
            f"{_MORPHSTREAM}: throughput",
            "up to 3.4 times the state of the art",
            f"Auto to deterministic locks: up to {_highest(of, AUTO)}",
        ),
        ("MorphStream: latency", "up to 69.1% lower", "as above"),
    ]
    text = wrapped(
        "*Theirs* is what the abstracts say. The numbers are not of the same quantity: theirs "
        "compare whole engines on multicore machines, ours schemes within one engine on two cores, "
        "all compiled; and their events, knobs and sizes are others. MorphStream's adaptive "
        "scheduling stands beside Auto as both choose for themselves; what they choose is not the "
        "same."
    )
    return f"{table(*rows)}\n\n{text}"


def _kept(of: Mapping[str, Any], knob: str) -> str:
    """What value has of its speed at the end of a knob, over the workloads."""
    shares = []
    for name, one in of.items():
        if knob in WORKLOADS[name].knobs:
            first, *_, last = at(one, knob).values()
            shares.append(_seen(last, "value").speed / _seen(first, "value").speed)
    return f"{min(shares):.0%} to {max(shares):.0%}"

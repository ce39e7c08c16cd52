"""The page: its tables and sentences come from the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.chapter4.margin import shown
from bench.early.measure import CURVES, EARLY, PLAIN, SPECULATIVE, WITH_EARLY
from bench.pages import Expectation, disturbed, expected, measured_on, table, wrapped

__all__ = ["DELAYS_HEAD", "RATES_HEAD", "delays_rows", "expectations", "page", "rates_rows"]

# How many times earlier an early row is to be, how few of them are to be revised, and from which
# ratio on final rows with speculation are no better.
SOONER, FEW, NO_BETTER = 10.0, 0.1, 0.9

RATES_HEAD = ("B slower by", *CURVES, "the wait itself", "early, revised")
DELAYS_HEAD = (
    "late by up to",
    "late",
    "threads",
    "lead",
    "99 %",
    "revised",
    "revoking",
    "throughput",
    "nobody asks",
    "held",
    "per event",
    "run again",
)


def expectations(data: Mapping[str, Any]) -> list[Expectation]:
    """All that was measured and about which something was expected."""
    return list(_expectations(data["parts"]))


def _expectations(parts: Mapping[str, Any]) -> Iterator[Expectation]:
    points = parts.get("rates", {"points": []})["points"]
    for one in points:
        yield Expectation(
            f"final rows without speculation, to early ones: B slower by {_slower(one)}",
            SOONER,
            True,
            one["final to early"],
            f"a call of `poll_early` takes {one['call']:.2f} ms, and an infinitely fast operator "
            f"waits {one['waiting']:.2f} ms for the other source",
        )
    if points:
        least = min(points, key=lambda one: one["speculation to none"][1])
        final = {name: _median(least, name) for name in (PLAIN, SPECULATIVE)}
        yield Expectation(
            "final rows with speculation are no sooner than without (the least: B slower by "
            f"{_slower(least)})",
            NO_BETTER,
            True,
            least["speculation to none"],
            f"they come after {final[SPECULATIVE]:.2f} ms instead of {final[PLAIN]:.2f}",
        )
        most = max(points, key=lambda one: one["revised"][1])
        yield Expectation(
            f"early rows that are revised (the most: B slower by {_slower(most)})",
            FEW,
            False,
            most["revised"],
            f"events are in transit for {parts['rates']['transit']:.1f} ms on average, and come "
            "behind later ones of the other source",
        )


def _slower(point: Mapping[str, Any]) -> str:
    return f"{100 * point['difference']:.0f} %"


def _median(point: Mapping[str, Any], curve: str) -> float:
    return float(point["milliseconds"][curve]["median"][1])


def rates_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``RATES_HEAD``."""
    return [
        [
            _slower(one),
            *(
                f"{_median(one, curve):.2f} / {one['milliseconds'][curve]['99 %'][1]:.2f}"
                for curve in CURVES
            ),
            f"{one['waiting']:.2f}",
            f"{one['revised'][1]:.1%}",
        ]
        for one in of["points"]
    ]


def delays_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``DELAYS_HEAD``."""
    return [
        [
            f"{one['delay']:g} s",
            f"{100 * one['late']:g} %",
            f"{one['threads']}",
            f"{one['lead']['median'][1]:.2f} s",
            f"{one['lead']['99 %'][1]:.2f} s",
            f"{one['revised'][1]:.1%}",
            f"{one['revoking'][1]:.1%}",
            shown(one["throughput"]["told"]),
            shown(one["throughput"]["untold"]),
            _bytes(one["bytes"]),
            f"{one['bytes per event']:.0f} B",
            "" if not one["revoked"] else f"{one['rerun'] / one['revoked']:.1%}",
        ]
        for one in of["points"]
    ]


def _bytes(count: float) -> str:
    """A size with its unit.

    >>> [_bytes(count) for count in (640, 308_560, 6_400_000)]
    ['640 B', '309 kB', '6.4 MB']
    """
    if count < 1e3:
        return f"{count:.0f} B"
    return f"{count / 1e3:.0f} kB" if count < 1e6 else f"{count / 1e6:.1f} MB"


# ---- the page ----


def page(data: Mapping[str, Any]) -> str:
    """The page as Markdown.

    Args:
        data: as ``--json`` writes it, of both parts.
    """
    rates, delays = data["parts"]["rates"], data["parts"]["delays"]
    blocks = [
        "# Early results: how much sooner",
        _summary(rates),
        *disturbed(data["machine"]),
        wrapped(
            "`make bench-early` measures it and writes this page: tables, picture and sentences "
            "come from what it has measured. Final rows, and early ones when all are final, are "
            "compared with the sequential run in every round."
        ),
        "![Latency and share revised by how much slower a source is; share revised and throughput "
        "by how many events are late](early.png)",
        "## Two sources of unlike rates",
        wrapped(
            "After Figure 5.7 of Brito 2010: top-k; source A sends "
            f"{rates['rate']:,.0f} events a second for {rates['seconds']:g} seconds, and B so much "
            "slower; each event is in transit for "
            f"{rates['transit']:g} ms on average, and overtakes none of its source. One thread "
            "works. One program thread submits each event when it has come and looks for rows in "
            "between; early ones it asks for after each event. Latency is from the arrival until "
            "the program has the row: milliseconds, median and 99th percentile. *The wait itself* "
            "is that of an infinitely fast operator for an event of the other source. Revised are "
            "rows that were reported early and changed or were withdrawn later."
        ),
        table(RATES_HEAD, *rates_rows(rates)),
        "## What was expected",
        expected(expectations(data)),
        "## Late events",
        wrapped(
            f"Sums of {delays['accounts']:,} accounts. {delays['density']:,} events a second of "
            f"event time, for {delays['seconds']:g} seconds, of which a share comes late, by up to "
            f"a delay, evenly spread; the frontier stays behind by that delay. Every "
            f"{1000 * delays['tick']:.0f} ms of event time what has come is submitted, the "
            "frontier moved and what there is polled, as fast as it goes. *Lead* is how "
            "much event time passes from an early row until it is final: median and 99th "
            "percentile. "
            "*Revoking* is the part of the time in which transactions were taken back and "
            "published again, *run again* the part of those that were taken back which had to "
            "run again. *Throughput* is relative to the same run without `early=True`, *nobody "
            "asks* that of a run with it in which `poll_early` is never called. *Held* is the most "
            "that was held for what was applied and not final, and *per event* that for each "
            "event within the delay; without `early=True` nothing of it is held, and the state "
            "stands once instead of twice."
        ),
        table(DELAYS_HEAD, *delays_rows(delays)),
        wrapped(
            f"Numbers are medians of {rates['rounds']} and {delays['rounds']} interleaved rounds, "
            "in brackets their quartiles."
        ),
        measured_on(data["machine"]),
    ]
    return "\n\n".join(blocks) + "\n"


def _summary(rates: Mapping[str, Any]) -> str:
    first, last = rates["points"][0], rates["points"][-1]
    told = [
        f"{_median(one, EARLY):.2f} ms, final ones after {_median(one, WITH_EARLY):.2f} ms, and "
        f"after {_median(one, PLAIN):.2f} ms without early results"
        for one in (first, last)
    ]
    return wrapped(
        f"**Where two sources are merged that send equally often, early rows come after {told[0]}; "
        f"where one is slower by {_slower(last)}, after {told[1]}. At most "
        f"{max(one['revised'][1] for one in rates['points']):.1%} of the early rows were revised.**"
    )

"""The page: its tables and sentences come from the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.chapter4.margin import shown
from bench.pages import Expectation, disturbed, expected, measured_on, table, wrapped

__all__ = ["CALLS_HEAD", "LOAD_HEAD", "calls_rows", "expectations", "load_rows", "page"]

# How many times the latency of an ideal machine the median may be, up to half of the capacity.
TO_IDEAL, UP_TO = 1.5, 0.5

CALLS_HEAD = ("one event after the other", "threads", "least", "median")
LOAD_HEAD = (
    "threads and events",
    "load",
    "events a second",
    "median",
    "99.9 %",
    "ideal: median",
    "99.9 %",
    "median to ideal",
)


def expectations(data: Mapping[str, Any]) -> list[Expectation]:
    """All that was measured and about which something was expected."""
    return list(_expectations(data["parts"].get("load", {"settings": {}})["settings"]))


def _expectations(settings: Mapping[str, Any]) -> Iterator[Expectation]:
    for name, of in settings.items():
        for one in of["loads"]:
            if one["load"] <= UP_TO:
                yield Expectation(
                    f"median latency, to that of an ideal machine: {name}, {one['load']:.0%}",
                    TO_IDEAL,
                    False,
                    one["to ideal"],
                    f"it is {one['median'][1]:.2f} ms, of which the ideal machine takes "
                    f"{one['ideal']['median']:.2f}",
                )


def calls_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``CALLS_HEAD``."""
    return [
        [name, setting.split()[0], f"{one['least']:.0f} µs", f"{one['median']:.0f} µs"]
        for setting, names in of["microseconds"].items()
        for name, one in names.items()
    ]


def load_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``LOAD_HEAD``."""
    return [
        [
            f"{name}, {setting['milliseconds']:g} ms",
            f"{one['load']:.0%}",
            f"{one['load'] * setting['capacity'][1]:,.0f}",
            f"{one['median'][1]:.2f} ms",
            f"{one['99.9 %']:.2f} ms",
            f"{one['ideal']['median']:.2f} ms",
            f"{one['ideal']['99.9 %']:.2f} ms",
            shown(one["to ideal"]),
        ]
        for name, setting in of["settings"].items()
        for one in setting["loads"]
    ]


def page(data: Mapping[str, Any]) -> str:
    """The page as Markdown.

    Args:
        data: as ``--json`` writes it, of both parts.
    """
    calls, load = data["parts"]["calls"], data["parts"]["load"]
    blocks = [
        "# Latency",
        _summary(load),
        *disturbed(data["machine"]),
        wrapped(
            "`make bench-latency` measures it and writes this page: tables, picture and sentences "
            "come from what it has measured. Rows are compared with the sequential run in every "
            "round."
        ),
        "![Median and 99.9th percentile of the latency by load, beside those of an ideal machine]"
        "(latency.png)",
        "## Under load",
        wrapped(
            "Listing 4.2 of Brito 2010: an event counts one of a hundred, and works for the time "
            "in the table, or sleeps for it, so that there are threads enough on a small machine. "
            "Arrivals have exponential intervals and are drawn before: an event that comes while "
            "the engine or the program is busy waits, and its wait counts, as does that of those "
            "behind it. Latency is from the arrival until the program has the row from "
            "`poll_rows`. *Capacity*, of which *load* is a part, is how many events a second the "
            "same program gets through when all have arrived already: it submits one and looks "
            "for rows, again and again. The *ideal* machine has as many threads and the same "
            "arrivals; its program and its engine take no time, and every thread has a core."
        ),
        table(LOAD_HEAD, *load_rows(load)),
        wrapped(
            f"The percentiles are those of all events of {load['rounds']} interleaved rounds of "
            f"{load['seconds']:g} seconds; all else are medians of the rounds, in brackets their "
            "quartiles. Capacity: "
            + ", ".join(
                f"{name} {shown(of['capacity'], '{:,.0f}')}"
                for name, of in load["settings"].items()
            )
            + " events a second."
        ),
        "## What was expected",
        expected(expectations(data)),
        "## One event after the other",
        wrapped(
            "The same operator without work. The next call begins when the row of the last one is "
            f"there; {calls['calls']:,} calls of each kind, in turns. The least is what the call "
            "takes where nobody disturbs it; from there to the median it is mostly the time until "
            "a thread that sleeps is woken."
        ),
        table(CALLS_HEAD, *calls_rows(calls)),
        wrapped(
            "Most of it is Python. [Out of order](../guides/out-of-order.md#what-comes-out) says "
            "which calls to use."
        ),
        measured_on(data["machine"]),
    ]
    return "\n\n".join(blocks) + "\n"


def _summary(load: Mapping[str, Any]) -> str:
    told = []
    for name, of in load["settings"].items():
        half = next(one for one in of["loads"] if one["load"] == UP_TO)
        told.append(
            f"{half['median'][1]:.2f} ms and {half['99.9 %']:.2f} ms ({name}, events of "
            f"{of['milliseconds']:g} ms)"
        )
    return wrapped(
        "**From the arrival of an event to its committed row, at half of the capacity, median and "
        f"99.9th percentile: {'; '.join(told)}.**"
    )

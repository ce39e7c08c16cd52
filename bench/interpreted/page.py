"""The page: its tables and sentences come from the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bench.chapter4.margin import MARGIN, shown
from bench.interpreted.measure import LOOK_UP, NUMPY
from bench.pages import Expectation, disturbed, expected, measured_on, table, wrapped

__all__ = [
    "COSTS_HEAD",
    "LENGTHS_HEAD",
    "THREADS_HEAD",
    "costs_rows",
    "expectations",
    "lengths_rows",
    "page",
    "threads_rows",
]

COSTS_HEAD = ("", "an event", "a read", "a write")
THREADS_HEAD = ("what is done", "an event takes", "threads", "times as fast")
LENGTHS_HEAD = ("what is done", "", "an event takes", "two threads, horizon 4", "auto", "chose")


def expectations(data: Mapping[str, Any]) -> list[Expectation]:
    """All that was measured and about which something was expected."""
    return list(_expectations(data["parts"]))


def _expectations(parts: Mapping[str, Any]) -> Iterator[Expectation]:
    for name, number, least in ((NUMPY, "2", 1.8), (LOOK_UP, "16", 14.0)):
        if "threads" in parts:
            of = parts["threads"][name]
            yield Expectation(
                f"{name}: {number} threads",
                least,
                True,
                of["speed"][number],
                f"an event takes {of['microseconds']:,.0f} µs on one thread",
            )
    for kind, of in parts.get("lengths", {}).items():
        for name, one in of.items():
            yield Expectation(
                f"{kind.partition(',')[0]}, {name}: auto, to one after the other",
                0.95,
                True,
                one["auto"],
                f"an event takes {one['microseconds']:,.0f} µs on one thread",
            )


def costs_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``COSTS_HEAD``."""
    return [
        [name, *(f"{one[what]:.2f} µs" for what in ("event", "read", "write"))]
        for name, one in of.items()
    ]


def threads_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``THREADS_HEAD``."""
    return [
        [name, f"{one['microseconds']:,.0f} µs", number, shown(speed)]
        for name, one in of.items()
        for number, speed in one["speed"].items()
    ]


def lengths_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``LENGTHS_HEAD``."""
    return [
        [
            kind,
            name,
            f"{one['microseconds']:,.0f} µs",
            shown(one["always"]),
            shown(one["auto"]),
            f"horizon {one['horizon']}" if one["horizon"] else "one after the other",
        ]
        for kind, operators in of.items()
        for name, one in operators.items()
    ]


def page(data: Mapping[str, Any]) -> str:
    """The page as Markdown.

    Args:
        data: as ``--json`` writes it, of all parts.
    """
    parts = data["parts"]

    def span(what: str) -> str:
        taken = sorted(one[what] for one in parts["costs"].values())
        return f"{taken[0]:.2f} to {taken[-1]:.2f}"

    two = parts["threads"][NUMPY]["speed"]["2"][1]
    sixteen = parts["threads"][LOOK_UP]["speed"]["16"][1]
    blocks = [
        "# Interpreted operators",
        wrapped(
            f"**Two threads run an event of NumPy {two:.2f} times as fast, and 16 threads a "
            f"look-up of 1 ms {sixteen:.1f} times. An event costs {span('event')} µs, a read of "
            f"the state {span('read')} and a write {span('write')}.**"
        ),
        *disturbed(data["machine"]),
        wrapped(
            "`make bench-interpreted` measures it and writes this page: tables, picture and "
            "sentences come from what it has measured. What [interpreted operators]"
            "(../guides/interpreted.md) are, and when they pay, says their guide."
        ),
        "![Speed by number of threads, for NumPy, a look-up and pure Python; speed of two threads "
        "by the length of an event](interpreted.png)",
        "## More threads",
        wrapped(
            "Each event changes one of 100,000 numbers at random, after two products of matrices, "
            "a wait of 1 ms, or 30 reads of the state in a loop of Python. Speed is that of an "
            "engine with a horizon of two for each thread, relative to one that runs one event "
            f"after the other in the same round. {MARGIN}"
        ),
        table(THREADS_HEAD, *threads_rows(parts["threads"])),
        "## Shorter and longer events",
        wrapped(
            "NumPy releases the interpreter lock for as long as a product takes, Python itself "
            "never. *Auto* is what you get if you choose nothing. With Python alone it runs one "
            "event after the other, and so it does where products are too short."
        ),
        table(LENGTHS_HEAD, *lengths_rows(parts["lengths"])),
        "## What an event and an access cost",
        wrapped(
            "On one thread: in place, with the undo log, and ahead, through the logs of a "
            "transaction. The least of all rounds."
        ),
        table(COSTS_HEAD, *costs_rows(parts["costs"])),
        "## What was expected",
        expected(expectations(data)),
        measured_on(data["machine"]),
    ]
    return "\n\n".join(blocks) + "\n"

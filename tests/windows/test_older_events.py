"""Events that are older than one before them: as if they had come in order, or refused."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import itertools
import random
from typing import Any

import pyarrow as pa
import pytest
from conftest import partial_of

import specstream as ss
from specstream import windows

EVENT = {"user": str, "x": int}
Event = tuple[int, str, int]
Row = tuple[int, str, int, int, int]
ADVICE = (
    "; sort the events of all tables, submit() them, or give ss.spark.foreach_batch or "
    "ss.sources.run a watermark="
)


class Known(ss.Record):
    count: int = 0
    sum: int = 0


def add(known, event):
    known.count += 1
    known.sum += event.x


def merge(known, other):
    known.count += other.count
    known.sum += other.sum


def remove(known, other):
    known.count -= other.count
    known.sum -= other.sum


def keep(event):
    return Known(1, event.x)


def begins(event):
    return event.x == 1


def ends(event):
    return event.x == 2


def of_rows(rows):
    return len(rows), sum(row.sum for row in rows)


WAYS: dict[str, dict[str, Any]] = {
    "each": {},
    "merged": {"merge": merge},
    "removed": {"merge": merge, "remove": remove},
    "collected": {"collect": True, "result": of_rows, "emits": {"count": int, "sum": int}},
}
SETTINGS: list[dict[str, Any]] = [{"horizon": 0}, {"threads": 2, "horizon": 8, "chunk": 2}]


def by_time(way: str, length: int, step: int) -> ss.Operator:
    taken = keep if way == "collected" else add
    return windows.by_time(
        Known, taken, length, step, event=EVENT, key="user", name="hours", **WAYS[way]
    )


def windows_of(events: list[Event], length: int, step: int) -> list[Row]:
    """Each window that has an event, by its definition."""
    found: dict[tuple[int, str], list[int]] = {}
    for time, user, x in events:
        first = min(time for time, _, _ in events) // step * step - length
        for start in range(first - first % step, time + 1, step):
            if start <= time < start + length:
                found.setdefault((start, user), []).append(x)
    return sorted(
        (start, user, start + length, len(xs), sum(xs)) for (start, user), xs in found.items()
    )


def sessions_of(events: list[Event], gap: int) -> list[Row]:
    """Runs of a user's times with no gap between two of them."""
    found: list[Row] = []
    for user in sorted({user for _, user, _ in events}):
        own: list[tuple[int, int]] = sorted((time, x) for time, name, x in events if name == user)
        cuts = [at for at in range(1, len(own)) if own[at][0] - own[at - 1][0] >= gap]
        for first, behind in zip([0, *cuts], [*cuts, len(own)], strict=True):
            part = own[first:behind]
            end = part[-1][0] + gap
            found.append((part[0][0], user, end, len(part), sum(x for _, x in part)))
    return sorted(found)


def tables(dice: random.Random) -> list[list[Event]]:
    """Tables that begin before the last one has ended, and before it has begun."""
    base = dice.choice([-1000, -40, 0, 10**18])
    found = []
    for _ in range(dice.randint(2, 6)):
        low = base + dice.randint(-25, 20)
        drawn = [
            (low + dice.randint(0, 30), dice.choice("ab"), dice.randint(1, 9))
            for _ in range(dice.randint(1, 8))
        ]
        found.append(sorted(drawn, key=lambda event: event[0]))
        base += dice.randint(0, 25)
    return found


def table_of(events: list[Event]) -> pa.Table:
    times, users, xs = zip(*events, strict=True) if events else ([], [], [])
    types = pa.schema([("t", pa.int64()), ("user", pa.string()), ("x", pa.int64())])
    return pa.table({"t": list(times), "user": list(users), "x": list(xs)}, types)


def told(
    operator: ss.Operator, given: list[list[Event]], **options: Any
) -> tuple[list[Event], list[Row], list[str]]:
    """The events that were applied, all rows, and what was said of the other events."""
    applied: list[Event] = []
    rows: list[dict[str, Any]] = []
    refused = []
    with ss.Engine(operator, **options) as engine:
        for events in given:
            while events:
                try:
                    rows += engine.process(table_of(events), order_by="t").to_pylist()
                    consumed = len(events)
                except ValueError as error:
                    partial = partial_of(error)
                    rows += partial.output.to_pylist()
                    consumed = partial.consumed
                    refused.append(str(error))
                applied += events[:consumed]
                events = events[consumed + 1 :]
        rows += engine.process(table_of([]), order_by="t", end=True).to_pylist()
        kept = engine.state.to_dict()
        assert not any(len(kept.get(name, ())) for name in ("ends", "windows", "panes", "rows"))
    names = ("start", "user", "end", "count", "sum")
    return applied, [tuple(row[name] for name in names) for row in rows], refused


@pytest.mark.parametrize(
    ("way", "length", "step"),
    [
        ("each", 9, 4),
        ("merged", 10, 5),
        ("removed", 9, 4),
        ("collected", 9, 4),
        pytest.param("each", 10, 10, marks=pytest.mark.long),
        pytest.param("merged", 4, 9, marks=pytest.mark.long),
        pytest.param("removed", 10, 5, marks=pytest.mark.long),
        pytest.param("collected", 4, 9, marks=pytest.mark.long),
    ],
)
def test_windows_by_time_are_those_of_the_events_that_are_not_refused(
    way: str, length: int, step: int
) -> None:
    operator = by_time(way, length, step)
    dice = random.Random(f"{way} {length} {step}")
    refused = older = 0
    for _ in range(60):
        given = tables(dice)
        applied, rows, said = told(operator, given, horizon=0)
        assert sorted(rows) == windows_of(applied, length, step), given
        assert [row[2] for row in rows] == sorted(row[2] for row in rows)
        assert all(text.startswith("hours: an event of the window from ") for text in said)
        assert all(text.endswith(ADVICE) for text in said)
        refused += len(said)
        older += sum(a[0] > b[0] for a, b in itertools.pairwise(applied))
    assert refused > 50
    assert older > 10


def test_sessions_are_those_of_the_events_that_are_not_refused() -> None:
    operator = windows.by_session(Known, add, 7, event=EVENT, key="user", name="visits")
    dice = random.Random(5)
    refused = older = 0
    for number in range(300):
        given = tables(dice)
        applied, rows, said = told(operator, given, **SETTINGS[number % 2])
        assert sorted(rows) == sessions_of(applied, 7), given
        assert [row[2] for row in rows] == sorted(row[2] for row in rows)
        assert all(text.startswith("visits: an event at ") for text in said)
        assert all(text.endswith(ADVICE) for text in said)
        refused += len(said)
        older += sum(a[0] > b[0] for a, b in itertools.pairwise(applied))
    assert refused > 50
    assert older > 50


def test_an_older_event_is_the_start_of_an_open_session_or_one_more_of_it() -> None:
    operator = windows.by_session(Known, add, 30, event=EVENT, early=1)
    with ss.Engine(operator, horizon=0) as engine:
        rows = [
            row
            for time in (100, 71, 71, 90, 100)
            for row in engine.process(table_of([(time, "ann", 1)]), order_by="t").to_pylist()
        ]
        found = [(row["start"], row["end"], row["count"]) for row in rows]
        assert found == [(100, 130, 1), (71, 130, 2), (71, 130, 3), (71, 130, 4), (71, 130, 5)]
        with pytest.raises(ValueError, match="by_session: an event at 41, and the open session"):
            engine.process(table_of([(41, "ann", 1)]), order_by="t")


def test_the_times_of_a_landmark_window_do_not_go_back() -> None:
    operator = windows.by_landmark(Known, add, begins, ends, event=EVENT, key="user")
    given: list[list[Event]] = [
        [(100, "ann", 1)],
        [(99, "ann", 2), (99, "bob", 2), (100, "ann", 3)],
        [(60, "bob", 1), (61, "bob", 2), (99, "ann", 3), (100, "ann", 2)],
        [(50, "ann", 1), (50, "ann", 2)],
    ]
    applied, rows, said = told(operator, given, horizon=0)
    assert rows == [(60, "bob", 61, 2, 3), (100, "ann", 100, 3, 6), (50, "ann", 50, 2, 3)]
    assert len(applied) == 8
    of = "by_landmark: an event at 99, and the last one of the open window of its key was at 100"
    assert said == [of + ADVICE] * 2

"""Events below the frontier, and events without a time: an error, dropped, or kept on the side."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from support.engine.arriving import drain, entities, places

import specstream as ss


def late_engine(**options: Any) -> ss.Engine:
    engine = ss.Engine(entities, threads=2, horizon=4, chunk=1, **options)
    engine.submit({"time": [1, 9], "at": [0, 0], "amount": [1, 1]}, order_by="time", source="a")
    engine.advance("a", 5)
    return engine


LATE = {"time": [6, 4, 3], "at": [0, 0, 0], "amount": [7, 5, 5]}


def test_late_events_are_an_error() -> None:
    with late_engine() as engine:
        with pytest.raises(ss.InputError, match=r"2 event.* late.*'a' at time=3.*frontier"):
            engine.submit(LATE, order_by="time", source="a")
        assert engine.stats.pending <= 2
        with pytest.raises(ss.InputError, match="late"):
            engine.submit(
                {**LATE, "source": ["a", "new", "a"]}, order_by="time", source_column="source"
            )
        engine.advance("a")
        assert drain(engine, 2)[0]["value"].to_pylist() == [1, 2], "nothing of the tables came in"


def test_late_events_are_dropped_and_counted() -> None:
    with late_engine(late="drop") as engine:
        engine.submit(LATE, order_by="time", source="a")
        assert engine.stats.late == 2
        engine.advance("a")
        assert drain(engine, 3)[0]["value"].to_pylist() == [1, 8, 9]
        assert engine.late() is None


def test_late_events_go_to_the_side() -> None:
    with late_engine(late="side") as engine:
        engine.submit(LATE, order_by="time", source="a")
        side = engine.late()
        assert side is not None
        assert side.to_pydict() == {"time": [4, 3], "at": [0, 0], "amount": [5, 5]}
        assert engine.late() is None
        engine.advance("a")
        assert drain(engine, 3)[0]["value"].to_pylist() == [1, 8, 9]


def test_an_event_without_a_time_does_not_settle_the_type_of_the_others() -> None:
    with ss.Engine(places, rejected_rows="side") as engine:
        engine.submit_event(None, name="nobody")
        engine.submit({"time": [None, None], "name": ["no", "body"]}, order_by="time")
        engine.submit_event(7, name="somebody", ordered=True)
        assert engine.poll_rows(timeout=None) == [("somebody", 1)]
        engine.submit_event(None, name="nobody")
        assert engine.stats.rejected_rows == 4
        bad = engine.rejected_rows()
        assert bad is not None
        null = "column 'time' is null"
        assert bad["reason"].to_pylist() == ["the time is null", null, null, "the time is null"]
    with ss.Engine(places) as engine:
        with pytest.raises(ss.InputError, match="source 3 has no time"):
            engine.submit_event(None, 3, name="nobody")
        engine.submit_event(datetime.datetime(2013, 1, 1), 3, name="somebody", ordered=True)
        assert engine.poll_rows(timeout=None) == [("somebody", 1)]

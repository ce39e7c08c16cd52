"""When a source begins to hold back the others, and when nothing of it may come any more."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import specstream as ss


class Count(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Count, event={"x": int}, emits={"place": int})
def numbered(state, event, emit):
    state.count += event.x
    emit(state.count)


SILENT: dict[str, Any] = {
    "an empty table": {"time": [], "x": []},
    "a rejected row": {"time": [20], "x": [None]},
    "a late row": {"time": [5], "x": [1]},
}


@pytest.mark.parametrize("policy", ["drop", "side"])
@pytest.mark.parametrize("rows", SILENT.values(), ids=SILENT.keys())
@pytest.mark.parametrize("back", ["", "snapshot"])
def test_a_source_of_which_nothing_was_taken_holds_nothing_back(
    rows: Any, policy: Any, back: str
) -> None:
    table = pa.table(rows, schema=pa.schema([("time", pa.int64()), ("x", pa.int64())]))
    options: dict[str, Any] = {"late": policy, "rejected_rows": "side", "threads": 2}
    with ss.Engine(numbered, **options) as engine:
        engine.submit({"time": [10], "x": [1]}, order_by="time", source="a")
        engine.advance("a", 10)
        assert len(engine.poll(timeout=None)) == 1
        engine.submit(table, order_by="time", source="b", ordered=True)
        for time, x in zip(rows["time"], rows["x"], strict=True):
            engine.submit_event(time, "c", x=x)
        late = 2 if rows["time"] == [5] else 0
        assert engine.stats.late == late
        image = engine.snapshot()
        with ss.Engine(numbered, restore=image, **options) as other:
            running = other if back else engine
            assert running.stats.late == late
            running.submit({"time": [30], "x": [1]}, order_by="time", source="a", ordered=True)
            assert len(running.poll(timeout=None)) == 1
            # It joins where nothing is committed yet, as if it had never been heard of.
            running.submit({"time": [31], "x": [1]}, order_by="time", source="b")
            running.submit_event(29, "b", x=1)
            assert running.stats.late == late + 1
            running.advance("a", 50)
            assert len(running.poll(timeout=None)) == 0
            running.advance("b", 50)
            assert len(running.poll(timeout=None)) == 1


def test_a_source_whose_advance_is_refused_does_not_join() -> None:
    with ss.Engine(numbered) as engine:
        engine.submit({"time": [10], "x": [1]}, order_by="time", source="a", ordered=True)
        with pytest.raises(ss.InputError, match="is no int64"):
            engine.advance("b", "soon")
        assert len(engine.poll(timeout=None)) == 1


LAST = 2**63 - 1


@pytest.mark.parametrize("time", [11, LAST])
@pytest.mark.parametrize("back", ["", "snapshot", "savepoint"])
def test_whatever_comes_of_a_source_that_has_ended_is_late(time: int, back: str) -> None:
    options: dict[str, Any] = {"sources": ["a", "b"]}
    event = {"time": [time], "x": [1]}
    with ss.Engine(numbered, **options) as engine:
        engine.submit({"time": [10], "x": [1]}, order_by="time", source="a")
        engine.advance("a")
        image = engine.snapshot()
        if back == "savepoint":
            engine.rollback(engine.savepoint())
        with ss.Engine(numbered, restore=image, **options) as other:
            running = other if back == "snapshot" else engine
            with pytest.raises(ss.InputError, match=r"of source 'a' at time=.*which has ended"):
                running.submit(event, order_by="time", source="a")
            with pytest.raises(ss.InputError, match=r"of source 'a' .*the source has ended"):
                running.submit_event(time, "a", x=1)
            running.submit(event, order_by="time", source="b")
            running.advance("b")
            assert len(running.poll(timeout=None)) == 2


def test_a_source_that_has_come_to_the_last_time_has_not_ended() -> None:
    with ss.Engine(numbered, sources=[1, 2]) as engine:
        engine.submit({"time": [LAST], "x": [1]}, order_by="time", source=1, ordered=True)
        engine.submit({"time": [LAST], "x": [1]}, order_by="time", source=2, ordered=True)
        assert len(engine.poll(timeout=None)) == 1  # source 1 may send more, before that of 2
        engine.submit({"time": [LAST], "x": [1]}, order_by="time", source=1)
        engine.advance(1)
        assert len(engine.poll(timeout=None)) == 2
        engine.submit({"time": [LAST], "x": [1]}, order_by="time", source=2)
        assert len(engine.poll(timeout=None)) == 1
        with pytest.raises(ss.InputError, match=r"source 0 at time=.*has ended"):
            engine.submit({"time": [LAST], "x": [1]}, order_by="time", source=0)


@pytest.mark.parametrize("way", ["read_event", "read"])
def test_the_runtime_gets_nothing_below_what_may_be_committed(
    way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def submit() -> None:
        if way == "read_event":
            engine.submit_event(9, "a", x=1)
        else:
            engine.submit({"time": [9], "x": [1]}, order_by="time", source="a")

    with ss.Engine(numbered, sources=["a", "b"]) as engine:
        engine.submit({"time": [10], "x": [1]}, order_by="time", source="a", ordered=True)
        engine.advance("b", 20)
        pending = engine.durable.pending
        source = pending.sources.get("a")
        taken = getattr(pending, way)

        def takes_late_ones(*arguments: Any) -> Any:
            source.frontier = None
            segments = taken(*arguments)
            source.frontier = 10
            return segments

        # As bugs would have it: a late event is taken, and a frontier forgotten.
        with monkeypatch.context() as bug:
            bug.setattr(pending, way, takes_late_ones)
            with pytest.raises(ss.SpecstreamError, match=r"an event lies .* committed up to"):
                submit()
        source.frontier = None
        with pytest.raises(
            ss.SpecstreamError, match=r"(the frontier|an event) lies .* committed up to"
        ):
            submit()

"""Engines, statistics, states, profiles and snapshots show themselves, as text and as HTML."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from support.engine import spinning

import specstream as ss


class Basket(ss.Record):
    size: int
    owner: str


class Shop(ss.State):
    prices = ss.array(float, 1000)
    grid = ss.array(np.int32, (40, 50))
    names = ss.array(str, 20)
    many = ss.array(Basket, 9)
    total = ss.scalar(int)
    note = ss.scalar(str)
    stock = ss.dict(str, int)
    kinds = ss.set(str)
    queue = ss.priority_queue(int)
    recent = ss.deque(int, maxlen=3)


@ss.operator(
    name="<b>shop", state=Shop, event={"name": str, "x": int}, emits={"x": int, "total": int}
)
def shop(state, event, emit):
    if event.x < 0:
        raise ValueError("negative")
    state.prices[event.x % 1000] = 0.5
    state.total += event.x
    state.note = event.name
    state.stock[event.name] = event.x
    state.kinds.add(event.name)
    state.queue.push(-event.x)
    state.recent.append(event.x)
    emit(event.x, state.total)


def events(count: int) -> dict[str, Any]:
    return {"name": [f"<i>{n}" for n in range(count)], "x": range(count)}


class Checked(HTMLParser):
    """The texts of its cells by row; raises where a tag is not closed, or is none of ours."""

    LISTS = frozenset(["ul", "li", "details", "summary"])
    TAGS = LISTS | {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}

    def __init__(self, shown: Any) -> None:
        super().__init__()
        self.open: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.feed(shown._repr_html_())
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.TAGS
        assert attrs in ([], [("open", None)], [("style", "text-align:left")]), (
            "a colour may fail in dark mode"
        )
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        elif tag in ("td", "th"):
            self.rows[-1].append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data

    def row(self, name: str) -> list[str]:
        (found,) = (row[1:] for row in self.rows if row[0] == name)
        return found


def test_an_engine_says_how_it_stands() -> None:
    with ss.Engine(shop, threads=2, horizon=4, chunk=2) as engine:
        assert repr(engine) == "Engine('<b>shop', threads=2, Fixed, open: 0 events, 0 aborts)"
        engine.process(events(2000))
        assert "2,000 events" in repr(engine)
        shown = Checked(engine)
        assert "Engine of operator <b>shop, open" in shown.text
        assert shown.row("events")[0].startswith("2,000, each in ")
        assert shown.row("setting") == ["Fixed, protocol value, now 2 threads, horizon 4, chunk 2"]
        assert not any(row[0] == "pending" for row in shown.rows)
        engine.submit({"t": [5], "name": ["a"], "x": [1]}, order_by="t")
        assert Checked(engine).row("pending") == ["1"]
    assert "closed: 2,000 events" in repr(engine)
    assert "closed" in Checked(engine).text
    assert "2,000" in repr(engine.stats)
    assert Checked(engine.state).row("total") == ["int", "1999000"]


def test_a_sequential_run_says_what_it_made() -> None:
    @ss.operator(state=Shop, event={"x": int}, emits={"i": int})
    def inverse(state: Any, event: Any, emit: Any) -> None:
        emit(100 // event.x)

    run = inverse.run_sequential({"x": [5, 0, 2]}, on_error="skip")
    shown = Checked(run)
    assert shown.row("emitted rows") == ["2"]
    assert shown.row("columns") == ["i: int64"]
    assert "row 1 raised ZeroDivisionError" in shown.text
    assert repr(run).startswith("Sequential run\n  emitted rows        2")


def test_statistics_say_what_was_decided() -> None:
    moving = ss.ThroughputDriven(every=100, chunk=1)
    with ss.Engine(shop, threads=2, predictor=moving) as engine:
        assert "latest decision" not in repr(engine.stats)
        engine.process(events(5000))
        stats = engine.stats
    assert f"latest decision  {stats.decisions[-1].reason}" in repr(stats)
    shown = Checked(stats)
    assert shown.rows[-1][-1] == stats.decisions[-1].reason
    assert ["before event", "horizon", "chunk", "reason"] in shown.rows


def test_an_empty_state_shows_its_fields() -> None:
    with ss.Engine(shop) as engine:
        shown = Checked(engine.state)
        assert shown.row("stock") == ["dict[str, int], 0 in it", "{}"]
        assert shown.row("kinds") == ["set[str], 0 in it", "set()"]
        assert shown.row("note") == ["text", "''"]
        assert "  total   0\n" in repr(engine.state)


def test_long_arrays_and_containers_are_shortened() -> None:
    with ss.Engine(shop) as engine:
        engine.process(events(3000))
        text, shown = repr(engine.state), Checked(engine.state)
        snapshot = engine.snapshot()
    assert shown.row("prices") == ["1,000 x float", f"[{'0.5, ' * 6}... 994 more]"]
    assert shown.row("grid")[0] == "40 x 50 x int32"
    assert shown.row("grid")[1].endswith("... 44 more], ... 38 more]")
    assert shown.row("many")[1].endswith("... 3 more]")
    first = "{'<i>0': 0, '<i>1': 1, '<i>2': 2, '<i>3': 3, '<i>4': 4, '<i>5': 5, ... 2,994 more}"
    assert shown.row("stock") == ["dict[str, int], 3,000 in it", first]
    assert shown.row("kinds")[1] == (
        "{'<i>0', '<i>1', '<i>2', '<i>3', '<i>4', '<i>5', ... 2,994 more}"
    )
    assert shown.row("queue")[1].startswith("[-2999, -2998, ")
    assert shown.row("recent")[1] == "[2997, 2998, 2999]"
    assert first in text
    assert max(map(len, text.splitlines())) < 150
    # What is shown of a snapshot is the same, though nobody has the operator.
    held = ss.describe_snapshot(snapshot)
    assert [row[2] for row in Checked(held.state).rows if row[0] != "many"] == [
        row[2] for row in shown.rows if row[0] != "many"
    ]


def test_entries_that_were_inserted_again_keep_the_order_of_insertion() -> None:
    class Kept(ss.State):
        last = ss.dict(int, int)

    @ss.operator(state=Kept, event={"x": int})
    def again(state, event, emit):
        if event.x in state.last:
            del state.last[event.x]
        state.last[event.x] = 1

    with ss.Engine(again) as engine:
        engine.process({"x": [*range(20), 0, 1, 2, 20, 21]})
        order = list(engine.state.last)
        expected = "{" + "".join(f"{key}: 1, " for key in order[:6]) + "... 16 more}"
        assert expected in repr(engine.state)
        assert order[0] == 3


def test_a_long_string_is_cut() -> None:
    with ss.Engine(shop) as engine:
        engine.process({"name": ["x" * 10_000], "x": [1]})
        assert len(repr(engine.state)) < 2000
        assert "xxx..." in repr(engine.state)


@pytest.mark.parametrize(
    "look",
    [
        lambda engine: repr(engine),
        lambda engine: Checked(engine).text,
        lambda engine: repr(engine.stats),
        lambda engine: Checked(engine.stats).text,
        lambda engine: repr(engine.profile()),
        lambda engine: Checked(engine.profile()).text,
    ],
)
def test_nothing_but_the_state_waits_for_an_event_that_never_ends(
    look: Callable[[ss.Engine], str],
) -> None:
    engine = ss.Engine(spinning.endless, threads=2)

    def run() -> None:
        with pytest.raises(ss.EngineClosedError):
            engine.process({"x": [1, -1, 2]})

    running = threading.Thread(target=run)
    running.start()
    while not engine.stats.running:
        time.sleep(0.001)
    assert "endless" in look(engine) or "Statistics" in look(engine)
    assert running.is_alive()
    engine.close()
    running.join()


def test_the_state_shows_itself_between_two_events_of_a_batch() -> None:
    engine = ss.Engine(spinning.spin_down, threads=2)

    def run() -> None:
        with pytest.raises(ss.EngineClosedError):
            engine.process({"x": np.full(2_000_000, 20_000)})

    running = threading.Thread(target=run)
    running.start()
    seen: set[str] = set()
    while len(seen) < 3:
        seen.add(Checked(engine.state).row("n")[1])
        assert "  left   1000" in repr(engine.state)
        assert running.is_alive()
    engine.close()
    running.join()


def test_a_hook_that_prints_the_state_gets_its_fields_and_the_reason() -> None:
    said: list[str] = []
    engine = ss.Engine(shop, on_commit=lambda note: said.append(repr(views[0]) + repr(engine)))
    views = [engine.state]
    with engine:
        engine.process(events(1))
    assert "  total\n" in said[0]
    assert "hook" in said[0]
    assert "open" in said[0]


def test_a_profile_names_the_words_that_conflict() -> None:
    options: dict[str, Any] = {"horizon": 4, "chunk": 1, "execution": "speculate"}
    with ss.Engine(shop, profile=True, **options) as engine:
        while engine.stats.aborts["conflict"] == 0:
            engine.process(events(1000))
        profile = engine.profile()
    shown = Checked(profile)
    head = ["share", "word", "aborts", "lines, counted"]
    assert shown.rows[shown.rows.index(head) + 1][1] == profile.words[0].name
    assert "Profile of operator <b>shop" in shown.text
    assert all(sentence in shown.text for sentence in profile.advice)
    assert repr(profile) == profile.text(3)


def test_a_snapshot_is_described_without_its_operator() -> None:
    with ss.Engine(shop, rejected_rows="side", errors="side", sources=["a", "b"]) as engine:
        engine.process({"name": ["x", None, "<b>", "x"], "x": [1, 2, 3, -1]})
        engine.submit(
            {"t": [5, 6], "name": ["p", "q"], "x": [1, 2]}, order_by="t", source="a", ordered=True
        )
        snapshot = engine.snapshot()
    assert type(snapshot) is bytes
    held = ss.describe_snapshot(snapshot)
    assert held.state.stock == {"x": 1, "<b>": 3}
    assert (held.next_sequence, held.pending) == (3, 2)
    assert (held.rejected_rows, held.failed_events) == (1, 1)
    assert held.size == len(snapshot)
    assert "pending events        2" in repr(held)
    assert "State Shop" in repr(held)
    shown = Checked(held)
    assert shown.row("pending events") == ["2"]
    assert shown.row("failed events") == ["1"]
    assert shown.row("stock") == ["dict[str, int], 2 in it", "{'x': 1, '<b>': 3}"]
    for wrong, message in [
        (b"nothing", "no snapshot"),
        (snapshot[:-1], "damaged"),
        ("text", "no snapshot"),
    ]:
        with pytest.raises(ss.SnapshotError, match=message):
            ss.describe_snapshot(wrong)  # type: ignore[arg-type]


def test_a_savepoint_says_what_it_is() -> None:
    with ss.Engine(shop) as engine:
        engine.process(events(3))
        assert repr(engine.savepoint()).startswith("Savepoint(Shop, ")
        assert repr(engine.savepoint()).endswith("next sequence number 3)")

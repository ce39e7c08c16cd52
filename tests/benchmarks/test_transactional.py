"""The benchmark of transactional streams: its workloads do what they say, under every scheme; and
its page says what it saw."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from bench.harness import Effort
from bench.locked import under_sorted_locks
from bench.stored import to_text
from bench.transactional import __main__ as command
from bench.transactional import operators as of
from bench.transactional.measure import QUICK, Seen, state_of, verify
from bench.transactional.ordered import OrderedEngine
from bench.transactional.page import at, expectations, page
from bench.transactional.schemes import DETERMINISTIC, RIVALS, Scheme
from bench.transactional.workloads import AXES, WORKLOADS, Knobs, Workload, points

FOLDER = Path(__file__).parents[2] / "docs" / "research"
HOT = Knobs(skew=1.2, aborts=0.2)

workloads = pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)


# ---- the workloads, once more in plain Python ----


def grep_sum(events: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    records = dict.fromkeys(range(10_000), 100)
    for number, event in enumerate(events):
        keys = [event[f"k{at}"] for at in range(event["count"])]
        total, done = sum(records[key] for key in keys), True
        if event["write"]:
            done = all(records[key] + event["amount"] >= 0 for key in keys)
            if done:
                total += event["amount"] * len(keys)
                for key in keys:
                    records[key] += event["amount"]
        yield number, done, total


def ledger(events: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    money, goods = [1_000_000] * 10_000, [1_000_000] * 10_000
    for number, event in enumerate(events):
        payer, seller = event["from_account"], event["from_asset"]
        if event["transfer"]:
            done = money[payer] >= event["money"] and goods[seller] >= event["goods"]
            if done:
                money[payer] -= event["money"]
                goods[seller] -= event["goods"]
        else:
            done = True
        to = event["to_account"], event["to_asset"]
        money[to[0]] += event["money"] * done
        goods[to[1]] += event["goods"] * done
        yield number, done, money[to[0]], goods[to[1]]


def toll(events: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    speeds: dict[int, tuple[int, float]] = {}
    vehicles: dict[int, set[int]] = {}
    for number, event in enumerate(events):
        segment = event["segment"]
        count, mean = speeds.get(segment, (0, 0.0))
        there = vehicles.setdefault(segment, set())
        if event["report"]:
            there.add(event["vehicle"])
            mean += (event["speed"] - mean) / (count + 1)
            speeds[segment] = (count + 1, mean)
        yield number, 2 * (len(there) - 50) ** 2 if len(there) > 50 and mean < 40 else 0


def bidding(events: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    prices: dict[int, int] = {}
    left: dict[int, int] = {}
    for number, event in enumerate(events):
        keys = [event[f"k{at}"] for at in range(event["count"])]
        done, taken = True, 0
        match event["kind"]:
            case of.ALTER:
                prices.update(dict.fromkeys(keys, event["price"]))
            case of.TOP_UP:
                for key in keys:
                    left[key] = left.get(key, 1_000_000) + event["quantity"]
            case of.BID:
                there = left.get(keys[0], 1_000_000)
                done = event["price"] >= prices.get(keys[0], 100) and event["quantity"] <= there
                taken = event["quantity"] * done
                left[keys[0]] = there - taken
        yield number, done, taken


PLAIN: dict[str, Callable[[list[dict[str, Any]]], Iterator[tuple[Any, ...]]]] = {
    "grepsum": grep_sum,
    "ledger": ledger,
    "toll": toll,
    "bidding": bidding,
}


def rows_of(table: pa.Table) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in table.to_pylist()]


@workloads
def test_a_workload_does_what_plain_python_does(workload: Workload) -> None:
    events = workload.events(4_000, 3, HOT)
    found = rows_of(workload.operator.run_sequential(events).output)
    assert found == list(PLAIN[workload.name](events.to_pylist()))
    # Both ways out are taken.
    assert len({row[1] > 0 for row in found}) == 2


@pytest.mark.slow
@workloads
def test_engines_give_the_sequential_answer_on_all_settings(workload: Workload) -> None:
    ss.testing.check(workload.operator, workload.events(300, 5, HOT))


@pytest.mark.slow
@workloads
def test_every_scheme_keeps_what_it_promises(workload: Workload) -> None:
    assert verify(workload, 200) == 200


def test_a_scheme_that_breaks_its_promise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    toll = WORKLOADS["toll"]
    with pytest.raises(AssertionError, match="toll: plain has lost or made something"):
        verify(replace(toll, holds=lambda *given: False), 20)
    process = Scheme.process
    monkeypatch.setattr(
        Scheme, "process", lambda one, batch: process(one, batch).take([*range(19, -1, -1)])
    )
    with pytest.raises(AssertionError, match="toll: plain differs from plain Python"):
        verify(toll, 20)


# ---- what has to hold, and what breaks it ----

# What a defect would do to the state, by workload; all of it has to be noticed.
DEFECTS: dict[str, list[Callable[[Any], Any]]] = {
    "grepsum": [lambda state: state.values.__setitem__(5, state.values[5] + 1)],
    "ledger": [
        lambda state: state.accounts.__setitem__(5, state.accounts[5] - 1),
        lambda state: state.assets.__setitem__(slice(2), [-1, sum(state.assets[:2]) + 1]),
    ],
    "toll": [
        lambda state: state.reports.__setitem__(5, state.reports[5] + 1),
        lambda state: state.vehicles.__setitem__(5, state.vehicles[5] + 1),
        lambda state: state.seen.__setitem__((5, 7), not state.seen[5, 7]),
    ],
    "bidding": [lambda state: state.quantities.__setitem__(5, state.quantities[5] + 1)],
}


@workloads
def test_what_is_lost_or_made_is_noticed(workload: Workload) -> None:
    events = workload.events(300, 2, HOT)
    with ss.Engine(workload.operator, threads=1, horizon=0) as engine:
        before = state_of(engine, workload.operator)
        rows = engine.process(events)
        assert workload.holds(before, state_of(engine, workload.operator), events, rows)
        for spoil in DEFECTS[workload.name]:
            after = state_of(engine, workload.operator)
            spoil(after)
            assert not workload.holds(before, after, events, rows)


# ---- the keys of an event ----


class Spied:
    """An array that notes which lock each access would want."""

    def __init__(self, values: Any, first: int, wanted: set[int]) -> None:
        self._values, self._first, self._wanted = values, first, wanted

    def __getitem__(self, at: Any) -> Any:
        self._wanted.add(self._first + (at[0] if isinstance(at, tuple) else at))
        return self._values[at]

    def __setitem__(self, at: Any, value: Any) -> None:
        self._wanted.add(self._first + (at[0] if isinstance(at, tuple) else at))
        self._values[at] = value


@workloads
def test_an_event_touches_the_keys_that_it_says_beforehand_and_no_others(
    workload: Workload,
) -> None:
    events = workload.events(300, 4, Knobs(skew=0.9))
    said = workload.touched(events)
    assert said.shape == (300, workload.most)
    with ss.Engine(workload.operator) as engine:
        fields = vars(state_of(engine, workload.operator))
    touched = 0
    for row, event in enumerate(events.to_pylist()):
        wanted: set[int] = set()
        state = SimpleNamespace(
            **{
                name: Spied(values, of.ACCOUNTS if name == "assets" else 0, wanted)
                for name, values in fields.items()
            }
        )
        one = SimpleNamespace(sequence=row, **event)
        keys = [-1] * workload.most
        count = workload.keys(keys, one)
        assert keys[:count] == [key for key in said[row] if key >= 0]
        workload.operator.function(state, one, lambda *values: None)
        assert wanted <= set(keys[:count])
        assert max(keys[:count]) < workload.locks
        touched += len(wanted)
    assert touched > 250


# ---- locks ----


def test_an_event_with_a_key_twice_takes_its_lock_once() -> None:
    grepsum = WORKLOADS["grepsum"]
    events = {f"k{at}": [7, 9, 3] for at in range(of.LIST)} | {"k4": [1, 1, 8]}
    table = pa.table({**events, "count": [10, 10, 1], "write": [True] * 3, "amount": [1, 2, 3]})
    operator = under_sorted_locks(grepsum.operator, grepsum.keys, grepsum.locks, grepsum.most)
    expected = rows_of(grepsum.operator.run_sequential(table).output)
    with ss.Engine(operator, threads=1, execution="locked") as engine:
        assert rows_of(engine.process(table)) == expected
    one = Scheme(DETERMINISTIC, grepsum, threads=1)
    assert rows_of(one.process(table)) == expected
    one.close()


@pytest.mark.slow
@workloads
@pytest.mark.parametrize(("threads", "chunk"), [(2, 1), (8, 3)])
def test_deterministic_locks_give_the_sequential_answer_batch_after_batch(
    workload: Workload, threads: int, chunk: int
) -> None:
    """Where most events want the same keys, some sleeping and some not."""
    ordered = Scheme(DETERMINISTIC, workload, threads=threads, chunk=chunk)
    with ss.Engine(workload.operator, threads=1, horizon=0) as plain:
        for seed, sleep in ((1, 0.0), (2, 1e-4), (3, 0.0)):
            events = workload.events(60 if sleep else 5_000, seed, replace(HOT, skew=2.0))
            ordered.work = {"sleep": sleep}
            assert ordered.process(events) == plain.process(events)
        found, expected = (
            vars(state_of(engine, workload.operator)) for engine in (ordered.engine, plain)
        )
        assert all(np.array_equal(found[name], expected[name]) for name in expected)
    ordered.restart()
    first = workload.events(200, 1, HOT)
    assert ordered.process(first) == workload.operator.run_sequential(first).output
    ordered.close()


def test_deterministic_locks_refuse_a_key_that_there_is_not() -> None:
    toll = WORKLOADS["toll"]
    events = toll.events(3, 0, Knobs())
    engine = OrderedEngine(replace(toll, touched=lambda events: np.array([[1], [1000], [2]])), 2)
    with pytest.raises(ValueError, match="toll: an event wants a lock that there is not"):
        engine.begin(events)
    engine.close()


def test_an_event_that_raises_under_deterministic_locks_holds_up_nobody() -> None:
    class Total(ss.State):
        total = ss.scalar(int)

    @ss.operator(state=Total, event={"segment": int}, emits={"number": int, "total": int})
    def adds(state, event, emit):  # type: ignore[no-untyped-def]
        if event.segment == 7:
            raise ValueError("seven")
        state.total += event.segment
        emit(event.sequence, state.total)

    one = Scheme(DETERMINISTIC, replace(WORKLOADS["toll"], operator=adds), threads=4)
    good = pa.table({"segment": [1, 2, 3, 1] * 50})
    with pytest.raises(ValueError, match="seven"):
        one.process(pa.table({"segment": [7] * 200}))
    one.restart()
    assert one.process(good).num_rows == 200
    one.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", RIVALS)
def test_the_latency_of_an_event_has_its_own_work_in_it(name: str) -> None:
    toll = WORKLOADS["toll"]
    one = Scheme(name, toll, threads=2, horizon=4)
    one.work = {"sleep": 2e-4}
    taken = one.latency(toll.events(40, 1, Knobs()))
    one.close()
    assert taken.min() > 2e5
    assert np.median(taken) < 2e7


# ---- knobs ----


@workloads
def test_a_stream_is_the_same_for_a_seed_and_another_one_for_others(workload: Workload) -> None:
    streams = [workload.events(50, seed, Knobs()) for seed in (1, 1, 2)]
    assert streams[0] == streams[1]
    assert streams[0] != streams[2]


@workloads
def test_events_are_what_the_knobs_say(workload: Workload) -> None:
    count = 4_000
    keys = [
        np.bincount(workload.touched(workload.events(count, 1, Knobs(skew=skew)))[:, 0])
        for skew in AXES["skew"]
    ]
    assert sorted(one.max() for one in keys) == [one.max() for one in keys]
    assert 10 * keys[0].max() < keys[-1].max()
    for share in (0.2, 0.8):
        knobs = Knobs(aborts=share, multi=share, reads=share)
        events = workload.events(count, 2, knobs)
        if "reads" in workload.knobs:
            writes = events["report" if workload.name == "toll" else "write"].to_numpy()
            assert abs(1 - writes.mean() - share) < 0.05
        if "multi" in workload.knobs:
            many = (workload.touched(events) >= 0).sum(axis=1) > workload.most / 2
            assert abs(many.mean() - share) < 0.05
        if "aborts" in workload.knobs:
            # Of those that can be refused.
            kinds = {"grepsum": "write", "ledger": "transfer", "bidding": "kind"}
            kind = events[kinds[workload.name]].to_numpy()
            able = kind == of.BID if workload.name == "bidding" else kind
            done = workload.operator.run_sequential(events).output["done"].to_numpy()
            assert done[~able].all()
            assert abs(1 - done[able].mean() - share) < 0.05


@workloads
def test_every_knob_is_turned_alone(workload: Workload) -> None:
    usual, *others = points(workload)
    assert usual == ("", 0.0, Knobs())
    assert {name for name, _, _ in others} == set(workload.knobs)
    for name, value, knobs in others:
        assert knobs == replace(Knobs(), **{name: value}) != Knobs()
    assert set(map(str, points(workload, few=True))) <= set(map(str, points(workload)))


# ---- the command ----


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """Two of the workloads, which have all knobs, as a quick run leaves them."""
    folder = tmp_path_factory.mktemp("speed")
    with pytest.MonkeyPatch.context() as patch:
        two = {name: WORKLOADS[name] for name in ("grepsum", "toll")}
        patch.setattr(command, "WORKLOADS", two)
        quick = replace(QUICK, effort=Effort(1, 2e-4, 1, 1), events=8, threads=(4,))
        patch.setattr(command, "QUICK", quick)
        arguments = ["--quick", "--plot", str(folder), "--json", str(folder / "kept.json")]
        patch.setattr("sys.argv", ["transactional", *arguments])
        assert command.main() == 0
    return folder, json.loads((folder / "kept.json").read_text())


@pytest.mark.slow
def test_a_quick_run_writes_data_picture_and_page(measured: tuple[Path, dict[str, Any]]) -> None:
    folder, data = measured
    assert data["quick"]
    assert json.loads((folder / "transactional.json").read_text()) == data
    assert (folder / "transactional.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "transactional.md").read_text() == page(data)
    for name, found in data["workloads"].items():
        wanted = [(knob, value) for knob, value, _ in points(WORKLOADS[name], few=True)]
        assert [(one["knob"], one["value"]) for one in found["points"]] == wanted
        for one in found["points"]:
            assert set(one["schemes"]) == {"plain", "Auto", *RIVALS}
            assert one["schemes"]["plain"][:3] == [1, 1, 1]
            assert min(Seen(*seen).low for seen in one["schemes"].values()) > 0
        assert set(found["latency"]) == set(found["asleep"]["schemes"]) == set(RIVALS)


@pytest.mark.slow
def test_a_page_is_written_of_data_that_were_kept(
    measured: tuple[Path, dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, data = measured
    arguments = ["--from", str(folder / "kept.json"), "--plot", str(tmp_path / "again")]
    monkeypatch.setattr("sys.argv", ["transactional", *arguments])
    assert command.main() == 0
    assert (tmp_path / "again" / "transactional.md").read_text() == page(data)


@pytest.mark.slow
def test_the_page_says_other_things_of_other_data(measured: tuple[Path, dict[str, Any]]) -> None:
    other = json.loads(json.dumps(measured[1]))
    for load, is_said in ((0.3, False), (4.0, True)):
        other["machine"]["load"] = load
        assert ("**Provisional:**" in page(other)) == is_said
    grepsum = other["workloads"]["grepsum"]
    usual = grepsum["points"][0]
    longest = [*at(grepsum, "length").values()][-1]
    for one in grepsum["points"]:
        for seen in one["schemes"].values():
            seen[:3] = [1.2, 1.2, 1.2]
    for speed, ratio, holds in ((1.9, 1.5, True), (1.1, 0.5, False)):
        longest["schemes"]["value"][:3] = [speed] * 3
        usual["to deterministic"]["value"] = [ratio] * 3
        usual["schemes"]["value"][:3] = [1.77, 1.77, 1.77]
        found = expectations(other)[:4]
        assert [one.holds for one in found[:3]] == [holds, holds, True]
        text = page(other)
        assert "GrepSum 1.77 (value)" in " ".join(text.split())
        assert (f"at least 1.8 | {speed:.2f} ({speed:.2f}-{speed:.2f}) | **no**" in text) != holds
    for of_one in other["workloads"].values():
        for one in of_one["points"]:
            one["to deterministic"]["value"] = [1.0, 1.0, 1.0]
    usual["to deterministic"]["value"] = [9.0, 9.25, 9.5]
    assert "value to deterministic locks: up to 9.25 (GrepSum, the usual setting)" in page(other)


@pytest.mark.slow
def test_one_workload_can_be_measured_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick = replace(QUICK, effort=Effort(1, 2e-4, 1, 1), events=8, threads=(4,))
    monkeypatch.setattr(command, "QUICK", quick)
    arguments = ["--quick", "--only", "toll", "--json", str(tmp_path / "toll.json")]
    monkeypatch.setattr("sys.argv", ["transactional", *arguments])
    assert command.main() == 0
    assert set(json.loads((tmp_path / "toll.json").read_text())["workloads"]) == {"toll"}
    output = capsys.readouterr().out
    assert "Toll Processing; speed relative to plain" in output
    assert "What was expected" in output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--only", "tolls"], "invalid choice: 'tolls'"),
        (["--only", "toll", "--plot"], "--plot wants all workloads: leave out --only"),
        (["--from", "earlier.json"], "--from draws: name a folder with --plot"),
        (["--rounds", "3"], "unrecognized arguments"),
    ],
)
def test_wrong_options_are_refused(
    arguments: list[str],
    said: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sys.argv", ["transactional", *arguments])
    with pytest.raises(SystemExit) as left:
        command.main()
    assert left.value.code == 2
    assert said in capsys.readouterr().err


def test_the_page_is_what_the_stored_data_say() -> None:
    text = (FOLDER / "transactional.json").read_text()
    data = json.loads(text)
    assert page(data) == (FOLDER / "transactional.md").read_text()
    assert text == to_text(data)
    assert not data["quick"]

"""The experiments of chapter 4: that they measure what they say, not what comes out."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import json
import math
import re
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import specstream as ss
from bench.chapter4 import __main__ as command
from bench.chapter4 import (
    figure_4_5,
    figure_4_6,
    figure_4_9,
    figure_4_11,
    figure_4_12,
    figure_4_16,
    figures_4_7_4_8,
    gallery,
    sinusoid,
)
from bench.chapter4.experiment import Experiment
from bench.chapter4.experiments import EXPERIMENTS
from bench.chapter4.lab import (
    CONTROLS,
    METHODS,
    SMALL_RECORDS,
    TRANSACTIONAL,
    Words,
    opened,
    opened_all,
    random_words,
)
from bench.chapter4.paced_sources import (
    SETTINGS,
    Load,
    mean_latency,
    peaks_at_equal_rates,
    speculation_is_below,
)
from bench.chapter4.slowed import Runs, Slept, SlowedEngine, busy_rounds
from bench.stored import to_text
from bench.workloads import listing_4_2, values

pytestmark = pytest.mark.slow


def test_an_experiment_is_measured_drawn_judged_and_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, page = tmp_path / "figures", tmp_path / "page.md"
    arguments = ["figure_4_11", "--folder", str(folder), "--page", str(page)]
    monkeypatch.setattr("sys.argv", ["chapter4", *arguments, "--quick"])
    measured = command.main()
    assert (folder / "figure_4_11.png").read_bytes().startswith(b"\x89PNG")
    stored = json.loads((folder / "figure_4_11.json").read_text())
    assert stored["machine"]
    assert stored["data"]
    shown = page.read_text()
    assert "(figures/figure_4_11.png)" in shown
    assert "Figure 4.12" not in shown  # it was not measured
    monkeypatch.setattr("sys.argv", ["chapter4", *arguments, "--redraw"])
    assert command.main() == measured
    assert page.read_text() == shown


def test_an_unknown_experiment_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["chapter4", "figure_4_99"])
    with pytest.raises(SystemExit):
        command.main()
    assert "no experiment is called figure_4_99; there are figure_4_5" in capsys.readouterr().err


def test_the_page_is_what_the_stored_data_say_and_they_are_small() -> None:
    assert gallery.page(EXPERIMENTS, command.FOLDER, command.PAGE) == command.PAGE.read_text()
    for experiment in EXPERIMENTS:
        text = (command.FOLDER / f"{experiment.name}.json").read_text()
        assert text == to_text(json.loads(text)), f"{experiment.name}: written by hand?"
        assert len(text) < 40_000


def test_what_did_not_appear_has_its_cause_and_each_experiment_its_section() -> None:
    for experiment in EXPERIMENTS:
        assert experiment.section.startswith("4.5."), experiment.name
        for finding in gallery.findings_of(experiment, command.FOLDER)[1]:
            assert finding.holds or finding.because, f"{experiment.name}: {finding.what}"


def test_what_is_stored_is_rounded_and_narrow() -> None:
    data = {"speed": 1.23456789, "counts": [123456789] * 20, "rows": [{"name": "µ", "at": [1.0]}]}
    text = to_text(data)
    assert json.loads(text) == {**data, "speed": 1.234568}
    assert max(map(len, text.splitlines())) <= 100
    assert text.splitlines()[-2] == ' "rows": [{"name": "µ", "at": [1.0]}]'


def test_a_line_is_stored_with_the_points_that_can_be_seen() -> None:
    at = [0.1 * n for n in range(2000)]
    values = [math.sin(x) + (0.5 if 900 < n < 920 else 0.0) for n, x in enumerate(at)]
    kept = figure_4_16.visible(at, values, 0.01)
    assert len(kept) < 1000
    drawn = np.interp(at, [at[n] for n in kept], [values[n] for n in kept])
    assert np.abs(drawn - values).max() <= 0.01
    assert figure_4_16.visible(at, [7.0] * 2000, 0.0) == [0, 1999]


def test_every_experiment_has_a_name_of_its_own() -> None:
    assert len({experiment.name for experiment in EXPERIMENTS}) == len(EXPERIMENTS) == 16


def distinct_words(count: int, batches: int) -> Words:
    """Random words of which none comes twice, so that each is changed as often as was said."""
    drawn = random_words(count, batches + 1)
    first = np.sort(np.unique(drawn, return_index=True)[1])
    return drawn[first[: count * batches]]


@pytest.mark.parametrize("method", [*METHODS, *CONTROLS])
def test_the_lab_really_accesses_the_state(method: str) -> None:
    words = random_words(10, 20)
    with opened(method) as lab:
        before = lab.state[words].sum()
        lab.phases("increment", words, 10)
        assert lab.state[words].sum() > before
        lab.phases("read", words, 10)
        if method in TRANSACTIONAL:
            before = lab.state[words].copy()
            lab.undo("increment", words, 10)
            assert (lab.state[words] == before).all()


@pytest.mark.parametrize("protocol", TRANSACTIONAL)
@pytest.mark.parametrize("kind", figure_4_12.INTERFERENCE)
@pytest.mark.parametrize("how", [{}, {"fetched": True}, {"unsearched": True}])
def test_a_transaction_whose_words_have_changed_runs_again(
    protocol: str, kind: str, how: dict[str, bool]
) -> None:
    words = distinct_words(50, 5)
    with opened(protocol) as lab:
        before = lab.state[words]
        # Raises where such a transaction commits.
        access = figure_4_12.INTERFERENCE[kind][protocol]
        times = lab.rerun(access, words, 50, 50, **how)
        # What it has written itself is gone; what the other one has written stays.
        assert (lab.state[words] == before + 1).all()
    assert min(times["first"], times["again"]) > 0


def test_writes_alone_do_not_conflict_in_value() -> None:
    with opened("value") as lab, pytest.raises(AssertionError, match="committed"):
        lab.rerun("write", random_words(50, 5), 50, 50)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("unprotected", [False, True])
def test_the_other_core_changes_the_words_that_it_is_told(method: str, unprotected: bool) -> None:
    words = distinct_words(10, 5)
    with opened(method) as lab:
        before = lab.state[words]
        lab.interference("read", words, 10, 4, unprotected=unprotected)
        grown = (lab.state[words] - before).reshape(5, 10)
    assert (grown == [1, 1, 1, 1, 0, 0, 0, 0, 0, 0]).all()


@pytest.mark.parametrize("protocol", TRANSACTIONAL)
def test_transactions_with_memory_of_their_own_commit_and_pay_for_it(protocol: str) -> None:
    words = distinct_words(10, 200)
    with opened_all(TRANSACTIONAL) as labs:
        lab = labs[protocol]
        before = lab.state[words]
        reused = [lab.phases("increment", words, 10)["create"] for _ in range(3)]
        anew = [lab.phases("increment", words, 10, anew=True)["create"] for _ in range(3)]
        lab.tasks("increment", words, 10, 0, anew=True)
        assert (lab.state[words] == before + 7).all()
        # What is reused is whole.
        lab.phases("increment", words, 10)
        assert (lab.state[words] == before + 8).all()
    assert min(anew) > 2 * min(reused)


def test_a_small_lock_array_has_a_record_for_each_word_as_well() -> None:
    words = distinct_words(100, 20)
    with opened("eager", SMALL_RECORDS) as lab:
        before = lab.state[words]
        lab.phases("increment", words, 100)
        assert (lab.state[words] == before + 1).all()


LAB_EXPERIMENTS = [
    figure_4_5.EXPERIMENT,
    figure_4_6.EXPERIMENT,
    figures_4_7_4_8.EXPERIMENT,
    figure_4_9.EXPERIMENT,
    figure_4_11.EXPERIMENT,
    figure_4_12.EXPERIMENT,
]


def _turned_over(data: Any) -> Any:
    """Whatever was the greater is now the smaller."""
    if isinstance(data, dict):
        return {name: of if name == "work" else _turned_over(of) for name, of in data.items()}
    if data and all(isinstance(value, float) for value in data):
        return sorted(1 / max(value, 1e-6) for value in data)
    return [_turned_over(of) for of in data]


@pytest.mark.parametrize("experiment", LAB_EXPERIMENTS, ids=lambda experiment: experiment.name)
def test_whatever_comes_out_each_no_has_its_cause(experiment: Experiment) -> None:
    data = json.loads((command.FOLDER / f"{experiment.name}.json").read_text())["data"]
    missed = set()
    for seen in (data, _turned_over(data)):
        findings = experiment.judge(seen)
        assert len({finding.what for finding in findings}) == len(findings)
        for finding in findings:
            assert finding.seen
            if not finding.holds:
                missed.add(finding.what)
                # With what was measured to show it.
                assert re.search(r"\d|each case above", finding.because), finding.what
    assert missed


@pytest.mark.parametrize(
    ("handover", "alone", "of_a_set", "cause"),
    [
        (10.0, 26.0, 1.0, "share the cache next to them"),
        (150.0, 26.0, 1.1, "a cache that both share"),
        (150.0, 90.0, 1.1, "many at a time"),
        (150.0, 31.0, 4.0, "one word after the other"),
    ],
)
def test_why_words_of_another_core_are_no_dearer(
    handover: float, alone: float, of_a_set: float, cause: str
) -> None:
    def about(middle: float) -> list[float]:
        return [middle - 2, middle, middle + 2]

    moved = {pattern: dict.fromkeys([*METHODS, *CONTROLS], about(1.0))
             for pattern in (figure_4_9.ALONE, figure_4_9.WORDS_ONLY)}  # fmt: skip
    lone = {figure_4_9.ALONE: about(26.0), figure_4_9.OTHER: about(alone)}
    moved[figure_4_9.OTHER] = dict.fromkeys([*METHODS, *CONTROLS], about(of_a_set))
    data = {
        "handover": about(handover),
        "lone": dict.fromkeys(figure_4_9.LONE, lone),
        "nanoseconds": dict.fromkeys(figure_4_9.KINDS, moved),
    }
    found = [one for one in figure_4_9.EXPERIMENT.judge(data) if "come back to" in one.what]
    assert len(found) == 2
    for one in found:
        assert not one.holds
        assert cause in one.because


def test_dips_are_more_than_noise() -> None:
    def point(middle: float, spread: float) -> list[float]:
        return [middle - spread, middle, middle + spread]

    rising = [point(0.5, 0.1), point(1.5, 0.1), point(1.9, 0.1), point(1.9, 0.1)]
    assert figures_4_7_4_8.dips(rising) == []
    assert figures_4_7_4_8.dips([*rising, point(1.5, 0.1), point(1.9, 0.1)]) == [4]
    assert figures_4_7_4_8.dips([*rising, point(1.5, 0.4), point(1.87, 0.001)]) == []


@pytest.mark.parametrize("protocol", TRANSACTIONAL)
@pytest.mark.parametrize("how", [{"sleep": 100e-6}, {"rounds": 2000}], ids=["asleep", "busy"])
def test_a_slowed_engine_gives_the_sequential_answer(protocol: str, how: dict[str, float]) -> None:
    operator, events = listing_4_2(10), values(0)(300, 1)
    expected = operator.run_sequential(events)
    options = {"threads": 3, "horizon": 6, "chunk": 1, "protocol": protocol}
    with SlowedEngine(operator, **options) as slowed:
        slowed.pace(rows=events.num_rows, **how)  # type: ignore[arg-type]
        assert slowed.engine.process(events).equals(expected.output)
    with SlowedEngine(operator, **options) as slowed:
        waits = slowed.waits(events, **how)  # type: ignore[arg-type]
    least = how.get("sleep", 0.0) + 0.5 * how.get("rounds", 0) / busy_rounds()
    assert waits.min() > 1e9 * least


@pytest.mark.parametrize("before", [0.0, 0.5, 1.0])
def test_work_stands_where_it_is_told_to(before: float) -> None:
    operator, sleep = listing_4_2(1), 0.4
    with SlowedEngine(operator, threads=1, horizon=0) as slowed:
        slowed.run(values(0)(2, 1))  # the code is compiled
        slowed.pace(sleep=sleep, before=before)
        thread = threading.Thread(target=slowed.engine.process, args=(values(0)(1, 1),))
        words = slowed.engine.durable.words
        thread.start()
        deadline = time.monotonic() + 60
        while words[0] == 2:  # not a turn: it would be waited for
            assert time.monotonic() < deadline
            time.sleep(0.001)  # nobody tells when the word changes; little beside 0.4 s
        incremented = time.monotonic()
        thread.join()
        after = time.monotonic() - incremented
        assert slowed.slept().took >= sleep
    assert after / sleep == pytest.approx(1 - before, abs=0.25)


@pytest.mark.parametrize("protocol", TRANSACTIONAL)
def test_work_after_the_accesses_keeps_conflicts_longer_than_work_before_them(
    protocol: str,
) -> None:
    operator, events, sleep = listing_4_2(1), values(0)(100, 1), 1e-3
    dropped = dict.fromkeys((0.0, 1.0), 0)
    for before in (0.0, 1.0) * 4:
        with SlowedEngine(operator, threads=2, horizon=4, chunk=1, protocol=protocol) as slowed:
            took = slowed.run(events, sleep=sleep, before=before)
            runs, asked = slowed.runs(), slowed.slept().asked
        assert runs.transactions == 100
        dropped[before] += runs.dropped
        if before == 0 and protocol == "eager":
            # A word that is held until the commit: one event after the other.
            assert took >= 100 * sleep
            # Who is dropped at its access has no work after it, and soon tries again.
            assert asked < 1.5 * 100 * sleep
            assert runs.dropped_per_transaction > runs.dropped_per_run
    assert dropped[0.0] > dropped[1.0]


def test_two_looks_at_runs_and_sleep_differ_by_what_lies_between() -> None:
    between = Runs(10, 5, 20) - Runs(2, 1, 4)
    assert between == Runs(8, 4, 16)
    assert (between.dropped_per_run, between.dropped_per_transaction) == (0.5, 0.25)
    assert (Slept(3.0, 4.0) - Slept(1.0, 1.0)).ratio == pytest.approx(1.5)
    assert Slept(0.0, 0.0).ratio == 1


def test_horizons_of_the_text_count_the_head_and_stretches_cost_the_same_for_all() -> None:
    made = sinusoid.predictors()
    assert (made["static 5"].current(), made["static 10"].current()) == ((4, 1), (9, 1))
    lengths = {made[name].next().events for name in ("abort-driven", "throughput-driven")}
    assert lengths == {sinusoid.Stretches(9, 1).next().events} == {sinusoid.EVERY}
    # A horizon of n lets n transactions run besides the head, and no more.
    operator = listing_4_2(1000)
    for horizon, others in ((5, 4), (2, 1)):
        with SlowedEngine(operator, threads=8, predictor=sinusoid.static(horizon)) as slowed:
            slowed.run(values(0)(20, 1))
            took = slowed.run(values(0)(60, 1), sleep=0.01)
            assert took >= 0.01 * 60 / (1 + others)


@pytest.mark.parametrize("setting", SETTINGS)
def test_latency_is_that_of_events_that_had_to_wait(setting: str) -> None:
    # Source B sends every 50 ms: what comes from A meanwhile waits for it.
    load = Load(
        listing_4_2(10), lambda generator, count: [{"value": 1, "work": 0}] * count, 0.0, 200
    )
    latency = mean_latency(load, setting, 9, 0.3, 10, 1)
    assert 0.001 < latency.waiting <= latency.seconds < 0.3
    assert latency.dropped < 1


def test_a_peak_that_the_wait_for_the_other_source_hides_is_told_from_none() -> None:
    def judged(*milliseconds: float) -> tuple[bool, str]:
        points = [[ms, ms, ms] for ms in milliseconds]
        curves = {"milliseconds": {"value": points}, "waiting": [1.0, 2.0, 5.0]}
        found = peaks_at_equal_rates("", (0.0, 1.0, 4.0), curves, "value")
        return found.holds, found.because

    assert judged(8.0, 3.0, 7.0)[0]
    holds, because = judged(8.0, 3.0, 9.0)
    assert not holds
    assert because.startswith("the wait for the other source grows")
    holds, because = judged(2.0, 3.0, 9.0)
    assert not holds
    assert because.startswith("Not explained")


def test_latency_that_speculation_does_not_shorten_is_explained_by_a_control_only() -> None:
    def curves(ratio: float) -> dict[str, Any]:
        return {
            "milliseconds": {"no speculation": [[5.0, 5.0, 5.0]] * 2},
            "ratio": {"value": [[1.5, 1.5, 1.5], [ratio, ratio, ratio]]},
            "waiting": [1.0, 2.0],
            "dropped": {"value": [0.1, 0.2]},
        }

    # At equal rates nothing is claimed.
    assert speculation_is_below("", (0.0, 1.0), curves(0.9), "value").holds
    for control, begins in ((None, "Not"), (curves(1.0), "Not"), (curves(0.9), "conflicts")):
        found = speculation_is_below("", (0.0, 1.0), curves(1.1), "value", control)
        assert not found.holds
        assert found.because.startswith(begins)


def test_where_two_threads_break_even() -> None:
    work = [0.0, 1e-6, 2e-6, 4e-6]
    assert figures_4_7_4_8.break_even(work, [0.5, 0.8, 1.2, 1.5]) == pytest.approx(1.5e-6)
    assert figures_4_7_4_8.break_even(work, [1.1, 1.2, 1.2, 1.5]) == 0.0
    assert figures_4_7_4_8.break_even(work, [0.5, 0.8, 0.9, 0.9]) is None


def test_an_event_that_raises_ends_a_slowed_batch() -> None:
    class Word(ss.State):
        sum = ss.scalar(int)

    @ss.operator(state=Word, event={"x": int}, emits={"sum": int})
    def adds(state, event, emit):
        if event.x == 7:
            raise ValueError("seven")
        state.sum += event.x
        emit(state.sum)

    events = pa.table({"x": np.arange(20)})
    with SlowedEngine(adds, threads=2, horizon=4, chunk=1) as slowed:
        slowed.pace(rounds=100)
        with pytest.raises(ValueError, match="seven"):
            slowed.engine.process(events)
        assert slowed.engine.state.sum == 21

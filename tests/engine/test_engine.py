"""An engine's life: errors, interruptions, concurrent use. Nothing hangs, nothing is half done."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import copy
import gc
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path as FilePath
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import Result, assert_identical, partial_of, run_engine, run_oracle
from support import processes
from support.engine.spinning import Counters, flip, flip_and_loop, spin_down, transfer
from support.operators.families import events, one_word, raises_often, scattered

import specstream as ss
from specstream.predictors.predictor import Predictor

# ---- user errors ----


def test_the_real_exception_arrives_with_its_line_its_event_and_what_was_done() -> None:
    table = pa.table(
        {"key": [1, 2, 22, 8], "value": [1.0] * 4, "on": [True] * 4, "name": ["x"] * 4}
    )
    with ss.Engine(raises_often, threads=2, horizon=4, chunk=2) as engine:
        with pytest.raises(ValueError, match="key 22 at 3") as caught:
            engine.process(table)
        notes = "\n".join(caught.value.__notes__)
        assert "raises_often" in notes
        assert "key=22" in notes
        assert "(2, 0, 2)" in notes
        assert "name='x'" in notes
        last = caught.traceback[-1]
        assert str(last.path).endswith("families.py")
        assert "raise ValueError" in str(last.statement)
        partial = partial_of(caught.value)
        assert partial.consumed == 2
        assert partial.output["x"].to_pylist() == [1, 100, 2, 50]
        assert engine.state.n == 2
        # The engine goes on after the failing event, which keeps its sequence number.
        assert engine.process(table.slice(3))["x"].to_pylist() == [3, 100]
        assert engine.stats.events == 3


def test_an_event_that_raises_in_python_only_is_named(tmp_path: FilePath) -> None:
    with ss.Engine(spin_down, horizon=0) as engine:
        engine.process({"x": [1]})
        assert engine.state.n == 1


# ---- runaway runs ----


@pytest.mark.slow
@pytest.mark.parametrize("threads", [2, 4])
def test_a_run_that_loops_for_ever_on_inconsistent_data_is_dropped(threads: int) -> None:
    table = pa.table({"x": np.arange(30_000)})
    runaways = 0
    for _ in range(20):
        with ss.Engine(flip, threads=threads, horizon=8, chunk=1) as engine:
            engine.process(table)
            assert engine.state.left == 1000 - 30_000
            assert engine.state.right == 30_000
            assert int(engine.state.a.sum()) == 30_000
            runaways += engine.stats.aborts["runaway"]
        if runaways:
            return
    pytest.fail("no run ever ran away: the test proves nothing")


@pytest.mark.slow
def test_a_limit_of_the_logs_is_no_limit_of_the_operator() -> None:
    class Large(ss.State):
        a = ss.array(int, 50_000)

    @ss.operator(state=Large, event={"x": int}, emits={"s": int})
    def sweep(state, event, emit):
        total = 0
        for i in range(len(state.a)):
            state.a[i] += event.x
            total += state.a[i]
        for _ in range(2000):
            emit(total)

    table = pa.table({"x": [1, 2, 3, 4]})
    found = run_engine(sweep, table, threads=2, horizon=4, chunk=1, execution="speculate")
    assert_identical(found, run_oracle(sweep, table))
    with ss.Engine(sweep, threads=1, horizon=4, chunk=1, execution="speculate") as engine:
        engine.process(table)
        assert engine.stats.aborts["log_full"] == 4


# ---- concurrent use ----


def check_whole(engine: ss.Engine) -> int | None:
    """Reads the state of a busy engine; how far it was. None: it was idle, and the view is live."""
    state = engine.state
    if state._memory is engine.durable.words:
        return None
    assert state.left + state.right == 1000
    return int(state.right)


def test_readers_see_a_whole_number_of_events() -> None:
    table = pa.table({"x": np.ones(400_000, np.int64)})
    seen: list[int] = []
    with ss.Engine(transfer, threads=2, horizon=8, chunk=4) as engine:
        worker = threading.Thread(target=engine.process, args=(table,))
        worker.start()
        while worker.is_alive():
            right = check_whole(engine)
            if right is not None:
                seen.append(right)
        worker.join()
        assert seen
        assert seen == sorted(seen)
        assert engine.state.right == 400_000


def test_a_reader_at_the_start_of_a_batch_does_not_make_a_plain_engine_speculate() -> None:
    table = pa.table({"x": np.ones(2_000, np.int64)})
    with ss.Engine(transfer, threads=2, horizon=0) as engine:
        for _ in range(100):
            worker = threading.Thread(target=engine.process, args=(table,))
            worker.start()
            while worker.is_alive():
                check_whole(engine)
            worker.join()
        assert engine.state.right == 200_000
        assert engine.stats.speculative_runs == 0


def test_snapshots_taken_in_flight_are_whole() -> None:
    table = pa.table({"x": np.ones(300_000, np.int64)})
    with ss.Engine(transfer, threads=2, horizon=8, chunk=4) as engine:
        worker = threading.Thread(target=engine.process, args=(table,))
        worker.start()
        snapshots: list[bytes] = []
        while worker.is_alive() and len(snapshots) < 50:
            snapshots.append(engine.snapshot())
        worker.join()
    for snapshot in snapshots:
        with ss.Engine(transfer, horizon=0, restore=snapshot) as engine:
            assert engine.state.left + engine.state.right == 1000
            assert engine.durable.next_sequence == engine.state.right


def test_two_engines_at_once_and_two_threads_on_one_engine() -> None:
    table = events(20_000)
    expected = run_engine(scattered, table, horizon=0)
    results: dict[int, Result] = {}

    def run(number: int) -> None:
        results[number] = run_engine(scattered, table, threads=2, horizon=8, chunk=4)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number in range(2):
        assert_identical(results[number], expected)

    with ss.Engine(spin_down, threads=2, horizon=4, chunk=1) as engine:
        outputs: list[list[int]] = []
        callers = [
            threading.Thread(
                target=lambda: outputs.append(engine.process({"x": [50] * 500})["n"].to_pylist())
            )
            for _ in range(4)
        ]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
    # Each call ran as a whole, in some order.
    assert sorted(outputs) == [list(range(1 + 500 * c, 501 + 500 * c)) for c in range(4)]


@pytest.mark.parametrize("options", [{"horizon": 0}, {"horizon": 8, "chunk": 4}], ids=str)
def test_closing_a_busy_engine_ends_the_call_with_what_was_done(options: dict[str, Any]) -> None:
    engine = ss.Engine(spin_down, threads=2, **options)
    caught: list[BaseException] = []
    begun = threading.Event()

    def run() -> None:
        begun.set()
        try:
            engine.process({"x": np.full(1_000_000, 100_000)})
        except BaseException as error:
            caught.append(error)

    worker = threading.Thread(target=run)
    worker.start()
    begun.wait()
    while engine.state.n < 3:
        pass
    engine.close()
    worker.join(timeout=20)
    assert not worker.is_alive()
    (error,) = caught
    assert isinstance(error, ss.EngineClosedError)
    partial = partial_of(error)
    assert partial.consumed == engine.state.n
    assert partial.output["n"].to_pylist() == list(range(1, partial.consumed + 1))


def test_use_after_close_says_so_and_what_is_known_stays_valid() -> None:
    engine = ss.Engine(one_word, horizon=0)
    engine.process(events(10))
    view = engine.state
    engine.close()
    engine.close()
    assert view.n == engine.state.n
    for use in (
        lambda: engine.process(events(1)),
        engine.snapshot,
        engine.savepoint,
    ):
        with pytest.raises(ss.EngineClosedError, match=r"one_word.*closed"):
            use()
    assert engine.stats.events == 10
    assert "closed" in repr(engine)


INTERRUPTED = """
    import signal, sys, threading, time
    import numpy as np
    # Whoever started the tests in the background may have left the signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    import specstream as ss
    from support.engine.spinning import {operator} as operator

    engine = ss.Engine(operator, threads=2, {options})
    table = {{"x": np.full(3_000_000, {x})}}

    def report():
        main = threading.main_thread().ident
        while sys._current_frames()[main].f_code is not type(engine.parts.native).wait.__code__:
            time.sleep(0.001)
        print("ready", flush=True)  # the main thread waits for the batch

    threading.Thread(target=report).start()
    while True:
        try:
            engine.process(table)
        except KeyboardInterrupt as error:
            if hasattr(error, "specstream_partial"):
                break  # otherwise it came before the batch began
            error = None
    done = engine.stats.events
    state = engine.state.n
    # The engine is usable afterwards.
    engine.process({{"x": [1, 1]}})
    print("interrupted", done, state, engine.state.n, flush=True)
"""


@pytest.mark.parametrize(
    ("operator", "x", "options", "steps"),
    [
        ("spin_down", 50_000, "horizon=0", 2),
        ("spin_down", 50_000, "horizon=8, chunk=4", 2),
        *(
            pytest.param(operator, -1, options, steps, marks=pytest.mark.slow)
            for operator in ("endless", "swallowing")
            for options, steps in (
                ("horizon=0", 0),
                ("horizon=8, chunk=4", 0),
                ("execution='log_free'", None),
                ("execution='locked'", None),
            )
        ),
    ],
)
def test_ctrl_c_ends_a_batch(operator: str, x: int, options: str, steps: int | None) -> None:
    """Also one whose own event never ends: that event is rolled back, where there is a log."""
    program = textwrap.dedent(INTERRUPTED).format(operator=operator, x=x, options=options)
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=processes.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    for _ in range(200):
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            continue
    output, errors = process.communicate(timeout=30)
    assert output.startswith("interrupted"), errors
    done, state, after = map(int, output.split()[1:])
    if steps is None:
        assert done == 0
        assert after >= state > 0
    else:
        assert state == (done if steps else 0)
        assert after == state + steps


# ---- options ----


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"threads": 0}, "threads=0; expected an integer from 1"),
        ({"threads": 2.0}, "threads=2.0"),
        ({"horizon": -1}, "horizon=-1; expected an integer from 0"),
        ({"chunk": 0}, "chunk=0"),
        ({"chunk": True}, "chunk=True"),
        ({"seed": -1}, "seed=-1"),
        ({"protocol": "optimistic"}, "protocol='optimistic'; expected one of value, eager"),
        ({"execution": "fast"}, "execution='fast'; expected one of ordered"),
        ({"sources": "web"}, r"sources='web'; expected a list .* write sources=\['web'\]"),
        ({"sources": None}, r"sources=None; expected a list of sources' names$"),
        ({"sources": ["a", 1]}, r"sources=\['a', 1\]; expected names that are all strings or all"),
        ({"sources": b"web"}, "sources=b'web'; expected a list"),
        ({"sources": 3}, "sources=3; expected a list"),
    ],
)
def test_a_bad_option_is_named(options: dict[str, object], message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        ss.Engine(one_word, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "predictor"),
    [
        ({}, ss.Auto),
        ({"horizon": 4}, ss.Auto),
        ({"chunk": 4}, ss.Auto),
        ({"horizon": 4, "chunk": 4}, ss.Fixed),
        ({"horizon": 0}, ss.Fixed),
        ({"threads": 1}, ss.Auto),
        ({"execution": "log_free"}, ss.Fixed),
    ],
    ids=str,
)
def test_what_is_not_given_is_chosen_by_measurement(
    options: dict[str, Any], predictor: type[Predictor]
) -> None:
    with ss.Engine(one_word, **options) as engine:
        assert type(engine.parts.predictor) is predictor
        chosen = engine.stats.horizon, engine.stats.chunk
    if predictor is ss.Fixed and "horizon" not in options:
        assert chosen == ((0, 1) if "threads" in options else (8, 8))


def test_figures_are_pickled_and_engines_are_not() -> None:
    with ss.Engine(scattered, threads=2, horizon=8, chunk=8) as engine:
        engine.process(events(100))
        for found in (engine.stats, engine.profile()):
            assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found
        for way in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=r"'scattered' has threads.*restore=engine.snap"):
                way(engine)
            with pytest.raises(TypeError, match=r"copied nor pickled: take its to_dict\(\)"):
                way(engine.state)
        gc.collect()
        assert engine.process(events(100)).num_rows > 0, "no copy has closed it"


def test_what_is_no_operator_is_refused() -> None:
    with pytest.raises(ss.DeclarationError, match="decorate the function"):
        ss.Engine(flip_and_loop)  # type: ignore[arg-type]


def test_keys_clash_with_an_emitted_column() -> None:
    @ss.operator(state=Counters, event={"x": int}, emits={"source": int})
    def clashing(state, event, emit):
        emit(event.x)

    with pytest.raises(ss.ConfigurationError, match=r"'source'.*rename"):
        ss.Engine(clashing, keys=True)


def test_statistics_add_up() -> None:
    with ss.Engine(scattered, threads=2, horizon=8, chunk=8) as engine:
        engine.process(events(8_000))
        stats = engine.stats
    assert stats.events == 8_000
    assert stats.commits == 1_000
    # What was dropped before its turn may have run speculatively once more.
    assert 0 <= stats.head_runs + stats.speculative_runs - stats.commits <= stats.reruns
    assert stats.reruns == sum(stats.aborts.values())
    assert stats.time_per_event > 0
    assert 0 <= stats.abort_rate <= 1
    assert stats.to_dict()["aborts"].keys() == {
        "conflict",
        "raised",
        "log_full",
        "runaway",
        "inconsistent_snapshot",
        "locked",
        "stolen",
        "reordered",
        "hook",
        "fault",
        "shadow",
        "timer",
        "revoked",
    }
    with pytest.raises(AttributeError):
        stats.events = 0  # type: ignore[misc]


# ---- marks and snapshots ----


def test_rewind_goes_back_to_the_mark() -> None:
    table = events(500)
    with ss.Engine(scattered, threads=2, horizon=8, chunk=8) as engine:
        engine.process(table.slice(0, 200))
        mark = engine.savepoint()
        once = engine.process(table.slice(200))
        engine.rollback(mark)
        again = engine.process(table.slice(200))
    assert once.equals(again)


def test_a_snapshot_goes_on_where_it_was_taken() -> None:
    from support.operators.families import names

    table = events(500)
    with ss.Engine(names, threads=2, horizon=8, chunk=8, seed=5) as engine:
        first = engine.process(table.slice(0, 300))
        snapshot = engine.snapshot()
    with ss.Engine(names, threads=2, horizon=8, chunk=8, seed=5, restore=snapshot) as engine:
        second = engine.process(table.slice(300))
    expected = run_oracle(names, table, seed=5)
    assert pa.concat_tables([first, second]).equals(expected.output)


def test_the_view_of_a_state_takes_no_values() -> None:
    """They were kept by the view, and changed nothing."""

    class Seen(ss.State):
        count = ss.scalar(int)

    @ss.operator(state=Seen, event={"x": int}, emits={})
    def counted(state, event, emit):
        state.count += 1

    with ss.Engine(counted) as engine:
        with pytest.raises(AttributeError, match="'count' is set by events, or by initial="):
            engine.state.count = 5
        engine.process({"x": [1]})
        assert engine.state.count == 1

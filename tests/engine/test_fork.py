"""A process that has used an engine and forks: neither of the two hangs or is misled."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap

import pytest
from support import processes

pytestmark = pytest.mark.slow

PROLOGUE = """
    import gc, os, sys, threading, time
    import numpy as np
    import specstream as ss
    from support.engine.spinning import Counters, spin_down

    OPTIONS = {options}
    SHORT = {{"x": [50] * 300}}

    def in_child(body):
        # Runs it in a forked process; what it prints and raises is seen by the test.
        child = os.fork()
        if child == 0:
            try:
                body()
                sys.stdout.flush()
                os._exit(0)
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0, status

    def expect_refusal(use, *words):
        began = time.monotonic()
        try:
            use()
        except ss.EngineClosedError as error:
            for word in ("'spin_down'", str(parent), *words):
                assert word in str(error), (word, error)
        else:
            raise AssertionError("no error")
        assert time.monotonic() - began < 10

    def refuses_all_use():
        for use in (
            lambda: engine.process(SHORT),
            lambda: engine.restore(b""),
            engine.mark,
        ):
            expect_refusal(use, str(os.getpid()), "make a new one here")
        assert f"of process {{parent}}" in repr(engine)

    parent = os.getpid()
    engine = ss.Engine(spin_down, **OPTIONS)
    done = engine.process(SHORT).num_rows
    assert done == 300
"""

EPILOGUE = """
    # The parent goes on unharmed.
    assert engine.process(SHORT)["n"].to_pylist() == list(range(done + 1, done + 301))
    engine.close()
    print("well")
"""

SETTINGS = [
    {"threads": 2, "horizon": 0},
    {"threads": 3, "horizon": 8, "chunk": 2},
    {"threads": 2, "horizon": 4, "chunk": 2, "protocol": "eager"},
]


def run(body: str, options: dict[str, object]) -> None:
    """Runs a program in a process of its own, with its children."""
    program = (
        textwrap.dedent(PROLOGUE).format(options=options)
        + textwrap.dedent(body)
        + textwrap.dedent(EPILOGUE)
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        env=processes.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        output, errors = process.communicate(timeout=120)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # its children as well
        output, errors = process.communicate()
        pytest.fail(f"it hangs; until then: {output} {errors}")
    assert process.returncode == 0, errors
    assert output.endswith("well\n"), errors


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_the_engine_of_the_parent_is_refused_and_what_it_knew_can_be_read(
    options: dict[str, object],
) -> None:
    run(
        """
        def body():
            refuses_all_use()
            assert engine.state.n == 300
            assert engine.stats.events == 300
            snapshot = engine.snapshot()
            with ss.Engine(spin_down, **OPTIONS, restore=snapshot) as mine:
                assert mine.process(SHORT)["n"].to_pylist() == list(range(301, 601))
                assert mine.durable.next_sequence == 600
            # And the child's own children.
            def grandchild():
                refuses_all_use()
                assert engine.state.n == 300
                with ss.Engine(spin_down, **OPTIONS) as mine:
                    assert mine.process(SHORT).num_rows == 300
            in_child(grandchild)
            engine.close()
            engine.close()
            refuses_all_use()
            assert engine.state.n == 300
            assert engine.stats.events == 300
            expect_refusal(engine.snapshot, "make a new one here")

        in_child(body)
        """,
        options,
    )


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_forgetting_the_engine_of_the_parent_does_not_hang(options: dict[str, object]) -> None:
    run(
        """
        def body():
            global engine
            view = engine.state
            engine = None
            gc.collect()
            assert view.n == 300
            with ss.Engine(spin_down, **OPTIONS) as mine:
                assert mine.process(SHORT).num_rows == 300

        in_child(body)

        def leave_the_block():
            with engine:
                pass

        in_child(leave_the_block)
        """,
        options,
    )


@pytest.mark.parametrize("options", SETTINGS, ids=str)
def test_a_fork_during_a_batch_of_another_thread(options: dict[str, object]) -> None:
    run(
        """
        LONG = {"x": np.full(10_000, 50_000)}

        def body():
            global engine
            refuses_all_use()
            expect_refusal(lambda: engine.state, "busy")
            expect_refusal(engine.snapshot, "busy")
            assert engine.stats.events <= done
            engine.close()
            expect_refusal(lambda: engine.state, "busy")
            engine = None
            gc.collect()
            with ss.Engine(spin_down, **OPTIONS) as mine:
                assert mine.process(SHORT).num_rows == 300

        for _ in range(3):
            outputs = []
            worker = threading.Thread(target=lambda: outputs.append(engine.process(LONG)))
            worker.start()
            while engine.state.n < done + 10 or engine.parts.flight.counted is None:
                assert worker.is_alive(), "the batch is over: the test proves nothing"
            in_child(body)
            worker.join()
            assert outputs[0]["n"].to_pylist() == list(range(done + 1, done + 10_001))
            done += 10_000
        """,
        options,
    )


def test_a_fork_in_a_signal_handler_during_a_batch() -> None:
    """The thread that forks is the one that holds the engine, and could take its lock again."""
    run(
        """
        import signal

        forks = []

        def body():
            refuses_all_use()
            expect_refusal(lambda: engine.state, "busy")
            expect_refusal(engine.snapshot, "busy")
            engine.close()

        def handler(number, frame):
            if engine.parts.flight.counted is not None and not forks:
                forks.append(engine.parts.flight.counted)
                in_child(body)

        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.02, 0.02)
        while not forks:
            done += engine.process({"x": np.full(5_000, 50_000)}).num_rows
        signal.setitimer(signal.ITIMER_REAL, 0)
        """,
        {"threads": 2, "horizon": 4, "chunk": 2},
    )


def test_an_engine_that_was_closed_before_the_fork_stays_closed() -> None:
    run(
        """
        first = engine
        first.close()

        def body():
            assert first.state.n == 300
            assert first.stats.events == 300
            try:
                first.process(SHORT)
            except ss.EngineClosedError as error:
                assert "is closed" in str(error)
            else:
                raise AssertionError

        in_child(body)
        engine = ss.Engine(spin_down, **OPTIONS)
        done = 0
        """,
        {"threads": 2, "horizon": 4, "chunk": 2},
    )


def test_multiprocessing_with_fork() -> None:
    run(
        """
        import multiprocessing

        def task(events):
            with ss.Engine(spin_down, **OPTIONS, restore=engine.snapshot()) as mine:
                return mine.process({"x": [50] * events})["n"].to_pylist()[-1]

        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(task, range(1, 9)) == list(range(301, 309))
        """,
        {"threads": 2, "horizon": 4, "chunk": 2},
    )

"""Crashes of an operator's machine code stay inside the event (invariant 5)."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import ctypes
import mmap
import platform
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import Result, assert_identical
from support import processes
from support.engine.crashing import (
    FIRST_COLUMN,
    Sum,
    add,
    crash_at,
    crash_in_operations,
    execute_nothing,
    follow_null,
    overflow,
)

import specstream as ss
from specstream._native import ffi, lib
from specstream.compiler.backend.numba_types import Variant
from specstream.structures import boosted_set

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        platform.machine() not in ("x86_64", "AMD64"),
        reason="the crashes are made of x86 instructions",
    ),
]

XS = list(range(100))
SPECULATIVE: dict[str, Variant] = {"value": "transactional", "eager": "eager"}


@pytest.mark.parametrize("protocol", SPECULATIVE)
@pytest.mark.parametrize(
    "crash",
    [follow_null, execute_nothing, overflow],
    ids=["null", "no instruction", "overflow"],
)
def test_a_crash_of_a_speculative_run_changes_nothing(
    protocol: str, crash: Callable[[], None]
) -> None:
    expected = add.run_sequential({"x": XS})
    with ss.Engine(
        add, threads=4, horizon=8, chunk=2, protocol=protocol, execution="speculate"
    ) as engine:
        kept = crash_at(engine, SPECULATIVE[protocol], 13, crash)
        for _ in range(5):
            before = engine.state.total
            output = engine.process({"x": XS})
            sums = [total - before for total in output["total"].to_pylist()]
            assert sums == expected.output["total"].to_pylist()
        # Under `eager` a run from which a lock was stolen before it faulted is repeated, and faults
        # again, when the thief has committed (`faulted` in stm_native/tests/test_retry_queue.c).
        faults = engine.stats.aborts["fault"]
        assert faults == 5 or (protocol == "eager" and faults > 5)
        assert engine.state.total == 5 * sum(XS)
        assert kept


@pytest.mark.parametrize(
    ("crash", "text"),
    [
        (follow_null, r"segmentation fault \(SIGSEGV\) at address 0x8\. This is a bug in compiled"),
        (execute_nothing, r"illegal instruction \(SIGILL\)\. This is a bug in compiled code"),
        (overflow, r"stack overflow \(SIGSEGV\) at address 0x[0-9a-f]+\. .*\(ulimit -s\)"),
    ],
    ids=["null", "no instruction", "overflow"],
)
@pytest.mark.parametrize(
    "options",
    [
        {"threads": 1, "horizon": 0},
        {"threads": 4, "horizon": 8, "chunk": 4},
        {"threads": 4, "horizon": 8, "chunk": 4, "protocol": "eager"},
        {"threads": 2, "horizon": "auto"},
    ],
    ids=["plain", "value", "eager", "auto"],
)
def test_a_crash_of_the_head_costs_its_event(
    crash: Callable[[], None], text: str, options: dict[str, object]
) -> None:
    with ss.Engine(add, keys=True, **options) as engine:  # type: ignore[arg-type]
        kept = [crash_at(engine, variant, 13, crash) for variant in engine.parts.code.entries]
        with pytest.raises(ss.OperatorCrashError, match=text) as caught:
            engine.process({"x": XS})
        error = caught.value
        assert error.operator == "add"
        assert "operator 'add'" in str(error)
        assert "(timestamp, source, sequence) = (13, 0, 13)" in str(error)
        assert "not applied, and the engine goes on" in str(error)
        assert "x=13" in error.__notes__[0]
        assert error.stack_overflow == (crash is overflow)
        # The events before it are applied, the event itself and what it emitted are not.
        partial = error.specstream_partial
        assert partial.consumed == 13
        assert partial.output["total"].to_pylist() == [sum(range(i + 1)) for i in range(13)]
        assert engine.state.total == sum(range(13))
        assert engine.state.counts.tolist() == [2, 2, 2, 2, 2, 1, 1, 1]
        output = engine.process({"x": [1000]})
        assert output["total"].to_pylist() == [1000 + sum(range(13))]
        assert output["sequence"].to_pylist() == [14]
        assert engine.stats.events == 14
        assert kept


@ss.operator(state=Sum, event={"x": int}, emits={})
def keep_largest(state, event, emit):
    if event.x > state.total:
        state.total = event.x


@pytest.mark.parametrize("protocol", SPECULATIVE)
@pytest.mark.parametrize("horizon", [0, 8])
@pytest.mark.parametrize("operator", [add, keep_largest], ids=lambda operator: operator.name)
def test_a_column_that_ends_too_early_faults_at_its_end(
    operator: ss.Operator, horizon: int, protocol: str
) -> None:
    """Compiled code as it is: the event that faults is the one that is named and undone."""
    page = mmap.PAGESIZE
    count = page // 8
    memory = mmap.mmap(-1, 2 * page)
    column = np.frombuffer(memory, np.int64)
    column[:] = np.arange(2 * count)
    libc = ctypes.CDLL(None, use_errno=True)
    end = ctypes.c_void_p(column.ctypes.data + page)
    assert libc.mprotect(end, ctypes.c_size_t(page), 0) == 0
    addresses = [ffi.cast("void *", column.ctypes.data) for _ in range(FIRST_COLUMN + 1)]
    columns = ffi.new("void *[]", addresses)
    job = {"columns": columns, "count": 2 * count, "chunk": 8, "horizon": horizon}
    with ss.Engine(operator, threads=4, horizon=8, protocol=protocol) as engine:
        for _ in range(20):
            engine.durable.words[:] = 0
            assert lib.ss_engine_start(engine.parts.native.pointer, ffi.new("struct ss_job *", job))
            while not lib.ss_engine_wait(engine.parts.native.pointer, 50):
                pass
            outcome = lib.ss_engine_outcome(engine.parts.native.pointer)
            assert outcome.failed
            assert outcome.consumed == outcome.fault.event == count
            assert outcome.fault.signal == signal.SIGSEGV
            assert outcome.fault.address == column.ctypes.data + page
            expected = sum(range(count)) if operator is add else count - 1
            assert engine.state.total == expected
    assert libc.mprotect(end, ctypes.c_size_t(page), 3) == 0  # readable and writable


def test_without_an_undo_log_the_error_says_so() -> None:
    with ss.Engine(add, execution="log_free") as engine:
        kept = crash_at(engine, "log_free", 13, follow_null)
        with pytest.raises(ss.OperatorCrashError, match="may hold half of the event: make a new"):
            engine.process({"x": XS})
        assert kept


class Boosted(ss.State):
    members = boosted_set(40)
    hot = ss.scalar(int)


@ss.operator(state=Boosted, event={"key": int, "what": int}, emits={"done": bool})
def change(state, event, emit):
    hot = state.hot
    if event.what == 0:
        emit(state.members.insert(event.key))
    elif event.what == 1:
        emit(state.members.remove(event.key))
    else:
        emit(state.members.contains(event.key))
    if event.what == 3:
        state.hot = hot + 1


CRASHES = pytest.mark.parametrize(
    ("protocol", "crash"),
    [("value", follow_null), ("value", overflow), ("eager", overflow)],
    ids=["value, null", "value, overflow", "eager, overflow"],
)


def changes(count: int) -> pa.Table:
    dice = np.random.default_rng(7)
    columns = {"key": dice.integers(0, 30, count), "what": dice.integers(0, 4, count)}
    return pa.table({"time": range(count), **columns})


@CRASHES
def test_an_operation_may_crash_wherever_the_runtime_calls_it(
    protocol: str, crash: Callable[[], None]
) -> None:
    """On the shadow, at a commit, and as an inverse; in place it is the event's own code."""
    table = changes(6000)
    expected = change.run_sequential(table, order_by="time")
    with ss.Engine(
        change, threads=3, horizon=8, chunk=2, protocol=protocol, execution="speculate"
    ) as engine:
        counts = crash_in_operations(engine, crash, one_in=20)
        output = engine.process(table, order_by="time")
        found = Result(output, engine.state.to_dict(), ())
        assert_identical(found, Result(expected.output, expected.state.to_dict(), ()))
        assert counts[0] > 20
        assert engine.stats.aborts["fault"] > 0


@CRASHES
def test_an_inverse_may_crash_in_the_thread_that_submits(
    protocol: str, crash: Callable[[], None]
) -> None:
    """Events that come late, between those of chunks that have run: these are taken back."""
    table = changes(640)
    at_a_time = 32
    expected = change.run_sequential(table, order_by="time")
    outputs = []
    with ss.Engine(change, threads=2, horizon=15, chunk=2, protocol=protocol) as engine:
        counts = crash_in_operations(engine, crash, one_in=5)
        for start in range(0, len(table), at_a_time):
            ran = engine.stats.speculative_runs
            rows = np.arange(start, start + at_a_time)
            engine.submit(table.take(rows[::2]), order_by="time")
            deadline = time.monotonic() + 20
            while engine.stats.speculative_runs < ran + at_a_time // 4:
                assert time.monotonic() < deadline, engine.stats
                time.sleep(0.0005)
            engine.submit(table.take(rows[1::2]), order_by="time")
            engine.advance(0, start + at_a_time - 1)
            outputs.append(engine.poll(None))
        engine.advance(0)
        outputs.append(engine.poll(None))
        found = Result(pa.concat_tables(outputs), engine.state.to_dict(), ())
        assert_identical(found, Result(expected.output, expected.state.to_dict(), ()))
        assert counts[0] > 20
        assert engine.stats.aborts["reordered"] > 20


# ---- what is not an operator's fault ----

ENABLE = "import faulthandler; faulthandler.enable()"
MAKE = """
import ctypes, os, signal, specstream as ss
from support.engine.crashing import add, crash_at, follow_null
engine = ss.Engine(add, threads=2, horizon=4, chunk=2)
kept = [crash_at(engine, variant, 13, follow_null) for variant in ("plain", "transactional")]
"""
CRASH = """
try:
    engine.process({"x": list(range(100))})
except ss.OperatorCrashError:
    print("contained", flush=True)
"""
WORK = 'engine.process({"x": [1, 2, 3]})'
ELSEWHERE = "ctypes.string_at(0)"
SENT = "os.kill(os.getpid(), signal.SIGSEGV)"
FATAL = "Fatal Python error: Segmentation fault"


def run(*lines: str) -> subprocess.CompletedProcess[str]:
    environment = processes.environment()
    environment.pop("PYTHONFAULTHANDLER", None)
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        timeout=120,
        env=environment,
        check=False,
    )


@pytest.mark.parametrize("end", [ELSEWHERE, SENT])
@pytest.mark.parametrize(
    "lines",
    [
        (ENABLE, MAKE, CRASH, CRASH),
        (MAKE, ENABLE, CRASH, CRASH),
        (ENABLE, MAKE, "faulthandler.disable()", CRASH, "faulthandler.enable()", CRASH),
        (MAKE, ENABLE, CRASH, "faulthandler.disable()", WORK, "faulthandler.enable()", CRASH),
        (MAKE, CRASH, CRASH, ENABLE),
    ],
    ids=["enabled before", "enabled after", "toggled", "toggled over a batch", "enabled last"],
)
def test_faulthandler_reports_what_is_its_own(lines: tuple[str, ...], end: str) -> None:
    done = run(*lines, end, "print('alive')")
    assert done.stdout == "contained\ncontained\n"
    assert done.stderr.count(FATAL) == 1
    assert 'File "<string>"' in done.stderr
    assert done.returncode == -signal.SIGSEGV


def test_faulthandler_may_come_and_go_for_ever() -> None:
    done = run(
        MAKE,
        "import faulthandler",
        "for _ in range(20):",
        "    faulthandler.disable(); faulthandler.enable()",
        *CRASH.replace("\n", "\n    ").splitlines(),
        ELSEWHERE,
    )
    assert done.stdout == "contained\n" * 20
    assert done.stderr.count(FATAL) == 1
    assert done.returncode == -signal.SIGSEGV


@pytest.mark.parametrize("end", [ELSEWHERE, SENT])
def test_without_faulthandler_a_fault_elsewhere_ends_the_process(end: str) -> None:
    done = run(MAKE, CRASH, end, "print('alive')")
    assert done.stdout == "contained\n"
    assert done.stderr == ""
    assert done.returncode == -signal.SIGSEGV


def test_a_signal_that_was_ignored_stays_ignored() -> None:
    ignore = "import signal; signal.signal(signal.SIGSEGV, signal.SIG_IGN)"
    done = run(ignore, MAKE, CRASH, SENT, "print('alive', flush=True)", ELSEWHERE)
    assert done.stdout == "contained\nalive\n"
    assert done.returncode == -signal.SIGSEGV


def test_threads_that_used_up_their_stacks_leave_nothing_behind() -> None:
    """Stacks are unmapped with their engine."""

    def mappings() -> int:
        return len(Path("/proc/self/maps").read_text().splitlines())

    def crash() -> None:
        with ss.Engine(add, threads=4, horizon=8, chunk=1) as engine:
            kept = [
                crash_at(engine, variant, 13, overflow) for variant in engine.parts.code.entries
            ]
            with pytest.raises(ss.OperatorCrashError, match="stack overflow"):
                engine.process({"x": XS})
            assert kept

    crash()
    before = mappings()
    for _ in range(3):
        crash()
    # An engine of four threads has sixteen mappings of stacks and guards; compiled entries stay.
    assert mappings() < before + 48

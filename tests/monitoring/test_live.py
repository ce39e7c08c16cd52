"""The live table of ``specstream run``, in a real terminal; and the terminal afterwards."""

import contextlib
import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

from specstream.monitoring.live import PlainLines, drawn

pytestmark = pytest.mark.spark

pyte = pytest.importorskip("pyte")
pytest.importorskip("pyspark")

WAIT_SECONDS = 180
LINES = 100  # so that nothing is out of sight

OPERATOR = """
import specstream as ss


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int}, emits={"count": int})
def slow(state, event, emit):
    total = 0
    for i in range(event.x):
        total += (i * i) % 7
    state.count += total
    emit(state.count)
"""

PROGRESS: dict[str, Any] = {
    "operator": "top_k",
    "seconds": 75.2,
    "batches": 12,
    "rows_in": 1_234_567,
    "rows_out": 1000,
    "rows_pending": 98_765_432,
    "events_per_second": 1_654_321.4,
    "commits": 77_000,
    "commits_per_second": 103_000.7,
    "commit_rate": 0.9876,
    "aborts": {"conflict": 965, "raised": 0, "runaway": 2},
    "aborts_per_second": 12.0,
    "threads": 2,
    "horizon": 16,
    "chunk": 64,
    "one_core": None,
    "wait_queue": 3,
    "reached": "2013-01-05 12:00:00",
    "lag": 90_000.0,
    "lag_is_time": True,
    "memory": 5 << 20,
    "failed": 0,
    "early": None,
}
EARLY: dict[str, Any] = {
    "transactions": 12_345,
    "bytes": 7 << 20,
    "most_bytes": 9 << 20,
    "revocations": 17,
    "revoked": 5_600,
    "republished": 5_432,
    "rerun": 168,
    "seconds": 0.25,
    "lead_median": 1.25,
    "lead_p99": 9.75,
}


class Terminal:
    """A program in a terminal of its own, and what is on its screen."""

    def __init__(self, command: list[str], columns: int) -> None:
        self.screen = pyte.Screen(columns, LINES)
        self._stream = pyte.ByteStream(self.screen)
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, columns, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        environment = {**os.environ, "TERM": "xterm-256color"}
        environment.pop("COLUMNS", None)
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, env=environment,
            # Its own session, whose terminal this is: Ctrl-C goes to it and not to us.
            preexec_fn=lambda: (os.setsid(), fcntl.ioctl(slave, termios.TIOCSCTTY, 0)),  # type: ignore[func-returns-value]
        )  # fmt: skip

    @property
    def text(self) -> str:
        return "\n".join(line.rstrip() for line in self.screen.display)

    def read(self) -> None:
        ready, _, _ = select.select([self.master], [], [], 0.1)
        if ready:
            with contextlib.suppress(OSError):
                self._stream.feed(os.read(self.master, 65536))

    def until(self, done: Callable[[], bool]) -> None:
        deadline = time.monotonic() + WAIT_SECONDS
        while not done():
            assert time.monotonic() < deadline, self.text
            self.read()

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Callable[[int], Terminal]]:
    """Starts ``specstream run`` over some seconds of work, in a terminal so wide."""
    (tmp_path / "slow.py").write_text(OPERATOR)
    (tmp_path / "in").mkdir()
    start = np.datetime64("2013-01-01T00:00:00", "us")
    times = start + np.arange(3000) * np.timedelta64(1, "m")
    table = pa.table({"time": times, "x": np.full(3000, 10_000_000)})
    pq.write_table(table, tmp_path / "in" / "0.parquet")
    terminals: list[Terminal] = []

    def run(columns: int) -> Terminal:
        command = [
            sys.executable, "-m", "specstream.cli", "run", f"{tmp_path}/slow.py:slow",
            "--input", str(tmp_path / "in"), "--output", str(tmp_path / "out"),
            "--order-by", "time", "--every", "0.2",
        ]  # fmt: skip
        terminals.append(Terminal(command, columns))
        return terminals[-1]

    yield run
    for terminal in terminals:
        terminal.close()


def test_the_table_lives_in_a_terminal_and_ctrl_c_leaves_it_sane(
    run: Callable[[int], Terminal],
) -> None:
    terminal = run(80)
    terminal.until(lambda: "order time   2013-01-0" in terminal.text)
    for label in ("events/s", "commit rate", "horizon", "chunk", "wait queue", "lag", "aborts"):
        assert terminal.text.count(label + " ") == 1, "drawn over, not below"
    assert "of 3,000 events" in terminal.text
    assert "2 days, " in terminal.text, "two days of events are to come"
    assert terminal.screen.cursor.hidden
    before = terminal.text
    terminal.until(lambda: terminal.text != before)
    os.write(terminal.master, b"\x03")
    terminal.until(lambda: terminal.process.poll() is not None)
    terminal.read()
    assert terminal.process.returncode == 130
    assert not terminal.screen.cursor.hidden
    assert termios.tcgetattr(terminal.slave) == terminal.before
    assert "of 3,000 events" in terminal.text, "the last numbers stay"
    assert "3,000 of 3,000" not in terminal.text, "the batch in flight has not been waited for"
    assert terminal.text.rstrip().endswith("interrupted")
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize("width", [30, 50, 80, 200])
def test_the_table_fits_the_terminal(width: int) -> None:
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(drawn(PROGRESS, width))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert all(len(line) <= width for line in lines)
    text = " ".join(" ".join(lines).split())
    for shown in ("1,654,321", "98.8 %", "wait queue 3", "lag 1 day, 1:00:00", "5.0 MiB"):
        assert shown in text
    assert len(lines) == (9 if width >= 64 else 14 if width >= 50 else len(lines))


@pytest.mark.parametrize("width", [40, 50, 80, 200])
def test_early_results_are_in_the_table(width: int) -> None:
    console = Console(width=width, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(drawn({**PROGRESS, "early": EARLY}, width))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert all(len(line) <= width for line in lines)
    text = " ".join(" ".join(lines).split())
    for shown in ("not final 12,345", "revocations 17", "republished 5,432", "rerun 168"):
        assert shown in text
    assert "lead 1.25 s, 99 % 9.75 s" in text


def test_early_results_that_lead_nobody_yet_have_none() -> None:
    written: list[str] = []
    early = {**EARLY, "lead_median": None, "lead_p99": None}
    PlainLines(written.append, "top_k", "").show({**PROGRESS, "early": early})
    assert written[0].endswith(
        "lag 1 day, 1:00:00, 12,345 not final, 17 revocations, 5,432 republished, 168 rerun, lead -"
    )


def test_failed_events_show_where_there_are_some() -> None:
    written: list[str] = []
    PlainLines(written.append, "top_k", "").show({**PROGRESS, "failed": 1234})
    assert "98,765,432 pending, 1,234 failed, 1,654,321/s" in written[0]
    console = Console(width=80, color_system=None, force_terminal=True)
    with console.capture() as capture:
        console.print(drawn({**PROGRESS, "failed": 1234}, 80))
    assert "failed 1,234" in " ".join(capture.get().split())


def test_without_a_terminal_there_is_a_line_for_each_look() -> None:
    written: list[str] = []
    PlainLines(written.append, "top_k", "").show(PROGRESS)
    assert written == [
        "top_k: 1,234,567 events, 98,765,432 pending, 1,654,321/s, commit rate 98.8 %, aborts 967 "
        "(965 conflict, 2 runaway), horizon 16, chunk 64, wait queue 3, lag 1 day, 1:00:00"
    ]


def test_why_it_runs_on_one_core_is_said_once_in_lines_and_stays_in_the_table() -> None:
    lines: list[str] = []
    shown = PlainLines(lines.append, "op", "starting")
    progress = {**PROGRESS, "one_core": "horizon=0 was given"}
    shown.show(progress)
    shown.show(progress)
    assert sum("on one core: horizon=0 was given" in line for line in lines) == 1

"""A process with a stream whose checkpoint is in a store, for tests of who may write there.

It is forked off the tests' own, which has imported all that it needs. For each line that it is sent
it runs the next batch, and says so.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import os
import signal
import sys
import traceback
import warnings
from pathlib import Path
from typing import IO, Any, NoReturn

import pyarrow as pa
from fed import Fed
from pyarrow import fs

import specstream as ss
from specstream.checkpoint import checkpoint, failpoints, lease
from specstream.checkpoint.store import RemoteStore


class Seen(ss.State):
    count = ss.scalar(int)
    hash = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int}, emits={"x": int, "hash": int})
def chain(state, event, emit):
    state.count += 1
    state.hash = state.hash * 31 + event.x + state.count
    emit(event.x, state.hash)


def batch(batch_id: int) -> pa.Table:
    """What Spark sends, whichever process it sends it to."""
    return pa.table({"x": [3 * batch_id + at for at in range(3)]})


def serve(
    lines: IO[str], out: IO[str], directory: Path, host: str, seconds: float, kind: str, stop: str
) -> None:
    """What the process does.

    Args:
        lines: what it is sent.
        out: where it says things.
        directory: what is the store lies in it, and the rows.
        host: what it takes for its host; of another one it knows no processes.
        seconds: how long its lease lasts.
        kind: ``linked``, where the filesystem can make a file that nobody else has made, or
            ``plain``.
        stop: like ``before-rename@3``: where it stops itself; empty: nowhere.
    """

    def say(*words: object) -> None:
        print(*words, file=out, flush=True)

    filesystem = fs.SubTreeFileSystem(str(directory), fs.LocalFileSystem())
    of: Any = checkpoint
    of.store_of = lambda text: RemoteStore(filesystem, "checkpoint", str(text))
    changed: Any = lease
    changed._machine = lambda: host
    changed.socket = type("Hosts", (), {"gethostname": staticmethod(lambda: host)})
    if kind == "plain":
        changed._local_path = lambda *of: None
    hit = failpoints.hit
    stops = [stop]

    def stopping(step: str, batch_id: int) -> None:
        hit(step, batch_id)
        if stops == [f"{step}@{batch_id}"]:
            stops.clear()
            say("stops")
            os.kill(os.getpid(), signal.SIGSTOP)

    failpoints.hit = stopping
    with ss.Engine(chain, horizon=0) as engine:
        try:
            feed = Fed(
                engine,
                to=ss.sinks.parquet_sink(directory / "rows"),
                checkpoint="store://checkpoint",
                lease=seconds,
            )
        except ss.ConfigurationError as error:
            say("refused", error)
            return
        recorded = feed.checkpoint.recorded
        # Spark sends the last one again.
        at = 0 if recorded is None else recorded.batch_id
        say("holds", at)
        for _ in lines:
            try:
                feed.send(at, batch(at))
            except ss.ConfigurationError as error:
                say("failed", error)
                continue
            say("done", at)
            at += 1
        feed.close()


class Driver:
    """Such a process, from outside."""

    def __init__(
        self, directory: Path, host: str, seconds: float, kind: str, stop: str = ""
    ) -> None:
        told, to_tell = os.pipe()
        said, to_say = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
            self.pid = os.fork()
        if self.pid == 0:
            os.close(to_tell)
            os.close(said)
            with os.fdopen(told) as lines, os.fdopen(to_say, "w") as out:
                _run(lines, out, directory, host, seconds, kind, stop)
        os.close(told)
        os.close(to_say)
        self._lines, self._out = os.fdopen(to_tell, "w"), os.fdopen(said)
        self._is_there = True

    def says(self) -> str:
        """Its next line."""
        return self._out.readline().strip()

    def run(self) -> str:
        """Has it run the next batch; what it says to that."""
        self._lines.write("\n")
        self._lines.flush()
        return self.says()

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        os.kill(self.pid, number)

    def end(self) -> None:
        """Sends it no more, and waits."""
        self._lines.close()
        self._wait()

    def kill(self) -> None:
        """SIGKILL; nothing where it has ended."""
        if self._is_there:
            os.kill(self.pid, signal.SIGKILL)
            self._wait()
            with contextlib.suppress(OSError):
                self._lines.close()

    def _wait(self) -> None:
        os.waitpid(self.pid, 0)
        self._is_there = False
        self._out.close()


def _run(*given: Any) -> NoReturn:
    # Of what the process was forked off nothing must run here: not the rest of the tests.
    try:
        serve(*given)
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    os._exit(0)

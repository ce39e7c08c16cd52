"""Processes that want a directory of a store, for tests of who may write there.

They are forked off the tests' own, which has imported all that they need. :func:`serve` has a
stream whose checkpoint is there, and for each line that it is sent it runs the next batch, and says
so. :func:`run_on` needs no lines: it runs until there is a file ``goal``. :func:`contend` has the
lease alone.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, ClassVar, NoReturn

import pyarrow as pa
from pyarrow import fs

import specstream as ss
from specstream.checkpoint.format import failpoints, lease
from specstream.checkpoint.format.lease import Lease
from specstream.checkpoint.format.store import RemoteStore
from specstream.checkpoint.run import checkpoint
from support.checkpoint.fed import Fed
from support.checkpoint.object_store import object_store


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


@dataclass(frozen=True)
class Host:
    """What a process is told of itself.

    Attributes:
        directory: what is in the store lies in it, and the rows. While there is a file
            ``away-NAME`` the process reaches nothing in the store, with ``full-NAME`` it can only
            read.
        name: what it takes for its host; of another one it knows no processes.
        seconds: how long its lease lasts.
        kind: ``linked``, where the filesystem can make a file that nobody else has made, or
            ``plain``.
        stop: where it stops itself: at a step, like ``before-rename@3``, or before the store does
            something, like ``move@0000000003.full``; empty: nowhere.
        clock: by so many seconds its clocks are ahead.
        rate: so many times as fast as others its clock goes.
    """

    directory: Path
    name: str
    seconds: float
    kind: str = "linked"
    stop: str = ""
    clock: float = 0.0
    rate: float = 1.0

    def store(self, before: Callable[[str, str], None]) -> fs.FileSystem:
        """The store, as the process sees it."""

        def look(operation: str, path: str) -> None:
            if (self.directory / f"away-{self.name}").exists():
                raise OSError("the store is out of reach")
            reads = ("info", "list", "read", "have read")
            if operation not in reads and (self.directory / f"full-{self.name}").exists():
                raise OSError("the store takes nothing")
            before(operation, path)

        if self.kind == "linked":
            return fs.SubTreeFileSystem(str(self.directory), fs.LocalFileSystem())
        return object_store(self.directory, look)

    def pretend(self) -> None:
        """From now on the process is on that host."""
        changed: Any = lease
        changed._machine = lambda: self.name
        changed.socket = type("Hosts", (), {"gethostname": staticmethod(lambda: self.name)})
        now, told = lease._now, lease._time
        changed._now = lambda: self.rate * now() + self.clock
        changed._time = lambda seconds: told(seconds + self.clock)


Say = Callable[..., None]


def serve(lines: IO[str], say: Say, host: Host) -> None:
    """A stream: for each line the next batch."""
    with _stream(say, host) as (feed, at):
        if feed is None:
            return
        for _ in lines:
            try:
                feed.send(at, batch(at))
            except (ss.ConfigurationError, OSError) as error:
                say("failed", error)
                continue
            say("done", at)
            at += 1


def run_on(lines: IO[str], say: Say, host: Host) -> None:
    """A stream that runs by itself, and ends with the batch in ``goal``, or with an error."""
    goal = host.directory / "goal"
    with _stream(say, host) as (feed, at):
        if feed is None:
            return
        while not goal.exists() or at < int(goal.read_text()):
            try:
                feed.send(at, batch(at))
            except ss.ConfigurationError as error:
                say("failed", error)
                return
            at += 1
            time.sleep(0.02)  # a stream has a batch now and then
        say("ends", at)


@contextlib.contextmanager
def _stream(say: Say, host: Host) -> Iterator[tuple[Fed | None, int]]:
    """Its feed, and the batch that it begins with; None: it was refused."""
    stops = [host.stop]

    def stop_at(what: str) -> None:
        if stops == [what]:
            stops.clear()
            say("stops")
            os.kill(os.getpid(), signal.SIGSTOP)

    host.pretend()
    filesystem = host.store(lambda done, path: stop_at(f"{done}@{path.rpartition('/')[2]}"))
    checkpoint.INCREMENTS = 1
    of: Any = checkpoint
    of.store_of = lambda text: RemoteStore(filesystem, "checkpoint", str(text))
    hit = failpoints.hit

    def stopping(step: str, batch_id: int) -> None:
        hit(step, batch_id)
        stop_at(f"{step}@{batch_id}")

    failpoints.hit = stopping
    with ss.Engine(chain, horizon=0) as engine:
        try:
            feed = Fed(
                engine,
                to=ss.sinks.parquet_sink(host.directory / "rows"),
                checkpoint="store://checkpoint",
                lease=host.seconds,
            )
        except ss.ConfigurationError as error:
            say("refused", error)
            yield None, 0
            return
        recorded = feed.checkpoint.recorded
        # Spark sends the last one again.
        at = 0 if recorded is None else recorded.batch_id
        say("holds", at)
        yield feed, at
        feed.close()


def contend(lines: IO[str], say: Say, host: Host) -> None:
    """The lease alone; each line is what to do with it: take, check, release."""
    host.pretend()
    filesystem = host.store(lambda operation, path: None)
    held: Lease | None = None
    for line in lines:
        what = line.strip()
        try:
            if what == "take":
                held = Lease(filesystem, "there", "checkpoint='store://there'", host.seconds)
                held.take()
            elif held is not None:
                getattr(held, what)()
            say("yes")
        except (ss.ConfigurationError, TimeoutError) as error:
            say("no", error)


class Driver:
    """Such a process, from outside."""

    # The ends of pipes that the tests' own process has: what is forked off must not keep them open.
    _ends: ClassVar[set[int]] = set()

    def __init__(self, host: Host, does: Callable[[IO[str], Say, Host], None] = serve) -> None:
        told, to_tell = os.pipe()
        said, to_say = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
            self.pid = os.fork()
        if self.pid == 0:
            for end in (to_tell, said, *self._ends):
                os.close(end)
            with os.fdopen(told) as lines, os.fdopen(to_say, "w") as out:
                _run(does, lines, out, host)
        os.close(told)
        os.close(to_say)
        self.host = host
        self._lines, self._out = os.fdopen(to_tell, "w"), os.fdopen(said)
        self._ends.update((to_tell, said))
        self.is_there = True
        self.left: list[str] = []

    def says(self) -> str:
        """Its next line."""
        return self._out.readline().strip()

    def tell(self, line: str = "") -> None:
        """Sends it a line."""
        self._lines.write(f"{line}\n")
        self._lines.flush()

    def run(self, line: str = "") -> str:
        """Sends it a line, by which it runs the next batch; what it says to that."""
        self.tell(line)
        return self.says()

    def signal(self, number: int) -> None:
        """Sends it a signal."""
        os.kill(self.pid, number)

    def has_ended(self) -> bool:
        """Whether it has."""
        if self.is_there and os.waitpid(self.pid, os.WNOHANG)[0]:
            self._close()
        return not self.is_there

    def end(self) -> None:
        """Sends it no more, and waits."""
        self._ends.discard(self._lines.fileno())
        self._lines.close()
        os.waitpid(self.pid, 0)
        self._close()

    def kill(self) -> None:
        """SIGKILL; nothing where it has ended."""
        if self.is_there:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            self._close()

    def _close(self) -> None:
        self.is_there = False
        self.left = self._out.read().splitlines()
        for one in (self._out, self._lines):
            if not one.closed:
                self._ends.discard(one.fileno())
                with contextlib.suppress(OSError):  # what it was sent, and has not read
                    one.close()


def _run(does: Callable[..., None], lines: IO[str], out: IO[str], host: Host) -> NoReturn:
    # Of what the process was forked off nothing must run here: not the rest of the tests.
    def say(*words: object) -> None:
        print(*words, file=out, flush=True)

    try:
        does(lines, say, host)
    except BaseException:
        traceback.print_exc(file=sys.__stderr__)
    os._exit(0)

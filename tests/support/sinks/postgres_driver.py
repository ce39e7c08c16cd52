"""A process with a stream into two tables of PostgreSQL, for tests that kill it.

It is forked off the tests' own, which has imported all that it needs, and takes batch after batch
from the one that was not acknowledged on, as Spark does, until there is a file ``goal``. Emitted
rows go to the table ``NAME``, failed events to ``NAME_failed``. Some batches emit nothing, and some
have no events.
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
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

import specstream as ss
from support.checkpoint.fed import Fed


class Seen(ss.State):
    count = ss.scalar(int)
    hash = ss.scalar(int)


EVENT = {"query": int, "batch": int, "x": int}


@ss.operator(state=Seen, event=EVENT, emits={"query": int, "batch": int, "x": int, "hash": int})
def chain(state, event, emit):
    # Every order of the same events gives another hash; so does one that fails and is applied.
    state.count += 1
    state.hash = state.hash * 31 + event.x + state.count
    if event.x % 7 == 3:
        raise ValueError(f"{event.x} is poison")
    if event.x % 2:
        emit(event.query, event.batch, event.x, state.hash)


def batch(query: int, batch_id: int) -> pa.Table:
    """What Spark sends, whichever process it sends it to."""
    rng = np.random.default_rng((query, batch_id))
    x = rng.integers(0, 1000, rng.integers(1, 200))
    if batch_id % 5 == 2:
        x = 14 * x  # none of them is odd, and none is poison
    if batch_id % 11 == 4:
        x = x[:0]
    return pa.table({"query": np.full(len(x), query), "batch": np.full(len(x), batch_id), "x": x})


def sequential(query: int, batches: int) -> ss.SequentialRun:
    """One run over all of them."""
    rows = pa.concat_tables([batch(query, at) for at in range(batches)])
    return chain.run_sequential(rows, errors="side")


@dataclass(frozen=True)
class Query:
    """A query: its number, the directory of what outlives its processes, and where its rows go."""

    number: int
    directory: Path
    uri: str
    table: str

    @property
    def name(self) -> str:
        """By which the tables know it."""
        return f"query {self.number}"

    @property
    def acknowledged(self) -> int:
        """So many batches are."""
        path = self.directory / f"acknowledged-{self.number}"
        return int(path.read_text()) if path.exists() else 0

    @property
    def recorded(self) -> int:
        """Of so many batches there is a checkpoint file."""
        names = (self.directory / f"checkpoint-{self.number}").glob("[0-9]*.[fi]*")
        return max((int(path.stem) + 1 for path in names), default=0)

    def sink(self, table: str) -> ss.spark.PostgresSink:
        """Its sink into a table."""
        return ss.sinks.postgres_sink(self.uri, table, app_id=self.name)

    def run(self, begun: int) -> None:
        """What the process does; it writes a byte when a batch begins."""
        goal = self.directory / "goal"
        with ss.Engine(chain, horizon=0, errors="side") as engine:
            feed = Fed(
                engine,
                to=self.sink(self.table),
                errors_to=self.sink(f"{self.table}_failed"),
                checkpoint=self.directory / f"checkpoint-{self.number}",
            )
            at = self.acknowledged
            while not goal.exists() or at < int(goal.read_text()):
                os.write(begun, b".")
                feed.send(at, batch(self.number, at))
                at += 1
                hidden = self.directory / f".acknowledged-{self.number}"
                hidden.write_text(str(at))
                hidden.rename(self.directory / f"acknowledged-{self.number}")
            feed.close()


class Writer:
    """Such a process, from outside."""

    def __init__(self, query: Query) -> None:
        self.query = query
        self._begun, begun = os.pipe()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
            self.pid = os.fork()
        if self.pid == 0:
            status = 1
            with contextlib.suppress(BaseException):
                try:
                    query.run(begun)
                    status = 0
                except BaseException:
                    traceback.print_exc(file=sys.__stderr__)
            os._exit(status)
        os.close(begun)
        self._is_there = True

    def await_batches(self, count: int) -> None:
        """Returns when so many more have begun, or it has ended."""
        while count and (begun := len(os.read(self._begun, count))):
            count -= begun

    def kill(self) -> None:
        """SIGKILL; nothing where it has ended."""
        if self._is_there:
            os.kill(self.pid, signal.SIGKILL)
            self.wait()

    def wait(self) -> int:
        """The status that it ends with."""
        self._is_there = False
        os.close(self._begun)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])

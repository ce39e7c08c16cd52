"""A process that feeds an operator without Spark, which dies as often as a test wants it to.

``feeding_driver DIRECTORY ORIGIN LIFE ...``: events come from ``nats://HOST:PORT/STREAM`` or
``kafka://HOST:PORT/TOPIC``. Rows go to ``out``, the checkpoint is ``recorded``. Each life is a
process of its own, forked from this one, which has imported everything: ``before-sink@4`` is killed
there, ``kill`` by whoever reads its number in the file ``life``, and ``stop`` has to come to its
end, by a signal.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import specstream as ss
from support import processes

LIFE_SECONDS = 60


class Cells(ss.State):
    hash = ss.scalar(int)


@ss.operator(state=Cells, event={"x": int, "name": str}, emits={"x": int, "name": str, "hash": int})
def chain(state, event, emit):
    # Every order of the same events gives another hash; a lost or repeated one gives another, too.
    state.hash = state.hash * 6364136223846793005 + event.x
    emit(event.x, event.name, state.hash)


def events(first: int, count: int) -> list[dict[str, Any]]:
    return [{"x": x, "name": f"name {x % 7}"} for x in range(first, first + count)]


def expected(count: int) -> pa.Table:
    """What the sequential run makes of the first events."""
    return chain.run_sequential(events(0, count)).output


def rows_of(directory: Path) -> pa.Table:
    """What the sink has, in the order of batches."""
    paths = sorted((directory / "out").glob("part-*.parquet"))
    return pa.concat_tables(map(pq.read_table, paths)) if paths else pa.table({"x": []})


class Driver:
    """Such a process; at the end of the block it has ended well, with all of its lives."""

    def __init__(self, directory: Path, origin: str, *lives: str) -> None:
        self.directory = directory
        environment = processes.environment(SPECSTREAM_CRASH_LOG=str(directory / "crashes"))
        with (directory / "errors").open("ab") as errors:
            self.process = subprocess.Popen(
                processes.command("support.sources.feeding_driver", directory, origin, *lives),
                env=environment,
                start_new_session=True,
                stdout=errors,
                stderr=errors,
            )

    def __enter__(self) -> Driver:
        return self

    def __exit__(self, kind: Any, *error: Any) -> None:
        try:
            if kind is None:
                status = self.process.wait(LIFE_SECONDS)
                assert status == 0, (self.directory / "errors").read_text()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()

    def wait_for_rows(self, count: int) -> None:
        """Until the sink has so many; they come in whole files."""
        until = time.monotonic() + LIFE_SECONDS
        while rows_of(self.directory).num_rows < count:
            assert self.process.poll() is None, (self.directory / "errors").read_text()
            assert time.monotonic() < until, f"{rows_of(self.directory).num_rows} of {count} rows"
            time.sleep(0.02)

    def signal(self, life: str, number: int) -> None:
        """Sends a signal to the life of that name, which may have to begin yet."""
        until = time.monotonic() + LIFE_SECONDS
        while True:
            with contextlib.suppress(FileNotFoundError, ValueError):
                name, pid = (self.directory / "life").read_text().split()
                if name == life:
                    os.kill(int(pid), number)
                    return
            assert time.monotonic() < until
            time.sleep(0.02)


def source_at(origin: str) -> Any:
    """Not by way of the command line, whose packages take their time to import."""
    scheme, _, rest = origin.partition("://")
    address, _, name = rest.partition("/")
    made = ss.sources.nats if scheme == "nats" else ss.sources.kafka
    return made(address, name)


def live(directory: Path, origin: str, life: str) -> None:
    if "@" in life:
        os.environ["SPECSTREAM_CRASH"] = life
    with ss.Engine(chain, threads=2, horizon=4, chunk=4) as engine:
        ss.sources.run(
            engine,
            source_at(origin),
            to=ss.sinks.parquet_sink(directory / "out"),
            checkpoint=directory / "recorded",
            max_rows=50,
        )


def main(directory: Path, origin: str, *lives: str) -> None:
    for life in lives:
        child = os.fork()
        if not child:
            hidden = directory / ".life"
            hidden.write_text(f"{life} {os.getpid()}")
            hidden.rename(directory / "life")
            live(directory, origin, life)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        ended = os.waitstatus_to_exitcode(status)
        assert ended == (0 if life == "stop" else -signal.SIGKILL), f"{life}: {ended}"


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])

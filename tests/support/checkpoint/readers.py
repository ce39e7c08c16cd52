"""Everything that reads bytes, each with good bytes to change, and a way to use what comes of them.

A *reader* is given crafted bytes. Either it refuses them with an error of specstream's own, and
nothing has changed; or what it has read works: events run on it, the state can be looked at, and a
snapshot of it can be restored.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import datetime
import json
import random
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol
from unittest import mock

import numpy as np
import pyarrow as pa

import specstream as ss
from specstream.checkpoint.format.file_format import BLOCK_WORDS
from specstream.checkpoint.format.store import LocalStore
from specstream.checkpoint.inspect.inventory import inventory
from specstream.checkpoint.run.batch_runner import BatchRunner
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.event_time import EventTime
from specstream.checkpoint.run.inputs import Inputs
from specstream.checkpoint.run.prefetch import catch_up
from specstream.checkpoint.run.stream_options import StreamOptions
from specstream.files.container import Container, Content
from specstream.files.untrusted import read_table
from support.checkpoint import crafted

SECONDS = 30.0


class Reader(Protocol):
    """What tries crafted bytes."""

    def attempt(self, rng: random.Random) -> bool:
        """Whether they were taken."""

    def close(self) -> None: ...


class All(ss.State):
    n = ss.scalar(int)
    total = ss.scalar(float)
    flags = ss.array(bool, 5)
    small = ss.array(np.int8, 11)
    bits = ss.array(np.bool_, 9)
    wide = ss.array(np.uint64, (3, 2))
    rough = ss.array(np.float32, 3)


def everything(state, event, emit):
    at = event.k % 5
    state.n += 1
    if not event.is_null("maybe") and event.maybe == "x":
        state.n += 2
    state.total += event.weight
    state.small[at] = event.k % 100
    state.bits[at + 4] = not state.bits[at]
    state.flags[at] = event.yes or state.flags[4 - at]
    state.wide[at % 3, 1] = state.wide[at % 3, 0]
    state.rough[at % 3] += 0.5
    emit(event.name, event.day, state.n, state.total, state.flags[at])


operator = ss.operator(
    state=All,
    event={
        "k": int,
        "weight": float,
        "name": str,
        "yes": bool,
        "maybe": ss.nullable(str),
        "day": datetime.date,
    },
    emits={"name": str, "day": datetime.date, "n": int, "total": float, "flag": bool},
)(everything)


def rows(count: int, seed: int, sources: list[Any], low: int = 0) -> dict[str, Any]:
    """Events, one of them bad."""
    rng = np.random.default_rng(seed)
    k = [*rng.integers(-50, 50, count).tolist()]
    return {
        "time": rng.integers(low, low + 40, count).tolist(),
        "from": [sources[number] for number in rng.integers(0, len(sources), count)],
        "k": [None, *k[1:]],
        "weight": rng.random(count).tolist(),
        "name": [f"name {one % 7}" for one in k],
        "yes": [one % 2 == 0 for one in k],
        "maybe": [None if one % 3 else "x" for one in k],
        "day": [datetime.date(2013, 1, 1 + one % 20) for one in k],
    }


def wait(until: Callable[[], bool]) -> None:
    """Returns when something is so."""
    end = time.monotonic() + SECONDS
    while not until():
        assert time.monotonic() < end, "it does not come to its end"
        time.sleep(0.001)


def finish(engine: ss.Engine) -> list[pa.Table]:
    """Ends all sources and takes all rows."""
    for source in engine.durable.pending.sources:
        engine.advance(source.name)
    wait(lambda: engine.stats.pending == 0)
    return [engine.poll(0.0)]


@contextlib.contextmanager
def but_for_counts_at_their_end() -> Iterator[None]:
    """A count that is as high as a reader lets it be is beyond that with the next event."""
    try:
        yield
    except ss.SnapshotError as error:
        if f"expected 0 to {2**62}:" not in str(error):
            raise


class SnapshotReader:
    """``Engine.restore``: states of all types, events that wait, output that was not polled."""

    def __init__(self, sources: list[Any]) -> None:
        self.sources = sources
        self.engine = ss.Engine(
            operator, threads=2, horizon=4, chunk=2, keys=True, rejected_rows="side", late="side"
        )
        self.snapshots = []
        engine = self.engine
        for listed in (0, 4096):
            with mock.patch("specstream.engine.snapshot._LISTED", listed):
                self.snapshots.append(engine.snapshot())
                engine.process(rows(20, 1, sources), order_by="time", source="from")
                self.snapshots.append(engine.snapshot())
                engine.submit(rows(20, 2, sources, 100), order_by="time", source_column="from")
                self.snapshots.append(engine.snapshot())
                for source in sources:
                    engine.advance(source, 120)
                engine.poll(timeout=None)
                engine.submit(rows(9, 5, sources, 110), order_by="time", source_column="from")
                for source in sources:
                    engine.advance(source, 140)
                wait(lambda: engine.stats.pending < 20)  # with output that nobody polls
                self.snapshots.append(engine.snapshot())
                engine.submit(rows(5, 6, sources, 90), order_by="time", source_column="from")
                self.snapshots.append(engine.snapshot())  # with late events
                finish(engine)
                engine.restore(self.snapshots[0])
                for source in sources:
                    engine.advance(source, 7)
                self.snapshots.append(engine.snapshot())  # with frontiers before any event
                engine.restore(self.snapshots[0])

    def close(self) -> None:
        self.engine.close()

    def attempt(self, rng: random.Random) -> bool:
        base = rng.choice(self.snapshots)
        snapshot = crafted.other_snapshot(rng, base)
        engine = self.engine
        engine.restore(base)
        before = engine.snapshot() if rng.random() < 0.2 else None
        try:
            engine.restore(snapshot)
        except (ss.SnapshotError, ss.InputError):
            assert before is None or engine.snapshot() == before
            return False
        self.use()
        return True

    def use(self) -> None:
        engine = self.engine
        engine.state.to_dict()
        snapshot = engine.snapshot()
        with contextlib.suppress(ss.InputError):  # sources of another kind, times of another type
            engine.submit(rows(6, 3, self.sources, 200), order_by="time", source_column="from")
        finish(engine)
        engine.rejected_rows()
        engine.late()
        engine.process(rows(6, 4, self.sources), order_by="time", source="from")
        later = engine.snapshot()
        engine.restore(snapshot)
        with but_for_counts_at_their_end():
            engine.restore(later)


class ContainerReader:
    """``Container``: the same content as each of the three kinds of file."""

    def __init__(self) -> None:
        self.header = {"state": "Book", "sections": [3, 0, 9], "fields": [{"name": "n"}]}
        self.body = b"abc" + bytes(range(9))
        self.framed = [
            Container("snapshot", b"SPECSNP1"),
            Container("checkpoint file", b"SPECCKPT", (1, 2)),
        ]
        self.sealed = Container("kept input", crafted.SEALED, (1, 2))

    def close(self) -> None:
        pass

    def attempt(self, rng: random.Random) -> bool:
        container = rng.choice([*self.framed, self.sealed])
        try:
            if container is self.sealed:
                content = b"".join(container.seal(self.body))
                changed = crafted.other_frame(rng, content)
                found = bytes(container.unseal(changed))
                assert crafted.marked(changed) == changed, "damage that was not found"
                assert b"".join(container.seal(found)) == changed
                return True
            content = b"".join(container.pack(self.header, [self.body])[0])
            changed = crafted.other_frame(rng, content)
            unpacked = container.unpack(changed)
            assert crafted.marked(changed) == changed, "damage that was not found"
            again = container.unpack(b"".join(container.pack(unpacked.header, [unpacked.body])[0]))
            assert json.dumps(again.header) == json.dumps(unpacked.header)
            assert again.body == unpacked.body
            self.cut(rng, unpacked)
        except ss.SpecstreamError:
            return False
        return True

    def cut(self, rng: random.Random, content: Content) -> None:
        """Cuts it at lengths of which some fit."""
        size = len(content.body)
        first = rng.choice([0, 1, size, size + 1, -1, *rng.sample(crafted.EDGES, 2)])
        lengths = [first, rng.choice([size - first, size - first, first])]
        parts = content.parts(dict(enumerate(lengths)))
        assert b"".join(parts.values()) == content.body
        assert [len(part) for part in parts.values()] == lengths


class Wide(ss.State):
    seen = ss.scalar(int)
    flags = ss.array(bool, 9)
    cells = ss.array(int, 12 * BLOCK_WORDS + 3)


@ss.operator(state=Wide, event={"k": int, "name": str}, emits={"name": str, "k": int, "value": int})
def mark(state, event, emit):
    state.seen += 1
    at = event.k % (12 * 512 + 3)
    state.cells[at] = state.cells[at] * 31 + state.seen
    state.flags[at % 9] = not state.flags[at % 9]
    emit(event.name, event.k, state.cells[at])


def table(batch_id: int) -> pa.Table:
    """The rows of a batch; one is bad."""
    given = rows(8, 10 + batch_id, ["a", "b"], 30 * batch_id)
    return pa.table({name: given[name] for name in ("time", "from", "k", "name")})


class _Files:
    """A checkpoint of some batches, in event time or not, to be changed and put down anew."""

    def __init__(self, directory: Path, in_event_time: bool = True) -> None:
        self.engine = ss.Engine(mark, horizon=0, rejected_rows="side", late="drop")
        self.directory = directory
        self.is_timed = in_event_time
        checkpoint = self.open()
        run = self.runner()
        timed = run.describe() if isinstance(run, EventTime) else None
        inputs = Inputs(checkpoint.store, self.engine, 10, "time", "from", timed)
        inputs._pickled = b""
        for batch_id in range(4):
            inputs.begin(batch_id, None, table(batch_id), checkpoint.newest)
            self.run(run, checkpoint, batch_id, table(batch_id))
        checkpoint.close()
        self.files = {path.name: path.read_bytes() for path in directory.iterdir() if path.suffix}
        self.fresh = self.engine.snapshot()

    def close(self) -> None:
        self.engine.close()

    def open(self) -> Checkpoint:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return Checkpoint(self.engine, self.directory)

    def runner(self) -> EventTime | None:
        if not self.is_timed:
            return None
        return EventTime(self.engine, order_by="time", source="from", watermark=20)

    def run(
        self, run: EventTime | None, checkpoint: Checkpoint, batch_id: int, given: pa.Table
    ) -> None:
        if run is None:
            output = self.engine.process(given, order_by="time", source="from")
        else:
            output = run.run(given)
        checkpoint.record(None, batch_id, output, late=given, rejected=self.engine.rejected_rows())

    def put(self, files: dict[str, bytes]) -> None:
        for path in self.directory.iterdir():
            if path.name != "lock":
                path.unlink()
        for name, content in files.items():
            (self.directory / name).write_bytes(content)

    def changed(self, rng: random.Random) -> dict[str, bytes]:
        """The files, one of them changed, and those that build on it made to fit."""
        names = sorted(name for name in self.files if not name.endswith(".input"))
        at = rng.randrange(len(names))
        made = {name: self.files[name] for name in names}
        made[names[at]] = crafted.other_checkpoint_file(rng, made[names[at]])
        for before, name in zip(names[at:], names[at + 1 :], strict=False):
            if name.endswith("increment"):
                made[name] = crafted.rebuilt_on(made[name], crafted.checksum_of(made[before]))
        return made


class CheckpointReader(_Files):
    """``Checkpoint``: full files and increments."""

    def attempt(self, rng: random.Random) -> bool:
        engine = self.engine
        engine.restore(self.fresh)
        self.put(self.changed(rng))
        listed = inventory(LocalStore(self.directory), thorough=True)  # refuses none: it tells
        for batch_id in listed.usable:
            ss.checkpoint_state(self.directory, batch_id).tables()
        try:
            checkpoint = self.open()
        except ss.SpecstreamError:
            assert engine.snapshot() == self.fresh
            return False
        last = checkpoint.recorded
        assert last is not None
        engine.state.to_dict()
        with contextlib.suppress(ss.InputError):  # times of another type
            self.run(self.runner(), checkpoint, last.batch_id + 1, table(20))
        checkpoint.close()
        with but_for_counts_at_their_end():
            self.open().close()
        return True


class ReplayReader(_Files):
    """``replay``: the input of a batch, and the checkpoint files before and after it."""

    def attempt(self, rng: random.Random) -> bool:
        batch_id = rng.randrange(4)
        name = f"{batch_id:010d}.input"
        files = dict(self.files)
        if rng.random() < 0.7:
            files[name] = crafted.other_input(rng, files[name])
        else:
            files.update(self.changed(rng))
        self.put(files)
        try:
            found = ss.spark.replay(self.directory, batch_id, mark)
        except ss.SpecstreamError:
            return False
        assert found.error is None or isinstance(found.error, ss.InputError), repr(found.error)
        str(found.difference)
        return True


class AheadReader(_Files):
    """``catch_up``: rows that were fetched ahead; and rows on their way through Spark."""

    def attempt(self, rng: random.Random) -> bool:
        given = table(4).replace_schema_metadata({"specstream.query": json.dumps("q")})
        content = crafted.other_arrow(rng, crafted.stream(given))
        with contextlib.suppress(ss.SnapshotError):
            read_table(content, "rows on their way through Spark")
        self.engine.restore(self.fresh)
        self.put({**self.files, "0000000004.rows": content})
        options = StreamOptions(
            to=lambda rows, batch_id: None,
            rejected_rows_to=lambda rows, batch_id: None,
            order_by="time",
            source="from",
            watermark=20 if self.is_timed else None,
            checkpoint=self.directory,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            runner = BatchRunner(self.engine, options)
        assert runner.checkpoint is not None
        try:
            catch_up(runner)
        except ss.SpecstreamError:
            return False
        finally:
            runner.close()
            runner.checkpoint.close()
        return True


def make(name: str, directory: Path) -> Reader:
    """A reader by its name."""
    if name == "container":
        return ContainerReader()
    if name == "snapshot":
        return SnapshotReader(["web", "phone", "shop"])
    if name == "snapshot, numbered":
        return SnapshotReader([3, -7, 2**40])
    kinds: dict[str, type[CheckpointReader | ReplayReader | AheadReader]] = {
        "checkpoint": CheckpointReader,
        "replay": ReplayReader,
        "ahead": AheadReader,
    }
    kind, _, untimed = name.partition(", ")
    return kinds[kind](directory, not untimed)


NAMES = (
    "container",
    "snapshot",
    "snapshot, numbered",
    "checkpoint",
    "checkpoint, untimed",
    "replay",
    "replay, untimed",
    "ahead",
    "ahead, untimed",
)

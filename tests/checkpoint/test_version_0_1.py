"""Files that version 0.1 has written: restored, gone on from, replayed, with what it had there.

``version_0_1/`` has the checkpoint of seven batches (full files, increments, and the inputs
of the last three, each with its operator) and two snapshots: one between batches, and one with
events that wait. Beside them is what version 0.1 itself emitted when it went on from there.

``version_0_1/event_time/`` has a stream with a watermark, of which 0.1 ran five batches: its
checkpoint, a snapshot, and the rows that it emitted. ``version_0_1/write_event_time.py`` wrote it.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.checkpoint import ledger
from support.checkpoint.fed import Fed
from support.checkpoint.trades import rows_of
from support.commands import invoke

import specstream as ss
from specstream.checkpoint.format.file_format import CheckpointFile
from specstream.checkpoint.format.recorded_operator import MOVED, unpickled
from specstream.checkpoint.run.checkpoint import Checkpoint

FILES = Path(__file__).with_name("version_0_1")
EVENT_TIME = FILES / "event_time"
WRITTEN = 5  # batches of the stream with a watermark
SOURCES = ("web", "phone", "shop")


class Book(ss.State):
    seen = ss.scalar(int)
    last = ss.array(float, 4)
    counts = ss.array(int, (2, 60))


@ss.operator(
    state=Book,
    event={"price": int, "weight": float, "name": ss.nullable(str)},
    emits={"seen": int, "name": str, "mean": float, "luck": float},
)
def book(state, event, emit):
    at = event.price % 60
    state.seen += 1
    state.counts[0, at] += 1
    state.last[state.seen % 4] = event.weight
    if event.name == "b":
        emit(state.seen, event.name, sum(state.last) / 4, event.random(0))
    elif at % 3 == 0:
        emit(state.seen, "three", -0.0, event.random(1))


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    """A copy: a checkpoint that is opened is written to."""
    return Path(shutil.copytree(FILES / "checkpoint", tmp_path / "checkpoint"))


def expected_next() -> pa.Table:
    return pq.read_table(FILES / "batches_next.parquet")


@pytest.mark.slow
def test_a_snapshot_is_restored_and_gone_on_from() -> None:
    snapshot = (FILES / "batches.snapshot").read_bytes()
    with ss.Engine(book, threads=2, horizon=4, keys=True, seed=5, restore=snapshot) as engine:
        assert engine.process(rows_of(7), order_by="time", source="origin").equals(expected_next())


def test_a_checkpoint_is_restored_and_gone_on_from(checkpoint: Path) -> None:
    with ss.Engine(book, threads=2, horizon=4, keys=True, seed=5) as engine:
        written = Checkpoint(engine, checkpoint, keep_batches=3)
        assert written.recorded is not None
        assert written.recorded.batch_id == 6
        with ss.Engine(book, restore=(FILES / "batches.snapshot").read_bytes(), seed=5) as other:
            assert engine.snapshot() == other.snapshot()
        output = engine.process(rows_of(7), order_by="time", source="origin")
        assert output.equals(expected_next())
        written.record("q", 7, output)
        state = engine.state.to_dict()
        written.close()
    # And what this version adds to the files of that one is read again with them.
    with ss.Engine(book, keys=True, seed=5) as engine:
        again = Checkpoint(engine, checkpoint)
        assert again.recorded is not None
        assert again.recorded.output.equals(expected_next())
        np.testing.assert_equal(engine.state.to_dict(), state)
        again.close()


def test_an_increment_is_applied_to_its_full_file(checkpoint: Path) -> None:
    for name in ("0000000004.full", "0000000005.increment", "0000000006.full"):
        file = CheckpointFile.from_bytes((checkpoint / name).read_bytes())
        assert file.about.operator == "book"
    (checkpoint / "0000000006.full").unlink()
    with ss.Engine(book, keys=True, seed=5) as engine:
        written = Checkpoint(engine, checkpoint)
        assert written.recorded is not None
        assert written.recorded.batch_id == 5
        engine.process(rows_of(6), order_by="time", source="origin")
        assert engine.process(rows_of(7), order_by="time", source="origin").equals(expected_next())
        written.close()


@pytest.mark.parametrize("batch", [4, 5, 6])
@pytest.mark.parametrize("given", [None, book], ids=["as recorded", "as it is now"])
def test_a_batch_is_replayed(batch: int, given: ss.Operator | None) -> None:
    found = ss.spark.replay(FILES / "checkpoint", batch, given)
    assert found.is_recorded
    assert found.difference is None
    assert found.error is None
    assert found.events == found.done == 40
    assert found.output.num_rows > 10


def test_events_that_wait_are_restored_and_gone_on_from() -> None:
    snapshot = (FILES / "waiting.snapshot").read_bytes()
    with ss.Engine(
        book, threads=2, horizon=4, chunk=2, keys=True, seed=5, sources=SOURCES, late="side",
        rejected_rows="side", restore=snapshot,
    ) as engine:  # fmt: skip
        for source in SOURCES:
            engine.advance(source)
        rest = engine.poll(timeout=None)
        assert rest.equals(pq.read_table(FILES / "waiting_rest.parquet"))
        rejected = engine.rejected_rows()
        assert rejected is not None
        assert rejected.equals(pq.read_table(FILES / "waiting_rejected.parquet"))


def in_order(batches: list[pa.Table]) -> ss.SequentialRun:
    """The sequential run over all rows, sorted apart from specstream."""
    rows = pa.concat_tables(batches).to_pandas()
    rows = rows.sort_values(["day", "source"], kind="stable").reset_index(drop=True)
    return ledger.ledger.run_sequential(pa.Table.from_pandas(rows, ledger.batches()[0].schema))


def assert_sequential(engine: ss.Engine, output: list[pa.Table], whole: ss.SequentialRun) -> None:
    emitted = pa.concat_tables(table for table in output if table.num_rows)
    assert emitted.combine_chunks().equals(whole.output.combine_chunks())
    np.testing.assert_equal(engine.state.to_dict(), whole.state.to_dict())


@pytest.mark.parametrize("settings", [{"horizon": 0}, {"threads": 2, "horizon": 8, "chunk": 2}])
def test_a_stream_with_a_watermark_goes_on_as_if_it_had_never_stopped(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    place = shutil.copytree(EVENT_TIME / "checkpoint", tmp_path / "checkpoint")
    output = [pq.read_table(EVENT_TIME / "output.parquet")]
    batches = ledger.batches()
    options = {
        "order_by": "day",
        "source": "source",
        "watermark": f"{ledger.DELAY} seconds",
        "sources": ledger.SOURCES,
        "to": lambda table, batch_id: output.append(table),
        "checkpoint": place,
    }
    engine = ss.Engine(ledger.ledger, seed=3, **settings)
    fed = Fed(engine, **options)
    assert engine.stats.pending == 26
    # What came last comes again, as after a crash: the sink has its rows twice, the state once.
    fed.send(WRITTEN - 1, batches[WRITTEN - 1])
    assert fed.stats.repeated == 1
    repeated = output.pop()
    assert repeated.equals(output[0].slice(output[0].num_rows - repeated.num_rows))
    for batch_id in range(WRITTEN, ledger.BATCHES):
        if batch_id == WRITTEN + 1:  # again from files, of both versions
            fed.close()
            engine = ss.Engine(ledger.ledger, seed=3, **settings)
            fed = Fed(engine, **options)
        fed.send(batch_id, batches[batch_id])
    for source in ledger.SOURCES:
        engine.advance(source)
    output.append(engine.poll(timeout=None))
    assert_sequential(engine, output, in_order(batches))
    fed.close()


def test_a_snapshot_of_every_kind_of_field_is_restored_with_what_waits() -> None:
    snapshot = (EVENT_TIME / "ledger.snapshot").read_bytes()
    emitted = pq.read_table(EVENT_TIME / "output.parquet")
    with ss.Engine(ledger.ledger, horizon=4, seed=3, restore=snapshot) as engine:
        for source in ledger.SOURCES:
            engine.advance(source)
        rest = engine.poll(timeout=None)
        assert_sequential(engine, [emitted, rest], in_order(ledger.batches()[:WRITTEN]))


@pytest.mark.parametrize("batch", [3, 4])
def test_the_command_replays_a_batch_with_a_watermark(batch: int) -> None:
    ran = invoke("replay", EVENT_TIME / "checkpoint", "--batch", batch, "--json")
    assert ran.exit_code == 0, ran.output
    said = json.loads(ran.stdout)
    assert said["operator"] == "ledger"
    assert said["identical"] is True
    assert said["events"] == said["applied"] > 10


def test_modules_that_a_record_may_name_are_there() -> None:
    code = f"""
        import importlib
        for module in {sorted(set(MOVED.values()))}:
            importlib.import_module(module)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_what_has_moved_is_found_where_a_record_names_it(old: str, new: str) -> None:
    module = importlib.import_module(new)
    name = module.__all__[0]
    assert unpickled(f"c{old}\n{name}\n.".encode()) is getattr(module, name)

"""A recorded batch replayed alone: the same rows and state, the first difference, pdb, no Spark."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import json
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from click.testing import Result
from support.checkpoint.trades import rows_of
from support.commands import invoke as run_command

import specstream as ss
from specstream.checkpoint.run import checkpoint as checkpoints
from specstream.checkpoint.run import inputs
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.checkpoint.run.inputs import Input, Inputs
from specstream.files.container import DamagedFile

BATCHES = 7

OPERATORS = """
import specstream as ss


class Book(ss.State):
    seen = ss.scalar(int)
    last = ss.array(float, 4)
    counts = ss.array(int, (2, 6000))
    names = ss.array(str, 4, fill="none")


def fold(value, limit):
    if value == limit:
        raise ValueError("no price is 13")
    return value % 600


def build(step=1, fill=0, raises=True):
    limit = 13 if raises else -1

    @ss.operator(
        state=Book,
        event={"price": int, "weight": float, "name": ss.nullable(str)},
        emits={"seen": int, "name": str, "mean": float, "luck": float},
    )
    def book(state, event, emit):
        at = fold(event.price, limit)
        state.seen += step
        state.counts[0, at] += 1
        state.last[state.seen % 4] = event.weight
        state.names[at % 4] = event.name
        if event.name == "b":
            emit(state.seen, event.name, sum(state.last) / 4, event.random(0))
        elif at % 3 == 0:
            emit(state.seen, "three", -0.0, event.random(1))

    return book


book = build()
mended = build(raises=False)
other = build(step=2, raises=False)
"""


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """The operators as a user's own module, which is gone when the batches are replayed."""
    directory = tmp_path_factory.mktemp("operators")
    (directory / "books.py").write_text(OPERATORS)
    sys.path.insert(0, str(directory))
    import books

    yield books
    sys.path.remove(str(directory))
    del sys.modules["books"]


class Life:
    """A process's life with a checkpoint, batch by batch, as a feed does it."""

    def __init__(self, operator: ss.Operator, path: Path, keep: int = 3, **options: Any) -> None:
        self.engine = ss.Engine(operator, horizon=0, **options)
        self.checkpoint = Checkpoint(self.engine, path, keep_batches=keep)
        self.inputs = Inputs(self.checkpoint.store, self.engine, keep, "time", "origin")

    def run(self, batch_id: int, rows: pa.Table) -> None:
        mark = self.checkpoint.savepoint()
        self.inputs.begin(batch_id, "q", rows, self.checkpoint.newest)
        try:
            output = self.engine.process(rows, order_by="time", source="origin")
        except BaseException as error:
            self.inputs.failed(error)
            self.engine.rollback(mark)
            raise
        self.checkpoint.record("q", batch_id, output)
        self.inputs.applied(batch_id)

    def end(self) -> None:
        self.checkpoint.close()
        self.engine.close()


@pytest.fixture(scope="module")
def recorded(module: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Seven batches, the last three of them with their rows; a full file after each third."""
    path = tmp_path_factory.mktemp("checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "INCREMENTS", 2)
        life = Life(module.book, path, keys=True, seed=5)
        for batch_id in range(BATCHES):
            life.run(batch_id, rows_of(batch_id))
        life.end()
    return path


@pytest.fixture(scope="module")
def failed(module: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two batches and a third one that fails at its 31st event; only its rows are there."""
    path = tmp_path_factory.mktemp("failed")
    life = Life(module.book, path, keep=0)
    for batch_id in range(2):
        life.run(batch_id, rows_of(batch_id))
    with pytest.raises(ValueError, match="no price is 13"):
        life.run(2, with_a_13(rows_of(2)))
    life.end()
    return path


def with_a_13(rows: pa.Table, event: int = 30) -> pa.Table:
    """With a price of 13 at some place in the order of the events."""
    order = rows.append_column("row", pa.array(range(rows.num_rows)))
    order = order.sort_by([("time", "ascending"), ("origin", "ascending"), ("row", "ascending")])
    prices = rows["price"].to_pylist()
    prices[order["row"][event].as_py()] = 13
    return rows.set_column(2, "price", pa.array(prices))


def listing(path: Path) -> dict[str, tuple[int, int]]:
    return {each.name: (each.stat().st_mtime_ns, each.stat().st_size) for each in path.iterdir()}


def invoke(*arguments: object, input: str | None = None) -> Result:
    return run_command("replay", *arguments, input=input)


# ---- what is replayed ----


@pytest.mark.parametrize("batch", [4, 5, 6])
def test_a_batch_comes_out_bit_for_bit_and_nothing_is_touched(recorded: Path, batch: int) -> None:
    before = listing(recorded)
    found = ss.spark.replay(recorded, batch)
    assert found.difference is None
    assert found.is_recorded
    assert found.done == found.events == 40
    assert found.output.equals(found.recorded)
    assert found.output.column_names[-3:] == ["timestamp", "source", "sequence"]
    assert found.places.tolist() == [s - 40 * batch for s in found.output["sequence"].to_pylist()]
    assert found.state.seen == 40 * (batch + 1)
    assert listing(recorded) == before


def test_the_rows_of_the_last_batches_are_kept_with_the_files_that_lead_to_them(
    recorded: Path,
) -> None:
    there = sorted(listing(recorded))
    assert [name for name in there if name.endswith(".input")] == [
        "0000000004.input", "0000000005.input", "0000000006.input",
    ]  # fmt: skip
    assert "0000000003.full" in there
    with pytest.raises(ss.ConfigurationError, match=r"batch 3 .*recorded, but its rows are not.*: "
                       r"4, 5, 6; .*keep_batches=K"):  # fmt: skip
        ss.spark.replay(recorded, 3)
    with pytest.raises(ss.ConfigurationError, match=r"batch 9 .* its rows are not there"):
        ss.spark.replay(recorded, 9)
    with pytest.raises(ss.ConfigurationError, match=r"cannot be read.*foreach_batch"):
        ss.spark.replay(recorded / "nowhere", 3)
    assert not (recorded / "nowhere").exists()


def test_files_reach_back_as_far_as_rows_are_kept(module: Any, tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "INCREMENTS", 0)  # every file is full
        life = Life(module.book, tmp_path, keep=5)
        for batch_id in range(12):
            life.run(batch_id, rows_of(batch_id))
        life.end()
    there = sorted(listing(tmp_path))
    assert [n[:10] for n in there if n.endswith("full")] == [f"{n:010d}" for n in range(6, 12)]
    assert [n[:10] for n in there if n.endswith("input")] == [f"{n:010d}" for n in range(7, 12)]
    assert ss.spark.replay(tmp_path, 7).difference is None


def test_the_first_batch_begins_with_what_the_engine_had(module: Any, tmp_path: Path) -> None:
    with ss.Engine(module.book, horizon=0) as engine:
        engine.process(rows_of(99))
        snapshot = engine.snapshot()
    for name, restore in (("new", None), ("not new", snapshot)):
        life = Life(module.book, tmp_path / name, keep=2, restore=restore)
        life.run(0, rows_of(0))
        life.end()
        found = ss.spark.replay(tmp_path / name, 0)
        assert found.difference is None
        assert found.state.seen == (40 if restore is None else 80)


def test_another_operator_differs_at_a_row_a_column_a_field_and_an_index(
    recorded: Path, module: Any
) -> None:
    found = ss.spark.replay(recorded, 4, module.other)
    assert found.difference is not None
    assert (found.difference.where, found.difference.name) == ("output", "seen")
    assert found.difference.index == (0,)
    assert found.difference.replayed > found.difference.recorded
    assert "output row 0, column 'seen': recorded 1" in str(found.difference)

    @ss.operator(
        state=module.Book,
        event={"price": int, "weight": float, "name": ss.nullable(str)},
        emits={"seen": int, "name": str, "mean": float, "luck": float},
    )
    def book(state, event, emit):
        state.seen += 1
        state.counts[0, event.price % 600] += 1
        state.last[state.seen % 4] = event.weight
        if event.name == "b":
            emit(state.seen, event.name, sum(state.last) / 4, event.random(0))
        elif event.price % 3 == 0:
            emit(state.seen, "three", -0.0, event.random(1))
        if state.seen == 170:
            state.counts[1, 7] = -1

    difference = ss.spark.replay(recorded, 4, book).difference
    assert str(difference) == "state.counts[1, 7]: recorded 0, replayed -1"


def test_a_batch_that_failed_raises_again_at_its_event(failed: Path) -> None:
    before = listing(failed)
    assert [name for name in before if name.endswith(".input")] == ["0000000002.input"]
    found = ss.spark.replay(failed, 2)
    assert isinstance(found.error, ValueError)
    assert (found.done, found.events) == (30, 40)
    assert found.state.seen == 110
    assert found.difference is None
    assert found.raised is not None
    assert str(found.raised) == "ValueError at event 30: no price is 13"
    assert found.recorded is None
    assert listing(failed) == before


def test_a_mended_operator_is_tried_on_the_batch_that_failed(failed: Path, module: Any) -> None:
    found = ss.spark.replay(failed, 2, module.mended)
    assert found.error is None
    assert found.done == 40
    assert found.difference is not None
    assert str(found.difference) == (
        "error: recorded ValueError at event 30: no price is 13, replayed nothing"
    )


def test_the_rows_of_a_failed_batch_go_when_it_is_applied(
    failed: Path, module: Any, tmp_path: Path
) -> None:
    for each in failed.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    life = Life(module.mended, tmp_path, keep=0)
    life.run(2, rows_of(2))
    life.end()
    assert not list(tmp_path.glob("*.input"))


def test_a_table_that_is_refused_is_refused_again(module: Any, tmp_path: Path) -> None:
    life = Life(module.book, tmp_path, keep=0)
    bad = rows_of(0).set_column(2, "price", pa.array([None] + [1] * 39, pa.int64()))
    with pytest.raises(ss.InputError):
        life.run(0, bad)
    life.end()
    found = ss.spark.replay(tmp_path, 0)
    assert isinstance(found.error, ss.InputError)
    assert found.difference is None
    assert (found.done, found.output.num_rows) == (0, 0)


def test_bad_rows_are_left_out_again(module: Any, tmp_path: Path) -> None:
    life = Life(module.book, tmp_path, keep=1, rejected_rows="side")
    prices = pa.array([None, *range(14, 53)], pa.int64())
    life.run(0, rows_of(0).set_column(2, "price", prices))
    life.end()
    found = ss.spark.replay(tmp_path, 0)
    assert found.difference is None
    assert (found.is_recorded, found.events) == (True, 39)


def test_a_killed_batch_has_nothing_to_compare_with(recorded: Path, tmp_path: Path) -> None:
    for each in recorded.iterdir():
        if each.name[:10] != "0000000006" or each.suffix == ".input":
            (tmp_path / each.name).write_bytes(each.read_bytes())
    found = ss.spark.replay(tmp_path, 6)
    assert not found.is_recorded
    assert found.difference is None
    assert found.done == 40


@pytest.mark.slow
def test_a_live_query_is_not_disturbed(module: Any, tmp_path: Path) -> None:
    life = Life(module.book, tmp_path, keep=2)
    for batch_id in range(3):
        life.run(batch_id, rows_of(batch_id))
    code = f"import specstream as ss; assert ss.spark.replay({str(tmp_path)!r}, 2).is_recorded"
    subprocess.run([sys.executable, "-c", code], check=True)
    life.run(3, rows_of(3))
    life.end()


@pytest.mark.slow
def test_it_needs_no_spark(recorded: Path) -> None:
    code = f"""
    import sys
    sys.modules["pyspark"] = sys.modules["py4j"] = None
    import specstream as ss
    found = ss.spark.replay({str(recorded)!r}, 5)
    assert found.is_recorded and found.difference is None
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


# ---- what is wrong with a record ----


def test_every_flipped_byte_and_every_cut_of_an_input_is_detected(recorded: Path) -> None:
    content = (recorded / "0000000005.input").read_bytes()
    assert Input.from_bytes(content).origin.batch_id == 5
    for at in range(0, len(content), 11):
        with pytest.raises(DamagedFile):
            Input.from_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
        with pytest.raises(DamagedFile):
            Input.from_bytes(content[:at])


def test_an_input_of_the_versions_before_is_read(recorded: Path) -> None:
    kept = Input.from_bytes((recorded / "0000000006.input").read_bytes())
    table = pa.ipc.open_stream(recorded / "0000000006.input").read_all()
    metadata = dict(table.schema.metadata)
    origin = json.loads(metadata[b"specstream"])
    for version, known in ((3, True), (2, True), (1, True), (5, False)):
        if version == 3:
            assert (origin.pop("errors"), origin.pop("errors_limit")) == ("raise", None)
        if version == 2:
            assert not origin.pop("ends")
        if version == 1:
            assert origin.pop("event_time") is None
        metadata[b"specstream"] = json.dumps({**origin, "version": version}).encode()
        changed = table.replace_schema_metadata(metadata)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, changed.schema) as writer:
            writer.write_table(changed)
        body = sink.getvalue().to_pybytes()
        content = b"".join(inputs.INPUT.seal(body))
        if known:
            assert Input.from_bytes(content) == kept
        else:
            with pytest.raises(ss.SnapshotError, match="version 5 of the format"):
                Input.from_bytes(content)


def test_an_input_opens_with_arrow_alone(recorded: Path) -> None:
    rows = pa.ipc.open_stream((recorded / "0000000005.input").read_bytes()).read_all()
    assert rows.replace_schema_metadata(None).equals(rows_of(5))


def test_damage_and_another_history_are_named(recorded: Path, module: Any, tmp_path: Path) -> None:
    for each in recorded.iterdir():
        (tmp_path / each.name).write_bytes(each.read_bytes())
    content = (tmp_path / "0000000003.full").read_bytes()
    (tmp_path / "0000000003.full").write_bytes(content[:-1])
    with pytest.raises(ss.SnapshotError, match=r"0000000003\.full .* cannot be used: the checksum"):
        ss.spark.replay(tmp_path, 4)
    (tmp_path / "0000000003.full").unlink()
    with pytest.raises(ss.SnapshotError, match=r"state before it is not there any more"):
        ss.spark.replay(tmp_path, 4)
    (tmp_path / "0000000005.input").write_bytes(b"nothing")
    with pytest.raises(ss.SnapshotError, match=r"5\.input .*7 bytes do not end as a kept input"):
        ss.spark.replay(tmp_path, 5)
    life = Life(module.book, tmp_path / "new", keep=0, seed=5)
    for batch_id in range(6):
        life.run(batch_id, rows_of(batch_id + 1))
    life.end()
    (tmp_path / "new" / "0000000006.input").write_bytes(
        (tmp_path / "0000000006.input").read_bytes()
    )
    with pytest.raises(ss.SnapshotError, match=r"another history than .* file of batch 5"):
        ss.spark.replay(tmp_path / "new", 6)


def test_a_batch_beside_waiting_events_is_refused(module: Any, tmp_path: Path) -> None:
    life = Life(module.book, tmp_path, keep=1)
    life.engine.submit(rows_of(1), order_by="time", source="other")
    life.engine.advance("other", None)
    life.engine.poll(timeout=5)
    life.run(0, rows_of(0))
    life.end()
    with pytest.raises(ss.SnapshotError, match="events wait in its engine"):
        ss.spark.replay(tmp_path, 0)


def test_rows_that_cannot_be_kept_do_not_fail_the_batch(module: Any, tmp_path: Path) -> None:
    life = Life(module.book, tmp_path, keep=1)
    (tmp_path / ".0000000000.input.writing").mkdir()
    with pytest.warns(RuntimeWarning, match=r"0000000000\.input cannot be kept"):
        life.run(0, rows_of(0))
    assert life.checkpoint.newest is not None
    life.end()


# ---- the command line ----


def test_the_command_prints_rows_and_the_verdict(recorded: Path) -> None:
    result = invoke(recorded, "--batch", 5, "--rows", 2)
    assert result.exit_code == 0, result.output
    assert "identical to the record: every row, and the state" in result.stdout
    assert "more rows (--rows)" in result.stdout
    assert "sequence" in result.stdout


def test_without_a_batch_it_is_the_newest_that_was_kept(
    recorded: Path, failed: Path, tmp_path: Path
) -> None:
    assert json.loads(invoke(failed, "--json").stdout)["batch"] == 2
    assert ss.spark.replay(recorded).batch_id == 6
    (tmp_path / "empty").mkdir()
    with pytest.raises(ss.ConfigurationError, match=r"no batch of .* can be replayed: rows of the"):
        ss.spark.replay(tmp_path / "empty")
    result = invoke(tmp_path / "nowhere")
    assert result.exit_code == 1
    assert "nowhere' cannot be read" in result.stderr


def test_the_command_as_json(recorded: Path, failed: Path) -> None:
    found = json.loads(invoke(recorded, "--batch", 5, "--json", "--rows", 1).stdout)
    assert found["identical"] is True
    assert (found["batch"], found["applied"], len(found["rows"])) == (5, 40, 1)
    found = json.loads(invoke(failed, "--batch", 2, "--json").stdout)
    assert found["error"] == {"type": "ValueError", "message": "no price is 13"}
    assert found["recorded_error"]["event"] == 30


def test_the_command_with_an_operator_of_today(recorded: Path, failed: Path, module: Any) -> None:
    flows = module.__file__
    assert invoke(recorded, f"{flows}:book", "--batch", 6).exit_code == 0
    result = invoke(recorded, f"{flows}:build", "--arg", "step=3", "--batch", 6)
    assert result.exit_code == 1
    assert "the first difference: output row 0, column 'seen'" in result.stdout
    result = invoke(failed, f"{flows}:build", "--arg", "raises=False", "--batch", 2)
    assert "replayed nothing" in result.stdout
    assert invoke(recorded, "--batch", 6, "--arg", "step=3").exit_code == 2
    assert invoke(recorded, "--batch", 6, "--pdb", "--json").exit_code == 2
    alone = invoke(recorded, "--batch", 6, "--event", 3)
    assert alone.exit_code == 2
    assert "give --pdb as well" in alone.output
    result = invoke(recorded, "--batch", 6, "--pdb", "--event", 40)
    assert result.exit_code == 1
    assert "from 0 to 39" in result.stderr


@pytest.mark.slow
def test_pdb_stops_at_the_event_and_where_the_operator_raises(failed: Path) -> None:
    line = OPERATORS.splitlines().index("        state.seen += step") + 1
    talk = [
        "p 'price', int(event.price)", "n", "n", "p 'at', int(at)",
        f"b {line}", "c", "p 'seen', int(state.seen)", "clear 1",
        "c", "p 'value', int(value)", "up", "p 'seen', int(state.seen)", "c",
    ]  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "specstream.cli", "replay", failed, "--batch", "2", "--pdb",
         "--event", "12"],
        input="\n".join(talk), capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    price = int(re.findall(r"event 12, .*: price=(\d+), ", done.stdout)[0])
    said = re.findall(r"^\(Pdb\) \('(\w+)', (\d+)\)$", done.stdout, re.MULTILINE)
    assert [(name, int(value)) for name, value in said] == [
        ("price", price), ("at", price), ("seen", 93), ("value", 13), ("seen", 110),
    ]  # fmt: skip
    assert "(book " in done.stdout
    assert '-> raise ValueError("no price is 13")' in done.stdout
    assert "event 30, (timestamp, source, sequence) = " in done.stdout
    assert "raises what the record says" in done.stdout


def test_leaving_pdb_compares_nothing(recorded: Path) -> None:
    result = invoke(recorded, "--batch", 5, "--pdb", "--event", 3, input="q\n")
    assert result.exit_code == 0, result.output
    assert "left the debugger at event 3: nothing is compared" in result.stdout

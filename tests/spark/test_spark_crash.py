"""Exactly once through crashes: a real query in a real process, killed at every step of a batch."""

from __future__ import annotations

import functools
import json
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import specstream as ss

pytest.importorskip("pyspark")

from support.spark import crash_driver
from support.spark.crash_driver import begin, end

from specstream.checkpoint.format.failpoints import STEPS
from specstream.checkpoint.run.event_time import EventTime

FILES, ROWS = 13, 40
# One stream, one crash after the other. Files 0, 4, 8 and 12 are full; 8 and 12 supersede others.
CRASHES = (
    ("half-written", 0),
    ("before-run", 1),
    ("before-write", 1),
    ("before-rename", 2),
    ("prepared", 3),
    ("after-rename", 4),
    ("before-sink", 5),
    ("after-sink", 6),
    ("before-commit", 7),
    ("between-deletes", 8),
    ("before-delete", 12),
)
# With a pipeline of two sinks: where these may come apart. `make stress-spark` has all steps.
TWO_SINKS = (
    ("before-rename", 2),
    ("between-sinks", 9),
    ("before-commit", 10),
)
# With events that wait: in increments, in a full file, and in finish(), which is the last batch.
WAITING_FILES = 6
WAITING_CRASHES = (
    ("before-write", 2),
    ("before-commit", 3),
    ("after-rename", 4),
    ("before-sink", WAITING_FILES),
)
# With early results: where these are behind the final rows, and behind none.
EARLY_FILES = 4
EARLY_CRASH = ("before-early", 1)
# Crashes after which the batch is recorded.
RECORDED = (
    "after-rename",
    "before-delete",
    "between-deletes",
    "before-sink",
    "before-commit",
    "between-sinks",
    "after-sink",
)
# Crashes after which the sink has a whole file of the batch that nobody sees.
HIDDEN = ("prepared", "before-commit")


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(
    scope="module", params=[pytest.param("operator", marks=pytest.mark.long), "pipeline"]
)
def undisturbed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Path, Any]]:
    """A run without a crash, under way beside the others: its directory, and its end's status."""
    directory = tmp_path_factory.mktemp("undisturbed")
    pipeline = request.param == "pipeline"
    crash_driver.write_events(directory / "events", FILES, ROWS, pipeline=pipeline)
    process = begin(directory)
    # Once: end() kills the group with that id, which may be a stranger's by the second time.
    ended = functools.cache(lambda: end(process))
    yield directory, ended
    ended()


@pytest.fixture
def uninterrupted(undisturbed: tuple[Path, Any]) -> Callable[[], Path]:
    """The directory of that run, when it has come to its end."""

    def finished() -> Path:
        directory, ended = undisturbed
        assert ended() == 0, (directory / "errors").read_text()
        return directory

    return finished


def test_every_step_is_crashed_at() -> None:
    assert {step for step, _ in (*CRASHES, *TWO_SINKS, EARLY_CRASH)} == set(STEPS)


def test_killed_at_every_step_the_stream_ends_as_if_never_interrupted(
    undisturbed: tuple[Path, Any], uninterrupted: Callable[[], Path], tmp_path: Path
) -> None:
    sinks = crash_driver.sinks_of(undisturbed[0])
    is_pipeline = len(sinks) > 1
    crashes = TWO_SINKS if is_pipeline else CRASHES
    crash_driver.write_events(tmp_path / "events", FILES, ROWS, pipeline=is_pipeline)
    for step, batch_id in crashes:
        crash = f"{step}@{batch_id}"
        status = end(begin(tmp_path, crash))
        assert status == -signal.SIGKILL, (crash, (tmp_path / "errors").read_text())
        assert (tmp_path / "crashes").read_text().splitlines()[-1] == crash
        assert not (tmp_path / "spark" / "commits" / str(batch_id)).exists()  # in flight
        seen = lines(tmp_path / "batches")
        assert batch_id not in [line["batch"] for line in seen]
        visible = [tmp_path / sink / f"part-{batch_id:08d}.parquet" for sink in sinks]
        shown = {"after-sink": len(sinks), "between-sinks": 1}.get(step, 0)
        assert [path.exists() for path in visible] == [n < shown for n in range(len(sinks))]
        if step in HIDDEN:
            hidden = visible[0].with_name(f".{visible[0].name}.writing")
            assert pq.read_table(hidden).num_rows == ROWS
            assert any((tmp_path / "recorded").glob(f"{batch_id:010d}.*")) == (step in RECORDED)
    status = end(begin(tmp_path))
    assert status == 0, (tmp_path / "errors").read_text()

    whole = uninterrupted()
    assert not any(crash_driver.compare(whole).values())
    assert not any(crash_driver.compare(tmp_path).values())
    assert (tmp_path / "final").read_bytes() == (whole / "final").read_bytes()
    for sink in sinks:
        assert len(list((tmp_path / sink).iterdir())) == FILES  # no hidden one
        for part in (whole / sink).iterdir():
            assert (tmp_path / sink / part.name).read_bytes() == part.read_bytes()

    batches = lines(tmp_path / "batches")
    assert [line["batch"] for line in batches] == list(range(FILES))
    # After a crash with the batch recorded, its events do not run again.
    repeated = [line["batch"] for line in batches if line["repeated"]]
    assert repeated == [batch_id for step, batch_id in crashes if step in RECORDED]
    # All calls of a sink for one batch have the same rows.
    calls = lines(tmp_path / "calls")
    contents = {(line["sink"], line["batch"], line["content"]) for line in calls}
    assert len(contents) == FILES * len(sinks)
    again = [len(sinks) if step == "after-sink" else step == "between-sinks" for step, _ in crashes]
    assert len(calls) == FILES * len(sinks) + sum(again)


@pytest.mark.long
def test_killed_while_events_wait_for_the_watermark_nothing_is_lost(tmp_path: Path) -> None:
    crash_driver.write_events(tmp_path / "events", WAITING_FILES, ROWS, watermark=True)
    for step, batch_id in WAITING_CRASHES:
        crash = f"{step}@{batch_id}"
        status = end(begin(tmp_path, crash))
        assert status == -signal.SIGKILL, (crash, (tmp_path / "errors").read_text())
        assert (tmp_path / "crashes").read_text().splitlines()[-1] == crash
        assert not (tmp_path / "spark" / "commits" / str(batch_id)).exists()  # in flight
    status = end(begin(tmp_path))
    assert status == 0, (tmp_path / "errors").read_text()
    assert not any(crash_driver.compare(tmp_path).values())

    # The same batches, in this process and undisturbed: batch by batch the same rows, and the same
    # events waiting.
    options = crash_driver.event_time(tmp_path)
    waited = []
    with ss.Engine(crash_driver.chain, threads=2, horizon=4, chunk=4) as engine:
        feed = EventTime(engine, order_by="time", source="origin", **options)
        for number, path in enumerate(sorted((tmp_path / "events").iterdir())):
            output = feed.run(pq.read_table(path))
            waited.append(engine.stats.pending)
            assert pq.read_table(tmp_path / "out" / f"part-{number:08d}.parquet").equals(output)
        output = feed.finish()
        last = tmp_path / "out" / f"part-{WAITING_FILES:08d}.parquet"
        assert pq.read_table(last).equals(output)
        assert min(waited) > 0
        assert output.num_rows == waited[-1]
        engine.late()
        assert engine.snapshot() == (tmp_path / "final").read_bytes()


# Two processes with a Spark each, killed and begun anew.
@pytest.mark.long
def test_early_results_of_a_killed_stream_stand_as_if_it_never_was(tmp_path: Path) -> None:
    crash_driver.write_events(tmp_path / "events", EARLY_FILES, ROWS, watermark=True)
    (tmp_path / "early").touch()
    step, batch_id = EARLY_CRASH
    status = end(begin(tmp_path, f"{step}@{batch_id}"))
    assert status == -signal.SIGKILL, (tmp_path / "errors").read_text()
    # The final rows of the batch are in their sink.
    assert (tmp_path / "out" / f"part-{batch_id:08d}.parquet").exists()
    assert [answer["batch"] for answer in lines(tmp_path / "told")] == [0]
    status = end(begin(tmp_path))
    assert status == 0, (tmp_path / "errors").read_text()

    # Final rows know nothing of it.
    assert not any(crash_driver.compare(tmp_path).values())
    stands = ss.sinks.latest(crash_driver.early_sink(tmp_path))
    assert set(stands["change"].to_pylist()) == {"final"}
    final = crash_driver.rows_of(tmp_path / "out")
    assert stands.select(final.column_names).equals(final)

    answers = lines(tmp_path / "told")
    assert [answer["batch"] for answer in answers] == list(range(EARLY_FILES + 1))
    assert [answer["reset"] for answer in answers] == [True, True, False, False, False]
    latest: dict[tuple[Any, ...], Any] = {}
    for answer in answers:
        for row in answer["rows"]:
            key = row["timestamp"], row["source"], row["sequence"], row["n"]
            before = latest.get(key)
            if before is not None and before != row:
                assert row["version"] > before["version"]
                assert before["change"] != "final"
            latest[key] = row
    incarnations = {row["version"] >> 40 for answer in answers for row in answer["rows"]}
    assert incarnations == {1, 2}


def test_what_the_last_file_holds_is_the_final_state(
    uninterrupted: Callable[[], Path],
) -> None:
    whole = uninterrupted()
    to: Any = {name: crash_driver.Watched(whole, name) for name in crash_driver.sinks_of(whole)}
    with ss.Engine(crash_driver.operator_of(whole), horizon=0) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            source="origin",
            to=to if len(to) > 1 else to["out"],
            checkpoint=whole / "recorded",
        )
        assert engine.snapshot() == (whole / "final").read_bytes()
        assert feed.checkpoint is not None
        assert feed.checkpoint.recorded is not None
        assert feed.checkpoint.recorded.batch_id == FILES - 1
        feed.checkpoint.close()

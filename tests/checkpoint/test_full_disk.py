"""A disk that is full: the error says which file, where, and how many bytes; nothing is lost."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import resource
import subprocess
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs
from support.checkpoint.fed import Fed

import specstream as ss
from specstream.checkpoint.format import store as stores
from specstream.checkpoint.format.store import RemoteStore
from specstream.checkpoint.run.checkpoint import Checkpoint
from specstream.sinks.parquet import parquet_sink

pytestmark = pytest.mark.slow

ROOM, STATE = 64 << 10, 128 << 10  # bytes


class Large(ss.State):
    seen = ss.scalar(int)
    cells = ss.array(int, STATE // 8)


@ss.operator(state=Large, event={"x": int}, emits={"x": int, "seen": int})
def count(state, event, emit):
    state.seen += 1
    emit(event.x, state.seen)


def rows(length: int) -> pa.Table:
    return pa.table({"x": np.random.default_rng(0).integers(0, 2**62, length)})


class Small(ABC):
    """A directory with room for less than a state, until there is more."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()

    @abstractmethod
    def full(self) -> AbstractContextManager[None]:
        """Within it there is no room."""

    @abstractmethod
    def grow(self) -> None:
        """There is room from now on."""


class SmallDisk(Small):
    """A filesystem of its own."""

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        yield

    def grow(self) -> None:
        mount("-o", f"remount,size={32 * STATE}", self.path)


class SmallFiles(Small):
    """No file may be longer than the room."""

    @contextlib.contextmanager
    def full(self) -> Iterator[None]:
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (ROOM, limits[1]))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    def grow(self) -> None:
        pass


def mount(*arguments: Any) -> None:
    subprocess.run(["mount", *map(str, arguments)], check=True, capture_output=True)


@pytest.fixture(params=[SmallDisk, SmallFiles])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Small]:
    made: Small = request.param(tmp_path / "small")
    if request.param is SmallFiles:
        yield made
        return
    try:
        mount("-t", "tmpfs", "-o", f"size={ROOM}", "tmpfs", made.path)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no filesystem can be mounted here: {error}")
    yield made
    subprocess.run(["umount", "-l", made.path], check=True)


def assert_told(error: BaseException | str, file: Path) -> None:
    message = str(error)
    assert str(file.parent) in message
    assert file.name.strip(".").removesuffix(".writing") in message
    assert "bytes" in message
    assert "No space left on device" in message or "File too large" in message


@pytest.mark.parametrize("remote", [False, True])
def test_a_file_that_has_no_room_is_named_and_the_batch_comes_again(
    small: Small, remote: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = small.path / "recorded"
    if remote:
        monkeypatch.setattr(
            stores, "LocalStore", lambda path: RemoteStore(fs.LocalFileSystem(), path, path)
        )
    with ss.Engine(count, horizon=0) as engine:
        answers: list[pa.Table] = []
        feed = Fed(engine, to=lambda table, batch_id: answers.append(table), checkpoint=directory)
        before = engine.snapshot()
        with small.full(), pytest.raises(OSError, match="bytes") as raised:
            feed.apply(0, rows(2))
        assert_told(raised.value, directory / "0000000000.full")
        assert {path.name for path in directory.glob("[0-9]*.full")} == set()
        assert engine.snapshot() == before
        assert answers == []
        small.grow()
        feed.apply(0, rows(2))
        assert [answer["seen"].to_pylist() for answer in answers] == [[1, 2]]
        feed.close()
    with ss.Engine(count, horizon=0) as engine:
        checkpoint = Checkpoint(engine, directory)
        assert engine.state.seen == 2
        checkpoint.close()


def test_rows_that_are_only_kept_are_a_warning_with_the_file(small: Small) -> None:
    directory = small.path / "recorded"
    with ss.Engine(count, horizon=0) as engine:
        feed = Fed(engine, to=print, checkpoint=directory, keep_batches=1)
        with (
            small.full(),
            pytest.warns(RuntimeWarning) as warned,
            pytest.raises(OSError, match="bytes"),
        ):
            feed.apply(0, rows(ROOM))
        assert_told(warned[0].message, directory / "0000000000.input")
        feed.close()


def test_a_sink_that_has_no_room_names_file_and_batch(small: Small) -> None:
    sink = parquet_sink(small.path / "rows")
    with small.full(), pytest.raises(ss.SinkError, match="batch 3") as raised:
        sink(rows(ROOM), 3)
    assert_told(raised.value, sink.file(3))
    assert list(sink.path.iterdir()) == []
    small.grow()
    sink(rows(ROOM), 3)
    assert pq.read_table(sink.file(3)).num_rows == ROOM


def test_an_operator_is_compiled_though_it_cannot_be_kept(
    small: Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", str(small.path / "cache"))
    if isinstance(small, SmallDisk):
        (small.path / "filler").write_bytes(bytes(ROOM))
    with small.full(), ss.Engine(count, horizon=0) as engine:
        assert engine.process(rows(3))["seen"].to_pylist() == [1, 2, 3]


def test_a_report_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    (tmp_path / "numbered.py").write_text(
        "import specstream as ss\n"
        "class Seen(ss.State):\n"
        "    count = ss.scalar(int)\n"
        "@ss.operator(state=Seen, event={'x': int}, emits={'place': int})\n"
        "def number(state, event, emit):\n"
        "    state.count += 1\n"
        "    emit(state.count)\n"
    )
    (tmp_path / "events").mkdir()
    pq.write_table(rows(100), tmp_path / "events" / "0.parquet")
    command = [sys.executable, "-c", "from specstream.cli import main; main()"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*command, "profile", f"{tmp_path}/numbered.py:number", "--input", tmp_path / "events"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr.startswith("Error: standard output: No space left on device")

"""``specstream run --early`` and ``specstream latest``: what is told before it is final."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.commands import invoke

import specstream as ss

pytestmark = pytest.mark.spark

OPERATORS = """
import specstream as ss


class Sums(ss.State):
    totals = ss.array(int, 4)


@ss.operator(
    state=Sums, event={"account": int, "x": int}, emits={"account": int, "total": int}
)
def book(state, event, emit):
    state.totals[event.account] += event.x
    emit(event.account, state.totals[event.account])


@ss.operator(state=Sums, event={"account": int, "x": int}, emits={"version": int})
def named_alike(state, event, emit):
    emit(event.x)
"""


@pytest.fixture
def operators(tmp_path: Path) -> Path:
    path = tmp_path / "book.py"
    path.write_text(OPERATORS)
    return path


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """Three files; the second one has a row that belongs before the last ones of the first."""
    directory = tmp_path / "stream"
    directory.mkdir()
    files = [
        {"time": [1, 2, 8, 9], "account": [0, 1, 0, 1], "x": [1, 2, 3, 4]},
        {"time": [5, 10], "account": [0, 2], "x": [10, 7]},
        {"time": [30], "account": [3], "x": [1]},
    ]
    for number, columns in enumerate(files):
        path = directory / f"{number}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_000_000_000 + number,) * 2)
    return directory


def options(operators: Path, stream: Path, tmp_path: Path) -> list[object]:
    return [
        "run", f"{operators}:book", "--input", stream, "--order-by", "time",
        "--output", tmp_path / "out", "--max-files-per-trigger", 1,
    ]  # fmt: skip


def test_run_writes_the_changes_beside_the_final_rows(
    operators: Path, stream: Path, tmp_path: Path
) -> None:
    early = tmp_path / "early"
    # In a process of its own, as Spark cannot be had twice in one.
    done = subprocess.run(
        [
            sys.executable, "-m", "specstream.cli",
            *map(str, options(operators, stream, tmp_path)),
            "--watermark", "15", "--early", str(early), "--json",
        ],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    files = sorted(early.glob("*.parquet"))
    logs = [pq.read_table(path).to_pylist() for path in files]

    def told(log: list[dict[str, Any]], change: str) -> list[tuple[int, int, int]]:
        rows = [row for row in log if row["change"] == change]
        return [(row["timestamp"], row["account"], row["total"]) for row in rows]

    first = [(1, 0, 1), (2, 1, 2), (8, 0, 4), (9, 1, 6)]
    assert told(logs[0], "early") == first
    assert told(logs[1], "early") == [(5, 0, 11), (8, 0, 14), (10, 2, 7)], "what has changed"
    assert told(logs[2], "early") == [(30, 3, 1)]
    final = [(1, 0, 1), (2, 1, 2), (5, 0, 11), (8, 0, 14), (9, 1, 6), (10, 2, 7), (30, 3, 1)]
    assert told(logs[2], "final") + told(logs[3], "final") == final
    assert len(logs) == 4

    assert summary["rows_out"] == 7
    assert summary["early"]["output"] == str(early)
    assert summary["early"]["answers"] == 4
    assert summary["early"]["changes"] == {"early": 8, "withdrawn": 0, "final": 7}
    assert (summary["early"]["revocations"], summary["early"]["rerun"]) == (1, 1)
    assert summary["early"]["lead_median"] > 0

    output = pyarrow.dataset.dataset(tmp_path / "out").to_table()
    found = invoke("latest", early, "--json")
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    assert [row["total"] for row in rows] == output["total"].to_pylist()

    again = invoke(
        *options(operators, stream, tmp_path)[:-4], "--output", tmp_path / "other",
        "--watermark", "15", "--early", early,
    )  # fmt: skip
    assert again.exit_code == 1
    assert "--early" in again.stderr
    assert "Parquet files in it already" in " ".join(again.stderr.split())


@pytest.mark.parametrize(
    ("target", "arguments", "status", "message"),
    [
        ("book", ("--early", "{here}/early"), 2, "give --watermark as well"),
        ("book", ("--watermark", "5", "--early", "{here}/out"), 2, "name a directory beside it"),
        ("book", ("--watermark", "5", "--early", "{here}/out/early"), 2, "a directory beside it"),
        (
            "book",
            ("--watermark", "5", "--late-output", "{here}/late", "--early", "{here}/late"),
            2,
            "name a directory beside it",
        ),
        ("named_alike", ("--watermark", "5", "--early", "{here}/early"), 1, "rename it"),
    ],
)
def test_run_explains_where_there_are_no_early_results(
    operators: Path, stream: Path, tmp_path: Path, target: str, arguments: tuple[str, ...],
    status: int, message: str,
) -> None:  # fmt: skip
    given = options(operators, stream, tmp_path)
    given[1] = f"{operators}:{target}"
    result = invoke(*given, *(one.format(here=tmp_path) for one in arguments))
    assert result.exit_code == status, result.output
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "early").exists()
    assert not (tmp_path / "out").exists()


class Sums(ss.State):
    totals = ss.array(int, 4)


@ss.operator(state=Sums, event={"account": int, "x": int}, emits={"account": int, "total": int})
def book(state: Any, event: Any, emit: Any) -> None:
    state.totals[event.account] += event.x
    if state.totals[event.account] < 10:
        emit(event.account, state.totals[event.account])


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Of an account's rows the second is withdrawn."""
    directory = tmp_path / "log"
    directory.mkdir()
    with ss.Engine(book, sources=["a", "b"], early=True) as engine:
        for number, (source, times, accounts) in enumerate(
            [("a", [10, 20, 30], [0, 0, 1]), ("b", [5], [0]), ("a", [40], [1])]
        ):
            columns = {"time": times, "account": accounts, "x": np.full(len(times), 4)}
            engine.submit(columns, order_by="time", source=source)
            changes = engine.poll_early(timeout=None).changes
            pq.write_table(changes, directory / f"{number}.parquet")
    return directory


def test_latest_tells_the_rows_that_stand(log: Path, tmp_path: Path) -> None:
    expected = [("b", 5, 0, 4), ("a", 10, 0, 8), ("a", 30, 1, 4), ("a", 40, 1, 8)]

    def rows(table: pa.Table) -> list[Any]:
        names = ("source", "timestamp", "account", "total")
        return [tuple(row[name] for name in names) for row in table.to_pylist()]

    assert invoke("latest", log, "--csv", tmp_path / "x.csv").exit_code == 0
    assert rows(pyarrow.csv.read_csv(tmp_path / "x.csv")) == expected
    assert invoke("latest", log, "--parquet", tmp_path / "x.parquet").exit_code == 0
    assert rows(pq.read_table(tmp_path / "x.parquet")) == expected
    lines = invoke("latest", log, "--json", "--by", "account").stdout.splitlines()
    found = [json.loads(line) for line in lines]
    assert [(row["account"], row["total"]) for row in found] == [(0, 8), (1, 8)]
    shown = invoke("latest", log, "--rows", 3, env={"COLUMNS": "120"}).stdout
    assert "account" in shown
    assert shown.rstrip().endswith("... 1 more")


def test_latest_explains_what_it_refuses(log: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    for sink in ("sums", "moves"):
        shutil.copytree(log, tmp_path / "two" / sink)
    pq.write_table(pa.table({"x": [1]}), tmp_path / "other" / "0.parquet")
    for arguments, status, message in (
        ((tmp_path / "nowhere",), 2, "does not exist"),
        ((tmp_path / "empty",), 1, "there are no Parquet files in it"),
        ((tmp_path / "other",), 1, "has no column 'timestamp'"),
        ((tmp_path / "two",), 1, "there are the logs of several sinks in it"),
        ((log, "--by", "colour"), 1, "has no column 'colour'"),
        ((log, "--json", "--csv", tmp_path / "x"), 2, "give one of them"),
        ((log, "--csv", tmp_path / "no" / "x"), 1, "Error: the table cannot be written"),
        ((log, "--parquet", tmp_path / "no" / "x"), 1, "Error: the table cannot be written"),
    ):
        result = invoke("latest", *arguments)
        assert result.exit_code == status, result.output
        assert message in " ".join(result.stderr.split())
        assert "Traceback" not in result.stderr


def test_each_sink_of_a_pipeline_has_a_log(tmp_path: Path) -> None:
    from specstream.cli.early_log import EarlyLog

    pipeline = ss.Pipeline("two")
    source = pipeline.source("moves", {"account": int, "x": int})
    pipeline.sink("sums", pipeline.add(book, source))
    pipeline.sink("moves", source)
    with ss.Engine(pipeline, early=True) as engine:
        log = EarlyLog(engine, tmp_path)
        engine.submit({"moves": {"time": [1, 2], "account": [0, 0], "x": [4, 40]}}, order_by="time")
        log.write()
        told = log.summary(engine.stats)["changes"]
    assert told == {"early": 3, "withdrawn": 0, "final": 0}
    assert invoke("latest", tmp_path / "sums", "--json").stdout.count("\n") == 1
    assert invoke("latest", tmp_path / "moves", "--json").stdout.count("\n") == 2

"""The command line: what it runs is the sequential answer, what it refuses it explains."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.commands import invoke

import specstream as ss
from specstream.cli.target import load_operator

pytestmark = pytest.mark.spark

OPERATORS = """
import specstream as ss


class Sums(ss.State):
    total = ss.scalar(int)


def scaled(factor=1):
    @ss.operator(state=Sums, event={"x": int}, emits={"total": int})
    def running_total(state, event, emit):
        if event.x < 0:
            raise ValueError("negative amount")
        state.total = (state.total + event.x) * factor
        emit(total=state.total)

    return running_total


plain = scaled()
number = 7


def not_one():
    return number
"""


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """Four files, the rows of each against the order of time."""
    directory = tmp_path / "stream"
    directory.mkdir()
    for number in range(4):
        times = np.arange(number * 100, number * 100 + 100)[::-1]
        path = directory / f"{number}.parquet"
        pq.write_table(pa.table({"time": times, "gate": times % 2, "x": times * 3}), path)
        # Months apart: Spark takes files in this order and must not drop the old ones.
        os.utime(path, (1_000_000_000 + number * 10_000_000,) * 2)
    return directory


def command(*arguments: object) -> subprocess.CompletedProcess[str]:
    """The installed command in a process of its own, as Spark cannot be had twice in one."""
    return subprocess.run(
        [sys.executable, "-m", "specstream.cli", *map(str, arguments)],
        check=False,
        capture_output=True,
        text=True,
    )


def test_run_gives_the_sequential_answer_and_a_summary(
    operators: Path, stream: Path, tmp_path: Path
) -> None:
    output, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    options: tuple[object, ...] = (
        "run", f"{operators}:scaled", "--arg", "factor=3", "--input", stream,
        "--order-by", "time", "--source", "gate", "--threads", 2, "--horizon", 4, "--chunk", 16,
        "--max-files-per-trigger", 2, "--json", "--every", 0.1,
    )  # fmt: skip
    done = command(*options, "--output", output, "--checkpoint", checkpoint)
    assert done.returncode == 0, done.stderr
    *looks, summary = (json.loads(line) for line in done.stdout.splitlines())
    assert looks
    assert {look["event"] for look in looks} == {"progress"}
    counts = [look["rows_in"] for look in looks]
    assert counts == sorted(counts)
    assert all(look["rows_in"] + look["rows_pending"] == 400 for look in looks)
    assert set(looks[0]) >= {"events_per_second", "commit_rate", "aborts", "horizon", "chunk",
                             "wait_queue", "lag", "reached"}  # fmt: skip
    assert all(look["lag"] == 399 - look["reached"] for look in looks if look["reached"])
    assert summary["event"] == "summary"
    assert summary["rows_in"] == summary["rows_out"] == 400
    assert summary["batches"] == 2
    assert summary["commits"] >= 400 / 16
    assert set(summary) >= {"events_per_second", "aborts", "seconds", "horizon", "protocol"}

    times = np.arange(400)
    operator = load_operator(f"{operators}:scaled", {"factor": 3})
    expected = operator.run_sequential({"x": times * 3}).output
    assert pyarrow.dataset.dataset(output, format="parquet").to_table().equals(expected)

    # A second run would mix its rows with these, and the first one goes on with its own output.
    again = invoke(*options, "--output", output)
    assert again.exit_code == 1
    assert "Parquet files in it already" in again.stderr
    resumed = invoke(*options, "--output", tmp_path / "out2", "--checkpoint", checkpoint)
    assert resumed.exit_code == 1
    assert f"--output was '{output}' and is now '{tmp_path / 'out2'}'" in resumed.stderr


def test_run_shows_the_traceback_of_the_operators_own_error(
    operators: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "bad"
    directory.mkdir()
    pq.write_table(pa.table({"time": [1, 2], "x": [5, -5]}), directory / "0.parquet")
    done = command(
        "run", f"{operators}:plain", "--input", directory, "--order-by", "time",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert done.returncode == 1
    assert "Error: ValueError: negative amount" in done.stderr
    assert 'raise ValueError("negative amount")' in done.stderr
    assert done.stdout == ""
    assert "starting Spark" in done.stderr
    assert "\x1b" not in done.stderr, "no terminal, no control characters"


@pytest.mark.parametrize(
    ("target", "arguments", "status", "message"),
    [
        ("no.such.module:thing", (), 1, "no module named 'no.such.module'"),
        ("missing.py:thing", (), 1, "no file 'missing.py'"),
        ("{file}:thing", (), 1, "has no 'thing'; operators in it: plain"),
        ("{file}:number", (), 1, "is a int; expected an operator"),
        ("{file}:not_one", (), 1, "returned a int"),
        ("{file}:scaled", ("--arg", "speed=2"), 1, "cannot be called with --arg"),
        ("{file}:plain", ("--arg", "factor=2"), 2, "takes no --arg"),
        ("{file}:scaled", ("--arg", "factor=two"), 2, "is not a Python literal"),
        ("{file}:scaled", ("--arg", "2"), 2, "expected NAME=VALUE"),
        ("{file}", (), 2, "names no operator"),
        ("{file}:plain", ("--order-by", "when"), 1, "--order-by names column 'when'"),
        ("{file}:plain", ("--source", "where"), 1, "--source names column 'where'"),
        ("specstream.operators:top_k", (), 1, "operator 'top_k' reads column 'item'"),
        ("{file}:plain", ("--threads", "0"), 1, "threads"),
        ("{file}:plain", ("--protocol", "wild"), 1, "protocol='wild'"),
        ("{file}:plain", ("--max-files-per-trigger", "0"), 2, "max-files-per-trigger"),
        ("{file}:plain", ("--late", "drop"), 2, "--late is about events that wait"),
        ("{file}:plain", ("--idle-timeout", "5 s"), 2, "give --watermark as well"),
        ("{file}:plain", ("--watermark", "5 parsecs"), 1, "watermark='5 parsecs' is no duration"),
        ("{file}:plain", ("--watermark", "-5"), 1, "watermark=-5; expected zero or more"),
        (
            "{file}:plain",
            ("--watermark", "5", "--late", "drop", "--late-output", "late"),
            2,
            "give one of them",
        ),
    ],
)
def test_run_explains_what_it_refuses(
    operators: Path, stream: Path, tmp_path: Path, target: str, arguments: tuple[str, ...],
    status: int, message: str,
) -> None:  # fmt: skip
    ordered = () if "--order-by" in arguments else ("--order-by", "time")
    result = invoke(
        "run", target.format(file=operators), "--input", stream, "--output", tmp_path / "out",
        *ordered, *arguments,
    )  # fmt: skip
    assert result.exit_code == status, result.output
    assert message in " ".join(result.stderr.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("command", "option", "value", "message"),
    [
        ("tune", "--seconds", "nan", "'nan' is not a number of seconds"),
        ("bench", "--seconds", "inf", "'inf' is not a number of seconds"),
        ("profile", "--horizon", "65537", "65537 is not in the range 1<=x<=65536"),
        ("profile", "--chunk", "1048577", "1048577 is not in the range 1<=x<=1048576"),
        ("profile", "--top", "-3", "-3 is not in the range x>=0"),
    ],
)
def test_a_number_out_of_its_range_is_refused_with_its_option(
    operators: Path, stream: Path, command: str, option: str, value: str, message: str
) -> None:
    result = invoke(
        command, f"{operators}:plain", "--input", stream, "--order-by", "time", option, value
    )
    assert result.exit_code == 2
    assert f"Invalid value for '{option}': {message}" in " ".join(result.stderr.split())


@pytest.mark.parametrize(
    "given",
    [
        ("run", "flow.py", "--from", "a", "--output", "x", "--from", "b"),
        ("check", "flow.py", "x.csv", "--limit", "3", "--limit=4"),
        ("checkpoint", "rollback", "place", "--to", "3", "--to", "4"),
    ],
)
def test_an_option_with_two_values_is_refused(given: tuple[str, ...]) -> None:
    done = invoke(*given)
    assert done.exit_code == 2
    assert "is given 2 times: give it once" in done.stderr


def test_run_sets_aside_events_that_fail(operators: Path, tmp_path: Path) -> None:
    directory, output, failed = (tmp_path / name for name in ("some", "out", "failed"))
    directory.mkdir()
    table = pa.table({"time": [1, 2, 3], "x": [5, -5, 7]})
    pq.write_table(table, directory / "0.parquet")
    options = (
        "run", f"{operators}:plain", "--input", directory, "--order-by", "time",
        "--errors-limit", 1, "--output", output,
    )  # fmt: skip
    done = command(*options, "--errors", failed, "--json")
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["rows_in"], summary["rows_out"], summary["failed"]) == (3, 2, 1)
    assert pyarrow.dataset.dataset(output).to_table()["total"].to_pylist() == [5, 12]
    found = pyarrow.dataset.dataset(failed).to_table()
    expected = load_operator(f"{operators}:plain", {}).run_sequential(
        table, order_by="time", errors="side"
    )
    assert expected.failed_events is not None
    told = ["timestamp", "sequence", "x", "error", "message"]
    assert found.select(told).equals(expected.failed_events.select(told))
    again = invoke(*options[:-1], tmp_path / "out2", "--errors", failed)
    assert again.exit_code == 1
    assert "--errors" in again.stderr
    alone = invoke(*options[:-1], tmp_path / "out2")
    assert alone.exit_code == 2
    assert "--errors DIRECTORY" in alone.stderr


def test_run_needs_an_order_for_a_watermark(operators: Path, stream: Path, tmp_path: Path) -> None:
    result = invoke(
        "run", f"{operators}:plain", "--input", stream, "--output", tmp_path / "out",
        "--watermark", "10 seconds",
    )  # fmt: skip
    assert result.exit_code == 2
    assert "--order-by" in result.stderr


def test_run_with_a_watermark_gives_the_answer_of_the_rows_in_order(
    operators: Path, tmp_path: Path
) -> None:
    directory, output, late = (tmp_path / name for name in ("overlapping", "out", "late"))
    directory.mkdir()
    times = np.arange(60)
    files = [times[times % 20 < 13], times[times % 20 >= 13], np.array([2, 70])]
    for number, of in enumerate(files):
        path = directory / f"{number}.parquet"
        pq.write_table(pa.table({"time": of, "x": of}), path)
        os.utime(path, (1_000_000_000 + number,) * 2)
    options = (
        "run", f"{operators}:plain", "--input", directory, "--order-by", "time",
        "--watermark", 55, "--late-output", late, "--max-files-per-trigger", 1, "--json",
    )  # fmt: skip
    done = command(*options, "--output", output)
    assert done.returncode == 0, done.stderr
    summary = json.loads(done.stdout.splitlines()[-1])
    assert (summary["rows_in"], summary["rows_out"], summary["late"]) == (62, 61, 1)
    assert not summary["stopped"]
    operator = load_operator(f"{operators}:plain", {})
    expected = operator.run_sequential({"x": [*times, 70]}).output
    assert pyarrow.dataset.dataset(output, format="parquet").to_table().equals(expected)
    assert pyarrow.dataset.dataset(late).to_table()["time"].to_pylist() == [2]
    again = invoke(*options, "--output", tmp_path / "out2")
    assert again.exit_code == 1
    assert "--late-output" in again.stderr


def test_sigterm_ends_a_run_behind_the_batch_under_way(operators: Path, tmp_path: Path) -> None:
    directory, output = tmp_path / "many", tmp_path / "out"
    directory.mkdir()
    files = 200
    for number in range(files):
        path = directory / f"{number:03d}.parquet"
        pq.write_table(pa.table({"time": [2 * number, 2 * number + 1], "x": [1, number]}), path)
        os.utime(path, (1_000_000_000 + number,) * 2)
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "specstream.cli", "run", f"{operators}:plain", "--json"),
            *("--input", str(directory), "--order-by", "time", "--output", str(output)),
            *("--max-files-per-trigger", "1", "--every", "0.05"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stderr is not None
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1].get("batches", 0) >= 2:
                process.terminate()
                break
        lines += map(json.loads, process.stdout)
        errors = process.stderr.read()
    assert process.returncode == 143, errors
    assert "Traceback" not in errors
    summary = lines[-1]
    assert summary["event"] == "summary"
    assert summary["stopped"]
    written = [path.name for path in sorted(output.iterdir())]
    assert written == [f"part-{at:08d}.parquet" for at in range(summary["batches"])]
    assert 2 <= len(written) < files
    assert summary["rows_in"] == 2 * len(written)
    operator = load_operator(f"{operators}:plain", {})
    xs = [x for number in range(len(written)) for x in (1, number)]
    expected = operator.run_sequential({"x": xs}).output
    assert pyarrow.dataset.dataset(output, format="parquet").to_table().equals(expected)


def test_run_refuses_an_empty_input_and_files_that_are_no_parquet(
    operators: Path, tmp_path: Path
) -> None:
    directory = tmp_path / "empty"
    directory.mkdir()
    options = ("run", f"{operators}:plain", "--input", directory, "--order-by", "time",
               "--output", tmp_path / "out")  # fmt: skip
    result = invoke(*options)
    assert result.exit_code == 1
    assert "no Parquet files" in result.stderr
    (directory / "0.parquet").write_text("time,x")
    result = invoke(*options)
    assert result.exit_code == 1
    assert "not readable as Parquet" in result.stderr


def test_a_file_is_taken_where_a_file_will_do(
    operators: Path, stream: Path, tmp_path: Path
) -> None:
    file, of = stream / "1.parquet", f"{operators}:plain"
    options = (of, "--input", file, "--order-by", "time")
    found = json.loads(invoke("profile", *options, "--json").stdout)
    assert found["events"] == 100
    for command_ in (("tune", "--seconds", 0.1), ("bench", "--seconds", 0.1)):
        done = invoke(*command_, *options, "--threads", 1, "--json")
        assert json.loads(done.stdout)["events"] == 100, done.output
    refused = invoke("run", *options, "--output", tmp_path / "out")
    assert refused.exit_code == 1
    assert refused.stderr == (
        f"Error: --input {file} is a file, and Spark reads directories: give its directory, "
        f"--input {stream}; or --from {file} in place of --input, without Spark\n"
    )
    assert not (tmp_path / "out").exists()
    missing = invoke("tune", of, "--input", stream / "no.parquet", "--order-by", "time")
    assert "no.parquet' does not exist" in " ".join(missing.stderr.split())


@pytest.mark.slow
def test_a_column_that_spark_does_not_read_is_named(operators: Path, tmp_path: Path) -> None:
    times = pd.date_range("2026-01-05", periods=3, freq="s", name="at").astype("datetime64[ns]")
    frame = pd.DataFrame({"time": [1, 2, 3], "x": [5, 6, 7]}, index=times)
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "a.parquet"
    frame.to_parquet(file)
    options = ("--order-by", "time", "--output", tmp_path / "out")
    done = command("run", f"{operators}:plain", "--input", tmp_path / "in", *options)
    assert done.returncode == 1
    assert f"Spark does not read column 'at', timestamp[ns], of file '{file}': " in done.stderr
    assert "Traceback" not in done.stderr
    # What the message says works.
    frame.to_parquet(file, coerce_timestamps="us", allow_truncated_timestamps=True)
    done = command("run", f"{operators}:plain", "--input", tmp_path / "in", *options)
    assert done.returncode == 0, done.stderr
    frame.to_parquet(file)
    alone = ("--from", tmp_path / "in", "--output", tmp_path / "other")
    done = command("run", f"{operators}:plain", *alone)
    assert done.returncode == 0, done.stderr
    found = [pyarrow.dataset.dataset(tmp_path / name).to_table() for name in ("out", "other")]
    assert [table["total"].to_pylist() for table in found] == [[5, 11, 18]] * 2


@pytest.mark.parametrize("name", ["part[1].parquet", "{a,b}/0.parquet", "in*/0.parquet"])
def test_run_refuses_names_that_spark_takes_for_patterns(
    operators: Path, tmp_path: Path, name: str
) -> None:
    """Of two such files in one batch each row came twice, or those of another directory."""
    path = tmp_path / "stream" / name
    path.parent.mkdir(parents=True)
    pq.write_table(pa.table({"time": [1], "x": [5]}), path)
    for directory in {path.parent, tmp_path / "stream"}:
        result = invoke(
            "run", f"{operators}:plain", "--input", directory, "--order-by", "time",
            "--output", tmp_path / "out",
        )  # fmt: skip
        assert result.exit_code == 1, result.output
        assert "for a pattern" in result.stderr
        assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("option", ["--output", "--errors", "--checkpoint"])
@pytest.mark.parametrize("of", ["--input", "--from"])
def test_run_refuses_to_write_where_it_reads(
    operators: Path, stream: Path, tmp_path: Path, of: str, option: str
) -> None:
    """The next start would have read the rows of this one."""
    places = {"--output": tmp_path / "out", option: stream / "below"}
    result = invoke(
        "run", f"{operators}:plain", of, stream, "--order-by", "time",
        *(text for place in places.items() for text in place),
    )  # fmt: skip
    assert result.exit_code == 1, result.output
    assert f"{option} {stream / 'below'}: it is in {of} {stream}" in result.stderr
    assert not (stream / "below").exists()


def test_run_without_java_says_what_to_install(
    operators: Path, stream: Path, tmp_path: Path
) -> None:
    result = invoke(
        "run", f"{operators}:plain", "--input", stream, "--order-by", "time",
        "--output", tmp_path / "out", env={"JAVA_HOME": str(tmp_path)},
    )  # fmt: skip
    assert result.exit_code == 1
    assert "openjdk-17-jre-headless" in result.stderr


def test_run_without_pyspark_names_the_extra(
    operators: Path, stream: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent: Any = None
    monkeypatch.setitem(sys.modules, "pyspark", absent)
    result = invoke(
        "run", f"{operators}:plain", "--input", stream, "--order-by", "time",
        "--output", tmp_path / "out",
    )  # fmt: skip
    assert result.exit_code == 1
    assert 'pip install "specstream[spark]"' in result.stderr


def test_version_and_usage() -> None:
    assert ss.__version__ in invoke("--version").stdout
    assert invoke("run").exit_code == 2
    assert invoke("unknown").exit_code == 2


def test_the_demo_is_identical_to_the_sequential_run(tmp_path: Path) -> None:
    done = command("demo", "--quick", "--json", "--output", tmp_path / "demo")
    assert done.returncode == 0, done.stderr
    assert done.stderr.rstrip().endswith("identical to the sequential run: yes")
    result = json.loads(done.stdout)
    assert result["identical"]
    for counts in result["operators"].values():
        assert counts["batches"] >= 12
        assert counts["events"] > 70_000
        assert counts["one_core_seconds"] < counts["check_seconds"]
    assert [leader["count"] for leader in result["top_k"]] == sorted(
        (leader["count"] for leader in result["top_k"]), reverse=True
    )
    assert Path(result["plot"]).read_bytes().startswith(b"\x89PNG")

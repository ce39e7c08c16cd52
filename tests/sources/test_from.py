"""``specstream run --from``: the same command over sources without Spark."""

from __future__ import annotations

import json
import os
import signal
import socket
import threading
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.commands import invoke
from support.sources import feeding_driver
from support.sources.feeding_driver import events, expected, rows_of
from support.sources.kafka_cluster import KafkaCluster
from support.sources.nats_server import NatsServer

import specstream as ss
from specstream.cli.from_source import source_of

TARGET = f"{feeding_driver.__file__}:chain"


def run(directory: Path, origin: object, *options: object) -> dict[str, Any]:
    """The summary of a run that goes well."""
    out = directory / "out"
    done = invoke("run", TARGET, "--from", origin, "--output", out, "--json", *options)
    assert done.exit_code in (0, 143), done.output
    summary: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**summary, "status": done.exit_code}


def stop_when(directory: Path, rows: int) -> threading.Thread:
    """Sends this process SIGTERM when the sink has so many rows."""

    def work() -> None:
        while rows_of(directory).num_rows < rows:
            time.sleep(0.02)
        os.kill(os.getpid(), signal.SIGTERM)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_a_run_over_files_goes_on_with_those_that_have_come(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    options = ("--checkpoint", tmp_path / "state", "--keep-batches", 3)
    for number in range(2):
        table = pa.Table.from_pylist(events(100 * number, 100))
        pq.write_table(table, tmp_path / "in" / f"{number}.parquet")
        summary = run(tmp_path, tmp_path / "in", *options)
        assert (summary["rows_in"], summary["after_batch"]) == (100, [None, 0][number])
    assert rows_of(tmp_path).equals(expected(200))
    done = invoke("replay", tmp_path / "state", "--batch", 1)
    assert done.exit_code == 0, done.output
    done = invoke("state", tmp_path / "state", "--field", "hash")
    assert done.exit_code == 0, done.output
    done = invoke("checkpoint", "list", tmp_path / "state")
    assert done.exit_code == 0, done.output
    done = invoke("checkpoint", "rollback", tmp_path / "state", "--to", 0)
    assert done.exit_code == 0, done.output
    assert "the checkpoint is at batch 0" in done.stdout
    assert str(tmp_path / "out" / "part-00000001.parquet") in done.stdout
    (tmp_path / "out" / "part-00000001.parquet").unlink()
    assert run(tmp_path, tmp_path / "in", *options)["rows_in"] == 100
    assert rows_of(tmp_path).equals(expected(200))
    other = tmp_path / "other"
    other.mkdir()
    pq.write_table(table, other / "0.parquet")
    done = invoke("run", TARGET, "--from", other, "--output", tmp_path / "out", *options)
    assert done.exit_code == 1
    assert "--from was " in done.output


HALVES = """
import specstream as ss

@ss.operator(event={"x": int}, emits={"half": int})
def halves(event, emit):
    emit(4 // event.x)
"""


def test_a_run_that_has_ended_with_a_failing_event_goes_on_with_errors(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    for number, x in enumerate([[1], [2, 0]]):
        pq.write_table(pa.table({"x": x}), tmp_path / "in" / f"{number}.parquet")
        os.utime(tmp_path / "in" / f"{number}.parquet", (number, number))
    (tmp_path / "halves.py").write_text(HALVES)
    command = (
        "run", f"{tmp_path / 'halves.py'}:halves", "--from", tmp_path / "in",
        "--output", tmp_path / "out", "--checkpoint", tmp_path / "state",
    )  # fmt: skip
    assert "ZeroDivisionError" in invoke(*command).output
    used = invoke(*command, "--errors", tmp_path / "out")
    assert used.exit_code == 1
    assert "--errors" in used.output
    failed = tmp_path / "failed"
    went = invoke(*command, "--errors", failed)
    assert went.exit_code == 0, went.output
    assert rows_of(tmp_path)["half"].to_pylist() == [4, 2]
    assert pq.read_table(failed)["x"].to_pylist() == [0]
    # From here on it belongs to the run, which needs no other, and may go on without.
    assert "--errors was " in invoke(*command, "--errors", tmp_path / "others").output
    output = invoke("checkpoint", "rollback", tmp_path / "state", "--to", 0, "--dry-run").stdout
    assert str(failed / "part-00000001.parquet") in output
    # Not while the last batch may have to be given to it once more.
    refused = " ".join(invoke(*command).output.split())
    assert "were recorded for a sink: give errors_to= (specstream run: --errors) as be" in refused
    for number, last in (2, 4), (3, 0):
        pq.write_table(pa.table({"x": [last]}), tmp_path / "in" / f"{number}.parquet")
        if last:
            went = invoke(*command, "--errors", failed)
            assert went.exit_code == 0, went.output
    assert "ZeroDivisionError" in invoke(*command).output
    assert rows_of(tmp_path)["half"].to_pylist() == [4, 2, 1]
    assert invoke(*command, "--errors", tmp_path / "others").exit_code == 0
    assert rows_of(tmp_path)["half"].to_pylist() == [4, 2, 1]
    assert pq.read_table(failed)["x"].to_pylist() == [0]
    assert pq.read_table(tmp_path / "others")["x"].to_pylist() == [0]


def test_a_run_whose_record_is_lost_goes_on_with_the_options_of_its_start(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "in" / "0.parquet")
    (tmp_path / "halves.py").write_text(HALVES)
    command = (
        "run", f"{tmp_path / 'halves.py'}:halves", "--from", tmp_path / "in",
        "--output", tmp_path / "out", "--checkpoint", tmp_path / "state",
    )  # fmt: skip
    assert invoke(*command).exit_code == 0
    record = tmp_path / "state" / "run.json"
    before = record.read_text()
    record.write_text(before[:-20])
    refused = invoke(*command).output
    assert "run.json in" in refused
    assert "or remove it, and start the run with the options that it had" in refused
    record.unlink()
    pq.write_table(pa.table({"x": [2]}), tmp_path / "in" / "1.parquet")
    with pytest.warns(UserWarning, match=r"run.json is not there; the options of this start"):
        assert invoke(*command).exit_code == 0
    assert rows_of(tmp_path)["half"].to_pylist() == [4, 2]
    assert record.read_text() == before


def test_a_lost_checkpoint_is_named_beside_the_rows_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"x": [1]}), tmp_path / "in" / "0.parquet")
    (tmp_path / "halves.py").write_text(HALVES)
    command = (
        "run", f"{tmp_path / 'halves.py'}:halves", "--from", tmp_path / "in",
        "--output", tmp_path / "out", "--checkpoint", tmp_path / "state",
    )  # fmt: skip
    assert invoke(*command).exit_code == 0
    (tmp_path / "state").rename(tmp_path / "away")
    refused = " ".join(invoke(*command).output.split())
    assert "there are Parquet files in it already; name a new or empty directory; or" in refused
    assert "which has no batch, is another directory than before, or lost" in refused


@pytest.mark.parametrize("kind", ["nats", "kafka"])
def test_a_run_over_messages_ends_by_a_signal(
    kind: str, request: pytest.FixtureRequest, stream: str, tmp_path: Path
) -> None:
    if kind == "nats":
        server: NatsServer = request.getfixturevalue("nats_server")
        server.make_stream(stream, [f"{stream}.>"])
        server.publish(f"{stream}.eu", events(0, 80))
        origin = f"{server.url}/{stream}/{stream}.eu?start=earliest"
    else:
        brokers: KafkaCluster = request.getfixturevalue("brokers")
        brokers.publish(stream, events(0, 80))
        origin = f"kafka://{brokers.servers}/{stream}?group=g"
    stopping = stop_when(tmp_path, 80)
    summary = run(tmp_path, origin, "--checkpoint", tmp_path / "state")
    stopping.join()
    assert (summary["rows_in"], summary["status"], summary["stopped"]) == (80, 143, True)
    assert rows_of(tmp_path).equals(expected(80))


def test_lines_of_tcp(tmp_path: Path) -> None:
    content = b"".join(json.dumps(one).encode() + b"\n" for one in events(0, 50))
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            for _ in range(2):
                connection, _ = server.accept()
                with connection:
                    connection.sendall(content)

        threading.Thread(target=send, daemon=True).start()
        origin = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        assert run(tmp_path, origin)["rows_in"] == 50
        assert rows_of(tmp_path).equals(expected(50))
        kept = tmp_path / "kept"
        options = ("--checkpoint", tmp_path / "state")
        done = invoke("run", TARGET, "--from", origin, "--output", kept / "out", *options)
        assert done.exit_code == 1
        assert "cannot send again" in done.output
        # What it advises is an option of the command.
        assert "(specstream run: --at-most-once)" in " ".join(done.output.split())
        assert run(kept, origin, *options, "--at-most-once")["rows_in"] == 50
        assert rows_of(kept).equals(expected(50))


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--from", "nowhere"], "--from nowhere: there is no such file; expected nats://"),
        (["--from", "amqp://host/queue"], "--from amqp://host/queue: expected nats://"),
        (["--from", "nats://host:1"], "--from nats://host:1: expected nats://HOST:PORT/STREAM"),
        (["--from", "kafka://host:1"], "--from kafka://host:1: expected kafka://HOST:PORT/TOPIC"),
        (["--from", "tcp://host"], "--from tcp://host: expected tcp://HOST:PORT"),
        (["--from", "tcp://host:1?start=x"], "start= is not one of the options format, listen"),
        (["--from", ".", "--input", "."], "--from and --input both say where"),
        (["--source", "nats://host:1"], "--from nats://host:1: expected nats://HOST:PORT/STREAM"),
        (["--from", ".", "--source", "nats://h:1/S"], "--from and --source both say where"),
        (["--from", ".", "--at-most-once"], "--at-most-once is for events of --from that"),
        (["--input", ".", "--at-most-once"], "--at-most-once is for events of --from that"),
        (
            ["--from", ".", "--max-files-per-trigger", "1"],
            "--max-files-per-trigger applies to Spark",
        ),
        ([], "Missing option '--input' or '--from'"),
        (["--input", "."], "Missing option '--order-by'"),
    ],
)
def test_what_cannot_be_is_told(options: list[str], told: str, tmp_path: Path) -> None:
    done = invoke("run", TARGET, "--output", tmp_path / "out", *options)
    assert done.exit_code == 2
    assert told in " ".join(done.output.split())


def test_files_that_are_no_parquet_are_told_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("time,x\n1,2\n")

    def told(origin: object, status: int) -> str:
        done = invoke("run", TARGET, "--from", origin, "--output", tmp_path / "out")
        assert done.exit_code == status, done.output
        assert 'ss.sources.dataset("in.csv", format="csv")' in " ".join(done.output.split())
        return " ".join(done.output.split())

    assert "in.csv cannot be read as Parquet (" in told(path, 1)
    assert "cannot be read as Parquet (" in told(tmp_path, 1)  # a directory of such
    assert f"format= is an option, and files have none: give --from {path}." in told(
        f"{path}?format=csv", 2
    )


def test_a_value_that_an_option_cannot_have_is_told() -> None:
    with pytest.raises(ss.ConfigurationError, match="start='now'; expected one of earliest"):
        source_of("nats://127.0.0.1:4222/ORDERS?start=now")


def test_what_the_operator_raises_is_shown_by_its_own_lines(tmp_path: Path) -> None:
    """A poison event once was below 25 frames of the package."""
    (tmp_path / "poison.py").write_text(
        "import specstream as ss\n\n\n"
        '@ss.operator(event={"x": int}, emits={"x": int})\n'
        "def halves(event, emit):\n"
        "    if event.x == 3:\n"
        '        raise ValueError("three")\n'
        "    emit(event.x // 2)\n"
    )
    pq.write_table(pa.table({"x": [1, 2, 3]}), tmp_path / "in.parquet")
    directories = ("--output", tmp_path / "out", "--checkpoint", tmp_path / "checkpoint")
    done = invoke(
        "run", f"{tmp_path}/poison.py:halves", "--from", tmp_path / "in.parquet", *directories
    )
    assert done.exit_code == 1
    frames = [line for line in done.stderr.splitlines() if line.startswith("  File ")]
    assert frames == [f'  File "{tmp_path}/poison.py", line 7, in halves']
    assert "raised by operator 'halves' at event" in done.stderr

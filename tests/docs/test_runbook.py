"""The run book's commands, typed against runs that are really broken, and the messages it quotes.

The commands are taken from the page, section by section: a run is broken as the section says, must
say what the section quotes, and must be whole again when the commands have been typed.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import linecache
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import textwrap
import time
import traceback
import warnings
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support import processes
from support.commands import invoke

PAGE = Path(__file__).parents[2] / "docs" / "runbook.md"
LIFE_SECONDS = 400
FILES, ROWS = 4, 50
POISON = 2 * ROWS + 7

OPERATOR = """
import specstream as ss


class Top(ss.State):
    seen = ss.scalar(int)
    counts = ss.dict(int, int)


@ss.operator(
    state=Top, event={"item": int, "parts": int}, emits={"item": int, "count": int, "share": int}
)
def top(state, event, emit):
    state.seen += 1
    count = state.counts.get(event.item, 0) + 1
    state.counts[event.item] = count
    emit(event.item, count, 100 // event.parts)
"""
RUN = (
    "run op.py:top --from in --order-by time --output rows --checkpoint checkpoint --keep-batches 4"
)
JOB = """
from pathlib import Path

from specstream.cli import main

main(Path("options").read_text().split())
"""
SPARK_JOB = """
import specstream as ss
from op import top

session = ss.spark.local_session("run book")
rows = session.readStream.schema("time long, item long, parts long")
rows = rows.option("maxFilesPerTrigger", 1).parquet("in")
feed = ss.spark.foreach_batch(
    ss.Engine(top), order_by="time", to=ss.sinks.parquet_sink("rows"), checkpoint="checkpoint",
    keep_batches=4,
)
query = rows.writeStream.foreachBatch(feed).option("checkpointLocation", "spark")
query.trigger(availableNow=True).start().awaitTermination()
feed.close()
"""


def sections() -> dict[str, str]:
    """The text of each section of the page, by its heading."""
    _, *texts = re.split(r"^## ", PAGE.read_text(), flags=re.MULTILINE)
    return {text.partition("\n")[0]: text.partition("\n")[2] for text in texts}


def commands(section: str) -> list[str]:
    """The blocks of commands of a section."""
    blocks = re.findall(r"^( *)```sh\n(.*?)^ *```$", sections()[section], re.DOTALL | re.MULTILINE)
    return [textwrap.dedent(block) for _, block in blocks]


def quoted(section: str) -> list[str]:
    """What the section quotes as a message, in the order of the page."""
    return re.findall(r"^- `([^`]+)`(?: \(.*\))?$", sections()[section], re.MULTILINE)


def says(error: str, quote: str) -> bool:
    """Whether a message is that of the page, but for names and numbers."""
    parts = re.split(r"'[^']*'|[\d,]*\d|\.\.\.", quote)
    pattern = r"('[^']*'|[\d,]*\d|.*)".join(map(re.escape, parts))
    return re.search(pattern, error) is not None


class Top:
    """A run in a directory that is the page's ``/data/top``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir()
        (path.parent / "copy").mkdir()
        (path / "in").mkdir()
        (path / "op.py").write_text(OPERATOR)
        (path / "fixed.py").write_text(OPERATOR.replace("100 // event.parts", "100"))
        (path / "job.py").write_text(JOB)
        self.options("")
        for number in range(FILES):
            self.write(number)

    def options(self, text: str) -> None:
        """Further options of the program, or other values of those that it has."""
        words = RUN.split()
        for name in text.split():
            if name in words:
                at = words.index(name)
                del words[at : at + 2]
        (self.path / "options").write_text(" ".join(words + text.split()))

    def write(self, number: int, **changed: object) -> None:
        """An input file; a column may have other values, or, for None, be left out."""
        times = range(number * ROWS, (number + 1) * ROWS)
        columns = {"time": list(times), "item": [n % 7 for n in times], "parts": [1] * ROWS}
        given = {**columns, **changed}
        table = pa.table({name: of for name, of in given.items() if of is not None})
        pq.write_table(table, self.path / "in" / f"{number}.parquet")

    def poison(self) -> None:
        parts = [0 if n == POISON % ROWS else 1 for n in range(ROWS)]
        self.write(POISON // ROWS, parts=parts)

    def put_in(self, command: str) -> str:
        """A command of the page, with the place of this run."""
        command = command.replace("/data/", f"{self.path.parent}/")
        if not (self.path / "spark").exists():
            command = command.replace(" --spark", "").replace(f" {self.path / 'spark'}", "")
        return command

    def start(self, command: str, **more: str) -> subprocess.Popen[str]:
        """Types commands into a shell."""
        shell = 'specstream() { "$PYTHON" -m specstream.cli "$@"; }; python() { "$PYTHON" "$@"; }\n'
        return subprocess.Popen(
            ["bash", "-c", shell + self.put_in(command)],
            cwd=self.path,
            env=processes.environment(PYTHON=sys.executable, **more),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def type(self, commands: str, *, keys: str = "", **more: str) -> tuple[int, str]:
        """The status of the first command that fails, and what was written until then.

        The command line is called in this process, which spares importing it each time; what has
        to die, or is no command of specstream, runs in a shell.
        """
        texts = []
        lines = [commands] if "\n  " in commands or commands.startswith("until") else None
        for line in lines or commands.strip().splitlines():
            words = shlex.split(self.put_in(line))
            if words == ["python", "job.py"] and (self.path / "job.py").read_text() == JOB:
                words = ["specstream", *(self.path / "options").read_text().split()]
            if words[0] == "specstream" and not more and "--pdb" not in words:
                status, text = self.called(words[1:], keys)
            else:
                process = self.start(line, **more)
                text = "".join(process.communicate(keys, timeout=LIFE_SECONDS))
                status = process.returncode
            texts.append(text)
            if status:
                break
        return status, "\n".join(texts)

    def called(self, words: list[str], keys: str) -> tuple[int, str]:
        linecache.clearcache()  # files of that name have changed
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            result = invoke(*words, input=keys)
        texts = [result.output, *(str(one.message) for one in warned)]
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            texts += traceback.format_exception(result.exception)
        return result.exit_code, "\n".join(texts)

    def fails(self, quote: str, command: str = "python job.py") -> str:
        """The program says what the page quotes, and nothing of the batch is in the output."""
        status, text = self.type(command)
        assert status != 0
        assert says(text, quote), text
        return text

    def succeeds(self, command: str, **more: str) -> str:
        status, text = self.type(command, **more)
        assert status == 0, text
        return text

    def listed(self) -> str:
        return self.succeeds("specstream checkpoint list /data/top/checkpoint")

    def assert_is_whole(self, rows: int = FILES * ROWS) -> None:
        """The output of a run that nothing has happened to, each row once, in its order."""
        parts = [pq.read_table(path) for path in sorted((self.path / "rows").glob("part-*"))]
        found = pa.concat_tables(parts)
        items = found.column("item").to_pylist()
        seen: dict[int, int] = {}
        for item, count in zip(items, found.column("count").to_pylist(), strict=True):
            seen[item] = seen.get(item, 0) + 1
            assert count == seen[item]
        assert len(items) == rows
        status, text = self.type("specstream checkpoint verify /data/top/checkpoint")
        assert status == 0, text


@pytest.fixture
def top(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Top:
    made = Top(tmp_path / "top")
    monkeypatch.chdir(made.path)
    return made


pytestmark = pytest.mark.slow


def test_each_quote_is_found_for_what_it_is() -> None:
    quote = "column 'x' has 1 null(s), the first in row 1"
    assert says(
        "RowError: operator 'a': column 'item' has 31 null(s), the first in row 7: x", quote
    )
    assert not says("column 'item' has type string", quote)


def test_the_words_of_the_index_lead_to_sections() -> None:
    anchors = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in sections()}
    links = re.findall(r"\]\(#([\w-]+)\)", PAGE.read_text())
    assert len(links) > 30
    assert set(links) <= anchors
    index = sections()["The query failed at night"].lower()
    for word in ("failover", "poison", "dead letter", "backpressure"):
        assert f"[{word}" in index
        assert any(word in heading.lower() for heading in sections())


def test_a_killed_process_goes_on(top: Top) -> None:
    status, _ = top.type("python job.py", SPECSTREAM_CRASH="before-sink@2",
                         SPECSTREAM_CRASH_LOG=str(top.path / "crashes"))  # fmt: skip
    assert status == 128 + signal.SIGKILL
    again, remove = commands("The process was killed")
    top.succeeds(again)
    top.assert_is_whole()
    # What Spark leaves of a first batch, and what it needs.
    offsets = top.path / "spark" / "offsets"
    offsets.mkdir(parents=True)
    for name in (".0.ab1.tmp", "..0.ab1.tmp.crc", ".0.crc", "0"):
        (offsets / name).touch()
    top.succeeds(remove)
    assert {path.name for path in offsets.iterdir()} == {".0.crc", "0"}


def test_a_poison_event_is_found_and_corrected(top: Top) -> None:
    section = "One event fails each time: poison"
    top.poison()
    top.fails(quoted(section)[0])
    night = commands("The query failed at night")
    top.succeeds(night[0])
    assert f"batch {POISON // ROWS} is not recorded" in top.succeeds(night[1])
    look, start = commands(section)
    replay, pdb = look.splitlines()
    assert "raises what the record says" in top.succeeds(replay)
    _, stopped = top.type(pdb, keys="c\np event.parts\nq\n")
    assert "ZeroDivisionError" in stopped
    check, job = start.splitlines()
    assert f"{ROWS} of {ROWS} events" in top.type(check)[1]
    shutil.copy(top.path / "fixed.py", top.path / "op.py")
    top.succeeds(job)
    top.assert_is_whole()


def test_failed_events_are_counted_by_error(top: Top) -> None:
    section = "Failed events: the dead letter queue"
    top.poison()
    top.options("--errors failed --errors-limit 0")
    top.fails(quoted(section)[0])
    top.options("--errors failed --errors-limit 10")
    top.succeeds("python job.py")
    (count,) = commands(section)
    assert re.search(r"ZeroDivisionError .*zero +1\b", top.succeeds(count))
    top.assert_is_whole(FILES * ROWS - 1)


@pytest.mark.parametrize(
    ("quote", "changed"),
    [
        (0, {"item": [None, *range(1, ROWS)]}),
        (1, {"item": [str(n) for n in range(ROWS)]}),
        (2, {"item": None, "items": list(range(ROWS))}),
        (2, {"time": None, "at": list(range(ROWS))}),
    ],
)
def test_rows_that_cannot_be_events_are_corrected(
    top: Top, quote: int, changed: dict[str, object]
) -> None:
    section = "Rows cannot be events"
    top.write(2, **changed)
    text = top.fails(quoted(section)[quote])
    assert "Traceback" in text or "Error" in text
    top.write(2)
    (again,) = commands(section)
    top.succeeds(again)
    top.assert_is_whole()


def test_late_events_are_left_out(top: Top) -> None:
    times = [1, *range(2 * ROWS + 1, 3 * ROWS)]
    top.write(2, time=times)
    top.options("--watermark 2")
    # In a process of its own, with which the engine goes in which events wait.
    status, text = top.type("python job.py", PYTHONUNBUFFERED="1")
    assert status != 0
    assert says(text, quoted("Events are late")[0]), text
    top.options("--watermark 2 --late drop")
    top.succeeds("python job.py")
    top.assert_is_whole(FILES * ROWS - 1)


@pytest.fixture
def small(top: Top) -> Iterator[Path]:
    """A file system of 8 KiB, where ``rows`` are to be."""
    place = top.path / "rows"
    place.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(place)], capture_output=True
    )
    if done.returncode:
        pytest.skip("a small file system cannot be mounted here: it takes root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_gets_room(top: Top, small: Path) -> None:
    section = "A disk is full"
    (quote,) = quoted(section)
    text = top.fails(quote.partition(" (")[0])
    assert "make room there" in text
    subprocess.run(["mount", "-o", "remount,size=4m", str(small)], check=True)
    (block,) = commands(section)
    lines = block.splitlines()
    top.succeeds("\n".join(line for line in lines if "compact" not in line))
    top.assert_is_whole()
    compact = next(line for line in lines if "compact" in line)
    shutil.copytree(small, top.path / "elsewhere")
    top.succeeds(compact.replace("/data/top/rows", "/data/top/elsewhere"))


def test_a_sink_that_fails_gets_the_same_rows(top: Top) -> None:
    section = "A sink fails"
    top.type("python job.py", SPECSTREAM_CRASH="before-sink@1",
             SPECSTREAM_CRASH_LOG=str(top.path / "crashes"))  # fmt: skip
    obstacle = top.path / "rows" / "part-00000002.parquet"
    (obstacle / "in").mkdir(parents=True)
    top.fails(quoted(section)[0])
    shutil.rmtree(obstacle)
    (again,) = commands(section)
    top.succeeds(again)
    top.assert_is_whole()


def test_a_damaged_file_is_found_and_left_behind(top: Top) -> None:
    section = "A checkpoint file is damaged"
    top.succeeds("python job.py")
    files = top.path / "checkpoint" / "specstream"
    damaged = files / "0000000003.increment"
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 1
    damaged.write_bytes(content)
    text = top.fails(quoted(section)[1])
    assert says(text, quoted(section)[0])
    (verify,) = commands(section)
    status, text = top.type(verify)
    assert (status, "after batch 2" in text) == (1, True)
    back, again = commands("Back to an earlier batch")
    look, roll = (line.replace("--to 11", "--to 2") for line in back.splitlines())
    assert "part-00000003.parquet" in top.succeeds(look)
    assert damaged.exists()
    top.succeeds(roll)
    (top.path / "rows" / "part-00000003.parquet").unlink()
    top.succeeds(again)
    top.assert_is_whole()


def test_a_lost_checkpoint_is_begun_anew(top: Top) -> None:
    section = "The checkpoint is lost"
    top.succeeds("python job.py")
    shutil.rmtree(top.path / "checkpoint")
    top.fails(quoted(section)[2])
    (doctor,) = commands(section)
    assert "/checkpoint" in top.type(doctor)[1]
    (anew,) = commands("Begun anew")
    top.succeeds(anew)
    top.assert_is_whole()
    for file in (top.path / "checkpoint" / "specstream").glob("0*.*"):
        file.write_bytes(b"x")
    top.fails(quoted("A checkpoint file is damaged")[2])


@pytest.fixture
def driver(top: Top) -> Iterator[tuple[subprocess.Popen[str], socket.socket]]:
    """A driver that runs until it is ended, as its source has nothing to send; and the source."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        top.options(f"--from tcp://127.0.0.1:{port} --at-most-once --order-by item")
        process = subprocess.Popen(
            [sys.executable, "job.py"],
            cwd=top.path,
            env=processes.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        server.settimeout(LIFE_SECONDS)
        connection, _ = server.accept()
        lock = top.path / "checkpoint" / "specstream" / "lock"
        deadline = time.monotonic() + LIFE_SECONDS
        while not lock.exists():
            assert process.poll() is None, process.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.05)  # looks again
        yield process, server
        connection.close()
        process.kill()
        process.wait()


def test_a_driver_that_still_runs_is_ended(
    top: Top, driver: tuple[subprocess.Popen[str], socket.socket]
) -> None:
    process, source = driver
    section = "The checkpoint is in use"
    text = top.fails(quoted(section)[0])
    assert f"process {process.pid}" in text
    (block,) = commands(section)
    # A standby, meanwhile, waits until it can take over.
    (loop,) = commands("Failover to another host")
    standby = top.start(loop)
    look, end = (line.replace("849", str(process.pid)) for line in block.splitlines())
    assert "job.py" in top.succeeds(look)
    top.succeeds(end)
    assert process.wait(LIFE_SECONDS) == 128 + signal.SIGTERM
    connection, _ = source.accept()
    connection.close()  # its source ends
    _, err = standby.communicate(timeout=LIFE_SECONDS)
    assert standby.returncode == 0, err


def test_an_event_that_never_ends_is_killed_and_nothing_is_lost(top: Top) -> None:
    hangs = OPERATOR.replace(
        "    emit(", "    while event.parts == 0:\n        state.seen += 1\n    emit("
    )
    (top.path / "op.py").write_text(hangs)
    top.poison()
    process = subprocess.Popen(
        [sys.executable, "job.py"],
        cwd=top.path,
        env=processes.environment(),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    batch = POISON // ROWS
    kept = top.path / "checkpoint" / "specstream" / f"{batch:010d}.input"
    deadline = time.monotonic() + LIFE_SECONDS
    while not kept.exists():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)  # looks again
    (top.path / "op.py").write_text(OPERATOR)
    top.write(batch)
    _, kill, again = commands("It hangs")
    top.succeeds(kill.replace("849", str(process.pid)))
    assert process.wait(LIFE_SECONDS) == -signal.SIGKILL
    top.succeeds(again)
    top.assert_is_whole()


def test_what_has_grown_is_seen_in_the_state(top: Top) -> None:
    top.succeeds("python job.py")
    (look,) = commands("Memory grows, or the process is killed for it")
    assert "counts" in top.succeeds(look)


@pytest.mark.parametrize(
    ("quote", "operator", "options"),
    [
        (0, OPERATOR, "--order-by item"),
        (1, OPERATOR.replace("seen", "count_"), ""),
    ],
)
def test_after_a_deployment_the_old_version_runs(
    top: Top, quote: int, operator: str, options: str
) -> None:
    section = "It does not start after a deployment"
    top.succeeds("python job.py")
    top.write(FILES)
    (top.path / "op.py").write_text(operator)
    top.options(options)
    # The option of the command in place of that of the function.
    top.fails(quoted(section)[quote].replace("order_by", "--order-by"))
    (top.path / "op.py").write_text(OPERATOR)
    top.options("")
    top.succeeds("python job.py")
    top.assert_is_whole((FILES + 1) * ROWS)


def test_a_batch_is_replayed_alone(top: Top) -> None:
    top.succeeds("python job.py")
    (block,) = commands("A batch once more, alone")
    block = block.replace("--batch 12", "--batch 2")
    plain, debugged, fixed = block.splitlines()
    assert top.type(plain)[0] == 0
    debugged = debugged.replace("--event 345", "--event 7")
    assert "item=" in top.type(debugged, keys="q\n")[1]
    assert top.type(fixed)[0] == 0, "100 // 1 is 100"


@pytest.mark.spark
def test_two_checkpoints_that_do_not_belong_together_are_taken_back(top: Top) -> None:
    section = "The two checkpoints do not belong together"
    (top.path / "job.py").write_text(SPARK_JOB)
    top.succeeds("python job.py")
    files = top.path / "checkpoint"
    for file in files.glob("000000000[23].*"):
        file.unlink()
    top.write(FILES)
    top.fails(quoted(section)[0])
    (block,) = commands(section)
    verify, dry_run = block.splitlines()
    assert top.type(verify)[0] == 1
    assert "batch 1" in top.succeeds(dry_run)
    back, again = commands("Back to an earlier batch")
    _, roll = (line.replace("--to 11", "--to 1") for line in back.splitlines())
    assert "part-00000003.parquet" in top.succeeds(roll)
    for number in (2, 3):
        (top.path / "rows" / f"part-{number:08d}.parquet").unlink()
    top.succeeds(again)
    top.assert_is_whole((FILES + 1) * ROWS)
    # And one of the two gone.
    shutil.rmtree(files)
    top.write(FILES + 1)
    top.fails(quoted("The checkpoint is lost")[0])

"""Arrow datasets as a source: files in order, from the row where a run was."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pds
import pyarrow.parquet as pq
import pytest
from support.sources.feeding_driver import chain, events, expected, rows_of

import specstream as ss
from specstream.sources.options import RunOptions
from specstream.sources.running import SourceFeed


def write(directory: Path, number: int, first: int, count: int) -> Path:
    directory.mkdir(exist_ok=True)
    path = directory / f"{number:03d}.parquet"
    pq.write_table(pa.Table.from_pylist(events(first, count)), path)
    return path


def run(directory: Path, source: Any, **options: Any) -> Any:
    with ss.Engine(chain, threads=2, horizon=4) as engine:
        return ss.sources.run(
            engine,
            source,
            to=ss.sinks.parquet_sink(directory / "out"),
            checkpoint=directory / "recorded",
            max_rows=40,
            **options,
        )


def test_a_run_goes_on_behind_the_row_where_it_was(tmp_path: Path) -> None:
    for number in range(3):
        write(tmp_path / "in", number, 100 * number, 100)

    class Stopped(Exception):
        pass

    def stopping(table: pa.Table, batch_id: int) -> None:
        if batch_id == 3:
            raise Stopped
        sink(table, batch_id)

    sink = ss.sinks.parquet_sink(tmp_path / "out")
    with ss.Engine(chain) as engine, pytest.raises(Stopped) as raised:
        ss.sources.run(
            engine,
            ss.sources.dataset(tmp_path / "in"),
            to=stopping,
            checkpoint=tmp_path / "recorded",
            max_rows=40,
        )
    (note,) = [one for one in raised.value.__notes__ if "000" in one or "001" in one]
    assert "raised by batch 3: rows 0 to 39 of" in note
    assert "001.parquet" in note
    done = run(tmp_path, ss.sources.dataset(tmp_path / "in"))
    assert done.events == 300 - 140
    assert rows_of(tmp_path).equals(expected(300))
    # What comes later is a part of the same stream.
    write(tmp_path / "in", 7, 300, 50)
    done = run(tmp_path, ss.sources.dataset(tmp_path / "in"))
    assert done.events == 50
    assert rows_of(tmp_path).equals(expected(350))


def test_files_that_come_in_front_or_are_gone_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "in", 5, 0, 100)
    run(tmp_path, ss.sources.dataset(tmp_path / "in"))
    write(tmp_path / "in", 1, 100, 10)
    with pytest.raises(ss.SourceError, match=r"file 0, '.*005.parquet', and .* '.*001.parquet'"):
        run(tmp_path, ss.sources.dataset(tmp_path / "in"))
    (tmp_path / "in" / "001.parquet").unlink()
    pq.write_table(pa.Table.from_pylist(events(0, 60)), path)
    with pytest.raises(ss.SourceError, match=r"has 40 row\(s\) less"):
        run(tmp_path, ss.sources.dataset(tmp_path / "in"))


def test_fewer_files_than_were_read_are_told(tmp_path: Path) -> None:
    paths = [write(tmp_path / "in", number, 100 * number, 100) for number in range(2)]
    run(tmp_path, ss.sources.dataset(tmp_path / "in"))
    paths[1].unlink()
    with pytest.raises(ss.SourceError, match=r"001.parquet', and the number of files is 1 now"):
        run(tmp_path, ss.sources.dataset(tmp_path / "in"))


def test_files_are_the_same_however_the_directory_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in", 0, 0, 100)
    (tmp_path / "link").symlink_to("in")
    monkeypatch.chdir(tmp_path)
    assert run(tmp_path, ss.sources.dataset("in")).events == 100
    monkeypatch.chdir(tmp_path / "in")
    for number, name in enumerate([".", tmp_path / "in", "../in", "../link"], 1):
        write(tmp_path / "in", number, 100 * number, 100)
        assert run(tmp_path, ss.sources.dataset(name)).events == 100
    assert rows_of(tmp_path).equals(expected(500))


@pytest.mark.parametrize("kind", ["table", "dataset", "ipc"])
def test_tables_and_other_datasets(kind: str, tmp_path: Path) -> None:
    table = pa.Table.from_pylist(events(0, 100))
    table = table.append_column("unread", pa.array(range(100)))
    if kind == "ipc":
        pds.write_dataset(table, tmp_path / "in", format="ipc")
        source = ss.sources.dataset(tmp_path / "in", format="ipc")
    else:
        source = ss.sources.dataset(table if kind == "table" else pds.dataset(table))
    run(tmp_path, source)
    assert rows_of(tmp_path).equals(expected(100))


def test_a_column_that_is_missing_is_told_before_anything_runs(tmp_path: Path) -> None:
    source = ss.sources.dataset(pa.table({"x": [1]}))
    with pytest.raises(ss.InputError, match=r"reads column 'name', .* \(columns: x\)"):
        run(tmp_path, source)


def test_files_that_cannot_be_read_are_named_with_what_to_do(tmp_path: Path) -> None:
    write(tmp_path / "events", 0, 0, 100)
    with pytest.raises(ss.ConfigurationError, match=r"no such .* \(did you mean '.*/events'\?\)$"):
        ss.sources.dataset(tmp_path / "event")
    with pytest.raises(ss.ConfigurationError, match=r"no such file or directory$"):
        ss.sources.dataset(tmp_path / "nowhere" / "at all")
    (whole,) = (tmp_path / "events").iterdir()
    whole.write_bytes(whole.read_bytes()[:100])
    said = r"format= is .parquet., .ipc., .csv.(?s:.*) incomplete, write it again or take it out"
    with pytest.raises(ss.ConfigurationError, match=said):
        ss.sources.dataset(whole)


def test_a_path_is_no_source_and_says_which_one_reads_it() -> None:
    said = r"such as ss.sources.nats\(...\), or ss.sources.dataset\('in'\) for files"
    with ss.Engine(chain) as engine, pytest.raises(ss.ConfigurationError, match=said):
        ss.sources.run(engine, "in", to=lambda rows, batch: None)


def test_a_stream_that_has_ended_takes_nothing_more(tmp_path: Path) -> None:
    write(tmp_path / "in", 0, 0, 100)
    options: dict[str, Any] = {"order_by": "x", "watermark": 10}
    run(tmp_path, ss.sources.dataset(tmp_path / "in"), **options, finish=False)
    assert rows_of(tmp_path).equals(expected(90))  # the others wait
    run(tmp_path, ss.sources.dataset(tmp_path / "in"), **options)
    assert rows_of(tmp_path).equals(expected(100))
    run(tmp_path, ss.sources.dataset(tmp_path / "in"), **options)  # nothing has come
    assert rows_of(tmp_path).equals(expected(100))
    write(tmp_path / "in", 1, 100, 10)
    with pytest.raises(ss.ConfigurationError, match=r"has ended .*001.parquet.*finish=False"):
        run(tmp_path, ss.sources.dataset(tmp_path / "in"), **options)


def batches_of(source: Any, **options: Any) -> list[int]:
    """How many rows each micro-batch has."""
    counts: list[int] = []
    with ss.Engine(chain, threads=1, horizon=0) as engine:
        ss.sources.run(
            engine, source, to=lambda rows, batch_id: counts.append(engine.stats.events), **options
        )
    return [after - before for before, after in itertools.pairwise([0, *counts])]


@pytest.mark.parametrize("max_wait", [0, 10])
@pytest.mark.parametrize("row_group", [1, 7, 100])
def test_batches_are_the_same_whatever_the_row_groups(
    row_group: int, max_wait: float, tmp_path: Path
) -> None:
    table = pa.Table.from_pylist(events(0, 60))
    for number in range(2):
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=row_group)
    found = batches_of(ss.sources.dataset(tmp_path), max_rows=25, max_wait=max_wait)
    assert found == [25, 25, 10] * 2
    pieces = pa.concat_tables(
        [table.slice(at, row_group) for at in range(0, table.num_rows, row_group)]
    )
    found = batches_of(ss.sources.dataset(pieces), max_rows=25, max_wait=max_wait)
    assert found == [25, 25, 10]


def test_a_position_within_a_row_group_goes_on_there(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(events(0, 60))
    path = tmp_path / "0.parquet"
    pq.write_table(table, path, row_group_size=7)
    source = ss.sources.dataset(tmp_path)
    with ss.Engine(chain) as engine:
        wanted = SourceFeed(engine, source, RunOptions(to=lambda rows, batch_id: None))._wanted
    for done in (5, 7, 13, 59):
        source.open(wanted, {"number": 0, "path": str(path), "rows": done})
        rows = source.read(25, 0, 0)
        assert rows is not None
        assert (
            rows.table.column(0).to_pylist()
            == (
                wanted.chosen(table)
                .column(rows.table.column_names[0])
                .to_pylist()[done : done + 25]
            )
        )
        assert rows.position["rows"] == min(done + 25, 60)
        assert rows.place == f"rows {done} to {min(done + 25, 60) - 1} of {path}"


def test_a_column_that_is_there_twice_is_told_by_its_name(tmp_path: Path) -> None:
    table = pa.Table.from_pylist(events(0, 10))
    name = chain.event.names[0]
    for number, twice in enumerate([table, table.append_column(name, table[name])]):
        pq.write_table(twice, tmp_path / f"{number}.parquet")
    with ss.Engine(chain) as engine, pytest.raises(ss.InputError) as raised:
        ss.sources.run(engine, ss.sources.dataset(tmp_path), to=lambda rows, batch_id: None)
    assert f"reads column {name!r}, which {tmp_path}/1.parquet has more than once" in str(
        raised.value
    )

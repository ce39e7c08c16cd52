"""Pipelines on the command line: ``specstream pipeline``, and the commands that take operators."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest
from support.commands import invoke

from specstream.cli.target import load_operator

OPERATORS = """
import specstream as ss


class Mean(ss.State):
    sum = ss.scalar(float)
    count = ss.scalar(int)


@ss.operator(state=Mean, event={"price": float}, emits={"mean": float})
def average(state, event, emit):
    state.sum += event.price
    state.count += 1
    emit(state.sum / state.count)


@ss.operator(
    state=Mean, inputs={"tick": {"price": float}, "mean": {"mean": float}}, emits={"mean": float}
)
def above(state, event, emit):
    if event.changed("tick") and event.tick.price > event.mean.mean:
        state.count += 1
        emit(event.tick.price - event.mean.mean)


def made(name):
    p = ss.Pipeline(name)
    ticks, others = p.source("ticks", {"price": float}), p.source("others", {"price": float})
    slow = p.add(average, others, name="slow")
    p.sink("gaps", p.add(above, tick=ticks, mean=slow))
    p.sink("means", slow)
    return p


p = made("alerts")

wrong = ss.Pipeline("wrong")
wrong.source("ticks", {"price": float})
wrong.add(above, name="one", tick="ticks", mean="two")
wrong.sink("out", wrong.add(above, name="two", tick="ticks", mean="one"))
"""


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    directory = tmp_path / "stream"
    directory.mkdir()
    of = ["ticks" if n % 3 else "others" for n in range(300)]
    columns = {
        "stream": of,
        "ticks.price": [float(n % 17) if n % 3 else None for n in range(300)],
        "others.price": [None if n % 3 else float(n % 5) for n in range(300)],
        "time": range(300),
    }
    pq.write_table(pa.table(columns), directory / "0.parquet")
    return directory


def test_pipeline_tells_what_it_is(operators: Path) -> None:
    text = invoke("pipeline", f"{operators}:p").stdout
    assert text.startswith("pipeline 'alerts'\n")
    assert "  others: price float" in text
    assert "3. slow (average), level 1, reads others" in text
    assert "above, level 2, reads tick = ticks, mean = slow" in text
    assert "emits at most one row in a phase: mean float" in text
    assert "  gaps: of above: mean float" in text
    found = json.loads(
        invoke("pipeline", f"{operators}:made", "--arg", "name='x'", "--json").stdout
    )
    assert found["name"] == "x"
    assert found["sources"][0] == {"name": "ticks", "columns": [["price", "float"]]}
    assert found["vertices"][-1]["inputs"] == [["tick", "ticks"], ["mean", "slow"]]
    assert found["vertices"][-1]["at_most_one_row"] is True
    assert [one["name"] for one in found["sinks"]] == ["gaps", "means"]


def test_pipeline_draws(operators: Path, tmp_path: Path) -> None:
    for name, start in (("p.svg", b"<svg"), ("p.png", b"\x89PNG")):
        result = invoke("pipeline", f"{operators}:p", "--plot", tmp_path / name)
        assert result.exit_code == 0, result.output
        assert (tmp_path / name).read_bytes().startswith(start)
        assert result.stdout.startswith("pipeline 'alerts'")
    dot = invoke("pipeline", f"{operators}:p", "--dot").stdout
    assert dot.startswith('digraph "alerts" {')
    assert dot.endswith("}\n")


def test_a_wrong_graph_is_drawn_and_refused(operators: Path, tmp_path: Path) -> None:
    path = tmp_path / "wrong.svg"
    result = invoke("pipeline", f"{operators}:wrong", "--plot", path, "--dot")
    assert result.exit_code == 1
    assert "reads what comes from itself" in result.stderr
    assert "comes from later on" in path.read_text()
    assert result.stdout.startswith("digraph")


@pytest.mark.parametrize(
    ("target", "arguments", "status", "message"),
    [
        ("no.such.module:p", (), 1, "no module named"),
        ("{file}:q", (), 1, "has no 'q'; pipelines in it: p, wrong"),
        ("{file}:average", (), 1, "is operator 'average', not a pipeline"),
        ("{file}", (), 2, "names no pipeline; expected MODULE:PIPELINE, like flows.py:desk"),
        (
            "{file}:made",
            ("--arg", "name='x'", "--arg", "size=3"),
            1,
            "with --arg name='x' size=3: got an unexpected keyword",
        ),
        ("{file}:made", (), 1, "with no --arg: missing a required argument: 'name'"),
        ("{file}:p", ("--arg", "name='x'"), 2, "takes no --arg"),
        ("{file}:p", ("--dot", "--json"), 2, "give one"),
        ("{file}:p", ("--plot", "p.jpeg"), 1, "ends in .png, .svg or .pdf"),
        ("{file}:p", ("--plot", "missing/p.svg"), 1, "no directory 'missing'"),
    ],
)
def test_pipeline_explains_what_it_refuses(
    operators: Path, target: str, arguments: tuple[str, ...], status: int, message: str
) -> None:
    result = invoke("pipeline", target.format(file=operators), *arguments)
    assert result.exit_code == status, result.output
    assert message in " ".join(result.stderr.split())


def test_explain_and_profile_take_a_pipeline(operators: Path, stream: Path) -> None:
    found = json.loads(invoke("explain", f"{operators}:p", "--json").stdout)
    assert [one["name"] for one in found["fields"]] == [
        *("slow.sum", "slow.count", "above.sum", "above.count")
    ]
    assert found["last_values"][1]["fields"] == ["above.mean.mean"]
    profiled = invoke(
        "profile", f"{operators}:p", "--input", stream, "--order-by", "time", "--json"
    )
    assert json.loads(profiled.stdout)["events"] == 300, profiled.output
    missing = invoke("profile", f"{operators}:p", "--input", stream, "--order-by", "when")
    assert missing.exit_code == 1
    assert "column 'when'" in missing.stderr


def test_tune_and_bench_take_a_pipeline(operators: Path, stream: Path) -> None:
    options = ("--input", stream, "--order-by", "time", "--seconds", 0.1, "--threads", 2, "--json")
    tuned = invoke("tune", f"{operators}:p", *options, "--protocol", "value")
    assert json.loads(tuned.stdout)["engine"].startswith("ss.Engine(p"), tuned.output
    found = invoke("bench", f"{operators}:p", *options)
    names = [one["name"] for one in json.loads(found.stdout)["contestants"]]
    assert "sequential check" in names, found.output
    assert not any("lock" in name for name in names)


def test_profile_tune_and_bench_read_a_directory_of_each_source(
    operators: Path, by_source: dict[str, Path]
) -> None:
    inputs = [one for name, path in by_source.items() for one in ("--input", f"{name}={path}")]
    options = ("--order-by", "time", "--threads", 2, "--json")
    profiled = invoke("profile", f"{operators}:p", *inputs, *options)
    assert json.loads(profiled.stdout)["events"] == 300, profiled.output
    few = invoke("profile", f"{operators}:p", *inputs, *options, "--events", 100)
    assert json.loads(few.stdout)["events"] == 100
    for command in ("tune", "bench"):
        found = invoke(command, f"{operators}:p", *inputs, *options, "--seconds", 0.1)
        assert json.loads(found.stdout)["events"] == 300, found.output
    alone = invoke("profile", f"{operators}:p", *inputs[:2], *options)
    assert alone.exit_code == 1
    assert "needs one --input for each source" in alone.stderr


@pytest.fixture
def by_source(stream: Path, tmp_path: Path) -> dict[str, Path]:
    """The same in a directory for each source, two files in each."""
    table = pq.read_table(stream / "0.parquet")
    found = {}
    for name in ("ticks", "others"):
        rows = table.filter(pyarrow.compute.equal(table["stream"], name))
        own = pa.table({"price": rows[f"{name}.price"], "time": rows["time"], "more": rows["time"]})
        found[name] = tmp_path / name
        found[name].mkdir()
        for part in range(2):
            half = own.num_rows // 2
            pq.write_table(own.slice(part * half, half), found[name] / f"{part}.parquet")
    return found


@pytest.mark.spark
def test_run_reads_a_directory_of_each_source(
    operators: Path, by_source: dict[str, Path], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    inputs = [one for name, path in by_source.items() for one in ("--input", f"{name}={path}")]
    options = ("run", f"{operators}:p", *inputs, "--order-by", "time", "--json")
    call = [sys.executable, "-m", "specstream.cli", *map(str, options), "--output", str(output)]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["rows_in"] == 300
    tables = {
        name: pyarrow.dataset.dataset(path, format="parquet").to_table()
        for name, path in by_source.items()
    }
    expected = load_operator(f"{operators}:p", {}).run_sequential(tables, order_by="time").output
    assert isinstance(expected, dict)
    for name, of in expected.items():
        assert pyarrow.dataset.dataset(output / name, format="parquet").to_table().equals(of)


@pytest.mark.parametrize(
    ("target", "inputs", "order_by", "message"),
    [
        ("p", ["ticks={ticks}"], "time", "needs one --input for each source: --input ticks=DIR"),
        ("p", ["ticks={ticks}", "ticks={ticks}"], "time", "needs one --input for each source"),
        ("p", ["ticks={ticks}", "{others}"], "time", "needs one --input for each source"),
        ("p", ["ticks={ticks}", "news={others}"], "time", "no source 'news'; it has ticks, others"),
        ("p", ["{ticks}", "{others}"], "time", "given 2 times, without names: --input ticks=DIR"),
        ("p", ["ticks={ticks}", "others={others}"], "when", "--order-by names column 'when'"),
        ("average", ["ticks={ticks}"], "time", "no sources with names: give --input DIRECTORY"),
        ("p", ["ticks={ticks}/none", "others={others}"], "time", "none' does not exist"),
    ],
)
def test_run_explains_which_inputs_it_needs(
    operators: Path,
    by_source: dict[str, Path],
    tmp_path: Path,
    target: str,
    inputs: list[str],
    order_by: str,
    message: str,
) -> None:
    given = [part for one in inputs for part in ("--input", one.format(**by_source))]
    options = ("--order-by", order_by, "--output", tmp_path / "out")
    result = invoke("run", f"{operators}:{target}", *given, *options)
    assert result.exit_code != 0
    assert message in " ".join(result.stderr.replace("│", "").split())


@pytest.mark.spark
def test_run_writes_a_directory_for_each_sink(
    operators: Path, stream: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out"
    options = ("run", f"{operators}:p", "--input", stream, "--order-by", "time", "--json")
    # In a process of its own, as Spark cannot be had twice in one.
    call = [sys.executable, "-m", "specstream.cli", *map(str, options), "--output", str(output)]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1])["rows_in"] == 300
    table = pq.read_table(stream / "0.parquet")
    expected = load_operator(f"{operators}:p", {}).run_sequential(table, order_by="time").output
    assert {path.name for path in output.iterdir()} == {"gaps", "means"}
    assert isinstance(expected, dict)
    for name, of in expected.items():
        assert pyarrow.dataset.dataset(output / name, format="parquet").to_table().equals(of)
    again = invoke(*options, "--output", output)
    assert again.exit_code == 1
    assert f"--output {output / 'gaps'}" in again.stderr

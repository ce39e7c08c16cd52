"""``python -m bench``: every benchmark has a name, and runs under it with options of its own."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bench import __main__ as runner
from bench.registry import BENCHMARKS, Benchmark

ROOT = Path(__file__).parents[2]
COMMANDS = re.compile(r"make bench-([a-z0-9-]+)|python -m bench ([a-z0-9-]+)")


def programs() -> set[str]:
    """The modules of bench/ that are programs."""
    paths = [path for path in (ROOT / "bench").rglob("*.py") if "__main__" in path.read_text()]
    names = [path.relative_to(ROOT).with_suffix("").as_posix().replace("/", ".") for path in paths]
    return {name.removesuffix(".__main__") for name in names}


def started(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The processes that a command line would start: module and options of each."""
    seen: list[list[str]] = []

    def run(benchmark: Benchmark, options: list[str]) -> int:
        seen.append([benchmark.name, *options])
        return int(benchmark.name == "strings")

    monkeypatch.setattr(runner, "run", run)
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    runner.main()
    return seen


def test_every_program_has_a_name() -> None:
    assert programs() - {"bench"} == {one.module for one in BENCHMARKS.values()}


# The options of micro are those of pytest.
@pytest.mark.parametrize("name", sorted(set(BENCHMARKS) - {"micro"}))
def test_a_benchmark_takes_the_options_that_the_registry_says(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    benchmark = BENCHMARKS[name]
    module = importlib.import_module(benchmark.module)
    if not hasattr(module, "main"):
        module = importlib.import_module(f"{benchmark.module}.__main__")
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    with pytest.raises(SystemExit) as ended:
        module.main()
    said = capsys.readouterr().out
    assert not ended.value.code
    assert f"usage: python -m bench {name} " in said
    assert ("--plot" in said) == benchmark.takes_plot
    assert ("positional arguments:" in said) == benchmark.operands


def test_what_a_benchmark_writes_is_there_and_says_what_writes_it() -> None:
    for one in BENCHMARKS.values():
        if one.writes is not None:
            assert (ROOT / one.writes).exists(), one.name
            if one.writes.startswith("docs/research/") and one.writes.endswith(".md"):
                assert f"`make bench-{one.name}`" in (ROOT / one.writes).read_text()


def test_pages_and_comments_name_benchmarks_that_there_are() -> None:
    pages = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), ROOT / "Makefile"]
    sources = [*(ROOT / "bench").rglob("*.py"), *(ROOT / "specstream").rglob("*.py")]
    named = {
        (path.name, next(filter(None, found)))
        for path in [*pages, *sources]
        for found in COMMANDS.findall(path.read_text())
    }
    assert len(named) > 20
    assert {(file, name) for file, name in named if name not in BENCHMARKS} == set()


def test_alone_it_lists_the_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lists = []
    for arguments in ([], ["--list"]):
        assert started(arguments, monkeypatch) == []
        lists.append(capsys.readouterr().out)
    assert lists[0] == lists[1]
    assert all(name in lists[0] for name in BENCHMARKS)


def test_options_go_to_each_and_operands_to_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def of(line: str) -> list[list[str]]:
        return started(line.split(), monkeypatch)

    assert of("speed --quick") == [["speed", "--quick"]]
    assert of("speed cores --quick") == [["speed", "--quick"], ["cores", "--quick"]]
    assert of("chapter4 table_4_3 speed --quick") == [["chapter4", "table_4_3", "speed", "--quick"]]
    assert of("speed chapter4") == [["speed"], ["chapter4"]]
    assert of("strings micro") == [["strings"], ["micro"]]
    assert "failed: strings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sped", "no benchmark 'sped': did you mean speed?"),
        ("compile_time", "did you mean compile-time?"),
        ("transaction --quick", "did you mean transactional?"),
        ("speed containrs", "no benchmark 'containrs': did you mean containers?"),
        ("xyz", "there are operators, compile-time"),
        ("speed chapter4 table_4_3", "name chapter4 alone"),
        ("--quick speed", "--quick stands before a name"),
    ],
)
def test_a_wrong_name_is_told_with_the_near_ones(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match=re.escape(said)):
        started(line.split(), monkeypatch)


def test_a_benchmark_that_keeps_no_picture_is_not_asked_for_one(tmp_path: Path) -> None:
    for name, extra, status in (("catalogue", "--plot --help", 0), ("strings", "--bad", 1)):
        command = [sys.executable, "-m", "bench", name, *extra.split()]
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        assert ran.returncode == status, ran.stderr

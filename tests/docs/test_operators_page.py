"""The guide to operators runs from top to bottom, prints what it says, and refuses what it says."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pytest
from conftest import Result, assert_identical, run_oracle
from support import contents, witness
from support.compiler.mistakes import MISTAKES

import specstream as ss

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "guides" / "operators.md").read_text()


def program(page: str) -> str:
    """The examples of a page, each on its own lines: tracebacks name those of the page."""
    lines, inside = [], False
    for line in page.splitlines():
        inside = line.startswith("```python") or (inside and not line.startswith("```"))
        lines.append("" if line.startswith("```") or not inside else line)
    return "\n".join(lines) + "\n"


class Compared(ss.Engine):
    """An engine whose first table is run by the oracle and by the plain function as well."""

    compared: ClassVar[list[str]] = []

    def __init__(self, operator: ss.Operator, **options: Any) -> None:
        self.declared = operator
        self.is_fresh = "initial" not in options
        # The page speaks of what comes out; that all settings agree is tested elsewhere.
        super().__init__(operator, **({"horizon": 0} | options))

    def process(self, table: Any, **options: Any) -> pa.Table:
        is_first = self.is_fresh and self.stats.events == 0
        output = super().process(table, **options)
        if is_first and not options and self.declared.name not in WITH_A_SEED:
            self.compare(pa.table(table), output)
        return output

    def compare(self, table: pa.Table, output: pa.Table) -> None:
        expected = run_oracle(self.declared, table)
        # Where some raised and all have run, they were set aside.
        assert self.stats.failed_events == len(expected.raised)
        found = Result(output, contents.of_view(self.state), expected.raised)
        assert_identical(found, expected)
        self.compared.append(self.declared.name)
        if self.declared.name not in NOT_PYTHON:
            witness.assert_agrees(self.declared, table, are_none=True)


WITH_A_SEED = {"sampled"}
# The plain function gets a code as a text, and a decimal as it is.
NOT_PYTHON = {"units", "parsed"}


@pytest.fixture
def loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    def load(page: str, name: str) -> None:
        path = tmp_path / f"{name}.py"
        path.write_text(program(page))
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)

    return load


@pytest.mark.parametrize(
    ("name", "printed", "compared"), [("operators", 25, 20), ("containers", 7, 4)]
)
def test_the_guide_runs_and_prints_what_it_says(
    loaded: Callable[[str, str], None],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    printed: int,
    compared: int,
) -> None:
    page = (DOCS / "guides" / f"{name}.md").read_text()
    monkeypatch.setattr(ss, "Engine", Compared)
    monkeypatch.setattr(Compared, "compared", [])
    expected = re.findall(r"# prints (.*)", page)
    assert len(expected) > printed
    loaded(page, f"the_guide_to_{name}")
    assert capsys.readouterr().out.splitlines() == expected
    assert len(Compared.compared) > compared


def rows() -> list[tuple[str, ...]]:
    """What the table at the end has in its cells."""
    table = PAGE.partition("\n## What is refused\n")[2]
    cells = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("|")]
    return [tuple(row) for row in cells[2:]]


@pytest.mark.parametrize("row", rows(), ids=lambda row: row[0])
def test_what_the_table_has_is_refused_with_that_way_out(row: tuple[str, ...]) -> None:
    """Its code is of the mistakes, which are tested: each is refused, and what is right runs."""
    assert len(row) == 3
    refused, _, instead = row
    codes = [code for code in re.findall(r"`([^`]+)`", refused) if code in SHOWN]
    assert codes, f"no mistake has {refused}"
    ways = re.findall(r"`([^`]+)`", instead)
    rights = [
        one.right
        for one in MISTAKES.values()
        if any(code in one.wrong.replace("  # <-", "") for code in codes)
    ]
    assert not ways or any(way in right for way in ways for right in rights), rights


SHOWN = "".join(one.wrong.replace("  # <-", "") for one in MISTAKES.values())

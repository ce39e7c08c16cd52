"""The catalogue has everything that is ready-made, and nothing else."""

from __future__ import annotations

import inspect
import re
import tomllib
from pathlib import Path

import pytest
from support.public import GROUPS, MODULES, names_of

import specstream as ss
from bench.catalogue import page
from bench.catalogue.pictures import CAPTIONS, PICTURES
from specstream import operators, predictors, verbs, windows
from specstream.cli import main

ROOT = Path(__file__).parents[2]
CATALOGUE = (ROOT / "docs" / "catalogue.md").read_text()
# `{py:obj}`~specstream.Auto`` and `{py:obj}`metrics.watch <specstream.metrics.watch>``.
LISTED = set(re.findall(r"\{py:\w+\}`(?:[^`<]*<|~)?(specstream\.[\w.]+)>?`", CATALOGUE))
SECTIONS = dict(re.findall(r"^#{2,3} (.+)\n((?:(?!#).*\n)*)", CATALOGUE, re.MULTILINE))


def first_cells(section: str) -> list[str]:
    """What stands in the first column of the table of a section."""
    rows = re.findall(r"^\| (.+?) \|", SECTIONS[section], re.MULTILINE)
    return [row for row in rows if not row.startswith("---")][1:]


def public() -> set[str]:
    return names_of(ss).union(*map(names_of, MODULES))


def test_it_has_every_public_name_and_no_other() -> None:
    assert public() - LISTED == set()
    methods = {f"specstream.Engine.{name}" for name in vars(ss.Engine)}
    assert LISTED - methods - public() == set()


def test_it_has_what_a_predictor_of_ones_own_is_made_of() -> None:
    assert all(f"`{name}`" in CATALOGUE for name in predictors.__all__ if name != "Predictor")
    assert "`specstream.predictors.Predictor`" in CATALOGUE


def test_it_has_every_command() -> None:
    commands = [cell.strip("`").removeprefix("specstream ") for cell in first_cells("Command line")]
    assert sorted(commands) == sorted(main.commands)


def test_it_has_every_hook() -> None:
    options = inspect.signature(ss.Engine).parameters
    hooks = [cell.strip("`") for cell in first_cells("Hooks")]
    assert sorted(hooks) == sorted(name for name in options if name.startswith("on_"))


def test_it_has_every_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = re.findall(r"`(\w+)`", " ".join(first_cells("Extras")))
    assert sorted(extras) == sorted(project["optional-dependencies"])


def test_its_part_about_operators_is_that_of_their_docstrings() -> None:
    assert page.page(CAPTIONS) == CATALOGUE, "run: python -m bench catalogue"


def test_all_operators_and_windows_are_found_by_what_is_wanted() -> None:
    names = {page.name_of(one) for one in page.every()}
    assert {name for of in page.WANTS.values() for name in of} == names
    made = (operators, windows, *GROUPS)
    by_module = {name.rpartition(".")[2] for module in made for name in names_of(module)}
    # Of the verbs those that make an operator by themselves.
    others = {"ANY", "OTHERWISE", "merge", "zip"}
    assert names == by_module | (set(verbs.__all__) - others)


def test_each_entry_has_a_picture_or_tables() -> None:
    entries = re.split(
        r"^#{3,4} (?=\w+\n\n)", CATALOGUE.split("<!-- end -->")[0], flags=re.MULTILINE
    )
    shown = {entry.split("\n")[0]: entry for entry in entries[1:]}
    for one in page.every():
        entry = shown[page.name_of(one)]
        assert ("dropdown" in entry) == (page.name_of(one) in PICTURES)
        # A row of each table below its head: what goes in, and what comes out.
        assert len(re.findall(r"^\| --- .*\n\| .+", entry, re.MULTILINE)) > 1


def test_its_pictures_are_there_and_small() -> None:
    files = {path.stem: path for path in (ROOT / "docs" / "catalogue").iterdir()}
    assert set(files) == set(PICTURES)
    assert {name for name, path in files.items() if path.stat().st_size > 40_000} == set()
    assert set(re.findall(r"\{figure\} catalogue/(\w+)\.png", CATALOGUE)) == set(PICTURES)


@pytest.mark.parametrize("section", ["Sinks", "Predictors"])
def test_a_section_has_links_in_each_row(section: str) -> None:
    assert first_cells(section)
    assert all("{py:obj}" in cell for cell in first_cells(section))

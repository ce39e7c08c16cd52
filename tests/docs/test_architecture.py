"""Architecture and the list of files say what the sources say: rooms, order, the way of a batch."""

from __future__ import annotations

import ast
import functools
import importlib.util
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "specstream"
MOST_FILES = 12
WORDS = 3000
NATIVE = ("src", "include")


@pytest.fixture(scope="module")
def rooms() -> Any:
    spec = importlib.util.spec_from_file_location(
        "draw_packages", ROOT / "docs" / "contributing" / "draw_packages.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@functools.cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def imports_of(path: Path) -> set[str]:
    """All that a module imports of the package, inside functions and for types included."""
    found: set[str] = set()
    for node in nodes_of(path):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return {name for name in found if name.split(".")[0] == "specstream"}


def module_of(name: str) -> str:
    return "specstream." + name.removesuffix(".py").replace("/", ".")


def test_the_top_level_has_folders_and_the_errors() -> None:
    files = {path.name for path in PACKAGE.iterdir() if path.is_file()}
    assert {name for name in files if not name.startswith(("_native", "_forecast"))} == {
        "__init__.py",
        "errors.py",
        "py.typed",
    }


def test_picture_and_lists_are_those_of_the_sources(rooms: Any) -> None:
    assert rooms.differences() == [], "run: python docs/contributing/draw_packages.py"


def test_every_room_is_in_the_order_and_uses_only_those_below(rooms: Any) -> None:
    layers = rooms.layers()
    height = {room: -number for number, layer in enumerate(layers) for room in layer}
    folders = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert folders | {"errors"} == set(height)
    for room, own in height.items():
        for path in rooms.files_of(room):
            for name in imports_of(path):
                other = name.split(".")[1] if "." in name else ""
                if other in height and other != room:
                    assert height[other] < own, f"{path} imports {name}"


@pytest.mark.slow
def test_rooms_below_the_commands_use_no_public_names(rooms: Any) -> None:
    """`from specstream import Engine` would go around the order of the rooms."""
    above = {"cli", "demo", "tuning"}
    may = {"_native", *(room for layer in rooms.layers() for room in layer)}
    for layer in rooms.layers():
        for room in set(layer) - above:
            for path in rooms.files_of(room):
                for node in nodes_of(path):
                    if isinstance(node, ast.ImportFrom) and node.module == "specstream":
                        assert {alias.name for alias in node.names} <= may, path


def test_one_file_of_the_engine_calls_the_runtime() -> None:
    """The others have constants of it, and its structures, but no functions."""
    for path in (PACKAGE / "engine").glob("*.py"):
        called = {
            node.func.attr
            for node in nodes_of(path)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.value.id == "lib"
        }
        assert bool(called) == (path.name == "native.py"), f"{path.name} calls {called}"


def test_the_way_of_a_batch_is_short_and_goes_from_caller_to_callee(rooms: Any) -> None:
    way = rooms.way()
    assert way[0] == "spark/feed.py"
    assert way[-1].startswith("sinks/")
    assert 2 < len(way) <= MOST_FILES
    before: list[str] = []
    for name in way:
        if name.endswith(".c"):
            assert (ROOT / "stm_native" / "src" / name).is_file()
            assert any("specstream._native" in imports_of(PACKAGE / other) for other in before)
            continue
        assert (PACKAGE / name).is_file()
        # What the user hands over, the sink, is called by its interface only.
        if before and name != way[-1]:
            assert any(module_of(name) in imports_of(PACKAGE / other) for other in before), name
        before.append(name)


def test_the_lists_are_on_a_page_of_their_own(rooms: Any) -> None:
    """So that the architecture can be read in ten minutes."""
    page, files = rooms.PAGE.read_text(), rooms.FILES.read_text()
    assert not rooms.LISTED.search(page)
    assert len(rooms.LISTED.findall(files)) == 2
    assert len(page.split()) < WORDS


@pytest.mark.parametrize("name", ["architecture", "files"])
def test_all_files_that_the_pages_name_exist(rooms: Any, name: str) -> None:
    page = (ROOT / "docs" / "contributing" / f"{name}.md").read_text()
    known = {path.name for path in PACKAGE.rglob("*.py")}
    runtime = {path for part in NATIVE for path in (ROOT / "stm_native" / part).rglob("*.[ch]")}
    for file in set(rooms.FILE.findall(page)) | set(re.findall(r"`([a-z_/]+\.py)`", page)):
        if file.endswith((".c", ".h")):
            found = any(path.as_posix().endswith(f"/{file}") for path in runtime)
        elif "/" in file:
            found = (PACKAGE / file).is_file() or (ROOT / file).is_file()
        else:
            found = file in known
        assert found, file

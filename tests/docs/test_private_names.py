"""What begins with an underscore belongs to its room: nobody else uses it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "specstream"
OUTSIDE = ("operators", "bench", "docs", "examples", "tests")

# Private names of other libraries that a room of ours happens to have as well.
THEIRS = {("specstream/spark/stopping.py", "_options"): "of Spark's builder of sessions"}


# Nobody's: notebooks ask every object for ``_repr_html_``.
COMMON = ("_", "_native", "_repr_html_")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in COMMON


def of_itself(node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")


def made_in(tree: ast.AST) -> set[str]:
    """The private names that a file defines: functions, classes, variables, attributes."""
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            if of_itself(node):
                names.add(node.attr)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names.add(node.value)  # in __slots__
    return set(filter(is_private, names))


def used_in(tree: ast.AST) -> Iterator[tuple[int, str, str | None]]:
    """Where a file uses private names of something that is not ``self``, or imports them.

    Yields:
        The line, the name, and the module that it is imported from: None for an attribute.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and is_private(node.attr) and not of_itself(node):
            yield node.lineno, node.attr, None
        elif isinstance(node, ast.ImportFrom):
            for name in filter(is_private, (alias.name for alias in node.names)):
                yield node.lineno, name, node.module


def room_of(path: str) -> str:
    """``engine`` of ``specstream/engine/batch.py``; ``tests`` of all tests."""
    parts = path.split("/")
    return parts[1].removesuffix(".py") if parts[0] == PACKAGE.name else parts[0]


def trespasses(trees: dict[str, ast.AST], rooms: set[str]) -> list[str]:
    """The uses of private names of some rooms in other rooms, as ``path:line: name of room``."""
    own = {path: made_in(tree) for path, tree in trees.items()}
    owners = defaultdict(set)
    for path, names in own.items():
        for name in names:
            owners[name].add(room_of(path))
    found = []
    for path, tree in trees.items():
        for line, name, module in used_in(tree):
            if module is not None:  # an import says whose name it is
                its = {room_of(module.replace(".", "/"))}
            else:  # an attribute may be of any object that has one of this name
                its = set() if name in own[path] or (path, name) in THEIRS else owners[name]
            others = sorted(its & rooms - {room_of(path)})
            found += [f"{path}:{line}: {name} of {room}" for room in others]
    return found


@pytest.fixture(scope="module")
def trees() -> dict[str, ast.AST]:
    return {
        path.relative_to(ROOT).as_posix(): ast.parse(path.read_text())
        for folder in (PACKAGE.name, *OUTSIDE)
        for path in sorted((ROOT / folder).rglob("*.py"))
    }


@pytest.mark.slow
def test_no_room_uses_a_private_name_of_another(trees: dict[str, ast.AST]) -> None:
    package = {path: tree for path, tree in trees.items() if room_of(path) != "tests"}
    rooms = {room_of(path) for path in package if path.startswith(f"{PACKAGE.name}/")}
    assert trespasses(package, rooms) == []


@pytest.mark.slow
def test_nobody_outside_uses_a_private_name_of_the_engine(trees: dict[str, ast.AST]) -> None:
    assert trespasses(trees, {"engine"}) == []


def test_what_is_excused_is_there(trees: dict[str, ast.AST]) -> None:
    for path, name in THEIRS:
        assert name in {used for _, used, _ in used_in(trees[path])}


def test_a_use_from_another_room_is_found() -> None:
    trees: dict[str, ast.AST] = {
        "specstream/engine/one.py": ast.parse("class A:\n  def __init__(self): self._x = _Y = 1"),
        "specstream/engine/two.py": ast.parse("from specstream.engine.one import _Y\na._x"),
        "specstream/spark/feed.py": ast.parse("def f(self, a):\n  self._x\n  a.engine._x"),
        "bench/load.py": ast.parse("from specstream.engine.one import _Y"),
    }
    assert trespasses(trees, {"engine"}) == [
        "specstream/spark/feed.py:3: _x of engine",
        "bench/load.py:1: _Y of engine",
    ]

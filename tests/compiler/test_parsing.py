"""Source text becomes a tree, whoever else parses meanwhile."""

from __future__ import annotations

import ast
import gc
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import specstream
from specstream.compiler.language.parsing import parse

TEXT = "\n".join(f"x{number} = [a + {number} for a in range({number})]" for number in range(200))
PACKAGE = Path(specstream.__file__).parent


@contextmanager
def in_the_midst(call: Callable[[], object]) -> Iterator[None]:
    """Calls it whenever this thread collects garbage while it makes a tree, which it does often."""
    thread, before = threading.get_ident(), gc.get_threshold()

    def collects(phase: str, _: dict[str, int]) -> None:
        if phase != "start" or threading.get_ident() != thread:
            return
        frame = sys._getframe().f_back
        if frame is not None and frame.f_code is ast.parse.__code__:
            call()

    gc.callbacks.append(collects)
    gc.set_threshold(20)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(collects)


def deeper(call: Callable[[], object], by: int = 7) -> object:
    return call() if by == 0 else deeper(call, by - 1)


def spoil() -> None:
    """As a finalizer may: CPython 3.11 then finds itself in another depth than before."""
    deeper(lambda: ast.parse("x"))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collects no garbage in the midst")
def test_what_another_parses_in_the_midst_does_no_harm() -> None:
    with in_the_midst(spoil), pytest.raises(SystemError, match="recursion depth mismatch"):
        ast.parse(TEXT)
    times = iter(range(3))
    with in_the_midst(lambda: spoil() if next(times, None) is not None else None):
        tree = parse(TEXT)
    assert next(times, None) is None
    assert ast.dump(tree) == ast.dump(ast.parse(TEXT))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="collects no garbage in the midst")
def test_one_thread_at_a_time_parses() -> None:
    trees: list[ast.AST] = []
    early: list[int] = []
    other = threading.Thread(target=lambda: trees.append(parse("x")))

    def begin() -> None:
        if other.ident is None:
            other.start()
            other.join(0.2)
            early.append(len(trees))

    with in_the_midst(begin):
        parse(TEXT)
    other.join()
    assert early == [0]
    assert len(trees) == 1


def test_a_syntax_error_comes_out() -> None:
    with pytest.raises(SyntaxError):
        parse("x =")
    with pytest.raises(SyntaxError):
        parse("x = 1", "eval")


def test_nothing_else_in_the_package_parses() -> None:
    found = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "ast.parse"
    }
    assert found == {"compiler/language/parsing.py"}

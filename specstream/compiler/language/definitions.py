"""The definition of a function, read from the file or notebook cell that it came from.

A ``def`` statement is found by its lines, as :mod:`inspect` does. A lambda may stand anywhere in an
expression: it is found by the columns that its code remembers of its instructions, so that two of
one line, or one inside of another, are told apart.
"""

from __future__ import annotations

import ast
import copy
import functools
import inspect
import linecache
import textwrap
import types
from typing import NamedTuple

from specstream.compiler.language.parsing import parse

__all__ = [
    *("Definition", "definition_of", "is_lambda", "is_named_lambda", "named_lambda"),
    *("keep_text", "read_definition"),
]

_NAME = "function"


class Definition(NamedTuple):
    """A function as it is written.

    Attributes:
        text: the statement that defines it, without decorators: its lines in the file, or
            ``function = (lambda ...)`` for a lambda that is a part of something else.
        line: number of the first of them.
        tree: a ``def`` statement, with the lines of the file; of a lambda, one that returns its
            body.
    """

    text: str
    line: int
    tree: ast.FunctionDef


class _Lambda(NamedTuple):
    """One that stands in a text.

    Attributes:
        parameters: their names.
        line: its first one.
        body: first line and column of its body, and those behind it.
        text: that defines it.
    """

    parameters: tuple[str, ...]
    line: int
    body: tuple[tuple[int, int], tuple[int, int]]
    text: str


def definition_of(function: types.FunctionType) -> Definition | None:
    """The definition of a function; None: it cannot be read, or is no statement of its own.

    >>> double = [lambda x: x, lambda x: 2 * x][1]
    >>> found = definition_of(double)
    >>> found and found.text
    'function = (lambda x: 2 * x)\\n'
    """
    try:
        return read_definition(function)
    except (OSError, TypeError):
        return None


def keep_text(filename: str, text: str) -> None:
    """Keeps a text that has no file, so that the functions in it can be read, also by tracebacks,
    and after :func:`linecache.clearcache`.

    Args:
        filename: that it was compiled with, in angle brackets.
        text: of a module.
    """
    # Without a modification time the entry is never held against a file.
    _kept[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    linecache.cache[filename] = _kept[filename]


_kept: dict[str, tuple[int, None, list[str], str]] = {}


def read_definition(function: types.FunctionType) -> Definition | None:
    """Likewise.

    Raises:
        OSError, TypeError: there is no text to be read.
    """
    filename = function.__code__.co_filename
    if filename in _kept:
        linecache.cache.setdefault(filename, _kept[filename])
    if is_lambda(function):
        return _lambda(function)
    lines, first = inspect.getsourcelines(function)
    try:
        body = parse(textwrap.dedent("".join(lines))).body
    except SyntaxError:
        return None
    found = [node for node in body if isinstance(node, ast.FunctionDef)]
    if not found or found[0].name != function.__code__.co_name:
        return None
    tree = found[0]
    text = "".join(lines[tree.lineno - 1 :])
    ast.increment_lineno(tree, first - 1)
    return Definition(text, tree.lineno, tree)


def is_lambda(function: types.FunctionType) -> bool:
    """Whether a function is a lambda."""
    return function.__code__.co_name == "<lambda>"


def is_named_lambda(node: ast.stmt) -> bool:
    """Whether a statement is ``name = lambda ...``."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Lambda)
        and len(node.targets) == 1
        and isinstance(node.targets[0], ast.Name)
    )


def named_lambda(node: ast.stmt) -> ast.FunctionDef:
    """``name = lambda ...``, which is a scope, as the def statement that does the same."""
    assert isinstance(node, ast.Assign)
    assert isinstance(node.value, ast.Lambda)
    returned = ast.copy_location(ast.Return(node.value.body), node.value.body)
    made = ast.FunctionDef("<lambda>", node.value.args, [returned], [])
    return ast.copy_location(made, node)


def _lambda(function: types.FunctionType) -> Definition | None:
    lines, _ = inspect.findsource(function)
    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = [
        one
        for one in _lambdas_in("".join(lines))
        # The file may have changed since.
        if one.parameters == parameters
    ]
    spans = [
        ((line, column), (last, end))
        for line, last, column, end in code.co_positions()
        if line is not None and last is not None and column is not None and end is not None and end
    ]
    if spans:
        start, end = min(one for one, _ in spans), max(one for _, one in spans)
        inside = [one for one in found if one.body[0] <= start and end <= one.body[1]]
        # The innermost: what is around it begins earlier.
        found = sorted(inside, key=lambda one: one.body[0])[-1:]
    else:  # Python keeps no columns
        found = [one for one in found if one.line == code.co_firstlineno]
    if len(found) != 1:
        return None
    (one,) = found
    (statement,) = parse(textwrap.dedent(one.text)).body
    tree = named_lambda(statement)
    ast.increment_lineno(tree, one.line - 1)
    return Definition(one.text, one.line, tree)


@functools.lru_cache(maxsize=8)
def _lambdas_in(text: str) -> tuple[_Lambda, ...]:
    """Every lambda of a file."""
    try:
        module = parse(text)
    except SyntaxError:
        try:  # the lines of one function, indented as in its file
            text = textwrap.dedent(text)
            module = parse(text)
        except SyntaxError:
            return ()
    lines = [f"{line}\n" for line in text.split("\n")]
    named = {
        node.value: node
        for node in ast.walk(module)
        if isinstance(node, ast.Assign) and is_named_lambda(node)
    }
    found = []
    for node in ast.walk(module):
        if isinstance(node, ast.Lambda):
            alone = named.get(node)
            own = "" if alone is None else "".join(lines[alone.lineno - 1 : alone.end_lineno])
            if alone is None or not _is_only_statement(own, alone, node):
                own = f"{_NAME} = ({_segment(lines, node)})\n"
            body = node.body
            assert body.end_lineno is not None
            assert body.end_col_offset is not None
            start, end = (body.lineno, body.col_offset), (body.end_lineno, body.end_col_offset)
            found.append(_Lambda(_parameters(node.args), node.lineno, (start, end), own))
    return tuple(found)


def _parameters(given: ast.arguments) -> tuple[str, ...]:
    return tuple(one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs))


def _is_only_statement(text: str, alone: ast.Assign, node: ast.Lambda) -> bool:
    """Whether lines hold ``name = lambda ...`` and nothing else."""
    try:
        body = parse(textwrap.dedent(text)).body
    except SyntaxError:
        return False
    return len(body) == 1 and node.lineno == alone.lineno


def _segment(lines: list[str], node: ast.Lambda) -> str:
    """The text of a lambda."""
    text = "".join(lines[node.lineno - 1 : node.end_lineno])
    moved = copy.copy(node)
    moved.lineno = 1
    moved.end_lineno = (node.end_lineno or node.lineno) - node.lineno + 1
    return ast.get_source_segment(text, moved) or ""

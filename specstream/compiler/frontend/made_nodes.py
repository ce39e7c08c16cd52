"""Nodes that a rewriting makes: names, constants and assignments, with places in the source."""

from __future__ import annotations

import ast
from typing import Any, TypeVar

__all__ = ["assign_name", "at_place", "constant", "load"]

Made = TypeVar("Made", bound=ast.AST)


def at_place(made: Made, node: ast.AST) -> Made:
    """What was made, with the line number of what it replaces wherever it has none."""
    for part in ast.walk(made):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made


def load(name: str, at: ast.AST | None = None) -> ast.Name:
    """The read of a name."""
    made = ast.Name(name, ast.Load())
    return made if at is None else ast.copy_location(made, at)


def constant(value: Any, at: ast.AST) -> ast.Constant:
    """A literal."""
    return ast.copy_location(ast.Constant(value), at)


def assign_name(name: str, value: ast.expr, at: ast.AST | None = None) -> ast.Assign:
    """An assignment to a name."""
    made = ast.Assign([ast.Name(name, ast.Store())], value)
    if at is not None:
        ast.copy_location(made.targets[0], at)
        ast.copy_location(made, at)
    return made

"""Binding times of expressions: combines what is known of their parts, for all rules."""

from __future__ import annotations

import ast
from dataclasses import replace

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.fact import CONSTANT, Fact
from specstream.compiler.facts.value_types import ANY, BOOL, FLOAT, INT, STR, Type
from specstream.compiler.language.builtin_functions import names_where

__all__ = [
    "LETTERS",
    "bound_in",
    "has_string",
    "held",
    "is_number",
    "is_scalar",
    "item",
    "joined",
    "makes_container",
]

LETTERS = (STR, of.BYTES)

_MAKING = names_where(lambda one: one.returns in ("list", "dict", "set")) | {"map", "filter"}


def joined(parts: list[Fact], given: Type, compiles: bool) -> Fact:
    """What is made of parts and gives a type."""
    return Fact(
        max((part.depends for part in parts), default=CONSTANT),
        given,
        of.required(given) if compiles else None,
        bound_in(parts),
    )


def item(given: Type, at: int, count: int, star: int | None = None) -> Type:
    given = of.required(given)
    if star is not None:
        return of.list_of(of.element(given)) if at == star else of.element(given)
    if given.name == "tuple" or (given.name == "object" and given.of):
        return given.of[at] if len(given.of) == count else ANY
    return of.element(given)


def is_number(found: Fact) -> bool:
    """Compiled code has a number of it, or what only it knows."""
    return found.compiled is not None and (of.is_number(found.compiled) or found.compiled == ANY)


def held(found: Fact) -> Fact:
    """What compiled code has of a list or dict: other types than scalars are its own."""
    if found.compiled is None or (is_scalar(found.compiled) and found.type == found.compiled):
        return found
    return replace(found, compiled=found.compiled if found.compiled.name == "tuple" else ANY)


def bound_in(parts: list[Fact]) -> frozenset[int]:
    return frozenset[int]().union(*(part.bound for part in parts))


def is_scalar(given: Type | None) -> bool:
    return given in (INT, FLOAT, BOOL, STR, ANY)


def has_string(given: Type | None) -> bool:
    """Binding times of expressions: whether a tuple, list or dict has strings in it."""
    if given is None or given.name not in ("tuple", "list", "dict"):
        return False
    return any(one == STR or has_string(one) for one in given.of)


def makes_container(node: ast.expr) -> bool:
    """Binding times of expressions: whether one makes a list, dict or set."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in _MAKING
    if isinstance(node, ast.BinOp):  # [0] * n
        return makes_container(node.left) or makes_container(node.right)
    return isinstance(
        node, ast.List | ast.Dict | ast.Set | ast.ListComp | ast.DictComp | ast.SetComp
    )

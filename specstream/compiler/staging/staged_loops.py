"""Loops over what Python makes of an event: the elements, and what Python makes of each.

``for word in event.text.split(): if word.isdigit(): ...`` becomes a loop over a hidden list of
tuples: the word, what compiled code raises in place of the test, and the test. So the smallest
expressions of an element are staged as those of an event are, and an exception is raised where the
operator gets to it: at that element, with what the elements before have done.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, TypeVar

from specstream.columns.derived import outcome_of
from specstream.compiler.facts.value_types import Type
from specstream.compiler.library.event_lists import ItemRead
from specstream.declarations.derived import Part, Scalar

Made = TypeVar("Made", bound=ast.AST)

__all__ = ["NAMES", "Loop", "at_place", "checked", "taken_apart", "with_places"]


@dataclass
class Loop:
    """A loop on its way to be one over a hidden list.

    Attributes:
        number: tells its names from those of others.
        target: of the loop, as it was written.
        elements: types of what an element has in it.
        made: what Python's functions of it are made of.
        staged: what Python makes of an element, and what that is.
    """

    number: int
    target: ast.expr
    elements: tuple[Type, ...]
    made: Any
    staged: list[tuple[ast.expr, Scalar | Part]] = field(default_factory=list)
    known: dict[tuple[str, Scalar | Part], int] = field(default_factory=dict)

    def read(self, body: ast.expr, given: Scalar | Part) -> ItemRead:
        """The read of something that Python makes of an element.

        Args:
            body: the expression for Python, over the loop's own names.
            given: what it gives.
        """
        key = ast.dump(body), given
        if key not in self.known:
            self.known[key] = len(self.staged)
            self.staged.append((body, given))
        status, value = self.names(self.known[key])
        return ItemRead.of(
            ast.Name(status, ast.Load()),
            ast.Name(value, ast.Load()),
            given if isinstance(given, Part) else None,
        )

    def names(self, at: int) -> list[str]:
        """What hold the status and the value of something staged."""
        name = f"__ss_item_{-self.number}_{at}"
        return [f"{name}_raised", name]

    @property
    def targets(self) -> list[ast.expr]:
        """What the loop gives the parts of an element to."""
        return list(self.target.elts) if isinstance(self.target, ast.Tuple) else [self.target]

    @property
    def is_flat(self) -> bool:
        """Whether each part of an element has its own target."""
        return len(self.targets) == len(self.elements)

    @property
    def whole(self) -> list[str]:
        """Names of an element's parts, if the loop has one name for all of them."""
        return [f"__ss_part_{-self.number}_{at}" for at in range(len(self.elements))]

    def new_target(self) -> ast.expr:
        """The target of the loop over the hidden list."""
        if not self.staged:
            return self.target
        parts = self.targets if self.is_flat else list(map(_store, self.whole))
        for at in range(len(self.staged)):
            parts += map(_store, self.names(at))
        return ast.Tuple(parts, ast.Store())

    def part(self) -> Part:
        """The column of the hidden list."""
        kinds: list[Any] = [one.name for one in self.elements]
        first = len(kinds)
        kinds += [given for _, given in self.staged]
        is_tuple = bool(self.staged) or isinstance(self.target, ast.Tuple) or first > 1
        raising = frozenset(range(first, len(kinds)))
        return Part("list", items=tuple(kinds), is_tuple=is_tuple, raising=raising)

    def body(self, iterated: ast.expr) -> ast.expr:
        """The expression that makes the list for Python."""
        if not self.staged:
            return ast.Call(ast.Name("__ss_list", ast.Load()), [iterated], [])
        parts: list[ast.expr] = [_load(one) for one in self.targets]
        if not self.is_flat:
            whole = parts[0]
            parts = [
                ast.Subscript(whole, ast.Constant(at), ast.Load())
                for at in range(len(self.elements))
            ]
        nothing = ast.arguments([], [], None, [], [], None, [])
        parts += [
            ast.Call(ast.Name("__ss_outcome", ast.Load()), [ast.Lambda(nothing, body)], [])
            for body, _ in self.staged
        ]
        loop = ast.comprehension(self.target, iterated, [], 0)
        return ast.ListComp(ast.Tuple(parts, ast.Load()), [loop])


def taken_apart(value: ast.expr, at: int, count: int, star: int | None) -> ast.expr:
    """For a staged loop's function, in Python: one value of ``a, *b = x``, taken apart.

    It is assigned to so many names, one of them with a star."""
    arguments: list[ast.expr] = [value, ast.Constant(count), ast.Constant(star)]
    call = ast.Call(ast.Name("__ss_taken_apart", ast.Load()), arguments, [])
    return ast.Subscript(call, ast.Constant(at), ast.Load())


def checked(value: ast.expr) -> ast.expr:
    """For Python, False, or what an expression raises."""
    return ast.Subscript(
        ast.Tuple([value, ast.Constant(False)], ast.Load()), ast.Constant(1), ast.Load()
    )


def _taken_apart(value: Any, count: int, star: int | None) -> list[Any]:
    values = list(value)
    if star is not None:
        if len(values) < count - 1:
            raise ValueError(
                f"not enough values to unpack (expected at least {count - 1}, got {len(values)})"
            )
        behind = len(values) - (count - star - 1)
        return [*values[:star], values[star:behind], *values[behind:]]
    if len(values) < count:
        raise ValueError(f"not enough values to unpack (expected {count}, got {len(values)})")
    if len(values) > count:
        raise ValueError(f"too many values to unpack (expected {count})")
    return values


NAMES: dict[str, Any] = {
    "__ss_list": list,
    "__ss_outcome": outcome_of,
    "__ss_taken_apart": _taken_apart,
}
"""What such functions use."""


def _store(name: str) -> ast.expr:
    return ast.Name(name, ast.Store())


def _load(target: ast.expr) -> ast.expr:
    assert isinstance(target, ast.Name)
    return ast.Name(target.id, ast.Load())


def with_places(made: Made) -> Made:
    """A staged loop, or what else staging has made, with a line number for each node inside."""
    for part in ast.walk(made):
        for one in ast.iter_child_nodes(part):
            if isinstance(one, ast.expr | ast.stmt) and not hasattr(one, "lineno"):
                ast.copy_location(one, part if hasattr(part, "lineno") else made)
    return made


def at_place(made: Made, node: ast.AST) -> Made:
    """A staged loop, or what else was made, with the line number of what it replaces."""
    for part in ast.walk(made):
        if not hasattr(part, "lineno"):
            ast.copy_location(part, node)
    return made

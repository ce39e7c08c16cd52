"""Loops over what Python makes of an event: the elements, and what Python makes of each.

What no column holds, a named tuple or what may be None, is not in the hidden list: there are the
fields that the loop reads, and of what may be None whether it is, and the value.

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
from specstream.compiler.facts.value_types import Type, is_scalar
from specstream.compiler.library.event_lists import ItemRead
from specstream.declarations.derived import Part, Scalar

Made = TypeVar("Made", bound=ast.AST)

__all__ = ["NAMES", "Loop", "checked", "taken_apart", "with_places"]


@dataclass
class Loop:
    """A loop on its way to be one over a hidden list.

    Attributes:
        number: tells its names from those of others.
        target: of the loop, as it was written.
        elements: types of what an element has in it.
        made: what Python's functions of it are made of.
        staged: what Python makes of an element, what that is, and whether it may raise.
    """

    number: int
    target: ast.expr
    elements: tuple[Type, ...]
    made: Any
    staged: list[tuple[ast.expr, Scalar | Part, bool]] = field(default_factory=list)
    known: dict[tuple[str, Scalar | Part, bool], int] = field(default_factory=dict)

    def read(self, body: ast.expr, given: Scalar | Part, raises: bool = True) -> ast.expr:
        """The read of something that Python makes of an element.

        Args:
            body: the expression for Python, over the loop's own names.
            given: what it gives.
            raises: it may raise, which is to happen where the operator gets to it.
        """
        key = ast.dump(body), given, raises
        if key not in self.known:
            self.known[key] = len(self.staged)
            self.staged.append((body, given, raises))
        names = [ast.Name(one, ast.Load()) for one in self.names(self.known[key])]
        if not raises:
            return names[0]
        return ItemRead.of(names[0], names[1], given if isinstance(given, Part) else None)

    def names(self, at: int) -> list[str]:
        """What hold the status, if it may raise, and the value of something staged."""
        name = f"__ss_item_{-self.number}_{at}"
        return [f"{name}_raised", name] if self.staged[at][2] else [name]

    @property
    def targets(self) -> list[ast.expr]:
        """What the loop gives the parts of an element to."""
        return list(self.target.elts) if isinstance(self.target, ast.Tuple) else [self.target]

    @property
    def is_flat(self) -> bool:
        """Whether each part of an element has its own target."""
        return len(self.targets) == len(self.elements)

    @property
    def is_held(self) -> bool:
        """Whether a column holds elements as they are."""
        return all(map(is_scalar, self.elements))

    @property
    def has_whole(self) -> bool:
        """Whether the loop's one name is given the parts of an element, which it has apart."""
        return bool(self.staged) and self.is_held and not self.is_flat

    @property
    def whole(self) -> list[str]:
        """Names of an element's parts, if the loop has one name for all of them."""
        return [f"__ss_part_{-self.number}_{at}" for at in range(len(self.elements))]

    @property
    def held(self) -> list[int]:
        """Which parts of an element the hidden list has as they are."""
        if not self.is_flat and not self.is_held:
            return []
        return [at for at, one in enumerate(self.elements) if is_scalar(one)]

    def new_target(self) -> ast.expr:
        """The target of the loop over the hidden list."""
        if not self.staged and self.is_held:
            return self.target
        targets = self.targets if self.is_flat else list(map(_store, self.whole))
        parts = [targets[at] for at in self.held]
        for at in range(len(self.staged)):
            parts += map(_store, self.names(at))
        return ast.Tuple(parts or [_store(f"__ss_part_{-self.number}")], ast.Store())

    def part(self) -> Part:
        """The column of the hidden list."""
        kinds: list[Any] = [self.elements[at].name for at in self.held]
        first = len(kinds)
        kinds += [given for _, given, _ in self.staged]
        is_tuple = bool(self.staged) or isinstance(self.target, ast.Tuple) or first > 1
        raising = [first + at for at, (_, _, raises) in enumerate(self.staged) if raises]
        return Part(
            "list",
            items=tuple(kinds or ["int"]),
            is_tuple=is_tuple or not self.is_held,
            raising=frozenset(raising),
        )

    def body(self, iterated: ast.expr) -> ast.expr:
        """The expression that makes the list for Python."""
        if not self.staged and self.is_held:
            return ast.Call(ast.Name("__ss_list", ast.Load()), [iterated], [])
        if self.is_flat:
            parts: list[ast.expr] = [_load(self.targets[at]) for at in self.held]
        else:
            whole = _load(self.targets[0])
            parts = [ast.Subscript(whole, ast.Constant(at), ast.Load()) for at in self.held]
        nothing = ast.arguments([], [], None, [], [], None, [])
        parts += [
            ast.Call(ast.Name("__ss_outcome", ast.Load()), [ast.Lambda(nothing, body)], [])
            if raises
            else body
            for body, _, raises in self.staged
        ]
        loop = ast.comprehension(self.target, iterated, [], 0)
        return ast.ListComp(ast.Tuple(parts or [ast.Constant(0)], ast.Load()), [loop])


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

"""Single assignment: values computed from the event in steps get one name for each step.

``s = event.w.strip()``, ``s = s.lower()``: of a name that is assigned in two places nothing can be
said about what it depends on. Where one assignment follows the other in a block, everything read
between them is the first value, which gets a name of its own. Only values made of the event,
constants and other such names are renamed. The suffix (a number behind a middle dot, as in
:mod:`specstream.compiler.frontend.loop_names`) is never shown to users.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.scopes import bound_names
from specstream.compiler.language.builtin_functions import names_where

__all__ = ["made_of_event", "name_steps"]

_FIRST = 100_000  # other names count from lower numbers
# Who uses up a generator where it stands.
_USING_UP = names_where(lambda one: one.goes_through and not one.is_iterator) | {"join"}


def name_steps(tree: ast.FunctionDef, events: Collection[str]) -> None:
    """Changes a function's tree.

    Args:
        tree: the function.
        events: its parameters that are the event.
    """
    numbers = itertools.count(_FIRST)
    for name in sorted(made_of_event(tree, events)):
        if not _is_read_later(tree, name):
            for block in list(_blocks_of(tree, _Block([], False, ()))):
                _tell_apart(tree, name, block, numbers)


def made_of_event(
    tree: ast.FunctionDef, events: Collection[str], is_added: bool = False
) -> set[str]:
    """Local names that are assigned nothing but values computed from the event, step by step.

    Each of their values is made of the event, of constants and of such names.

    Args:
        tree: of a function.
        events: its parameters that are the event.
        is_added: whatever is added to a name makes another value of it, not only a text.
    """
    local = bound_names(ast.Module(tree.body, []))
    parameters = {one.arg for one in ast.walk(tree.args) if isinstance(one, ast.arg)}
    values: dict[str, list[ast.expr]] = {}
    bindings: dict[str, int] = {}
    for node in ast.walk(tree):
        for name in _bound_by(node):
            bindings[name] = bindings.get(name, 0) + 1
        if is_added and isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            values.setdefault(node.target.id, []).append(node.value)
            continue
        for target, value in _steps_of(node):
            values.setdefault(target, []).append(value)
    made = {name for name, found in values.items() if bindings.get(name) == len(found)}
    made -= parameters
    made -= {name for name in made if any(isinstance(one, ast.Lambda) for one in values[name])}
    unknown = (local | parameters) - set(events)
    before = None
    while before != made:
        before = set(made)
        made = {
            name
            for name in made
            if not any(_names_in_step(one) & (unknown - made) for one in values[name])
        }
    return made


def _bound_by(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if isinstance(node, ast.Global | ast.Nonlocal):
        return [*node.names]
    found = (getattr(node, field, None) for field in ("arg", "name", "rest"))
    return [name for name in found if isinstance(name, str)]


def _steps_of(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """For single assignment: the names whose steps a statement is, each with its value."""
    if isinstance(node, ast.AugAssign) and _adds_text(node) and isinstance(node.target, ast.Name):
        yield node.target.id, node.value
    if isinstance(node, ast.For):
        yield from ((name, node.iter) for name in _stored(node.target))
    for target in node.targets if isinstance(node, ast.Assign) else ():
        assert isinstance(node, ast.Assign)
        for one in target.elts if isinstance(target, ast.Tuple | ast.List) else [target]:
            one = one.value if isinstance(one, ast.Starred) else one
            if isinstance(one, ast.Name):
                yield one.id, node.value


def _stored(target: ast.expr) -> Iterator[str]:
    for one in ast.walk(target):
        if isinstance(one, ast.Name):
            yield one.id


def _adds_text(node: ast.AugAssign) -> bool:
    """Whether ``s += ...`` is a step of single assignment: adds a text; a list is changed."""
    is_constant = isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    return isinstance(node.op, ast.Add) and (is_constant or isinstance(node.value, ast.JoinedStr))


def _names_in_step(value: ast.expr) -> set[str]:
    """For single assignment: the names that a step's value is made of, but those it binds."""
    own = {name for node in ast.walk(value) for name in _bound_by(node)}
    return {one.id for one in ast.walk(value) if isinstance(one, ast.Name)} - own


def _is_read_later(tree: ast.FunctionDef, name: str) -> bool:
    """Whether a function or generator reads the name later: its steps cannot be renamed."""
    used_up = {
        id(one)
        for call in ast.walk(tree)
        if isinstance(call, ast.Call) and _called(call) in _USING_UP
        for one in call.args
    }
    return any(
        any(_has(one, name) for one in ast.walk(node))
        for node in ast.walk(tree)
        if (isinstance(node, ast.FunctionDef | ast.Lambda) and node is not tree)
        or (isinstance(node, ast.GeneratorExp) and id(node) not in used_up)
    )


def _called(call: ast.Call) -> str:
    return getattr(call.func, "id", "") or getattr(call.func, "attr", "")


@dataclass(frozen=True)
class _Block:
    """Statements one after the other.

    Attributes:
        is_within: something around them may leave or repeat them.
        later: what is done behind them.
    """

    body: list[ast.stmt]
    is_within: bool
    later: tuple[ast.stmt, ...]


def _blocks_of(node: ast.AST, around: _Block) -> Iterator[_Block]:
    """The blocks of a statement, the inner ones before those around them."""
    is_within = around.is_within or isinstance(node, ast.For | ast.While | ast.Try)
    for one in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield from _blocks_of(one, _Block([], is_within, around.later))
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, None)
        if isinstance(body, list):
            for at, one in enumerate(body):
                later = (*body[at + 1 :], *around.later)
                yield from _blocks_of(one, _Block([], is_within, later))
            yield _Block(body, is_within, around.later)


def _tell_apart(tree: ast.FunctionDef, name: str, around: _Block, numbers: Iterator[int]) -> None:
    """Gives each value that a name has in a block a name of its own; the last one as well, if
    nothing behind the block reads it."""
    block = around.body
    given = [at for at, one in enumerate(block) if _is_assignment_to(one, name)]
    if not given or (len(given) < 2 and block is tree.body):
        return
    for at in given:
        block[at] = _augmented_as_assignment(block[at])
    first = block[given[0]]
    inside = {id(one) for statement in block[given[0] :] for one in ast.walk(statement)}
    inside -= {id(one) for one in ast.walk(first.value)}  # type: ignore[attr-defined]
    outside = [one for one in ast.walk(tree) if _has(one, name) and id(one) not in inside]
    if around.is_within and outside:
        return
    is_free = not any(_has(one, name) for later in around.later for one in ast.walk(later))
    segments: list[list[ast.AST]] = []
    for at, statement in enumerate(block[given[0] :], start=given[0]):
        if isinstance(statement, ast.Assign) and at in given:
            if segments:
                segments[-1].append(statement.value)
            segments.append([*statement.targets])
        else:
            segments[-1].append(statement)
    for segment in segments if is_free else segments[:-1]:
        new = f"{name}·{next(numbers)}"
        for part in segment:
            for one in ast.walk(part):
                if isinstance(one, ast.Name) and one.id == name:
                    one.id = new


def _has(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_assignment_to(statement: ast.stmt, name: str) -> bool:
    """Whether a statement is a step: it assigns the name, and that is all that it does."""
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        return _has(statement.targets[0], name)
    is_added = isinstance(statement, ast.AugAssign) and _adds_text(statement)
    return is_added and _has(statement.target, name)  # type: ignore[attr-defined]


def _augmented_as_assignment(statement: ast.stmt) -> ast.stmt:
    """``s += "x"`` as ``s = s + "x"``: a step that can assign a name of its own."""
    if not isinstance(statement, ast.AugAssign) or not isinstance(statement.target, ast.Name):
        return statement
    read = ast.Name(statement.target.id, ast.Load())
    made = ast.Assign([statement.target], ast.BinOp(read, statement.op, statement.value))
    return at_place(made, statement)

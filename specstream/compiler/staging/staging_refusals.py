"""What can neither be compiled nor computed before the operator runs: why, and what to write."""

from __future__ import annotations

import ast
import functools
import inspect
import types
from typing import NoReturn

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_times import STATE
from specstream.compiler.facts.dates_and_decimals import as_number
from specstream.compiler.facts.name_bindings import look_up
from specstream.compiler.facts.value_types import ANY, STR, Type
from specstream.compiler.language.hints import OF_CACHED
from specstream.compiler.staging.staged_values import StagedValues
from specstream.declarations.options import nearest

__all__ = ["check_field", "refuse_misspelt", "refuse_text", "refuse_unknown"]


def check_field(values: StagedValues, node: ast.Attribute) -> None:
    """A named tuple of the event without a field that it is asked for is refused."""
    owner = values.alone.found.get(node.value)
    given = None if owner is None else of.required(owner.type)
    if given is None or not of.is_record(given) or hasattr(given.cls, node.attr):
        return
    names: tuple[str, ...] = getattr(given.cls, "_fields", ())
    near = nearest(node.attr, names)
    shown = ast.unparse(node.value)
    values.refuse(
        node,
        f"{shown!r} is a {of.described(given)}, which has no {node.attr!r}",
        f"it has {', '.join(names)}" if near is None else f"write {shown}.{near}",
    )


def refuse_unknown(values: StagedValues, node: ast.expr, given: Type) -> NoReturn:
    """Refuses what Python would compute, of the event alone, and no column holds."""
    text = ast.unparse(node)
    refuse_misspelt(values, node)
    part = node.func if isinstance(node, ast.Call) else node
    if isinstance(part, ast.Attribute) and of.is_number(values.alone.of(part.value).type):
        of_what = ast.unparse(part.value)
        values.refuse(
            node,
            f"{of_what} is a number, and has no {part.attr!r}",
            f"of a column that is a timestamp or date, write ss.when({of_what}).{part.attr}",
        )
    called = values.alone.constant(node.func) if isinstance(node, ast.Call) else None
    if isinstance(called, functools._lru_cache_wrapper) and given == ANY:
        values.refuse(node, f"{text} {OF_CACHED[0]}", OF_CACHED[1])
    if not of.is_known(given):
        _refuse_helper(values, node)
        values.refuse(
            node,
            f"{text} is computed by Python before the operator runs, and the type of its "
            "result is not known",
            "annotate it where it is assigned, like name: float = ..., or call a function "
            "marked @ss.pure that says what it returns",
        )
    values.refuse(
        node,
        f"{text} is a {of.described(given)}, which only Python has",
        as_number(given)
        or "take what you need out of it, as an int, float, bool, str, or a tuple or list of these",
    )


def refuse_text(values: StagedValues, node: ast.expr) -> None:
    """Refuses an expression of the state that is certain to be of strings: neither Python nor
    compiled code can compute it."""
    if isinstance(node, ast.JoinedStr):
        values.refuse(
            node,
            f"a formatted string cannot be used here: {_culprit(values, node)} is known only when "
            "the event runs",
            "format what depends on the event alone, or emit the string into a column that is "
            'declared str: emit(f"...")',
        )
    parts = [one for one in ast.iter_child_nodes(node) if isinstance(one, ast.expr)]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        parts.append(node.func.value)
    found = [values.alone.found.get(one) for one in parts]
    if any(one and one.depends < STATE and of.required(one.type) == STR for one in found):
        _refuse_list(values, node)
        values.refuse(
            node,
            f"{ast.unparse(node)}, of a string, cannot be computed before the operator runs: "
            f"{_culprit(values, node)} is known only when the event runs",
            "make it depend on the event alone; strings of the state can be compared, sorted, "
            "measured, and looked for with `in`, startswith and endswith",
        )


def _refuse_list(values: StagedValues, node: ast.expr) -> None:
    """A text of a list that the operator makes: only Python has the texts of its elements."""
    for one in ast.walk(node):
        assigned = [
            statement.value
            for statement in ast.walk(values.source.tree)
            if isinstance(one, ast.Name)
            and isinstance(statement, ast.Assign)
            and any(ast.dump(of) == ast.dump(_stored(one)) for of in statement.targets)
        ]
        if assigned and all(isinstance(value, ast.List | ast.ListComp) for value in assigned):
            assert isinstance(one, ast.Name)
            values.refuse(
                node,
                f"{ast.unparse(node)} needs the texts of {one.id!r}, a list that is built "
                "while the event runs",
                "write the list there, like ', '.join([event.x, event.y]), or make the text in "
                "a plain function at module level, text = f(event.x, event.y)",
            )


def _culprit(values: StagedValues, node: ast.expr) -> str:
    """The first part that depends on more than the event, as it was written."""
    for part in ast.iter_child_nodes(node):
        found = values.alone.found.get(part) if isinstance(part, ast.expr) else None
        if found is not None and found.depends == STATE:
            assert isinstance(part, ast.expr)
            is_whole = isinstance(part, ast.Attribute | ast.Subscript | ast.Call | ast.Name)
            return ast.unparse(part) if is_whole else _culprit(values, part)
    return ast.unparse(node)


def _refuse_helper(values: StagedValues, node: ast.expr) -> None:
    """A function of the user's, which could say what it returns."""
    waiting, met = [node], set[str]()
    while waiting:
        part: ast.AST = waiting.pop()
        waiting += [one for one in ast.iter_child_nodes(part) if isinstance(one, ast.expr)]
        binding = values.alone.bindings.get(part.id) if isinstance(part, ast.Name) else None
        if isinstance(part, ast.Name) and binding is not None and part.id not in met:
            met.add(part.id)
            waiting.append(binding.value)
        function = values.alone.constant(part.func) if isinstance(part, ast.Call) else None
        is_plain = isinstance(function, types.FunctionType)
        if is_plain and function in values.staging.returns.reasons:
            filename, line, culprit = values.staging.returns.reasons[function]
            where = "" if filename == values.source.filename else f" of {filename}"
            arguments = ", ".join(inspect.signature(function).parameters)
            values.refuse(
                node,
                f"{function.__name__}() is called by Python before the operator runs, and its "
                f"return type is not known: the type of {culprit} in line {line}{where} is not",
                f"annotate it where it is defined, like def {function.__name__}({arguments}) "
                "-> float, or int, bool, str, a tuple of these, or one of these or None",
            )


def refuse_misspelt(values: StagedValues, node: ast.expr) -> None:
    """A name that a module has not: Python would say so only when the operator gets there."""
    for part in ast.walk(node):
        if not (isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)):
            continue
        module = look_up(values.source.original, part.value.id)
        if isinstance(module, types.ModuleType) and not hasattr(module, part.attr):
            near = nearest(part.attr, dir(module))
            values.refuse(
                node,
                f"module {module.__name__!r} has no {part.attr!r}",
                f"write {part.value.id}.{near}" if near is not None else "write a name that it has",
            )


def _stored(name: ast.Name) -> ast.Name:
    return ast.Name(name.id, ast.Store())

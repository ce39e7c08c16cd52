"""Formatted strings of more than the event: what is emitted, and what exceptions are made of."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial

from specstream.compiler.facts.binding_times import EVENT, STATE
from specstream.compiler.facts.value_types import STR
from specstream.compiler.frontend.joined_strings import as_joined
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.try_and_raise import is_caught
from specstream.compiler.oracle_objects.forms import EmittedForm, form_of
from specstream.compiler.staging.staged_values import StagedValues
from specstream.compiler.staging.texts_of_dates import is_own, with_own_shown

__all__ = [
    "as_form",
    "emitted_form",
    "formatted",
    "is_of_python",
    "joined",
    "names_only_emitted",
    "without_tuples",
]


def as_form(values: StagedValues, node: ast.expr) -> ast.JoinedStr | None:
    """The formatted string that a value is, if it is one of more than the event."""
    found = values.alone.of(node)
    if isinstance(node, ast.JoinedStr):
        if found.depends == EVENT and any(is_own(values, one) for one in node.values):
            return None
        return with_own_shown(values, node) if found.compiled is None else None
    names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    is_caught = bool(names & values.caught)
    if found.depends != STATE and not is_caught:
        return None
    form = joined(values, node)
    if form is None and is_caught and not isinstance(node, ast.Name):
        part = ast.FormattedValue(node, ord("s"), None)  # error.args[0]
        form = at_place(ast.JoinedStr([part]), node)
    return None if form is None else with_own_shown(values, form)


def formatted(values: StagedValues, node: ast.expr) -> ast.expr:
    """The same as a formatted string, which compiled code has where exceptions are caught; a
    part that only Python knows is a text of the event."""
    if isinstance(node, ast.FormattedValue):
        found = values.alone.of(node.value)
        is_alone = found.depends == EVENT and not found.is_bound
        if not is_alone or found.compiled is not None:
            return node
        return at_place(ast.FormattedValue(ast.JoinedStr([node]), -1, None), node)
    if values.alone.of(node).depends != STATE or is_caught(node, values.caught):
        return node
    return joined(values, node) or node


def is_of_python(values: StagedValues, node: ast.JoinedStr) -> bool:
    """Whether a formatted string is of the event alone, and of more than compiled code has."""
    if values.alone.of(node).depends != EVENT:
        return False
    parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
    return any(values.alone.of(part).compiled is None for part in parts)


def joined(values: StagedValues, node: ast.expr) -> ast.JoinedStr | None:
    """The formatted string that an expression can be written as; None: it is none."""
    is_str = lambda callee: values.alone.constant(callee) is str  # noqa: E731
    return as_joined(node, is_str, partial(_is_text, values))


def _is_text(values: StagedValues, node: ast.expr) -> bool:
    """Whether an expression gives a string, that of a field of the state included."""
    field = node.value if isinstance(node, ast.Subscript) else node
    if isinstance(field, ast.Attribute) and values.alone.of(field).depends == STATE:
        return field.attr in values.staging.analysis.text_fields
    return values.alone.of(node).type == STR


def names_only_emitted(values: StagedValues) -> frozenset[str]:
    """Names that are assigned in one place, and read nowhere but as values in calls of emit."""
    tree, emitted = values.source.tree, set[int]()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and values.is_emit(node.func):
            given = (*without_tuples(node.args), *(one.value for one in node.keywords))
            emitted |= set(map(id, given))
    read = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name)
        and not isinstance(node.ctx, ast.Store)
        and id(node) not in emitted
    }
    return frozenset(values.alone.bindings.keys() - read)


def emitted_form(values: StagedValues, name: str, node: ast.JoinedStr) -> EmittedForm:
    """A formatted string that is emitted into a column: its parts, as they were written."""
    columns = dict(values.staging.analysis.emits)
    if name in columns and columns[name].kind != "str":
        caught = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
        if len(node.values) == 1 and any(one.id in values.caught for one in caught):
            part = node.values[0]
            shown = ast.unparse(part.value if isinstance(part, ast.FormattedValue) else part)
            values.refuse(
                node,
                f"emitted column {name!r} is declared {columns[name]} and gets {shown}, which "
                "is made of a caught exception; compiled code knows its class only",
                "emit str(e) into a column that is declared str, or a number of your own in "
                "an except clause for each class",
            )
        values.refuse(
            node,
            f"emitted column {name!r} is declared {columns[name]} and gets a formatted string",
            "emit it into a column that is declared str",
        )
    try:
        texts = values.staging.analysis.texts
        form, parts = form_of(node, name, values.source.filename, values.caught, texts)
    except ValueError as error:
        problem, _, hint = str(error).partition(": ")
        values.refuse(node, problem, hint)
    values.staging.forms.append(form)
    made = EmittedForm(parts, ast.Load())
    made.number = len(values.staging.forms) - 1
    made.shown = [one for one in node.values if isinstance(one, ast.FormattedValue)]
    return ast.copy_location(made, node)


def without_tuples(given: list[ast.expr]) -> Iterator[ast.expr]:
    """The arguments of a call, with the parts of a tuple that stands behind a star."""
    for one in given:
        if isinstance(one, ast.Starred) and isinstance(one.value, ast.Tuple | ast.List):
            yield from without_tuples(one.value.elts)
        else:
            yield one

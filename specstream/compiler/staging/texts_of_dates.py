"""Texts of the event's dates, times and decimals, in strings whose other parts come from the state.

Python makes these texts before the operator runs. Where only compiled code knows which of several
values is shown, it has no more than a number: that is refused.
"""

from __future__ import annotations

import ast
import types

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_base import item
from specstream.compiler.facts.binding_times import EVENT
from specstream.compiler.facts.dates_and_decimals import is_of_column, named_of
from specstream.compiler.facts.fact import Binding
from specstream.compiler.facts.shown_parameters import (
    arguments_of,
    is_of_ints,
    shown_in,
    source_tree,
)
from specstream.compiler.facts.value_types import Type
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.staging.staged_values import INNER, StagedValues

__all__ = ["check_given", "is_own", "own_said", "says_own", "with_own_shown"]


def with_own_shown(values: StagedValues, form: ast.JoinedStr) -> ast.JoinedStr:
    """The same formatted string, with these texts in it as parts of their own."""
    for one in form.values:
        if isinstance(one, ast.FormattedValue):
            _refuse_number_shown(values, one)
            _refuse_int_format(values, one)
    if not any(is_own(values, one) for one in form.values):
        return form
    parts = [
        at_place(ast.FormattedValue(ast.JoinedStr([one]), -1, None), one)
        if is_own(values, one)
        else one
        for one in form.values
    ]
    made: ast.JoinedStr = at_place(ast.JoinedStr(parts), form)
    values.alone.of(made)
    return made


def is_own(values: StagedValues, part: ast.expr) -> bool:
    """Whether a part of a formatted string shows a date, time or decimal of the event."""
    if not isinstance(part, ast.FormattedValue):
        return False
    found = values.alone.of(part.value)
    return found.depends == EVENT and values.alone.dates.is_counted(part.value)


def _refuse_int_format(values: StagedValues, part: ast.FormattedValue) -> None:
    """``"%d" % (event.paid, state.n)``: no other formatted string has the int of a Decimal."""
    spec = part.format_spec
    if part.value in values.alone.dates.own and spec is not None and is_of_ints(spec):
        text = ast.unparse(part.value)
        values.refuse(
            part.value,
            f"the int of {text}, a Decimal, is shown beside what is of the state",
            f"make a text of it first, like text = '%d' % {text}, and show that",
        )


def says_own(values: StagedValues, node: ast.expr) -> bool:
    """Whether it is a date, time or decimal of the event, as it stands there."""
    return values.alone.of(node).depends == EVENT and _column_in(values, node, set()) is not None


def own_said(values: StagedValues, node: ast.expr) -> ast.expr:
    """A date, time or decimal that an exception is made of."""
    if values.staging.analysis.catches:
        text = ast.unparse(node)
        values.refuse(
            node,
            f"an exception is made from {text}, {named_of(values.alone.of(node).type)}, in an "
            "operator that catches exceptions",
            f"make it from the text, str({text}), or of {_number_text(node)}, the number",
        )
    made: ast.expr = at_place(values.check(values.derive(node, INNER)), node)
    return made


def _refuse_number_shown(values: StagedValues, part: ast.FormattedValue) -> None:
    """A part that compiled code chooses among dates, say, and has the number of."""
    if values.alone.of(part.value).depends == EVENT:
        return
    column = _column_in(values, part.value, set())
    if column is not None:
        text = ast.unparse(part.value)
        values.refuse(
            part.value,
            f"{text} may be {named_of(column)} of the event where it is shown as a text, and "
            "is a number to the operator",
            f"make it a text where it gets its value, like str(event.x), or write "
            f"{_number_text(part.value)} for the number",
        )


def _column_in(values: StagedValues, node: ast.expr, met: set[str]) -> Type | None:
    """The column of dates, times or decimals that an expression has the value of."""
    if isinstance(node, ast.IfExp):
        return _column_in(values, node.body, met) or _column_in(values, node.orelse, met)
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return None  # whatever it is made of, it is a number
    binding = values.alone.bindings.get(node.id) if isinstance(node, ast.Name) else None
    if binding is not None:
        return _column_of(values, binding, met)
    given = of.required(values.alone.of(node).type)
    if is_of_column(given):
        return given
    if not isinstance(node, ast.Name) or node.id in met or node.id in _worked_with(values):
        return None
    met.add(node.id)
    found = [_column_of(values, one, met) for one in values.alone.places.get(node.id, [])]
    return next(filter(None, found), None)


def _column_of(values: StagedValues, binding: Binding, met: set[str]) -> Type | None:
    """The same of what a name is assigned."""
    if binding.at is None and binding.loop is None:
        return _column_in(values, binding.value, met)
    given = values.alone.of(binding.value).type
    (one, *more) = values.alone.places.get(getattr(binding.value, "id", ""), [binding])
    if given == of.ANY and not more:
        given = values.alone.of(one.value).type  # of a list that compiled code makes
    if binding.loop is not None:
        given = of.element(given)
    if binding.at is not None:
        given = item(given, *binding.at, binding.star)
    given = of.required(given)
    return given if is_of_column(given) else None


def _worked_with(values: StagedValues) -> set[str]:
    """Names that are counted on with."""
    targets = [
        node.target for node in ast.walk(values.source.tree) if isinstance(node, ast.AugAssign)
    ]
    return {one.id for one in targets if isinstance(one, ast.Name)}


def check_given(values: StagedValues, node: ast.Call) -> None:
    """A function that is compiled along, and shows a parameter."""
    tree, function = _called_tree(values, node)
    if tree is None:
        return
    given = arguments_of(tree, node)
    columns = {name: _column_in(values, one, set()) for name, one in given.items()}
    if not any(columns.values()):
        return
    shown = shown_in(tree, function, values.staging.parse)
    for name, column in columns.items():
        if column is not None and name in shown:
            text = ast.unparse(given[name])
            values.refuse(
                node,
                f"{tree.name}() shows {name!r} as a text, and {text} is {named_of(column)} of "
                "the event, which is a number there",
                f"give it the text, str({text}), or {_number_text(given[name])} for the number",
            )


def _called_tree(
    values: StagedValues, node: ast.Call
) -> tuple[ast.FunctionDef | None, types.FunctionType]:
    """A function that a call names, one of the module or one inside of this; and by whose
    names it goes."""
    function = values.alone.constant(node.func)
    if isinstance(function, types.FunctionType):
        return source_tree(function, values.staging.parse), function
    inside = values.alone.elements.defined_inside(node.func)
    return inside if isinstance(inside, ast.FunctionDef) else None, values.source.original


def _number_text(node: ast.expr) -> str:
    """How to write the number that a date, time or decimal is, where its text is refused."""
    text = ast.unparse(node)
    return f"{text} + 0" if isinstance(node, ast.Name | ast.Attribute) else f"({text}) + 0"

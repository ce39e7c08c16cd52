"""Texts of the event's dates, times and decimals, in strings whose other parts come from the state.

Python makes these texts before the operator runs. Where only compiled code knows which of several
values is shown, it has no more than a number: that is refused.
"""

from __future__ import annotations

import ast
import types

from specstream.compiler.facts import value_types as of
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
from specstream.compiler.staging.staged_loops import at_place as _at
from specstream.compiler.staging.staged_values import Shape
from specstream.compiler.staging.staging_refusals import StagingRefusals

__all__ = ["TOLD", "OwnTexts"]


TOLD = Shape((), is_tuple=False, is_seen=False)
"""What an exception is made of, which no column has."""


class OwnTexts(StagingRefusals):
    """The texts of one function."""

    def with_own_shown(self, form: ast.JoinedStr) -> ast.JoinedStr:
        """The same formatted string, with these texts in it as parts of their own."""
        for one in form.values:
            if isinstance(one, ast.FormattedValue):
                self.refuse_number_shown(one)
                self.refuse_int_format(one)
        if not any(map(self.is_own, form.values)):
            return form
        values = [
            _at(ast.FormattedValue(ast.JoinedStr([one]), -1, None), one)
            if self.is_own(one)
            else one
            for one in form.values
        ]
        made: ast.JoinedStr = _at(ast.JoinedStr(values), form)
        self.alone.of(made)
        return made

    def is_own(self, part: ast.expr) -> bool:
        """Whether a part of a formatted string shows a date, time or decimal of the event."""
        if not isinstance(part, ast.FormattedValue):
            return False
        found = self.alone.of(part.value)
        return found.depends == EVENT and self.alone.is_counted(part.value)

    def refuse_int_format(self, part: ast.FormattedValue) -> None:
        """``"%d" % (event.paid, state.n)``: no other formatted string has the int of a Decimal."""
        spec = part.format_spec
        if part.value in self.alone.own and spec is not None and is_of_ints(spec):
            text = ast.unparse(part.value)
            self.refuse(
                part.value,
                f"the int of {text}, a Decimal, is shown beside what is of the state",
                f"make a text of it first, like text = '%d' % {text}, and show that",
            )

    def says_own(self, node: ast.expr) -> bool:
        """Whether it is a date, time or decimal of the event, as it stands there."""
        return self.alone.of(node).depends == EVENT and self.column_in(node, set()) is not None

    def own_said(self, node: ast.expr) -> ast.expr:
        """A date, time or decimal that an exception is made of."""
        if self.staging.analysis.catches:
            text = ast.unparse(node)
            self.refuse(
                node,
                f"an exception is made from {text}, {named_of(self.alone.of(node).type)}, in an "
                "operator that catches exceptions",
                f"make it from the text, str({text}), or of {_number_text(node)}, the number",
            )
        made: ast.expr = _at(self.check(self.derive(node, TOLD)), node)
        return made

    def refuse_number_shown(self, part: ast.FormattedValue) -> None:
        """A part that compiled code chooses among dates, say, and has the number of."""
        if self.alone.of(part.value).depends == EVENT:
            return
        column = self.column_in(part.value, set())
        if column is not None:
            text = ast.unparse(part.value)
            self.refuse(
                part.value,
                f"{text} may be {named_of(column)} of the event where it is shown as a text, and "
                "is a number to the operator",
                f"make it a text where it gets its value, like str(event.x), or write "
                f"{_number_text(part.value)} for the number",
            )

    def column_in(self, node: ast.expr, met: set[str]) -> Type | None:
        """The column of dates, times or decimals that an expression has a value of, as it is."""
        if isinstance(node, ast.IfExp):
            return self.column_in(node.body, met) or self.column_in(node.orelse, met)
        if isinstance(node, ast.BinOp | ast.UnaryOp):
            return None  # whatever it is made of, it is a number
        binding = self.alone.bindings.get(node.id) if isinstance(node, ast.Name) else None
        if binding is not None:
            return self.column_of(binding, met)
        given = of.required(self.alone.of(node).type)
        if is_of_column(given):
            return given
        if not isinstance(node, ast.Name) or node.id in met or node.id in self.worked_with():
            return None
        met.add(node.id)
        found = [self.column_of(one, met) for one in self.alone.places.get(node.id, [])]
        return next(filter(None, found), None)

    def column_of(self, binding: Binding, met: set[str]) -> Type | None:
        """The same of what a name is assigned."""
        if binding.at is None and binding.loop is None:
            return self.column_in(binding.value, met)
        given = self.alone.of(binding.value).type
        (one, *more) = self.alone.places.get(getattr(binding.value, "id", ""), [binding])
        if given == of.ANY and not more:
            given = self.alone.of(one.value).type  # of a list that compiled code makes
        if binding.loop is not None:
            given = of.element(given)
        if binding.at is not None:
            given = self.alone.item(given, *binding.at, binding.star)
        given = of.required(given)
        return given if is_of_column(given) else None

    def worked_with(self) -> set[str]:
        """Names that are counted on with."""
        targets = [
            node.target for node in ast.walk(self.source.tree) if isinstance(node, ast.AugAssign)
        ]
        return {one.id for one in targets if isinstance(one, ast.Name)}

    def check_given(self, node: ast.Call) -> None:
        """A function that is compiled along, and shows a parameter."""
        tree, function = self.called_tree(node)
        if tree is None:
            return
        given = arguments_of(tree, node)
        columns = {name: self.column_in(one, set()) for name, one in given.items()}
        if not any(columns.values()):
            return
        shown = shown_in(tree, function, self.staging.parse)
        for name, column in columns.items():
            if column is not None and name in shown:
                text = ast.unparse(given[name])
                self.refuse(
                    node,
                    f"{tree.name}() shows {name!r} as a text, and {text} is {named_of(column)} of "
                    "the event, which is a number there",
                    f"give it the text, str({text}), or {_number_text(given[name])} for the number",
                )

    def called_tree(self, node: ast.Call) -> tuple[ast.FunctionDef | None, types.FunctionType]:
        """A function that a call names, one of the module or one inside of this; and by whose
        names it goes."""
        function = self.alone.constant(node.func)
        if isinstance(function, types.FunctionType):
            return source_tree(function, self.staging.parse), function
        inside = [
            one
            for one in ast.walk(self.source.tree)
            if isinstance(one, ast.FunctionDef)
            and isinstance(node.func, ast.Name)
            and one.name == node.func.id
        ]
        return inside[0] if inside else None, self.source.original


def _number_text(node: ast.expr) -> str:
    """How to write the number that a date, time or decimal is, where its text is refused."""
    text = ast.unparse(node)
    return f"{text} + 0" if isinstance(node, ast.Name | ast.Attribute) else f"({text}) + 0"

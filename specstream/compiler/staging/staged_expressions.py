"""Expressions of a function: reads of hidden columns take the place of what is staged.

Of expressions copies are made, because what is known of an expression
(:mod:`specstream.compiler.facts.binding_times`) is known of the nodes that it was written as.
"""

from __future__ import annotations

import ast
import copy
from dataclasses import replace
from typing import Any

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_times import EVENT, STATE
from specstream.compiler.facts.fact import Fact
from specstream.compiler.facts.lengths import Lengths, argument_groups
from specstream.compiler.facts.value_types import ANY, BOOL, FLOAT, INT, STR, Type
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.scopes import COMPREHENSIONS
from specstream.compiler.staging.staged_forms import (
    as_form,
    emitted_form,
    formatted,
    is_of_python,
    joined,
    without_tuples,
)
from specstream.compiler.staging.staged_lists import StagedLists
from specstream.compiler.staging.staged_loops import Loop, with_places
from specstream.compiler.staging.staged_values import INNER, Guard, StagedValues
from specstream.compiler.staging.staging_refusals import (
    check_field,
    refuse_misspelt,
    refuse_text,
    refuse_unknown,
)
from specstream.compiler.staging.texts_of_dates import check_given, is_own, own_said, says_own

__all__ = ["StagedExpressions"]


class StagedExpressions:
    """Stages out of the expressions of one function.

    Attributes:
        kept_forms: formatted strings under a name that is emitted and nothing else.
        says: what is gone through is what an exception is made of.
    """

    def __init__(self, values: StagedValues, lists: StagedLists) -> None:
        self.values = values
        self.lists = lists
        self.alone = values.alone
        self.kept_forms: dict[str, ast.JoinedStr] = {}
        self.says = False

    def expression(self, node: ast.expr) -> ast.expr:
        """An expression, with reads of hidden columns in place of what is staged."""
        self.alone.of(node)
        return self.rewritten(node)

    def truth(self, node: ast.expr) -> ast.expr:
        """The same for one of which only the truth matters."""
        self.alone.truth(node)
        return self.rewritten(node)

    def rewritten(self, node: ast.expr) -> ast.expr:
        """A copy: what is known of an expression is known of the nodes that it was written as."""
        if node in self.alone.dates.never:
            self.values.refuse(node, *self.alone.dates.never[node])
        found = self.alone.found.get(node)
        if self.says and isinstance(node, ast.FormattedValue | ast.Starred | ast.Slice):
            return self.in_place(node)
        if self.says and found is not None and self.is_told(found):
            self.values.drop_assigned(node)
            return at_place(self.values.check(self.values.derive(node, INNER)), node)
        if found is not None and found.is_staged:
            self.values.drop_assigned(node)
            given = BOOL if node in self.alone.truths else found.type
            read = self.lists.item_read if found.is_bound else self.values.staged
            return read(node, given)
        if isinstance(node, ast.Attribute):
            check_field(self.values, node)
        if (
            found is not None
            and of.is_record(found.type)
            and self.alone.elements.is_of_element(found)
        ):
            return self.lists.record(node)
        if found is not None and self.lists.is_hidden_list(node):
            return self.lists.list_read(node)
        if isinstance(node, COMPREHENSIONS) and (
            self.alone.elements.goes_through(node.generators[0]) is not None
        ):
            return self.comprehension(node)
        if (
            found is not None
            and found.compiled is None
            and not found.is_bound
            and not self.lists.is_left(node)
        ):
            if found.depends == EVENT:
                refuse_unknown(self.values, node, found.type)
            if found.depends == STATE and not self.says:
                refuse_text(self.values, node)
        if isinstance(node, ast.BoolOp):
            return self.bool_op(node)
        made = copy.copy(node)
        if isinstance(node, ast.Call) and self.values.is_emit(node.func):
            return self.emitted(node)
        if isinstance(node, ast.Call):
            check_given(self.values, node)
        if isinstance(node, ast.IfExp):
            assert isinstance(made, ast.IfExp)
            made.test = self.rewritten(node.test)
            made.body = self.under(node.body, (node.test, True))
            made.orelse = self.under(node.orelse, (node.test, False))
            return made
        changed: ast.expr = self.with_parts(made)
        return changed

    def in_place(self, node: ast.expr) -> ast.expr:
        """What is no value of its own, with its parts rewritten."""
        made = copy.copy(node)
        if isinstance(made, ast.FormattedValue):
            made.value = self.rewritten(made.value)
            if made.format_spec is not None:
                made.format_spec = self.in_place(made.format_spec)
            return made
        parts: ast.expr = self.with_parts(made)
        return parts

    def with_parts(self, made: Any) -> Any:
        """Changes the parts of a copy to what they are rewritten to."""
        for name, value in ast.iter_fields(made):
            if isinstance(value, list):
                setattr(made, name, [self.part(one) for one in value])
            else:
                setattr(made, name, self.part(value))
        return made

    def part(self, node: Any) -> Any:
        if isinstance(node, ast.expr):
            return self.rewritten(node)
        if isinstance(node, ast.keyword | ast.comprehension):
            return self.with_parts(copy.copy(node))
        return node

    def bool_op(self, node: ast.BoolOp) -> ast.expr:
        depth, holds = len(self.values.guards), isinstance(node.op, ast.And)
        made = copy.copy(node)
        made.values = []
        for value in node.values:
            made.values.append(self.rewritten(value))
            self.values.guards.append((value, holds))
        del self.values.guards[depth:]
        return made

    def under(self, node: ast.expr, guard: Guard) -> ast.expr:
        self.values.guards.append(guard)
        node = self.rewritten(node)
        self.values.guards.pop()
        return node

    def comprehension(self, node: Any) -> ast.expr:
        """A comprehension over such a list."""
        made = copy.copy(node)
        begun: list[tuple[Loop, list[ast.expr], list[ast.expr]] | None] = []
        rest: dict[ast.comprehension, ast.comprehension] = {}
        for one in node.generators:
            if one is not node.generators[0] and not self.alone.elements.is_of_records(one):
                rest[one] = self.part(one)
                begun.append(None)
                continue
            loop = self.lists.begin(one)
            guards = self.values.guarding(one.iter, loop.made)
            begun.append((loop, guards, list(map(self.rewritten, one.ifs))))
        depth = len(self.values.guards)
        for test in (test for one in node.generators for test in one.ifs):
            if self.alone.of(test).is_bound:
                self.values.guards.append((test, True))
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(made, name, self.rewritten(getattr(node, name)))
        del self.values.guards[depth:]
        made.generators = []
        # What an inner one goes through may be made of an element of an outer one.
        for one, of_list in reversed(list(zip(node.generators, begun, strict=True))):
            if of_list is None:
                made.generators.insert(0, rest[one])
            else:
                made.generators[:0] = self.generators(one, *of_list)
        changed: ast.expr = with_places(made)
        return changed

    def generators(
        self, one: ast.comprehension, loop: Loop, guards: list[ast.expr], ifs: list[ast.expr]
    ) -> list[ast.comprehension]:
        """What goes through a hidden list in the place of one that goes through such a list."""
        read = self.hidden_list(one.iter, loop, guards)
        if not loop.has_whole:
            return [ast.comprehension(loop.new_target(), read, ifs, 0)]
        parts: list[ast.expr] = [ast.Name(name, ast.Load()) for name in loop.whole]
        pair = ast.Tuple([ast.Tuple(parts, ast.Load())], ast.Load())
        whole = ast.comprehension(loop.target, pair, ifs, 0)
        return [ast.comprehension(loop.new_target(), read, [], 0), whole]

    def hidden_list(self, iterated: ast.expr, loop: Loop, guards: list[ast.expr]) -> ast.expr:
        """The read of the list that a loop goes through; of a range that nothing is staged of, the
        range."""
        if not loop.staged and self.alone.elements.counts(iterated):
            return self.expression(iterated)
        return self.lists.read(iterated, loop, guards)

    def said(self, node: ast.expr) -> ast.expr:
        """What an exception is made of. The oracle makes it, with formatted strings of anything."""
        self.says = True
        if says_own(self.values, node):
            self.says = False
            return own_said(self.values, node)
        form = joined(self.values, node)
        if self.values.staging.analysis.catches:
            node = formatted(self.values, node)
        elif form is not None and any(is_own(self.values, one) for one in form.values):
            node = form
        if isinstance(node, ast.JoinedStr) and not is_of_python(self.values, node):
            node = copy.copy(node)
            node.values = list(map(self.said, node.values))
        elif isinstance(node, ast.FormattedValue):
            shown = ast.JoinedStr([node]) if is_own(self.values, node) else None
            node = copy.copy(node) if shown is None else ast.FormattedValue(shown, -1, None)
            node.value = self.expression(node.value)
        elif not isinstance(node, ast.Constant):
            node = self.expression(node)
        self.says = False
        return node

    def is_told(self, found: Fact) -> bool:
        """Whether what an exception is made of is left to Python, when the event has failed: it is
        of the event alone, and nobody else needs it."""
        is_alone = found.depends == EVENT and not found.is_bound
        is_compiled = found.compiled is not None and not found.is_staged
        return is_alone and not is_compiled and not self.values.staging.analysis.catches

    def emitted(self, node: ast.Call) -> ast.expr:
        """A call of emit: formatted strings are given as their parts."""
        columns = dict(self.values.staging.analysis.emits)
        names = list(columns)
        made = copy.copy(node)
        made.args = self.with_texts_apart(node.args)
        made.keywords = list(map(copy.copy, node.keywords))
        lengths = Lengths(self.values.source.tree, self.values.staging.analysis.shapes)
        values = []
        for group in argument_groups(made, lengths, len(names)):
            for value in group.arguments:
                name = names[group.first] if group.first < len(names) else None
                if isinstance(value, ast.Starred) or name is None:
                    values.append(self.rewritten(value))  # too many are refused later
                else:
                    is_known = len(group.arguments) == 1
                    values.append(self.emitted_value(name if is_known else None, value))
        made.args = values
        for keyword in made.keywords:
            keyword.value = self.emitted_value(keyword.arg or "", keyword.value)
        return made

    def with_texts_apart(self, given: list[ast.expr]) -> list[ast.expr]:
        """The arguments of emit; a tuple behind a star in which there is text, by its parts."""
        apart = []
        for one in given:
            parts = list(without_tuples([one])) if isinstance(one, ast.Starred) else []
            forms = (self.form_of(part) for part in parts if not isinstance(part, ast.Starred))
            apart += parts if any(form is not None for form in forms) else [one]
        return apart

    def form_of(self, value: ast.expr) -> ast.JoinedStr | None:
        """The formatted string that a value of emit is, also by its name; None: it is none."""
        kept = self.kept_forms.get(value.id) if isinstance(value, ast.Name) else None
        return as_form(self.values, value) if kept is None else at_place(copy.deepcopy(kept), value)

    def emitted_value(self, name: str | None, value: ast.expr) -> ast.expr:
        """What a call of emit gives a column; None: which one, only a run knows."""
        column = dict(self.values.staging.analysis.emits).get(name or "")
        if column is not None:
            kind = Type(column.kind)
            self.expect(value, of.optional(kind) if column.nullable else kind)
        form = self.form_of(value)
        if form is None:
            return self.rewritten(value)
        if name is None:
            self.values.refuse(
                value,
                "text of the state between two stars, of which only a run knows how long they are",
                "write the values of one of them out, like x[0], x[1]",
            )
        made = emitted_form(self.values, name, form)
        made.elts = list(map(self.rewritten, made.elts))
        return made

    def expect(self, node: ast.expr, wanted: Type) -> None:
        """What Python gives of no known type, where a column or field needs this one: another
        raises there."""
        found = self.alone.of(node)
        is_open = found.type == ANY and found.compiled is None and not found.is_bound
        if found.depends == EVENT and is_open and of.is_column(wanted) and self.may_be(node):
            refuse_misspelt(self.values, node)
            compiled = of.required(wanted)
            self.alone.found[node] = replace(found, type=wanted, compiled=compiled, is_staged=True)

    def may_be(self, node: ast.expr) -> bool:
        """Whether numbers and strings have the attributes that they are asked for."""
        classes: dict[Type, type] = {INT: int, FLOAT: float, BOOL: bool, STR: str}
        for part in ast.walk(node):
            found = self.alone.found.get(part.value) if isinstance(part, ast.Attribute) else None
            cls = classes.get(of.required(found.type)) if found is not None else None
            if cls is not None and isinstance(part, ast.Attribute) and not hasattr(cls, part.attr):
                return False
        return True

    def expect_of_field(self, target: ast.expr, value: ast.expr) -> None:
        """The same for what is stored into a field of the state."""
        owner = target.value if isinstance(target, ast.Subscript) else target
        if not isinstance(owner, ast.Attribute) or not isinstance(owner.value, ast.Name):
            return
        field = self.values.staging.layout.field(owner.attr)
        is_state = owner.value.id == next(iter(self.values.source.parameters), None)
        if field is not None and is_state and bool(field.shape) == (target is not owner):
            self.expect(value, Type(field.kind))

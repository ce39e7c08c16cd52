"""One function, gone through: reads of hidden columns take the place of what is staged.

Statements change in place. Of expressions copies are made, because what is known of an expression
(:mod:`specstream.compiler.facts.binding_times`) is known of the nodes that it was written as.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NoReturn

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_times import EVENT, STATE
from specstream.compiler.facts.dates_and_decimals import as_number
from specstream.compiler.facts.fact import Fact
from specstream.compiler.facts.lengths import Lengths, argument_groups
from specstream.compiler.facts.list_use import is_list
from specstream.compiler.facts.name_bindings import declared_type
from specstream.compiler.facts.value_types import ANY, BOOL, FLOAT, INT, STR, Type
from specstream.compiler.frontend.definite_assignment import check_definite_assignment, leaves
from specstream.compiler.frontend.error_texts import with_texts_in_place
from specstream.compiler.frontend.joined_strings import as_joined
from specstream.compiler.frontend.scopes import COMPREHENSIONS
from specstream.compiler.frontend.try_and_raise import change_arguments, is_caught
from specstream.compiler.oracle_objects.forms import EmittedForm, form_of
from specstream.compiler.staging.staged_lists import Guard
from specstream.compiler.staging.staged_loops import at_place as _at
from specstream.compiler.staging.texts_of_dates import TOLD, OwnTexts

__all__ = ["StagedFunction"]


class StagedFunction(OwnTexts):
    """Stages out of one function."""

    def stage(self) -> dict[str, Any]:
        tree = self.source.tree
        original = copy.deepcopy(tree)
        self.only_emitted = self.names_only_emitted(tree)
        self.kept_forms: dict[str, ast.JoinedStr] = {}
        tree.body = self.block(tree.body)
        self.leave_wide(tree)
        check_definite_assignment(
            original,
            frozenset(self.used),
            lambda node, name: self.refuse(
                node,
                f"{name!r} may be undefined here",
                f"assign {name!r} on every path before, for instance at the top of the function",
            ),
        )
        self.keep_lists(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in self.dropped:
                self.refuse_dropped(node)
        return self.names

    def refuse_dropped(self, node: ast.Name) -> NoReturn:
        """A name that Python has by itself, and that compiled code needs."""
        given = self.dropped[node.id]
        if of.is_column(given):
            self.refuse(
                node,
                f"{node.id!r} is assigned inside an expression that Python computes, and compiled "
                "code needs it",
                f"assign it first, in its own statement: {node.id} = ...",
            )
        hint = (
            "take what you need out of it, in code that depends on the event alone: first = "
            f"{node.id}[0]"
        )
        self.refuse(
            node,
            f"{node.id!r} is a {of.described(given)}, which only Python has, and stands where "
            "compiled code needs it",
            as_number(given) or hint,
        )

    # ---- statements ----

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements one after the other; a condition that leaves guards those behind it."""
        depth = len(self.guards)
        done: list[ast.stmt] = []
        for statement in body:
            test = copy.deepcopy(statement.test) if isinstance(statement, ast.If) else None
            original = statement.test if isinstance(statement, ast.If) else None
            result = self.visit(statement)
            done += result if isinstance(result, list) else [result]
            if (
                test is not None
                and original is not None
                and isinstance(statement, ast.If)
                and leaves(statement.body)
                and not statement.orelse
            ):
                self.guards.append((original, False))
        del self.guards[depth:]
        return done

    def visit_If(self, node: ast.If) -> ast.stmt:
        test = node.test
        node.test = self.truth(test)
        node.body = self.guarded(node.body, (test, True))
        node.orelse = self.guarded(node.orelse, (test, False))
        return node

    def guarded(self, body: list[ast.stmt], guard: Guard) -> list[ast.stmt]:
        self.guards.append(guard)
        body = self.block(body)
        self.guards.pop()
        return body

    def visit_While(self, node: ast.While) -> ast.stmt:
        node.test = self.truth(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        if self.alone.goes_through(node) is not None:
            return self.loop(node)
        found = self.alone.of(node.iter)
        iterated = of.required(found.type)
        is_left = self.is_left(node.iter)
        if found.depends == EVENT and (iterated == STR or (found.compiled is None and not is_left)):
            self.refuse(
                node,
                f"a loop over {ast.unparse(node.iter)}, {of.described(found.type)}, which only "
                "Python has",
                "let Python count or choose in one expression, like sum(x.isdigit() for x in "
                "event.key), or give the table a row for each",
            )
        node.iter = self.expression(node.iter)
        node.target = self.expression(node.target)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_With(self, node: ast.With) -> ast.stmt:
        for item in node.items:
            item.context_expr = self.expression(item.context_expr)
        node.body = self.block(node.body)
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        for handler in node.handlers:
            handler.body = self.block(with_texts_in_place(handler, self.source.tree))
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        node.subject = self.expression(node.subject)
        for case in node.cases:
            case.guard = None if case.guard is None else self.truth(case.guard)
            case.body = self.block(case.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        # Its parameters are nobody's but its own: only what names nothing of it is staged.
        guards, self.guards = self.guards, []
        node.body = self.block(node.body)
        self.guards = guards
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        for made in (node.exc, node.cause):
            if isinstance(made, ast.Call):
                change_arguments(made, self.said)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        node.test = self.truth(node.test)
        node.msg = None if node.msg is None else self.said(node.msg)
        return node

    def said(self, node: ast.expr) -> ast.expr:
        """What an exception is made of. The oracle makes it, with formatted strings of anything."""
        self.says = True
        if self.says_own(node):
            self.says = False
            return self.own_said(node)
        form = as_joined(node, self.is_str, self.is_text)
        if self.staging.analysis.catches:
            node = self.formatted(node)
        elif form is not None and any(map(self.is_own, form.values)):
            node = form
        if isinstance(node, ast.JoinedStr) and not self.is_of_python(node):
            node = copy.copy(node)
            node.values = list(map(self.said, node.values))
        elif isinstance(node, ast.FormattedValue):
            shown = ast.JoinedStr([node]) if self.is_own(node) else None
            node = copy.copy(node) if shown is None else ast.FormattedValue(shown, -1, None)
            node.value = self.expression(node.value)
        elif not isinstance(node, ast.Constant):
            node = self.expression(node)
        self.says = False
        return node

    def formatted(self, node: ast.expr) -> ast.expr:
        """The same as a formatted string, which compiled code has where exceptions are caught; a
        part that only Python knows is a text of the event."""
        if isinstance(node, ast.FormattedValue):
            found = self.alone.of(node.value)
            is_alone = found.depends == EVENT and not found.is_bound
            if not is_alone or found.compiled is not None:
                return node
            return _at(ast.FormattedValue(ast.JoinedStr([node]), -1, None), node)
        if self.alone.of(node).depends != STATE or is_caught(node, self.caught):
            return node
        return as_joined(node, self.is_str, self.is_text) or node

    def is_str(self, callee: ast.expr) -> bool:
        return self.alone.constant(callee) is str

    def is_of_python(self, node: ast.JoinedStr) -> bool:
        """Whether a formatted string is of the event alone, and of more than compiled code has."""
        if self.alone.of(node).depends != EVENT:
            return False
        parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        return any(self.alone.of(part).compiled is None for part in parts)

    def is_told(self, found: Fact) -> bool:
        """Whether what an exception is made of is left to Python, when the event has failed: it is
        of the event alone, and nobody else needs it."""
        is_alone = found.depends == EVENT and not found.is_bound
        is_compiled = found.compiled is not None and not found.is_staged
        return is_alone and not is_compiled and not self.staging.analysis.catches

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        kept = self.kept_form(node)
        return self.assigned(node, node.targets, None) if kept is None else kept

    def kept_form(self, node: ast.Assign) -> list[ast.stmt] | None:
        """A formatted string under a name that is emitted and nothing else: its parts are kept."""
        (target, *more) = node.targets
        if more or not isinstance(target, ast.Name) or target.id not in self.only_emitted:
            return None
        form = self.as_form(node.value)
        if form is None:
            return None
        kept = copy.deepcopy(form)
        statements: list[ast.stmt] = []
        for at, (part, own) in enumerate(zip(form.values, kept.values, strict=True)):
            if isinstance(part, ast.FormattedValue) and isinstance(own, ast.FormattedValue):
                name = f"__ss_{target.id}_{at}"
                value = self.expression(part.value)
                statements.append(_at(ast.Assign([ast.Name(name, ast.Store())], value), node))
                own.value = _at(ast.Name(name, ast.Load()), part)
        self.kept_forms[target.id] = kept
        return statements

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        if node.value is None:
            return node
        return self.assigned(node, [node.target], declared_type(node))

    def assigned(
        self, node: ast.Assign | ast.AnnAssign, targets: list[ast.expr], annotation: Any
    ) -> ast.stmt:
        """An assignment, compiled, staged or dropped.

        One function, long as it is: what becomes of an assignment is one question after the other,
        and which one is asked first matters.
        """
        assert node.value is not None
        target = targets[0]
        self.expect_of_field(target, node.value)
        found = self.alone.of(node.value)
        for one in ast.walk(ast.Tuple(targets)):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                self.guards_of[one.id] = list(self.guards)
        is_ours = found.compiled is not None and not found.is_staged
        if found.is_bound and not is_ours:
            return self.of_element(node, targets, found)
        is_one = not isinstance(target, ast.Tuple | ast.List)
        if found.depends != EVENT or is_ours or (is_one and self.is_left(node.value)):
            node.value = self.expression(node.value)
            for part in targets:
                self.visit_parts(part)
            if isinstance(node, ast.AnnAssign) and found.is_staged:
                return ast.copy_location(ast.Assign([target], node.value), node)
            return node
        declared = None if annotation is None else of.annotated(annotation)
        if annotation is not None and declared is None:
            self.refuse(
                node,
                f"the annotation {ast.unparse(annotation)} of what Python computes",
                "annotate it int, float, bool, str, a tuple or list of these, or one of these or "
                "None",
            )
        given = declared or found.type
        names = list(target.elts) if isinstance(target, ast.Tuple | ast.List) else []
        stars = [at for at, one in enumerate(names) if isinstance(one, ast.Starred)]
        star = stars[0] if stars else None
        if names:
            parts = [self.alone.item(given, at, len(names), star) for at in range(len(names))]
            given = of.tuple_of(*parts)
        if of.is_column(given) or (star is not None and all(map(_is_held, given.of))):
            self.drop_assigned(node.value)
            written = node.value
            unpack = (len(names), star) if names else (0, None)
            if star is not None:
                names = [one.value if isinstance(one, ast.Starred) else one for one in names]
                target = ast.copy_location(ast.Tuple(names, ast.Store()), target)
                targets = [target]
                node.targets = targets  # type: ignore[union-attr]
            number = self.seen(node.value, given, unpack)
            node.value = self.staged(node.value, given, unpack)
            for part in targets:
                self.visit_parts(part)
                if isinstance(part, ast.Name) and part.id in self.alone.bindings:
                    self.of_name[part.id] = number
            for at, part in enumerate(names):
                if isinstance(part, ast.Name) and part.id in self.alone.bindings:
                    self.of_name[part.id] = self.item(number, at)
            if isinstance(node, ast.AnnAssign):
                return ast.copy_location(ast.Assign([target], node.value), node)
            if found.is_wide and isinstance(target, ast.Name) and len(targets) == 1:
                self.wide[target.id] = (node, written, list(self.guards))
            return node
        held = [one for one in targets if isinstance(one, ast.Name)]
        is_known = len(held) == len(targets) and all(
            one.id in self.alone.bindings and self.alone.of_local(one.id).depends == EVENT
            for one in held
        )
        if is_list(given) and self.alone.kind_of(node.value) == "list" and not is_known:
            node.value = self.staged(node.value, given)
            for part in targets:
                self.visit_parts(part)
            if isinstance(node, ast.AnnAssign):
                return ast.copy_location(ast.Assign([target], node.value), node)
            return node
        if len(held) != len(targets) or not all(one.id in self.alone.bindings for one in held):
            self.unknown(node.value, given)
        for one in held:
            self.dropped[one.id] = given
        # The names are gone: what stands for the value is made by those who use it. What it
        # raises, it raises here.
        number = self.seen(node.value, None)
        for one in held:
            self.of_name[one.id] = number
        made: ast.stmt = _at(ast.If(self.check(number), [ast.Pass()], []), node)
        if is_list(given) and self.alone.kind_of(node.value) == "list":
            self.lists |= {one.id: (made, node, given) for one in held}
        return made

    def leave_wide(self, tree: ast.FunctionDef) -> None:
        """A digest as an int, say, may be larger than compiled code's: it is not asked for what
        compiled code does not use."""
        loaded = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        }
        for name, (statement, value, guards) in self.wide.items():
            if name not in loaded:
                self.guards = guards
                statement.value = _at(self.check(self.seen(value, None)), statement)
        self.guards = []

    def visit_parts(self, target: ast.expr) -> None:
        """What the target of an assignment reads."""
        if isinstance(target, ast.Subscript):
            target.value, target.slice = (
                self.expression(target.value),
                self.expression(target.slice),
            )
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self.visit_parts(one)

    def visit_Delete(self, node: ast.Delete) -> ast.stmt:
        for target in node.targets:
            self.visit_parts(target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.expect_of_field(node.target, node.value)
        node.value = self.expression(node.value)
        self.visit_parts(node.target)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            node.value = self.expression(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        found = self.alone.of(node.value)
        if found.depends == EVENT and found.compiled is None and not found.is_bound:
            # Nobody needs what it gives, but it may raise.
            node.value = _at(self.check(self.seen(node.value, None)), node)
        elif not isinstance(node.value, ast.Constant):
            node.value = self.expression(node.value)
        return node

    # ---- expressions ----

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
        if node in self.alone.never:
            self.refuse(node, *self.alone.never[node])
        found = self.alone.found.get(node)
        if self.says and isinstance(node, ast.FormattedValue | ast.Starred | ast.Slice):
            return self.in_place(node)
        if self.says and found is not None and self.is_told(found):
            self.drop_assigned(node)
            return _at(self.check(self.derive(node, TOLD)), node)
        if found is not None and found.is_staged:
            self.drop_assigned(node)
            given = BOOL if node in self.alone.truths else found.type
            return self.item_read(node, given) if found.is_bound else self.staged(node, given)
        if isinstance(node, ast.Attribute):
            self.check_field(node)
        if found is not None and of.is_record(found.type) and self.alone.is_of_element(found):
            return self.record(node)
        if found is not None and self.is_hidden_list(node):
            return self.list_read(node)
        if isinstance(node, COMPREHENSIONS) and (
            self.alone.goes_through(node.generators[0]) is not None
        ):
            return self.comprehension(node)
        if (
            found is not None
            and found.compiled is None
            and not found.is_bound
            and not self.is_left(node)
        ):
            self.cannot(node, found.depends, found.type)
        if isinstance(node, ast.BoolOp):
            return self.bool_op(node)
        made = copy.copy(node)
        if isinstance(node, ast.Call) and self.is_emit(node.func):
            return self.emitted(node)
        if isinstance(node, ast.Call):
            self.check_given(node)
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

    def is_emit(self, callee: ast.expr) -> bool:
        return isinstance(callee, ast.Name) and callee.id in self.source.parameters

    def emitted(self, node: ast.Call) -> ast.expr:
        """A call of emit: formatted strings are given as their parts."""
        columns = dict(self.staging.analysis.emits)
        names = list(columns)
        made = copy.copy(node)
        made.args = self.with_texts_apart(node.args)
        made.keywords = list(map(copy.copy, node.keywords))
        lengths = Lengths(self.source.tree, self.staging.analysis.shapes)
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
            parts = list(_without_tuples([one])) if isinstance(one, ast.Starred) else []
            forms = (self.form_of(part) for part in parts if not isinstance(part, ast.Starred))
            apart += parts if any(form is not None for form in forms) else [one]
        return apart

    def form_of(self, value: ast.expr) -> ast.JoinedStr | None:
        """The formatted string that a value of emit is, also by its name; None: it is none."""
        kept = self.kept_forms.get(value.id) if isinstance(value, ast.Name) else None
        return self.as_form(value) if kept is None else _at(copy.deepcopy(kept), value)

    def emitted_value(self, name: str | None, value: ast.expr) -> ast.expr:
        """What a call of emit gives a column; None: which one, only a run knows."""
        column = dict(self.staging.analysis.emits).get(name or "")
        if column is not None:
            kind = Type(column.kind)
            self.expect(value, of.optional(kind) if column.nullable else kind)
        form = self.form_of(value)
        if form is None:
            return self.rewritten(value)
        if name is None:
            self.refuse(
                value,
                "text of the state between two stars, of which only a run knows how long they are",
                "write the values of one of them out, like x[0], x[1]",
            )
        return self.form(name, form)

    def expect(self, node: ast.expr, wanted: Type) -> None:
        """What Python gives of no known type, where a column or field needs this one: another
        raises there."""
        found = self.alone.of(node)
        is_open = found.type == ANY and found.compiled is None and not found.is_bound
        if found.depends == EVENT and is_open and of.is_column(wanted) and self.may_be(node):
            self.refuse_misspelt(node)
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
        field = self.staging.layout.field(owner.attr)
        is_state = owner.value.id == next(iter(self.source.parameters), None)
        if field is not None and is_state and bool(field.shape) == (target is not owner):
            self.expect(value, Type(field.kind))

    def as_form(self, node: ast.expr) -> ast.JoinedStr | None:
        """The formatted string that a value is, if it is one of more than the event."""
        found = self.alone.of(node)
        if isinstance(node, ast.JoinedStr):
            if found.depends == EVENT and any(map(self.is_own, node.values)):
                return None
            return self.with_own_shown(node) if found.compiled is None else None
        names = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
        is_caught = bool(names & self.caught)
        if found.depends != STATE and not is_caught:
            return None
        form = as_joined(node, self.is_str, self.is_text)
        if form is None and is_caught and not isinstance(node, ast.Name):
            part = ast.FormattedValue(node, ord("s"), None)  # error.args[0]
            form = _at(ast.JoinedStr([part]), node)
        return None if form is None else self.with_own_shown(form)

    def names_only_emitted(self, tree: ast.FunctionDef) -> frozenset[str]:
        """Names that are assigned in one place, and read nowhere but as values in calls of emit."""
        emitted: set[int] = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and self.is_emit(node.func):
                given = (*_without_tuples(node.args), *(one.value for one in node.keywords))
                emitted |= set(map(id, given))
        read = {
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name)
            and not isinstance(node.ctx, ast.Store)
            and id(node) not in emitted
        }
        return frozenset(self.alone.bindings.keys() - read)

    def is_text(self, node: ast.expr) -> bool:
        """Whether an expression gives a string, that of a field of the state included."""
        field = node.value if isinstance(node, ast.Subscript) else node
        if isinstance(field, ast.Attribute) and self.alone.of(field).depends == STATE:
            return field.attr in self.staging.analysis.text_fields
        return self.alone.of(node).type == STR

    def form(self, name: str, node: ast.JoinedStr) -> ast.expr:
        """A formatted string that is emitted into a column."""
        columns = dict(self.staging.analysis.emits)
        if name in columns and columns[name].kind != "str":
            caught = [one for one in ast.walk(node) if isinstance(one, ast.Name)]
            if len(node.values) == 1 and any(one.id in self.caught for one in caught):
                part = node.values[0]
                shown = ast.unparse(part.value if isinstance(part, ast.FormattedValue) else part)
                self.refuse(
                    node,
                    f"emitted column {name!r} is declared {columns[name]} and gets {shown}, which "
                    "is made of a caught exception; compiled code knows its class only",
                    "emit str(e) into a column that is declared str, or a number of your own in "
                    "an except clause for each class",
                )
            self.refuse(
                node,
                f"emitted column {name!r} is declared {columns[name]} and gets a formatted string",
                "emit it into a column that is declared str",
            )
        try:
            texts = self.staging.analysis.texts
            form, parts = form_of(node, name, self.source.filename, self.caught, texts)
        except ValueError as error:
            problem, _, hint = str(error).partition(": ")
            self.refuse(node, problem, hint)
        self.staging.forms.append(form)
        made = EmittedForm([self.rewritten(part) for part in parts], ast.Load())
        made.number = len(self.staging.forms) - 1
        made.shown = [one for one in node.values if isinstance(one, ast.FormattedValue)]
        placed: ast.expr = ast.copy_location(made, node)
        return placed

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
        depth, holds = len(self.guards), isinstance(node.op, ast.And)
        made = copy.copy(node)
        made.values = []
        for value in node.values:
            made.values.append(self.rewritten(value))
            self.guards.append((value, holds))
        del self.guards[depth:]
        return made

    def under(self, node: ast.expr, guard: Guard) -> ast.expr:
        self.guards.append(guard)
        node = self.rewritten(node)
        self.guards.pop()
        return node

    def drop_assigned(self, node: ast.expr) -> None:
        """Names that are assigned within something staged are gone."""
        for part in ast.walk(node):
            if isinstance(part, ast.NamedExpr):
                self.dropped[part.target.id] = self.alone.of(part.value).type


def _is_held(given: Type) -> bool:
    return is_list(given) or of.is_scalar(of.required(given))


def _without_tuples(given: list[ast.expr]) -> Iterator[ast.expr]:
    """The arguments of a call, with the parts of a tuple that stands behind a star."""
    for one in given:
        if isinstance(one, ast.Starred) and isinstance(one.value, ast.Tuple | ast.List):
            yield from _without_tuples(one.value.elts)
        else:
            yield one

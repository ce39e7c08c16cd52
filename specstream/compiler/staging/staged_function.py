"""Statements of a function, which change in place where something is staged out of them."""

from __future__ import annotations

import ast
import copy
from typing import Any, NoReturn

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_base import item
from specstream.compiler.facts.binding_times import EVENT
from specstream.compiler.facts.dates_and_decimals import as_number
from specstream.compiler.facts.fact import Fact
from specstream.compiler.facts.list_use import is_list
from specstream.compiler.facts.name_bindings import declared_type
from specstream.compiler.facts.value_types import BOOL, STR, Type
from specstream.compiler.frontend.definite_assignment import check_definite_assignment, leaves
from specstream.compiler.frontend.error_texts import with_texts_in_place
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.frontend.try_and_raise import change_arguments
from specstream.compiler.staging.staged_expressions import StagedExpressions
from specstream.compiler.staging.staged_forms import as_form, names_only_emitted
from specstream.compiler.staging.staged_lists import StagedLists
from specstream.compiler.staging.staged_loops import with_places
from specstream.compiler.staging.staged_values import Guard, Staged, StagedValues
from specstream.compiler.staging.staging_refusals import refuse_unknown

__all__ = ["StagedFunction"]


class StagedFunction(ast.NodeTransformer):
    """Stages out of one function.

    Attributes:
        named_lists: of dropped names of lists the statement that stands for their assignment, the
            assignment, and what they are.
        wide: of names of what may be larger than compiled code has it, the assignment, the
            value, and what guards it.
    """

    def __init__(self, staging: Staged, source: FunctionSource, events: frozenset[str]) -> None:
        self.values = StagedValues(staging, source, events)
        self.alone = self.values.alone
        self.lists = StagedLists(self.values)
        self.expressions = StagedExpressions(self.values, self.lists)
        self.named_lists: dict[str, tuple[ast.stmt, ast.Assign | ast.AnnAssign, Type]] = {}
        self.wide: dict[str, tuple[Any, ast.expr, list[Guard]]] = {}
        self.only_emitted = names_only_emitted(self.values)

    def stage(self) -> dict[str, Any]:
        """Changes the tree, and gives the names that Python's functions use."""
        tree = self.values.source.tree
        original = copy.deepcopy(tree)
        tree.body = self.block(tree.body)
        self.leave_wide(tree)
        check_definite_assignment(
            original,
            frozenset(self.values.used),
            lambda node, name: self.values.refuse(
                node,
                f"{name!r} may be undefined here",
                f"assign {name!r} on every path before, for instance at the top of the function",
            ),
        )
        self.keep_lists(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.Name) and node.id in self.values.dropped:
                self.refuse_dropped(node)
        return self.values.names

    def refuse_dropped(self, node: ast.Name) -> NoReturn:
        """A name that Python has by itself, and that compiled code needs."""
        given = self.values.dropped[node.id]
        if of.is_column(given):
            self.values.refuse(
                node,
                f"{node.id!r} is assigned inside an expression that Python computes, and compiled "
                "code needs it",
                f"assign it first, in its own statement: {node.id} = ...",
            )
        hint = (
            "take what you need out of it, in code that depends on the event alone: first = "
            f"{node.id}[0]"
        )
        self.values.refuse(
            node,
            f"{node.id!r} is a {of.described(given)}, which only Python has, and stands where "
            "compiled code needs it",
            as_number(given) or hint,
        )

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Statements one after the other; a condition that leaves guards those behind it."""
        depth = len(self.values.guards)
        done: list[ast.stmt] = []
        for statement in body:
            test = statement.test if isinstance(statement, ast.If) else None
            result = self.visit(statement)
            done += result if isinstance(result, list) else [result]
            if (
                test is not None
                and isinstance(statement, ast.If)
                and leaves(statement.body)
                and not statement.orelse
            ):
                self.values.guards.append((test, False))
        del self.values.guards[depth:]
        return done

    def visit_If(self, node: ast.If) -> ast.stmt:
        test = node.test
        node.test = self.expressions.truth(test)
        node.body = self.guarded(node.body, (test, True))
        node.orelse = self.guarded(node.orelse, (test, False))
        return node

    def guarded(self, body: list[ast.stmt], guard: Guard) -> list[ast.stmt]:
        self.values.guards.append(guard)
        body = self.block(body)
        self.values.guards.pop()
        return body

    def visit_While(self, node: ast.While) -> ast.stmt:
        node.test = self.expressions.truth(node.test)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_For(self, node: ast.For) -> ast.stmt:
        if self.alone.elements.goes_through(node) is not None:
            return self.loop(node)
        found = self.alone.of(node.iter)
        iterated = of.required(found.type)
        is_left = self.lists.is_left(node.iter)
        if found.depends == EVENT and (iterated == STR or (found.compiled is None and not is_left)):
            self.values.refuse(
                node,
                f"a loop over {ast.unparse(node.iter)}, {of.described(found.type)}, which only "
                "Python has",
                "let Python count or choose in one expression, like sum(x.isdigit() for x in "
                "event.key), or give the table a row for each",
            )
        node.iter = self.expressions.expression(node.iter)
        node.target = self.expressions.expression(node.target)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def loop(self, node: ast.For) -> ast.stmt:
        """A loop over a list that Python makes of the event."""
        loop = self.lists.begin(node)
        guards = self.values.guarding(node.iter, loop.made)
        node.body = self.block(node.body)
        self.keep_lists(node, loop.number)
        node.target = loop.new_target()
        node.iter = self.expressions.hidden_list(node.iter, loop, guards)
        if loop.has_whole:
            parts: list[ast.expr] = [ast.Name(one, ast.Load()) for one in loop.whole]
            whole = ast.Assign([loop.target], ast.Tuple(parts, ast.Load()))
            node.body.insert(0, at_place(whole, node))
        node.orelse = self.block(node.orelse)
        return with_places(node)

    def visit_With(self, node: ast.With) -> ast.stmt:
        for one in node.items:
            one.context_expr = self.expressions.expression(one.context_expr)
        node.body = self.block(node.body)
        return node

    def visit_Try(self, node: ast.Try) -> ast.stmt:
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        node.finalbody = self.block(node.finalbody)
        for handler in node.handlers:
            handler.body = self.block(with_texts_in_place(handler, self.values.source.tree))
        return node

    def visit_Match(self, node: ast.Match) -> ast.stmt:
        node.subject = self.expressions.expression(node.subject)
        for case in node.cases:
            case.guard = None if case.guard is None else self.expressions.truth(case.guard)
            case.body = self.block(case.body)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.stmt:
        # Its parameters are nobody's but its own: only what names nothing of it is staged.
        guards, self.values.guards = self.values.guards, []
        node.body = self.block(node.body)
        self.values.guards = guards
        return node

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        for made in (node.exc, node.cause):
            if isinstance(made, ast.Call):
                change_arguments(made, self.expressions.said)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.stmt:
        node.test = self.expressions.truth(node.test)
        node.msg = None if node.msg is None else self.expressions.said(node.msg)
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.stmt | list[ast.stmt]:
        kept = self.kept_form(node)
        return self.assigned(node, node.targets, None) if kept is None else kept

    def kept_form(self, node: ast.Assign) -> list[ast.stmt] | None:
        """A formatted string under a name that is emitted and nothing else: its parts are kept."""
        (target, *more) = node.targets
        if more or not isinstance(target, ast.Name) or target.id not in self.only_emitted:
            return None
        form = as_form(self.values, node.value)
        if form is None:
            return None
        kept = copy.deepcopy(form)
        statements: list[ast.stmt] = []
        for at, (part, own) in enumerate(zip(form.values, kept.values, strict=True)):
            if isinstance(part, ast.FormattedValue) and isinstance(own, ast.FormattedValue):
                name = f"__ss_{target.id}_{at}"
                value = self.expressions.expression(part.value)
                statements.append(at_place(ast.Assign([ast.Name(name, ast.Store())], value), node))
                own.value = at_place(ast.Name(name, ast.Load()), part)
        self.expressions.kept_forms[target.id] = kept
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
        self.expressions.expect_of_field(target, node.value)
        found = self.alone.of(node.value)
        for one in ast.walk(ast.Tuple(targets)):
            if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Store):
                self.values.guards_of[one.id] = list(self.values.guards)
        is_ours = found.compiled is not None and not found.is_staged
        if found.is_bound and not is_ours:
            return self.of_element(node, targets, found)
        is_one = not isinstance(target, ast.Tuple | ast.List)
        if found.depends != EVENT or is_ours or (is_one and self.lists.is_left(node.value)):
            value = self.expressions.expression(node.value)
            return self.stored(node, targets, value, found.is_staged)
        declared = None if annotation is None else of.annotated(annotation)
        if annotation is not None and declared is None:
            self.values.refuse(
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
            parts = [item(given, at, len(names), star) for at in range(len(names))]
            given = of.tuple_of(*parts)
        if of.is_column(given) or (star is not None and all(map(_is_held, given.of))):
            self.values.drop_assigned(node.value)
            written = node.value
            unpack = (len(names), star) if names else (0, None)
            if star is not None:
                names = [one.value if isinstance(one, ast.Starred) else one for one in names]
                target = ast.copy_location(ast.Tuple(names, ast.Store()), target)
                targets = [target]
                node.targets = targets  # type: ignore[union-attr]
            number = self.values.seen(node.value, given, unpack)
            node.value = self.values.staged(node.value, given, unpack)
            for part in targets:
                self.visit_parts(part)
                if isinstance(part, ast.Name) and part.id in self.alone.bindings:
                    self.values.of_name[part.id] = number
            for at, part in enumerate(names):
                if isinstance(part, ast.Name) and part.id in self.alone.bindings:
                    self.values.of_name[part.id] = self.values.item(number, at)
            if isinstance(node, ast.AnnAssign):
                return ast.copy_location(ast.Assign([target], node.value), node)
            if found.is_wide and isinstance(target, ast.Name) and len(targets) == 1:
                self.wide[target.id] = (node, written, list(self.values.guards))
            return node
        held = [one for one in targets if isinstance(one, ast.Name)]
        is_known = len(held) == len(targets) and all(
            one.id in self.alone.bindings and self.alone.of_local(one.id).depends == EVENT
            for one in held
        )
        if is_list(given) and self.alone.elements.kind_of(node.value) == "list" and not is_known:
            return self.stored(node, targets, self.values.staged(node.value, given), True)
        if len(held) != len(targets) or not all(one.id in self.alone.bindings for one in held):
            refuse_unknown(self.values, node.value, given)
        for one in held:
            self.values.dropped[one.id] = given
        # The names are gone: what stands for the value is made by those who use it. What it
        # raises, it raises here.
        number = self.values.seen(node.value, None)
        for one in held:
            self.values.of_name[one.id] = number
        made: ast.stmt = at_place(ast.If(self.values.check(number), [ast.Pass()], []), node)
        if is_list(given) and self.alone.elements.kind_of(node.value) == "list":
            self.named_lists |= {one.id: (made, node, given) for one in held}
        return made

    def of_element(
        self, node: ast.Assign | ast.AnnAssign, targets: list[ast.expr], found: Fact
    ) -> ast.stmt:
        """An assignment of what Python makes of an element."""
        value = node.value
        assert value is not None
        if not self.alone.elements.is_of_element(found):
            return self.stored(node, targets, self.expressions.expression(value), False)
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List):
            made = self.lists.unpacked(value, targets[0].elts, found)
            if made is not None:
                return at_place(made, node)
        are_known = all(
            isinstance(one, ast.Name)
            and one.id in self.alone.bindings
            and self.alone.of_local(one.id).depends == EVENT
            for one in targets
        )
        if found.is_staged or not are_known:
            return self.stored(node, targets, self.expressions.expression(value), False)
        check = at_place(ast.If(self.lists.item_read(value, BOOL, None), [ast.Pass()], []), node)
        for one in targets:
            assert isinstance(one, ast.Name)
            self.values.dropped[one.id] = found.type
            if self.lists.is_hidden_list(value):
                self.named_lists[one.id] = (check, node, found.type)
        return check

    def stored(
        self,
        node: ast.Assign | ast.AnnAssign,
        targets: list[ast.expr],
        value: ast.expr,
        is_staged: bool,
    ) -> ast.stmt:
        """An assignment of a rewritten value; the annotation of a staged one has said its type."""
        node.value = value
        for part in targets:
            self.visit_parts(part)
        if is_staged and isinstance(node, ast.AnnAssign):
            return ast.copy_location(ast.Assign([node.target], value), node)
        return node

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
                self.values.guards = guards
                number = self.values.seen(value, None)
                statement.value = at_place(self.values.check(number), statement)
        self.values.guards = []

    def keep_lists(self, tree: ast.AST, of_loop: int | None = None) -> None:
        """Names of lists that compiled code reads, too, are assigned where they were.

        Args:
            tree: the function, or a loop that gives the elements of which they are.
            of_loop: the number of the loop.
        """
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        kept: dict[int, ast.stmt] = {}
        for name in sorted(read & self.named_lists.keys() & self.values.dropped.keys()):
            check, node, given = self.named_lists[name]
            assert node.value is not None
            found = self.alone.of(node.value)
            if of_loop != (self.alone.elements.innermost(found) if found.is_bound else None):
                continue
            guards, self.values.guards = self.values.guards, self.values.guards_of.get(name, [])
            targets: list[ast.expr] = [node.target] if isinstance(node, ast.AnnAssign) else []
            targets = targets or node.targets  # type: ignore[union-attr]
            read_of = self.lists.item_read if found.is_bound else self.values.staged
            value = read_of(node.value, given)
            kept[id(check)] = ast.copy_location(ast.Assign(targets, value), node)
            self.values.guards = guards
            for one in targets:
                assert isinstance(one, ast.Name)
                self.values.dropped.pop(one.id, None)
        for part in ast.walk(tree) if kept else ():
            for field in ("body", "orelse", "finalbody"):
                block = getattr(part, field, None)
                if isinstance(block, list):
                    block[:] = [kept.get(id(one), one) for one in block]

    def visit_parts(self, target: ast.expr) -> None:
        """What the target of an assignment reads."""
        if isinstance(target, ast.Subscript):
            target.value, target.slice = (
                self.expressions.expression(target.value),
                self.expressions.expression(target.slice),
            )
        elif isinstance(target, ast.Tuple | ast.List):
            for one in target.elts:
                self.visit_parts(one)

    def visit_Delete(self, node: ast.Delete) -> ast.stmt:
        for target in node.targets:
            self.visit_parts(target)
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.stmt:
        self.expressions.expect_of_field(node.target, node.value)
        node.value = self.expressions.expression(node.value)
        self.visit_parts(node.target)
        return node

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        if node.value is not None:
            node.value = self.expressions.expression(node.value)
        return node

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        found = self.alone.of(node.value)
        if found.depends == EVENT and found.compiled is None and not found.is_bound:
            # Nobody needs what it gives, but it may raise.
            node.value = at_place(self.values.check(self.values.seen(node.value, None)), node)
        elif not isinstance(node.value, ast.Constant):
            node.value = self.expressions.expression(node.value)
        return node


def _is_held(given: Type) -> bool:
    return is_list(given) or of.is_scalar(of.required(given))

"""Ways out of a block, in native code: return, break and continue, and what is raised.

Whoever leaves a ``with`` gives its lock back, and who leaves a ``try`` runs its ``finally``: what
has to be done is written out before each return, break and continue, as CPython does it, and a
second time for exceptions. Where an operator catches nothing, an exception ends the event; what the
event holds is then given back by the runtime, and none of this is written.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable
from typing import Any

from specstream.compiler.backend import polling
from specstream.compiler.backend.caught import caught, tell, tell_again
from specstream.compiler.backend.try_regions import catcher, has_begun, throw, try_begin, try_end
from specstream.compiler.frontend.try_and_raise import (
    Part,
    UntoldRaise,
    catches_anything,
    caught_classes,
    parts_of,
)
from specstream.compiler.language.error_classes import CLASSES
from specstream.compiler.library import locking
from specstream.compiler.library.formatting import formatted
from specstream.compiler.lowering.rewriter_base import NativeParts
from specstream.compiler.lowering.trip_counts import MOST_TRIPS, TripCounts
from specstream.compiler.oracle.common_rewriting import targets_in
from specstream.compiler.oracle_objects.forms import CaughtName

__all__ = ["LeavingRewriter"]

Statements = list[ast.stmt]


class LeavingRewriter(NativeParts):
    """The part of the rewriting that is about leaving.

    Attributes:
        held: what is done to leave each block around the present statement; None: a loop.
        caught: names of the exceptions that are handled there, and the variables with their
            numbers, the innermost last.
        turns: of the loops around the present statement that do not poll.
    """

    held: list[Callable[[], Statements] | None]
    caught: list[tuple[str | None, str]]
    turns: TripCounts

    def leave_nothing(self) -> None:
        """At the beginning of a function."""
        self.held = []
        self.caught = []
        self.turns = TripCounts(
            lambda name: None if name in self.check.locals else self.check.resolved.get(name)
        )

    def do(self, function: Any, *arguments: ast.expr, at: ast.AST) -> ast.stmt:
        return ast.copy_location(ast.Expr(self.core(function, *arguments, at=at)), at)

    def assign_name(self, name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        target = ast.copy_location(ast.Name(name, ast.Store()), at)
        return ast.copy_location(ast.Assign([target], value), at)

    # -- ways out that are written --

    def give_back(self, outermost: int) -> Statements:
        """What is done to leave the blocks from a place of ``held`` on, the last one first."""
        statements: Statements = []
        held = self.held
        for place in reversed(range(outermost, len(held))):
            leave = held[place]
            if leave is not None:
                self.held = held[:place]
                statements += leave()
        self.held = held
        return statements

    def leave_loop(self, node: ast.Break | ast.Continue) -> Any:
        loop = max(place for place, leave in enumerate(self.held) if leave is None)
        return [*self.give_back(loop), node]

    visit_Break = visit_Continue = leave_loop

    def visit_Return(self, node: ast.Return) -> Any:
        given_back = self.give_back(0)
        if node.value is None or not given_back:
            self.generic_visit(node)
            return [*given_back, node]
        # The value may read the state, and belongs under the locks; what it raises, to the try.
        name = self.new_name("returned")
        value = self.assign_name(name, self.visit(node.value), node)
        node.value = self.load(name, node)
        return [value, *given_back, node]

    def visit_While(self, node: ast.While) -> Any:
        is_endless = (
            isinstance(node.test, ast.Constant) and node.test.value and not _breaks(node.body)
        )
        node.test = self.condition(node.test)
        together, self.turns.together = self.turns.together, 1
        loop = self.loop(node, polling.poll_while)
        self.turns.together = together
        if is_endless:
            # Numba does not know which names live in a loop behind which nothing can be reached,
            # even where it returns from within.
            node.test = self.core(polling.goes_on, self.run(), at=node)
            fault = ast.Raise(self.load("__ss_Fault", node), None)
            node.orelse = [ast.copy_location(fault, node)]
        return loop

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.as_generator(node.iter)
        if isinstance(node.iter, ast.GeneratorExp):
            node = self.over_generator(node, node.iter)
        node.iter = self.by_columns(node.iter, node.target, node.body)
        turns = self.turns.of(node.iter)
        within = self.turns.variables(node)
        node.iter = self.some(node.iter, self.visit(node.iter))
        before = self.turns.together, self.turns.within
        polls = turns is None or self.turns.together * turns > MOST_TRIPS
        self.turns.together = 1 if polls or turns is None else self.turns.together * turns
        self.turns.within = {**self.turns.within, **within}
        looped = self.for_each(node, polling.poll_for if polls else None)
        self.turns.together, self.turns.within = before
        return looped

    def over_generator(self, node: ast.For, generator: ast.GeneratorExp) -> ast.For:
        """A loop over a generator, as one over what that goes through."""
        if len(generator.generators) > 1:
            self.check.refuse(node, "a loop over a generator with several for", "nest the loops")
        (only,) = generator.generators
        node.target, target = only.target, node.target
        skipped: Statements = [
            ast.If(ast.UnaryOp(ast.Not(), one), [ast.Continue()], []) for one in only.ifs
        ]
        node.iter = only.iter
        node.body = [*skipped, ast.Assign([target], generator.elt), *node.body]
        for statement in node.body:
            for part in ast.walk(statement):
                if isinstance(part, ast.expr | ast.stmt) and not hasattr(part, "lineno"):
                    ast.copy_location(part, node)
        return node

    def for_each(self, node: ast.For, poll: Any) -> Any:
        if all(isinstance(one, ast.Name) for one in targets_in(node.target)):
            return self.loop(node, poll)
        # An item goes where an assignment would put it.
        item, target = self.new_name("item"), node.target
        node.target = ast.copy_location(ast.Name(item, ast.Store()), target)
        first = self.assign(target, ast.Name(item, ast.Load()), node)
        looped = self.loop(node, poll)
        begin = 0 if poll is None else 1
        looped.body[begin:begin] = first
        return looped

    def loop(self, node: Any, poll: Any) -> Any:
        """A loop that polls at each of its turns, if it does."""
        asks = [] if poll is None else [self.do(poll, self.run(), at=node)]
        self.held.append(None)
        node.body = [*asks, *self.statements(node.body)]
        self.held.pop()
        node.orelse = self.statements(node.orelse)
        return node

    # -- locks --

    def visit_With(self, node: ast.With) -> Any:
        """Locks are taken before the body, and given back on every way out of it."""
        item, *more = node.items
        name = self.new_name("lock")
        before = [
            self.assign_name(name, self.visit(item.context_expr), node),
            self.lock_change("acquire", name, node),
        ]
        body = node.body
        if more:
            body = [ast.copy_location(ast.With(more, body), node)]

        def release() -> Statements:
            return [self.lock_change("release", name, node)]

        if self.analysis.catches:
            return [*before, *self.finally_(body, release, node)]
        self.held.append(release)
        inside = self.statements(body)
        self.held.pop()
        return [*before, *inside, *release()]

    def lock_change(self, method: str, name: str, at: ast.AST) -> ast.stmt:
        lock = ast.copy_location(ast.Name(name, ast.Load()), at)
        return self.do(locking.METHODS[method], self.run(), lock, at=at)

    # -- exceptions --

    def visit_Try(self, node: ast.Try) -> Any:
        assert self.analysis.catches
        if not node.finalbody:
            return self.try_except(node)
        body = node.body
        if node.handlers:
            body = [ast.copy_location(ast.Try(body, node.handlers, node.orelse, []), node)]
        caught = list(self.caught)

        def final() -> Statements:
            self.caught, inner = list(caught), self.caught
            statements = self.statements(copy.deepcopy(node.finalbody))
            self.caught = inner
            return statements

        return self.finally_(body, final, node)

    def finally_(
        self, body: Statements, final: Callable[[], Statements], at: ast.AST
    ) -> Statements:
        """The body, with ``final`` on every way out of it."""
        error = self.new_name("error")
        end = self.end_of(error, at)
        inside = [
            *self.in_region(body, lambda: [end, *final()]),
            end,
            *final(),
        ]
        return self.region(error, inside, [*final(), *self.thrown(self.load(error, at), at)], at)

    def try_except(self, node: ast.Try) -> Statements:
        error = self.new_name("error")
        end = self.end_of(error, node)
        inside = self.in_region(node.body, lambda: [end])
        inside += [end, *self.statements(node.orelse)]
        handled = self.thrown(self.load(error, node), node)
        for number, handler in reversed(list(enumerate(node.handlers))):
            errors: tuple[type[BaseException], ...] = (Exception,)
            if handler.type is not None:
                errors = caught_classes(handler.type, self.check.static_value) or ()
            self.caught.append((handler.name, error))
            body = self.statements(handler.body) or [ast.copy_location(ast.Pass(), handler)]
            self.caught.pop()
            if catches_anything(errors):
                handled = body
                continue
            own: Any = errors
            self.analysis.errors.catch(own)
            caught_by = catcher(f"catch_{error}_{number}", self.analysis.errors, own)
            test = self.core(caught_by, self.load(error, handler), at=handler)
            handled = [ast.copy_location(ast.If(test, body, handled), handler)]
        return self.region(error, inside, handled, node)

    def in_region(self, body: Statements, leave: Callable[[], Statements]) -> Statements:
        self.held.append(leave)
        inside = self.statements(body)
        self.held.pop()
        return inside

    def region(
        self, error: str, inside: Statements, otherwise: Statements, at: ast.AST
    ) -> Statements:
        begun = self.core(try_begin, self.number_of_region(error), at=at)
        if self.analysis.tells:
            kept = self.core(caught, self.run(), self.load(error, at), at=at)
            otherwise = [self.assign_name(_told_of(error), kept, at), *otherwise]
        test = self.core(has_begun, self.load(error, at), at=at)
        return [
            self.assign_name(error, begun, at),
            ast.copy_location(ast.If(test, inside, otherwise), at),
        ]

    def end_of(self, error: str, at: ast.AST) -> ast.stmt:
        return self.do(try_end, self.number_of_region(error), at=at)

    @staticmethod
    def number_of_region(error: str) -> ast.expr:
        return ast.Constant(int(error.rpartition("_")[2]))

    @staticmethod
    def load(name: str, at: ast.AST) -> ast.expr:
        return ast.copy_location(ast.Name(name, ast.Load()), at)

    def thrown(self, number: ast.expr, at: ast.AST) -> Statements:
        """Raises the exception of a number; to Numba, the end of a block is a raise."""
        fault = self.load("__ss_Fault", at)
        again: Statements = []
        if self.analysis.tells and isinstance(number, ast.Name):
            kept = self.load(_told_of(number.id), at)
            again = [self.do(tell_again, self.run(), kept, at=at)]
        return [
            *again,
            self.do(throw, number, at=at),
            ast.copy_location(ast.Raise(fault, None), at),
        ]

    def visit_CaughtName(self, node: CaughtName) -> Any:
        error = dict(self.caught).get(node.id)
        if error is None:
            self.check.refuse(
                node,
                f"{node.id!r} is a caught exception, which no longer exists after its except "
                "clause",
                "emit its text there",
            )
        return self.load(_told_of(error), node)

    def visit_Raise(self, node: ast.Raise) -> Any:
        if not self.analysis.catches:
            # Which exception does not matter: the oracle raises the real one.
            return ast.copy_location(ast.Raise(self.load("__ss_Fault", node), None), node)
        if node.exc is None:
            return self.thrown(self.load(self.caught[-1][1], node), node)
        called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
        raised = self.told(node.exc, self.check.static_value(called), node.cause, node)
        if raised is not None:
            return raised
        statements = [*self.evaluated(node.exc, node), *self.evaluated(node.cause, node)]
        for name, error in self.caught:
            if isinstance(node.exc, ast.Name) and node.exc.id == name:
                return [*statements, *self.thrown(self.load(error, node), node)]
        number = self.number_of_class(self.check.static_value(called))
        return [*statements, *self.thrown(number, node)]

    def told(
        self, made: ast.expr, error: Any, cause: ast.expr | None, node: ast.stmt
    ) -> Statements | None:
        """A raise whose exception somebody may ask for its text; None: nobody could tell it."""
        if not self.analysis.tells or error is None or isinstance(node, UntoldRaise):
            return None
        names = self.check.caught
        site, parts = self.analysis.texts.site(made, error, names, self.source.filename)
        if not site:
            return None
        statements: Statements = []
        values: list[ast.expr] = []
        for part in parts:
            name = self.new_name("part")
            statements.append(self.assign_name(name, self.visit(part.value), node))
            values.append(self.load(name, node))
            statements += self.format_checked(self.load(name, node), part, node)
        statements += self.evaluated(cause, node)
        status = ast.Constant(self.analysis.errors.number(error) + CLASSES * site)
        return [
            *statements,
            *self.thrown(self.core(tell, self.run(), status, *values, at=node), node),
        ]

    visit_UntoldRaise = visit_Raise

    def number_of_class(self, error: Any) -> ast.expr:
        return ast.Constant(self.analysis.errors.number(error))

    def evaluated(self, made: ast.expr | None, at: ast.AST) -> Statements:
        """Evaluates what an exception is made of."""
        statements: Statements = []
        for part in parts_of(made, {name for name, _ in self.caught if name}):
            value = self.visit(part.value)
            checked = self.format_checked(value, part, at)
            statements += checked or [ast.copy_location(ast.Expr(value), at)]
        return statements

    def format_checked(self, value: ast.expr, part: Part, at: ast.AST) -> Statements:
        """Looks whether a value has the format that it gets."""
        if not part.spec:
            return []
        spec = ast.Constant(("s" if part.is_text else "v") + part.spec)
        return [self.do(formatted, value, spec, at=at)]

    def visit_Assert(self, node: ast.Assert) -> Any:
        test = self.condition(node.test)
        failing = ast.copy_location(ast.Raise(None, None), node)
        if self.analysis.catches:
            message = ast.Call(node.test, [] if node.msg is None else [node.msg], [])
            failed = self.told(message, AssertionError, None, node) or [
                *self.evaluated(message, node),
                *self.thrown(self.number_of_class(AssertionError), node),
            ]
        else:
            failed = [self.visit_Raise(failing)]
        passing = ast.copy_location(ast.Pass(), node)
        return ast.copy_location(ast.If(test, [passing], failed), node)


def _told_of(error: str) -> str:
    """The variable that has a caught exception, beside that with its number."""
    return f"__ss_told_{error.rpartition('_')[2]}"


def _breaks(nodes: Iterable[ast.AST]) -> bool:
    """Whether one of the nodes in a loop is, or has in it, a break that leaves the loop."""
    return any(
        isinstance(one, ast.Break)
        or _breaks(
            one.orelse if isinstance(one, ast.For | ast.While) else ast.iter_child_nodes(one)
        )
        for one in nodes
    )

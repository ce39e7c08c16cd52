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
from specstream.compiler.frontend.made_nodes import assign_name, at_place, load
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
from specstream.compiler.lowering.assignments import assign
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter, run
from specstream.compiler.lowering.rewrite_local import as_generator
from specstream.compiler.lowering.rewrite_none import condition, some
from specstream.compiler.lowering.starred_arguments import by_columns
from specstream.compiler.lowering.trip_counts import MOST_TRIPS
from specstream.compiler.oracle.common_rewriting import targets_in
from specstream.compiler.oracle_objects.forms import CaughtName

__all__ = ["HANDLERS"]

Statements = list[ast.stmt]


def _give_back(rewriter: NativeRewriter, outermost: int) -> Statements:
    """What is done to leave the blocks from a place of ``held`` on, the last one first."""
    statements: Statements = []
    held = rewriter.held
    for place in reversed(range(outermost, len(held))):
        leave = held[place]
        if leave is not None:
            rewriter.held = held[:place]
            statements += leave()
    rewriter.held = held
    return statements


def _leave_loop(rewriter: NativeRewriter, node: ast.Break | ast.Continue) -> Any:
    loop = max(place for place, leave in enumerate(rewriter.held) if leave is None)
    return [*_give_back(rewriter, loop), node]


def _return(rewriter: NativeRewriter, node: ast.Return) -> Any:
    given_back = _give_back(rewriter, 0)
    if node.value is None or not given_back:
        rewriter.generic_visit(node)
        return [*given_back, node]
    # The value may read the state, and belongs under the locks; what it raises, to the try.
    name = rewriter.new_name("returned")
    value = assign_name(name, rewriter.visit(node.value), node)
    node.value = load(name, node)
    return [value, *given_back, node]


def _while(rewriter: NativeRewriter, node: ast.While) -> Any:
    is_endless = isinstance(node.test, ast.Constant) and node.test.value and not _breaks(node.body)
    node.test = condition(rewriter, node.test)
    together, rewriter.turns.together = rewriter.turns.together, 1
    looped = loop(rewriter, node, polling.poll_while)
    rewriter.turns.together = together
    if is_endless:
        # Numba does not know which names live in a loop behind which nothing can be reached,
        # even where it returns from within.
        node.test = rewriter.core(polling.goes_on, run(), at=node)
        fault = ast.Raise(load("__ss_Fault", node), None)
        node.orelse = [ast.copy_location(fault, node)]
    return looped


def _for(rewriter: NativeRewriter, node: ast.For) -> Any:
    node.iter = as_generator(rewriter, node.iter)
    if isinstance(node.iter, ast.GeneratorExp):
        node = _over_generator(rewriter, node, node.iter)
    node.iter = by_columns(rewriter, node.iter, node.target, node.body)
    turns = rewriter.turns.of(node.iter)
    within = rewriter.turns.variables(node)
    node.iter = some(rewriter, node.iter, rewriter.visit(node.iter))
    before = rewriter.turns.together, rewriter.turns.within
    polls = turns is None or rewriter.turns.together * turns > MOST_TRIPS
    rewriter.turns.together = 1 if polls or turns is None else rewriter.turns.together * turns
    rewriter.turns.within = {**rewriter.turns.within, **within}
    looped = _for_each(rewriter, node, polling.poll_for if polls else None)
    rewriter.turns.together, rewriter.turns.within = before
    return looped


def _over_generator(
    rewriter: NativeRewriter, node: ast.For, generator: ast.GeneratorExp
) -> ast.For:
    """A loop over a generator, as one over what that goes through."""
    if len(generator.generators) > 1:
        rewriter.check.refuse(node, "a loop over a generator with several for", "nest the loops")
    (only,) = generator.generators
    node.target, target = only.target, node.target
    skipped: Statements = [
        ast.If(ast.UnaryOp(ast.Not(), one), [ast.Continue()], []) for one in only.ifs
    ]
    node.iter = only.iter
    node.body = [*skipped, ast.Assign([target], generator.elt), *node.body]
    for statement in node.body:
        at_place(statement, node)
    return node


def _for_each(rewriter: NativeRewriter, node: ast.For, poll: Any) -> Any:
    if all(isinstance(one, ast.Name) for one in targets_in(node.target)):
        return loop(rewriter, node, poll)
    # An item goes where an assignment would put it.
    item, target = rewriter.new_name("item"), node.target
    node.target = ast.copy_location(ast.Name(item, ast.Store()), target)
    first = assign(rewriter, target, load(item), node)
    looped = loop(rewriter, node, poll)
    begin = 0 if poll is None else 1
    looped.body[begin:begin] = first
    return looped


def loop(rewriter: NativeRewriter, node: Any, poll: Any) -> Any:
    """A loop that polls at each of its turns, if it does."""
    asks = [] if poll is None else [rewriter.do(poll, run(), at=node)]
    rewriter.held.append(None)
    node.body = [*asks, *rewriter.statements(node.body)]
    rewriter.held.pop()
    node.orelse = rewriter.statements(node.orelse)
    return node


def _with(rewriter: NativeRewriter, node: ast.With) -> Any:
    """Locks are taken before the body, and given back on every way out of it."""
    item, *more = node.items
    name = rewriter.new_name("lock")
    before = [
        assign_name(name, rewriter.visit(item.context_expr), node),
        _lock_change(rewriter, "acquire", name, node),
    ]
    body = node.body
    if more:
        body = [ast.copy_location(ast.With(more, body), node)]

    def release() -> Statements:
        return [_lock_change(rewriter, "release", name, node)]

    if rewriter.analysis.catches:
        return [*before, *_finally(rewriter, body, release, node)]
    rewriter.held.append(release)
    inside = rewriter.statements(body)
    rewriter.held.pop()
    return [*before, *inside, *release()]


def _lock_change(rewriter: NativeRewriter, method: str, name: str, at: ast.AST) -> ast.stmt:
    lock = load(name, at)
    return rewriter.do(locking.METHODS[method], run(), lock, at=at)


def _try(rewriter: NativeRewriter, node: ast.Try) -> Any:
    assert rewriter.analysis.catches
    if not node.finalbody:
        return _try_except(rewriter, node)
    body = node.body
    if node.handlers:
        body = [ast.copy_location(ast.Try(body, node.handlers, node.orelse, []), node)]
    caught = list(rewriter.caught)

    def final() -> Statements:
        rewriter.caught, inner = list(caught), rewriter.caught
        statements = rewriter.statements(copy.deepcopy(node.finalbody))
        rewriter.caught = inner
        return statements

    return _finally(rewriter, body, final, node)


def _finally(
    rewriter: NativeRewriter, body: Statements, final: Callable[[], Statements], at: ast.AST
) -> Statements:
    """The body, with ``final`` on every way out of it."""
    error = rewriter.new_name("error")
    end = _end_of(rewriter, error, at)
    inside = [
        *_in_region(rewriter, body, lambda: [end, *final()]),
        end,
        *final(),
    ]
    return _region(rewriter, error, inside, [*final(), *_thrown(rewriter, load(error, at), at)], at)


def _try_except(rewriter: NativeRewriter, node: ast.Try) -> Statements:
    error = rewriter.new_name("error")
    end = _end_of(rewriter, error, node)
    inside = _in_region(rewriter, node.body, lambda: [end])
    inside += [end, *rewriter.statements(node.orelse)]
    handled = _thrown(rewriter, load(error, node), node)
    for number, handler in reversed(list(enumerate(node.handlers))):
        errors: tuple[type[BaseException], ...] = (Exception,)
        if handler.type is not None:
            errors = caught_classes(handler.type, rewriter.check.static_value) or ()
        rewriter.caught.append((handler.name, error))
        body = rewriter.statements(handler.body) or [ast.copy_location(ast.Pass(), handler)]
        rewriter.caught.pop()
        if catches_anything(errors):
            handled = body
            continue
        own: Any = errors
        rewriter.analysis.errors.catch(own)
        caught_by = catcher(f"catch_{error}_{number}", rewriter.analysis.errors, own)
        test = rewriter.core(caught_by, load(error, handler), at=handler)
        handled = [ast.copy_location(ast.If(test, body, handled), handler)]
    return _region(rewriter, error, inside, handled, node)


def _in_region(
    rewriter: NativeRewriter, body: Statements, leave: Callable[[], Statements]
) -> Statements:
    rewriter.held.append(leave)
    inside = rewriter.statements(body)
    rewriter.held.pop()
    return inside


def _region(
    rewriter: NativeRewriter, error: str, inside: Statements, otherwise: Statements, at: ast.AST
) -> Statements:
    begun = rewriter.core(try_begin, _number_of_region(error), at=at)
    if rewriter.analysis.tells:
        kept = rewriter.core(caught, run(), load(error, at), at=at)
        otherwise = [assign_name(_told_of(error), kept, at), *otherwise]
    test = rewriter.core(has_begun, load(error, at), at=at)
    return [
        assign_name(error, begun, at),
        ast.copy_location(ast.If(test, inside, otherwise), at),
    ]


def _end_of(rewriter: NativeRewriter, error: str, at: ast.AST) -> ast.stmt:
    return rewriter.do(try_end, _number_of_region(error), at=at)


def _number_of_region(error: str) -> ast.expr:
    return ast.Constant(int(error.rpartition("_")[2]))


def _thrown(rewriter: NativeRewriter, number: ast.expr, at: ast.AST) -> Statements:
    """Raises the exception of a number; to Numba, the end of a block is a raise."""
    fault = load("__ss_Fault", at)
    again: Statements = []
    if rewriter.analysis.tells and isinstance(number, ast.Name):
        kept = load(_told_of(number.id), at)
        again = [rewriter.do(tell_again, run(), kept, at=at)]
    return [
        *again,
        rewriter.do(throw, number, at=at),
        ast.copy_location(ast.Raise(fault, None), at),
    ]


def _caught_name(rewriter: NativeRewriter, node: CaughtName) -> Any:
    error = dict(rewriter.caught).get(node.id)
    if error is None:
        rewriter.check.refuse(
            node,
            f"{node.id!r} is a caught exception, which no longer exists after its except clause",
            "emit its text there",
        )
    return load(_told_of(error), node)


def _raise(rewriter: NativeRewriter, node: ast.Raise) -> Any:
    if not rewriter.analysis.catches:
        # Which exception does not matter: the oracle raises the real one.
        return ast.copy_location(ast.Raise(load("__ss_Fault", node), None), node)
    if node.exc is None:
        return _thrown(rewriter, load(rewriter.caught[-1][1], node), node)
    called = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    raised = _told(rewriter, node.exc, rewriter.check.static_value(called), node.cause, node)
    if raised is not None:
        return raised
    statements = [*_evaluated(rewriter, node.exc, node), *_evaluated(rewriter, node.cause, node)]
    for name, error in rewriter.caught:
        if isinstance(node.exc, ast.Name) and node.exc.id == name:
            return [*statements, *_thrown(rewriter, load(error, node), node)]
    number = _number_of_class(rewriter, rewriter.check.static_value(called))
    return [*statements, *_thrown(rewriter, number, node)]


def _told(
    rewriter: NativeRewriter, made: ast.expr, error: Any, cause: ast.expr | None, node: ast.stmt
) -> Statements | None:
    """A raise whose exception somebody may ask for its text; None: nobody could tell it."""
    if not rewriter.analysis.tells or error is None or isinstance(node, UntoldRaise):
        return None
    names = rewriter.check.caught
    site, parts = rewriter.analysis.texts.site(made, error, names, rewriter.source.filename)
    if not site:
        return None
    statements: Statements = []
    values: list[ast.expr] = []
    for part in parts:
        name = rewriter.new_name("part")
        statements.append(assign_name(name, rewriter.visit(part.value), node))
        values.append(load(name, node))
        statements += _format_checked(rewriter, load(name, node), part, node)
    statements += _evaluated(rewriter, cause, node)
    status = ast.Constant(rewriter.analysis.errors.number(error) + CLASSES * site)
    return [
        *statements,
        *_thrown(rewriter, rewriter.core(tell, run(), status, *values, at=node), node),
    ]


def _number_of_class(rewriter: NativeRewriter, error: Any) -> ast.expr:
    return ast.Constant(rewriter.analysis.errors.number(error))


def _evaluated(rewriter: NativeRewriter, made: ast.expr | None, at: ast.AST) -> Statements:
    """Evaluates what an exception is made of."""
    statements: Statements = []
    for part in parts_of(made, {name for name, _ in rewriter.caught if name}):
        value = rewriter.visit(part.value)
        checked = _format_checked(rewriter, value, part, at)
        statements += checked or [ast.copy_location(ast.Expr(value), at)]
    return statements


def _format_checked(
    rewriter: NativeRewriter, value: ast.expr, part: Part, at: ast.AST
) -> Statements:
    """Looks whether a value has the format that it gets."""
    if not part.spec:
        return []
    spec = ast.Constant(("s" if part.is_text else "v") + part.spec)
    return [rewriter.do(formatted, value, spec, at=at)]


def _assert(rewriter: NativeRewriter, node: ast.Assert) -> Any:
    test = condition(rewriter, node.test)
    failing = ast.copy_location(ast.Raise(None, None), node)
    if rewriter.analysis.catches:
        message = ast.Call(node.test, [] if node.msg is None else [node.msg], [])
        failed = _told(rewriter, message, AssertionError, None, node) or [
            *_evaluated(rewriter, message, node),
            *_thrown(rewriter, _number_of_class(rewriter, AssertionError), node),
        ]
    else:
        failed = [_raise(rewriter, failing)]
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


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Break: _leave_loop,
    ast.Continue: _leave_loop,
    ast.Return: _return,
    ast.While: _while,
    ast.For: _for,
    ast.With: _with,
    ast.Try: _try,
    ast.Raise: _raise,
    UntoldRaise: _raise,
    CaughtName: _caught_name,
    ast.Assert: _assert,
}

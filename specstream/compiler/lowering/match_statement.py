"""``match`` in the rewriting for Numba: a chain of if and elif.

The subject is evaluated once. A pattern becomes tests, in Python's order, joined by ``and``; what
it captures is kept aside while it is tested, and goes to its names when all of it fits, before the
guard. What a subject is, is known from its type: of a tuple, how long it is. So a pattern that
could never fit is refused, and the others need no test of that.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from specstream.compiler.backend.instructions import BIT, I64
from specstream.compiler.backend.local_types import ListType, own
from specstream.compiler.backend.none_types import missing, present, value_or_zero
from specstream.compiler.backend.numba_types import ContainerType
from specstream.compiler.backend.overloads import Core, Meaning
from specstream.compiler.frontend.definite_assignment import is_irrefutable
from specstream.compiler.frontend.made_nodes import at_place, constant, load
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.local_lists import List
from specstream.compiler.library.none_rules import fits_none
from specstream.compiler.library.state_sequence_types import DequeField, ListField
from specstream.compiler.lowering.native_rewriter import Handler, NativeRewriter

__all__ = ["HANDLERS", "is_singleton"]


@intrinsic
def kept_aside(typing_context: Any, value: Any) -> Any:
    """True, whatever the value."""
    return types.boolean(value), lambda context, builder, sig, args: ir.IntType(1)(1)


@intrinsic(prefer_literal=True)
def is_singleton(typing_context: Any, value: Any, wanted: Any) -> Any:
    """The test of a ``match`` statement for ``case True`` and ``case False``.

    It is that of ``value is True`` as well.
    """
    if not isinstance(wanted, types.BooleanLiteral):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        if types.unliteral(present(value)) != types.boolean:
            return BIT(0)
        given = value_or_zero(context, builder, value, args[0])
        fits = builder.icmp_unsigned("==", given, BIT(int(wanted.literal_value)))
        return builder.and_(builder.not_(missing(context, builder, value, args[0])), fits)

    return types.boolean(value, wanted), code


is_sequence = Core("is_sequence", "a pattern of parts takes a tuple or list")


@is_sequence.rule
def _is_sequence(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Whether a tuple or list has as many items as a pattern; of a tuple it has to have them."""
    value, least, has_star = args
    if not isinstance(least, types.IntegerLiteral):
        return None  # what was refused is tried once more, without literals
    count = least.literal_value
    if isinstance(value, ListType):
        return _is_long_enough(value, args, count, has_star.literal_value)
    if isinstance(value, ContainerType):
        held = f"state.{value.field.name}"
        has_places = isinstance(value, ListField | DequeField)
        hint = f"write match list({held}):" if has_places else "go through it in a loop"
        raise refuse(
            f"a pattern of {count} parts meets {held}, which is a container of the state: {hint}"
        )
    if not isinstance(value, types.BaseTuple):
        raise refuse(
            f"a pattern of {count} parts meets {types.unliteral(value)}, which is not a tuple or "
            "list; match its parts, match a, b:, or leave the case out"
        )
    fits = len(value) >= count if has_star.literal_value else len(value) == count
    if not fits:
        raise refuse(
            f"a pattern of {count} parts never fits a tuple of {len(value)}; leave the case out"
        )
    return types.boolean, args, lambda context, builder, sig, args: ir.IntType(1)(1)


def _is_long_enough(
    value: ListType, args: Sequence[types.Type], count: int, has_star: bool
) -> Meaning:
    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        length = List(context, builder, value, args[0]).count()
        return builder.icmp_unsigned(">=" if has_star else "==", length, I64(count))

    return types.boolean, args, code


star_of = Core("star_of", "a star in a pattern takes what a list has left")


@star_of.rule
def _star_of(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """What a star in a pattern takes: the rest of a list."""
    value, before, after = args
    if not isinstance(before, types.IntegerLiteral):
        return None
    if not isinstance(value, ListType):
        raise refuse(
            "a star with a name, in a pattern of a tuple, makes a list; write *_, and take the "
            "rest of the tuple as a slice: x[1:]"
        )
    others = before.literal_value + after.literal_value

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        head = List(context, builder, value, args[0])
        length = builder.sub(head.count(), I64(others))
        return head.part(I64(before.literal_value), I64(1), length)

    return own(value), args, code


def _match(rewriter: NativeRewriter, node: ast.Match) -> Any:
    subject = rewriter.new_name("subject")
    taken = ast.Assign([ast.Name(subject, ast.Store())], node.subject)
    chain: list[ast.stmt] = []
    for case in reversed(node.cases):
        captures: dict[str, str] = {}
        tests = _tests(rewriter, case.pattern, load(subject), captures)
        tests += [
            _keep(rewriter, name, load(aside), case.pattern) for name, aside in captures.items()
        ]
        if case.guard is not None:
            tests.append(case.guard)
        elif is_irrefutable(case.pattern):
            # The last case; Numba need not see a way around it.
            chain = [ast.Expr(test) for test in tests] + case.body
            continue
        chain = [ast.copy_location(ast.If(_all_of(tests), case.body, chain), case.pattern)]
    for statement in (taken, *chain):
        at_place(ast.copy_location(statement, node), node)
    return rewriter.statements([taken, *chain])


def _keep(rewriter: NativeRewriter, name: str, value: ast.expr, at: ast.AST) -> ast.expr:
    """Gives a value to a name, inside of a condition that goes on."""
    return rewriter.core(kept_aside, ast.NamedExpr(ast.Name(name, ast.Store()), value), at=at)


def _tests(
    rewriter: NativeRewriter, pattern: ast.pattern, subject: ast.expr, captures: dict[str, str]
) -> list[ast.expr]:
    """What has to hold, in this order; captures come to be by the way, under other names."""
    match pattern:
        case ast.MatchValue():
            test = ast.Compare(subject, [ast.Eq()], [pattern.value])
            return [ast.copy_location(test, pattern)]
        case ast.MatchSingleton(value=None):
            return [rewriter.core(fits_none, subject, at=pattern)]
        case ast.MatchSingleton():
            wanted = constant(pattern.value, pattern)
            return [rewriter.core(is_singleton, subject, wanted, at=pattern)]
        case ast.MatchAs():
            tests = []
            if pattern.pattern is not None:
                tests = _tests(rewriter, pattern.pattern, subject, captures)
            if pattern.name is not None:
                aside = captures.setdefault(pattern.name, f"__ss_{pattern.name}·0")
                tests.append(_keep(rewriter, aside, subject, pattern))
            return tests
        case ast.MatchOr():
            return _alternatives(rewriter, pattern, subject, captures)
        case ast.MatchSequence():
            return _sequence(rewriter, pattern, subject, captures)
    return rewriter.check.refuse(
        pattern,
        f"{ast.unparse(pattern)} is a pattern that cannot be compiled",
        "match numbers, strings and tuples of them, and use a guard: case x if ...",
    )


def _alternatives(
    rewriter: NativeRewriter, pattern: ast.MatchOr, subject: ast.expr, captures: dict[str, str]
) -> list[ast.expr]:
    choices: list[ast.expr] = []
    for alternative in pattern.patterns:
        tests = _tests(rewriter, alternative, subject, captures)
        tests = tests or [constant(True, alternative)]
        choices.append(_all_of(tests))
    return [ast.BoolOp(ast.Or(), choices)]


def _sequence(
    rewriter: NativeRewriter,
    pattern: ast.MatchSequence,
    subject: ast.expr,
    captures: dict[str, str],
) -> list[ast.expr]:
    parts = pattern.patterns
    stars = [at for at, part in enumerate(parts) if isinstance(part, ast.MatchStar)]
    least = constant(len(parts) - len(stars), pattern)
    has_star = constant(bool(stars), pattern)
    tests: list[ast.expr] = [rewriter.core(is_sequence, subject, least, has_star, at=pattern)]
    for at, part in enumerate(parts):
        if isinstance(part, ast.MatchStar):
            if part.name is not None:
                counts = [ast.Constant(at), ast.Constant(len(parts) - at - 1)]
                rest = rewriter.core(star_of, subject, *counts, at=pattern)
                aside = captures.setdefault(part.name, f"__ss_{part.name}·0")
                tests.append(_keep(rewriter, aside, rest, pattern))
        else:
            place = at - len(parts) if stars and at > stars[0] else at
            item = ast.Subscript(subject, ast.Constant(place), ast.Load())
            tests += _tests(rewriter, part, ast.copy_location(item, pattern), captures)
    return tests


def _all_of(tests: list[ast.expr]) -> ast.expr:
    return tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)


HANDLERS: dict[type[ast.AST], Handler] = {
    ast.Match: _match,
}

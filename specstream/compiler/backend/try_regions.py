"""Regions of ``try``, in Numba's terms: what may raise in one gets a branch to the handler.

The rewriting (:mod:`specstream.compiler.frontend.try_and_raise`) writes a ``try`` as a condition::

    __ss_error_1 = try_begin(1)
    if has_begun(__ss_error_1):
        body
        try_end(1)
    else:
        handlers

To Python's bytecode and to Numba this is a condition like any other. Before Numba makes single
assignments of the variables, a pass of ours follows the code from each ``try_begin`` to its
``try_end`` on every path, and splits the blocks in between behind each statement that may raise:
there ``__ss_error_1`` becomes what the statement landed with, and a branch goes to the handlers
unless that is 0. So all that comes later, the variables' versions, lives and types, sees where an
exception may go. Numba's own ``try`` would not do: it does not see what intrinsics raise.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from llvmlite import ir
from numba.core import ir as numba_ir
from numba.core import ir_utils, types
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.extending import intrinsic

from specstream.compiler.backend import polling
from specstream.compiler.backend.caught import caught, tell, tell_again
from specstream.compiler.backend.exception_status import STATUS, landed_status, raise_status
from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.language.error_classes import CLASSES, ErrorClasses
from specstream.compiler.language.text import text_of
from specstream.declarations.derived import numbers_of

__all__ = [
    "ERROR",
    "TryRegions",
    "catcher",
    "guarded_statement",
    "has_begun",
    "is_landing",
    "throw",
    "try_begin",
    "try_end",
]

ERROR = "__ss_error_"
"""What begins the name of the variable with the number of the exception, of each ``try``."""
_FAILURE = "$__ss_failure_"
"""What begins the name of a variable that is assigned at a landing."""

_NOT_RAISING = frozenset({"pair_first", "pair_second", "build_tuple", "cast", "phi", "null"})
# Calls behind which no way to a handler is needed: it would take time to compile. A poll leaves
# the event, past every handler.
_NEVER_RAISING = (bool, polling.poll_for, polling.poll_while, text_of, caught, tell, tell_again)


@intrinsic
def try_begin(typing_context: Any, number: Any) -> Any:
    """Where a ``try`` begins. No exception, so far."""
    return types.int64(types.int64), lambda context, builder, sig, args: I64(0)


@intrinsic
def has_begun(typing_context: Any, error: Any) -> Any:
    """The condition that a ``try`` is written as: its body comes next, and not its handlers."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return builder.icmp_unsigned("==", args[0], I64(0))

    return types.boolean(types.int64), code


@intrinsic
def try_end(typing_context: Any, number: Any) -> Any:
    """Where a ``try`` is left."""
    return types.void(types.int64), lambda context, builder, sig, args: context.get_dummy_value()


@intrinsic
def number_raised(typing_context: Any) -> Any:
    """What the statement before has raised, asked in a ``try`` region: its number, or 0."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return builder.zext(landed_status(builder), I64)

    return types.int64(), code


@intrinsic
def has_failed(typing_context: Any, error: Any) -> Any:
    """The condition of a branch from a ``try`` region to its handlers: whether it raised."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return builder.icmp_unsigned("!=", args[0], I64(0))

    return types.boolean(types.int64), code


@intrinsic
def throw(typing_context: Any, error: Any) -> Any:
    """Raises an exception by its number, as behind the last handler of a ``try`` region."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        raise_status(builder, builder.trunc(args[0], STATUS))
        builder.position_at_end(builder.append_basic_block("never"))
        return context.get_dummy_value()

    return types.void(types.int64), code


def catcher(name: str, classes: ErrorClasses, errors: tuple[type[Exception], ...]) -> Any:
    """The test between a ``try`` region and its handler, an intrinsic: is the number caught?

    Which numbers its classes have is asked when its code is written: by then all classes are known.
    """

    def rule(typing_context: Any, error: Any) -> Any:
        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            found: Value = ir.IntType(1)(0)
            number = builder.and_(args[0], I64(CLASSES - 1))
            for low, high in _ranges_caught(classes.caught_by(errors)):
                offset = builder.sub(number, I64(low))
                inside = builder.icmp_unsigned("<=", offset, I64(high - low))
                found = builder.or_(found, inside)
            return found

        return types.boolean(types.int64), code

    rule.__name__ = name
    return intrinsic(rule)


def _ranges_caught(numbers: list[int]) -> Iterator[tuple[int, int]]:
    """The classes that the handler of a ``try`` region catches, as ranges of their numbers."""
    low = None
    for at, number in enumerate(numbers):
        low = number if low is None else low
        if at + 1 == len(numbers) or numbers[at + 1] != number + 1:
            yield low, number
            low = None


@register_pass(mutates_CFG=True, analysis_only=False)
class TryRegions(FunctionPass):
    """Adds the ways to the handlers."""

    _name = "specstream_try_regions"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        if "__ss_try_begin" not in state.func_ir.func_id.func.__globals__:
            return False
        _Regions(state.func_ir).connect()
        state.func_ir._definitions = ir_utils.build_definitions(state.func_ir.blocks)
        return True


class _Regions:
    """The regions of one function; each is known by its number."""

    def __init__(self, func_ir: Any) -> None:
        self.func_ir = func_ir
        self.blocks = func_ir.blocks
        self.handlers: dict[int, int] = {}  # the label of their first block
        self.next_label = max(self.blocks) + 1
        self.places = 0

    def connect(self) -> None:
        regions = self.regions_at_start()
        for label, around in regions.items():
            self.split(label, around)

    def marker(self, statement: Any) -> tuple[Any, int]:
        """Which of the two marks a statement is, and of which region."""
        function = self.called(statement)
        if function is not try_begin and function is not try_end:
            return None, 0
        return function, int(self.func_ir.infer_constant(statement.value.args[0]))

    def called(self, statement: Any) -> Any:
        """The function that a statement calls; None: it calls none, or only a run knows."""
        value = getattr(statement, "value", None)
        if not (isinstance(value, numba_ir.Expr) and value.op == "call"):
            return None
        found = ir_utils.guard(ir_utils.get_definition, self.func_ir, value.func)
        return getattr(found, "value", None)

    def may_raise(self, statement: Any) -> bool:
        if not isinstance(statement, numba_ir.Assign):
            return isinstance(statement, numba_ir.SetItem | numba_ir.StaticSetItem)
        value = statement.value
        if not isinstance(value, numba_ir.Expr) or value.op in _NOT_RAISING:
            return False
        if value.op == "getattr":  # what Python has computed before may be an exception
            return numbers_of(value.attr) is not None
        function = self.called(statement)
        return not any(function is one for one in _NEVER_RAISING)

    def regions_at_start(self) -> dict[int, tuple[int, ...]]:
        """Of each block the regions around its beginning, the innermost last."""
        first = min(self.blocks)
        found: dict[int, tuple[int, ...]] = {first: ()}
        waiting = [first]
        while waiting:
            label = waiting.pop()
            block = self.blocks[label]
            around, begun = found[label], None
            for statement in block.body:
                mark, number = self.marker(statement)
                if mark is try_begin:
                    begun = number
                elif mark is try_end:
                    assert around[-1] == number, "a try is left that is not the innermost"
                    around = around[:-1]
            following = [(target, around) for target in block.terminator.get_targets()]
            if begun is not None:
                branch = block.terminator
                self.handlers[begun] = branch.falsebr
                following = [(branch.truebr, (*around, begun)), (branch.falsebr, around)]
            for target, regions in following:
                if target not in found:
                    found[target] = regions
                    waiting.append(target)
                assert found[target] == regions, "a block is inside of a try and outside of it"
        return found

    def split(self, label: int, around: tuple[int, ...]) -> None:
        """Splits a block behind each statement that may raise in a region."""
        block = self.blocks[label]
        body = list(block.body)
        block.body = []
        for statement in body:
            mark, _ = self.marker(statement)
            if mark is try_end:
                around = around[:-1]
            if around and mark is None and self.may_raise(statement):
                block = self.guard(block, statement, around[-1])
            else:
                block.append(statement)

    def guard(self, block: Any, statement: Any, region: int) -> Any:
        """Ends a block with a statement and the branch to its region's handlers; the next one."""
        self.places += 1
        scope, loc = block.scope, statement.loc

        def new(name: str) -> Any:
            return scope.get_or_define(f"{name}{self.places}", loc)

        ask, test = new("$__ss_landed_"), new("$__ss_has_failed_")
        block.append(
            numba_ir.Assign(numba_ir.Global("number_raised", number_raised, loc), ask, loc)
        )
        block.append(numba_ir.Assign(numba_ir.Global("has_failed", has_failed, loc), test, loc))
        # A name keeps its old value where what it is assigned raises.
        value, target = new("$__ss_value_"), getattr(statement, "target", None)
        if target is not None:
            statement = numba_ir.Assign(statement.value, value, loc)
        block.append(statement)
        failure, failed = new(_FAILURE), new("$__ss_failed_")
        error = scope.get(f"{ERROR}{region}")
        block.append(numba_ir.Assign(numba_ir.Expr.call(ask, (), (), loc), failure, loc))
        block.append(numba_ir.Assign(failure, error, loc))
        block.append(numba_ir.Assign(numba_ir.Expr.call(test, (failure,), (), loc), failed, loc))
        after = self.next_label
        self.next_label += 1
        block.append(numba_ir.Branch(failed, self.handlers[region], after, loc))
        following = self.blocks[after] = numba_ir.Block(scope, loc)
        if target is not None:
            following.append(numba_ir.Assign(value, target, loc))
        return following


def is_landing(instruction: Any) -> bool:
    """Whether a statement of Numba's is one that the pass over ``try`` regions has put in.

    It asks, behind a statement that may raise, what that has raised: the landing.
    """
    is_assigned = isinstance(instruction, numba_ir.Assign)
    return is_assigned and instruction.target.name.startswith(_FAILURE)


def guarded_statement(block: Any) -> Any:
    """The statement of a block, inside of a ``try``, that has a landing behind it."""
    last = None
    for instruction in block.body:
        if is_landing(instruction):
            return last
        if not isinstance(instruction, numba_ir.Del) and not isinstance(
            getattr(instruction, "value", None), numba_ir.Var
        ):
            last = instruction
    return None

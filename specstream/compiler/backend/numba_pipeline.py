"""Numba's pipeline as operators go through it: its options, our check of types, our lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, FunctionPass, register_pass
from numba.core.ir_utils import get_definition, guard
from numba.core.typed_passes import (
    IRLegalization,
    NativeLowering,
    NopythonRewrites,
    NopythonTypeInference,
)
from numba.core.untyped_passes import (
    InlineClosureLikes,
    LiteralUnroll,
    RewriteSemanticConstants,
    TranslateByteCode,
)

from specstream.compiler.backend.bytecode import Bytecode
from specstream.compiler.backend.none_types import NullableType, may_be_none, present
from specstream.compiler.backend.operator_lowering import OperatorLowering
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.backend.try_regions import TryRegions

__all__ = ["COMPILE_OPTIONS", "OperatorCompiler", "compiled"]

COMPILE_OPTIONS = {
    "nogil": True,
    "error_model": "python",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # Operators may not allocate, so a frame owns nothing and may be left at any point.
    "_nrt": False,
}

# They take a tenth of the time and have nothing to do here: nested functions are lifted before
# Numba sees them, there are no array expressions, and where no reference is counted no variable
# has to be deleted.
_NEEDLESS = (InlineClosureLikes, NopythonRewrites, IRLegalization)


@register_pass(mutates_CFG=False, analysis_only=True)
class _OneTypePerName(AnalysisPass):
    """Refuses names that hold an int here and a float there.

    Numba would convert silently where two definitions meet; CPython keeps each value's own type.
    """

    _name = "specstream_one_type_per_name"

    def __init__(self) -> None:
        AnalysisPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for statement in block.body:
                if isinstance(statement, numba_ir.Assign):
                    target = state.typemap[statement.target.name]
                    for source in _assigned_variables(statement.value):
                        self.compare(target, state.typemap[source.name], statement, source.loc)
                elif isinstance(statement, numba_ir.Return):
                    given = state.typemap[statement.value.name]
                    self.compare(state.return_type, given, statement, statement.loc)
        return False

    @staticmethod
    def compare(target: types.Type, source: types.Type, statement: Any, loc: Any) -> None:
        target, source = _compared_types(types.unliteral(target), types.unliteral(source))
        if target == source:
            return
        scalars = scalar_kind(target), scalar_kind(source)
        name = getattr(getattr(statement, "target", None), "unversioned_name", "a returned value")
        if name == "__ss_total" and scalars == ("float64", "int64"):
            return  # the literal that a sum of floats begins with
        if None in scalars and not isinstance(target, types.Optional | types.BaseTuple):
            return
        what = "a value" if name.startswith(("$", "__ss_")) else name
        one, other = (_SHOWN.get(kind or "", kind) for kind in (scalars[1], scalars[0]))
        hint = "make it one type on every path, with int(x) or float(x)"
        if {one, other} == {"int", "float"}:
            hint = "write 0.0 for 0, and float(x) for an int x, so that it is a float everywhere"
        raise numba.core.errors.TypingError(
            f"specstream: {what} is {one or source} here and {other or target} elsewhere: "
            f"{hint}\n at {loc.filename} ({loc.line})"
        )


_SHOWN = {"int64": "int", "float64": "float"}


def _compared_types(target: types.Type, source: types.Type) -> tuple[types.Type, types.Type]:
    """Two types that meet, as our check in Numba's pipeline compares them.

    They come without what they may differ in: None, and parts of tuples.
    """
    if isinstance(target, types.Optional):
        return (
            (source, source)
            if source == types.none
            else _compared_types(target.type, present(source))
        )
    if isinstance(target, NullableType):
        return target.of, present(source)
    is_pair = isinstance(target, types.BaseTuple) and isinstance(source, types.BaseTuple)
    if is_pair and len(target) == len(source):
        pairs = [
            _compared_types(*map(types.unliteral, pair))
            for pair in zip(target, source, strict=True)
        ]
        return next((pair for pair in pairs if pair[0] != pair[1]), (target, target))
    return target, source


def _assigned_variables(value: Any) -> list[Any]:
    """For our check of types in the pipeline, variables that an assignment takes over as is."""
    if isinstance(value, numba_ir.Var):
        return [value]
    if isinstance(value, numba_ir.Expr) and value.op == "cast":
        return [value.value]
    if isinstance(value, numba_ir.Expr) and value.op == "phi":
        return [v for v in value.incoming_values if v is not numba_ir.UNDEFINED]
    return []


@register_pass(mutates_CFG=False, analysis_only=False)
class _KnownNone(FunctionPass):
    """Decides ``x is None`` of a parameter whose type tells: what is not run is then not typed."""

    _name = "specstream_known_none"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        code = state.func_ir
        found = state.func_id.func.__globals__
        tests = {found.get("__ss_is_none"): True, found.get("__ss_is_not_none"): False}
        tests.pop(None, None)
        if not tests:
            return False
        for block in code.blocks.values():
            for statement in block.body:
                call = getattr(statement, "value", None)
                if not (isinstance(call, numba_ir.Expr) and call.op == "call"):
                    continue
                function = guard(get_definition, code, call.func)
                wanted = tests.get(getattr(function, "value", None))
                argument = guard(get_definition, code, call.args[0]) if call.args else None
                if wanted is None or argument is None:
                    continue
                is_global = isinstance(argument, numba_ir.Global | numba_ir.FreeVar)
                of = types.none if is_global and argument.value is None else None
                if isinstance(argument, numba_ir.Arg):
                    of = state.args[argument.index]
                if of is None:
                    continue
                if of == types.none or not may_be_none(of):
                    known = numba_ir.Const(wanted == (of == types.none), statement.loc)
                    statement.value = code._definitions[statement.target.name][0] = known
        return True


class OperatorCompiler(CompilerBase):
    """Numba's nopython pipeline with our check of types and our lowering."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_OneTypePerName, NopythonTypeInference)
        manager.add_pass_after(_KnownNone, RewriteSemanticConstants)
        manager.add_pass_after(TryRegions, LiteralUnroll)
        ours = {TranslateByteCode: Bytecode, NativeLowering: OperatorLowering}
        manager.passes = [
            (ours.get(one, one), what) for one, what in manager.passes if one not in _NEEDLESS
        ]
        manager.finalize()
        return [manager]


def compiled(function: Callable[..., Any], apart: bool = False) -> Any:
    """A function for Numba, under the options that all native code shares.

    ``apart``: it stays a function of its own. Otherwise whatever an operator calls becomes part of
    it wherever it is called, which of much code takes long to compile.
    """
    options = {"forceinline": False} if apart else {}
    return numba.njit(pipeline_class=OperatorCompiler, **COMPILE_OPTIONS, **options)(function)

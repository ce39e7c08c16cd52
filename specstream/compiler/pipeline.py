"""Numba's pipeline as operators go through it: its options, our check of types, our lowering."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numba
from numba.core import ir as numba_ir
from numba.core import types
from numba.core.compiler import CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import AnalysisPass, register_pass
from numba.core.typed_passes import NativeLowering, NopythonTypeInference
from numba.core.untyped_passes import LiteralUnroll, TranslateByteCode

from specstream.compiler.bytecode import Bytecode
from specstream.compiler.kinds import scalar_kind
from specstream.compiler.sites import OperatorLowering
from specstream.compiler.try_regions import TryRegions

__all__ = ["COMPILE_OPTIONS", "OperatorCompiler", "compiled"]

COMPILE_OPTIONS = {
    "nogil": True,
    "error_model": "python",
    "no_cpython_wrapper": True,
    "no_cfunc_wrapper": True,
    # Operators may not allocate, so a frame owns nothing and may be left at any point.
    "_nrt": False,
}


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
                    for source in _sources(statement.value):
                        self.compare(target, state.typemap[source.name], statement, source.loc)
                elif isinstance(statement, numba_ir.Return):
                    given = state.typemap[statement.value.name]
                    self.compare(state.return_type, given, statement, statement.loc)
        return False

    @staticmethod
    def compare(target: types.Type, source: types.Type, statement: Any, loc: Any) -> None:
        if isinstance(target, types.Optional) and _is_chosen(statement):
            # An emitted `x if known else None`, the only place where a value may be none.
            if source == types.none:
                return
            target = target.type
            source = source.type if isinstance(source, types.Optional) else source
        target, source = types.unliteral(target), types.unliteral(source)
        if target == source:
            return
        scalars = scalar_kind(target), scalar_kind(source)
        name = getattr(getattr(statement, "target", None), "unversioned_name", "a returned value")
        if name == "__ss_total" and scalars == ("float64", "int64"):
            return  # the literal that a sum of floats begins with
        if None in scalars and not isinstance(target, types.Optional | types.BaseTuple):
            return
        what = "a value" if name.startswith(("$", "__ss_")) else name
        found = f"{scalars[1] or source} here and {scalars[0] or target} elsewhere"
        raise numba.core.errors.TypingError(
            f"specstream: {what} is {found}: make it one type on every path, with int(x) or "
            f"float(x)\n at {loc.filename} ({loc.line})"
        )


def _is_chosen(statement: Any) -> bool:
    """Whether a value goes into a condition's, which no name of the user's stands for."""
    is_assigned = isinstance(statement, numba_ir.Assign) and statement.target.name.startswith("$")
    cast = isinstance(getattr(statement, "value", None), numba_ir.Expr)
    return is_assigned and not (cast and statement.value.op == "cast")


def _sources(value: Any) -> list[Any]:
    """The variables whose value an assignment may take over as it is."""
    if isinstance(value, numba_ir.Var):
        return [value]
    if isinstance(value, numba_ir.Expr) and value.op == "cast":
        return [value.value]
    if isinstance(value, numba_ir.Expr) and value.op == "phi":
        return [v for v in value.incoming_values if v is not numba_ir.UNDEFINED]
    return []


class OperatorCompiler(CompilerBase):
    """Numba's nopython pipeline with our check of types and our lowering."""

    def define_pipelines(self) -> list[Any]:
        manager = DefaultPassBuilder.define_nopython_pipeline(self.state)
        manager.add_pass_after(_OneTypePerName, NopythonTypeInference)
        manager.add_pass_after(TryRegions, LiteralUnroll)
        ours = {TranslateByteCode: Bytecode, NativeLowering: OperatorLowering}
        manager.passes = [(ours.get(one, one), what) for one, what in manager.passes]
        manager.finalize()
        return [manager]


def compiled(function: Callable[..., Any]) -> Any:
    """A function for Numba, under the options that all native code shares."""
    return numba.njit(pipeline_class=OperatorCompiler, **COMPILE_OPTIONS)(function)

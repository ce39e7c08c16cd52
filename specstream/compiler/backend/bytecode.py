"""From bytecode to Numba's own form, where an assignment stands inside an expression.

Numba merges ``$1 = f(); a = $1`` into ``a = f()``, and takes for granted that nothing else reads
``$1``. With ``g(a := f())`` the call does.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls, disallow-subclassing-any=False

from __future__ import annotations

from collections import Counter
from typing import Any

from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass
from numba.core.interpreter import Interpreter

__all__ = ["Bytecode"]


class _Interpreter(Interpreter):
    def _remove_unused_temporaries(self) -> None:
        """Keeps apart what may not be merged: Numba only merges neighbours."""
        block = self.current_block
        met = Counter(var.name for one in block.body for var in one.list_vars())
        met.update(self.dfainfo.outgoing_phis.values())
        body: list[Any] = []
        for instruction in block.body:
            value = getattr(instruction, "value", None)
            # Once where it is defined, and once here.
            if isinstance(value, ir.Var) and value.is_temp and met[value.name] > 2:
                nothing = ir.Const(None, instruction.loc)
                apart = self.current_scope.redefine("$apart", loc=instruction.loc)
                self.definitions[apart.name].append(nothing)
                body.append(ir.Assign(nothing, apart, instruction.loc))
            body.append(instruction)
        block.body = body
        super()._remove_unused_temporaries()


@register_pass(mutates_CFG=True, analysis_only=False)
class Bytecode(FunctionPass):
    """Numba's first pass, with the class above."""

    _name = "specstream_bytecode"

    def __init__(self) -> None:
        FunctionPass.__init__(self)

    def run_pass(self, state: Any) -> bool:
        state["func_ir"] = _Interpreter(state["func_id"]).interpret(state["bc"])
        return True

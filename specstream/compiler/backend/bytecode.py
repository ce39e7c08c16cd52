"""From bytecode to Numba's own form, without two of Numba's errors.

*An assignment inside of an expression.* Numba merges ``$1 = f(); a = $1`` into ``a = f()``, and
takes for granted that nothing else reads ``$1``. With ``g(a := f())`` the call does.

*An assignment before the only break of an endless loop.* Where every run passes through a block
that is in no loop (the *backbone*), Numba gives each assignment a new name, and the code that is
written below reads that name. The branch ``d += 5; break`` of ``while True`` is such a block, but
what is written below it runs before it as well: it would read a value that is not there yet
(numba/numba#5273).
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
    @property
    def cfa(self) -> Any:
        return self._cfa

    @cfa.setter
    def cfa(self, found: Any) -> None:
        """The analysis of control flow; blocks leave the backbone that later ones do not need."""
        dominators = found.graph.dominators()
        found._backbone = {
            one
            for one in found.backbone
            if all(one in above for block, above in dominators.items() if block > one)
        }
        self._cfa = found

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

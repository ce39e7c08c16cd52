"""Where in the operator an access stands: what a profiling variant logs with it.

Every line of every function of an operator has a number, its *site*. A profiling variant keeps the
site of the line that runs in ``run->site``, and the logs take it from there. It is written where
the code of a line is generated, once for each expression, so that it is right again after a helper
has returned; code of ours that an operator calls (a sum over a row, say) belongs to the caller's
line.
The other variants know nothing of sites and pay nothing for them.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import ir as numba_ir
from numba.core import lowering
from numba.core.compiler_machinery import register_pass
from numba.core.typed_passes import BaseNativeLowering

from specstream.compiler.backend.exception_status import (
    TELLS,
    Landing,
    OperatorContext,
    end_landing,
)
from specstream.compiler.backend.linking import LinkedCode, callable_result
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import PROFILED, RunType
from specstream.compiler.backend.try_regions import guarded_statement, is_landing

__all__ = ["MOST_SITES", "OperatorLowering", "mark"]

# A site has 16 bits in the logs; lines beyond have none.
MOST_SITES = 2**16 - 1
_FIRST_SITE = "__ss_first_site__"


def mark(native: Any, first_site: int, first_line: int) -> None:
    """Leaves the numbers of a function's lines on its native form, for the lowering to find."""
    setattr(native, _FIRST_SITE, (first_site, first_line))


class _Lower(lowering.Lower):
    """Numba's lowering; keeps ``run->site`` where the variant is a profiling one, and makes the
    landings of statements inside of a ``try``."""

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.context.__class__ = OperatorContext  # a copy, made for this function
        self.context.tells_texts = TELLS in self.func_ir.func_id.func.__globals__

    def pre_block(self, block: Any) -> None:
        super().pre_block(block)
        self.guarded = guarded_statement(block)

    def lower_inst(self, instruction: Any) -> None:
        if is_landing(instruction):
            end_landing(self.builder)
        elif instruction is self.guarded:
            Landing(self.builder)
        marked = getattr(self.func_ir.func_id.func, _FIRST_SITE, None)
        run = self.fndesc.argtypes[0] if self.fndesc.argtypes else None
        if (
            marked is not None
            and isinstance(run, RunType)
            and run.variant in PROFILED.values()
            and isinstance(instruction, numba_ir.Assign)
            and isinstance(instruction.value, numba_ir.Expr)
        ):
            first_site, first_line = marked
            site = first_site + instruction.loc.line - first_line
            current = Run(self.context, self.builder, self.fnargs[0])
            current.store_member("site", ir.IntType(16)(site if site <= MOST_SITES else 0))
        super().lower_inst(instruction)


@register_pass(mutates_CFG=True, analysis_only=False)
class OperatorLowering(BaseNativeLowering):
    """Numba's lowering pass, with the class above, and machine code for entries only."""

    _name = "specstream_lowering"

    def run_pass(self, state: Any) -> bool:
        code = LinkedCode(state.targetctx.codegen(), state.func_id.func_qualname)
        code.enable_object_caching()
        state.library = code
        state.flags.no_compile = True
        super().run_pass(state)
        state.reload_init.extend(code._reload_init)
        state["cr"] = callable_result(state["cr"], code, state.targetctx)
        return True

    @property
    def lowering_class(self) -> Any:
        return _Lower

"""What an entry calls is linked into it as LLVM code; only the entry is optimised and compiled.

Numba optimises every function that it compiles and makes machine code of it, as Python may call
each of them. Nobody calls those of an operator: their code is in the entry, inlined or copied, and
is optimised there once more. Doing both for the entry only takes a fifth off the time to compile
(a tenth without optimisation), and leaves no machine code behind that nobody runs.
"""

from __future__ import annotations

from typing import Any

from numba import _dynfunc
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import _LowerResult
from numba.core.compiler_lock import global_compiler_lock

__all__ = ["LinkedCode", "callable_result"]


class LinkedCode(JITCodeLibrary):
    """The code of a function and of all that it calls; not executable before :meth:`address`."""

    def _optimize_final_module(self) -> None:
        """Not when the code is linked into another's."""

    def _finalize_final_module(self) -> None:
        self._finalized = True  # Numba would also make machine code

    @global_compiler_lock
    def address(self, symbol: str) -> int:
        """Where the machine code of a function begins; it is made for this, once."""
        self._ensure_finalized()
        super()._optimize_final_module()
        super()._finalize_final_module()
        address: int = self.get_pointer_to_function(symbol)
        return address


def callable_result(lowered: Any, library: LinkedCode, context: Any) -> Any:
    """The result of a lowering that other functions can call: by a key, which Python cannot call
    either. Numba keeps it where it would have the machine code."""
    described = lowered.fndesc
    key = _dynfunc.make_function(
        described.lookup_module(), described.qualname, "", 0, lowered.env, (library,)
    )
    context.insert_user_function(key, described, [library])
    return _LowerResult(described, lowered.call_helper, cfunc=key, env=lowered.env)

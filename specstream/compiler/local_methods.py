"""Methods by their names: what ``x.pop(i)`` means is told by what ``x`` is.

A method is one core function, to which each type that has one of that name adds a rule.
"""

from __future__ import annotations

from typing import Any

from numba.core import types

from specstream.compiler.core_function import Core
from specstream.compiler.refusals import no_method, refuse

__all__ = ["METHODS", "method", "unknown_method"]

METHODS: dict[str, Core] = {}

unknown_method = Core("unknown_method", "write a plain function")
"""A method that nothing has, by its name: refused when it is known what it was asked of."""


@unknown_method.rule
def _unknown(context: Any, args: Any) -> Any:
    of, name = args
    if not isinstance(name, types.StringLiteral):
        return None  # Numba's second try, without literals
    raise refuse("; ".join(no_method(of, name.literal_value)))


def method(name: str) -> Core:
    """The core function of all methods of a name; its first argument is what the method is of."""
    if name not in METHODS:
        METHODS[name] = Core(
            f"method_{name}", f"{name} is a method of other types, or takes others"
        )
    return METHODS[name]

"""Methods by their names: what ``x.pop(i)`` means is told by what ``x`` is.

A method is one core function, to which each type that has one of that name adds a rule.
"""

from __future__ import annotations

from specstream.compiler.core_function import Core

__all__ = ["METHODS", "method"]

METHODS: dict[str, Core] = {}


def method(name: str) -> Core:
    """The core function of all methods of a name; its first argument is what the method is of."""
    if name not in METHODS:
        METHODS[name] = Core(
            f"method_{name}", f"{name} is a method of other types, or takes others"
        )
    return METHODS[name]

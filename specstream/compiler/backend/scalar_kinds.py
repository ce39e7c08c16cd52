"""Kinds of scalars: what an operator computes with, and what a declaration takes of it.

In compiled code there are int64, uint64, float64, bool and strings. A field, a column and an
argument are declared as a kind; what would lose something when stored there is refused.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import Value
from specstream.compiler.language.text import TEXT, TextType
from specstream.compiler.language.typing_refusals import refuse
from specstream.declarations.element_types import Number
from specstream.declarations.schema import Kind

__all__ = [
    "NUMBA_KINDS",
    "SCALARS",
    "SCALAR_KINDS",
    "check_kind",
    "convert",
    "integer_kind",
    "scalar_kind",
]

SCALARS: dict[str, types.Type] = {
    "int64": types.int64,
    "uint64": types.uint64,
    "float64": types.float64,
    "bool": types.boolean,
}
SCALAR_KINDS = {numba_type: kind for kind, numba_type in SCALARS.items()}

NUMBA_KINDS: dict[str, types.Type] = {
    "int": types.int64,
    "uint": types.uint64,
    "float": types.float64,
    "bool": types.boolean,
    "str": TEXT,
}
"""By the kind that is declared."""


def scalar_kind(numba_type: types.Type) -> str | None:
    """ "int64", "uint64", "float64" or "bool" for a scalar or its literal, else None."""
    return SCALAR_KINDS.get(types.unliteral(numba_type))


def integer_kind(what: str, args: Sequence[types.Type]) -> str:
    """The kind of scalar in which integers and bools meet; refuses int64 with uint64."""
    kinds = [scalar_kind(arg) for arg in args]
    if "uint64" not in kinds:
        return "int64"
    for arg, kind in zip(args, kinds, strict=True):
        if kind != "int64":
            continue
        if not isinstance(arg, types.IntegerLiteral):
            raise refuse(
                f"{what} mixes uint64 and int64, which have no common type; "
                "write np.uint64(x) or np.int64(x) for one of them"
            )
        if arg.literal_value < 0:
            raise refuse(
                f"{what} mixes uint64 and the negative number {arg.literal_value}; "
                f"write np.uint64({arg.literal_value}) or np.int64(x)"
            )
    return "uint64"


_ACCEPTED: dict[Kind | Number, tuple[str, ...]] = {
    "int": ("int64", "bool"),
    "uint": ("uint64",),
    "float": ("float64", "int64", "bool"),
    "bool": ("bool",),
    "str": ("string", "int64"),
}
_HINTS = {
    ("float64", "int"): "write int(x), or declare it float",
    ("uint64", "int"): "write np.int64(x)",
    ("uint64", "str"): "write str(x)",
    ("float64", "str"): "write str(x)",
    ("bool", "str"): "write str(x)",
    ("uint64", "float"): "write float(x)",
    ("int64", "uint"): "write np.uint64(x)",
    ("bool", "uint"): "write np.uint64(x)",
    ("float64", "uint"): "write np.uint64(x)",
    ("int64", "bool"): "write x != 0",
    ("float64", "bool"): "write x != 0.0",
}


def check_kind(
    value: types.Type,
    kind: Kind | Number,
    what: str,
    declared: str | None = None,
    keeps_strings: bool = False,
) -> None:
    """Refuses a value of a kind of scalar that a declaration as ``kind`` does not take.

    It would lose something when it is stored there.

    Whether a number is within the range of a narrower type is seen when it is stored. With
    ``keeps_strings``, what is declared int also takes a string, as its code; but what is declared
    str does not take a code, as of those nobody knows whether they are of any string.
    """
    is_text = isinstance(value, TextType)
    found = "string" if is_text else scalar_kind(value)
    if is_text and keeps_strings and (declared or kind) == "int":
        return
    if kind == "str" and keeps_strings and not is_text:
        hint = "keep it in a field of numbers, or write str(x), of the event alone"
        if value == types.none:
            hint = 'write "" for no string'
        raise refuse(f"{what} is declared str and gets {found or value}; {hint}")
    if found not in _ACCEPTED[kind]:
        hint = _HINTS.get((found or "", kind), "store one number at a time")
        if is_text:
            hint = "keep it in a field, or emit it into a column that is declared str"
        if isinstance(value, types.NoneType):
            found = "None"
            hint = "give it a number; a function without return gives None, like emit"
        elif str(value).startswith(("specstream.list(", "specstream.dict(", "specstream.set(")):
            hint = "store one element at a time, like for i in range(len(x)): y[i] = x[i]"
        elif str(value).startswith("specstream.record("):
            found, hint = "a record", "take one of its fields, like x.price"
        elif str(value).startswith("specstream.state_"):
            hint = "take one element of it, or make a list of it, list(x)"
        raise refuse(f"{what} is declared {declared or kind} and gets {found or value}; {hint}")


def convert(
    context: Any, builder: Any, value: Value, given: types.Type, kind: Kind | Number
) -> Value:
    """A scalar as the kind that it is stored as; exact but for int to float, as in Python."""
    return context.cast(builder, value, given, NUMBA_KINDS[kind])

"""The operators: one record for each, of those that compiled code has and those it has not.

What each means is beside its instructions (``library/arithmetic.py`` for numbers; lists, dicts,
sets and tuples add a rule each) and in the oracle. Which there are is said here: an operator that
has no record is refused, whatever means something under its name.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

__all__ = [
    "OPERATIONS",
    "RECORDS",
    "REFUSED",
    "Operation",
    "is_singleton_test",
    "refusal",
    "signs_of",
]

Group = Literal["arithmetic", "bits", "order", "equality", "membership", "logic", "identity"]


@dataclass(frozen=True)
class Operation:
    """An operator.

    Attributes:
        node: what Python's syntax tree has for it.
        sign: as it is written.
        name: of the function of `operator` that does it; "": none.
        group: what it has in common with others.
        takes: what it is about, in the words of the reference.
        returns: what it gives.
        raises: classes of exceptions, and when.
        is_unary: it has one operand.
        problem: of one that is refused, what it is.
        hint: of one that is refused, what to write instead.
    """

    node: type[Any]
    sign: str
    name: str
    group: Group
    takes: str = ""
    returns: str = ""
    raises: tuple[tuple[str, str], ...] = ()
    is_unary: bool = False
    problem: str = ""
    hint: str = ""

    @property
    def form(self) -> str:
        """How it is written."""
        if self.is_unary:
            return f"{self.sign}{' ' * self.sign.isalpha()}x"
        return f"x {self.sign} y"

    @property
    def function(self) -> Callable[..., Any]:
        """The function of `operator` that does the same."""
        found: Callable[..., Any] = getattr(operator, self.name)
        return found

    @property
    def methods(self) -> tuple[str, ...]:
        """Python's methods for it."""
        name = self.name.rstrip("_")
        is_reflected = self.group in ("arithmetic", "bits") and not self.is_unary
        return (f"__{name}__", *[f"__r{name}__"] * is_reflected)


_BY_ZERO = (("ZeroDivisionError", "`y` is 0"),)
_POWER = (
    ("ValueError", "of ints `y` is negative"),
    ("ZeroDivisionError", "0.0 to a negative power"),
    ("OverflowError", "of floats, it is too large"),
)
_SHIFTS = (("ValueError", "`y` is negative, or above 63"),)
_UNFIT = (("ValueError", "shapes of arrays do not fit"),)
_IN_ORDER = "numbers; lists, tuples and sets of them; arrays"
RECORDS = (
    Operation(
        *(ast.Add, "+", "add", "arithmetic", "numbers, arrays; lists; tuples"),
        *("the same", _UNFIT),
    ),
    Operation(
        *(ast.Sub, "-", "sub", "arithmetic", "numbers, arrays; sets", "the same", _UNFIT),
    ),
    Operation(
        *(ast.Mult, "*", "mul", "arithmetic", "numbers, arrays; a list or tuple and an int"),
        *("the same", _UNFIT),
    ),
    Operation(ast.Div, "/", "truediv", "arithmetic", "numbers, arrays", "float", _BY_ZERO),
    Operation(
        *(ast.FloorDiv, "//", "floordiv", "arithmetic", "numbers, arrays", "the same", _BY_ZERO),
    ),
    Operation(ast.Mod, "%", "mod", "arithmetic", "numbers, arrays", "the same", _BY_ZERO),
    Operation(
        *(ast.Pow, "**", "pow", "arithmetic", "numbers, arrays", "the same", _POWER),
    ),
    Operation(ast.LShift, "<<", "lshift", "bits", "ints", "int", _SHIFTS),
    Operation(ast.RShift, ">>", "rshift", "bits", "ints", "int", _SHIFTS),
    Operation(ast.BitAnd, "&", "and_", "bits", "ints; bools; sets", "the same"),
    Operation(ast.BitOr, "|", "or_", "bits", "ints; bools; sets; dicts", "the same"),
    Operation(ast.BitXor, "^", "xor", "bits", "ints; bools; sets", "the same"),
    Operation(ast.Eq, "==", "eq", "equality", "values of one type", "bool"),
    Operation(ast.NotEq, "!=", "ne", "equality", "values of one type", "bool"),
    Operation(ast.Lt, "<", "lt", "order", _IN_ORDER, "bool"),
    Operation(ast.LtE, "<=", "le", "order", _IN_ORDER, "bool"),
    Operation(ast.Gt, ">", "gt", "order", _IN_ORDER, "bool"),
    Operation(ast.GtE, ">=", "ge", "order", _IN_ORDER, "bool"),
    Operation(ast.In, "in", "", "membership", "a value and what holds such", "bool"),
    Operation(ast.NotIn, "not in", "", "membership", "a value and what holds such", "bool"),
    Operation(ast.And, "and", "", "logic", "any values", "one of them"),
    Operation(ast.Or, "or", "", "logic", "any values", "one of them"),
    Operation(ast.USub, "-", "neg", "arithmetic", "a number, an array", "the same", is_unary=True),
    Operation(ast.UAdd, "+", "pos", "arithmetic", "a number, an array", "the same", is_unary=True),
    Operation(ast.Invert, "~", "invert", "arithmetic", "an int", "int", is_unary=True),
    Operation(ast.Not, "not", "not_", "logic", "any value", "bool", is_unary=True),
)

OPERATIONS = {one.node: one for one in RECORDS}
"""Those that operators have."""
REFUSED = {
    one.node: one
    for one in (
        Operation(
            *(ast.MatMult, "@", "matmul", "arithmetic"),
            problem="the @ operator",
            hint="write the loops out",
        ),
        Operation(
            *(ast.Is, "is", "is_", "identity"),
            problem="`is` of anything but None, True and False",
            hint="compare with ==",
        ),
        Operation(
            *(ast.IsNot, "is not", "is_not", "identity"),
            problem="`is not` of anything but None, True and False",
            hint="compare with !=",
        ),
    )
}
"""Those that are refused."""


def refusal(node: type[ast.AST]) -> tuple[str, str] | None:
    """Which operator, such as ``@``, is refused, and what to write instead.

    None: compiled code has it, or it is no operator."""
    is_one = issubclass(node, ast.operator | ast.unaryop | ast.cmpop | ast.boolop)
    if not is_one or node in OPERATIONS:
        return None
    found = REFUSED.get(node)
    if found is None:
        return f"the operator {node.__name__}", "write it out with others"
    return found.problem, found.hint


def signs_of(group: Group) -> tuple[str, ...]:
    """The signs of a group, each once."""
    return tuple(dict.fromkeys(one.sign for one in OPERATIONS.values() if one.group == group))


def is_singleton_test(node: ast.AST) -> bool:
    """Whether an operator is an ``is`` that compiled code has: ``x is None``, ``x is True``."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return False
    right = node.comparators[0]
    is_singleton = isinstance(right, ast.Constant) and (
        right.value is None or isinstance(right.value, bool)
    )
    return is_singleton and isinstance(node.ops[0], ast.Is | ast.IsNot)

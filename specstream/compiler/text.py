"""Strings inside operators: equal or not, kept, emitted, hashed, and nothing else.

What an operator has of a string is a code of its content (:mod:`specstream.columns.strings`). A
code tells which string it is; of its order, its truth and its letters it tells nothing. So strings
have a type of their own, for Numba and in the oracle, on which everything is refused that Python
does to a text and that a code cannot do. Python's strings have no bit operations: those take the
code, for hashes."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from llvmlite import ir
from numba.core import types
from numba.core.errors import TypingError
from numba.core.imputils import lower_constant
from numba.extending import (
    intrinsic,
    lower_cast,
    models,
    overload,
    register_model,
    typeof_impl,
)

from specstream.compiler.numbers import Int64
from specstream.compiler.own_code import is_own
from specstream.errors import CompileError

__all__ = ["TEXT", "Text", "TextType", "refusal", "refuse", "text_of"]

_OF = "an operator has a code of its content"
_REFUSED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "order": (
        ("<", "<=", ">", ">=", "min", "max", "minimum", "maximum"),
        f"strings have no order here ({_OF})",
        "compare them before, in a column of the table that is declared bool or int",
    ),
    "truth": (
        ("truth", "not", "bool", "np.bool_"),
        f"a string has no truth here ({_OF})",
        'write x != ""',
    ),
    "arithmetic": (
        ("+", "-", "*", "/", "//", "%", "**", "~"),
        f"strings have no arithmetic here ({_OF})",
        "make another text of it before, in a column of the table, or hash its bits: "
        "(x & 65535) % n; the operators &, |, ^, << and >> take the code",
    ),
    "conversion": (
        (),
        f"a string is no number here ({_OF})",
        "convert it before, in a column of the table that is declared int or float",
    ),
    "letters": (
        ("len", "[]", "for", "in"),
        f"a string has no letters here ({_OF})",
        "take what is needed of them before, in a column of the table",
    ),
}


def refusal(what: str) -> tuple[str, str]:
    """Why strings do not have an operator or builtin, and what to write instead."""
    found = next((one for one in _REFUSED.values() if what in one[0]), _REFUSED["conversion"])
    return f"{what} of a string: {found[1]}", found[2]


class Text:
    """A string in the oracle, and in a constant tuple on its way to Numba.

    >>> from specstream.columns.strings import string_code
    >>> Text(string_code("a")) == Text(string_code("a"))
    True
    """

    __slots__ = ("code",)

    def __init__(self, code: int) -> None:
        self.code = Int64(code)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Text):
            return self.code == other.code
        if other is None:
            return False
        if not isinstance(other, int) or isinstance(other, bool):
            refuse(*refusal("== with a number"))
        return self.code == other  # a string that was kept in an int field

    def __hash__(self) -> int:
        return hash(self.code)

    def __repr__(self) -> str:
        return f"Text({int(self.code)})"


def refuse(problem: str, way_out: str) -> NoReturn:
    """Refuses while the oracle runs what compiling would have refused."""
    frame = sys._getframe(1)
    while is_own(frame.f_code.co_filename):
        assert frame.f_back is not None
        frame = frame.f_back
    code = frame.f_code
    raise CompileError(code.co_name, code.co_filename, frame.f_lineno, problem, way_out)


def _refusing(what: str) -> Callable[..., Any]:
    def method(self: Text, *others: object) -> Any:
        refuse(*refusal(what))

    return method


def _bits(name: str) -> Callable[[Text, Any], Any]:
    def method(self: Text, other: Any) -> Any:
        operand = other.code if isinstance(other, Text) else other
        return getattr(self.code, name)(operand)

    return method


_METHODS: dict[str, tuple[str, ...]] = {
    "<": ("lt",),
    "<=": ("le",),
    ">": ("gt",),
    ">=": ("ge",),
    "truth": ("bool",),
    "+": ("add", "radd", "pos"),
    "-": ("sub", "rsub", "neg"),
    "*": ("mul", "rmul"),
    "/": ("truediv", "rtruediv"),
    "//": ("floordiv", "rfloordiv"),
    "%": ("mod", "rmod"),
    "**": ("pow", "rpow"),
    "~": ("invert",),
    "int": ("int", "index"),
    "float": ("float",),
    "abs": ("abs",),
    "round": ("round", "floor", "ceil", "trunc"),
    "len": ("len",),
    "[]": ("getitem",),
    "for": ("iter",),
    "in": ("contains",),
}
for _what, _names in _METHODS.items():
    for _name in _names:
        setattr(Text, f"__{_name}__", _refusing(_what))
for _name in ("and", "or", "xor", "lshift", "rshift"):
    setattr(Text, f"__{_name}__", _bits(f"__{_name}__"))
    setattr(Text, f"__r{_name}__", _bits(f"__r{_name}__"))


class TextType(types.Type):
    """A string in compiled code: its code."""

    def __init__(self) -> None:
        super().__init__("string")


TEXT = TextType()


@register_model(TextType)
class _TextModel(models.PrimitiveModel):
    def __init__(self, manager: object, of: TextType) -> None:
        super().__init__(manager, of, ir.IntType(64))


@typeof_impl.register(Text)
def _typeof(text: Text, context: object) -> TextType:
    return TEXT


@lower_constant(TextType)
def _constant(context: Any, builder: Any, of: TextType, text: Text) -> Any:
    return ir.IntType(64)(int(text.code))


@lower_cast(TextType, types.Integer)
@lower_cast(types.Integer, TextType)
def _cast(context: Any, builder: Any, given: types.Type, wanted: types.Type, value: Any) -> Any:
    """A code is kept in int fields, and comes back from them into a column of strings."""
    return value


@intrinsic
def text_of(typing_context: Any, code: Any) -> Any:
    """A literal. Not a constant for Numba, which would ask it for its truth to drop a branch."""
    return TEXT(types.int64), lambda context, builder, sig, args: args[0]


def _is_refused(function: Any, what: str) -> None:
    @overload(function)
    def refusing(text: Any) -> Any:
        if isinstance(text, TextType):
            problem, way_out = refusal(what)
            raise TypingError(f"specstream: {problem}; {way_out}")


_is_refused(bool, "truth")
_is_refused(len, "len")

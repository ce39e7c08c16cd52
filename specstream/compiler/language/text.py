"""Strings inside operators: compared, measured, kept, emitted, hashed, and nothing else.

What an operator has of a string is a code of its content (:mod:`specstream.columns.strings`). A
code tells which string it is. Of its order and its length the engine's table tells, which has the
texts (``core/texts.c``). So strings have a type of their own, for Numba and in the oracle, on which
everything is refused that makes new texts. What depends on the event alone never gets here: Python
computes it before (:mod:`specstream.compiler.staging.staging`). Python's strings have no bit
operations: those take the code, for hashes."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_builtin, lower_constant
from numba.core.typing.templates import infer_global, signature
from numba.extending import (
    intrinsic,
    lower_cast,
    models,
    register_model,
    typeof_impl,
)

from specstream.columns.strings import StringTable, string_code
from specstream.compiler.language.exact_template import ExactTemplate
from specstream.compiler.language.numbers import Int64, shown_as
from specstream.compiler.language.operations import OPERATIONS, signs_of
from specstream.compiler.language.user_code import is_own
from specstream.errors import CompileError

__all__ = [
    "TEXT",
    "Text",
    "TextType",
    "python_string",
    "refusal",
    "refuse",
    "tell_texts",
    "text_of",
    "write_truth",
]

_OF = "an operator has a code of its content"
_ALONE = "compute what you need from the event alone"
# What no string is, and the string that is false.
_FALSE = (0, string_code(""))
_REFUSED: dict[str, tuple[tuple[str, ...], str, str]] = {
    "order": (
        ("minimum", "maximum", "argmin", "argmax"),
        "this one does not depend on the event alone, and arrays of strings have no least one here",
        "write min(xs), max(xs) or sorted(xs) of a list",
    ),
    "arithmetic": (
        (*signs_of("arithmetic"), "sum", "mean"),
        "this one does not depend on the event alone, and strings of the state have no arithmetic "
        f"here ({_OF})",
        f"{_ALONE}, or hash its bits: (x & 65535) % n; the operators &, |, ^, << and >> take the "
        "code",
    ),
    "conversion": (
        (),
        f"a string that does not depend on the event alone is not a number here ({_OF})",
        f"{_ALONE}, like int(event.x); keep in the state what a timer needs of it, when you set "
        "the timer",
    ),
    "letters": (
        ("[]", "for"),
        "this one does not depend on the event alone, and strings of the state have no letters "
        f"here ({_OF})",
        f"{_ALONE}, like event.x[0]",
    ),
}


def refusal(what: str) -> tuple[str, str]:
    """Why strings do not have an operator or builtin, and what to write instead."""
    kind = "letters" if hasattr(str, what) else "conversion"
    found = next((one for one in _REFUSED.values() if what in one[0]), _REFUSED[kind])
    return f"{what} of a string: {found[1]}", found[2]


@shown_as("str")
class Text:
    """A string in the oracle, and in a constant tuple on its way to Numba.

    >>> from specstream.columns.strings import StringTable, string_code
    >>> Text(string_code("a")) == Text(string_code("a"))
    True
    """

    __slots__ = ("_texts", "code")

    def __init__(self, code: int, texts: StringTable | str | None = None) -> None:
        self.code = Int64(code)
        self._texts = texts

    def __str__(self) -> str:
        """The string itself, for the texts of exceptions."""
        if isinstance(self._texts, str):
            return self._texts
        found = None if self._texts is None else self._texts.text(int(self.code))
        return "" if found is None else found

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Text):
            return self.code == other.code
        if other is None:
            return False
        if getattr(other, "is_unknown", False):  # over another library
            return NotImplemented
        if not isinstance(other, int) or isinstance(other, bool):
            refuse(*refusal("== with a number"))
        return self.code == other  # a string that was kept in an int field

    def __hash__(self) -> int:
        return hash(self.code)

    def __len__(self) -> int:
        return len(str(self))

    def __contains__(self, part: object) -> bool:
        return self._other("in", part) in str(self)

    def startswith(self, prefix: object) -> bool:
        """Whether it begins with another one."""
        return str(self).startswith(self._other("startswith", prefix))

    def endswith(self, suffix: object) -> bool:
        """Whether it ends with another one."""
        return str(self).endswith(self._other("endswith", suffix))

    @staticmethod
    def _other(what: str, other: object) -> str:
        """Another string, of which something is asked."""
        if not isinstance(other, Text):
            refuse(
                f"{what} between a string and what is none, which Python does not have",
                "write it with two strings",
            )
        return str(other)

    def __bool__(self) -> bool:
        return int(self.code) not in _FALSE

    def __repr__(self) -> str:
        return f"Text({int(self.code)})" if self._texts is None else repr(str(self))


def python_string(value: Any) -> Any:
    """A text as a string of Python's, and anything else as it is."""
    return str(value) if isinstance(value, Text) else value


def tell_texts(error: BaseException) -> None:
    """Makes of the texts that an exception was made of Python's strings: whoever gets it looks at
    them when the table may have forgotten them, as a batch that fails is undone.

    >>> error = KeyError(Text(string_code("a"), "a"), 1)
    >>> tell_texts(error)
    >>> error.args
    ('a', 1)
    """
    if any(isinstance(one, Text) for one in error.args):
        error.args = tuple(map(python_string, error.args))


def refuse(problem: str, hint: str) -> NoReturn:
    """Refuses in the oracle what cannot be done with a string, or with another value.

    It would have been refused when the operator was compiled."""
    frame = sys._getframe(1)
    while is_own(frame.f_code.co_filename):
        assert frame.f_back is not None
        frame = frame.f_back
    code = frame.f_code
    raise CompileError(code.co_name, code.co_filename, frame.f_lineno, problem, hint)


def _refusing(what: str) -> Callable[..., Any]:
    def method(self: Text, *others: object) -> Any:
        refuse(*refusal(what))

    return method


def _bits(name: str) -> Callable[[Text, Any], Any]:
    def method(self: Text, other: Any) -> Any:
        operand = other.code if isinstance(other, Text) else other
        return getattr(self.code, name)(operand)

    return method


def _ordering(sign: str, name: str) -> Callable[[Text, Any], Any]:
    def method(self: Text, other: object) -> Any:
        return getattr(str(self), name)(self._other(sign, other))

    return method


for _operation in OPERATIONS.values():
    for _name in _operation.methods:
        if _operation.group == "order":
            setattr(Text, _name, _ordering(_operation.sign, _name))
        elif _operation.group == "arithmetic":
            setattr(Text, _name, _refusing(_operation.sign))
        elif _operation.group == "bits":
            setattr(Text, _name, _bits(_name))
_METHODS: dict[str, tuple[str, ...]] = {
    "int": ("int", "index"),
    "float": ("float",),
    "abs": ("abs",),
    "round": ("round", "floor", "ceil", "trunc"),
    "[]": ("getitem",),
    "for": ("iter",),
}
for _what, _names in _METHODS.items():
    for _name in _names:
        setattr(Text, f"__{_name}__", _refusing(_what))


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


def write_truth(builder: Any, code: Any) -> Any:
    """The truth of a string inside an operator, told from its code, in LLVM instructions.

    It is neither empty nor what is read of a null."""
    ones = [builder.icmp_unsigned("!=", code, ir.IntType(64)(one)) for one in _FALSE]
    return builder.and_(*ones)


@infer_global(bool)
class _Truth(ExactTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        is_text = len(args) == 1 and isinstance(args[0], TextType)
        return signature(types.boolean, args[0]) if is_text else None


@lower_builtin(bool, TextType)
def _bool_of_text(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return write_truth(builder, args[0])


@infer_global(len)
class _Length(ExactTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        is_text = len(args) == 1 and isinstance(args[0], TextType)
        return signature(types.int64, args[0]) if is_text else None


@lower_builtin(len, TextType)
def _length_of_text(context: Any, builder: Any, sig: Any, args: Any) -> Any:
    return call_runtime(builder, "ss_text_length", args[0])


def call_runtime(builder: Any, name: str, *codes: Any) -> Any:
    """A call of a function of the runtime from codes to a number."""
    word = ir.IntType(64)
    of = ir.FunctionType(word, [word] * len(codes))
    return builder.call(cgutils.get_or_insert_function(builder.module, of, name), codes)

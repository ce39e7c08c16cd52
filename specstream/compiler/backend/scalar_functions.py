"""Functions of scalars in compiled operators: a typing rule, and a writer of LLVM instructions.

Each is typed over exactly four scalars and writes its instructions in place, which compiles many
times faster than an ``@overload`` and leaves nothing to Numba's rules. A function of several
arguments names the kinds that they are cast to first.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types
from numba.core.errors import TypingError
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, builtin_registry, signature

from specstream.compiler.backend.instructions import Instructions, Value
from specstream.compiler.backend.local_types import refuse_frozen
from specstream.compiler.backend.none_types import all_present, may_be_none, unwrapped
from specstream.compiler.backend.overloads import Rules, lower_by_rules, meaning_of
from specstream.compiler.backend.scalar_kinds import SCALAR_KINDS, SCALARS, scalar_kind
from specstream.compiler.language.text import TEXT, TextType, write_truth
from specstream.compiler.language.typing_refusals import absent, no_letters, refuse

__all__ = [
    "Native",
    "Rule",
    "Writer",
    "require_count",
    "require_scalar",
    "to_kind",
    "truth",
    "write_bool",
]

Rule = Callable[[Sequence[types.Type]], tuple[str, Sequence[str]]]
"""From Numba's argument types to the result's kind and the kinds that the arguments are cast to."""
Writer = Callable[[Instructions, Sequence[str], Sequence[Value]], Value]
"""Writes the instructions; receives the kinds and values of the arguments."""


class Native:
    """A function of compiled operators; a global that Numba resolves in a call.

    Outside compiled code the oracle's counterpart does its work.

    Attributes:
        rules: what it means for others than scalars; at most one is about given arguments.
    """

    def __init__(self, name: str, rule: Rule, write: Writer) -> None:
        self.name = name
        self.rules: Rules = []
        _register(self, rule, write)

    def rule(self, rule: Any) -> Any:
        """Adds a rule about others than scalars; a decorator."""
        self.rules.append(rule)
        return rule

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.name} exists in compiled operators only; see compiler.numbers")

    def __repr__(self) -> str:
        return f"<native {self.name}>"


def _register(function: Native, rule: Rule, write: Writer) -> None:
    class Template(AbstractTemplate):
        key = function
        # A literal's value decides whether it may meet a uint64.
        prefer_literal = True

        def generic(self, args: Sequence[types.Type], kws: dict[str, types.Type]) -> Any:
            if kws:
                raise refuse(f"{function.name} takes no keyword arguments; pass them by position")
            if not _are_plain(args) and function.name in _IN_PLACE:
                refuse_frozen(args[0])
            found = None if _are_plain(args) else meaning_of(function.rules, self.context, args)
            if found is not None:
                return signature(found[0], *found[1])
            try:
                result, kinds = rule(args if _are_plain(args) else all_present(args))
            except TypingError:
                if any(isinstance(one, types.Optional) for one in args) and meaning_of(
                    function.rules, self.context, all_present(args)
                ):
                    written = _SYMBOLS.get(function.name, function.name)
                    raise absent(f"{written} takes") from None
                raise
            # The text of float("inf") stays a literal: it is all that the writer needs.
            cast = [
                arg if may_be_none(arg) else SCALARS.get(kind, arg)
                for kind, arg in zip(kinds, args, strict=True)
            ]
            return signature(SCALARS.get(result, TEXT), *cast)

    builtin_registry.register_global(function, types.Function(Template))

    def lower(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
        if not _are_plain(sig.args) and meaning_of(
            function.rules, context.typing_context, sig.args
        ):
            return lower_by_rules(function.rules, context, builder, sig, args)
        if any(map(may_be_none, sig.args)):
            _, names = rule(all_present(sig.args))
            args = [
                unwrapped(context, builder, of, arg, SCALARS[name])
                for of, arg, name in zip(sig.args, args, names, strict=True)
            ]
            return write(Instructions(context, builder), names, args)
        kinds = [
            SCALAR_KINDS.get(arg) or getattr(arg, "literal_value", "string") for arg in sig.args
        ]
        return write(Instructions(context, builder), kinds, args)

    lower_builtin(function, types.VarArg(types.Any))(lower)


_SYMBOLS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "add": "+", "mul": "*"}
_IN_PLACE = ("iadd", "isub", "imul", "iand", "ior", "ixor")


def _are_plain(args: Sequence[types.Type]) -> bool:
    """Nearly all are: nobody has to be asked about them."""
    return all(isinstance(arg, types.Number | types.Boolean) for arg in args)


def require_scalar(what: str, numba_type: types.Type) -> str:
    kind = scalar_kind(numba_type)
    if isinstance(numba_type, TextType):
        raise no_letters(what)
    if kind is None:
        raise refuse(
            f"{what} takes numbers (int64, uint64, float64, bool), not {numba_type}; "
            "write it with single elements, such as x[i]"
        )
    return kind


def require_count(what: str, args: Sequence[types.Type], low: int, high: int | None = None) -> None:
    if not low <= len(args) <= (high or low):
        expected = str(low) if high is None else f"{low} to {high}"
        raise refuse(f"{what} takes {expected} arguments, got {len(args)}")


def truth(what: str) -> Rule:
    """The typing rule of a scalar function that gives a truth; it takes a string as well.

    A string has a truth, although it is no number.
    """

    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, 1)
        is_text = isinstance(args[0], TextType)
        return "bool", ("string" if is_text else require_scalar(what, args[0]),)

    return rule


def write_bool(code: Instructions, kinds: Sequence[str], args: Sequence[Value]) -> Value:
    if kinds[0] == "string":
        return write_truth(code.builder, args[0])
    return code.to_bool(args[0], kinds[0])


def to_kind(what: str, result: str) -> Rule:
    def rule(args: Sequence[types.Type]) -> tuple[str, Sequence[str]]:
        require_count(what, args, 1)
        return result, (require_scalar(what, args[0]),)

    return rule

"""Dispatch of methods: what ``x.pop(i)`` means depends on the type of ``x``.

A method is one core function, to which each type that has one of that name adds a rule.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import types

from specstream.compiler.backend.instructions import BIT, I64, Instructions, Value
from specstream.compiler.backend.overloads import Core, Meaning, also, looking_for
from specstream.compiler.language.methods import METHODS, Method, container_of
from specstream.compiler.language.typing_refusals import no_method, refuse
from specstream.compiler.library import arithmetic, conversions

__all__ = [
    "FUNCTIONS",
    "adding",
    "method",
    "not_found",
    "record_of",
    "sized",
    "unknown_method",
    "written_by",
]

Write = Callable[[Any, Any, Sequence[Value]], Value]
"""Of the list, dict or set, the signature and the values of all arguments."""

FUNCTIONS: dict[str, Core] = {}
"""The function that stands for all methods of a name."""

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
    if name not in FUNCTIONS:
        FUNCTIONS[name] = Core(
            f"method_{name}", f"{name} is a method of other types, or takes others"
        )
    return FUNCTIONS[name]


def written_by(head: Any) -> Callable[..., Meaning]:
    """What makes a meaning of a writer of instructions about a list, or about a dict or set.

    Args:
        head: made of context, builder, type and address.
    """

    def meaning(
        result: types.Type, taken: Sequence[types.Type], write: Write, of: int = 0
    ) -> Meaning:
        """``of``: which argument it is about."""

        def code(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
            value = write(head(context, builder, sig.args[of], args[of]), sig, args)
            return context.get_dummy_value() if value is None else value

        return result, taken, code

    return meaning


def adding(
    kind: Any,
    name: str,
    form: str = "",
    added: int = 0,
    absent: Callable[[Any, Any], Value] | None = None,
) -> Any:
    """A decorator that adds what a method is of a kind; called with its type and those of the
    arguments, of which there are as many as the method's record says.

    Args:
        kind: a class of types, or several.
        name: of the method.
        form: how it is called, where Python has no such method.
        added: arguments that the rewriting puts behind those of the user.
        absent: of a method that looks for its first argument, what it does where that is None.
    """

    def add(rule: Callable[..., Meaning]) -> Any:
        def checked(context: Any, args: Sequence[types.Type]) -> Meaning | None:
            if not isinstance(args[0], kind):
                return None
            record = record_of(args[0], name)
            if not record.accepts(len(args) - 1 - added):
                hint = f"write {form}" if form else "see Python's"
                raise refuse(f"{name} takes {record.counts} value(s) here: {hint}")
            return rule(*args)

        method(name).rule(checked if absent is None else looking_for(1, absent)(checked))
        return rule

    return add


def not_found(context: Any, builder: Any) -> Value:
    """A method of any type of list, like ``x.index(y)``: raises where ``y`` is not there."""
    Instructions(context, builder).fault_if(BIT(1), ValueError)
    return I64(0)


def record_of(of: types.Type, name: str) -> Method:
    """The record of a method that is dispatched by a container's type, which has it."""
    container = container_of(of)
    assert container is not None
    return METHODS[container, name]


def sized(kind: type[types.Type], meaning: Callable[..., Meaning]) -> None:
    """Adds by the type of the argument: ``len`` of a kind, and whether one is empty or not."""

    def asking(relation: str = "") -> Any:
        def write(head: Any, sig: Any, args: Sequence[Value]) -> Value:
            count = head.count()
            return head.builder.icmp_unsigned(relation, count, I64(0)) if relation else count

        def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
            if len(args) != 1 or not isinstance(args[0], kind):
                return None
            return meaning(types.boolean if relation else types.int64, args, write)

        return rule

    also(len, asking(), kind)
    also(bool, asking("!="), kind)
    conversions.bool_.rule(asking("!="))
    arithmetic.not_.rule(asking("=="))

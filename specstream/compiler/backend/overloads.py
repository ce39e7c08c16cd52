"""Functions overloaded by the types of their arguments: those of lists, dicts, sets and tuples.

A rule looks at Numba's types and gives the result's, those that the arguments are cast to, and
what writes the instructions; or None, where it is not about such arguments. It is asked again when
the code is written, and has to answer the same. That is what an intrinsic is to Numba, but that the
answer is not kept: a list whose elements nobody knows yet is the same type when they are known.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from numba.core import cgutils, types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import AbstractTemplate, builtin_registry, signature

from specstream.compiler.backend.instructions import BIT, Value
from specstream.compiler.backend.local_types import refuse_frozen, settled
from specstream.compiler.backend.none_types import (
    all_present,
    may_be_none,
    missing,
    present,
    unwrapped,
    value_or_zero,
)
from specstream.compiler.language.exact_template import ExactTemplate
from specstream.compiler.language.methods import has_no_method, names_where
from specstream.compiler.language.text import TextType
from specstream.compiler.language.typing_refusals import (
    absent,
    is_no_container,
    no_letters,
    no_method,
    refuse,
)

__all__ = [
    "Core",
    "Meaning",
    "Rules",
    "also",
    "but_of",
    "called",
    "looking_for",
    "lower_by_rules",
    "meaning_of",
    "of_held",
    "of_values",
    "resolved_call",
]

Code = Callable[[Any, Any, Any, Sequence[Value]], Value]
"""Of (context, builder, signature, values of the arguments)."""
Meaning = tuple[types.Type, Sequence[types.Type], Code]
"""The result's type, those that the arguments are cast to, and what writes the instructions."""
Rule = Callable[[Any, Sequence[types.Type]], Meaning | None]
Rules = list[Rule]


def meaning_of(rules: Rules, typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """What the first rule says that is about such arguments."""
    for rule in rules:
        found = rule(typing_context, args)
        if found is not None:
            return found
    return None


def lower_by_rules(rules: Rules, context: Any, builder: Any, sig: Any, args: Any) -> Value:
    found = meaning_of(rules, context.typing_context, sig.args)
    assert found is not None
    return found[2](context, builder, sig, args)


def of_values(rule: Rule) -> Rule:
    """A decorator of overloads' rules: arguments may be None; TypeError where one is."""

    def asked(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if not any(map(may_be_none, args)):
            plain: Meaning | None = rule(typing_context, args)
            return plain
        found = rule(typing_context, all_present(args))
        if found is None:
            return None
        result, wanted, code = found
        taken = [arg if may_be_none(arg) else one for arg, one in zip(args, wanted, strict=True)]

        def checked(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            there = [
                unwrapped(context, builder, of, value, one) if may_be_none(of) else value
                for of, value, one in zip(taken, values, wanted, strict=True)
            ]
            return code(context, builder, signature(sig.return_type, *wanted), there)

        return result, taken, checked

    return asked


def looking_for(
    at: int, otherwise: Callable[[Any, Any], Value]
) -> Callable[[Rule], Callable[[Any, Sequence[types.Type]], Meaning | None]]:
    """A decorator of overloads' rules: where the item looked for is None, none is found.

    No list, dict or set holds None.

    Args:
        at: which argument that is.
        otherwise: what is written where it is None, of (context, builder).
    """

    def decorate(rule: Rule) -> Rule:
        def asked(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
            sought = args[at]
            if not may_be_none(sought) or sought == types.none:
                plain: Meaning | None = rule(typing_context, args)
                return plain
            found = rule(typing_context, _with(args, at, present(sought)))
            if found is None:
                return None
            result, wanted, code = found

            def checked(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
                absent = missing(context, builder, sought, values[at])
                gives = result != types.none
                place = cgutils.alloca_once(builder, context.get_value_type(result))
                with builder.if_else(absent) as (is_none, is_there):
                    with is_none:
                        found = otherwise(context, builder)
                        if gives:
                            builder.store(found, place)
                    with is_there:
                        value = value_or_zero(context, builder, sought, values[at])
                        there = context.cast(builder, value, present(sought), wanted[at])
                        plain = signature(result, *wanted)
                        found = code(context, builder, plain, _with(values, at, there))
                        if gives:
                            builder.store(found, place)
                return builder.load(place) if gives else context.get_dummy_value()

            return result, _with(wanted, at, sought), checked

        return asked

    return decorate


def _with(values: Sequence[Any], at: int, value: Any) -> list[Any]:
    return [*values[:at], value, *values[at + 1 :]]


of_held = looking_for(0, lambda context, builder: BIT(0))
"""The rule of ``x in xs``."""


_CHANGING = {"delete_item"} | {
    f"method_{name}" for name in names_where(lambda one: one.changes, ("list", "dict", "set"))
}
_NAMES = {"delete_item": "del"}
"""What a user has written, where that is no name."""


class Core:
    """A function of compiled operators: a global that Numba resolves in a call.

    Args:
        name: under which the rewriting finds it.
        taken: what it takes, for the message where no rule is about the arguments.
    """

    def __init__(self, name: str, taken: str) -> None:
        self.name = name
        self.taken = taken
        self.rules: Rules = []
        _register(self)

    def rule(self, rule: Any) -> Any:
        """Adds a rule to a function overloaded by its arguments' types; a decorator."""
        self.rules.append(rule)
        return rule

    def __call__(self, *arguments: Any) -> Any:
        raise TypeError(f"{self.name} exists in compiled operators only")

    def __repr__(self) -> str:
        return f"<core {self.name}>"


def _register(function: Core) -> None:
    class Template(AbstractTemplate):
        key = function
        prefer_literal = True

        def generic(self, args: Sequence[types.Type], kws: dict[str, types.Type]) -> Any:
            if function.name in _CHANGING and args:
                refuse_frozen(present(args[0]))
            name = function.name.removeprefix("method_")
            is_method = name != function.name and bool(args)
            if is_method and has_no_method(args[0], name):
                raise refuse("; ".join(no_method(args[0], name)))
            found = meaning_of(function.rules, self.context, args)
            if found is None:
                given = ", ".join(str(types.unliteral(one)) for one in args)
                if is_method and isinstance(present(args[0]), TextType):
                    raise no_letters(name)
                if is_method and is_no_container(args[0]):
                    raise refuse("; ".join(no_method(args[0], name)))
                name = _NAMES.get(name, name)
                if is_method and isinstance(args[0], types.Optional):
                    raise absent(f"{name} is called of")
                raise refuse(f"{name} does not take ({given}): {function.taken}")
            return signature(found[0], *found[1])

    builtin_registry.register_global(function, types.Function(Template))

    def lower(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
        return lower_by_rules(function.rules, context, builder, sig, args)

    lower_builtin(function, types.VarArg(types.Any))(lower)


def also(function: Any, rule: Any, *taken: Any) -> None:
    """Gives a function that Numba knows already one more meaning.

    Args:
        function: a global of Numba's, or one that has an ``@overload``.
        rule: as :meth:`Core.rule` takes them.
        taken: classes of Numba's types that the arguments have, for the lowering.
    """

    class Template(ExactTemplate if function is bool else AbstractTemplate):  # type: ignore[misc]
        key = function

        def generic(self, args: Sequence[types.Type], kws: dict[str, types.Type]) -> Any:
            found = None if kws else rule(self.context, args)
            return None if found is None else signature(found[0], *found[1])

    builtin_registry.register_global(function, types.Function(Template))

    def lower(context: Any, builder: Any, sig: Any, args: Sequence[Value]) -> Value:
        return lower_by_rules([rule], context, builder, sig, args)

    lower_builtin(function, *taken)(lower)


def called(function: Any) -> Callable[[Any, Sequence[types.Type]], Meaning]:
    """A rule: what a compiled function returns for such arguments."""

    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning:
        given = tuple(settled(types.unliteral(arg)) for arg in args)
        result = types.Dispatcher(function).get_call_type(typing_context, given, {}).return_type

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            found = function.overloads[given]
            context.add_linking_libs((found.library,))
            native = context.declare_function(builder.module, found.fndesc)
            status, value = context.call_conv.call_function(
                builder, native, result, given, list(args)
            )
            with builder.if_then(status.is_error, likely=False):
                context.call_conv.return_status_propagate(builder, status)
            return value

        return result, given, code

    return rule


def but_of(kind: type[types.Type], rule: Rule) -> Rule:
    """An overload's rule for what can be gone through, its second argument, except ``kind``."""

    def asked(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        return None if isinstance(args[1], kind) else rule(typing_context, args)

    return asked


def resolved_call(
    context: Any, builder: Any, function: Any, given: Sequence[types.Type], args: Sequence[Value]
) -> tuple[types.Type, Value]:
    """Calls an overloaded function from instructions, by arguments' types: type and value."""
    typing_context = context.typing_context
    known = typing_context.resolve_value_type(function)
    sig = typing_context.resolve_function_type(known, tuple(given), {})
    call = context.get_function(known, sig)
    context.add_linking_libs(getattr(call, "libs", ()))
    cast = [
        context.cast(builder, arg, types.unliteral(one), wanted)
        for one, arg, wanted in zip(given, args, sig.args, strict=True)
    ]
    return sig.return_type, call(builder, cast)

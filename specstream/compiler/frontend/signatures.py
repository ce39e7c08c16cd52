"""What a call gives to which parameter, by Python's rules.

The parameters of a compiled function are all positional to Numba. A call keeps the order in which
its arguments are written, which is that of their evaluation; defaults come last.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn

from specstream.compiler.frontend.scopes import own_name

__all__ = [
    "Parameters",
    "bind",
    "defaults_of",
    "leave_out_computed",
    "parameters_of",
    "parameters_of_function",
]

Refuse = Callable[[ast.AST, str, str], NoReturn]


def leave_out_computed(arguments: ast.arguments) -> None:
    """Takes out of a function's parameters what its definition computes: annotations, and defaults,
    of which it has the values. None stands in their place.

    >>> tree = ast.parse("def f(x: X, *, y: Y = z()): pass").body[0]
    >>> leave_out_computed(tree.args)
    >>> ast.unparse(tree).splitlines()[0]
    'def f(x, *, y=None):'
    """
    for one in ast.walk(arguments):
        if isinstance(one, ast.arg):
            one.annotation = None
    arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
    arguments.kw_defaults = [one and ast.Constant(None) for one in arguments.kw_defaults]


@dataclass(frozen=True)
class Parameters:
    """Names of a function's parameters.

    Attributes:
        positional: those that take an argument by position.
        keyword: those that take one by name; most are in both.
        optional: those with a default.
    """

    positional: tuple[str, ...]
    keyword: tuple[str, ...]
    optional: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        """All, in their order."""
        return tuple(dict.fromkeys((*self.positional, *self.keyword)))

    def __str__(self) -> str:
        """As in a def statement.

        >>> tree = ast.parse("def f(a, /, b=1, *, c=2): pass").body[0]
        >>> print(parameters_of(tree.args))
        (a, /, b=..., *, c=...)
        """
        parts = []
        for at, name in enumerate(self.names):
            before = self.names[at - 1] if at else None
            if before is not None and before not in self.keyword and name in self.keyword:
                parts.append("/")
            if name not in self.positional and (before is None or before in self.positional):
                parts.append("*")
            parts.append(own_name(name) + ("=..." if name in self.optional else ""))
        if self.names and self.names[-1] not in self.keyword:
            parts.append("/")
        return f"({', '.join(parts)})"


def parameters_of(arguments: ast.arguments) -> Parameters:
    """The parameters of a def statement or a lambda; starred ones are left out."""
    only = [one.arg for one in arguments.posonlyargs]
    plain = [one.arg for one in arguments.args]
    named = [one.arg for one in arguments.kwonlyargs]
    positional = only + plain
    with_default = positional[len(positional) - len(arguments.defaults) :]
    with_default += [
        name
        for name, default in zip(named, arguments.kw_defaults, strict=True)
        if default is not None
    ]
    return Parameters(tuple(positional), tuple(plain + named), frozenset(with_default))


def parameters_of_function(function: types.FunctionType) -> Parameters:
    """The parameters of a function."""
    of = inspect.signature(function).parameters.values()
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    by_name = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return Parameters(
        tuple(one.name for one in of if one.kind in by_position),
        tuple(one.name for one in of if one.kind in by_name),
        frozenset(one.name for one in of if one.default is not inspect.Parameter.empty),
    )


def defaults_of(function: types.FunctionType) -> dict[str, Any]:
    """The defaults of the parameters that a call of a function may leave out."""
    code = function.__code__
    values = function.__defaults__ or ()
    names = code.co_varnames[code.co_argcount - len(values) : code.co_argcount]
    return {**dict(zip(names, values, strict=True)), **(function.__kwdefaults__ or {})}


def bind(node: ast.Call, name: str, parameters: Parameters, refuse: Refuse) -> dict[str, ast.expr]:
    """By the name of the parameter, what a call gives it, in the order of evaluation."""
    takes = f"{name} takes {parameters}"
    given: dict[str, ast.expr] = {}
    if len(node.args) > len(parameters.positional):
        refuse(
            node,
            f"{takes}, and gets {len(node.args)} values by position",
            "give each parameter once, those behind * by their names",
        )
    given.update(zip(parameters.positional, node.args, strict=False))
    by_own_name = {own_name(one): one for one in parameters.keyword}
    for keyword in node.keywords:
        assert keyword.arg is not None
        parameter = by_own_name.get(keyword.arg)
        if parameter is None:
            is_positional = keyword.arg in map(own_name, parameters.positional)
            what = "only by position" if is_positional else "not"
            refuse(
                keyword.value,
                f"{takes}, and takes {keyword.arg!r} {what}",
                f"write {name}(x)" if is_positional else "leave it out, or declare it there",
            )
        if parameter in given:
            refuse(
                keyword.value,
                f"{takes}, and gets {keyword.arg!r} twice",
                "give each parameter once",
            )
        given[parameter] = keyword.value
    missing = [one for one in parameters.names if one not in given]
    lacking = [own_name(one) for one in missing if one not in parameters.optional]
    if lacking:
        refuse(
            node,
            f"{takes}, and gets no {', '.join(map(repr, lacking))}",
            "give each parameter once",
        )
    return given

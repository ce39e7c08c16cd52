"""Whether an exception that an operator raises can be made at all, and raises nothing itself.

Compiled code does not make exceptions: it raises their classes. Where a handler may be waiting,
that has to be the class that Python raises, so the making may not fail. Python's own classes are
asked. An ``__init__`` of the user's may keep its arguments, and make a text of them.
"""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any

from specstream.compiler.language.definitions import definition_of

__all__ = ["problem_of_making"]


def problem_of_making(error: type[BaseException], call: ast.Call) -> str | None:
    """Why a call of a class may raise something else than an exception of it; None: it does not."""
    keywords = [keyword.arg for keyword in call.keywords if keyword.arg is not None]
    if len(keywords) < len(call.keywords) or any(isinstance(a, ast.Starred) for a in call.args):
        return f"{error.__name__} is given starred arguments"
    own = next((one for one in error.__mro__ if _has_python_method(one, "__new__")), None)
    if own is not None:
        return f"{own.__name__} has a __new__ of its own, which compiled code does not run"
    return _problem_of_init(error, error.__mro__, len(call.args), keywords)


def _has_python_method(one: type, method: str) -> bool:
    """Whether an exception's class has a method, like ``__init__``, written in Python."""
    found = vars(one).get(method)
    return isinstance(getattr(found, "__func__", found), types.FunctionType)


def _problem_of_init(
    error: type[BaseException], mro: tuple[type, ...], count: int, keywords: list[str]
) -> str | None:
    """Why an exception cannot be made, by the ``__init__`` found in this order of classes."""
    at = next(at for at, one in enumerate(mro) if "__init__" in vars(one))
    if not _has_python_method(mro[at], "__init__"):
        base: Any = next(one for one in mro[at:] if one.__module__ == "builtins")
        try:
            base(*[""] * count, **dict.fromkeys(keywords, ""))
        except Exception as problem:
            return f"{error.__name__} cannot be made of this ({problem})"
        return None
    init = vars(mro[at])["__init__"]
    try:
        inspect.signature(init).bind(None, *[None] * count, **dict.fromkeys(keywords))
    except TypeError as problem:
        return f"{error.__name__} cannot be made of this ({problem})"
    tree = _tree_of(init)
    if tree is not None and error.__setattr__ is BaseException.__setattr__:
        first, *others = [one.arg for one in (*tree.args.posonlyargs, *tree.args.args)]
        names = {*others, *(one.arg for one in tree.args.kwonlyargs)}
        for statement in tree.body:
            passed = _passed_on(statement, names)
            if passed is not None:
                problem_of_base = _problem_of_init(error, mro[at + 1 :], passed, [])
                if problem_of_base is not None:
                    return problem_of_base
            elif not _only_keeps(statement, first, names, error):
                break
        else:
            return None
    return (
        f"{error.__name__} has an __init__ that does more than keep its arguments, which compiled "
        "code does not run"
    )


def _tree_of(function: types.FunctionType) -> ast.FunctionDef | None:
    found = definition_of(function)
    if found is None or found.tree.args.vararg or found.tree.args.kwarg:
        return None
    return found.tree


def _passed_on(statement: ast.stmt, names: set[str]) -> int | None:
    """How many plain values ``super().__init__(...)`` is given; None: that is not what it is."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "super().__init__":
        return None
    plain = not call.keywords and all(_is_plain(one, names) for one in call.args)
    return len(call.args) if plain else None


def _only_keeps(
    statement: ast.stmt, first: str, names: set[str], error: type[BaseException]
) -> bool:
    """Whether a statement of exceptions' ``__init__`` keeps a plain value, or does nothing."""
    if isinstance(statement, ast.Expr):
        return isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.Assign):
        return isinstance(statement, ast.Pass)
    target = statement.targets[0]
    return (
        len(statement.targets) == 1
        and isinstance(target, ast.Attribute)
        and isinstance(target.value, ast.Name)
        and target.value.id == first
        and not hasattr(error, target.attr)
        and _is_plain(statement.value, names)
    )


def _is_plain(value: ast.expr, names: set[str]) -> bool:
    if isinstance(value, ast.JoinedStr):
        return all(
            isinstance(one, ast.Constant)
            or (
                isinstance(one, ast.FormattedValue)
                and not one.format_spec
                and _is_plain(one.value, names)
            )
            for one in value.values
        )
    return isinstance(value, ast.Constant) or (isinstance(value, ast.Name) and value.id in names)

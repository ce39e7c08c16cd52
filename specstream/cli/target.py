"""The operator that a command line names: ``MODULE:OPERATOR`` and ``--arg``."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from specstream.definition.operator import Operator
from specstream.pipelines.pipeline import Pipeline
from specstream.rules.declared import Rule

__all__ = [
    *("OPERATOR", "PIPELINE", "RULE", "expression", "load_function", "load_operator"),
    *("load_rule", "parse_arguments"),
]

# Values of --arg that are no literals but name the type of a column or field.
TYPES = {"int": int, "float": float, "bool": bool, "str": str}


@dataclass(frozen=True)
class _Kind:
    """What a command line may ask for: its name, its type, an example, how it is made."""

    name: str
    type: type[Operator]
    example: str
    made: str


OPERATOR = _Kind(
    "operator",
    Operator,
    "MODULE:OPERATOR, like specstream.operators:top_k or flows.py:detector",
    "an operator made with @ss.operator",
)
PIPELINE = _Kind(
    "pipeline", Pipeline, "MODULE:PIPELINE, like flows.py:desk", "a pipeline made with ss.Pipeline"
)
RULE = _Kind("rule", Rule, "MODULE:RULE, like rules.py:paid_in_time", "a rule made with @ss.rule")


def load_operator(target: str, arguments: dict[str, object], kind: _Kind = OPERATOR) -> Operator:
    """The operator that ``MODULE:OPERATOR`` names.

    Args:
        target: module name or path of a ``.py`` file, a colon, and the name of an operator or of a
            function that makes one.
        arguments: what to call such a function with.
        kind: what is asked for, in messages; an operator comes back where a pipeline is.

    Raises:
        click.ClickException: the module or the name is not there, or is no operator.
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise click.UsageError(f"{target!r} names no {kind.name}; expected {kind.example}")
    module = _imported(where)
    try:
        found = getattr(module, name)
    except AttributeError:
        known = [key for key, value in vars(module).items() if isinstance(value, kind.type)]
        raise click.ClickException(
            f"module {where!r} has no {name!r}; {kind.name}s in it: {', '.join(known) or 'none'}"
        ) from None
    if isinstance(found, Operator):
        if arguments:
            raise click.UsageError(
                f"{target} is {_article(found)}, not a function that makes one: it takes no --arg "
                f"({', '.join(arguments)})"
            )
        return found
    if not callable(found):
        raise click.ClickException(
            f"{target} is a {type(found).__name__}; expected {kind.made}, or a function that "
            "returns one"
        )
    try:
        inspect.signature(found).bind(**arguments)
    except (TypeError, ValueError) as error:  # ValueError: of what is not written in Python
        given = " ".join(f"{one}={value!r}" for one, value in arguments.items())
        plain = f"; if it is the {kind.name} itself, decorate it with @ss.{kind.name}"
        raise click.ClickException(
            f"{target} cannot be called with {f'--arg {given}' if given else 'no --arg'}: {error}"
            + ("" if kind is PIPELINE else plain)
        ) from error
    made = found(**arguments)
    if not isinstance(made, Operator):
        raise click.ClickException(
            f"{target} returned a {type(made).__name__}; expected {kind.made}"
        )
    return made


def load_rule(target: str, arguments: dict[str, object]) -> Rule:
    """The rule that ``MODULE:RULE`` names, or the only one that ``MODULE`` has.

    Args:
        target: as of :func:`load_operator`, or without the colon and what follows it.
        arguments: likewise.

    Raises:
        click.ClickException: the module or the name is not there, or is no rule; or the module has
            not exactly one.
    """
    if ":" in target:
        found = load_operator(target, arguments, RULE)
        if not isinstance(found, Rule):
            raise click.ClickException(
                f"{target} is {_article(found)}, and no rule; expected {RULE.made}"
            )
        return found
    module = vars(_imported(target))
    rules = {name: value for name, value in module.items() if isinstance(value, Rule)}
    if len({id(one) for one in rules.values()}) != 1:
        raise click.UsageError(
            f"module {target!r} has {len(rules) or 'no'} rules: name one, "
            + (" or ".join(f"{target}:{name}" for name in rules) or RULE.example)
        )
    if arguments:
        raise click.UsageError(f"--arg belongs to MODULE:RULE: give {target}:{next(iter(rules))}")
    return next(iter(rules.values()))


def load_function(target: str) -> Callable[..., Any]:
    """The plain function that ``MODULE:FUNCTION`` names.

    Raises:
        click.ClickException: the module or the name is not there, or is no function.
    """
    where, _, name = target.rpartition(":")
    module = _imported(where)
    found = getattr(module, name, None)
    if not isinstance(found, types.FunctionType):
        known = [
            key for key, value in vars(module).items() if isinstance(value, types.FunctionType)
        ]
        raise click.ClickException(
            f"module {where!r} has no function {name!r}; functions in it: "
            f"{', '.join(known) or 'none'}"
        )
    return found


def _article(operator: Operator) -> str:
    if isinstance(operator, Rule):
        return "a rule"
    return "a pipeline" if isinstance(operator, Pipeline) else "an operator"


def _imported(where: str) -> Any:
    return _load_file(Path(where)) if where.endswith(".py") else _load_module(where)


def _load_module(name: str) -> Any:
    # As with `python -m`, modules beside the user count.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise click.ClickException(
                f"no module named {name!r}; give an importable module or a path that ends in .py"
            ) from error
        raise


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise click.ClickException(f"no file {str(path)!r}")
    # A name of its own, so that a file called json.py takes nobody's place.
    name = f"_operators_{path.stem}"
    known, text = sys.modules.get(name), path.read_bytes()
    if getattr(known, "_loaded", None) == (str(path), text):
        return known  # so that an operator and what is said of it are of one module
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise click.ClickException(f"{str(path)!r} cannot be loaded as Python")
    module: Any = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Modules beside the file can be imported from it, as with `python FILE`.
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    module._loaded = str(path), text
    return module


def parse_arguments(given: tuple[str, ...]) -> dict[str, object]:
    """``("k=5", "item=str")`` as ``{"k": 5, "item": str}``.

    Values are Python literals, or one of the types int, float, bool, str.

    Raises:
        click.UsageError: a value is neither.

    >>> parse_arguments(("k=5", "name='a'", "item=str"))
    {'k': 5, 'name': 'a', 'item': <class 'str'>}
    """
    parsed: dict[str, object] = {}
    for argument in given:
        name, equals, text = argument.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--arg {argument!r}: expected NAME=VALUE, like k=5")
        try:
            parsed[name] = TYPES[text] if text in TYPES else ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise click.UsageError(
                f"--arg {argument!r}: {text!r} is not a Python literal; write strings in quotes: "
                f"--arg \"{name}='{text}'\""
            ) from None
    return parsed


def expression(target: str, given: tuple[str, ...], operator: Operator) -> str:
    """How Python code names the operator that a command line names."""
    where, _, name = target.rpartition(":")
    known = (f"_operators_{Path(where).stem}", where)
    direct = any(getattr(sys.modules.get(at), name, None) is operator for at in known)
    return name if direct else f"{name}({', '.join(given)})"

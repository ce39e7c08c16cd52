"""The functions that Python calls for derived values: made of expressions over an event's columns.

``event.key[:2]`` becomes the body of a function of the column ``key``. The conditions that go along
with an expression stand before it: where one does not hold, nothing is computed.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any

from specstream.columns.dates_and_decimals import own_value
from specstream.columns.derived import UNREACHED, given_in_place
from specstream.compiler.facts.name_bindings import MISSING, as_now, look_up
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.language.standard_library import by_argument
from specstream.compiler.staging.ordered_sets import MAKERS, in_order, with_ordered_sets
from specstream.compiler.staging.staged_loops import NAMES

__all__ = ["Made", "Unpack"]

_CALL = "__ss_call_"

Unpack = tuple[int, int | None]
"""How many names a value is unpacked into, and which of them has a star."""


class Made:
    """A function on its way to a derived value.

    Attributes:
        inputs: what its parameters are.
        names: the globals that it uses.
    """

    def __init__(self, source: FunctionSource) -> None:
        self.source = source
        self.inputs: dict[str, str | int] = {}
        self.names: dict[str, Any] = {}

    def input(self, name: str, value: str | int) -> ast.expr:
        self.inputs[name] = value
        return ast.Name(name, ast.Load())

    def call(self, number: int) -> ast.expr:
        """A call of a function marked as pure: what it raised is raised where it stands."""
        given = self.input(f"{_CALL}{number}", number)
        return ast.Call(ast.Name("__ss_given", ast.Load()), [given], [])

    @property
    def in_place(self) -> tuple[int, ...]:
        """The places of such calls among the inputs."""
        return tuple(at for at, name in enumerate(self.inputs) if name.startswith(_CALL))

    def use(self, name: str) -> None:
        value = look_up(self.source.original, name)
        if value is not MISSING and value is not getattr(builtins, name, MISSING):
            self.names[name] = as_now(value)
            if isinstance(value, FunctionType):
                self.names[name] = by_argument(value, _is_mapping, with_ordered_sets)

    def is_builtin(self, name: str) -> bool:
        return name not in self.inputs and look_up(self.source.original, name) in (
            MISSING,
            getattr(builtins, name),
        )

    def function(
        self, body: ast.expr, guards: list[ast.expr], unpack: Unpack
    ) -> tuple[Callable[..., Any], Any]:
        """The function, and what tells it from others."""
        body, *guards = (in_order(one, self.is_builtin) for one in (body, *guards))
        statements: list[ast.stmt] = []
        if guards:
            test = ast.BoolOp(ast.And(), guards) if len(guards) > 1 else guards[0]
            leave = ast.Return(ast.Name("__ss_unreached", ast.Load()))
            tried = ast.If(ast.UnaryOp(ast.Not(), test), [leave], [])
            # A condition that raises does so in the operator as well, before it gets here.
            kind = ast.Name("__ss_exception", ast.Load())
            handler = ast.ExceptHandler(kind, None, [leave])
            statements.append(ast.Try([tried], [handler], [], []))
        count, star = unpack
        if count:
            names = [f"__ss_part_{at}" for at in range(count)]
            stored: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
            if star is not None:
                stored[star] = ast.Starred(stored[star], ast.Store())
            statements.append(ast.Assign([ast.Tuple(stored, ast.Store())], body))
            body = ast.Tuple([ast.Name(name, ast.Load()) for name in names], ast.Load())
        statements.append(ast.Return(body))
        parameters = [ast.arg(name) for name in self.inputs]
        arguments = ast.arguments([], parameters, None, [], [], None, [])
        original = self.source.original.__name__
        tree = ast.FunctionDef(original, arguments, statements, [])
        values = tuple((name, id(look_up(self.source.original, name))) for name in self.names)
        key = (ast.dump(tree), tuple(self.inputs.values()), values)
        module = ast.fix_missing_locations(ast.Module([at_place(tree, body)], []))
        namespace = {
            **self.names,
            **NAMES,
            **MAKERS,
            "__name__": self.source.original.__module__,
            "__ss_bool": bool,
            "__ss_own": own_value,
            "__ss_exact": _within_64_bits,
            "__ss_given": given_in_place,
            "__ss_float": _as_declared_float,
            "__ss_unreached": UNREACHED,
            "__ss_exception": Exception,
        }
        exec(compile(module, self.source.filename, "exec"), namespace)
        return namespace[original], key


def _is_mapping(value: Any) -> bool:
    return isinstance(value, Mapping)


def _within_64_bits(value: Any) -> Any:
    """An integer that a derived function gives; raises where compiled code's would wrap."""
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise OverflowError(f"{value} does not fit 64 bits")
    return value


def _as_declared_float(value: Any) -> Any:
    """What a name has that is annotated float: the same whoever reads it."""
    return float(value) if isinstance(value, int) else value

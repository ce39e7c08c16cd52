"""Operations on a boosted field: functions that speculation does not look into."""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from specstream._native import lib
from specstream.declarations.element_types import Number
from specstream.errors import DeclarationError

__all__ = ["Operation", "operations_of"]

_KINDS: dict[Any, Number] = {int: "int", float: "float", bool: "bool", np.uint64: "uint"}
# What an event, an emit and a lock have: such a name would stand for two things.
_TAKEN = ("acquire", "release", "random", "random_bits", "is_null")


@dataclass(frozen=True)
class Operation:
    """One operation.

    Attributes:
        name: as operators call it.
        kinds: of its arguments behind the field; the first one is the key.
        function: as written. None where the operation was unpickled and its operator was not yet.
        inverse: likewise; None where it changes nothing.
        inverse_gets_result: the inverse's last parameter is what the operation has returned.
    """

    name: str
    kinds: tuple[Number, ...]
    function: Callable[..., Any] | None
    inverse: Callable[..., Any] | None
    inverse_gets_result: bool

    def __repr__(self) -> str:
        # What the functions do is in the fingerprint of the operator's code.
        has_inverse = self.inverse is not None
        return f"Operation({self.name!r}, {self.kinds}, {has_inverse}, {self.inverse_gets_result})"

    def __getstate__(self) -> dict[str, Any]:
        # Functions go by their source, with the operator's own: their module need not be there.
        return {**vars(self), "function": None, "inverse": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def with_functions(
        self, function: Callable[..., Any], inverse: Callable[..., Any] | None
    ) -> Operation:
        """The same, with its functions."""
        return replace(self, function=function, inverse=inverse)


def operations_of(declared: Mapping[str, Any]) -> tuple[Operation, ...]:
    """Operations as :func:`specstream.structures.boosted` is given them.

    Raises:
        DeclarationError: names the operation and what is wrong with it.
    """
    if not declared:
        raise DeclarationError(
            "boosted() is given no operation: write boosted(field, insert=(insert, remove), "
            "contains=contains)"
        )
    return tuple(_operation(name, given) for name, given in declared.items())


def _operation(name: str, given: Any) -> Operation:
    what = f"boosted(..., {name}=...)"
    if name in _TAKEN:
        raise DeclarationError(f"{what}: {name!r} is the name of another method; choose another")
    pair = given if isinstance(given, tuple) else (given, None)
    if len(pair) != 2 or not all(isinstance(one, types.FunctionType | None) for one in pair):
        raise DeclarationError(
            f"{what} is {given!r}; expected a plain function that changes nothing, or a pair "
            "(function, inverse) of plain functions"
        )
    function, inverse = pair
    if function is None:
        raise DeclarationError(f"{what} has an inverse and no function")
    kinds = _kinds(function, what)
    gets_result = False
    if inverse is not None:
        more = len(inspect.signature(inverse).parameters) - 1 - len(kinds)
        if more not in (0, 1):
            raise DeclarationError(
                f"{what}: the inverse {inverse.__name__!r} has "
                f"{len(inspect.signature(inverse).parameters)} parameters; expected the "
                f"{1 + len(kinds)} of {function.__name__!r}, or one more, which gets what that "
                "has returned"
            )
        gets_result = more == 1
    return Operation(name, kinds, function, inverse, gets_result)


def _kinds(function: types.FunctionType, what: str) -> tuple[Number, ...]:
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    if not 2 <= len(parameters) <= 1 + lib.SS_OPERANDS:
        raise DeclarationError(
            f"{what}: {function.__name__!r} has {len(parameters)} parameters; expected the field, "
            f"the key, and at most {lib.SS_OPERANDS - 1} more"
        )
    kinds: list[Number] = []
    for parameter in parameters[1:]:
        given = parameter.annotation
        if given in (Any, inspect.Parameter.empty):
            given = int
        if given not in _KINDS:
            raise DeclarationError(
                f"{what}: parameter {parameter.name!r} of {function.__name__!r} is annotated "
                f"{given!r}; expected int, float, bool or np.uint64, or nothing, which means int"
            )
        kinds.append(_KINDS[given])
    if kinds[0] != "int":
        raise DeclarationError(
            f"{what}: the key {parameters[1].name!r} of {function.__name__!r} is {kinds[0]}; "
            "expected int: the abstract lock is that of its hash"
        )
    return tuple(kinds)

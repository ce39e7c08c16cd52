"""The modules that users see, by the lists of names that the package itself has."""

from __future__ import annotations

import inspect
from types import ModuleType
from typing import Any

import specstream as ss

__all__ = ["GROUPS", "MODULES", "names_of"]


def modules_of(module: ModuleType) -> list[Any]:
    """The public modules inside of one."""
    every = (getattr(module, name) for name in module.__all__)
    return [of for of in every if inspect.ismodule(of)]


def names_of(module: ModuleType) -> set[str]:
    """Its public names, each with that of the module; modules are none."""
    inside = {name for name in module.__all__ if not inspect.ismodule(getattr(module, name))}
    return {f"{module.__name__}.{name}" for name in inside}


# Of ready operators.
GROUPS = modules_of(ss.operators)
MODULES = [*modules_of(ss), *GROUPS]

"""The accesses of a run in the runtime: the second module in the library of ``specstream._native``.

It is loaded from there by name, because cffi makes the first one and its functions release the
interpreter lock around each call; see ``stm_native/python/interpreted_module.c``.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
from typing import Any

from specstream import _native

__all__ = ["RunEnded", "make_run"]


class RunEnded(BaseException):
    """The run has to end: it is dropped, or the engine stops.

    Raised where an operator accesses the state, the event or emit, or goes round a loop, and again
    at the next access where the operator has caught it. It never leaves the engine.
    """


def _loaded() -> Any:
    name, file = "specstream._interpreted", _native.__file__
    loader = importlib.machinery.ExtensionFileLoader(name, file)
    spec = importlib.util.spec_from_file_location(name, file, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    module.set_ended(RunEnded)
    return module


_module = _loaded()


def make_run() -> Any:
    """A new ``Run``: stands for what one worker runs."""
    return _module.Run()

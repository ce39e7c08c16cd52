"""Makes the C runtime's functions known to LLVM under their own names."""

from __future__ import annotations

import functools

import llvmlite.binding

from specstream._native import ffi, lib

__all__ = ["register"]


@functools.cache
def register() -> None:
    """Registers every function of the runtime, so that compiled code may call any; idempotent."""
    for name in dir(lib):
        if name.startswith("ss_") and callable(getattr(lib, name)):
            address = int(ffi.cast("intptr_t", ffi.addressof(lib, name)))
            llvmlite.binding.add_symbol(name, address)

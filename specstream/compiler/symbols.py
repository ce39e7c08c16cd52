"""Makes the C runtime's functions known to LLVM under their own names."""

from __future__ import annotations

import functools

import llvmlite.binding

from specstream._native import ffi, lib
from specstream.compiler import arithmetic

__all__ = ["register"]

CALLED_BY_COMPILED_CODE = (
    "ss_load",
    "ss_store",
    "ss_load_bytes",
    "ss_store_bytes",
    "ss_eager_load",
    "ss_eager_store",
    "ss_eager_load_bytes",
    "ss_eager_store_bytes",
    "ss_delta",
    "ss_eager_delta",
    "ss_increment",
    "ss_eager_increment",
    "ss_load_range",
    "ss_eager_load_range",
    "ss_boost",
    "ss_boost_follow",
    "ss_store_range",
    "ss_eager_store_range",
    "ss_buffer",
    "ss_poll",
    "ss_undo_grow",
    "ss_emit_grow",
    "ss_random_bits",
    "ss_lock",
    "ss_unlock",
)


@functools.cache
def register() -> None:
    """Registers every function that compiled code may call; idempotent."""
    for name in (*CALLED_BY_COMPILED_CODE, *arithmetic.SYMBOLS):
        address = int(ffi.cast("intptr_t", ffi.addressof(lib, name)))
        llvmlite.binding.add_symbol(name, address)

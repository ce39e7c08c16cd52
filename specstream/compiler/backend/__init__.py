"""Numba and LLVM: types, memory, instructions, and passes of our own."""

"""Structures for operators: plain functions over fields of the state.

They are compiled along with the operator that calls them, so what they do is logged, rolled back
and committed like everything else that the operator does.
"""

from specstream.structures.heap import allocate, heap, release

__all__ = ["allocate", "heap", "release"]

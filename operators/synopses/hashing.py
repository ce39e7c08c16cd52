"""Hashes of items for sketches: the same in every run, so that snapshots fit.

Sketches whose bounds need pairwise independence take :func:`pairwise` with the constants of
:func:`specstream.operators.top_k.hash_constants`. Those that need all bits of one hash to look
random, and promise something on average only, take :func:`mixed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["mixed", "pairwise"]


def pairwise(item: Any, constants: Any) -> Any:
    """Inside an operator: 32 bits of an item, as an int; pairwise independent over all items.

    Of (a + high) * (b + low) + c, modulo 2**64, with the halves of the item and random a, b and c,
    the upper half is (Thorup 2015, pair-multiply-shift).

    Args:
        item: an int or a string, which stands for its code.
        constants: a, b and c.

    >>> pairwise(5, (2**62, 1, 0)) == (2**62 * 6 >> 32) % 2**32
    True
    """
    a, b, c = constants
    return (((a + ((item >> 32) & 0xFFFFFFFF)) * (b + (item & 0xFFFFFFFF)) + c) >> 32) & 0xFFFFFFFF


def mixed(item: Any, number: Any = 1) -> Any:
    """Inside an operator: 64 bits of an item, as ``np.uint64``, by the generator splitmix64.

    Of one ``number`` it is one-to-one, so that different ints never have the same hash.

    Args:
        item: an int or a string, which stands for its code: the seed of the generator.
        number: which of the generator's outputs, from 1, where several hashes are needed.

    >>> with np.errstate(over="ignore"):  # NumPy warns where a number wraps
    ...     hex(mixed(0)), hex(mixed(0, 2))
    ('0xe220a8397b1dcdaf', '0x6e789e6aa1b965f4')
    """
    x = np.uint64(item & -1) + np.uint64(number) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))

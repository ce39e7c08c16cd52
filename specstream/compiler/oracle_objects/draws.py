"""Random numbers of an event under Python: of its seed, its order key and the draw's number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specstream._native import ffi, lib

__all__ = ["RandomNumbers"]


class RandomNumbers:
    """An event, or a timer, that gives random numbers. Columns may have any other names.

    Attributes:
        __ss_signed__: makes an integer one of an operator's.
        __ss_unsigned__: likewise one that has no sign.
    """

    __slots__ = ()
    __ss_signed__: Callable[[int], Any] = int
    __ss_unsigned__: Callable[[int], Any] = int

    def __ss_key__(self, draw: int) -> tuple[int, int, int, int, int]:
        """What a draw depends on: the seed, time, source, sequence and number."""
        raise NotImplementedError  # of the kind of event

    def random_bits(self, draw: int) -> Any:
        return self.__ss_unsigned__(lib.ss_random_bits(*self.__ss_key__(draw)))

    def random(self, draw: int) -> float:
        return (int(self.random_bits(draw)) >> 11) * 2.0**-53

    def normal(self, draw: int) -> float:
        return float(lib.ss_random_normal(*self.__ss_key__(draw)))

    def integer(self, low: int, high: int, draw: int) -> Any:
        drawn = ffi.new("int64_t *")
        if lib.ss_random_integer(*self.__ss_key__(draw), int(low), int(high), drawn):
            raise ValueError(f"event.integer({int(low)}, {int(high)}, i): the range is empty")
        return self.__ss_signed__(drawn[0])

    def choice(self, count: int, draw: int) -> Any:
        if count <= 0:
            raise ValueError(f"event.choice({int(count)}, i): there is nothing to choose from")
        return self.integer(0, count, draw)

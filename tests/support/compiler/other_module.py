"""Helpers that operators of another module call by this one's name."""

from __future__ import annotations

RATE = 3
NAMES = ("one", "two")


def scaled(value: int, by: int = RATE, *, shift: int = 0) -> int:
    return value * by + shift

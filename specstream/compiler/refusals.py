"""Refusals while an operator is typed, in the user's terms: what, and the way out.

Numba wraps them in its own words; :mod:`specstream.compiler.diagnosis` takes them out again.
"""

from __future__ import annotations

from numba.core.errors import TypingError

from specstream.compiler.text import refusal
from specstream.declarations.state import Field

__all__ = ["is_boosted", "no_letters", "refuse"]


def refuse(message: str) -> TypingError:
    """A typing error that :mod:`specstream.compiler.diagnosis` translates for the user."""
    return TypingError(f"specstream: {message}")


def no_letters(what: str) -> TypingError:
    """Why a string does not have what an array has."""
    return refuse("; ".join(refusal(what)))


def is_boosted(field: Field) -> TypingError:
    """Why a boosted field is not accessed like an array."""
    ways = ", ".join(f"state.{field.name}.{one.name}(...)" for one in field.operations)
    return refuse(f"field {field.name!r} is boosted: use its operations, {ways}")

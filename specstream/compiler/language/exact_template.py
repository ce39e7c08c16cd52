"""A typing rule that is asked about the types that there are, and about no others.

Where no rule of a template fits, Numba asks it once more with the types that optional arguments
have where they are not None, and then raises where they are. A truth is never asked for like that:
``if best:`` is False of None.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numba.core import types
from numba.core.typing.templates import AbstractTemplate

__all__ = ["ExactTemplate"]


class ExactTemplate(AbstractTemplate):
    def apply(self, args: Sequence[types.Type], kws: dict[str, types.Type]) -> Any:
        return self.generic(args, kws)

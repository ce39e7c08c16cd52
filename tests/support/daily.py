"""How much of what is drawn at random the daily check draws."""

from __future__ import annotations

import os

__all__ = ["share_of"]


def share_of(examples: int, one_in: int = 3) -> int:
    """A third of so many examples, or less where each compiles an operator of its own; all of them
    in a quiet night, for which EXAMPLES is set."""
    return examples if "EXAMPLES" in os.environ else -(-examples // one_in)

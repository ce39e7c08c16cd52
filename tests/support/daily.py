"""How much of what is drawn at random the daily check draws."""

from __future__ import annotations

import os

__all__ = ["share_of"]


def share_of(examples: int) -> int:
    """A third of so many examples; all of them in a quiet night, for which EXAMPLES is set."""
    return examples if "EXAMPLES" in os.environ else -(-examples // 3)

"""Colours, markers, lines and hatches: what is the same looks the same in every picture.

The colours are those of Okabe and Ito, and of Tol for what is none of the contestants: they can be
told apart with the common colour blindnesses, and in print by marker and hatch.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

__all__ = ["CONFLICTS", "LOOKS", "PUBLISHED", "QUIET", "SPARE", "Look", "look"]


@dataclass(frozen=True)
class Look:
    """How something is drawn.

    Attributes:
        colour: of its bars, lines and markers.
        marker: of its points.
        line: between them.
        hatch: over its bars.
        width: of its lines; what is often covered by another is wider.
    """

    colour: str
    marker: str = "o"
    line: str = "-"
    hatch: str = ""
    width: float = 1.6


_LOCKS = Look("#cc79a7", "X", "-", "xxx", 1.4)
_PLAIN = Look("#595959", "D", "-.", "", 2.8)
_NUMBA = Look("#56b4e9", "v", ":", "\\\\")
_CHECK = Look("#e69f00", "*", ":", "...")
_AUTO = Look("#009e73", "^", "-", "")

# A name that is no key is drawn as the first key whose words are in it.
LOOKS = {
    # Whoever chooses for himself, before the protocol that it runs.
    "specstream, prefetch": replace(_AUTO, marker="v", hatch="..."),
    "abort-driven": Look("#882255", "<", "--", "|||"),
    "throughput-driven": replace(_AUTO, marker=">", hatch="---"),
    "Auto": _AUTO,
    "specstream": _AUTO,
    "value": Look("#0072b2", "o", "-", "", 2.4),
    "eager": Look("#d55e00", "s", "--", "///", 1.4),
    # Locks.
    "spin lock": replace(_LOCKS, marker="P", line="-.", hatch="..."),
    "own locks": replace(_LOCKS, marker="P", hatch="+++"),
    "fine-grained locks": replace(_LOCKS, marker="P", hatch="+++"),
    "mutex": _LOCKS,
    "global lock": _LOCKS,
    "locks": _LOCKS,
    "lock": _LOCKS,
    "atomic": Look("#999933", "d", "-.", "\\\\\\"),
    # One thread of the operator itself.
    "sequential check": _CHECK,
    "plain": _PLAIN,
    "sequential": _PLAIN,
    "no speculation": _PLAIN,
    "none": _PLAIN,
    # A loop that is compiled by hand, without order or undo log.
    "Numba": _NUMBA,
    "log-free": _NUMBA,
    "bare loop": _NUMBA,
    "typed dict": _NUMBA,
    "loop by hand": replace(_CHECK, marker="P", line="-", hatch="///"),
    "ideal": Look("#000000", "", ":", ""),
}

# What is none of these, in the order of its appearance.
SPARE = (
    Look("#332288", "o", "-", ""),
    Look("#aa4466", "s", "--", "///"),
    Look("#117733", "^", "-.", "xxx"),
    Look("#ddaa33", "D", ":", "..."),
    Look("#6699cc", "v", "-", "\\\\\\"),
)
# Numbers that somebody else has published.
PUBLISHED = Look("#bbbbbb", "P", ":", "")
# Conflicts, and the runs that were dropped for them.
CONFLICTS = Look("#882255", "s", "-", "")
# Lines that are there to compare with.
QUIET = "#6b6b6b"


def look(name: str) -> Look:
    """How a contestant is drawn, by its name in a table.

    >>> look("2 threads, horizon 8, chunk 4, eager") == look("eager")
    True
    >>> look("specstream Auto, 2 threads").colour == look("Auto").colour
    True
    >>> look("Bytewax")
    Traceback (most recent call last):
    KeyError: "no look is given to 'Bytewax': take one of SPARE"
    """
    if name in LOOKS:
        return LOOKS[name]
    for key, found in LOOKS.items():
        if re.search(rf"(?<![\w-]){re.escape(key)}(?![\w-])", name):
            return found
    raise KeyError(f"no look is given to {name!r}: take one of SPARE")

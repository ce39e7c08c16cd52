"""On which filesystem a path is."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["existing", "kind"]


def existing(path: Path) -> Path:
    """A path, or the nearest above it that is there."""
    return next(place for place in (path, *path.parents) if os.path.lexists(place))


def kind(path: Path) -> str:
    """The type of the filesystem, as ``ext4``, or "unknown"."""
    real = Path(os.path.realpath(existing(path)))
    found = "unknown"
    longest = -1
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        before, _, after = line.partition(" - ")
        mount = re.sub(r"\\([0-7]{3})", lambda code: chr(int(code[1], 8)), before.split()[4])
        # Of two at one place the later one hides the other.
        if real.is_relative_to(mount) and len(mount) >= longest:
            longest, found = len(mount), after.split()[0]
    return found

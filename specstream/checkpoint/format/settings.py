"""What a query may not be started again with: options that decide its answer.

The state in a checkpoint is that of one way to run the stream. Another order, another seed, or keys
in other shards do not fit it, and nothing in the state itself shows that. So the options are beside
it, and a start with others is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from specstream.errors import SnapshotError

__all__ = ["check_settings"]


def check_settings(recorded: str | bytes, given: Mapping[str, Any], what: str, hint: str) -> None:
    """Whether a query goes on as it was begun.

    Args:
        recorded: what the checkpoint says, by option, as JSON; options that it does not know are
            not looked at.
        given: what the query was started with.
        what: names the checkpoint, at the beginning of the message.
        hint: what to do, at its end.

    Raises:
        SnapshotError: an option has changed; names all that have, with both values. Or the record
            is none.

    >>> check_settings('{"seed": 1}', {"seed": 2, "by": "x"}, "checkpoint", "give the old one")
    Traceback (most recent call last):
    specstream.errors.SnapshotError: checkpoint: seed was 1 and is now 2: give the old one
    """
    try:
        before = json.loads(recorded)
    except ValueError:
        before = None
    if not isinstance(before, dict):
        raise SnapshotError(f"{what}: the record of its options is none: {hint}")
    changed = [
        _changed(option, before[option], value)
        for option, value in given.items()
        if option in before and before[option] != value
    ]
    if changed:
        raise SnapshotError(f"{what}: {'; '.join(changed)}: {hint}")


def _changed(option: str, before: object, now: object) -> str:
    if option == "watermark":  # recorded is whether there is one
        there = ("one", "none")[now is None]
        return f"there was {('a', 'no')[before is None]} watermark= and now there is {there}"
    return f"{option} was {_shown(option, before)} and is now {_shown(option, now)}"


def _shown(option: str, value: object) -> str:
    # A type is no text that somebody has given.
    return str(value) if option.endswith(" type") else repr(value)

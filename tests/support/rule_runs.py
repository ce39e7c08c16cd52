"""Rules and what they tell, beside the definitions of :mod:`support.verdicts`."""

from __future__ import annotations

import itertools
import linecache
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import specstream as ss
from specstream import rules
from support import verdicts as definitions
from support.random_rules import EVENT, Event

__all__ = ["COLUMNS", "OPERATORS", "function", "made", "rows_by_event", "settled", "table"]

COLUMNS = {**EVENT, "i": int}
OPERATORS = {name: getattr(rules, name) for name in definitions.NAMES}
_texts = itertools.count()


def function(text: str, names: Mapping[str, Any]) -> types.FunctionType:
    """The function ``rule`` of a text, which can be read as those of a file are."""
    filename = f"<a rule, {next(_texts)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": "rules_of_tests", **names}
    exec(compile(text, filename, "exec", dont_inherit=True), namespace)
    found: types.FunctionType = namespace["rule"]
    return found


def made(text: str, **options: Any) -> Any:
    """The rule of a text, which tells of each event with its number ``i``."""
    given: dict[str, Any] = {"event": COLUMNS, "report": "all", "keep": ["i"], **options}
    return ss.rule(name="tried", **given)(function(text, OPERATORS))


def table(trace: Sequence[Event]) -> dict[str, list[Any]]:
    """A trace as columns."""
    found = {name: [getattr(one, name) for one in trace] for name in ("time", *EVENT)}
    return {**found, "i": list(range(len(trace)))}


def rows_by_event(rows: Sequence[Mapping[str, Any]]) -> dict[int, bool]:
    """The verdict of each event that has a row."""
    found: dict[int, bool] = {}
    for row in rows:
        assert row["i"] not in found, f"event {row['i']} has two rows"
        found[row["i"]] = row["verdict"]
    return found


def settled(
    text: str, trace: Sequence[Event], *, at_end: str = "open", key: str | None = None
) -> dict[int, bool]:
    """The same by the definitions."""
    read: Callable[..., object] = function(text, definitions.NAMES)
    found = definitions.verdicts(read, trace, at_end=at_end, key=key)
    return {at: verdict for at, verdict in enumerate(found) if verdict is not None}

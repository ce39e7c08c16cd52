"""Writes the tables of the reference of the language: what the compiler's records say.

Run it after a change of a record; a test compares the page with the records.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from specstream.compiler.language import builtin_functions
from specstream.compiler.language.builtin_functions import BUILTINS
from specstream.compiler.language.methods import METHODS, REFUSED, Method, methods_of
from specstream.compiler.language.operations import OPERATIONS, RECORDS

PAGE = Path(__file__).parents[1] / "reference" / "language.md"
TABLE = re.compile(r"(<!-- table of (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
KINDS = {
    "list": "A list",
    "deque": "A deque",
    "dict": "A dict",
    "set": "A set",
    "priority_queue": "A priority queue",
    "timers": "A field of timers",
    "array": "An array, a row or a slice",
    "event": "The event; a timer that fires has all but `is_null`",
    "int": "An int",
    "float": "A float",
}


def table(head: str, rows: Sequence[str]) -> str:
    """A table of Markdown."""
    rule = "|".join(" --- " for _ in head.split(" | "))
    return "\n".join([f"| {head} |", f"|{rule}|", *(f"| {row} |" for row in rows), ""])


def raises(of: tuple[tuple[str, str], ...]) -> str:
    return "; ".join(f"`{name}`: {when}" for name, when in of)


def method(one: Method) -> str:
    gives = "" if one.returns == "None" else one.returns
    return f"`{one.call}` | {gives} | {'yes' if one.changes else ''} | {raises(one.raises)}"


def methods() -> str:
    parts = []
    for kind, title in KINDS.items():
        rows = [method(METHODS[kind, name]) for name in sorted(methods_of(kind))]
        parts.append(f"{title}:\n\n" + table("method | gives | changes it | raises", rows))
    return "\n" + "\n".join(parts)


def refused() -> str:
    found = sorted(REFUSED.values(), key=lambda one: (one.of.lower(), one.name))
    rows = [f"`{one.name}` of a {one.of} | {one.hint}" for one in found]
    return "\n" + table("method | write instead", rows).replace("local deque", "deque")


def builtins() -> str:
    rows = []
    for one in sorted(BUILTINS.values(), key=lambda one: one.name):
        named = ", ".join(f"`{name}=`" for name in one.keywords)
        rows.append(f"`{one.call}` | {named} | {one.returns} | {raises(one.raises)}")
    return "\n" + table("function | by keyword | gives | raises", rows)


def refused_builtins() -> str:
    found = sorted(builtin_functions.REFUSED.values(), key=lambda one: one.name)
    by_hint: dict[str, list[str]] = {}
    for one in found:
        by_hint.setdefault(one.hint, []).append(f"`{one.name}`")
    rows = [f"{', '.join(names)} | {hint}" for hint, names in by_hint.items()]
    return "\n" + table("function | hint", rows)


def operators() -> str:
    rows = [
        f"{as_code(one.form)} | {one.takes} | {one.returns} | {raises(one.raises)}"
        for one in RECORDS
        if one.node in OPERATIONS
    ]
    return "\n" + table("operator | of | gives | raises", rows)


def as_code(text: str) -> str:
    """In a cell of a table, where a bar would end it."""
    return f"`{text}`".replace("|", "\\|")


WRITERS = {
    "methods": methods,
    "refused": refused,
    "builtins": builtins,
    "refused_builtins": refused_builtins,
    "operators": operators,
}


def page() -> str:
    """The text of the page, with its tables as they are to be."""
    return TABLE.sub(lambda found: found[1] + WRITERS[found[2]]() + found[3], PAGE.read_text())


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"{PAGE.name} is out of date" if page() != PAGE.read_text() else 0)
    PAGE.write_text(page())

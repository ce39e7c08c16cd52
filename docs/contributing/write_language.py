"""Writes the tables of the reference of the language: what the compiler's records say.

Run it after a change of a record; a test compares the page with the records.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from specstream.compiler.language.methods import METHODS, REFUSED, Method, methods_of

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


WRITERS = {"methods": methods, "refused": refused}


def page() -> str:
    """The text of the page, with its tables as they are to be."""
    return TABLE.sub(lambda found: found[1] + WRITERS[found[2]]() + found[3], PAGE.read_text())


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(f"{PAGE.name} is out of date" if page() != PAGE.read_text() else 0)
    PAGE.write_text(page())

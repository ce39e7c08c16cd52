"""Numba's errors in the user's terms: what, where, and the way out.

Rules of our own say so in a typing error that begins with "specstream:"; Numba wraps it in its own
words, once for each call between the operator and the place. What nobody has foreseen is told from
the innermost of Numba's words, and is a :class:`CompileError` all the same: an operator is refused,
whatever Numba stumbled over.
"""

from __future__ import annotations

import re

from specstream.compiler.own_code import is_own
from specstream.compiler.program import Program
from specstream.compiler.scopes import own_name
from specstream.compiler.text import refusal
from specstream.errors import CompileError

__all__ = ["translate"]

_KINDS = {
    "state": "the state",
    "event": "the event",
    "emit": "emit",
    "view": "an array",
    "boosted": "a boosted field",
    "locks": "locks",
    "lock": "a lock",
    "run": "",
}
_SEEN_BY = "see the rules of operators in docs/operators.md"
_RULES = "use numbers, fields of the state, and plain functions"


def translate(error: Exception, program: Program) -> CompileError:
    """What is raised in place of an error that compiling an operator has met."""
    text = _readable(re.sub(r"\x1b\[[0-9;]*m", "", str(error)))
    filename, line = _place(text, error, program)
    ours = re.findall(r"specstream: (.*)", text)
    if ours:
        separator = "; " if "; " in ours[0] else ": "
        problem, _, way_out = ours[0].rpartition(separator)
        if not problem:
            problem, way_out = ours[0], _SEEN_BY
    else:
        problem, way_out = _innermost(text, error)
    return CompileError(program.operator, filename, line, own_name(problem), own_name(way_out))


def _place(text: str, error: Exception, program: Program) -> tuple[str, int]:
    """Numba names the place of each of the nested failures, the innermost first."""
    places = [(name, int(line)) for name, line in re.findall(r" at (.+?) \((\d+)\)", text)]
    location = getattr(error, "loc", None)
    if location is not None:
        places.append((location.filename, location.line))
    own = {filename for filename, _, _, _ in program.lines()}
    code = program.oracle.__code__
    return next(
        (place for place in places if place[0] in own and not is_own(place[0])),
        (code.co_filename, code.co_firstlineno),
    )


def _innermost(text: str, error: Exception) -> tuple[str, str]:
    words = text.split("(step: nopython frontend)")[-1]
    if found := re.search(r"Cannot unify (.*) and (.*) for '([^']*)'", words):
        one, other, name = found.groups()
        name = re.sub(r"\.\d+$", "", name)
        what = "a value" if name.startswith(("$", "__ss_")) else name
        return (
            f"{what} is {one} here and {other} elsewhere",
            "make it one type on every path",
        )
    if found := re.search(r"Invalid use of getiter with parameters \((.*)\)", words):
        if found[1] == "string":
            return refusal("for")
        return (
            f"{found[1]} cannot be gone through",
            "a loop goes over range(...), an array of the state, a tuple, enumerate or zip",
        )
    if found := re.search(r"wrong tuple length for .*expected (\d+), got (\d+)", words):
        return (
            f"a tuple of {found[2]} is taken apart into {found[1]}",
            "give as many names as it has values, or one with a star: a, *rest = x",
        )
    if found := re.search(r"failed to unpack (.*)", words):
        return f"{found[1]} cannot be taken apart", "several names take a tuple or a row"
    if found := re.search(r"Unknown attribute '(.*)' of type (.*)", words):
        return f"{found[2]} has no attribute {found[1]!r} in an operator", _RULES
    if found := re.search(r"found for signature:\s*>>> (\S+?)\((.*)\)", words):
        name = re.sub(r"^(__ss_|update_)", "", found[1])
        if name in ("getitem", "static_getitem"):
            of, index = found[2].rsplit(", ", 1)
            return (
                f"an item of {of} cannot be read by {index}",
                "items are read of arrays and tuples",
            )
        return f"{name} does not take ({found[2]})", _RULES
    first = next((row.strip() for row in words.splitlines() if row.strip()), type(error).__name__)
    return f"this cannot be compiled ({first[:300]})", _RULES


def _readable(text: str) -> str:
    """Our types by what they are, without the layout in brackets; literals by their value."""
    text = re.sub(r"Literal\[\w+\]\((.*?)\)", r"\1", text)
    while found := re.search(r"specstream\.(\w+)\(", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + _KINDS.get(found[1], found[1]) + text[end:]
    return text

"""Numba's errors in the user's terms: what, where, and the way out.

Rules of our own say so in a typing error that begins with "specstream:"; Numba wraps it in its own
words, once for each call between the operator and the place. What nobody has foreseen is told from
the innermost of Numba's words, where they say something that can be put in ours, and is a
:class:`CompileError` all the same: an operator is refused, whatever Numba stumbled over.
"""

from __future__ import annotations

import ast
import datetime
import inspect
import os
import re
import textwrap
from decimal import Decimal

from specstream.compiler.frontend.program import Program
from specstream.compiler.frontend.scopes import own_name
from specstream.compiler.frontend.unclear_text_names import why_not_of_event
from specstream.compiler.language.parsing import parse
from specstream.compiler.language.text import refusal
from specstream.compiler.language.user_code import is_own
from specstream.errors import CompileError

__all__ = ["translate"]

_KINDS = {
    "state": "the state",
    "event": "the event",
    "vertex_event": "the event",
    "stream": "emit",
    "emit": "emit",
    "view": "an array",
    "boosted": "a boosted field",
    "locks": "locks",
    "lock": "a lock",
    "run": "",
    "state_dict": "a dict of the state",
    "state_set": "a set of the state",
    "state_list": "a list of the state",
    "state_deque": "a deque of the state",
    "state_priority_queue": "a priority queue of the state",
    "state_timers": "the timers of the state",
    "timer": "the timer",
}
_SEEN_BY = "the guide Operators has the rules"
_RULES = "use numbers, fields of the state, and plain functions"
# What nobody has foreseen: Numba's own words would tell a user of things that are none of theirs.
_UNFORESEEN = (
    "this cannot be compiled, and specstream does not know why",
    "write it in simpler steps, and please report it, with the underlying error that the "
    "environment variable NUMBA_DEVELOPER_MODE=1 shows",
)


# Values that are numbers to an operator, with attributes that no number has.
_COUNTED = (datetime.datetime, datetime.time, datetime.timedelta, Decimal)
# By attribute, what to write where an int is asked for it; members of an IntEnum are ints here.
_OF_MEMBERS = {
    "name": "of a member of an IntEnum keep the names in a dict of the module, NAMES = {one.value: "
    "one.name for one in Level}, and write NAMES[x]",
    "value": "a member of an IntEnum is the int itself: write x",
}
_OF_MEMBERS |= dict.fromkeys(
    {name for one in _COUNTED for name in dir(one) if name[0] != "_" and not hasattr(int, name)},
    "a date, time or decimal of a column is a number once it is put into a list, a tuple or the "
    "state: take what you need out of the event's value before, like (event.day.year, 1) in place "
    "of (event.day, 1)",
)
_ONE_FIELD = (
    "a name stands for one container: write the branches out, each with its field, like "
    "state.x[key] = 1, or take one dict whose keys say which"
)


def translate(error: Exception, program: Program) -> CompileError:
    """What is raised in place of an error that compiling an operator has met."""
    text = _readable(re.sub(r"\x1b\[[0-9;]*m", "", str(error)))
    filename, line = _place(text, error, program)
    ours = re.findall(r"specstream: (.*)", text)
    if ours:
        separator = "; " if "; " in ours[0] else ": "
        problem, _, hint = ours[0].rpartition(separator)
        if not problem:
            problem, hint = ours[0], _SEEN_BY
    else:
        problem, hint = _innermost(text)
    if problem.startswith("the operator returns"):
        filename, line = _place_of_return(program) or (filename, line)
    if "not depend on the event alone" in problem:
        asked = problem.partition(" of a string")[0]
        problem, hint = _diagnosis_of_name(program, filename, line, asked) or (problem, hint)
    if "int here and float elsewhere" in problem or "float here and int elsewhere" in problem:
        hint = _hint_for_default(program, filename, line) or hint
    return CompileError(program.operator, filename, line, own_name(problem), own_name(hint))


def _hint_for_default(program: Program, filename: str, line: int) -> str | None:
    """The way out of Numba's error where a default is an int, and some calls give a float.

    Those calls give a float in place of the default: a float as the default itself would make
    floats of the ints of other calls.
    """
    for function, written in program.written.items():
        if (
            written.filename != filename
            or not 0 <= line - written.line < written.text.count("\n") + 1
        ):
            continue
        names = inspect.signature(function).parameters
        ints = {name: one.default for name, one in names.items() if type(one.default) is int}
        if ints:
            given = ", ".join(f"{name}={float(one)}" for name, one in ints.items())
            return (
                f"where {function.__name__}() is called with floats, give it a float for its "
                f"default as well, like {function.__name__}(x, {given})"
            )
    return None


def _diagnosis_of_name(
    program: Program, filename: str, line: int, asked: str
) -> tuple[str, str] | None:
    """In place of Numba's error about a string under a name, the problem and the way out.

    The problem says why the string is not taken for the event's, although it is.
    """
    for function, written in program.written.items():
        if written.filename == filename and 0 <= line - written.line < written.text.count("\n") + 1:
            return why_not_of_event(written.text, written.line, function.__name__, line, asked)
    return None


def _place(text: str, error: Exception, program: Program) -> tuple[str, int]:
    """Numba names the place of each of the nested failures, the innermost first."""
    places = [(name, int(line)) for name, line in re.findall(r" at (.+?) \((\d+)\)", text)]
    location = getattr(error, "loc", None)
    if location is not None:
        places.append((location.filename, location.line))
    # Relative to where the process is, and outermost last.
    shown = re.findall(r'File "(.+?)", line (\d+)', text)
    places += [(os.path.abspath(name), int(line)) for name, line in shown]
    own = {filename for filename, _, _, _ in program.lines()}
    code = program.oracle.__code__
    return next(
        (place for place in places if place[0] in own and not is_own(place[0])),
        (code.co_filename, code.co_firstlineno),
    )


def _place_of_return(program: Program) -> tuple[str, int] | None:
    """For Numba's error about a return type, which says no place: where a value is returned."""
    written = program.written[next(reversed(program.written))]
    definition = parse(textwrap.dedent(written.text)).body[0]
    todo: list[ast.AST] = list(ast.iter_child_nodes(definition))
    lines = []
    while todo:
        node = todo.pop()
        if isinstance(node, ast.Return) and node.value is not None:
            lines.append(written.line + node.lineno - 1)
        if not isinstance(node, ast.FunctionDef | ast.Lambda):  # which return for themselves
            todo += ast.iter_child_nodes(node)
    return (written.filename, min(lines)) if lines else None


def _innermost(text: str) -> tuple[str, str]:
    words = text.split("(step: nopython frontend)")[-1]
    if found := re.search(r"Cannot unify (.*) and (.*) for '([^']*)'", words):
        one, other, name = found.groups()
        name = re.sub(r"\.\d+$", "", name)
        what = "a value" if name.startswith(("$", "__ss_")) else name
        if one == other and one.endswith("of the state"):
            return f"{what} is one field of the state here and another elsewhere", _ONE_FIELD
        if "of the state" in one and "of the state" in other:
            return f"{what} is {one} here and {other} elsewhere", _ONE_FIELD
        copies = ": list(x) makes a list of one of the state" if "of the state" in words else ""
        return (
            f"{what} is {one} here and {other} elsewhere",
            f"make it one type on every path{copies}",
        )
    if found := re.search(r"Can't unify return type from the following types: (.*)", words):
        kinds = found[1].split(", ")
        if len(set(kinds)) == 1 and kinds[0].endswith("of the state"):
            return "a function returns one field of the state here and another there", _ONE_FIELD
        return f"a function returns {' here, and there '.join(kinds)}", "return one type of value"
    if found := re.search(r"Invalid use of getiter with parameters \((.*)\)", words):
        if found[1] == "string":
            return refusal("for")
        if found[1].startswith("a tuple of ("):
            return (
                f"{found[1]} cannot be iterated over: its elements are of different types",
                "write the elements out one by one, or make them one type; what may be None needs "
                "a value, 0 if x is None else x",
            )
        return (
            f"{found[1]} cannot be iterated over",
            "a loop can iterate over range(...), an array of the state, a tuple, list, dict or "
            "set, enumerate or zip",
        )
    if found := re.search(r"wrong tuple length for .*expected (\d+), got (\d+)", words):
        return (
            f"a tuple of {found[2]} is unpacked into {found[1]}",
            "write as many names as it has values, or one with a star: a, *rest = x",
        )
    if found := re.search(r"failed to unpack (.*)", words):
        return (
            f"{found[1]} cannot be unpacked",
            "only a tuple or a row can be assigned to several names",
        )
    if found := re.search(r"Unknown attribute '(.*)' of type (.*)", words):
        problem = f"{found[2]} has no attribute {found[1]!r} in an operator"
        return problem, _OF_MEMBERS.get(found[1], _RULES) if found[2] == "int64" else _RULES
    if found := re.search(r"found for signature:\s*>>> (\S+?)\((.*)\)", words):
        name = re.sub(r"^(__ss_|update_)", "", found[1])
        if name in ("getitem", "static_getitem"):
            of, index = found[2].rsplit(", ", 1)
            if index == "bool":
                return "an index has type bool", "write int(x)"
            read = {"the event": "event.name", "the state": "state.name"}.get(of)
            return (
                f"an item of {of} cannot be read by {index}",
                f"write {read}" if read else "items are read of arrays and tuples",
            )
        if not name.startswith("_"):  # else it is none of the user's
            whole = found[2] in ("the state", "the event")
            rules = f"take one of its values, like {name}({found[2][4:]}.x)" if whole else _RULES
            return f"{name} does not take ({found[2]})", rules
    return _UNFORESEEN


def _readable(text: str) -> str:
    """Our types by what they are, without the layout in brackets; literals by their value."""
    text = re.sub(r"Literal\[\w+\]\((.*?)\)", r"\1", text)
    text = re.sub(r"(?:OptionalType|specstream\.nullable)\((\w+)\)", r"\1 or None", text)
    text = re.sub(r"UniTuple\((\w+) x (\d+)\)", r"a tuple of \2 \1", text)
    text = re.sub(r"\bTuple\(([^()]*)\)", r"a tuple of (\1)", text)
    while found := re.search(r"specstream\.(\w+)\(", text):
        depth, end = 1, found.end()
        while depth and end < len(text):
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        text = text[: found.start()] + _KINDS.get(found[1], found[1]) + text[end:]
    return text

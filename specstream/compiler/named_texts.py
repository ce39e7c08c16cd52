"""Texts of the event under names that do not say so: why they are refused, and what to write."""

from __future__ import annotations

import ast
import textwrap

from specstream.compiler.steps import made_of_event

__all__ = ["why_not_of_event"]

_NUMBERS = {2: "two", 3: "three", 4: "four"}


def why_not_of_event(text: str, first: int, function: str, line: int) -> tuple[str, str] | None:
    """What is wrong with a name in a line of a function, and what to write; None: it is another
    thing.

    Args:
        text: of the function.
        first: number of its first line.
        function: its name.
        line: where a string is not taken for the event's.

    >>> text = "def f(event, emit):\\n    s = event.w\\n    for c in s: s = s.strip(c)"
    >>> why_not_of_event(text, 1, "f", 3)[0][:29]
    "'s' is assigned in two places"
    """
    tree = ast.parse(textwrap.dedent(text)).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return None
    at = line - first + 1
    read = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name) and one.lineno == at}
    for inner in ast.walk(tree):
        if not isinstance(inner, ast.FunctionDef | ast.Lambda) or inner is tree:
            continue
        name = getattr(inner, "name", "a lambda")
        shown = repr(name) if isinstance(inner, ast.FunctionDef) else name
        for one in inner.args.args:
            if one.arg in read and inner.lineno <= at <= (inner.end_lineno or at):
                module = name if isinstance(inner, ast.FunctionDef) else "f"
                return (
                    f"{one.arg!r} is an argument of {shown}, a function inside of {function!r}, "
                    "where strings have no letters",
                    f"define it at module level, def {module}({one.arg}): ..., where Python calls "
                    "it before the operator runs",
                )
    parameters = [one.arg for one in tree.args.args]
    events = {*parameters[len(parameters) == 3 :][:1], "event"}
    for name in sorted(read & made_of_event(tree, events, is_added=True)):
        stores = [
            one
            for one in ast.walk(tree)
            if isinstance(one, ast.Name) and one.id == name and isinstance(one.ctx, ast.Store)
        ]
        if len(stores) > 1:
            return (
                f"{name!r} is assigned in {_NUMBERS.get(len(stores), len(stores))} places, so that "
                "which text it is depends on the way that the event takes",
                f"give each its own name, like t = {name}.lower() if event.x else {name}, or make "
                f"it in a plain function at module level, {name} = f(event.x)",
            )
    return None

"""Names of texts of the event that do not say so: why they are refused, and what to write."""

from __future__ import annotations

import ast
import textwrap

from specstream.compiler.frontend.single_assignment import made_of_event
from specstream.compiler.language.parsing import parse

__all__ = ["why_not_of_event"]

_NUMBERS = {2: "two", 3: "three", 4: "four"}
_SPELT = {"len": "len({})", "[]": "{}[...]"}


def why_not_of_event(
    text: str, first: int, function: str, line: int, asked: str
) -> tuple[str, str] | None:
    """Why a name is not taken for a text of the event, and what to write; None: another thing.

    The name is one in a line of a function.

    Args:
        text: of the function.
        first: number of its first line.
        function: its name.
        line: where a string is not taken for the event's.
        asked: of that string: a method, builtin or operator.

    >>> text = "def f(event, emit):\\n    s = event.w\\n    for c in s: s = s.strip(c)"
    >>> why_not_of_event(text, 1, "f", 3, "strip")[0][:29]
    "'s' is assigned in two places"
    """
    tree = parse(textwrap.dedent(text)).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return None
    at = line - first + 1
    here = [one for one in ast.walk(tree) if getattr(one, "lineno", None) == at]
    asked_of = [part for one in here for part in _texts_asked(one, asked)]
    inside = {one.arg for one in ast.walk(tree) if isinstance(one, ast.arg)}
    inside |= set(_assigned_names(tree))
    read = _names(asked_of or here)
    if (of_argument := _why_not_argument(tree, read, function, at)) is not None:
        return of_argument
    parameters = [one.arg for one in tree.args.args]
    events = {*parameters[len(parameters) == 3 :][:1], "event"}
    made = made_of_event(tree, events, is_added=True)
    for part in asked_of:
        texts = _texts_chosen_from(tree, part, made | events)
        if texts is not None and (asked in ("len", "[]") or hasattr(str, asked)):
            shown = [_SPELT.get(asked, "{}." + asked + "(...)").format(one) for one in texts]
            return (
                f"{ast.unparse(part)!r} is one of several texts, and which one is known only "
                "when the event runs",
                f"apply it to each of them where it is chosen, {' and '.join(shown)}",
            )
    if asked_of:  # what is made of the state as well is refused for that
        alone = [_names([one]) for one in asked_of]
        read = set[str]().union(*(one for one in alone if one & inside <= made | events))
    for name in _names_and_origins(tree, read, made):
        stores = _assigned_names(tree).count(name)
        if stores > 1:
            problem = (
                f"{name!r} is assigned in {_NUMBERS.get(stores, stores)} places, so which text "
                "it holds depends on the path that the event takes"
            )
            if not _is_operator(tree):
                return (
                    f"{problem}, in {function}(), which is compiled",
                    f"have Python call it before: @ss.pure above def {function}(...), where it is "
                    "given values of the event alone, with the type that it returns, -> str",
                )
            return (
                problem,
                f"give each its own name, like t = {name}.lower() if event.x else {name}, or make "
                f"it in a plain function at module level, {name} = f(event.x)",
            )
    return None


def _is_operator(tree: ast.FunctionDef) -> bool:
    """Whether the name of a text stands in an operator, and not in a helper, by parameters.

    An operator has two or three parameters, the last of which it calls.
    """
    names = [one.arg for one in tree.args.args]
    calls = {ast.unparse(one.func) for one in ast.walk(tree) if isinstance(one, ast.Call)}
    return len(names) in (2, 3) and bool({names[-1], "emit"} & calls or "emit" in names)


def _why_not_argument(
    tree: ast.FunctionDef, read: set[str], function: str, at: int
) -> tuple[str, str] | None:
    """Why a text named by an argument is refused: it is one of a function inside the function.

    With what to write instead; None: no argument of such a function is read there.
    """
    for inner in ast.walk(tree):
        if not isinstance(inner, ast.FunctionDef | ast.Lambda) or inner is tree:
            continue
        name = getattr(inner, "name", "a lambda")
        shown = repr(name) if isinstance(inner, ast.FunctionDef) else name
        for one in inner.args.args:
            if one.arg in read and inner.lineno <= at <= (inner.end_lineno or at):
                module = name if isinstance(inner, ast.FunctionDef) else "f"
                return (
                    f"{one.arg!r} is an argument of {shown}, a function inside {function!r}, "
                    "where the letters of strings are not available",
                    f"define it at module level, def {module}({one.arg}): ..., where Python calls "
                    "it before the operator runs",
                )
    return None


def _assigned_names(tree: ast.AST) -> list[str]:
    """Names that may hold one text or another: each as often as something is assigned to it."""
    names = (one for one in ast.walk(tree) if isinstance(one, ast.Name))
    return [one.id for one in names if isinstance(one.ctx, ast.Store)]


def _names_and_origins(tree: ast.AST, names: set[str], made: set[str]) -> list[str]:
    """Of named texts that are refused the names, and then the names that these are made of."""
    found: list[str] = []
    waiting = sorted(names & made)
    while waiting:
        name = waiting.pop(0)
        if name in found:
            continue
        found.append(name)
        for one in ast.walk(tree):
            if isinstance(one, ast.Assign) and name in _names([*one.targets]):
                waiting += sorted(_names([one.value]) & made)
    return found


def _names(nodes: list[ast.AST]) -> set[str]:
    return {one.id for node in nodes for one in ast.walk(node) if isinstance(one, ast.Name)}


def _texts_asked(node: ast.AST, asked: str) -> list[ast.AST]:
    """Where a named text may stand that is refused: what is asked for a method or letters."""
    match node:
        case ast.Call(func=ast.Attribute(attr=name, value=value)) if name == asked:
            return [value]
        case ast.Call(func=ast.Name(id=name)) if name == asked:
            return [*node.args]
        case ast.Subscript() if asked == "[]":
            return [node.value]
        case ast.For() if asked == "for":  # over a constant: what its body makes is refused
            return [node.iter if _names([node.iter]) else node]
        case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp() if asked == "for":
            return [one.iter for one in node.generators]
        case ast.Compare(ops=[ast.In() | ast.NotIn()]) if asked == "in":
            return [*node.comparators]
        case ast.BinOp() | ast.AugAssign() | ast.Compare() if not asked[0].isalpha():
            return [node]
    return []


def _texts_chosen_from(tree: ast.FunctionDef, part: ast.AST, alone: set[str]) -> list[str] | None:
    """The texts one of which a name holds, each known to Python before; None: another thing."""
    values = [part]
    if isinstance(part, ast.Name):
        given = [one for one in ast.walk(tree) if isinstance(one, ast.Assign)]
        values = [one.value for one in given if _is_only(one.targets, part.id)]
        if _assigned_names(tree).count(part.id) > len(values):
            return None
    texts: list[ast.AST] = []
    while values:
        value = values.pop(0)
        if isinstance(value, ast.IfExp):
            values[:0] = [value.body, value.orelse]
        else:
            texts.append(value)
    is_literal = any(isinstance(one, ast.Constant) and isinstance(one.value, str) for one in texts)
    is_known = is_literal and all(_names([one]) <= alone for one in texts)
    own = part.id if isinstance(part, ast.Name) else ""
    if not is_known or len(texts) < 2 or own in _names(texts):
        return None
    return list(dict.fromkeys(map(ast.unparse, texts)))


def _is_only(targets: list[ast.expr], name: str) -> bool:
    return len(targets) == 1 and isinstance(targets[0], ast.Name) and targets[0].id == name

"""The other ways to write a formatted string, as one: ``str(x)``, ``"a" + str(x)``, ``"%d" % n``,
``"{}: {}".format(a, b)``.
"""

from __future__ import annotations

import ast
import copy
import re
import string
from collections.abc import Callable

__all__ = ["as_joined", "as_written"]

Test = Callable[[ast.expr], bool]

_PERCENT = re.compile(
    r"%(?P<flags>[-+ 0]*)(?P<width>\d*)(?P<digits>\.\d+)?(?P<of>[sdiuoxXeEfFgGr%])"
)


def as_joined(node: ast.expr, is_str: Test, is_text: Test) -> ast.JoinedStr | None:
    """What an expression is as a formatted string; None: it is none.

    Args:
        is_str: whether a callee is the builtin ``str``.
        is_text: whether an expression gives a string.
    """
    if isinstance(node, ast.JoinedStr):
        return node
    values = _Parts(is_str, is_text).of(node)
    if values is None or not any(isinstance(one, ast.FormattedValue) for one in values):
        return None
    made = ast.fix_missing_locations(ast.copy_location(ast.JoinedStr(values), node))
    made.written = ast.unparse(node)  # type: ignore[attr-defined]
    return made


def as_written(node: ast.JoinedStr) -> str:
    """A formatted string as the user has it, which may be another expression."""
    return getattr(node, "written", None) or ast.unparse(node)


class _Parts:
    """The texts and values that a string is put together from, in the order of their evaluation."""

    def __init__(self, is_str: Test, is_text: Test) -> None:
        self.is_str = is_str
        self.is_text = is_text

    def of(self, node: ast.expr) -> list[ast.expr] | None:
        if isinstance(node, ast.Constant):
            return [node] if isinstance(node.value, str) else None
        if isinstance(node, ast.JoinedStr):
            return node.values
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.of_summand(node.left), self.of_summand(node.right)
            return None if left is None or right is None else [*left, *right]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod):
            return _of_percent(node)
        if not isinstance(node, ast.Call) or any(isinstance(one, ast.Starred) for one in node.args):
            return None
        if self.is_str(node.func) and len(node.args) == 1 and not node.keywords:
            return [ast.FormattedValue(node.args[0], ord("s"), None)]
        return _of_format(node)

    def of_summand(self, node: ast.expr) -> list[ast.expr] | None:
        parts = self.of(node)
        if parts is None and self.is_text(node):
            return [ast.FormattedValue(node, ord("s"), None)]
        return parts


def _spec(text: str) -> ast.JoinedStr | None:
    return ast.JoinedStr([ast.Constant(text)]) if text else None


def _of_percent(node: ast.BinOp) -> list[ast.expr] | None:
    """Of ``"..." % (a, b)`` or ``"..." % a``."""
    if not isinstance(node.left, ast.Constant) or not isinstance(node.left.value, str):
        return None
    given = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
    text, values, end = node.left.value, list(reversed(given)), 0
    parts: list[ast.expr] = []
    for found in _PERCENT.finditer(text):
        if "%" in text[end : found.start()]:
            return None
        parts.append(ast.Constant(text[end : found.start()]))
        end = found.end()
        of, flags = found["of"], found["flags"]
        if of == "%":
            parts.append(ast.Constant("%"))
            continue
        if not values:
            return None
        # Text stands on the right, where format() puts it on the left.
        is_text = of in "sr"
        side = "<" if "-" in flags else ">" if is_text and found["width"] else ""
        sign = "" if is_text else "+" if "+" in flags else " " if " " in flags else ""
        zeros = "0" if "0" in flags and "-" not in flags and not is_text else ""
        kind = "" if is_text else {"i": "d", "u": "d"}.get(of, of)
        spec = side + sign + zeros + found["width"] + (found["digits"] or "") + kind
        conversion = ord(of) if is_text else -1
        parts.append(ast.FormattedValue(values.pop(), conversion, _spec(spec)))
    if values or "%" in text[end:]:
        return None
    return [*parts, ast.Constant(text[end:])]


def _of_format(node: ast.Call) -> list[ast.expr] | None:
    """Of ``"...".format(a, b)``, where each value is used once, in the order of the call, or where
    it makes no difference how often and when they are read."""
    callee = node.func
    if (
        not isinstance(callee, ast.Attribute)
        or callee.attr != "format"
        or not isinstance(callee.value, ast.Constant)
        or not isinstance(callee.value.value, str)
    ):
        return None
    names: list[str | int | None] = [*range(len(node.args)), *(one.arg for one in node.keywords)]
    values = [*node.args, *(one.value for one in node.keywords)]
    parts: list[ast.expr] = []
    used: list[int] = []
    try:
        fields = list(string.Formatter().parse(callee.value.value))
    except ValueError:
        return None
    for text, name, spec, conversion in fields:
        parts.append(ast.Constant(text))
        if name is None:
            continue
        at = (
            len(used)
            if name == ""
            else next((place for place, one in enumerate(names) if name == str(one)), len(values))
        )
        if at >= len(values) or "{" in (spec or ""):
            return None
        shown = ord(conversion) if conversion else -1
        # A node for each place: what is made of one is not that of another.
        value = copy.deepcopy(values[at]) if at in used else values[at]
        parts.append(ast.FormattedValue(value, shown, _spec(spec or "")))
        used.append(at)
    in_order = used == list(range(len(values)))
    return parts if in_order or all(map(_is_plain, values)) else None


def _is_plain(node: ast.expr) -> bool:
    """Whether an expression only reads names and attributes, whose order nobody sees."""
    kinds = (ast.Name, ast.Attribute, ast.Constant, ast.expr_context)
    return all(isinstance(one, kinds) for one in ast.walk(node))

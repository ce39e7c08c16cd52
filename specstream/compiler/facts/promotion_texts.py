"""Where it would be seen that an int literal has become a float: refused, with its line.

The number is the same, so nothing is said where it is one. Its text is not, nor are the digits of a
large int that was added to it, where these are asked for.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from specstream.compiler.facts.number_kinds import EITHER, WIDE, holds_either
from specstream.compiler.oracle_objects.forms import EmittedForm

if TYPE_CHECKING:
    from specstream.compiler.facts.literal_promotion import LiteralPromotion

__all__ = ["check_either"]

Refuse = Callable[[ast.AST, str, str], NoReturn]

_WAY_OUT = "write the int as a float at its source, such as 0.0 for 0, and float(x) for an int x"
_TEXTS = ("str", "repr", "ascii", "format")
_EXACT = ("int", "round", "floor", "ceil", "trunc", "int64", "uint64", "divmod")


def check_either(joining: LiteralPromotion, refuse: Refuse) -> None:
    """Refuses what would show it."""
    for node in ast.walk(joining.tree):
        for value in _shown(node):
            if holds_either(joining.kind(value)):
                refuse(
                    value,
                    f"the text of {ast.unparse(value)} is asked for, which is a float, and in "
                    "Python may be an int, whose text is '0' and not '0.0'",
                    _WAY_OUT,
                )
        for value in _shown_by_digits(node, joining):
            if joining.kind(value) == WIDE:
                refuse(
                    value,
                    f"all digits of {ast.unparse(value)} are asked for, which is a float, and in "
                    "Python may be an int, which has more of them",
                    _WAY_OUT,
                )


def _shown(node: ast.AST) -> list[ast.expr]:
    """Values whose text is made as that of an int or a float, as it may be."""
    match node:
        case EmittedForm():
            pairs = zip(node.elts, node.shown, strict=True)
            return [part for part, one in pairs if _tells(one)]
        case ast.FormattedValue():
            return [node.value] if _tells(node) else []
        case ast.BinOp(op=ast.Mod(), left=ast.Constant(value=str())):
            return [node.right]
        case ast.Call(func=ast.Name()) if node.func.id in _TEXTS:  # type: ignore[attr-defined]
            return node.args[:1]
        case ast.Call(func=ast.Attribute(attr="format", value=ast.Constant())):
            return [*node.args, *(one.value for one in node.keywords)]
        case ast.Raise(exc=ast.Call()):
            assert isinstance(node.exc, ast.Call)
            return node.exc.args
    return []


def _tells(shown: ast.FormattedValue) -> bool:
    """Whether an int has another text than the same float."""
    if shown.conversion != -1:
        return True
    parts = [] if shown.format_spec is None else shown.format_spec.values  # type: ignore[attr-defined]
    if not all(isinstance(one, ast.Constant) for one in parts):
        return True
    spec = "".join(str(one.value) for one in parts)
    try:
        return any(format(one, spec) != format(float(one), spec) for one in (0, 1, -1234567))
    except ValueError:
        return True


def _shown_by_digits(node: ast.AST, joining: LiteralPromotion) -> list[ast.expr]:
    """Values of which it would be seen, by all their digits, that an int has become a float.

    Operators and functions that ask for all digits: ``%``, ``int(x)``, comparisons."""
    match node:
        case ast.BinOp(op=ast.Mod() | ast.FloorDiv()):
            return [node.left, node.right]
        case ast.AugAssign(op=ast.Mod() | ast.FloorDiv()):
            return [node.value]
        case ast.Compare():
            sides = [node.left, *node.comparators]
            kinds = [joining.kind(one) for one in sides]
            is_wide = any(kind in ("int", "uint", EITHER) for kind in kinds)
            return sides if is_wide or kinds.count(WIDE) > 1 else []
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _EXACT:
            return node.args[:1]
    return []

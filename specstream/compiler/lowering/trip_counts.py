"""How often a loop turns at most, whatever was read: from literals, constants, other such loops."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

__all__ = ["MOST_TRIPS", "Interval", "TripCounts"]

# Loops that turn at most so often, nested ones together, end soon enough by themselves: they do not
# poll. A poll costs a short loop more than it looks, as hardly anything stays in a register across
# the call that may be made there.
MOST_TRIPS = 256

Interval = tuple[int, int]


class TripCounts:
    """The loops around a place that do not poll.

    Args:
        known: gives what a name stands for that is not local; None: nothing that is known.

    Attributes:
        together: how often the innermost of them turns, all in all.
        within: of the variables of loops whose bounds are known: the least and the largest value.
    """

    def __init__(self, known: Callable[[str], Any]) -> None:
        self.known = known
        self.together = 1
        self.within: dict[str, Interval] = {}

    def of(self, node: ast.expr) -> int | None:
        """Of a loop over this; None: not known."""
        if isinstance(node, ast.Tuple | ast.List):
            return (
                None if any(isinstance(one, ast.Starred) for one in node.elts) else len(node.elts)
            )
        value = self.value(node)
        if isinstance(value, tuple):
            return len(value)
        if not isinstance(node, ast.Call) or not node.args or node.keywords:
            return None
        callee = self.value(node.func)
        if callee is enumerate or callee is reversed:
            return self.of(node.args[0])
        return self.of_range(node.args) if callee is range else None

    def of_range(self, arguments: list[ast.expr]) -> int | None:
        bounds = [self.interval(argument) for argument in arguments]
        start, stop, step = (
            ((0, 0), bounds[0], (1, 1)) if len(bounds) == 1 else (*bounds, (1, 1))[:3]
        )
        if start is None or stop is None or step is None or step[0] != step[1] or step[0] == 0:
            return None
        if step[0] > 0:
            return len(range(start[0], stop[1], step[0]))
        return len(range(start[1], stop[0], step[0]))

    def variables(self, loop: ast.For) -> dict[str, Interval]:
        """What the variables of a loop are within, where that is known."""
        target, over = loop.target, loop.iter
        turns = self.of(over)
        if not isinstance(over, ast.Call) or turns is None:
            return {}
        callee = self.value(over.func)
        found: Interval
        if callee is enumerate and len(over.args) == 1:
            at = target.elts[0] if isinstance(target, ast.Tuple) else None
            found = (0, turns)
        elif callee is range:
            at = target
            ends = [self.interval(argument) for argument in over.args[:2]]
            known = [end for end in ends if end is not None]
            # Wider by one end than need be, whatever the direction is.
            found = (min(0, *(low for low, _ in known)), max(0, *(high for _, high in known)))
        else:
            return {}
        if not isinstance(at, ast.Name) or _is_assigned(at.id, [*loop.body, *loop.orelse]):
            return {}
        return {at.id: found}

    def interval(self, node: ast.expr) -> Interval | None:
        """The least and the largest value of an integer."""
        if isinstance(node, ast.Name) and node.id in self.within:
            return self.within[node.id]
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            operand = self.interval(node.operand)
            return None if operand is None else (-operand[1], -operand[0])
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Sub):
            left, right = self.interval(node.left), self.interval(node.right)
            if left is None or right is None:
                return None
            if isinstance(node.op, ast.Add):
                return left[0] + right[0], left[1] + right[1]
            return left[0] - right[1], left[1] - right[0]
        value = self.value(node)
        # Numbers that are no such bounds need no arithmetic of 64 bits to be thought of.
        return (value, value) if type(value) is int and abs(value) <= 2**32 else None

    def value(self, node: ast.expr) -> Any:
        if isinstance(node, ast.Constant):
            return node.value
        return self.known(node.id) if isinstance(node, ast.Name) else None


def _is_assigned(name: str, body: list[ast.stmt]) -> bool:
    for node in (node for statement in body for node in ast.walk(statement)):
        if isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load):
            return True
        if isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name == name:
            return True
    return False

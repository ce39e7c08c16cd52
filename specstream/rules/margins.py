"""By how much a condition of plain Python holds, as an expression.

A comparison gives the difference of its sides: positive where it holds, negative where it does not.
There is no minus zero, so that equal numbers have equal bits.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.schema import Schema
from specstream.errors import DeclarationError
from specstream.rules.formula import Formula, Quantifier, Temporal, captured, walk
from specstream.rules.generate import Generator
from specstream.rules.text import Options
from specstream.rules.writing import placed

__all__ = ["Conditions", "extreme", "minus"]


class Conditions(Generator):
    """An operator in the making, and what its conditions give."""

    def __init__(
        self,
        name: str,
        formula: Formula,
        names: Mapping[str, Any],
        columns: Schema,
        key: tuple[str, ...],
        options: Options,
    ) -> None:
        super().__init__(name, formula, names, columns, key, options)
        self.formula = formula
        self.inf = self.fresh("inf")
        self.names[self.inf] = math.inf
        self.margin, self.alike = self.fresh("margin"), self.fresh("both_or_none")

    # ---- what cannot be told ----

    def error(self, formula: Formula, reason: str) -> DeclarationError:
        return DeclarationError(f"rule {self.name!r}, line {formula.line}: {reason}")

    def check(self) -> None:
        for one in walk(self.formula):
            match one:
                case Quantifier():
                    raise self.error(
                        one,
                        f"{one.text} is about what an event holds, and robustness=True asks "
                        "conditions about columns; expected them joined by and, or, not",
                    )
                case Temporal() if captured(one):
                    raise self.error(
                        one,
                        f"{one.text} compares two events, and robustness=True asks each event by "
                        "itself; expected functions that name their own event alone",
                    )
                case Temporal(name="next_event"):
                    pass
                case Temporal(within=None) if one.is_future:
                    raise self.error(
                        one,
                        f"{one.text} has no end, so that nothing tells by how much it holds; "
                        "expected within=",
                    )

    def no_number(self, atom: Formula, node: ast.expr) -> DeclarationError:
        hint = ""
        match node:
            case ast.Compare(left=left, ops=[ast.Eq() | ast.NotEq()], comparators=[right]) if all(
                map(self.may_be_number, (left, right))
            ):
                way = f"abs({ast.unparse(left)} - {ast.unparse(right)}) <= 0.5"
                hint = f": how far it is from equal, {_written(way)}"
            case ast.Attribute(attr=name) if name in self.columns:
                hint = f": a number, (1 if {_written(ast.unparse(node))} else -1) > 0"
        return self.error(
            atom,
            f"{_written(ast.unparse(node))} is no comparison of numbers, and robustness=True asks "
            f"by how much it holds; expected a >= b, a > b, a <= b or a < b{hint}",
        )

    def may_be_number(self, node: ast.expr) -> bool:
        match node:
            case ast.Constant(value=value):
                return type(value) in (int, float)
            case ast.Attribute(value=ast.Name(id="v0"), attr=name) if name in self.columns:
                return kept_as(self.columns[name]) in (int, float)
            case ast.Name(id=name) if name in self.names:
                return not isinstance(self.names[name], str | bool | None)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd(), operand=operand):
                return self.may_be_number(operand)
            case ast.BinOp(left=left, right=right):
                return self.may_be_number(left) and self.may_be_number(right)
            case ast.IfExp(body=one, orelse=other):
                return self.may_be_number(one) and self.may_be_number(other)
        return not isinstance(
            node, ast.Compare | ast.BoolOp | ast.UnaryOp | ast.JoinedStr | ast.Tuple | ast.List
        )

    # ---- expressions ----

    def of_code(self, atom: Formula, node: ast.expr) -> str:
        """An expression for by how much a condition of plain Python holds."""
        match node:
            case ast.Constant(value=bool(value)):
                return self.inf if value else f"-{self.inf}"
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return minus(self.of_code(atom, operand))
            case ast.BoolOp(op=op, values=values):
                word = "min" if isinstance(op, ast.And) else "max"
                return extreme(word, [self.of_code(atom, one) for one in values])
            case ast.IfExp(test=test, body=body, orelse=other):
                known, yes, no = (self.of_code(atom, one) for one in (test, body, other))
                return f"max(min({known}, {yes}), min({minus(known)}, {no}))"
            case ast.Call(func=ast.Name(id="bool"), args=[one], keywords=[]):
                return self.of_code(atom, one)
            case ast.Call(
                func=ast.Name(id="all" | "any" as word),
                args=[ast.Tuple(elts=some) | ast.List(elts=some)],
                keywords=[],
            ) if some:
                given = [self.of_code(atom, one) for one in some]
                return extreme("min" if word == "all" else "max", given)
            case ast.Compare(left=left, ops=ops, comparators=rights):
                sides = [left, *rights]
                found = [
                    self.compared(atom, node, *of) for of in zip(sides, ops, rights, strict=False)
                ]
                return extreme("min", found)
        raise self.no_number(atom, node)

    def compared(
        self, atom: Formula, node: ast.Compare, left: ast.expr, op: ast.cmpop, right: ast.expr
    ) -> str:
        if isinstance(op, ast.Eq | ast.NotEq) and _is_truth(left) and _is_truth(right):
            alike = f"{self.alike}({self.of_code(atom, left)}, {self.of_code(atom, right)})"
            return alike if isinstance(op, ast.Eq) else minus(alike)
        is_number = self.may_be_number(left) and self.may_be_number(right)
        if not is_number or not isinstance(op, ast.Gt | ast.GtE | ast.Lt | ast.LtE):
            single = ast.Compare(left, [op], [right])
            raise self.no_number(atom, single)
        sides = (right, left) if isinstance(op, ast.Lt | ast.LtE) else (left, right)
        difference = ast.BinOp(sides[0], ast.Sub(), sides[1])
        apart = [ast.Call(ast.Name("float"), [one], []) for one in sides]
        given = [
            placed(ast.unparse(ast.fix_missing_locations(one)), {"v0": self.event}, self.names)
            for one in (
                difference,
                ast.BinOp(apart[0], ast.Sub(), apart[1]),
                ast.Compare(left, [op], [right]),
            )
        ]
        return f"{self.margin}({', '.join(given)})"

    def needed(self, lines: Sequence[str]) -> list[str]:
        """The texts of helpers that statements call."""
        inf, text = self.inf, "\n".join(lines)
        found = []
        if f"{self.margin}(" in text:
            found.append(
                f"def {self.margin}(difference, apart, holds):\n"
                "    # Of two infinities there is none, nor of what is no number.\n"
                "    found = float(difference) + 0.0\n"
                "    if (found < 0.0) if holds else (found > 0.0):\n"
                "        found = apart  # the difference leaves 64 bits\n"
                f"    return found if found == found else {inf} if holds else -{inf}"
            )
        if f"{self.alike}(" in text:
            found.append(
                f"def {self.alike}(one, other):\n"
                "    return max(min(one, other), min(0.0 - one, 0.0 - other))"
            )
        return found


def minus(value: str) -> str:
    """There is no minus zero, so that equal values have equal bits."""
    return f"(0.0 - {value})"


def extreme(word: str, values: list[str]) -> str:
    return values[0] if len(values) == 1 else f"{word}({', '.join(values)})"


def _is_truth(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.UnaryOp(op=ast.Not()) | ast.Constant(value=bool()):
            return True
        case ast.IfExp(body=one, orelse=other):
            return _is_truth(one) and _is_truth(other)
    return False


def _written(code: str) -> str:
    """A condition as people write it, of an event e."""
    return code.replace("v0.", "e.")

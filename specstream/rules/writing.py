"""How conditions are written down, about the event that comes or about one that is kept."""

from __future__ import annotations

import ast
import functools
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from specstream.compiler.language.parsing import parse
from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.pure import pure_mark
from specstream.errors import DeclarationError
from specstream.verbs.writing import ZEROS as VALUES
from specstream.verbs.writing import indented, literal, read

__all__ = [
    *("Current", "NEVER", "Place", "Record", "Stored", "StoredVariable", "Variable", "ZEROS"),
    *("placed", "plain", "truth"),
]

NEVER = -(2**63)
"""In place of a time: there was none."""
ZEROS = {of: literal(value) for of, value in VALUES.items()}
ATTRIBUTES = {"timestamp": int, "source": int, "sequence": int}
_MOST = 16


@dataclass
class Record:
    """A class of records in the text.

    Attributes:
        name: of the class.
        columns: of the events.
        names: that conditions use.
        fields: their types.
        kept: by what they are of an event or a variable, the fields that keep it.
        null: those that say whether it is null.
    """

    name: str
    columns: Mapping[str, Any]
    names: Mapping[str, Any]
    fields: dict[str, type] = field(default_factory=dict)
    kept: dict[str, str] = field(default_factory=dict)
    null: dict[str, str] = field(default_factory=dict)

    def add(self, wanted: str, of: type) -> str:
        """A field."""
        name, count = wanted, 1
        while name in self.fields or name in self.null.values():
            count += 1
            name = f"{wanted}_{count}"
        self.fields[name] = of
        return name

    def keep(self, code: str, wanted: str, of: type, is_nullable: bool = False) -> str:
        """The field that keeps a value of the event."""
        if code not in self.kept:
            self.kept[code] = self.add(wanted, of)
            if is_nullable:
                name = f"{self.kept[code]}_is_null"
                self.null[code] = name
                self.fields[name] = bool
        return self.kept[code]

    def declared(self) -> list[str]:
        """The class.

        Raises:
            DeclarationError: it has too many fields.
        """
        if len(self.fields) > _MOST:
            raise DeclarationError(
                f"{len(self.fields)} values are kept of each event that waits "
                f"({', '.join(self.fields)}); expected at most {_MOST}: name fewer columns in "
                "conditions about other events, and in keep="
            )
        lines = [f"{name}: {of.__name__}" for name, of in self.fields.items()]
        return [f"class {self.name}(ss.Record):", *indented(lines or ["nothing: int = 0"])]

    def made(self, places: Mapping[str, Place], given: Mapping[str, str]) -> str:
        """An expression for one, with what the event says, and what is given by field."""
        values = dict(given)
        for code, name in self.kept.items():
            if code.startswith("="):  # a value that has been computed
                values[name] = code[1:]
                continue
            value = placed(code, places, self.names)
            if code in self.null:
                of = self.fields[name]
                values[name] = f"{ZEROS[of]} if {value} is None else {value}"
                values[self.null[code]] = f"{value} is None"
            else:
                values[name] = value
        for name, of in self.fields.items():
            values.setdefault(name, ZEROS[of])
        return f"{self.name}({', '.join(f'{name}={values[name]}' for name in self.fields)})"


class Place(ABC):
    """Where the values of an event are."""

    @abstractmethod
    def attribute(self, variable: str, name: str) -> str:
        """A column of it."""

    @abstractmethod
    def called(self, variable: str, code: str, of: type) -> str | None:
        """What a pure function gives of it; None: it is called where the event is."""

    @abstractmethod
    def whole(self, variable: str) -> str:
        """The event, or value, as a whole."""


@dataclass
class Current(Place):
    """The event that comes."""

    columns: Mapping[str, Any]
    keys: Mapping[str, str] = field(default_factory=dict)
    name: str = "event"

    def attribute(self, variable: str, name: str) -> str:
        # Of a nullable key it is known that it is none.
        return self.keys.get(name) or read(name, self.name)

    def null(self, variable: str, name: str) -> tuple[str, str] | None:
        """Whether a nullable column is null, and its value where it is not."""
        column = self.columns.get(name)
        if column is None or not column.nullable or name in self.keys:
            return None
        found = read(name, self.name)
        return f"({found} is None)", found

    def called(self, variable: str, code: str, of: type) -> str | None:
        return None

    def whole(self, variable: str) -> str:
        return self.name


@dataclass
class Stored(Place):
    """A record that has been kept of an event."""

    record: Record
    name: str

    def attribute(self, variable: str, name: str) -> str:
        code = f"{variable_zero(variable)}.{name}"
        if name in ATTRIBUTES:
            return f"{self.name}.{self.record.keep(code, name, ATTRIBUTES[name])}"
        column = self.record.columns[name]
        is_nullable = column.nullable
        kept = self.record.keep(code, _field(name), kept_as(column), is_nullable)
        found = f"{self.name}.{kept}"
        if not is_nullable:
            return found
        return f"(None if {self.name}.{self.record.null[code]} else {found})"

    def null(self, variable: str, name: str) -> tuple[str, str] | None:
        """Whether a nullable column is null, and its value where it is not."""
        column = self.record.columns.get(name)
        if column is None or not column.nullable:
            return None
        self.attribute(variable, name)
        code = f"{variable_zero(variable)}.{name}"
        kept = self.record.kept[code]
        return f"{self.name}.{self.record.null[code]}", f"{self.name}.{kept}"

    def called(self, variable: str, code: str, of: type) -> str | None:
        return f"{self.name}.{self.record.keep(code, 'value', of)}"

    def whole(self, variable: str) -> str:
        raise DeclarationError(
            "the event as a whole goes into a function that is no single expression, and another "
            "event is asked about it; expected a function that returns a condition, or that takes "
            "the columns it needs"
        )


@dataclass
class Variable(Place):
    """A variable of a quantifier, while its loop runs."""

    name: str

    def attribute(self, variable: str, name: str) -> str:
        return f"{self.name}.{name}"

    def called(self, variable: str, code: str, of: type) -> str | None:
        return None

    def whole(self, variable: str) -> str:
        return self.name


@dataclass
class StoredVariable(Place):
    """A record that has been kept of a variable of a quantifier.

    Attributes:
        record: its class.
        name: of the record.
        types: of the variable's fields; "" stands for a variable without.
    """

    record: Record
    name: str
    types: Mapping[str, type]

    def _kept(self, code: str, wanted: str, field: str) -> str:
        if field not in self.types:
            what = code.removeprefix("each_")
            raise DeclarationError(
                f"{what} is kept until later events come, and its type is not known; expected a "
                "variable over range(...), numbers, or what a pure function gives whose return "
                "annotation is a list of named tuples, of int, float, bool and str"
            )
        return f"{self.name}.{self.record.keep(code, wanted, self.types[field])}"

    def attribute(self, variable: str, name: str) -> str:
        wanted = f"{variable.removeprefix('each_')}_{name}"
        return self._kept(f"{variable}.{name}", wanted, name)

    def called(self, variable: str, code: str, of: type) -> str | None:
        return None

    def whole(self, variable: str) -> str:
        return self._kept(variable, variable.removeprefix("each_"), "")


def variable_zero(name: str) -> str:
    """Kept values are told by the event that they are kept of."""
    return "v0" if name.startswith("v") else name


def _field(column: str) -> str:
    return f"{column}_" if column in ("before", "after", "number", "known", "time") else column


class _Placing(ast.NodeTransformer):
    def __init__(self, places: Mapping[str, Place], names: Mapping[str, Any]) -> None:
        self.places, self.names = places, names
        # What has been put in for nullable columns of the event that comes.
        self._nullable: set[str] = set()

    def visit_Call(self, node: ast.Call) -> ast.expr:
        if isinstance(node.func, ast.Name):
            mark = pure_mark(self.names.get(node.func.id))
            if mark is not None:
                used = {
                    one.id
                    for one in ast.walk(node)
                    if isinstance(one, ast.Name) and one.id in self.places
                }
                if len(used) == 1 and isinstance(self.places[next(iter(used))], Stored):
                    (name,) = used
                    if mark.returns not in ZEROS:
                        raise DeclarationError(
                            f"{ast.unparse(node)} is asked of an event that is past, or that "
                            "waits; expected a pure function that returns int, float, bool or "
                            "str, as that is what is kept"
                        )
                    code = ast.unparse(node).replace(name, variable_zero(name))
                    found = self.places[name].called(name, code, mark.returns)
                    if found is not None:
                        return parse(found, "eval").body
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        self.generic_visit(node)
        for side in ("left", "right"):
            setattr(node, side, self._none_for_null(getattr(node, side)))
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.expr:
        self.generic_visit(node)
        if not isinstance(node.op, ast.Not):
            node.operand = self._none_for_null(node.operand)
        return node

    def _none_for_null(self, node: ast.expr) -> ast.expr:
        """A null is no number, as in Python; an operator would read it as zero."""
        code = ast.unparse(node)
        if code not in self._nullable:
            return node
        return parse(f"(None if {code} is None else {code})", "eval").body

    def visit_Compare(self, node: ast.Compare) -> ast.expr:
        """Two nulls are equal, and a null equals nothing else, as in Python; an operator would read
        it as zero. They have no order."""
        alike = len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq | ast.NotEq)
        sides = [node.left, *node.comparators]
        nulls = [self._null(one) for one in sides] if alike else []
        is_none = any(isinstance(one, ast.Constant) and one.value is None for one in sides)
        if not any(nulls) or is_none:
            self.generic_visit(node)
            if any(isinstance(op, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for op in node.ops):
                node.left = self._none_for_null(node.left)
                node.comparators = [self._none_for_null(one) for one in node.comparators]
            return node
        values = [
            raw if raw is not None else ast.unparse(self.visit(one))
            for one, (_, raw) in zip(sides, (found or ("", None) for found in nulls), strict=True)
        ]
        equal = f"({values[0]} == {values[1]})"
        given = [found[0] for found in nulls if found is not None]
        if len(given) == 2:
            code = f"({given[0]} == {given[1]} and ({given[0]} or {equal}))"
        else:
            code = f"(not {given[0]} and {equal})"
        if isinstance(node.ops[0], ast.NotEq):
            code = f"(not {code})"
        return parse(code, "eval").body

    def _null(self, node: ast.expr) -> tuple[str, str] | None:
        """Whether a nullable column is null, and its value where it is not; None: it is none."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            place = self.places.get(node.value.id)
            if isinstance(place, Current | Stored):
                return place.null(node.value.id, node.attr)
        return None

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        if isinstance(node.value, ast.Name) and node.value.id in self.places:
            place = self.places[node.value.id]
            if node.attr == "is_null" and isinstance(place, Stored):
                raise DeclarationError(
                    "is_null is asked of an event that is past, or that waits; write "
                    "e.column is None"
                )
            found = place.attribute(node.value.id, node.attr)
            if isinstance(place, Current) and place.null(node.value.id, node.attr) is not None:
                self._nullable.add(found)
            return parse(found, "eval").body
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.places:
            found = self.places[node.id].whole(node.id)
            return parse(found, "eval").body
        return node


def placed(code: str, places: Mapping[str, Place], names: Mapping[str, Any]) -> str:
    """An expression, with events where they are."""
    tree = parse(code, "eval")
    made = _Placing(places, names).visit(tree)
    return ast.unparse(ast.fix_missing_locations(made))


@functools.cache
def is_truth(code: str) -> bool:
    """Whether an expression is a bool for certain."""
    return _is_truth(parse(code, "eval").body)


def _is_truth(node: ast.expr) -> bool:
    match node:
        case ast.Compare() | ast.Constant(value=bool()):
            return True
        case ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=values):
            return all(map(_is_truth, values))
        case ast.Call(func=ast.Name(id="bool" | "any" | "all")):
            return True
    return False


def truth(code: str) -> str:
    """An expression for its truth."""
    return code if is_truth(code) else f"bool({code})"


def plain(code: str) -> str:
    """An expression without brackets that it does not need."""
    return ast.unparse(parse(code, "eval"))

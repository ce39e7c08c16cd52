"""Integer literals that begin what is otherwise a float: ``total = 0``, later ``total += 0.5``.

A name has one type in compiled code, and Python's zero is an int. So a literal that goes where
floats go is made a float, in the tree that both rewritings start from: hence the oracle computes
with the same float, bit for bit. Where floats go is told from what an operator knows before it is
compiled: columns, fields, literals, operators and functions. What is not seen to be a float stays
what it is, and where an int then meets a float, Numba's pass over types refuses it.

Kinds are "int", "float", "bool" and "str"; of a list, array, dict or tuple, what it holds. They are
those of compiled code, of the state as well: :mod:`specstream.compiler.event_alone` asks for the
types of what Python computes, which are more, and where not to know one is an answer. That is why
there are two inferences over one tree.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from specstream.compiler.frozen import FrozenArray, FrozenDict, FrozenList
from specstream.declarations.containers import Container, Shape, record_shape
from specstream.declarations.records import is_record
from specstream.declarations.schema import Schema
from specstream.declarations.state import Layout

__all__ = ["Joining", "Known"]


@dataclass(frozen=True)
class Items:
    """What a list, an array, or the values of a dict are."""

    of: Any
    keys: Any = None


@dataclass(frozen=True)
class Parts:
    """What the parts of a tuple are."""

    of: tuple[Any, ...]


@dataclass(frozen=True)
class Fields:
    """A record: the kinds of its fields by their names."""

    of: Shape

    def kind(self, name: str) -> Any:
        parts = dict(zip(self.of.names, self.of.parts, strict=True))
        return parts[name].number if name in parts else None


@dataclass
class Known:
    """What an operator knows before it is compiled; kinds of arguments by function."""

    event: Schema
    layout: Layout
    parse: Callable[[types.FunctionType], ast.FunctionDef]
    arguments: dict[types.FunctionType, dict[str, Any]]
    open: list[types.FunctionType]


_INTS: tuple[str, ...] = (
    "int",
    "len",
    "round",
    "floor",
    "ceil",
    "trunc",
    "gcd",
    "lcm",
    "isqrt",
    "comb",
    "perm",
)
_INTS += ("factorial", "int64", "uint64", "integer", "bit_count", "bit_length", "index", "count")
_TAKING_ONE = ("pop", "popleft", "peek", "pushpop", "replace")
_OF_ARGUMENTS = ("min", "max", "abs", "sum", "sorted", "list", "reversed", "tuple", "fsum", "prod")


def joined(one: Any, other: Any) -> Any:
    """The kind of what is one here and the other there."""
    if one is None or other is None or one == other:
        return other if one is None else one
    if "float" in (one, other):
        return "float"
    if isinstance(one, Items) and isinstance(other, Items):
        return Items(joined(one.of, other.of), joined(one.keys, other.keys))
    if isinstance(one, Parts) and isinstance(other, Parts) and len(one.of) == len(other.of):
        return Parts(tuple(map(joined, one.of, other.of)))
    return one


class Joining:
    """Goes through one function, and makes floats of the literals that are meant to be some."""

    def __init__(
        self, known: Known, tree: ast.FunctionDef, function: types.FunctionType, names: Any
    ) -> None:
        self.known = known
        self.tree = tree
        self.values = names  # by name, what is not a local
        self.kinds: dict[str, Any] = {
            name: kind
            for name, kind in known.arguments.get(function, {}).items()
            if kind != "mixed"
        }
        self.functions: dict[str, ast.FunctionDef | ast.Lambda] = {}
        self.returned: dict[ast.AST, list[ast.expr]] = {}
        self.returns: dict[ast.AST, Any] = {}

    def run(self) -> Any:
        """Learns kinds until nothing is new; gives that of the result."""
        self.find_functions()
        for _ in range(4):
            before = dict(self.kinds), dict(self.returns)
            for node in ast.walk(self.tree):
                self.learn(node)
            for owner, values in self.returned.items():
                for value in values:
                    self.returns[owner] = joined(self.returns.get(owner), self.kind(value))
            if before == (self.kinds, self.returns):
                break
        return self.returns.get(self.tree)

    def apply(self) -> None:
        """Makes floats of literals, in the tree."""
        self.run()
        for node in ast.walk(self.tree):
            self.convert_in(node)
        for owner, values in self.returned.items():
            for value in values:
                self.convert(value, self.returns.get(owner))

    # ---- what is known ----

    def find_functions(self) -> None:
        def walk(node: ast.AST, owner: ast.AST) -> None:
            for child in ast.iter_child_nodes(node):
                inside = child if isinstance(child, ast.FunctionDef | ast.Lambda) else owner
                if isinstance(child, ast.FunctionDef):
                    self.functions[child.name] = child
                elif isinstance(child, ast.Assign) and isinstance(child.value, ast.Lambda):
                    for target in child.targets:
                        if isinstance(target, ast.Name):
                            self.functions[target.id] = child.value
                elif isinstance(child, ast.Return) and child.value is not None:
                    self.returned.setdefault(owner, []).append(child.value)
                elif isinstance(child, ast.Lambda):
                    self.returned.setdefault(child, []).append(child.body)
                walk(child, inside)

        walk(self.tree, self.tree)

    def learn(self, node: ast.AST) -> None:
        """What an assignment, a loop or a method tells of names."""
        match node:
            case ast.Assign():
                for target in node.targets:
                    self.bind(target, self.kind(node.value))
            case ast.AnnAssign(value=ast.expr()) | ast.NamedExpr():
                assert node.value is not None
                self.bind(node.target, self.kind(node.value))
            case ast.AugAssign():
                load = _as_load(node.target)
                self.bind(node.target, self.operation(node.op, load, node.value))
            case ast.For() | ast.comprehension():
                self.bind(node.target, self.item(self.kind(node.iter)))
            case ast.Call(func=ast.Attribute(value=ast.Name())):
                assert isinstance(node.func, ast.Attribute)
                assert isinstance(node.func.value, ast.Name)
                if node.func.attr in ("append", "add", "insert", "setdefault") and node.args:
                    self.hold(node.func.value.id, self.kind(node.args[-1]))
            case ast.Call(func=ast.Name()):
                assert isinstance(node.func, ast.Name)
                inner = self.functions.get(node.func.id)
                if inner is None:
                    self.kind(node)  # which keeps what a helper is given
                else:
                    self.kinds |= {
                        name: joined(self.kinds.get(name), kind)
                        for name, kind in self.given(inner.args, node).items()
                    }

    def bind(self, target: ast.expr, kind: Any) -> None:
        if isinstance(target, ast.Name):
            self.kinds[target.id] = joined(self.kinds.get(target.id), kind)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.hold(target.value.id, kind)
        elif isinstance(target, ast.Tuple | ast.List):
            for at, part in enumerate(target.elts):
                of = kind.of if isinstance(kind, Parts) else ()
                self.bind(part, of[at] if at < len(of) else self.item(kind))

    def hold(self, name: str, kind: Any) -> None:
        """Something is put into a local list or dict."""
        before = self.kinds.get(name)
        if isinstance(before, Items):
            self.kinds[name] = Items(joined(before.of, kind), before.keys)

    @staticmethod
    def item(kind: Any) -> Any:
        if isinstance(kind, Items):
            return kind.of if kind.keys is None else kind.keys
        if isinstance(kind, Parts):
            found = None
            for part in kind.of:
                found = joined(found, part)
            return found
        return None

    def given(self, arguments: ast.arguments, call: ast.Call) -> dict[str, Any]:
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        pairs = [*zip(names, call.args, strict=False)]
        pairs += [(one.arg, one.value) for one in call.keywords if one.arg is not None]
        return {name: self.kind(value) for name, value in pairs}

    def kind(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return _kind_of(node.value)
            case ast.Name():
                if node.id in self.kinds:
                    return self.kinds[node.id]
                return _kind_of(self.values.get(node.id))
            case ast.UnaryOp():
                return "bool" if isinstance(node.op, ast.Not) else self.kind(node.operand)
            case ast.BinOp():
                return self.operation(node.op, node.left, node.right)
            case ast.BoolOp():
                return self.all_of(node.values)
            case ast.IfExp():
                return joined(self.kind(node.body), self.kind(node.orelse))
            case ast.Compare():
                return "bool"
            case ast.NamedExpr():
                return self.kind(node.value)
            case ast.Tuple():
                return Parts(tuple(map(self.kind, node.elts)))
            case ast.List() | ast.Set():
                return Items(self.all_of(node.elts))
            case ast.Dict():
                keys = self.all_of([key for key in node.keys if key is not None])
                return Items(self.all_of(node.values), keys or "int")
            case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
                return Items(self.kind(node.elt))
            case ast.DictComp():
                return Items(self.kind(node.value), self.kind(node.key) or "int")
            case ast.Attribute():
                return self.attribute(node)
            case ast.Subscript():
                return self.subscript(node)
            case ast.Call():
                return self.call(node)
        return None

    def all_of(self, values: Iterable[ast.expr]) -> Any:
        found = None
        for value in values:
            found = joined(found, self.kind(value))
        return found

    def operation(self, op: ast.operator, left: ast.expr, right: ast.expr) -> Any:
        one, other = self.kind(left), self.kind(right)
        if isinstance(one, Items | Parts) or isinstance(other, Items | Parts):
            whole = one if isinstance(one, Items | Parts) else other
            return joined(one, other) if isinstance(op, ast.Add) else whole
        if isinstance(op, ast.Div) or "float" in (one, other):
            return "float"
        return "int" if one is not None and other is not None else None

    def attribute(self, node: ast.Attribute) -> Any:
        owner = self.kinds.get(node.value.id) if isinstance(node.value, ast.Name) else None
        if owner == "event":
            return self.known.event.kind(node.attr)
        if owner == "state":
            field = self.known.layout.field(node.attr)
            if field is None or field.space == "locks":
                return None
            if field.container is not None:
                return _held(field.container)
            kind: Any = {"uint": "int"}.get(field.kind, field.kind)
            if field.record is not None:
                kind = Fields(field.record)
            for _ in field.shape[1:] if field.record is not None else field.shape:
                kind = Items(kind)
            return kind
        of = self.kind(node.value)
        if isinstance(of, Fields):
            return of.kind(node.attr)
        if isinstance(node.value, ast.Name) and node.value.id not in self.kinds:
            return _kind_of(getattr(self.values.get(node.value.id), node.attr, None))
        return None

    def subscript(self, node: ast.Subscript) -> Any:
        of = self.kind(node.value)
        index = node.slice
        if isinstance(index, ast.Slice):
            return of
        if isinstance(of, Parts):
            at: Any = index.value if isinstance(index, ast.Constant) else None
            is_part = type(at) is int and -len(of.of) <= at < len(of.of)
            return of.of[at] if is_part else self.item(of)
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if not isinstance(of, Items):
                return None
            of = of if isinstance(part, ast.Slice) else of.of
            if of is not None and isinstance(of, Items) and of.keys is not None:
                break
        return of

    def call(self, node: ast.Call) -> Any:
        callee = node.func
        name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        if name in self.functions:
            return self.returns.get(self.functions[name])
        value = self.values.get(name) if isinstance(callee, ast.Name) else None
        if isinstance(value, types.FunctionType) and not str(value.__module__).startswith(
            "specstream"
        ):
            return self.helper(value, node)
        if isinstance(value, type) and is_record(value):
            return Fields(record_shape(value))
        if isinstance(callee, ast.Attribute):
            owner = self.kind(callee.value)
            if isinstance(owner, Items):
                if name in ("get", "setdefault", "min", "max", "sum", *_TAKING_ONE):
                    return owner.of
                if name in ("copy", "tolist", "values", "keys"):
                    return Items(owner.keys if name == "keys" else owner.of)
                if name == "items":
                    return Items(Parts((owner.keys, owner.of)))
                if name in ("mean",):
                    return "float"
        name = getattr(value, "__name__", name)
        if name == "round" and len(node.args) == 2:
            return self.kind(node.args[0])
        if name in _INTS:
            return "int"
        if name in _OF_ARGUMENTS:
            kinds = [self.kind(one) for one in node.args]
            if name in ("sorted", "list", "reversed", "tuple"):
                return Items(self.item(kinds[0])) if kinds else Items(None)
            found = None
            for kind in kinds:
                found = joined(found, self.item(kind) if isinstance(kind, Items) else kind)
            return found
        if name in ("range",):
            return Items("int")
        if name == "next" and node.args:
            return self.joined_default(node)
        if name == "enumerate" and node.args:
            return Items(Parts(("int", self.item(self.kind(node.args[0])))))
        if name == "zip":
            return Items(Parts(tuple(self.item(self.kind(one)) for one in node.args)))
        if name == "dict":
            return Items(None, "int")
        if name == "set":
            return Items(None)
        is_math = getattr(value, "__module__", "") == "math" or (
            isinstance(callee, ast.Attribute)
            and isinstance(callee.value, ast.Name)
            and getattr(self.values.get(callee.value.id), "__name__", "") == "math"
        )
        is_float = is_math or name in ("float", "float64", "random", "normal")
        return "float" if is_float and not name.startswith("is") else None

    def joined_default(self, node: ast.Call) -> Any:
        """What ``next`` gives, of a generator and a default."""
        return joined(self.item(self.kind(node.args[0])), self.all_of(node.args[1:]))

    def helper(self, function: types.FunctionType, call: ast.Call) -> Any:
        """What a function of the user's returns; what it is given is kept for it."""
        if function in self.known.open or len(self.known.open) > 8:
            return None
        try:
            tree = self.known.parse(function)
        except Exception:
            return None  # it is refused where it is compiled
        known = self.known.arguments.setdefault(function, {})
        for name, kind in self.given(tree.args, call).items():
            # Compiled for each; what is a float in one call and an int in another stays open.
            known[name] = kind if known.get(name) in (None, kind) else "mixed"
        names = {**function.__globals__, **_closed_over(function)}
        self.known.open.append(function)
        found = Joining(self.known, tree, function, names).run()
        self.known.open.pop()
        return found

    # ---- making floats ----

    def convert_in(self, node: ast.AST) -> None:
        match node:
            case ast.Assign():
                for target in node.targets:
                    self.convert_for(target, node.value)
            case ast.AnnAssign(value=ast.expr()) | ast.NamedExpr():
                assert node.value is not None
                self.convert_for(node.target, node.value)
            case ast.IfExp() | ast.BoolOp() | ast.List() | ast.Dict():
                if not isinstance(getattr(node, "ctx", None), ast.Store):
                    self.convert(node, self.kind(node))
            case ast.Call():
                self.begin_sum(node)
                self.convert_arguments(node)

    def begin_sum(self, node: ast.Call) -> None:
        """The sum of no floats is 0.0, as compiled code has it, and not an int."""
        is_sum = isinstance(node.func, ast.Name) and node.func.id == "sum"
        if not is_sum or "sum" in self.kinds or len(node.args) != 1 or node.keywords:
            return
        (summed,) = node.args
        made = summed.id in self.made() if isinstance(summed, ast.Name) else _makes(summed)
        if made and self.item(self.kind(summed)) == "float":
            node.args.append(ast.copy_location(ast.Constant(0.0), node))

    def made(self) -> set[str]:
        """Names of lists, dicts and sets that the function makes."""
        found: set[str] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and _makes(node.value):
                found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
            elif (
                isinstance(node, ast.AnnAssign | ast.NamedExpr)
                and isinstance(node.target, ast.Name)
                and node.value is not None
                and _makes(node.value)
            ):
                found.add(node.target.id)
        return found

    def convert_for(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.convert(value, self.kinds.get(target.id))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=False):
                self.convert_for(one, part)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            held = self.kinds.get(target.value.id)
            self.convert(value, held.of if isinstance(held, Items) else None)

    def convert_arguments(self, node: ast.Call) -> None:
        callee = node.func
        if isinstance(callee, ast.Name) and callee.id in ("min", "max"):
            kind = self.kind(node)
            for one in node.args if len(node.args) > 1 else []:
                self.convert(one, kind)
            for keyword in node.keywords:
                if keyword.arg == "default":
                    self.convert(keyword.value, kind)
        elif isinstance(callee, ast.Name) and callee.id == "next":
            for one in node.args[1:]:
                self.convert(one, self.kind(node))
        elif isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name):
            held = self.kinds.get(callee.value.id) or _kind_of(self.values.get(callee.value.id))
            puts = ("append", "add", "insert", "setdefault", "get", "pop")
            if isinstance(held, Items) and callee.attr in puts and node.args:
                of_keys = held.keys is not None and len(node.args) < 2
                if not of_keys and not (callee.attr == "pop" and held.keys is None):
                    self.convert(node.args[-1], held.of)

    def convert(self, node: ast.expr, kind: Any) -> None:
        """Makes floats of literals in what is to be of a kind."""
        match node:
            case ast.IfExp():
                self.convert(node.body, kind)
                self.convert(node.orelse, kind)
            case ast.BoolOp():
                for operand in node.values:
                    self.convert(operand, kind)
            case ast.NamedExpr():
                self.convert(node.value, kind)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd()):
                self.convert(node.operand, kind)
            case ast.Constant():
                value: Any = node.value
                if kind == "float" and type(value) is int and abs(value) <= 2**53:
                    node.value = float(value)
            case ast.Tuple() if isinstance(kind, Parts) and len(kind.of) == len(node.elts):
                for part, of in zip(node.elts, kind.of, strict=True):
                    self.convert(part, of)
            case ast.List() | ast.Set() if isinstance(kind, Items):
                for part in node.elts:
                    self.convert(part, kind.of)
            case ast.Dict() if isinstance(kind, Items):
                for part in node.values:
                    self.convert(part, kind.of)
            case ast.ListComp() if isinstance(kind, Items):
                self.convert(node.elt, kind.of)
            case ast.DictComp() if isinstance(kind, Items):
                self.convert(node.value, kind.of)
            case ast.BinOp(op=ast.Mult() | ast.Add()) if isinstance(kind, Items):
                for side in (node.left, node.right):
                    if isinstance(side, ast.List | ast.BinOp):
                        self.convert(side, kind)


def _held(of: Container) -> Items:
    """What a container of the state holds."""
    keys, values = (_of_shape(shape) if shape.parts else None for shape in (of.key, of.value))
    return Items(keys) if of.kind == "set" else Items(values, keys)


def _of_shape(shape: Shape) -> Any:
    if shape.record is not None:
        return Fields(shape)
    kinds = tuple(part.number for part in shape.parts)
    return Parts(kinds) if shape.is_tuple else kinds[0]


def _makes(node: ast.expr) -> bool:
    """Whether an expression is a list, dict, set or generator of the function's own."""
    if isinstance(node, ast.BinOp):
        return _makes(node.left) or _makes(node.right)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in ("list", "sorted", "dict", "set", "values", "keys", "copy")
    comprehensions = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
    return isinstance(node, (ast.List, ast.Set, ast.Dict, *comprehensions))


def _as_load(target: ast.expr) -> ast.expr:
    if isinstance(target, ast.Name):
        return ast.Name(target.id, ast.Load())
    if isinstance(target, ast.Subscript):
        return ast.Subscript(target.value, target.slice, ast.Load())
    assert isinstance(target, ast.Attribute)
    return ast.Attribute(target.value, target.attr, ast.Load())


def _closed_over(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found


def _kind_of(value: Any) -> Any:
    """The kind of a constant."""
    if isinstance(value, bool | np.bool_):
        return "bool"
    if isinstance(value, float | np.floating):
        return "float"
    if isinstance(value, int | np.integer):
        return "int"
    if isinstance(value, str):
        return "str"
    if isinstance(value, FrozenArray):
        return _kind_of(value.array)
    if isinstance(value, FrozenDict):
        return _kind_of(dict(value.items[:100]))
    if isinstance(value, FrozenList):
        return Items(_joined_kinds(value))
    if isinstance(value, tuple):
        return Parts(tuple(map(_kind_of, value)))
    if isinstance(value, np.ndarray):
        kind: Any = "float" if value.dtype.kind == "f" else "int"
        for _ in value.shape:
            kind = Items(kind)
        return kind
    if isinstance(value, list | set | frozenset):
        return Items(_joined_kinds(list(value)))
    if isinstance(value, dict):
        return Items(_joined_kinds(list(value.values())), _joined_kinds(list(value)) or "int")
    return None


def _joined_kinds(values: Sequence[Any]) -> Any:
    found = None
    for value in values[:100]:
        found = joined(found, _kind_of(value))
    return found

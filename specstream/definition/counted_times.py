"""Whether an operator goes by the numbers of times: adds one to ``event.timestamp``, sets a timer
to one, lets entries expire after one.

Such an operator means something else with an order column of another unit. It is read from the
syntax: names, fields and attributes that are given a time anywhere hold times everywhere, and what
is left of a subtraction of two times is a span. A number beside either of them counts. What is
missed is not asked for its unit, and runs as before; so this errs on the side of silence where a
time goes through a container of several things.
"""

from __future__ import annotations

import ast
import itertools
import textwrap
from collections.abc import Callable, Iterator
from pathlib import PurePath
from typing import Any, Literal

from specstream.columns.instants import when
from specstream.compiler.frontend.program import Program, Written
from specstream.compiler.language.parsing import parse
from specstream.declarations.records import is_record, record_fields
from specstream.declarations.state_layout import Layout

__all__ = ["counts_times"]

Kind = Literal["time", "span"]

_TAKES = ("get", "pop", "popleft", "peek", "setdefault")
_PUTS = ("append", "appendleft", "add", "push", "set", "insert", "setdefault")
_SAME = ("max", "min", "abs", "int", "float", "round")
_ARITHMETIC = {
    ast.Add: "adds to",
    ast.Sub: "subtracts from",
    ast.Mult: "multiplies",
    ast.Div: "divides",
    ast.FloorDiv: "divides",
    ast.Mod: "takes the remainder of",
}
_CALLED = {"time": "a time", "span": "a difference of times"}


def counts_times(program: Program, layout: Layout) -> str:
    """Where an operator goes by the numbers of times, as a message has it; empty: nowhere.

    Args:
        program: of its function.
        layout: of its state.
    """
    for field in layout.containers:
        container = field.container
        if container is not None and container.expires and not container.is_duration:
            return (
                f"entries of field {field.name!r} expire after {container.expires}, a number of "
                "units of the order column"
            )
    if not program.reads_timestamp:
        return ""
    written, entries = list(program.written.values()), [len(program.written) - 1]
    if program.on_timer is not None:
        written += program.on_timer.written.values()
        entries.append(len(written) - 1)
    entries = [at for at in dict.fromkeys(entries) if at >= 0]
    timers = None if layout.timers is None else layout.timers.name
    return _Times(written, entries, timers).counted()


class _Times:
    """What holds times in some functions.

    Args:
        written: the functions.
        entries: which of them are the operator's own, and that of its timers.
        timers: the field of the timers; None: there is none.
    """

    def __init__(self, written: list[Written], entries: list[int], timers: str | None) -> None:
        self._entries = entries
        # As written: an interpreted function may name attributes while it runs.
        self._trees = [(one, parse(textwrap.dedent(one.text)).body[0]) for one in written]
        self._names: dict[str, Any] = {}
        for one in written:
            self._names |= one.names
        self._parameters = {
            tree.name: [of.arg for of in tree.args.args]
            for _, tree in self._trees
            if isinstance(tree, ast.FunctionDef)
        }
        self._timers = timers
        self._known: dict[str, Kind] = {}

    def counted(self) -> str:
        """The first place that counts."""
        while self._spread():
            pass
        called = self._called()
        for written, tree in self._trees:
            for node in self._live(tree) if tree in called else ():
                found = self._counts(node)
                if found:
                    line = written.line + getattr(node, "lineno", 1) - 1
                    return f"line {line} of {PurePath(written.filename).name} {found}"
        return ""

    # ---- what holds times ----

    def _spread(self) -> bool:
        """Notes what the known times are put into; whether anything was new."""
        before = len(self._known)
        for _, tree in self._trees:
            function = tree.name if isinstance(tree, ast.FunctionDef) else ""
            for node in ast.walk(tree):
                if isinstance(node, ast.Return) and node.value is not None:
                    self._note(f"{function}()", self._kind(node.value))
                for name, kind in self._put(node):
                    self._note(name, kind)
        return len(self._known) > before

    def _note(self, name: str | None, kind: Kind | None) -> None:
        if name is not None and kind is not None:
            self._known.setdefault(name, kind)

    def _put(self, node: ast.AST) -> Iterator[tuple[str | None, Kind | None]]:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                yield from self._assigned(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
            yield _name(node.target), self._kind(node.value)
        elif isinstance(node, ast.For):
            yield _name(node.target), self._kind(node.iter)
        elif isinstance(node, ast.Call):
            yield from self._given(node)

    def _assigned(
        self, target: ast.expr, value: ast.expr
    ) -> Iterator[tuple[str | None, Kind | None]]:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, of in zip(target.elts, value.elts, strict=False):
                yield _name(one), self._kind(of)
        else:
            yield _name(target), self._kind(value)

    def _given(self, call: ast.Call) -> Iterator[tuple[str | None, Kind | None]]:
        """What a call gives to a container, a record, or a function of the user's own."""
        called = call.func
        if isinstance(called, ast.Attribute) and called.attr in _PUTS:
            is_timer = _name(called.value) == self._timers
            for one in () if is_timer else call.args[-1:]:
                yield _name(called.value), self._kind(one)
        elif isinstance(called, ast.Name):
            names = self._parameters.get(called.id, [])
            of: Any = self._names.get(called.id)
            if is_record(of):
                names = [one.name for one in record_fields(of)]
            for name, one in zip(names, call.args, strict=False):
                yield name, self._kind(one)
            for keyword in call.keywords:
                yield keyword.arg, self._kind(keyword.value)

    def _kind(self, node: ast.expr) -> Kind | None:
        """Whether it is a time, or a difference of two; None: neither, as far as is known."""
        match node:
            case ast.Attribute(attr="timestamp"):
                return "time"
            case ast.Attribute(value=ast.Name(), attr="at") if self._timers is not None:
                return "time"
            case ast.Attribute() | ast.Name():
                return self._known.get(_name(node) or "")
            case ast.Subscript():
                return self._kind(node.value)
            case ast.UnaryOp():
                return None if isinstance(node.op, ast.Not) else self._kind(node.operand)
            case ast.IfExp():
                return self._kind(node.body) or self._kind(node.orelse)
            case ast.BoolOp():
                return self._first(node.values)
            case ast.NamedExpr():
                return self._kind(node.value)
            case ast.BinOp():
                left, right = self._kind(node.left), self._kind(node.right)
                if left == right == "time" and isinstance(node.op, ast.Sub):
                    return "span"
                if not isinstance(node.op, ast.Add | ast.Sub):
                    return None  # a ratio, a number of the hour: it counts where it stands
                return "time" if "time" in (left, right) else left or right
            case ast.Call(func=ast.Attribute() as called) if called.attr in _TAKES:
                is_timer = _name(called.value) == self._timers and self._timers is not None
                return "time" if is_timer else self._kind(called.value)
            case ast.Call(func=ast.Name() as called):
                if called.id in _SAME:
                    return self._first(node.args)
                return self._known.get(f"{called.id}()")
        return None

    def _first(self, nodes: list[ast.expr]) -> Kind | None:
        return next(filter(None, map(self._kind, nodes)), None)

    def _called(self) -> set[ast.AST]:
        """The functions that are called, from the operator's own on, where no constant rules it
        out."""
        named = {tree.name: tree for _, tree in self._trees if isinstance(tree, ast.FunctionDef)}
        waiting, found = [self._trees[at][1] for at in self._entries], set[ast.AST]()
        while waiting:
            tree = waiting.pop()
            if tree not in found:
                found.add(tree)
                names = [one.id for one in self._live(tree) if isinstance(one, ast.Name)]
                waiting += [named[name] for name in names if name in named]
        return found

    def _live(self, tree: ast.AST) -> Iterator[ast.AST]:
        """The nodes of a tree, without branches that a constant rules out."""
        yield tree
        for name, value in ast.iter_fields(tree):
            if isinstance(tree, ast.If) and name in ("body", "orelse"):
                test, is_not = tree.test, False
                if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                    test, is_not = test.operand, True
                known = self._names.get(test.id) if isinstance(test, ast.Name) else None
                if isinstance(known, bool) and (known is not is_not) is (name == "orelse"):
                    continue
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    yield from self._live(one)

    # ---- what counts ----

    def _counts(self, node: ast.AST) -> str:
        """What it does with the number of a time, as a message has it; empty: nothing."""
        if isinstance(node, ast.BinOp):
            return self._computes(node.op, node.left, node.right)
        if isinstance(node, ast.AugAssign):
            is_known = self._kind(node.target) is not None
            return self._computes(node.op, node.target, node.value) if is_known else ""
        if isinstance(node, ast.Compare):
            return self._compares(node)
        if isinstance(node, ast.Call):
            return self._calls(node)
        return ""

    def _computes(self, by: ast.operator, left: ast.expr, right: ast.expr) -> str:
        of_left, of_right = self._kind(left), self._kind(right)
        does = _ARITHMETIC.get(type(by))
        if does is None or (of_left is None) == (of_right is None):
            return ""
        return f"{does} {_CALLED[of_left or of_right or 'time']}, {ast.unparse(left)}" + (
            f" {_SIGNS[type(by)]} {ast.unparse(right)}"
        )

    def _compares(self, node: ast.Compare) -> str:
        sides = [node.left, *node.comparators]
        pairs = [*itertools.pairwise(sides), *itertools.pairwise(sides[::-1])]
        for one, other in pairs:
            kind = self._kind(one)
            is_number = _is_number(other) if kind == "time" else not _is_small(other)
            if kind is not None and self._kind(other) is None and is_number:
                return f"compares {_CALLED[kind]} with a number, {ast.unparse(node)}"
        return ""

    def _calls(self, node: ast.Call) -> str:
        called = node.func
        if (
            isinstance(called, ast.Attribute)
            and called.attr == "set"
            and _name(called.value) == self._timers
            and len(node.args) == 2
            and not _is_the_end(node.args[1])
            and self._kind(node.args[1]) is None
        ):
            return f"sets a timer to a number, {ast.unparse(node.args[1])}"
        has_unit = len(node.args) > 1 or any(one.arg == "unit" for one in node.keywords)
        if has_unit and self._is_when(called) and self._kind(node.args[0]) is not None:
            return f"says what a time counts, {ast.unparse(node)}"
        return ""

    def _is_when(self, called: ast.expr) -> bool:
        of: Callable[..., Any] | None = None
        if isinstance(called, ast.Name):
            of = self._names.get(called.id)
        elif isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            of = getattr(self._names.get(called.value.id), called.attr, None)
        return of is when


_SIGNS = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}


def _name(node: ast.expr) -> str | None:
    """What it is known by: its name, or that of the field that it is a part of."""
    match node:
        case ast.Name():
            return node.id
        case ast.Attribute():
            return node.attr
        case ast.Subscript():
            return _name(node.value)
    return None


def _is_small(node: ast.expr) -> bool:
    """Whether it is None, or a number that means the same in all units or stands for no time."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and node.value in (None, 0, 1)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not _is_small(node)


def _is_the_end(node: ast.expr) -> bool:
    """Whether it is the last time that there is, which says nothing of a unit."""
    return isinstance(node, ast.Constant) and node.value == 2**63 - 1

"""What an operator's functions do with the state and the event, found from their syntax alone.

Nothing is run. The functions are gone through as they were written, from the operator's own into
those that it calls, with what their arguments are; names that stand for a row or a slice of a field
(``row = state.grid[i]``) are followed. All branches count, so what is found is what an event may
do. What a function of this package does (``put``, ``allocate``) counts as done by the user's line.

Longer than most: one visitor over all of the language, whose methods are a line or two each.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from specstream.compiler.frontend.inputs import ASKED, column_of
from specstream.compiler.frontend.program import Program
from specstream.compiler.language import builtin_functions
from specstream.compiler.language.definitions import is_named_lambda, named_lambda
from specstream.compiler.language.methods import names_where
from specstream.compiler.language.user_code import is_own
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Field, Layout
from specstream.declarations.updates import update_name

__all__ = ["Access", "Action", "accesses_of"]

Action = Literal["read", "written", "updated", "operated", "locked"]

_LAZY = builtin_functions.READY | {"iter"}
_NO_READ = builtin_functions.names_where(lambda one: one.reads_no_element)
_WRITERS = ("fill", "sort")
_READERS = names_where(lambda one: not one.changes) | {"dot"}
# Of dicts, sets and timers, what is about one key; and functions of the library that change a list.
_OF_A_KEY = names_where(lambda one: one.has_key)
_CHANGING = {"heapify", "heappop", "heappush", "heappushpop", "heapreplace"}
_CHANGING |= {"insort", "insort_left", "insort_right"}


@dataclass(frozen=True)
class Access:
    """One place in the source where a field is touched.

    Attributes:
        field: its name.
        action: "read"; "written"; "updated" without being read, as ``add`` does; "operated": an
            operation of a boosted field; "locked".
        text: what is touched, as the operator writes it: ``total``, ``counts[k]``, ``grid[i]``.
        at: index along the leading axes, where it is a constant; None: it is computed.
        is_part: a row, a slice or all of it, rather than one element.
        by: the function that updates, or the operation.
        filename: of the source.
        line: number of the line.
        function: that it is in.
        source: text of the line.
    """

    field: str
    action: Action
    text: str
    at: tuple[int | None, ...]
    is_part: bool
    by: str
    filename: str
    line: int
    function: str
    source: str


@dataclass(frozen=True)
class _Location:
    """What a name or an expression stands for: a field's array, or a row or slice of it."""

    field: Field
    text: str
    at: tuple[int | None, ...] = ()
    rank: int = 0
    is_cut: bool = False  # by a slice, behind which indices count from elsewhere

    @property
    def is_record(self) -> bool:
        """Whether it is one record."""
        of = self.field.container
        record = self.field.record if of is None else of.value.record
        return record is not None and self.rank == 0

    @property
    def is_keyed(self) -> bool:
        """Whether it is all of a dict or set."""
        container = self.field.container
        return container is not None and container.is_keyed and self.rank > 0

    def item(self, index: ast.expr) -> _Location:
        parts = index.elts if isinstance(index, ast.Tuple) else [index]
        shown = ", ".join(map(ast.unparse, parts))
        goes_on = self.text.endswith("]") and not self.is_cut  # grid[i][j] is grid[i, j]
        begin = self.text[:-1] + ", " if goes_on else self.text + "["
        found = replace(self, text=f"{begin}{shown}]")
        for part in parts:
            found = found._along(part)
        return found

    def _along(self, index: ast.expr) -> _Location:
        if isinstance(index, ast.Slice):
            return replace(self, is_cut=True)
        if self.is_cut:
            return replace(self, rank=self.rank - 1)
        length = self.field.shape[len(self.at)] if len(self.at) < len(self.field.shape) else 0
        number = _number(index)
        if number is not None and number < 0 and self.field.container is None:
            number += length
        if self.field.container is not None and not self.is_keyed and (number or 0) < 0:
            number = None  # where the end is, the events say
        return replace(self, at=(*self.at, number), rank=self.rank - 1)

    def any_item(self) -> _Location:
        more = self.at if self.is_cut else (*self.at, None)
        return replace(self, text=f"{self.text}[...]", at=more, rank=self.rank - 1)


@dataclass(frozen=True)
class _Record:
    """A record of the state, of which fields are read and written."""

    place: _Location

    def field(self, name: str) -> _Location:
        place = replace(self.place, text=f"{self.place.text}.{name}")
        of = place.field.record
        if of is None or name not in of.names or place.is_cut:
            return place
        return replace(place, at=(*place.at, of.names.index(name)))


@dataclass(frozen=True)
class _Several:
    """A tuple: what each of its elements may stand for."""

    elements: tuple[frozenset[Any], ...]


@dataclass(frozen=True)
class _Each:
    """Something to iterate over that gives these."""

    values: frozenset[Any]


@dataclass(frozen=True)
class _Input:
    """One of several inputs of an event."""

    name: str


@dataclass(frozen=True)
class _Local:
    """A function inside a function, or a lambda."""

    node: ast.FunctionDef | ast.Lambda


_STATE, _EVENT, _EMIT = "the state", "the event", "emit"
_NOTHING: frozenset[Any] = frozenset()
_Values = frozenset[Any]


def _number(index: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(index)
    except ValueError:
        return None
    return value if type(value) is int else None


@dataclass(frozen=True)
class _Site:
    """The user's line that counts, while a function of this package is gone through."""

    filename: str
    line: int
    function: str
    source: str


@dataclass
class Accesses:
    """All that is found.

    Attributes:
        inputs: names of the event's inputs, where it has several.
        found: accesses to fields, in the order in which they are met.
        columns: of the event, that are read.
    """

    program: Program
    layout: Layout
    inputs: frozenset[str] = frozenset()
    found: dict[Access, None] = field(default_factory=dict)
    columns: dict[str, None] = field(default_factory=dict)
    known: dict[Any, _Values] = field(default_factory=dict)

    def call(
        self,
        function: types.FunctionType,
        given: Sequence[_Values],
        named: dict[str, _Values],
        site: _Site | None,
    ) -> _Values:
        """What a call may return."""
        key = (function, tuple(given), tuple(sorted(named.items(), key=lambda one: one[0])), site)
        if key not in self.known:
            self.known[key] = _NOTHING  # should it call itself
            written = self.program.written[function]
            tree = written.tree()
            tree = named_lambda(tree) if is_named_lambda(tree) else tree
            assert isinstance(tree, ast.FunctionDef)
            ast.increment_lineno(tree, written.line - 1)
            walk = _Walk(self, function, {}, site)
            walk.bind_arguments(tree.args, given, named)
            self.known[key] = walk.settled(tree.body)
        return self.known[key]


def accesses_of(
    program: Program, layout: Layout, event: Schema
) -> tuple[tuple[Access, ...], tuple[str, ...]]:
    """The accesses of an operator to its state, and the event's columns that it reads."""
    inputs = {name.partition(".")[0] for name in event.names if "." in name} - set(ASKED)
    all_of = Accesses(program, layout, frozenset(inputs))
    function = next(reversed(program.written))
    given = (_STATE, _EVENT, _EMIT) if layout.fields else (_EVENT, _EMIT)
    all_of.call(function, [frozenset([one]) for one in given], {}, None)
    return tuple(all_of.found), tuple(all_of.columns)


class _Walk(ast.NodeVisitor):
    """One function, with what its names stand for; each visit of an expression tells that of it."""

    def __init__(
        self,
        all_of: Accesses,
        function: types.FunctionType,
        names: dict[str, _Values],
        site: _Site | None,
    ) -> None:
        self.all = all_of
        self.function = function
        self.written = all_of.program.written[function]
        self.names = names
        self.site = site
        self.returned: _Values = _NOTHING

    def settled(self, body: Iterable[ast.stmt]) -> _Values:
        """Goes through it until no name stands for more than before: loops go round."""
        statements = list(body)
        while True:
            before = dict(self.names)
            for statement in statements:
                self.visit(statement)
            if self.names == before:
                return self.returned

    # ---- what is noted ----

    def note(self, action: Action, place: _Location, node: ast.AST, by: str = "") -> None:
        line = getattr(node, "lineno", self.written.line)
        lines = self.written.text.splitlines()
        at = line - self.written.line
        site = self.site or _Site(
            self.written.filename,
            line,
            self.function.__name__,
            lines[at].strip() if 0 <= at < len(lines) else "",
        )
        self.all.found[
            Access(
                place.field.name,
                action,
                place.text if self.site is None else place.field.name,
                place.at,
                place.rank > 0,
                by,
                site.filename,
                site.line,
                site.function,
                site.source,
            )
        ] = None

    def scalar(self, name: str) -> _Location | None:
        found = self.all.layout.field(name)
        if found is None:
            return None
        axes = len(found.shape) - (found.record is not None)
        return _Location(found, name, (), axes if found.container is None else 1)

    def value(self, node: ast.AST | None) -> None:
        """An expression whose value is taken: of an array all of it is read."""
        if node is not None:
            self.read_all(self.visit(node), node)

    def read_all(self, values: _Values, node: ast.AST) -> None:
        for one in values:
            if isinstance(one, _Location | _Record):
                self.note("read", one.place if isinstance(one, _Record) else one, node)
            elif isinstance(one, _Several):
                for element in one.elements:
                    self.read_all(element, node)

    def items(self, values: _Values, node: ast.AST) -> _Values:
        """What iteration gives."""
        found: set[Any] = set()
        for one in values:
            if isinstance(one, _Each):
                found |= one.values
            elif isinstance(one, _Several):
                for element in one.elements:
                    found |= element
            elif isinstance(one, _Location) and one.rank > 1:
                found.add(one.any_item())
            elif isinstance(one, _Location):
                if one.rank == 1 and one.any_item().is_record:
                    found.add(_Record(one.any_item()))
                    if one.field.container is None:
                        continue
                self.note("read", one, node)
        return frozenset(found)

    def bind(self, target: ast.AST, values: _Values, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self.names[target.id] = self.names.get(target.id, _NOTHING) | values
        elif isinstance(target, ast.Starred):
            self.bind(target.value, _NOTHING, node)
        elif isinstance(target, ast.Tuple | ast.List):
            for number, part in enumerate(target.elts):
                self.bind(part, self.element(values, number, node), node)
        elif isinstance(target, ast.Attribute):
            for place in self.fields(target):
                self.note("written", place, target)
        elif isinstance(target, ast.Subscript):
            self.read_all(values, node)
            for place in self.locations(target):
                self.note("written", place, target)

    def element(self, values: _Values, number: int, node: ast.AST) -> _Values:
        found = self.items(frozenset(one for one in values if not isinstance(one, _Several)), node)
        for one in values:
            if isinstance(one, _Several) and number < len(one.elements):
                found |= one.elements[number]
        return found

    def bind_arguments(
        self, arguments: ast.arguments, given: Sequence[_Values], named: dict[str, _Values]
    ) -> None:
        order = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        for name in (*order, *(one.arg for one in arguments.kwonlyargs)):
            self.names[name] = named.get(name, _NOTHING)
        self.names.update(zip(order, given, strict=False))
        for default in (*arguments.defaults, *arguments.kw_defaults):
            self.value(default)

    def fields(self, node: ast.Attribute) -> Iterator[_Location]:
        """The field that ``state.name`` is, or that of a record."""
        base = self.visit(node.value)
        for one in base:
            if isinstance(one, _Record):
                yield one.field(node.attr)
        if _STATE in base:
            place = self.scalar(node.attr)
            if place is not None:
                yield place

    def locations(self, node: ast.Subscript) -> list[_Location]:
        """What an item of an array is."""
        base = self.visit(node.value)
        self.value(node.slice)
        return [one.item(node.slice) for one in base if isinstance(one, _Location) and one.rank > 0]

    # ---- expressions ----

    def generic_visit(self, node: ast.AST) -> _Values:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child)
            else:
                self.visit(child)
        return _NOTHING

    def visit_Name(self, node: ast.Name) -> _Values:
        return self.names.get(node.id, _NOTHING)

    def visit_Attribute(self, node: ast.Attribute) -> _Values:
        base = self.visit(node.value)
        if _EVENT in base and node.attr in self.all.inputs:
            return frozenset([_Input(node.attr)])
        if _EVENT in base:
            self.all.columns[node.attr] = None
        for one in base:
            if isinstance(one, _Input):
                self.all.columns[column_of(one.name, node.attr)] = None
        arrays: list[Any] = []
        for place in self.fields(node):
            if place.is_record and _STATE in base:
                arrays.append(_Record(place))
            elif place.field.space == "locks" or place.rank > 0:
                arrays.append(place)
            else:
                self.note("read", place, node)
        return frozenset(arrays)

    def visit_Subscript(self, node: ast.Subscript) -> _Values:
        views: list[Any] = []
        for place in self.locations(node):
            if place.is_record:
                views.append(_Record(place))
                if place.field.container is not None:
                    self.note("read", place, node)
            elif place.rank > 0 or place.field.space == "locks":
                views.append(place)
            else:
                self.note("read", place, node)
        number = _number(node.slice)
        if number is not None:
            several = [one for one in self.visit(node.value) if isinstance(one, _Several)]
            return frozenset(views) | self.element(frozenset(several), number, node)
        return frozenset(views)

    def visit_Tuple(self, node: ast.Tuple) -> _Values:
        return frozenset([_Several(tuple(map(self.visit, node.elts)))])

    def visit_IfExp(self, node: ast.IfExp) -> _Values:
        self.value(node.test)
        found: _Values = self.visit(node.body) | self.visit(node.orelse)
        return found

    def visit_BoolOp(self, node: ast.BoolOp) -> _Values:
        return frozenset().union(*map(self.visit, node.values))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> _Values:
        values: _Values = self.visit(node.value)
        self.bind(node.target, values, node)
        return values

    def visit_Lambda(self, node: ast.Lambda) -> _Values:
        return frozenset([_Local(node)])

    def comprehension(self, node: Any, *results: ast.expr) -> _Values:
        for part in node.generators:
            self.bind(part.target, self.items(self.visit(part.iter), part.iter), part.iter)
            for condition in part.ifs:
                self.value(condition)
        for result in results:
            self.value(result)
        return _NOTHING

    def visit_ListComp(self, node: ast.ListComp) -> _Values:
        return self.comprehension(node, node.elt)

    def visit_SetComp(self, node: ast.SetComp) -> _Values:
        return self.comprehension(node, node.elt)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> _Values:
        return self.comprehension(node, node.elt)

    def visit_DictComp(self, node: ast.DictComp) -> _Values:
        return self.comprehension(node, node.key, node.value)

    def visit_Compare(self, node: ast.Compare) -> _Values:
        """``key in d`` is about this key alone."""
        self.value(node.left)
        left = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            values = self.visit(right)
            keyed = [one for one in values if isinstance(one, _Location) and one.is_keyed]
            if not isinstance(op, ast.In | ast.NotIn):
                keyed = []
            for place in keyed:
                self.note("read", place.item(left), node)
            self.read_all(values - frozenset(keyed), right)
            left = right
        return _NOTHING

    # ---- calls ----

    def visit_Call(self, node: ast.Call) -> _Values:
        if isinstance(node.func, ast.Attribute):
            return self.method(node, node.func)
        called = self.visit(node.func)
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        function = self.written.names.get(name) if name not in self.names else None
        if isinstance(function, types.FunctionType):
            if update_name(function) is not None:
                return self.update(node, str(update_name(function)))
            if function in self.all.program.written:
                return self.helper(node, function)
        given = [self.visit(one) for one in node.args]
        named = {one.arg or "": self.visit(one.value) for one in node.keywords}
        for one in called | frozenset().union(*given, *named.values()):
            if isinstance(one, _Local):
                # Called here, or by what it is given to, which is asked for nothing but its value.
                own = given if one in called else []
                called = self.local(one.node, own, named if one in called else {})
        if name in _LAZY:
            each = [self.items(values, node) for values in given]
            if name == "zip":
                return frozenset([_Each(frozenset([_Several(tuple(each))]))])
            if name == "enumerate":
                each = [frozenset([_Several((_NOTHING, *each[:1]))])]
            return frozenset([_Each(frozenset().union(*each))])
        for values, part in zip((*given, *named.values()), _parts(node), strict=True):
            if name in _NO_READ:  # the length of an array is known
                values = frozenset(one for one in values if _is_container(one))
            self.read_all(values, part)
        if name in _CHANGING:
            self.changed(given[:1], node)
        return frozenset(one for one in called if not isinstance(one, str | _Local))

    def local(
        self, node: ast.FunctionDef | ast.Lambda, given: list[_Values], named: dict[str, _Values]
    ) -> _Values:
        inner = _Walk(self.all, self.function, dict(self.names), self.site)
        inner.bind_arguments(node.args, given, named)
        if isinstance(node, ast.Lambda):
            values: _Values = inner.visit(node.body)
            inner.read_all(values, node.body)
            return values
        inner.names.pop(node.name, None)  # one that calls itself is refused
        return inner.settled(node.body)

    def helper(self, node: ast.Call, function: types.FunctionType) -> _Values:
        given = [self.visit(one) for one in node.args]
        named = {one.arg: self.visit(one.value) for one in node.keywords if one.arg}
        site = self.site
        if site is None and is_own(self.all.program.written[function].filename):
            at = node.lineno - self.written.line
            text = self.written.text.splitlines()[at].strip()
            site = _Site(self.written.filename, node.lineno, self.function.__name__, text)
        return self.all.call(function, given, named, site)

    def update(self, node: ast.Call, by: str) -> _Values:
        """``add(state.x, i, value)`` and the like; with a scalar's name of the state itself."""
        given = [self.visit(one) for one in node.args]
        key = node.args[1] if len(node.args) > 1 else None
        for one in given[0] if given else ():
            if isinstance(one, _Location) and key is not None:
                self.note("updated", one.item(key), node, by)
            elif one == _STATE and isinstance(key, ast.Constant):
                place = self.scalar(str(key.value))
                if place is not None:
                    self.note("updated", place, node, by)
        for values, part in zip(given[1:], node.args[1:], strict=True):
            self.read_all(values, part)
        return _NOTHING

    def changed(self, given: Iterable[_Values], node: ast.Call) -> None:
        """The containers that a function of the library is given to change."""
        for one in frozenset().union(*given):
            if _is_container(one):
                self.note("written", one, node)

    def method(self, node: ast.Call, callee: ast.Attribute) -> _Values:
        base = self.visit(callee.value)
        given = [self.visit(part) for part in _parts(node)]
        for values, part in zip(given, _parts(node), strict=True):
            self.read_all(values, part)
        name = callee.attr
        found: set[Any] = set()
        if name in _CHANGING:
            self.changed(given[:1], node)
        inputs = [f"{one.name}." for one in base if isinstance(one, _Input)]
        inputs += [f"{name}." if name in ASKED else ""] if _EVENT in base else []
        for prefix in inputs:
            is_named = (name == "is_null" or name in ASKED) and bool(node.args)
            asked = node.args[0] if is_named else ast.Constant(name)  # or event.random(...)
            if isinstance(asked, ast.Constant):
                self.all.columns[prefix + str(asked.value)] = None
        for place in base:
            if not isinstance(place, _Location):
                continue
            if place.field.space == "locks":
                self.note("locked", place, node)
            elif any(one.name == name for one in place.field.operations):
                key = ast.unparse(node.args[0]) if node.args else ""
                shown = replace(place, text=f"{place.text}.{name}({key})", rank=0)
                self.note("operated", shown, node, name)
            else:
                if place.is_keyed and name in _OF_A_KEY and node.args:
                    place = place.item(node.args[0])
                if name not in _WRITERS or name == "sort":
                    self.note("read", place, node)
                if name not in _READERS:
                    self.note("written", place, node)
                found |= self.given_by(place, name)
        return frozenset(found)

    @staticmethod
    def given_by(place: _Location, method: str) -> set[Any]:
        """The records that a method gives of a container."""
        held = place if place.rank == 0 else place.any_item()
        if not held.is_record or held.field.container is None:
            return set()
        if method == "items":
            pair = _Several((_NOTHING, frozenset([_Record(held)])))
            return {_Each(frozenset([pair]))}
        if method in ("values", "copy"):
            return {_Each(frozenset([_Record(held)]))}
        return {_Record(held)} if method in ("get", "setdefault") else set()

    # ---- statements ----

    def visit_Assign(self, node: ast.Assign) -> None:
        values = self.visit(node.value)
        for target in node.targets:
            self.bind(target, values, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.bind(node.target, self.visit(node.value), node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.value(node.value)
        target = node.target
        places: Iterable[Any] = ()
        if isinstance(target, ast.Name):
            places = [one for one in self.visit(target) if isinstance(one, _Location)]
        elif isinstance(target, ast.Attribute):
            places = self.fields(target)
        elif isinstance(target, ast.Subscript):
            places = self.locations(target)
        for place in places:
            self.note("read", place, node)
            self.note("written", place, node)

    def visit_For(self, node: ast.For) -> None:
        self.bind(node.target, self.items(self.visit(node.iter), node.iter), node.iter)
        for statement in (*node.body, *node.orelse):
            self.visit(statement)

    def visit_With(self, node: ast.With) -> None:
        for item in node.items:
            for one in self.visit(item.context_expr):
                if isinstance(one, _Location):
                    self.note("locked", one, item.context_expr)
        for statement in node.body:
            self.visit(statement)

    def visit_Return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.returned |= self.visit(node.value)

    def visit_Expr(self, node: ast.Expr) -> None:
        self.visit(node.value)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        self.bind(ast.Name(node.name), frozenset([_Local(node)]), node)

    def visit_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if isinstance(target, ast.Subscript):
                self.removed(target)
            else:
                self.bind(target, _NOTHING, node)

    def removed(self, target: ast.Subscript) -> None:
        """An item of a dict goes by itself; of a sequence, what is behind it moves."""
        for one in self.visit(target.value):
            if _is_container(one):
                place = one.item(target.slice) if one.is_keyed else one
                self.note("read", place, target)
                self.note("written", place, target)
        self.value(target.slice)

    def visit_Match(self, node: ast.Match) -> None:
        values = self.visit(node.subject)
        for case in node.cases:
            for part in ast.walk(case.pattern):
                name = getattr(part, "name", None)
                if isinstance(name, str):
                    self.bind(ast.Name(name), values, node)
            self.value(case.guard)
            for statement in case.body:
                self.visit(statement)


def _is_container(value: Any) -> bool:
    return isinstance(value, _Location) and value.field.container is not None and value.rank > 0


def _parts(node: ast.Call) -> list[ast.expr]:
    return [*node.args, *(one.value for one in node.keywords)]

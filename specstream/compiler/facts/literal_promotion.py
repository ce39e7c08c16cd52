"""Integer literals that begin what is otherwise a float: ``total = 0``, later ``total += 0.5``.

A name has one type in compiled code, and Python's zero is an int. So a literal that goes where
floats go is made a float, in the tree that both rewritings start from: hence the oracle computes
with the same float, bit for bit. Where floats go is told from what an operator knows before it is
compiled: columns, fields, literals, operators and functions. What is not seen to be a float stays
what it is, and where an int then meets a float, Numba's pass over types refuses it.

Kinds are "int", "float", "bool" and "str"; of a list, array, dict or tuple, what it holds. They are
those of compiled code, of the state as well. :mod:`specstream.compiler.facts.binding_times` asks
for the types of what Python computes, which are more, and where not to know one is an answer: so
there are two inferences over one tree.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Hashable, Iterable
from typing import Any, TypeGuard

from specstream.compiler.facts import library_types
from specstream.compiler.facts.def_use_webs import Webs
from specstream.compiler.facts.number_kinds import (
    LITERAL,
    Columns,
    Fields,
    Items,
    Parts,
    clash,
    computed,
    held_by,
    is_float,
    joined,
    kind_of,
    raised,
)
from specstream.compiler.facts.promoted_versions import Kinds, Known
from specstream.compiler.facts.value_types import INT
from specstream.compiler.language import builtin_functions
from specstream.compiler.language.methods import names_where
from specstream.declarations.containers import record_shape
from specstream.declarations.records import is_record
from specstream.declarations.rows import is_row, number_kinds_of
from specstream.errors import CompileError

__all__ = ["LiteralPromotion"]


_INTS = {"int", "int64", "uint64", *library_types.functions_of("math", INT)}
_INTS |= names_where(lambda one: one.returns in ("int", "uint64"), ("event", "timer"))
_COUNTS = {"len"} | names_where(lambda one: one.returns == "int", ("list", "deque", "int"))
_KEEPING = names_where(lambda one: one.keeps is not None, ("list", "dict", "set"))
_GIVING_OF_A_KEY = names_where(lambda one: one.has_key and one.gives_element)
_TAKING_ONE = names_where(lambda one: one.gives_element and not one.has_key)
_OF_ARGUMENTS = builtin_functions.names_where(lambda one: one.passes_on) | {"fsum", "prod"}


class LiteralPromotion:
    """Goes through one function, and makes floats of the literals that are meant to be some."""

    def __init__(
        self,
        known: Known,
        tree: ast.FunctionDef,
        names: dict[str, Any],
        given: Kinds,
        written: dict[str, Any] | None = None,
    ) -> None:
        self.known = known
        self.tree = tree
        self.values = names  # by name, what is not a local
        self.written = written or {}  # the same before it was frozen: its ints are no floats yet
        self.webs = Webs(tree)
        self.kinds: dict[Hashable, Any] = {
            self.webs.of(node): given.get(name) for name, node in _parameters(tree.args).items()
        }
        self.functions: dict[str, ast.FunctionDef | ast.Lambda] = {}
        self.returned: dict[ast.AST, list[ast.expr]] = {}
        self.returns: dict[ast.AST, Any] = {}
        self.is_applied = False

    def run(self) -> Any:
        """Learns kinds until nothing is new; gives that of the result."""
        self.find_functions()
        for _ in range(8):
            before = dict(self.kinds), dict(self.returns)
            for node in ast.walk(self.tree):
                self.learn(node)
            for owner, values in self.returned.items():
                for value in values:
                    self.returns[owner] = joined(self.returns.get(owner), self.kind(value))
            self.convert_all()  # what names give to floats are floats before
            if before == (self.kinds, self.returns):
                break
        return self.returns.get(self.tree)

    def apply(self) -> None:
        """Makes floats of literals, in the tree; :meth:`run` comes before it."""
        self.is_applied = True
        self.convert_all()

    def convert_all(self) -> None:
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
                if isinstance(node.target, ast.Name):
                    begun = self.kinds.get(self.webs.before(node.target))
                else:
                    begun = self.kind(node.target)
                kind = self.operation(node.op, begun, self.kind(node.value))
                self.bind(node.target, kind)
            case ast.For() | ast.comprehension():
                self.bind(node.target, self.item(self.kind(node.iter)))
            case ast.Call(func=ast.Attribute(value=owner, attr=name)):
                if name in _KEEPING and node.args:
                    self.hold(owner, self.kind(node.args[-1]))
            case ast.Call(func=ast.Name()):
                assert isinstance(node.func, ast.Name)
                inner = self.functions.get(node.func.id)
                if node.func.id == "map" and node.args and isinstance(node.args[0], ast.Lambda):
                    for one, iterable in zip(node.args[0].args.args, node.args[1:], strict=False):
                        self.kinds[self.webs.of(one)] = self.item(self.kind(iterable))
                if inner is None:
                    self.kind(node)  # which keeps what a helper is given
                    self.given_back(node, node.func.id)
                else:
                    parameters = _parameters(inner.args)
                    for name, kind in self.given(inner.args, node).items():
                        web = self.webs.of(parameters[name])
                        self.kinds[web] = joined(self.kinds.get(web), kind)
                    held = {
                        name: self.kinds.get(self.webs.of(one)) for name, one in parameters.items()
                    }
                    self.take_back(inner.args, node, held)

    def given_back(self, call: ast.Call, name: str) -> None:
        """What a helper has put into the lists that it was given."""
        value = self.values.get(name)
        if name not in self.webs.names and self.is_helper(value):
            tree = self.parsed(value)
            if tree is not None:
                asked = value, tuple(self.given(tree.args, call).items())
                self.take_back(tree.args, call, self.known.held.get(asked, {}))

    def take_back(self, arguments: ast.arguments, call: ast.Call, held: Kinds) -> None:
        for name, value in self.pairs(arguments, call):
            kind = held.get(name)
            if isinstance(value, ast.Name) and isinstance(kind, Items):
                web = self.webs.of(value)
                before = self.kinds.get(web)
                if isinstance(before, Items) and not (before.is_declared or clash(before, kind)):
                    self.kinds[web] = joined(before, kind)

    def bind(self, target: ast.expr, kind: Any) -> None:
        if isinstance(target, ast.Name):
            web = self.webs.of(target)
            self.kinds[web] = joined(self.kinds.get(web), kind)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.hold(target.value, kind)
        elif isinstance(target, ast.Tuple | ast.List):
            for at, part in enumerate(target.elts):
                of = kind.of if isinstance(kind, Parts) else ()
                self.bind(part, of[at] if at < len(of) else self.item(kind))

    def hold(self, owner: ast.expr, kind: Any) -> None:
        """Something is put into a local list or dict, or into one that such a one holds."""
        before = self.kind(owner)
        if not isinstance(before, Items) or before.is_declared:
            return
        holds = Items(joined(before.of, kind), before.keys)
        match owner:
            case ast.Name():
                if (web := self.webs.of(owner)) is not None:
                    self.kinds[web] = holds
            case ast.Subscript(slice=ast.Slice()):
                pass  # a copy
            # groups[key].append(x), and of a defaultdict, groups.setdefault(key, []).append(x)
            case (
                ast.Subscript(value=outer)
                | ast.Call(func=ast.Attribute(value=outer, attr="setdefault"))
            ):
                self.hold(outer, holds)

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

    @staticmethod
    def pairs(arguments: ast.arguments, call: ast.Call) -> list[tuple[str, ast.expr]]:
        """Parameters, and what a call gives to each."""
        names = [one.arg for one in (*arguments.posonlyargs, *arguments.args)]
        known = _parameters(arguments)
        named = [(one.arg, one.value) for one in call.keywords if one.arg in known]
        return [*zip(names, call.args, strict=False), *((str(one), value) for one, value in named)]

    def given(self, arguments: ast.arguments, call: ast.Call) -> Kinds:
        return {name: self.kind(value) for name, value in self.pairs(arguments, call)}

    def kind(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return kind_of(node.value)
            case ast.Name():
                web = self.webs.of(node)
                if web is not None or node.id in self.webs.names:
                    return self.kinds.get(web)
                return kind_of(self.written.get(node.id)) or kind_of(self.values.get(node.id))
            case ast.UnaryOp():
                return "bool" if isinstance(node.op, ast.Not) else self.kind(node.operand)
            case ast.BinOp():
                return self.operation(node.op, self.kind(node.left), self.kind(node.right))
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

    @staticmethod
    def operation(op: ast.operator, one: Any, other: Any) -> Any:
        if isinstance(one, Items | Parts) or isinstance(other, Items | Parts):
            whole = one if isinstance(one, Items | Parts) else other
            return joined(one, other) if isinstance(op, ast.Add) else whole
        return computed(op, one, other)

    def attribute(self, node: ast.Attribute) -> Any:
        owner = self.kind(node.value)
        if owner == "event":
            return self.known.event.kind(node.attr)
        if owner == "state":
            field = self.known.layout.field(node.attr)
            if field is None or field.space == "locks":
                return None
            if field.container is not None:
                return held_by(field.container)
            kind: Any = {"uint": "int"}.get(field.kind, field.kind)
            if field.record is not None:
                kind = Fields(field.record)
            for _ in field.shape[1:] if field.record is not None else field.shape:
                kind = Items(kind, None, True)
            return kind
        if isinstance(owner, Fields | Columns):
            return owner.kind(node.attr)
        if isinstance(node.value, ast.Name) and node.value.id not in self.webs.names:
            return kind_of(getattr(self.values.get(node.value.id), node.attr, None))
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
        if self.is_helper(value):
            return self.helper(value, node)
        if isinstance(value, type) and is_record(value):
            return Fields(record_shape(value))
        if is_row(value):
            return Columns(number_kinds_of(value))
        if isinstance(callee, ast.Attribute):
            owner = self.kind(callee.value)
            if isinstance(owner, Items):
                has_default = name in ("get", "setdefault") or (
                    name == "pop" and owner.keys is not None
                )
                if has_default and not (name == "setdefault" and owner.is_declared):
                    return joined(owner.of, self.all_of(node.args[1:]))
                if name in ("setdefault", "min", "max", "sum", *_TAKING_ONE):
                    return owner.of
                if name in ("copy", "tolist", "values", "keys"):
                    return Items(owner.keys if name == "keys" else owner.of)
                if name == "items":
                    return Items(Parts((owner.keys, owner.of)))
                if name in ("mean",):
                    return "float"
        name = getattr(value, "__name__", name)
        if name == "round":
            return self.kind(node.args[0]) if len(node.args) == 2 else "int"
        if name in _COUNTS:
            return LITERAL
        if name in _INTS:
            return "int"
        if name in _OF_ARGUMENTS:
            kinds = [self.kind(one) for one in node.args]
            if name == "sum":
                del kinds[1:]  # of no floats it is a float, whatever it begins with
            kinds += [self.kind(one.value) for one in node.keywords if one.arg == "default"]
            if name in ("sorted", "list", "reversed", "tuple"):
                return Items(self.item(kinds[0])) if kinds else Items(None)
            if name == "fsum" or (name in ("sum", "prod") and self.has_float(node.args)):
                return "float"
            found = None
            for kind in kinds:
                found = joined(found, self.item(kind) if isinstance(kind, Items) else kind)
            return found
        if name in ("filter", "islice") and len(node.args) > 1:
            return Items(self.item(self.kind(node.args[name == "filter"])))
        if name == "map" and len(node.args) > 1:
            return Items(self.mapped(*node.args))
        if name in ("range",):
            return Items(self.all_of(node.args) or "int")
        if name == "next" and node.args:
            return self.joined_default(node)
        if name == "enumerate" and node.args:
            return Items(Parts((LITERAL, self.item(self.kind(node.args[0])))))
        if name == "zip":
            return Items(Parts(tuple(self.item(self.kind(one)) for one in node.args)))
        if name in ("dict", "set"):
            given = self.kind(node.args[0]) if node.args else None
            item = self.item(given)
            if name == "set":
                return Items(item)
            if isinstance(given, Items) and given.keys is not None:
                return Items(given.of, given.keys)
            is_pair = isinstance(item, Parts) and len(item.of) == 2
            return Items(item.of[1], item.of[0] or "int") if is_pair else Items(None, "int")
        is_math = getattr(value, "__module__", "") == "math" or (
            isinstance(callee, ast.Attribute)
            and isinstance(callee.value, ast.Name)
            and getattr(self.values.get(callee.value.id), "__name__", "") == "math"
        )
        is_float = is_math or name in ("float", "float64", "random", "normal")
        return "float" if is_float and not name.startswith("is") else None

    def mapped(self, function: ast.expr, *iterables: ast.expr) -> Any:
        """What a function gives of the elements, as if it were called with the next ones."""
        if isinstance(function, ast.Lambda):
            return self.returns.get(function)
        following = ast.Name("next", ast.Load())
        given: list[ast.expr] = [ast.Call(following, [one], []) for one in iterables]
        return self.call(ast.Call(function, given, []))

    def has_float(self, summed: list[ast.expr]) -> bool:
        """Whether what is added up has a float in it, whatever else."""
        written = [one.elts for one in summed if isinstance(one, ast.List | ast.Tuple)]
        return any(self.kind(one) == "float" for part in written for one in part)

    def joined_default(self, node: ast.Call) -> Any:
        """What ``next`` gives, of a generator and a default."""
        return joined(self.item(self.kind(node.args[0])), self.all_of(node.args[1:]))

    @staticmethod
    def is_helper(value: Any) -> TypeGuard[types.FunctionType]:
        """Whether a value is a function of the user's."""
        is_function = isinstance(value, types.FunctionType)
        return is_function and not str(value.__module__).startswith("specstream")

    def parsed(self, function: types.FunctionType) -> ast.FunctionDef | None:
        """The tree of a helper; None: it is refused where it is compiled."""
        try:
            return self.known.parse(function)
        except CompileError:
            return None

    def helper(self, function: types.FunctionType, call: ast.Call) -> Any:
        """What a function of the user's returns; what it is given is kept for it."""
        if function in self.known.open or len(self.known.open) > 8:
            return None
        tree = self.parsed(function)
        if tree is None:
            return None
        given = self.given(tree.args, call)
        asked = function, tuple(given.items())
        if asked not in self.known.returned:
            self.known.version(function, given)
            names = {**function.__globals__, **_closed_over(function)}
            self.known.open.append(function)
            inside = LiteralPromotion(self.known, tree, names, given)
            self.known.returned[asked] = inside.run()
            parameters = _parameters(tree.args).items()
            self.known.held[asked] = {
                name: inside.kinds.get(inside.webs.of(one)) for name, one in parameters
            }
            self.known.open.pop()
        return self.known.returned[asked]

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
                if self.is_applied:
                    self.begin_sum(node)
                self.convert_arguments(node)

    def begin_sum(self, node: ast.Call) -> None:
        """The sum of no floats is 0.0, as compiled code has it, and not an int; likewise 1.0."""
        callee = node.func
        name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        is_ours = name in self.webs.names or name in self.functions
        value = self.values.get(name) if isinstance(callee, ast.Name) else None
        name = getattr(value, "__name__", name)
        of_math = isinstance(callee, ast.Attribute) and isinstance(callee.value, ast.Name)
        is_sum = name == "sum" and isinstance(callee, ast.Name)
        is_product = name == "prod" and (of_math or isinstance(callee, ast.Name))
        if is_ours or not (is_sum or is_product) or not node.args:
            return
        summed, *starts = node.args
        if not is_float(self.item(self.kind(summed))):
            return
        starts += [one.value for one in node.keywords]
        for start in starts:
            self.convert(start, "float")
        if starts:
            return
        is_name = isinstance(summed, ast.Name)
        made = self.webs.of(summed) in self.made() if is_name else _makes_container(summed)
        if is_sum and made:
            node.args.append(ast.copy_location(ast.Constant(0.0), node))
        else:
            node.of_floats = True  # type: ignore[attr-defined]

    def made(self) -> set[Hashable]:
        """Names of lists, dicts and sets that the function makes."""
        found: set[Hashable] = set()
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assign) and _makes_container(node.value):
                found |= {self.webs.of(one) for one in node.targets if isinstance(one, ast.Name)}
            elif (
                isinstance(node, ast.AnnAssign | ast.NamedExpr)
                and isinstance(node.target, ast.Name)
                and node.value is not None
                and _makes_container(node.value)
            ):
                found.add(self.webs.of(node.target))
        return found

    def convert_for(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.convert(value, self.kinds.get(self.webs.of(target)))
        elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, part in zip(target.elts, value.elts, strict=False):
                self.convert_for(one, part)
        elif isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            held = self.kind(target.value)
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
        elif isinstance(callee, ast.Attribute) and isinstance(
            callee.value, ast.Name | ast.Dict | ast.DictComp
        ):
            held = self.kind(callee.value)
            puts = _KEEPING | _GIVING_OF_A_KEY
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
            case ast.Name():
                web = self.webs.of(node)
                if web is not None and web in self.kinds:
                    self.kinds[web] = raised(self.kinds[web], kind)
            case ast.Constant() if self.is_applied:
                value: Any = node.value
                if is_float(kind) and type(value) is int and abs(value) <= 2**53:
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
                    if isinstance(side, ast.List | ast.BinOp | ast.Name):
                        self.convert(side, kind)


def _makes_container(node: ast.expr) -> bool:
    """Whether the function makes the container that is summed: the sum then begins at 0.0.

    Such is a list, dict, set or generator of the function's own.
    """
    if isinstance(node, ast.BinOp):
        return _makes_container(node.left) or _makes_container(node.right)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in ("list", "sorted", "dict", "set", "values", "keys", "copy")
    comprehensions = (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)
    return isinstance(node, (ast.List, ast.Set, ast.Dict, *comprehensions))


def _parameters(arguments: ast.arguments) -> dict[str, ast.arg]:
    return {one.arg: one for one in ast.walk(arguments) if isinstance(one, ast.arg)}


def _closed_over(function: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            continue
    return found

"""``defaultdict``, ``Counter``, ``deque`` and records as dicts, where they stay in one function.

What ``d = defaultdict(int)`` makes is a dict whose ``d[k]`` is ``d.setdefault(k, 0)``; a
``Counter`` one whose ``c[k]`` is ``c.get(k, 0)``; a ``deque`` is a list. That is known by the name,
so the name has to keep it: what is given to a function, returned or called otherwise has to be made
a dict or list before. A dict that is only written out and given to a call as ``**row`` is a name
for each of its values, which then need not be of one type.
"""

from __future__ import annotations

import ast
import collections
import copy
import itertools
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

from specstream.compiler.frontend.nullable_flows import is_none
from specstream.compiler.language import builtin_functions
from specstream.compiler.language.methods import REFUSED, method_of, names_where
from specstream.compiler.language.parsing import parse
from specstream.compiler.language.standard_library import PREFIX
from specstream.compiler.language.typing_refusals import unnamed_copy

__all__ = ["LocalCollections"]

# What Python has a deque that is gone through raise for.
_RESIZING = names_where(lambda one: one.resizes, ("deque",))
# Builtins that give the elements of a value one after the other, or call something for each.
_LAZY = builtin_functions.names_where(
    lambda one: one.is_iterator or (one.consumes and "key" in one.keywords)
)
# Builtins that go through a value, or ask its size, and keep nothing of it.
_ASKING = {"len", "bool", "reversed"}
_ASKING |= builtin_functions.names_where(lambda one: one.goes_through)
_DEFAULTS = {"int": "0", "float": "0.0", "bool": "False", "str": "''", "list": "[]"}
_DEFAULTS |= {"dict": "{}", "set": "set()"}
_KINDS = (collections.defaultdict, collections.Counter, collections.deque)
# Methods that go through what they get.
_THROUGH = {
    (collections.Counter, "update"),
    (collections.deque, "extend"),
    (collections.deque, "extendleft"),
}


class _Made:
    """What a name was given.

    Attributes:
        kind: the class.
        call: what made it.
        default: of a defaultdict, what a missing key gets.
        maxlen: of a deque with ``maxlen``, the name of what that was given, and
        most: the name of its greatest length as a number.
    """

    def __init__(self, kind: Any, call: ast.Call) -> None:
        self.kind = kind
        self.call = call
        self.default: ast.expr | None = None
        self.maxlen: str | None = None
        self.most: str | None = None


class LocalCollections(ast.NodeTransformer):
    """Spells those of one function.

    Args:
        value_of: what of the library is called, by its name.
        refuse: raises, of a node.
        catches: what stands behind raise is compiled, and not Python's.
        deques: those of the state, as they are written here, and what each of them has for
            ``maxlen``.
    """

    def __init__(
        self,
        value_of: Callable[[ast.expr], Any],
        refuse: Callable[[ast.AST, str, str], NoReturn],
        catches: bool,
        deques: Mapping[str, int | None],
    ) -> None:
        self.catches = catches
        self.says = False
        self.value_of = value_of
        self.refuse = refuse
        self.deques = dict(deques)
        self.made: dict[str, _Made] = {}
        self.numbers = itertools.count(1)

    def spell(self, tree: ast.FunctionDef) -> None:
        _Records(tree).spell()
        are_made = any(
            isinstance(node, ast.Call) and self.value_of(node.func) in _KINDS
            for node in ast.walk(tree)
        )
        if not are_made and not self.deques:
            return
        bound = [
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        ]
        for node in ast.walk(tree):
            target = _single_target(node)
            kind = self.value_of(node.value.func) if target and _is_call(node.value) else None  # type: ignore[attr-defined]
            if target is not None and kind in _KINDS and bound.count(target) == 1:
                self.made[target] = _Made(kind, node.value)  # type: ignore[attr-defined]
        once = [
            (target, node)
            for node in ast.walk(tree)
            if (target := _single_target(node)) is not None and bound.count(target) == 1
        ]
        for name, node in once:
            known = ast.unparse(node.value)  # type: ignore[attr-defined]
            if known in self.deques:
                self.deques[name] = self.deques[known]
        while any(self.is_copy(*one) for one in once):
            pass
        if not are_made and not self.made:
            return
        self.refuse_resized(tree)
        tree.body = self.block(tree.body)

    def is_copy(self, target: str, node: Any) -> bool:
        """``x = q.copy()`` of a deque, here or of the state, as the call that makes x; gives
        whether it was one that was not known."""
        call = node.value
        if target in self.made or not _is_call(call) or call.args or call.keywords:
            return False
        if not isinstance(call.func, ast.Attribute) or call.func.attr != "copy":
            return False
        owner = call.func.value
        source = self.of(owner)
        bounds: list[ast.expr] = []
        if source is not None and source.kind is collections.deque:
            if _bound(source.call):
                bounds.append(ast.Attribute(owner, "maxlen", ast.Load()))
        elif (text := ast.unparse(owner)) in self.deques:
            most = self.deques[text]
            if most is not None:
                bounds.append(ast.Constant(most))
        else:
            return False
        node.value = _at_line_of(_call("deque", owner, *bounds), call)
        self.made[target] = _Made(collections.deque, node.value)
        return True

    def refuse_resized(self, tree: ast.FunctionDef) -> None:
        """Refuses deques that change while they are gone through: as lists they may never end."""
        for node in ast.walk(tree):
            for name in self.walked(node):
                changed = _deque_resized(node, name)
                if changed is not None:
                    self.refuse(
                        changed,
                        f"{name!r} is a deque that grows or shrinks while a loop iterates over "
                        "it, for which Python raises RuntimeError",
                        f"write the loop as for x in list({name}), or leave the loop right after "
                        "this",
                    )

    def walked(self, node: ast.AST) -> list[str]:
        """The deques that a statement or an expression goes through."""
        walked: list[ast.expr] = []
        if isinstance(node, ast.For):
            walked = [node.iter]
        elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
            walked = [one.iter for one in node.generators]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in _LAZY:
            walked = node.args
        while lazy := [one for one in walked if _is_call(one) and ast.unparse(one.func) in _LAZY]:  # type: ignore[attr-defined]
            walked = [one for one in walked if one not in lazy]
            walked += [one for call in lazy for one in call.args]  # type: ignore[attr-defined]
        made = [(one.id, self.of(one)) for one in walked if isinstance(one, ast.Name)]
        return [name for name, made in made if made and made.kind is collections.deque]

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        for statement in body:
            found = self.visit(statement)
            done += found if isinstance(found, list) else [found]
        return done

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        self.says = not self.catches
        self.generic_visit(node)
        self.says = False
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        node.test = self.visit(node.test)
        self.says = not self.catches
        node.msg = None if node.msg is None else self.visit(node.msg)
        self.says = False
        return node

    # ---- where they are made ----

    def visit_Assign(self, node: ast.Assign) -> Any:
        target = _single_target(node)
        made = self.made.get(target or "")
        if made is None:
            if target and _is_call(node.value) and self.value_of(node.value.func) in _KINDS:  # type: ignore[attr-defined]
                kind = self.value_of(node.value.func).__name__  # type: ignore[attr-defined]
                self.refuse(
                    node,
                    f"{target!r} is a {kind} here and is assigned elsewhere as well",
                    f"give each {kind} a name of its own that is assigned once; clear() empties it",
                )
            return self.generic_visit(node)
        assert isinstance(node.value, ast.Call)
        self.only_takes(node.value, made)
        call, before = node.value, []
        call.args = list(map(self.test, call.args))
        if made.kind is collections.defaultdict:
            made.default = self.default(call)
            node.value = _expression("{}") if len(call.args) < 2 else _call("dict", call.args[1])
        elif made.kind is collections.Counter:
            node.value = _call(f"{PREFIX}counted", *call.args) if call.args else _expression("{}")
        else:
            most = _bound(call)
            values = call.args[:1]
            if most is None:
                node.value = _call("list", *values) if values else _expression("[]")
            else:
                made.maxlen, made.most = f"{target}_maxlen", f"{target}_most"
                bound = _call(f"{PREFIX}greatest_length", ast.Name(made.maxlen, ast.Load()))
                for name, value in ((made.maxlen, most), (made.most, bound)):
                    kept = ast.Assign([ast.Name(name, ast.Store())], value)
                    before.append(ast.copy_location(kept, node))
                most = ast.Name(made.most, ast.Load())
                last = _call(f"{PREFIX}last_of", values[0], most) if values else None
                node.value = last or _expression("[]")
        return [_at_line_of(one, node) for one in (*before, node)]

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        made = self.made.get(_single_target(node) or "")
        if made is None or node.value is None:
            return self.generic_visit(node)
        plain = ast.copy_location(ast.Assign([node.target], node.value), node)
        *before, plain = self.visit_Assign(plain)
        said = node.annotation
        if isinstance(said, ast.Subscript) and ast.unparse(plain.value) in ("{}", "[]"):
            name = ast.Name("list" if made.kind is collections.deque else "dict", ast.Load())
            parts = said.slice
            if made.kind is collections.Counter:
                parts = ast.Tuple([parts, ast.Name("int", ast.Load())], ast.Load())
            node.annotation = ast.Subscript(name, parts, ast.Load())
            node.value = plain.value
            plain = _at_line_of(node, node)
        return [*before, plain]

    def only_takes(self, call: ast.Call, made: _Made) -> None:
        most = {collections.defaultdict: 2, collections.Counter: 1, collections.deque: 2}
        names = ["maxlen"] if made.kind is collections.deque else []
        if len(call.args) > most[made.kind] or any(one.arg not in names for one in call.keywords):
            self.refuse(
                call,
                f"{ast.unparse(call)} cannot be used in an operator",
                "create it from one value, and fill it afterwards",
            )

    def default(self, call: ast.Call) -> ast.expr:
        factory = call.args[0] if call.args else None
        if isinstance(factory, ast.Lambda) and not factory.args.args:
            return factory.body
        if isinstance(factory, ast.Name) and factory.id in _DEFAULTS:
            return _expression(_DEFAULTS[factory.id])
        return self.refuse(
            call,
            "defaultdict takes int, float, bool, str, list, dict, set or a lambda here",
            "write d = {}, and d.setdefault(key, value) where it may be missing",
        )

    # ---- where they are used ----

    def of(self, node: ast.AST | None) -> _Made | None:
        return self.made.get(node.id) if isinstance(node, ast.Name) else None

    def visit_Name(self, node: ast.Name) -> Any:
        made = self.of(node)
        if made is not None and isinstance(node.ctx, ast.Load):
            plain = "list" if made.kind is collections.deque else "dict"
            self.refuse(
                node,
                f"{node.id!r} is a {made.kind.__name__} only under this name",
                f"write {plain}({node.id}) to pass it on, return it or give it another name",
            )
        return node

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        made = self.of(node.value)
        node.slice = self.visit(node.slice)
        if made is None:
            node.value = self.visit(node.value)
            return node
        if isinstance(node.slice, ast.Slice):
            if made.kind is collections.deque:
                self.refuse(node, "a deque has no slices", f"write list({ast.unparse(node.value)})")
            return node
        is_deque = made.kind is collections.deque
        if not isinstance(node.ctx, ast.Load):
            if is_deque:
                owner = ast.Name(ast.unparse(node.value), ast.Load())
                node.slice = _call(f"{PREFIX}place_in", owner, node.slice)
            return _at_line_of(node, node)
        if is_deque:
            return _at_line_of(_call(f"{PREFIX}item_of", node.value, node.slice), node)
        return _at_line_of(self.item(made, node.value, node.slice), node)

    @staticmethod
    def item(made: _Made, owner: ast.expr, key: ast.expr) -> ast.expr:
        is_counter = made.kind is collections.Counter
        default = ast.Constant(0) if is_counter else copy.deepcopy(made.default)
        method = ast.Attribute(owner, "get" if is_counter else "setdefault", ast.Load())
        assert default is not None
        return ast.Call(method, [key, default], [])

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        target = node.target
        self.counters_have_none(node, target, node.value)
        made = self.of(target.value) if isinstance(target, ast.Subscript) else None
        if made is None or made.kind is collections.deque:
            return self.generic_visit(node)
        assert isinstance(target, ast.Subscript)
        key = f"specstream_key_{next(self.numbers)}"
        kept = ast.Assign([ast.Name(key, ast.Store())], self.visit(target.slice))
        load = self.item(made, copy.deepcopy(target.value), ast.Name(key, ast.Load()))
        store = ast.Subscript(target.value, ast.Name(key, ast.Load()), ast.Store())
        value = self.visit(node.value)
        if isinstance(load, ast.Call) and made.kind is collections.defaultdict:
            # What is missing gets its default before the value is computed.
            first = ast.Expr(load)
            changed: ast.stmt = ast.AugAssign(store, node.op, value)
            return [_at_line_of(one, node) for one in (kept, first, changed)]
        changed = ast.Assign([store], ast.BinOp(load, node.op, value))
        return [_at_line_of(one, node) for one in (kept, changed)]

    def visit_Delete(self, node: ast.Delete) -> Any:
        only = node.targets[0]
        if len(node.targets) == 1 and isinstance(only, ast.Subscript):
            made = self.of(only.value)
            if made is not None and made.kind is collections.Counter:
                method = ast.Attribute(only.value, "pop", ast.Load())
                call = ast.Call(method, [self.visit(only.slice), ast.Constant(0)], [])
                return _at_line_of(ast.Expr(call), node)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        made = self.of(node.value)
        if made is None:
            return self.generic_visit(node)
        if made.kind is collections.deque and node.attr == "maxlen" and made.maxlen:
            return _at_line_of(ast.Name(made.maxlen, ast.Load()), node)
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        """A bounded deque: what is put in says what it holds; what is too much is cut off."""
        call = node.value
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            return self.generic_visit(node)
        made, owner = self.of(call.func.value), call.func.value
        if made and made.kind is collections.deque and call.func.attr == "extendleft":
            return self.extended_left(node, call, made)
        cuts = {"append": "cut_left", "appendleft": "cut_right", "extend": "cut_to"}
        cut = cuts.get(call.func.attr)
        if made is None or made.most is None or cut is None or len(call.args) != 1:
            return self.generic_visit(node)
        item = self.test(call.args[0]) if cut == "cut_to" else self.visit(call.args[0])
        if cut == "cut_right":
            put = ast.Call(ast.Attribute(owner, "insert", ast.Load()), [ast.Constant(0), item], [])
        else:
            put = ast.Call(ast.Attribute(owner, call.func.attr, ast.Load()), [item], [])
        off = _call(f"{PREFIX}{cut}", copy.deepcopy(owner), ast.Name(made.most, ast.Load()))
        return [_at_line_of(ast.Expr(put), node), _at_line_of(ast.Expr(off), node)]

    def extended_left(self, node: ast.Expr, call: ast.Call, made: _Made) -> Any:
        """``extendleft``: likewise what is put in says what it holds."""
        owner = ast.unparse(call.func.value)  # type: ignore[attr-defined]
        if len(call.args) != 1 or call.keywords:
            return self.generic_visit(node)
        put = parse(f"{owner}[:0] = list(values)[::-1]").body[0]
        put.value.value.args = [self.test(call.args[0])]  # type: ignore[attr-defined]
        cut = [] if made.most is None else parse(f"del {owner}[{made.most}:]").body
        return [_at_line_of(one, node) for one in (put, *cut)]

    def visit_Call(self, node: ast.Call) -> Any:
        if isinstance(node.func, ast.Attribute):
            made, owner = self.of(node.func.value), node.func.value
            if made is None and _is_call(owner) and self.value_of(owner.func) in _KINDS:  # type: ignore[attr-defined]
                assert isinstance(owner, ast.Call)
                made = _Made(self.value_of(owner.func), owner)
                if made.kind is collections.Counter and len(owner.args) == 1:
                    owner = _call(f"{PREFIX}counted", *map(self.test, owner.args))
                    node.func.value = _at_line_of(owner, node)
            if made is not None:
                goes_through = (made.kind, node.func.attr) in _THROUGH
                node.args = [
                    self.test(one) if goes_through else self.visit(one) for one in node.args
                ]
                return _at_line_of(self.method(node, made, node.func.value, node.func.attr), node)
        if isinstance(node.func, ast.Name) and node.func.id in _ASKING:
            node.args = [one if self.of(one) else self.visit(one) for one in node.args]
            for keyword in node.keywords:
                keyword.value = self.visit(keyword.value)
            return node
        if self.value_of(node.func) in _KINDS and not self.says:
            kind = self.value_of(node.func).__name__
            self.refuse(
                node,
                f"a {kind} is created here without a name",
                f"give it a name of its own, x = {kind}(...), and use that",
            )
        return self.generic_visit(node)

    def method(self, node: ast.Call, made: _Made, owner: ast.expr, name: str) -> ast.expr:
        kind = made.kind.__name__
        refused = REFUSED.get(("local deque" if kind == "deque" else kind, name))
        if refused is not None:
            self.refuse(node, f"{name} of a {kind} cannot be used in an operator", refused.hint)
        if kind == "Counter":
            return self.of_counter(node, owner, name)
        record = method_of(kind, name)
        if record and not record.accepts(len(node.args)) and not _has_star(node):
            self.refuse(
                node,
                f"{name} of {ast.unparse(owner)} gets {len(node.args)} values",
                f"it takes {record.counts}, as Python's",
            )
        if kind == "deque" and name == "copy":
            self.refuse(node, *unnamed_copy(ast.unparse(owner)))
        if kind == "deque":
            return self.of_deque(node, made, owner, name)
        return node

    def of_counter(self, node: ast.Call, owner: ast.expr, name: str) -> ast.expr:
        def of_owner(method: str) -> ast.expr:
            return ast.Call(ast.Attribute(owner, method, ast.Load()), [], [])

        if name == "update":
            if len(node.args) != 1 or node.keywords:
                self.refuse(
                    node,
                    "update of a Counter takes one value here, which it counts or which has counts",
                    "write c.update(x) for each, and c.update({key: count}) for a count by name",
                )
            return _call(f"{PREFIX}count_into", owner, *node.args)
        if name == "total":
            return _call("sum", of_owner("values"))
        if name == "most_common":
            by_count = _expression("sorted(x, key=lambda pair: pair[1], reverse=True)")
            assert isinstance(by_count, ast.Call)
            by_count.args = [of_owner("items")]
            given = [*node.args, *(one.value for one in node.keywords)]
            if not given or is_none(given[0]):
                return by_count
            count = _call("max", given[0], ast.Constant(0))
            return ast.Subscript(by_count, ast.Slice(None, count, None), ast.Load())
        return node

    def of_deque(self, node: ast.Call, made: _Made, owner: ast.expr, name: str) -> ast.expr:
        most = None if made.most is None else ast.Name(made.most, ast.Load())
        bounded = {"append": "push", "appendleft": "push_left", "extend": "push_all"}
        bounded |= {"insert": "put_in", "extendleft": "push_all_left"}
        method = node.func
        assert isinstance(method, ast.Attribute)
        if name in bounded and most is not None:
            return _call(f"{PREFIX}{bounded[name]}", owner, *node.args, most)
        if name == "extendleft":
            return _call(f"{PREFIX}put_before", owner, *node.args)
        if name == "appendleft":
            method.attr = "insert"
            node.args.insert(0, ast.Constant(0))
        elif name in ("pop", "popleft") and not node.args:
            return _call(f"{PREFIX}{'take' if name == 'pop' else 'take_left'}", owner)
        elif name == "remove" and len(node.args) == 1:
            return _call(f"{PREFIX}remove_from", owner, *node.args)
        elif name == "index" and 1 <= len(node.args) <= 3:
            looked = ("index_in", "index_from", "index_between")[len(node.args) - 1]
            return _call(f"{PREFIX}{looked}", owner, *node.args)
        elif name == "rotate":
            return _call(f"{PREFIX}rotate", owner, *(node.args or [ast.Constant(1)]))
        return node

    # ---- where they may stand by themselves ----

    def test(self, node: Any) -> Any:
        """What asks no more than whether it is empty, or goes through it."""
        return node if self.of(node) else self.visit(node)

    def counters_have_none(self, node: ast.AST, *operands: ast.expr) -> None:
        """Arithmetic and comparisons of Counters, which leave out counts below 1 or compare them as
        missing: no dict does."""
        for one in operands:
            made = self.of(one)
            is_counter = made is not None and made.kind is collections.Counter
            if is_counter or (_is_call(one) and self.value_of(one.func) is collections.Counter):  # type: ignore[attr-defined]
                is_compared = isinstance(node, ast.Compare)
                self.refuse(
                    node,
                    f"Counters have no {'comparisons' if is_compared else 'arithmetic'} in an "
                    "operator",
                    "write dict(c) == dict(d), which is the same where no count is 0"
                    if is_compared
                    else "write for key, n in d.items(): c[key] += n, and leave out what is "
                    "below 1",
                )

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.counters_have_none(node, node.left, node.right)
        return self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if not isinstance(node.op, ast.Not):
            self.counters_have_none(node, node.operand)
            return self.generic_visit(node)
        node.operand = self.test(node.operand)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        node.values = [self.test(one) for one in node.values]
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        if not all(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            self.counters_have_none(node, node.left, *node.comparators)
        node.left = self.visit(node.left)
        are_in = all(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
        node.comparators = [
            one if are_in and self.of(one) else self.visit(one) for one in node.comparators
        ]
        return node

    def conditional(self, node: Any) -> Any:
        node.test = self.test(node.test)
        if isinstance(node, ast.IfExp):
            node.body, node.orelse = self.visit(node.body), self.visit(node.orelse)
        else:
            node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    visit_If = visit_While = visit_IfExp = conditional

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.test(node.iter)
        node.target = self.visit(node.target)
        node.body, node.orelse = self.block(node.body), self.block(node.orelse)
        return node

    def visit_comprehension(self, node: ast.comprehension) -> Any:
        node.iter = self.test(node.iter)
        node.ifs = [self.test(one) for one in node.ifs]
        return node

    def visit_Starred(self, node: ast.Starred) -> Any:
        node.value = self.test(node.value)
        return node


class _Records:
    """Dicts that are written out, and used as ``**row`` and ``row["name"]`` alone."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.tree = tree
        parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(tree):
            for child in ast.iter_child_nodes(node):
                parents[child] = node
        self.parents = parents

    def spell(self) -> None:
        spread = {
            node.value.id
            for node in ast.walk(self.tree)
            if isinstance(node, ast.keyword)
            and node.arg is None
            and isinstance(node.value, ast.Name)
        }
        for name in sorted(spread):
            places = [
                node
                for node in ast.walk(self.tree)
                if isinstance(node, ast.Name) and node.id == name
            ]
            keys = self.keys(places)
            if keys is not None:
                _InNames(name, keys).visit(self.tree)
        _Spread().visit(self.tree)

    def keys(self, places: list[ast.Name]) -> list[str] | None:
        """The keys of a dict that is a record in one function; None: it is more than that."""
        keys: list[str] | None = None
        stored = [one for one in places if isinstance(one.ctx, ast.Store)]
        if len(stored) != 1:
            return None
        made = self.parents[stored[0]]
        if _single_target(made) is None or not isinstance(made, ast.Assign):
            return None
        keys = _record_keys(made.value)
        for place in places:
            if place is stored[0] or keys is None:
                continue
            parent = self.parents[place]
            if isinstance(parent, ast.keyword) and parent.arg is None:
                continue
            item = parent.slice if isinstance(parent, ast.Subscript) else None
            if not isinstance(item, ast.Constant) or item.value not in keys:
                return None
            if isinstance(parent, ast.Subscript) and isinstance(parent.ctx, ast.Del):
                return None
        return keys


def _record_keys(value: ast.expr) -> list[str] | None:
    """The keys of a record, a dict that is written out for ``**row``: all different strings."""
    keys: list[Any] = []
    if isinstance(value, ast.Dict):
        keys = [one.value if isinstance(one, ast.Constant) else None for one in value.keys]
    elif _is_call(value) and ast.unparse(value.func) == "dict" and not value.args:  # type: ignore[attr-defined]
        keys = [one.arg for one in value.keywords]  # type: ignore[attr-defined]
    are_names = all(isinstance(one, str) and one.isidentifier() for one in keys)
    return keys if keys and are_names and len(set(keys)) == len(keys) else None


def _record_values(value: ast.expr) -> list[ast.expr]:
    if isinstance(value, ast.Dict):
        return value.values
    assert isinstance(value, ast.Call)
    return [one.value for one in value.keywords]


class _InNames(ast.NodeTransformer):
    """A record as a name for each of its values."""

    def __init__(self, name: str, keys: list[str]) -> None:
        self.name = name
        self.keys = keys

    def part(self, key: str, context: Any) -> ast.Name:
        return ast.Name(f"{self.name}_specstream_{key}", context)

    def visit_Assign(self, node: ast.Assign) -> Any:
        if _single_target(node) != self.name:
            return self.generic_visit(node)
        values = [self.visit(one) for one in _record_values(node.value)]
        return [
            _at_line_of(ast.Assign([self.part(key, ast.Store())], value), value)
            for key, value in zip(self.keys, values, strict=True)
        ]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        if isinstance(node.value, ast.Name) and node.value.id == self.name:
            assert isinstance(node.slice, ast.Constant)
            return _at_line_of(self.part(str(node.slice.value), node.ctx), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        keywords = []
        for keyword in node.keywords:
            value = keyword.value
            if keyword.arg is None and isinstance(value, ast.Name) and value.id == self.name:
                keywords += [ast.keyword(key, self.part(key, ast.Load())) for key in self.keys]
            else:
                keywords.append(keyword)
        node.keywords = keywords
        return _at_line_of(node, node)


class _Spread(ast.NodeTransformer):
    """``f(**{"a": 1})`` as ``f(a=1)``."""

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        keywords = []
        for keyword in node.keywords:
            keys = None if keyword.arg is not None else _record_keys(keyword.value)
            if keys is None:
                keywords.append(keyword)
                continue
            values = _record_values(keyword.value)
            keywords += [ast.keyword(*pair) for pair in zip(keys, values, strict=True)]
        node.keywords = keywords
        return _at_line_of(node, node)


def _deque_resized(loop: ast.AST, name: str) -> ast.AST | None:
    """Where a loop over a ``deque`` (a list from here on) changes its length and may go on."""
    if isinstance(loop, ast.For):
        return _deque_resized_in(loop.body, name, False, False)
    if isinstance(loop, ast.Call):
        # What is called for each element; other arguments are there before.
        given = [*loop.args, *(one.value for one in loop.keywords)]
        called = [one.body for one in given if isinstance(one, ast.Lambda)]
        return next(filter(None, (_call_resizing_deque(one, name) for one in called)), None)
    return _call_resizing_deque(loop, name)


def _deque_resized_in(
    body: list[ast.stmt], name: str, is_inner: bool, is_tried: bool
) -> ast.AST | None:
    """Where a block of a loop over a ``deque`` changes its length; None: nowhere that matters.

    Args:
        is_inner: the block is in a loop inside.
        is_tried: what is raised in it may be caught.
    """
    last = body[-1]
    leaves = isinstance(last, ast.Return) or (isinstance(last, ast.Raise) and not is_tried)
    leaves = leaves or (isinstance(last, ast.Break) and not is_inner)
    goes_on = any(isinstance(node, ast.Continue) for one in body for node in ast.walk(one))
    if leaves and not goes_on:
        return None
    for statement in body:
        is_loop = isinstance(statement, ast.For | ast.While)
        is_try = is_tried or isinstance(statement, ast.Try)
        for part in ast.iter_child_nodes(statement):
            if not isinstance(part, ast.stmt | ast.excepthandler | ast.match_case):
                found = _call_resizing_deque(part, name)
                if found is not None:
                    return found
        blocks = [getattr(statement, of, []) for of in ("body", "orelse", "finalbody")]
        blocks += [one.body for of in ("handlers", "cases") for one in getattr(statement, of, [])]
        for block in filter(None, blocks):
            found = _deque_resized_in(block, name, is_inner or is_loop, is_try)
            if found is not None:
                return found
        targets = statement.targets if isinstance(statement, ast.Delete) else []
        if any(isinstance(one, ast.Subscript) and _is_name(one.value, name) for one in targets):
            return statement
    return None


def _call_resizing_deque(tree: ast.AST, name: str) -> ast.AST | None:
    """A call of a ``deque``'s method that changes its length; None: an expression has none."""
    for node in ast.walk(tree):
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and _is_name(node.func.value, name) and node.func.attr in _RESIZING:  # type: ignore[attr-defined]
            return node
    return None


def _has_star(call: ast.Call) -> bool:
    return any(isinstance(one, ast.Starred) for one in call.args)


def _is_name(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _is_call(node: Any) -> bool:
    return isinstance(node, ast.Call)


def _single_target(node: ast.AST) -> str | None:
    """The one name that a statement gives a value, by which a ``deque`` is known."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        targets = [node.target]
    only = targets[0] if len(targets) == 1 else None
    return only.id if isinstance(only, ast.Name) else None


def _bound(call: ast.Call) -> ast.expr | None:
    """The greatest length of a deque where it is made; None: it has none."""
    most = call.args[1] if len(call.args) == 2 else None
    most = next((one.value for one in call.keywords), most)
    return None if most is None or is_none(most) else most


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _expression(text: str) -> ast.expr:
    return parse(text, mode="eval").body


def _at_line_of(node: Any, at: ast.AST) -> Any:
    """Gives what spells a ``deque``, ``Counter`` or record the line of what it replaces.

    That is done for all that has no line or another text's.
    """
    for part in ast.walk(node):
        if isinstance(part, ast.expr | ast.stmt | ast.keyword | ast.arg) and (
            not hasattr(part, "lineno") or part.lineno < at.lineno  # type: ignore[attr-defined]
        ):
            ast.copy_location(part, at)
    return node

"""Def-use webs: which assignments of a name reach which of its uses.

``total = 0; total += n; ...; total = total / 4`` gives one name three values that never meet, so
each is a variable of its own. Assignments that reach a common use, as those of two branches do,
belong to one web. This is the usual forward analysis of reaching definitions over the syntax tree.
A nested function reads outer names when it is called, whatever was assigned by then: a name that
is captured is a single web.
"""

from __future__ import annotations

import ast
from collections.abc import Hashable, Iterable, Sequence

from specstream.compiler.frontend.scopes import bound_names

__all__ = ["Webs"]

# By name, the nodes that may have assigned it last; None: no path leads here.
Reaching = dict[str, frozenset[ast.AST]] | None
Definition = ast.FunctionDef | ast.Lambda


class Webs:
    """The webs of all names of a function, and of the functions inside of it."""

    def __init__(self, tree: ast.FunctionDef) -> None:
        self.names: set[str] = set()
        self._joined: dict[Hashable, Hashable] = {}
        self._of: dict[ast.AST, Hashable] = {}
        self._before: dict[ast.AST, Hashable] = {}
        _Scope(self, {}).function(tree)

    def of(self, node: ast.AST) -> Hashable:
        """The web of a name that is read or assigned, or of a parameter; None: of no local."""
        return self._root(self._of[node]) if node in self._of else None

    def before(self, node: ast.AST) -> Hashable:
        """The web that ``node += x`` reads."""
        return self._root(self._before[node]) if node in self._before else None

    def assign(self, node: ast.AST, name: str, outer: dict[str, Hashable]) -> None:
        self.names.add(name)
        self._of.setdefault(node, outer.get(name, node))

    def read(self, node: ast.AST, webs: Iterable[Hashable], is_augmented: bool) -> None:
        first, *others = webs
        for one in others:
            self._joined[self._root(one)] = self._root(first)
        of = self._before if is_augmented else self._of
        if node in of and self._root(of[node]) != self._root(first):
            self._joined[self._root(of[node])] = self._root(first)
        of[node] = first

    def _root(self, web: Hashable) -> Hashable:
        while web in self._joined and self._joined[web] != web:
            web = self._joined[web]
        return web


def _either(*ways: Reaching) -> Reaching:
    found: Reaching = None
    for way in ways:
        if found is None:
            found = way
        elif way is not None:
            none: frozenset[ast.AST] = frozenset()
            names = found.keys() | way.keys()
            found = {name: found.get(name, none) | way.get(name, none) for name in names}
    return found


class _Scope:
    """One function on its way: ``outer`` are names that nested functions read, each one web."""

    def __init__(self, webs: Webs, outer: dict[str, Hashable]) -> None:
        self.webs = webs
        self.outer = outer
        self.breaks: list[list[Reaching]] = []
        self.continues: list[list[Reaching]] = []
        self.assigned: list[tuple[str, ast.AST]] = []

    def function(self, node: Definition) -> None:
        body: Sequence[ast.AST] = node.body if isinstance(node.body, list) else [node.body]
        own = {one.arg for one in ast.walk(node.args) if isinstance(one, ast.arg)}
        own |= {name for part in body for name in bound_names(part)}
        inner = [one for part in body for one in ast.walk(part) if isinstance(one, Definition)]
        read = {part.id for one in inner for part in ast.walk(one) if isinstance(part, ast.Name)}
        kept_apart = {name for one in inner for name in bound_names(one)}
        captured = {name: (name, node) for name in own & read - kept_apart}
        outer = {name: web for name, web in self.outer.items() if name not in own}
        self.outer = {**outer, **captured}
        at: Reaching = {}
        for one in ast.walk(node.args):
            if isinstance(one, ast.arg):
                at = self.assign(one, one.arg, at)
        if isinstance(node.body, list):
            self.block(node.body, at)
        else:
            self.read(node.body, at)

    def nested(self, node: Definition, at: Reaching) -> Reaching:
        for default in (*node.args.defaults, *node.args.kw_defaults):
            at = self.read(default, at)
        _Scope(self.webs, self.outer).function(node)
        return at

    # ---- assignments ----

    def assign(self, node: ast.AST, name: str, at: Reaching, may: bool = False) -> Reaching:
        self.webs.assign(node, name, self.outer)
        self.assigned.append((name, node))
        if at is None:
            return None
        before = at.get(name, frozenset()) if may else frozenset()
        return {**at, name: before | {node}}

    def target(self, node: ast.AST, at: Reaching) -> Reaching:
        if isinstance(node, ast.Name):
            return self.assign(node, node.id, at)
        if isinstance(node, ast.Tuple | ast.List):
            for one in node.elts:
                at = self.target(one, at)
            return at
        return self.target(node.value, at) if isinstance(node, ast.Starred) else self.read(node, at)

    # ---- expressions ----

    def name(self, node: ast.Name, at: Reaching, is_augmented: bool = False) -> None:
        if node.id in self.outer:
            self.webs.read(node, [self.outer[node.id]], is_augmented)
        elif found := (at or {}).get(node.id):
            self.webs.read(node, found, is_augmented)

    def read(self, node: ast.AST | None, at: Reaching) -> Reaching:
        match node:
            case None:
                return at
            case ast.Name():
                if isinstance(node.ctx, ast.Load):
                    self.name(node, at)
                return at
            case ast.NamedExpr():
                at = self.read(node.value, at)
                return self.assign(node.target, node.target.id, at, may=True)
            case ast.Lambda():
                return self.nested(node, at)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self.comprehension(node, at)
        for part in ast.iter_child_nodes(node):
            at = self.read(part, at)
        return at

    def comprehension(self, node: ast.AST, at: Reaching) -> Reaching:
        values = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]  # type: ignore[attr-defined]
        while True:
            before = at
            for part in node.generators:  # type: ignore[attr-defined]
                at = self.target(part.target, self.read(part.iter, at))
                for condition in part.ifs:
                    at = self.read(condition, at)
            for value in values:
                at = self.read(value, at)
            at = _either(before, at)
            if at == before:
                return at

    # ---- statements ----

    def block(self, body: Sequence[ast.stmt], at: Reaching) -> Reaching:
        for statement in body:
            at = self.statement(statement, at)
        return at

    def statement(self, node: ast.stmt, at: Reaching) -> Reaching:
        match node:
            case ast.Assign():
                at = self.read(node.value, at)
                for target in node.targets:
                    at = self.target(target, at)
                return at
            case ast.AugAssign(target=ast.Name()):
                assert isinstance(node.target, ast.Name)
                self.name(node.target, at, is_augmented=True)
                return self.target(node.target, self.read(node.value, at))
            case ast.AnnAssign():
                at = self.read(node.value, at)
                return at if node.value is None else self.target(node.target, at)
            case ast.If():
                at = self.read(node.test, at)
                return _either(self.block(node.body, at), self.block(node.orelse, at))
            case ast.While() | ast.For():
                return self.loop(node, at)
            case ast.Match():
                return self.match(node, at)
            case ast.With():
                for item in node.items:
                    at = self.read(item.context_expr, at)
                    if item.optional_vars is not None:
                        at = self.target(item.optional_vars, at)
                return self.block(node.body, at)
            case ast.Try():
                return self.tried(node, at)
            case ast.FunctionDef():
                return self.assign(node, node.name, self.nested(node, at))
            case ast.Break() | ast.Continue():
                ways = self.breaks if isinstance(node, ast.Break) else self.continues
                ways[-1].append(at)
                return None
        at = self.read(node, at)
        return None if isinstance(node, ast.Return | ast.Raise) else at

    def loop(self, node: ast.While | ast.For, at: Reaching) -> Reaching:
        entry = at if isinstance(node, ast.While) else self.read(node.iter, at)
        while True:
            self.breaks.append([])
            self.continues.append([])
            if isinstance(node, ast.While):
                begun = tested = self.read(node.test, entry)
            else:
                begun, tested = self.target(node.target, entry), entry
            again = _either(entry, self.block(node.body, begun), *self.continues.pop())
            broken = self.breaks.pop()
            if again == entry:
                break
            entry = again
        is_endless = isinstance(node, ast.While) and _is_true(node.test)
        exhausted = None if is_endless else tested
        return _either(self.block(node.orelse, exhausted), *broken)

    def match(self, node: ast.Match, at: Reaching) -> Reaching:
        at = self.read(node.subject, at)
        after: Reaching = None
        for case in node.cases:
            for part in ast.walk(case.pattern):
                if isinstance(part, ast.expr):
                    at = self.read(part, at)
                name = getattr(part, "rest" if isinstance(part, ast.MatchMapping) else "name", None)
                if isinstance(name, str):
                    at = self.assign(part, name, at, may=True)
            at = self.read(case.guard, at)
            after = _either(after, self.block(case.body, at))
        return _either(after, at)

    def tried(self, node: ast.Try, at: Reaching) -> Reaching:
        """A handler, and what is done finally, come after any of the assignments of the body."""
        begin, before = len(self.assigned), at
        after = self.block(node.body, at)
        caught = self.since(begin, before)
        after = self.block(node.orelse, after)
        for handler in node.handlers:
            way = caught
            if handler.name is not None:
                way = self.assign(handler, handler.name, self.read(handler.type, way))
            after = _either(after, self.block(handler.body, way))
        if not node.finalbody:
            return after
        self.block(node.finalbody, self.since(begin, before))
        return self.block(node.finalbody, after)

    def since(self, begin: int, before: Reaching) -> Reaching:
        made: dict[str, frozenset[ast.AST]] = {}
        for name, node in self.assigned[begin:]:
            made[name] = made.get(name, frozenset()) | {node}
        return _either(before, made)


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)

"""Loops of interpreted operators that ask whether their run has to end.

A run that has read values which never existed together may loop for ever, and so may one of the
head whose engine is closed. Nothing is set into a thread from outside. Instead the function that
runs is the user's with one more statement at the beginning of each loop's body, which asks the
runtime. Line numbers, names and globals are those of the user's own function; so are its closure's
cells. Plain functions of the same module that it calls are taken along.

Where there is no source (a function made by ``exec``), the function runs as it is; its run then
ends where it accesses the state.
"""

from __future__ import annotations
import __future__

import ast
import types
from collections.abc import Callable, Mapping
from typing import Any

from specstream.compiler.language.definitions import definition_of

__all__ = ["polled"]

_POLL, _SITE = "__ss_poll", "__ss_site"
Sites = Mapping[types.FunctionType, tuple[int, int]]
"""Of a function, the number of its first line in a profile, and that in its file."""
_FUTURES = sum(getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)


class _Inserting(ast.NodeTransformer):
    """Puts in the polls, and in front of each statement its line's number, for a profile.

    Args:
        site: of line 0; None: lines are not counted.
    """

    def __init__(self, site: int | None) -> None:
        self._site = site

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._site is not None:
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list) and not isinstance(node, ast.ClassDef | ast.Module):
                    setattr(node, name, [made for one in statements for made in self._told(one)])
        return node

    def _told(self, statement: ast.stmt) -> list[ast.stmt]:
        if not isinstance(statement, ast.stmt) or isinstance(statement, ast.Global | ast.Nonlocal):
            return [statement]
        assert self._site is not None
        number = ast.Constant(self._site + statement.lineno)
        call = ast.Expr(ast.Call(ast.Name(_SITE, ast.Load()), [number], []))
        ast.copy_location(call, statement)
        return [ast.fix_missing_locations(call), statement]

    def _with_poll(self, loop: Any) -> Any:
        self.generic_visit(loop)
        call = ast.Expr(ast.Call(ast.Name(_POLL, ast.Load()), [], []))
        ast.copy_location(call, loop)
        loop.body.insert(0, ast.fix_missing_locations(call))
        return loop

    def visit_While(self, node: ast.While) -> Any:
        return self._with_poll(node)

    def visit_For(self, node: ast.For) -> Any:
        return self._with_poll(node)


def _names(code: types.CodeType) -> set[str]:
    nested = [one for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*map(_names, nested))


class Rewritten:
    """A function with polls in its loops, from which one is made for each worker.

    Args:
        function: the user's.
        known: those that are rewritten already, by the originals.
    """

    def __init__(
        self,
        function: types.FunctionType,
        known: dict[types.FunctionType, Rewritten],
        sites: Sites,
    ) -> None:
        known[function] = self
        self.site: int | None = None
        if function in sites:
            site, line = sites[function]
            self.site = site - line
        self.function = function
        self.code: types.CodeType | None = None
        self.called: dict[str, Rewritten] = {}
        found = definition_of(function)
        if found is None:
            return
        for name in _names(function.__code__):
            one = function.__globals__.get(name)
            if isinstance(one, types.FunctionType) and one.__module__ == function.__module__:
                self.called[name] = known.get(one) or Rewritten(one, known, sites)
        self.code = self._compiled(found.tree)

    def _compiled(self, tree: ast.FunctionDef) -> types.CodeType | None:
        original = self.function.__code__
        tree.decorator_list, tree.returns = [], None
        arguments = tree.args
        arguments.defaults = [ast.Constant(None) for _ in arguments.defaults]
        arguments.kw_defaults = [one and ast.Constant(None) for one in arguments.kw_defaults]
        every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
        for one in (*every, arguments.vararg, arguments.kwarg):
            if one is not None:
                one.annotation = None
        _Inserting(self.site).visit(tree)
        given = dict.fromkeys((_POLL, _SITE, *original.co_freevars, *self.called))
        outer = ast.FunctionDef(
            name="__ss_outer",
            args=ast.arguments([], [ast.arg(name) for name in given], None, [], [], None, []),
            body=[tree],
            decorator_list=[],
        )
        if hasattr(ast, "TypeAlias"):  # Python 3.12 and newer
            vars(outer)["type_params"] = []
        module = ast.fix_missing_locations(ast.Module([outer], []))
        flags = original.co_flags & _FUTURES
        try:
            code = compile(module, original.co_filename, "exec", flags, dont_inherit=True)
        except SyntaxError:  # of a name that is global here and a cell there
            return None
        made = next(one for one in code.co_consts if isinstance(one, types.CodeType))
        found = next(
            one
            for one in made.co_consts
            if isinstance(one, types.CodeType) and one.co_name == original.co_name
        )
        return found.replace(co_qualname=original.co_qualname)

    def made(self, run: Any, done: dict[Rewritten, Any]) -> Any:
        """The function for a worker, whose run it polls."""
        if self in done:
            return done[self]
        original = self.function
        if self.code is None:
            done[self] = original
            return original
        cells = dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))
        own = {name: types.CellType() for name in (_POLL, _SITE, *self.called)}
        closure = tuple(own.get(name) or cells[name] for name in self.code.co_freevars)
        function = types.FunctionType(
            self.code, original.__globals__, original.__name__, original.__defaults__, closure
        )
        function.__kwdefaults__ = original.__kwdefaults__
        done[self] = function
        own[_POLL].cell_contents, own[_SITE].cell_contents = run.poll, run.set_site
        for name, one in self.called.items():
            own[name].cell_contents = one.made(run, done)
        return function


def polled(function: Callable[..., Any], sites: Sites) -> Callable[[Any], Callable[..., Any]]:
    """What makes of a worker's ``Run`` a function like this one, whose loops poll it.

    Args:
        sites: of the functions whose lines are counted.
    """
    assert isinstance(function, types.FunctionType)
    rewritten = Rewritten(function, {}, sites)
    return lambda run: rewritten.made(run, {})

"""Where the value of a nullable column is kept, given away or returned, so that it may be asked
later whether it is None.

Everywhere else a null reads 0 at once. Both rewritings look at the marks made here, so that oracle
and native code know of a null in the same places.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection

__all__ = ["is_none", "is_none_test", "is_null_read", "mark_null_reads", "says_there"]


def is_none(node: ast.AST) -> bool:
    """Whether it says ``None``."""
    return isinstance(node, ast.Constant) and node.value is None


def is_none_test(node: ast.AST) -> ast.expr | None:
    """What a comparison asks to be None, or not to be; None: it is another comparison."""
    if not isinstance(node, ast.Compare) or len(node.ops) != 1:
        return None
    if not isinstance(node.ops[0], ast.Is | ast.IsNot | ast.Eq | ast.NotEq):
        return None
    left, right = node.left, node.comparators[0]
    if is_none(right):
        return left
    return right if is_none(left) else None


def says_there(test: ast.expr, holds: bool, is_it: Callable[[ast.expr], bool]) -> bool:
    """Whether a condition that holds, or does not, says that an expression is not None.

    >>> def says(text, holds=True):
    ...     test = ast.parse(text, mode="eval").body
    ...     return says_there(test, holds, lambda one: ast.unparse(one) == "x")
    >>> says("y and x is not None"), says("x is None or y", False), says("x"), says("x or y")
    (True, True, True, False)
    """
    if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        return says_there(test.operand, not holds, is_it)
    if isinstance(test, ast.BoolOp):
        is_each = isinstance(test.op, ast.And) == holds
        return is_each and any(says_there(one, holds, is_it) for one in test.values)
    tested = is_none_test(test)
    if tested is not None:
        assert isinstance(test, ast.Compare)
        return isinstance(test.ops[0], ast.IsNot | ast.NotEq) == holds and is_it(tested)
    return holds and is_it(test)


def is_null_read(node: ast.AST) -> bool:
    """Whether a read of a column has to tell of a null."""
    return hasattr(node, "may_be_null")


def mark_null_reads(
    tree: ast.AST, nullable: Collection[str], locals_: Collection[str], called: Collection[str]
) -> list[ast.expr]:
    """Marks the reads of nullable columns that may be asked later.

    Args:
        called: names of the user's functions.

    Returns:
        All that is kept, given away or returned in the same way.
    """
    flows, functions = _Flows(), {*called, *_nested_functions(tree)}
    for node in ast.walk(tree):
        test = is_none_test(node)
        if test is not None:
            # Of a column itself, the null bit is read.
            flows.ask(test, is_kept=not isinstance(test, ast.Attribute), is_tested=True)
        elif isinstance(node, ast.Match):
            flows.ask(node.subject)
        elif isinstance(node, ast.Return) and node.value is not None:
            flows.ask(node.value)
        elif isinstance(node, ast.Lambda):
            flows.ask(node.body)
            flows.ask_defaults(node.args)
        elif isinstance(node, ast.FunctionDef) and node is not tree:
            flows.ask_defaults(node.args)
        elif isinstance(node, ast.Call) and _is_users_function(node.func, functions):
            for value in (*node.args, *(one.value for one in node.keywords)):
                flows.ask(value)
        elif isinstance(node, ast.Call):
            flows.apply(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                flows.assign(target, node.value)
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr) and node.value is not None:
            flows.assign(node.target, node.value)
        elif isinstance(node, ast.For | ast.comprehension):
            flows.assign_elements(node.target, node.iter)
    kept = flows.settle()
    for value in kept:
        if not isinstance(value, ast.Attribute) or not isinstance(value.value, ast.Name):
            continue
        if value.attr in nullable and value.value.id in locals_:
            value.may_be_null = True  # type: ignore[attr-defined]
    return kept


def _is_users_function(callee: ast.expr, functions: Collection[str]) -> bool:
    """Whether the function that a nullable column is given away to is the user's, or a lambda.

    It is called by its name, or where it is written."""
    if isinstance(callee, ast.Name):
        return callee.id in functions
    return isinstance(callee, ast.Lambda)


def _nested_functions(tree: ast.AST) -> set[str]:
    """Names of the nested functions and lambdas that nullable columns may be given away to."""
    found = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda):
            found |= {one.id for one in node.targets if isinstance(one, ast.Name)}
    return found


class _Flows:
    """What is asked for None, as it is or as an element, followed back to where it comes from."""

    def __init__(self) -> None:
        self.kept: list[ast.expr] = []
        self.asked: set[str] = set()
        self.tested: set[str] = set()
        self.tested_inside: set[str] = set()  # names of what has elements that are tested
        self.values: list[tuple[str, ast.expr]] = []
        self.iterables: list[tuple[str, ast.expr]] = []

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Name):
            self.values.append((target.id, value))
        elif isinstance(target, ast.Tuple | ast.List):
            has_star = any(isinstance(one, ast.Starred) for one in target.elts)
            if isinstance(value, ast.Tuple | ast.List) and not has_star:
                for one, part in zip(target.elts, value.elts, strict=False):
                    self.assign(one, part)
            else:
                self.assign_elements(target, value)

    def assign_elements(self, target: ast.expr, iterable: ast.expr) -> None:
        stored = [one for one in ast.walk(target) if isinstance(one, ast.Name)]
        self.iterables += [(one.id, iterable) for one in stored]

    def ask_defaults(self, of: ast.arguments) -> None:
        for one in (*of.defaults, *of.kw_defaults):
            if one is not None:
                self.ask(one)

    def apply(self, call: ast.Call) -> None:
        """``map(lambda x: ..., xs)`` and the like: elements become parameters."""
        for one in (*call.args, *(one.value for one in call.keywords)):
            if isinstance(one, ast.Lambda):
                given = [other for other in call.args if other is not one]
                self.iterables += [(to.arg, other) for to in one.args.args for other in given]

    def ask(self, value: ast.expr, is_kept: bool = True, is_tested: bool = False) -> None:
        """Of what is kept or given away, a null is known; of what is tested, in elements too."""
        for part in _flowing(value):
            if is_kept:
                self.kept.append(part)
            if isinstance(part, ast.Name):
                self.asked.add(part.id)
                if is_tested:
                    self.tested.add(part.id)
            elif isinstance(part, ast.Subscript) and is_tested:
                self.test_inside(part.value)

    def test_inside(self, value: ast.expr) -> None:
        for part in [value] if isinstance(value, ast.Tuple) else _flowing(value):
            if isinstance(part, ast.Name):
                self.tested_inside.add(part.id)
            elif isinstance(part, ast.Tuple | ast.List | ast.Set):
                for one in part.elts:
                    if isinstance(one, ast.Tuple):
                        self.test_inside(one)
                    else:
                        self.ask(one, is_tested=True)
            elif isinstance(part, ast.Dict):
                for one in part.values:
                    self.ask(one, is_tested=True)
            elif isinstance(part, ast.Call):
                for one in part.args:  # zip, enumerate, reversed and the like
                    self.test_inside(one)

    def settle(self) -> list[ast.expr]:
        before = None
        while before != (before := [*map(len, (self.asked, self.tested, self.tested_inside))]):
            for name, value in self.values:
                if name in self.asked:
                    self.ask(value, is_tested=name in self.tested)
                if name in self.tested_inside:
                    self.test_inside(value)
            for name, iterable in self.iterables:
                if name in self.tested | self.tested_inside:
                    self.test_inside(iterable)
        return self.kept


def _flowing(value: ast.expr) -> list[ast.expr]:
    """What a value may be as it is: the parts that are not computed with."""
    if isinstance(value, ast.IfExp):
        return _flowing(value.body) + _flowing(value.orelse)
    if isinstance(value, ast.BoolOp):
        return [part for one in value.values for part in _flowing(one)]
    if isinstance(value, ast.NamedExpr):
        return _flowing(value.value)
    if isinstance(value, ast.Tuple):
        return [part for one in value.elts for part in _flowing(one)]
    return [value]

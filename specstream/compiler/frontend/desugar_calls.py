"""Calls of the standard library, desugared: spelled in what operators are made of.

``itemgetter(1)`` is a lambda, ``dict(a=1)`` a display, ``heapq.heappush`` a plain function of
:mod:`~specstream.compiler.language.standard_library`, and a ``defaultdict``, ``Counter`` or
``deque`` that stays in its function is a dict or list. This is done to the syntax tree before
anybody looks at it, so that the oracle and the native code have the same; the third witness has
what was written.
"""

from __future__ import annotations

import ast
import bisect
import collections
import copy
import heapq
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sized
from typing import Any, NoReturn

from specstream.compiler.frontend.desugar_collections import LocalCollections
from specstream.compiler.frontend.desugar_loops import LOOPS, Loops
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.frontend.nullable_flows import is_none
from specstream.compiler.frontend.scopes import repeated
from specstream.compiler.language import standard_library
from specstream.compiler.language.operations import OPERATIONS
from specstream.compiler.language.parsing import parse
from specstream.compiler.language.standard_library import BY_COUNT, PREFIX, SAME

__all__ = ["respell"]

# Methods of strings that make several: what is done with those is Python's, before the operator.
_OF_STRINGS = ("split", "rsplit", "splitlines", "partition", "findall", "finditer")
_UNKNOWN: dict[Any, str] = {
    itertools.count: "count in a variable, or use enumerate(xs, start) or range",
    itertools.cycle: "take the index modulo the length: xs[i % len(xs)]",
    itertools.repeat: "write [x] * n, or the value itself",
    itertools.groupby: "go through it in a loop, and compare with the key before",
    itertools.filterfalse: "write [x for x in xs if not f(x)]",
    itertools.starmap: "write [f(a, b) for a, b in xs]",
    itertools.compress: "write [x for x, on in zip(xs, ons) if on]",
    itertools.zip_longest: "write a loop over range(max(len(x), len(y)))",
    itertools.tee: "make a list, and go through it twice",
    itertools.combinations_with_replacement: "write for i in range(n): for j in range(i, n)",
    collections.ChainMap: "write {**a, **b}",
    collections.OrderedDict: "write a dict, which has this order",
    collections.UserDict: "write a dict",
    heapq.merge: "write sorted([*xs, *ys])",
}


def respell(
    tree: ast.FunctionDef,
    names: Iterable[str],
    look_up: Callable[[str], Any],
    refuse: Callable[[ast.AST, str, str], NoReturn],
    catches: bool,
    deques: Mapping[str, int | None],
) -> dict[str, Any]:
    """Changes a function's tree; gives what the names stood for that it has taken out.

    Args:
        tree: the function.
        names: those that it binds somewhere: they mean nothing of the library.
        look_up: what a global name stands for.
        refuse: raises, of a node.
        catches: what stands behind raise is compiled, and not Python's.
        deques: those of the state, as they are written here, with ``maxlen``.
    """
    spelling = _Spelling(frozenset(names), look_up, refuse, catches)
    spelling.refuse_used_up(tree)
    LocalCollections(spelling.called_function, refuse, catches, deques).spell(tree)
    whole = ast.Module(tree.body, [])
    spelling.generic_visit(whole)
    tree.body = whole.body
    return spelling.met


class _Spelling(ast.NodeTransformer):
    def __init__(
        self,
        names: frozenset[str],
        look_up: Callable[[str], Any],
        refuse: Callable[[ast.AST, str, str], NoReturn],
        catches: bool,
    ) -> None:
        self.catches = catches
        self.names = names
        self.look_up = look_up
        self.refuse = refuse
        self.met: dict[str, Any] = {}
        self.loops = Loops(refuse)

    def visit(self, node: ast.AST) -> Any:
        """A statement comes behind the loops that its expressions need."""
        if not isinstance(node, ast.stmt):
            with self.loops.inside(node):
                return super().visit(node)
        with self.loops.before() as defined:
            found = super().visit(node)
            return [*defined, *(found if isinstance(found, list) else [found])]

    def called_function(self, node: ast.expr) -> Any:
        """What a call calls of the standard library, or dict or list; None: something else."""
        path = []
        while isinstance(node, ast.Attribute):
            path.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name) or node.id in self.names:
            return None
        root = value = self.look_up(node.id)
        for attribute in reversed(path):
            value = getattr(value, attribute, None)
        if not callable(value) or isinstance(value, Sized):
            return None
        if value in _BUILTINS:
            return None if path else value
        if value in _TAKEN:
            self.met[node.id] = root
            return value
        return None

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return self.generic_visit(node) if self.catches else node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        if self.catches:
            return self.generic_visit(node)
        node.test = self.visit(node.test)
        return node

    def refuse_used_up(self, tree: ast.FunctionDef) -> None:
        """Refuses names of what ``itertools`` gives that are read again: here they are lists, and
        Python finds nothing more in them."""
        made: dict[str, ast.Call] = {}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Assign) or not isinstance(node.value, ast.Call):
                continue
            if self.called_function(node.value.func) in _ITERATORS:
                names = [one.id for one in node.targets if isinstance(one, ast.Name)]
                made |= dict.fromkeys(names, node.value)
        if not made:
            return
        inside = [repeated(node) for node in ast.walk(tree)]
        reads: dict[str, ast.Name] = {}
        for node in ast.walk(tree):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            value = made.get(node.id)
            again = any(id(node) in ids and id(value) not in ids for ids in inside)
            if value is not None and (again or reads.setdefault(node.id, node) is not node):
                text = ast.unparse(value)
                self.refuse(
                    node,
                    f"{node.id!r} is an iterator, which can be used only once, and is read in "
                    "several places or in a loop",
                    f"make a list of it, {node.id} = list({text})",
                )

    # ---- calls ----

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """``d.keys() & {1, 2}``: keys are a set here."""
        if isinstance(node.op, ast.BitAnd | ast.BitOr | ast.BitXor | ast.Sub):
            node.left, node.right = self.as_set(node.left), self.as_set(node.right)
        return self.generic_visit(node)

    def as_set(self, node: ast.expr) -> ast.expr:
        """The keys of a dict as a set."""
        is_keys = (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "keys"
            and not node.args
            and "set" not in self.names
        )
        if not is_keys:
            return node
        made = ast.Call(ast.Name("set", ast.Load()), [node.func.value], [])  # type: ignore[attr-defined]
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Compare(self, node: ast.Compare) -> Any:
        """``x in (1, None)``: a null is found by asking for it, as its value reads 0; keys beside a
        set are one."""
        if not any(isinstance(op, ast.In | ast.NotIn) for op in node.ops):
            node.left = self.as_set(node.left)
            node.comparators = [self.as_set(one) for one in node.comparators]
        self.generic_visit(node)
        held = node.comparators[0]
        is_search = len(node.ops) == 1 and isinstance(node.ops[0], ast.In | ast.NotIn)
        if not is_search or not isinstance(held, ast.Tuple | ast.List | ast.Set):
            return node
        others = [one for one in held.elts if not is_none(one)]
        asked = node.left
        is_read = isinstance(asked, ast.Attribute) and isinstance(asked.value, ast.Name)
        if len(others) == len(held.elts) or not (isinstance(asked, ast.Name) or is_read):
            return node
        is_in = isinstance(node.ops[0], ast.In)
        test = ast.Compare(asked, [ast.Is() if is_in else ast.IsNot()], [ast.Constant(None)])
        if not others:
            return ast.fix_missing_locations(ast.copy_location(test, node))
        held.elts = others
        node.left = copy.deepcopy(asked)
        both = ast.BoolOp(ast.Or() if is_in else ast.And(), [test, node])
        return ast.fix_missing_locations(ast.copy_location(both, node))

    def visit_Expr(self, node: ast.Expr) -> Any:
        """``heappush`` and ``insort``: the item is put in first, and says what the list holds."""
        call = node.value
        value = self.called_function(call.func) if isinstance(call, ast.Call) else None
        if value not in _PUTTING or not isinstance(call, ast.Call) or len(call.args) != 2:
            return self.generic_visit(node)
        into, item = map(self.visit, call.args)
        if not isinstance(into, ast.Name | ast.Attribute):
            return self.generic_visit(node)
        append = ast.Call(ast.Attribute(into, "append", ast.Load()), [item], [])
        function = ast.Name(PREFIX + _PUTTING[value].__name__, ast.Load())
        statements: list[ast.stmt] = [
            ast.Expr(append),
            ast.Expr(ast.Call(function, [copy.deepcopy(into)], [])),
        ]
        for statement in statements:
            at_place(statement, node)
        return statements

    def visit_For(self, node: ast.For) -> Any:
        node.iter = self.gone_through(node.iter)
        return self.generic_visit(node)

    def gone_through(self, node: ast.expr) -> ast.expr:
        """Of ``dict.fromkeys(xs)`` only the keys are used here."""
        is_method = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if is_method and node.func.attr == "fromkeys" and len(node.args) == 1:  # type: ignore[attr-defined]
            node.args.append(ast.copy_location(ast.Constant(True), node))  # type: ignore[attr-defined]
        return node

    def generated(self, node: ast.expr) -> ast.expr:
        """``iter(xs)`` and ``reversed(xs)``, of which ``next`` takes the first, as a
        generator."""
        function = self.called_function(node.func) if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or function not in (iter, reversed):
            return node
        if len(node.args) != 1 or node.keywords:
            return node
        over = node.args[0] if function is iter else node
        walk = ast.comprehension(ast.Name("specstream·one", ast.Store()), over, [], 0)
        made = ast.GeneratorExp(ast.Name("specstream·one", ast.Load()), [walk])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Call(self, node: ast.Call) -> Any:
        if any(_has_strings(one) for one in node.args):
            return node
        value = self.called_function(node.func)
        if value in (list, len, set, sorted) and node.args:
            node.args[0] = self.gone_through(node.args[0])
        if value is next and node.args:
            node.args[0] = self.generated(node.args[0])
        self.generic_visit(node)
        self.key(node)
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if method == "update" and node.keywords:
            return self.updating(node)
        if isinstance(node.func, ast.Attribute) and self.called_function(node.func.value) is dict:
            return self.from_keys(node)
        if value is dict and node.keywords:
            return self.made_by_keywords(node)
        if value in (int, float, bool) and not node.args and not node.keywords:
            return ast.copy_location(ast.Constant(value()), node)
        if value is None or value in _BUILTINS:
            return node
        if value in LOOPS:
            return self.loops.called(node, LOOPS[value])
        if value is operator.itemgetter:
            return _item_getter(node)
        if value in _OPERATORS:
            return self.operation(node, _OPERATORS[value])
        if value in (heapq.nsmallest, heapq.nlargest) and len(node.args) == 3:
            node.keywords.append(ast.keyword("key", node.args.pop()))
        if value in (heapq.nsmallest, heapq.nlargest) and len(node.args) == 2:
            return _sorted_part(node, value is heapq.nlargest)
        if value is itertools.chain and any(isinstance(one, ast.Starred) for one in node.args):
            value = itertools.chain.from_iterable
            node.args = [self.all_of(node)]
        if value is itertools.chain:
            parts: list[ast.expr] = [ast.Starred(one, ast.Load()) for one in node.args]
            made = ast.copy_location(ast.List(parts, ast.Load()), node)
            return ast.fix_missing_locations(made)
        if value in _UNKNOWN:
            self.refuse(
                node, f"{ast.unparse(node.func)} cannot be used in an operator", _UNKNOWN[value]
            )
        found = self.of_library(node, value)
        node.func = ast.copy_location(ast.Name(PREFIX + found.__name__, ast.Load()), node)
        return node

    def operation(self, node: ast.Call, written: str) -> ast.expr:
        """``operator.add(x, y)`` as ``x + y``."""
        made = parse(written, mode="eval").body
        names = [one for one in ast.walk(made) if isinstance(one, ast.Name)]
        is_starred = any(isinstance(one, ast.Starred) for one in node.args)
        if node.keywords or is_starred or len(node.args) != len(names):
            self.refuse(node, f"{ast.unparse(node)} is an operator's function", f"write {written}")
        for part in ast.walk(made):
            if isinstance(part, ast.expr):
                ast.copy_location(part, node)
        given = {name.id: value for name, value in zip(names, node.args, strict=True)}
        filled: ast.expr = _Filled(given).visit(made)
        return filled

    def all_of(self, node: ast.Call) -> ast.expr:
        """What ``itertools.chain(*rows)`` goes through, one after the other."""
        first, *others = node.args
        if others or not isinstance(first, ast.Starred):
            self.refuse(
                node,
                f"a star among other arguments in a call of {ast.unparse(node.func)}",
                "write itertools.chain.from_iterable(rows), and the others in loops of their own",
            )
        return first.value

    def of_library(self, node: ast.Call, value: Any) -> Any:
        """The plain function that stands for one of the library."""
        if value is itertools.accumulate:
            return self.running(node)
        if value in (itertools.combinations, itertools.permutations):
            return self.of_items(node, value)
        if value is itertools.islice and any(map(is_none, node.args[1:])):
            return self.to_the_end(node)
        count = len(node.args)
        repeat = next((one.value for one in node.keywords if one.arg == "repeat"), None)
        if value is itertools.product and isinstance(repeat, ast.Constant) and count == 1:
            node.keywords = []
            found = _REPEATED.get(repeat.value)
        elif value in SAME:
            found = SAME[value]
            count -= found.__code__.co_argcount
            found = found if count == 0 else None
        else:
            found = BY_COUNT.get(value, {}).get(count)
        return self.of_library_with(node, found)

    def of_library_with(self, node: ast.Call, found: Any) -> Any:
        """The same, if there is one for so many arguments."""
        if found is None or node.keywords:
            self.refuse(
                node,
                f"{ast.unparse(node)} cannot be used in an operator: so many arguments",
                "write the loops out; what works on a part of a list works on xs[low:high]",
            )
        return found

    def to_the_end(self, node: ast.Call) -> Any:
        """``islice`` with a None, which is 0 for the start."""
        if len(node.args) == 3 and is_none(node.args[1]):
            node.args[1] = ast.copy_location(ast.Constant(0), node.args[1])
        if is_none(node.args[-1]) and len(node.args) < 4:
            node.args.pop()
            if len(node.args) == 1:
                node.args.append(ast.copy_location(ast.Constant(0), node))
            return standard_library.rest_of
        return self.of_library_with(node, BY_COUNT[itertools.islice].get(len(node.args)))

    def running(self, node: ast.Call) -> Any:
        by: Any = None
        function = node.args[1] if len(node.args) == 2 else None
        if isinstance(function, ast.Name) and self.called_function(function) in _RUNNING:
            by = _RUNNING[self.called_function(function)]
            node.args.pop()
        elif len(node.args) == 1:
            by = standard_library.running_sums
        if by is None or node.keywords:
            self.refuse(
                node,
                "accumulate with a function of your own cannot be used in an operator",
                "write the loop: total = f(total, x), made.append(total)",
            )
        return by

    def of_items(self, node: ast.Call, value: Any) -> Any:
        count = node.args[1] if len(node.args) == 2 else None
        number: Any = count.value if isinstance(count, ast.Constant) else None
        found = {
            (itertools.combinations, 2): standard_library.pairs,
            (itertools.combinations, 3): standard_library.triples,
            (itertools.permutations, 2): standard_library.ordered_pairs,
        }.get((value, number))
        if found is None or node.keywords:
            self.refuse(
                node,
                f"{ast.unparse(node)} cannot be used in an operator",
                "write loops over range(n): for i in range(n): for j in range(i + 1, n)",
            )
        node.args.pop()
        return found

    def key(self, node: ast.Call) -> None:
        """``key=d.get`` of what goes through d, ``key=x.__getitem__``."""
        for keyword in node.keywords:
            given = keyword.value
            if keyword.arg != "key" or not isinstance(given, ast.Attribute):
                continue
            owner = given.value
            first = ast.unparse(node.args[0]) if node.args else ""
            of_keys = ast.unparse(owner) in (first, first.removesuffix(".keys()"))
            if given.attr == "__getitem__" or (given.attr == "get" and of_keys):
                keyword.value = _lambda(ast.Subscript(owner, _item(), ast.Load()), given)

    # ---- dicts ----

    def made_by_keywords(self, node: ast.Call) -> ast.expr:
        """The call ``dict(d, a=1)`` as a display, ``{**dict(d), 'a': 1}``."""
        keys: list[ast.expr | None] = [None] * len(node.args)
        values: list[ast.expr] = [ast.Call(node.func, [given], []) for given in node.args]
        for keyword in node.keywords:
            keys.append(None if keyword.arg is None else ast.Constant(keyword.arg))
            values.append(keyword.value)
        made = ast.copy_location(ast.Dict(keys, values), node)
        return ast.fix_missing_locations(made)

    def updating(self, node: ast.Call) -> ast.expr:
        """The call ``d.update(e, a=1)`` as ``d.update({**dict(e), 'a': 1})``."""
        name = ast.Name("dict", ast.Load())
        whole = self.made_by_keywords(
            ast.copy_location(ast.Call(name, node.args, node.keywords), node)
        )
        return ast.copy_location(ast.Call(node.func, [whole], []), node)

    def from_keys(self, node: ast.Call) -> ast.expr:
        """The call ``dict.fromkeys(xs, value)`` as a comprehension, which makes a dict."""
        assert isinstance(node.func, ast.Attribute)
        if node.func.attr != "fromkeys":
            return node
        value = node.args[1] if len(node.args) == 2 else None
        if not isinstance(value, ast.Constant | ast.Name):
            self.refuse(
                node,
                "dict.fromkeys without a value, or with one that is computed",
                "write {key: 0 for key in keys}, or a name for the value",
            )
        loop = ast.comprehension(ast.Name(_ITEM, ast.Store()), node.args[0], [], 0)
        made = ast.copy_location(ast.DictComp(_item(), value, [loop]), node)
        return ast.fix_missing_locations(made)


# ---- parts of syntax ----


class _Filled(ast.NodeTransformer):
    """An expression with others in the places of its names."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.given[node.id]


_ITEM = "specstream_item"


def _item() -> ast.expr:
    return ast.Name(_ITEM, ast.Load())


def _lambda(body: ast.expr, at: ast.AST) -> ast.expr:
    arguments = ast.arguments([], [ast.arg(_ITEM)], None, [], [], None, [])
    return ast.fix_missing_locations(ast.copy_location(ast.Lambda(arguments, body), at))


def _item_getter(node: ast.Call) -> ast.expr:
    items: list[ast.expr] = [ast.Subscript(_item(), one, ast.Load()) for one in node.args]
    return _lambda(items[0] if len(items) == 1 else ast.Tuple(items, ast.Load()), node)


def _sorted_part(node: ast.Call, backwards: bool) -> ast.expr:
    """``heapq.nlargest(n, xs, key=f)``, which Python has as the first of what is sorted."""
    count, values = node.args
    keywords = [*node.keywords]
    if backwards:
        keywords.append(ast.keyword("reverse", ast.Constant(True)))
    made = ast.Call(ast.Name("sorted", ast.Load()), [values], keywords)
    if not isinstance(count, ast.Constant):
        count = ast.Call(ast.Name("max", ast.Load()), [count, ast.Constant(0)], [])
    part = ast.Subscript(made, ast.Slice(None, count, None), ast.Load())
    return ast.fix_missing_locations(ast.copy_location(part, node))


def _has_strings(node: ast.AST) -> bool:
    """Whether something is made of many strings, which only Python has."""
    return any(isinstance(one, ast.Attribute) and one.attr in _OF_STRINGS for one in ast.walk(node))


_REPEATED: dict[Any, Any] = {2: standard_library.twice, 3: standard_library.three_times}
_RUNNING: dict[Any, Any] = {
    max: standard_library.running_maxima,
    min: standard_library.running_minima,
}
_PUTTING: dict[Any, Any] = {
    heapq.heappush: standard_library.settle_pushed,
    bisect.insort_right: standard_library.settle_right,
    bisect.insort_left: standard_library.settle_left,
}
_OPERATORS: dict[Any, str] = {one.function: one.form for one in OPERATIONS.values() if one.name}
_BUILTINS = (dict, list, len, set, sorted, max, min, next, iter, reversed, int, float, bool)
_TAKEN: frozenset[Any] = frozenset(
    (*_UNKNOWN, *SAME, *BY_COUNT, operator.itemgetter, heapq.nsmallest, heapq.nlargest)
) | {itertools.chain, itertools.accumulate, itertools.combinations, itertools.permutations}
_TAKEN |= {*LOOPS, *_OPERATORS, collections.defaultdict, collections.Counter, collections.deque}


_ITERATORS = (
    *(itertools.accumulate, itertools.chain, itertools.chain.from_iterable, itertools.combinations),
    *(itertools.islice, itertools.pairwise, itertools.permutations, itertools.product),
    *(itertools.takewhile, itertools.dropwhile),
)

"""Elements of lists that Python makes of an event: what is known of the names that loops give them.

A loop over ``event.text.split()`` gives each word to its name. What depends on the event and on
that name alone has one value for each element, and Python computes it with the list
(:mod:`specstream.compiler.staging.staged_lists`). That holds as long as nobody changes the list,
and where the name is read inside of the loop only. What a pattern captures is an element as well.
"""

from __future__ import annotations

import ast
import csv
import enum
import functools
import inspect
import re
import types
from collections.abc import Callable, Sequence
from typing import Any

from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.fact import CONSTANT, EVENT, STATE, Binding, Fact
from specstream.compiler.facts.list_use import (
    changed_names,
    changes,
    gives_back,
    is_ready,
    items_of,
    kind_of,
    loop_items_of,
)
from specstream.compiler.facts.value_types import ANY, INT, STR, Type
from specstream.compiler.frontend.nullable_flows import says_there
from specstream.compiler.frontend.operator_analysis import FunctionSource
from specstream.compiler.frontend.scopes import repeated
from specstream.compiler.frontend.signatures import parameters_of
from specstream.compiler.language.methods import CHANGING
from specstream.declarations.pure import pure_mark

__all__ = ["Elements"]

_ITERATORS = (iter, map, filter, zip, reversed, enumerate, re.finditer, csv.reader, csv.DictReader)


class Elements:
    """What is known of elements, in one function.

    Args:
        source: the function.
        parse: gives the source of functions that are called.
        bindings: the names of the function that are assigned in one place.
        of: what is known of an expression.
        constant: the value of a global, or of an attribute of one; MISSING: it is no such.

    Attributes:
        loops: the loops and comprehensions that go through such lists, by a number that says of an
            expression that it has a variable of theirs in it.
    """

    def __init__(
        self,
        source: FunctionSource,
        parse: Callable[[types.FunctionType], FunctionSource],
        bindings: dict[str, Binding],
        of: Callable[[ast.expr], Fact],
        constant: Callable[[ast.expr], Any],
    ) -> None:
        self.source = source
        self.parse = parse
        self.bindings = bindings
        self.of = of
        self.constant = constant
        self.loops: dict[int, ast.For | ast.comprehension] = {}
        self._gone_through: dict[ast.For | ast.comprehension, tuple[Type, ...] | None] = {}
        self._around: dict[int, frozenset[int]] = {}
        # As it was written: the tree changes while it is asked about.
        self._reads: dict[str, list[ast.Name]] = {}
        self._repeated: dict[ast.AST, set[int]] = {}
        self._functions: dict[str, ast.FunctionDef] = {}
        for node in ast.walk(self.source.tree):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
                self._reads.setdefault(node.id, []).append(node)
            elif isinstance(node, ast.FunctionDef):
                self._functions.setdefault(node.name, node)
            elif inside := repeated(node):
                self._repeated[node] = inside

    def innermost(self, found: Fact) -> int:
        """The loop whose element it depends on."""
        return next(one for one in sorted(found.bound) if found.bound <= self.around(one))

    def around(self, number: int) -> frozenset[int]:
        """A loop, and those whose elements it goes through the elements of."""
        if number not in self._around:
            outer = self.of(self.loops[number].iter).bound
            self._around[number] = frozenset({number}) | outer
        return self._around[number]

    def is_of_element(self, found: Fact) -> bool:
        """Whether it depends on the event and on an element of a list of it; or of a list in it."""
        if found.depends != EVENT or not found.bound or not found.bound <= self.loops.keys():
            return False
        return any(found.bound <= self.around(one) for one in found.bound)

    @functools.cached_property
    def changed(self) -> frozenset[str]:
        """Names whose lists something may change."""

        def asks(question: Callable[..., bool], call: ast.Call, argument: ast.expr) -> bool:
            try:
                function = self.called_function(call.func)
            except Exception:  # its source cannot be read
                return True
            return function is not None and question(*function, call, argument)

        def is_changed_by(call: ast.Call, argument: ast.expr) -> bool:
            return asks(changes, call, argument)

        def is_given_by(call: ast.Call, argument: ast.expr) -> bool:
            return asks(gives_back, call, argument)

        return changed_names(self.source.tree, is_changed_by, is_given_by)

    def called_function(
        self, called: ast.expr
    ) -> tuple[ast.FunctionDef | ast.Lambda, Sequence[str]] | None:
        """The function of the user's that is called, and its parameters."""
        inside = self.defined_inside(called)
        if inside is not None:
            return inside, parameters_of(inside.args).names
        function = self.constant(called)
        if not isinstance(function, types.FunctionType) or pure_mark(function) is not None:
            return None
        source = self.parse(function)
        return source.tree, source.parameters

    def defined_inside(self, called: ast.expr) -> ast.FunctionDef | ast.Lambda | None:
        """The function inside of this one that is called."""
        if not isinstance(called, ast.Name):
            return called if isinstance(called, ast.Lambda) else None
        value = self.value_of(called.id)
        if isinstance(value, ast.Lambda):
            return value
        return self._functions.get(called.id)

    def value_of(self, name: str) -> ast.expr | None:
        """What a local name was given, once and for all."""
        binding = self.bindings.get(name)
        return None if binding is None or binding.at is not None else binding.value

    def is_used_up(self, node: ast.expr | None) -> bool:
        """Whether it is an iterator: what has gone through it finds nothing more in it."""
        if isinstance(node, ast.Name):
            return self.is_used_up(self.value_of(node.id))
        if not isinstance(node, ast.Call):
            return isinstance(node, ast.GeneratorExp)
        made_by = self.constant(node.func)
        if isinstance(made_by, types.FunctionType) and inspect.isgeneratorfunction(made_by):
            return True
        is_method = isinstance(node.func, ast.Attribute) and node.func.attr == "finditer"
        return is_method or any(made_by is one for one in _ITERATORS)

    def is_changed_object(self, name: str, given: Type) -> bool:
        """Whether a name has an object of a class of the user's that something changes."""
        cls = of.required(given).cls
        if cls is None:
            return False
        is_fixed = issubclass(cls, tuple | enum.Enum)  # all that may change is what it holds
        return (name in self.changed and not is_fixed) or self.changes_itself(
            cls, self.source.tree, name, set()
        )

    def changes_itself(self, cls: type, tree: ast.AST, name: str, met: set[str]) -> bool:
        """Whether a function changes an object of a class that it has under a name."""
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute | ast.Subscript):
                is_changed = not isinstance(node.ctx, ast.Load)
                if is_changed and _owner_name(node) == name:
                    return True
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
                continue
            method = getattr(cls, node.func.attr, None)
            if _owner_name(node.func) != name or node.func.attr in met:
                continue
            if not isinstance(node.func.value, ast.Name):  # of what the object has
                if node.func.attr in CHANGING:
                    return True
            elif isinstance(method, types.FunctionType):
                met.add(node.func.attr)
                try:
                    source = self.parse(method)
                except Exception:  # its source cannot be read
                    continue
                first = next(iter(source.parameters), "")
                if self.changes_itself(cls, source.tree, first, met):
                    return True
        return False

    def is_read_once(self, name: str) -> bool:
        """Whether a name is read in one place, which is not got to again for one value of it."""
        reads, value = self._reads.get(name, []), self.value_of(name)
        return len(reads) == 1 and not any(
            id(reads[0]) in inside and id(value) not in inside for inside in self._repeated.values()
        )

    def kind_of(self, node: ast.expr) -> str:
        """What something of the type of a list really is."""
        return kind_of(node, self.value_of)

    def goes_through(self, node: ast.For | ast.comprehension) -> tuple[Type, ...] | None:
        """What an element has in it of what a loop goes through, if Python makes a list of that
        before; None: compiled code goes through it, or none can."""
        if node not in self._gone_through:  # asked first as it was written: it will be changed
            self._gone_through[node] = self._goes_through(node)
        return self._gone_through[node]

    def _goes_through(self, node: ast.For | ast.comprehension) -> tuple[Type, ...] | None:
        if self.counts(node.iter):
            return (INT,)
        found = self.of(node.iter)
        given = of.required(found.type)
        if found.depends == CONSTANT and isinstance(node, ast.For) and self.reads_letters(node):
            if found.is_bound or given.name not in ("list", "tuple"):
                return None
            items = items_of(of.element(given))
            is_there = is_ready(node.iter, self.kind_of(node.iter))  # type: ignore[arg-type]
            return items if items is not None and STR in items and is_there else None
        if found.depends != EVENT or (found.is_bound and not self.is_of_element(found)):
            return None
        if given == STR:
            return (STR,)
        kind = self.kind_of(node.iter)
        if found.compiled is not None or given.name not in ("list", "tuple", "dict"):
            return None
        if not is_ready(node.iter, kind):  # type: ignore[arg-type]
            return None
        return loop_items_of(of.element(given), isinstance(node.target, ast.Tuple | ast.List))

    def is_of_records(self, node: ast.For | ast.comprehension) -> bool:
        """Whether a loop goes through such a list of what no column holds, such as named tuples."""
        items = self.goes_through(node)
        return items is not None and not all(map(of.is_scalar, items))

    def reads_letters(self, loop: ast.For) -> bool:
        """Whether the body asks of strings of a module, one after the other, what only Python
        knows: ``event.key.startswith(prefix)``."""
        inside = self._repeated[loop]
        names = [one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)]
        known = (one for name in names for one in self._reads.get(name, ()))
        reads = {id(one) for one in known if id(one) in inside}

        def is_read(node: ast.AST) -> bool:
            return any(id(one) in reads for one in ast.walk(node))

        for node in (one for part in loop.body for one in ast.walk(part)):
            callee = node.func if isinstance(node, ast.Call) else None
            if isinstance(callee, ast.Attribute) and hasattr(str, callee.attr) and is_read(node):
                return True
            within = node.comparators[-1] if isinstance(node, ast.Compare) else None
            is_in = isinstance(node, ast.Compare) and isinstance(node.ops[-1], ast.In | ast.NotIn)
            if is_in and within is not None and is_read(node) and self.of(within).type == STR:
                return True
        return False

    def counts(self, node: ast.expr) -> bool:
        """Whether it is the range of the places in such a list, or some of them."""
        if not isinstance(node, ast.Call) or self.constant(node.func) is not range:
            return False
        given = [self.of(one) for one in node.args]
        if any(one.depends == STATE or one.is_bound for one in given):
            return False
        return any(
            isinstance(one, ast.Call)
            and self.constant(one.func) is len
            and len(one.args) == 1
            and self.of(one.args[0]).depends == EVENT
            for part in node.args
            for one in ast.walk(part)
        )

    def number_of(self, loop: ast.For | ast.comprehension) -> int:
        """By which :attr:`loops` knows it."""
        for number, known in self.loops.items():
            if known is loop:
                return number
        number = -2 - len(self.loops)
        self.loops[number] = loop
        return number

    def element(self, binding: Binding) -> Fact:
        """What is known of the name that a loop gives the elements to."""
        loop = binding.loop
        assert loop is not None
        names = [one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)]
        items = self.goes_through(loop)
        if items is None or not all(self.stays_in(name, loop) for name in names):
            return Fact(STATE, ANY, ANY)
        return self.of_target(loop, items, binding.at)

    def of_target(
        self, loop: ast.For | ast.comprehension, items: tuple[Type, ...], at: Any
    ) -> Fact:
        bound = self.around(self.number_of(loop))
        if at is None:
            given = items[0] if len(items) == 1 else of.tuple_of(*items)
            return Fact(EVENT, given, given if all(map(of.is_scalar, items)) else None, bound)
        if at[1] != len(items):
            return Fact(STATE, ANY, ANY)
        given = items[at[0]]
        return Fact(EVENT, given, given if of.is_scalar(given) else None, bound)

    def is_field(self, node: ast.expr) -> bool:
        """Whether it is what a loop gives, or a field of that: to read it raises nothing."""
        if isinstance(node, ast.Attribute):
            owner = self.of(node.value).type
            names: tuple[str, ...] = getattr(owner.cls, "_fields", ())
            return of.is_record(owner) and node.attr in names and self.is_field(node.value)
        if isinstance(node, ast.Subscript):
            owner, at = self.of(node.value).type, getattr(node.slice, "value", None)
            has_items = owner.name == "tuple" or of.is_record(owner)
            is_there = type(at) is int and -len(owner.of) <= at < len(owner.of)
            return has_items and is_there and self.is_field(node.value)
        if not isinstance(node, ast.Name):
            return False
        binding = self.bindings.get(node.id)
        return binding is None or binding.loop is not None

    def is_there(self, node: ast.expr, test: ast.expr, holds: bool) -> bool:
        """Whether a condition that holds, or does not, says that such an item is not None."""
        if not self.is_field(node):
            return False
        shown = ast.dump(node)
        # By now a name is that of one loop: where another had the same, it was renamed.
        return says_there(test, holds, lambda one: ast.dump(one) == shown)

    def stays_in(self, name: str, loop: ast.For | ast.comprehension) -> bool:
        """Whether a name is read inside of a loop only."""
        if isinstance(loop, ast.comprehension):
            return True
        return all(id(one) in self._repeated[loop] for one in self._reads.get(name, ()))

    def taken_apart(
        self, one: ast.comprehension, items: tuple[Type, ...]
    ) -> dict[str, Fact] | None:
        """What the names of a comprehension are that goes through a list of the event; None: its
        target is more than names."""
        target = one.target
        names = list(target.elts) if isinstance(target, ast.Tuple) else [target]
        facts = {}
        for at, name in enumerate(names):
            if not isinstance(name, ast.Name):
                return None
            place = (at, len(names)) if isinstance(target, ast.Tuple) else None
            facts[name.id] = self.of_target(one, items, place)
        return facts


def _owner_name(node: ast.expr) -> str:
    """Whose fact it is: of ``one.parts[0]`` the name of the element or object, ``one``."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""

"""Lists that Python makes of an event, where compiled code needs them.

What only Python can compute is staged as the smallest expression whose value a column can hold. If
that would be a number or string, but is needed together with what the state has, as in ``state.word
in event.text.split()``, or is gone through, the list itself is staged: as a hidden column of lists
(:mod:`specstream.compiler.library.event_lists`). Sets are made by compiled code, of lists: so their
elements have the order in which they came.
"""

from __future__ import annotations

import ast
import copy
from abc import ABC, abstractmethod
from typing import Any, NoReturn

from specstream.columns.derived import ABSENT
from specstream.compiler.backend.local_types import MOST_WORDS
from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_times import BindingTimes
from specstream.compiler.facts.fact import EVENT, Fact
from specstream.compiler.facts.list_use import is_list, list_part
from specstream.compiler.facts.value_types import BOOL, STR, Type
from specstream.compiler.language.builtin_functions import READY
from specstream.compiler.library.event_lists import RecordMade
from specstream.compiler.staging.staged_loops import (
    Loop,
    at_place,
    checked,
    taken_apart,
    with_places,
)
from specstream.declarations.derived import Part, name_of

__all__ = ["Guard", "ListStaging"]

Guard = tuple[ast.expr, bool]
"""A condition, and whether it holds where it guards."""


class ListStaging(ast.NodeTransformer, ABC):
    """What the staging of a function does with lists.

    Attributes:
        alone: what its expressions depend on.
        event: the name of the event in it.
        guards: the conditions around what is gone through.
        guards_of: those around the assignment of a name.
        dropped: names that compiled code has not got, with their types.
        loops: those over lists, by their numbers.
        lists: of dropped names the statement that stands for their assignment, the assignment, and
            what they are.
    """

    alone: BindingTimes
    event: str
    guards: list[Guard]
    guards_of: dict[str, list[Guard]]
    dropped: dict[str, Type]

    def __init__(self) -> None:
        self.loops: dict[int, Loop] = {}
        self.lists: dict[str, tuple[ast.stmt, ast.Assign | ast.AnnAssign, Type]] = {}

    @abstractmethod
    def block(self, body: list[ast.stmt]) -> list[ast.stmt]: ...

    @abstractmethod
    def expression(self, node: ast.expr) -> ast.expr: ...

    @abstractmethod
    def rewritten(self, node: ast.expr) -> ast.expr: ...

    @abstractmethod
    def part(self, node: Any) -> Any: ...

    @abstractmethod
    def python(self, node: Any, made: Any) -> Any: ...

    @abstractmethod
    def guarding(self, node: ast.expr, made: Any) -> list[ast.expr]: ...

    @abstractmethod
    def staged(self, node: ast.expr, given: Type) -> ast.expr: ...

    @abstractmethod
    def drop_assigned(self, node: ast.expr) -> None: ...

    @abstractmethod
    def visit_parts(self, target: ast.expr) -> None: ...

    @abstractmethod
    def refuse(self, node: ast.AST, problem: str, hint: str) -> NoReturn: ...

    @abstractmethod
    def nothing_made(self) -> Any:
        """What a function for Python is made of, as yet nothing."""

    @abstractmethod
    def made(
        self,
        node: ast.expr,
        body: ast.expr,
        made: Any,
        parts: tuple[Part, ...],
        guards: list[ast.expr],
    ) -> int:
        """The number of the derived value that a function for Python gives."""

    @abstractmethod
    def uses_arena(self) -> None:
        """There is a list."""

    def keep_lists(self, tree: ast.AST, of_loop: int | None = None) -> None:
        """Names of lists that compiled code reads, too, are assigned where they were.

        Args:
            tree: the function, or a loop that gives the elements of which they are.
            of_loop: the number of the loop.
        """
        read = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        kept: dict[int, ast.stmt] = {}
        for name in sorted(read & self.lists.keys() & self.dropped.keys()):
            check, node, given = self.lists[name]
            assert node.value is not None
            found = self.alone.of(node.value)
            if of_loop != (self.alone.innermost(found) if found.is_bound else None):
                continue
            guards, self.guards = self.guards, self.guards_of.get(name, [])
            targets: list[ast.expr] = [node.target] if isinstance(node, ast.AnnAssign) else []
            targets = targets or node.targets  # type: ignore[union-attr]
            read_of = self.item_read if found.is_bound else self.staged
            value = read_of(node.value, given)
            kept[id(check)] = ast.copy_location(ast.Assign(targets, value), node)
            self.guards = guards
            for one in targets:
                assert isinstance(one, ast.Name)
                self.dropped.pop(one.id, None)
        for part in ast.walk(tree) if kept else ():
            for field in ("body", "orelse", "finalbody"):
                block = getattr(part, field, None)
                if isinstance(block, list):
                    block[:] = [kept.get(id(one), one) for one in block]

    def loop(self, node: ast.For) -> ast.stmt:
        """A loop over a list that Python makes of the event."""
        loop = self.begin(node)
        guards = self.guarding(node.iter, loop.made)
        node.body = self.block(node.body)
        self.keep_lists(node, loop.number)
        node.target, node.iter = loop.new_target(), self.hidden_list(node.iter, loop, guards)
        if loop.has_whole:
            parts: list[ast.expr] = [ast.Name(one, ast.Load()) for one in loop.whole]
            whole = ast.Assign([loop.target], ast.Tuple(parts, ast.Load()))
            node.body.insert(0, at_place(whole, node))
        node.orelse = self.block(node.orelse)
        return with_places(node)

    def begin(self, node: ast.For | ast.comprehension) -> Loop:
        number, elements = self.alone.number_of(node), self.alone.goes_through(node)
        assert elements is not None
        found = self.alone.of(node.iter)
        made = self.outer(found).made if found.is_bound else self.nothing_made()
        self.loops[number] = Loop(number, node.target, elements, made)
        return self.loops[number]

    def outer(self, found: Fact) -> Loop:
        """The loop that gives the element of which something is."""
        return self.loops[self.alone.innermost(found)]

    def hidden_list(self, iterated: ast.expr, loop: Loop, guards: list[ast.expr]) -> ast.expr:
        """The read of the list that a loop goes through; of a range that nothing is staged of, the
        range."""
        if not loop.staged and self.alone.counts(iterated):
            return self.expression(iterated)
        self.drop_assigned(iterated)
        body = loop.body(self.python(iterated, loop.made))
        if len(loop.part().words) > MOST_WORDS:
            self.refuse(
                iterated,
                f"{len(loop.staged)} values of each element of {ast.unparse(iterated)} are needed "
                "that only Python has, which is too many",
                "compute some of them in one function, marked @ss.pure",
            )
        found = self.alone.of(iterated)
        if found.is_bound:
            item = self.outer(found).read(at_place(body, iterated), loop.part())
            return at_place(item, iterated)
        number = self.made(iterated, body, loop.made, (loop.part(),), guards)
        event = ast.Name(self.event, ast.Load())
        self.uses_arena()
        read: ast.expr = at_place(ast.Attribute(event, name_of(number, 0), ast.Load()), iterated)
        return read

    def comprehension(self, node: Any) -> ast.expr:
        """A comprehension over such a list."""
        made = copy.copy(node)
        begun: list[tuple[Loop, list[ast.expr], list[ast.expr]] | None] = []
        rest: dict[ast.comprehension, ast.comprehension] = {}
        for one in node.generators:
            if one is not node.generators[0] and not self.alone.is_of_records(one):
                rest[one] = self.part(one)
                begun.append(None)
                continue
            loop = self.begin(one)
            guards = self.guarding(one.iter, loop.made)
            begun.append((loop, guards, list(map(self.rewritten, one.ifs))))
        depth = len(self.guards)
        for test in (test for one in node.generators for test in one.ifs):
            if self.alone.of(test).is_bound:
                self.guards.append((test, True))
        for name in ("elt", "key", "value"):
            if hasattr(node, name):
                setattr(made, name, self.rewritten(getattr(node, name)))
        del self.guards[depth:]
        made.generators = []
        # What an inner one goes through may be made of an element of an outer one.
        for one, of_list in reversed(list(zip(node.generators, begun, strict=True))):
            if of_list is None:
                made.generators.insert(0, rest[one])
            else:
                made.generators[:0] = self.generators(one, *of_list)
        changed: ast.expr = with_places(made)
        return changed

    def generators(
        self, one: ast.comprehension, loop: Loop, guards: list[ast.expr], ifs: list[ast.expr]
    ) -> list[ast.comprehension]:
        """What goes through a hidden list in the place of one that goes through such a list."""
        read = self.hidden_list(one.iter, loop, guards)
        if not loop.has_whole:
            return [ast.comprehension(loop.new_target(), read, ifs, 0)]
        parts: list[ast.expr] = [ast.Name(name, ast.Load()) for name in loop.whole]
        pair = ast.Tuple([ast.Tuple(parts, ast.Load())], ast.Load())
        whole = ast.comprehension(loop.target, pair, ifs, 0)
        return [ast.comprehension(loop.new_target(), read, [], 0), whole]

    def is_left(self, node: ast.expr) -> bool:
        """Whether compiled code makes something of lists that Python makes of the event: sets,
        because theirs have an order, and what goes through them item by item."""
        found = self.alone.of(node)
        if found.depends != EVENT or found.compiled is not None or found.is_bound:
            return False
        if isinstance(node, ast.Name):
            value = self.alone.value_of(node.id)
            return value is not None and self.is_left(value)
        if isinstance(node, ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self.alone.goes_through(node.generators[0]) is not None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            known = node.func.id in ("set", *READY)
            return known and not node.keywords and all(map(self.is_listed, node.args))
        return False

    def is_listed(self, node: ast.expr) -> bool:
        """Whether it is something that compiled code goes through."""
        found = self.alone.of(node)
        is_ours = is_list(of.required(found.type)) and self.alone.kind_of(node) == "list"
        return found.compiled is not None or is_ours or self.is_left(node)

    def is_hidden_list(self, node: ast.expr) -> bool:
        """Whether it is a list that Python makes of the event, and a column can hold it."""
        found = self.alone.of(node)
        return (
            found.depends == EVENT
            and found.compiled is None
            and (not found.is_bound or self.alone.is_of_element(found))
            and is_list(found.type)
            and self.alone.kind_of(node) == "list"
        )

    def list_read(self, node: ast.expr) -> ast.expr:
        """The read of such a list; a name stays, and is given one where it is assigned."""
        if isinstance(node, ast.Name) and node.id in self.alone.bindings:
            return node
        found = self.alone.of(node)
        return self.item_read(node, found.type) if found.is_bound else self.staged(node, found.type)

    def of_element(
        self, node: ast.Assign | ast.AnnAssign, targets: list[ast.expr], found: Fact
    ) -> ast.stmt:
        """An assignment of what Python makes of an element."""
        value = node.value
        assert value is not None
        if not self.alone.is_of_element(found):
            return self.rewritten_in(node, targets)
        if len(targets) == 1 and isinstance(targets[0], ast.Tuple | ast.List):
            made = self.unpacked(value, targets[0].elts, found)
            if made is not None:
                return at_place(made, node)
        are_known = all(
            isinstance(one, ast.Name)
            and one.id in self.alone.bindings
            and self.alone.of_local(one.id).depends == EVENT
            for one in targets
        )
        if found.is_staged or not are_known:
            return self.rewritten_in(node, targets)
        check = at_place(ast.If(self.item_read(value, BOOL, None), [ast.Pass()], []), node)
        for one in targets:
            assert isinstance(one, ast.Name)
            self.dropped[one.id] = found.type
            if self.is_hidden_list(value):
                self.lists[one.id] = (check, node, found.type)
        return check

    def rewritten_in(
        self, node: ast.Assign | ast.AnnAssign, targets: list[ast.expr]
    ) -> ast.Assign | ast.AnnAssign:
        assert node.value is not None
        node.value = self.expression(node.value)
        for part in targets:
            self.visit_parts(part)
        return node

    def unpacked(self, value: ast.expr, targets: list[ast.expr], found: Fact) -> ast.stmt | None:
        """An assignment of an element's parts to names; None: there are others, too."""
        count = len(targets)
        stars = [at for at, one in enumerate(targets) if isinstance(one, ast.Starred)]
        star = stars[0] if stars else None
        names = [one.value if isinstance(one, ast.Starred) else one for one in targets]
        items = [self.alone.item(found.type, at, count, star) for at in range(count)]
        is_held = all(of.is_scalar(one) or is_list(one) for one in items)
        if not is_held or not all(isinstance(one, ast.Name) for one in names):
            return None
        parts = [self.item_read(value, one, (at, count, star)) for at, one in enumerate(items)]
        return ast.Assign([ast.Tuple(names, ast.Store())], ast.Tuple(parts, ast.Load()))

    def item_read(self, node: ast.expr, given: Type, part: Any = False) -> ast.expr:
        """The read of what Python makes of an element.

        Args:
            node: the expression.
            given: its type.
            part: which of how many values of an assignment, and which has a star; None: only
                whether it raises; False: the value.
        """
        loop = self.outer(self.alone.of(node))
        body = self.python(node, loop.made)
        raises = True
        if part is None:
            body = checked(body)
        elif part is not False:
            body = taken_apart(body, *part)
        elif node in self.alone.truths:
            body = ast.Call(ast.Name("__ss_bool", ast.Load()), [body], [])
        elif self.alone.of(node).type == STR and given != STR:
            body = ast.Call(ast.Name("__ss_list", ast.Load()), [body], [])
        else:
            raises = not self.alone.is_field(node)
        kind: Any = list_part(given) if given.name == "list" else given.name
        read: ast.expr
        if given.name == "optional":
            read = self.read_or_none(loop, at_place(body, node), given.of[0], raises)
            if self.is_there(node):
                assert isinstance(read, ast.IfExp)
                read = read.orelse
        else:
            read = loop.read(at_place(body, node), kind, raises)
        return at_place(read, node)

    def is_there(self, node: ast.expr) -> bool:
        """Whether the conditions around an item say that it is not None."""
        return any(self.alone.is_there(node, test, holds) for test, holds in self.guards)

    def read_or_none(self, loop: Loop, body: ast.expr, given: Type, raises: bool) -> ast.expr:
        """The read of what may be None: whether it is, and what it is elsewhere."""
        is_none = at_place(ast.Compare(body, [ast.Is()], [ast.Constant(None)]), body)
        zero = ast.Constant(ABSENT[given.name])
        value = at_place(ast.IfExp(is_none, zero, body), body)
        kind: Any = given.name
        return ast.IfExp(
            loop.read(is_none, "bool", raises), ast.Constant(None), loop.read(value, kind, raises)
        )

    def record(self, node: ast.expr) -> ast.expr:
        """An element that is a named tuple, or one in it, as compiled code has it."""
        found = self.alone.of(node)
        loop, cls = self.outer(found), found.type.cls
        names: tuple[str, ...] = getattr(cls, "_fields", ())
        assert cls is not None
        body = self.python(node, loop.made)
        parts: list[ast.expr] = []
        for name, one in zip(names, found.type.of, strict=True):
            value = at_place(ast.Attribute(body, name, ast.Load()), node)
            if one.name == "optional":
                parts.append(self.read_or_none(loop, value, one.of[0], False))
                continue
            kind: Any = one.name
            parts.append(loop.read(value, kind, raises=False))
        made: ast.expr = at_place(RecordMade.of(cls.__name__, names, parts), node)
        return made

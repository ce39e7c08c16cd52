"""Lists that Python makes of an event, where compiled code needs them.

What only Python can compute is staged as the smallest expression whose value a column can hold. If
that would be a number or string, but is needed together with what the state has, as in ``state.word
in event.text.split()``, or is gone through, the list itself is staged: as a hidden column of lists
(:mod:`specstream.compiler.library.event_lists`). Sets are made by compiled code, of lists: so their
elements have the order in which they came.
"""

from __future__ import annotations

import ast
from typing import Any

from specstream.columns.derived import ABSENT
from specstream.compiler.backend.local_types import MOST_WORDS
from specstream.compiler.facts import value_types as of
from specstream.compiler.facts.binding_time_base import item
from specstream.compiler.facts.fact import EVENT, Fact
from specstream.compiler.facts.list_use import is_list, list_part
from specstream.compiler.facts.value_types import STR, Type
from specstream.compiler.frontend.made_nodes import at_place
from specstream.compiler.language.builtin_functions import READY
from specstream.compiler.library.event_lists import RecordMade
from specstream.compiler.staging.derived_functions import Made
from specstream.compiler.staging.staged_loops import Loop, checked, taken_apart
from specstream.compiler.staging.staged_values import Shape, StagedValues

__all__ = ["StagedLists"]


class StagedLists:
    """What the staging of a function reads of such lists, and of their elements.

    Attributes:
        loops: those over lists, by their numbers.
    """

    def __init__(self, values: StagedValues) -> None:
        self.values = values
        self.alone = values.alone
        self.loops: dict[int, Loop] = {}

    def begin(self, node: ast.For | ast.comprehension) -> Loop:
        number, elements = (
            self.alone.elements.number_of(node),
            self.alone.elements.goes_through(node),
        )
        assert elements is not None
        found = self.alone.of(node.iter)
        made = self.outer(found).made if found.is_bound else Made(self.values.source)
        self.loops[number] = Loop(number, node.target, elements, made)
        return self.loops[number]

    def outer(self, found: Fact) -> Loop:
        """The loop that gives the element of which something is."""
        return self.loops[self.alone.elements.innermost(found)]

    def read(self, iterated: ast.expr, loop: Loop, guards: list[ast.expr]) -> ast.expr:
        """The read of the hidden list that a loop goes through."""
        self.values.drop_assigned(iterated)
        body = loop.body(self.values.python(iterated, loop.made))
        if len(loop.part().words) > MOST_WORDS:
            self.values.refuse(
                iterated,
                f"{len(loop.staged)} values of each element of {ast.unparse(iterated)} are needed "
                "that only Python has, which is too many",
                "compute some of them in one function, marked @ss.pure",
            )
        found = self.alone.of(iterated)
        if found.is_bound:
            item = self.outer(found).read(at_place(body, iterated), loop.part())
            return at_place(item, iterated)
        shape = Shape((loop.part(),), is_tuple=False, is_seen=True)
        number = self.values.function(iterated, body, loop.made, shape, guards)
        self.values.uses_arena()
        return at_place(self.values.check(number, 0), iterated)

    def is_left(self, node: ast.expr) -> bool:
        """Whether compiled code makes something of lists that Python makes of the event: sets,
        because theirs have an order, and what goes through them item by item."""
        found = self.alone.of(node)
        if found.depends != EVENT or found.compiled is not None or found.is_bound:
            return False
        if isinstance(node, ast.Name):
            value = self.alone.elements.value_of(node.id)
            return value is not None and self.is_left(value)
        if isinstance(node, ast.SetComp | ast.GeneratorExp | ast.DictComp):
            return self.alone.elements.goes_through(node.generators[0]) is not None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            known = node.func.id in ("set", *READY)
            return known and not node.keywords and all(map(self.is_listed, node.args))
        return False

    def is_listed(self, node: ast.expr) -> bool:
        """Whether it is something that compiled code goes through."""
        found = self.alone.of(node)
        is_ours = is_list(of.required(found.type)) and self.alone.elements.kind_of(node) == "list"
        return found.compiled is not None or is_ours or self.is_left(node)

    def is_hidden_list(self, node: ast.expr) -> bool:
        """Whether it is a list that Python makes of the event, and a column can hold it."""
        found = self.alone.of(node)
        return (
            found.depends == EVENT
            and found.compiled is None
            and (not found.is_bound or self.alone.elements.is_of_element(found))
            and is_list(found.type)
            and self.alone.elements.kind_of(node) == "list"
        )

    def list_read(self, node: ast.expr) -> ast.expr:
        """The read of such a list; a name stays, and is given one where it is assigned."""
        if isinstance(node, ast.Name) and node.id in self.alone.bindings:
            return node
        found = self.alone.of(node)
        return (
            self.item_read(node, found.type)
            if found.is_bound
            else self.values.staged(node, found.type)
        )

    def unpacked(self, value: ast.expr, targets: list[ast.expr], found: Fact) -> ast.stmt | None:
        """An assignment of an element's parts to names; None: there are others, too."""
        count = len(targets)
        stars = [at for at, one in enumerate(targets) if isinstance(one, ast.Starred)]
        star = stars[0] if stars else None
        names = [one.value if isinstance(one, ast.Starred) else one for one in targets]
        items = [item(found.type, at, count, star) for at in range(count)]
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
        body = self.values.python(node, loop.made)
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
            raises = not self.alone.elements.is_field(node)
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
        return any(
            self.alone.elements.is_there(node, test, holds) for test, holds in self.values.guards
        )

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
        body = self.values.python(node, loop.made)
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

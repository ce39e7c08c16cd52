"""Local lists, an event's own, in Numba's terms: made, indexed, appended to, gone through.

What nearly every event does (an item, ``append``, ``len``, a loop) is written in place; the rest
is C's (``local_list.c``).
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import RefType, iternext_impl
from numba.extending import lower_builtin

from specstream._native import ffi
from specstream.compiler.backend.instructions import BIT, I64, POINTER, Instructions, Value
from specstream.compiler.backend.local_types import (
    ListType,
    LocalIterator,
    Unknown,
    declared_type,
    kinds_of,
    known,
    meet,
    own,
    pack,
    resolved,
    settled,
    takes,
    unpack,
    width_of,
)
from specstream.compiler.backend.numba_types import RunType
from specstream.compiler.backend.overloads import Core, Meaning
from specstream.compiler.language.parsing import parse
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.indices import Indexed
from specstream.compiler.library.method_dispatch import method

__all__ = [
    "List",
    "argument",
    "declared",
    "element_of",
    "list_append",
    "list_new",
    "list_of",
    "list_walk",
]


_VOID = ir.VoidType()


class Head(Instructions):
    """A head in the arena, by its address; what it has in its members."""

    struct: str

    def __init__(self, context: Any, builder: Any, pointer: Value) -> None:
        super().__init__(context, builder)
        self.pointer = pointer

    def member(self, name: str, of: ir.Type = I64) -> Value:
        return self.builder.load(self.member_address(name, of))

    def member_address(self, name: str, of: ir.Type = I64) -> Value:
        offset = I64(ffi.offsetof(self.struct, name))
        address = self.builder.gep(self.pointer, [offset], inbounds=True)
        return self.builder.bitcast(address, of.as_pointer())

    def leave_if_null(self, pointer: Value) -> Value:
        """Leaves the event where C has had no memory for a local list, or the like."""
        self.leave_if(cgutils.is_null(self.builder, pointer))
        return pointer

    def leave_unless(self, done: Value) -> None:
        """What C could not do for want of memory."""
        self.leave_if(self.builder.not_(done))

    def words_at(self, address: Value, count: int) -> list[Value]:
        """Words from an address on."""
        return [
            self.builder.load(self.builder.gep(address, [I64(at)], inbounds=True))
            for at in range(count)
        ]

    def put_words(self, address: Value, words: list[Value]) -> None:
        for at, word in enumerate(words):
            self.builder.store(word, self.builder.gep(address, [I64(at)], inbounds=True))

    def in_memory(self, words: list[Value]) -> Value:
        """The address of words on the stack, as a list's element is given to C."""
        place = cgutils.alloca_once(self.builder, I64, size=max(len(words), 1))
        self.put_words(place, words)
        return self.builder.bitcast(place, POINTER)


class List(Indexed, Head):
    """Writes instructions about one list."""

    struct = "struct ss_list"

    def __init__(self, context: Any, builder: Any, of: types.Type, pointer: Value) -> None:
        super().__init__(context, builder, pointer)
        found = resolved(of)
        assert isinstance(found, ListType)
        self.element = found.element
        self.width = 0 if isinstance(self.element, Unknown) else width_of(self.element)

    @property
    def kinds(self) -> Value:
        return I64(0) if isinstance(self.element, Unknown) else kinds_of(self.element)

    def count(self) -> Value:
        return self.member("count")

    def address(self, at: Value) -> Value:
        """Of an element; the caller has checked the bounds."""
        words = self.member("words", I64.as_pointer())
        return self.builder.gep(words, [self.builder.mul(at, I64(self.width))], inbounds=True)

    def get(self, at: Value) -> Value:
        return unpack(self, self.element, self.words_at(self.address(at), self.width))

    def put(self, at: Value, value: Value) -> None:
        self.put_words(self.address(at), pack(self, self.element, value))

    def packed(self, value: Value) -> Value:
        """The address of a value's words, for a call of C."""
        return self.in_memory(pack(self, self.element, value))

    def append(self, value: Value) -> None:
        builder = self.builder
        words = pack(self, self.element, value)
        count = self.count()
        full = builder.icmp_unsigned("==", count, self.member("capacity"))
        with builder.if_then(full, likely=False):
            self.leave_unless(self.call("ss_list_reserve", BIT, self.pointer, self.kinds, I64(1)))
        self.put_words(self.address(count), words)
        builder.store(builder.add(count, I64(1)), self.member_address("count"))

    def insert(self, at: Value, value: Value) -> None:
        gap = self.call("ss_list_gap", I64.as_pointer(), self.pointer, self.kinds, at)
        self.leave_if_null(gap)
        self.put(at, value)

    def take_last(self) -> Value:
        last = self.position(I64(-1), types.int64)
        self.builder.store(last, self.member_address("count"))
        return self.get(last)

    def delete(self, first: Value, step: Value, length: Value) -> None:
        self.call("ss_list_delete", _VOID, self.pointer, first, step, length)

    def find(self, value: Value, first: Value, last: Value) -> Value:
        """The position of an equal element, or -1."""
        packed = self.packed(value)
        return self.call("ss_list_find", I64, self.pointer, self.kinds, packed, first, last)

    def clear(self) -> None:
        self.builder.store(I64(0), self.member_address("count"))

    def replace(self, first: Value, step: Value, length: Value, by: List) -> None:
        builder = self.builder
        apart = builder.icmp_signed("!=", step, I64(1))
        differ = builder.icmp_unsigned("!=", length, by.count())
        self.fault_if(builder.and_(apart, differ), ValueError)
        part = (self.pointer, first, step, length, by.pointer)
        self.leave_unless(self.call("ss_list_replace", BIT, *part))

    def part(self, first: Value, step: Value, length: Value) -> Value:
        made = self.call("ss_list_part", POINTER, self.pointer, first, step, length)
        return self.leave_if_null(made)


def element_of(of: ListType, what: str = "a list") -> types.Type:
    """What a list holds; an error as long as nobody has said it."""
    return known(of.element, what)


# ---- making one ----

list_new = Core("list_new", "write []")
list_of = Core("list_of", "write [a, b]")


@list_new.rule
def _new(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``[]``; with a type of a list, one of that."""
    if len(args) != 1 or not isinstance(args[0], RunType):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        head = Head(context, builder, args[0])
        return head.leave_if_null(head.call("ss_list_new", POINTER, args[0], I64(0), I64(0)))

    return ListType(Unknown()), args, code


@list_of.rule
def _of(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``[a, b]``."""
    run, *given = args
    element: types.Type = Unknown()
    for one in given:
        element = takes(ListType(element), one)
    made = ListType(element)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        head = Head(context, builder, args[0])
        new = List(context, builder, sig.return_type, args[0])
        length = I64(len(args) - 1)
        pointer = head.call("ss_list_new", POINTER, args[0], new.kinds, length)
        new.pointer = head.leave_if_null(pointer)
        for at, value in enumerate(args[1:]):
            new.put(I64(at), value)
        builder.store(length, new.member_address("count"))
        return new.pointer

    return made, (run, *[element] * len(given)), code


declared = Core("declared", "write x: list[float] = []")


@declared.rule
def _empty_as_annotated(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Makes the empty local list of ``x: list[float] = []``; a dict or set likewise."""
    said = args[1]
    if not isinstance(said, types.StringLiteral):
        raise refuse("an annotation is a literal: write x: list[float] = []")
    made = declared_type(parse(said.literal_value, mode="eval").body)
    symbol = "ss_list_new" if isinstance(made, ListType) else "ss_table_new"

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        head = Head(context, builder, args[0])
        rest = [I64(0), I64(0)] if isinstance(made, ListType) else []
        return head.leave_if_null(head.call(symbol, POINTER, args[0], *rest))

    return made, args, code


# ---- what other files ask for ----

list_append = method("append")


def same_elements(left: types.Type, right: types.Type) -> types.Type:
    """The type of two lists that go together."""
    found = meet(own(left), own(right))
    if found is None:
        raise refuse(
            f"a list of {left.element} meets one of {right.element}: "
            "keep values of one type in both"
        )
    return found


argument = Core("argument", "a function takes it as it is")


@argument.rule
def _list_as_argument(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """A local list, or any value, as a function's argument: what it holds has to be known."""
    given = settled(types.unliteral(args[0]))
    return given, (given,), lambda context, builder, sig, args: args[0]


# ---- going through one ----


@lower_builtin("getiter", ListType)
def _getiter(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    return list_walk(context, builder, sig.return_type, args[0])


def list_walk(context: Any, builder: Any, of: LocalIterator, pointer: Value) -> Value:
    """A walk through a local list that begins."""
    first = I64(0)
    if of.walk == "reversed":
        first = builder.sub(List(context, builder, of.walked, pointer).count(), I64(1))
    made = cgutils.create_struct_proxy(of)(context, builder)
    made.walked = pointer
    made.next = cgutils.alloca_once_value(builder, first)
    made.changes = I64(0)
    return made._getvalue()


@lower_builtin("iternext", LocalIterator)
@iternext_impl(RefType.UNTRACKED)
def _iternext(context: Any, builder: Any, sig: Any, args: Any, result: Any) -> None:
    iterator = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=args[0])
    STEPS[sig.args[0].walk](context, builder, sig.args[0], iterator, result)


def _next_item(context: Any, builder: Any, of: LocalIterator, iterator: Any, result: Any) -> None:
    """It sees what is appended meanwhile, as Python's; backwards it ends where the list has become
    too short."""
    head = List(context, builder, of.walked, iterator.walked)
    at = builder.load(iterator.next)
    more = builder.icmp_unsigned("<", at, head.count())  # -1 is the largest
    result.set_valid(more)
    with builder.if_then(more):
        step = I64(-1 if of.walk == "reversed" else 1)
        builder.store(builder.add(at, step), iterator.next)
        result.yield_(head.get(at))


STEPS: dict[str, Any] = {"items": _next_item, "reversed": _next_item}
"""One step of an iterator, by how it goes."""

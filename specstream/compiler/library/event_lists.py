"""Lists that Python has made of an event: a local list, filled where the operator gets to it.

A hidden column has the address of the words (:mod:`specstream.columns.lists`). Each read makes a
new list of them, as the expression that stands there makes one each time. So it is the event's own:
whatever can be done with a local list can be done with it, and nobody else sees it change.

An item of an element may be an exception: of ``int(p)`` in a loop over strings, that of the ones
that are no integers. Compiled code raises it where it gets to the item.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from specstream.columns.derived import Raised
from specstream.columns.lists import list_at
from specstream.columns.strings import StringTable
from specstream.compiler.backend.exception_status import STATUS, raise_known, without_site
from specstream.compiler.backend.instructions import I64, POINTER, Value
from specstream.compiler.backend.local_types import ListType, declared_type
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.overloads import Core, Meaning
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS
from specstream.compiler.language.frozen import record_class
from specstream.compiler.language.numbers import Int64
from specstream.compiler.language.parsing import parse
from specstream.compiler.language.text import Text
from specstream.compiler.library.local_lists import List
from specstream.compiler.oracle_objects.elements import LOAD
from specstream.compiler.oracle_objects.local import List as OracleList
from specstream.declarations.derived import Part

__all__ = [
    "ItemRead",
    "RecordMade",
    "item_list",
    "item_read",
    "list_hint",
    "list_type",
    "oracle_item",
    "oracle_list",
    "write_list",
]

Path = Sequence[tuple[int, int]]


class ItemRead(ast.expr):
    """The read of an item that may have raised."""

    _fields = ("status", "value")

    status: ast.expr
    value: ast.expr
    part: Part | None
    """Of a list, what is in it; the value is its address."""

    @classmethod
    def of(cls, status: ast.expr, value: ast.expr, part: Part | None) -> ItemRead:
        made = cls()  # nodes that are copied are made without arguments
        made.status, made.value, made.part = status, value, part
        return made


class RecordMade(ast.Tuple):
    """A named tuple that compiled code makes of the fields of an element.

    Attributes:
        record: the class that stands for it, in oracle and native code.
    """

    record: Any

    @property
    def name(self) -> str:
        """By which both know the class: no user can write it, and each has its own."""
        return f"__ss_{self.record.__name__}({', '.join(self.record._fields)})"

    @classmethod
    def of(cls, name: str, fields: tuple[str, ...], parts: list[ast.expr]) -> RecordMade:
        made = cls(parts, ast.Load())
        made.record = record_class(name, fields)
        return made


def list_type(part: Part) -> ListType:
    """Numba's type of such a list."""
    items = [types.int64 if isinstance(one, Part) else NUMBA_KINDS[one] for one in part.words]
    return ListType(types.BaseTuple.from_types(items) if part.is_tuple else items[0])


def list_hint(part: Part) -> str:
    """The annotation of the local list that a read of an event's list makes, ``list[int]``."""
    items = ["int" if isinstance(one, Part) else one for one in part.words]
    return f"list[tuple[{', '.join(items)}]]" if part.is_tuple else f"list[{items[0]}]"


def write_list(run: Run, of: ListType, address: Value) -> Value:
    """A new list of the words at an address."""
    builder = run.builder
    words = builder.inttoptr(address, I64.as_pointer())
    count = builder.load(words)
    made = List(run.context, builder, of, run.pointer)
    made.pointer = made.leave_if_null(
        made.call("ss_list_new", POINTER, run.pointer, made.kinds, count)
    )
    to = made.member("words", I64.as_pointer())
    size = builder.mul(count, I64(made.width))
    with builder.if_then(builder.icmp_unsigned("!=", count, I64(0))):
        cgutils.raw_memcpy(builder, to, builder.gep(words, [I64(1)], inbounds=True), size, 8)
    builder.store(count, made.member_address("count"))
    return made.pointer


item_list = Core("item_list", "an item that is a list is read by its address")


@item_list.rule
def _item_list(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """A new list of the words at an address, of what an annotation says."""
    run, _, said = args
    if not isinstance(said, types.StringLiteral):
        return None
    made = declared_type(parse(said.literal_value, mode="eval").body)
    assert isinstance(made, ListType)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return write_list(Run(context, builder, args[0]), made, args[1])

    return made, (run, types.int64, said), code


@intrinsic
def item_read(typing_context: Any, status: Any, value: Any) -> Any:
    """The value of an item, or what was raised in its place."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        raised = builder.icmp_unsigned("!=", args[0], I64(0))
        with builder.if_then(raised, likely=False):
            # Its text is that of one element: the status says the class alone.
            raise_known(builder, without_site(builder, builder.trunc(args[0], STATUS)))
        return args[1]

    return value(types.int64, value), code


# ---- the same in the oracle ----


def oracle_list(
    part: Part,
    address: int,
    strings: StringTable | None,
    again: Callable[[Path], Any],
    path: Path,
) -> OracleList:
    """A read of an event's list in the oracle: a new list of the words at an address.

    Args:
        part: says what they are.
        address: where they lie.
        strings: has the texts.
        again: gives what was raised in place of an item.
        path: which elements and items of lists lead to this list.
    """

    def loaded(kind: Any, word: Any) -> Any:
        return Text(word, strings) if kind == "str" else LOAD[kind](word)

    elements = list_at(part, address)
    if not part.is_tuple:
        return OracleList(loaded(part.items[0], word) for (word,) in elements)
    made = OracleList()
    for at, words in enumerate(elements):
        values: list[Any] = []
        item = 0
        for kind, word in zip(part.words, words, strict=True):
            here = (*path, (at, item))
            is_status = item in part.raising and len(values) == item + _before(part, item)
            if is_status:
                values.append(again(here) if word else Int64(0))
                continue
            if isinstance(kind, Part):
                values.append(oracle_list(kind, word, strings, again, here))
            else:
                values.append(loaded(kind, word))
            item += 1
        made.append(tuple(values))
    return made


def _before(part: Part, item: int) -> int:
    """How many items before this one may have raised."""
    return sum(one < item for one in part.raising)


def oracle_item(status: Any, value: Any) -> Any:
    """In the oracle, an item of an event's list: its value, or what was raised in its place."""
    if isinstance(status, Raised):
        raise status.error
    return OracleList(value) if isinstance(value, OracleList) else value

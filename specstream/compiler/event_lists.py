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
from collections.abc import Callable
from typing import Any

from numba.core import cgutils, types
from numba.extending import intrinsic

from specstream.columns.derived import Raised
from specstream.columns.lists import list_at
from specstream.columns.strings import StringTable
from specstream.compiler.instructions import I64, POINTER, Value
from specstream.compiler.kinds import NUMBA_KINDS
from specstream.compiler.landing import STATUS, raise_known
from specstream.compiler.local_lists import List
from specstream.compiler.local_types import ListType
from specstream.compiler.memory import Run
from specstream.compiler.oracle_elements import LOAD
from specstream.compiler.oracle_local import List as OracleList
from specstream.compiler.text import Text
from specstream.declarations.derived import Part

__all__ = ["ItemRead", "item_read", "list_type", "oracle_item", "oracle_list", "write_list"]


class ItemRead(ast.expr):
    """The read of an item that may have raised."""

    _fields = ("status", "value")

    status: ast.expr
    value: ast.expr

    @classmethod
    def of(cls, status: ast.expr, value: ast.expr) -> ItemRead:
        made = cls()  # nodes that are copied are made without arguments
        made.status, made.value = status, value
        return made


def list_type(part: Part) -> ListType:
    """Numba's type of such a list."""
    items = [NUMBA_KINDS[kind] for kind in part.words]
    return ListType(types.BaseTuple.from_types(items) if part.is_tuple else items[0])


def write_list(run: Run, part: Part, address: Value) -> Value:
    """A new list of the words at an address."""
    builder = run.builder
    words = builder.inttoptr(address, I64.as_pointer())
    count = builder.load(words)
    made = List(run.context, builder, list_type(part), run.pointer)
    made.pointer = made.leave_if_null(
        made.call("ss_list_new", POINTER, run.pointer, made.kinds, count)
    )
    to = made.member("words", I64.as_pointer())
    size = builder.mul(count, I64(made.width))
    with builder.if_then(builder.icmp_unsigned("!=", count, I64(0))):
        cgutils.raw_memcpy(builder, to, builder.gep(words, [I64(1)], inbounds=True), size, 8)
    builder.store(count, made.member_address("count"))
    return made.pointer


@intrinsic
def item_read(typing_context: Any, status: Any, value: Any) -> Any:
    """The value of an item, or what was raised in its place."""

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        raised = builder.icmp_unsigned("!=", args[0], I64(0))
        with builder.if_then(raised, likely=False):
            raise_known(builder, builder.trunc(args[0], STATUS))
        return args[1]

    return value(types.int64, value), code


# ---- the same in the oracle ----


def oracle_list(
    part: Part, address: int, strings: StringTable | None, again: Callable[[int, int], Any]
) -> OracleList:
    """A new list of the words at an address.

    Args:
        part: says what they are.
        address: where they lie.
        strings: has the texts.
        again: gives what was raised in place of an item, of the element's number and the item's.
    """

    def loaded(kind: str, word: Any) -> Any:
        return Text(word, strings) if kind == "str" else LOAD[kind](word)

    elements = list_at(part, address)
    if not part.is_tuple:
        return OracleList(loaded(part.items[0], word) for (word,) in elements)
    made = OracleList()
    for at, words in enumerate(elements):
        values: list[Any] = list(map(loaded, part.words, words))
        for place, item in _statuses(part):
            if values[place]:
                values[place] = again(at, item)
        made.append(tuple(values))
    return made


def _statuses(part: Part) -> list[tuple[int, int]]:
    """Where the words lie that say whether an item has raised, and of which item each is."""
    return [(item + number, item) for number, item in enumerate(sorted(part.raising))]


def oracle_item(status: Any, value: Any) -> Any:
    """The value of an item, or what was raised in its place."""
    if isinstance(status, Raised):
        raise status.error
    return value

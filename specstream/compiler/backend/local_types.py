"""Numba's types of an event's own lists, dicts and sets, and of their elements.

Each is the address of a head in the worker's arena (``local_list.c``, ``local_table.c``). An
element is some words: a number or a string is one, a tuple those of its parts, a list its address.

What `[]` will hold is told by its first use. Until then its elements are an :class:`Unknown` of its
own, which later *becomes* what was put in, for all types that were made of it. Numba goes through a
function until no type changes any more, so what asks before it is known says so in an error, which
Numba forgets when it comes by again. Two unknown ones that meet, where a name gets one here and the
other there, become one. What nobody ever says remains unknown, and such a list stays empty.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import ast
import itertools
from abc import abstractmethod
from typing import Any, Literal

from numba.core import types
from numba.extending import lower_cast, models, register_model

from specstream._native import lib
from specstream.compiler.backend.instructions import F64, I64, POINTER, Instructions, Value
from specstream.compiler.backend.none_types import may_be_none
from specstream.compiler.backend.numba_types import ContainerType, RecordType
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.text import TEXT
from specstream.compiler.language.typing_refusals import FROZEN, refuse

__all__ = [
    "DictType",
    "ListType",
    "LocalType",
    "SetType",
    "TableType",
    "Unknown",
    "declared_type",
    "has_unknown",
    "kinds_of",
    "known",
    "meet",
    "own",
    "pack",
    "refuse_frozen",
    "resolved",
    "settled",
    "storable",
    "takes",
    "unpack",
    "width_of",
]

MOST_WORDS = 16  # four bits each say what they are, and a word has 64


class Unknown(types.Type):
    """What a list, dict or set holds into which nothing has been put yet."""

    _numbers = itertools.count()

    def __init__(self) -> None:
        self.became: types.Type | None = None
        super().__init__(f"specstream.unknown({next(self._numbers)})")


class LocalType(types.Type):
    """A list, dict or set of the event's own."""

    @property
    @abstractmethod
    def parts(self) -> tuple[types.Type, ...]:
        """What it holds."""

    def with_parts(self, *parts: types.Type) -> LocalType:
        """The same of something else."""
        return type(self)(*parts)

    def unify(self, context: Any, other: types.Type) -> types.Type | None:
        return meet(self, other)


class ListType(LocalType, types.IterableType):
    """A list."""

    methods_of = "list"

    def __init__(self, element: types.Type) -> None:
        self._element = element
        types.Type.__init__(self, f"specstream.list({element})")

    @property
    def element(self) -> types.Type:
        return resolved(self._element)

    @property
    def parts(self) -> tuple[types.Type, ...]:
        return (self.element,)

    @property
    def iterator_type(self) -> types.Type:
        return LocalIterator(resolved(self), "items", known(self.element, "a list"))


class TableType(LocalType, types.IterableType):
    """A dict or set: its keys can be gone through."""

    key_type: types.Type
    value_type: types.Type
    is_declared = False
    """Whether it is one of the state, whose keys and values were declared."""
    written = "d"
    """What stands for it in messages."""

    def key_as_declared(self, given: types.Type) -> types.Type:
        """The type as which a key is looked up; refuses what is none."""
        raise AssertionError(self)

    def value_as_declared(self, given: types.Type) -> types.Type:
        """The type as which a value is kept; refuses what does not fit."""
        raise AssertionError(self)

    @property
    def parts(self) -> tuple[types.Type, ...]:
        return (self.key_type,)

    @property
    def iterator_type(self) -> types.Type:
        return LocalIterator(resolved(self), "keys", known(self.key_type, "a dict or set"))


class DictType(TableType):
    """A dict."""

    methods_of = "dict"

    def __init__(self, key: types.Type, value: types.Type) -> None:
        self._key, self._value = key, value
        types.Type.__init__(self, f"specstream.dict({key}, {value})")

    @property
    def key_type(self) -> types.Type:
        return resolved(self._key)

    @property
    def value_type(self) -> types.Type:
        return resolved(self._value)

    @property
    def parts(self) -> tuple[types.Type, ...]:
        return self.key_type, self.value_type


class SetType(TableType):
    """A set."""

    methods_of = "set"
    value_type = types.none

    def __init__(self, key: types.Type) -> None:
        self._key = key
        types.Type.__init__(self, f"specstream.set({key})")

    @property
    def key_type(self) -> types.Type:
        return resolved(self._key)


Walk = (
    Literal["items", "reversed", "keys", "values", "pairs"]
    | Literal["keys backwards", "values backwards", "pairs backwards"]
)


class LocalIterator(types.SimpleIteratorType):
    """Goes through a list, or through a dict or set: once."""

    def __init__(self, walked: LocalType, walk: Walk, yields: types.Type) -> None:
        self.walked = walked
        self.walk = walk
        super().__init__(f"specstream.iterator({walked.name}, {walk})", yields)

    def unify(self, context: Any, other: types.Type) -> types.Type | None:
        if not isinstance(other, LocalIterator) or self.walk != other.walk:
            return None
        walked = meet(self.walked, other.walked)
        yields = meet(self.yield_type, other.yield_type)
        return None if walked is None or yields is None else type(self)(walked, self.walk, yields)


for _local in (ListType, DictType, SetType):
    register_model(_local)(models.OpaqueModel)


@register_model(LocalIterator)
class _LocalIteratorModel(models.StructModel):
    def __init__(self, manager: object, iterator: LocalIterator) -> None:
        members = [
            ("walked", types.voidptr),
            ("next", types.EphemeralPointer(types.int64)),
            ("changes", types.int64),  # of a dict or set, when the walk began
        ]
        super().__init__(manager, iterator, members)


@lower_cast(LocalType, LocalType)
def _cast(context: Any, builder: Any, given: types.Type, wanted: types.Type, value: Any) -> Any:
    """One of them was made before it was known what it holds."""
    return value


# ---- what is known ----


def resolved(of: types.Type) -> types.Type:
    """A type without unknown ones that have become something."""
    if isinstance(of, Unknown):
        return of if of.became is None else resolved(of.became)
    if isinstance(of, LocalType):
        return of.with_parts(*of.parts) if "specstream.unknown" in of.name else of
    if isinstance(of, types.BaseTuple) and "specstream.unknown" in of.name:
        return types.BaseTuple.from_types([resolved(part) for part in of])
    return of


def own(of: types.Type) -> types.Type:
    """Numba's local type for a copy of a list, dict or set, be it frozen or the state's."""
    of = resolved(of)
    kinds = (ListType, DictType, SetType)
    kind = next((one for one in kinds if isinstance(of, one)), None)
    return of if kind is None or type(of) is kind else kind(*of.parts)


def refuse_frozen(of: types.Type) -> None:
    """What a module has cannot be changed by an operator."""
    if getattr(of, "is_frozen", False):
        raise refuse("; ".join(FROZEN))


def has_unknown(of: types.Type) -> bool:
    of = resolved(of)
    if isinstance(of, LocalType):
        return any(map(has_unknown, of.parts))
    if isinstance(of, types.BaseTuple):
        return any(map(has_unknown, of))
    return isinstance(of, Unknown)


def settled(of: types.Type) -> types.Type:
    """A type for another function, which is compiled for it: nothing of it may be unknown."""
    of = resolved(of)
    for part in of.parts if isinstance(of, LocalType) else ():
        settled(known(part, "a list, dict or set"))
    for part in of if isinstance(of, types.BaseTuple) else ():
        settled(known(part, "a tuple"))
    return of


def known(of: types.Type, what: str) -> types.Type:
    """A type that something is made of; an error as long as nobody has said which it is."""
    of = resolved(of)
    if isinstance(of, Unknown):
        raise refuse(
            f"what {what} holds is not known here, because nothing is put into it; annotate it "
            "where it is created, like x: list[float] = [], x: dict[str, int] = {} or x: set[int] "
            "= set()"
        )
    return of


def meet(one: types.Type, other: types.Type) -> types.Type | None:
    """The type of what is one and the other; what was unknown becomes it. None: there is none."""
    one, other = resolved(types.unliteral(one)), resolved(types.unliteral(other))
    if one == other:
        return one
    # Of two unknown ones the first stays what it is: types that changed for ever would have Numba
    # go through the function for ever.
    for unknown, becomes in ((other, one), (one, other)):
        if isinstance(unknown, Unknown):
            if _contains(becomes, unknown):
                raise refuse("a list, dict or set is put into itself: make a new one")
            unknown.became = becomes
            return becomes
    if getattr(one, "is_declared", False):
        return None  # two fields of the state are two, whatever they hold
    if isinstance(one, LocalType) and type(one) is type(other):
        parts = [meet(*pair) for pair in zip(one.parts, other.parts, strict=True)]
        return None if None in parts else one.with_parts(*parts)
    if isinstance(one, types.BaseTuple) and isinstance(other, types.BaseTuple):
        if len(one) != len(other):
            return None
        parts = [meet(*pair) for pair in zip(one, other, strict=True)]
        return None if None in parts else types.BaseTuple.from_types(parts)
    return None


def _contains(of: types.Type, unknown: Unknown) -> bool:
    of = resolved(of)
    if of == unknown:
        return True
    parts = of.parts if isinstance(of, LocalType) else of
    if not isinstance(of, LocalType | types.BaseTuple):
        return False
    return any(_contains(part, unknown) for part in parts)


# ---- elements and their words ----

_KINDS: dict[types.Type, int] = {
    types.int64: lib.SS_KIND_INT,
    types.uint64: lib.SS_KIND_UINT,
    types.float64: lib.SS_KIND_FLOAT,
    types.boolean: lib.SS_KIND_BOOL,
    TEXT: lib.SS_KIND_TEXT,
}


def storable(given: types.Type, what: str) -> types.Type:
    """The type as which a value is kept; refuses what cannot be."""
    of = resolved(types.unliteral(given))
    if may_be_none(of):
        raise refuse(
            f"{what} gets a value that may be None, and holds numbers, strings, tuples, lists, "
            "dicts and sets; test it for None, and put in int(x) or float(x)"
        )
    if isinstance(of, ContainerType):
        raise refuse(
            f"{what} cannot hold {of}: a name stands for one field, state.{of.field.name}; write "
            "its name where it is used, or put in a copy, like list(x) or dict(x)"
        )
    if isinstance(of, types.BaseTuple):
        parts = [storable(part, what) for part in of]
        of = of if parts == list(of) else types.BaseTuple.from_types(parts)
    elif not isinstance(of, LocalType | Unknown | RecordType) and of not in _KINDS:
        raise refuse(
            f"{what} cannot hold {given}: it holds numbers, strings, tuples, lists, dicts and sets"
        )
    if not has_unknown(of) and width_of(of) > MOST_WORDS:
        raise refuse(f"{what} gets tuples of more than {MOST_WORDS} values: keep fewer in one")
    return of


def takes(of: ListType, given: types.Type) -> types.Type:
    """The type of a local list's elements after it was given a value.

    Refuses one that does not fit.
    """
    value = storable(given, "a list")
    found = meet(of.element, value)
    if found is None:
        raise refuse(
            f"a list of {of.element} gets {value}: keep values of one type in a list"
            + _hint(of.element, value)
        )
    return found


def _hint(element: types.Type, given: types.Type) -> str:
    kinds = scalar_kind(element), scalar_kind(given)
    if kinds == ("int64", "float64"):
        return ", and begin it with floats, such as [0.0] * n"
    ways = {"float64": "float(x)", "int64": "int(x)", "uint64": "np.uint64(x)", "bool": "bool(x)"}
    return f", and write {ways[kinds[0]]}" if kinds[0] in ways and kinds[1] is not None else ""


_ANNOTATED: dict[str, types.Type] = {
    "int": types.int64,
    "float": types.float64,
    "bool": types.boolean,
    "str": TEXT,
}


def declared_type(said: ast.expr) -> types.Type:
    """The local type that an annotation names, ``x: list[float] = []``."""
    if isinstance(said, ast.Name) and said.id in _ANNOTATED:
        return _ANNOTATED[said.id]
    if isinstance(said, ast.Subscript):
        of = ast.unparse(said.value).rpartition(".")[2].lower()
        inside = said.slice
        parts = inside.elts if isinstance(inside, ast.Tuple) else [inside]
        kinds = {"list": (ListType, 1), "set": (SetType, 1), "dict": (DictType, 2)}
        if of == "tuple":
            return types.BaseTuple.from_types([declared_type(one) for one in parts])
        if of in kinds and len(parts) == kinds[of][1]:
            return kinds[of][0](*(declared_type(one) for one in parts))
    raise refuse(
        f"the annotation {ast.unparse(said)} is not understood: write int, float, bool, str, and "
        "list[...], set[...], dict[..., ...] and tuple[...] of these"
    )


def _leaves(of: types.Type) -> list[types.Type]:
    of = resolved(of)
    if isinstance(of, types.BaseTuple):
        return [leaf for part in of for leaf in _leaves(part)]
    return [] if of == types.none else [of]


def width_of(of: types.Type) -> int:
    """Words of an element."""
    return len(_leaves(of))


def kinds_of(of: types.Type) -> Value:
    """What the words of an element of a local list, dict or set are, as C has it.

    By four bits each, an ``enum ss_kind``.
    """
    kinds = 0
    for place, leaf in enumerate(_leaves(of)):
        if isinstance(leaf, ListType):
            kind = lib.SS_KIND_LIST
        elif isinstance(leaf, TableType):
            kind = lib.SS_KIND_TABLE
        elif isinstance(leaf, RecordType):
            kind = lib.SS_KIND_OBJECT
        else:
            kind = _KINDS[leaf]
        kinds |= kind << (4 * place)
    return I64(kinds)


def pack(code: Instructions, of: types.Type, value: Value) -> list[Value]:
    """The words of an element of a local list, dict or set, by the element's Numba type."""
    builder = code.builder
    of = resolved(of)
    if isinstance(of, types.BaseTuple):
        return [
            word
            for place, part in enumerate(of)
            for word in pack(code, part, builder.extract_value(value, place))
        ]
    if of == types.none:
        return []
    if of == types.float64:
        return [builder.bitcast(value, I64)]
    if of == types.boolean:
        return [builder.zext(value, I64)]
    if isinstance(of, LocalType | RecordType):
        return [builder.ptrtoint(value, I64)]
    return [value]


def unpack(code: Instructions, of: types.Type, words: list[Value]) -> Value:
    """The LLVM value of an element of a local type, made of its words, which are used up."""
    builder = code.builder
    of = resolved(of)
    if isinstance(of, types.BaseTuple):
        parts = [unpack(code, part, words) for part in of]
        return code.context.make_tuple(builder, of, parts)
    word = words.pop(0)
    if of == types.float64:
        return builder.bitcast(word, F64)
    if of == types.boolean:
        return builder.icmp_unsigned("!=", word, I64(0))
    if isinstance(of, LocalType | RecordType):
        return builder.inttoptr(word, POINTER)
    return word

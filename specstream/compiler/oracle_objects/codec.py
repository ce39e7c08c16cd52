"""What the words of a container are as Python values.

The oracle computes with numbers as machines have them and with strings as codes
(:class:`MachineCodec`), interpreted operators with Python's own
(:class:`specstream.interpreted.coded.PlainCodec`). The containers ask one of them, whatever holds
their values.
"""

from __future__ import annotations

import itertools
import struct
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from specstream.columns.strings import StringTable
from specstream.compiler.language.text import Text, refuse
from specstream.compiler.language.typing_refusals import unnamed_copy
from specstream.compiler.oracle_objects.elements import LOAD, load_int, store_of
from specstream.compiler.oracle_objects.local import Deque, Dict, List, Set, as_set, sorted_places
from specstream.compiler.oracle_objects.nulls import is_none
from specstream.compiler.oracle_objects.records import OracleRecord
from specstream.declarations.codes import EMPTY
from specstream.declarations.container_words import Words
from specstream.declarations.containers import Shape
from specstream.declarations.element_types import Storage

__all__ = ["Codec", "MachineCodec"]


class Codec(ABC):
    """Python's values of keys, values and elements.

    Attributes:
        integer: the value of a word that is an integer.
    """

    integer: Callable[[int], Any]

    def gathered(self, pairs: Iterable[Any]) -> Iterable[Any]:
        """The pairs that a dict is updated with, before the first is put."""
        return pairs

    @abstractmethod
    def part(self, storage: Storage, what: str) -> Callable[[Any], Any]:
        """What checks a value of a type and makes it the value that is held."""

    @abstractmethod
    def text(self, code: int) -> Any:
        """The string of a code."""

    @abstractmethod
    def code(self, text: Any) -> int:
        """The code of a string, as the state holds it."""

    @abstractmethod
    def misfit(self, what: str, shape: Shape, value: Any) -> str:
        """What is said of a value that is no tuple of the shape."""

    @abstractmethod
    def missing(self, key: Any, held: Any) -> KeyError:
        """What is raised where there is no such key; ``held`` is what it would be held as."""

    @abstractmethod
    def index(self, index: Any, store: Any) -> Any:
        """An index into a sequence, as an integer."""

    @abstractmethod
    def order(self, keys: list[Any], reverse: Any) -> list[int]:
        """The places of keys in their order."""

    @abstractmethod
    def dict_of(self, given: Any) -> Any:
        """A copy of a dict."""

    @abstractmethod
    def set_of(self, elements: Iterable[Any]) -> Any:
        """A set that is made of one."""

    def sets(self, given: Iterable[Iterable[Any]]) -> Iterable[Iterable[Any]]:
        """What a method of a set is given."""
        return given

    @abstractmethod
    def list_of(self, values: Iterable[Any]) -> Any:
        """A copy of a list."""

    @abstractmethod
    def deque_of(self, values: Iterable[Any], maxlen: Any) -> Any:
        """A copy of a deque, to be asked."""

    @abstractmethod
    def refuse_of_deque(self, what: str, name: str) -> None:
        """Refuses what deques of the state do not have."""

    @abstractmethod
    def default(self, value: Any, check: Callable[[Any], Any]) -> Any:
        """What a dict gives in place of a value, by the check of its values."""

    @abstractmethod
    def maker(self, shape: Shape) -> Callable[[Any], Any] | None:
        """What makes a value of what is held, each time that it is read; None: it is the same."""

    def check(self, shape: Shape, what: str) -> Callable[[Any], Any]:
        """What checks keys, values or elements of a shape, which is no record."""
        parts = [self.part(part, what) for part in shape.parts]
        if not shape.is_tuple:
            return parts[0]

        def checked(value: Any) -> Any:
            if not isinstance(value, tuple) or len(value) != len(parts):
                raise TypeError(self.misfit(what, shape, value))
            return tuple([of(one) for of, one in zip(parts, value, strict=True)])

        return checked

    def values(self, words: Words, shape: Shape) -> list[Any]:
        """The values of rows of words; of records the lists of what they have."""
        columns = [self._column(words[:, at], part) for at, part in enumerate(shape.parts)]
        return columns[0] if shape.is_whole else list(zip(*columns, strict=True))

    def _column(self, words: Words, part: Storage) -> list[Any]:
        if part.number == "float":
            found: list[float] = words.copy().view(np.float64).tolist()
            return found
        return list(map(self._loader(part), words.tolist()))

    def _loader(self, part: Storage) -> Callable[[int], Any]:
        """The value of a word that is no float."""
        of: dict[str, Callable[[int], Any]] = {"str": self.text, "bool": bool}
        return of.get(part.number, self.integer)

    def fill(self, into: Words, values: Iterable[Any], shape: Shape) -> None:
        """Puts values into rows of words."""
        rows = list(values)
        columns = [rows] if shape.is_whole else zip(*rows, strict=True)
        for at, (part, column) in enumerate(zip(shape.parts, columns, strict=False)):
            if part.number == "float":
                into[:, at] = np.array(column, np.float64).view(np.int64)
            else:
                into[:, at] = column if part.number != "str" else list(map(self.code, column))

    def packed(self, values: Iterable[Any], shape: Shape) -> bytes:
        """Values as the bytes of the rows that :meth:`fill` makes of them; several times faster for
        a few."""
        rows = list(values)
        texts = [at for at, part in enumerate(shape.parts) if part.number == "str"]
        if not shape.is_whole:
            flat = list(itertools.chain.from_iterable(rows))
            for at in texts:
                flat[at :: shape.words] = map(self.code, flat[at :: shape.words])
        else:
            flat = list(map(self.code, rows)) if texts else rows
        return struct.pack(_format(shape, len(rows)), *flat)

    def unpacked(self, data: bytes, shape: Shape) -> list[Any]:
        """The values of such bytes, as :meth:`values` gives them."""
        width = shape.words
        flat = struct.unpack(_format(shape, len(data) // (8 * width)), data)
        columns = [
            list(flat[at::width])
            if part.number == "float"
            else list(map(self._loader(part), flat[at::width]))
            for at, part in enumerate(shape.parts)
        ]
        return columns[0] if shape.is_whole else list(zip(*columns, strict=True))

    def to_words(self, shape: Shape) -> Callable[[Any], tuple[int, ...]]:
        """What makes a key the words that it is."""
        makers: list[Callable[[Any], int]] = [
            self.code if part.number == "str" else int for part in shape.parts
        ]
        if not shape.is_tuple:
            (make,) = makers
            return lambda key: (make(key),)
        return lambda key: tuple([make(part) for make, part in zip(makers, key, strict=True)])

    def of_words(self, shape: Shape) -> Callable[[Iterable[int]], Any]:
        """What makes words the key that they are."""
        makers = list(map(self._loader, shape.parts))
        if not shape.is_tuple:
            (make,) = makers
            return lambda words: make(*words)
        return lambda words: tuple([make(word) for make, word in zip(makers, words, strict=True)])


def _format(shape: Shape, rows: int) -> str:
    """Of so many rows, for :mod:`struct`."""
    kinds = {"float": "d", "uint": "Q"}
    return "<" + "".join([kinds.get(part.number, "q") for part in shape.parts]) * rows


class MachineCodec(Codec):
    """Numbers of 64 bits, and strings that are codes.

    Args:
        texts: what the codes stand for.
    """

    integer = staticmethod(load_int)

    def __init__(self, texts: StringTable | None) -> None:
        self._texts = texts

    def part(self, storage: Storage, what: str) -> Callable[[Any], Any]:
        store, load = store_of(storage), LOAD[storage.number]
        return lambda value: load(store(value, what))

    def text(self, code: int) -> Text:
        return Text(code or EMPTY, self._texts if code else "")

    def code(self, text: Text) -> int:
        return 0 if text.code == EMPTY else int(text.code)

    def gathered(self, pairs: Iterable[Any]) -> Iterable[Any]:
        """Only when all has been gone through does anything change."""
        return list(pairs)

    def misfit(self, what: str, shape: Shape, value: Any) -> str:
        return f"{what} is declared {shape} and gets {value!r}"

    def missing(self, key: Any, held: Any) -> KeyError:
        return KeyError(key if held is None else held)

    def index(self, index: Any, store: Any) -> Any:
        if index is None:
            empty: Any = deque() if store.of.kind == "deque" else []
            empty[index]  # which raises
        return index

    def order(self, keys: list[Any], reverse: Any) -> list[int]:
        return sorted_places(keys, reverse)

    def dict_of(self, given: Any) -> Any:
        return Dict(given)

    def set_of(self, elements: Iterable[Any]) -> Any:
        return Set(elements)

    def sets(self, given: Iterable[Iterable[Any]]) -> Iterable[Iterable[Any]]:
        return map(as_set, given)

    def list_of(self, values: Iterable[Any]) -> Any:
        return List(values)

    def deque_of(self, values: Iterable[Any], maxlen: Any) -> Any:
        return Deque(values)

    def refuse_of_deque(self, what: str, name: str) -> None:
        if what == "copy":
            refuse(*unnamed_copy(name))
        refuse(
            f"*= is not supported for a deque of the state, {name}",
            f"write {name}.extend(list({name}) * (n - 1)), where n is 1 or more",
        )

    def default(self, value: Any, check: Callable[[Any], Any]) -> Any:
        """A default has the type of the values in compiled code. A string is of such a type, or
        stands behind ``raise``, where Python computes."""
        is_kept = is_none(value) or isinstance(value, Text | OracleRecord)
        return value if is_kept else check(value)

    def maker(self, shape: Shape) -> None:
        return None

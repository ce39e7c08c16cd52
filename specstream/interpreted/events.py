"""What an interpreted operator gets beside its state: the event or the timer, and ``emit``.

A value is Python's own: an int, a float, a bool, a string, and None for a null. They are read from
the columns when they are asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from specstream.columns.strings import StringTable
from specstream.compiler.language.hints import names_it_has
from specstream.compiler.language.reserved import RESERVED_COLUMNS
from specstream.compiler.language.typing_refusals import TIMER_NAMES
from specstream.compiler.oracle_objects.draws import RandomNumbers
from specstream.declarations.codes import EMPTY
from specstream.declarations.containers import Shape
from specstream.declarations.options import shown
from specstream.declarations.schema import Schema
from specstream.interpreted.values import Texts, emitted

__all__ = ["Drawing", "Emit", "OnlyRead", "check_returned", "make_event", "make_timer"]

_FORMS = {"int": (ord("i"), 8), "str": (ord("i"), 8), "float": (ord("d"), 8), "bool": (ord("?"), 1)}
_KEY = len(RESERVED_COLUMNS) + 1  # of a timer's columns, the first word of its key


class OnlyRead:
    """What an operator reads and cannot change; ``__ss_name__`` is what it calls it."""

    __slots__ = ()
    __ss_name__ = "event"

    def __setattr__(self, name: str, value: Any) -> None:
        raise _only_read(type(self).__ss_name__, name, "assigned")

    def __delattr__(self, name: str) -> None:
        raise _only_read(type(self).__ss_name__, name, "deleted")


def _only_read(own: str, name: str, done: str) -> AttributeError:
    return AttributeError(
        f"{own}.{name} cannot be {done}: what {own} has is only read; keep a value under a local "
        "name, or in the state"
    )


class Drawing(OnlyRead, RandomNumbers):
    """Order key and random numbers, as compiled operators have them.

    Args:
        run: a backend.
        seed: of the random numbers.
    """

    # Columns may have any other names.
    __slots__ = ("__ss_run__", "__ss_seed__")
    __ss_run__: Any
    __ss_seed__: int

    def __init__(self, run: Any, seed: int) -> None:
        object.__setattr__(self, "__ss_run__", run)
        object.__setattr__(self, "__ss_seed__", seed)

    @property
    def timestamp(self) -> int:
        found: int = self.__ss_run__.column(0, *_FORMS["int"])
        return found

    @property
    def source(self) -> int:
        found: int = self.__ss_run__.column(1, *_FORMS["int"])
        return found

    @property
    def sequence(self) -> int:
        found: int = self.__ss_run__.sequence()
        return found

    def __ss_key__(self, draw: int) -> tuple[int, int, int, int, int]:
        return self.__ss_seed__, self.timestamp, self.source, self.sequence, int(draw)


def _reader(
    run: Any, texts: Texts, number: int, kind: str, null: int | None
) -> Callable[[Any], Any]:
    column, form, bit = run.column, _FORMS[kind], _FORMS["bool"]
    if kind == "str":

        def text(self: Any) -> Any:
            if null is not None and column(null, *bit):
                return None
            code = column(number, *form)
            return "" if code == EMPTY else texts.text(code)

        return text
    code, size = form
    if null is None:
        return lambda self: column(number, code, size)

    def value(self: Any) -> Any:
        return None if column(null, *bit) else column(number, code, size)

    return value


def make_event(schema: Schema, run: Any, seed: int, texts: Texts) -> Any:
    """The event of a backend: whatever row that is in."""
    first = len(RESERVED_COLUMNS)
    nulls = {name: first + len(schema) + at for at, name in enumerate(schema.nullable)}
    members: dict[str, Any] = {
        name: property(_reader(run, texts, first + at, column.kind, nulls.get(name)))
        for at, (name, column) in enumerate(schema)
    }
    known = (*schema.names, *RESERVED_COLUMNS, "sequence")

    def lacks(self: Any, name: str) -> Any:
        raise AttributeError(f"the event has no column {name!r}; {names_it_has(name, known)}")

    def is_null(self: Any, name: str) -> bool:
        if name not in schema.names:
            lacks(self, name)
        return name in nulls and bool(run.column(nulls[name], *_FORMS["bool"]))

    members |= {"__slots__": (), "is_null": is_null, "__getattr__": lacks}
    return type("Event", (Drawing,), members)(run, seed)


def make_timer(key: Shape, run: Any, seed: int, texts: Texts) -> Any:
    """The timer of a backend: whichever fires."""

    def of(self: Any) -> Any:
        parts = [
            texts.text(word)
            if part.number == "str"
            else bool(word)
            if part.number == "bool"
            else word
            for at, part in enumerate(key.parts)
            for word in [run.column(_KEY + at, *_FORMS["int"])]
        ]
        return key.made(parts)

    def lacks(self: Any, name: str) -> Any:
        raise AttributeError(f"the timer has no {name!r}; it has {', '.join(TIMER_NAMES)}")

    members: dict[str, Any] = {
        "__slots__": (),
        "__ss_name__": "timer",
        "key": property(of),
        "at": property(lambda self: run.column(len(RESERVED_COLUMNS), *_FORMS["int"])),
        "__getattr__": lacks,
    }
    return type("Timer", (Drawing,), members)(run, seed)


def check_returned(value: object) -> None:
    """What an operator's function returns goes nowhere."""
    if value is not None:
        raise TypeError(f"the operator returns {shown(value)}; expected nothing: emit(...) it")


class Emit:
    """``emit`` of an interpreted operator.

    Args:
        schema: of the rows.
        put: takes the words of a row, without the first: ints, and floats.
        strings: table of the engine.
        sink: number of the sink that rows are for, of an operator that emits into several.
    """

    def __init__(
        self, schema: Schema, put: Callable[[tuple[Any, ...]], None], strings: StringTable
    ) -> None:
        self._schema = schema
        self._put = put
        self._words = [emitted(column, name, strings) for name, column in schema]
        self._bits = schema.null_bits
        self._null_words = schema.declared.row_words - 1 - len(schema)

    def __call__(self, *values: Any, **named: Any) -> None:
        words = self._words
        if named or len(values) != len(words):
            values = self._schema.row(values, named)
        if not self._null_words:
            self._put(tuple([make(value) for make, value in zip(words, values, strict=True)]))
            return
        nulls = [0] * self._null_words
        row = []
        for number, (make, value) in enumerate(zip(words, values, strict=True)):
            place = self._bits.get(number)
            if value is None and place is not None:
                nulls[place[0] - 1 - len(words)] |= 1 << place[1]
                row.append(0)
            else:
                row.append(make(value))
        self._put((*row, *nulls))

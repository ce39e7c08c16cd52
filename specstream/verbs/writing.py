"""Operators that are written here, as text, around functions of the user's.

A verb is an operator that could stand in ``operators/``. What differs from use to use are columns,
keys and numbers, so its text is put together for each, and read, compiled, explained and debugged
like any other operator's: the lines stand in :mod:`linecache`, as those of a notebook do.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import keyword
import math
import textwrap
import types
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from specstream.compiler.language.definitions import keep_text
from specstream.compiler.language.hints import names_it_has
from specstream.declarations.chosen_columns import kept_as, key_of
from specstream.declarations.container_fields import dict as dict_field
from specstream.declarations.container_fields import set as set_field
from specstream.declarations.options import (
    nearest,
    refused,
    refuses_unknown,
    unknown_option,
)
from specstream.declarations.record_types import columns_declared
from specstream.declarations.rows import row_class
from specstream.declarations.schema import Column, Schema, declared_column
from specstream.declarations.state_layout import State, scalar
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError, DeclarationError
from specstream.windows.declared import plain_function

__all__ = [
    *("Cell", "Keys", "Kept", "Writer", "ZEROS", "columns_given", "entry", "indented", "literal"),
    *("nullable_value", "of_each_key", "own_function", "read", "verb"),
]

Make = TypeVar("Make", bound=Callable[..., Operator])

ZEROS: dict[type, Any] = {int: 0, float: 0.0, bool: False, str: ""}
EVENT, STATE, EMIT = "event", "state", "emit"


def verb(make: Make) -> Make:
    """A verb: what its operators were made with is kept, so that one can be made for each key."""

    names = [
        one for one, of in inspect.signature(make).parameters.items() if of.kind == of.KEYWORD_ONLY
    ]

    @functools.wraps(make)
    def made(*args: Any, **options: Any) -> Operator:
        for name in set(options) - set(names):
            # Options that are not known are columns, where they are declared as such.
            if nearest(name, names) is not None and not _is_column(options[name]):
                raise unknown_option(f"verb {make.__name__!r}", name, names)
        found = make(*args, **options)
        found.again = functools.partial(made, *args, **options)
        return found

    return refuses_unknown(made)  # type: ignore[return-value]


def _is_column(declared: Any) -> bool:
    try:
        declared_column(declared, "a column")
    except DeclarationError:
        return False
    return True


def of_each_key(
    given: Operator,
    key: tuple[str, ...],
    to_all: Callable[..., Any] | None,
    forget: Callable[..., Any] | None,
    limit: int,
) -> Operator:
    """A verb's operator, with a state for each key.

    Raises:
        ConfigurationError: it is no verb's, or has a key.
    """
    again: Any = given.again
    names = ", ".join(map(repr, key))
    if again is None:
        raise ConfigurationError(
            f"add: operator {given.name!r} stands behind by({names}) and has one state for all "
            "events; expected what ss.verbs.machine(...) or ss.verbs.keyed(...) has made: or add "
            "it to the stream before by(...), and let it keep a dict by the key"
        )
    options = {"to_all": to_all, "forget": forget}
    kept = again.keywords
    twice = [one for one in ("key", *options) if kept.get(one)]
    if twice:
        raise ConfigurationError(
            f"add: operator {given.name!r} is made with {twice[0]}=, and stands behind "
            f"by({names}); expected it in one of both places"
        )
    given_too: dict[str, Any] = {one: of for one, of in options.items() if of is not None}
    if "limit" in kept:
        given_too["limit"] = limit
    found: Operator = again(key=key, **given_too)
    return found


@dataclass(frozen=True)
class Keys:
    """Which states there are, as of :meth:`specstream.pipelines.Stream.by`.

    Attributes:
        columns: the key's; empty: there is one state for all events.
        to_all: whether an event goes to every key there is; None: none does.
        forget: whether the key of a row is gone behind it; None: none is.
    """

    columns: tuple[str, ...] = ()
    to_all: Callable[..., Any] | None = None
    forget: Callable[..., Any] | None = None

    @classmethod
    def of(
        cls,
        what: str,
        event: Mapping[str, Any],
        key: str | Sequence[str],
        to_all: Callable[..., Any] | None,
        forget: Callable[..., Any] | None,
    ) -> Keys:
        """The same, checked.

        Raises:
            ConfigurationError: names the option.
        """
        # A null is dropped: no key is made of it.
        columns = {name: _without_null(of) for name, of in event.items()}
        parts = (
            [key] if isinstance(key, str) else list(key) if isinstance(key, list | tuple) else []
        )
        for name in parts:
            if isinstance(name, str) and name not in columns:
                raise ConfigurationError(
                    f"{what}: key={key!r}, and there is no column {name!r}; expected "
                    + names_it_has(name, columns).removeprefix("it has ")
                )
        names = key_of(f"{what}: key", key, columns, ("int", "bool", "str"), least=0)
        for option, given in (("to_all", to_all), ("forget", forget)):
            if given is None:
                continue
            takes = "the event" if option == "to_all" else "the row"
            own_function(f"{what}: {option}", given, "a function that says True or False", takes)
            if not names:
                raise ConfigurationError(
                    f"{what}: {option}= is about the states of keys, and there is no key=: name "
                    "the columns of the key"
                )
        return cls(names, to_all, forget)


def _without_null(declared: Any) -> Column:
    (column,) = Schema.of({"column": declared}, EVENT).columns
    return Column(column.kind, column.arrow)


def own_function(option: str, given: Any, expected: str, takes: str | None = None) -> Any:
    """A function of the user's own, which can be compiled.

    Args:
        option: that gives it.
        given: by the caller.
        expected: what it is to be.
        takes: what it is called with, separated by commas and "and"; None: that is not looked at.

    Raises:
        ConfigurationError: it is none, or cannot be called so.
    """
    plain_function(option, given, expected)
    if takes is not None:
        parts = [one for one in takes.replace(" and ", ", ").split(", ") if one]
        parameters = inspect.signature(given).parameters
        try:
            inspect.signature(given).bind(*parts)
        except TypeError:
            count = "nothing" if not parts else takes
            name = getattr(given, "__name__", "the function")
            raise ConfigurationError(
                f"{option}: {name} takes ({', '.join(parameters)}), and is called with {count}; "
                f"expected {len(parts)} argument{'' if len(parts) == 1 else 's'}"
            ) from None
    return given


def columns_given(what: str, emits: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of rows, as they are given by keywords or as ``emits=``.

    Raises:
        ConfigurationError: there are none, or both.
    """
    if emits is not None and columns:
        raise ConfigurationError(
            f"{what}: columns are given by name ({', '.join(columns)}) and with emits=; expected "
            "one of both: columns with the names of options go into emits="
        )
    given = dict(columns_declared(columns if emits is None else emits, "emits"))
    if not given:
        raise ConfigurationError(
            f"{what}: there are no columns; expected what the function gives, by name: "
            f"{what}(..., total=float)"
        )
    Schema.of(given, "emits")
    return given


def read(column: str, of: str = EVENT, nullable: bool = False) -> str:
    """An expression that reads a column, with its null.

    >>> read("price"), read("price", nullable=True), read("class", "event.a")
    ('event.price', 'None if event.price is None else event.price', "getattr(event.a, 'class')")
    """
    found = f"getattr({of}, {column!r})" if keyword.iskeyword(column) else f"{of}.{column}"
    return nullable_value(found) if nullable else found


def nullable_value(name: str) -> str:
    """An expression for a value that may be None, which it is to stay: untested it reads as 0."""
    return f"None if {name} is None else {name}"


def literal(value: Any) -> str:
    """A value as it is written in a program.

    >>> literal(1.5), literal(float("-inf"))
    ('1.5', "float('-inf')")
    """
    is_number = not isinstance(value, float) or math.isfinite(value)
    return repr(value) if is_number else f"float({str(value)!r})"


def entry(parts: Sequence[str]) -> str:
    """An expression for values that are kept together: one by itself, several as a tuple."""
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


@dataclass
class Cell:
    """Values that a verb keeps, of each key or of all: in one entry of a dict, or in scalars.

    Attributes:
        name: of the dict.
        values: by name, their types and what they are to begin with.
        is_keyed: whether there is one for each key.
    """

    name: str
    values: dict[str, tuple[type, Any]]
    is_keyed: bool

    @property
    def fields(self) -> dict[str, Any]:
        """Those of the state."""
        if not self.is_keyed:
            return {name: scalar(of, fill=fill) for name, (of, fill) in self.values.items()}
        types = tuple(of for of, _ in self.values.values())
        return {self.name: (types[0] if len(types) == 1 else types)}

    @property
    def fill(self) -> str:
        """What an entry is to begin with."""
        return entry([literal(fill) for _, fill in self.values.values()])

    def load(self) -> list[str]:
        """Statements that give each value its name."""
        if not self.is_keyed:
            return [f"{name} = state.{name}" for name in self.values]
        found = f"state.{self.name}.get(key, {self.fill})"
        return self.unpack(found)

    def unpack(self, found: str) -> list[str]:
        """Likewise, of an entry."""
        if len(self.values) == 1:
            return [f"{name} = {found}" for name in self.values]
        return [f"{', '.join(self.values)} = {found}"]

    def store(self, **values: str) -> list[str]:
        """Statements that keep values; what is not given stays as it is."""
        if not self.is_keyed:
            return [f"state.{name} = {value}" for name, value in values.items()]
        now = [values.get(name, name) for name in self.values]
        return [f"state.{self.name}[key] = {entry(now)}"]

    def forget(self) -> list[str]:
        """Statements after which the key has none."""
        return [f"if key in state.{self.name}:", f"    del state.{self.name}[key]"]


@dataclass
class Writer:
    """An operator in the making.

    Attributes:
        what: the verb, in messages.
        name: of the operator.
        event: columns of its events, as declared.
        keys: whose states there are.
        sign: of the verb, in pictures.
        names: what those in the text stand for.
        fields: of the state.
        limit: of each container.
        cells: of the state.
        emits: columns of the rows.
        forgets: statements after which the key has nothing beside the cells.
    """

    what: str
    name: str
    event: Mapping[str, Any]
    keys: Keys = Keys()
    sign: str = ""
    names: dict[str, Any] = field(default_factory=dict)
    fields: dict[str, Any] = field(default_factory=dict)
    cells: list[Cell] = field(default_factory=list)
    emits: dict[str, Any] = field(default_factory=dict)
    forgets: list[str] = field(default_factory=list)
    limit: int = 2**24

    def __post_init__(self) -> None:
        self.columns = dict(Schema.of(self.event, EVENT))
        self.event = self.columns
        if not isinstance(self.name, str) or not self.name:
            raise refused(f"{self.what}: name", self.name, "a text that names the operator")

    # ---- columns ----

    @property
    def others(self) -> dict[str, Any]:
        """The columns that are none of the key."""
        return {name: of for name, of in self.event.items() if name not in self.keys.columns}

    @property
    def key_columns(self) -> dict[str, Any]:
        """Those of the key, as rows have them."""
        return {name: _without_null(self.event[name]) for name in self.keys.columns}

    def value(self, column: str, of: str = EVENT) -> str:
        """An expression for a column of the event."""
        return read(column, of, self.columns[column].nullable)

    def values(self, columns: Mapping[str, Any]) -> list[str]:
        """Likewise, of several."""
        return [self.value(name) for name in columns]

    def emitting(self, given: Mapping[str, Any]) -> None:
        """Rows have the key, and these columns.

        Raises:
            ConfigurationError: one of them is the key's.
        """
        for name in given:
            if name in self.keys.columns:
                raise ConfigurationError(
                    f"{self.what}: column {name!r} is of the key, which rows have in front; "
                    "expected the others only: leave it out"
                )
        self.emits = {**self.key_columns, **given}

    def pass_on(self) -> None:
        """Rows are the events, with the key in front."""
        self.emits = {**self.key_columns, **self.others}

    def named(self, columns: Iterable[str]) -> tuple[dict[str, str], list[str]]:
        """A name for the value of each column of the event, and statements that give it."""
        names = {column: f"event_{at}" for at, column in enumerate(columns)}
        return names, [f"{name} = {self.value(column)}" for column, name in names.items()]

    # ---- state ----

    def cell(self, name: str, **values: tuple[type, Any]) -> Cell:
        """Values that are kept; of each key, if there is one."""
        made = Cell(name, values, bool(self.keys.columns))
        self.cells.append(made)
        for field_name, of in made.fields.items():
            self.fields[field_name] = self.by_key(of) if made.is_keyed else of
        return made

    def by_key(self, of: Any) -> Any:
        """A dict of the state, by the key."""
        full = (
            f"{self.name}: limit={self.limit} keys are there already: give a larger limit=, or let "
            "some go with forget="
        )
        return replace(dict_field(self.key_type(), of, limit=self.limit), full=full)

    def by_key_and(self, more: type, of: Any) -> Any:
        """Likewise, by the key and something behind it."""
        return dict_field(self.key_type(more), of, limit=self.limit)

    def key_type(self, *more: type) -> Any:
        """Of the key, and of what is behind it in that of a dict."""
        parts = (*(kept_as(_without_null(self.event[one])) for one in self.keys.columns), *more)
        return parts[0] if len(parts) == 1 else parts

    def key_parts(self) -> list[str]:
        """Expressions for the columns of the key."""
        count = len(self.keys.columns)
        return ["key"] if count == 1 else [f"key[{at}]" for at in range(count)]

    def kept(self, columns: Mapping[str, Any], prefix: str = "kept") -> Kept:
        """Columns that are kept as values of a cell."""
        return Kept(
            {
                name: (f"{prefix}_{name}", kept_as(of), Schema.of({name: of}, EVENT).nullable != ())
                for name, of in columns.items()
            }
        )

    # ---- text ----

    def row(self, emits: Mapping[str, Any]) -> str:
        """The name of a class of rows with such columns."""
        kinds = {name: column.kind for name, column in Schema.of(emits, "emits")}
        made = row_class({name: None if of == "str" else of for name, of in kinds.items()})
        name = next((one for one, of in self.names.items() if of is made), "")
        name = name or f"Row{sum(one.startswith('Row') for one in self.names) or ''}"
        self.names[name] = made
        return name

    def emission(self, values: Sequence[str]) -> list[str]:
        """Statements that send a row: the key, and these values."""
        parts = [*(self.key_parts() if self.keys.columns else ()), *values]
        if self.keys.forget is None:
            return [f"emit({', '.join(parts)})"]
        return [
            f"row = {self.row(self.emits)}({', '.join(parts)})",
            "is_forgotten = forget(row)",
            "if is_forgotten is True:",
            "    is_gone = True",
            *self.no_bool("forget", "is_forgotten"),
            f"emit({', '.join(parts)})",
        ]

    def no_bool(self, option: str, value: str) -> list[str]:
        """Statements behind a test for True: anything else than False fails the event."""
        error = f"{self.name}: {option}= gives neither True nor False"
        return [f"elif {value} is not False:", f"    raise TypeError({error!r})"]

    def made(
        self,
        body: Sequence[str],
        on_timer: Sequence[str] | None = None,
        inputs: Mapping[str, Any] | None = None,
        time_unit: str | None = None,
        kind: type[Operator] = Operator,
    ) -> Operator:
        """The operator.

        Args:
            body: statements about ``event``, of one key if there is one.
            on_timer: likewise about ``timer``, of all keys.
            inputs: in place of its events' columns.
            time_unit: that it counts times in; None: it does not.
            kind: class of the operator.
        """
        text = self._text(list(body))
        has_state = bool(self.fields)
        state = (
            type(f"{_words(self.name)}State", (State,), dict(self.fields)) if has_state else None
        )
        if on_timer is not None:
            text += _function("on_timer", "state, timer, emit", on_timer)
        functions = _functions(self.name, text, self.names)
        made = kind(
            functions["process"],
            state,
            None if inputs is not None else self.event,
            self.emits,
            self.name,
            functions.get("on_timer"),
            inputs,
            time_unit=time_unit,
        )
        made.sign = self.sign or self.what
        made.reads_rows_only = inputs is not None
        return made

    def _text(self, body: list[str]) -> str:
        state = f"{STATE}, " if self.fields or self.keys.to_all is not None else ""
        parameters = f"{state}{EVENT}, {EMIT}"
        if not self.keys.columns:
            return _function("process", parameters, body)
        if self.keys.forget is not None:
            self.names["forget"] = self.keys.forget
            gone = [*self.forgets, *(line for cell in self.cells for line in cell.forget())]
            if self.keys.to_all is not None:
                gone.append("state.keys.discard(key)")
            body = ["is_gone = False", *body, "if is_gone:", *indented(gone or ["pass"])]
        if self.keys.to_all is None:
            return _function("process", parameters, self._with_key(body))
        self.names["to_all"] = self.keys.to_all
        self.fields["keys"] = set_field(self.key_type(), limit=self.limit)
        to_each = ["for key in list(state.keys):", "    to_one(state, key, event, emit)"]
        own = self._with_key(
            [
                "if key not in state.keys:",
                "    state.keys.add(key)",
                "to_one(state, key, event, emit)",
            ]
        )
        whole = [
            "goes_to_all = to_all(event)",
            "if goes_to_all is True:",
            *indented(to_each),
            *self.no_bool("to_all", "goes_to_all"),
            "else:",
            *indented(own),
        ]
        return (
            _function("to_one", "state, key, event, emit", body)
            + "\n\n"
            + _function("process", parameters, whole)
        )

    def _with_key(self, body: list[str]) -> list[str]:
        """Statements of the key of the event, which has one."""
        names = self.keys.columns
        reads = [read(name) for name in names]
        lines = [f"key = {entry(reads)}", *body]
        tests = [f"{read(name)} is not None" for name in names if self.columns[name].nullable]
        return [f"if {' and '.join(tests)}:", *indented(lines)] if tests else lines


@dataclass
class Kept:
    """Columns as values of a cell: a nullable one is two, its value and whether it is null.

    Attributes:
        columns: of each, its name in the cell, its type, and whether it is nullable.
    """

    columns: dict[str, tuple[str, type, bool]]

    def values(self) -> dict[str, tuple[type, Any]]:
        """For :meth:`Writer.cell`."""
        found: dict[str, tuple[type, Any]] = {}
        for name, of, is_nullable in self.columns.values():
            found[name] = (of, ZEROS[of])
            if is_nullable:
                found[f"{name}_null"] = (bool, True)
        return found

    def stored(self, values: Mapping[str, str]) -> dict[str, str]:
        """For :meth:`Cell.store`: what keeps the values that expressions have, by column."""
        found = {}
        for column, (name, of, is_nullable) in self.columns.items():
            value = values[column]
            if is_nullable:
                found[name] = f"{ZEROS[of]!r} if {value} is None else {value}"
                found[f"{name}_null"] = f"{value} is None"
            else:
                found[name] = value
        return found

    def given(self) -> list[str]:
        """Expressions for the columns, of what has been loaded."""
        return [
            f"None if {name}_null else {name}" if is_nullable else name
            for name, _, is_nullable in self.columns.values()
        ]


def indented(lines: Sequence[str]) -> list[str]:
    """Statements inside of another one."""
    return [f"    {line}" for line in lines]


def _function(name: str, parameters: str, body: Sequence[str]) -> str:
    return "\n".join([f"def {name}({parameters}):", *indented(body or ["pass"])]) + "\n"


def _words(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def _functions(name: str, text: str, names: Mapping[str, Any]) -> dict[str, types.FunctionType]:
    """The functions of a text, which can be read where files and notebook cells are."""
    text = textwrap.dedent(text)
    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    filename = f"<{name} {digest}>"
    keep_text(filename, text)
    namespace: dict[str, Any] = {"__name__": "specstream.verbs.written", **names}
    exec(compile(text, filename, "exec"), namespace)
    return {
        one: of
        for one, of in namespace.items()
        if isinstance(of, types.FunctionType) and of.__code__.co_filename == filename
    }

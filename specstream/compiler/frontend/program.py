"""What the rewriting makes of an operator's function: two forms of it, and what is known of it."""

from __future__ import annotations

import ast
import builtins
import functools
import sys
import textwrap
import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NoReturn, Protocol

from specstream.compiler.frontend.named_attributes import write_out
from specstream.compiler.frontend.scopes import bound_names
from specstream.compiler.language.parsing import parse
from specstream.declarations.derived import Derived
from specstream.declarations.forms import Form
from specstream.declarations.operations import Operation
from specstream.declarations.schema import Schema

__all__ = ["CompiledOperation", "InterpretedVertices", "LookUp", "Program", "Written"]

LookUp = tuple[str, tuple[str, ...]]
"""A field that is looked up for every event, and the columns that its key is made of."""


@dataclass(frozen=True)
class Written:
    """A function as it was written, and what its names stood for when it was analysed.

    Attributes:
        text: the lines of the def statement, as they stand in the file.
        line: number of the first of them.
        filename: of the file.
        site: of the first of them; see :mod:`specstream.compiler.backend.operator_lowering`.
        names: every global, closure variable and builtin that it reads.
    """

    text: str
    line: int
    filename: str
    site: int
    names: dict[str, Any]

    def tree(self) -> ast.stmt:
        """A function of the program as a tree, made of its text as written; lines count from 1.

        Attributes that strings name are written out.
        """
        found = parse(textwrap.dedent(self.text)).body[0]
        if isinstance(found, ast.FunctionDef):
            write_out(found, bound_names(found), self._look_up, self._refuse)
        return found

    def _look_up(self, name: str) -> Any:
        return self.names.get(name, getattr(builtins, name, None))

    def _refuse(self, node: ast.AST, problem: str, hint: str) -> NoReturn:
        raise AssertionError(f"{problem}, in what is compiled: {self.filename}:{self.line}")


@dataclass(frozen=True)
class CompiledOperation:
    """An operation on a boosted field, rewritten.

    Attributes:
        field: name of the boosted field.
        declared: as it was declared.
        native: for Numba; parameters (run, field, key ...).
        inverse: likewise; None where it changes nothing.
        oracle: the same for the oracle, without the run.
    """

    field: str
    declared: Operation
    native: Any
    inverse: Any
    oracle: Callable[..., Any]


class InterpretedVertices(Protocol):
    """The vertices that Python runs as they are written, for the oracle, which has the others."""

    def begin(self, strings: Any, seed: int) -> None:
        """From now on events have these strings, and random numbers this seed."""

    def has(self, field: str) -> bool:
        """Whether a container is one of theirs."""

    def store(self, field: str) -> Any:
        """The entries of one, which expire or fire."""

    def begin_event(self) -> None:
        """A phase begins."""

    def undo(self) -> None:
        """It has raised, and changes nothing."""

    def settle(self) -> None:
        """Writes what the containers hold into the words."""


@dataclass(kw_only=True)
class Program:
    """An operator's function and all it calls, rewritten.

    Attributes:
        oracle: runs on the wrappers of :mod:`specstream.compiler.oracle.oracle`.
        native: source for Numba; parameters (run, state, event, emit).
        helpers: names of the functions compiled along.
        strings: string literals in the code.
        fingerprint: everything about the code that decides what it does, as text.
        derived: values of the event that Python computes before the operator runs.
        forms: formatted strings that are emitted as their parts.
        unentered: columns of strings of which the code asks no more than which of its literals they
            are, with these.
        reads_timestamp: whether the code reads ``event.timestamp``.
        attributes: names of all attributes in the code: a column that is not among them is not
            read.
        written: the functions as they were written, those that are called before their callers.
        operations: of the boosted fields, by their numbers.
        catches: whether the code catches exceptions.
        look_ups: fields that every event asks for a key of its own, and the columns of the key.
        uses_arena: whether it makes lists, dicts or sets of its own.
        reads_frozen: whether it reads those of a module.
        is_on_timer: whether it is what runs when a timer fires.
        is_interpreted: whether Python runs it as it is written; ``oracle`` is then the function
            itself, ``native`` too.
        calls_python: of a pipeline: whether Python runs some of its vertices as they are written.
        beside: then what has those in the oracle, see :class:`InterpretedVertices`: of the words of
            a state, or of what they have sent before.
        on_timer: that program, of an operator that has timers.
        event: of an ``on_timer``: the columns that a timer has beside its key.
    """

    operator: str
    oracle: Callable[..., None]
    native: Callable[..., None]
    helpers: tuple[str, ...]
    strings: tuple[str, ...]
    fingerprint: str
    reads_timestamp: bool
    attributes: frozenset[str] = frozenset()
    written: dict[types.FunctionType, Written] = field(default_factory=dict, repr=False)
    operations: tuple[CompiledOperation, ...] = ()
    catches: bool = False
    derived: tuple[Derived, ...] = ()
    forms: tuple[Form, ...] = ()
    unentered: tuple[tuple[str, tuple[str, ...]], ...] = ()
    look_ups: tuple[LookUp, ...] = ()
    uses_arena: bool = False
    reads_frozen: bool = False
    is_on_timer: bool = False
    is_interpreted: bool = False
    calls_python: bool = False
    beside: Callable[[Any, Any], InterpretedVertices] | None = None
    on_timer: Program | None = None
    event: Schema = field(default_factory=lambda: Schema((), ()))

    def oracle_over(self, meaning: Callable[[Any], Any]) -> Callable[..., None]:
        """The oracle over another library: the same code objects, with other values under the
        names that they read.

        Args:
            meaning: gives what stands in place of a value of the oracle's library. It is asked once
                for each value, and not for functions of the operator's own, which are taken along.

        >>> import specstream as ss
        >>> @ss.operator(event={"x": int}, emits={"least": int})
        ... def least(event, emit):
        ...     emit(min(event.x, 3))
        >>> over = least.program.oracle_over(lambda value: max if callable(value) else value)
        >>> over(None, type("event", (), {"x": 5}), print)
        5
        """
        made: Callable[..., None] = _over(self.oracle, meaning, {})
        return made

    def lines(self) -> tuple[tuple[str, int, int, str], ...]:
        """Of each function: file, number and site of its first line, and its text."""
        return tuple((one.filename, one.line, one.site, one.text) for one in self.written.values())

    def trees(self) -> list[tuple[str, ast.AST]]:
        """Of each function the file, and the tree of its text with the lines of the file."""
        found: list[tuple[str, ast.AST]] = []
        for one in self.written.values():
            tree = parse(textwrap.dedent(one.text))
            found.append((one.filename, ast.increment_lineno(tree, one.line - 1)))
        return found


def _over(value: Any, meaning: Callable[[Any], Any], done: dict[int, Any]) -> Any:
    """A value that the oracle's code reads by a name, over another library."""
    if id(value) in done:
        return done[id(value)]
    if isinstance(value, functools.partial):
        function = _over(value.func, meaning, done)
        return functools.partial(function, *value.args, **value.keywords)
    if not isinstance(value, types.FunctionType) or not _is_rewritten(value):
        done[id(value)] = meaning(value)
        return done[id(value)]
    # First the function, then what it reads: it may call itself.
    names: dict[str, Any] = {"__builtins__": builtins}
    made = types.FunctionType(value.__code__, names, value.__name__, value.__defaults__)
    made.__kwdefaults__ = value.__kwdefaults__
    done[id(value)] = made
    for name, one in value.__globals__.items():
        if name != "__builtins__":
            names[name] = _over(one, meaning, done)
    return made


def _is_rewritten(function: types.FunctionType) -> bool:
    """Whether it has names of its own, as the rewriting gives to what it makes."""
    module = sys.modules.get(function.__module__)
    return module is None or vars(module) is not function.__globals__

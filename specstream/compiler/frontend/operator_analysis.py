"""What is known of an operator, and of each of its functions, while they are analysed."""

from __future__ import annotations

import ast
import types
from abc import ABC, abstractmethod
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NoReturn

from specstream.compiler.frontend.error_texts import ErrorTexts
from specstream.compiler.frontend.scopes import own_name
from specstream.compiler.language.error_classes import ErrorClasses
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout
from specstream.errors import CompileError

__all__ = ["Analysis", "FunctionSource"]


@dataclass
class FunctionSource:
    """One plain function on its way through the rewriting.

    Attributes:
        nested: what was nested in it, rewritten for Numba as functions of their own.
        lifted: these functions.
        spelled: what names stood for that were taken out of the tree (``spelling.py``).
    """

    original: types.FunctionType
    tree: ast.FunctionDef
    filename: str
    parameters: tuple[str, ...]
    text: str
    native_namespace: dict[str, Any] = field(default_factory=dict)
    oracle_namespace: dict[str, Any] = field(default_factory=dict)
    nested: list[ast.FunctionDef] = field(default_factory=list)
    lifted: list[types.FunctionType] = field(default_factory=list)
    spelled: dict[str, Any] = field(default_factory=dict)

    def compile(self, tree: ast.FunctionDef, namespace: dict[str, Any]) -> types.FunctionType:
        module = ast.Module([tree], [])
        ast.fix_missing_locations(module)
        namespace["__name__"] = self.original.__module__
        exec(compile(module, self.filename, "exec"), namespace)
        function: types.FunctionType = namespace[tree.name]
        function.__qualname__ = self.original.__qualname__
        return function


class Analysis(ABC):
    """What is known of an operator while its functions are gone through, one inside the other.

    Attributes:
        operator: its name, for messages.
        layout: of its state.
        event: columns of its events.
        emits: columns of its rows.
        operations: names of the operations on boosted fields.
        numeric_fields: those of the state that hold no bools.
        text_fields: those of the state that hold strings.
        open: functions on the way from the operator's to the present one.
        strings: string literals met so far.
        reads_timestamp: whether ``event.timestamp`` was met.
        attributes: names of all attributes that were met.
        catches: whether any of its functions has a try statement.
        errors: the exception classes met so far.
        tells: whether texts of caught exceptions are emitted.
        texts: where their texts come from.
        uses_arena: whether a list, dict or set is made, which lies in the worker's arena.
        reads_frozen: whether lists, dicts or sets of a module are read.
        shapes: of the arrays of the state.
        has_records: whether records may be met: the state holds some, or one is made.
        record_fields: scalar fields of the state that are records.
        is_on_timer: whether it is of what runs when a timer fires.
        of_inputs: columns of the event that are an input's.
        keeps_codes: whether a string may be stored in a field of ints, as its code.
    """

    layout: Layout

    def __init__(
        self, operator: str, event: Schema, emits: Schema, operations: Collection[str]
    ) -> None:
        self.operator = operator
        self.event = event
        self.emits = emits
        self.operations = operations
        self.numeric_fields: set[str] = set()
        self.text_fields: set[str] = set()
        self.open: list[types.FunctionType] = []
        self.strings: list[str] = []
        self.reads_timestamp = False
        self.attributes: set[str] = set()
        self.catches = False
        self.errors = ErrorClasses()
        self.tells = False
        self.texts = ErrorTexts(self.errors)
        self.uses_arena = False
        self.reads_frozen = False
        self.shapes: dict[str, tuple[int, ...]] = {}
        self.has_records = False
        self.record_fields: set[str] = set()
        self.is_on_timer = False
        self.of_inputs: frozenset[str] = frozenset()
        self.keeps_codes = False

    @abstractmethod
    def function(self, original: types.FunctionType) -> tuple[Any, Any]:
        """The native and the oracle form of a function."""

    @abstractmethod
    def kinds_of(self, original: types.FunctionType) -> dict[str, Any]:
        """What is known of a function's parameters."""

    @abstractmethod
    def compiled(self, original: types.FunctionType) -> Any:
        """The native form of a function that others call."""

    def refuse(self, source: FunctionSource, node: ast.AST, problem: str, hint: str) -> NoReturn:
        """Raises CompileError for a place in the source."""
        line = getattr(node, "lineno", source.tree.lineno)
        problem, hint = own_name(problem), own_name(hint)
        raise CompileError(self.operator, source.filename, line, problem, hint)

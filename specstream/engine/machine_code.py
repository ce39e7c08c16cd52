"""The operator's machine code, as far as an engine needs it, handed to the runtime."""

from __future__ import annotations

from collections.abc import Callable

from specstream.columns.strings import StringTable
from specstream.compiler.backend.numba_types import Variant
from specstream.compiler.entry_points import Entry, compile_entry, compile_operation
from specstream.engine.native import Native
from specstream.engine.options import Options
from specstream.interpreted.vertices import Calls, Vertices
from specstream.pipelines.pipeline import Pipeline

__all__ = ["MachineCode"]


class MachineCode:
    """The entries of one engine.

    Attributes:
        entries: of the operator's variants.
        operations: of each operation on a boosted field, and its inverse.

    Args:
        strings: gives the engine's table, which is another one after a snapshot was restored.
    """

    def __init__(
        self, options: Options, speculates: bool, strings: Callable[[], StringTable]
    ) -> None:
        operator = options.operator
        self._operator = operator
        self._speculative = options.speculative
        self._running_ahead = options.running_ahead
        variants = options.variants
        # Where only submitted events may run ahead of their turn, the code for that is compiled
        # when the first one comes.
        if not speculates and options.execution == "ordered":
            variants = ("plain",)
        self.entries: dict[Variant, Entry] = {
            variant: self._compiled(variant) for variant in variants
        }
        self.operations = [
            [
                compile_operation(
                    operator.program,
                    operator.layout,
                    operator.event,
                    operator.emits,
                    number,
                    inverse,
                )
                for inverse in ((False, True) if operation.inverse is not None else (False,))
            ]
            for number, (_, operation) in enumerate(operator.layout.operations)
        ]

        self._vertices = _vertices(options, strings)
        fired = operator.program.on_timer
        if fired is not None:
            self.entries["timer"] = compile_entry(
                fired, operator.layout, fired.event, operator.emits, "plain"
            )

    def _compiled(self, variant: Variant) -> Entry:
        operator = self._operator
        return compile_entry(
            operator.program, operator.layout, operator.event, operator.emits, variant
        )

    def error(self, key: int | None) -> BaseException | None:
        """What an interpreted vertex has raised, as of :meth:`InterpretedCode.error`. Of machine
        code it is not known: only that it has raised."""
        return None if self._vertices is None else self._vertices.raised(key)

    def sent(self, key: int | None) -> Calls | None:
        """Where machine code has raised: what interpreted vertices had sent before; None: there are
        none in it."""
        return None if self._vertices is None else self._vertices.calls(key)

    def forget(self, error: BaseException) -> None:
        """That one is dealt with."""
        if self._vertices is not None:
            self._vertices.forget(error)

    def set_in(self, native: Native) -> None:
        """Hands all of it to the runtime."""
        for variant, entry in self.entries.items():
            native.set_entry(variant, entry.address)
        if self._vertices is not None:
            native.interpret_vertices(self._vertices.handle)
        for number, entries in enumerate(self.operations):
            field, _ = self._operator.layout.operations[number]
            native.set_operation(number, field, [entry.address for entry in entries])

    def compile_for(self, horizon: int, native: Native) -> None:
        """Makes sure that there is code for speculation if a batch may ask for it."""
        if horizon > 0:
            self._add(self._speculative, native)

    def compile_ahead(self, native: Native) -> None:
        """Likewise for submitted events that run ahead of their turn."""
        self._add(self._running_ahead, native)

    def _add(self, variant: Variant, native: Native) -> None:
        if "plain" in self.entries and variant not in self.entries:
            entry = self._compiled(variant)
            self.entries[variant] = entry
            native.set_entry(variant, entry.address)


def _vertices(options: Options, strings: Callable[[], StringTable]) -> Vertices | None:
    """What runs the interpreted vertices of a pipeline; None: there are none."""
    operator = options.operator
    if not isinstance(operator, Pipeline) or not operator.calls_python:
        return None
    return Vertices(
        operator.plan.in_python,
        operator.layout,
        strings,
        options.seed,
        options.profile,
        options.early,
    )

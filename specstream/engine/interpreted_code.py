"""In the place of machine code: the function of an interpreted operator, which Python runs."""

from __future__ import annotations

from collections.abc import Callable

from specstream.columns.strings import StringTable
from specstream.compiler.backend.numba_types import Variant
from specstream.compiler.entry_points import Entry
from specstream.engine.native import Native
from specstream.engine.options import Options
from specstream.interpreted.running import Interpreter

__all__ = ["InterpretedCode"]


class InterpretedCode:
    """What the workers of one engine run, with the face of its machine code.

    Attributes:
        entries: none.
        operations: none.

    Args:
        strings: gives the engine's table, which is another one after a snapshot was restored.
    """

    def __init__(self, options: Options, strings: Callable[[], StringTable]) -> None:
        self.entries: dict[Variant, Entry] = {}
        self.operations: list[list[Entry]] = []
        operator = options.operator
        self._interpreter = Interpreter(
            operator.program,
            operator.layout,
            operator.event,
            operator.emits,
            strings,
            options.seed,
            options.profile,
            options.early,
        )

    def set_in(self, native: Native) -> None:
        """Has the runtime call it."""
        native.interpret(self._interpreter.handle)

    def compile_for(self, horizon: int, native: Native) -> None:
        """There is nothing to compile."""

    def compile_ahead(self, native: Native) -> None:
        """Likewise."""

    def error(self, key: int | None) -> BaseException | None:
        """What has raised.

        Args:
            key: of a job whose events are applied early: the event's row, or ``-1 - number`` of
                the timer's firing. None: of any other, where what failed last is all there is.
        """
        of = self._interpreter
        return of.error if key is None else of.errors.get(key)

    def sent(self, key: int | None) -> None:
        """Nothing: there is no machine code that raises."""

    def forget(self, error: BaseException) -> None:
        """That one is dealt with."""
        self._interpreter.forget(error)

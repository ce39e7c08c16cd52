"""Interpreted operators in an engine's threads.

The runtime calls :func:`_python_interpreter` where it would call compiled code, with a worker's run
and a range of events. Each worker has its own wrappers, over its own ``Run``, made when it first
comes; so nothing here is shared between threads but the exception of the head.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from specstream._native import ffi, lib
from specstream.columns.exception_texts import leaving
from specstream.columns.strings import StringTable
from specstream.compiler.frontend.program import Program
from specstream.declarations.schema import Schema
from specstream.declarations.state_layout import Layout
from specstream.interpreted.events import Emit, check_returned, make_event, make_timer
from specstream.interpreted.polling import polled
from specstream.interpreted.runtime import RunEnded, make_run
from specstream.interpreted.state import Elements, make_state
from specstream.interpreted.values import Texts
from specstream.interpreted.vertices import Vertices

if TYPE_CHECKING:
    from specstream._native import CData, ss_run_p

__all__ = ["Interpreter"]


class _Worker:
    """What a worker runs events with."""

    def __init__(self, interpreter: Interpreter) -> None:
        of, strings = interpreter, interpreter.strings()
        self.strings = strings
        self.run = make_run()
        elements = Elements(self.run, of.layout, strings)
        self.state, self.begin = make_state(of.layout, self.run, elements)
        texts = Texts(None, strings)
        self.event = make_event(of.event, self.run, of.seed, texts)
        self.emit = Emit(of.emits, self.run.emit, strings)
        self.process = of.process(self.run)
        if not of.layout.fields:
            stateless = self.process
            self.process = lambda state, event, emit: stateless(event, emit)
        self.timer: Any = None
        self.fired: Any = None
        if of.on_timer is not None and of.layout.timers is not None:
            container = of.layout.timers.container
            assert container is not None
            self.timer = make_timer(container.key, self.run, of.seed, texts)
            self.fired = of.on_timer(self.run)


class Interpreter:
    """Runs an interpreted operator for the workers of one engine.

    Args:
        program: what is run.
        strings: gives the engine's table.
        profile: whether lines are counted.
        early: whether events that raise ahead of their turn may do so for good.

    Attributes:
        error: what the head raised that has raised last.
        errors: with ``early``, what each event has raised, by row, and each timer, by
            ``-1 - number``: an event is applied before it is final, and does not run again then.
    """

    def __init__(
        self,
        program: Program,
        layout: Layout,
        event: Schema,
        emits: Schema,
        strings: Callable[[], StringTable],
        seed: int,
        profile: bool,
        early: bool,
    ) -> None:
        fired = program.on_timer
        written = program.written | ({} if fired is None else fired.written)
        sites = {one: (of.site, of.line) for one, of in written.items()} if profile else {}
        self.process = polled(program.oracle, sites)
        self.on_timer = None if fired is None else polled(fired.oracle, sites)
        self.layout, self.event, self.emits = layout, event, emits
        self.strings, self.seed = strings, seed
        self._workers: dict[int, _Worker] = {}
        self.error: BaseException | None = None
        self.errors: dict[int, BaseException] = {}
        self._is_early = early

    @property
    def handle(self) -> CData:
        """What the runtime gets for it; whoever asks for one keeps it alive."""
        return ffi.new_handle(self)

    def forget(self, error: BaseException) -> None:
        """Drops what an event has raised, and the frames that it holds, if no other one has failed
        since. May be called again."""
        if self.error is error:
            self.error = None
        for key in [key for key, one in list(self.errors.items()) if one is error]:
            self.errors.pop(key, None)

    @staticmethod
    def _key(variant: int, pointer: ss_run_p, row: int) -> int:
        return -1 - (pointer.first_sequence + row) if variant == lib.SS_TIMER else row

    def range(self, pointer: ss_run_p, variant: int, first: int, last: int) -> int:
        """Runs events [first, last); gives the first that did not complete."""
        address = int(ffi.cast("uintptr_t", pointer))
        worker = self._workers.get(address)
        if worker is None or worker.strings is not self.strings():
            worker = self._workers[address] = _Worker(self)
        run, state, emit = worker.run, worker.state, worker.emit
        function, given = worker.process, worker.event
        if variant == lib.SS_TIMER:
            function, given = worker.fired, worker.timer
        for row in range(first, last):
            run.begin(address, row)
            for begin in worker.begin:
                begin()
            raised = False
            try:
                check_returned(function(state, given, emit))
            except RunEnded:
                raised = True
            except BaseException as error:
                raised = True
                leaving(error)
                if run.verdict() == lib.SS_COMPLETED:
                    if not run.speculates():
                        self.error = error
                    if self._is_early:
                        self.errors[self._key(variant, pointer, row)] = error
            else:
                if self.errors:  # of a run that came before, on other values
                    self.errors.pop(self._key(variant, pointer, row), None)
            if run.end(raised):
                return row if pointer.verdict != lib.SS_COMPLETED else row + 1
        return last

    def broken(self, pointer: ss_run_p, first: int, error: BaseException) -> None:
        """Something has failed before the first event, or in what wraps them."""
        pointer.verdict = lib.SS_RAISED
        pointer.event = first
        if not pointer.speculative:
            self.error = error


@ffi.def_extern(name="ss_python_interpreter", error=-1)
def _python_interpreter(context: CData, run: ss_run_p, variant: int, first: int, last: int) -> int:
    interpreter: Interpreter | Vertices = ffi.from_handle(context)
    try:
        return interpreter.range(run, variant, first, last)
    except BaseException as error:
        interpreter.broken(run, first, error)
        return first

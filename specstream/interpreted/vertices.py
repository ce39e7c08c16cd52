"""Interpreted vertices of a pipeline in an engine's threads.

The compiled code of a phase calls Python where such a vertex stands. Each worker has its own
wrappers, over its own ``Run``. What the vertices of a phase have sent is put down until the next
one begins: where a compiled vertex raises, the oracle says what, and goes on from these rows, so
that the vertices that Python runs are not run once more for that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from specstream._native import ffi, lib
from specstream.columns.exception_texts import leaving
from specstream.columns.strings import StringTable
from specstream.compiler.backend.interpreted_vertex import (
    KEY,
    InterpretedVertex,
    note_vertex,
    shown_path,
)
from specstream.declarations.state_layout import Layout
from specstream.interpreted.events import Emit, check_returned, make_timer
from specstream.interpreted.polling import Sites, polled
from specstream.interpreted.runtime import RunEnded, make_run
from specstream.interpreted.state import Elements, make_state
from specstream.interpreted.values import Texts
from specstream.interpreted.vertex_events import make_vertex_event

if TYPE_CHECKING:
    from specstream._native import CData, ss_run_p

__all__ = ["Calls", "Vertices"]

Calls = list[list[tuple[Any, ...]]]
"""Of each run of an interpreted vertex in a phase, one after the other, the words of its rows."""

_INT = ord("i")


class _Vertex:
    """A vertex, as one worker runs it."""

    def __init__(self, of: InterpretedVertex, made: _Made, run: Any, whole: Vertices) -> None:
        strings = whole.strings()
        texts = Texts(None, strings)
        self.of, self.run = of, run
        self.rows: list[tuple[Any, ...]] = []
        elements = Elements(run, whole.layout, strings)
        self.state, self.begin = make_state(of.layout, run, elements)
        self.event = make_vertex_event(of, run, texts, elements.of)
        self.emit = Emit(of.emits, self._send, strings)
        self.process = made.process(run)
        self.timer: Any = None
        self.on_timer: Any = None
        if made.on_timer is not None:
            seed = (whole.seed ^ of.salt) % 2**64
            self.timer = make_timer(of.key, run, seed, texts)
            self.on_timer = made.on_timer(run)

    def _send(self, words: tuple[Any, ...]) -> None:
        self.run.send(words)
        self.rows.append(words)

    def call(self, fires: bool) -> None:
        """Runs it once."""
        for begin in self.begin:
            begin()
        if fires:
            returned = self.on_timer(self.state, self.timer, self.emit)
        elif self.of.layout.fields:
            returned = self.process(self.state, self.event, self.emit)
        else:
            returned = self.process(self.event, self.emit)
        check_returned(returned)

    def note(self, error: BaseException, path: list[int]) -> None:
        of = self.of
        note_vertex(error, of.name, of.pipeline, shown_path(of.levels, of.by_time, path))


class _Made:
    """Of a vertex what makes its functions for a worker."""

    def __init__(self, of: InterpretedVertex, profile: bool) -> None:
        fired = of.program.on_timer
        written = of.program.written | ({} if fired is None else fired.written)
        sites: Sites = {one: (at.site, at.line) for one, at in written.items()} if profile else {}
        self.process = polled(of.program.oracle, sites)
        self.on_timer = None if fired is None else polled(fired.oracle, sites)


class _Worker:
    """What a worker runs vertices with."""

    def __init__(self, whole: Vertices) -> None:
        self.strings = whole.strings()
        self.run = make_run()
        self.vertices = [
            _Vertex(of, made, self.run, whole)
            for of, made in zip(whole.vertices, whole.made, strict=True)
        ]
        self.calls: Calls = []


class Vertices:
    """Runs the interpreted vertices of a pipeline for the workers of one engine.

    Args:
        vertices: them, by their numbers.
        layout: of the whole state.
        strings: gives the engine's table.
        seed: of the engine.
        profile: whether lines are counted.
        early: whether events that raise ahead of their turn may do so for good.

    Attributes:
        error: what one has raised for the head last.
    """

    def __init__(
        self,
        vertices: tuple[InterpretedVertex, ...],
        layout: Layout,
        strings: Callable[[], StringTable],
        seed: int,
        profile: bool,
        early: bool,
    ) -> None:
        self.vertices, self.layout, self.strings, self.seed = vertices, layout, strings, seed
        self.made = [_Made(of, profile) for of in vertices]
        self._is_early = early
        self._workers: dict[int, _Worker] = {}
        self.error: BaseException | None = None
        # With early results, by phase: an event is applied before it is final, and does not run
        # again then.
        self._errors: dict[int, BaseException] = {}
        # What compiled vertices were behind that have raised: by phase, or of the head.
        self._calls: dict[int | None, Calls] = {}
        self._asked: int | None = None

    @property
    def handle(self) -> CData:
        """What the runtime gets for it; whoever asks for one keeps it alive."""
        return ffi.new_handle(self)

    def raised(self, key: int | None) -> BaseException | None:
        """What a vertex has raised in a phase: of the head, or by its key."""
        return self.error if key is None else self._errors.get(key)

    def calls(self, key: int | None) -> Calls:
        """What interpreted vertices have sent before a compiled one has raised."""
        self._asked = key
        return self._calls.get(key, [])

    def forget(self, error: BaseException) -> None:
        """Drops what a vertex has raised, and the frames that it holds, if nothing has failed
        since; and the calls that were asked for last, to tell what a compiled one has."""
        self._calls.pop(self._asked, None)
        if self.error is error:
            self.error = None
        for key in [key for key, one in list(self._errors.items()) if one is error]:
            self._errors.pop(key, None)

    @staticmethod
    def _key(pointer: ss_run_p, in_timer: int) -> int:
        row: int = pointer.event
        return -1 - (pointer.first_sequence + row) if in_timer else row

    def range(self, pointer: ss_run_p, call: int, number: int, in_timer: int) -> int:
        """Runs a vertex, or is told that a compiled one has raised."""
        address = int(ffi.cast("uintptr_t", pointer))
        worker = self._workers.get(address)
        if worker is None or worker.strings is not self.strings():
            worker = self._workers[address] = _Worker(self)
        if pointer.calls == 0:
            worker.calls = []
            self._begin_phase(pointer, in_timer)
        if call == lib.SS_PHASE_RAISED:
            self._compiled_raised(worker, pointer, in_timer)
        else:
            self._call(worker.vertices[number], worker, pointer, call, in_timer)
        return 0

    def broken(self, pointer: ss_run_p, first: int, error: BaseException) -> None:
        """The wrappers have failed, and no vertex."""
        pointer.verdict = lib.SS_RAISED
        if not pointer.speculative:
            self.error = error

    def _begin_phase(self, pointer: ss_run_p, in_timer: int) -> None:
        """What the same phase has left behind, when it ran before, on other values."""
        if self._errors or self._calls:
            key = self._key(pointer, in_timer)
            self._errors.pop(key, None)
            self._calls.pop(key, None)

    def _compiled_raised(self, worker: _Worker, pointer: ss_run_p, in_timer: int) -> None:
        if self._is_early:
            self._calls[self._key(pointer, in_timer)] = worker.calls
        if not pointer.speculative:
            self._calls[None], self.error = worker.calls, None

    def _call(
        self, vertex: _Vertex, worker: _Worker, pointer: ss_run_p, call: int, in_timer: int
    ) -> None:
        run = worker.run
        vertex.rows = []
        run.enter(int(ffi.cast("uintptr_t", pointer)))
        raised = True
        try:
            vertex.call(call == lib.SS_VERTEX_TIMER)
            raised = False
        except RunEnded:
            pass
        except BaseException as error:
            leaving(error)
            if run.verdict() == lib.SS_COMPLETED:
                axes = range(len(KEY), len(KEY) + len(vertex.of.levels))
                vertex.note(error, [run.given(at, _INT) for at in axes])
                if not run.speculates():
                    self.error = error
                if self._is_early:
                    self._errors[self._key(pointer, in_timer)] = error
        finally:
            run.leave(raised)
        worker.calls.append(vertex.rows)

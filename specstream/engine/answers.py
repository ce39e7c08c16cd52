"""What compiled code does not know, said by the oracle (the runtime's side: ``answers.c``).

The C side calls ``ss_python_answering`` in a worker's thread that has the turn, so that the state
stands still, and where the event that asks has left no trace. The oracle runs this event over an
overlay of that state (with early results, of what is applied so far), and what it was asked for
comes out of that. Then the event runs again, with the answers: the state is written to by compiled
code alone.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from specstream._native import ffi
from specstream.engine.operator_errors import oracle_of_event, oracle_of_timer
from specstream.engine.parts import Parts

if TYPE_CHECKING:
    from specstream._native import CData, Pointer, ss_answer_word_p, ss_firing_p

__all__ = ["Answering"]


class Answering:
    """Answers for one engine, which it does not keep alive."""

    def __init__(self, parts: Parts) -> None:
        self._parts = weakref.ref(parts)
        self._answers: Any = None  # stand until the next call

    def set_in(self, parts: Parts) -> None:
        """Has the C side call it."""
        parts.native.set_answering(ffi.new_handle(self))

    def answers(self, row: int, firing: ss_firing_p) -> Any:
        """An array of ``struct ss_answer_word`` for the event in a row of the job, or a timer."""
        parts = self._parts()
        assert parts is not None
        oracle = _run_alone(parts, row, firing)
        strings = parts.committed.strings
        words = [strings.add(text) if text else 0 for text, _ in oracle.answers]
        statuses = [status for _, status in oracle.answers]
        parts.flight.answered = np.array(words, np.int64)
        self._answers = ffi.new(
            "struct ss_answer_word[]",
            [
                {"word": word % 2**64, "status": status}
                for word, status in zip(words, statuses, strict=True)
            ],
        )
        return self._answers


def _run_alone(parts: Parts, row: int, firing: ss_firing_p) -> Any:
    if firing:
        return oracle_of_timer(parts, firing)
    locate = parts.flight.locate or parts.committed.pending.segments.locate
    events, at, _, _, sequence = locate(row)
    return oracle_of_event(parts, events, at, sequence - at, row)


@ffi.def_extern(name="ss_python_answering", error=-1)
def _python_answering(
    context: CData, row: int, firing: ss_firing_p, answers: Pointer[ss_answer_word_p]
) -> int:
    answering: Answering = ffi.from_handle(context)
    try:
        found = answering.answers(row, firing)
    except Exception:
        return -1  # it raises, and its failure says what
    answers[0] = found
    return len(found)

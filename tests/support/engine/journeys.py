"""Engines that are put aside, brought back and taken back between any two of their steps.

What an engine has told so far goes with it: who goes back to a snapshot or a mark has heard what
was told until then. So the whole must be told just as by an engine that stands still.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa
from conftest import Result, partial_of

import specstream as ss
from support import contents

# How often one journey goes back, at most: it has to come to an end.
RETURNS = 5


@dataclass(frozen=True)
class Told:
    """How far a stream has come, and what came out of it until then."""

    position: int = 0
    parts: tuple[Any, ...] = ()
    raised: tuple[tuple[int, str, str], ...] = ()


class Journey:
    """An engine, which may be another one after each :meth:`step`, and what was told.

    Args:
        operator: of all engines.
        paths: options of engines, to choose from.
        dice: decides everything.
        common: options that all engines have.
    """

    def __init__(
        self,
        operator: ss.Operator,
        paths: Sequence[dict[str, Any]],
        dice: random.Random,
        **common: Any,
    ) -> None:
        self.operator, self.paths, self.dice, self.common = operator, paths, dice, common
        self.told = Told()
        self._snapshots: list[tuple[bytes, Told]] = []
        self._marks: list[tuple[Any, Told]] = []
        self._returns = RETURNS
        self.engine = self._new(None)

    def _new(self, snapshot: bytes | None) -> ss.Engine:
        options = {**self.dice.choice(self.paths), **self.common}
        return ss.Engine(self.operator, restore=snapshot, **options)

    def _replace(self, snapshot: bytes) -> None:
        self.engine.close()
        self.engine = self._new(snapshot)
        self._marks.clear()

    def step(self) -> None:
        """Does something that nobody may notice, or goes back to where the journey was before."""
        kind = self.dice.randrange(8)
        if kind == 0:
            self._replace(self.engine.snapshot())
        elif kind == 1:
            self.engine.restore(self.engine.snapshot())
        elif kind == 2:
            self.engine.rollback(self.engine.savepoint())
        elif kind == 3:
            self._snapshots.append((self.engine.snapshot(), self.told))
        elif kind == 4:
            self._marks.append((self.engine.savepoint(), self.told))
        elif kind <= 6 and self._returns and (self._snapshots or self._marks):
            self._returns -= 1
            to, self.told = self.dice.choice(self._snapshots + self._marks)
            if not isinstance(to, bytes):
                self.engine.rollback(to)
            elif self.dice.random() < 0.5:
                self.engine.restore(to)
            else:
                self._replace(to)

    def come_to(self, position: int) -> None:
        """Notes how far the stream has come."""
        self.told = replace(self.told, position=position)

    def tell(self, part: Any, position: int, error: Exception | None = None) -> None:
        """Notes output, how far the stream has come, and what its last event raised, or a timer."""
        told = self.told
        row = -1 if hasattr(error, "specstream_timer") else position - 1
        raised = () if error is None else ((row, type(error).__name__, str(error)),)
        self.told = replace(
            told, position=position, parts=(*told.parts, part), raised=told.raised + raised
        )

    def __enter__(self) -> Journey:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.engine.close()


def run_journey(
    operator: ss.Operator,
    table: pa.Table,
    paths: Sequence[dict[str, Any]],
    dice: int,
    last: Callable[[ss.Engine], None] = lambda engine: None,
    **common: Any,
) -> Result:
    """As ``run_engine``, over pieces of the table, with steps of a journey in between.

    Args:
        last: is called with the last engine.
    """
    with Journey(operator, paths, random.Random(dice), **common) as journey:
        journey.tell(journey.engine.process(table.slice(0, 0)), 0)
        while True:
            journey.step()
            at = journey.told.position
            if at == table.num_rows:
                break
            piece = table.slice(at, journey.dice.randint(1, table.num_rows // 2 + 1))
            try:
                journey.tell(journey.engine.process(piece), at + piece.num_rows)
            except Exception as error:
                partial = partial_of(error)
                journey.tell(partial.output, at + partial.consumed + 1, error)
        last(journey.engine)
        told = journey.told
        return Result(
            pa.concat_tables(told.parts), contents.of_view(journey.engine.state), told.raised
        )


# What is done with one source's events: a table, and a look or an advance afterwards.
Piece = tuple[str, pa.Table, Literal["advance", "poll", "singly", "nothing"]]


def run_submitted(
    operator: ss.Operator,
    pieces: Sequence[Piece],
    paths: Sequence[dict[str, Any]],
    dice: int | None,
    **common: Any,
) -> Result:
    """Submits pieces with a column ``time``; None for ``dice``: by one engine that stands still.

    After "advance" a source's frontier is what it still has to send; in the end all have ended.
    What was raised comes with position 0.
    """
    ends = sorted({source for source, _, _ in pieces})

    def submit(engine: ss.Engine, number: int) -> None:
        source, table, action = pieces[number]
        if action == "singly":
            for row in table.to_pylist():
                engine.submit_event(row.pop("time"), source, **row)
        else:
            engine.submit(table, order_by="time", source=source)
        if action == "advance":
            later = pa.concat_tables([p for s, p, _ in pieces[number:] if s == source])
            rest = later["time"].slice(table.num_rows).to_pylist()
            engine.advance(source, min(rest, default=None))

    def look(journey: Journey, timeout: float | None) -> None:
        at = journey.told.position
        try:
            journey.tell(journey.engine.poll(timeout), at)
        except Exception as error:
            journey.tell(partial_of(error).output, at, error)

    with Journey(operator, paths, random.Random(dice), sources=ends, **common) as journey:
        while True:
            if dice is not None:
                journey.step()
            at = journey.told.position
            if at < len(pieces):
                submit(journey.engine, at)
                journey.come_to(at + 1)
                if pieces[at][2] == "poll":
                    look(journey, 0.0)
            elif at < len(pieces) + len(ends):
                journey.engine.advance(ends[at - len(pieces)])
                journey.come_to(at + 1)
            else:
                pending = journey.engine.stats.pending
                look(journey, None)
                if not pending:
                    break
        told = journey.told
        assert journey.engine.stats.head_aborts == 0
        raised = tuple((0, kind, text) for _, kind, text in told.raised)
        return Result(pa.concat_tables(told.parts), contents.of_view(journey.engine.state), raised)

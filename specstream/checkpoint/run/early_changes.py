"""What changes before it is final, given to a sink of its own after each batch.

Rows that are final go to ``to=``, and nothing here touches them. Of early results a sink gets the
net changes since the batch before, at least once: when the batch is recorded and its final rows are
in their sink. A crash in between would lose the word "final" for rows of that batch: the engine,
restored to its end, does not know of them any more. So they are in the batch's record, with their
keys and versions, and come again with the batch. What is not final needs no record. A restored
engine applies waiting events anew, and tells anew what comes of them.

Versions have to rise across restarts, or a sink that keeps the latest of each row would take an old
one for it. The upper bits of a version are its incarnation; the checkpoint keeps the latest that a
sink may have seen, in a file that is replaced, durably, before it sees the first row of a new one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from specstream.checkpoint.format.store import Store
from specstream.checkpoint.run.delivery import check_to, of_pipeline
from specstream.declarations.options import refused
from specstream.engine.early_results import EarlyAnswer
from specstream.engine.engine import Engine
from specstream.errors import ConfigurationError, SnapshotError, SpecstreamError
from specstream.pipelines.tables import by_sink, of_sinks

__all__ = [
    "EarlyChanges",
    "EarlySink",
    "EarlyTo",
    "KeepingSink",
    "check_early",
    "checked_early_sink",
    "read_incarnation",
]

# In the checkpoint.
INCARNATION = "incarnation"


class KeepingSink(Protocol):
    """A sink that keeps what stands, and acts on restarts."""

    def apply(self, answer: EarlyAnswer, batch_id: int) -> object:
        """Takes in the changes of a batch; the same ones may come twice.

        With ``answer.reset``, whatever it has of versions below ``answer.void_below`` and that is
        not final is void, but for what the changes say anew.
        """


EarlySink = Callable[[pa.Table, int], object] | KeepingSink
# One, or one for each sink of a pipeline that somebody wants early, by its name.
EarlyTo = EarlySink | Mapping[str, EarlySink]
# Names the sink of what has one output.
_ONLY = ""


def checked_early_sink(option: str, found: object) -> None:
    """Looks whether changes can be given to it.

    Raises:
        ConfigurationError: they cannot; names the option.

    >>> checked_early_sink("early_to", "/data/early")
    Traceback (most recent call last):
    specstream.errors.ConfigurationError: early_to='/data/early'; expected a sink such as \
ss.sinks.early_delta_sink(path), any function (pyarrow.Table, batch_id), or an object with \
apply(answer, batch_id)
    """
    if not (callable(found) or callable(getattr(found, "apply", None))):
        raise refused(
            option,
            found,
            "a sink such as ss.sinks.early_delta_sink(path), any function "
            "(pyarrow.Table, batch_id), or an object with apply(answer, batch_id)",
        )


def check_early(
    engine: Engine, early_to: EarlyTo, *, watermark: object, checkpoint: object
) -> None:
    """Whether a stream with ``early_to=`` has what that needs.

    Raises:
        ConfigurationError: it has not; says what to give.
    """
    if watermark is None:
        raise ConfigurationError(
            "early_to= gets results of events that wait for a watermark, and without one every row "
            "is final with its batch: give watermark= as well"
        )
    if checkpoint is None:
        raise ConfigurationError(
            "early_to= without checkpoint=: versions of early rows have to rise from one start of "
            "the query to the next: give checkpoint= as well"
        )
    if not engine.durable.early:
        raise ConfigurationError(
            f"early_to= gets early results, and the engine of {engine.name!r} was made without: "
            "make it with ss.Engine(..., early=True)"
        )
    check_to(engine.operator, early_to, "early_to", each=False)


def read_incarnation(store: Store) -> int:
    """The latest incarnation that a sink may have seen; 0: none has.

    Raises:
        SnapshotError: what was kept of it is no number.
    """
    try:
        content = store.read(INCARNATION)
    except FileNotFoundError:
        return 0
    try:
        return int(content)
    except ValueError:
        raise SnapshotError(
            f"{INCARNATION} in checkpoint {store!r} is {content[:40]!r}; expected a "
            "number: put a copy of it back, or write a number into it that is above the "
            "version of any early row, divided by 2**40"
        ) from None


class EarlyChanges:
    """The changes of a stream on their way to ``early_to=``.

    Args:
        engine: restored to where the checkpoint ends; what it has told before is void.
        early_to: gets the changes.
        store: where the incarnation is kept.

    Raises:
        SnapshotError: the incarnation that was kept cannot be read.
    """

    def __init__(self, engine: Engine, early_to: EarlyTo, store: Store) -> None:
        self._engine = engine
        self._sinks = early_to if isinstance(early_to, Mapping) else {_ONLY: early_to}
        self._store = store
        self._kept = read_incarnation(store)
        # Of a batch, by sink; and not None until the sinks may have to get them again.
        self._answers: tuple[int, dict[str, EarlyAnswer]] | None = None
        engine.durable.begin_early(self._kept + 1)

    def take(self, batch_id: int) -> pa.Table:
        """The changes since the batch before, when all events of this one are applied.

        Returns:
            Those that are final, for the record.
        """
        answers = self._poll()
        self._answers = batch_id, answers
        finals = {
            name: answer.changes.filter(pc.equal(answer.changes["change"], "final"))
            for name, answer in answers.items()
        }
        return finals[_ONLY] if _ONLY in finals else of_sinks(finals)

    def _poll(self) -> dict[str, EarlyAnswer]:
        answer = self._engine.poll_early(timeout=None)
        changes = answer.changes if isinstance(answer.changes, Mapping) else {_ONLY: answer.changes}
        return {name: dataclasses.replace(answer, changes=changes[name]) for name in self._sinks}

    def roll_back(self) -> None:
        """The engine has been put back: what it has told since is void."""
        self._answers = None
        self._engine.durable.begin_early(0)

    def deliver(self, batch_id: int, finals: pa.Table | None) -> None:
        """Gives the sinks what a recorded batch has for them, perhaps again.

        Args:
            batch_id: the batch.
            finals: what :meth:`take` returned; None: it was run without ``early_to=``.

        Raises:
            Exception: what a sink raised, with a note that names it. Those behind it get nothing.
        """
        if self._answers is None or self._answers[0] != batch_id:
            self._answers = batch_id, self._told_anew(finals)
        incarnation = self._engine.durable.incarnation
        if incarnation > self._kept:
            self._store.write(INCARNATION, [b"", str(incarnation).encode()], batch_id)
            self._kept = incarnation
        for name, answer in self._answers[1].items():
            option = of_pipeline(name, "early_to") if name else "early_to="
            self._give(option, self._sinks[name], answer, batch_id)

    def _give(self, option: str, sink: EarlySink, answer: EarlyAnswer, batch_id: int) -> None:
        try:
            if callable(apply := getattr(sink, "apply", None)):
                apply(answer, batch_id)
            else:
                assert callable(sink)
                sink(answer.changes, batch_id)
        except SpecstreamError:  # says itself what becomes of the batch
            raise
        except Exception as error:
            error.add_note(
                f"raised by the sink {option} of operator {self._engine.name!r}, batch "
                f"{batch_id}; the batch is recorded, and its changes come again when the query is "
                "started again"
            )
            raise

    def _told_anew(self, finals: pa.Table | None) -> dict[str, EarlyAnswer]:
        """The changes of a batch that was run by another process, or before a restart."""
        final_rows = None if finals is None else by_sink(finals)
        before = final_rows if isinstance(final_rows, Mapping) else {_ONLY: final_rows}
        return {name: _behind(before.get(name), answer) for name, answer in self._poll().items()}


def _behind(finals: pa.Table | None, answer: EarlyAnswer) -> EarlyAnswer:
    """An answer that says first what has become final before."""
    if finals is None or not finals.num_rows:
        return answer
    changes = answer.changes
    if changes.num_rows:
        # The operator may have been given other columns since.
        changes = pa.concat_tables([finals, changes], promote_options="permissive")
    else:
        changes = finals
    last = finals.slice(finals.num_rows - 1).to_pylist()[0]
    up_to = last["timestamp"], last["source"], last["sequence"]
    return dataclasses.replace(answer, changes=changes, final_up_to=answer.final_up_to or up_to)

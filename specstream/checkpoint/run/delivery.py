"""What a batch has for its sinks, prepared while it is recorded, visible when that is durable.

A sink may show no row of a batch that is not recorded: after a crash the batch would run again, and
might emit other rows. But most of what a sink of files does shows nothing. It converts the rows,
writes them under a name that nobody reads, and waits for the disk; only then a rename makes them
visible. So this is the two-phase commit of databases, with the record as the decision: a sink that
has ``prepare`` does the first part meanwhile, on a thread of the feed's own, and ``commit`` comes
when the record is durable. If it cannot be written, ``abort`` takes away what was prepared. A crash
in between leaves what nobody reads, and the batch comes again under the same id.

A pipeline with several sinks has one delivery of all of them. Where one of them has its rows and
the next one fails, or the process ends in between, the batch comes again for all, from the record
or from a run that emits the same.

What is prepared belongs to one batch, and the thread prepares one thing after the other: also for a
batch that is answered from the record. So nothing is ever prepared twice at a time.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Protocol, Self

import pyarrow as pa

from specstream.checkpoint.format import failpoints
from specstream.checkpoint.run.batch import Result
from specstream.declarations.options import refused, shown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError, SpecstreamError
from specstream.pipelines.tables import by_sink

__all__ = [
    "Deliveries",
    "Delivery",
    "Portion",
    "Prepared",
    "PreparingSink",
    "Sink",
    "Sinks",
    "To",
    "check_apart",
    "check_to",
    "checked_sink",
    "is_sink",
    "of_pipeline",
]


class Prepared(Protocol):
    """Rows of one batch that a sink has stored, where nobody sees them yet."""

    def commit(self) -> object:
        """Makes them visible, all at once; when it returns, they outlive a crash."""

    def abort(self) -> object:
        """Takes them away."""


class PreparingSink(Protocol):
    """A sink in two steps; it need not be callable."""

    def prepare(self, table: pa.Table, batch_id: int) -> Prepared:
        """Stores the rows of a batch durably, and shows none of them.

        What an earlier call with the same id has left, in this process or one that was killed, it
        replaces. When it raises, it leaves nothing behind.
        """


Sink = Callable[[pa.Table, int], object] | PreparingSink
# One, or one for each sink of a pipeline, by its name.
To = Sink | Mapping[str, Sink]
# A sink, the rows that it is to have, and the option that has named it, as the user has written it.
Portion = tuple[Sink, pa.Table, str]


def checked_sink(option: str, found: object) -> None:
    """Looks whether rows can be given to it.

    Raises:
        ConfigurationError: they cannot; names the option.
    """
    if not is_sink(found):
        raise refused(
            option,
            found,
            "a sink such as ss.sinks.parquet_sink(path), or any function (pyarrow.Table, batch_id)",
        )


def of_pipeline(name: str, option: str = "to") -> str:
    """How a message calls the sink that ``to=`` has for a sink of a pipeline.

    >>> of_pipeline("audit")
    "to={'audit': ...}"
    """
    return f"{option}={{{name!r}: ...}}"


def check_to(operator: Operator, to: object, option: str = "to", *, each: bool = True) -> None:
    """Whether ``to=`` has a sink for each output of an operator.

    Args:
        operator: what runs.
        to: what was given.
        option: as which it was.
        each: False: for one of them will do.

    Raises:
        ConfigurationError: it has not, or one more; names it, and those that there are.
    """
    names = operator.sinks
    give = f"give {option}={{" + ", ".join(f'"{name}": sink' for name in names) + "}"
    if not isinstance(to, Mapping):
        if len(names) > 1:
            raise ConfigurationError(
                f"pipeline {operator.name!r} has the sinks {', '.join(names)}, and {option}= is "
                f"one for all of them, {shown(to)}: {give}"
            )
        return
    if not names:
        raise ConfigurationError(
            f"operator {operator.name!r} has one output, and {option}= has sinks by name "
            f"({', '.join(map(str, to)) or 'none'}), as for a pipeline: give the sink itself"
        )
    missing = [name for name in names if name not in to] if each or not to else []
    unknown = [name for name in to if name not in names]
    if missing or unknown:
        problems = [f"nothing for its sink {missing[0]!r}"] if missing else []
        problems += [f"a sink for {unknown[0]!r}, which is none of its own"] if unknown else []
        raise ConfigurationError(
            f"pipeline {operator.name!r}: {option}= has {' and '.join(problems)}; it has the sinks "
            f"{', '.join(names)}: {give}" + ("" if each else ", or some of them")
        )


def is_sink(found: object) -> bool:
    """Whether rows can be given to it.

    >>> is_sink(print), is_sink("/data/rows")
    (True, False)
    """
    return callable(found) or callable(getattr(found, "prepare", None))


def check_apart(sinks: Mapping[str, object | None]) -> None:
    """Whether each sink has a place of its own: two would replace each other's rows of a batch.

    Where a sink writes is in its ``place``, if it has one: whatever can be compared.

    Args:
        sinks: by option, as the user has written it.

    Raises:
        ConfigurationError: two of them write to the same place; names both options.

    >>> check_apart({"to=": print, "late_to=": print})
    Traceback (most recent call last):
    specstream.errors.ConfigurationError: to= and late_to= are the same sink, <built-in function \
print>: give each its own
    """
    given = [(option, sink) for option, sink in sinks.items() if sink is not None]
    for (one, first), (other, second) in itertools.combinations(given, 2):
        place = getattr(first, "place", None)
        if place is not None and place == getattr(second, "place", None):
            path = str(getattr(first, "path", place))
            raise ConfigurationError(
                f"{one} and {other} write to the same directory {path!r}: give each its own"
            )
        if first is second:
            raise ConfigurationError(
                f"{one} and {other} are the same sink, {shown(first)}: give each its own"
            )


@dataclass
class Sinks:
    """The sinks of a stream.

    Attributes:
        to: gets what batches emit; of a pipeline one for each of its sinks, by name.
        late_to: gets late rows.
        rejected_rows_to: gets rows that cannot be events.
        errors_to: gets failed events.
        early_to: gets early results, behind the delivery.
    """

    to: To
    late_to: Sink | None = None
    rejected_rows_to: Sink | None = None
    errors_to: Sink | None = None
    early_to: object = None

    def check_first_batch(self, batch_id: int, *, is_new: bool) -> None:
        """Asks each sink of specstream's whether another run has left rows there.

        All are asked before the first one gets rows, also those that have none for this batch.

        Args:
            batch_id: the first batch of a stream.
            is_new: whether it has a checkpoint, and nothing is recorded there.

        Raises:
            SinkError: there are some.
        """
        several = self.to, self.late_to, self.rejected_rows_to, self.errors_to, self.early_to
        for one in several:
            for sink in one.values() if isinstance(one, Mapping) else (one,):
                if callable(check := getattr(sink, "check_first_batch", None)):
                    check(batch_id, is_new=is_new)

    def portions(self, result: Result, what: str) -> list[Portion]:
        """What a batch has for each sink.

        Raises:
            ConfigurationError: it has rows for a sink that is not there; begins with ``what``.
        """
        found = self._emitted(result.output, what)
        for rows, kind, sink, option in (
            (result.late, "late", self.late_to, "late_to"),
            (result.rejected, "rejected", self.rejected_rows_to, "rejected_rows_to"),
            (result.failed, "failed", self.errors_to, "errors_to"),
        ):
            if rows is None:
                continue
            if sink is None:
                # Late and failed rows go to directories that a command is given.
                given = {"late": "--late-output", "failed": "--errors"}.get(kind)
                command = "" if given is None else f" (specstream run: {given})"
                raise ConfigurationError(
                    f"{what}: {rows.num_rows} {kind} row(s) were recorded for a sink: give "
                    f"{option}={command} as before"
                )
            found.append((sink, rows, f"{option}="))
        return found

    def _emitted(self, output: pa.Table, what: str) -> list[Portion]:
        """What ``to=`` is to have: all of it in one delivery, whatever the number of sinks."""
        rows, to = by_sink(output), self.to
        if not isinstance(to, Mapping) and not isinstance(rows, dict):
            return [(to, rows, "to=")]
        if isinstance(to, Mapping) and isinstance(rows, dict) and to.keys() == rows.keys():
            return [(to[name], of, of_pipeline(name)) for name, of in rows.items()]
        # Recorded before the pipeline was changed; so fresh rows are not.
        recorded = f"for the sinks {', '.join(rows)}" if isinstance(rows, dict) else "for one sink"
        given = f"is for {', '.join(to)}" if isinstance(to, Mapping) else "is one sink"
        raise ConfigurationError(
            f"{what}: its rows were recorded {recorded}, and to= {given}: start the query once "
            "with the pipeline and to= as they were, so that each sink gets them, and then with "
            "the new ones"
        )


class Deliveries:
    """Makes the deliveries of a feed, and has the thread that prepares.

    Args:
        operator: its name.
        is_recorded: whether batches are recorded before they are shown.

    >>> class Shelf:
    ...     def prepare(self, table, batch_id):
    ...         print("prepares batch", batch_id)
    ...         return self
    ...     def commit(self):
    ...         print("shows it")
    >>> deliveries = Deliveries("number", is_recorded=True)
    >>> with deliveries.of(12) as delivery:
    ...     delivery.prepare([(Shelf(), pa.table({"count": [1]}), "to=")])
    ...     # here the batch is recorded
    ...     delivery.commit()
    prepares batch 12
    shows it
    >>> deliveries.close()
    """

    def __init__(self, operator: str, *, is_recorded: bool) -> None:
        self._operator = operator
        self._is_recorded = is_recorded
        self._worker: ThreadPoolExecutor | None = None

    def of(self, batch_id: int, *, ends: bool = False) -> Delivery:
        """The delivery of a batch, which may be the end of the stream."""
        again = "finish() is called again" if ends else "the query is started again"
        if self._is_recorded:
            then = f"its rows are recorded, and come again when {again}"
        else:
            then = f"its rows are not recorded: it runs again when {again}"
        note = f"of operator {self._operator!r}, batch {batch_id}; {then}"
        return Delivery(batch_id, self._submit, note)

    def _submit(self, work: Callable[[], Prepared]) -> Future[Prepared]:
        # Made when there is a sink that needs it. Not a daemon: at the end of the process the
        # interpreter waits for what is under way.
        if self._worker is None:
            self._worker = ThreadPoolExecutor(1, "specstream-sink")
        return self._worker.submit(work)

    def close(self) -> None:
        """Ends the thread."""
        worker, self._worker = self._worker, None
        if worker is not None:
            worker.shutdown()


class Delivery:
    """What one batch has for its sinks; whatever is not committed at the end of the block is not.

    Args:
        batch_id: the batch.
        submit: runs a function on the thread that prepares.
        note: ends the note on what a sink raises.
    """

    def __init__(
        self,
        batch_id: int,
        submit: Callable[[Callable[[], Prepared]], Future[Prepared]],
        note: str,
    ) -> None:
        self._batch_id = batch_id
        self._submit = submit
        self._note = note
        self._left: list[tuple[Sink, pa.Table, str, Future[Prepared] | None]] = []

    def prepare(self, portions: Sequence[Portion]) -> None:
        """Begins to prepare what can be; returns at once."""
        for sink, table, option in portions:
            preparing: Any = getattr(sink, "prepare", None)
            future = None
            if callable(preparing):
                future = self._submit(partial(self._run, preparing, table))
            self._left.append((sink, table, option, future))

    def _run(self, prepare: Callable[[pa.Table, int], Prepared], table: pa.Table) -> Prepared:
        prepared = prepare(table, self._batch_id)
        failpoints.hit("prepared", self._batch_id)
        return prepared

    def commit(self, check: Callable[[], object] | None = None) -> None:
        """Gives the sinks their rows, one sink after the other; call it when the batch is recorded.

        Args:
            check: called before each; what it raises is raised, and that one gets nothing.

        Raises:
            Exception: what a sink raised, with a note that names it. The sinks after it get
                nothing.
        """
        while self._left:
            sink, table, option, future = self._left[0]
            with self._noted(option):
                prepared = None if future is None else future.result()
                if prepared is not None:
                    failpoints.hit("before-commit", self._batch_id)
                if check is not None:
                    check()
                del self._left[0]  # half committed, it could not be taken back
                if prepared is not None:
                    prepared.commit()
                else:
                    assert callable(sink)
                    sink(table, self._batch_id)
            if self._left:
                failpoints.hit("between-sinks", self._batch_id)

    @contextlib.contextmanager
    def _noted(self, option: str) -> Iterator[None]:
        try:
            yield
        except SpecstreamError:  # says itself what becomes of the batch
            raise
        except Exception as error:
            error.add_note(f"raised by the sink {option} {self._note}")
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        left, self._left = self._left, []
        for sink, _, _, future in left:
            # What has failed has left nothing, and the batch has an error already.
            if future is None or future.cancel() or future.exception() is not None:
                continue
            try:
                future.result().abort()
            except Exception as second:
                if error is None:
                    raise
                error.add_note(f"{sink!r}, batch {self._batch_id}: abort() raised {second!r}")

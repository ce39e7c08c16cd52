"""What a source is: rows as they come, and a position that says which of them have been read.

A source gives rows when it is asked, and no more than it is asked for: who asks late slows it down.
Behind each answer it says where it stands. That *position* is recorded with the batch, in one file
with the state, so that a restart asks for the rows behind those that the state knows. A source that
cannot go back has no positions: what it had given, and was not recorded, is lost with the process.
"""

from __future__ import annotations

import abc
import asyncio
import os
from collections.abc import AsyncIterable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, ParamSpec, TypeVar

import pyarrow as pa

from specstream.checkpoint.run.stream_options import listing
from specstream.declarations.options import instance
from specstream.declarations.schema import Column
from specstream.definition.operator import Operator

__all__ = ["IDLE", "Position", "Rows", "Source", "Wanted", "checked_source", "made_like"]

P = ParamSpec("P")
Made = TypeVar("Made", bound="Source")

# Plain data, as JSON has it.
Position = Any

# Seconds without a row after which somebody looks whether the run is to end.
IDLE = 0.05


@dataclass(frozen=True)
class Wanted:
    """What an engine wants of a source.

    Attributes:
        what: the operator, as messages call it.
        operator: the operator.
        columns: that its events have, with their types.
        beside: names of other columns that options name, such as ``order_by``, by the option.
        sets_aside: whether rows that cannot be events are set aside; else they are an error.
        whole: whether rows are wanted with all of their columns.
        rows: so many are asked for at most.
        loop: the event loop that the caller runs; None: there is none.
        ahead: whether it may read ahead, on a thread of its own. False: :meth:`Source.read` reads
            on the thread that calls it, and may wait for rows longer than it is told.
    """

    what: str
    operator: Operator
    columns: Mapping[str, Column]
    beside: Mapping[str, str]
    sets_aside: bool
    whole: bool
    rows: int
    loop: asyncio.AbstractEventLoop | None = None
    ahead: bool = True

    @property
    def names(self) -> list[str]:
        """Of all columns that are wanted."""
        return list(dict.fromkeys([*self.columns, *self.beside.values()]))

    def chosen(self, table: pa.Table) -> pa.Table:
        """A table without the columns that nobody wants; as it is, where one is missing, so that
        whoever reads it can say which."""
        names = self.names
        if self.whole or not set(names) <= set(table.column_names):
            return table
        return table.select(names)


class Rows(NamedTuple):
    """What a source has given.

    Attributes:
        table: the rows; none: nothing has come yet.
        position: the source's, behind them.
        place: which rows they are, for messages.
        row: what messages call one of them, by its index; None: by the index itself.
    """

    table: pa.Table
    position: Position = None
    place: str = ""
    row: Callable[[int], str] | None = None


class Source(abc.ABC):
    """Where rows come from; each run needs one of its own.

    Attributes:
        name: names it in messages, and in the checkpoint: a run goes on with the same source.
        can_replay: whether it can give the rows behind a position again, in the same order.
        needs_thread: whether it reads on threads of its own whatever is wanted.
    """

    name = ""
    can_replay = True
    needs_thread = False

    @property
    def waiting(self) -> int:
        """How many rows it has taken in and not given, where it reads none ahead."""
        return 0

    @abc.abstractmethod
    def open(self, wanted: Wanted, position: Position | None) -> None:
        """Begins to read.

        Args:
            wanted: what the engine wants.
            position: behind which to go on; None: from the beginning.

        Raises:
            SourceError: it cannot be reached, or the rows behind the position are not there.
        """

    @abc.abstractmethod
    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        """The next rows: those that have come, and those that come within ``wait`` seconds.

        Args:
            rows: so many at most.
            wait: seconds to wait for more, from the first row on.
            idle: seconds to wait as long as there is no row.

        Returns:
            The rows; None: it has ended, or :meth:`stop` was called.

        Raises:
            InputError: a message cannot be an event; names its place and the column.
            SourceError: the source has failed.
        """

    def commit(self, position: Position) -> None:
        """The rows up to a position are recorded and in the sinks: the source may forget them."""
        return

    def stop(self) -> None:
        """Takes in nothing new; :meth:`read` gives what cannot be read again, then None."""
        return

    def close(self) -> None:
        """Ends what :meth:`open` has begun, also if that failed."""
        return


def checked_source(events: object) -> Source:
    """The source that somebody gives as ``events``.

    Raises:
        ConfigurationError: it is none; names what makes one of it.
    """
    expected = "a source such as ss.sources.nats(...)"
    if isinstance(events, str | os.PathLike):
        expected += f", or ss.sources.dataset({str(events)!r}) for files"
    elif isinstance(events, Iterable | AsyncIterable):
        expected += ", or ss.sources.iterate(...) of what gives events"
    source: Source = instance("events", events, Source, expected)
    return source


def made_like(made: Callable[P, Made]) -> Callable[[Callable[..., Made]], Callable[P, Made]]:
    """Gives a function that makes a source all the arguments that its class has, one by one."""
    return lambda function: listing(function, made)

"""Early results: what is applied and not final, told as changes.

The runtime says which rows it has told before and has taken back since, which are new, and which
are final; an answer is the net of these. Rows are known by the key of their event and their place
among what it emits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.columns.conversion import order_values, time_at
from specstream.columns.events import rows_to_table
from specstream.columns.strings import StringTable
from specstream.declarations.schema import Schema
from specstream.engine.native import Native
from specstream.engine.sources import Name

__all__ = ["Changes", "EarlyAnswer", "EarlyResults", "Key"]

Changes = Literal["upsert", "retract"]
Key = tuple[Any, Name, int]
Rows = npt.NDArray[np.int64]
KeyColumns = Mapping[str, pa.Array]

# The part of a version that counts answers; the rest counts incarnations.
_ANSWER_BITS = 40
_OF_ANOTHER_JOB = -1
# Rows of one event; more than fit into a run's log.
_PLACES = 1 << 30
_WITHDRAWN, _EARLY, _FINAL = "withdrawn", "early", "final"


@dataclass(frozen=True)
class EarlyAnswer:
    """What :meth:`specstream.Engine.poll_early` gives.

    Attributes:
        changes: a table; of a pipeline with several sinks one for each, by its name. The columns of
            ``emits``; ``timestamp``, ``source`` and ``sequence`` of the event;
            ``n``, the place among the rows of one event, from 0; ``version``, which rises from one
            answer to the next; and ``change``. In the order of the keys, a row once at most. With
            ``changes="upsert"``, ``change`` is "early" for a row that is new or has changed,
            "withdrawn" for one that is not there any more (with what it was), and "final" for one
            that will not change again, told before or not. With ``changes="retract"`` it is -1 for
            a row as it was told before and +1 for one as it is now; a row that becomes final
            without a change is not told.
        applied_up_to: (timestamp, source, sequence) of the last event that is applied, all that
            have come before it included; None: there is none.
        final_up_to: likewise of the last one that is final.
        reset: early rows that earlier answers told, and that are above their ``final_up_to``, are
            void: the engine was restored or has run a batch, and tells anew what is applied.
    """

    changes: Any
    applied_up_to: Key | None
    final_up_to: Key | None
    reset: bool


@dataclass(frozen=True)
class _Told:
    """Rows with the keys of their events."""

    rows: Rows
    keys: KeyColumns


class EarlyResults:
    """The changes of one engine that nobody has been told of.

    Args:
        native: the engine in the runtime.
        emits: what it emits.
        by_sink: gives emitted rows as a user gets them.

    Attributes:
        tells: whether somebody asks for early results; then they are kept for him.
    """

    def __init__(self, native: Native, emits: Schema, by_sink: Callable[[pa.Table], Any]) -> None:
        self._native = native
        self._emits = emits
        self._by_sink = by_sink
        # By the runtime's edition: who took them may have been interrupted before he could say so.
        self._gathered: list[tuple[int, dict[str, _Told]]] = []
        self._given = 0  # answers
        self._incarnation = 1
        self._reset = False
        self.tells = False
        self._up_to: tuple[Key | None, Key | None] = (None, None)

    def begin_anew(self) -> None:
        """The job has ended: what was not final will be applied anew, and told anew."""
        nothing = _nothing(self._emits)
        finals = [
            (_OF_ANOTHER_JOB, nothing | {name: parts[name] for name in ("kept", "finals")})
            for _, parts in self._gathered
        ]
        # One statement: see interrupts.py.
        self._gathered, self._incarnation, self._reset, self._up_to = (
            finals,
            self._incarnation + 1,
            self.tells,
            (self._up_to[1], self._up_to[1]),
        )

    def gather(
        self,
        keys: Callable[[Rows], KeyColumns],
        name_of: Callable[[int], Name],
        of: pa.DataType,
    ) -> Any:
        """With the turn: takes what the runtime has to tell; ``struct ss_early_told``.

        Args:
            keys: gives the key columns of events by their rows, while these are known.
            name_of: gives a source by its rank.
            of: type of the events' times.
        """
        told = self._native.tell_early()
        width = self._emits.row_words
        parts = {}
        for name, first, count in (
            ("voids", told.voids, told.void_count),
            ("kept", told.kept, told.kept_count),
            ("finals", told.finals, told.final_count),
            ("news", told.news, told.news_count),
        ):
            rows = self._native.words(first, count, width)
            parts[name] = _Told(rows, keys(rows[:, 0]))
        if self._gathered and self._gathered[-1][0] == told.edition:
            self._gathered[-1] = told.edition, parts
        else:
            self._gathered.append((told.edition, parts))
        applied = _key(told.applied_to, name_of, of) if told.has_applied else None
        final = _key(told.final_to, name_of, of) if told.has_final else None
        if told.is_whole:
            self._up_to = applied or self._up_to[0], final or self._up_to[1]
        return told

    def leave(self) -> None:
        """With the turn, behind :meth:`gather`: all but the news is kept here from now on."""
        edition, parts = self._gathered[-1]
        self._gathered[-1] = edition, parts | {"news": _nothing(self._emits)["news"]}
        self._native.told_early(False)

    def answer(self, changes: Changes, strings: StringTable) -> EarlyAnswer:
        """What has changed since the last answer, by what was gathered."""
        all_parts = [_nothing(self._emits), *(parts for _, parts in self._gathered)]
        rows = {name: _together([p[name] for p in all_parts]) for name in all_parts[0]}
        voids, kept, finals, news = (rows[name] for name in ("voids", "kept", "finals", "news"))
        void_ids, kept_ids, final_ids, new_ids = _identities([voids, kept, finals, news])
        there = np.concatenate([final_ids, new_ids])
        contents = np.concatenate([finals.rows, news.rows])
        same = _same(void_ids, voids.rows, there, contents)
        is_same = np.isin(there, same)
        parts: list[tuple[_Told, npt.NDArray[np.int64], npt.NDArray[np.bool_], Any]]
        if changes == "retract":
            parts = [
                (voids, void_ids, ~np.isin(void_ids, same), -1),
                (finals, final_ids, ~is_same[: len(final_ids)], 1),
                (news, new_ids, ~is_same[len(final_ids) :], 1),
            ]
        else:
            parts = [
                (voids, void_ids, ~np.isin(void_ids, there), _WITHDRAWN),
                (kept, kept_ids, np.ones(len(kept_ids), np.bool_), _FINAL),
                (finals, final_ids, np.ones(len(final_ids), np.bool_), _FINAL),
                (news, new_ids, ~is_same[len(final_ids) :], _EARLY),
            ]
        version = self._incarnation << _ANSWER_BITS | self._given + 1
        table = self._table(parts, version, strings)
        return EarlyAnswer(self._by_sink(table), *self._up_to, self._reset)

    def nothing(self, changes: Changes, strings: StringTable) -> EarlyAnswer:
        """An answer while things are taken back: what was gathered is for the next one."""
        none = np.empty(0, np.int64)
        change = -1 if changes == "retract" else _EARLY
        empty = [(_nothing(self._emits)["news"], none, none, change)]
        table = self._table(empty, 0, strings)
        return EarlyAnswer(self._by_sink(table), *self._up_to, False)

    def finish(self) -> None:
        """The answer is the caller's."""
        self._gathered, self._reset = [], False
        self._given += 1

    def _table(self, parts: list[Any], version: int, strings: StringTable) -> pa.Table:
        tables = []
        for told, identities, which, change in parts:
            at = np.flatnonzero(which)
            taken = pa.array(at)
            keys = {name: column.take(taken) for name, column in told.keys.items()}
            table = rows_to_table(told.rows[at], self._emits, strings, keys)
            table = table.append_column("n", pa.array(identities[at] % _PLACES))
            table = table.append_column("version", pa.array(np.full(len(at), version, np.int64)))
            of = pa.int8() if isinstance(change, int) else pa.string()
            tables.append(table.append_column("change", pa.array([change] * len(at), of)))
        # Those without rows know no types of times and sources.
        found = [table for table in tables if table.num_rows] or tables[-1:]
        table = pa.concat_tables(found).combine_chunks()
        ties = [("change", "ascending")] if pa.types.is_integer(table["change"].type) else []
        order = [(name, "ascending") for name in ("timestamp", "source", "sequence", "n")]
        return table.take(pa.compute.sort_indices(table, sort_keys=order + ties))


def _nothing(emits: Schema) -> dict[str, _Told]:
    empty = _Told(
        np.empty((0, emits.row_words), np.int64),
        {
            "timestamp": pa.array([], pa.int64()),
            "source": pa.array([], pa.int64()),
            "sequence": pa.array([], pa.int64()),
        },
    )
    return dict.fromkeys(("voids", "kept", "finals", "news"), empty)


def _together(told: list[_Told]) -> _Told:
    some = [part for part in told if len(part.rows)] or told[-1:]
    keys = {
        name: pa.concat_arrays(
            [
                piece
                for part in some
                for piece in _pieces(part.keys[name].cast(some[-1].keys[name].type))
            ]
        )
        for name in some[0].keys
    }
    return _Told(np.concatenate([part.rows for part in some]), keys)


def _pieces(array: Any) -> list[pa.Array]:
    return array.chunks if isinstance(array, pa.ChunkedArray) else [array]


def _identities(parts: list[_Told]) -> list[npt.NDArray[np.int64]]:
    """A number for each row, by its event and its place among those of the event.

    By the event's key, as a revised one has another row number.
    """
    whole = _together(parts)
    sources = np.asarray(whole.keys["source"].dictionary_encode().indices)
    keys = np.column_stack([sources, np.asarray(whole.keys["sequence"])]).astype(np.int64)
    number = np.unique(keys, axis=0, return_inverse=True)[1].reshape(-1)
    found, at = [], 0
    for told in parts:
        own = number[at : at + len(told.rows)].astype(np.int64)
        at += len(told.rows)
        # Those of one event lie one behind the other.
        begins = np.flatnonzero(np.diff(own, prepend=-1))
        lengths = np.diff(begins, append=len(own))
        places = np.arange(len(own)) - np.repeat(begins, lengths)
        found.append(own * _PLACES + places)
    return found


def _same(
    ids: npt.NDArray[np.int64], rows: Rows, others: npt.NDArray[np.int64], contents: Rows
) -> npt.NDArray[np.int64]:
    """The numbers of rows that are among the others with the same content."""
    common, mine, theirs = np.intersect1d(ids, others, return_indices=True)
    equal = (rows[mine][:, 1:] == contents[theirs][:, 1:]).all(axis=1)
    result: npt.NDArray[np.int64] = common[equal]
    return result


def _key(key: Any, name_of: Callable[[int], Name], of: pa.DataType) -> Key:
    times = order_values(np.array([key.timestamp], np.int64), of)
    return time_at(times, 0), name_of(key.source), int(key.sequence)

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
from specstream.columns.events import keys_with_firings, rows_to_table
from specstream.columns.strings import StringTable
from specstream.declarations.schema import Schema
from specstream.engine.early_statistics import EarlyCount
from specstream.engine.native import Native
from specstream.engine.sources import Name

__all__ = ["ANSWER_BITS", "Changes", "EarlyAnswer", "EarlyResults", "Key"]

Changes = Literal["upsert", "retract"]
Key = tuple[Any, Name, int]
Rows = npt.NDArray[np.int64]
KeyColumns = Mapping[str, pa.Array]

# The part of a version that counts answers; the rest counts incarnations.
ANSWER_BITS = 40
_OF_ANOTHER_JOB = -1
# Rows of one event; more than fit into a run's log.
_PLACES = 1 << 30
# Above the sequence numbers of all but the longest streams; beyond, two events may be taken for
# one, and only their lead is wrong.
_SOURCE_SHIFT = 40
_WITHDRAWN, _EARLY, _FINAL = "withdrawn", "early", "final"
# What the runtime tells.
_NAMES = ("voids", "kept", "finals", "news")


@dataclass(frozen=True)
class EarlyAnswer:
    """What :meth:`specstream.Engine.poll_early` gives.

    Attributes:
        changes: a table; of a pipeline with several sinks one for each, by its name. The columns of
            ``emits``; ``timestamp``, ``source`` and ``sequence`` of the event;
            ``n``, the place among the rows of one event (for one sink), from 0; ``version``, which
            rises from one answer to the next; and ``change``. In the order of the keys, a row once
            at most. Rows of a timer have no source, and its number for a sequence number; they
            stand before those of the events of its time. With ``changes="upsert"``, ``change`` is
            "early" for a row that is new or has changed,
            "withdrawn" for one that is not there any more (with what it was), and "final" for one
            that will not change again, told before or not. With ``changes="retract"`` it is -1 for
            a row as it was told before and +1 for one as it is now; a row that becomes final
            without a change is not told.
        applied_up_to: (timestamp, source, sequence) of the last event that is applied, all that
            have come before it included; None: there is none.
        final_up_to: likewise of the last one that is final.
        reset: early rows that earlier answers told, and that are above their ``final_up_to``, are
            void: the engine was restored or has run a batch, and tells anew what is applied.
        version: the largest of an answer so far.
    """

    changes: Any
    applied_up_to: Key | None
    final_up_to: Key | None
    reset: bool
    version: int = 0

    @property
    def void_below(self) -> int | None:
        """With ``reset``: rows of lower versions are void, unless they are final. Otherwise None.

        >>> EarlyAnswer(pa.table({}), None, None, True, (7 << ANSWER_BITS) + 3).void_below >> 40
        7
        """
        return self.version >> ANSWER_BITS << ANSWER_BITS if self.reset else None


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
        count: figures for who watches.
    """

    def __init__(self, native: Native, emits: Schema, by_sink: Callable[[pa.Table], Any]) -> None:
        self._native = native
        self._emits = emits
        self._by_sink = by_sink
        # Of a pipeline with several sinks columns are called sink.column, and the first says which.
        self._has_sinks = any("." in name for name in emits.names)
        # By the runtime's edition: who took them may have been interrupted before he could say so.
        self._gathered: list[tuple[int, dict[str, _Told]]] = []
        self._nothing = _nothing(emits)
        self._given = 0  # answers
        self._incarnation = 1
        self._reset = False
        self.tells = False
        self.count = EarlyCount(native)
        self._sources: dict[Name, int] = {}  # numbers for events
        self._up_to: tuple[Key | None, Key | None] = (None, None)

    @property
    def incarnation(self) -> int:
        """Versions are of it; it rises whenever what is applied is told anew."""
        return self._incarnation

    def begin_at(self, incarnation: int) -> None:
        """While no job is open: all that was told and is not final is void, and nothing is left to
        be told of the time before. Versions are of this incarnation, or of the present one, which
        is later."""
        # One statement: see interrupts.py.
        self._gathered, self._incarnation, self._reset, self.tells, self._up_to = (
            [],
            max(self._incarnation, incarnation),
            True,
            True,
            (None, None),
        )

    def begin_anew(self) -> None:
        """The job has ended: what was not final will be applied anew, and told anew."""
        finals = [
            (_OF_ANOTHER_JOB, self._nothing | {name: parts[name] for name in ("kept", "finals")})
            for _, parts in self._gathered
        ]
        self.count.leads.forget()
        # One statement: see interrupts.py.
        self._gathered, self._incarnation, self._reset, self._up_to = (
            finals,
            self._incarnation + 1,
            self.tells,
            (self._up_to[1], self._up_to[1]),
        )

    def go_back(self, is_final: Callable[[Name | None, int], bool]) -> None:
        """The state is another one, in which not all is final that was: it will be told anew.

        Args:
            is_final: whether the event of a source with that sequence number is; or, where the
                source is None, the timer of that number.
        """

        def still(told: _Told) -> _Told:
            keys = zip(
                told.keys["source"].to_pylist(), told.keys["sequence"].to_pylist(), strict=True
            )
            which = np.array([is_final(*key) for key in keys], np.bool_)
            taken = pa.array(np.flatnonzero(which))
            return _Told(told.rows[which], {name: of.take(taken) for name, of in told.keys.items()})

        final = self._up_to[1]
        if final is not None and not is_final(*final[1:]):
            final = None
        self._gathered, self._up_to = (
            [
                (edition, {name: still(told) for name, told in parts.items()})
                for edition, parts in self._gathered
            ],
            (final, final),
        )

    def gather(
        self,
        keys: Callable[[npt.NDArray[np.int64]], dict[str, pa.Array]],
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
        given = {
            "voids": (told.voids, told.void_count),
            "kept": (told.kept, told.kept_count),
            "finals": (told.finals, told.final_count),
            "news": (told.news, told.news_count),
        }
        rows = [self._native.words(first, count, width) for first, count in given.values()]
        pairs = [
            self._native.words(first, count, 2)
            for first, count in (
                (told.firings, told.firing_count),
                (told.news_firings, told.news_firing_count),
            )
        ]
        # Of all of them at one go: of few rows it is the calls that take time.
        whole = keys_with_firings(
            np.concatenate([part[:, 0] for part in rows]), keys, np.concatenate(pairs)
        )
        self._nothing = _nothing(self._emits, whole)
        parts, at = {}, 0
        for name, part in zip(given, rows, strict=True):
            parts[name] = _Told(part, {key: of.slice(at, len(part)) for key, of in whole.items()})
            at += len(part)
        if self.count.leads.are_waiting:
            self.count.leads.final(self._events([parts["kept"], parts["finals"]]))
        if self._gathered and self._gathered[-1][0] == told.edition:
            self._gathered[-1] = told.edition, parts
        else:
            self._gathered.append((told.edition, parts))
        applied = _key(told.applied_to, name_of, of) if told.has_applied else None
        final = _key(told.final_to, name_of, of) if told.has_final else None
        if told.is_whole:
            final = final or self._up_to[1]
            self._up_to = applied or final, final
        return told

    def leave(self) -> None:
        """With the turn, behind :meth:`gather`: all but the news is kept here from now on."""
        edition, parts = self._gathered[-1]
        self._gathered[-1] = edition, parts | {"news": self._nothing["news"]}
        self._native.told_early(False)

    def answer(self, changes: Changes, strings: StringTable) -> EarlyAnswer:
        """What has changed since the last answer, by what was gathered."""
        gathered = [self._nothing, *(parts for _, parts in self._gathered)]
        of_name = [_together([parts[name] for parts in gathered]) for name in _NAMES]
        whole = _together(of_name)
        counts = [len(told.rows) for told in of_name]
        ids = _identities(whole, counts, 1 if self._has_sinks else None)
        void, kept, final, new = (
            slice(end - count, end) for count, end in zip(counts, np.cumsum(counts), strict=True)
        )
        there = slice(final.start, new.stop)
        same = _same(ids[void], whole.rows[void], ids[there], whole.rows[there])
        is_told = np.ones(len(ids), np.bool_)
        is_told[there] = ~np.isin(ids[there], same)
        code = np.repeat([_WITHDRAWN, _FINAL, _FINAL, _EARLY], counts)
        if changes == "retract":
            code = np.repeat(np.array([-1, 0, 1, 1], np.int8), counts)
            is_told[void] = ~np.isin(ids[void], same)
            is_told[kept] = False
        else:
            is_told[void] = ~np.isin(ids[void], ids[there])
            is_told[final] = True
        version = self._incarnation << ANSWER_BITS | self._given + 1
        table = self._table(whole, ids, np.flatnonzero(is_told), code, version, strings)
        return EarlyAnswer(self._by_sink(table), *self._up_to, self._reset, version)

    def nothing(self, changes: Changes, strings: StringTable) -> EarlyAnswer:
        """An answer while things are taken back: what was gathered is for the next one."""
        none = np.empty(0, np.int64)
        code = np.empty(0, np.int8) if changes == "retract" else np.empty(0, str)
        version = self._incarnation << ANSWER_BITS | self._given
        table = self._table(self._nothing["news"], none, none, code, version, strings)
        return EarlyAnswer(self._by_sink(table), *self._up_to, False, version)

    def finish(self) -> None:
        """The answer is the caller's."""
        voids, news = (
            self._events([self._nothing[name], *(parts[name] for _, parts in self._gathered)])
            for name in ("voids", "news")
        )
        self.count.leads.withdrawn(np.setdiff1d(voids, news))
        self.count.leads.told(news)
        self._gathered, self._reset = [], False
        self._given += 1

    def _events(self, parts: list[_Told]) -> npt.NDArray[np.int64]:
        """A number for the event of each row, the same in all answers: by its key, as a revised one
        has another row number."""
        keys = _together(parts).keys
        sources = keys["source"].dictionary_encode("encode")
        numbers = [
            self._sources.setdefault(name, len(self._sources))
            for name in sources.dictionary.to_pylist()
        ]
        of_source = np.array(numbers, np.int64)[np.asarray(sources.indices)]
        sequence: npt.NDArray[np.int64] = np.asarray(keys["sequence"]).astype(np.int64)
        events: npt.NDArray[np.int64] = sequence ^ of_source << _SOURCE_SHIFT
        return events

    def _table(
        self,
        told: _Told,
        ids: npt.NDArray[np.int64],
        at: npt.NDArray[np.int64],
        code: npt.NDArray[Any],
        version: int,
        strings: StringTable,
    ) -> pa.Table:
        """Of these rows those ``at`` some places, in the order of their keys."""
        keys = {name: of.take(pa.array(at)) for name, of in told.keys.items()}
        places = pa.array(ids[at] % _PLACES)
        if len(at) > 1:
            is_weight = code.dtype == np.int8
            ties = {"change": pa.array(code[at])} if is_weight else {}
            # A timer comes before the events of its time.
            of_event = {"timestamp": keys["timestamp"], "of_event": keys["source"].is_valid()}
            order = pa.table({**of_event, **keys, "n": places, **ties})
            ordered = pa.compute.sort_indices(
                order, sort_keys=[(name, "ascending") for name in order.column_names]
            )
            at = at[np.asarray(ordered)]
            keys = {name: of.take(ordered) for name, of in keys.items()}
            places = places.take(ordered)
        table = rows_to_table(told.rows[at], self._emits, strings, keys)
        table = table.append_column("n", places)
        table = table.append_column("version", pa.array(np.full(len(at), version, np.int64)))
        of = pa.int8() if code.dtype == np.int8 else pa.string()
        return table.append_column("change", pa.array(code[at].tolist(), of))


def _nothing(emits: Schema, keys: KeyColumns | None = None) -> dict[str, _Told]:
    """No rows, with keys of these types."""
    of = keys or dict.fromkeys(("timestamp", "source", "sequence"), pa.array([], pa.int64()))
    none = {name: array.slice(0, 0) for name, array in of.items()}
    return dict.fromkeys(_NAMES, _Told(np.empty((0, emits.row_words), np.int64), none))


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


def _identities(told: _Told, counts: list[int], sink: int | None) -> npt.NDArray[np.int64]:
    """A number for each row, by its event and its place among those of the event, of parts with so
    many rows.

    By the event's key, as a revised one has another row number; and by its time, as the number of a
    timer may be that of another one by now.

    Args:
        sink: the word that says which sink a row is for: of each they are counted anew.
    """
    by = [
        np.asarray(told.keys["sequence"]),
        _numbers(told.keys["timestamp"]),
        _numbers(told.keys["source"]),
        *([] if sink is None else [told.rows[:, sink]]),
    ]
    part = np.repeat(np.arange(len(counts)), counts)
    # Of one part they stay in order.
    order = np.lexsort([part, *by])
    is_other = np.ones(len(order), np.bool_)
    is_other[1:] = np.any([np.diff(column[order]) != 0 for column in by], axis=0)
    begins = is_other.copy()
    begins[1:] |= np.diff(part[order]) != 0
    starts = np.flatnonzero(begins)
    places = np.arange(len(order)) - np.repeat(starts, np.diff(starts, append=len(order)))
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(is_other) * _PLACES + places
    return found


def _numbers(keys: pa.Array) -> npt.NDArray[Any]:
    """The same for the same."""
    return np.asarray(keys.dictionary_encode("encode").indices)


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

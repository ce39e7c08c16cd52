"""Early results: what is applied and not final, reported as changes.

The runtime says which rows it has told before and has taken back since, which are new, and which
are final; an answer is the net of these. Rows are known by the key of their event and their place
among what it emits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream._native import lib
from specstream.columns.conversion import order_values, time_at
from specstream.columns.events import rows_to_table
from specstream.columns.strings import StringTable
from specstream.declarations.schema import Schema
from specstream.engine.early_statistics import EarlyCount
from specstream.engine.native import Native
from specstream.engine.sources import Name, Sources
from specstream.engine.untold_finals import UntoldFinals

if TYPE_CHECKING:
    from specstream._native import Pointer, uint64_t

__all__ = ["ANSWER_BITS", "Changes", "EarlyAnswer", "EarlyResults", "Key"]

Changes = Literal["upsert", "retract"]
Key = tuple[Any, Name | None, int]
Numbers = npt.NDArray[np.int64]

# The part of a version that counts answers; the rest counts incarnations.
ANSWER_BITS = 40
_OF_ANOTHER_JOB = -1
# Above the sequence numbers of all but the longest streams; beyond, two events may be taken for
# one, and only their lead is wrong.
_SOURCE_SHIFT = 40
_CHANGES = "withdrawn", "early", "final"
_WITHDRAWN, _EARLY, _FINAL = range(3)
# Words of what is kept of a row.
_TIME, _SOURCE, _SEQUENCE, _PLACE, _ROW = range(lib.SS_KEY_WORDS + 1)
_TIMER = -1
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


class EarlyResults:
    """The changes of one engine that nobody has been told of.

    What the runtime tells of a row is kept as it tells it: timestamp, source and sequence number of
    its event, its place among the rows of this, and then the row as it was emitted. But instead of
    the source's rank there is a number that goes by its name, as another state may rank them
    otherwise. Of a timer there are its time, -1 and its number.

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
        # By the runtime's edition: who took them may have been interrupted before he could say so.
        self._gathered: list[tuple[int, dict[str, Numbers]]] = []
        self._no_rows = np.empty((0, lib.SS_KEY_WORDS + emits.row_words), np.int64)
        self._given = 0  # answers
        self._incarnation = 1
        self._reset = False
        self.tells = False
        self.count = EarlyCount(native)
        self._names = _Names()
        self._of: tuple[pa.DataType, pa.DataType] = (pa.int64(), pa.int64())  # times and sources
        self._up_to: tuple[Key | None, Key | None] = (None, None)

    @property
    def incarnation(self) -> int:
        """Versions are of it; it rises whenever what is applied is told anew."""
        return self._incarnation

    def words(self) -> Iterator[Numbers]:
        """What was gathered, as words; codes of strings among them."""
        for _, parts in self._gathered:
            yield from parts.values()

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

    def untold(self) -> UntoldFinals | None:
        """What is final without an answer having told it; None: there is nothing."""
        kept, finals = self._all("kept"), self._all("finals")
        rows = self._together([kept, finals])
        if not len(rows):
            return None
        names = [self._names[number] for number in rows[:, _SOURCE].tolist()]
        return UntoldFinals(rows, np.arange(len(rows)) < len(kept), names, self._up_to[1])

    def follow(
        self, incarnation: int, untold: UntoldFinals | None, of: tuple[pa.DataType, pa.DataType]
    ) -> None:
        """The state is that of a snapshot whose engine has told early results of that incarnation:
        versions are later ones, what was told and is not final is void, and whoever has asked that
        engine will ask this one.

        Args:
            incarnation: 0: it told none.
            untold: what was final and told by no answer; who has told something himself knows what
                of it he has.
            of: types of the events' times and of the sources.
        """
        if not incarnation:
            return
        gathered, up_to = self._gathered, self._up_to
        if untold is not None and not self.tells:
            rows = untold.rows.copy()
            rows[:, _SOURCE] = [
                _TIMER if name is None else self._names.number(name) for name in untold.names
            ]
            parts = {"kept": rows[untold.is_told], "finals": rows[~untold.is_told]}
            gathered = [(_OF_ANOTHER_JOB, parts)]
            up_to = untold.final, untold.final
            self._of = of
        # One statement: see interrupts.py.
        self._gathered, self._incarnation, self._reset, self.tells, self._up_to = (
            gathered,
            max(self._incarnation, incarnation + 1),
            True,
            True,
            up_to,
        )

    def begin_anew(self) -> None:
        """The job has ended: what was not final will be applied anew, and told anew."""
        finals = [
            (_OF_ANOTHER_JOB, parts | {"voids": self._no_rows, "news": self._no_rows})
            for _, parts in self._gathered
        ]
        self.count.leads.forget()
        # One statement: see interrupts.py.
        self._gathered, self._incarnation, self._reset, self._up_to = (
            finals,
            self._incarnation + 1,
            self._reset or self.tells,
            (self._up_to[1], self._up_to[1]),
        )

    def go_back(self, is_final: Callable[[Name | None, int], bool]) -> None:
        """The state is another one, in which not all is final that was: it will be told anew.

        Args:
            is_final: whether the event of a source with that sequence number is; or, where the
                source is None, the timer of that number.
        """

        def still(told: Numbers) -> Numbers:
            keys = told[:, _SOURCE : _SEQUENCE + 1].tolist()
            return told[[is_final(self._names[source], number) for source, number in keys], :]

        final = self._up_to[1]
        if final is not None and not is_final(*final[1:]):
            final = None
        self._gathered, self._up_to = (
            [
                (edition, {name: still(told) for name, told in parts.items() if len(told)})
                for edition, parts in self._gathered
            ],
            (final, final),
        )

    def gather(self, sources: Sources, of: pa.DataType) -> Any:
        """With the turn: takes what the runtime has to tell; ``struct ss_early_told``.

        Args:
            sources: those of the engine.
            of: type of the events' times.
        """
        told = self._native.tell_early()
        self._of = of, sources.type
        parts = {
            name: self._taken(first, count, sources)
            for name, first, count in (
                ("voids", told.voids, told.void_count),
                ("kept", told.kept, told.kept_count),
                ("finals", told.finals, told.final_count),
                ("news", told.news, told.news_count),
            )
            if count
        }
        if self.count.leads.are_waiting:
            self.count.leads.final(
                _events(self._together(parts.get(n) for n in ("kept", "finals")))
            )
        if self._gathered and self._gathered[-1][0] == told.edition:
            self._gathered[-1] = told.edition, parts
        else:
            self._gathered.append((told.edition, parts))
        final = _key(told.final_to, sources) if told.has_final else self._up_to[1]
        applied = _key(told.applied_to, sources) if told.has_applied else final
        self._up_to = applied, final
        return told

    def leave(self) -> None:
        """With the turn, behind :meth:`gather`: all but the news is kept here from now on."""
        edition, parts = self._gathered[-1]
        self._gathered[-1] = edition, {n: told for n, told in parts.items() if n != "news"}
        self._native.told_early(False)

    def answer(self, changes: Changes, strings: StringTable) -> EarlyAnswer:
        """What has changed since the last answer, by what was gathered."""
        void, kept, final, new = (self._all(name) for name in _NAMES)
        is_weight = changes == "retract"
        if len(void):
            there = self._together([final, new])
            gone, back = self._ids(void, there)
            same = _same(gone, void, back, there)
            void = void[~np.isin(gone, same if is_weight else back)]
            is_other = ~np.isin(back, same)
            final = final[is_other[: len(final)]] if is_weight else final
            new = new[is_other[len(there) - len(new) :]]
        if is_weight:
            kept = self._no_rows
        told = [void, kept, final, new]
        codes = [-1, 0, 1, 1] if is_weight else [_WITHDRAWN, _FINAL, _FINAL, _EARLY]
        code = np.repeat(np.array(codes, np.int8), [len(part) for part in told])
        version = self._incarnation << ANSWER_BITS | self._given + 1
        table = self._table(self._together(told), code, is_weight, version, strings)
        return self._answer(table, self._reset, version)

    def nothing(self, changes: Changes, strings: StringTable) -> EarlyAnswer:
        """An answer while things are taken back: what was gathered is for the next one."""
        no = np.empty(0, np.int8)
        version = self._incarnation << ANSWER_BITS | self._given
        table = self._table(self._no_rows, no, changes == "retract", version, strings)
        return self._answer(table, False, version)

    def finish(self) -> None:
        """The answer is the caller's."""
        voids, news = (_events(self._all(name)) for name in ("voids", "news"))
        if len(voids):
            self.count.leads.withdrawn(np.setdiff1d(voids, news))
        self.count.leads.told(news)
        self._gathered, self._reset = [], False
        self._given += 1

    def _taken(self, first: Pointer[uint64_t], count: int, sources: Sources) -> Numbers:
        """Rows of the runtime's, copied; with numbers of the sources' names instead of ranks."""
        told = self._native.words(first, count, self._no_rows.shape[1])
        keys = zip(told[:, _SOURCE].tolist(), told[:, _ROW].tolist(), strict=True)
        told[:, _SOURCE] = [
            _TIMER if row < 0 else self._names.number(sources.name_of(rank)) for rank, row in keys
        ]
        return told

    def _all(self, name: str) -> Numbers:
        """What was gathered under that name."""
        return self._together(parts.get(name) for _, parts in self._gathered)

    def _together(self, told: Iterable[Numbers | None]) -> Numbers:
        some = [part for part in told if part is not None and len(part)]
        if not some:
            return self._no_rows
        return some[0] if len(some) == 1 else np.concatenate(some)

    def _answer(self, table: pa.Table, reset: bool, version: int) -> EarlyAnswer:
        applied, final = self._up_to
        by_sink = self._by_sink(table)
        return EarlyAnswer(by_sink, self._shown(applied), self._shown(final), reset, version)

    def _shown(self, key: Key | None) -> Key | None:
        """With its time as it was given."""
        if key is None or self._of[0] == pa.int64():
            return key
        return time_at(order_values(np.array(key[:1], np.int64), self._of[0]), 0), *key[1:]

    def _ids(self, *parts: Numbers) -> list[Numbers]:
        """A number for each row, the same for those of one event and place, to one sink."""
        rows = self._together(parts)
        # By the event's key, as a revised one has another row number; and by its time, as the
        # number of a timer may be that of another one by now.
        by = [*rows[:, :_ROW].T, *([rows[:, _ROW + 1]] if self._emits.has_sinks else [])]
        order = np.lexsort(by)
        is_other = np.any([np.diff(words[order]) != 0 for words in by], axis=0)
        ids = np.empty(len(rows), np.int64)
        ids[order] = np.concatenate([[0], np.cumsum(is_other)])
        return np.split(ids, np.cumsum([len(part) for part in parts])[:-1])

    def _table(
        self,
        told: Numbers,
        code: npt.NDArray[np.int8],
        is_weight: bool,
        version: int,
        strings: StringTable,
    ) -> pa.Table:
        """These rows, in the order of their keys."""
        if len(told) > 1:
            ranks = self._names.ranks()[told[:, _SOURCE]]
            # Of one key there are several with weights alone: a row as it was comes first.
            order = np.lexsort((code, told[:, _PLACE], told[:, _SEQUENCE], ranks, told[:, _TIME]))
            told, code = told[order], code[order]
        of_time, of_source = self._of
        change = (
            pa.array(code)
            if is_weight
            else pa.array([_CHANGES[at] for at in code.tolist()], pa.string())
        )
        columns = {
            "timestamp": order_values(told[:, _TIME].copy(), of_time),
            "source": pa.array([self._names[n] for n in told[:, _SOURCE].tolist()], of_source),
            "sequence": pa.array(told[:, _SEQUENCE].copy()),
            "n": pa.array(told[:, _PLACE].copy()),
            "version": pa.array(np.full(len(told), version, np.int64)),
            "change": change,
        }
        return rows_to_table(told[:, _ROW:], self._emits, strings, columns)


class _Names:
    """Names of sources, numbered as they come; of what has none, a timer, the number is -1."""

    def __init__(self) -> None:
        self._names: list[Name] = []
        self._numbers: dict[Name, int] = {}
        self._ranks: Numbers = np.array([_TIMER])

    def __getitem__(self, number: int) -> Name | None:
        return None if number == _TIMER else self._names[number]

    def number(self, name: Name) -> int:
        """That of the name, which gets one if it has none."""
        known = self._numbers.get(name)
        if known is None:
            # Behind it, so that the one who is interrupted has not given it out.
            self._names.append(name)
            known = self._numbers[name] = len(self._names) - 1
        return known

    def ranks(self) -> Numbers:
        """By number, such as sort as the names do; those of timers, -1, are the least."""
        if len(self._ranks) <= len(self._names):
            names = sorted(self._numbers, key=lambda name: (isinstance(name, str), name))
            ranks = np.full(len(self._names) + 1, _TIMER)
            ranks[[self._numbers[name] for name in names]] = np.arange(len(names))
            self._ranks = ranks
        return self._ranks


def _same(ids: Numbers, rows: Numbers, others: Numbers, contents: Numbers) -> Numbers:
    """The numbers of rows that are among the others with the same content."""
    common, mine, theirs = np.intersect1d(ids, others, return_indices=True)
    equal = (rows[mine, _ROW + 1 :] == contents[theirs, _ROW + 1 :]).all(axis=1)
    result: Numbers = common[equal]
    return result


def _events(told: Numbers) -> Numbers:
    """A number for the event of each row, the same in all answers: by its key, as a revised one has
    another row number."""
    return told[:, _SEQUENCE] ^ told[:, _SOURCE] << _SOURCE_SHIFT


def _key(key: Any, sources: Sources) -> Key:
    return int(key.timestamp), sources.name_of(key.source), int(key.sequence)

"""What events do to ownership records, which is what counts under protocol ``eager``."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.tuning.forecast.workload import Workload

__all__ = ["Accesses", "Records", "Touches"]

Numbers = npt.NDArray[np.int64]
RECORDS_OF_A_LINE = 8


class Records:
    """The ownership record of each key, where a region's words share one by 2 to its shift.

    That records are used again where there are too many words is left out.

    Args:
        regions: as of ``Layout.regions``: (first word, log2 of words per record).

    >>> import numpy as np
    >>> Records([(0, 0), (10, 3)]).of(8 * np.array([9, 10, 17, 18])).tolist()
    [9, 10, 10, 11]
    """

    def __init__(self, regions: list[tuple[int, int]]) -> None:
        self.firsts = np.array([first for first, _ in regions])
        self.shifts = np.array([shift for _, shift in regions])
        most = (np.diff(self.firsts) - 1 >> self.shifts[:-1]) + 1
        self.starts = np.concatenate([[0], np.cumsum(most)])

    def of(self, keys: Numbers) -> Numbers:
        """Keys count bytes."""
        words = keys // 8
        region = np.searchsorted(self.firsts, words, side="right") - 1
        found: Numbers = self.starts[region] + (words - self.firsts[region] >> self.shifts[region])
        return found


class Accesses:
    """Loads from records and stores to them: of each event the first of each kind to each record.

    Reads are taken to be spread evenly over an event. What is stored to a word that was read is
    stored right after; other stores are spread evenly as well.

    Attributes, by access, in the order of events and of their accesses:
        event, record: numbers.
        part: of the event, after which it is done.
        stores: it is a store, which locks the record.

    And ``updated``, by event: records of updates that commute, which the commit marks and nobody
    locks before.
    """

    def __init__(self, workload: Workload, records: Records) -> None:
        event: list[int] = []
        keys: list[int] = []
        part: list[float] = []
        stores: list[bool] = []
        self.updated: list[set[int]] = []
        for number, of_event in enumerate(workload.events):
            steps = len(of_event.reads) + 1
            read = {key: step / steps for step, (key, _) in enumerate(of_event.reads, start=1)}
            # The first read of a key is the one that may find it locked, the last one comes before
            # the store to it.
            firsts = {
                key: 1 - step / steps for step, (key, _) in enumerate(reversed(of_event.reads), 1)
            }
            stored = [key for key, _ in of_event.writes if key not in of_event.updates]
            keys += firsts
            part += firsts.values()
            keys += stored
            part += [read.get(key, at / (len(stored) + 1)) for at, key in enumerate(stored, 1)]
            stores += [False] * len(firsts) + [True] * len(stored)
            event += [number] * (len(firsts) + len(stored))
            self.updated.append(
                set(records.of(np.array(sorted(of_event.updates), np.int64)).tolist())
            )
        self.event = np.array(event, np.int64)
        self.part = np.array(part, np.float64)
        self.stores = np.array(stores, np.bool_)
        self.record = records.of(np.array(keys, np.int64))
        in_order = np.lexsort((self.stores, self.part, self.event))
        self._take(in_order)
        kinds = np.stack([self.event, self.record, self.stores])
        _, first = np.unique(kinds, axis=1, return_index=True)
        self._take(np.sort(first))

    def _take(self, places: Numbers) -> None:
        self.event, self.part = self.event[places], self.part[places]
        self.stores, self.record = self.stores[places], self.record[places]


class Touches:
    """By transaction: its accesses, and which of them others within the horizon may meet."""

    def __init__(
        self, workload: Workload, accesses: Accesses, chunk: int, count: int, horizon: int
    ) -> None:
        took = np.array([event.speculative for event in workload.events])
        begins = np.concatenate([[0.0], np.cumsum(took)])
        used = accesses.event < count * chunk
        event, record, stores = accesses.event[used], accesses.record[used], accesses.stores[used]
        number = event // chunk
        begin, end = number * chunk, np.minimum((number + 1) * chunk, len(workload))
        passed = begins[event] - begins[begin] + accesses.part[used] * took[event]
        part = passed / np.maximum(begins[end] - begins[begin], 1e-9)
        self.updated: list[set[int]] = [
            set().union(*accesses.updated[at : at + chunk]) for at in range(0, count * chunk, chunk)
        ]
        marks = [(n, one) for n, marked in enumerate(self.updated) for one in marked]
        marked_by, marked = np.array(marks, np.int64).reshape(-1, 2).T

        def places(transactions: Numbers, records: Numbers) -> Numbers:
            # Of one record, all transactions beside each other; those of two records far apart.
            found: Numbers = records * (count + 2 * horizon + 2) + transactions
            return found

        mine = places(number, record)
        changed = np.concatenate([mine[stores], places(marked_by, marked)])
        contested = _near(mine, np.sort(changed), horizon)
        all_of_them = np.sort(np.concatenate([mine, changed]))
        contested[stores] = _near(mine[stores], all_of_them, horizon)
        self.read_lines = _lines(number[~stores], record[~stores], count)
        self.locked_lines = _lines(number[stores], record[stores], count)
        self.parts = _by_transaction(number, count, part)
        self.stored = [set(one) for one in _by_transaction(number[stores], count, record[stores])]
        met = number[contested]
        self.contested: list[list[tuple[float, int, bool]]] = [
            list(zip(*one, strict=True))
            for one in zip(
                _by_transaction(met, count, part[contested]),
                _by_transaction(met, count, record[contested]),
                _by_transaction(met, count, stores[contested]),
                strict=True,
            )
        ]


def _near(places: Numbers, others: Numbers, distance: int) -> npt.NDArray[np.bool_]:
    """Whether another one, of a sorted row of them, is so near."""
    far = np.iinfo(np.int64).max // 2
    padded = np.concatenate([[-far], others, [far]])
    before = padded[np.searchsorted(padded, places, side="left") - 1]
    after = padded[np.searchsorted(padded, places, side="right")]
    found: npt.NDArray[np.bool_] = (places - before <= distance) | (after - places <= distance)
    return found


def _lines(number: Numbers, record: Numbers, count: int) -> list[list[int]]:
    """By transaction, the cache lines of records; negative, for those of the state are not."""
    lines = -1 - record // RECORDS_OF_A_LINE
    pairs = np.unique(np.stack([number, lines]), axis=1)
    return _by_transaction(pairs[0], count, pairs[1])


def _by_transaction(number: Numbers, count: int, values: npt.NDArray[Any]) -> list[list[Any]]:
    ends = np.searchsorted(number, np.arange(count + 1))
    listed = values.tolist()
    return [listed[ends[at] : ends[at + 1]] for at in range(count)]

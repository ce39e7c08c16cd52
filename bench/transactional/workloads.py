"""The workloads with their knobs: a seeded stream of events for each setting of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa

import specstream as ss
from bench.containers.operators import ranks_of
from bench.transactional import operators as of

__all__ = ["AXES", "WORKLOADS", "Knobs", "Workload", "points"]

Ints: TypeAlias = npt.NDArray[np.int64]

# More than anybody has, and a price below all.
TOO_MUCH = 1 << 40
TOO_LITTLE = 0
# Of those that have a list, so many change prices; the others raise quantities.
ALTERATIONS = 0.5


@dataclass(frozen=True)
class Knobs:
    """What events are like.

    Attributes:
        skew: exponent of Zipf's law over the keys; 0: all alike.
        length: seconds of work beside the accesses of an event, half before and half after them.
        reads: share of the events that only read.
        aborts: share of the events that ask for what there is not, and change nothing.
        multi: share of the events that have many keys.
    """

    skew: float = 0.6
    length: float = 2e-6
    reads: float = 0.5
    aborts: float = 0.01
    multi: float = 0.5


# What is looked at of each, beside the value of Knobs itself.
AXES: Mapping[str, tuple[float, ...]] = {
    "skew": (0.0, 0.6, 0.9, 1.2),
    "length": (0.0, 2e-6, 5e-6, 20e-6),
    "reads": (0.0, 0.5, 1.0),
    "aborts": (0.01, 0.2, 0.5, 0.8),
    "multi": (0.0, 0.5, 1.0),
}


@dataclass(frozen=True, kw_only=True)
class Workload:
    """One of the four.

    Attributes:
        name: short, for ``--only``.
        title: what tables say; detail: what there is to say of its events.
        operator: the plain function.
        knobs: those of :class:`Knobs` that it has.
        events: makes so many events; others for every seed.
        touched: the keys of each event of a table, as rows of a matrix; -1: none. The same keys as
            those of ``keys``.
        keys: fills an array with the keys of an event, inside of an operator; gives their number.
        locks: how many keys there are.
        most: keys of an event.
        holds: what has to hold, in whatever order the events ran: of the state before and after
            them, the events, and the rows by number.
    """

    name: str
    title: str
    detail: str
    operator: ss.Operator
    knobs: tuple[str, ...]
    events: Callable[[int, int, Knobs], pa.Table]
    touched: Callable[[pa.Table], npt.NDArray[np.int32]]
    keys: Callable[[Any, Any], Any]
    locks: int
    most: int
    holds: Callable[[Any, Any, pa.Table, pa.Table], bool]


def points(workload: Workload, few: bool = False) -> list[tuple[str, float, Knobs]]:
    """What is measured of it: knob, value, and all knobs; first where none is turned.

    Args:
        few: only the first and the last value of each knob.
    """
    usual = Knobs()
    return [
        ("", 0.0, usual),
        *(
            (name, value, replace(usual, **{name: value}))
            for name in workload.knobs
            for value in AXES[name][:: len(AXES[name]) - 1 if few else 1]
            if value != getattr(usual, name)
        ),
    ]


def _drawn(rng: np.random.Generator, keys: int, count: int, skew: float) -> Ints:
    """Keys by Zipf's law; what a key is says nothing of how often it comes."""
    return ranks_of(keys, count, rng, skew or None) * 7919 % keys


def _lists(rng: np.random.Generator, keys: int, count: int, knobs: Knobs) -> dict[str, Ints]:
    drawn = _drawn(rng, keys, count * of.LIST, knobs.skew).reshape(of.LIST, count)
    return {f"k{at}": drawn[at] for at in range(of.LIST)}


def _lists_touched(events: pa.Table) -> npt.NDArray[np.int32]:
    keys = np.stack([events[f"k{at}"].to_numpy() for at in range(of.LIST)], axis=1)
    beyond = np.arange(of.LIST) >= events["count"].to_numpy()[:, None]
    keys[beyond] = -1
    return np.ascontiguousarray(keys, np.int32)


def _column(rows: pa.Table, name: str) -> npt.NDArray[Any]:
    return np.asarray(rows[name].to_numpy())


# ---- GrepSum ----


def _grep_sum(count: int, seed: int, knobs: Knobs) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = _lists(rng, of.RECORDS, count, knobs)
    many, write = rng.random(count) < knobs.multi, rng.random(count) >= knobs.reads
    amount = np.where(rng.random(count) < knobs.aborts, -TOO_MUCH, rng.integers(1, 10, count))
    length = np.where(many, of.LIST, 1)
    return pa.table({**columns, "count": length, "write": write, "amount": amount})


def _grep_sum_holds(before: Any, after: Any, events: pa.Table, rows: pa.Table) -> bool:
    done = _column(rows, "done") & _column(events, "write")
    added = (done * _column(events, "amount") * _column(events, "count")).sum()
    return bool(after.values.sum() == before.values.sum() + added)


# ---- StreamLedger ----


def _ledger(count: int, seed: int, knobs: Knobs) -> pa.Table:
    rng = np.random.default_rng(seed)
    sides = ("from_account", "from_asset", "to_account", "to_asset")
    columns = {side: _drawn(rng, of.ACCOUNTS, count, knobs.skew) for side in sides}
    transfer = rng.random(count) < knobs.multi
    refused = transfer & (rng.random(count) < knobs.aborts)
    money = np.where(refused, TOO_MUCH, rng.integers(1, 100, count))
    goods = rng.integers(1, 100, count)
    return pa.table({"transfer": transfer, **columns, "money": money, "goods": goods})


def _ledger_touched(events: pa.Table) -> npt.NDArray[np.int32]:
    transfer = _column(events, "transfer")
    return np.stack(
        [
            _column(events, "to_account"),
            of.ACCOUNTS + _column(events, "to_asset"),
            np.where(transfer, _column(events, "from_account"), -1),
            np.where(transfer, of.ACCOUNTS + _column(events, "from_asset"), -1),
        ],
        axis=1,
    ).astype(np.int32)


def _ledger_holds(before: Any, after: Any, events: pa.Table, rows: pa.Table) -> bool:
    deposited = ~_column(events, "transfer")
    return all(
        kept.sum() == was.sum() + _column(events, name)[deposited].sum() and kept.min() >= 0
        for was, kept, name in (
            (before.accounts, after.accounts, "money"),
            (before.assets, after.assets, "goods"),
        )
    )


# ---- Toll Processing ----


def _toll(count: int, seed: int, knobs: Knobs) -> pa.Table:
    rng = np.random.default_rng(seed)
    segment = _drawn(rng, of.SEGMENTS, count, knobs.skew)
    vehicle = rng.integers(0, of.VEHICLES, count)
    speed = rng.normal(38.0, 10.0, count).clip(0.0, 100.0)
    report = rng.random(count) >= knobs.reads
    return pa.table({"segment": segment, "vehicle": vehicle, "speed": speed, "report": report})


def _toll_touched(events: pa.Table) -> npt.NDArray[np.int32]:
    return np.ascontiguousarray(_column(events, "segment")[:, None], np.int32)


def _toll_holds(before: Any, after: Any, events: pa.Table, rows: pa.Table) -> bool:
    reported = _column(events, "report")
    segment, vehicle = _column(events, "segment")[reported], _column(events, "vehicle")[reported]
    seen = before.seen.copy()
    seen[segment, vehicle] = True
    reports = before.reports + np.bincount(segment, minlength=of.SEGMENTS)
    return bool(
        (after.reports == reports).all()
        and (after.seen == seen).all()
        and (after.vehicles == seen.sum(axis=1)).all()
    )


# ---- Online Bidding ----


def _bidding(count: int, seed: int, knobs: Knobs) -> pa.Table:
    rng = np.random.default_rng(seed)
    columns = _lists(rng, of.ITEMS, count, knobs)
    lists = rng.random(count) < knobs.multi
    alters = rng.random(count) < ALTERATIONS
    kind = np.where(lists, np.where(alters, of.ALTER, of.TOP_UP), of.BID)
    # No alteration goes beyond what a bid offers: who is refused is chosen by the knob.
    price = np.where(kind == of.BID, 200, rng.integers(50, 200, count))
    refused = (kind == of.BID) & (rng.random(count) < knobs.aborts)
    dear = rng.random(count) < 0.5
    price = np.where(refused & dear, TOO_LITTLE, price)
    quantity = np.where(refused & ~dear, TOO_MUCH, rng.integers(1, 10, count))
    length = np.where(lists, of.LIST, 1)
    return pa.table(
        {**columns, "count": length, "kind": kind, "price": price, "quantity": quantity}
    )


def _bidding_holds(before: Any, after: Any, events: pa.Table, rows: pa.Table) -> bool:
    raised = _column(events, "kind") == of.TOP_UP
    more = (_column(events, "quantity") * _column(events, "count"))[raised].sum()
    left = before.quantities.sum() + more - _column(rows, "taken").sum()
    return bool(after.quantities.sum() == left and after.quantities.min() >= 0)


_ALL = (
    Workload(
        name="grepsum",
        title="GrepSum",
        detail=f"ten of {of.RECORDS:,} records, or one, are read or written, and summed",
        operator=of.grep_sum,
        knobs=("skew", "length", "reads", "aborts", "multi"),
        events=_grep_sum,
        touched=_lists_touched,
        keys=of.keys_of_list,
        locks=of.RECORDS,
        most=of.LIST,
        holds=_grep_sum_holds,
    ),
    Workload(
        name="ledger",
        title="StreamLedger",
        detail=f"deposits to one of {of.ACCOUNTS:,} accounts and one of as many assets; transfers "
        "between two of each, if there is enough",
        operator=of.stream_ledger,
        knobs=("skew", "length", "aborts", "multi"),
        events=_ledger,
        touched=_ledger_touched,
        keys=of.keys_of_ledger,
        locks=2 * of.ACCOUNTS,
        most=4,
        holds=_ledger_holds,
    ),
    Workload(
        name="toll",
        title="Toll Processing",
        detail=f"reports change the mean speed of one of {of.SEGMENTS:,} segments and the number "
        "of its vehicles; every event reads its toll",
        operator=of.toll_processing,
        knobs=("skew", "length", "reads"),
        events=_toll,
        touched=_toll_touched,
        keys=of.keys_of_toll,
        locks=of.SEGMENTS,
        most=1,
        holds=_toll_holds,
    ),
    Workload(
        name="bidding",
        title="Online Bidding",
        detail=f"bids take from one of {of.ITEMS:,} items, if price and quantity allow; others "
        "change the prices of ten, or raise their quantities",
        operator=of.online_bidding,
        knobs=("skew", "length", "aborts", "multi"),
        events=_bidding,
        touched=_lists_touched,
        keys=of.keys_of_list,
        locks=of.ITEMS,
        most=of.LIST,
        holds=_bidding_holds,
    ),
)
WORKLOADS: Mapping[str, Workload] = {one.name: one for one in _ALL}

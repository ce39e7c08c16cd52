"""Four workloads of the literature, as users would write them, and the keys that events touch.

They are those that TStream (Zhang and others, ICDE 2020) and MorphStream (Mao and others, SIGMOD
2023) are measured with, written anew. Each event emits one row, with its number: so the rows of a
run without order can be put in one.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import specstream as ss

__all__ = [
    "ACCOUNTS",
    "ALTER",
    "BID",
    "ITEMS",
    "LIST",
    "RECORDS",
    "SEGMENTS",
    "TOP_UP",
    "VEHICLES",
    "grep_sum",
    "keys_of_ledger",
    "keys_of_list",
    "keys_of_toll",
    "online_bidding",
    "stream_ledger",
    "toll_processing",
]

# Keys of an event that has a list of them: columns k0 to k9, of which `count` say something.
LIST = 10
KEYS = {f"k{at}": int for at in range(LIST)}


# ---- GrepSum: ten records are read or written, and summed ----

RECORDS = 10_000


class Records(ss.State):
    values = ss.array(int, RECORDS, fill=100)


@ss.operator(
    state=Records,
    event={**KEYS, "count": int, "write": bool, "amount": int},
    emits={"number": int, "done": bool, "total": int},
)
def grep_sum(state, event, emit):
    keys = (
        event.k0, event.k1, event.k2, event.k3, event.k4,
        event.k5, event.k6, event.k7, event.k8, event.k9,
    )  # fmt: skip
    total = 0
    enough = True
    for at in range(event.count):
        value = state.values[keys[at]]
        total += value
        if event.write and value + event.amount < 0:
            enough = False
    if event.write and enough:
        for at in range(event.count):
            state.values[keys[at]] += event.amount
            total += event.amount
    emit(event.sequence, enough, total)


def keys_of_list(keys, event):
    """All in the list."""
    keys[0] = event.k0
    keys[1] = event.k1
    keys[2] = event.k2
    keys[3] = event.k3
    keys[4] = event.k4
    keys[5] = event.k5
    keys[6] = event.k6
    keys[7] = event.k7
    keys[8] = event.k8
    keys[9] = event.k9
    return event.count


# ---- StreamLedger: deposits, and transfers where there is enough ----

ACCOUNTS = 10_000


class Ledger(ss.State):
    accounts = ss.array(int, ACCOUNTS, fill=1_000_000)
    assets = ss.array(int, ACCOUNTS, fill=1_000_000)


@ss.operator(
    state=Ledger,
    event={
        "transfer": bool,
        "from_account": int,
        "from_asset": int,
        "to_account": int,
        "to_asset": int,
        "money": int,
        "goods": int,
    },
    emits={"number": int, "done": bool, "money": int, "goods": int},
)
def stream_ledger(state, event, emit):
    done = True
    if event.transfer:
        if (
            state.accounts[event.from_account] >= event.money
            and state.assets[event.from_asset] >= event.goods
        ):
            state.accounts[event.from_account] -= event.money
            state.assets[event.from_asset] -= event.goods
        else:
            done = False
    if done:
        state.accounts[event.to_account] += event.money
        state.assets[event.to_asset] += event.goods
    emit(event.sequence, done, state.accounts[event.to_account], state.assets[event.to_asset])


def keys_of_ledger(keys, event):
    """Accounts come before assets."""
    keys[0] = event.to_account
    keys[1] = ACCOUNTS + event.to_asset
    if not event.transfer:
        return 2
    keys[2] = event.from_account
    keys[3] = ACCOUNTS + event.from_asset
    return 4


# ---- Toll Processing: mean speed and number of vehicles of a segment, and the toll ----

SEGMENTS = 1_000
VEHICLES = 4_096
FREE_VEHICLES = 50
SLOW = 40.0


class Segments(ss.State):
    reports = ss.array(int, SEGMENTS)
    speeds = ss.array(float, SEGMENTS)
    vehicles = ss.array(int, SEGMENTS)
    seen = ss.array(bool, (SEGMENTS, VEHICLES))


@ss.operator(
    state=Segments,
    event={"segment": int, "vehicle": int, "speed": float, "report": bool},
    emits={"number": int, "toll": int},
)
def toll_processing(state, event, emit):
    at = event.segment
    if event.report:
        state.reports[at] += 1
        state.speeds[at] += (event.speed - state.speeds[at]) / state.reports[at]
        if not state.seen[at, event.vehicle]:
            state.seen[at, event.vehicle] = True
            state.vehicles[at] += 1
    toll = 0
    more = state.vehicles[at] - FREE_VEHICLES
    if more > 0 and state.speeds[at] < SLOW:
        toll = 2 * more * more
    emit(event.sequence, toll)


def keys_of_toll(keys, event):
    """All that is kept of a segment has one lock."""
    keys[0] = event.segment
    return 1


# ---- Online Bidding: bids take from an item; lists of items get other prices, or more ----

ITEMS = 10_000
BID, ALTER, TOP_UP = 0, 1, 2


class Items(ss.State):
    prices = ss.array(int, ITEMS, fill=100)
    quantities = ss.array(int, ITEMS, fill=1_000_000)


@ss.operator(
    state=Items,
    event={**KEYS, "count": int, "kind": int, "price": int, "quantity": int},
    emits={"number": int, "done": bool, "taken": int},
)
def online_bidding(state, event, emit):
    keys = (
        event.k0, event.k1, event.k2, event.k3, event.k4,
        event.k5, event.k6, event.k7, event.k8, event.k9,
    )  # fmt: skip
    done = True
    taken = 0
    if event.kind == BID:
        if event.price >= state.prices[event.k0] and event.quantity <= state.quantities[event.k0]:
            state.quantities[event.k0] -= event.quantity
            taken = event.quantity
        else:
            done = False
    elif event.kind == ALTER:
        for at in range(event.count):
            state.prices[keys[at]] = event.price
    else:
        for at in range(event.count):
            state.quantities[keys[at]] += event.quantity
    emit(event.sequence, done, taken)

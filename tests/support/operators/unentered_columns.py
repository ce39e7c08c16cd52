"""Operators that use columns of strings in every way, and tables for them."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import enum
import random
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss

__all__ = [
    "FEES",
    "HARMLESS",
    "NULLABLE",
    "Kept",
    "column",
    "entering",
    "harmless",
    "harmless_table",
]

SIDES = ("BUY", "SELL")
KNOWN = {"card", "cash"}
LISTED = ["one", "two"]
FEES = {"gold": 3, "": 5, "a name that is longer than sixteen bytes": 7}
BUY = "BUY"


class Side(enum.StrEnum):
    BUY = "BUY"
    SELL = "SELL"


class Kept(ss.State):
    total = ss.scalar(int)
    texts = ss.dict(str, int)
    last = ss.scalar(str)
    bits = ss.scalar(int)


def is_buy(side):
    return side == "BUY" or side in LISTED


def by_event(event):
    return 1 if event.h_helper == "HELD" else 0


def kept_of(state, text):
    state.texts[text] = 1
    return 0


HARMLESS = [
    *("h_eq", "h_ne", "h_in", "h_not_in", "h_global", "h_enum", "h_list", "h_set", "h_written"),
    *(
        "h_match",
        "h_or",
        "h_capture",
        "h_pair",
        "h_other",
        "h_truth",
        "h_not",
        "h_while",
        "h_ifexp",
        "h_choice",
    ),
    *("h_local", "h_twice", "h_tuple", "h_walrus", "h_branch", "h_default", "h_helper", "h_passed"),
    *(
        "h_named",
        "h_chain",
        "h_dict",
        "h_get",
        "h_staged",
        "h_guard",
        "h_raise",
        "h_said",
        "h_assert",
    ),
    *("h_comprehension", "h_unread", "h_bool", "h_lookup", "h_shadow"),
]
NULLABLE = ["n_is", "n_not", "n_ask", "n_eq"]


@ss.operator(
    state=Kept,
    event={
        "i": int,
        **dict.fromkeys(HARMLESS, str),
        **dict.fromkeys(NULLABLE, ss.nullable(str)),
    },
    emits={"which": int},
)
def harmless(state, event, emit):
    w = 0
    w += 1 if event.h_eq == "BUY" else 0
    w += 2 if event.h_ne != "BUY" else 0
    w += 4 if event.h_in in ("BUY", BUY, "one") else 0
    w += 8 if event.h_not_in not in SIDES else 0
    w += 16 if event.h_global == BUY else 0
    w += 32 if event.h_enum == Side.SELL else 0
    w += 64 if event.h_list in LISTED else 0
    w += 128 if event.h_set in KNOWN else 0
    w += 256 if event.h_written in ["BUY", ""] else 0
    match event.h_match:
        case "BUY":
            w += 512
        case Side.SELL | "one":
            w += 1024
        case _:
            pass
    match event.h_capture:
        case "BUY" | "one":
            w += 2048
        case other if other == "SELL":
            w += 4096
    match event.h_pair, event.h_other:
        case "BUY", "BUY":
            w += 8192
        case "SELL", _:
            w += 16384
    if event.h_truth:
        w += 32768
    w += 65536 if not event.h_not else 0
    while event.h_while:
        w += 1
        break
    w += 3 if (event.h_ifexp if event.i > 0 else "BUY") == "BUY" else 0
    w += 61 if event.h_choice else 0
    local = event.h_local
    if local == "BUY":
        w += 5
    twice = event.h_twice
    again = twice
    if event.i > 5:
        again = "SELL"
    w += 7 if again == "SELL" else 0
    first, second = event.h_tuple, event.i
    w += second if first == "BUY" else 0
    if (named := event.h_walrus) == "BUY" or named == "SELL":
        w += 11
    w += 13 if (event.h_or or "BUY") == "BUY" else 0
    branch = event.h_branch if event.i % 2 else event.h_default
    w += 17 if branch == "one" else 0
    w += 19 * by_event(event)
    w += 23 if is_buy(event.h_passed) else 0
    w += 29 if is_buy(side=event.h_named) else 0
    w += 31 if "BUY" == event.h_chain == "BUY" else 0
    if event.h_dict in FEES:
        w += FEES[event.h_dict]
    if event.i == 0:
        w += FEES[event.h_lookup]
    w += FEES.get(event.h_get, 2)
    w += len(event.h_staged)
    if event.h_guard == "BUY" and event.h_staged.startswith("t"):
        w += 37
    w += sum(1 for at in range(3) if event.h_comprehension and at)
    w += 41 if bool(event.h_bool) else 0
    for total in range(2):
        w += total if event.h_shadow == "BUY" else 0
    if event.n_is is None:
        w += 43
    w += 47 if event.n_not is not None and event.n_not == "BUY" else 0
    w += 53 if event.is_null("n_ask") else 0
    w += 59 if event.n_eq == "BUY" else 0
    if event.h_raise == "two":
        raise ValueError(f"not {event.h_raise}, of {event.h_said}")
    assert event.h_assert != "cash", f"{event.h_assert} of {event.h_said}"
    state.total += w
    emit(w)


ENTERED = [
    *("e_emit", "e_store", "e_key", "e_value", "e_columns", "e_other", "e_state", "e_local"),
    *("e_loop", "e_helper", "e_bits", "e_member", "e_in_state", "e_form", "e_list", "e_local_key"),
    *("e_pair", "e_branch", "e_augmented", "e_name"),
]


@ss.operator(
    state=Kept,
    event={"i": int, **dict.fromkeys(ENTERED, str)},
    emits={"a": str, "b": int, "c": str},
)
def entering(state, event, emit):
    b = 0
    state.last = event.e_store
    state.texts[event.e_key] = 1
    b += 1 if event.e_columns == event.e_other else 0
    b += 2 if event.e_state == state.last else 0
    local = event.e_local
    b += 4 if local == "BUY" else 0
    state.texts[local] = 2
    for one in (event.e_loop, "BUY"):
        b += 8 if one == "BUY" else 0
    b += kept_of(state, event.e_helper)
    state.bits = event.e_value
    b += event.e_bits & 7
    b += 16 if event.e_member in state.texts else 0
    b += 32 if state.last in (event.e_in_state, "BUY") else 0
    listed = [event.e_list]
    b += len(listed)
    b += {event.e_local_key: 1}.get("BUY", 0)
    b += 64 if (event.e_pair, 1) == ("BUY", 1) else 0
    branch = event.e_branch if event.i else "BUY"
    state.texts[branch] = 3
    name = event.e_name
    other = name
    state.texts[other] = 4
    emit(event.e_emit, b, f"{event.e_form} {b}")
    emit(event.e_augmented if event.i else "", b, "")


TEXTS = ("BUY", "SELL", "one", "two", "card", "cash", "gold", "", "HELD", "ünï", "bu", "BUYS")
LONG = ("a name that is longer than sixteen bytes", "a name that is longer than 16!! bytes")


def column(rng: random.Random, count: int, nulls: bool, new: int) -> pa.Array:
    """Texts of which some are literals, in one of the forms that Arrow has."""
    pool = [*TEXTS, *LONG, *(f"new text {new} {at}" for at in range(5))]
    values: list[str | None] = rng.choices(pool, k=count)
    if nulls:
        values = [None if rng.random() < 0.3 else one for one in values]
    of = rng.choice([pa.string(), pa.large_string(), pa.string_view(), "dictionary", "sliced"])
    if of == "dictionary":
        return pa.array(values, pa.string()).dictionary_encode()
    if of == "sliced":
        return pa.array(["BUY", None, *values, "x"], pa.string()).slice(2, count)
    return pa.array(values, of)


def harmless_table(rng: random.Random, count: int, new: int = 0) -> pa.Table:
    columns: dict[str, Any] = {"i": np.array(rng.choices(range(10), k=count))}
    columns |= {name: column(rng, count, False, new) for name in HARMLESS}
    columns |= {name: column(rng, count, True, new) for name in NULLABLE}
    return pa.table(columns)


def changed(entered: bool) -> ss.Operator:
    """The same operator before and after it enters its columns."""

    @ss.operator(
        state=Kept,
        event={"i": int, "a": str, "b": ss.nullable(str), "c": str, "d": str},
        emits={"i": int, "which": int, "text": str},
        name="changed",
    )
    def plain(state, event, emit):
        which = 1 if event.a == "BUY" else 0
        which += 2 if event.b is not None and event.b == "SELL" else 0
        which += 4 * len(event.c)
        if event.i == 3:
            raise ValueError(f"{event.a} {event.b} {event.c} {event.d}")
        state.total += which
        emit(event.i, which, "same")

    @ss.operator(
        state=Kept,
        event={"i": int, "a": str, "b": ss.nullable(str), "c": str, "d": str},
        emits={"i": int, "which": int, "text": str},
        name="changed",
    )
    def keeping(state, event, emit):
        which = 1 if event.a == "BUY" else 0
        which += 2 if event.b is not None and event.b == "SELL" else 0
        which += 4 * len(event.c)
        if event.i == 3:
            raise ValueError(f"{event.a} {event.b} {event.c} {event.d}")
        state.total += which
        state.last = event.d if event.is_null("b") else event.b
        state.texts[event.c] = 1
        emit(event.i, which, event.a)

    return keeping if entered else plain

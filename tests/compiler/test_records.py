"""Records: objects to the operator, words in the state; compared with Python's own objects."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import importlib.util
import math
import pickle
import random
import subprocess
import sys
import textwrap
import types
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness
from support.generated import objects

import specstream as ss
from specstream.profiling.hot_words import HotPlace, hot_words


class Order(ss.Record):
    price: float
    quantity: int
    buys: bool = True
    note: str = "new"


class Pair(ss.Record):
    a: int
    b: int = 7


class Book(ss.State):
    seen = ss.scalar(int)
    orders = ss.array(Order, 6)
    grid = ss.array(Pair, (2, 3))
    best = ss.scalar(Order, fill=Order(1.5, 2, note="none"))
    by_key = ss.dict(int, Order)
    queue = ss.list(Order)
    ring = ss.deque(Order)
    last = ss.deque(Pair, maxlen=3)
    named = ss.dict(str, Pair)


EVENT = {"k": int, "x": float, "name": str}
EMITS = {"a": float, "b": int, "c": str}


def events(count: int = 80, seed: int = 1) -> pa.Table:
    dice = random.Random(seed)
    return pa.table(
        {
            "k": [dice.randrange(30) for _ in range(count)],
            "x": [dice.choice([dice.random(), 1.0, -0.0, math.inf]) for _ in range(count)],
            "name": [dice.choice(["a", "b", "", "long"]) for _ in range(count)],
        }
    )


VARIANTS: list[dict[str, Any]] = [
    {"horizon": 0},
    {"horizon": 6, "chunk": 2},
    {"horizon": 6, "chunk": 2, "protocol": "eager"},
]


def compare(process: Any, table: pa.Table | None = None, state: type[ss.State] = Book) -> None:
    """Plain objects, the oracle and every variant agree."""
    table = events() if table is None else table
    operator = ss.operator(state=state, event=EVENT, emits=EMITS)(process)
    assert witness.assert_agrees(operator, table) > len(table) // 2
    expected = run_oracle(operator, table)
    for options in VARIANTS:
        assert_identical(run_engine(operator, table, threads=2, **options), expected)


# ---- names and places ----


def test_a_name_of_a_record_sees_what_becomes_of_it() -> None:
    def process(state, event, emit):
        i = event.k % 6
        one = state.orders[i]
        same = state.orders[i]
        one.price += event.x
        same.quantity += 1
        state.orders[i].note = event.name
        state.orders[i].quantity *= 2
        emit(a=one.price, b=one.quantity, c=same.note)
        state.orders[i] = Order(event.x, event.k)
        one.price = -5.0
        emit(a=state.orders[i].price, b=one.quantity, c=one.note)
        emit(a=same.price, b=int(one == same) + 2 * int(one != state.orders[i]), c=same.note)

    compare(process)


def test_swaps_and_rotations_leave_each_name_its_object() -> None:
    def process(state, event, emit):
        i, j, k = event.k % 6, (event.k + 1) % 6, (event.k + 4) % 6
        first = state.orders[i]
        second = state.orders[j]
        state.orders[i], state.orders[j] = state.orders[j], state.orders[i]
        first.price += 1.0
        second.quantity += 1
        state.orders[i], state.orders[j], state.orders[k] = (
            state.orders[k],
            state.orders[i],
            state.orders[j],
        )
        first.quantity += 10
        second.price -= event.x
        state.orders[j].note = event.name
        held = state.orders[k]
        state.orders[k] = Order(0.5, 5)
        state.orders[i].quantity -= 1
        held.buys = not held.buys
        emit(a=first.price, b=first.quantity, c=second.note)
        emit(a=held.price, b=held.quantity, c=held.note)

    compare(process)


def test_an_array_is_sorted_by_hand() -> None:
    def process(state, event, emit):
        state.orders[event.k % 6].price = event.x if event.x < 1e9 else 0.25
        state.orders[event.k % 6].quantity = event.k
        watched = state.orders[3]
        for i in range(1, len(state.orders)):
            at = i
            while at > 0 and state.orders[at - 1].price > state.orders[at].price:
                state.orders[at - 1], state.orders[at] = state.orders[at], state.orders[at - 1]
                at -= 1
        watched.note = "watched"
        for one in state.orders:
            emit(a=one.price, b=one.quantity, c=one.note)

    compare(process)


def test_what_is_made_and_stored_is_the_one_in_the_state() -> None:
    def process(state, event, emit):
        made = Order(quantity=event.k, price=event.x, note=event.name)
        made.quantity += 1
        state.by_key[event.k] = made
        made.quantity += 1
        state.by_key[event.k].quantity += 1
        popped = state.by_key.pop(event.k)
        popped.price = 9.0
        state.by_key[event.k + 1] = popped
        made.quantity += 1
        if event.k % 3 == 0:
            del state.by_key[event.k + 1]
            made.quantity += 100
            state.queue.append(made)
        emit(a=made.price, b=popped.quantity, c=made.note)

    compare(process)


def test_a_scalar_is_a_place_as_well() -> None:
    def process(state, event, emit):
        before = state.best
        state.best.quantity += 1
        if event.x > state.best.price or event.k % 4 == 0:
            state.best = Order(event.x, event.k, note=event.name)
        before.price += 0.5
        state.best.price -= 0.25
        emit(a=before.price, b=before.quantity + state.best.quantity, c=state.best.note)

    compare(process)


def test_tables_of_records() -> None:
    def process(state, event, emit):
        key = event.k % 7
        kept = state.by_key.setdefault(key, Order(event.x, 0))
        kept.quantity += 1
        found = state.by_key.get(key + 1, Order(-1.0, -1))
        found.quantity += 5
        for at, one in state.by_key.items():
            one.quantity += at
        if event.k % 5 == 0:
            held = list(state.by_key.values())
            state.by_key.clear()
            for one in held:
                one.buys = not one.buys
            state.by_key[key] = held[0]
            held[0].note = "back"
        if event.k % 11 == 0 and state.by_key:
            at, one = state.by_key.popitem()
            one.note = "out"
            emit(a=one.price, b=at, c=one.note)
        if event.name in state.named:
            state.named[event.name].a += 1
        else:
            state.named[event.name] = Pair(event.k)
        other = state.by_key.pop(99, None)
        if other is None:
            emit(a=kept.price, b=kept.quantity, c=found.note)
        emit(a=0.0, b=state.named[event.name].a * state.named[event.name].b, c=event.name)

    compare(process)


def test_sequences_of_records() -> None:
    def process(state, event, emit):
        one = Order(event.x, event.k)
        state.queue.append(one)
        state.queue.insert(event.k % (len(state.queue) + 1), Order(event.x, -event.k))
        one.quantity += 1
        middle = state.queue[len(state.queue) // 2]
        state.queue[0].quantity += 1
        state.queue[-1].price = 0.5
        if event.k % 3 == 0:
            state.queue.sort(key=lambda each: each.quantity)
        if event.k % 4 == 0:
            state.queue.reverse()
        middle.note = event.name
        if event.k % 5 == 0:
            gone = state.queue.pop(len(state.queue) // 3)
            gone.quantity -= 7
            state.ring.appendleft(gone)
            gone.price = 2.5
        if len(state.queue) > 12:
            del state.queue[1:9:3]
            middle.quantity += 100
            state.queue[2], state.queue[4] = state.queue[4], state.queue[2]
        while len(state.ring) > 3:
            first = state.ring.popleft()
            state.ring.rotate(1)
            first.quantity += 1
            emit(a=first.price, b=first.quantity, c=first.note)
        state.last.append(Pair(event.k))
        state.last[0].b += 1
        for each in state.ring:
            each.quantity += 1
        emit(a=middle.price, b=middle.quantity + one.quantity, c=one.note)
        emit(a=0.0, b=sum(each.a + each.b for each in state.last), c="last")

    compare(process)


def test_rows_slices_and_axes_of_arrays() -> None:
    def process(state, event, emit):
        row = state.grid[event.k % 2]
        row[event.k % 3].a += event.k
        state.grid[event.k % 2, 1].b -= 1
        for one in row:
            one.b += 1
        for line in state.grid:
            for one in line[1:]:
                one.a += 1
        total = sum(one.a * one.b for one in state.grid[0])
        at = event.k % 7 - 3
        state.grid[-1, at] = Pair(b=event.k, a=1)
        emit(a=0.0, b=total + len(state.grid) + len(row), c="")

    compare(process)  # an index may be outside


# ---- values of the event's own ----


def test_records_of_the_events_own() -> None:
    def process(state, event, emit):
        pairs = [Pair(i * event.k % 5, i) for i in range(4)]
        pairs.sort(key=lambda one: one.a)
        by_a = {one.a: one for one in pairs}
        by_a[pairs[0].a].b = 50
        first, *rest = pairs
        first.a += 10
        best = max(pairs, key=lambda one: one.b)
        least = min(rest, key=lambda one: (one.b, one.a))
        tuples = (first, least)
        tuples[1].b += 3
        both = [one for one in pairs if one == Pair(first.a, first.b)]
        state.seen += len(both) + (Pair(1, 2) in [Pair(1, 2)]) + pairs.count(first)
        emit(a=0.0, b=best.b * 1000 + least.b * 10 + pairs.index(best), c="")
        emit(a=0.0, b=sum(one.a for one in pairs) + len(by_a), c=str(event.k))

    compare(process)


def total_of(order, factor=2):
    return order.quantity * factor


def raised_by(order, by):
    order.quantity += by
    return order


def cheapest(orders):
    found = None
    for one in orders:
        if found is None or one.price < found.price:
            found = one
    return found


def made_of(k, x):
    if k % 3 == 0:
        return None
    return Order(x, k)


def test_records_go_to_helpers_and_come_back() -> None:
    def process(state, event, emit):
        one = made_of(event.k, event.x)
        if one is None:
            one = Order(0.0, 1)
        same = raised_by(one, total_of(one, 3))
        same.price = 4.0
        state.orders[event.k % 6] = one
        best = cheapest(state.orders)
        if best is not None:
            best.note = "cheap"
            raised_by(best, 1)
        nothing = cheapest(state.queue)
        emit(a=one.price, b=total_of(same), c="none" if nothing is None else nothing.note)

    compare(process)


def test_what_may_be_none() -> None:
    def process(state, event, emit):
        one = state.by_key.get(event.k % 9)
        if one is None:
            one = Order(event.x, quantity=0)
            state.by_key[event.k % 9] = one
        one.quantity += 1
        last = None
        for each in state.by_key.values():
            if each.quantity > 2:
                last = each
        if last is not None and last.buys:
            last.price += 1.0
        any_of: Any = None
        for each in state.orders:
            if not any_of or each.price > any_of.price:
                any_of = each
        any_of.quantity += 2
        other = state.by_key.get(event.k + 1) or Order(0.5, 5)
        other.quantity += 1
        if other:
            emit(a=other.price, b=other.quantity, c=any_of.note)
        try:
            state.by_key.get(event.k).quantity += 1
        except AttributeError:
            state.seen += 1
        emit(a=one.price, b=0 if last is None else last.quantity, c=one.note)

    compare(process)


def test_none_is_no_record() -> None:
    def process(state, event, emit):
        one = state.by_key.get(event.k % 3)
        if event.k % 5 == 0:
            state.by_key[event.k % 3] = Order(event.x, 1)
        elif event.k % 5 == 1:
            state.queue.append(one)
        elif event.k % 5 == 2:
            state.orders[0] = one
        else:
            state.by_key[event.k] = one
        emit(a=0.0, b=len(state.queue), c="")

    operator = ss.operator(state=Book, event=EVENT, emits=EMITS)(process)
    expected = run_oracle(operator, events())
    assert {error for _, error, _ in expected.raised} == {"TypeError"}
    for options in VARIANTS:
        assert_identical(run_engine(operator, events(), threads=2, **options), expected)


def test_none_has_no_fields() -> None:
    @ss.operator(state=Book, event=EVENT, emits=EMITS)
    def process(state, event, emit):
        one = state.by_key.get(event.k)
        one.quantity += 1

    table = events(3)
    expected = run_oracle(process, table)
    assert {error for _, error, _ in expected.raised} == {"AttributeError"}
    for options in VARIANTS:
        assert_identical(run_engine(process, table, threads=2, **options), expected)


def test_an_event_that_raises_changes_no_record() -> None:
    def process(state, event, emit):
        one = state.orders[event.k % 6]
        state.orders[event.k % 6] = Order(7.0, 7)
        one.quantity += 1
        state.queue.append(one)
        state.by_key[event.k] = Order(event.x, state.orders[0].quantity)
        gone = state.queue.pop(0)
        gone.price = 0.125
        state.ring.append(gone)
        state.best.note = event.name
        state.best = Order(1.0, 1)
        if event.k % 4 == 0:
            raise ValueError("four")
        emit(a=one.price, b=gone.quantity, c=state.best.note)

    compare(process)


def test_a_field_takes_what_its_type_can_hold() -> None:
    def process(state, event, emit):
        one = Order(event.k, True, note=event.name)
        one.price = event.k
        one.price /= 0.0 if event.k > 25 and event.x != event.x else 2.0
        one.quantity = event.k > 5
        state.orders[0] = one
        state.orders[1].price = math.nan
        state.orders[1].price += one.price
        emit(a=one.price, b=one.quantity, c=one.note)
        emit(a=state.orders[1].price, b=int(state.orders[1] == state.orders[1]), c="")

    compare(process)


def test_the_order_of_evaluation_is_pythons() -> None:
    def process(state, event, emit):
        state.queue.append(Order(event.x, event.k))
        state.queue[0].quantity += state.queue.pop().quantity + 1 if event.k % 2 else 3
        state.by_key[1] = Order(0.0, 0)
        held = state.by_key[1]
        state.by_key[1].quantity += state.by_key.pop(1).quantity + 5
        state.by_key[1] = Order(quantity=len(state.queue), price=float(len(state.by_key)))
        emit(a=state.by_key[1].price, b=held.quantity, c="")

    compare(process)


# ---- an object in two places at once ----


class Two(ss.State):
    slots = ss.array(Pair, 4)
    items = ss.list(Pair)
    table = ss.dict(int, Pair)


def test_an_object_in_two_places_is_two_records() -> None:
    """The one difference from objects; it is the same everywhere."""

    @ss.operator(state=Two, event={"k": int}, emits={"a": int, "b": int})
    def process(state, event, emit):
        one = Pair(event.k)
        state.slots[0] = one
        state.slots[1] = one
        one.b += 1
        emit(a=state.slots[0].b, b=state.slots[1].b)
        state.slots[0] = Pair(-1)
        one.b += 10
        emit(a=state.slots[0].b, b=state.slots[1].b)
        state.slots[1] = Pair(-2)
        one.b += 100
        emit(a=state.slots[1].b, b=one.b)
        state.items.append(one)
        state.table[event.k] = one
        state.items[0].a = 5
        emit(a=one.a, b=state.table[event.k].a)
        state.items.pop()
        one.a = 6
        emit(a=one.a, b=state.table[event.k].a)
        other = state.table[event.k]
        state.table.clear()
        one.a = 7
        emit(a=one.a, b=other.a)

    table = pa.table({"k": [3, 4, 5]})
    expected = run_oracle(process, table)
    for options in VARIANTS:
        assert_identical(run_engine(process, table, threads=2, **options), expected)
    rows = [tuple(row.values()) for row in expected.output.slice(0, 6).to_pylist()]
    assert rows == [(8, 7), (7, 17), (7, 117), (5, 3), (6, 6), (7, 7)]


# ---- what is refused ----


def refused(process: Any, state: type[ss.State] = Book) -> str:
    with pytest.raises(ss.CompileError) as error:
        run_engine(ss.operator(state=state, event=EVENT, emits=EMITS)(process), events(1))
    return str(error.value)


def test_what_does_not_fit_is_refused_with_a_way_out() -> None:
    def no_field(state, event, emit):
        state.orders[0].prize = 1.0

    def no_such_argument(state, event, emit):
        state.orders[0] = Order(1.0, 2, size=3)  # type: ignore[call-arg]

    def lacks_one(state, event, emit):
        state.orders[0] = Order(1.0)  # type: ignore[call-arg]

    def wrong_type(state, event, emit):
        state.orders[0].quantity = event.x

    def wrong_class(state, event, emit):
        state.orders[0] = Pair(1)

    def no_record(state, event, emit):
        state.by_key[1] = event.x

    def nothing(state, event, emit):
        state.queue.append(None)

    def whole_array(state, event, emit):
        state.orders = [Order(1.0, 2)]

    def compared(state, event, emit):
        if state.orders[0] == state.grid[0, 0]:
            emit(a=0.0, b=0, c="")

    def ordered(state, event, emit):
        state.queue.sort()

    def emitted(state, event, emit):
        emit(a=state.orders[0], b=0, c="")

    said = {
        no_field: ["record Order has no field 'prize'", "price"],
        no_such_argument: ["Order takes (price, quantity, buys=..., note=...)", "'size'"],
        lacks_one: ["Order takes", "'quantity'"],
        wrong_type: ["field 'quantity' of Order is declared int", "int(x)"],
        wrong_class: ["holds Order and gets a record Pair"],
        no_record: ["holds Order and gets float64", "Order(...)"],
        nothing: ["'queue'", "gets None"],
        whole_array: ["'orders' is an array and cannot be replaced"],
        compared: ["a record Order is compared with a record Pair"],
        ordered: ["records", "by a field of theirs, with key="],
        emitted: ["'a' is declared float", "a record", "one of its fields"],
    }
    for process, parts in said.items():
        text = refused(process)
        assert all(part in text for part in parts), text


def assigned(state, event, emit):
    d = {}
    d[Pair(event.k)] = 5
    emit(a=0.0, b=len(d), c="")


def displayed(state, event, emit):
    emit(a=0.0, b=len({Pair(1): 2}), c="")


def displayed_set(state, event, emit):
    emit(a=0.0, b=len({Pair(1), Pair(1)}), c="")


def in_a_tuple(state, event, emit):
    emit(a=0.0, b=len({(1, state.grid[0, 0])}), c="")


def added(state, event, emit):
    s = set()
    s.add(state.orders[0])
    emit(a=0.0, b=len(s), c="")


def of_a_list(state, event, emit):
    emit(a=0.0, b=len(set([Pair(1), Pair(2)])), c="")  # noqa: C405


def of_pairs(state, event, emit):
    emit(a=0.0, b=len(dict([(Pair(1), 2)])), c="")  # noqa: C406


def comprehended(state, event, emit):
    emit(a=0.0, b=len({Pair(k): k for k in range(event.k)}), c="")


def joined(state, event, emit):
    emit(a=0.0, b=len(set().union([Pair(1)])), c="")


def looked_up(state, event, emit):
    d = {}  # type: ignore[var-annotated]
    emit(a=0.0, b=d.get(Pair(event.k), 0) + d.setdefault(1, 2), c="")


def asked(state, event, emit):
    emit(a=0.0, b=Pair(event.k) in {1, 2}, c="")


def removed(state, event, emit):
    s = set()
    s.discard(Pair(event.k))
    emit(a=0.0, b=len(s), c="")


@pytest.mark.parametrize(
    "process",
    [
        *(assigned, displayed, displayed_set, in_a_tuple, added, of_a_list, of_pairs, comprehended),
        *(joined, looked_up, asked, removed),
    ],
    ids=lambda one: one.__name__,
)
def test_a_record_is_no_key(process: Any) -> None:
    """Nor is one in Python, and there it says the same."""
    text = refused(process)
    assert "a record of" in text, text
    assert "keys are numbers, strings and tuples of these" in text, text
    operator = ss.operator(state=Book, event=EVENT, emits=EMITS)(process)
    with pytest.raises(TypeError, match=r"unhashable type: '(Pair|Order)'"):
        operator.run_sequential(events(4))


class WithMethod(ss.Record):
    n: int

    def double(self) -> int:
        return 2 * self.n

    @property
    def half(self) -> float:
        return self.n / 2


def test_methods_are_refused_with_a_way_out() -> None:
    class One(ss.State):
        item = ss.scalar(WithMethod)

    def called(state, event, emit):
        emit(a=0.0, b=state.item.double(), c="")

    def read(state, event, emit):
        emit(a=state.item.half, b=0, c="")

    for process in (called, read):
        text = refused(process, One)
        assert "record" in text
        assert "a plain function" in text


def made_record(body: dict[str, Any]) -> type:
    return types.new_class("Made", (ss.Record,), {}, lambda names: names.update(body))


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "has no fields"),
        ({"x": list}, "field 'x' has type list"),
        ({"x": np.int8}, "field 'x' has type int8"),
        ({"_x": int}, "underscore"),
        ({f"x{i}": int for i in range(17)}, "at most 16"),
    ],
)
def test_what_a_record_cannot_have(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(ss.DeclarationError, match=said):
        made_record({"__annotations__": fields})


def test_defaults_fit_their_types() -> None:
    with pytest.raises(ss.DeclarationError, match="field 'x' has the value 'a'; expected int"):
        made_record({"__annotations__": {"x": int}, "x": "a"})


def test_fields_of_the_state_that_cannot_be() -> None:
    class Wrong(ss.State):
        pairs = ss.array(Pair, 3, fill=3)

    class Queue(ss.State):
        pairs = ss.priority_queue(Pair)

    class Scratch(ss.State):
        count = ss.scalar(int)
        pairs = ss.scratch(Pair, 3)

    for state, said in ((Wrong, "a Pair"), (Queue, "no order"), (Scratch, "of ss.array")):
        with pytest.raises(ss.DeclarationError, match=f"expected.*{said}|{said}"):
            state.layout()


def test_a_record_is_an_object_under_python() -> None:
    one = Order(1.0, quantity=2)
    assert one == Order(price=1.0, quantity=2, buys=True, note="new")
    assert one != Order(1.0, 3)
    assert one != (1.0, 2, True, "new")
    one.quantity += 1
    assert repr(one) == "Order(price=1.0, quantity=3, buys=True, note='new')"
    with pytest.raises(TypeError):
        hash(one)


# ---- from outside ----


def test_records_as_readers_see_them() -> None:
    @ss.operator(state=Book, event=EVENT, emits=EMITS)
    def process(state, event, emit):
        state.orders[event.k].price += event.x
        state.grid[1, 2].a = event.k
        state.by_key[event.k] = Order(event.x, event.k, note=event.name)
        state.queue.append(Order(event.x, 1, False))

    table = pa.table({"k": [2, 3], "x": [0.5, 1.5], "name": ["a", "b"]})
    with ss.Engine(process) as engine:
        engine.process(table)
        state = engine.state
        assert state.orders["price"].tolist() == [0.0, 0.0, 0.5, 1.5, 0.0, 0.0]
        assert state.orders[0].item() == (0.0, 0, True, "new")
        assert state.grid.shape == (2, 3)
        assert state.grid["a"][1, 2] == 3
        assert state.grid["b"].tolist() == [[7, 7, 7], [7, 7, 7]]
        assert not state.grid.flags.writeable
        assert state.best == Order(1.5, 2, note="none")
        assert state.by_key == {2: Order(0.5, 2, note="a"), 3: Order(1.5, 3, note="b")}
        assert state.by_key[3].note == "b"
        assert state.queue == [Order(0.5, 1, False), Order(1.5, 1, False)]
        assert state.table("by_key").to_pydict() == {
            "key": [2, 3],
            "value_price": [0.5, 1.5],
            "value_quantity": [2, 3],
            "value_buys": [True, True],
            "value_note": ["a", "b"],
        }
        snapshot, fields = engine.snapshot(), state.to_dict()
    for options in ({"restore": snapshot}, {"initial": fields}):
        with ss.Engine(process, **options) as engine:
            assert engine.state.by_key == fields["by_key"]
            assert engine.state.best == fields["best"]
            assert (engine.state.orders == fields["orders"]).all()
            assert engine.state.queue == fields["queue"]
            engine.process({"k": [4], "x": [9.0], "name": [""]})
            assert engine.state.orders["price"][4] == 9.0


def test_what_is_touched_of_records_is_explained() -> None:
    @ss.operator(state=Book, event=EVENT, emits=EMITS)
    def process(state, event, emit):
        one = state.orders[2]
        one.price += 1.0
        state.orders[1].note = event.name
        state.best.quantity = state.by_key[event.k].quantity
        for each in state.queue:
            each.buys = False
        found = state.named.get(event.name)
        if found is not None:
            found.a = 3

    explained = process.explain()
    touched = {(one.action, one.text) for one in explained.accesses}
    assert touched >= {
        ("read", "orders[2].price"),
        ("written", "orders[2].price"),
        ("written", "orders[1].note"),
        ("written", "best.quantity"),
        ("read", "by_key[event.k].quantity"),
        ("written", "queue[...].buys"),
        ("written", "named[event.name].a"),
    }
    assert not any(one.field == "best" for one in explained.accesses if one.action == "read")
    uses = {one.name: one for one in explained.fields}
    assert (uses["grid"].type, uses["grid"].shape) == ("record[a: int, b: int]", (2, 3))


def test_a_profile_names_the_field_of_a_record() -> None:
    @ss.operator(state=Book, event=EVENT, emits=EMITS)
    def process(state, event, emit):
        state.orders[2].quantity += 1

    fields = {one.name: one for one in process.layout.fields}
    places = [
        HotPlace(fields["orders"].offset + 2 * 4 + 1, 0, 0, 5),
        HotPlace(fields["grid"].offset + (3 + 2) * 2, 0, 0, 4),
        HotPlace(fields["best"].offset + 3, 0, 0, 3),
    ]
    words = hot_words(process.program, process.layout, places, "value", 0, 12, lambda *_: "")
    assert [one.name for one in words] == ["orders[2].quantity", "grid[1, 2].a", "best.note"]


def test_a_snapshot_of_another_record_is_refused_by_its_fields() -> None:
    class Other(ss.Record):
        price: float
        amount: int

    class One(ss.State):
        item = ss.scalar(Pair)
        items = ss.list(Pair)

    class Changed(ss.State):
        item = ss.scalar(Pair)
        items = ss.list(Other)

    def nothing(state, event, emit):
        pass

    before = ss.operator(state=One, event=EVENT, emits=EMITS)(nothing)
    after = ss.operator(state=Changed, event=EVENT, emits=EMITS)(nothing)
    with ss.Engine(before, initial={"items": [Pair(1, 2)], "item": Pair(3)}) as engine:
        snapshot = engine.snapshot()
    with pytest.raises(ss.SnapshotError, match=r"'items' has value record\[a: int, b: int\]"):
        ss.Engine(after, restore=snapshot)

    def migrate(fields: dict[str, Any]) -> dict[str, Any]:
        items = [Other(float(one.a), one.b) for one in fields["items"]]
        return {"items": items, "item": fields["item"]}

    with ss.Engine(after, restore=snapshot, migrate=migrate) as engine:
        assert engine.state.items == [Other(1.0, 2)]
        assert engine.state.item == Pair(3)


def test_initial_records_are_checked() -> None:
    @ss.operator(state=Book, event=EVENT, emits=EMITS)
    def process(state, event, emit):
        pass

    wrong: list[tuple[dict[str, Any], str]] = [
        ({"best": Pair(1)}, "expected Order"),
        ({"orders": [Order(1.0, 1)]}, r"declared with shape \(6,\)"),
        ({"best": Order("a", 1)}, "where type float is expected"),  # type: ignore[arg-type]
        ({"by_key": {1: 2.0}}, "expected Order"),
    ]
    for initial, said in wrong:
        with pytest.raises(ss.ConfigurationError, match=said):
            ss.Engine(process, initial=initial)


def test_an_operator_travels_without_the_module_of_its_records(tmp_path: Path) -> None:
    """As it does to the executors of Spark, and into what is recorded for a replay."""
    (tmp_path / "far_away.py").write_text(
        textwrap.dedent("""
            import specstream as ss

            class Deal(ss.Record):
                a: int
                note: str = "far"

            class State(ss.State):
                deals = ss.dict(int, Deal)

            @ss.operator(state=State, event={"k": int}, emits={"a": int, "c": str})
            def process(state, event, emit):
                deal = state.deals.setdefault(event.k % 3, Deal(event.k))
                deal.a += 1
                emit(a=deal.a, c=deal.note)
        """)
    )
    pack = "import pickle, sys, far_away; sys.stdout.buffer.write(pickle.dumps(far_away.process))"
    done = subprocess.run(
        [sys.executable, "-c", pack], cwd=tmp_path, capture_output=True, check=True, timeout=120
    )
    operator = pickle.loads(done.stdout)
    table = pa.table({"k": [1, 2, 4]})
    output = operator.run_sequential(table).output
    assert output.to_pydict() == {"a": [2, 3, 3], "c": ["far"] * 3}
    with ss.Engine(operator) as engine:
        assert engine.process(table) == output
        deals = pickle.loads(pickle.dumps(dict(engine.state.deals)))
        assert repr(deals[1]) == "Deal(a=3, note='far')"
        assert deals == engine.state.deals


# ---- at random ----


def random_operator(seed: int, folder: Path) -> ss.Operator:
    file = folder / f"records_{seed}.py"
    file.write_text(objects.program(seed))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    operator: ss.Operator = module.process
    return operator


def random_events(seed: int) -> pa.Table:
    dice = random.Random(seed)
    return pa.table(
        {
            "k": [dice.randrange(40) for _ in range(60)],
            "x": [dice.choice([0.25, -1.5, dice.random()]) for _ in range(60)],
        }
    )


def some(count: int, every: int) -> list[Any]:
    """Seeds; those beyond belong to the slow tests."""
    return [
        *range(count),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(count, every)),
    ]


@pytest.mark.parametrize("seed", some(8, 25))
def test_programs_at_random_are_pythons(seed: int, tmp_path: Path) -> None:
    operator = random_operator(seed, tmp_path)
    assert witness.assert_agrees(operator, random_events(seed)) == 60


@pytest.mark.parametrize("seed", some(2, 12))
def test_programs_at_random_run_alike(seed: int, tmp_path: Path) -> None:
    operator, table = random_operator(seed, tmp_path), random_events(seed)
    expected = run_oracle(operator, table)
    for options in VARIANTS:
        assert_identical(run_engine(operator, table, threads=2, **options), expected)

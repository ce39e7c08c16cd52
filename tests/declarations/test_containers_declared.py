"""What a state class may say of containers, and how they lie in the state."""

from __future__ import annotations

import copy
import mmap
from typing import Any

import numpy as np
import pytest
from support.operators.held import Held

import specstream as ss
from specstream.declarations.container_words import entries, replace, used_bytes
from specstream.declarations.containers import shape_named
from specstream.declarations.state_layout import Layout
from specstream.files.untrusted import Malformed


def state_of(field: Any) -> type[ss.State]:
    return type("Held", (ss.State,), {"d": field})


NO_NUMBER: Any = "5"

WRONG = [
    (ss.dict(float, int), "field 'd': key has type float; expected int, str, bool, or a tuple"),
    (ss.dict((int, float), int), "field 'd': key has type float; expected int, str, bool"),
    (ss.set(float), "field 'd': key has type float"),
    (ss.dict(bytes, int), "field 'd': key has type bytes"),
    (ss.dict(None, int), "field 'd': key has type None"),
    (ss.dict((), int), "field 'd': key is an empty tuple; expected one type at least"),
    (
        ss.dict(int, list),
        "field 'd': value has type list; expected int, float, bool, str, or a tuple",
    ),
    (ss.dict(int, dict), "field 'd': value has type dict"),
    (ss.dict(int, (int, (int, int))), "field 'd': value has type"),
    (ss.list("float"), "field 'd': value has type 'float'"),
    (ss.dict(int, np.int8), "field 'd': value has type int8; expected int, float"),
    (ss.dict(np.uint64, int), "field 'd': key has type .*uint64.*; expected int, str, bool"),
    (ss.dict(int, int, limit=0), "field 'd': limit=0; expected an integer from 1 to"),
    (ss.dict(int, int, limit=NO_NUMBER), "field 'd': limit='5'; expected an integer"),
    (ss.list(int, limit=2**40), "field 'd': limit=1099511627776; expected an integer from 1"),
    (ss.list(int, capacity=0), "field 'd': capacity=0; expected an integer from 1"),
    (ss.list(int, capacity=11, limit=10), "field 'd': capacity=11; expected .* from 1 to 10"),
    (ss.deque(int, maxlen=-1), "field 'd': maxlen=-1; expected an integer from 0"),
    (ss.deque(int, maxlen=NO_NUMBER), "field 'd': maxlen='5'; expected an integer"),
    (
        ss.dict((int,) * 9, int),
        "field 'd' has 9 parts in a key and 1 in a value; expected at most 8",
    ),
    (ss.dict(int, (int,) * 31), "field 'd' has 1 parts in a key and 31 in a value; .* 31 in both"),
    (ss.list((int,) * 33), "field 'd' has 0 parts in a key and 33 in a value"),
    (ss.dict(int, (int,) * 30, limit=2**31), r"state 'Held' takes \d+ words of 8 bytes"),
]


@pytest.mark.parametrize(("field", "message"), WRONG)
def test_what_cannot_be_declared_names_the_field(field: Any, message: str) -> None:
    message = message if message.startswith("state") else f"state 'Held', {message}"
    with pytest.raises(ss.DeclarationError, match=message):
        state_of(field).layout()


@pytest.mark.parametrize(
    "field",
    [
        ss.dict(int, int),
        ss.dict((str, int, bool), (float, bool, str)),
        ss.dict(tuple[int, str], tuple[float, float], limit=5),
        ss.set((str,)),
        ss.set(bool),
        ss.list(float, capacity=3, limit=4),
        ss.deque(str),
        ss.deque((int, str), maxlen=0),
        ss.deque(int, 100, limit=150),
        ss.priority_queue((float, int)),
    ],
)
def test_a_description_gives_the_layout_again(field: Any) -> None:
    layout = state_of(field).layout()
    again = Layout.described("Held", layout.describe())
    assert again == layout


def test_a_type_and_a_tuple_of_types_are_the_same_as_tuple_of_typing() -> None:
    assert state_of(ss.dict((int, str), float)).layout() == (
        state_of(ss.dict(tuple[int, str], float)).layout()
    )
    assert state_of(ss.set(int)).layout() != state_of(ss.set((int,))).layout()
    assert shape_named("tuple[int]") == (int,)


DICT: Any = {"name": "d", "kind": "dict", "shape": [], "key": "int", "value": "str", "limit": 9}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"key": "float"}, "'d': key has type"),
        ({"key": "tuple[int"}, r"no element type 'tuple\[int'"),
        ({"key": "tuple[]"}, "no element type ''"),
        ({"key": ""}, "no element type ''"),
        ({"value": "tuple[int,str]"}, "no element type 'int,str'"),
        ({"key": "tuple[" + "int, " * 8 + "int]"}, "9 parts in a key"),
        ({"limit": 0}, "limit=0"),
        ({"limit": 2**62}, "limit="),
        ({"maxlen": 3}, "is no field"),
        ({"shape": [3]}, "is no field"),
        ({"kind": "set"}, "is no field"),
        ({"kind": "heap"}, "'d' of type heap has key and value and limit"),
        ({"kind": "int"}, "'d' of type int has key and value and limit"),
    ],
)
def test_a_description_of_no_container_is_refused(change: dict[str, Any], message: str) -> None:
    Layout.described("Held", [DICT])
    with pytest.raises(Malformed, match=message):
        Layout.described("Held", [DICT | change])
    for missing in ("key", "value", "limit"):
        less: Any = {name: one for name, one in DICT.items() if name != missing}
        with pytest.raises(Malformed, match="'d'"):
            Layout.described("Held", [less])


def test_regions_lie_behind_the_fields_and_share_no_page() -> None:
    layout = Held.layout()
    end = layout.words("state")
    for field in layout.containers:
        of = field.container
        assert of is not None
        assert of.region >= end
        assert of.region * 8 % mmap.PAGESIZE == 0
        end = of.region + of.region_words
    assert end == layout.state_words
    assert sum(field.words for field in layout.plain) == sum(
        last - first for first, last in layout.stretches
    )


def test_rows_come_out_of_the_words_as_they_went_in() -> None:
    layout = Held.layout()
    random = np.random.default_rng(5)
    words = layout.allocate()
    expected: dict[str, np.ndarray] = {}
    for _ in range(60):
        field = layout.containers[random.integers(len(layout.containers))]
        of = field.container
        assert of is not None
        count = int(random.integers(0, min(of.most, 300) + 1))
        rows = random.integers(-(2**63), 2**63 - 1, (count, of.row_words))
        replace(words, field, rows)
        expected[field.name] = rows
        for other in layout.containers:
            held = expected.get(other.name)
            found = entries(words, other)
            assert found.tolist() == ([] if held is None else held.tolist()), other.name
            assert used_bytes(words, other) < 400 * 8 * 32 * 2


def test_a_layout_can_be_copied() -> None:
    layout = Held.layout()
    assert layout.stretches  # kept from here on
    assert copy.deepcopy(layout) == layout

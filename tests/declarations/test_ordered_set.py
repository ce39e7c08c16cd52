"""A set that keeps the order of its elements is a set in all else."""

from __future__ import annotations

import copy
import pickle
import random
from typing import Any

import pytest

from specstream.declarations.ordered_set import OrderedSet

CHANGES = {
    "add": lambda one, other: one.add(min(other, default=0)),
    "discard": lambda one, other: one.discard(min(other, default=0)),
    "update": lambda one, other: one.update(other, [7]),
    "difference_update": lambda one, other: one.difference_update(other, [7]),
    "intersection_update": lambda one, other: one.intersection_update(other),
    "symmetric_difference_update": lambda one, other: one.symmetric_difference_update(other),
    "|=": lambda one, other: one.__ior__(set(other)),
    "-=": lambda one, other: one.__isub__(set(other)),
    "&=": lambda one, other: one.__iand__(set(other)),
    "^=": lambda one, other: one.__ixor__(set(other)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_are_those_of_a_set_and_leave_the_rest_in_order(change: str) -> None:
    for seed in range(50):
        dice = random.Random(seed)
        elements, other = (dice.sample(range(10), dice.randrange(8)) for _ in range(2))
        ordered, plain = OrderedSet(elements), set(elements)
        CHANGES[change](ordered, other)
        CHANGES[change](plain, other)
        assert ordered == plain
        assert plain == ordered
        assert len(ordered) == len(plain)
        left = [one for one in elements if one in plain]
        assert list(ordered)[: len(left)] == left
        assert sorted(ordered) == sorted(plain)
        if change == "update":
            assert list(ordered) == list(dict.fromkeys([*elements, *other, 7]))


def test_it_changes_with_itself() -> None:
    for change, left in (("update", [3, 1]), ("difference_update", []), ("clear", [])):
        kept = OrderedSet([3, 1])
        getattr(kept, change)(*([kept] if change != "clear" else []))
        assert list(kept) == left
    kept = OrderedSet([3, 1])
    kept ^= kept
    assert list(kept) == [] == list(set(kept))


@pytest.mark.parametrize(
    "again",
    [copy.copy, copy.deepcopy, lambda one: one.copy(), lambda one: pickle.loads(pickle.dumps(one))],
)
def test_copies_keep_the_order_and_are_their_own(again: Any) -> None:
    kept = OrderedSet(["b", "é", "a"])
    other = again(kept)
    other.add("c")
    assert (list(other), list(kept)) == (["b", "é", "a", "c"], ["b", "é", "a"])
    assert isinstance(other, set)
    assert repr(other) == "{'b', 'é', 'a', 'c'}"


def test_it_raises_what_a_set_does() -> None:
    kept = OrderedSet([2, 1])
    assert (kept.pop(), kept.pop(), repr(kept)) == (1, 2, "set()")
    with pytest.raises(KeyError, match="empty set"):
        kept.pop()
    with pytest.raises(KeyError):
        kept.remove(1)
    with pytest.raises(TypeError):
        kept |= [1]
    with pytest.raises(TypeError):
        hash(kept)

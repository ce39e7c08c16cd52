"""Entries that are looked up one by one are those of a dict, whatever is done with them."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from specstream.compiler.oracle_objects.lookup import ABSENT, FoundEntries

KEYS = st.integers(0, 6)
STEPS = st.one_of(
    st.tuples(st.sampled_from(["get", "in", "del"]), KEYS, st.none()),
    st.tuples(st.just("set"), KEYS, st.integers()),
    st.tuples(st.sampled_from(["list", "len", "items", "reversed"]), st.none(), st.none()),
    st.tuples(st.just("clear"), st.none(), st.none()),
)


def does(entries: dict[int, int], what: str, key: Any, value: Any) -> Any:
    """What a step gives, or raises."""
    try:
        match what:
            case "get":
                return entries.get(key), entries[key]
            case "in":
                return key in entries
            case "del":
                del entries[key]
            case "set":
                entries[key] = value
            case "list":
                return list(entries), list(entries.values()), entries.copy()
            case "len":
                return len(entries), bool(entries)
            case "items":
                return list(entries.items()), list(entries.keys())
            case "reversed":
                return list(reversed(entries))
            case "clear":
                entries.clear()
    except KeyError as error:
        return repr(error)


@given(held=st.dictionaries(KEYS, st.integers()), steps=st.lists(STEPS))
def test_looked_up_or_not_they_are_the_same(
    held: dict[int, int], steps: list[tuple[str, Any, Any]]
) -> None:
    expected = dict(held)
    found = FoundEntries(len(held), lambda key: held.get(key, ABSENT), lambda: dict(held))
    for step in steps:
        assert does(found, *step) == does(expected, *step), step
    assert list(found.items()) == list(expected.items())


def test_nobody_asks_for_all_where_one_is_asked_for() -> None:
    asked: list[int] = []

    def find(key: int) -> Any:
        asked.append(key)
        return 7 if key == 3 else ABSENT

    def all_of_them() -> dict[int, int]:
        raise AssertionError("nobody needs them")

    found = FoundEntries(10**9, find, all_of_them)
    found[4] = 1
    del found[3]
    assert (found.get(5), found[4], len(found)) == (None, 1, 10**9)
    assert asked == [4, 3, 5]

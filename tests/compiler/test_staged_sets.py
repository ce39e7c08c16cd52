"""Sets in what Python computes of an event iterate in the order of insertion, in every process."""

from __future__ import annotations

import collections
import functools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import specstream as ss
from specstream.compiler.staging.ordered_sets import with_ordered_sets
from specstream.declarations.ordered_set import OrderedFrozenSet, OrderedSet

WORDS = ["cc", "bb", "aa", "dd", "ee", "cc", "ff", "bb", "gg", "aa"]
APART = list(dict.fromkeys(WORDS))


class Kept(ss.State):
    places = ss.dict(str, int)
    seen = ss.scalar(int)


def called(text: str) -> str:
    words = set(text.split())
    for word in words:
        return word
    return ""


def calls(text: str) -> str:
    return called(text) + " ".join({*text.split()})


def calls_itself(text: str, depth: int) -> str:
    words = [*{word for word in text.split()}]  # noqa: C416
    return calls_itself(" ".join(words), depth - 1) if depth else words[0]


def with_own_name(text: str) -> str:
    set: Any = sorted
    return " ".join(set(text.split()))


def with_classes(words: Any) -> str:
    cls: Any = type(words)
    is_set = isinstance(words, set) and cls is set and cls in (list, set) and cls.__name__ == "set"
    match words:
        case frozenset():
            return "frozen"
        case set():
            return " ".join(words) if is_set else ""
    return "neither"


def first_of_generator(event: Any, emit: Any) -> None:
    words = set(event.text.split())
    emit(next(word for word in words))


def joined(event: Any, emit: Any) -> None:
    emit(" ".join({word for word in event.text.split()}))  # noqa: C416


def first_of_list(event: Any, emit: Any) -> None:
    emit(list(frozenset(event.text.split()))[0])  # noqa: RUF015


def longest(event: Any, emit: Any) -> None:
    emit(max({*event.text.split()}, key=len))


def unpacked(event: Any, emit: Any) -> None:
    first, *_, last = set(event.text.split())
    emit(f"{first} {last}")


def shown(event: Any, emit: Any) -> None:
    emit(f"{set(event.text.split())}")


def joined_with(event: Any, emit: Any) -> None:
    emit(" ".join(set(event.text.split()) - {"bb"} | {"zz", "yy"}))


def of_views(event: Any, emit: Any) -> None:
    emit(" ".join(dict.fromkeys(event.text.split()).keys() & {"ee", "aa", "cc"}))


def reduced(event: Any, emit: Any) -> None:
    emit(" ".join(set.union(*[{word, word + "1"} for word in event.text.split()])))


def counted(event: Any, emit: Any) -> None:
    words = {word for word in event.text.split()}  # noqa: C416
    emit(collections.Counter(words).most_common(1)[0][0])


def by_helper(event: Any, emit: Any) -> None:
    emit(called(event.text))


def by_helper_of_helper(event: Any, emit: Any) -> None:
    emit(calls(event.text))


def by_itself(event: Any, emit: Any) -> None:
    emit(calls_itself(event.text, 3))


def by_own_name(event: Any, emit: Any) -> None:
    emit(with_own_name(event.text))


def by_classes(event: Any, emit: Any) -> None:
    emit(with_classes(set(event.text.split())))


def caught(event: Any, emit: Any) -> None:
    try:
        raise ValueError(" ".join(set(event.text.split())))
    except ValueError as error:
        emit(str(error))


CASES: dict[Callable[..., None], str] = {
    first_of_generator: APART[0],
    joined: " ".join(APART),
    first_of_list: APART[0],
    longest: APART[0],
    unpacked: f"{APART[0]} {APART[-1]}",
    shown: f"{{{', '.join(map(repr, APART))}}}",
    joined_with: " ".join([*(word for word in APART if word != "bb"), "zz", "yy"]),
    of_views: "cc aa ee",
    reduced: " ".join(part for word in APART for part in (word, word + "1")),
    counted: APART[0],
    by_helper: APART[0],
    by_helper_of_helper: APART[0] + " ".join(APART),
    by_itself: APART[0],
    by_own_name: " ".join(sorted(WORDS)),
    by_classes: " ".join(APART),
    caught: " ".join(APART),
}


@pytest.mark.parametrize("function", CASES, ids=lambda function: function.__name__)
def test_what_python_makes_of_a_set_goes_by_insertion(function: Callable[..., None]) -> None:
    op = ss.operator(event={"text": str}, emits={"made": str})(function)
    events = pa.table({"text": [" ".join(WORDS)]})
    with ss.Engine(op) as engine:
        assert engine.process(events)["made"].to_pylist() == [CASES[function]]
    assert op.run_sequential(events).output["made"].to_pylist() == [CASES[function]]


def test_the_message_of_a_failed_event_goes_by_insertion() -> None:
    @ss.operator(state=Kept, event={"text": str}, emits={})
    def fails(state: Any, event: Any, emit: Any) -> None:
        raise ValueError(set(event.text.split()), state.seen)

    with ss.Engine(fails, errors="side") as engine:
        engine.process({"text": [" ".join(WORDS)]})
        failed = engine.failed_events()
    assert failed is not None
    assert failed["message"].to_pylist() == [f"({OrderedSet(WORDS)!r}, 0)"]


def test_the_keys_of_a_dict_of_the_state_come_as_the_set_has_them() -> None:
    @ss.operator(state=Kept, event={"text": str}, emits={"word": str, "place": int})
    def places(state: Any, event: Any, emit: Any) -> None:
        for word in set(event.text.split()):
            state.places[word] = len(state.places)
        for word, place in state.places.items():
            emit(word, place)

    with ss.Engine(places) as engine:
        made = engine.process({"text": [" ".join(WORDS)]})
    assert made.to_pydict() == {"word": APART, "place": list(range(len(APART)))}


def test_functions_without_sets_and_those_of_libraries_stay_as_they_are() -> None:
    def plain(text: str) -> str:
        return text.upper()

    assert with_ordered_sets(plain) is plain
    assert with_ordered_sets(functools.wraps) is functools.wraps
    assert with_ordered_sets(called) is not called


def test_a_copy_keeps_defaults_closure_and_line() -> None:
    others = ["zz"]

    def more(text: str, *, sep: str = " ", count: int = 2) -> str:
        return sep.join([*{*text.split(), *others}][:count])

    made = with_ordered_sets(more)
    others.append("yy")
    assert made is not more
    assert made("bb aa", count=4) == "bb aa zz yy"
    assert made("bb aa") == "bb aa"
    assert made.__code__.co_firstlineno == more.__code__.co_firstlineno
    assert made.__qualname__ == more.__qualname__


@pytest.mark.parametrize("cls", [OrderedSet, OrderedFrozenSet])
@pytest.mark.parametrize("other", [set, frozenset, dict.fromkeys, OrderedSet, OrderedFrozenSet])
def test_operators_of_ordered_sets_equal_those_of_pythons(cls: Any, other: Any) -> None:
    left, right = [3, 9, 1, 7], [7, 2, 3, 8]
    one, given = cls(left), other(right)
    given = given.keys() if isinstance(given, dict) else given
    plain = set(left) if cls is OrderedSet else frozenset(left)
    order = {
        "|": [3, 9, 1, 7, 2, 8],
        "&": [3, 7],
        "-": [9, 1],
        "^": [9, 1, 2, 8],
    }
    for sign, elements in order.items():
        made = eval(f"one {sign} given", {"one": one, "given": given})
        assert made == eval(f"one {sign} given", {"one": plain, "given": set(right)})
        assert set(made) == set(elements)
        if other in (OrderedSet, OrderedFrozenSet) or sign in "&-":
            assert list(made) == elements
        assert isinstance(made, cls)
    swapped = set(right) - one
    assert swapped == {2, 8}
    assert isinstance(swapped, OrderedSet) == (cls is OrderedSet)  # else the other one decides
    with pytest.raises(TypeError):
        one | [1]

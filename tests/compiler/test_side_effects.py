"""A function that keeps something from call to call is not computed ahead, but refused."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs
# mypy: disable-error-code=annotation-unchecked

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import specstream as ss

SEEN: list[str] = ["one"]
COUNTS = {"one": 1}


class S(ss.State):
    n = ss.scalar(int)


def by_item(text, before={}):  # noqa: B006
    before[text.lower()] = 1
    return len(before)


def by_keyword(text, *, before={}):  # noqa: B006
    before[text.lower()] = 1
    return len(before)


def by_method(text):
    SEEN.append(text.lower())
    return len(SEEN)


def by_a_global(text):
    COUNTS[text.upper()] = len(text)
    return len(COUNTS)


def by_order(text):
    SEEN.reverse()
    return len(SEEN[0] + text.lower())


def by_another(text):
    return by_method(text.strip()) + 1


def by_its_own(text):
    seen: list[str] = []
    seen.append(text.lower())
    counts = {}
    counts[text.upper()] = 1
    return len(seen) + len(counts) + len(text)


@pytest.mark.parametrize("function", [by_item, by_method, by_a_global, by_another])
def test_it_is_refused(function: Callable[..., Any]) -> None:
    def process(state, event, emit):
        emit(function(event.s))

    with pytest.raises(ss.CompileError, match=r"a module is frozen|is known only|of a string"):
        ss.Engine(ss.operator(state=S, event={"s": str}, emits={"n": int})(process), horizon=0)


def test_so_are_defaults_by_keyword_and_orders() -> None:
    for function in (by_keyword, by_order):
        test_it_is_refused(function)


def test_what_is_its_own_it_may_change() -> None:
    def process(state, event, emit):
        emit(by_its_own(event.s))

    operator = ss.operator(state=S, event={"s": str}, emits={"n": int})(process)
    with ss.Engine(operator, horizon=0) as engine:
        assert engine.process({"s": ["a", "bc", "a"]})["n"].to_pylist() == [3, 4, 3]

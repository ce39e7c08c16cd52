"""The texts of caught exceptions, emitted: what CPython says, on every path.

PYTEST_DONT_REWRITE: the assertions of operators are their own.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support import witness

import specstream as ss
from specstream.structures import boosted

NUMBERS = {"b": 1, "dd": 2}
FEES = np.array([1, 2, 3])


class TooMany(Exception):
    def __init__(self, count, what):
        super().__init__(f"{count} of {what}")
        self.count = count


class Plain(ValueError):
    pass


def deposit(balances, account, cents):
    if cents > 5:
        raise ValueError(f"{cents} to {account}")
    balances[account] += cents


def withdraw(balances, account, cents):
    balances[account] -= cents


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    last = ss.scalar(str)
    a = ss.array(int, 8)
    grid = ss.array(int, (3, 5))


class Boosted(S):
    balances = boosted(ss.array(int, 5), deposit=(deposit, withdraw))


EVENT: dict[str, Any] = {"s": str, "t": ss.nullable(str), "k": int, "y": float}
EMITS: dict[str, Any] = {"text": ss.nullable(str), "n": int}
TABLE = pa.table(
    {
        "s": ["12", "b", "", "dd", "7"] * 8,
        "t": [None, "b", "", "dd", "7"] * 8,
        "k": list(range(40)),
        "y": [k / 4 for k in range(40)],
    }
)


def declared(function: Callable[..., None]) -> ss.Operator:
    state = Boosted if function is of_a_boosted_operation else S
    return ss.operator(state=state, event=EVENT, emits=EMITS)(function)


def check(state, count, name):
    if count > 30:
        raise TooMany(count, name)
    if count % 7 == 0:
        raise Plain(f"{count:>4} {name!r} {state.x:.2f}")
    if count % 5 == 0:
        raise Plain
    if count % 3 == 0:
        raise Plain("constant", count > 8)


def of_its_own(state, event, emit):
    state.n += event.k
    state.x += event.y
    state.last = event.s
    try:
        check(state, event.k, state.last)
    except TooMany as error:
        emit(str(error), 1)
    except Plain as error:
        emit(f"{state.n}: {error} {error!r:>9} {error.args} {type(error).__name__}", 2)
    else:
        emit(None, 0)


def of_what_is_computed_before(state, event, emit):
    try:
        state.n += int(event.s)
    except ValueError as error:
        emit(str(error), state.n)


def of_python(state, event, emit):
    zero = event.k % 3
    half = zero * 0.5
    numbers = [1, 2, 3]
    names = {"12"}
    counts = {1: 2}
    shares = {0.25: 1}
    try:
        state.n += 10 // zero
    except ZeroDivisionError as error:
        emit(f"{error}", 1)
    try:
        state.n += 10 % zero
    except ZeroDivisionError as error:
        emit(f"{error}", 2)
    try:
        state.x += 10 / zero
    except ZeroDivisionError as error:
        emit(f"{error}", 3)
    try:
        state.x += event.y / half
    except ArithmeticError as error:
        emit(f"{error}", 4)
    try:
        state.x += event.y // half
    except ZeroDivisionError as error:
        emit(f"{error}", 5)
    try:
        state.x += event.y % half
    except Exception as error:
        emit(f"{error}", 6)
    try:
        state.a[:] //= zero
    except ZeroDivisionError as error:
        emit(f"{error}", 7)
    try:
        state.n += divmod(event.k, zero)[1]
    except ZeroDivisionError as error:
        emit(f"{error}", 8)
    try:
        state.x += divmod(event.y, half)[0]
    except ZeroDivisionError as error:
        emit(f"{error}", 16)
    try:
        state.n += numbers[event.k]
    except IndexError as error:
        emit(error.args[0], 9)
    try:
        state.n += int(half * float("nan"))
    except ValueError as error:
        emit(str(error), 10)
    try:
        state.n += NUMBERS[event.s]
    except KeyError as error:
        emit(str(error), 11)
    try:
        state.n += counts[event.k]
    except LookupError as error:
        emit(f"{error} {error.args[0]} {error!r}", 12)
    try:
        state.n += counts.pop(event.k)
    except KeyError as error:
        emit(f"{error}", 13)
    try:
        del shares[event.y]
    except KeyError as error:
        emit(f"{error}", 14)
    try:
        names.remove(event.s)
    except KeyError as error:
        emit(f"{error}", 15)


def of_an_array(state, event, emit):
    try:
        state.a[event.k - 9] += 1
        state.n += state.grid[1, event.k] + FEES[event.k - 1]
    except IndexError as error:
        emit(f"{error}", 1)
    try:
        state.n += state.grid[event.k % 4][1:][event.k]
    except LookupError as error:
        emit(error.args[0], 2)


def of_an_assertion(state, event, emit):
    try:
        assert event.k % 2 == 0
        assert event.k % 3, f"{event.k} is {state.n}"
        assert event.k % 5, "five"
    except AssertionError as error:
        emit(str(error), 1)
        why = f"<{error}>"
        state.n += 1
        if event.k:
            emit(f"{why} {state.n}", 2)
        emit(why, 3)


def through_others(state, event, emit):
    try:
        try:
            if event.k % 2:
                raise Plain(event.s)
            state.n += int(event.s)
        except TypeError:
            emit("never", 0)
        except Plain:
            try:
                raise TooMany(state.n, "x")
            except TooMany as other:
                emit(str(other), 1)
            if event.k % 3:
                raise
        finally:
            state.n += 1
            try:
                raise KeyError(event.k)
            except KeyError as error:
                emit(f"inner {error}", 2)
    except ValueError as error:
        try:
            raise ValueError(event.y)
        except ValueError:
            pass
        emit(f"{error} {state.n}", 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [
        of_its_own,
        of_what_is_computed_before,
        of_python,
        of_an_array,
        of_an_assertion,
        through_others,
    ],
)
def test_the_text_of_a_caught_exception_is_what_python_says(
    function: Callable[..., None],
) -> None:
    operator = declared(function)
    settings = ss.testing.settings()
    ss.testing.check(operator, TABLE, settings=[settings[at] for at in (0, 4, -2)])
    assert witness.assert_agrees(operator, TABLE) == TABLE.num_rows


def of_a_null(state, event, emit):
    kept = event.t
    try:
        raise Plain(f"{kept} {state.n}")
    except Plain as error:
        emit(str(error), state.n)


def test_a_null_in_a_text_is_none() -> None:
    found = ss.testing.check(declared(of_a_null), TABLE).output["text"].to_pylist()
    assert found[:3] == ["None 0", "b 0", " 0"]


# ---- what compiled code does not know, and asks for ----


def of_a_search(state, event, emit):
    try:
        state.n += [1, 2].index(event.k)
    except ValueError as error:
        emit(f"{error}", 1)


def of_a_least(state, event, emit):
    try:
        state.n += min([x for x in [1, 2] if x > 9])
    except ValueError as error:
        emit(f"{error}", 1)


def of_another_text(state, event, emit):
    try:
        try:
            state.n += 1 // event.k
        except ZeroDivisionError as error:
            raise Plain(f"again: {error}") from error
    except Plain as error:
        emit(str(error), 1)


def of_what_no_row_has(state, event, emit):
    try:
        raise Plain((event.k, 1))
    except Plain as error:
        emit(str(error), 1)


def of_a_boosted_operation(state, event, emit):
    try:
        state.balances.deposit(event.k % 5, event.k % 8)
    except ValueError as error:
        emit(str(error), 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "function",
    [of_a_search, of_a_least, of_another_text, of_what_no_row_has, of_a_boosted_operation],
)
def test_a_text_that_python_alone_knows_is_asked_for(function: Callable[..., None]) -> None:
    operator = declared(function)
    settings = ss.testing.settings()
    found = ss.testing.check(operator, TABLE, settings=[settings[at] for at in (0, 4, -1)])
    assert None not in found.output["text"].to_pylist()
    if function is not of_a_boosted_operation:
        assert witness.assert_agrees(operator, TABLE) == TABLE.num_rows


def behind_its_clause(state, event, emit):
    try:
        raise Plain("x")
    except Plain:
        state.n += 1
    emit(str(error), 1)  # type: ignore[name-defined]  # noqa: F821


def the_exception_itself(state, event, emit):
    try:
        state.n += 1 // event.k
    except ZeroDivisionError as error:
        emit(error, 1)


def an_attribute_of_its_own(state, event, emit):
    try:
        check(state, event.k, event.s)
    except TooMany as error:
        emit(f"{error.count}", 1)


def kept_in_a_field(state, event, emit):
    try:
        check(state, event.k, event.s)
    except TooMany as error:
        state.last = str(error)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            behind_its_clause,
            r"no longer exists after its except clause|name .error. is not defined",
        ),
        (the_exception_itself, r"or emitted as text; .* or in emit str\(error\)"),
        (an_attribute_of_its_own, r"of a caught exception take str\(error\), repr\(error\)"),
        (kept_in_a_field, r"str\(\) cannot be used|reads a caught exception|is a caught exception"),
    ],
    ids=lambda one: getattr(one, "__name__", ""),
)
def test_other_uses_of_a_caught_exception_are_refused(
    function: Callable[..., None], said: str
) -> None:
    with pytest.raises(ss.CompileError, match=said):
        ss.Engine(declared(function))


class Popped(ss.State):
    n = ss.scalar(int)
    values = ss.list(int)
    seen = ss.dict(str, int)


@pytest.mark.parametrize("execution", ["log_free", "locked"])
def test_what_undoes_nothing_cannot_ask_for_texts(execution: Any) -> None:
    """Where it is certain the engine is refused, and else the event says at which line it is."""

    @ss.operator(state=Popped, event={"s": str}, emits={"v": str})
    def arguments(state, event, emit):
        try:
            state.n += state.seen[event.s]
        except KeyError as error:
            emit(f"{error.args[0]}")

    line = arguments.function.__code__.co_firstlineno + 5
    where = rf"operator 'arguments'.*{Path(__file__).name}:{line}: .*leave it out"
    with pytest.raises(ss.ConfigurationError, match=where):
        ss.Engine(arguments, execution=execution)
    with ss.Engine(arguments) as engine:
        assert engine.process({"s": ["a"]})["v"].to_pylist() == ["a"]

    @ss.operator(state=Popped, event={"s": str}, emits={"v": str})
    def popping(state, event, emit):
        try:
            if event.s == "key":
                state.n += state.seen[event.s]
            state.n += state.values.pop()
        except (KeyError, IndexError) as error:
            emit(str(error))

    line = popping.function.__code__.co_firstlineno + 7
    with ss.Engine(popping, threads=1, execution=execution) as engine:
        assert engine.process({"s": ["key"]})["v"].to_pylist() == ["'key'"]
        where = rf"operator 'popping'.*{Path(__file__).name}:{line}: .*execution=\"ordered\""
        with pytest.raises(ss.SpecstreamError, match=where):
            engine.process({"s": ["a"]})

"""Exceptions in operators: what is caught, where the code goes on, and what the state keeps.

One file, because all of it goes through one comparison: operators that raise in every place, and
what plain Python, the oracle and each variant of the native code have then done.
"""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

# Operators as people write them, and as they should not.
# ruff: noqa: B012, B904, F841, SIM105

from __future__ import annotations

import ast
import importlib
import inspect
import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss
from specstream.compiler import entry_points as variants
from specstream.compiler.backend import exception_status
from specstream.compiler.entry_points import compile_entry
from specstream.compiler.frontend.try_and_raise import steps_aside
from specstream.compiler.language.error_classes import LEAVES
from specstream.structures import boosted

PATHS: list[dict[str, Any]] = [
    {"threads": 1, "horizon": 0},
    {"threads": 2, "horizon": 8, "chunk": 4, "execution": "speculate"},
    {"threads": 3, "horizon": 4, "chunk": 1, "protocol": "eager"},
]


class Rejected(Exception):
    pass


class TooMuch(Rejected, ValueError):
    def __init__(self, amount, limit=10):
        super().__init__(f"{amount} is more than {limit}")
        self.amount = amount


class Other(Exception):
    """Derives from nothing of the above."""


ARITHMETIC = (ZeroDivisionError, OverflowError)


class State(ss.State):
    a = ss.array(int, 8, fill=1)
    small = ss.array(np.int8, 4)
    n = ss.scalar(int)
    x = ss.scalar(float)
    t = ss.scratch(int, 4)


def agrees(operator: ss.Operator, table: pa.Table, kept: int | None = None) -> None:
    """Oracle, witness and engine are one."""
    assert witness.assert_agrees(operator, table) == (table.num_rows if kept is None else kept)
    expected = run_oracle(operator, table)
    for options in PATHS:
        assert_identical(run_engine(operator, table, **options), expected)


def keys(*values: int) -> pa.Table:
    rows = list(values) * 4
    return pa.table({"k": rows, "v": [float(value) for value in rows]})


def an_operator(function: Callable[..., None]) -> ss.Operator:
    declared = ss.operator(state=State, event={"k": int, "v": float}, emits={"x": int})
    return declared(function)


@an_operator
def every_class(state, event, emit):
    """Each kind of error that native code raises, told apart by its class."""
    k = event.k
    try:
        if k == 0:
            state.n += state.a[k + 8]
        elif k == 1:
            state.n = 7 // (k - 1)
        elif k == 2:
            state.x = event.v / (event.v - 2.0)
        elif k == 3:
            state.small[1] = 100 + 10 * k
        elif k == 4:
            state.x = math.sqrt(-event.v)
        elif k == 5:
            state.x = math.exp(event.v * 1000.0)
        elif k == 6:
            state.n = int(event.v * math.nan)
        elif k == 7:
            state.n = int(event.v * 1e300)
        elif k == 8:
            state.x = 0.0 ** (-event.v)
        elif k == 9:
            state.x = (event.v * 1e10) ** 100.0
        elif k == 10:
            state.n = 1 << (k - 20)
        elif k == 11:
            state.a[1:4] = state.a[:2]
        elif k == 12:
            state.n = min(state.a[3:3])
        elif k == 13:
            state.n = (1, 2, 3)[k % 5 + k]
        elif k == 14:
            assert k < 3, f"{k}"
        elif k == 15:
            raise TooMuch(k)
        elif k == 16:
            for i in range(1, 2, k - 16):
                state.n += i
        elif k == 17:
            state.x = math.log(event.v, event.v - 16.0)
        elif k == 18:
            state.n = sum(state.a[:: k - 18])
        elif k == 19:
            state.x = math.pow(0.0, -event.v)
    except IndexError:
        emit(1)
    except OverflowError:
        emit(2)
    except ZeroDivisionError:
        emit(3)
    except TooMuch:
        emit(4)
    except ValueError:
        emit(5)
    except AssertionError:
        emit(6)
    else:
        emit(0)
    emit(state.n)


def test_each_error_has_the_class_that_python_gives_it() -> None:
    agrees(every_class, keys(*range(20), 30), 80)  # shifting by -10: Python's own is another


@an_operator
def what_stays(state, event, emit):
    """What was stored and assigned before the exception stays, and nothing behind it."""
    a = b = 0
    try:
        a = 1
        state.a[0] += 1
        state.t[0] = 5
        a = state.a[event.k]
        b = a
        state.small[0:3] = state.a[event.k : event.k + 3]
        a, b = b * 2, 10 // (event.k - 2)
        state.a[1] += 1
    except (IndexError, ZeroDivisionError) as error:
        state.a[2] += a * 10 + b
        emit(state.t[0])
        if event.k == 8:
            state.n += 1000
            raise Rejected(f"{event.k}: {error}") from error
    except OverflowError:
        emit(-1)
    finally:
        state.n += 1
    emit(a)
    emit(state.a[2])
    state.a[event.k % 8] *= 5


@an_operator
def begun(state, event, emit):
    """What a constant is given to is assigned, whatever the rest of the body does."""
    try:
        found = turns = 0
        text = "none"
        for turns in range(event.k):
            found = state.a[turns * 2]
    except IndexError:
        emit(found * 100 + turns)
        if text == "none":
            return
    finally:
        state.n += found + turns
    emit(found)


def test_what_begins_a_try_as_a_constant_is_assigned() -> None:
    agrees(begun, keys(*range(7)))


def test_what_was_done_before_the_exception_stays() -> None:
    agrees(what_stays, keys(*range(-9, 10)))


def searched(state, k):
    """Return, break and continue through finally, in loops."""
    for turn in range(4):
        try:
            state.n += 1
            if turn == k:
                return state.a[k + 6]
            if turn == k - 1:
                continue
            if turn > k:
                break
        except IndexError:
            state.n += 10
            if k == 3:
                return -3
        finally:
            state.n += 100
    else:
        state.n += 1000
    return state.n


def overridden(state, k):
    try:
        return state.a[k]
    except IndexError:
        raise TooMuch(k, limit=7) from None
    finally:
        if k == 2:
            return -2
        while k == 3:
            k = 10 // (k - 3)


def nested(state, k):
    try:
        try:
            try:
                state.n = 10 // k
            finally:
                state.n += state.a[k]
        except ZeroDivisionError:
            state.n = 5
            raise
        except IndexError as inner:
            try:
                raise TooMuch(k)
            except TooMuch as outer:
                if k == 9:
                    raise outer
                if k == 10:
                    raise inner
                raise Other(str(outer)) from outer
        else:
            state.n += 3
            state.a[k] = 7 // (k - 4)
    except ARITHMETIC:
        state.n += 30
    except Rejected:
        state.n += 300
    return state.n


@an_operator
def through_helpers(state, event, emit):
    k = event.k
    try:
        emit(searched(state, k))
        emit(overridden(state, k))
        emit(nested(state, k))
    except (IndexError, Other, ZeroDivisionError):
        emit(-100)
    except Exception as error:
        emit(-200)
        if k == 12:
            raise error
    while True:
        try:
            k -= 1
            if k < 0:
                break
            if state.a[k] > 3:
                continue
            emit(k)
        except:  # noqa: E722
            k = 5
        finally:
            state.a[7] += 1


def test_all_ways_out_of_a_try_lead_through_its_finally() -> None:
    agrees(through_helpers, keys(*range(-2, 14)))


@an_operator
def until_it_raises(state, event, emit):
    """Loops that only an exception ends."""
    at = event.k
    try:
        while True:
            state.a[at] += at
            at += 1
    except IndexError:
        emit(at)
    while True:
        try:
            at -= 1
            emit(7 // at)
        except ZeroDivisionError:
            break
        finally:
            state.n += 1


def test_a_loop_may_end_by_an_exception() -> None:
    agrees(until_it_raises, keys(*range(9)))


def test_a_function_of_another_module_catches_for_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "catching_elsewhere.py").write_text(
        "class Empty(Exception):\n    pass\n\n"
        "def first_of(values, at):\n"
        "    try:\n"
        "        if at == 2:\n"
        "            raise Empty\n"
        "        return values[at]\n"
        "    except (IndexError, Empty):\n"
        "        return -1\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    elsewhere = importlib.import_module("catching_elsewhere")

    def uses(state, event, emit):
        emit(elsewhere.first_of(state.a, event.k))
        if event.k == 5:
            raise elsewhere.Empty(event.k)

    operator = an_operator(uses)
    expected = run_oracle(operator, keys(1, 2, 5, 9))
    assert expected.output["x"].to_pylist()[:3] == [1, -1, -1]
    assert_identical(run_engine(operator, keys(1, 2, 5, 9), horizon=0), expected)


def deposit(balances, key, amount):
    balances[key % 4] += amount
    if balances[key % 4] > 20:
        raise TooMuch(amount)
    return balances[key % 4]


def withdraw(balances, key, amount):
    balances[key % 4] -= amount


class Bank(ss.State):
    balances = boosted(ss.array(int, 4), deposit=(deposit, withdraw))
    refused = ss.scalar(int)
    work = ss.array(int, 4)


@ss.operator(state=Bank, event={"k": int}, emits={"x": int})
def banking(state, event, emit):
    """An operation that raises has changed nothing, wherever it runs."""
    try:
        emit(state.balances.deposit(event.k, 3))
    except ValueError:
        state.refused += 1
        emit(-state.refused)
        emit(state.balances.deposit(event.k, -14))
    finally:
        for turn in range(event.k * 20):
            state.work[event.k % 4] += turn


@pytest.mark.parametrize(
    "options",
    [
        *PATHS,
        {"threads": 2, "horizon": 8, "chunk": 2, "on_commit": True},
        {"threads": 1, "execution": "log_free"},
        {"threads": 1, "execution": "locked"},
    ],
    ids=str,
)
def test_an_operation_that_raises_is_not_done(options: dict[str, Any]) -> None:
    table = pa.table({"k": [0, 1, 2, 0, 0, 1] * 40})
    expected = run_oracle(banking, table)
    assert expected.state["refused"] > 5
    if options.get("on_commit"):
        options = options | {"on_commit": lambda transaction: None}
    assert_identical(run_engine(banking, table, **options), expected)


class Locked(ss.State):
    counts = ss.array(int, 4)
    locks = ss.locks(2)


def counted(state, k):
    with state.locks[k % 2], state.locks[1 - k % 2]:
        state.counts[k] += 1
        return state.counts[k]


@ss.operator(state=Locked, event={"k": int}, emits={"x": int})
def locking(state, event, emit):
    for turn in range(3):
        try:
            emit(counted(state, event.k + turn))
            with state.locks[turn]:
                state.counts[0] += 1
                if turn == event.k:
                    break
        except IndexError:
            with state.locks[0]:
                state.counts[3] += 1


@pytest.mark.parametrize("execution", ["ordered", "locked"])
def test_a_lock_is_given_back_by_the_exception_that_leaves_it(execution: str) -> None:
    table = pa.table({"k": [0, 1, 2, 3, 5] * 10})
    expected = run_oracle(locking, table)
    assert_identical(run_engine(locking, table, threads=1, execution=execution), expected)


class Wild(ss.State):
    at = ss.scalar(int)
    a = ss.array(int, 64)
    caught = ss.scalar(int)


@ss.operator(state=Wild, event={"k": int}, emits={"x": int})
def aborted(state, event, emit):
    """Runs that are dropped in the midst of a try: on inconsistent data, and in endless loops."""
    found = 0
    try:
        at = state.at
        while state.a[at % 64] != at:
            at = at + 1 if at < 1000 else state.a[at]
            found += 1
    except Exception:
        state.caught += 1
        emit(-1)
    finally:
        state.at = (state.at + event.k) % 64
        state.a[state.at] = state.at
    try:
        for turn in range(event.k * 30):
            state.a[turn] = turn
    except IndexError:
        emit(found)


@pytest.mark.parametrize("protocol", ["value", "eager"])
@pytest.mark.parametrize("limits", [None, ss.Limits(reads=16, writes=16)])
def test_what_ends_a_run_passes_every_handler(protocol: str, limits: ss.Limits | None) -> None:
    table = pa.table({"k": [1, 2, 3, 0, 5] * 60})
    expected = run_oracle(aborted, table)
    for chunk in (1, 4):
        options: dict[str, Any] = {"threads": 4, "horizon": 16, "chunk": chunk, "limits": limits}
        found = run_engine(aborted, table, protocol=protocol, execution="speculate", **options)
        assert_identical(found, expected)


def test_a_copy_catches_the_same_where_its_module_is_not(tmp_path: Path) -> None:
    copied = pickle.loads(pickle.dumps(through_helpers))
    assert_identical(
        run_engine(copied, keys(*range(13)), horizon=0),
        run_oracle(through_helpers, keys(*range(13))),
    )


class Odd(LookupError):
    pass


class Odder(Odd):
    """Named by no handler."""


@ss.pure
def parsed(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        if text == "odd":
            raise Odder(text)
        raise


@ss.operator(state=State, event={"k": str}, emits={"x": float})
def computed_before(state, event, emit):
    y = 0.5
    try:
        state.n += 1
        y = parsed(event.k)
    except ValueError:
        emit(-1.0)
    except Odd:
        emit(-2.0)
        if state.n > 3:
            raise
    emit(y)
    try:
        emit(float(ord(event.k[1])))
    except IndexError:
        emit(-3.0)
    emit(parsed(event.k))


def test_what_was_raised_before_the_operator_runs_is_caught_where_it_gets_there() -> None:
    table = pa.table({"k": ["1.5", "a", "odd", "7", "q"] * 3})
    expected = run_oracle(computed_before, table)
    assert {kind for _, kind, _ in expected.raised} == {"ValueError", "Odder"}
    for options in PATHS:
        copied = pickle.loads(pickle.dumps(computed_before))
        assert_identical(run_engine(copied, table, **options), expected)


def test_an_exception_that_gets_out_has_its_own_text_and_lines() -> None:
    with pytest.raises(Rejected, match=r"8: index 8 is out of bounds") as caught:
        what_stays.run_sequential(keys(8))
    with ss.Engine(what_stays, horizon=0) as engine, pytest.raises(Rejected) as found:
        engine.process(keys(8))
    assert str(found.value) == str(caught.value)
    assert isinstance(found.value.__cause__, IndexError)
    line = found.value.__traceback__
    assert line is not None
    while line.tb_next is not None:
        line = line.tb_next
    assert "raise Rejected" in Path(__file__).read_text().splitlines()[line.tb_lineno - 1]


# ---- the oracle ----


@an_operator
def swallows(state, event, emit):
    while True:
        try:
            state.n = state.a[event.k]
            break
        except:  # noqa: E722
            state.n += 1
            break
        finally:
            if event.k < 5:
                return


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), SystemExit(1), ss.CompileError("op", "file", 1, "why", "how")]
)
def test_nothing_in_the_oracle_is_swallowed_but_the_operators_own(
    error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupts(self: Any, index: Any) -> Any:
        raise error

    monkeypatch.setattr("specstream.compiler.oracle_objects.view.View.__getitem__", interrupts)
    assert steps_aside(error)
    with pytest.raises(type(error)):
        swallows.run_sequential(keys(1))


@ss.operator(state=State, event={"k": int, "v": float}, emits={"x": int})
def plain(state, event, emit):
    """Many ways to raise, and nothing that catches."""
    state.a[event.k] += 7 // event.k
    state.x = math.exp(event.v) / event.v
    state.small[event.k] = int(event.v)
    emit(min(state.a[: event.k]))


# ---- what is refused ----


def catches_what_is_none(state, event, emit):
    try:
        state.n = 1
    except state.n:
        pass


def catches_a_tuple_in_a_tuple(state, event, emit):
    try:
        state.n = 1
    except (ValueError, ARITHMETIC):
        pass


def catches_an_interrupt(state, event, emit):
    try:
        state.n = 1
    except (ValueError, KeyboardInterrupt):
        pass


def catches_ours(state, event, emit):
    try:
        state.n = 1
    except ss.CompileError:
        pass


def reads_it(state, event, emit):
    try:
        state.n = 1
    except ValueError as error:
        emit(error)


def reads_it_later(state, event, emit):
    try:
        state.n = 1
    except ValueError as error:
        state.n = 2
    raise error  # noqa: F821


def is_a_variable_as_well(state, event, emit):
    error = 1
    try:
        state.n = error
    except ValueError as error:
        state.n = 2


def has_one_name_for_two(state, event, emit):
    try:
        state.n = 1
    except ValueError as error:
        try:
            state.n = 2
        except KeyError as error:
            state.n = 3


def raises_nothing(state, event, emit):
    try:
        state.n = 1
    finally:
        raise


def raises_what_is_none(state, event, emit):
    try:
        raise state.n
    except ValueError:
        pass


def raises_an_exit(state, event, emit):
    try:
        raise SystemExit(1)
    except ValueError:
        pass


class Busy(Exception):
    def __init__(self, amount):
        super().__init__(10 // amount)


def makes_a_busy_one(state, event, emit):
    try:
        raise Busy(event.k)
    except Busy:
        pass


def makes_it_wrongly(state, event, emit):
    try:
        raise TooMuch
    except TooMuch:
        pass


def formats_wrongly(state, event, emit):
    try:
        raise Rejected(f"{event.v:d}")
    except Rejected:
        pass


def catches_a_group(state, event, emit):
    try:
        state.n = 1
    except* ValueError:
        state.n = 2


def may_be_undefined(state, event, emit):
    try:
        state.n = state.a[event.k]
        y = 1
    except IndexError:
        state.n = 2
    emit(y)


def may_be_undefined_in_the_handler(state, event, emit):
    try:
        y = state.a[event.k]
    except IndexError:
        emit(y)


def may_be_deleted(state, event, emit):
    y = 1
    try:
        del y
        state.n = state.a[event.k]
        y = 2
    except IndexError:
        emit(y)


def may_be_deleted_by_the_body(state, event, emit):
    y = state.a[event.k]
    try:
        state.n = 1
        del y
        state.n = state.a[event.k]
        y = 2
    except IndexError:
        emit(y)


def may_be_undefined_in_finally(state, event, emit):
    try:
        y = state.a[event.k]
    finally:
        emit(y)


REFUSED: list[tuple[Callable[..., None], int, str]] = [
    (catches_what_is_none, 3, r"state\.n is not one.*name a class"),
    (catches_a_tuple_in_a_tuple, 3, "ARITHMETIC.* is not one"),
    (catches_an_interrupt, 3, "KeyboardInterrupt cannot be caught.*Exception"),
    (catches_ours, 3, "CompileError cannot be caught"),
    (reads_it, 4, "'error' is a caught exception.*raise error"),
    (reads_it_later, 5, "'error' is a caught exception"),
    (is_a_variable_as_well, 4, "a variable elsewhere.*name of its own"),
    (has_one_name_for_two, 6, "uses the same name.*another name"),
    (raises_nothing, 4, "outside an except clause.*raise SomeError"),
    (raises_what_is_none, 2, r"state\.n is not an exception class.*name a class"),
    (raises_an_exit, 2, "SystemExit cannot be raised"),
    (makes_a_busy_one, 2, "Busy has an __init__ that does more"),
    (makes_it_wrongly, 2, "TooMuch cannot be made of this.*amount"),
    (formats_wrongly, 2, "float64 may not be formatted by 'd'"),
    (catches_a_group, 1, r"except\*.*write except"),
    (may_be_undefined, 6, "'y' may be undefined"),
    (may_be_undefined_in_the_handler, 4, "'y' may be undefined"),
    (may_be_deleted, 7, "'y' may be undefined"),
    (may_be_undefined_in_finally, 4, "'y' may be undefined"),
]


@pytest.mark.parametrize(
    ("function", "line", "message"), REFUSED, ids=lambda x: getattr(x, "__name__", str(x))
)
def test_what_cannot_be_caught_or_raised_is_refused(
    function: Callable[..., None], line: int, message: str
) -> None:
    with pytest.raises(ss.CompileError, match=f"(?s){message}") as caught:
        ss.Engine(an_operator(function), horizon=0)
    assert caught.value.line == function.__code__.co_firstlineno + line


def test_what_a_try_deletes_may_be_gone_in_its_handler() -> None:
    test_what_cannot_be_caught_or_raised_is_refused(
        may_be_deleted_by_the_body, 8, "'y' may be undefined"
    )


# ---- the compiler ----


def test_the_class_of_an_error_costs_an_operator_nothing_that_catches_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def instructions() -> int:
        program, layout = plain.program, plain.layout
        entry = compile_entry(program, layout, plain.event, plain.emits, "transactional")
        code: str = entry.library.get_asm_str()
        return sum(line.startswith("\t") and line[1] != "." for line in code.splitlines())

    assert not plain.program.catches
    # Whatever the tests are compiled with: what is left over is left out by the optimiser.
    monkeypatch.setattr(numba.config, "OPT", type(numba.config.OPT)("max"))
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", "")
    monkeypatch.setattr(variants, "_loaded", {})
    as_it_is = instructions()
    monkeypatch.setattr(variants, "_loaded", {})
    monkeypatch.setattr(exception_status, "number_of", lambda error: LEAVES)
    assert instructions() == as_it_is


def test_every_fault_of_the_compiler_says_which_error_it_is() -> None:
    """A fault without a class passes every handler, so none may be left."""
    nameless = []
    files = sorted(Path(inspect.getfile(ss), "..", "compiler").resolve().rglob("*.py"))
    assert len(files) > 100
    for file in files:
        for node in ast.walk(ast.parse(file.read_text())):
            is_nameless = isinstance(node, ast.Raise) and "OperatorFault" in ast.dump(node)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                is_nameless = node.func.attr == "fault_if" and len(node.args) < 2
            if is_nameless:
                nameless.append(f"{file.name}:{getattr(node, 'lineno', 0)}")
    assert nameless == []

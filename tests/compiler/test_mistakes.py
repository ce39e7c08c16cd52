"""A mistake is told with its line, why, and what to write: in our words, and never in Numba's."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import inspect
import re
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba.core.errors
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from numba.core import ir, types
from numba.core.errors import NumbaWarning
from numba.core.typed_passes import NopythonTypeInference
from support.compiler import mistakes
from support.compiler.mistakes import MISTAKES
from test_invalid import load

import specstream as ss
from specstream.compiler import entry_points as variants
from specstream.compiler.backend import memory, numba_pipeline

EVENT = {"key": int, "x": float, "on": bool, "name": str, "maybe": ss.nullable(int)}
EMITS = {"n": int, "x": ss.nullable(float)}
TABLE = pa.table(
    {"key": [3, 0], "x": [2.5, 1.0], "on": [True, False], "name": ["abc", ""], "maybe": [1, None]}
)
# Of Numba's own world: passes, types, places.
THEIRS = re.compile(
    r"numba\b(?!_DEVELOPER)|nopython|Literal\[|specstream\.|llvm|lowering|getiter|OptionalType|"
    r"UniTuple|Dispatcher|\$\d|__ss_|\bNone of the|signature",
    re.IGNORECASE,
)


def operator_of(text: str, name: str, folder: Path) -> ss.Operator:
    module = load(mistakes.module(text), name, folder)
    return ss.operator(state=module.State, event=EVENT, emits=EMITS)(module.process)


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_told_with_its_line_and_what_to_write(name: str, tmp_path: Path) -> None:
    mistake = MISTAKES[name]
    with pytest.raises(ss.CompileError) as caught:
        ss.Engine(operator_of(mistake.wrong, "mistake", tmp_path), horizon=0).close()
    lines = mistakes.module(mistake.wrong).splitlines()
    error = caught.value
    assert lines[error.line - 1].endswith("# <-"), f"line {error.line}: {error}"
    assert error.filename == str(tmp_path / "mistake.py")
    said, _, hint = str(error).partition("; ")
    assert mistake.problem in said, error
    assert hint, error
    assert mistake.hint in str(error), error
    assert not THEIRS.search(str(error).replace(str(tmp_path), "")), error


@pytest.mark.parametrize("name", MISTAKES)
def test_what_to_write_instead_is_an_operator(name: str, tmp_path: Path) -> None:
    operator = operator_of(MISTAKES[name].right, "mended", tmp_path)
    found, wanted = run_engine(operator, TABLE, horizon=0), MISTAKES[name].gives
    assert_identical(found, run_oracle(operator, TABLE))
    if wanted is not None:
        assert [tuple(row.values()) for row in found.output.to_pylist()] == wanted


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda event: None, r"takes \(event\); expected exactly three parameters"),
        (lambda state, event: None, r"expected exactly three parameters: \(state, event, emit\)"),
        (lambda event, state, emit: None, r"expected \(state, event, emit\), in this order"),
        (max, "builtin_function_or_method; expected a plain function: def process"),
    ],
)
def test_a_function_that_takes_something_else_is_told_what_to_take(
    function: Callable[..., Any], said: str
) -> None:
    with pytest.raises(ss.DeclarationError, match=said):
        ss.operator(state=Plain, event=EVENT, emits=EMITS, name="wrong")(function)


# ---- whatever Numba raises ----


def of(kind: type[Exception]) -> Exception:
    """An error of that class, with words that are Numba's."""
    location = ir.Loc("planted.py", 7)
    special: dict[str, tuple[Any, ...]] = {
        "NotDefinedError": ("planted", location),
        "UntypedAttributeError": (types.int64, "name", location),
        "ConstantInferenceError": ("planted", location),
        "InternalError": (ValueError("planted"),),
        "NonexistentTargetError": (ValueError("planted"),),
        "InternalTargetMismatchError": ("planted", "planted", int),
        "ForceLiteralArg": ({0},),
    }
    return kind(*special.get(kind.__name__, ("planted words of its own",)))


CLASSES = [
    kind
    for _, kind in inspect.getmembers(numba.core.errors, inspect.isclass)
    if issubclass(kind, Exception) and kind.__module__ == numba.core.errors.__name__
]


def raising(kind: type[Exception]) -> Callable[..., Any]:
    def planted(*args: Any, **options: Any) -> Any:
        raise of(kind)

    return planted


PLACES: dict[str, tuple[Any, str]] = {
    "a pass of ours": (numba_pipeline._OneTypePerName, "run_pass"),
    "a pass of its own": (NopythonTypeInference, "run_pass"),
    "the writing of instructions": (memory.Run, "load"),
}


class Plain(ss.State):
    total = ss.scalar(int)


@ss.operator(state=Plain, event={"x": int}, emits={})
def plain(state, event, emit):
    state.total += event.x


@pytest.fixture
def uncached(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked for is compiled."""
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", "")
    monkeypatch.setattr(variants, "_loaded", {})


@pytest.mark.usefixtures("uncached")
@pytest.mark.parametrize("place", PLACES)
def test_no_error_of_numbas_reaches_a_user(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = [kind for kind in CLASSES if not issubclass(kind, Warning)]
    assert len(kinds) > 25
    owner, name = PLACES[place]
    for kind in kinds:
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, raising(kind))
            with pytest.raises(ss.CompileError) as caught:
                ss.Engine(plain, horizon=0).close()
        error = caught.value
        shown = "".join(traceback.format_exception(error))
        assert error.filename == __file__, kind
        assert "planted" not in str(error), f"{kind}: {error}"
        assert not THEIRS.search(str(error).replace(__file__, "")), f"{kind}: {error}"
        assert "planted words" not in shown, kind
        assert error.__cause__ is None, kind


@pytest.mark.usefixtures("uncached")
def test_no_warning_of_numbas_reaches_a_user(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: list[Any] = [kind for kind in CLASSES if issubclass(kind, NumbaWarning)]
    right = numba_pipeline._OneTypePerName.run_pass

    def warning(self: Any, state: Any) -> Any:
        for kind in kinds:
            warnings.warn(str(of(kind)), kind, stacklevel=1)
        return right(self, state)

    monkeypatch.setattr(numba_pipeline._OneTypePerName, "run_pass", warning)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ss.Engine(plain, horizon=0).close()


def test_what_is_not_numbas_is_told_with_its_cause(
    monkeypatch: pytest.MonkeyPatch, uncached: None
) -> None:
    def planted(*args: Any) -> Any:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(memory.Run, "load", planted)
    with pytest.raises(ss.CompileError, match="specstream does not know why") as caught:
        ss.Engine(plain, horizon=0)
    assert caught.value.__cause__ is not None

"""A pickled operator is the same operator, also where its module is not."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import math
import pickle
import subprocess
import sys
import traceback
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

import specstream as ss
from specstream.compiler import pickling as shipping

if TYPE_CHECKING:
    NotThere = int

WEIGHTS = (3, 5, 7)
SCALE = np.int64(3)
DOOR = "closed"


class TooMuch(ValueError):
    pass


class Sums(ss.State):
    total = ss.scalar(float)
    counts = ss.array(np.uint16, (3, 4), fill=2, share=4)
    last = ss.scratch(int, 2)


def weight(x: "NotThere") -> int:
    return WEIGHTS[x % len(WEIGHTS)]


def weighted(x):
    return weight(x) * math.sqrt(x) * float(SCALE)


def make(limit):
    @ss.operator(
        state=Sums,
        event={"x": int, "name": str},
        emits={"total": float, "name": str, "open": bool},
        name="weighing",
    )
    def weigh(state, event, emit):
        """Weighs."""
        if event.x > limit:
            raise TooMuch(f"{event.x} is more than {limit}")
        state.total += weighted(event.x) + event.random(0)
        state.counts[event.x % 3, 1] += np.int64(1)
        emit(state.total, event.name, event.name == DOOR)

    return weigh


weigh = make(100)
TABLE = {"x": list(range(50)), "name": ["closed", "open"] * 25}


def test_the_copy_gives_the_same_answer_and_shares_the_compiled_code() -> None:
    copy = pickle.loads(pickle.dumps(weigh))
    again = pickle.loads(pickle.dumps(copy))
    expected = weigh.run_sequential(TABLE)
    for operator in (copy, again):
        assert operator.program.fingerprint == weigh.program.fingerprint
        assert (operator.layout, operator.event, operator.emits) == (
            (weigh.layout, weigh.event, weigh.emits)
        )
        assert (operator.name, operator.__doc__) == ("weighing", "Weighs.")
        assert operator.run_sequential(TABLE).output.equals(expected.output)
        with ss.Engine(operator, horizon=4, chunk=2) as engine:
            assert engine.process(TABLE).equals(expected.output)


def test_globals_travel_with_the_values_they_had_at_decoration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expected = weigh.run_sequential(TABLE).output
    monkeypatch.setitem(globals(), "WEIGHTS", (0, 0, 0))
    copy = pickle.loads(pickle.dumps(weigh))
    assert copy.run_sequential(TABLE).output.equals(expected)


def test_errors_of_the_copy_point_into_the_source_and_have_their_class() -> None:
    copy = pickle.loads(pickle.dumps(weigh))
    with pytest.raises(TooMuch, match="101 is more than 100") as raised:
        copy.run_sequential({"x": [101], "name": ["open"]})
    lines = traceback.extract_tb(raised.value.__traceback__)
    here = next(line for line in lines if line.name == "weigh")
    assert here.line == 'raise TooMuch(f"{event.x} is more than {limit}")'
    assert here.filename.startswith(__file__)
    assert here.lineno is not None
    assert Path(__file__).read_text().splitlines()[here.lineno - 1].strip() == here.line


def test_it_needs_neither_its_module_nor_its_file(tmp_path: Path) -> None:
    module = tmp_path / "elsewhere.py"
    module.write_text(Path(__file__).read_text())
    run = [sys.executable, "-c"]
    pickled = tmp_path / "pickled"
    subprocess.run(
        [*run, "import pickle, sys, elsewhere as e; pickle.dump(e.weigh, open(sys.argv[1], 'wb'))",
         str(pickled)],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    module.unlink()
    code = f"""
import pickle, sys
operator = pickle.load(open({str(pickled)!r}, "rb"))
assert "elsewhere" not in sys.modules
run = operator.run_sequential({TABLE!r})
print(run.output["total"].to_pylist())
try:
    operator.run_sequential({{"x": [101], "name": ["open"]}})
except ValueError as error:
    print(type(error).__name__, error)
"""
    (tmp_path / "empty").mkdir()
    found = subprocess.run(
        [*run, code], cwd=tmp_path / "empty", check=True, capture_output=True, text=True
    ).stdout.splitlines()
    assert found[0] == str(weigh.run_sequential(TABLE).output["total"].to_pylist())
    assert found[1] == "TooMuch 101 is more than 100"


def test_an_exception_class_that_version_0_1_has_shipped_is_made_again() -> None:
    # Then only the builtin class that it derives from was written down.
    shipped = shipping._Raised.__new__(shipping._Raised)
    shipped.__setstate__({"module": "nowhere", "qualname": "Lost", "base": "KeyError"})
    made = shipping._original(shipped, [], {})
    assert issubclass(made, KeyError)
    assert (made.__module__, made.__qualname__) == ("nowhere", "Lost")
    again = pickle.loads(pickle.dumps(shipping._raised(made)))
    assert again == shipped

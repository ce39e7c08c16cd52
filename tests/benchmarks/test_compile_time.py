"""How compile times are measured: of an operator that works, without a cache and with one."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

from bench import compile_time, hundred_lines

pytestmark = pytest.mark.slow


def test_the_operator_has_a_hundred_lines_and_does_what_they_say() -> None:
    text = Path(hundred_lines.__file__).read_text()
    lines = text.partition("begin here ----\n")[2].strip().splitlines()
    assert len(lines) == pytest.approx(100, abs=5)
    rng = np.random.default_rng(7)
    count = 400
    table = pa.table(
        {
            "time": np.cumsum(rng.integers(0, 8, count)),
            "from_": rng.integers(0, 6, count),
            "to": rng.integers(0, 6, count),
            "amount": np.round(rng.lognormal(4.0, 2.0, count), 2) * rng.choice([1.0, -1.0], count),
            "way": rng.choice(["card", "cash", "transfer", "cheque"], count),
            "note": rng.choice(["", "urgent: rent", "URGENT!", "thanks"], count),
        }
    )
    expected = run_oracle(hundred_lines.payments, table)
    kinds = set(expected.output["kind"].to_pylist())
    assert kinds == {"refused", "cash", "unusual", "burst", "between", "note", "largest"}
    assert_identical(run_engine(hundred_lines.payments, table, horizon=0), expected)
    assert witness.assert_agrees(hundred_lines.payments, table) == count


def test_compile_times_are_measured_with_an_empty_and_a_full_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "times.json"
    monkeypatch.setattr("sys.argv", ["compile_time", "--rounds", "1", "--json", str(file)])
    assert compile_time.main() == 0
    lines = {line["what"]: line for line in json.loads(file.read_text())["lines"]}
    assert list(lines) == ["import specstream", "first compile", "from the cache"]
    assert lines["from the cache"]["seconds"] < lines["first compile"]["seconds"]
    shown = capsys.readouterr().out
    assert all(line in shown for line in lines)
    assert "3.00 s" in shown

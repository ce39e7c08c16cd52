"""The page of versions that were tried says what ``make compat`` has stored, and no more."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def compat() -> Any:
    spec = importlib.util.spec_from_file_location("compat", ROOT / ".ci" / "compat.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["compat"] = module  # for its dataclass
    spec.loader.exec_module(module)
    return module


def test_the_table_is_that_of_what_is_stored(compat: Any) -> None:
    assert compat.PAGE.read_text() == compat.draw(), "run: python .ci/compat.py --draw"
    kept = json.loads(compat.TRIED.read_text())
    names = [one.name for one in compat.combinations()]
    assert list(kept) == [name for name in names if name in kept]
    # What is in each environment of the tests has no need to be there; all else is.
    assert set(names) - set(kept) <= {"python3.11-pyspark-newest"}
    assert all(one["passed"] for one in kept.values() if one["result"] == "passed")
    assert not [name for name, one in kept.items() if one["result"] == "failed"]


def test_a_result_replaces_that_of_its_combination(compat: Any, tmp_path: Path) -> None:
    first, second, *_, last, _, with_spark = compat.combinations()
    for one in (first, second):
        one.versions = {"python": "3.11.7", "numba": "0.61.0", "numpy": "1.26.0", "pyarrow": "19"}
        one.result, one.passed = "passed", 525
    last.result, last.said = "skipped", "no such Python"
    to = tmp_path / "tried.json"
    with_spark.versions = {**first.versions, "pyspark": "4.3.0"}
    with_spark.result, with_spark.passed = "passed", 40
    compat.store([second, with_spark, last, first], "quick", to)
    second.result, second.passed, second.failed = "failed", 523, 2
    compat.store([second], "all", to)
    kept = json.loads(to.read_text())
    assert list(kept) == [first.name, second.name, last.name, with_spark.name]
    drawn = compat.drawn(kept)
    assert "| 3.11.7 | 0.61.0 | 1.26.0 | 19 | - | 525 | 0 |\n" in drawn
    assert "| 3.11.7 | 0.61.0 | 1.26.0 | 19 | - | 525 | 2 |\n" in drawn
    assert "| 3.11.7 | 0.61.0 | 1.26.0 | 19 | 4.3.0 | 40 | 0 |\n" in drawn
    assert f" Python {last.python} was not tried." in drawn

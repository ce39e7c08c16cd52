"""What is no operator is refused as one: with the error, the line and the words of specstream."""

from __future__ import annotations

import importlib.util
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa
import pytest
from conftest import run_engine, run_oracle
from support.generated import invalid

import specstream as ss

EVENT: dict[str, Any] = {"k": int, "f": float, "b": bool, "s": str, "o": ss.nullable(int)}
EMITS: dict[str, Any] = {"i": int, "f": ss.nullable(float)}
TABLE = pa.table(
    {"k": [1, 2], "f": [0.5, 1.5], "b": [True, False], "s": ["a", "b"], "o": [1, None]}
)


def load(text: str, name: str, folder: Path) -> ModuleType:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def try_programs(seeds: range, folder: Path) -> dict[str, int]:
    """How many were refused when declared, refused when compiled, and run."""
    sys.path.insert(0, str(folder))
    try:
        return _try_programs(seeds, folder)
    finally:
        sys.path.remove(str(folder))


def _try_programs(seeds: range, folder: Path) -> dict[str, int]:
    (folder / "everything.py").write_text(invalid.HEADER)
    start = "from everything import *\nfrom everything import State\n"
    counts = dict.fromkeys(("declared", "compiled", "run"), 0)
    for seed in seeds:
        text = invalid.Writer(random.Random(seed)).operator(1 + seed % 3)
        try:
            compile(text, "generated", "exec")
        except SyntaxError:
            continue
        module = load(start + text, f"invalid_{seed}", folder)
        stage = "declared"
        try:
            operator = ss.operator(state=module.State, event=EVENT, emits=EMITS)(module.generated)
            stage = "compiled"
            with ss.Engine(operator, horizon=0):
                stage = "run"
        except ss.CompileError as error:
            refused = error  # anything else fails the test: an error of Numba's, or a bug of ours
        counts[stage] += 1
        if stage != "run":
            assert refused.filename in (module.__file__, str(folder / "everything.py")), text
            assert not any(word in str(refused) for word in ("specstream.", "Literal[", "numba"))
            continue
        expected, found = (run(operator, TABLE) for run in (run_oracle, run_engine))
        assert [one[:2] for one in found.raised] == [one[:2] for one in expected.raised], text
        assert found.output.equals(expected.output), text
    return counts


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_random_mistakes_are_refused_by_name(tmp_path: Path) -> None:
    counts = try_programs(range(160), tmp_path)
    assert min(counts.values()) > 0, counts

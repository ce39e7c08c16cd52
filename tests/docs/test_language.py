"""The tables of the reference of the language say what the compiler's records say."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from specstream.compiler.language.methods import METHODS, REFUSED

WRITER = Path(__file__).parents[2] / "docs" / "contributing" / "write_language.py"


@pytest.fixture(scope="module")
def writer() -> Any:
    spec = importlib.util.spec_from_file_location("write_language", WRITER)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_are_those_of_the_records(writer: Any) -> None:
    said = f"run .venv/bin/python docs/contributing/{WRITER.name}"
    assert writer.page() == writer.PAGE.read_text(), said


@pytest.mark.parametrize("records", [METHODS, REFUSED], ids=["methods", "refused"])
def test_each_record_is_one_row(
    records: dict[tuple[str, str], Any], writer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = writer.page().splitlines()
    for key in [one for one in records if one[0] in ("local deque", "Counter", *writer.KINDS)]:
        with monkeypatch.context() as without:
            without.delitem(records, key)
            left = writer.page().splitlines()
        assert len(left) == len(lines) - 1, key

"""What strings cost is measured beside pyarrow: new ones and known ones, entered and not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench import strings


def test_codes_are_measured_beside_a_dictionary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "costs.json"
    arguments = ["strings", "--rounds", "1", "--rows", "2000", "--json", str(file)]
    monkeypatch.setattr("sys.argv", arguments)
    assert strings.main() == 0
    lines = {line["what"]: line for line in json.loads(file.read_text())["lines"]}
    assert list(lines) == ["new", "known", "new, not entered", "known, not entered"]
    for line in lines.values():
        assert line["ratio"] == line["codes"] / line["encode"] > 0
    shown = capsys.readouterr().out
    assert "Numbers of 2,000 strings" in shown
    assert "dictionary_encode" in shown

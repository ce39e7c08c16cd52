"""The picture of the guide is that of its program."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "rules.md"


def test_the_picture_of_the_guide_is_what_its_program_draws(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    blocks = re.findall(r"^(?:```|<!-- )python\n(.*?)^(?:```|-->)$", GUIDE.read_text(), re.S | re.M)
    path = tmp_path / "guide.py"
    path.write_text("\n".join(blocks[:2]))
    monkeypatch.chdir(tmp_path)
    exec(compile(path.read_text(), os.fspath(path), "exec"), {"__name__": "guide"})
    stored = GUIDE.with_name("rules.svg")
    assert stored.read_text() == (tmp_path / "rules.svg").read_text(), f"draw it into {stored}"

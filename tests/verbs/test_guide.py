"""The picture of the guide is that of its program."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guides" / "verbs.md"


def test_the_picture_of_the_guide_is_what_its_program_draws(tmp_path: Path) -> None:
    found = re.search(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    assert found is not None
    path = tmp_path / "guide.py"
    path.write_text(found[1])
    scope: dict[str, Any] = {"__name__": "guide"}
    exec(compile(found[1], str(path), "exec"), scope)
    scope["p"].draw(tmp_path / "verbs.svg")
    stored = GUIDE.with_name("verbs.svg")
    assert stored.read_text() == (tmp_path / "verbs.svg").read_text(), f"draw it into {stored}"

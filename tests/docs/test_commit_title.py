"""What the hook says of a commit's title."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / ".ci" / "check-title"


def complaint(message: str, tmp_path: Path) -> str:
    file = tmp_path / "COMMIT_EDITMSG"
    file.write_text(message)
    done = subprocess.run([CHECK, file], capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == bool(done.stderr)
    return done.stderr


@pytest.mark.parametrize(
    "message",
    ["Add a sink\n", "Feed the sink\n\nIt was hungry.", f"A{'b' * 71}\n", "Merge branch 'x'\n"],
)
def test_a_title_that_says_what_a_commit_does_is_taken(message: str, tmp_path: Path) -> None:
    assert not complaint(message, tmp_path)


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (f"A{'b' * 72}\n", "has 73 characters; at most 72"),
        ("add a sink\n", "begins with no capital"),
        ("Added a sink\n", "begins with 'Added'"),
        ("Add a sink.\n", "ends with a full stop"),
        ("Add a sink\nand another\n", "needs an empty line behind it"),
    ],
)
def test_another_one_is_refused(message: str, expected: str, tmp_path: Path) -> None:
    assert expected in complaint(message, tmp_path)

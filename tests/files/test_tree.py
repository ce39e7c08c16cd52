"""Files of a directory are there whole or not at all, whoever else writes there."""

from __future__ import annotations

from pathlib import Path

from specstream.files.tree import LocalTree


def test_who_goes_on_in_a_file_that_another_has_published_changes_nothing(tmp_path: Path) -> None:
    first, second = LocalTree(tmp_path), LocalTree(tmp_path)
    with first.writing("part") as stopped:
        stopped.write(b"the first")
        stopped.flush()
        with second.writing("part") as file:
            file.write(b"second")
        second.publish(["part"])
        stopped.write(b", which goes on")
    assert (tmp_path / "part").read_bytes() == b"second"

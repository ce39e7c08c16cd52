"""What version 0.2 has written is read: an operator whose compiler was one flat folder."""

from __future__ import annotations

from pathlib import Path

from specstream.checkpoint.format.recorded_operator import unpickled

RECORDED = Path(__file__).parent / "version_0_2" / "operator.pickle"
EVENTS = {"key": [1, 2, 1, 3], "word": ["abcd", "abcde", "  ef ", "ghijk"]}


def test_a_recorded_operator_runs() -> None:
    """It has a helper, a dict of its module, a Counter, and containers."""
    operator = unpickled(RECORDED.read_bytes())
    rows = operator.run_sequential(EVENTS).output.to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("one", 5),
        ("two", 6),
        ("one", 8),
        ("more", 6),
    ]

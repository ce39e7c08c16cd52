"""The messages that the documentation quotes are those that are printed."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# Messages of Python, pip and Spark, of which we have no source.
NOT_OURS = (
    "No module named",
    "Could not find valid SPARK_HOME",
    "Cannot run program",
    "STREAMING_CONNECT_SERIALIZATION_ERROR",
    "STATE_STORE_CHECKPOINT_LOCATION_NOT_EMPTY",
    "ValueError: unlucky",
    "KeyError: 1",
    "bigger than spark.driver.maxResultSize",
)
# So much of a quote is in the sources, in pieces of so many letters; the rest is names and numbers.
COVERED = 0.35
PIECE = 12


def literals() -> str:
    """What the sources have as texts, in f-strings between the braces."""
    paths = [path for room in ("specstream", "operators") for path in (ROOT / room).rglob("*.py")]
    found = [
        node.value
        for path in sorted(paths)
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]
    return re.sub(r"[ \n]+", " ", "\0".join(found))


def quoted() -> Iterator[str]:
    """The terms of the page by symptom, and the messages of the run book."""
    page = (DOCS / "troubleshooting.md").read_text()
    terms = re.findall(r"^(`.*)\n: ", page, re.MULTILINE)
    messages = re.findall(
        r"^- (`[^`]+`)(?: \(.*\))?$", (DOCS / "runbook.md").read_text(), re.MULTILINE
    )
    for text in terms + messages:
        yield from (one for one in re.findall(r"`([^`]+)`", text) if " " in one)


def covered(message: str, sources: str) -> float:
    """How much of a message is made of pieces of the sources' texts, each of some length."""
    at = found = 0
    while at < len(message):
        end = at + PIECE
        if end > len(message) or message[at:end] not in sources:
            at += 1
            continue
        while end < len(message) and message[at : end + 1] in sources:
            end += 1
        found += end - at
        at = end
    return found / len(message)


@pytest.fixture(scope="module")
def sources() -> str:
    return literals()


def test_each_quoted_message_is_one_of_ours(sources: str) -> None:
    quotes = [one for one in quoted() if not any(name in one for name in NOT_OURS)]
    assert len(quotes) > 40
    of_sources = {one: covered(one, sources) for one in quotes}
    assert {one: share for one, share in of_sources.items() if share < COVERED} == {}


def test_a_message_that_nobody_prints_is_found(sources: str) -> None:
    message = "operator 'number': the moon is full, and rows are not counted before dawn"
    assert covered(message, sources) < COVERED

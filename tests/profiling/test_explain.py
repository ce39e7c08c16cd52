"""What explain() says of an operator: complete, and no more than the operator may do."""

# Operators carry no types, as those of users do not; some are wrong on purpose.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import dataclasses
import heapq
import json
import random
from decimal import Decimal
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from conftest import assert_identical, elements, run_oracle
from support import generated
from support.commands import invoke
from support.operators import families
from support.operators.families import FAMILY

import specstream as ss
from specstream.declarations.state_layout import Layout
from specstream.structures import add, allocate, boosted_set, increment


class Mixed(ss.State):
    grid = ss.array(np.int32, (5, 7))
    last = ss.array(float, 10)
    total = ss.scalar(int)
    seen = ss.scalar(int)
    unused = ss.array(bool, 3)
    work = ss.scratch(int, 4)
    users = boosted_set(8)
    nodes = ss.heap(4, 2)
    locks = ss.locks(4)


EVENT = {"i": int, "j": int, "x": float, "spare": str, "o": ss.nullable(int)}


def bump(row, j):
    row[j] += 1
    return row


def biggest(values):
    return max(values)


@ss.operator(state=Mixed, event=EVENT, emits={"n": int})
def mixed(state, event, emit):
    add(state, "total", 1)
    n = increment(state, "seen")
    row = state.grid[event.i]
    if event.is_null("o"):
        row = state.grid[0]
    same = bump(row, event.j)
    state.last[0] = state.last[-9] + biggest(state.last[2:4])
    state.work[1] = same[3]
    for at, one in enumerate(state.grid):
        n += one[at]
    state.users.insert(event.i)
    state.users.contains(n)
    with state.locks[event.j]:
        n += len(state.unused)
    if event.x > 9.0:
        node = allocate(state.nodes)
        state.nodes[node, 1] = n
    emit(n)


def said(operator: ss.Operator, action: str) -> set[tuple[str, int]]:
    found = operator.explain()
    first = found.functions[0].line
    return {
        (one.text, one.line - first)
        for one in found.accesses
        if one.action == action and one.function == operator.name
    }


def test_accesses_are_told_with_their_lines_through_names_and_helpers() -> None:
    assert said(mixed, "read") == {
        ("last[-9]", 7),
        ("grid[event.i, 3]", 8),
        ("grid[0, 3]", 8),
        ("grid[..., at]", 10),
        ("nodes", 16),
    }
    assert said(mixed, "written") == {
        ("last[0]", 7),
        ("work[1]", 8),
        ("nodes", 16),
        ("nodes[node, 1]", 17),
    }
    assert said(mixed, "updated") == {("total", 1), ("seen", 2)}
    assert said(mixed, "operated") == {("users.insert(event.i)", 11), ("users.contains(n)", 12)}
    assert said(mixed, "locked") == {("locks[event.j]", 13)}
    inside = {(one.function, one.action, one.text) for one in mixed.explain().accesses}
    assert {
        ("bump", "read", "grid[event.i, j]"),
        ("bump", "written", "grid[0, j]"),
        ("biggest", "read", "last[2:4]"),
    } <= inside
    assert mixed.explain().columns_read == ("i", "o", "j", "x")


def test_the_layout_is_that_of_the_state() -> None:
    fields = {one.name: one for one in mixed.explain().fields}
    assert str(fields["grid"]) == "5 x 7 int32, 140 bytes, 18 words"
    assert str(fields["total"]) == "int, 8 bytes, 1 word"
    assert str(fields["work"]) == "4 int, 32 bytes, 4 words, scratch"
    assert str(fields["locks"]) == "4 locks"
    assert not any((fields["unused"].read, fields["unused"].written, fields["unused"].updated))
    state = [one.words for one in fields.values() if one.space == "state"]
    assert sum(state) == mixed.layout.words("state")


def conflicts(operator: ss.Operator) -> set[tuple[str, str, str, str]]:
    found = operator.explain()
    return {
        (one.field, found.accesses[one.earlier].text, found.accesses[one.later].text, one.when)
        for one in found.conflicts
    }


def test_what_could_conflict() -> None:
    found = conflicts(mixed)
    assert {one for one in found if one[0] == "grid" and one[2] == "grid[0, 3]"} == {
        ("grid", "grid[event.i, j]", "grid[0, 3]", "same element"),
        ("grid", "grid[0, j]", "grid[0, 3]", "same element"),
    }
    # last[0] is neither last[-9] nor in another event's way but for the slice.
    assert {one for one in found if one[0] == "last"} == {
        ("last", "last[0]", "last[2:4]", "overlap")
    }
    assert {one for one in found if one[0] in ("total", "seen", "work", "locks", "unused")} == {
        ("seen", "seen", "seen", "wrong prediction")
    }
    assert {one[3] for one in found if one[0] == "users"} == {"same key"}
    assert len([one for one in found if one[0] == "users"]) == 3  # two that contain do not
    assert ("nodes", "nodes", "nodes", "always") in found


class Counted(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_it_is_text_html_and_data() -> None:
    found = mixed.explain()
    text, html = str(found), found._repr_html_()
    assert all(one.text in text for one in found.conflicts)
    assert all(f"{one.name}: {one}" in text for one in found.fields)
    assert f"{found.functions[0].line}  def mixed(state, event, emit):" in text
    assert "spare: str, not read" in text
    parser = Counted()
    parser.feed(html)
    assert parser.open == []
    assert "<td style='text-align:left'>grid</td>" in html
    assert "if event.x &gt; 9.0" in html
    assert json.loads(json.dumps(found.to_dict()))["conflicts"][0].keys() == {
        "field",
        "earlier",
        "later",
        "when",
        "text",
    }


def test_the_command(operators: Path) -> None:
    found = invoke("explain", f"{operators}:sums", "--arg", "factor=3")
    assert found.exit_code == 0, found.output
    assert "total: int, 8 bytes, 1 word" in found.output
    plain = invoke("explain", f"{operators}:sums", "--json")
    assert json.loads(plain.output)["operator"] == "running"
    missing = invoke("explain", f"{operators}:nothing")
    assert missing.exit_code != 0
    assert "operators in it: none" in missing.output


OPERATORS = """
import specstream as ss

class Sums(ss.State):
    total = ss.scalar(int)

def sums(factor=1):
    @ss.operator(state=Sums, event={"x": int}, emits={})
    def running(state, event, emit):
        state.total += factor * event.x
    return running
"""


# ---- nothing is left out ----


def changed(operator: ss.Operator, table: pa.Table) -> None:
    """What changes is said to be written; what is said not to be read nobody needs."""
    uses = {one.name: one for one in operator.explain().fields if one.space == "state"}
    expected = run_oracle(operator, table, seed=3)
    start = run_oracle(operator, table.slice(0, 0), seed=3).state
    for name, before in start.items():
        after = expected.state[name]
        held = isinstance(after, list)  # of containers and records
        if before != after if held else not np.array_equal(elements(before), elements(after)):
            assert uses[name].written or uses[name].updated or uses[name].operated, name
    unread = [name for name, one in uses.items() if not (one.read or one.updated or one.operated)]
    fields = tuple(
        dataclasses.replace(field, fill=1)
        if field.name in unread and not isinstance(start[field.name], list)
        else field
        for field in operator.layout.fields
    )
    other = ss.Operator.of_layout(
        operator.function,
        operator.name,
        Layout(operator.layout.name, fields),
        operator.event,
        operator.emits,
    )
    found = run_oracle(other, table, seed=3)
    keep = {name: value for name, value in expected.state.items() if name not in unread}
    state = {name: value for name, value in found.state.items() if name in keep}
    assert_identical(
        dataclasses.replace(found, state=state), dataclasses.replace(expected, state=keep)
    )


@pytest.mark.parametrize("operator", FAMILY, ids=lambda operator: operator.name)
def test_of_the_families_all_is_told(operator: ss.Operator) -> None:
    changed(operator, families.events(60, 3))


@pytest.mark.slow
def test_of_random_operators_all_is_told(tmp_path: Path) -> None:
    at = np.arange(60)
    table = pa.table(
        {
            "key": at % 7 - 3,
            "value": pa.array([None if k % 5 == 0 else k * 0.5 for k in at.tolist()], pa.float64()),
            "on": at % 3 == 0,
            "code": [("one", "two", "", None)[k % 4] for k in at.tolist()],
            "when": pa.array(at * 1000, pa.timestamp("us", "UTC")),
            "price": pa.array([Decimal(k) for k in at.tolist()], pa.decimal128(20, 2)),
        }
    )
    for number in range(25):
        writer = generated.Writer(random.Random(number))
        text = writer.operator(1 + number % 6)
        changed(generated.load(text, tmp_path, 9000 + number), table)


@ss.operator(state=Mixed, event={"i": int, "name": str}, emits={"n": int})
def staging(state, event, emit):
    if event.name.startswith("EU") and state.total > 3:
        emit(len(event.name.strip()))


def test_what_python_computes_before_is_listed() -> None:
    found = staging.explain()
    assert found.staged == ("event.name.startswith('EU')", "len(event.name.strip())")
    assert "computed by Python before the operator runs\n  event.name.startswith('EU')" in str(
        found
    )
    assert "startswith" in found._repr_html_().partition("</details>")[2]


class Held(ss.State):
    xs = ss.list((float, int), limit=50)
    d = ss.dict((str, int), float)
    s = ss.set(str)
    q = ss.deque(int, maxlen=5)


def put(values, value):
    values.append(value)


shortened = lambda values: values.pop()  # noqa: E731


@ss.operator(state=Held, event={"i": int, "name": str}, emits={"n": int})
def holding(state, event, emit):
    put(state.q, event.i)
    state.d[event.name, 1] = state.d.get((event.name, 2), 0.0)
    if event.name in state.s and len(state.d) > 3:
        state.s.discard(event.name)
    heapq.heappush(state.xs, (0.5, event.i))
    last = state.xs[-1]
    if state.q[0] > 3:
        del state.xs[0]
        emit(shortened(state.q) + last[1])


def test_of_containers_keys_and_lengths_are_told() -> None:
    fields = {one.name: str(one) for one in holding.explain().fields}
    assert fields["xs"] == "list[tuple[float, int]], each of 16 bytes, 2 words; 50 at most"
    assert fields["d"].startswith("dict[tuple[str, int], float], each of 24 bytes, 3 words; ")
    assert said(holding, "read") == {
        ("d[event.name, 2]", 2),
        ("s[event.name]", 3),
        ("d", 3),
        ("s[event.name]", 4),
        ("xs", 5),
        ("xs[-1]", 6),
        ("q[0]", 7),
        ("xs", 8),
    }
    assert said(holding, "written") == {
        ("d[event.name, 1]", 2),
        ("s[event.name]", 4),
        ("xs", 5),
        ("xs", 8),
    }
    whens = {(one.field, one.when) for one in holding.explain().conflicts}
    assert whens == {
        ("xs", "always"),  # both change the length
        ("xs", "overlap"),
        ("d", "overlap"),  # a new key, and len()
        ("s", "same key"),
        ("q", "always"),
        ("q", "overlap"),
    }

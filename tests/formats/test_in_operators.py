"""The same function in operators, interpreted ones and pipelines, and as ``decode=`` of sources."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import datetime
import pickle
import random
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from support import witness

import specstream as ss

pytest.importorskip("lxml", reason='pip install "specstream[xml]"')
pytest.importorskip("msgspec", reason='pip install "specstream[json]"')
pytest.importorskip("jmespath", reason='pip install "specstream[json]"')

PINGUS = ss.formats.xml("//character", id=int, status=str, x=float, y=ss.nullable(float))
ABOVE = ss.formats.xml("//character[@x > $least]/@id", int)
ORDERS = ss.formats.json("orders", id=int, price=ss.decimal(2), note=ss.nullable(str))


class World(ss.State):
    n = ss.scalar(int)
    cents = ss.scalar(int)
    seen = ss.dict(int, float)


def near(one, other):
    return abs(one - other) < 2.0


EVENT = {"snapshot": str, "orders": str, "least": int}
EMITS = {"n": int, "text": ss.nullable(str), "y": ss.nullable(float)}


@ss.operator(state=World, event=EVENT, emits=EMITS)
def world(state, event, emit):
    for one in PINGUS(event.snapshot):
        state.n += one.id
        emit(state.n, one.status, one.y)
        if one.y is not None and state.seen.get(one.id, -1.0) < one.x:
            state.seen[one.id] = one.x
    for number in ABOVE(event.snapshot, event.least):
        emit(-number, None, None)
    if all(
        any(near(w.x, b.x) or state.n % 7 == 0 for b in PINGUS(event.snapshot) if b.status == "B")
        for w in PINGUS(event.snapshot)
        if w.status == "W"
    ):
        emit(0, "all", None)
    late = [one.id for one in ORDERS(event.orders) if one.price > 100 * state.n]
    for one in ORDERS(event.orders):
        state.cents += one.price
    emit(state.cents + len(late), event.orders[:1], None)


def snapshot(rng: random.Random) -> str:
    """Some characters, of which few have a mistake."""
    made = []
    for number in range(rng.randrange(5)):
        x = rng.choice(["1", "2.5", "4", "x"] if rng.random() < 0.1 else ["1", "2.5", "4"])
        y = f" y='{rng.randrange(9)}'" if rng.random() < 0.5 else ""
        made.append(f"<character id='{number}' x='{x}'{y} status='{rng.choice('WB')}'/>")
    return f"<s>{''.join(made)}{'' if rng.random() < 0.95 else '<'}</s>"


def orders(rng: random.Random) -> str:
    prices = [rng.choice(["1.10", '"2.5"', "3"]) for _ in range(rng.randrange(3))]
    rows = [f'{{"id": {at}, "price": {price}}}' for at, price in enumerate(prices)]
    return f'{{"orders": [{", ".join(rows)}]{"}" if rng.random() < 0.95 else ""}'


def table(count: int = 150) -> pa.Table:
    rng = random.Random(11)
    return pa.table(
        {
            "snapshot": [snapshot(rng) for _ in range(count)],
            "orders": [orders(rng) for _ in range(count)],
            "least": [rng.randrange(4) for _ in range(count)],
        }
    )


def test_an_operator_loops_over_the_rows() -> None:
    expected = run_oracle(world, table())
    assert 5 < len(expected.raised) < 50
    assert {kind for _, kind, _ in expected.raised} == {"ValueError"}
    texts = [text for _, _, text in expected.raised]
    assert any(
        "xml('//character'): the text is malformed at line 1, column" in one for one in texts
    )
    assert any("column 'x' is 'x'; expected float, in <character>" in one for one in texts)
    assert any("json('orders'): the text is malformed at line 1, column" in one for one in texts)
    assert witness.assert_agrees(world, table()) == table().num_rows
    assert_identical(run_engine(world, table(), threads=1, horizon=0), expected)
    assert_identical(run_engine(world, table(), threads=2, horizon=4, chunk=2), expected)


def test_a_malformed_text_is_a_failed_event() -> None:
    with ss.Engine(world, errors="side") as engine:
        engine.process(table())
        failed = engine.failed_events()
    assert failed is not None
    assert failed.num_rows == len(run_oracle(world, table()).raised)
    assert set(failed["error"].to_pylist()) == {"ValueError"}


def test_an_operator_is_pickled_into_another_process() -> None:
    rows = table(20).to_pylist()
    text = pickle.dumps((world, rows))
    code = (
        "import pickle, sys; operator, rows = pickle.load(sys.stdin.buffer);"
        "found = operator.run_sequential(rows, errors='side').output;"
        "sys.stdout.buffer.write(pickle.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], input=text, capture_output=True, check=True)
    assert pickle.loads(done.stdout).equals(world.run_sequential(rows, errors="side").output)


def test_threads_read_at_the_same_time() -> None:
    texts = [
        f"<s>{f'<character id={chr(34)}{at}{chr(34)} x=$1$ status=$W$/>' * 200}</s>".replace(
            "$", '"'
        )
        for at in range(40)
    ]
    start = threading.Barrier(4)
    tools = set()

    def work(first: int) -> list[Any]:
        start.wait()
        tools.add(id(PINGUS._tools.of_text))
        return [PINGUS(text) for text in texts[first:] + texts[:first]]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    expected = [[(at, "W", 1.0, None)] * 200 for at in range(40)]
    for first, one in enumerate(found):
        assert one == expected[first:] + expected[:first]
    assert len(tools) == 4  # nobody waits for another's parser


class Total(ss.State):
    total = ss.scalar(float)


@ss.operator(event={"snapshot": str}, emits={"id": int, "x": float}, interpreted=True)
def parsed(event, emit):
    for one in PINGUS(event.snapshot):
        emit(one.id, one.x)


@ss.operator(state=Total, event={"id": int, "x": float}, emits={"id": int, "total": float})
def summed(state, event, emit):
    state.total += event.x
    emit(event.id, state.total)


def test_a_vertex_parses_in_the_threads_of_the_engine() -> None:
    pipeline = ss.Pipeline("parsed")
    of_texts = pipeline.source("texts", {"snapshot": str})
    pipeline.sink("out", pipeline.add(summed, pipeline.add(parsed, of_texts)))
    texts = [{"snapshot": one} for one in table()["snapshot"].to_pylist() if "'x'" not in one]
    texts = [one for one in texts if one["snapshot"].count("<") == one["snapshot"].count(">")]
    with ss.Engine(pipeline, threads=2, horizon=8) as engine:
        tables: list[pa.Table] = []
        ss.sources.run(
            engine, ss.sources.iterate(texts), to={"out": lambda rows, _: tables.append(rows)}
        )
    totals = [row.x for one in texts for row in PINGUS(one["snapshot"])]
    found = pa.concat_tables(tables)["total"].to_pylist()
    assert found == [sum(totals[: at + 1]) for at in range(len(totals))]
    assert len(found) > 100


# ---- sources ----


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


TYPES = {"id": int, "at": datetime.datetime, "day": datetime.date, "paid": ss.decimal(3)}


@ss.operator(event=TYPES, emits=TYPES)
def same(event, emit):
    emit(event.id, event.at, event.day, event.paid)


def rows_of(server: socket.socket, content: bytes, decode: Any) -> tuple[list[Any], list[Any]]:
    """What an engine makes of lines, and those that it rejects."""

    def work() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(content)

    threading.Thread(target=work, daemon=True).start()
    rows: list[Any] = []
    rejected: list[Any] = []
    with ss.Engine(same, rejected_rows="side") as engine:
        ss.sources.run(
            engine,
            ss.sources.tcp("127.0.0.1", server.getsockname()[1], decode=decode),
            to=lambda table, _: rows.extend(table.to_pylist()),
            rejected_rows_to=lambda table, _: rejected.extend(table.to_pylist()),
        )
    return rows, rejected


AT = datetime.datetime(2024, 1, 2, 3, 4, 5, 6000, datetime.UTC)


def test_a_source_decodes_with_the_units_of_both(server: socket.socket) -> None:
    """Of a time in ms and a decimal of two digits the rows have numbers: nobody takes these for
    microseconds and thousandths."""
    xml = ss.formats.xml(
        "s/c", id=int, at=ss.timestamp("ms", "Europe/Berlin"), day=datetime.date, paid=ss.decimal(2)
    )
    line = b"<s>%s</s>\n" % (
        b"<c id='1' at='2024-01-02T03:04:05.006Z' day='2024-01-02' paid='1.5'/>"
        b"<c id='2' at='2024-01-02T04:04:05.006+01:00' day='1969-12-31' paid='-0.01'/>"
    )
    assert xml(line)[0] == (1, 1_704_164_645_006, 19_724, 150)
    rows, rejected = rows_of(server, line + b"<s/>\n<s\n<s><c id='x'/></s>\n", xml)
    assert [list(row.values()) for row in rows] == [
        [1, AT, AT.date(), Decimal("1.500")],
        [2, AT, datetime.date(1969, 12, 31), Decimal("-0.010")],
    ]
    assert [row["raw"] for row in rejected] == [b"<s", b"<s><c id='x'/></s>"]
    assert "malformed at line 1" in rejected[0]["error"]
    assert "column 'id' is 'x'; expected int" in rejected[1]["error"]


def test_a_source_decodes_json(server: socket.socket) -> None:
    json = ss.formats.json(
        "c", id=int, at=ss.timestamp("ms"), day=datetime.date, paid=ss.decimal(2)
    )
    line = b'{"c": [{"id": 1, "at": 1704164645006, "day": "2024-01-02", "paid": 1.50}]}\n'
    rows, rejected = rows_of(server, line + b'{"c": []}\n{"c": [{"id": 1}]}\n', json)
    assert [list(row.values()) for row in rows] == [[1, AT, AT.date(), Decimal("1.500")]]
    assert "column 'at' is missing" in rejected[0]["error"]


def test_what_cannot_decode_is_refused_before_the_first_message(server: socket.socket) -> None:
    for decode, says in (
        (ss.formats.xml("s/c", int), "gives values without names"),
        (ss.formats.xml("s/c[@id = $id]", id=int), r"needs \$id"),
    ):
        with pytest.raises(ss.ConfigurationError, match=says):
            rows_of(server, b"", decode)

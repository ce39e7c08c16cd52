"""TCP connections as a source: lines of JSON, Arrow's streams, senders that have to wait."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import pyarrow as pa
import pytest
from support.sources.feeding_driver import chain, events, expected

import specstream as ss


@pytest.fixture
def server() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server


def lines(rows: list[Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def send(server: socket.socket, content: bytes) -> threading.Thread:
    """Sends something to the first who comes, and hangs up."""

    def work() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(content)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def run(source: Any, **options: Any) -> pa.Table:
    tables: list[pa.Table] = []
    with ss.Engine(chain, threads=2, horizon=4) as engine:
        ss.sources.run(engine, source, to=lambda table, _: tables.append(table), **options)
    return pa.concat_tables(tables)


def test_lines_of_json_until_the_connection_ends(server: socket.socket) -> None:
    rows = lines(events(0, 5000))
    send(server, b"\n" + rows[:-1])  # the last one without its end
    assert run(ss.sources.tcp("127.0.0.1", server.getsockname()[1])).equals(expected(5000))


def test_a_stream_of_arrow(server: socket.socket) -> None:
    table = pa.Table.from_pylist(events(0, 500))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=70)
    send(server, sink.getvalue().to_pybytes())
    source = ss.sources.tcp("127.0.0.1", server.getsockname()[1], format="arrow")
    assert run(source, max_rows=50).equals(expected(500))


def test_several_senders_one_after_the_other_until_the_run_is_stopped() -> None:
    source = ss.sources.tcp("127.0.0.1", 0, listen=True)
    source.listen()
    stop, seen = threading.Event(), threading.Semaphore(0)
    tables: list[pa.Table] = []

    def sink(table: pa.Table, batch_id: int) -> None:
        tables.append(table)
        seen.release(table.num_rows)

    from specstream.sources.options import RunOptions
    from specstream.sources.running import SourceFeed

    with ss.Engine(chain) as engine:
        feed = SourceFeed(engine, source, RunOptions(to=sink))
        thread = threading.Thread(target=feed.run, args=[stop])
        thread.start()
        for first in range(0, 40, 10):
            with socket.create_connection(("127.0.0.1", source.port)) as connection:
                connection.sendall(lines(events(first, 10)))
            for _ in range(10):
                assert seen.acquire(timeout=30)
        stop.set()
        thread.join(30)
        assert not thread.is_alive()
        feed.close()
    assert pa.concat_tables(tables).equals(expected(40))


def test_a_sender_waits_while_the_engine_is_busy(server: socket.socket) -> None:
    server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 14)
    content = lines([{"x": x, "name": "n" * 5000} for x in range(3000)])
    sent = 0

    def work() -> None:
        nonlocal sent
        connection, _ = server.accept()
        with connection:
            for at in range(0, len(content), 1 << 12):
                connection.sendall(content[at : at + (1 << 12)])
                sent += 1 << 12

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    found: list[int] = []

    def sink(table: pa.Table, batch_id: int) -> None:
        if batch_id == 0:
            before = -1
            while before != sent:  # until nothing moves any more
                before = sent
                time.sleep(0.1)
            found.append(sent)

    with ss.Engine(chain) as engine:
        source = ss.sources.tcp("127.0.0.1", server.getsockname()[1])
        stats = ss.sources.run(engine, source, to=sink, max_rows=20)
    assert stats.events == 3000
    # Buffers of TCP are up to some megabytes; all of it are fifteen.
    assert found[0] < len(content) / 2


def test_a_line_that_is_no_event_is_told(server: socket.socket) -> None:
    port = server.getsockname()[1]
    send(server, lines(events(0, 3)) + b'{"x": 1, "name": \n')
    with pytest.raises(ss.InputError, match=rf"line 3 of tcp://127.0.0.1:{port}: .*JSONDecode"):
        run(ss.sources.tcp("127.0.0.1", port))
    send(server, b"no arrow")
    with pytest.raises(ss.InputError, match="behind row 0 is no stream of Arrow's"):
        run(ss.sources.tcp("127.0.0.1", port, format="arrow"))


def test_lines_that_are_set_aside_come_with_their_bytes(server: socket.socket) -> None:
    port = server.getsockname()[1]
    rows = lines(events(0, 2))
    send(server, rows + b'[1]\n{"x": "1", "name": "n"}\n' + lines(events(2, 2)))
    tables: list[pa.Table] = []
    rejected: list[pa.Table] = []
    with ss.Engine(chain, rejected_rows="side") as engine:
        ss.sources.run(
            engine,
            ss.sources.tcp("127.0.0.1", port),
            to=lambda table, _: tables.append(table),
            rejected_rows_to=lambda table, _: rejected.append(table),
        )
    assert pa.concat_tables(tables).equals(expected(4))
    found = pa.concat_tables(rejected)
    assert found["raw"].to_pylist() == [b"[1]", b'{"x": "1", "name": "n"}']
    assert found["error"].to_pylist() == [
        "it is [1]; expected an object with the columns as fields",
        "column 'x' is '1'; expected int",
    ]


@ss.operator(event={"x": int, "f": float}, emits={"x": int, "f": float})
def floats(event: Any, emit: Any) -> None:
    emit(event.x, event.f)


@ss.operator(event={"x": int, "f": float, "paid": ss.decimal(2)}, emits={"x": int, "f": float})
def prices(event: Any, emit: Any) -> None:
    emit(event.x, event.f)


@pytest.mark.parametrize("op", [floats, prices], ids=["floats", "decimals"])
def test_numbers_out_of_range_are_rejected_with_their_bytes(op: Any, server: socket.socket) -> None:
    """Each is exact or is refused, whether the numbers of a line are read as decimals or not."""
    wrong = {
        '{"x":1,"f":1e400,"paid":1}': "'f' is Decimal('1E+400'), which does not fit double",
        '{"x":1,"f":-1e400,"paid":1}': "'f' is Decimal('-1E+400'), which does not fit double",
        '{"x":1,"f":%s,"paid":1}' % 10**400: "0, which does not fit double",
        '{"x":%s,"f":1,"paid":1}' % 2**63: f"'x' is {2**63}, which does not fit int64",
    }
    if op is prices:
        wrong |= {
            '{"x":1,"f":1,"paid":92233720368547758.08}': "which does not fit decimal128(19, 2)",
            '{"x":1,"f":1,"paid":%s}' % 2**62: "which does not fit decimal128(19, 2)",
            '{"x":1,"f":1,"paid":1e999999999}': "which does not fit decimal128(19, 2)",
            '{"x":1,"f":1,"paid":1e-999999999}': "expected a decimal with 2 digits after its point",
            '{"x":1,"f":1,"paid":"1e-999999999"}': "expected a decimal with 2 digits",
            '{"x":1,"f":1,"paid":1.5%s1}' % ("0" * 75): "expected a decimal with 2 digits",
            '{"x":1,"f":1,"paid":5e-77}': "expected a decimal with 2 digits after its point",
            '{"x":1,"f":1,"paid":1.005}': "expected a decimal with 2 digits after its point",
        }
    right = ['{"x":1,"f":1.7e308,"paid":92233720368547758.07}', '{"x":2,"f":-1e-400,"paid":1}']
    send(server, "\n".join([right[0], *wrong, right[1]]).encode())
    rows: list[Any] = []
    rejected: list[Any] = []
    with ss.Engine(op, threads=1, rejected_rows="side") as engine:
        ss.sources.run(
            engine,
            ss.sources.tcp("127.0.0.1", server.getsockname()[1]),
            to=lambda table, _: rows.extend(table.to_pylist()),
            rejected_rows_to=lambda table, _: rejected.extend(table.to_pylist()),
        )
    assert rows == [{"x": 1, "f": 1.7e308}, {"x": 2, "f": -0.0}]
    assert [row["raw"] for row in rejected] == [line.encode() for line in wrong]
    for row, said in zip(rejected, wrong.values(), strict=True):
        assert said in row["error"]


@ss.operator(event={"x": int, "raw": str}, emits={"x": int})
def raw(event: Any, emit: Any) -> None:
    emit(event.x)


@ss.operator(event={"x": int, "error": ss.nullable(str)}, emits={"x": int})
def error(event: Any, emit: Any) -> None:
    emit(event.x)


@pytest.mark.parametrize("op", [raw, error], ids=["raw", "error"])
def test_a_field_with_the_name_of_what_is_put_beside_rejected_lines_is_refused(
    op: Any, server: socket.socket
) -> None:
    """It would take the place of the line's bytes, or of what is wrong with it."""
    name = op.name
    port = server.getsockname()[1]
    send(server, lines([{"x": 1, name: "a"}]))
    with (
        ss.Engine(op, rejected_rows="side") as engine,
        pytest.raises(ss.ConfigurationError, match=f"aside with a column '{name}' beside their"),
    ):
        ss.sources.run(engine, ss.sources.tcp("127.0.0.1", port), to=lambda table, _: None)
    with ss.Engine(op) as engine:
        source = ss.sources.tcp("127.0.0.1", port)
        assert ss.sources.run(engine, source, to=lambda table, _: None).events == 1


def test_nobody_there_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with pytest.raises(ss.SourceError, match=f"be reached at tcp://127.0.0.1:{port}"):
        run(ss.sources.tcp("127.0.0.1", port))


class Sale(NamedTuple):
    price: float


@ss.operator(event={"price": float}, emits={"price": float})
def same(event: Any, emit: Any) -> None:
    emit(event.price)


def priced_each(line: bytes) -> list[Any]:
    """A named tuple or a dict for each."""
    made = [float(one) for one in line.split(b";") if one]
    return [Sale(one) if one < 3 else {"price": one} for one in made]


def test_a_message_is_as_many_events_as_its_decoder_makes_of_it(server: socket.socket) -> None:
    tables: list[pa.Table] = []
    rejected: list[pa.Table] = []
    send(server, b"1;2;3\n-\n;\nx\n4\n")
    with ss.Engine(same, rejected_rows="side") as engine:
        ss.sources.run(
            engine,
            ss.sources.tcp("127.0.0.1", server.getsockname()[1], decode=priced_each),
            to=lambda table, _: tables.append(table),
            rejected_rows_to=lambda table, _: rejected.append(table),
        )
    assert pa.concat_tables(tables)["price"].to_pylist() == [1.0, 2.0, 3.0, 4.0]
    assert pa.concat_tables(rejected)["raw"].to_pylist() == [b"-", b"x"]


def test_what_is_wrong_with_one_of_several_events_names_the_message(server: socket.socket) -> None:
    send(server, b"1;2\n3;nan\n4;x;5\n")
    source = ss.sources.tcp("127.0.0.1", server.getsockname()[1], decode=priced_each)
    with (
        ss.Engine(same) as engine,
        pytest.raises(ss.InputError, match=r"line 2 of tcp.*could not convert string to float"),
    ):
        ss.sources.run(engine, source, to=lambda table, _: None)

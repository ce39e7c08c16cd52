"""The sink of a PostgreSQL table, with a real server: exactly once, whatever is killed."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import contextlib
import datetime
import decimal
import itertools
import os
import random
import re
import signal
import sys
import threading
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.sinks.postgres import PASSWORD, Server
from support.sinks.postgres_driver import Query, Writer, sequential

import specstream as ss
from specstream.sinks.postgres_types import columns_of

pytest.importorskip("adbc_driver_postgresql", reason='pip install "specstream[postgres]"')

# A server is started, and killed.
pytestmark = pytest.mark.slow

postgres_sink = ss.sinks.postgres_sink
GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "sources-and-sinks.md"
NAMES = (f"table_{number}" for number in range(1000))


@pytest.fixture
def table(server: Server) -> str:
    return next(NAMES)


def counts(*of: int) -> pa.Table:
    return pa.table({"count": pa.array(of, pa.int64())})


def there(server: Server, table: str) -> list[int]:
    return [row[0] for row in server.rows(f'SELECT "count" FROM {table} ORDER BY 1')]


# ---- rows ----


def test_a_batch_that_comes_again_is_in_the_table_once(server: Server, table: str) -> None:
    sink = postgres_sink(server.uri, table)
    sink(counts(), 0)
    assert there(server, table) == []
    for batch_id in (1, 1, 2, 3, 3):
        sink(counts(batch_id, 10 * batch_id), batch_id)
    # Another process, which knows nothing of the first.
    postgres_sink(server.uri, table)(counts(3, 30), 3)
    assert there(server, table) == [1, 2, 3, 10, 20, 30]
    said = server.rows(
        f"SELECT app_id, batch_id FROM specstream_batches WHERE table_name = '{table}'"
    )
    assert said == [("specstream", 3)]


# By what the documentation calls them.
WITHOUT_A_COLUMN = {
    "lists": pa.list_(pa.int64()),
    "structs": pa.struct({"x": pa.int64()}),
    "maps": pa.map_(pa.string(), pa.int64()),
    "unions": pa.sparse_union([pa.field("x", pa.int64())]),
    "durations": pa.duration("s"),
    "intervals": pa.month_day_nano_interval(),
    "fixed-size binary": pa.binary(4),
    "string and binary views": pa.string_view(),
    "run-end encoded": pa.run_end_encoded(pa.int32(), pa.int64()),
}


@pytest.mark.parametrize(("name", "of"), WITHOUT_A_COLUMN.items(), ids=list(WITHOUT_A_COLUMN))
def test_types_that_have_no_column_are_refused_as_the_documentation_says(
    name: str, of: pa.DataType
) -> None:
    with pytest.raises(ss.SinkError, match=f"column 'odd' is of type {re.escape(str(of))}, for"):
        columns_of(pa.schema({"n": pa.int64(), "odd": of}))
    for text in (GUIDE.read_text(), postgres_sink.__doc__):
        assert name in " ".join(text.split())


def test_rows_are_seen_when_they_are_committed(server: Server, table: str) -> None:
    sink = postgres_sink(server.uri, table)
    prepared = sink.prepare(counts(1), 0)
    assert there(server, table) == []
    prepared.abort()
    assert there(server, table) == []
    prepared = sink.prepare(counts(2), 0)
    prepared.commit()
    assert there(server, table) == [2]
    sink.prepare(counts(2), 0).commit()
    sink.prepare(counts(2), 0).abort()
    assert there(server, table) == [2]


def test_values_of_all_types_come_back(server: Server, table: str) -> None:
    noon = datetime.datetime(2026, 1, 5, 12, 30, 1, 5)
    rows = pa.table(
        {
            "ok": pa.array([True, None]),
            "tiny": pa.array([-128, 127], pa.int8()),
            "u8": pa.array([0, 255], pa.uint8()),
            "u16": pa.array([0, 65535], pa.uint16()),
            "i32": pa.array([-(2**31), 2**31 - 1], pa.int32()),
            "u32": pa.array([0, 2**32 - 1], pa.uint32()),
            "i64": pa.array([-(2**63), 2**63 - 1], pa.int64()),
            "u64": pa.array([0, 2**64 - 1], pa.uint64()),
            "f32": pa.array([1.5, None], pa.float32()),
            "f64": pa.array([0.1, float("inf")]),
            "text": pa.array(["Zürich 'x' \\ \"y\" ☕", ""]),
            "large": pa.array(["a", None], pa.large_string()),
            "coded": pa.array(["a", "b"]).dictionary_encode(),
            "bytes": pa.array([b"\x00\xff", b""]),
            "day": pa.array([noon.date(), None]),
            "at": pa.array([noon, None], pa.timestamp("us")),
            "zoned": pa.array([noon, None], pa.timestamp("ns", "Europe/Zurich")),
            "seconds": pa.array([noon.replace(microsecond=0), None], pa.timestamp("s")),
            "price": pa.array([decimal.Decimal("12.30"), None], pa.decimal128(9, 2)),
            'odd "name"': pa.array([1, 2]),
            "nothing": pa.nulls(2),
        }
    )
    postgres_sink(server.uri, table)(rows, 0)
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows.column_names)
    # The driver gives them as texts; how they are written is PostgreSQL's own.
    for name in ("u64", "price"):
        names = names.replace(f'"{name}"', f'"{name}"::text')
    first, second = server.rows(f"SELECT {names} FROM {table} ORDER BY i64")
    utc = noon.replace(tzinfo=datetime.UTC)
    assert first == (
        *(True, -128, 0, 0, -(2**31), 0, -(2**63), "0", 1.5, 0.1),
        *("Zürich 'x' \\ \"y\" ☕", "a", "a", b"\x00\xff", noon.date(), noon, utc),
        *(noon.replace(microsecond=0), "12.30", 1, None),
    )
    assert second == (
        *(None, 127, 255, 65535, 2**31 - 1, 2**32 - 1, 2**63 - 1, str(2**64 - 1), None),
        *(float("inf"), "", None, "b", b"", None, None, None, None, None, 2, None),
    )
    types = dict(
        server.rows(
            "SELECT column_name::text, data_type::text FROM information_schema.columns "
            f"WHERE table_name = '{table}'"
        )
    )
    assert [types[name] for name in ("tiny", "u32", "u64", "f64", "zoned", "nothing")] == [
        "smallint",
        "bigint",
        "numeric",
        "double precision",
        "timestamp with time zone",
        "text",
    ]


def test_a_table_that_is_there_may_have_more_and_wider_columns(server: Server, table: str) -> None:
    server.execute(
        "CREATE SCHEMA IF NOT EXISTS desk",
        f"CREATE TABLE desk.{table} (id serial, note varchar(9) DEFAULT 'none', "
        "n bigint, x double precision, s varchar)",
    )
    rows = pa.table(
        {"s": ["a"], "x": pa.array([1.5], pa.float32()), "n": pa.array([7], pa.int16())}
    )
    postgres_sink(server.uri, f"desk.{table}")(rows, 0)
    assert server.rows(f"SELECT * FROM desk.{table}") == [(1, "none", 7, 1.5, "a")]
    assert server.rows("SELECT batch_id FROM desk.specstream_batches") == [(0,)]


def test_two_queries_write_to_one_table(server: Server, table: str) -> None:
    first, second = (postgres_sink(server.uri, table, app_id=name) for name in ("a", "b"))
    # Both at once, as two sinks of a feed: neither waits for the other's commit.
    prepared = [first.prepare(counts(1), 0), second.prepare(counts(2), 0)]
    for one in prepared:
        one.commit()
    second(counts(2), 0)
    assert there(server, table) == [1, 2]
    assert first.place != second.place == postgres_sink(server.uri, table, app_id="b").place


# ---- what is refused ----


def test_what_does_not_fit_the_table_is_said(server: Server, table: str) -> None:
    server.execute(f"CREATE TABLE {table} (count integer, name text NOT NULL)")
    sink = postgres_sink(server.uri, table)
    for rows, match in (
        (counts(1), r"column 'count' is integer, and the rows have int64, which takes bigint"),
        (
            pa.table({"more": [1]}),
            r"no column 'more' \(it has count, name\): ALTER TABLE .* bigint",
        ),
        (pa.table({"name": [[1]]}), r"column 'name' is of type list<"),
        (pa.table({"n" * 64: [1]}), r"has a name that PostgreSQL does not take .*63 bytes"),
        (pa.table({"count": pa.array([1], pa.int32())}), r"null value in column .name.*default"),
        (pa.table({"name": ["\0"]}), r"NUL|0x00"),
    ):
        with pytest.raises(ss.SinkError, match=rf"postgres_sink\(.*{table}'\), batch 0: .*{match}"):
            sink(rows, 0)
    server.execute(
        f"ALTER TABLE {table} ADD COLUMN paid numeric(5,1), ADD COLUMN seen timestamp(3), "
        "ADD COLUMN total numeric, ADD COLUMN k integer UNIQUE"
    )
    for rows, match in (
        (pa.table({"name": ["a"], "paid": [decimal.Decimal("1.25")]}), r"'paid' is numeric\(5,1\)"),
        (
            pa.table({"name": ["a"], "seen": pa.array([1], pa.timestamp("us"))}),
            r"'seen' is timestamp\(3\)",
        ),
        (pa.table({"name": ["a", "b"], "k": pa.array([1, 1], pa.int32())}), "duplicate key.*emit"),
    ):
        with pytest.raises(ss.SinkError, match=match):
            sink(rows, 0)
    late = pa.table({"name": ["a"], "at": pa.array([1], pa.timestamp("ns"))})
    server.execute(f"ALTER TABLE {table} ADD COLUMN at timestamp")
    with pytest.raises(ss.SinkError, match=r"batch 0: .*lose data"):
        sink(late, 0)
    sink(pa.table({"name": ["a"], "total": [2**53 + 1]}), 0)  # nothing was left of the batch
    assert server.rows(f"SELECT total FROM {table}") == [(str(2**53 + 1),)]
    sink(pa.table({"name": ["a"]}), 3)
    with pytest.raises(ss.SinkError, match="has batch 3 of app_id='specstream' already"):
        sink(pa.table({"name": ["a"]}), 0)
    sink.check_first_batch(3, is_new=False)
    for batch_id, is_new in ((0, False), (3, True)):
        with pytest.raises(ss.SinkError, match=f"batch {batch_id}: .* batch 3 .* Spark's check"):
            sink.check_first_batch(batch_id, is_new=is_new)
    postgres_sink(server.uri, table, app_id="other").check_first_batch(0, is_new=True)
    assert server.rows(f"SELECT name FROM {table}") == [("a",), ("a",)]


def test_the_statement_that_gives_times_a_zone_keeps_them(server: Server, table: str) -> None:
    naive = pa.table({'a"t': pa.array([0], pa.timestamp("us"))})
    postgres_sink(server.uri, table)(naive, 0)
    instants = pa.table({'a"t': pa.array([0], pa.timestamp("us", "UTC"))})
    sink = postgres_sink(server.uri, table)
    with pytest.raises(ss.SinkError, match="ALTER TABLE") as caught:
        sink(instants, 1)
    types = str(caught.value).partition("ALTER TABLE ... ")[2].partition(", or give another")[0]
    server.execute(f"DO $$ BEGIN SET TimeZone TO 'Asia/Tokyo'; ALTER TABLE {table} {types}; END $$")
    sink(instants, 1)
    assert server.rows(f'SELECT count(*) FROM {table} GROUP BY "a""t"') == [(2,)]


@pytest.mark.parametrize(
    ("kept", "value", "rows"),
    [
        ("numeric(19,2)", "1.25", pa.array([10**17], pa.decimal128(19, 1))),
        ("numeric(5,2)", "1.25", pa.array([2**62])),
        ("integer", "-7", pa.array([decimal.Decimal("1.25")], pa.decimal128(9, 2))),
        ("timestamp(3)", "2026-01-05", pa.array([1], pa.timestamp("us"))),
        ("bigint", "7", pa.array(["007"])),
    ],
)
def test_the_statement_that_an_error_gives_changes_no_value(
    server: Server, table: str, kept: str, value: str, rows: pa.Array
) -> None:
    server.execute(f"CREATE TABLE {table} (x {kept})", f"INSERT INTO {table} VALUES ('{value}')")
    sink = postgres_sink(server.uri, table)
    with pytest.raises(ss.SinkError, match="ALTER TABLE") as caught:
        sink(pa.table({"x": rows}), 0)
    said = str(caught.value).partition("ALTER TABLE ... ")[2].partition(", or give another")[0]
    server.execute(f"ALTER TABLE {table} {said}")
    sink(pa.table({"x": rows}), 0)
    same = server.rows(f"SELECT count(*) FROM {table} WHERE x = '{value}'")
    assert (same, server.rows(f"SELECT count(*) FROM {table}")) == ([(1,)], [(2,)])


@pytest.mark.parametrize(
    ("kept", "rows"),
    [
        ("double precision", pa.array([2**53 + 1])),
        ("bigint", pa.array([2.5])),
        ("text", pa.array([7])),
        ("boolean", pa.array([2])),
    ],
)
def test_where_a_change_of_the_type_would_change_values_no_statement_is_given(
    server: Server, table: str, kept: str, rows: pa.Array
) -> None:
    server.execute(f"CREATE TABLE {table} (x {kept})")
    with pytest.raises(ss.SinkError, match=f"emit 'x' so that it is {kept}: .* give another") as e:
        postgres_sink(server.uri, table)(pa.table({"x": rows}), 0)
    assert "ALTER" not in str(e.value)


def test_a_table_that_was_dropped_between_two_batches_is_not_made_anew(
    server: Server, table: str
) -> None:
    sink = postgres_sink(server.uri, table)
    sink(counts(1), 0)
    server.execute(f"DROP TABLE {table}")
    for rows, batch_id in ((counts(1), 0), (counts(2), 1), (counts(), 1)):
        with pytest.raises(
            ss.SinkError,
            match=rf"batch {batch_id}: the table is not there any more, and specstream_batches has "
            r"its batch 0 of app_id='specstream': put it back; .*\(CREATE TABLE\)",
        ):
            sink(rows, batch_id)
    # Who begins anew makes it, and who has been told goes on with it.
    postgres_sink(server.uri, table, app_id="anew")(counts(3), 0)
    sink(counts(2), 1)
    assert there(server, table) == [2, 3]


def test_options_are_looked_at(server: Server) -> None:
    for uri in ("mysql://u:secret@h/db", "host=h password=secret", 3):
        bad: Any = uri
        with pytest.raises(
            ss.ConfigurationError, match="expected one like postgresql://"
        ) as caught:
            postgres_sink(bad, "rows")
        assert "secret" not in str(caught.value)
    for given, match in (
        ({"table": ""}, "table=''; expected the name of a table"),
        ({"table": "a.b.c"}, "table='a.b.c'"),
        ({"table": "desk." + "é" * 32}, "of at most 63 bytes"),
        ({"table": "a\0b"}, "of at most 63 bytes"),
        ({"app_id": ""}, "app_id=''"),
        ({"retry": -1}, "retry=-1"),
    ):
        options: Any = {"table": "rows", **given}
        with pytest.raises(ss.ConfigurationError, match=match):
            postgres_sink(server.uri, **options)


def test_no_message_has_the_password(server: Server) -> None:
    sinks = [
        postgres_sink(uri, "rows", retry=0)
        for uri in (
            server.uri.replace("s3cr%2Fet", "wr0ng%2Fs3cr3t"),
            server.uri + "x",  # no such database
            server.uri + "?bad_option=1",
            f"postgresql://127.0.0.1:{server.port}/postgres?user=postgres&password=wr0ng%2Fs3cr3t",
            "postgresql://postgres:s3cr%2Fet%20pass@127.0.0.1:1/postgres",
            "postgresql://postgres:s3cr%2Fet%20pass@no host:99999999/postgres",
        )
    ]
    secrets = (PASSWORD, "s3cr%2Fet", "s3cr/et", "wr0ng%2Fs3cr3t", "wr0ng/s3cr3t")
    for sink in sinks:
        with pytest.raises(ss.SinkError) as caught:
            sink(counts(1), 0)
        said = "".join(traceback.format_exception(caught.value)) + repr(sink) + str(sink.place)
        shown = [line for line in said.splitlines() if not line.startswith("    ")]
        assert not any(secret in line for secret in secrets for line in shown), said
        assert "***" in repr(sink)
    with pytest.raises(ss.SinkError, match=r"authentication failed.*correct the URI"):
        sinks[0](counts(1), 0)
    with pytest.raises(ss.SinkError, match=r"could not be had for 0 s .*refused.*Start it"):
        sinks[4](counts(1), 0)


# ---- killed ----


def test_a_server_killed_in_a_batch_has_it_once_when_it_is_back(server: Server, table: str) -> None:
    sink = postgres_sink(server.uri, table)
    sink(counts(0), 0)
    # Killed with the rows in an open transaction.
    prepared = sink.prepare(counts(*range(1, 1000)), 1)
    server.kill()
    back = threading.Timer(0.3, server.start)
    back.start()
    prepared.commit()
    back.join()
    assert there(server, table) == list(range(1000))
    # Killed before a batch.
    server.kill()
    back = threading.Timer(0.3, server.start)
    back.start()
    sink(counts(1000), 2)
    back.join()
    sink(counts(1000), 2)
    assert there(server, table) == list(range(1001))


def test_a_commit_whose_answer_is_lost_is_not_repeated(server: Server, table: str) -> None:
    sink = postgres_sink(server.uri, table)
    prepared = sink.prepare(counts(1), 0)

    class Lost:
        """A connection that goes when the server has committed."""

        def __init__(self, connection: Any) -> None:
            self.connection = connection

        def commit(self) -> None:
            self.connection.commit()
            server.kill()
            server.start()
            self.connection.commit()  # of nothing: the connection is gone
            self.connection.cursor().execute("SELECT 1")

        def close(self) -> None:
            self.connection.close()

    prepared._opened = Lost(prepared._opened)
    prepared.commit()
    assert there(server, table) == [1]


def test_a_writer_killed_in_a_batch_leaves_a_table_to_go_on_from(
    server: Server, table: str
) -> None:
    came, told = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads
        process = os.fork()
    if process == 0:
        with contextlib.suppress(BaseException):
            writing = postgres_sink(server.uri, table)
            for batch_id in range(1000):
                prepared = writing.prepare(counts(batch_id, -batch_id), batch_id)
                os.write(told, b".")
                prepared.commit()
        os._exit(1)
    os.close(told)
    for _ in range(8):
        assert os.read(came, 1) == b"."
    os.kill(process, signal.SIGKILL)
    assert os.WTERMSIG(os.waitpid(process, 0)[1]) == signal.SIGKILL
    under_way = 7 + len(os.read(came, 1000))
    os.close(came)
    sink = postgres_sink(server.uri, table)
    for batch_id in range(under_way, under_way + 3):
        sink(counts(batch_id, -batch_id), batch_id)
    expected = [sign * batch_id for batch_id in range(under_way + 3) for sign in (1, -1)]
    assert there(server, table) == sorted(expected)


def terminated(server: Server) -> int:
    """How many connections were cut: all but the one that does it."""
    return len(
        server.rows(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
            "backend_type = 'client backend' AND pid <> pg_backend_pid()"
        )
    )


def test_a_connection_cut_in_a_batch_has_it_once(server: Server, table: str) -> None:
    sink = postgres_sink(server.uri, table)
    prepared = sink.prepare(counts(*range(1000)), 0)
    assert terminated(server) >= 1
    prepared.commit()
    assert there(server, table) == list(range(1000))
    prepared = sink.prepare(counts(1000), 1)
    assert terminated(server) >= 1
    prepared.abort()
    assert there(server, table) == list(range(1000))


@pytest.fixture
def while_open(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of a transaction that has rows, to be changed."""
    settings: dict[str, str] = vars(sys.modules[postgres_sink.__module__])["_OPEN"].copy()
    monkeypatch.setattr(sys.modules[postgres_sink.__module__], "_OPEN", settings)
    return settings


def test_a_writer_that_was_stopped_does_not_keep_the_batch_from_the_next_one(
    server: Server, table: str, while_open: dict[str, str]
) -> None:
    while_open["idle_in_transaction_session_timeout"] = "500ms"
    stopped = postgres_sink(server.uri, table).prepare(counts(1), 0)
    postgres_sink(server.uri, table)(counts(1), 0)  # that of a host that has taken over
    assert there(server, table) == [1]
    stopped.commit()  # it goes on
    assert there(server, table) == [1]
    # One that was slow, and alone, writes the batch again.
    slow = postgres_sink(server.uri, table).prepare(counts(2), 1)
    while server.rows("SELECT 1 FROM pg_stat_activity WHERE state = 'idle in transaction'"):
        time.sleep(0.05)  # the server tells of no end of another connection
    slow.commit()
    assert there(server, table) == [1, 2]


def test_who_waits_for_another_writer_of_the_batch_is_told_so(
    server: Server, table: str, while_open: dict[str, str]
) -> None:
    while_open["lock_timeout"] = "100ms"
    prepared: Any = postgres_sink(server.uri, table).prepare(counts(1), 0)
    with pytest.raises(ss.SinkError, match="another process has a batch of app_id='specstream' un"):
        postgres_sink(server.uri, table, retry=0)(counts(1), 0)
    names = ("lock_timeout", "tcp_keepalives_idle", "idle_in_transaction_session_timeout")
    with prepared._opened.cursor() as cursor:
        cursor.execute("SELECT " + ", ".join(f"current_setting('{name}')" for name in names))
        # Of who changes the table meanwhile it is waited for the end.
        assert cursor.fetchone() == ("0", "10", "30s")
    prepared.commit()
    assert there(server, table) == [1]


def cut_off(server: Server, query: Query) -> str:
    """What the kill of a writer has interrupted."""
    found = server.rows(
        "SELECT batch_id FROM specstream_batches WHERE "
        f"table_name = '{query.table}' AND app_id = '{query.name}'"
    )
    if found and found[0][0] >= query.acknowledged:
        return "behind the commit"
    return "recorded" if query.recorded > query.acknowledged else "not recorded"


WRITER, SERVER, CUT = "writer killed", "server killed", "connections cut"
ENDS = [
    *((WRITER,), (SERVER,), (CUT,), (WRITER,)),
    *((WRITER, SERVER), (SERVER, WRITER), (CUT, WRITER)),
]


@pytest.mark.slow
@pytest.mark.parametrize("turns", [7, pytest.param(100, marks=pytest.mark.long)])
def test_whatever_is_killed_two_queries_have_the_rows_of_one_run_each_in_one_table(
    server: Server, table: str, tmp_path: Path, turns: int
) -> None:
    dice, seen = random.Random(turns), collections.Counter[str]()
    # In the daily check each of them once.
    ends = itertools.chain(ENDS, iter(lambda: dice.choice(ENDS), None))
    writers = [Writer(Query(number, tmp_path, server.uri, table)) for number in range(2)]
    try:
        for _, of in zip(range(turns), ends, strict=False):
            at = dice.randrange(2)
            writers[at].await_batches(dice.randint(1, 3))
            time.sleep(dice.uniform(0, 0.03))  # the instant is what is drawn
            for what in of:
                seen[what] += 1
                if what == WRITER:
                    writers[at].kill()
                elif what == SERVER:
                    server.kill()
                else:
                    seen["connections"] += terminated(server)
            if SERVER in of:
                server.start()
            if WRITER in of:
                seen[cut_off(server, writers[at].query)] += 1
                writers[at] = Writer(writers[at].query)
        goal = max(writer.query.acknowledged for writer in writers) + 5
        (tmp_path / "goal").write_text(str(goal))
        assert [writer.wait() for writer in writers] == [0, 0]
    finally:
        for writer in writers:
            writer.kill()
    compared = 0
    for query in (writer.query for writer in writers):
        run = sequential(query.number, goal)
        assert run.failed_events is not None
        failed = run.failed_events.select(["batch", "x", "error", "message"])
        for name, wanted in ((table, run.output.drop(["query"])), (f"{table}_failed", failed)):
            columns = ", ".join(wanted.column_names)
            rows = server.rows(f"SELECT {columns} FROM {name} WHERE query = {query.number}")
            assert sorted(rows) == sorted(tuple(row.values()) for row in wanted.to_pylist())
            assert server.rows(
                f"SELECT batch_id FROM specstream_batches WHERE table_name = '{name}' "
                f"AND app_id = '{query.name}'"
            ) == [(goal - 1 if name == table else max(wanted["batch"].to_pylist()),)]
            compared += len(rows)
    print(f"{goal} batches of 2 queries, {compared} rows compared; {dict(seen)}")


# ---- in a feed ----


class Count(ss.State):
    seen = ss.scalar(int)


@ss.operator(state=Count, event={"x": int}, emits={"count": int})
def number(state, event, emit):
    state.seen += 1
    if event.x < 0:
        raise ValueError("below zero")
    emit(state.seen)


def test_rows_and_failed_events_of_a_feed_go_to_tables(
    server: Server, table: str, tmp_path: Any
) -> None:
    for start in range(2):
        with ss.Engine(number, horizon=0, errors="side") as engine:
            feed = Fed(
                engine,
                to=postgres_sink(server.uri, table),
                errors_to=postgres_sink(server.uri, f"{table}_failed"),
                checkpoint=tmp_path / "checkpoint",
            )
            for batch_id in range(2 * start, 2 * start + 2):
                feed.send(batch_id, pa.table({"x": [1, -1 - batch_id, 1]}))
            feed.close()
    assert there(server, table) == list(range(1, 9))
    failed = server.rows(f"SELECT x, error, message FROM {table}_failed ORDER BY x DESC")
    assert failed == [(-1 - n, "ValueError", "below zero") for n in range(4)]


def test_without_the_packages_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "adbc_driver_postgresql.dbapi", None)
    with pytest.raises(ss.ConfigurationError, match=r'pip install "specstream\[postgres\]"'):
        postgres_sink("postgresql://host/db", "rows")

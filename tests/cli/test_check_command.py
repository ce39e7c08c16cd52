"""``specstream check``: what holds in files, what does not, and which input is refused."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from support.commands import invoke

from specstream.cli import checking, event_files

OPERATORS = """
import specstream as ss
from specstream.rules import eventually, implies

ORDER = {"order": str, "kind": str}


def paid(e):
    return e.kind == "paid"


@ss.rule(event=ORDER, key="order", keep="kind")
def paid_in_time(e):
    return implies(e.kind == "placed", eventually(paid, within="30 minutes"))


# Others are declared when they are asked for.
def ever_paid():
    @ss.rule(event=ORDER, key="order", anchored=True)
    def ever_paid(e):
        return eventually(paid)

    return ever_paid


def paid_later():
    @ss.rule(event=ORDER)
    def paid_later(e):
        return implies(e.kind == "placed", eventually(paid))

    return paid_later


def none_of(kind="lost"):
    @ss.rule(event={"kind": str})
    def none(e):
        return e.kind != kind

    return none


def ratio():
    @ss.rule(event={"x": int})
    def ratio(e):
        return 10 // e.x > 0

    return ratio


@ss.operator(event={"x": int}, emits={"x": int})
def plain(event, emit):
    emit(event.x)
"""
MINUTE = 60_000_000
ORDERS = {
    "at": [minute * MINUTE for minute in (0, 5, 10, 30, 36, 90)],
    "order": ["a", "b", "c", "a", "b", "d"],
    "kind": ["placed", "placed", "placed", "paid", "paid", "placed"],
    "left": [1, 2, 3, 4, 5, 6],
}
LATE = (5, 10, 90)
CLOCK = {minute: f"{minute // 60:02}:{minute % 60:02}" for minute in range(200)}


def orders(times: pa.DataType | None = None) -> pa.Table:
    table = pa.table(ORDERS)
    if times is None:
        return table
    return table.set_column(0, "at", table["at"].cast(pa.timestamp("us")).cast(times))


def write_parquet(path: Path, table: pa.Table) -> None:
    pq.write_table(table, path, row_group_size=2)


def write_csv(path: Path, table: pa.Table) -> None:
    pyarrow.csv.write_csv(table, path)
    head, *lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(["# orders\n", head, "# a, b\n", *lines, "#\n"]))


def write_packed(path: Path, table: pa.Table) -> None:
    write_csv(path, table)
    path.write_bytes(gzip.compress(path.read_bytes()))


def write_lines(path: Path, table: pa.Table) -> None:
    path.write_text("".join(json.dumps(row, default=str) + "\n" for row in table.to_pylist()))


def write_directory(path: Path, table: pa.Table) -> None:
    path.mkdir()
    write_parquet(path / "1.parquet", table.slice(0, 2))
    write_csv(path / "2.csv", table.slice(2, 2))
    write_lines(path / "3.jsonl", table.slice(4))
    (path / "_SUCCESS").touch()


WRITERS: dict[str, Callable[[Path, pa.Table], None]] = {
    "orders.parquet": write_parquet,
    "orders.csv": write_csv,
    "orders.csv.gz": write_packed,
    "orders.jsonl": write_lines,
    "orders": write_directory,
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """A file of orders by its name's ending."""
    for name, write in WRITERS.items():
        write(tmp_path / name, orders())
    return tmp_path


def report(*arguments: object, status: int = 1) -> dict[str, Any]:
    done = invoke("check", *arguments, "--json")
    assert done.exit_code == status, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def refused(*arguments: object) -> str:
    done = invoke("check", *arguments)
    assert done.exit_code == 2, done.output
    assert done.stdout == ""
    return done.stderr


@pytest.mark.parametrize(
    ("name", "times"),
    [
        *((name, None) for name in WRITERS),
        ("orders.parquet", pa.timestamp("ms")),
        ("orders.csv", pa.timestamp("us", "UTC")),
        ("orders.jsonl", pa.timestamp("us", "UTC")),
    ],
    ids=str,
)
def test_all_formats_give_the_same_answer(
    operators: Path, tmp_path: Path, name: str, times: pa.DataType | None
) -> None:
    table = orders(times)
    WRITERS[name](tmp_path / name, table)
    found = report(f"{operators}:paid_in_time", tmp_path / name, "--order-by", "at")
    assert (found["rule"], found["rows"], found["violations"]) == ("paid_in_time", 6, 3)
    assert not found["held"]
    assert found["open"] == 0
    told: list[tuple[Any, Any]] = [(minute * MINUTE, (minute + 30) * MINUTE) for minute in LATE]
    if times is not None:
        zone = "+00:00" if times.tz and name.endswith("csv") else ""
        told = [
            (f"1970-01-01 {CLOCK[minute]}:00{zone}", f"1970-01-01 {CLOCK[minute + 30]}:00{zone}")
            for minute in LATE
        ]
    assert [(one["time"], one["decided"]) for one in found["shown"]] == told
    assert [one["key"] for one in found["shown"]] == [{"order": one} for one in "bcd"]
    assert {one["because"] for one in found["shown"]} == {"eventually(paid, within='30 minutes')"}
    assert [one["kept"] for one in found["shown"]] == [{"kind": "placed"}] * 3
    inside = [(Path(one["file"]).name, one["row"]) for one in found["shown"]]
    expected_rows = [(name, 1), (name, 2), (name, 5)]
    if name == "orders":
        expected_rows = [("1.parquet", 1), ("2.csv", 0), ("3.jsonl", 1)]
    assert inside == expected_rows


def test_the_table_shows_the_first_violations_and_counts_all(operators: Path, files: Path) -> None:
    given = (f"{operators}:paid_in_time", files / "orders.csv", "--order-by", "at")
    done = invoke("check", *given, "--limit", 2)
    assert done.exit_code == 1
    head, *lines = done.stdout.splitlines()
    assert head.split() == ["order", "time", "decided", "because", "kind", "row"]
    assert lines[0].split()[:3] == ["b", str(5 * MINUTE), str(35 * MINUTE)]
    assert lines[-2:] == ["... 1 more", "paid_in_time is violated 3 times in 6 rows"]
    assert len(report(*given, "--limit", 0)["shown"]) == 0
    assert len(report(*given)["shown"]) == 3


@pytest.mark.slow
def test_exit_statuses(operators: Path, files: Path) -> None:
    def status(*arguments: object) -> tuple[int, str]:
        command = [sys.executable, "-m", "specstream.cli", "check", *map(str, arguments)]
        done = subprocess.run(command, check=False, capture_output=True, text=True)
        return done.returncode, done.stdout

    rule = f"{operators}:none_of"
    assert status(rule, files / "orders") == (0, "none holds in 6 rows\n")
    code, text = status(rule, "--arg", "kind='paid'", files / "orders")
    assert (code, text.splitlines()[-1]) == (1, "none is violated 2 times in 6 rows")
    assert status(rule, files / "order") == (2, "")


def test_options_make_the_rule_again(operators: Path, files: Path) -> None:
    given = (f"{operators}:paid_later", files / "orders.parquet")
    # Without a key any payment will do, and row numbers are the times.
    assert report(*given, status=0)["open"] == 1
    (last,) = report(*given, "--at-end", "closed")["shown"]
    assert (last["time"], last["decided"], last["row"]) == (5, None, 5)
    found = report(*given, "--at-end", "closed", "--key", "order")
    assert [one["key"] for one in found["shown"]] == [{"order": "c"}, {"order": "d"}]
    assert found["open"] == 0
    open_ = report(*given, "--key", "order,kind", status=0)
    assert open_["open"] == 4
    done = invoke("check", *given)
    assert done.stdout == "paid_later holds in 6 rows; 1 is open at the end\n"


@pytest.mark.parametrize(
    ("rule", "arguments", "message"),
    [
        (":paid_in_time", ("orders.csv",), "has bounds of time: give --order-by"),
        (":paid_in_time", ("orders.csv", "--order-by", "aat"), "(did you mean 'at'?)"),
        (":paid_in_time", ("orders.parquet", "--order-by", "aat"), "(did you mean 'at'?)"),
        (":paid_in_time", ("orders.jsonl", "--order-by", "aat"), "(did you mean 'at'?)"),
        (":paid_in_time", ("orders.csv", "--order-by", "kind"), "expected integers or times"),
        (":paid_in_time", ("orders.csv", "--key", "order", "--order-by", "at"), "leave out --key"),
        (":paid_later", ("orders.csv", "--key", "ordre"), "there is no column 'ordre'"),
        (":paid_later", ("orders.csv", "--at-end", "shut"), "'shut' is not one of"),
        (":paid_later", ("order.csv",), "(did you mean"),
        (":paid_later", ("sums.py",), "is not known by its ending; expected Parquet"),
        (":paid_later", ("empty",), "there are no files in"),
        (":paid_later", (), "Missing argument 'FILE...'"),
        (":paid_lator", ("orders.csv",), "rules in it: paid_in_time"),
        (":plain", ("orders.csv",), "is an operator, and no rule"),
        (":ORDER", ("orders.csv",), "is a dict; expected a rule made with @ss.rule"),
        (":ratio", ("orders.csv",), "reads column 'x', which"),
    ],
)
def test_what_is_refused(
    operators: Path, files: Path, rule: str, arguments: tuple[str, ...], message: str
) -> None:
    (files / "empty").mkdir()
    paths = [files / one if "." in one or one == "empty" else one for one in arguments]
    assert message in refused(f"{operators}{rule}", *paths)


def test_the_only_rule_of_a_module_needs_no_name(tmp_path: Path, files: Path) -> None:
    module = tmp_path / "alone.py"
    module.write_text(
        "import specstream as ss\n\n\n@ss.rule(event={'kind': str})\ndef known(e):\n"
        "    return e.kind in ('paid', 'placed')\n"
    )
    assert report(module, files / "orders.csv", status=0)["held"]
    assert "--arg belongs to MODULE:RULE" in refused(module, files / "orders.csv", "--arg", "a=1")
    module.write_text(module.read_text() + "\n\nother, known = known.again(key='kind'), known\n")
    assert f"has 2 rules: name one, {module}:known or {module}:other" in refused(
        module, files / "orders.csv"
    )
    module.write_text("")
    assert "has no rules: name one" in refused(module, files / "orders.csv")


def test_rows_have_to_be_in_order(operators: Path, tmp_path: Path) -> None:
    table = orders()
    mixed = tmp_path / "mixed.csv"
    write_csv(mixed, table.take([0, 1, 3, 2, 4, 5]))
    rule = (f"{operators}:paid_in_time", "--order-by", "at")
    message = refused(*rule, mixed)
    assert f"row 3 of {mixed} has at {10 * MINUTE}, and the row before it {30 * MINUTE}" in message
    assert "sort them first" in message
    write_parquet(tmp_path / "1.parquet", table.slice(0, 3))
    write_csv(tmp_path / "2.csv", table.slice(3))
    message = refused(*rule, tmp_path / "2.csv", tmp_path / "1.parquet")
    assert f"row 0 of {tmp_path / '1.parquet'} has at 0" in message
    assert "give the files in the order of their times" in message
    found = report(*rule, tmp_path / "1.parquet", tmp_path / "2.csv")
    assert [one["row"] for one in found["shown"]] == [1, 2, 2]


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "at,order,kind\n1,a,paid\n,a,paid\n", "row 1 of {path} has no value in"),
        ("a.csv", "at,order,kind\n1,a,paid\nx,a,paid\n", "integers or ISO times"),
        ("a.csv", "at,order,kind\n1,a\n", "cannot be read as CSV"),
        ("a.csv", "", "cannot be read as CSV"),
        ("a.csv", "at,order,kind,kind\n1,a,b,c\n", "has more than once"),
        ("a.jsonl", '{"at": 1, "order": "a", "kind": null}\n', "row 0 of {path}"),
        ("a.jsonl", '{"at": 1, "order": "a", "kind": 3}\n', "cannot be read as JSON lines"),
        ("a.parquet", "no", "cannot be read as Parquet"),
    ],
)
def test_broken_files_are_named(
    operators: Path, tmp_path: Path, name: str, text: str, message: str
) -> None:
    path = tmp_path / name
    path.write_text(text)
    found = refused(f"{operators}:paid_in_time", path, "--order-by", "at")
    assert message.format(path=path) in found
    assert "Traceback" not in found


def test_types_are_those_of_the_rule_and_times_are_looked_at(
    operators: Path, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    rule = (f"{operators}:paid_in_time", path, "--order-by", "at")
    # Texts that look like numbers, an empty one, and fractions that come later.
    path.write_text(
        "at,order,kind\n2024-02-29 12:00:00,007,placed\n2024-02-29 12:00:00.5,,placed\n"
        "2024-02-29 12:30:00.000001,7,paid\n2024-02-29 12:30:00.5,,paid\n"
    )
    (one,) = report(*rule)["shown"]
    assert one["key"] == {"order": "007"}
    assert one["time"] == "2024-02-29 12:00:00"
    empty = tmp_path / "0.jsonl"
    empty.write_text("")
    assert report(*rule, empty)["violations"] == 1
    write_lines(tmp_path / "b.jsonl", orders())
    message = refused(*rule, tmp_path / "b.jsonl")
    assert "is int64, and in the files before timestamp[us]" in message


def test_a_rule_of_first_events_is_told_by_trace(operators: Path, files: Path) -> None:
    given = (f"{operators}:ever_paid", files / "orders.csv", "--at-end", "closed")
    found = report(*given)
    assert found["violations"] == len(found["shown"]) > 0
    assert all(one.keys() == {"time", "because", "key"} for one in found["shown"])
    assert {one["because"] for one in found["shown"]} == {"eventually(paid)"}
    done = invoke("check", *given)
    assert done.exit_code == 1
    assert "order" in done.stdout
    assert "leave --why out" in refused(*given, "--why")


def test_a_condition_that_raises_is_no_verdict(operators: Path, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("x\n1\n2\n0\n")
    message = refused(f"{operators}:ratio", path)
    assert f"raised by row 2 of {path}" in message
    assert message.endswith("Error: ZeroDivisionError: integer division or modulo by zero\n")


def test_reasons_number_rows_as_the_files_have_them(operators: Path, files: Path) -> None:
    one_file = (f"{operators}:paid_in_time", files / "orders.csv", "--order-by", "at", "--why")
    for one in report(*one_file)["shown"]:
        proof = one["why"]["proof"]
        assert (proof["row"], proof["verdict"]) == (one["row"], False)
        assert proof["columns"] == {"order": one["key"]["order"], "kind": "placed"}
        assert "row" not in proof["columns"]
    done = invoke("check", *one_file, "--limit", 1)
    row = report(*one_file, "--limit", 1)["shown"][0]["row"]
    assert f"row {row} of {files / 'orders.csv'}:\nfalse at row {row} (" in done.stdout
    # Through several files they are numbered on.
    several = (f"{operators}:paid_in_time", files / "orders", "--order-by", "at", "--why")
    reasons = [one["why"]["proof"]["row"] for one in report(*several)["shown"]]
    assert reasons == [one["row"] for one in report(*one_file)["shown"]]
    assert "rows are numbered through all files" in invoke("check", *several).stdout
    closed = (f"{operators}:paid_later", files / "orders.csv", "--at-end", "closed")
    proof = report(*closed, "--why")["shown"][0]["why"]["proof"]
    assert (proof["columns"]["order"], proof["time"]) == ("d", None)


def test_a_long_input_is_never_in_memory_as_a_whole(
    operators: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 1_000_000
    kinds = np.where(np.arange(count) % 100_000 == 99_999, "lost", "kept")
    table = pa.table({"at": np.arange(count), "kind": kinds})
    path = tmp_path / "long.parquet"
    pq.write_table(table, path, row_group_size=20_000)
    size = table.nbytes
    del table
    monkeypatch.setattr(event_files, "ROWS", 10_000)
    before, seen = pa.total_allocated_bytes(), []
    processed = checking._processed

    def looked_at(*given: Any) -> pa.Table:
        seen.append(pa.total_allocated_bytes() - before)
        return processed(*given)

    monkeypatch.setattr(checking, "_processed", looked_at)
    found = report(f"{operators}:none_of", path, "--order-by", "at", "--limit", 3)
    assert (found["rows"], found["violations"]) == (count, 10)
    assert [one["row"] for one in found["shown"]] == [99_999, 199_999, 299_999]
    assert len(seen) == 100
    assert max(seen) < size / 4

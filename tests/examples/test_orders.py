"""The orders example: its rules beside pandas and rows by hand, its day, its command."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from rich.console import Console

import specstream as ss
from examples.orders import __main__ as command
from examples.orders.check import expected
from examples.orders.day import BEGIN, COLUMNS, WRONG, as_table, made, write_files
from examples.orders.picture import draw
from examples.orders.rules import RULES, orders

FOLDER = Path(__file__).parents[2] / "examples" / "orders"
NAMES = [rule.name for rule in RULES]


def table(*events: tuple[Any, ...]) -> pd.DataFrame:
    """Of events that are written as their minute, order, kind, by whom, and amount."""
    rows = [(BEGIN + pd.Timedelta(minutes=at), *rest) for at, *rest in events]
    return pd.DataFrame(rows, columns=COLUMNS).astype({"time": "datetime64[us, UTC]"})


def alarms(events: pd.DataFrame) -> dict[str, pa.Table]:
    with ss.Engine(orders(), threads=2) as engine:
        found: dict[str, pa.Table] = engine.process(as_table(events), order_by="time", end=True)
    return found


def by_minutes(events: pd.DataFrame) -> dict[str, list[tuple[str, float, float]]]:
    """By rule, which orders violate it: at which minute, and settled at which one."""

    def minute(time: Any) -> float:
        return float((pd.Timestamp(time) - BEGIN).total_seconds() / 60)

    found = {
        name: [
            (row["order"], minute(row["time"]), minute(row["decided"])) for row in rows.to_pylist()
        ]
        for name, rows in alarms(events).items()
    }
    for name, frame in expected(events).items():
        assert found[name] == [
            (o, minute(t), minute(d)) for o, t, d in frame.itertuples(index=False)
        ]
    return found


def test_rows_by_hand() -> None:
    events = table(
        (0, "a", "placed", "customer", 500.0),
        (0, "b", "placed", "customer", 500.0),
        (30, "a", "paid", "customer", 500.0),  # just in time
        (31, "c", "placed", "customer", 50.0),
        (40, "a", "sent", "ann", 500.0),
        (41, "c", "sent", "ann", 50.0),
        (42, "c", "paid", "customer", 50.0),
        (50, "a", "approved", "ann", 500.0),
        (51, "a", "refunded", "ann", 500.0),
        (52, "a", "back", "bob", 500.0),
        (53, "c", "back", "bob", 50.0),
        (54, "c", "refunded", "ann", 50.0),  # so little needs nobody else
    )
    assert by_minutes(events) == {
        "paid_in_time": [("b", 0.0, 30.0)],
        "four_eyes": [("a", 51.0, 51.0)],
        "sent_when_paid": [("c", 41.0, 41.0)],
        "back_before_refund": [("a", 40.0, 51.0)],
    }


@pytest.mark.parametrize("seed", [2, 3])
def test_alarms_are_those_of_pandas_and_those_that_were_planted(seed: int) -> None:
    events, planted = made(4000, seed, 4)
    found = {name: rows.to_pandas() for name, rows in alarms(events).items()}
    for name, frame in expected(events).items():
        assert found[name][list(frame)].to_dict("list") == frame.to_dict("list")
    told = sorted((name, order) for name, of in found.items() for order in of["order"])
    assert told == sorted(planted)
    assert len(told) == 4 * len(WRONG)


def test_the_rules_on_all_settings() -> None:
    events, _ = made(1000, 5, 2)
    settings = ss.testing.settings()[1::4]
    run = ss.testing.check(orders(), as_table(events), order_by="time", settings=settings)
    assert all(run.output[name].num_rows >= 2 for name in NAMES)


# ---- the day ----


def test_a_day_is_made_from_its_seed() -> None:
    events, planted = made(4000, 1, 3)
    assert events.equals(made(4000, 1, 3)[0])
    assert not events.equals(made(4000, 2, 3)[0])
    assert abs(len(events) - 4000) < 300
    assert events["time"].is_monotonic_increasing
    assert len(planted) == 3 * len(WRONG)
    assert made(4000, 1, 0)[1] == []


def test_files_are_the_day_in_parts(tmp_path: Path) -> None:
    events, _ = made(1000, 1, 0)
    write_files(events, tmp_path / "orders", 3)
    parts = [pq.read_table(path) for path in sorted((tmp_path / "orders").iterdir())]
    assert len(parts) == 3
    assert pa.concat_tables(parts).equals(as_table(events))


# ---- picture, page, command ----


def test_the_picture_shows_every_alarm() -> None:
    found = expected(made(2000, 1, 3)[0])
    marks: list[Any] = list(draw(found).axes[0].collections)
    assert sum(len(of.get_offsets()) for of in marks[1::2]) == sum(map(len, found.values())) == 24


def test_the_code_of_the_page_is_that_of_the_program() -> None:
    program = (FOLDER / "rules.py").read_text()
    blocks = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        assert block in program


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--events", "10"], "--events 10: at least 1000"),
        (["--violations", "-1"], "--violations -1: at least 0"),
        (["--events", "1000", "--violations", "9"], "--violations 9: too many"),
        (["--threads", "0"], "--threads 0: at least 1"),
    ],
)
def test_an_option_that_cannot_be_is_refused(
    given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(given)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.spark
def test_the_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = tmp_path / "day.parquet"
    given = ["--events", "1200", "--violations", "2", "--day", str(day)]
    assert command.main([*given, "--output", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["alarms"] == dict.fromkeys(NAMES, 4)
    assert list(result["checks"].values()) == [True, True, True]
    assert pq.read_table(day).num_rows == result["events"]
    assert (tmp_path / "orders.png").read_bytes().startswith(b"\x89PNG")
    command.show(result, Console(highlight=False))
    printed = capsys.readouterr().out
    assert "4 violate four_eyes" in printed
    assert printed.count(": yes\n") == 3

"""The fraud example: its pipeline beside a model, its payments, and its command."""

from __future__ import annotations

import doctest
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

import specstream as ss
from examples.fraud import __main__ as command
from examples.fraud.payments import (
    COLUMNS,
    DELAY,
    KINDS,
    BadCsv,
    as_table,
    made,
    read_csv,
    write_files,
)
from examples.fraud.picture import draw
from examples.fraud.pipeline import (
    ALONE,
    FASTEST,
    KNOWN,
    LISTED,
    MOST,
    NEAR,
    NOTICED,
    WEIGHT,
    WINDOW,
    fraud,
    kilometres,
)
from examples.fraud.score import score

HEAD = ",".join(COLUMNS)
ROW = "2026-01-05,a,shop,52.5,13.4,12.50"


def arrived(payments: pd.DataFrame, directory: Path) -> pa.Table:
    write_files(payments, directory / "files", files=4, seed=5)
    return as_table(directory / "files")


distance: Callable[..., float] = kilometres


# ---- a model, which knows nothing of specstream ----


def decisions_of(payments: pd.DataFrame) -> list[tuple[int, str, str]]:
    """(number, decision, reason) by loops over lists."""
    before: dict[str, list[int]] = {}
    places: dict[str, tuple[int, float, float]] = {}
    usual: dict[str, tuple[int, float]] = {}
    alarms: dict[str, tuple[int, str]] = {}
    hit: dict[str, int] = {}
    found = []
    for one in payments.sort_values("time", kind="stable").itertuples():
        now, amount = one.time.value // 1000, one.amount
        reason, merchant = "", one.merchant
        recent = [at for at in before.get(one.card, []) if now - at < WINDOW] + [now]
        before[one.card] = recent

        last = places.get(one.card)
        far = 0.0 if last is None else distance(last[1], last[2], one.latitude, one.longitude)
        is_far = last is not None and far > max(NEAR, FASTEST * (now - last[0]) / 3.6e9)
        if not is_far:
            places[one.card] = now, one.latitude, one.longitude

        count, mean = usual.get(one.card, (0, 0.0))
        times = amount / max(mean, 1.0) if count >= KNOWN and amount >= NOTICED * mean else 0.0
        if times == 0.0:
            count += 1
            usual[one.card] = count, mean + (amount - mean) * max(WEIGHT, 1.0 / count)

        if len(recent) > MOST:
            reason = "velocity"
        elif is_far:
            reason = "travel"
        elif times >= ALONE:
            reason = "amount"
        is_hit = merchant in hit and now - hit[merchant] < LISTED
        if reason:
            at, card = alarms.get(merchant, (-LISTED, one.card))
            if is_hit or (now - at < LISTED and card != one.card):
                hit[merchant] = now
            alarms[merchant] = now, one.card
            found.append((one.number, "decline", reason))
        elif times and is_hit:
            found.append((one.number, "review", "merchant"))
    return found


def rows_of(output: pa.Table) -> list[tuple[int, str, str]]:
    return [(row["number"], row["decision"], row["reason"]) for row in output.to_pylist()]


def test_the_pipeline_decides_as_the_model_does(tmp_path: Path) -> None:
    payments = made(9000, seed=3)
    with ss.Engine(fraud(), threads=2) as engine:
        output = engine.process(arrived(payments, tmp_path), order_by="time")
    expected = decisions_of(payments)
    assert rows_of(output) == expected
    assert {reason for _, _, reason in expected} == {"velocity", "travel", "amount", "merchant"}
    by_number = payments.set_index("number")
    for row in output.to_pylist()[:50]:
        of = by_number.loc[row["number"]]
        assert (row["time"], row["card"], row["merchant"]) == (of.time, of.card, of.merchant)
        assert row["amount"] * 100 == int(of.amount)


@pytest.mark.slow
def test_the_pipeline_on_all_settings(tmp_path: Path) -> None:
    payments = made(1000, seed=2)
    half = payments[payments["time"] > payments["time"].quantile(0.4)]
    settings = ss.testing.settings()[1::3]
    run = ss.testing.check(fraud(), arrived(half, tmp_path), order_by="time", settings=settings)
    assert len(set(run.output["reason"].to_pylist())) >= 3


def test_a_ring_is_found_by_what_all_cards_share_only(tmp_path: Path) -> None:
    payments = made(9000, seed=3)
    table = arrived(payments, tmp_path)
    ring = payments[payments["fraud"] == "ring"]

    def found(table: pa.Table) -> pd.DataFrame:
        with ss.Engine(fraud()) as engine:
            decisions = engine.process(table, order_by="time").to_pandas()
        return decisions[decisions["number"].isin(ring["number"])]

    together = found(table)
    # By card: each has a pipeline of its own, as it would have with a key.
    by_card = pd.concat(
        found(table.filter(pa.compute.field("card") == card)) for card in ring["card"].unique()
    )
    assert set(by_card["reason"]) == {"amount"}
    assert set(by_card["number"]) < set(together["number"])
    assert len(together) > 0.8 * len(ring) > 5 * len(by_card)


def test_kilometres_are_those_of_the_earth() -> None:
    assert distance(52.52, 13.40, 52.52, 13.40) == 0.0
    assert distance(0.0, 0.0, 0.0, 180.0) == pytest.approx(math.pi * 6371.0)
    assert distance(52.52, 13.40, 48.86, 2.35) == pytest.approx(878.0, rel=0.01)
    assert distance(10.0, 179.0, 10.0, -179.0) == pytest.approx(219.0, rel=0.01)


# ---- payments ----


def test_payments_are_made_from_their_seed() -> None:
    payments = made(3000, seed=1)
    assert list(payments.columns) == ["number", *COLUMNS, "fraud"]
    assert payments.equals(made(3000, seed=1))
    assert not payments.equals(made(3000, seed=2))
    assert 2700 < len(payments) < 3300
    assert set(payments["fraud"]) == {"", *KINDS}
    assert 0.005 < (payments["fraud"] != "").mean() < 0.05
    assert payments["time"].is_monotonic_increasing


def test_payments_arrive_out_of_order_and_none_is_lost(tmp_path: Path) -> None:
    payments = made(2000, seed=1)
    table = arrived(payments, tmp_path).to_pandas()
    late = table["time"].cummax() - table["time"]
    assert pd.Timedelta(0) < late.max() <= pd.Timedelta(seconds=DELAY)
    table["amount"] = (table["amount"] * 100).astype("int64")
    pd.testing.assert_frame_equal(
        table.sort_values("number", ignore_index=True), payments[["number", *COLUMNS]],
        check_dtype=False,
    )  # fmt: skip


def write_csv(payments: pd.DataFrame, path: Path) -> None:
    amounts = payments["amount"].map(lambda cents: f"{cents // 100}.{cents % 100:02d}")
    payments.assign(amount=amounts, note="x").drop(columns="number").to_csv(path, index=False)


def test_a_csv_file_is_read(tmp_path: Path) -> None:
    payments = made(1000, seed=1)
    write_csv(payments, tmp_path / "payments.csv")
    pd.testing.assert_frame_equal(read_csv(tmp_path / "payments.csv"), payments)


def test_a_csv_file_need_not_say_what_is_fraud(tmp_path: Path) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(f"{HEAD}\n{ROW}\n")
    (payment,) = read_csv(path).to_dict("records")
    assert "fraud" not in payment
    assert payment["amount"] == 1250
    assert payment["time"] == pd.Timestamp("2026-01-05", tz="UTC")
    path.write_text(f"{HEAD},fraud\n{ROW},0\n{ROW},No\n{ROW},1\n{ROW},\n")
    assert read_csv(path)["fraud"].tolist() == ["", "", "1", ""]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([], "no column 'time'; expected time, card, merchant, latitude, longitude, amount"),
        ([HEAD.replace("merchant", "shop"), ROW], "no column 'merchant'"),
        ([HEAD], "no payments"),
        ([HEAD, ROW.replace("2026-01-05", "yesterday")], "line 2: time is 'yesterday'"),
        ([HEAD, ROW, ROW.replace(",a,", ",,")], "line 3: card is ''; expected a name"),
        ([HEAD, ROW.replace("52.5", "91")], "latitude is '91'; expected degrees from -90 to 90"),
        ([HEAD, ROW.replace("13.4", "nan")], "longitude is 'nan'; expected degrees from -180"),
        ([HEAD, ROW.replace("12.50", "12.505")], "amount is '12.505'; expected an amount"),
        ([HEAD, ROW.replace("12.50", "-1")], "amount is '-1'; expected an amount of at least 0"),
        ([HEAD, ROW.replace("12.50", "NaN")], "amount is 'NaN'"),
        ([HEAD, ROW.replace("12.50", "Infinity")], "amount is 'Infinity'"),
        ([HEAD, ROW.replace(",12.50", "")], "amount is ''"),
    ],
)
def test_a_csv_file_that_is_none_is_refused(
    tmp_path: Path, lines: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "payments.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(BadCsv) as refused:
        read_csv(path)
    assert str(refused.value).startswith(str(path))
    assert message in str(refused.value)
    assert command.main(["--csv", str(path), "--output", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err


# ---- score, picture, command ----


def test_the_score_counts_what_was_met() -> None:
    payments = pd.DataFrame({"number": range(5), "fraud": ["", "ring", "ring", "burst", ""]})
    decisions = pd.DataFrame({"number": [0, 1, 3], "reason": ["amount", "amount", "velocity"]})
    assert score(payments, decisions) == {
        "precision": 2 / 3,
        "recall": 2 / 3,
        "kinds": {"burst": {"frauds": 1, "found": 1}, "ring": {"frauds": 2, "found": 1}},
        "reasons": {
            "amount": {"decisions": 2, "right": 1},
            "velocity": {"decisions": 1, "right": 1},
        },
    }
    nothing = score(payments.assign(fraud=""), decisions.head(0))
    assert (nothing["precision"], nothing["recall"]) == (None, None)


def test_the_example_of_the_score_is_right() -> None:
    assert doctest.testmod(sys.modules[score.__module__]) == (0, 4)


def test_the_picture_shows_every_decision(tmp_path: Path) -> None:
    payments = made(3000, seed=1)
    with ss.Engine(fraud(), threads=2) as engine:
        decisions = engine.process(arrived(payments, tmp_path), order_by="time").to_pandas()
    kinds = score(payments, decisions)["kinds"]
    amounts, bars = draw(payments, decisions, kinds).axes
    every, *by_reason = amounts.collections
    offsets: Any = every.get_offsets()
    assert len(offsets) == len(payments)
    marks: list[Any] = [of.get_offsets() for of in by_reason]
    assert sum(map(len, marks)) == len(decisions) > 0
    assert [label.get_text() for label in bars.get_yticklabels()] == sorted(KINDS)
    assert len(draw(payments, decisions, {}).axes) == 1


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--payments", "10"], "--payments 10: at least 1000"),
        (["--seed", "-1"], "--seed -1: at least 0"),
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
@pytest.mark.long
def test_the_command_runs(
    spark_at_the_end: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "new"
    given = ["--payments", "2000", "--seed", "4", "--output", str(output), "--json"]
    assert command.main(given) == 0
    result = json.loads(capsys.readouterr().out)
    payments = made(2000, seed=4)
    expected = decisions_of(payments)
    assert result["identical"] is True
    assert result["payments"] == len(payments)
    for reason, count in result["decisions"].items():
        assert count == sum(of[2] == reason for of in expected)
    assert sum(result["decisions"].values()) == len(expected)
    frauds = payments[payments["fraud"] != ""]
    right = frauds["number"].isin([number for number, _, _ in expected]).sum()
    assert result["precision"] == right / len(expected)
    assert result["recall"] == right / len(frauds)
    assert Path(result["picture"]).read_bytes().startswith(b"\x89PNG")


@pytest.mark.spark
def test_the_command_runs_where_nothing_is_suspicious(
    spark_at_the_end: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "payments.csv"
    path.write_text(f"{HEAD}\n" + f"{ROW}\n" * 3)
    assert command.main(["--csv", str(path), "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "3 payments of 1 cards" in printed
    assert "identical to the sequential run: yes" in printed
    assert "precision" not in printed

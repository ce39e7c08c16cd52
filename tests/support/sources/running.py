"""A run of a source in a thread of its own, which a test looks at and stops."""

from __future__ import annotations

import threading
import time
from typing import Any

import pyarrow as pa

import specstream as ss
from specstream.sources.options import RunOptions
from specstream.sources.running import SourceFeed
from support.sources.feeding_driver import chain


class Running:
    """A run in a thread."""

    def __init__(self, events: Any, **options: Any) -> None:
        self.tables: list[pa.Table] = []
        self.stop = threading.Event()
        self.error: BaseException | None = None
        options = {"to": lambda table, _: self.tables.append(table), **options}
        self.engine = ss.Engine(chain, threads=2, horizon=4)
        self.feed = SourceFeed(self.engine, events, RunOptions(**options))
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self) -> None:
        try:
            self.feed.run(self.stop)
        except BaseException as error:
            self.error = error

    def wait_for(self, rows: int) -> None:
        until = time.monotonic() + 60
        while self.feed.stats.events < rows:
            assert self.error is None, self.error
            assert time.monotonic() < until, self.feed.stats
            time.sleep(0.01)

    def end(self) -> pa.Table:
        self.stop.set()
        self.thread.join(60)
        self.feed.close()
        self.engine.close()
        if self.error is not None:
            raise self.error
        return pa.concat_tables(self.tables) if self.tables else None

"""What a stream of batches is to be run with, and whether that can be."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass

from specstream.checkpoint.delivery import Sink, is_sink
from specstream.checkpoint.event_time import Amount
from specstream.engine.engine import Engine
from specstream.engine.snapshot import Migrate
from specstream.engine.sources import Late, Name, checked_sources
from specstream.errors import ConfigurationError

__all__ = ["StreamOptions"]


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The options of ``foreach_batch``, which says what each of them means.

    They are listed here, with types and defaults, and nowhere else: its signature is this one.
    """

    to: Sink
    order_by: str | None = None
    source: str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    keep_batches: int = 0
    rejected_rows_to: Sink | None = None
    migrate: Migrate | None = None
    prefetch: bool = False
    watermark: Amount | None = None
    idle_timeout: Amount | None = None
    sources: Iterable[Name] = ()
    late: Late | None = None
    late_to: Sink | None = None

    def check(self, engine: Engine) -> None:
        """Whether they go together, and with the engine; the rest is told by who uses it.

        Raises:
            ConfigurationError: they do not.
        """
        for option, column in (("order_by", self.order_by), ("source", self.source)):
            if column is not None and not isinstance(column, str):
                raise ConfigurationError(
                    f"{option}={column!r}: expected the name of a column or None"
                )
        if not is_sink(self.to):
            raise ConfigurationError(
                f"to={self.to!r}: expected a sink such as ss.spark.parquet_sink(path), or any "
                "function (pyarrow.Table, batch_id)"
            )
        if self.migrate is not None and self.checkpoint is None:
            raise ConfigurationError(
                "migrate= converts the fields of a checkpoint: give checkpoint= as well"
            )
        self._check_keep()
        self._check_rejected(engine)
        if self.prefetch and self.checkpoint is None:
            raise ConfigurationError(
                "prefetch=True lets Spark go on before a batch has run, and keeps its rows beside "
                "the checkpoint until then: give checkpoint= as well"
            )
        self._check_event_time()

    def _check_keep(self) -> None:
        keep = self.keep_batches
        if isinstance(keep, bool) or not isinstance(keep, int) or keep < 0:
            raise ConfigurationError(
                f"keep_batches={keep!r}: expected the number of batches whose rows are kept "
                "for replay; 0 keeps those of a batch that fails"
            )
        if keep and self.checkpoint is None:
            raise ConfigurationError(
                f"keep_batches={keep} keeps rows beside a checkpoint: give checkpoint= as well"
            )

    def _check_rejected(self, engine: Engine) -> None:
        sink = self.rejected_rows_to
        if sink is None:
            return
        if not is_sink(sink):
            raise ConfigurationError(
                f"rejected_rows_to={sink!r}: expected a sink such as ss.spark.parquet_sink(path), "
                "or any function (pyarrow.Table, batch_id)"
            )
        if engine.durable.rejected.policy != "side":
            raise ConfigurationError(
                f"rejected_rows_to= gets the rows that the engine of {engine.name!r} leaves out, "
                'and it leaves out none: make it with rejected_rows="side"'
            )

    def _check_event_time(self) -> None:
        if self.watermark is not None:
            if self.order_by is None:
                raise ConfigurationError(
                    f"watermark={self.watermark!r} without order_by: give order_by=, the column of "
                    "the event time, as well"
                )
        elif (
            self.idle_timeout is not None
            or checked_sources(self.sources)
            or self.late is not None
            or self.late_to is not None
        ):
            raise ConfigurationError(
                "idle_timeout, sources, late and late_to are about events that wait for a "
                "watermark: give watermark= as well, or leave them out"
            )

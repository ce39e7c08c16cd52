"""Statistics of engines for Prometheus, read from the engines at each scrape.

::

    ss.metrics.watch(engine)                      # or what foreach_batch returned
    prometheus_client.start_http_server(9000)

Nothing is counted twice: the engine counts anyway, and a scrape looks at it (``engine.stats``),
also in the middle of a batch, which stops nobody. An engine that is closed, or that nobody has any
more, is gone at the next scrape.

===================================== ======= =========================================
name                                  type    what
===================================== ======= =========================================
specstream_events_total               counter events applied
specstream_commits_total              counter transactions committed
specstream_head_runs_total            counter transactions that the head ran at their first try
specstream_speculative_runs_total     counter runs of transactions ahead of their turn
specstream_aborts_total               counter runs dropped, by ``reason``
specstream_vertex_conflicts           gauge   of a pipeline: those for a ``vertex``, at least
specstream_busy_seconds_total         counter time inside batches
specstream_late_events_total          counter events below their source's frontier
specstream_horizon_transactions       gauge   transactions that may start ahead of the head
specstream_chunk_events               gauge   events per transaction
specstream_wait_queue_transactions    gauge   run ahead of their turn and not yet committed
specstream_pending_events             gauge   submitted and not committed
specstream_order_time_lag             gauge   order time from what is applied to what has come
specstream_rejected_rows              gauge   rows left out; it goes back where a batch is undone
specstream_failed_events              gauge   set aside; it goes back where a batch is undone
specstream_running                    gauge   1 while a batch is in flight
specstream_threads                    gauge   worker threads
specstream_log_bytes                  gauge   logs and buffers
specstream_state_bytes                gauge   the state
specstream_string_table_bytes         gauge   the string table
specstream_string_sweep_max_seconds   gauge   longest look for strings nobody refers to
specstream_early_transactions         gauge   applied and not final
specstream_early_bytes                gauge   held for them
specstream_early_lead_seconds         gauge   of early over final, by ``quantile``: 0.5 and 0.99
specstream_revocations_total          counter times that applied ones were taken back
specstream_revoked_total              counter transactions that were
specstream_republished_total          counter of these, published again without a run
specstream_rerun_total                counter of these, run again
specstream_revoking_seconds_total     counter time that this took
specstream_batches_total              counter micro-batches applied
specstream_repeated_batches_total     counter micro-batches answered from the record
specstream_emitted_rows_total         counter rows emitted into the sink
specstream_batch_seconds              summary time of micro-batches, by ``phase``
===================================== ======= =========================================

``specstream_bad_rows`` is the old name of ``specstream_rejected_rows``, and is told beside it until
version 0.3. Those from ``specstream_early_transactions`` on are of engines made with
``early=True``, the last four of a feed. All have the labels ``operator`` and ``engine``. The lag is
in seconds where the order column holds times.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

try:
    from prometheus_client import REGISTRY, CollectorRegistry
    from prometheus_client.core import (
        CounterMetricFamily,
        GaugeMetricFamily,
        Metric,
        SummaryMetricFamily,
    )
except ImportError as error:
    raise ImportError(
        'specstream.metrics needs prometheus_client: pip install "specstream[metrics]"'
    ) from error

from specstream.declarations.options import instance, refuses_unknown, shown
from specstream.declarations.options import text as text_or_none
from specstream.engine.early_statistics import EarlyStatistics
from specstream.engine.engine import Engine
from specstream.engine.statistics import Statistics
from specstream.errors import ConfigurationError

if TYPE_CHECKING:
    from specstream.spark.feed import BatchFeed

__all__ = ["EngineCollector", "watch"]

LABELS = ("operator", "engine")

COUNTERS: tuple[tuple[str, str, Callable[[Statistics], float]], ...] = (
    ("events", "Events applied.", lambda stats: stats.events),
    ("commits", "Transactions committed.", lambda stats: stats.commits),
    ("head_runs", "Transactions that the head ran at their first try.", lambda s: s.head_runs),
    ("speculative_runs", "Runs of transactions ahead of their turn.", lambda s: s.speculative_runs),
    ("busy_seconds", "Time inside batches.", lambda stats: stats.seconds),
    ("late_events", "Events that came below their source's frontier.", lambda stats: stats.late),
)
GAUGES: tuple[tuple[str, str, Callable[[Statistics], float | None]], ...] = (
    (
        "horizon_transactions",
        "How far ahead of the head a transaction may start.",
        lambda s: s.horizon,
    ),
    ("chunk_events", "Events per transaction.", lambda stats: stats.chunk),
    ("wait_queue_transactions", "Run ahead of their turn, not yet committed.", lambda s: s.waiting),
    ("pending_events", "Events submitted and not committed.", lambda stats: stats.pending),
    ("order_time_lag", "Order time from what is applied to what has come.", lambda s: s.lag),
    ("rejected_rows", "Rows left out because they cannot be events.", lambda s: s.rejected_rows),
    (
        "bad_rows",
        "Old name of specstream_rejected_rows, until version 0.3.",
        lambda s: s.rejected_rows,
    ),
    ("failed_events", "Events set aside, as their function raises.", lambda s: s.failed_events),
    ("running", "1 while a batch is in flight.", lambda stats: stats.running),
    ("threads", "Worker threads.", lambda stats: stats.threads),
    ("log_bytes", "Memory of logs and buffers.", lambda stats: stats.memory),
    ("state_bytes", "Memory of the state.", lambda stats: stats.state_bytes),
    ("string_table_bytes", "Memory of the string table.", lambda stats: stats.string_bytes),
    (
        "string_sweep_max_seconds",
        "Longest look for strings that nothing refers to.",
        lambda stats: stats.longest_string_sweep,
    ),
)
EARLY_COUNTERS: tuple[tuple[str, str, Callable[[EarlyStatistics], float]], ...] = (
    ("revocations", "Times that applied transactions were taken back.", lambda e: e.revocations),
    ("revoked", "Transactions taken back, as an earlier event came.", lambda e: e.revoked),
    ("republished", "Revoked, and published again without a run.", lambda e: e.republished),
    ("rerun", "Revoked, and run again.", lambda e: e.rerun),
    ("revoking_seconds", "Time spent revoking and publishing again.", lambda e: e.seconds),
)
EARLY_GAUGES: tuple[tuple[str, str, Callable[[EarlyStatistics], float]], ...] = (
    ("early_transactions", "Transactions applied and not final.", lambda e: e.transactions),
    ("early_bytes", "Memory held for them.", lambda e: e.bytes),
)
PHASES = ("reading", "running", "recording", "writing")


@dataclass(frozen=True)
class _Watched:
    """An engine under its labels; references are weak, as watching keeps nothing alive."""

    labels: tuple[str, str]
    engine: weakref.ref[Engine]
    feed: weakref.ref[BatchFeed] | None


class EngineCollector:
    """What a Prometheus registry asks; :func:`watch` makes one for each registry."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._watched: list[_Watched] = []

    def add(self, engine: Engine, feed: BatchFeed | None, name: str | None) -> None:
        """Watches an engine; watched already, it gets the new name or feed."""
        with self._guard:
            others = [
                one
                for one in self._watched
                if (known := one.engine()) is not None and known is not engine and not known.closed
            ]
            taken = {one.labels for one in others}
            if name is None:
                number = 1
                while (engine.name, str(number)) in taken:
                    number += 1
                name = str(number)
            if (engine.name, name) in taken:
                raise ConfigurationError(
                    f"name={name!r}: another engine of operator {engine.name!r} is watched under "
                    "that name; give each a name of its own, or none"
                )
            reference = None if feed is None else weakref.ref(feed)
            watched = _Watched((engine.name, name), weakref.ref(engine), reference)
            self._watched = [*others, watched]

    def describe(self) -> list[Metric]:
        """The metrics without their values, so that a registry knows the names."""
        return list(_families().values())

    def collect(self) -> Iterator[Metric]:
        """The metrics of all engines that are open."""
        families = _families()
        with self._guard:
            watched = list(self._watched)
        gone = []
        for one in watched:
            engine = one.engine()
            if engine is None or engine.closed:
                gone.append(one)
                continue
            _add_engine(families, one.labels, engine.stats)
            for vertex, count in engine.conflicts_by_vertex().items():
                families["vertex_conflicts"].add_metric((*one.labels, vertex), count)
            feed = one.feed() if one.feed is not None else None
            if feed is not None:
                _add_feed(families, one.labels, feed.stats)
        with self._guard:
            self._watched = [one for one in self._watched if one not in gone]
        yield from families.values()


def _families() -> dict[str, Any]:
    families: dict[str, Any] = {}
    for name, text, _ in (*COUNTERS, *EARLY_COUNTERS):
        families[name] = CounterMetricFamily(f"specstream_{name}", text, labels=LABELS)
    families["aborts"] = CounterMetricFamily(
        "specstream_aborts", "Runs dropped.", labels=(*LABELS, "reason")
    )
    families["vertex_conflicts"] = GaugeMetricFamily(
        "specstream_vertex_conflicts",
        "Runs dropped for what a vertex keeps, at least.",
        labels=(*LABELS, "vertex"),
    )
    for name, text, _ in (*GAUGES, *EARLY_GAUGES):
        families[name] = GaugeMetricFamily(f"specstream_{name}", text, labels=LABELS)
    families["early_lead_seconds"] = GaugeMetricFamily(
        "specstream_early_lead_seconds",
        "From telling rows early until they are final.",
        labels=(*LABELS, "quantile"),
    )
    for name, text in (
        ("batches", "Micro-batches applied."),
        ("repeated_batches", "Micro-batches that came again and were answered from the record."),
        ("emitted_rows", "Rows emitted into the sink."),
    ):
        families[name] = CounterMetricFamily(f"specstream_{name}", text, labels=LABELS)
    families["batch_seconds"] = SummaryMetricFamily(
        "specstream_batch_seconds", "Time of micro-batches.", labels=(*LABELS, "phase")
    )
    return families


def _add_engine(families: dict[str, Any], labels: tuple[str, str], stats: Statistics) -> None:
    for name, _, of in (*COUNTERS, *GAUGES):
        value = of(stats)
        if value is not None:
            families[name].add_metric(labels, value)
    for reason, count in stats.aborts.items():
        families["aborts"].add_metric((*labels, reason), count)
    if stats.early is not None:
        _add_early(families, labels, stats.early)


def _add_early(families: dict[str, Any], labels: tuple[str, str], early: EarlyStatistics) -> None:
    for name, _, of in (*EARLY_COUNTERS, *EARLY_GAUGES):
        families[name].add_metric(labels, of(early))
    for quantile, lead in (("0.5", early.lead_median), ("0.99", early.lead_p99)):
        if lead is not None:
            families["early_lead_seconds"].add_metric((*labels, quantile), lead)


def _add_feed(families: dict[str, Any], labels: tuple[str, str], stats: Any) -> None:
    families["batches"].add_metric(labels, stats.batches)
    families["repeated_batches"].add_metric(labels, stats.repeated)
    families["emitted_rows"].add_metric(labels, stats.rows)
    for phase in PHASES:
        families["batch_seconds"].add_metric(
            (*labels, phase), count_value=stats.batches, sum_value=getattr(stats, phase)
        )


_collectors: weakref.WeakKeyDictionary[CollectorRegistry, EngineCollector] = (
    weakref.WeakKeyDictionary()
)
_collectors_guard = threading.Lock()


@refuses_unknown
def watch(
    watched: Engine | BatchFeed,
    *,
    name: str | None = None,
    registry: CollectorRegistry = REGISTRY,
) -> None:
    """Has a Prometheus registry tell the statistics of an engine, until the engine is closed.

    Args:
        watched: an engine, or what :func:`specstream.spark.foreach_batch` returned: then the
            statistics of its micro-batches are told as well.
        name: the label ``engine``; by default the lowest free number, from 1 on, among engines of
            that operator. Once its engine is closed, a name is free again.
        registry: where the metrics are told.

    Raises:
        ConfigurationError: it is neither of both, or the name is that of another open engine of the
            same operator.

    >>> import prometheus_client, specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={})
    ... def count(state, event, emit):
    ...     state.count += 1
    >>> registry = prometheus_client.CollectorRegistry()
    >>> labels = {"operator": "count", "engine": "1"}
    >>> with ss.Engine(count) as engine:
    ...     ss.metrics.watch(engine, registry=registry)
    ...     _ = engine.process({"x": [1, 2, 3]})
    ...     registry.get_sample_value("specstream_events_total", labels)
    3
    >>> registry.get_sample_value("specstream_events_total", labels) is None
    True
    """
    feed = None
    engine: object = watched
    if not isinstance(watched, Engine):
        feed, engine = watched, getattr(watched, "engine", None)
    if not isinstance(engine, Engine):
        raise ConfigurationError(
            f"watch({shown(watched)}): expected an ss.Engine, or what "
            "ss.spark.foreach_batch(engine, ...) returned"
        )
    text_or_none("name", name, "the label of the engine, a text, or None")
    instance("registry", registry, CollectorRegistry, "a registry of prometheus_client")
    with _collectors_guard:
        collector = _collectors.get(registry)
        if collector is None:
            collector = EngineCollector()
            registry.register(collector)
            _collectors[registry] = collector
    collector.add(engine, feed, name)

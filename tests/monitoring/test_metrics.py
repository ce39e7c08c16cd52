"""Prometheus is told what the engines say, over HTTP, while they work."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import gc
import threading
import urllib.request
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.engine.spinning import Seen, spin

import specstream as ss

prometheus_client = pytest.importorskip("prometheus_client")

from prometheus_client.parser import text_string_to_metric_families  # noqa: E402

from specstream.monitoring.metrics import EngineCollector  # noqa: E402

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


@ss.operator(state=Seen, event={"x": int}, emits={"count": int})
def one_word(state, event, emit):
    state.count += event.x
    emit(state.count)


class Scraper:
    """A registry behind a real HTTP server, and what a scrape of it gives."""

    def __init__(self, registry: Any, port: int) -> None:
        self.registry = registry
        self.url = f"http://127.0.0.1:{port}/metrics"

    def __call__(self) -> Samples:
        with urllib.request.urlopen(self.url, timeout=60) as answer:
            text = answer.read().decode()
        return {
            (sample.name, frozenset(sample.labels.items())): sample.value
            for family in text_string_to_metric_families(text)
            for sample in family.samples
        }


@pytest.fixture
def scrape() -> Iterator[Scraper]:
    registry = prometheus_client.CollectorRegistry()
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    yield Scraper(registry, server.server_port)
    server.shutdown()
    server.server_close()
    thread.join()


def of(samples: Samples, name: str, operator: str, engine: str = "1", **labels: str) -> Any:
    return samples.get(
        (
            f"specstream_{name}",
            frozenset({"operator": operator, "engine": engine, **labels}.items()),
        )
    )


def test_a_scrape_tells_what_the_engine_says(scrape: Scraper) -> None:
    with ss.Engine(one_word, threads=2, horizon=8, chunk=1) as engine:
        ss.metrics.watch(engine, registry=scrape.registry)
        engine.process({"x": np.arange(2000)})
        samples, stats = scrape(), engine.stats
    assert of(samples, "events_total", "one_word") == stats.events == 2000
    assert of(samples, "commits_total", "one_word") == stats.commits == 2000
    for reason, count in stats.aborts.items():
        assert of(samples, "aborts_total", "one_word", reason=reason) == count
    assert of(samples, "busy_seconds_total", "one_word") == pytest.approx(stats.seconds)
    assert of(samples, "horizon_transactions", "one_word") == 8
    assert of(samples, "chunk_events", "one_word") == 1
    assert of(samples, "wait_queue_transactions", "one_word") == 0
    assert of(samples, "pending_events", "one_word") == 0
    assert of(samples, "threads", "one_word") == 2
    assert of(samples, "state_bytes", "one_word") == stats.state_bytes
    assert of(samples, "order_time_lag", "one_word") is None, "its events have no order time"


def test_a_scrape_during_a_batch_sees_it_grow(scrape: Scraper) -> None:
    with ss.Engine(spin, threads=1) as engine:
        ss.metrics.watch(engine, registry=scrape.registry)
        batch = threading.Thread(target=engine.process, args=({"x": np.full(200, 1_000_000)},))
        batch.start()
        seen = []
        while batch.is_alive():
            samples = scrape()
            if of(samples, "running", "spin"):
                seen.append(of(samples, "events_total", "spin"))
        batch.join()
    assert seen == sorted(seen)
    assert len({count for count in seen if 0 < count < 200}) > 2


def test_engines_of_one_operator_have_their_own_labels_and_closed_ones_are_gone(
    scrape: Scraper,
) -> None:
    engines = [ss.Engine(one_word, threads=1) for _ in range(3)]
    ss.metrics.watch(engines[0], registry=scrape.registry)
    ss.metrics.watch(engines[1], registry=scrape.registry)
    ss.metrics.watch(engines[2], name="flights", registry=scrape.registry)
    for number, engine in enumerate(engines):
        engine.process({"x": np.zeros(10 * (number + 1), np.int64)})

    def counts() -> list[Any]:
        samples = scrape()
        return [of(samples, "events_total", "one_word", name) for name in ("1", "2", "flights")]

    assert counts() == [10, 20, 30]
    with pytest.raises(ss.ConfigurationError, match="another engine of operator 'one_word'"):
        ss.metrics.watch(engines[0], name="flights", registry=scrape.registry)
    engines[0].close()
    assert counts() == [None, 20, 30]
    del engine
    engines[1] = ss.Engine(one_word, threads=1)  # nobody has the one before any more
    gc.collect()
    assert counts() == [None, None, 30]
    ss.metrics.watch(engines[1], registry=scrape.registry)
    assert counts() == [0, None, 30], "a restarted operator goes on under its number"
    for engine in engines:
        engine.close()
    assert counts() == [None] * 3


def test_rejected_rows_are_told_under_their_old_name_as_well(scrape: Scraper) -> None:
    with ss.Engine(one_word, threads=1, rejected_rows="side") as engine:
        ss.metrics.watch(engine, registry=scrape.registry)
        engine.process({"x": [1, None, 2]})
        samples = scrape()
    assert of(samples, "rejected_rows", "one_word") == 1
    assert of(samples, "bad_rows", "one_word") == 1
    help_texts = {metric.name: metric.documentation for metric in EngineCollector().describe()}
    assert "specstream_rejected_rows" in help_texts["specstream_bad_rows"]


def test_failed_events_are_told(scrape: Scraper) -> None:
    @ss.operator(event={"x": int}, emits={"y": int})
    def inverse(event, emit):
        emit(12 // event.x)

    with ss.Engine(inverse, threads=1, errors="side") as engine:
        ss.metrics.watch(engine, registry=scrape.registry)
        engine.process({"x": [1, 0, 2, 0]})
        assert of(scrape(), "failed_events", "inverse") == 2


def test_early_results_are_told_of_engines_that_have_them(scrape: Scraper) -> None:
    names = (
        "early_transactions", "early_bytes", "revocations_total", "revoked_total",
        "republished_total", "rerun_total", "revoking_seconds_total",
    )  # fmt: skip
    with (
        ss.Engine(one_word, sources=["a", "b"], early=True) as engine,
        ss.Engine(one_word) as other,
    ):
        ss.metrics.watch(engine, name="early", registry=scrape.registry)
        ss.metrics.watch(other, name="late", registry=scrape.registry)
        engine.submit({"time": [10, 20, 30], "x": [1, 2, 3]}, order_by="time", source="a")
        engine.poll_early(timeout=None)
        assert of(scrape(), "early_lead_seconds", "one_word", "early", quantile="0.5") is None
        engine.submit({"time": [5], "x": [1]}, order_by="time", source="b")
        engine.poll_early(timeout=None)
        samples, early = scrape(), engine.stats.early
        assert early is not None
        counts = [of(samples, name, "one_word", "early") for name in names]
        assert counts[:-1] == [4, early.bytes, 1, 3, 0, 3], "all read what the first has written"
        assert counts[-1] == pytest.approx(early.seconds)
        assert [of(samples, name, "one_word", "late") for name in names] == [None] * len(names)
        engine.advance("a")
        engine.advance("b")
        engine.poll_early(timeout=None)
        engine.poll(timeout=None)
        samples, early = scrape(), engine.stats.early
        assert early is not None
        assert of(samples, "early_transactions", "one_word", "early") == 0
        for quantile, lead in (("0.5", early.lead_median), ("0.99", early.lead_p99)):
            found = of(samples, "early_lead_seconds", "one_word", "early", quantile=quantile)
            assert found == lead is not None


def test_what_cannot_be_watched_is_refused() -> None:
    with pytest.raises(ss.ConfigurationError, match="expected an ss"):
        ss.metrics.watch(7)

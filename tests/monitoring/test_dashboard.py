"""The dashboard and the alert rules of examples/monitoring ask for what specstream exports.

Where Prometheus is installed, it scrapes an engine of each kind and answers each query of the
dashboard, and ``promtool`` checks the rules and runs their tests.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import json
import re
import shutil
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed

import specstream as ss

prometheus_client = pytest.importorskip("prometheus_client")

from specstream.monitoring.metrics import EngineCollector  # noqa: E402

ROOT = Path(__file__).parents[2]
FILES = ROOT / "examples" / "monitoring"
RUN_BOOK = ROOT / "docs" / "runbook.md"
# Of Prometheus itself, and of prometheus_client's default registry.
NOT_OURS = {"up", "process_start_time_seconds"}
LIFE_SECONDS = 240

needs_prometheus = pytest.mark.skipif(
    shutil.which("prometheus") is None or shutil.which("promtool") is None,
    reason="prometheus is not installed (on Debian or Ubuntu: apt-get install prometheus)",
)


def exported() -> set[str]:
    """The names of all series that a scrape can have."""
    names = set()
    for family in EngineCollector().describe():
        if family.type == "counter":
            names.add(f"{family.name}_total")
        elif family.type == "summary":
            names |= {f"{family.name}_sum", f"{family.name}_count"}
        else:
            names.add(family.name)
    return names


def queries() -> list[str]:
    """Each query of the dashboard."""
    dashboard = json.loads((FILES / "dashboard.json").read_text())
    return [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", [])]


def names_in(text: str) -> set[str]:
    return set(re.findall(r"\b(?:specstream_\w+|up(?=\{)|process_\w+)", text))


def alerts() -> dict[str, str]:
    """The text of each alert, by name."""
    _, *texts = re.split(r"^ +- alert: ", (FILES / "alerts.yml").read_text(), flags=re.MULTILINE)
    return {text.partition("\n")[0]: text for text in texts}


def test_dashboard_and_rules_name_only_what_is_exported() -> None:
    rules = (FILES / "alerts.yml").read_text()
    rules = re.sub(r"^ *(- name|runbook|- job_name):.*", "", rules, flags=re.MULTILINE)
    variables = json.dumps(json.loads((FILES / "dashboard.json").read_text())["templating"])
    for text in (rules, variables, *queries()):
        assert names_in(text) - NOT_OURS <= exported(), text
    assert len(queries()) > 30


def test_the_dashboard_shows_each_metric() -> None:
    shown = set().union(*map(names_in, queries()))
    assert exported() - shown == {"specstream_bad_rows"}, "the old name of another one"


def test_each_alert_leads_into_the_run_book_and_has_a_test() -> None:
    headings = re.findall(r"^#+ (.*)$", RUN_BOOK.read_text(), re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", one.lower()).replace(" ", "-") for one in headings}
    tests = (FILES / "alerts_test.yml").read_text()
    found = alerts()
    assert len(found) > 10
    assert set(re.findall(r"Specstream\w+", RUN_BOOK.read_text())) <= found.keys()
    for name, text in found.items():
        (anchor,) = re.findall(r'runbook: "runbook\.md#([\w-]+)"', text)
        assert anchor in anchors, name
        assert f'alertname="{name}"' in tests, f"{name}: no test in alerts_test.yml"


# ---- with a Prometheus ----


@needs_prometheus
def test_promtool_accepts_the_rules_and_their_tests_pass() -> None:
    for command in (
        ("check", "config", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ):
        done = subprocess.run(
            ["promtool", *command], cwd=FILES, capture_output=True, text=True, timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr


class Counted(ss.State):
    total = ss.scalar(int)


@ss.operator(state=Counted, event={"x": int}, emits={"y": int})
def share(state, event, emit):
    state.total += 1
    emit(12 // event.x + state.total)


@ss.operator(state=Counted, event={"y": int}, emits={"total": int})
def add(state, event, emit):
    state.total += event.y
    emit(state.total)


def two_vertices() -> ss.Pipeline:
    p = ss.Pipeline("two")
    p.sink("out", p.add(add, p.add(share, p.source("events", {"x": int}))))
    return p


def working(registry: Any, tmp_path: Path, stack: ExitStack) -> Callable[[int], None]:
    """Engines of all kinds, watched; what is returned gives each of them some work."""
    fed = Fed(
        ss.Engine(share, errors="side", rejected_rows="side"),
        to=lambda table, batch_id: None,
        order_by="time",
        watermark=2,
        late="drop",
        checkpoint=str(tmp_path / "checkpoint"),
    )
    stack.callback(fed.close)
    two = stack.enter_context(ss.Engine(two_vertices(), threads=2, horizon=8, chunk=1))
    early = stack.enter_context(ss.Engine(share, sources=["a", "b"], early=True))
    ss.metrics.watch(fed, registry=registry)
    ss.metrics.watch(two, registry=registry)
    ss.metrics.watch(early, name="early", registry=registry)

    def work(step: int) -> None:
        at = 10 * step + 10
        fed.send(step, pa.table({"time": [at, at + 1, at + 4], "x": [1, None, 0]}))
        two.process({"x": [1, 2, 3, 4] * 500})  # all read and write two words: they conflict
        for time_, source in ((at + 5, "a"), (at, "b"), (at + 6, "b")):
            early.submit({"time": [time_], "x": [2]}, order_by="time", source=source)
            early.poll_early(timeout=None)
        for source in ("a", "b"):
            early.advance(source, at + 9)
        early.poll_early(timeout=None)
        early.poll(timeout=None)

    return work


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """Of a Prometheus that scrapes the engines, with the rules, while they work."""
    registry = prometheus_client.CollectorRegistry()
    prometheus_client.ProcessCollector(registry=registry)
    with ExitStack() as stack:
        server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
        stack.callback(thread.join)
        stack.callback(server.server_close)
        stack.callback(server.shutdown)
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        settings = (FILES / "prometheus.yml").read_text()
        settings = settings.replace("127.0.0.1:9000", f"127.0.0.1:{server.server_port}")
        settings = settings.replace("_interval: 15s", "_interval: 1s")
        (tmp_path / "prometheus.yml").write_text(settings)
        shutil.copy(FILES / "alerts.yml", tmp_path)
        with (tmp_path / "prometheus.log").open("w") as log:
            process = subprocess.Popen(
                [
                    "prometheus",
                    f"--config.file={tmp_path / 'prometheus.yml'}",
                    f"--storage.tsdb.path={tmp_path / 'series'}",
                    f"--web.listen-address=127.0.0.1:{port}",
                ],
                stdout=log,
                stderr=log,
            )
        stack.callback(process.wait)
        stack.callback(process.terminate)
        address = f"http://127.0.0.1:{port}"
        work = working(registry, tmp_path, stack)
        # A rate takes two scrapes; and two threads that share their words conflict soon.
        wanted = (
            "increase(specstream_batches_total[1m]) > 2 and on (instance) "
            "sum by (instance) (specstream_vertex_conflicts) > 0"
        )
        deadline = time.monotonic() + LIFE_SECONDS
        for step in range(10**6):
            work(step)
            assert process.poll() is None, (tmp_path / "prometheus.log").read_text()
            if answer(address, wanted):
                break
            assert time.monotonic() < deadline, (tmp_path / "prometheus.log").read_text()
            time.sleep(0.2)  # between two scrapes there is nothing to see
        yield address


def get(address: str, path: str) -> Any:
    with urllib.request.urlopen(f"{address}{path}", timeout=60) as found:
        return json.loads(found.read())["data"]


def answer(address: str, query: str) -> list[Any]:
    """The series of an instant query; none while Prometheus is still starting."""
    try:
        result = get(address, "/api/v1/query?" + urllib.parse.urlencode({"query": query}))
    except (urllib.error.URLError, ConnectionError):
        return []
    found: list[Any] = result["result"]
    return found


@needs_prometheus
@pytest.mark.slow
def test_prometheus_answers_each_query_of_the_dashboard(address: str) -> None:
    filled = {
        query: query.replace("$__rate_interval", "1m").replace('"$operator"', '".+"')
        .replace('"$engine"', '".+"')
        for query in queries()
    }  # fmt: skip
    assert not any("$" in query for query in filled.values())
    empty = [query for query, asked in filled.items() if not answer(address, asked)]
    assert not empty, "\n".join(empty)
    groups = get(address, "/api/v1/rules")["groups"]
    rules = [rule for group in groups for rule in group["rules"]]
    assert {rule["name"] for rule in rules} >= alerts().keys()
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] == "err"} == {}

"""What tests share: every execution path, one Spark session, one compile cache."""

from __future__ import annotations

import collections
import gc
import itertools
import os
import pathlib
import signal
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import hypothesis
import numpy as np
import pyarrow as pa
import pytest
from support import contents
from support.daily import share_of
from support.sinks.postgres import Server, programs
from support.spark import java_classes
from support.spark.state_store import ROCKSDB, STATE_STORE

import specstream as ss

# An example may compile, on a busy machine: how long it takes is no failure.
hypothesis.settings.register_profile("without a clock", deadline=None, max_examples=share_of(100))
# What decides whether a change lands draws the same examples each time; everybody else new ones.
hypothesis.settings.register_profile(
    "landing", deadline=None, max_examples=share_of(100), derandomize=True
)
hypothesis.settings.load_profile("landing" if os.environ.get("CI") else "without a clock")


@dataclass(frozen=True)
class Result:
    """What a path made of a table: rows, state words, and what the events raised."""

    output: pa.Table
    state: dict[str, Any]
    raised: tuple[tuple[int, str, str], ...]


Path = Callable[..., Result]

HERE = pathlib.Path(__file__).parent
_streams = itertools.count()

# Machine code outlives a run of the tests, in a place of its own: a user's cache stays as it is.
# The processes that tests start have it as well.
os.environ.setdefault("SPECSTREAM_CACHE_DIR", str(HERE.parent / ".pytest_cache" / "compiled"))

# The Sparks of tests live for seconds, and there are dozens.
os.environ.setdefault("SPARK_SUBMIT_OPTS", java_classes.options())

# Started in the background of a script, the tests would ignore Ctrl-C, and those of it never end.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# It starts a Spark when it is imported, as the pages' examples do; looking for doctests would.
collect_ignore = ["docs/session_of_pages.py"]

# None: the oracle. Otherwise options of an engine.
PATHS: dict[str, dict[str, Any] | None] = {
    "oracle": None,
    "plain": {"threads": 1, "horizon": 0},
    "plain, four threads": {"threads": 4, "horizon": 0},
    "one thread": {"threads": 1, "horizon": 8, "chunk": 4},
    "two threads": {"threads": 2, "horizon": 8, "chunk": 8},
    "event by event": {"threads": 2, "horizon": 1, "chunk": 1},
    "far ahead": {"threads": 4, "horizon": 32, "chunk": 64},
    "forced": {"threads": 1, "horizon": 4, "chunk": 1, "execution": "speculate"},
    "automatic": {"threads": 2, "horizon": "auto"},
    "automatic chunk": {"threads": 2, "horizon": 4, "chunk": "auto"},
    "forced, three threads": {"threads": 3, "horizon": 16, "chunk": 3, "execution": "speculate"},
    "eager": {"threads": 2, "horizon": 8, "chunk": 8, "protocol": "eager"},
    "eager, event by event": {"threads": 3, "horizon": 4, "chunk": 1, "protocol": "eager"},
    "eager, shared records": {
        "threads": 4,
        "horizon": 32,
        "chunk": 3,
        "protocol": "eager",
        "record_shift": 3,
    },
}


def run_oracle(operator: ss.Operator, table: pa.Table, **options: Any) -> Result:
    """The sequential run; events that raise are skipped and listed."""
    run = operator.run_sequential(table, on_error="skip", **options)
    raised = tuple((-1 if row is None else row, type(e).__name__, str(e)) for row, e in run.raised)
    return Result(run.output, contents.of_view(run.state), raised)


def run_engine(
    operator: ss.Operator, table: pa.Table, *, seed: int = 0, keys: bool = False, **options: Any
) -> Result:
    """An engine; after an event that raises it goes on with the next one."""
    parts = []
    raised = []
    offset = 0
    with ss.Engine(operator, seed=seed, keys=keys, **options) as engine:
        while True:
            try:
                parts.append(engine.process(table.slice(offset)))
                break
            except Exception as error:
                partial = partial_of(error)
                parts.append(partial.output)
                offset += partial.consumed
                raised.append((offset, type(error).__name__, str(error)))
                offset += 1
        state = contents.of_view(engine.state)
        stats = engine.stats
        assert stats.events == table.num_rows - len(raised)
        assert stats.head_aborts == 0
    return Result(pa.concat_tables(parts), state, tuple(raised))


def partial_of(error: BaseException) -> ss.Partial:
    """What the call had done before the event that raised; the exception carries it."""
    partial: ss.Partial = vars(error)["specstream_partial"]
    return partial


def assert_identical(found: Result, expected: Result) -> None:
    """Equal in every bit: NaN equals NaN only with the same bits, 0.0 differs from -0.0."""
    assert found.raised == expected.raised
    assert found.output.schema == expected.output.schema
    assert found.output.num_rows == expected.output.num_rows
    for name in expected.output.column_names:
        np.testing.assert_array_equal(
            bits(found.output[name]), bits(expected.output[name]), err_msg=f"column {name}"
        )
    assert found.state.keys() == expected.state.keys()
    for name, words in expected.state.items():
        if isinstance(words, list):  # what a container holds
            assert found.state[name] == words, f"field {name}"
            continue
        np.testing.assert_array_equal(
            elements(found.state[name]), elements(words), err_msg=f"field {name}"
        )


def elements(values: Any) -> Any:
    """The values of a field as something that compares bit for bit."""
    if isinstance(values, str) or values.dtype == object:
        return np.asarray(values, object).reshape(-1)
    return np.asarray(values).reshape(-1).view(np.uint8)


def bits(column: pa.ChunkedArray) -> Any:
    """A column as something that compares bit for bit."""
    if pa.types.is_floating(column.type):
        words = column.fill_null(0.0).to_numpy().view(np.int64)
        return words if not column.null_count else np.where(column.is_null(), None, words)
    return np.array(column.to_pylist(), dtype=object)


@pytest.fixture(params=PATHS.values(), ids=list(PATHS))
def path(request: pytest.FixtureRequest) -> Path:
    """One way to run an operator over a table; the oracle is one of them."""
    options = request.param
    if options is None:
        return run_oracle
    return lambda operator, table, **more: run_engine(operator, table, **{**options, **more})


@pytest.fixture
def operators(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> pathlib.Path:
    """A user's file with the operators that the test's module writes as a text."""
    path = tmp_path / "sums.py"
    path.write_text(request.module.OPERATORS)
    return path


# Of these folders all tests with many cases, of the others those through settings of an engine.
THINNED = {
    "checkpoint",
    "compiler",
    "engine",
    "examples",
    "figures",
    "interpreted",
    "operators",
    "pipelines",
    "predictors",
    "programs",
    "structures",
    "windows",
}


def is_through_settings(item: pytest.Item) -> bool:
    """Whether the cases of a test are settings: all paths, or those that its module names."""
    module = getattr(item, "module", None)
    engines = getattr(module, "ENGINES", ())
    named = [*engines, *getattr(module, "OPEN", ())]
    if isinstance(engines, dict):
        named += engines.values()
    given = getattr(getattr(item, "callspec", None), "params", {})
    return "path" in given or any(
        isinstance(of, str | dict) and of in named for of in given.values()
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what needs Spark: all of its folder, and whoever asks for the session; and, as no part
    of the daily check, what tests benchmarks, which are programs for a quiet machine, and two
    thirds of the cases, or three quarters, where there are many of one kind that all compile
    operators, or that are settings. Refusals compile nothing, and any of them may be out of date
    once more compiles: all stay.
    """
    case: collections.Counter[str] = collections.Counter()
    cases = collections.Counter(item.nodeid.partition("[")[0] for item in items)
    for item in items:
        name = item.nodeid.partition("[")[0]
        case[name] += 1
        folder = item.path.relative_to(HERE).parts[0] if HERE in item.path.parents else ""
        # Not always the same of the settings that many tests go through: nor for each operator.
        one_in = 4 if cases[name] > 8 else 3
        turn = case[name] + (one_in - 1) * (case[name] // len(PATHS)) + len(name)
        is_refusal = folder == "compiler" and "refus" in name
        is_thinned = (folder in THINNED and not is_refusal) or is_through_settings(item)
        if is_thinned and cases[name] > 3 and turn % one_in != 1:
            item.add_marker("long")
        if HERE / "benchmarks" in item.path.parents:
            item.add_marker("long")
        if HERE / "spark" in item.path.parents or "session" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays to the end: who looks for garbage need not go through
    half a million objects each time, which would take a fifteenth of all the tests' time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def spark_at_the_end() -> Iterator[None]:
    """Stops the session that runs when all tests are done."""
    yield
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        running.stop()


@pytest.fixture(scope="module")
def session(spark_at_the_end: None) -> Iterator[Any]:
    """The Spark session of all tests that are not about sessions: it starts once.

    It is asked for again by each module, as the commands that a test runs in this process stop it.
    No query outlives a module.
    """
    pytest.importorskip("pyspark")
    session = ss.spark.local_session("tests", settings={"spark.log.level": "OFF"})
    yield session
    for query in session.streams.active:
        query.stop()


@pytest.fixture(scope="module")
def rocksdb(session: Any) -> Iterator[None]:
    """Spark's state is in RocksDB while the tests of a module run."""
    before = session.conf.get(STATE_STORE)
    session.conf.set(STATE_STORE, ROCKSDB)
    yield
    session.conf.set(STATE_STORE, before)


@pytest.fixture(scope="session")
def nats_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A server of NATS for all tests that do not stop it."""
    pytest.importorskip("nats")
    from support.sources.nats_server import NatsServer

    server = NatsServer(tmp_path_factory.mktemp("nats"))
    yield server
    server.stop()


@pytest.fixture(scope="session")
def brokers() -> Any:
    """Brokers of Kafka, which live in this process."""
    pytest.importorskip("confluent_kafka")
    from support.sources.kafka_cluster import KafkaCluster

    return KafkaCluster()


@pytest.fixture
def stream() -> str:
    """A name that no other test has for its stream or topic."""
    return f"orders{next(_streams)}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A PostgreSQL server."""
    pytest.importorskip("adbc_driver_postgresql")
    bin = programs()
    if bin is None:
        pytest.skip("PostgreSQL is not installed, and .ci/ensure-postgres could not do it")
    server = Server(bin)
    try:
        server.start()
        yield server
    finally:
        server.stop()

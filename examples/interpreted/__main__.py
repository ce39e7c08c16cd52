"""``python -m examples.interpreted``: a model and a look-up through Spark, compared and timed."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

import specstream as ss
from examples.interpreted.lookup import checking, orders, serving
from examples.interpreted.model import payments, scoring, trained
from examples.interpreted.picture import draw
from specstream.figures.style import save

FILES = 4  # and so micro-batches
PROGRAMS = ("model", "lookup")


@contextlib.contextmanager
def prepared(program: str, latency: float) -> Iterator[ss.Operator]:
    """The operator of a program, with what it needs."""
    if program == "lookup":
        with serving(latency) as address:
            yield checking(address)
        return
    from threadpoolctl import threadpool_limits  # comes with scikit-learn

    # Events run at the same time by themselves: linear algebra is to take one thread in each.
    with threadpool_limits(1):
        yield scoring(trained())


def events(program: str, count: int, seed: int) -> pa.Table:
    """What it gets."""
    return (payments if program == "model" else orders)(count, seed)


def stream(
    session: Any, operator: ss.Operator, table: pa.Table, work: Path, threads: int
) -> tuple[pa.Table, dict[str, Any]]:
    """Runs a table through Spark; gives the emitted rows, and the state."""
    (work / "files").mkdir()
    size = -(-table.num_rows // FILES)
    for number in range(FILES):
        piece = table.slice(number * size, size)
        path = work / "files" / f"{number}.parquet"
        pyarrow.parquet.write_table(piece, path)
        os.utime(path, (number, number))  # Spark takes files by their age, in whole milliseconds
    with ss.Engine(operator, threads=threads) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            to=ss.sinks.parquet_sink(work / "rows"),
            checkpoint=work / "checkpoint",  # with it, each row is written exactly once
        )
        ss.spark.stream_directory(
            session, work / "files", feed, checkpoint=work / "spark", files_per_trigger=1
        )
        state = engine.state.to_dict()
    return pyarrow.dataset.dataset(work / "rows", format="parquet").to_table(), state


def speeds(
    operator: ss.Operator, table: pa.Table, threads: Sequence[int], rounds: int
) -> dict[int, float]:
    """How many times as fast as one thread without speculation, by the number of threads.

    The rounds are interleaved, each of a new engine; of the ratios to the same round's one thread
    it is the median.
    """
    times: dict[int, list[float]] = {count: [] for count in dict.fromkeys((1, *threads))}
    for _ in range(rounds):
        for count, taken in times.items():
            setting: dict[str, Any] = {"horizon": 0} if count == 1 else {}
            if count > 1:
                setting = {"horizon": 2 * count, "chunk": 1}
            with ss.Engine(operator, threads=count, **setting) as engine:
                engine.process(table.slice(0, 4 * count), order_by="time")  # connections, say
                began = time.perf_counter()
                engine.process(table.slice(4 * count), order_by="time")
                taken.append((time.perf_counter() - began) / (table.num_rows - 4 * count))
    return {
        count: statistics.median(
            alone / one for alone, one in zip(times[1], times[count], strict=True)
        )
        for count in threads
    }


def run(program: str, options: argparse.Namespace) -> dict[str, Any]:
    """Runs it all; gives what there is to print."""
    table = events(program, options.events, options.seed)
    with (
        prepared(program, options.latency / 1000) as operator,
        tempfile.TemporaryDirectory(prefix="interpreted-") as temporary,
    ):
        session = ss.spark.local_session("interpreted", settings={"spark.log.level": "OFF"})
        try:
            threads = max(options.threads)
            found, state = stream(session, operator, table, Path(temporary), threads)
        finally:
            session.stop()
        expected = operator.run_sequential(table, order_by="time")
        measured = speeds(operator, table, options.threads, options.rounds)
    picture = options.output / f"{program}.png"
    save(draw(program, measured), picture)
    of_state = expected.state.to_dict()
    same = all(
        state[name] == value if isinstance(value, dict) else bool((state[name] == value).all())
        for name, value in of_state.items()
    )
    return {
        "program": program,
        "events": table.num_rows,
        "rows": found.num_rows,
        "identical": found.equals(expected.output) and same,
        "speeds": {str(count): round(ratio, 2) for count, ratio in measured.items()},
        "picture": str(picture),
    }


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("examples.interpreted", description=__doc__)
    parser.add_argument("program", nargs="*", help="model or lookup (both)")
    parser.add_argument("--events", type=int, default=2_000, help="how many (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="they are made from it (%(default)s)")
    parser.add_argument(
        "--threads", type=int, nargs="+", default=[1, 2, 4, 8, 16], help="to time (%(default)s)"
    )
    parser.add_argument("--rounds", type=int, default=3, help="of the timing (%(default)s)")
    parser.add_argument(
        "--latency", type=float, default=10.0, help="of the service, in ms (%(default)s)"
    )
    parser.add_argument("--output", type=Path, default=Path(), help="where the pictures go")
    parser.add_argument("--json", action="store_true", help="one JSON object for each, on stdout")
    options = parser.parse_args(given)
    options.program = options.program or list(PROGRAMS)
    for program in options.program:
        if program not in PROGRAMS:
            parser.error(f"{program}: expected {' or '.join(PROGRAMS)}")
    if options.events < 8 * max(options.threads) or min(options.threads) < 1:
        parser.error("--threads: at least 1, and --events: at least 8 for each of the threads")
    return options


def main(given: list[str] | None = None) -> int:
    """Runs and prints it; 0 if Spark's answers are those of the sequential runs."""
    options = arguments(given)
    options.output.mkdir(parents=True, exist_ok=True)
    try:
        ss.spark.find_java()  # without one it ends here
    except ss.ConfigurationError as error:
        print(error, file=sys.stderr)
        return 2
    is_identical = True
    for program in options.program:
        result = run(program, options)
        is_identical &= result["identical"]
        if options.json:
            print(json.dumps(result))
            continue
        print(f"{program}: {result['events']:,} events, {result['rows']:,} rows")
        for count, ratio in result["speeds"].items():
            print(f"  {count:>3} threads: {ratio:.2f} times as fast as one")
        print(f"  picture: {result['picture']}")
        print(f"  identical to the sequential run: {'yes' if result['identical'] else 'no'}")
    return 0 if is_identical else 1


if __name__ == "__main__":
    sys.exit(main())

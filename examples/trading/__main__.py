"""``python -m examples.trading``: ticks through Spark and the pipeline, compared and drawn."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset

import specstream as ss
from examples.trading.picture import draw
from examples.trading.pipeline import trading
from examples.trading.ticks import (
    DELAY,
    SYMBOLS,
    BadCsv,
    as_tables,
    made,
    read_csv,
    write_files,
)
from specstream.figures.style import save

FILES = 8  # of each exchange, and so micro-batches
FEWEST = 100  # ticks, of which each exchange has some
SINKS = ("buys", "sells", "averages")


def stream(
    session: Any, pipeline: ss.Pipeline, directories: dict[str, Path], output: Path, threads: int
) -> dict[str, pa.Table]:
    """Runs all files through Spark; returns what the consumers have got."""
    frames = {
        exchange: session.readStream.schema(session.read.parquet(str(files)).schema)
        .option("maxFilesPerTrigger", 1)
        .parquet(str(files))
        for exchange, files in directories.items()
    }
    ticks = ss.spark.union(frames, shared=["time"])

    with ss.Engine(pipeline, threads=threads) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            watermark=f"{DELAY} seconds",
            sources=list(directories),
            to={name: ss.spark.parquet_sink(output / name) for name in SINKS},
            checkpoint=output / "checkpoint",  # with it, each row is written exactly once
        )

        def run(frame: Any, batch_id: int) -> None:
            feed(frame, batch_id)
            stats = engine.stats
            print(f"batch {batch_id}: {stats.events:,} ticks done, {stats.pending:,} wait")

        query = (
            ticks.writeStream.foreachBatch(run)
            .option("checkpointLocation", str(output / "spark"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        feed.finish()  # no tick follows: those that wait are done as well
        print(f"the end: {engine.stats.events:,} ticks done")
    return {
        name: pyarrow.dataset.dataset(output / name, format="parquet").to_table() for name in SINKS
    }


def report(ticks: pd.DataFrame, run: ss.SequentialRun, consumed: dict[str, pa.Table]) -> None:
    """Prints what became of the ticks, and the last orders."""
    of = run.vertices
    print()
    print(f"{len(ticks):8,} ticks of {' and '.join(sorted(set(ticks['exchange'])))}")
    print(f"{of['merge'].rows:8,} left by the filters")
    print(f"{of['averages'].rows:8,} of a symbol with both averages")
    print(f"{of['option'].rows:8,} of these of a busy symbol, for which an option is valued")
    print(f"{consumed['buys'].num_rows:8,} orders to buy")
    print(f"{consumed['sells'].num_rows:8,} orders to sell")
    orders = pa.concat_tables([consumed["buys"], consumed["sells"]]).to_pandas()
    if len(orders):
        print("\nThe last orders:")
        print(orders.sort_values("time").tail(5).round(3).to_string(index=False))
    print()


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("examples.trading", description=__doc__)
    parser.add_argument("--ticks", type=int, default=10_000, help="how many are made (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="they are made from it (%(default)s)")
    parser.add_argument("--csv", type=Path, help="a file with time,exchange,symbol,price,size")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path(), help="where signals.png goes")
    options = parser.parse_args(given)
    if options.ticks < FEWEST:
        parser.error(f"--ticks {options.ticks}: at least {FEWEST} are needed")
    return options


def main(given: list[str] | None = None) -> int:
    """Runs it all; 0 if Spark's answer is that of the sequential run."""
    options = arguments(given)
    if options.csv:
        try:
            ticks = read_csv(options.csv)
        except (BadCsv, OSError) as error:
            print(error, file=sys.stderr)
            return 2
        symbols = tuple(sorted(set(ticks["symbol"])))
    else:
        ticks, symbols = made(options.ticks, options.seed), SYMBOLS

    options.output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="trading-") as temporary:
        output = Path(temporary)
        directories = write_files(ticks, output / "ticks", FILES, options.seed)
        pipeline = trading(tuple(directories), symbols)
        session = ss.spark.local_session("trading", settings={"spark.log.level": "OFF"})
        try:
            consumed = stream(session, pipeline, directories, output, options.threads)
        finally:
            session.stop()
        # The same pipeline as plain Python, event by event.
        expected = pipeline.run_sequential(as_tables(directories), order_by="time")

    report(ticks, expected, consumed)
    picture = options.output / "signals.png"
    save(draw(consumed), picture)
    print(f"picture: {picture}")
    is_identical = all(consumed[name].equals(expected.output[name]) for name in SINKS)
    print(f"identical to the sequential run: {'yes' if is_identical else 'no'}")
    return 0 if is_identical else 1


if __name__ == "__main__":
    sys.exit(main())

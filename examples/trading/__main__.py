"""``python -m examples.trading``: ticks through Spark and the pipeline, compared and drawn."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
from rich.console import Console

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
    session: Any,
    pipeline: ss.Pipeline,
    directories: dict[str, Path],
    output: Path,
    threads: int,
    console: Console,
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
            to={name: ss.sinks.parquet_sink(output / name) for name in SINKS},
            checkpoint=output / "checkpoint",  # with it, each row is written exactly once
        )

        def run(frame: Any, batch_id: int) -> None:
            feed(frame, batch_id)
            stats = engine.stats
            console.print(f"batch {batch_id}: {stats.events:,} ticks done, {stats.pending:,} wait")

        query = (
            ticks.writeStream.foreachBatch(run)
            .option("checkpointLocation", str(output / "spark"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        feed.finish()  # no tick follows: those that wait are done as well
        console.print(f"the end: {engine.stats.events:,} ticks done")
    return {
        name: pyarrow.dataset.dataset(output / name, format="parquet").to_table() for name in SINKS
    }


def run(
    ticks: pd.DataFrame,
    symbols: tuple[str, ...],
    seed: int,
    threads: int,
    picture: Path,
    console: Console,
) -> dict[str, Any]:
    """Runs it all; returns what there is to print."""
    with tempfile.TemporaryDirectory(prefix="trading-") as temporary:
        output = Path(temporary)
        directories = write_files(ticks, output / "ticks", FILES, seed)
        pipeline = trading(tuple(directories), symbols)
        session = ss.spark.local_session("trading", settings={"spark.log.level": "OFF"})
        try:
            consumed = stream(session, pipeline, directories, output, threads, console)
        finally:
            session.stop()
        # The same pipeline as plain Python, event by event.
        expected = pipeline.run_sequential(as_tables(directories), order_by="time")

    save(draw(consumed), picture)
    of = expected.vertices
    orders = pa.concat_tables([consumed["buys"], consumed["sells"]]).to_pandas()
    return {
        "ticks": len(ticks),
        "exchanges": list(directories),
        "left": of["merge"].rows,
        "averages": of["averages"].rows,
        "valued": of["option"].rows,
        "buys": consumed["buys"].num_rows,
        "sells": consumed["sells"].num_rows,
        "last": orders.sort_values("time").tail(5).astype({"time": str}).to_dict("records"),
        "picture": str(picture),
        "identical": all(consumed[name].equals(expected.output[name]) for name in SINKS),
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Prints a result for people."""
    console.print(f"\n{result['ticks']:8,} ticks of {' and '.join(result['exchanges'])}")
    console.print(f"{result['left']:8,} left by the filters")
    console.print(f"{result['averages']:8,} of a symbol with both averages")
    busy = "of these of a busy symbol, for which an option is valued"
    console.print(f"{result['valued']:8,} {busy}", soft_wrap=True)
    console.print(f"{result['buys']:8,} orders to buy")
    console.print(f"{result['sells']:8,} orders to sell")
    if result["last"]:
        console.print("\nThe last orders:")
        frame = pd.DataFrame(result["last"]).round(3)
        console.print(frame.to_string(index=False), soft_wrap=True)
    console.print(f"\npicture: {result['picture']}", soft_wrap=True)
    console.print(f"identical to the sequential run: {'yes' if result['identical'] else 'no'}")


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("examples.trading", description=__doc__)
    parser.add_argument("--ticks", type=int, default=10_000, help="how many are made (%(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="they are made from it (%(default)s)")
    parser.add_argument("--csv", type=Path, help="a file with time,exchange,symbol,price,size")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path(), help="where signals.png goes")
    parser.add_argument("--json", action="store_true", help="the result as JSON, on stdout")
    options = parser.parse_args(given)
    if options.ticks < FEWEST:
        parser.error(f"--ticks {options.ticks}: at least {FEWEST} are needed")
    return options


def main(given: list[str] | None = None) -> int:
    """Runs and prints it; 0 if Spark's answer is that of the sequential run."""
    options = arguments(given)
    # Whoever reads JSON sees on stderr how far it is.
    console = Console(stderr=options.json, highlight=False)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        if options.csv:
            ticks = read_csv(options.csv)
            symbols = tuple(sorted(set(ticks["symbol"])))
        else:
            ticks, symbols = made(options.ticks, options.seed), SYMBOLS
        ss.spark.find_java()  # without one it ends here
    except (BadCsv, OSError, ss.ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 2
    picture = options.output / "signals.png"
    result = run(ticks, symbols, options.seed, options.threads, picture, console)
    if options.json:
        print(json.dumps(result))
    else:
        show(result, console)
    return 0 if result["identical"] else 1


if __name__ == "__main__":
    sys.exit(main())

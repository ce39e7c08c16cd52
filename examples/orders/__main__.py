"""``python -m examples.orders``: a day of orders through Spark and four rules, compared."""

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
import pyarrow.parquet as pq
from rich.console import Console

import specstream as ss
from examples.orders.check import expected
from examples.orders.day import WRONG, as_table, made, write_files
from examples.orders.picture import draw
from examples.orders.rules import RULES, orders
from specstream.figures.style import save

FILES = 8  # and so micro-batches
NAMES = tuple(rule.name for rule in RULES)
# Options, what they are without being given, and at least.
NUMBERS = (
    ("events", 20_000, 1_000, "about how many are made"),
    ("violations", 6, 0, "so many orders of each kind of violation"),
    ("seed", 1, 0, "they are made from it"),
    ("threads", 2, 1, "of the engine"),
)


def stream(session: Any, files: Path, output: Path, threads: int) -> dict[str, pa.Table]:
    """Runs all files through Spark; returns by rule the alarms that were written."""
    with ss.Engine(orders(), threads=threads) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            to={name: ss.sinks.parquet_sink(output / name) for name in NAMES},
            checkpoint=output / "checkpoint",  # with it, each alarm is written exactly once
        )
        ss.spark.stream_directory(
            session, files, feed, checkpoint=output / "spark", files_per_trigger=1
        )
        feed.finish()  # the day is over, and so is every deadline
    return {
        name: pyarrow.dataset.dataset(output / name, format="parquet").to_table() for name in NAMES
    }


def is_expected(found: pd.DataFrame, by_pandas: pd.DataFrame) -> bool:
    """Whether alarms are those that pandas finds, in the order in which they were settled."""
    return bool(found[list(by_pandas)].to_dict("list") == by_pandas.to_dict("list"))


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Runs it all; returns what there is to print."""
    events, planted = made(options.events, options.seed, options.violations)
    pq.write_table(as_table(events), options.day)
    with tempfile.TemporaryDirectory(prefix="orders-") as temporary:
        work = Path(temporary)
        write_files(events, work / "orders", FILES)
        session = ss.spark.local_session("orders", settings={"spark.log.level": "OFF"})
        try:
            with console.status("running the rules through Spark"):
                found = stream(session, work / "orders", work, options.threads)
        finally:
            session.stop()
    with console.status("running them as plain Python"):
        plain = orders().run_sequential(as_table(events), order_by="time", end=True).output
    alarms = {name: of.to_pandas() for name, of in found.items()}
    by_pandas = expected(events)
    told = sorted((name, order) for name, of in alarms.items() for order in of["order"])
    picture = options.output / "orders.png"
    save(draw(alarms), picture)
    return {
        "events": len(events),
        "orders": int(events["order"].nunique()),
        "alarms": {name: len(of) for name, of in alarms.items()},
        "last": {name: of.tail(2).astype(str).to_dict("records") for name, of in alarms.items()},
        "day": str(options.day),
        "picture": str(picture),
        "checks": {
            "identical to the sequential run": all(
                found[name].equals(plain[name]) for name in NAMES
            ),
            "equal to what pandas finds": all(
                is_expected(alarms[name], by_pandas[name]) for name in NAMES
            ),
            "exactly those that were planted": told == sorted(planted),
        },
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Prints a result for people."""
    console.print(f"{result['events']:8,} events of {result['orders']:,} orders")
    for name, count in result["alarms"].items():
        console.print(f"{count:8,} violate {name}")
    columns = ["order", "time", "decided"]
    for name, rows in result["last"].items():
        if rows:
            console.print(f"\nThe last of {name}:")
            frame = pd.DataFrame(rows)[columns]
            frame[columns[1:]] = frame[columns[1:]].map(lambda time: time[:19])
            console.print(frame.to_string(index=False), soft_wrap=True)
    console.print(f"\nthe day: {result['day']}\npicture: {result['picture']}", soft_wrap=True)
    for name, holds in result["checks"].items():
        console.print(f"{name}: {'yes' if holds else 'no'}", soft_wrap=True)


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("examples.orders", description=__doc__)
    for name, default, _, text in NUMBERS:
        help = f"{text} ({default:,})"
        parser.add_argument(f"--{name}", type=int, default=default, help=help)
    day = Path(__file__).with_name("day.parquet")
    parser.add_argument("--day", type=Path, default=day, help="the file for the events")
    parser.add_argument("--output", type=Path, default=Path(), help="where orders.png goes")
    parser.add_argument("--json", action="store_true", help="the result as JSON, on stdout")
    options = parser.parse_args(given)
    for name, _, least, _ in NUMBERS:
        if (found := getattr(options, name)) < least:
            parser.error(f"--{name} {found}: at least {least} is needed")
    if options.violations * len(WRONG) > options.events // 20:
        parser.error(f"--violations {options.violations}: too many for --events {options.events}")
    return options


def main(given: list[str] | None = None) -> int:
    """Runs and prints it; 0 if all that is compared is the same."""
    options = arguments(given)
    # Whoever reads JSON sees on stderr how far it is.
    console = Console(stderr=options.json, highlight=False)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        options.day.parent.mkdir(parents=True, exist_ok=True)
        ss.spark.find_java()  # without one it ends here
    except (OSError, ss.ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 2
    result = run(options, console)
    if options.json:
        print(json.dumps(result))
    else:
        show(result, console)
    return 0 if all(result["checks"].values()) else 1


if __name__ == "__main__":
    sys.exit(main())

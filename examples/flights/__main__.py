"""``python -m examples.flights``: departures through Spark, compared with the sequential run."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import specstream as ss
from examples.flights.departures import DAYS, WATERMARK, NoFlights, load, write_files
from examples.flights.operators import jams, worst_routes
from examples.flights.picture import draw
from specstream.figures.style import save

Report = Callable[..., None]  # of the number of events done, and what else there is to say


def stream(
    session: Any,
    operator: ss.Operator,
    directories: Sequence[Path],
    output: Path,
    threads: int,
    report: Report,
) -> tuple[pa.Table, dict[str, Any]]:
    """Runs all files through Spark and an operator; returns its rows and its state."""
    schema = session.read.parquet(str(directories[0])).schema
    # One file of each airport makes a micro-batch.
    files = session.readStream.schema(schema).option("maxFilesPerTrigger", 1)
    first, *others = (files.parquet(str(directory)) for directory in directories)
    departures = first
    for other in others:
        departures = departures.unionByName(other)

    with ss.Engine(operator, threads=threads) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            source="origin",  # each airport has a clock of its own,
            sources=[directory.name for directory in directories],  # and all wait for the slowest
            watermark=WATERMARK,
            to=ss.sinks.parquet_sink(output / "rows"),
            checkpoint=output / "checkpoint",  # with it, each row is written exactly once
        )

        def run(frame: Any, batch_id: int) -> None:
            feed(frame, batch_id)
            stats = engine.stats
            report(stats.events, f"batch {batch_id}, {stats.pending:,} wait")

        query = (
            departures.writeStream.foreachBatch(run)
            .option("checkpointLocation", str(output / "spark"))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        feed.finish()  # no departure follows: those that wait are done as well
        report(engine.stats.events, "done")
        state = engine.state.to_dict()
    rows = pyarrow.dataset.dataset(output / "rows", format="parquet").to_table()
    return rows, state


def as_table(files: dict[str, list[Path]]) -> pa.Table:
    """What the files hold, of each airport in the order in which it comes."""
    return pa.concat_tables(
        pq.read_table(path, partitioning=None)
        for of_airport in files.values()
        for path in of_airport
    )


def difference(
    operator: ss.Operator, expected: ss.SequentialRun, rows: pa.Table, state: dict[str, Any]
) -> str | None:
    """Whether rows or state are not those of the sequential run."""
    if not rows.equals(expected.output):
        return f"{operator.name}: {rows.num_rows:,} rows, {expected.output.num_rows:,} expected"
    for field, value in expected.state.to_dict().items():
        if state[field] != value:
            return f"{operator.name}: the field {field!r} of the state differs"
    return None


def progress_on(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<24}"),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TextColumn("{task.fields[detail]}"),
        TimeElapsedColumn(),
        console=console,
    )


def run(departures: pd.DataFrame, threads: int, picture: Path, console: Console) -> dict[str, Any]:
    """Runs it all; returns what there is to print."""
    found: dict[ss.Operator, tuple[pa.Table, dict[str, Any]]] = {}
    with (
        tempfile.TemporaryDirectory(prefix="flights-") as temporary,
        progress_on(console) as progress,
    ):
        work = Path(temporary)
        files = write_files(departures, work / "departures")
        directories = [work / "departures" / airport for airport in files]

        def line(title: str) -> Report:
            task = progress.add_task(title, total=len(departures), detail="")

            def report(done: int, detail: str = "") -> None:
                progress.update(task, completed=done, detail=detail)

            return report

        session = ss.spark.local_session("flights", settings={"spark.log.level": "OFF"})
        try:
            for operator in (worst_routes, jams):
                report = line(operator.name)
                output = work / operator.name
                found[operator] = stream(session, operator, directories, output, threads, report)
        finally:
            session.stop()

        differences = []
        table = as_table(files)
        for operator, (rows, state) in found.items():
            report = line(f"{operator.name}, sequential")
            # The same function as plain Python, one departure after the other.
            expected = operator.run_sequential(
                table, order_by="time", source="origin", progress=report
            )
            report(len(departures))
            differences.append(difference(operator, expected, rows, state))

    routes, of_routes = found[worst_routes]
    changes, _ = found[jams]
    save(draw(departures, routes, changes), picture)
    return {
        "departures": len(departures),
        "routes": [
            {"origin": origin, "dest": dest, "minutes": of_routes["minutes"][origin, dest]}
            for origin, dest in of_routes["board"]
        ],
        "jams": changes["begins"].to_pylist().count(True),
        "rows": {operator.name: rows.num_rows for operator, (rows, _) in found.items()},
        "picture": str(picture),
        "differences": [text for text in differences if text is not None],
        "identical": not any(differences),
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Prints a result for people."""
    console.print(f"{result['departures']:,} departures, {result['jams']} jams")
    console.print("Most minutes were lost on")
    for route in result["routes"]:
        console.print(f"  {route['origin']} to {route['dest']} {route['minutes']:10,}")
    console.print(f"picture: {result['picture']}", soft_wrap=True)
    for text in result["differences"]:
        console.print(text, soft_wrap=True)
    console.print(f"identical to the sequential run: {'yes' if result['identical'] else 'no'}")


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("examples.flights", description=__doc__)
    parser.add_argument("--days", type=int, default=DAYS, help="of the year (%(default)s)")
    parser.add_argument("--threads", type=int, default=2, help="of the engine (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path(), help="where flights.png goes")
    parser.add_argument("--json", action="store_true", help="the result as JSON, on stdout")
    options = parser.parse_args(given)
    if not 1 <= options.days <= DAYS:
        parser.error(f"--days {options.days}: expected 1 to {DAYS}")
    if options.threads < 1:
        parser.error(f"--threads {options.threads}: at least 1 is needed")
    return options


def main(given: list[str] | None = None) -> int:
    """Runs and prints it; 0 if Spark's answer is that of the sequential run."""
    options = arguments(given)
    console = Console(highlight=False)
    # Whoever reads JSON sees on stderr how far it is.
    shown = Console(stderr=True) if options.json else console
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        with shown.status("reading the flights"):
            departures = load(options.days)
        ss.spark.find_java()  # without one it ends here
    except (NoFlights, OSError, ss.ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 2
    result = run(departures, options.threads, options.output / "flights.png", shown)
    if options.json:
        print(json.dumps(result))
    else:
        show(result, console)
    return 0 if result["identical"] else 1


if __name__ == "__main__":
    sys.exit(main())

"""``python -m examples.fraud``: payments through Spark and the pipeline, compared and scored."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.dataset
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

import specstream as ss
from examples.fraud.payments import DELAY, BadCsv, as_table, made, read_csv, write_files
from examples.fraud.picture import draw
from examples.fraud.pipeline import fraud
from examples.fraud.score import score
from specstream.figures.style import save

FILES = 8  # and so micro-batches
FEWEST = 1000  # payments, of which some are frauds

Report = Callable[..., None]  # of the number of payments done, and what else there is to say


def stream(
    session: Any, pipeline: ss.Pipeline, files: Path, output: Path, threads: int, report: Report
) -> tuple[pa.Table, dict[str, Any]]:
    """Runs all files through Spark; returns the decisions, and the state of all vertices."""
    with ss.Engine(pipeline, threads=threads) as engine:
        feed = ss.spark.foreach_batch(
            engine,
            order_by="time",
            watermark=f"{DELAY} seconds",
            to=ss.sinks.parquet_sink(output / "decisions"),
            checkpoint=output / "checkpoint",  # with it, each decision is written exactly once
        )
        ss.spark.stream_directory(
            session,
            files,
            feed,
            checkpoint=output / "spark",
            files_per_trigger=1,
            on_batch=lambda batch_id: report(engine.stats.events, f"batch {batch_id}"),
        )
        feed.finish()  # no payment follows: those that wait are done as well
        report(engine.stats.events, "done")
        state = engine.state.to_dict()
    return pyarrow.dataset.dataset(output / "decisions", format="parquet").to_table(), state


def run(
    payments: pd.DataFrame, seed: int, threads: int, picture: Path, console: Console
) -> dict[str, Any]:
    """Runs it all; returns what there is to print."""
    pipeline = fraud()
    with (
        tempfile.TemporaryDirectory(prefix="fraud-") as temporary,
        Progress(
            TextColumn("{task.description:<10}"),
            BarColumn(bar_width=12),
            MofNCompleteColumn(),
            TextColumn("{task.fields[detail]}"),
            TimeElapsedColumn(),
            console=console,
        ) as progress,
    ):

        def line(title: str) -> Report:
            task = progress.add_task(title, total=len(payments), detail="")

            def report(done: int, detail: str = "") -> None:
                progress.update(task, completed=done, detail=detail)

            return report

        work = Path(temporary)
        write_files(payments, work / "payments", FILES, seed)
        report = line("Spark")
        session = ss.spark.local_session("fraud", settings={"spark.log.level": "OFF"})
        try:
            found, state = stream(session, pipeline, work / "payments", work, threads, report)
        finally:
            session.stop()
        # The same pipeline as plain Python, payment by payment.
        report = line("sequential")
        expected = pipeline.run_sequential(
            as_table(work / "payments"), order_by="time", progress=report
        )
        report(len(payments))

    decisions = found.to_pandas()
    result: dict[str, Any] = {
        "payments": len(payments),
        "cards": int(payments["card"].nunique()),
        "decisions": {
            str(reason): int(count) for reason, count in decisions["reason"].value_counts().items()
        },
    }
    if "fraud" in payments:
        result |= score(payments, decisions)
    save(draw(payments, decisions, result.get("kinds", {})), picture)
    of_state = expected.state.to_dict()
    return result | {
        "picture": str(picture),
        "last": decisions.tail(5).astype(str).to_dict("records"),
        "identical": found.equals(expected.output)
        and all(bool(state[field] == value) for field, value in of_state.items()),
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Prints a result for people."""
    console.print(f"{result['payments']:8,} payments of {result['cards']:,} cards")
    for reason, count in result["decisions"].items():
        right = result.get("reasons", {}).get(reason)
        is_right = "" if right is None else f", {right['right']:,} of them frauds"
        console.print(f"{count:8,} decisions by {reason}{is_right}")
    for kind, of in result.get("kinds", {}).items():
        console.print(f"{of['found']:8,} of {of['frauds']:,} payments of kind {kind} were found")
    for name in ("precision", "recall"):
        if result.get(name) is not None:
            console.print(f"{result[name]:8.1%} {name}")
    if result["last"]:
        console.print("\nThe last decisions:")
        frame = pd.DataFrame(result["last"]).drop(columns="number")
        frame["time"] = frame["time"].str.slice(0, 19)
        console.print(frame.to_string(index=False), soft_wrap=True)
    console.print(f"\npicture: {result['picture']}", soft_wrap=True)
    console.print(f"identical to the sequential run: {'yes' if result['identical'] else 'no'}")


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("examples.fraud", description=__doc__)
    parser.add_argument(
        "--payments", type=int, default=20_000, help="about how many are made (%(default)s)"
    )
    parser.add_argument("--seed", type=int, default=1, help="they are made from it (%(default)s)")
    parser.add_argument(
        "--csv", type=Path, help="a file with time,card,merchant,latitude,longitude,amount"
    )
    parser.add_argument("--threads", type=int, default=2, help="of the engine (%(default)s)")
    parser.add_argument("--output", type=Path, default=Path(), help="where fraud.png goes")
    parser.add_argument("--json", action="store_true", help="the result as JSON, on stdout")
    options = parser.parse_args(given)
    if options.payments < FEWEST:
        parser.error(f"--payments {options.payments}: at least {FEWEST} are needed")
    if options.seed < 0:
        parser.error(f"--seed {options.seed}: at least 0 is needed")
    if options.threads < 1:
        parser.error(f"--threads {options.threads}: at least 1 is needed")
    return options


def main(given: list[str] | None = None) -> int:
    """Runs and prints it; 0 if Spark's answer is that of the sequential run."""
    options = arguments(given)
    # Whoever reads JSON sees on stderr how far it is.
    console = Console(stderr=options.json, highlight=False)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
        with console.status("making the payments"):
            payments = (
                read_csv(options.csv) if options.csv else made(options.payments, options.seed)
            )
        ss.spark.find_java()  # without one it ends here
    except (BadCsv, OSError, ss.ConfigurationError) as error:
        print(error, file=sys.stderr)
        return 2
    picture = options.output / "fraud.png"
    result = run(payments, options.seed, options.threads, picture, console)
    if options.json:
        print(json.dumps(result))
    else:
        show(result, console)
    return 0 if result["identical"] else 1


if __name__ == "__main__":
    sys.exit(main())

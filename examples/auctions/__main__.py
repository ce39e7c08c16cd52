"""``python -m examples.auctions``: a file of bids through the pipeline, compared and drawn."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.json
from rich.console import Console

import specstream as ss
from examples.auctions.bids import FEWEST, write
from examples.auctions.check import expected
from examples.auctions.picture import draw
from examples.auctions.pipeline import DAYS, auction, auctions
from specstream.figures.style import save

SINKS = {"days": [*DAYS], "wrong": ["item", "day", "kind"]}  # and what of their rows is printed
PICTURES = ("auctions.png", "auctions-machine.svg", "auctions-pipeline.svg")
SHOWN = {"days": ("The last days", 5), "wrong": ("The last events that are wrong", 20)}
# Options, what they are without being given, and at least.
NUMBERS = (
    ("events", 200_000, FEWEST, "how many are made"),
    ("days", 60, 2, "so many of them end a day"),
    ("violations", 16, 0, "so many of them are wrong"),
    ("seed", 1, 0, "they are made from it"),
    ("threads", 2, 1, "of the engine"),
    ("sequential", 20_000, 1, "so many, the first ones, run as plain Python as well"),
)


def stream(file: Path, threads: int) -> dict[str, pa.Table]:
    """Runs a file of JSON lines through the pipeline; returns what the sinks have got."""
    parts: dict[str, list[pa.Table]] = {name: [] for name in SINKS}

    def sink(name: str) -> Any:
        return lambda rows, batch_id: parts[name].append(rows)

    with ss.Engine(auctions(), threads=threads) as engine:
        ss.sources.run(
            engine,
            ss.sources.dataset(file, format="json"),
            order_by="day",
            to={name: sink(name) for name in SINKS},
        )
    return {name: pa.concat_tables(of) for name, of in parts.items()}


def is_sequential(file: Path, threads: int, count: int) -> bool:
    """Whether an engine gives of the first events what the pipeline gives as plain Python."""
    table = pyarrow.json.read_json(file).slice(0, count)
    with ss.Engine(auctions(), threads=threads) as engine:
        found = engine.process(table, order_by="day", end=True)
    expected = auctions().run_sequential(table, order_by="day", end=True).output
    return all(found[name].equals(expected[name]) for name in SINKS)


def run(options: argparse.Namespace, console: Console) -> dict[str, Any]:
    """Runs it all; returns what there is to print."""
    threads = options.threads
    with tempfile.TemporaryDirectory(prefix="auctions-") as temporary:
        file = Path(temporary) / "bids.jsonl"
        with console.status("making the events"):
            planted = write(file, options.events, options.days, options.seed, options.violations)
        with console.status("running the pipeline"):
            found = {count: stream(file, count) for count in sorted({1, threads})}
        with console.status("running its beginning as plain Python"):
            is_plain = is_sequential(file, threads, options.sequential)
        by_pandas = {name: of.to_dict("records") for name, of in expected(file).items()}

    save(draw(found[threads]["days"].to_pandas()), options.output / PICTURES[0])
    drawn: list[Any] = [auction, auctions()]
    for one, name in zip(drawn, PICTURES[1:], strict=True):
        one.draw(options.output / name)
    rows = {name: of.select(SINKS[name]).to_pylist() for name, of in found[threads].items()}
    named = [{name: one[name] for name in SINKS["wrong"]} for one in planted]
    first = min(options.sequential, options.events)
    checks = {
        "equal to what pandas computes": rows == by_pandas,
        "wrong are exactly those that were planted": rows["wrong"] == named,
    }
    if threads > 1:
        checks[f"identical on 1 and {threads} threads"] = found[1] == found[threads]
    checks[f"identical to the sequential run of the first {first:,}"] = is_plain
    return {
        "events": options.events,
        **rows,
        "pictures": [str(options.output / name) for name in PICTURES],
        "checks": checks,
    }


def show(result: dict[str, Any], console: Console) -> None:
    """Prints a result for people."""
    console.print(f"{result['events']:8,} events of {len(result['days']):,} days")
    console.print(f"{len(result['wrong']):8,} of them are wrong")
    for name, (title, most) in SHOWN.items():
        if result[name]:
            console.print(f"\n{title}:")
            frame = pd.DataFrame(result[name][-most:]).round(3)
            console.print(frame.to_string(index=False), soft_wrap=True)
    console.print(f"\npictures: {', '.join(result['pictures'])}", soft_wrap=True)
    for name, holds in result["checks"].items():
        console.print(f"{name}: {'yes' if holds else 'no'}", soft_wrap=True)


def arguments(given: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("examples.auctions", description=__doc__)
    for name, default, _, text in NUMBERS:
        help = f"{text} ({default:,})"
        parser.add_argument(f"--{name}", type=int, default=default, help=help)
    parser.add_argument("--output", type=Path, default=Path(), help="where the pictures go")
    parser.add_argument("--json", action="store_true", help="the result as JSON, on stdout")
    options = parser.parse_args(given)
    for name, _, least, _ in NUMBERS:
        if (found := getattr(options, name)) < least:
            parser.error(f"--{name} {found}: at least {least} is needed")
    for name in ("days", "violations"):
        if (found := getattr(options, name)) > options.events // 10:
            parser.error(f"--{name} {found}: at most a tenth of --events {options.events}")
    return options


def main(given: list[str] | None = None) -> int:
    """Runs and prints it; 0 if all that is compared is the same."""
    options = arguments(given)
    # Whoever reads JSON sees on stderr how far it is.
    console = Console(stderr=options.json, highlight=False)
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
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

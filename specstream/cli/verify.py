"""``specstream verify``: what an operator can do on any stream."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import pyarrow.parquet as pq

from specstream.cli.errors import needs, reported_errors
from specstream.cli.options import Command, SecondsRange, argument_option, json_option
from specstream.cli.rows import json_line
from specstream.cli.target import load_function, load_operator, parse_arguments

__all__ = ["verify"]


@click.command(cls=Command)
@click.argument("target", metavar="MODULE:OPERATOR")
@argument_option
@click.option(
    "--always",
    multiple=True,
    metavar="NAME",
    help="Function of (state) that is to hold before the first event and after each; of the same "
    "module, or MODULE:NAME; repeatable.",
)
@click.option(
    "--each",
    multiple=True,
    metavar="NAME",
    help="Function of any of (before, event, rows, after) that is to hold of each event; "
    "repeatable.",
)
@click.option(
    "--assume",
    multiple=True,
    metavar="NAME",
    help="Function of (event): only streams are looked at whose events fit; repeatable.",
)
@click.option(
    "--against",
    metavar="MODULE:OPERATOR",
    help="The operator before a change: whether both give the same rows.",
)
@click.option(
    "--smallest",
    metavar="EXPR",
    help="The greatest value of a number, like len(state.queue), or a stream along which it grows.",
)
@click.option(
    "--cover",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a Parquet file: one stream through as many paths as one can take.",
)
@click.option(
    "--events",
    type=click.IntRange(0, 1000),
    default=8,
    show_default=True,
    help="Length of the streams that are looked at where there is no proof.",
)
@click.option(
    "--rounds",
    type=click.IntRange(0, 1000),
    default=4,
    show_default=True,
    help="Turns of a loop without a known end; what goes on longer is undecided.",
)
@click.option(
    "--effort",
    type=click.FloatRange(min=0.01),
    default=5.0,
    show_default=True,
    help="Work for one question to a solver.",
)
@click.option(
    "--time",
    type=SecondsRange(min=0.1),
    default=60.0,
    show_default=True,
    help="Most seconds for all.",
)
@click.option(
    "--require",
    type=click.Choice(["proved"]),
    help="Exit with 3 where a property holds only as far as was looked.",
)
@click.option(
    "--counterexample",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Directory for the stream that refutes: events.parquet, verdict.json, and a test that "
    "fails until the operator is mended.",
)
@json_option
def verify(
    *,
    target: str,
    arguments: tuple[str, ...],
    always: tuple[str, ...],
    each: tuple[str, ...],
    assume: tuple[str, ...],
    against: str | None,
    smallest: str | None,
    cover: Path | None,
    events: int,
    rounds: int,
    effort: float,
    time: float,
    require: str | None,
    counterexample: Path | None,
    as_json: bool,
) -> None:
    """Find out what an operator can do on any stream, or whether it never does it.

    Without a property: which exceptions there are, and at which lines integers wrap, each with the
    shortest stream that shows it. With --always or --each: whether a property holds, for every
    stream or as far as was looked. Every stream that is shown has been run, sequentially and on an
    engine of two threads.

    OPERATOR may be a pipeline, or a function that makes one of both from the --arg values.

    The exit status is 0 if nothing is refuted, 1 if something is, 2 if the question is wrong, and 3
    if the answer is not known.
    """
    status = 2
    try:
        with reported_errors():
            needs("verify", "z3", "bitwuzla")
            from specstream.verify.checking import check
            from specstream.verify.covering import cover as covered
            from specstream.verify.directory import write_counterexample
            from specstream.verify.same import same
            from specstream.verify.smallest import number_of
            from specstream.verify.smallest import smallest as smallest_of

            given = parse_arguments(arguments)
            operator = load_operator(target, given)
            limits: dict[str, Any] = {
                "events": events,
                "rounds": rounds,
                "effort": effort,
                "time": time,
                "assume": _functions(assume, target),
            }
            asked = {"--against": against, "--smallest": smallest, "--cover": cover}
            alone = [name for name, value in asked.items() if value is not None]
            if alone and (always or each or len(alone) > 1):
                others = [*alone[1:], *["--always"] * bool(always), *["--each"] * bool(each)]
                raise click.UsageError(
                    f"{alone[0]} is a question of its own: leave out {', '.join(others)}"
                )
            if cover is not None:
                if not cover.absolute().parent.is_dir():
                    raise click.UsageError(f"--cover {cover}: there is no directory {cover.parent}")
                found = covered(operator, **limits | {"events": min(events, 4)})
                pq.write_table(found.table, cover)
                click.echo(json_line(found.to_dict()) if as_json else str(found))
                sys.exit(3 if found.undecided else 0)
            if smallest is not None:
                report = smallest_of(operator, number_of(smallest, operator), **limits)
            elif against is not None:
                report = same(load_operator(against, given), operator, **limits)
            else:
                report = check(
                    operator,
                    always=_functions(always, target),
                    each=_functions(each, target),
                    **limits,
                )
            click.echo(json_line(report.to_dict()) if as_json else str(report))
            if counterexample is not None:
                names = {"always": always, "each": each, "assume": assume, "against": against}
                write_counterexample(report, counterexample, target, arguments, names)
            status = report.exit_status(require)
    except click.ClickException as error:
        error.show()
    sys.exit(status)


def _functions(names: tuple[str, ...], target: str) -> list[Callable[..., Any]]:
    """The functions that options name: of the operator's module, if they name no other."""
    where = target.rpartition(":")[0]
    return [load_function(name if ":" in name else f"{where}:{name}") for name in names]

"""``specstream verify``: what an operator can do on any stream."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

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

    MODULE is a module name or the path of a .py file; OPERATOR an operator in it, or a function
    that makes one from the --arg values.

    The exit status is 0 if nothing is refuted, 1 if something is, 2 if the question is wrong, and 3
    if the answer is not known.
    """
    status = 2
    try:
        with reported_errors():
            needs("verify", "z3", "bitwuzla")
            from specstream.verify.checking import check
            from specstream.verify.directory import write_counterexample
            from specstream.verify.same import same

            given = parse_arguments(arguments)
            operator = load_operator(target, given)
            limits: dict[str, Any] = {
                "events": events,
                "rounds": rounds,
                "effort": effort,
                "time": time,
                "assume": _functions(assume, target),
            }
            if against is not None:
                if always or each:
                    raise click.UsageError(
                        "--against asks for the same rows, and takes no --always"
                    )
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

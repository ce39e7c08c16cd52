"""``specstream verify``: what an operator can do on any stream."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

import click
import pyarrow.parquet as pq
from rich.console import Console

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
    "--rows",
    type=click.Choice(["stepwise", "sequence"]),
    default="stepwise",
    show_default=True,
    help="With --against: rows are compared event by event, or one after the other.",
)
@click.option(
    "--domain",
    multiple=True,
    metavar="COLUMN=VALUES",
    help="Look at every state that events of these values lead to: x=0..3, side=B,S, y=1,null; "
    "once for each column.",
)
@click.option(
    "--time-steps",
    metavar="STEPS",
    help="With --domain: how long after one event the next one may come, like 0,1,10.",
)
@click.option(
    "--within-states",
    type=click.IntRange(1),
    metavar="N",
    help="With --domain: the most states.  [default: 1000000]",
)
@click.option(
    "--can-always",
    multiple=True,
    metavar="NAME",
    help="With --domain: from every state some stream gets to an event of which this function, as "
    "of --each, holds; rows: to one that emits a row. Repeatable.",
)
@click.option(
    "--smv",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write a model of NuSMV, with what --always, --each and --can-always ask.",
)
@click.option(
    "--width",
    type=click.IntRange(2, 64),
    metavar="BITS",
    help="With --smv: of an integer.  [default: 8]",
)
@click.option(
    "--events",
    type=click.IntRange(0, 1000),
    help="Length of the streams that are looked at where there is no proof.  [default: 8, with "
    "--domain any]",
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
    rows: Literal["stepwise", "sequence"],
    domain: tuple[str, ...],
    time_steps: str | None,
    within_states: int | None,
    can_always: tuple[str, ...],
    smv: Path | None,
    width: int | None,
    events: int | None,
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
            from specstream.verify.domain import domain_of_texts
            from specstream.verify.same import same
            from specstream.verify.smallest import number_of
            from specstream.verify.smallest import smallest as smallest_of
            from specstream.verify.smv import to_smv

            given = parse_arguments(arguments)
            operator = load_operator(target, given)
            limits: dict[str, Any] = {
                "events": events,
                "rounds": rounds,
                "effort": effort,
                "time": time,
                "assume": _functions(assume, target),
            }
            asked = {"--against": against, "--smallest": smallest, "--cover": cover, "--smv": smv}
            if width is not None and smv is None:
                raise click.UsageError("--width is for --smv")
            alone = [name for name, value in asked.items() if value is not None]
            properties = {"--always": always, "--each": each, "--can-always": can_always}
            if against is not None:
                del properties["--each"]
            if smv is not None:
                properties.clear()
            beside = [name for name, value in properties.items() if value]
            if alone and (beside or len(alone) > 1):
                others = [*alone[1:], *beside]
                raise click.UsageError(
                    f"{alone[0]} is a question of its own: leave out {', '.join(others)}"
                )
            of_states: dict[str, Any] = {
                "domain": domain_of_texts(domain, operator) if domain else None,
                "time_steps": _steps(time_steps),
                "within_states": within_states,
            }
            rows_only = can_always == ("rows",)
            questions: dict[str, Any] = {
                "always": _functions(always, target),
                "each": _functions(each, target),
                "can_always": "rows" if rows_only else _functions(can_always, target),
            }
            if cover is not None or smallest is not None or smv is not None:
                given_too = [name for name, value in of_states.items() if value is not None]
                if given_too:
                    option = given_too[0].replace("_", "-")
                    raise click.UsageError(
                        f"{alone[0]} is asked of every value: leave out --{option}"
                    )
            if smv is not None:
                if not smv.absolute().parent.is_dir():
                    raise click.UsageError(f"--smv {smv}: there is no directory {smv.parent}")
                own = {"assume": limits["assume"], "rounds": max(rounds, 8), "time": time}
                smv.write_text(to_smv(operator, width=width or 8, **questions, **own))
                click.echo(f"{smv}: a model of {operator.name}")
                sys.exit(0)
            if cover is not None:
                if not cover.absolute().parent.is_dir():
                    raise click.UsageError(f"--cover {cover}: there is no directory {cover.parent}")
                few = limits | {"events": min(4 if events is None else events, 4)}
                found = covered(operator, **few)
                pq.write_table(found.table, cover)
                click.echo(json_line(found.to_dict()) if as_json else str(found))
                sys.exit(3 if found.undecided else 0)
            if smallest is not None:
                least = limits | {"events": 8 if events is None else events}
                report = smallest_of(operator, number_of(smallest, operator), **least)
            elif against is not None:
                if len(each) > 1:
                    raise click.UsageError("--against takes one --each")
                with _counting() as progress:
                    report = same(
                        load_operator(against, given),
                        operator,
                        rows=rows,
                        each=questions["each"][0] if each else None,
                        progress=progress,
                        **limits,
                        **of_states,
                    )
            else:
                with _counting() as progress:
                    report = check(operator, progress=progress, **questions, **limits, **of_states)
            click.echo(json_line(report.to_dict()) if as_json else str(report))
            if counterexample is not None:
                names = {"always": always, "each": each, "assume": assume, "against": against}
                write_counterexample(report, counterexample, target, arguments, names)
            status = report.exit_status(require)
    except click.ClickException as error:
        error.show()
    sys.exit(status)


@contextmanager
def _counting() -> Iterator[Callable[[int], None]]:
    """Shows how many states there are so far; nothing where nobody watches."""
    with Console(stderr=True).status("") as status:
        yield lambda states: status.update(f"{states:,} states")


def _steps(text: str | None) -> list[int] | None:
    if text is None:
        return None
    try:
        return [int(one) for one in text.split(",")]
    except ValueError:
        raise click.UsageError(
            f"--time-steps {text}: expected ints with commas between, like 0,1,10"
        ) from None


def _functions(names: tuple[str, ...], target: str) -> list[Callable[..., Any]]:
    """The functions that options name: of the operator's module, if they name no other."""
    where = target.rpartition(":")[0]
    return [load_function(name if ":" in name else f"{where}:{name}") for name in names]

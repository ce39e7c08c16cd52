"""``specstream check``: whether a rule holds in files, and where it is violated."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from specstream.cli.checking import Check
from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, LocalPath, argument_option, json_option, threads_option
from specstream.cli.rows import json_line
from specstream.cli.target import load_rule, parse_arguments
from specstream.rules.declared import Rule
from specstream.rules.formula import Temporal, walk

__all__ = ["check"]


@click.command(cls=Command)
@click.argument("target", metavar="MODULE:RULE")
@click.argument("paths", metavar="FILE...", nargs=-1, required=True, type=LocalPath())
@argument_option
@click.option(
    "--order-by",
    metavar="COL",
    help="Column of the event time, by which the rows are in order. A rule with bounds of time "
    "needs it; without it, the time of a row is its number.",
)
@click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="COL[,COL]",
    help="Column of the rule whose values are traces of their own, if the rule declares no key; "
    "repeatable.",
)
@click.option(
    "--at-end",
    type=click.Choice(["open", "closed"]),
    help="What the end says of events that are not settled: nothing, or that nothing more comes  "
    "[default: as the rule declares]",
)
@click.option(
    "--why",
    is_flag=True,
    help="Print for each violation shown what settled it. The files are read twice, and all rows "
    "with the same key are kept in memory; without a key, all rows until then.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    help="Violations to show; all are counted.",
)
@threads_option
@json_option
def check(
    *,
    target: str,
    paths: tuple[Path, ...],
    arguments: tuple[str, ...],
    order_by: str | None,
    keys: tuple[str, ...],
    at_end: str | None,
    why: bool,
    limit: int,
    threads: int,
    as_json: bool,
) -> None:
    """Find out whether a rule holds in files, and where it is violated.

    MODULE is a module name or the path of a .py file; RULE a rule in it, made with @ss.rule, or a
    function that makes one from the --arg values. RULE may be left out if the module has one rule.

    Each FILE is Parquet, CSV with a header, whose lines that begin with # are skipped, or JSON
    lines; or a directory of such. Files are read one after the other, and their rows must be in
    the order of --order-by. At their end all time has passed.

    The exit status is 0 if the rule holds, 1 if it is violated, and 2 if that cannot be found out.
    """
    try:
        with reported_errors():
            rule = load_rule(target, parse_arguments(arguments))
            _check_options(rule, order_by, why)
            found = Check(_with(rule, keys, at_end), paths, order_by, limit)
            found.run(threads)
            if why:
                found.find_reasons()
            if as_json:
                click.echo(json_line(found.to_dict()))
            else:
                found.show()
    except click.ClickException as error:
        error.show()
        sys.exit(2)  # 1 says that the rule is violated
    if found.violations:
        sys.exit(1)


def _with(rule: Rule, keys: tuple[str, ...], at_end: str | None) -> Rule:
    """The rule with options of the command line.

    Raises:
        click.UsageError: it has a key already.
        ConfigurationError: there is no such column.
    """
    options: dict[str, Any] = {} if at_end is None else {"at_end": at_end}
    if keys:
        if rule.key:
            raise click.UsageError(
                f"rule {rule.name!r} is declared with the key {', '.join(rule.key)}: leave out "
                "--key"
            )
        options["key"] = tuple(name.strip() for one in keys for name in one.split(","))
    again: Any = rule.again
    made: Rule = again(**options) if options else rule
    return made


def _check_options(rule: Rule, order_by: str | None, why: bool) -> None:
    """Whether the rule can be checked so.

    Raises:
        click.UsageError: it cannot.
    """
    parts = [one for one in walk(rule.formula) if isinstance(one, Temporal)]
    if order_by is None and any(one.within is not None or one.after for one in parts):
        raise click.UsageError(
            f"rule {rule.name!r} has bounds of time: give --order-by, the column of the event time"
        )
    again: Any = rule.again
    if why and again.keywords["anchored"]:
        raise click.UsageError(
            f"rule {rule.name!r} is about the first event of each trace, and its rows do not say "
            "which that is: leave --why out, and ask rule.why(table, at=...) in Python"
        )

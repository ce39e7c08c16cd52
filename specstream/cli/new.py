"""``specstream new``: a directory to start an operator of one's own from.

The files lie in ``template/``, as they are written but for the name; a test runs what comes out.
"""

from __future__ import annotations

import importlib.util
import json
import keyword
import re
from importlib import resources
from pathlib import Path
from string import Template

import click
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from specstream.cli.errors import reported_errors
from specstream.cli.options import Command, json_option

__all__ = ["new"]

_TEMPLATE = resources.files("specstream.cli") / "template"
_TEXTS = {
    "operator.py.template": "{}.py",
    "test_operator.py.template": "test_{}.py",
    "README.md.template": "README.md",
}
# What the written files import under another name.
_TAKEN = ("ss",)


@click.command("new", cls=Command)
@click.argument("name", metavar="NAME")
@json_option
def new(name: str, as_json: bool) -> None:
    """Create a directory with an operator, a test, sample data and a README.

    The directory is called NAME, like the operator in NAME/NAME.py, and is created in the current
    directory. Everything in it runs as it is: change it step by step.
    """
    with reported_errors():
        directory = Path(name)
        _check(name)
        if directory.exists() or directory.is_symlink():
            raise click.ClickException(
                f"there is already a {name!r} here: choose another name, or move it away"
            )
        if importlib.util.find_spec(name) is not None:
            raise click.ClickException(
                f"{name!r} is the name of an installed module, which the test would import instead "
                "of the operator: choose another name"
            )
        written = _write(directory, name)
        if as_json:
            click.echo(json.dumps({"directory": name, "files": [str(one) for one in written]}))
            return
        for path in written:
            click.echo(f"{path}")
        click.echo(f"\nnext: cd {name} && pytest; README.md has the other commands")


def _check(name: str) -> None:
    """Refuses what cannot be the name of a module and of a function.

    Raises:
        click.UsageError: says what is expected, and a similar name that is possible.
    """
    if _is_possible(name):
        return
    similar = re.sub(r"\W+", "_", Path(name).name).strip("_")
    if not _is_possible(similar):
        similar = f"my_{similar or 'operator'}"
    raise click.UsageError(
        f"{name!r} cannot name an operator and its module: expected letters, digits and "
        f"underscores, beginning with a letter, and no word of Python: for example {similar!r}"
    )


def _is_possible(name: str) -> bool:
    is_word = keyword.iskeyword(name) or name in _TAKEN
    return name.isidentifier() and name[0].isalpha() and not is_word


def _write(directory: Path, name: str) -> list[Path]:
    """Writes all files; returns where they are."""
    directory.mkdir()
    written = []
    for template, target in _TEXTS.items():
        path = directory / target.format(name)
        text = Template((_TEMPLATE / template).read_text(encoding="utf-8"))
        path.write_text(text.substitute(name=name), encoding="utf-8")
        written.append(path)
    events = directory / "events"
    events.mkdir()
    with (_TEMPLATE / "events.csv").open("rb") as file:
        types = {"time": pa.timestamp("us"), "user": pa.string(), "amount": pa.float64()}
        convert = pa.csv.ConvertOptions(column_types=types)
        table = pa.csv.read_csv(file, convert_options=convert)
    pq.write_table(table, events / "1.parquet")
    return [*written, events / "1.parquet"]

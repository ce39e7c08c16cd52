"""A rule over files: how often it is violated, where first, and why."""

from __future__ import annotations

import bisect
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click
import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.progress import Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

import specstream as ss
from specstream.cli.event_files import Batch, EventFiles
from specstream.columns import compute as pc
from specstream.columns.conversion import in_time_unit, of_order, order_values, time_at, time_type
from specstream.columns.rejected_rows import RowError
from specstream.columns.tables import one_array
from specstream.rules.declared import Rule
from specstream.rules.proofs import proof_of

__all__ = ["Check"]

# Seconds from one line about a long check to the next, where there is no terminal.
_EVERY = 10.0


class Check:
    """A rule, the files that it is checked in, and what was found.

    Args:
        rule: the rule.
        paths: files and directories.
        order_by: column of the times; None: they are the numbers of the rows.
        limit: so many violations are shown.

    Attributes:
        rows: how many there were.
        violations: how many of them violate the rule, or, of a rule of first events, how many
            traces.
        open: how many were not settled at the end.
        seconds: how long it took.
    """

    def __init__(self, rule: Rule, paths: tuple[Path, ...], order_by: str | None, limit: int):
        columns = dict(rule.event)
        again: Any = rule.again
        keep = again.keywords["keep"]
        self._kept = (keep,) if isinstance(keep, str) else tuple(keep)
        # A verdict comes later than its event, which is found by this column.
        names = (f"row{'_' * count}" for count in itertools.count())
        self._row = next(name for name in names if name not in (*columns, order_by))
        # Rows of a rule of first events are about traces, and have neither.
        self._is_anchored = bool(again.keywords["anchored"])
        self._rule: Any = again(
            event={**columns, self._row: int},
            keep=() if self._is_anchored else (*self._kept, self._row),
            report=None,
            robustness=False,
        )
        self._files = EventFiles(f"rule {rule.name!r}", self._rule, columns, order_by, paths)
        self._order = self._row if order_by is None else order_by
        self._limit = limit
        self._first: pa.Table | None = None
        self._starts: list[tuple[int, Path]] = []
        self._reasons: list[Any] = []
        self._shown: list[dict[str, Any]] = []
        self.rows = self.violations = self.open = 0
        self.seconds = 0.0

    def run(self, threads: int) -> None:
        """Finds the violations.

        Args:
            threads: of the engine.

        Raises:
            InputError: a file cannot be read, or its rows are not in order.
            Exception: what a condition of the rule raises; a note names the row.
        """
        began = time.perf_counter()
        kept: list[pa.Table] = []
        with ss.Engine(self._rule, threads=threads) as engine, self._watched() as look:
            for batch, table in self._tables():
                if not batch.first:
                    self._starts.append((self.rows, batch.path))
                self.rows += table.num_rows
                kept += self._counted(_processed(engine, table, self._order, batch))
                look()
            nothing = self._nothing()
            kept += self._counted(engine.process(nothing, order_by=self._order, end=True))
            # What waits is open, unless the end settles it.
            self.open = len(getattr(engine.state, "waiting", ()))
        if kept:
            self._first = pa.concat_tables(kept)
            self._shown = self._described(self._first)
        self.seconds = time.perf_counter() - began

    def find_reasons(self) -> None:
        """Asks the rule why the violations that are shown are such, with their traces alone in
        memory."""
        if self._first is None:
            return
        traces, rule = self._traces(self._first), self._rule
        numbers = traces[self._row].to_numpy()
        for row in self._first[self._row].to_numpy():
            at = int(np.searchsorted(numbers, row))
            reason = proof_of(
                *(rule, rule.formula, rule.names, rule.key, rule.at_end),
                *(traces, self._order, at, None),
                numbered=self._row,
            )
            self._reasons.append(reason)

    def to_dict(self) -> dict[str, Any]:
        """What was found, as plain data."""
        shown = [dict(one) for one in self._shown]
        for one, reason in zip(shown, self._reasons, strict=False):
            one["why"] = reason.to_dict()
        return {
            "rule": self._rule.name,
            "rows": self.rows,
            "violations": self.violations,
            "held": not self.violations,
            "open": self.open,
            "shown": shown,
            "seconds": self.seconds,
        }

    def show(self) -> None:
        """Prints what was found."""
        console = Console()
        if self._shown:
            heads = [*self._rule.key, "time", "because"]
            if not self._is_anchored:
                heads[-1:] = ["decided", "because", *self._kept, "row"]
            table = Table(box=None)
            for head in heads:
                table.add_column(Text(head), overflow="fold")
            for one in self._shown:
                cells = [*one["key"].values(), one["time"], one["because"]]
                if not self._is_anchored:
                    place = f"{one['row']} of {one['file']}"
                    cells[-1:] = [one["decided"], one["because"], *one["kept"].values(), place]
                # No markup: texts of users may have brackets.
                table.add_row(*(Text("" if cell is None else str(cell)) for cell in cells))
            console.print(table)
        if self._shown and self.violations > len(self._shown):
            click.echo(f"... {self.violations - len(self._shown):,} more")
        if self._reasons and len(self._starts) > 1:
            click.echo("\nIn reasons rows are numbered through all files.")
        for one, reason in zip(self._shown, self._reasons, strict=False):
            click.echo(f"\nrow {one['row']} of {one['file']}:\n{reason}")
        how = f"is violated {self.violations:,} times" if self.violations else "holds"
        how = how.removesuffix("s") if self.violations == 1 else how
        how = how if self.rows else "was asked of no row: whether it holds is not known"
        are = "is" if self.open == 1 else "are"
        left = f"; {self.open:,} {are} open at the end" if self.open else ""
        where = f" in {self.rows:,} rows" if self.rows else ""
        click.echo(f"{self._rule.name} {how}{where}{left}")

    # ---- rows in ----

    def _tables(self) -> Iterator[tuple[Batch, pa.Table]]:
        """The rows of all files, each with its number."""
        first = 0
        for batch in self._files.batches():
            numbers = np.arange(first, first + batch.table.num_rows)
            first += len(numbers)
            yield batch, batch.table.append_column(self._row, pa.array(numbers))

    def _nothing(self) -> pa.Table:
        """No rows, of the types of those before."""
        types = {name: column.arrow for name, column in dict(self._rule.event).items()}
        if self._files.time_type is not None:
            types[self._order] = self._files.time_type
        types.setdefault(self._order, pa.int64())
        return pa.schema(list(types.items())).empty_table()

    def _traces(self, violations: pa.Table) -> pa.Table:
        """The rows of the traces of violations, until all of these were decided."""
        keys = [one_array(violations[name]) for name in self._rule.key]
        wanted = set(zip(*(one.to_pylist() for one in keys), strict=True))
        decided = one_array(violations["decided"])
        last = None if decided.null_count else int(_numbers(decided).max())
        found = [self._nothing()]
        for _, table in self._tables():
            for name, values in zip(self._rule.key, keys, strict=True):
                table = table.filter(pc.is_in(table[name], values))
            if len(keys) > 1:
                given = zip(*(table[name].to_pylist() for name in self._rule.key), strict=True)
                table = table.filter(pa.array([one in wanted for one in given], pa.bool_()))
            found.append(table)
            if last is not None and table.num_rows:
                times, _ = in_time_unit(one_array(table[self._order]), self._rule.event.time_unit)
                if _numbers(times)[-1] > last:
                    break
        return pa.concat_tables(found, promote_options="permissive")

    # ---- rows out ----

    def _counted(self, told: pa.Table) -> list[pa.Table]:
        """Of the rows of a rule the violations that are to be shown; all are counted."""
        told = told.filter(pc.equal(told["verdict"], False))
        missing = max(self._limit - self.violations, 0)
        self.violations += told.num_rows
        return [told.slice(0, missing)] if missing and told.num_rows else []

    def _described(self, told: pa.Table) -> list[dict[str, Any]]:
        """Violations as plain data."""
        times = self._own_times(told["time"])
        if self._is_anchored:
            return [
                {
                    "time": time,
                    "because": one["because"],
                    "key": {name: one[name] for name in self._rule.key},
                }
                for time, one in zip(times, told.to_pylist(), strict=True)
            ]
        ends, shown = self._own_times(told["decided"]), []
        for at, one in enumerate(told.to_pylist()):
            first, path = self._starts[
                bisect.bisect_right(self._starts, one[self._row], key=lambda start: start[0]) - 1
            ]
            shown.append(
                {
                    "time": times[at],
                    "decided": ends[at],
                    "because": one["because"],
                    "key": {name: one[name] for name in self._rule.key},
                    "kept": {name: one[name] for name in self._kept},
                    "file": str(path),
                    "row": one[self._row] - first,
                }
            )
        return shown

    def _own_times(self, column: pa.ChunkedArray) -> list[Any]:
        """Times as the files have them: a rule may take numbers for times, and the reverse."""
        array = one_array(column)
        of = pa.int64()
        if self._files.time_type is not None:
            of = time_type(self._files.time_type, self._rule.event.time_unit)
        values = order_values(_numbers(array), of)
        return [
            time_at(values, at) if is_there else None
            for at, is_there in enumerate(array.is_valid().to_pylist())
        ]

    @contextmanager
    def _watched(self) -> Iterator[Callable[[], None]]:
        """Gives a function that shows how far the check is."""
        console = Console(stderr=True)
        told = time.monotonic()
        with Progress(
            TextColumn("{task.description}"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        ) as progress:
            task = progress.add_task(f"{self._rule.name}: compiling")

            def look() -> None:
                nonlocal told
                text = f"{self._rule.name}: {self.rows:,} rows, {self.violations:,} violations"
                progress.update(task, description=text)
                if not console.is_terminal and time.monotonic() > told + _EVERY:
                    told = time.monotonic()
                    click.echo(text, err=True)

            yield look


def _processed(engine: ss.Engine, table: pa.Table, order: str, batch: Batch) -> pa.Table:
    """What a rule tells of rows; errors name them as those of their file."""
    try:
        return engine.process(table, order_by=order)
    except RowError as error:
        raise error.at(batch.place(int(error.wrong.argmax()))) from None
    except Exception as error:
        partial = getattr(error, "specstream_partial", None)
        if partial is not None and not hasattr(error, "specstream_timer"):
            error.add_note(f"raised by {batch.place(partial.consumed)}")
        raise


def _numbers(times: pa.Array) -> Any:
    found = of_order(times)
    assert found is not None
    return found[0]

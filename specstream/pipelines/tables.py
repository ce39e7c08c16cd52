"""Tables of a pipeline with several sources or sinks: one on the inside, one for each outside.

Inside, a table of events has a column that names each row's source, and the columns of all sources,
which are null in the events of others; likewise one of rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from specstream.columns import compute as pc
from specstream.columns.misfits import misfits_of, with_misfits
from specstream.columns.tables import as_table, key_names, no_column
from specstream.compiler.phases.plan import SINK, SOURCE, Plan
from specstream.errors import InputError

__all__ = ["by_sink", "events_table", "of_sinks"]


def events_table(
    plan: Plan,
    data: Any,
    what: str,
    more: Sequence[str | None],
    source: object = None,
    goes_by_time: bool = False,
) -> pa.Table:
    """The table of events that an engine reads.

    Args:
        data: as for :meth:`specstream.Engine.process`; or a mapping of such, by source; or a table
            as it is inside.
        what: the pipeline, in errors.
        more: names of the columns of times and of sources, if they are read.
        source: the source that all rows are of, where it is one of the pipeline's.
        goes_by_time: the pipeline goes by the times' numbers.

    Raises:
        InputError: it is none of these, or a source or column is not there.
    """
    sources = plan.sources
    beside = [name for name in more if name is not None and name != SOURCE]
    wanted = (*plan.event.names, *beside)
    order_by, by_source = key_names(more)
    read = (order_by, None if by_source == SOURCE else by_source, goes_by_time)
    if len(sources) == 1:
        (name,) = sources
        if isinstance(data, Mapping) and list(data) == [name] and name not in wanted:
            data = data[name]
        return as_table(data, what, wanted, plan.event, *read)
    if source in sources and not _is_inside(plan, data):
        data = {source: data}
    if not (isinstance(data, Mapping) and data and SOURCE not in data):
        return as_table(data, what, wanted, plan.event, *read)
    unknown = [name for name in data if name not in sources]
    if unknown:
        raise InputError(
            f"{what}: there are events of {unknown[0]!r}, which is none of its sources: it has "
            f"{', '.join(sources)}"
        )
    if len(data) > 1 and not beside:
        raise InputError(
            f"{what}: tables of {len(data)} sources have no common order: give order_by=, the "
            "column of each that has the time"
        )
    given: dict[str, pa.Table] = {}
    misfits: dict[int, str] = {}
    first = 0
    for name, of in data.items():
        given[name], wrong = misfits_of(_of_source(plan, name, of, what, beside, read))
        misfits |= {first + row: reason for row, reason in wrong.items()}
        first += given[name].num_rows
    for one in beside:
        # What has no values may have no type: an empty list.
        types = {
            name: of for name, table in given.items() if not pa.types.is_null(of := table[one].type)
        }
        if len(set(types.values())) > 1:
            listed = ", ".join(f"{of} from {name!r}" for name, of in types.items())
            raise InputError(f"{what}: column {one!r} has several types, {listed}: cast it to one")
    tables = [_inside(plan, name, given, beside) for name in given]
    return with_misfits(pa.concat_tables(tables, promote_options="permissive"), misfits)


def _is_inside(plan: Plan, data: Any) -> bool:
    """Whether a table has the columns of all sources; of one, some may be called alike."""
    names = getattr(data, "column_names", None) or (data if isinstance(data, Mapping) else ())
    return {SOURCE, *plan.event.names} <= set(names)


def _of_source(
    plan: Plan, name: str, data: Any, what: str, beside: list[str], read: tuple[Any, Any, bool]
) -> pa.Table:
    """What is given for a source, as a table that has its columns."""
    what = f"{what}, source {name!r}"
    columns = plan.sources[name].columns
    wanted = (*columns.names, *beside)
    table = as_table(data, what, wanted, columns, *read)
    for one in wanted:
        if one not in table.column_names:
            raise no_column(what, "no column", one, table)
    return table


def _inside(plan: Plan, name: str, given: Mapping[str, pa.Table], beside: list[str]) -> pa.Table:
    """The table of a source with the columns of all, each of the type that it is given with."""
    table = given[name]
    made = {SOURCE: pa.array([name] * table.num_rows, pa.string())}
    made |= {one: table[one] for one in beside}
    for other, of in plan.sources.items():
        for one, column in of.columns:
            of_type = given[other][one].type if other in given else column.arrow
            made[plan.column_of_event(other, one)] = (
                table[one] if other == name else pa.nulls(table.num_rows, of_type)
            )
    return pa.table(made)


def by_sink(table: pa.Table) -> Any:
    """Emitted rows as a user gets them: with several sinks a table for each, by its name.

    The table alone says what it is, as nobody else's columns have a dot in their names: rows are
    recorded, and a record may be older than the pipeline.

    >>> inside = pa.table({"sink": ["b", "a"], "a.x": [None, 7], "b.x": [1, None]})
    >>> {name: rows.to_pydict() for name, rows in by_sink(inside).items()}
    {'a': {'x': [7]}, 'b': {'x': [1]}}
    """
    columns: dict[str, dict[str, str]] = {}
    for name in table.column_names:
        sink, dot, column = name.partition(".")
        if dot:
            columns.setdefault(sink, {})[column] = name
    if not columns:
        return table
    keys = [name for name in table.column_names if "." not in name and name != SINK]
    tables = {}
    for sink, own in columns.items():
        of = table.filter(pc.equal(table[SINK], sink))
        made = {one: of[one] for one in keys} | {name: of[inside] for name, inside in own.items()}
        tables[sink] = pa.table(made)
    return tables


def of_sinks(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The tables of sinks as one, of which :func:`by_sink` makes them again.

    >>> tables = {"a": pa.table({"x": [7, 8]}), "b": pa.table({"x": ["one"]})}
    >>> by_sink(of_sinks(tables)) == tables
    True
    """
    made = [
        of.rename_columns([f"{sink}.{name}" for name in of.column_names]).append_column(
            SINK, pa.array([sink] * of.num_rows, pa.string())
        )
        for sink, of in tables.items()
    ]
    return pa.concat_tables(made, promote_options="default")

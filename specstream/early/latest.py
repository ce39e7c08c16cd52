"""Early results, kept: a table of what is applied, from the changes that an engine reports."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from specstream.declarations.options import refuses_unknown
from specstream.engine.early_results import ANSWER_BITS, EarlyAnswer
from specstream.errors import InputError
from specstream.files.joined_schema import joined_tables

__all__ = ["KEY", "check_changes", "latest"]

# Of a row, in whatever version.
KEY = ["timestamp", "source", "sequence", "n"]
_CALL = "ss.early.latest"


@refuses_unknown
def latest(
    changes: pa.Table | EarlyAnswer | Iterable[pa.Table | EarlyAnswer],
    *,
    by: str | Sequence[str] | None = None,
) -> pa.Table:
    """The rows that stand according to a log of changes.

    Args:
        changes: what :meth:`specstream.Engine.poll_early` gave with ``changes="upsert"``: one table
            or several, complete and in any order; one that comes twice changes nothing. Of an
            engine that is restored or rolled back give the answers themselves: one with ``reset``
            may have no rows that would say so.
        by: columns of the operator's output that identify what a row is about, like an account:
            only the last row about it, in the order of events, is kept. None: all rows.

    Returns:
        The newest version of each row that is not withdrawn, in the order of events, with the
        columns of ``changes``. What was reported early before a restart, and not again since, is
        void.

    Raises:
        InputError: ``changes`` is no such table, or has no column of ``by``, or ``by`` is no name.

    >>> import specstream as ss
    >>> class Accounts(ss.State):
    ...     balance = ss.array(int, 2)
    >>> @ss.operator(
    ...     state=Accounts,
    ...     event={"account": int, "amount": int},
    ...     emits={"account": int, "balance": int},
    ... )
    ... def book(state, event, emit):
    ...     if event.account < 0 or not 0 < event.amount <= 1_000_000_000:
    ...         raise ValueError("no such account, or no such amount")
    ...     state.balance[event.account] += event.amount
    ...     emit(event.account, state.balance[event.account])
    >>> log = []
    >>> with ss.Engine(book, sources=["a", "b"], early=True) as engine:
    ...     for source, time, account, amount in [("a", 2, 0, 5), ("a", 3, 1, 7), ("b", 1, 0, 1)]:
    ...         engine.submit_event(time, source, account=account, amount=amount)
    ...         log.append(engine.poll_early(timeout=None).changes)
    >>> ss.early.latest(log, by="account").select(["account", "balance"]).to_pylist()
    [{'account': 0, 'balance': 6}, {'account': 1, 'balance': 7}]
    """
    if isinstance(changes, (pa.Table, EarlyAnswer)):
        changes = [changes]
    if not isinstance(changes, Iterable):
        raise InputError(_no_table(_CALL, "changes", changes))
    given = list(changes)
    tables = [one.changes if isinstance(one, EarlyAnswer) else one for one in given]
    # A reset may come without rows: then it is the answer that says so.
    versions = [one.version for one in given if isinstance(one, EarlyAnswer)]
    by = _names(by)
    for number, table in enumerate(tables):
        which = f"changes[{number}]" if len(tables) > 1 else "changes"
        check_changes(_CALL, table, which, by)
    if not tables:
        raise InputError(
            "ss.early.latest: expected a table of poll_early, or several of them; there is none"
        )
    # The tables without rows know no types of times and sources.
    full = [table for table in tables if table.num_rows] or tables[-1:]
    log = joined_tables(full, _CALL, InputError)
    version = log["version"]
    # A row of a timer stands before those of the events of its time.
    named = log.append_column("__of_event", log["source"].is_valid())
    by_key = [KEY[0], "__of_event", *KEY[1:], "version"]
    order = [(name, "ascending") for name in by_key]
    log = log.take(pc.sort_indices(named, sort_keys=order))
    log = _last_of_each(log, KEY)
    log = log.filter(pc.not_equal(log["change"], "withdrawn"))
    newest = max([version >> ANSWER_BITS for version in versions], default=0)
    if log.num_rows:
        newest = max(newest, pc.max(version).as_py() >> ANSWER_BITS)
    of_newest = pc.equal(pc.shift_right(log["version"], ANSWER_BITS), newest)
    log = log.filter(pc.or_(of_newest, pc.equal(log["change"], "final")))
    return _last_of_each(log, by) if by else log


def _names(by: object) -> list[str]:
    if by is None:
        return []
    names = [by] if isinstance(by, str) else by
    if not isinstance(names, Sequence) or not all(isinstance(name, str) for name in names):
        raise InputError(f"ss.early.latest: by={by!r}; expected a column's name, or several")
    return list(names)


def _no_table(call: str, which: str, value: object) -> str:
    expected = "a table, as poll_early(...).changes is one"
    if isinstance(value, Mapping) and value:
        sink = next(iter(value))
        expected = (
            f"that of one sink: dataclasses.replace(answer, changes=answer.changes[{sink!r}])"
        )
    return f"{call}: {which} is of type {type(value).__name__}; expected {expected}"


def check_changes(
    call: str, table: object, which: str, columns: Sequence[str], option: str = "by"
) -> None:
    """Whether a table has changes, polled with ``changes="upsert"``.

    Args:
        call: whose argument it is.
        table: what was given.
        which: names it.
        columns: that it is to have beside those of changes.
        option: that names them.

    Raises:
        InputError: it is none, or has no such column.
    """
    if not isinstance(table, pa.Table):
        raise InputError(_no_table(call, which, table))
    for name in (*KEY, "version", "change", *columns):
        if name not in table.column_names:
            raise InputError(
                f"{call}: {which} has no column {name!r} (it has "
                f"{', '.join(table.column_names)}); expected the changes of poll_early"
                + (f", and {option}= one of its columns" if name in columns else "")
            )
    if not pa.types.is_string(table["change"].type):
        raise InputError(
            f'{call}: {which} was polled with changes="retract", whose rows add up; expected '
            'changes="upsert"'
        )


def _last_of_each(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """Of the rows that are alike in these columns the last one, in the order of the table."""
    at = pa.array(range(table.num_rows), pa.int64())
    numbered = table.select(names).append_column("__at", at)
    last = numbered.group_by(list(names)).aggregate([("__at", "max")])["__at_max"]
    return table.take(last.take(pc.sort_indices(last)))

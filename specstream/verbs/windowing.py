"""The last n rows, with each new one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.container_fields import deque
from specstream.declarations.options import integer
from specstream.declarations.records import record_fields
from specstream.declarations.state_layout import array, scalar
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.verbs.by_key import record_given
from specstream.verbs.mapping import results
from specstream.verbs.writing import (
    ZEROS,
    Keys,
    Writer,
    columns_given,
    entry,
    indented,
    literal,
    own_function,
    verb,
)
from specstream.windows.counted import counted

__all__ = ["window"]

_MOST = 100_000


@verb
def window(
    n: int,
    f: Callable[..., Any],
    /,
    *,
    event: Any,
    step: int = 1,
    record: Any = None,
    add: Callable[..., Any] | None = None,
    merge: Callable[..., Any] | None = None,
    remove: Callable[..., Any] | None = None,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    emits: Any = None,
    limit: int = 2**24,
    name: str = "window",
    **columns: Any,
) -> Operator:
    """From the n-th event on, with each ``step``-th one: what a function gives of the last n rows.
    A chain by nature without a key.

    Each event changes what the next one of its key reads, so that without a key such an operator
    keeps to one core. A window that is not full at the end of the stream gives nothing.

    Args:
        n: rows of a window, 1 to 100,000; with ``merge`` to 2**62.
        f: a function of the list of the last n rows, the oldest first; or, with ``record``, of the
            record that they were added to. It gives a row, of one column its bare value and of
            several a tuple, or None: no row at this step, and no older one again.
        event: columns of the events; those of a list of rows are not nullable.
        step: events from one row to the next, 1 to 2**62.
        record: a class of records, as of :func:`specstream.windows.by_count`, as are ``add``,
            ``merge`` and ``remove``, with which a step takes the same time however many rows a
            window has.
        add: see there.
        merge: see there.
        remove: see there.
        key: as of :func:`keyed`, as are ``to_all``, ``forget``, ``emits``, ``name`` and
            ``columns``; ``to_all`` and ``forget`` do not go with ``record``.
        to_all: see there.
        forget: see there.
        emits: see there.
        limit: the most rows that are kept, of all keys together.
        name: see there.
        columns: see there.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> highest = ss.verbs.window(
    ...     3, lambda rows: max(r.x for r in rows), event={"x": int}, most=int
    ... )
    >>> with ss.Engine(highest) as engine:
    ...     engine.process({"x": [5, 1, 2, 3]})["most"].to_pylist()
    [5, 3]
    """
    what = "window"
    n = integer(f"{what}: n", n, 1, _MOST if record is None else 2**62)
    step = integer(f"{what}: step", step, 1, 2**62)
    takes = "the list of rows" if record is None else "the record"
    own_function(f"{what}: f", f, "a function", takes)
    given = columns_given(what, emits, columns)
    if record is not None:
        return _of_record(
            n, f, event, step, record, add, merge, remove, key, (to_all, forget), given, limit, name
        )
    alone = [one for one, of in (("add", add), ("merge", merge), ("remove", remove)) if of]
    if alone:
        raise ConfigurationError(
            f"{what}: {alone[0]}= is about a record, and there is no record=; expected a class of "
            "records that say what is known of a window"
        )
    writer = Writer(what, name, event, sign=f"⊞{n}", limit=limit)
    for one, of in writer.columns.items():
        if of.nullable:
            zero = literal(ZEROS[kept_as(of)])
            raise ConfigurationError(
                f"{what}: column {one!r} is nullable, and a list of rows has no nulls; expected "
                f"columns without: map them first, like map(lambda e: {zero} if e.{one} is None "
                f"else e.{one}, {one}=...)"
            )
    writer.keys = Keys.of(what, writer.event, key, to_all, forget)
    writer.names["f"] = f
    writer.emitting(given)
    sent, values = results("row_given", given)
    body = [
        *(_of_keys if writer.keys.columns else _of_all)(writer, n, step),
        "    row_given = f(rows)",
        "    if row_given is not None:",
        *indented(indented([*sent, *writer.emission(values)])),
    ]
    return writer.made(body)


def _of_all(writer: Writer, n: int, step: int) -> list[str]:
    """Statements that keep a row, and from the n-th on, in steps, make a list of the last n."""
    lines = []
    fields = {name: f"last_{name}" for name in writer.columns}
    for name, of in writer.columns.items():
        writer.fields[fields[name]] = deque(kept_as(of), maxlen=n)
        lines.append(f"state.{fields[name]}.append({writer.value(name)})")
    is_each = step == 1
    first = next(iter(fields.values()))
    if not is_each:
        writer.fields["passed"] = scalar(int)
        lines += ["passed = state.passed + 1", "state.passed = passed"]
    due = (
        f"len(state.{first}) == {n}"
        if is_each
        else f"passed >= {n} and (passed - {n}) % {step} == 0"
    )
    parts = [f"state.{one}[at]" for one in fields.values()]
    row = f"{writer.row(writer.columns)}({', '.join(parts)})"
    return [*lines, f"if {due}:", f"    rows = [{row} for at in range({n})]"]


def _of_keys(writer: Writer, n: int, step: int) -> list[str]:
    """Likewise, of each key."""
    cell = writer.cell("passed", passed=(int, 0))
    parts = tuple(kept_as(of) for of in writer.columns.values())
    key, row = writer.key_parts(), writer.row(writer.columns)
    place = f"({', '.join(key)}, {{}} % {n})"
    writer.fields["rows"] = writer.by_key_and(int, parts[0] if len(parts) == 1 else parts)
    values = writer.values(writer.columns)
    names = [f"of_{at}" for at in range(len(values))]
    writer.forgets += [
        f"for at in range({n}):",
        f"    if {place.format('at')} in state.rows:",
        f"        del state.rows[{place.format('at')}]",
    ]
    return [
        *cell.load(),
        f"state.rows[{place.format('passed')}] = {entry(values)}",
        *cell.store(passed="passed + 1"),
        "passed += 1",
        f"if passed >= {n} and (passed - {n}) % {step} == 0:",
        "    rows = []",
        f"    for number in range(passed - {n}, passed):",
        f"        {', '.join(names)} = state.rows[{place.format('number')}]",
        f"        rows.append({row}({', '.join(names)}))",
    ]


def _of_blocks(
    n: int,
    f: Callable[..., Any],
    event: Any,
    step: int,
    record: Any,
    add: Callable[..., Any],
    merge: Callable[..., Any],
    emits: dict[str, Any],
    limit: int,
    name: str,
) -> Operator:
    """Rows in blocks of n: a window is the end of one block and the beginning of the next.

    When a block is full, the records of its ends are merged once, from behind; that of the
    beginning grows with each row. So a step merges twice, and a block n times more.
    """
    what = "window"
    if n > limit:
        raise ConfigurationError(
            f"{what}: n={n} rows are kept, and limit={limit}; expected a larger limit="
        )
    writer = Writer(what, name, event, sign=f"⊞{n}", limit=limit)
    writer.names |= {"Record": record_given(f"{what}: record", record), "f": f}
    for option, function in (("add", add), ("merge", merge)):
        writer.names[option] = own_function(f"{what}: {option}", function, "a function")
    writer.emits = dict(emits)
    fields = [one.name for one in record_fields(record)]
    writer.fields |= {
        "rows": array(record, n),
        "ends": array(record, n),
        "beginning": scalar(record),
        "passed": scalar(int),
    }
    sent, values = results("row_given", emits)
    copied = f"Record({', '.join('{0}.' + one for one in fields)})"
    return writer.made(
        [
            "passed = state.passed",
            "state.passed = passed + 1",
            f"place = passed % {n}",
            "row = Record()",
            "add(row, event)",
            "if place == 0:",
            "    if passed > 0:",
            f"        end = {copied.format(f'state.rows[{n - 1}]')}",
            f"        state.ends[{n - 1}] = end",
            f"        for before in range({n - 1}):",
            f"            at = {n - 2} - before",
            f"            total = {copied.format('state.rows[at]')}",
            "            merge(total, end)",
            "            state.ends[at] = total",
            "            end = total",
            f"    state.beginning = {copied.format('row')}",
            "else:",
            "    merge(state.beginning, row)",
            "state.rows[place] = row",
            f"if passed >= {n - 1} and (passed - {n - 1}) % {step} == 0:",
            f"    if place == {n - 1}:",
            f"        window = {copied.format('state.beginning')}",
            "    else:",
            f"        window = {copied.format('state.ends[place + 1]')}",
            "        merge(window, state.beginning)",
            "    row_given = f(window)",
            "    if row_given is not None:",
            *indented(indented([*sent, *writer.emission(values)])),
        ]
    )


def _of_record(
    n: int,
    f: Callable[..., Any],
    event: Any,
    step: int,
    record: Any,
    add: Callable[..., Any] | None,
    merge: Callable[..., Any] | None,
    remove: Callable[..., Any] | None,
    key: str | Sequence[str],
    of_keys: Sequence[Any],
    emits: dict[str, Any],
    limit: int,
    name: str,
) -> Operator:
    what = "window"
    if add is None:
        raise ConfigurationError(
            f"{what}: record= goes with add=, a function that takes an event into the record"
        )
    for option, given in zip(("to_all", "forget"), of_keys, strict=True):
        if given is not None:
            raise ConfigurationError(
                f"{what}: {option}= does not go with record=; expected a function of the list of "
                "rows, without record="
            )

    def in_a_tuple(of_window):  # type: ignore[no-untyped-def]
        found = f(of_window)
        return None if found is None else (found,)

    if (
        merge is not None
        and remove is None
        and not Keys.of(what, dict(event), key, None, None).columns
    ):
        return _of_blocks(n, f, event, step, record, add, merge, emits, limit, name)
    made = counted(
        what,
        record_given(f"{what}: record", record),
        add,
        n,
        step,
        event=event,
        key=key,
        result=in_a_tuple if len(emits) == 1 else f,
        emits=emits,
        merge=merge,
        remove=remove,
        limit=limit,
        name=name,
        is_bare=True,
    )
    made.sign = f"⊞{n}"
    return made

"""Several streams of the same columns as one."""

from __future__ import annotations

from typing import Any

from specstream.declarations.options import integer
from specstream.definition.operator import Operator
from specstream.verbs.writing import Writer, read, verb
from specstream.verbs.zipping import letters

__all__ = ["merge"]


@verb
def merge(count: int = 2, /, *, event: Any, name: str = "merge") -> Operator:
    """The rows of several streams as one: phase after phase, and of rows that meet in a phase those
    of the first stream before those of the second.

    Args:
        count: of streams, 2 to 1,000; they are the inputs ``a``, ``b`` and so on.
        event: columns of all of them.
        name: of the operator.

    Raises:
        ConfigurationError: an option is not what it must be; names it.

    >>> import specstream as ss
    >>> list(ss.verbs.merge(3, event={"price": float}).inputs)
    ['a', 'b', 'c']
    """
    count = integer("merge: count", count, 2, 1000)
    writer = Writer("merge", name, event, sign="merge")
    writer.emits = writer.columns
    lines = []
    for one in letters(count):
        values = [
            read(column, f"event.{one}", of.nullable) for column, of in writer.columns.items()
        ]
        lines += [f'if event.changed("{one}"):', f"    emit({', '.join(values)})"]
    return writer.made(lines, inputs=dict.fromkeys(letters(count), writer.columns))

"""Rows that cannot be events: a null, a value that does not fit, a time without an order.

They are an error, or they are left out and kept on the side, as they were given, with the reason.
A missing column, but of a list of rows, or one of a wrong type is no matter of rows and always an
error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from specstream.declarations.options import one_of
from specstream.errors import InputError, SpecstreamError
from specstream.files.arrow_stream import stream_of
from specstream.files.untrusted import Malformed, read_tables

__all__ = [
    "REASON",
    "Policy",
    "RejectedRows",
    "RowError",
    "check_no_reason",
    "checked_policy",
    "take_together",
]

Policy = Literal["error", "side"]
_POLICIES = ("error", "side")
REASON = "reason"
"""The column that says what is wrong with a rejected row."""


def checked_policy(policy: Policy) -> Policy:
    """The policy.

    Raises:
        ConfigurationError: there is no such.
    """
    one_of("rejected_rows", policy, _POLICIES)
    return policy


def check_no_reason(
    names: Iterable[str], what: str, error: type[SpecstreamError] = InputError
) -> None:
    """Whether the columns of rows leave room for the one that says why one is rejected: no file
    with two columns of one name can be read again.

    Raises:
        error: one has its name.
    """
    if REASON in names:
        raise error(
            f'{what}: rejected_rows="side" sets rows aside with a column {REASON!r} beside their '
            "own, and they have one of that name: rename it in the input, and in the operator if "
            "it is declared there, or leave it out"
        )


class RowError(InputError):
    """Rows of a table are rejected.

    Args:
        tell: the message, with what stands for the first of them: "row 7".

    Attributes:
        wrong: which rows; a bool each.
        reason: what is wrong with each of them.
    """

    def __init__(
        self, tell: str | Callable[[str], str], wrong: npt.NDArray[np.bool_], reason: str
    ) -> None:
        super().__init__(tell if isinstance(tell, str) else tell(f"row {wrong.argmax()}"))
        self._tell = tell
        self.wrong = wrong
        self.reason = reason

    def at(self, row: str) -> RowError:
        """The same with its first row called otherwise."""
        tell = self._tell
        return RowError(tell if isinstance(tell, str) else tell(row), self.wrong, self.reason)


def take_together(kept: list[pa.Table]) -> pa.Table | None:
    """Takes the first tables, as many as fit into one; None: there are none."""
    taken = None
    while kept:
        try:
            if taken is not None:
                taken = pa.concat_tables([taken, kept[0]], promote_options="permissive")
        except pa.ArrowException:
            break  # columns of one name and types that do not go together
        first = kept.pop(0)  # as it is, if it is the only one: Arrow may have no way to join it
        taken = first if taken is None else taken
    return taken


class RejectedRows:
    """The rejected rows of an engine that nobody has fetched."""

    def __init__(self, policy: Policy) -> None:
        self.policy = checked_policy(policy)
        self.count = 0
        self._kept: list[pa.Table] = []

    def keep(self, rows: pa.Table | None) -> None:
        """Keeps rows, if there are any and they are not the last that are kept."""
        if rows is not None and not (self._kept and self._kept[-1] is rows):
            # No call between the two: a signal handler might raise there.
            kept = [*self._kept, rows]
            self.count += rows.num_rows
            self._kept = kept

    def to_bytes(self) -> bytes:
        """The rows that nobody has fetched: Arrow streams, one behind the other."""
        return b"".join(map(stream_of, self._kept))

    @staticmethod
    def read(content: bytes) -> list[pa.Table]:
        """What :meth:`to_bytes` gave, as tables.

        Raises:
            Malformed: it gave none such.
        """
        tables = read_tables(content, "rejected rows")
        for table in tables:
            reasons = [field.type for field in table.schema if field.name == REASON]
            if not reasons or reasons[-1] != pa.string():
                raise Malformed(
                    f"rejected rows have the columns {', '.join(map(ascii, table.column_names))}; "
                    "expected a column of texts 'reason' among them"
                )
        return tables

    def take_over(self, kept: list[pa.Table]) -> None:
        """Keeps these in place of what is here; they are not counted."""
        self._kept = list(kept)

    def savepoint(self) -> tuple[int, tuple[pa.Table, ...]]:
        """What is here, for :meth:`rollback`."""
        return self.count, tuple(self._kept)

    def rollback(self, to: tuple[int, tuple[pa.Table, ...]]) -> None:
        """Back to a savepoint, whatever was kept or fetched since."""
        self.count, kept = to
        self._kept = list(kept)

    def take(self) -> pa.Table | None:
        """The rows kept so far, as many as fit into one table; None: there are none."""
        return take_together(self._kept)

"""The columns of a DataFrame that a run of an operator reads; a missing one is named."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame

from specstream.definition.operator import Operator
from specstream.errors import InputError

__all__ = ["check_columns"]


def check_columns(
    frame: DataFrame,
    operator: Operator,
    named: Mapping[str, str | None],
    what: str,
    whose: str,
    hint: str,
) -> list[str]:
    """The columns of a DataFrame that a run of the operator reads.

    Args:
        named: columns beside those of the events, by the option that names them.
        what: begins the message.
        whose: the DataFrame, in it.
        hint: ends it.

    Raises:
        InputError: the DataFrame lacks one; names it.
    """
    needed = dict.fromkeys(operator.event.names, "the operator reads")
    for option, column in named.items():
        if column is not None:
            needed.setdefault(column, f"{option}= names")
    of = operator.event.one_of
    if of is not None:
        frames = ", ".join(f'"{name}": frame' for name, _ in of.required)
        also = [one for one in needed if one not in operator.event.names]
        shared = f", shared={also}" if also else ""
        hint = f"make it with ss.spark.union({{{frames}}}{shared})"
    for column, why in needed.items():
        if column not in frame.columns:
            raise InputError(
                f"{what}: {why} column {column!r}, which {whose} has not (columns: "
                f"{', '.join(frame.columns)}): {hint}"
            )
    return list(needed)

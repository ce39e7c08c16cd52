"""How far the sources of a stream have come: delays of event time, and the frontiers they make.

Apart from the engine, because a replay asks as well (``committing.py``), and has none.
"""

from __future__ import annotations

import datetime
import math
import struct
from collections.abc import Callable
from typing import TypedDict

import numpy as np
import pyarrow as pa

from specstream.columns.conversion import tick_of, time_type
from specstream.columns.events import order_key
from specstream.declarations.durations import nanoseconds
from specstream.declarations.options import shown, whole
from specstream.engine.sources import Name, Sources
from specstream.errors import ConfigurationError, InputError

__all__ = ["Amount", "Delay", "Frontiers", "PlainDelay", "PlainFrontiers"]

Amount = str | datetime.timedelta | int | float

_LEAST = -(2**63)


class PlainDelay(TypedDict):
    """A :class:`Delay` as plain data."""

    amount: int | float
    is_time: bool
    shown: str


class PlainFrontiers(TypedDict):
    """The delays of :class:`Frontiers` as plain data."""

    watermark: PlainDelay
    idle_timeout: PlainDelay | None


class Delay:
    """A length of event time: a duration, or a number in the order column's own unit.

    Args:
        option: names it in messages.
        amount: a duration such as ``"10 seconds"``, ``"1 minute 30 seconds"`` or a ``timedelta``,
            for columns of timestamps and dates; a number for columns of numbers.

    Raises:
        ConfigurationError: it is none of these, or below zero.

    >>> delay = Delay("watermark", "1.5 s")
    >>> delay.before(10_000, pa.timestamp("ms"), "time")
    8500
    >>> Delay("watermark", 3).before(10, pa.int64(), "time")
    7
    """

    def __init__(self, option: str, amount: Amount) -> None:
        self._option = option
        integer = whole(amount)
        if integer is not None:
            amount = integer
        elif isinstance(amount, np.floating):
            amount = float(amount)
        self._amount = amount
        self._shown = f"{option}={shown(amount)}"
        self._nanoseconds: int | None = None
        if isinstance(amount, str | datetime.timedelta):
            self._nanoseconds = nanoseconds(option, amount)
            length: float = self._nanoseconds
        elif isinstance(amount, int | float) and not isinstance(amount, bool):
            length = amount
        else:
            raise ConfigurationError(
                f'{self._shown}; expected a duration such as "10 seconds", or a number in '
                "the unit of an order column of numbers"
            )
        if not 0 <= length < math.inf:
            raise ConfigurationError(f"{option}={amount!r}; expected zero or more")

    def describe(self) -> PlainDelay:
        """As plain data."""
        return {"amount": self._amount_in_numbers, "is_time": self.is_time, "shown": self._shown}

    @classmethod
    def described(cls, option: str, plain: PlainDelay) -> Delay:
        """What :meth:`describe` gave.

        Raises:
            ConfigurationError: it is below zero, or a time that is not whole.

        >>> Delay.described("watermark", Delay("watermark", "3 s").describe()).is_time
        True
        """
        amount = plain["amount"]
        delay = cls(option, amount)
        if plain["is_time"]:
            if not isinstance(amount, int):
                raise ConfigurationError(f"{option}={amount!r}; expected whole nanoseconds")
            delay._nanoseconds = amount
        delay._shown = plain["shown"]
        return delay

    @property
    def is_time(self) -> bool:
        """Whether it is a duration, and not a number."""
        return self._nanoseconds is not None

    @property
    def _amount_in_numbers(self) -> int | float:
        if self._nanoseconds is not None:
            return self._nanoseconds
        assert isinstance(self._amount, int | float)
        return self._amount

    def before(self, key: int, of: pa.DataType, column: str) -> int:
        """The order key that lies so much before another one.

        Args:
            key: as the engine has it: the column's value, of floats their image in order.
            of: type of the order column.
            column: its name.

        Raises:
            InputError: the column has another kind of unit, or no times at all.
        """
        amount = self._in_unit_of(of, column)
        if not pa.types.is_floating(of):
            return max(key - int(amount), _LEAST)
        bits = key if key >= 0 else key ^ (2**63 - 1)
        value = struct.unpack("<d", struct.pack("<q", bits))[0] - amount
        return int(order_key(pa.array([value], pa.float64()), column, self._option)[0])

    def _in_unit_of(self, of: pa.DataType, column: str) -> int | float:
        """The amount in ticks of an order column; what is between two ticks is rounded up."""
        found = f"{self._shown}: order column {column!r} has type {of}"
        tick = tick_of(of)
        if tick is not None:
            if self._nanoseconds is None:
                raise InputError(f'{found}; expected a duration such as "10 seconds"')
            return -(-self._nanoseconds // tick)
        if not (pa.types.is_integer(of) or pa.types.is_floating(of)):
            raise InputError(f"{found}; expected timestamps, dates or numbers: cast it")
        if self._nanoseconds is not None:
            raise InputError(
                f"{found}; expected a number in the column's own unit, or a column of timestamps: "
                "cast it"
            )
        if pa.types.is_integer(of) and not isinstance(self._amount, int):
            raise InputError(f"{found}; expected an integer in the column's own unit")
        assert isinstance(self._amount, int | float)
        return self._amount


class Frontiers:
    """How the frontiers of sources move with a micro-batch.

    Args:
        order_by: column of the event time.
        watermark: how far a source's frontier stays behind its largest time.
        idle_timeout: see :class:`EventTime`.
    """

    def __init__(self, order_by: str, watermark: Delay, idle_timeout: Delay | None) -> None:
        self._order_by = order_by
        self._watermark = watermark
        self._idle_timeout = idle_timeout

    def describe(self) -> PlainFrontiers:
        """The delays as plain data."""
        idle_timeout = self._idle_timeout
        return {
            "watermark": self._watermark.describe(),
            "idle_timeout": None if idle_timeout is None else idle_timeout.describe(),
        }

    @classmethod
    def described(cls, order_by: str, plain: PlainFrontiers) -> Frontiers:
        """What :meth:`describe` gave."""
        idle_timeout = plain["idle_timeout"]
        return cls(
            order_by,
            Delay.described("watermark", plain["watermark"]),
            None if idle_timeout is None else Delay.described("idle_timeout", idle_timeout),
        )

    def take_in(
        self,
        sources: Sources,
        table: pa.Table,
        submit: Callable[[], object],
        time_unit: str | None = None,
    ) -> dict[Name, int | None]:
        """Has a batch's rows submitted, and moves nothing yet.

        Args:
            sources: that the rows are of, and those before.
            table: the rows.
            submit: takes them in.
            time_unit: that the operator counts times in; None: that of the column.

        Returns:
            How far each source has come; one that holds back the stream is not among them.

        Raises:
            InputError: the time column has not the unit of the delays.
            Exception: what ``submit`` raised.
        """
        if not table.num_rows:
            return {}
        of = _type_of(table, self._order_by)
        if of is not None:
            of = time_type(of, time_unit)
            self._check(of)
        submit()
        return {} if of is None else self._reached(sources, of)

    def _check(self, of: pa.DataType) -> None:
        """Whether the delays are of the column's kind, before anything is submitted."""
        for delay in (self._watermark, self._idle_timeout):
            if delay is not None:
                delay.before(0, of, self._order_by)

    def _reached(self, sources: Sources, of: pa.DataType) -> dict[Name, int | None]:
        if sources.highest is None or sources.lowest is None:
            return {}  # all rows were late or bad
        reached: dict[Name, int] = {}
        idle = []
        limit = None
        if self._idle_timeout is not None:
            limit = self._idle_timeout.before(sources.highest[0], of, self._order_by)
        for source in sources:
            has_sent = source.next_sequence > 0
            if limit is not None and (source.last if has_sent else sources.lowest) < limit:
                idle.append(source)
            if has_sent:
                reached[source.name] = self._watermark.before(source.last, of, self._order_by)
        names = {source.name for source in idle}
        # The source of the highest time is not idle; early snapshots do not say which that is.
        others = [to for name, to in reached.items() if name not in names]
        for source in idle if others else ():
            least = min(others)
            reached[source.name] = max(reached.get(source.name, least), least)
        return {**reached}


def _type_of(table: pa.Table, column: str) -> pa.DataType | None:
    """None: there is not one such column, or nothing in it."""
    found = table.schema.get_all_field_indices(column)
    of = table.schema.field(found[0]).type if len(found) == 1 else None
    if of is not None and pa.types.is_dictionary(of):
        of = of.value_type
    return None if of is None or pa.types.is_null(of) else of

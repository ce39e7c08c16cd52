"""Values in few characters: arrays and containers shortened, sizes, times, counts by reason."""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping, Set
from typing import Any

import numpy as np

__all__ = ["MOST", "duration", "reasons_of", "short", "size"]

# So many elements or entries of a value are shown.
MOST = 6
_WIDEST = 40  # characters of one element
_DIGITS = 9  # characters of a float, about
_WIDE = 90  # characters of all that are shown, about


def short(value: Any, count: int | None = None) -> str:
    """A value as Python shows it, shortened.

    Args:
        value: a number, string, record, array or container.
        count: how many elements there are, where ``value`` has only the first of them.

    >>> short({"a": 1, "b": 2})
    "{'a': 1, 'b': 2}"
    >>> short({3, 4}), short(set())
    ('{3, 4}', 'set()')
    >>> short([0.1 + 0.2, 2.0]), short(0.1 + 0.2)
    ('[0.3, 2.0]', '0.30000000000000004')
    >>> short(range(6), 1000), short("x" * 100)
    ('[0, 1, 2, 3, 4, 5, ... 994 more]', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...")
    """
    if isinstance(value, np.ndarray):
        if value.ndim > 1:
            shown = [short(row) for row in value[:2]]
            return _joined("[]", shown, len(value) if count is None else count)
        items = value[:MOST].tolist()
        return _joined("[]", map(_one, items), len(value) if count is None else count)
    if isinstance(value, Mapping):
        pairs = [f"{_one(key)}: {_one(of)}" for key, of in _first(value.items())]
        return _joined("{}", pairs, len(value) if count is None else count)
    if isinstance(value, list | Set | range | collections.deque):
        if isinstance(value, Set) and not value:
            return "set()"
        brackets = "{}" if isinstance(value, Set) else "[]"
        return _joined(brackets, map(_one, _first(value)), len(value) if count is None else count)
    return repr(value) if isinstance(value, float) else _one(value)


def _first(values: Iterable[Any]) -> list[Any]:
    return [value for _, value in zip(range(MOST), values, strict=False)]


def _joined(brackets: str, shown: Iterable[str], count: int) -> str:
    parts: list[str] = []
    for part in shown:
        if parts and len(part) + sum(map(len, parts)) > _WIDE:
            break
        parts.append(part)
    if count > len(parts):
        parts.append(f"... {count - len(parts):,} more")
    return f"{brackets[0]}{', '.join(parts)}{brackets[1]}"


def _one(value: Any) -> str:
    """One element; of a long string the rest is not looked at, nor the last digits of a number."""
    if isinstance(value, float) and len(repr(value)) > _DIGITS:
        return f"{value:.6g}"
    said = repr(value[: _WIDEST + 1] if isinstance(value, str) else value)
    return said if len(said) <= _WIDEST else f"{said[: _WIDEST - 1]}..."


def size(count: int) -> str:
    """Bytes, in the unit that makes them few digits.

    >>> size(512), size(11534336)
    ('512 B', '11.0 MiB')
    """
    amount, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{amount:.1f} {unit}" if unit != "B" else f"{count} B"


def duration(seconds: float) -> str:
    """A time, in the unit that makes it few digits.

    >>> duration(0.0000012), duration(2.5), duration(0.0)
    ('1.2 µs', '2.5 s', '0 s')
    """
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:,.3g} {unit}" if seconds < 1000 else f"{seconds:,.0f} s"
    return f"{seconds / 1e-9:.3g} ns" if seconds else "0 s"


def reasons_of(aborts: Mapping[str, int]) -> str:
    """Aborts in all and by reason, the reasons that occurred.

    >>> reasons_of({"conflict": 1200, "raised": 0, "runaway": 3})
    '1,203 (1,200 conflict, 3 runaway)'
    """
    reasons = ", ".join(f"{count:,} {name}" for name, count in aborts.items() if count)
    return f"{sum(aborts.values()):,}" + (f" ({reasons})" if reasons else "")

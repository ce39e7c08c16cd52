"""What a column of strings costs that is not entered, beside pyarrow's ``dictionary_encode`` of it.

python -m bench.unentered
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from specstream.columns.unentered import numbers_of

__all__ = ["Cost", "costs"]

ROWS = 200_000
LENGTH = 20
LITERALS = ("BUY", "SELL", "a literal of 20 byte", "another of that size")


@dataclass(frozen=True)
class Cost:
    """Of one kind of texts, in seconds for each.

    Attributes:
        name: what they are.
        encoded: pyarrow's ``dictionary_encode``.
        compared: with four literals, two of which are as long as the texts.
        unread: of a column that nobody reads.
    """

    name: str
    encoded: float
    compared: float
    unread: float


def costs(rows: int = ROWS, rounds: int = 7) -> list[Cost]:
    """The best of some interleaved rounds, for new texts and for a few that are known."""
    rng = np.random.default_rng(1)
    numbers = rng.integers(0, 10**15, rows)
    new = pa.array([f"{number:0{LENGTH}d}" for number in numbers.tolist()])
    few = pa.array([f"{number:0{LENGTH}d}" for number in (numbers % 1000).tolist()])
    sides = pa.array(np.array(["BUY", "SELL", "HOLD"])[numbers % 3])
    found = []
    for name, texts in (("new texts", new), ("1,000 texts", few), ("three words", sides)):
        runs: list[Callable[[], object]] = [
            texts.dictionary_encode,
            lambda texts=texts: numbers_of(texts, LITERALS),  # type: ignore[misc]
            lambda texts=texts: numbers_of(texts, ()),  # type: ignore[misc]
        ]
        best = [float("inf")] * len(runs)
        for _ in range(rounds):
            for at, run in enumerate(runs):
                begin = time.perf_counter()
                run()
                best[at] = min(best[at], (time.perf_counter() - begin) / rows)
        found.append(Cost(name, *best))
    return found


def main() -> None:
    """Prints them."""
    print(f"{'':12} {'encoded':>10} {'compared':>10} {'unread':>10}")
    for one in costs():
        shares = [f"{1e9 * cost:7.1f} ns" for cost in (one.encoded, one.compared, one.unread)]
        print(f"{one.name:12} {' '.join(shares)}   {one.compared / one.encoded:.3f} of it")


if __name__ == "__main__":
    main()

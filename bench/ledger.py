"""``python -m bench ledger``: the README's ledger on one core, with locks, and speculating.

What each takes for the same transfers, in interleaved rounds, and in how many of them its answer
was that of the sequential run: the rows without their order, and the balances. Locks are those that
one would write for threads: an account's own, taken in one order, in the setting that is fastest.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

import specstream as ss
from bench.options import draws, earlier
from bench.report import print_table, progress_bar
from bench.stored import to_text
from examples.ledger.ledger import events, locked_transfers, transfers
from specstream.figures.style import bars_height, draw_bars, in_style, new_figure, save
from specstream.tuning.machine import cores, describe

PLOT = Path("docs/speed/ledger.png")
ONE, LOCKS, OURS = "plain, one core", "own locks", "specstream"
CHUNKS = (1, 8, 64)  # events that a thread under locks takes at a time
ROUNDS, QUICK_ROUNDS = 21, 3
BY_HAND = 500  # events of the loop by hand, which is slow


def answer(rows: pa.Table, balance: Any) -> tuple[pa.Table, list[int]]:
    """What a run gave, whatever the order of its rows."""
    keys = [(name, "ascending") for name in rows.column_names]
    return rows.sort_by(keys), np.asarray(balance).tolist()


def by_hand(table: pa.Table) -> float:
    """Seconds per event of the same loop in plain Python, over lists."""

    class Plain:
        balance = [100] * 10_000

    emitted: list[tuple[Any, ...]] = []
    rows = [SimpleNamespace(**row) for row in table.slice(0, BY_HAND).to_pylist()]
    state, began = Plain(), time.perf_counter()
    for row in rows:
        transfers.function(state, row, lambda *values: emitted.append(values))
    return (time.perf_counter() - began) / len(rows)


def measure(rounds: int, count: int, say: Any, step: Any) -> dict[str, Any]:
    """Runs all contestants in each round; seconds for all transfers, and equal answers."""
    table, threads = events(count), cores()
    contestants: dict[str, tuple[ss.Operator, dict[str, Any]]] = {
        ONE: (transfers, {"threads": 1, "horizon": 0}),
        OURS: (transfers, {"threads": threads}),
        **{
            f"{LOCKS} {chunk}": (
                locked_transfers,
                {"threads": threads, "execution": "locked", "chunk": chunk},
            )
            for chunk in CHUNKS
        },
    }
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    same = dict.fromkeys(contestants, 0)
    python: list[float] = []
    expected = None
    for number in range(-1, rounds):
        say(f"round {number + 1} of {rounds}")
        first = number % len(contestants)
        order = [*contestants.items()]
        for name, (operator, options) in order[first:] + order[:first]:
            with ss.Engine(operator, **options) as engine:
                rows = engine.process(table)
                given = answer(rows, engine.state.balance)
                took = engine.stats.time_per_event * count
            if expected is None:
                # The first round compiles, and gives what all are compared with.
                if name == ONE:
                    expected = given
            elif number >= 0:
                seconds[name].append(took)
                same[name] += given == expected
        if number >= 0:
            python.append(by_hand(table) * count)
            step()
    fastest = min(
        (name for name in contestants if name.startswith(LOCKS)),
        key=lambda name: statistics.median(seconds[name]),
    )
    return {
        "machine": describe(),
        "events": count,
        "threads": threads,
        "rounds": rounds,
        "by_hand": statistics.median(python),
        "chunk": int(fastest.split()[-1]),
        "contestants": [
            {
                "name": label,
                "seconds": statistics.quantiles(seconds[name], n=4),
                "ratio": statistics.median(
                    one / other for one, other in zip(seconds[ONE], seconds[name], strict=True)
                ),
                "same": same[name],
            }
            for label, name in ((ONE, ONE), (LOCKS, fastest), (OURS, OURS))
        ],
    }


def verdict(same: int, rounds: int) -> str:
    """Whether the answer was the sequential one.

    >>> verdict(5, 5), verdict(0, 5)
    ('same answer: yes, 5 of 5 runs', 'same answer: no, never in 5 runs')
    """
    if same == rounds:
        return f"same answer: yes, {same} of {rounds} runs"
    return f"same answer: no, {f'{same} of' if same else 'never in'} {rounds} runs"


@in_style
def draw_ledger(measured: dict[str, Any]) -> Figure:
    """Bars of time, with the verdict beside each name."""
    threads, count, rounds = (measured[name] for name in ("threads", "events", "rounds"))
    figure, panels = new_figure(
        f"{count:,} transfers: time, and whether the answer is that of one sequential run",
        1.1 + bars_height(3, 1, 0.5),
    )
    axes = panels[0, 0]
    draw_bars(
        axes,
        {
            f"{one['name']}{'' if one['name'] == ONE else f', {threads} threads'}   "
            f"({verdict(one['same'], rounds)})": {one["name"]: tuple(one["seconds"])}
            for one in measured["contestants"]
        },
        "{:.2f} s",
        gap=0.5,
    )
    axes.set_xlabel(
        f"seconds; line: quartiles of {rounds} runs; plain Python takes {measured['by_hand']:.0f} s"
    )
    return figure


def main() -> int:
    """Measures, prints a table, and writes the files that were asked for."""
    parser = draws("python -m bench ledger", __doc__, PLOT, f"draw the picture; {PLOT} by default")
    arguments = parser.parse_args()
    kept = earlier(parser, arguments, "a picture")
    if kept:
        save(draw_ledger(kept[0]), arguments.plot)
        return 0
    rounds, count = (QUICK_ROUNDS, 20_000) if arguments.quick else (ROUNDS, 200_000)
    with progress_bar(rounds) as (say, step):
        measured = measure(rounds, count, say, step)
    print_table(
        f"{count:,} transfers; plain Python takes {measured['by_hand']:.1f} s",
        ("", "seconds", "quartiles", "speed", "answer"),
        [
            [
                one["name"],
                f"{one['seconds'][1]:.3f}",
                f"{one['seconds'][0]:.3f} .. {one['seconds'][2]:.3f}",
                f"{one['ratio']:.2f}",
                verdict(one["same"], rounds),
            ]
            for one in measured["contestants"]
        ],
        (1, 2, 3),
    )
    text = to_text(measured)
    if arguments.json is not None:
        arguments.json.write_text(text)
    if arguments.plot is not None:
        arguments.plot.with_suffix(".json").write_text(text)
        save(draw_ledger(json.loads(text)), arguments.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())

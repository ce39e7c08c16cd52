"""``python -m bench agreement [--formulas N] [--seconds S] [--seed N] [--only NAME] ...``.

Random formulas, of what a monitor and rules can both say, on random traces: whether every verdict
is the same, and every robustness in every bit. Each formula has two traces, of columns that are
often true and of columns that seldom are. The rule runs as plain Python, the first formulas also as
compiled code. Where two differ, formula and trace are made smaller as long as they do, and the
definition says who is right.

The n-th event has time n, which is what bounds count in reelay and rtamt, and how long a value
lasts in mstlo. What is behind the end does not hold (``at_end="closed"``), as in rtamt; mstlo tells
only what the end does not change.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import numpy as np

from bench.monitors import formulas
from bench.monitors.definition import values
from bench.monitors.formulas import Formula
from bench.monitors.peers import Mstlo, Peer, Reelay, Rtamt, installed
from bench.report import print_table, progress_bar
from bench.rules.beside import versions
from bench.rules.rounds import process, rule_of, table

__all__ = ["QUESTIONS", "Difference", "Question", "compared", "drawn", "smallest", "traced"]

Columns = dict[str, np.ndarray]
EVENTS = 60
DEPTH = 3
# No bound reaches beyond the trace, which would make rtamt lengthen its input.
BOUND = 12
CONNECTIVES = {"not": 1, "and": 2, "or": 2, "implies": 2}
PAST = {"previous_event": 1, "once": 1, "historically": 1, "since": 2}
BOUNDED = {"eventually": 1, "always": 1, "until": 2}
FUTURE = {"next_event": 1, **BOUNDED, "unless": 2}


@dataclass(frozen=True)
class Question:
    """What is compared with whom.

    Attributes:
        name: of it.
        peer: the other monitor.
        words: of formulas, and how many parts each takes.
        robust: whether the robustness is compared, not its sign.
        unbounded: whether an operator may have no upper bound.
        lone_after: whether it may have a lower one only.
        least: of upper bounds; reelay takes 0 for none.
    """

    name: str
    peer: Peer
    words: dict[str, int]
    robust: bool = False
    unbounded: bool = True
    lone_after: bool = False
    least: int = 0

    @property
    def leaves(self) -> list[Formula]:
        """What formulas are made of."""
        if self.robust:
            return [formulas.positive(name) for name in "xy"]
        return [formulas.atom(name) for name in "pqr"]


# reelay's robustness is another one: see bench.monitors.differences. mstlo's `until` asks for its
# left side at the end, too; `exact` says ours in its words.
_ALL = [
    Question("reelay", Reelay(), PAST, lone_after=True, least=1),
    Question("mstlo", Mstlo(exact=True), BOUNDED, unbounded=False),
    Question("mstlo, robustness", Mstlo(exact=True), BOUNDED, robust=True, unbounded=False),
    Question("rtamt", Rtamt(by_hand=False), PAST | FUTURE),
    Question("rtamt, robustness", Rtamt(by_hand=False), PAST | FUTURE, robust=True),
]
QUESTIONS = {one.name: one for one in _ALL}


@dataclass(frozen=True)
class Difference:
    """Where two differ, made small.

    Attributes:
        formula: as a rule.
        theirs: as the other one takes it.
        columns: of the trace.
        at: the event.
        said: by whom, of that event: ``ours``, ``other``, ``definition``.
    """

    formula: str
    theirs: str
    columns: dict[str, list[Any]]
    at: int
    said: dict[str, str]

    def as_dict(self) -> dict[str, Any]:
        """For JSON; an infinity is text."""
        return vars(self)


def drawn(random: Random, of: Question, depth: int) -> Formula:
    """A formula, of parts inside one another down to a depth."""
    if depth == 0 or random.random() < 0.1:
        return random.choice(of.leaves)
    words = of.words if random.random() < 0.6 else CONNECTIVES
    word = random.choice(list(words))
    made = Formula(word, tuple(drawn(random, of, depth - 1) for _ in range(words[word])))
    if word in CONNECTIVES or word.endswith("_event"):
        return made
    low = random.choice((0, 0, random.randrange(BOUND // 2)))
    high = random.randrange(low, BOUND + 1)
    bounds: list[tuple[int, int | None]] = [(low, max(high, of.least))]
    # rtamt has `unless` with a bound only, and rules the robustness of bounded future.
    if of.unbounded and word != "unless" and not (of.robust and word in FUTURE):
        bounds.append((0, None))
    if of.lone_after:
        bounds.append((low, None))
    after, within = random.choice(bounds)
    return replace(made, after=after, within=within)


def traced(random: Random, of: Question, seldom: bool, events: int = EVENTS) -> Columns:
    """A trace of columns that are as often true as they like, or seldom; or of numbers."""
    rng = np.random.default_rng(random.randrange(2**32))
    made: Columns = {"time": np.arange(events)}
    for leaf in of.leaves:
        if of.robust:
            # Of few values, of which many are equal, or of any.
            some = rng.integers(-3, 4, events) / 2 if seldom else rng.normal(size=events)
            made[leaf.column] = some + 0.0
        else:
            made[leaf.column] = rng.random(events) < rng.random() * (0.15 if seldom else 1.0)
    return made


class Both:
    """A formula as a rule and as the other monitor takes it."""

    def __init__(self, of: Question, formula: Formula) -> None:
        self.of, self.formula = of, formula
        self.theirs = of.peer.write(formula)
        event = {leaf.column: float if of.robust else bool for leaf in of.leaves}
        report, options = (None, {"robustness": True}) if of.robust else ("all", {})
        text = formulas.rule(formula)
        self.rule = rule_of(text, "drawn", event, report, at_end="closed", **options)

    def ours(self, columns: Columns, compiled: bool = False) -> np.ndarray:
        """A verdict or a robustness for each event."""
        data = table(columns)
        if compiled:
            rows = process(self.rule, data)[0]
        else:
            rows = self.rule.run_sequential(data, order_by="time", end=True).output
        told = rows[self.rule_column].to_numpy(zero_copy_only=False)
        times = rows["time"].to_numpy()
        if not np.array_equal(np.sort(times), columns["time"]):
            raise AssertionError(f"{len(times)} rows of {len(columns['time'])} events: {self.text}")
        return np.asarray(told[np.argsort(times)])

    @property
    def rule_column(self) -> str:
        """In which the rule tells."""
        return "robustness" if self.of.robust else "verdict"

    @property
    def text(self) -> str:
        """What the rule returns."""
        return formulas.rule(self.formula).rpartition("return ")[2].strip()

    def other(self, columns: Columns) -> np.ndarray:
        """What the other one says, of as many events as it says something of."""
        peer = self.of.peer
        told = peer.run(self.theirs, peer.prepare(columns), self.of.robust).verdicts
        # It may have a minus zero, where rules have none.
        return told + 0.0 if self.of.robust else told

    def differ(self, columns: Columns, ours: np.ndarray) -> tuple[int, int | None]:
        """How many events the other one tells of, and the first at which it says another thing."""
        theirs = self.other(columns)
        bits = np.uint64 if self.of.robust else np.uint8
        ours = ours[: len(theirs)]
        different = np.flatnonzero(ours.view(bits) != theirs.view(bits))
        return len(theirs), int(different[0]) if len(different) else None


def reach(formula: Formula) -> int:
    """How many events ahead it looks, at most."""
    own = formula.within or 0 if formula.word in FUTURE else 0
    return own + max(map(reach, formula.parts), default=0)


def smaller(formula: Formula) -> Iterator[Formula]:
    """Formulas with a part less, or a bound that is less."""
    yield from formula.parts
    for at, part in enumerate(formula.parts):
        for one in smaller(part):
            yield replace(formula, parts=(*formula.parts[:at], one, *formula.parts[at + 1 :]))
    if formula.after:
        yield replace(formula, after=formula.after - 1)
    if formula.within is not None and formula.within > formula.after:
        yield replace(formula, within=formula.within - 1)


def shorter(columns: Columns) -> Iterator[Columns]:
    """Traces without some of the events, whose times are again the positions."""
    events = len(columns["time"])
    for size in (events // 2, events // 4, 1):
        for begin in range(0, events, size) if 0 < size < events - 1 else ():
            left = {
                name: np.delete(of, np.s_[begin : begin + size]) for name, of in columns.items()
            }
            yield {**left, "time": np.arange(len(left["time"]))}


def smallest(of: Question, formula: Formula, columns: Columns) -> Difference:
    """The difference of a formula on a trace, as small as one finds step by step."""

    def differ(one: Formula, on: Columns) -> bool:
        both = Both(of, one)
        return both.differ(on, both.ours(on))[1] is not None

    # As long as something can be left out; the trace stays longer than the bounds.
    while True:
        for one in smaller(formula):
            if differ(one, columns):
                formula = one
                break
        else:
            break
    while True:
        for less in shorter(columns):
            if len(less["time"]) > max(1, reach(formula)) and differ(formula, less):
                columns = less
                break
        else:
            break
    both = Both(of, formula)
    ours = both.ours(columns)
    at = both.differ(columns, ours)[1]
    assert at is not None
    defined: Any = values(formula, columns)[at]
    return Difference(
        both.text,
        both.theirs,
        {name: column.tolist() for name, column in columns.items()},
        at,
        {
            "ours": str(ours[at]),
            "other": str(both.other(columns)[at]),
            "definition": str(defined if of.robust else defined > 0),
        },
    )


def compared(
    of: Question,
    count: int,
    seed: int,
    compiled: int,
    say: Callable[[str], None],
    seconds: float = math.inf,
) -> dict[str, Any]:
    """So many formulas of a question, on two traces each.

    Args:
        of: the question.
        count: of formulas.
        seed: with the number of a formula, that of what is at random.
        compiled: how many of them run as compiled code, too.
        say: what is being done.
        seconds: after which no further formula is begun.

    Returns:
        ``formulas``, ``compiled``, ``verdicts`` that were compared, ``wrong`` formulas, and
        ``differences``, the smallest one of each of the first five.

    Raises:
        AssertionError: compiled code says something else, or the other monitor too little.
    """
    verdicts, wrong, done = 0, 0, 0
    differences: list[dict[str, Any]] = []
    end = time.monotonic() + seconds
    gc.collect()
    # A monitor collects before it is timed, which would take longer than it does.
    gc.freeze()
    for number in range(count):
        if number % 50 == 0:
            say(f"{of.name}: {number:,} of {count:,} formulas, {wrong} differ")
        if time.monotonic() > end:
            break
        done = number + 1
        random = Random(f"{of.name} {seed} {number}")
        both = Both(of, drawn(random, of, 1 + number % DEPTH))
        for seldom in (False, True):
            columns = traced(random, of, seldom)
            ours = both.ours(columns)
            if number < compiled and both.ours(columns, compiled=True).tobytes() != ours.tobytes():
                raise AssertionError(f"compiled code says something else: {both.text}")
            told, at = both.differ(columns, ours)
            least = EVENTS - reach(both.formula) if of.peer.name == "mstlo" else EVENTS
            if told < least:
                raise AssertionError(f"{told} verdicts, not {least}: {both.theirs}")
            verdicts += told
            if at is not None:
                wrong += 1
                if len(differences) < 5:
                    differences.append(smallest(of, both.formula, columns).as_dict())
                break
    gc.unfreeze()
    return {
        "formulas": done,
        "compiled": min(compiled, done),
        "verdicts": verdicts,
        "wrong": wrong,
        "differences": differences,
    }


def main() -> int:
    """Compares, prints a table; 1: something differs."""
    parser = argparse.ArgumentParser(prog="python -m bench agreement", description=__doc__)
    parser.add_argument("--formulas", type=int, default=1000, metavar="N", help="of each (1000)")
    parser.add_argument(
        "--seconds", type=float, default=math.inf, metavar="S", help="of each, at most (no limit)"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of what is at random")
    parser.add_argument(
        "--compiled", type=int, default=100, metavar="N", help="so many also compiled (100)"
    )
    parser.add_argument("--only", action="append", choices=list(QUESTIONS), help="this comparison")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was seen")
    arguments = parser.parse_args()
    there = [one for one in QUESTIONS.values() if one.peer.name in installed()]
    asked = [one for one in there if not arguments.only or one.name in arguments.only]
    if not asked:
        parser.error(
            "no other monitor is installed: pip install -r bench/monitors/requirements.txt"
        )
    found = {}
    with progress_bar(len(asked)) as (bar, step):

        def say(text: str) -> None:
            bar(text)
            if not sys.stderr.isatty():
                print(text, file=sys.stderr, flush=True)

        for one in asked:
            found[one.name] = compared(
                one,
                arguments.formulas,
                arguments.seed,
                arguments.compiled,
                say,
                arguments.seconds,
            )
            step()
    kept = {"seed": arguments.seed, "events": EVENTS, "peers": versions(), "compared": found}
    if arguments.json:
        arguments.json.write_text(json.dumps(kept, indent=1) + "\n")
    print_table(
        "Rules beside other monitors",
        ("beside", "formulas", "compiled", "verdicts", "formulas that differ"),
        [
            [name, *(f"{of[key]:,}" for key in ("formulas", "compiled", "verdicts", "wrong"))]
            for name, of in found.items()
        ],
        range(1, 5),
    )
    for name, of in found.items():
        for one in of["differences"]:
            print(f"\n{name}: {one['formula']}\n  {one['theirs']}")
            print(f"  {one['columns']}\n  event {one['at']}: {one['said']}")
    return int(any(of["wrong"] for of in found.values()))


if __name__ == "__main__":
    sys.exit(main())

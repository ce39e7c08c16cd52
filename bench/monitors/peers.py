"""reelay, mstlo and rtamt, each at its best, and what they say of every event.

What is made ready beforehand is not timed: the events as each takes them, the monitor of a formula.
Nor is what turns its answers into an array. Python's garbage collection waits meanwhile.

They are no part of the tests' environment::

    pip install -r bench/monitors/requirements.txt

reelay
    Its discrete-time monitor: the n-th event has time n, whatever its column says. Events are dicts
    with what has changed, which it recommends; its answers are those that have changed
    (``condense=True``). Both are faster than all values and all answers. With references, which are
    texts for it, events have what belongs to their kind. Its dense-time monitor takes longer for
    these events, and answers for all times in between.
mstlo
    One batch of all events, which is faster than one call each. ``DelayedQualitative`` is its
    fastest for most formulas; ``EagerQualitative`` may tell sooner.
rtamt
    Its offline evaluation of a whole trace; that of one event after the other takes longer.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from bench.monitors import formulas
from bench.monitors.formulas import Formula

__all__ = ["PEERS", "Mstlo", "Peer", "Reelay", "Rtamt", "Run", "installed"]

Columns = dict[str, np.ndarray]


@dataclass(frozen=True)
class Run:
    """What a monitor has said.

    Attributes:
        verdicts: one for each event, from the first one on, a bool or a robustness; fewer where
            the monitor does not tell those whose window is open at the end.
        seconds: that it took.
    """

    verdicts: np.ndarray
    seconds: float


class Peer(Protocol):
    """A monitor."""

    name: str

    def write(self, formula: Formula) -> str:
        """The formula as it takes it; CannotSayError where it has none."""
        ...

    def prepare(self, columns: Columns) -> Any:
        """Events as it takes them."""
        ...

    def run(self, formula: str, prepared: Any, robust: bool = False) -> Run:
        """Its verdicts of these events, or their robustness."""
        ...


@contextlib.contextmanager
def _undisturbed() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


class Reelay:
    """reelay."""

    name = "reelay"

    def write(self, formula: Formula) -> str:
        """In past MTL."""
        return formulas.reelay(formula)

    def prepare(self, columns: Columns) -> list[dict[str, Any]]:
        """Dicts of the values that have changed; a value that is left out is the one before."""
        events: list[dict[str, Any]] = [{} for _ in range(len(columns["time"]))]
        for name, column in columns.items():
            if name == "time":
                continue
            changed = np.flatnonzero(column[1:] != column[:-1]) + 1
            for at in (0, *changed.tolist()) if len(column) else ():
                events[at][name] = column[at].item()
        return events

    def run(self, formula: str, prepared: list[dict[str, Any]], robust: bool = False) -> Run:
        """An answer is ``{"time": n, "value": v}`` where the value is another one, else ``{}``."""
        import reelay

        semantics = "robustness" if robust else "boolean"
        monitor = reelay.discrete_timed_monitor(pattern=formula, semantics=semantics, condense=True)
        with _undisturbed():
            began = time.perf_counter()
            answers = list(map(monitor.update, prepared))
            seconds = time.perf_counter() - began
        verdicts = np.empty(len(prepared), dtype=float if robust else bool)
        for answer in answers:
            if answer:
                verdicts[answer["time"] :] = answer["value"]
        return Run(verdicts, seconds)


class Mstlo:
    """mstlo."""

    name = "mstlo"

    def __init__(self, eager: bool = False, exact: bool = False) -> None:
        """``eager``: verdicts as soon as they are settled; ``exact``: ours of any trace."""
        self.semantics = "EagerQualitative" if eager else "DelayedQualitative"
        self.exact = exact

    def write(self, formula: Formula) -> str:
        """In bounded STL."""
        return formulas.mstlo(formula, self.exact)

    def prepare(self, columns: Columns) -> dict[str, list[tuple[float, float]]]:
        """A signal for each column, of values and times."""
        times = columns["time"].astype(float).tolist()
        return {
            name: list(zip(column.astype(float).tolist(), times, strict=True))
            for name, column in columns.items()
            if name != "time"
        }

    def run(
        self, formula: str, prepared: dict[str, list[tuple[float, float]]], robust: bool = False
    ) -> Run:
        """Without verdicts whose window is open at the end; its eager ones may have gaps there."""
        import mstlo_python

        semantics = "DelayedQuantitative" if robust else self.semantics
        monitor = mstlo_python.Monitor(mstlo_python.parse_formula(formula), semantics=semantics)
        signals = monitor.get_signal_identifiers()
        given = {name: signal for name, signal in prepared.items() if name in signals}
        with _undisturbed():
            began = time.perf_counter()
            answers = monitor.update_batch(given).verdicts()
            seconds = time.perf_counter() - began
        told = dict(answers)
        times = [at for _, at in next(iter(given.values()))]
        verdicts = []
        for at in times:
            if at not in told:
                break
            verdicts.append(told[at])
        return Run(np.array(verdicts, dtype=float if robust else bool), seconds)


class Rtamt:
    """rtamt."""

    name = "rtamt"

    def __init__(self, by_hand: bool = True) -> None:
        """``by_hand``: a bounded ``until`` is written with an unbounded one, which is faster."""
        self.by_hand = by_hand

    def write(self, formula: Formula) -> str:
        """In STL of discrete time."""
        return formulas.rtamt(formula, self.by_hand)

    def prepare(self, columns: Columns) -> dict[str, list[float]]:
        """Lists of numbers; a bool is 1 or -1, so that atoms cost nothing."""
        made: dict[str, list[float]] = {"time": columns["time"].tolist()}
        for name, column in columns.items():
            if name != "time":
                numbers = np.where(column, 1.0, -1.0) if column.dtype == bool else column
                made[f"x_{name}"] = numbers.tolist()
        return made

    def run(self, formula: str, prepared: dict[str, list[float]], robust: bool = False) -> Run:
        """A verdict is true where the robustness is above 0, which it never is exactly."""
        import rtamt

        specification = rtamt.StlDiscreteTimeSpecification()
        for name in prepared:
            if name != "time":
                specification.declare_var(name, "float")
        specification.declare_var("out", "float")
        specification.spec = f"out = {formula}"
        specification.parse()
        given = {name: list(column) for name, column in prepared.items()}
        with _undisturbed():
            began = time.perf_counter()
            answers = specification.evaluate(given)
            seconds = time.perf_counter() - began
        values = np.array([value for _, value in answers], dtype=float)
        return Run(values if robust else values > 0, seconds)


_MODULES = {"reelay": "reelay", "mstlo": "mstlo_python", "rtamt": "rtamt"}


def installed() -> dict[str, Peer]:
    """Those that can be imported; rtamt's parser cannot from Python 3.13 on."""
    found = {}
    for name, peer in PEERS.items():
        with contextlib.suppress(ImportError):
            importlib.import_module(_MODULES[name])
            found[name] = peer
    return found


PEERS: dict[str, Peer] = {peer.name: peer for peer in (Reelay(), Mstlo(), Rtamt())}

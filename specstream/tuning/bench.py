"""An operator beside other ways to run it: ``ss.bench``, ``specstream bench``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from specstream.declarations.options import instance, refuses_unknown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.tuning import machine
from specstream.tuning.contest import Measurement
from specstream.tuning.measuring import checked_seconds, checked_threads
from specstream.tuning.progress import progress
from specstream.tuning.report import Report
from specstream.tuning.rivals import BASELINE, Comparison, compare
from specstream.tuning.stream import Stream, as_stream

__all__ = ["Benched", "bench", "bench_on", "check_locked"]


@dataclass(frozen=True, repr=False)
class Benched(Report):
    """What :func:`specstream.bench` has found.

    Attributes:
        comparison: the contestants, and what each took.
    """

    name: str
    stream: Stream
    comparison: Comparison
    threads: int
    capacity: float
    machine: dict[str, Any]
    _with_answer = True

    @property
    def nanoseconds(self) -> float:
        return self.comparison.nanoseconds

    @property
    def rows(self) -> list[tuple[str, Measurement]]:
        return list(self.comparison.measured.items())

    @property
    def marked(self) -> str:
        return BASELINE

    def notes(self) -> list[str]:
        found = ["Speed is relative to plain in the same round."]
        if self.comparison.no_loop:
            found.append(f"There is no loop by hand: {self.comparison.no_loop}.")
        if self.threads > 1 and self.comparison.settings:
            found.append(
                "A run under locks has no fixed order, so what it emits differs from run to run."
            )
        return [*found, *self._about_threads()]

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        comparison = self.comparison
        return {
            "operator": self.name,
            "events": self.stream.count,
            "batch": comparison.batch,
            "baseline": BASELINE,
            "no_loop_by_hand": comparison.no_loop or None,
            "contestants": [
                {"name": name, "chunk": comparison.settings.get(name), **asdict(measured)}
                for name, measured in self.rows
            ],
            "machine": {**self.machine, "threads": self.threads, "capacity": self.capacity},
        }

    def __repr__(self) -> str:
        speeds = (f"{name} {measured.speed:.3g}" for name, measured in self.rows)
        return f"{self.title}\n{', '.join(speeds)}"


@refuses_unknown
def bench(
    operator: Operator,
    events: Any,
    *,
    locked: Operator | None = None,
    order_by: str | None = None,
    source: str | None = None,
    threads: int | None = None,
    seconds: float = 10.0,
) -> Benched:
    """Compares an operator with locks, its plain run and a loop by hand, on your own events.

    All run the same events in interleaved rounds, as ``specstream bench`` does it: plain on one
    thread, specstream with Auto, one global lock around the operator, the version under ``locked``
    if there is one, a loop over Python's lists and dicts, and the sequential check. Progress is
    shown on stderr.

    Args:
        operator: what to run; a pipeline, too.
        events: as for :meth:`specstream.Engine.process`: at least some ten thousand, of your own.
        locked: the same operator with locks of your own (:func:`specstream.locks`).
        order_by: column of the event time; None: the rows are in order.
        source: column that tells sources apart; breaks ties.
        threads: of the contestants that have several; None: one per core.
        seconds: for measuring, from 0.1 on; compiling comes before.

    Raises:
        ConfigurationError: an option has a value that it cannot have, or ``locked`` has no locks or
            reads other columns.
        InputError: a column is missing or has the wrong type, or there are no events.
        LockError: ``locked`` did something wrong with its locks.
        Exception: what the operator raises on these events.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def running_total(state, event, emit):
    ...     state.total += event.x
    ...     emit(state.total)
    >>> found = ss.bench(running_total, {"x": range(10_000)}, threads=1, seconds=0.1)
    >>> sorted(name for name, _ in found.rows)[:2]
    ['global lock, 1 threads', 'log-free, 1 thread']
    """
    instance("operator", operator, Operator, "an operator or a pipeline")
    if locked is not None:
        instance("locked", locked, Operator, "an operator or None")
        check_locked("locked=", locked, operator)
    most, seconds = checked_threads(threads), checked_seconds(seconds)
    stream = as_stream(events, operator, order_by, source)
    with progress(seconds) as say:
        return bench_on(operator, locked, stream, seconds, most, say)


def bench_on(
    operator: Operator,
    locked: Operator | None,
    stream: Stream,
    seconds: float,
    most: int,
    say: Callable[[str], None],
) -> Benched:
    """:func:`bench` with arguments that are known to be right."""
    found = compare(operator, locked, stream, seconds, most, say)
    say("what the cores can do")
    capacity = machine.capacity(most) if most > 1 else 1.0
    return Benched(operator.name, stream, found, most, capacity, machine.describe())


def check_locked(option: str, locked: Operator, operator: Operator) -> None:
    """Whether an operator with locks can be compared with another.

    Raises:
        ConfigurationError: it has no locks, or reads other columns; names ``option``.
    """
    if locked.layout.words("locks") == 0:
        raise ConfigurationError(
            f"{option} {locked.name!r}: its state declares no locks, so threads would overwrite "
            "each other's values: declare locks = ss.locks(n), and take them in the operator"
        )
    if set(locked.event.names) - set(operator.event.names):
        raise ConfigurationError(
            f"{option} {locked.name!r}: it reads other columns "
            f"({', '.join(locked.event.names)}) than {operator.name!r} "
            f"({', '.join(operator.event.names)})"
        )

"""The automatic predictor: measures what is worth trying, and keeps what takes the least time.

What it goes by is the time per committed event, the one figure that counts, whatever it comes from:
aborts, logs, cache lines, a busy machine. It has to be measured while the batches run, and to
measure something worse than the best costs time. So the whole of the algorithm is about what to try
when, and for how long: :class:`Auto` says it in prose.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from specstream.declarations.options import integer, refuses_unknown
from specstream.predictors.predictor import (
    EVERYTHING,
    LONGEST_CHUNK,
    LONGEST_HORIZON,
    Measurement,
    Predictor,
    Setting,
)

__all__ = ["Auto"]


@dataclass
class _Piece:
    """A run with one setting that is judged as a whole; small batches cut it into stretches.

    Attributes:
        why: "stay" with the setting in use, or a trial: of the "other" side, of a "neighbour".
        setting: horizon and chunk.
        length: seconds that it is to last.
        expected: seconds per event, or inf.
    """

    why: str
    setting: tuple[int, int]
    length: float
    expected: float
    events: int = 0
    seconds: float = 0.0
    commits: int = 0
    aborts: int = 0

    def add(self, measured: Measurement) -> None:
        self.events += measured.events
        self.seconds += measured.seconds
        self.commits += measured.commits
        self.aborts += measured.aborts

    @property
    def time_per_event(self) -> float:
        return self.seconds / self.events

    @property
    def done(self) -> bool:
        """Whether it lasted long enough: its length was made of figures that may be out of date."""
        return self.seconds >= 0.7 * self.length

    @property
    def aborted(self) -> bool:
        """Whether so many runs were dropped that a shorter reach is the thing to try."""
        return self.aborts > 0.1 * self.commits

    @property
    def aborts_per_commit(self) -> float:
        return self.aborts / max(self.commits, 1)


@dataclass(frozen=True)
class _Lost:
    """Speculation that took no less time than plain runs.

    Attributes:
        plain: seconds per event.
        speculative: likewise.
        setting: horizon and chunk.
        aborts: dropped runs per transaction.
    """

    plain: float
    speculative: float
    setting: tuple[int, int]
    aborts: float


@dataclass
class _Timer:
    """When something is tried again: after ``pause`` seconds of the setting in use."""

    pause: float = 0.0
    since: float = 0.0

    @property
    def rest(self) -> float:
        return self.pause - self.since

    def restart(self, pause: float) -> None:
        self.pause, self.since = pause, 0.0


class Auto(Predictor):
    """Plain or speculative, whichever takes less time per committed event now.

    One setting is in use, and runs in long stretches. Between them others are tried in short ones:
    the *other side* (plain while it speculates, speculation while it does not), and while it
    speculates its *neighbours* (twice and half the chunk, twice and half the horizon). What took
    less time per event is in use from then on. Three rules keep the price of looking low:

    - The loss in a trial is known once it is over, and the next one is put off until that loss is
      at most 0.5 % of the time (``REGRET``). So a close rival is tried often and a hopeless one
      rarely; but never less often than every 200 ms (``LONGEST_PAUSE``), as a rival that has become
      better need not show in the figures of the setting in use.
    - A trial is short, and goes on only while the result is close: then a wrong verdict would last
      long, and going on costs less than a new trial.
    - Noise only ever adds: the setting in use is judged by the better of its last two stretches.

    All of these durations are for events of microseconds. Stopping and starting again costs one of
    the longest transactions, because one thread ends the last one while the others wait. Where that
    is more than ``RESTART``, stretches, trials and pauses are longer by as much.

    Speculation starts with chunks of 20 µs (``TRANSACTION``) and a horizon of 200 µs (``SLACK``): a
    thread can be away for that long, asleep or without a processor, before the others have to wait
    for it. When it loses because of aborts, it is tried next with the shortest reach there is, then
    with single events; when it loses without them, with twice the chunk. Where all events meet in
    one word, one transaction ahead of the head is often the only reach that pays, and no gradual
    descent would find it.

    Where transactions take more than 20 µs, the horizon is only the one to start with: while
    threads starve, as they do where durations vary, the runtime doubles it up to 64 transactions
    for each thread (:meth:`longest`), and shortens it again where conflicts become many.

    Args:
        threads: of the engine; with one, it never speculates.
        chunk: events per transaction; None: chosen.
        horizon: transactions ahead of the head while it speculates; None: chosen.

    >>> predictor = Auto(threads=2)
    >>> for _ in range(20):  # 5 microseconds per event plain, 3 on two threads
    ...     setting = predictor.next()
    ...     seconds = 3e-6 if setting.horizon else 5e-6
    ...     predictor.record(setting, Measurement(10_000, 10_000 * seconds, 5_000, aborts=0))
    >>> predictor.current()
    (10, 4)
    >>> predictor.decisions[0].reason
    'plain 5000 ns, speculative 3000 ns per event'
    """

    # Durations in seconds.
    STRETCH = 0.020
    PROBE = 0.001
    LONG_PROBE = 0.010
    SHORTEST_PAUSE = 0.020
    LONGEST_PAUSE = 0.200
    TRANSACTION = 20e-6
    SLACK = 200e-6
    # What stopping one setting and starting another costs: threads wake up, pipelines fill.
    RESTART = 0.0002
    # Share of the time that either kind of trial may cost.
    REGRET = 0.005
    # Ratios of times per event.
    CLOSE = 1.15
    MARGIN = 0.99
    MOVED = 1.3
    MUCH_WORSE = 1.5
    # Seconds from which on an event mostly pays for what a second core costs.
    NEEDED = 0.5e-6
    LONGEST_CHUNK = 64
    # Transactions for each thread; beyond, hardly any durations vary enough to need it.
    LONGEST_PER_THREAD = 64

    @refuses_unknown
    def __init__(
        self, threads: int = 2, *, chunk: int | None = None, horizon: int | None = None
    ) -> None:
        super().__init__()
        self.threads = threads = integer("Auto: threads", threads, 1, 256)
        if chunk is not None:
            chunk = integer("Auto: chunk", chunk, 1, LONGEST_CHUNK, " or None")
        if horizon is not None:
            horizon = integer("Auto: horizon", horizon, 1, LONGEST_HORIZON, " or None")
        self._free_chunk = chunk is None
        self._free_horizon = horizon is None
        self._start = (horizon or max(8, 4 * threads), chunk or 8)
        self._longest = 4 * self._start[0]
        self._furthest = max(self.LONGEST_PER_THREAD * threads, self._longest)
        # Mean transactions that a stop waits for: the longest of one for each thread, where their
        # times vary as much as a lognormal of sigma 1 (1.5 with two threads, 5.5 with 32).
        self._tail = math.sqrt(threads)
        self._ahead = self._start  # horizon and chunk when it speculates
        self._fitted = self._ahead  # what was fitted to
        self._fitted_to = 0.0  # plain seconds per event that they were chosen for
        self._speculating = False
        self._aborted = False  # whether the setting in use has seen many aborts
        self._recent: deque[float] = deque(maxlen=2)
        self._rival = float("inf")  # the other side as last measured, in seconds per event
        self._cold = {False, True}  # sides that have not run yet
        self._other = _Timer()
        self._near = _Timer()
        self._moves: deque[tuple[str, int]] = deque()
        self._piece: _Piece | None = None
        self._lost: _Lost | None = None  # the latest trial that speculation lost
        self._aborts = 0.0  # of the setting in use, per transaction

    def current(self) -> tuple[int, int]:
        return (self._ahead[0] if self._speculating else 0), self._ahead[1]

    @property
    def speculates(self) -> bool:
        return self.threads > 1

    def open(self) -> tuple[int, int]:
        return self._ahead

    def least(self) -> int:
        if self.threads == 1:
            return 0
        return 1 if self._free_horizon else self._start[0]

    def cap(self, horizon: int) -> None:
        if self._free_horizon:
            self._longest = min(self._longest, horizon)
            self._furthest = min(self._furthest, horizon)
            self._start = min(self._start[0], horizon), self._start[1]
            self._ahead = self._start

    def longest(self) -> int | None:
        return self._furthest if self._free_horizon and self.speculates else None

    @property
    def _transaction(self) -> float:
        """Seconds that a transaction takes on one thread, at most; 0: not known yet."""
        # The first may be out of date, the second is more where threads wait.
        return min(self._fitted_to, self._mine * self.threads) * self._ahead[1]

    def why_plain(self) -> str:
        lost = self._lost
        if self._speculating or lost is None:
            return ""
        horizon, chunk = lost.setting
        told = (
            f"an event takes {_nanoseconds(lost.plain)} on one core and "
            f"{_nanoseconds(lost.speculative)} on {self.threads} threads (horizon {horizon}, chunk "
            f"{chunk})"
        )
        if lost.aborts > 0.1:
            return (
                f"{told}: of 100 transactions {100 * lost.aborts:.0f} had to run again, most for "
                "conflicts; specstream profile names the words that they met in"
            )
        if lost.plain < self.NEEDED:
            return (
                f"{told}: it is too short to be shared, which pays from about "
                f"{_nanoseconds(self.NEEDED)} on"
            )
        return f"{told}, so more cores gain nothing: is the machine busy, or memory the limit?"

    def _scaled(self, seconds: float) -> float:
        """A duration, where transactions are long."""
        return seconds * max(1.0, self._tail * self._transaction / self.RESTART)

    @property
    def _mine(self) -> float:
        return min(self._recent, default=float("inf"))

    # ---- what runs next ----

    def next(self) -> Setting:
        if self.threads == 1:
            return Setting(0, self._ahead[1], EVERYTHING)
        piece = self._piece = self._piece or self._choose()
        rest = piece.length - piece.seconds
        horizon, chunk = piece.setting
        # Where nothing is known yet, the clock ends the stretch. A transaction is never longer than
        # the piece that the batch is cut into.
        known = 0 < piece.expected < float("inf")
        events = max(int(rest / piece.expected), 64 * chunk) if known else EVERYTHING
        return Setting(horizon, chunk, events, 1.5 * rest)

    def _choose(self) -> _Piece:
        mine = self._mine
        probe, stretch = self._scaled(self.PROBE), self._scaled(self.STRETCH)
        if mine == float("inf"):
            return _Piece("stay", self.current(), probe, mine)
        if self._other.rest < probe:
            if not self._speculating:
                self._fit(mine)
            setting = (0 if self._speculating else self._ahead[0]), self._ahead[1]
            expected = self._rival if self._rival < float("inf") else mine
            return _Piece("other", setting, self._scaled(self.PROBE), expected)
        length = min(stretch, self._other.rest)
        if self._speculating and self._moves:
            if self._near.rest > probe:
                length = min(length, self._near.rest)
            elif (setting := self._neighbour()) != self._ahead:
                return _Piece("neighbour", setting, probe, mine)
        return _Piece("stay", self.current(), length, mine)

    def _fit(self, plain: float) -> None:
        """Starts afresh from a chunk of that length if events take another time by now."""
        if self._fitted_to / self.MOVED < plain < self._fitted_to * self.MOVED:
            return
        self._fitted_to = plain
        horizon, chunk = self._start
        if self._free_chunk:
            chunk = min(max(round(self.TRANSACTION / plain), 1), self.LONGEST_CHUNK)
        if self._free_horizon:
            horizon = max(horizon, min(round(self.SLACK / (chunk * plain)), self._longest))
        self._ahead = self._fitted = horizon, chunk

    def _neighbour(self) -> tuple[int, int]:
        """Where the first of the moves leads that leads anywhere; else the setting in use."""
        while self._moves:
            what, step = self._moves[0]
            horizon, chunk = self._ahead
            if what == "reach":
                horizon, chunk = self._shortest
            elif what == "chunk":
                chunk = min(max(_doubled(chunk, step), 1), self.LONGEST_CHUNK)
            else:
                horizon = min(max(_doubled(horizon, step), 1), self._longest)
            if (horizon, chunk) != self._ahead:
                return horizon, chunk
            self._moves.popleft()
        return self._ahead

    def _all_moves(self, shorter_first: bool) -> None:
        moves = [("reach", -1)] if shorter_first else []
        for step in (-1, 1) if shorter_first else (1, -1):
            if self._free_chunk:
                moves.append(("chunk", step))
            if self._free_horizon:
                moves.append(("horizon", step))
        self._moves = deque(moves)

    # ---- what it took ----

    def _learn(self, setting: Setting, measured: Measurement) -> None:
        piece = self._piece
        if piece is None:
            return
        piece.add(measured)
        if not piece.done:
            return
        speculative = piece.setting[0] > 0
        if speculative in self._cold:
            # The first run pays for memory that was never touched and for threads that slept.
            self._cold.discard(speculative)
            self._piece = None
            return
        if piece.why == "stay":
            self._piece = None
            self._stayed(piece)
            return
        ratio = piece.time_per_event / self._mine
        longer = self._scaled(self.LONG_PROBE)
        if piece.length < longer and 1 / self.CLOSE < ratio < self.CLOSE:
            piece.length, piece.expected = longer, piece.time_per_event
            if not piece.done:
                return
        self._piece = None
        lost = piece.seconds * max(0.0, 1 - 1 / ratio) + self._scaled(self.RESTART)
        shortest, longest = self._scaled(self.SHORTEST_PAUSE), self._scaled(self.LONGEST_PAUSE)
        pause = min(max(lost / self.REGRET, shortest), longest)
        if piece.why == "other":
            self._compare(piece, ratio, pause)
        else:
            self._move(piece, ratio, pause)

    def _stayed(self, piece: _Piece) -> None:
        before, took = self._mine, piece.time_per_event
        self._aborted, self._aborts = piece.aborted, piece.aborts_per_commit
        self._recent.append(took)
        self._other.since += piece.seconds
        self._near.since += piece.seconds
        if before < float("inf") and not before / self.MOVED < took < before * self.MOVED:
            # The workload may have changed, and what is known of the others be out of date. On a
            # busy machine it is noise more often than not: so look sooner, and not at once.
            worse = took > self.MUCH_WORSE * before
            shortest = self._scaled(self.SHORTEST_PAUSE)
            self._other.pause = 0.0 if worse else max(self._other.pause / 2, shortest)
            # Aborts are counted, not timed: they are no noise.
            self._near.pause = 0.0 if piece.aborted else shortest
            self._all_moves(shorter_first=piece.aborted)

    def _compare(self, piece: _Piece, ratio: float, pause: float) -> None:
        """The other side has been tried: change sides or stay, and say when to look again."""
        mine, other = self._mine, piece.time_per_event
        if ratio >= self.MARGIN:
            self._rival = other
            self._other.restart(pause)
            if not self._speculating:
                self._lost = _Lost(mine, other, piece.setting, piece.aborts_per_commit)
                self._vary(piece)
            return
        self._rival = mine
        self._recent.clear()
        self._recent.append(other)
        plain, speculative = (other, mine) if self._speculating else (mine, other)
        if self._speculating:
            self._lost = _Lost(plain, speculative, self._ahead, self._aborts)
            # What it speculated with is worth another try, unless it was for far shorter events.
            fits = self._ahead[1] * plain < 4 * self.TRANSACTION
            self._fitted_to = plain if fits or not self._free_chunk else 0.0
            if self._aborted:
                self._shorten()
        self._speculating = not self._speculating
        self._other.restart(self._scaled(self.SHORTEST_PAUSE))
        self._near.restart(self._scaled(self.SHORTEST_PAUSE))
        self._all_moves(shorter_first=piece.aborted)
        figures = f"plain {plain * 1e9:.0f} ns, speculative {speculative * 1e9:.0f} ns per event"
        self._decide(*self.current(), figures)

    def _vary(self, lost: _Piece) -> None:
        """Speculation lost: the next try reaches less far, or takes more events at a time."""
        horizon, chunk = self._ahead
        longest = min(4 * max(round(self.TRANSACTION / self._mine), 1), self.LONGEST_CHUNK)
        self._rival = float("inf")
        if lost.aborted:
            self._shorten()
        elif 2 * chunk <= longest and self._free_chunk:
            self._ahead = horizon, 2 * chunk
        else:
            self._fitted_to = 0.0  # all were tried: from the start

    @property
    def _shortest(self) -> tuple[int, int]:
        horizon, chunk = self._ahead
        return 1 if self._free_horizon else horizon, 1 if self._free_chunk else chunk

    def _shorten(self) -> None:
        """After aborts: the shortest reach, then single events, then from the start."""
        shortest = self._shortest
        single = self._start[0], shortest[1]
        if self._ahead == shortest and single != self._fitted:
            self._ahead = single
        elif self._ahead in (shortest, single) and self._ahead != self._fitted:
            self._fitted_to = 0.0
        else:
            self._ahead = shortest

    def _move(self, piece: _Piece, ratio: float, pause: float) -> None:
        """A neighbour has been tried: what helped is repeated at once, what did not waits."""
        if ratio >= self.MARGIN:
            self._moves.rotate(-1)
            self._near.restart(pause)
            return
        before = self._ahead
        self._ahead = piece.setting
        figures = f"{self._mine * 1e9:.0f} ns per event, now {piece.time_per_event * 1e9:.0f} ns"
        self._recent.clear()
        self._recent.append(piece.time_per_event)
        self._near.restart(0.0)
        helped = self._moves[0]
        self._all_moves(shorter_first=helped[1] < 0)
        self._moves.remove(helped)
        self._moves.appendleft(helped)
        names = "horizon {}, chunk {}"
        self._decide(*self._ahead, f"{names.format(*before)} took {figures}")


def _nanoseconds(seconds: float) -> str:
    return f"{seconds * 1e9:,.0f} ns"


def _doubled(value: int, step: int) -> int:
    return 2 * value if step > 0 else value // 2

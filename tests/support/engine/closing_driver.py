"""Engines that everybody uses at once, in every way, while somebody closes them.

In a process of its own, as what is looked for ends it or hangs. Threads call all methods at random;
so do hooks, finalisers, and signal handlers that interrupt the main thread in the middle of its own
calls, and sometimes raise. Whatever comes first, a call either does what it says or raises an error
of ours, and when the engine is closed nothing of it runs any more.

    python -m support.engine.closing_driver ROUNDS SEED
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import faulthandler
import gc
import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import specstream as ss
from specstream.engine.snapshot import Snapshot


class Account(ss.State):
    left = ss.scalar(int, fill=1000)
    right = ss.scalar(int)
    a = ss.array(int, 8)


@ss.operator(state=Account, event={"x": int}, emits={"left": int})
def transfer(state, event, emit):
    """Between two events left + right is 1000."""
    state.left -= event.x
    state.a[event.x % 8] += 1
    state.right += event.x
    emit(state.left)


def check_whole(engine: ss.Engine, snapshot: bytes) -> None:
    content = Snapshot.from_bytes(snapshot, transfer.layout, "a snapshot", None)
    view = type(engine.state)(transfer.layout, content.state, content.table(()).objects)
    assert view.left + view.right == 1000, (view.left, view.right)


def batch(random: random.Random) -> dict[str, list[int]]:
    count = random.choice([0, 1, 5, 40, 400])
    return {"time": list(range(count)), "x": [random.randrange(9) for _ in range(count)]}


EMPTY: bytes  # taken below

METHODS: dict[str, Callable[[ss.Engine, random.Random], object]] = {
    "process": lambda engine, random: engine.process(batch(random)),
    "process in order": lambda engine, random: engine.process(batch(random), order_by="time"),
    "submit": lambda engine, random: engine.submit(batch(random), order_by="time", source="a"),
    "submit_event": lambda engine, random: engine.submit_event(random.randrange(500), "a", x=3),
    "advance": lambda engine, random: engine.advance("a", random.randrange(500)),
    "poll": lambda engine, random: engine.poll(timeout=random.choice([0, 0.002])),
    "poll all": lambda engine, random: engine.poll(timeout=None),
    "poll_rows": lambda engine, random: engine.poll_rows(),
    "late": lambda engine, random: engine.late(),
    "bad_rows": lambda engine, random: engine.rejected_rows(),
    "snapshot": lambda engine, random: engine.snapshot(),
    "restore": lambda engine, random: engine.restore(EMPTY),
    "mark": lambda engine, random: engine.savepoint(),
    "rewind": lambda engine, random: engine.rollback(engine.savepoint()),
    "state": lambda engine, random: engine.state.to_dict(),
    "stats": lambda engine, random: engine.stats,
    "profile": lambda engine, random: engine.profile(),
    "conflicts_by_vertex": lambda engine, random: engine.conflicts_by_vertex(),
    "closed": lambda engine, random: engine.closed,
    "repr": lambda engine, random: repr(engine),
}
# What may be done by whoever the engine, or the interrupted call, waits for.
LOOKS = ("stats", "profile", "conflicts_by_vertex", "closed", "repr")
# Why somebody may be refused; the collector may run in a hook as well.
HOOK, MIDDLE = "waits for the hook", "in the middle of another call"
REFUSED = {
    "thread": (),
    "hook": (HOOK,),
    "signal handler": (MIDDLE,),
    "finaliser": (HOOK, MIDDLE),
}

with ss.Engine(transfer, horizon=2, chunk=1, late="drop") as one:
    EMPTY = one.snapshot()
    # Whatever is imported at the first use: a finaliser that waits in the middle of an import waits
    # for ever if another thread needs the import.
    for method in METHODS.values():
        one.restore(EMPTY)
        method(one, random.Random(1))


class Round:
    """One engine, and all who use it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.closers = 1 + self.random.randrange(2)
        self.calls_left = self.random.randrange(60)
        self.problems: list[str] = []
        self.interruptible = self.handling = False
        self.seen: Counter[str] = Counter()
        hooks: dict[str, Any] = {}
        if self.random.random() < 0.4:
            name = self.random.choice(["on_commit", "on_post_commit", "on_abort"])
            hooks[name] = lambda notification: self.aside("hook")
        self.engine = ss.Engine(
            transfer,
            threads=self.random.choice([1, 2, 3]),
            horizon=self.random.choice([0, 2, 8, "auto"]),
            chunk=self.random.choice([1, 4, "auto"]),
            protocol=self.random.choice(["value", "eager"]),
            sources=["a"],
            late="drop",
            **hooks,
        )

    def call(self, name: str, who: str) -> None:
        """One call, whose outcome has to be one of those that the documentation has."""
        try:
            answer = METHODS[name](self.engine, self.random)
            self.seen[f"{name} by {who}"] += 1
            if name == "snapshot":
                check_whole(self.engine, answer)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            raise
        except ss.EngineClosedError:
            self.seen[f"{name} by {who}, closed"] += 1
            if not self.engine.closed or (name in (*LOOKS, "state") and who == "thread"):
                self.problems.append(f"{name} by {who}: not closed")
        except ss.InputError as error:
            if "not committed" not in str(error):
                self.problems.append(f"{name} by {who}: {error!r}")
        except ss.SpecstreamError as error:
            self.seen[f"{name} by {who}, refused"] += 1
            if name in LOOKS or not any(reason in str(error) for reason in REFUSED[who]):
                self.problems.append(f"{name} by {who}: {error!r}")
        except BaseException as error:
            # CPython's own (gh-106905): its parser is not made for threads that parse at once.
            if "AST constructor recursion depth" not in str(error):
                self.problems.append(f"{name} by {who}: {error!r}")

    def aside(self, who: str) -> None:
        """A call out of the middle of something; now and then, it is to close the engine."""
        draw = self.random.random()
        if draw < 0.9 if who == "hook" else draw < 0.5:
            return
        if draw < 0.99:
            self.call(self.random.choice(list(METHODS)), who)
            return
        try:
            self.engine.close()
            self.seen[f"close by {who}"] += 1
        except ss.SpecstreamError as error:
            if HOOK not in REFUSED[who] or HOOK not in str(error):
                self.problems.append(f"close by {who}: {error!r}")

    def use(self) -> None:
        """A thread that uses the engine until it is closed, and a little longer."""
        after = 0
        while after < 5 and not self.problems:
            after += self.engine.closed
            self.call(self.random.choice(list(METHODS)), "thread")
            self.calls_left -= 1
            if self.random.random() < 0.2:
                Finaliser(self)

    def close(self) -> None:
        while self.calls_left > 0 and not self.engine.closed and not self.problems:
            time.sleep(0.0005)
        self.engine.close()
        if not self.engine.parts.lifetime.closed:
            self.problems.append("close() has returned, and the engine has not ended")

    def interrupt(self, number: int, frame: object) -> None:
        if self.handling:
            return
        self.handling = True
        self.aside("signal handler")
        self.handling = False
        if self.interruptible and self.random.random() < 0.3:
            self.interruptible = False
            raise KeyboardInterrupt

    def use_and_be_interrupted(self) -> None:
        """What the main thread does, which is the one that handles signals."""
        while not self.engine.closed and not self.problems:
            try:
                self.interruptible = True
                self.call(self.random.choice(list(METHODS)), "thread")
                self.interruptible = False
            except KeyboardInterrupt:
                self.seen["interrupted"] += 1
            self.calls_left -= 1

    def run(self) -> None:
        before = len(os.listdir("/proc/self/task"))
        before -= self.engine.threads
        threads = [
            *(threading.Thread(target=self.use) for _ in range(self.random.randrange(1, 4))),
            *(threading.Thread(target=self.close) for _ in range(self.closers)),
        ]
        signal.signal(signal.SIGALRM, self.interrupt)
        interval = self.random.uniform(0.0003, 0.003)
        for thread in threads:
            thread.start()
        signal.setitimer(signal.ITIMER_REAL, interval, interval)
        self.use_and_be_interrupted()
        for thread in threads:
            thread.join()
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_IGN)
        self.engine.close()
        assert not self.problems, self.problems
        assert self.engine.state.left + self.engine.state.right == 1000
        assert self.engine.stats.events >= 0
        gc.collect()
        while len(os.listdir("/proc/self/task")) > before:
            time.sleep(0.001)  # a thread is listed for a moment after it was joined


class Finaliser:
    """Garbage in a cycle, which the collector finds in the middle of something."""

    def __init__(self, of: Round) -> None:
        self.of = of
        self.cycle = self

    def __del__(self) -> None:
        self.of.aside("finaliser")


def main(rounds: int, seed: int) -> None:
    gc.set_threshold(100)
    seen: Counter[str] = Counter()
    for number in range(seed, seed + rounds):
        faulthandler.dump_traceback_later(60, exit=True)
        print("round", number, file=sys.stderr)
        one = Round(number)
        one.run()
        seen += one.seen
    faulthandler.cancel_dump_traceback_later()
    for what, times in sorted(seen.items()):
        print(times, what)
    print("well")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))

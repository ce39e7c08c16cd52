"""Closing an engine that others use, in the middle of whatever they do."""

from __future__ import annotations

import contextlib
import functools
import subprocess
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from conftest import partial_of
from support import processes
from support.engine.spinning import endless, spin_down, transfer

import specstream as ss

pytestmark = pytest.mark.slow


def test_anybody_may_close_an_engine_in_the_middle_of_anything() -> None:
    """In a process of its own: what is looked for ends it, or hangs."""
    done = subprocess.run(
        processes.command("support.engine.closing_driver", 15, 1),
        env=processes.environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("well\n"), done.stdout
    seen = Counter({what: int(times) for times, what in pairs(done.stdout)})
    for who in ("thread", "hook", "signal handler", "finaliser"):
        assert any(what.endswith(who) for what in seen), f"no call by a {who}: it proves nothing"
    assert seen["interrupted"] > 0


def pairs(output: str) -> list[tuple[str, str]]:
    """Lines of a number and what was counted."""
    return [tuple(line.split(" ", 1)) for line in output.splitlines()[:-1]]  # type: ignore[misc]


def test_closing_that_is_interrupted_at_its_end_has_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = ss.Engine(transfer, threads=2, horizon=2, chunk=1)
    native = engine.parts.native
    free = native.free

    def interrupted() -> None:
        free()
        raise KeyboardInterrupt

    monkeypatch.setattr(native, "free", interrupted)
    with pytest.raises(KeyboardInterrupt):
        engine.close()
    assert engine.closed
    engine.profile()
    engine.close()


def test_closing_waits_for_who_reads_the_state() -> None:
    """The reader has no part in the batch, and no lock: it only waits for the turn."""
    for _ in range(5):
        engine = ss.Engine(transfer, threads=2, horizon=4, chunk=1)
        reading = threading.Barrier(4)
        sums: list[int] = []

        def run(engine: ss.Engine = engine) -> None:
            with contextlib.suppress(ss.EngineClosedError):
                while not engine.closed:
                    engine.process({"x": [1] * 20_000})

        def read(engine: ss.Engine = engine, reading: Any = reading, sums: Any = sums) -> None:
            _ = engine.state
            reading.wait()
            while not engine.closed:
                view = engine.state
                sums.append(view.n)
            assert engine.state.left + engine.state.right == 1000

        threads = [threading.Thread(target=use) for use in (run, read, read, read)]
        for thread in threads:
            thread.start()
        reading.wait()
        engine.close()
        assert engine.parts.lifetime.closed
        for thread in threads:
            thread.join()


@pytest.mark.parametrize("execution", ["ordered", "log_free", "locked"])
def test_closing_ends_an_event_that_never_ends(execution: Any) -> None:
    engine = ss.Engine(endless, threads=2, execution=execution)
    raised: list[Exception] = []

    def run() -> None:
        try:
            engine.process({"x": [-1, -1]})
        except ss.EngineClosedError as error:
            raised.append(error)

    runner = threading.Thread(target=run, daemon=True)
    runner.start()
    while engine.parts.native.is_idle():
        assert runner.is_alive()
    # Where it does not end, the test is to: hence a thread.
    closer = threading.Thread(target=engine.close, daemon=True)
    closer.start()
    for thread in (closer, runner):
        thread.join(60)
        assert not thread.is_alive(), "the event goes on"
    partial = partial_of(raised[0])
    assert (partial.consumed, partial.output.num_rows) == (0, 0)
    assert engine.stats.events == 0


@functools.cache
def of_another_engine() -> Any:
    """A savepoint, which is not told from the engine's own before the engine may be used."""
    with ss.Engine(spin_down, horizon=0) as engine:
        return engine.savepoint()


USES: dict[str, Callable[[ss.Engine], object]] = {
    "process": lambda engine: engine.process({"x": [1]}),
    "submit": lambda engine: engine.submit({"t": [1], "x": [1]}, order_by="t"),
    "submit_event": lambda engine: engine.submit_event(1, x=1),
    "advance": lambda engine: engine.advance(0, 5),
    "poll": lambda engine: engine.poll(),
    "poll_rows": lambda engine: engine.poll_rows(),
    "late": lambda engine: engine.late(),
    "rejected_rows": lambda engine: engine.rejected_rows(),
    "failed_events": lambda engine: engine.failed_events(),
    "snapshot": lambda engine: engine.snapshot(),
    "restore": lambda engine: engine.restore(b""),
    "savepoint": lambda engine: engine.savepoint(),
    "rollback": lambda engine: engine.rollback(of_another_engine()),
    "state": lambda engine: engine.state,
    "close": lambda engine: engine.close(),
    "with": lambda engine: engine.__exit__(None, None, None),
}
LOOKS: dict[str, Callable[[ss.Engine], object]] = {
    "stats": lambda engine: engine.stats,
    "profile": lambda engine: engine.profile(),
    "conflicts_by_vertex": lambda engine: engine.conflicts_by_vertex(),
    "closed": lambda engine: engine.closed,
    "repr": repr,
}


def test_all_that_an_engine_can_do_is_tried_in_hooks() -> None:
    of_the_engine = {name for name in vars(ss.Engine) if not name.startswith("_")}
    of_the_engine -= {"durable", "parts", "process_whole", "poll_whole"}  # of our own rooms
    of_the_engine -= {"mark", "rewind", "bad_rows"}  # old names
    # Of engines with early results, which take no hooks.
    of_the_engine -= {"poll_early", "confirm", "revise", "retract"}
    assert of_the_engine == (USES.keys() | LOOKS.keys()) - {"with", "repr"}


@pytest.mark.parametrize("submitted", [False, True], ids=["batch", "submitted"])
@pytest.mark.parametrize("kind", ["on_commit", "on_post_commit", "on_abort"])
def test_a_hook_may_look_at_figures_and_is_told_that_it_may_do_nothing_else(
    kind: str, submitted: bool
) -> None:
    of_another_engine()  # not made by a hook
    told: dict[str, str] = {}
    looked: list[str] = []
    again: list[int] = []

    def hook(notification: ss.Notification) -> None:
        for name, use in USES.items():
            try:
                use(engine)
                told[name] = "nothing"
            except ss.SpecstreamError as error:
                told[name] = str(error)
        for name, look in LOOKS.items():
            look(engine)
            looked.append(name)

    def abort_once(notification: ss.Notification) -> None:
        if not again:
            again.append(1)
            raise ss.Abort

    hooks: dict[str, Any] = {"on_commit": abort_once, kind: hook}
    with ss.Engine(spin_down, threads=2, horizon=2, chunk=1, **hooks) as engine:
        if submitted:
            engine.submit({"t": [1], "x": [1]}, order_by="t", ordered=True)
            output = engine.poll(timeout=None)
        else:
            output = engine.process({"x": [1]})
        assert output.num_rows == 1
        assert not engine.closed
    assert told.keys() == USES.keys()
    assert all("waits for the hook" in message for message in told.values()), told
    assert set(looked) == set(LOOKS)


def test_an_engine_that_its_own_hook_was_the_last_to_hold_is_gone() -> None:
    """Its end has to wait for the hook, which therefore cannot be who waits."""
    gone = threading.Event()
    entered, let_go = threading.Event(), threading.Event()

    def hook(notification: ss.Notification) -> None:
        held = list(holder)
        entered.set()
        assert let_go.wait(60)
        del held[:]

    class Watched(ss.Engine):
        def close(self) -> None:
            super().close()
            gone.set()

    engine = Watched(spin_down, threads=1, on_commit=hook)
    holder = [engine]
    engine.submit({"t": [1], "x": [1]}, order_by="t", ordered=True)
    assert entered.wait(60)
    del holder[:], engine
    let_go.set()
    assert gone.wait(60)

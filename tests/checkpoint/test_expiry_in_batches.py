"""Entries that expire after a duration, across micro-batches: over a restart, and replayed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.engine.timed import Expiring, Model, cuts, stream

import specstream as ss
from specstream.checkpoint.inspect.replay import replay


class State(ss.State):
    last = ss.dict(str, int, expire_after="5 minutes")
    seen = ss.set(str, expire_after="11 minutes")


def act(state, event, emit):  # type: ignore[no-untyped-def]
    emit(event.user, event.user in state.last, event.user in state.seen, len(state.last))
    if event.act < 5:
        state.last[event.user] = event.act
    elif event.act < 9:
        state.seen.add(event.user)


lasting = ss.operator(
    state=State,
    event={"user": str, "act": int},
    emits={"user": str, "a": bool, "b": bool, "n": int},
)(act)


@pytest.mark.parametrize("watermark", [None, "6 minutes"])
def test_runs_over_a_restart_and_is_replayed(tmp_path: Path, watermark: str | None) -> None:
    table = stream(3, 200)
    rng = np.random.default_rng(3)
    if watermark is not None:
        late = np.argsort(table["t"].to_numpy() + rng.uniform(0, 6, len(table)), kind="stable")
        came = table.take(pa.array(late))
        table = came.take(pa.array(np.argsort(came["t"].to_numpy(), kind="stable")))
    else:
        came = table
    minutes = pa.array(came["t"].to_numpy() * 60_000_000).cast(pa.timestamp("us", "UTC"))
    came = came.set_column(0, "t", minutes)
    model = Model(act, act, last=Expiring(5), seen=Expiring(11))
    for sequence, row in enumerate(table.select(["t", "user", "act"]).to_pylist()):
        model.event(row.pop("t"), 0, sequence, **row)

    batches: dict[int, pa.Table] = {}
    # The first batch may commit nothing, or have no rows; the unit is settled all the same.
    pieces = [(0, 1), *((1 + first, 1 + last) for first, last in cuts(rng, len(came) - 1, 5))]
    for start in (0, 3):
        engine = ss.Engine(lasting, threads=2, horizon=4, chunk=2)
        fed = Fed(
            engine,
            to=lambda rows, batch_id: batches.__setitem__(batch_id, rows),
            order_by="t",
            watermark=watermark,
            checkpoint=str(tmp_path),
            keep_batches=20,
        )
        for number in range(start, start + 3):
            begin, end = pieces[number]
            fed.send(number, came.slice(begin, end - begin))
        if start == 0:
            wrong = came.slice(0, 1).set_column(0, "t", minutes.slice(0, 1).cast(pa.int64()))
            with pytest.raises(ss.InputError):
                fed.send(3, wrong)
        elif watermark is not None:
            fed.runner.finish()
        assert engine.parts.committed.knows_times
        if start == 3:
            assert list(engine.state.last.items()) == list(model.state.last.items())
            assert list(engine.state.seen) == list(model.state.seen)
        fed.close()
    found = [tuple(row.values()) for at in sorted(batches) for row in batches[at].to_pylist()]
    assert found == [row[3:] for row in model.rows]
    for number in range(6):
        again = replay(str(tmp_path), number)
        assert again.error is None
        assert again.difference is None


def test_a_replay_refuses_what_the_batch_has_refused(tmp_path: Path) -> None:
    engine = ss.Engine(lasting)
    fed = Fed(
        engine,
        to=lambda rows, batch_id: None,
        order_by="t",
        checkpoint=str(tmp_path),
        keep_batches=5,
    )
    times = pa.array([1, 2], pa.timestamp("us"))
    rows = pa.table({"t": times, "user": ["a", "b"], "act": [1, 2]})
    fed.send(0, rows)
    with pytest.raises(ss.InputError, match="counts in units of 1 ns"):
        fed.send(1, rows.set_column(0, "t", times.cast(pa.timestamp("ns"))))
    fed.close()
    again = replay(str(tmp_path), 1)
    assert isinstance(again.error, ss.InputError)
    assert again.difference is None

"""A query that is started again from its checkpoint with other options: as before, or refused."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.checkpoint.fed import Fed
from support.daily import share_of

import specstream as ss
from specstream.checkpoint.format.file_format import CheckpointFile
from specstream.checkpoint.format.settings import check_settings
from specstream.checkpoint.run.checkpoint import Checkpoint

BATCHES, ROWS, DISORDER = 5, 4, 3


class Seen(ss.State):
    hash = ss.scalar(int)


def chained(state, event, emit):
    # Every order of the same events gives another hash.
    state.hash = state.hash * 6364136223846793005 + event.x
    emit(event.x, state.hash)


def operator(name: str) -> ss.Operator:
    return ss.operator(
        state=Seen, event={"x": int}, emits={"x": int, "hash": int}, name=name
    )(chained)  # fmt: skip


chain = operator("chain")


def rows_of(batch_id: int) -> pa.Table:
    """Events that are at most DISORDER too late, of two sources in turn."""
    x = np.arange(batch_id * ROWS, (batch_id + 1) * ROWS)
    time = x ^ 3
    return pa.table({"time": time, "other": time, "x": x, "origin": [f"{v % 2}" for v in x]})


def everything() -> pa.Table:
    return pa.concat_tables(map(rows_of, range(BATCHES)))


# Decide the answer, each with another value.
DECISIVE: dict[str, tuple[Any, Any]] = {
    "order_by": ("time", "other"),
    "source": (None, "origin"),
    "watermark": (DISORDER, None),
    "seed": (0, 1),
    "operator": (chain, operator("another")),
}
# Do not, as long as nothing is late.
FREE: dict[str, list[Any]] = {
    "watermark": [DISORDER, DISORDER + 4, 2 * ROWS * BATCHES],
    "idle_timeout": [None, 3 * DISORDER],
    "late": [None, "error", "drop"],
    "keep_batches": [0, 2],
    "prefetch": [False, True],
    "threads": [1, 2],
    "horizon": [0, 4],
    "rejected_rows": ["error", "side"],
    "sources": [(), ("0",), ("1", "0")],
}
FIXED = {"order_by": "time", "source": "origin", "watermark": DISORDER}


class Life:
    """One process of a query, up to its end."""

    def __init__(self, checkpoint: Path, output: list[pa.Table], **options: Any) -> None:
        of_engine = {"seed", "threads", "horizon", "rejected_rows"} & set(options)
        self.engine = ss.Engine(
            options.pop("operator", chain),
            **{"horizon": 0, **{option: options.pop(option) for option in of_engine}},
        )
        try:
            self.feed = Fed(
                self.engine,
                to=lambda table, batch_id: output.append(table),
                checkpoint=checkpoint,
                **options,
            )
        except BaseException:
            self.engine.close()
            raise

    def __enter__(self) -> Any:
        return self.feed

    def __exit__(self, *error: object) -> None:
        self.feed.close()


LIVES = st.lists(
    st.fixed_dictionaries({option: st.sampled_from(FREE[option]) for option in FREE}),
    min_size=BATCHES,
    max_size=BATCHES,
)


@pytest.mark.slow
@settings(max_examples=share_of(30))
@given(lives=LIVES)
def test_options_that_may_change_do_not_change_the_answer(
    tmp_path_factory: pytest.TempPathFactory, lives: list[dict[str, Any]]
) -> None:
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    output: list[pa.Table] = []
    for batch_id, options in enumerate(lives):
        with Life(checkpoint, output, **{**FIXED, **options}) as feed:
            feed.apply(batch_id, rows_of(batch_id))
            if batch_id == BATCHES - 1:
                feed.runner.finish()
    expected = chain.run_sequential(everything(), order_by="time", source="origin").output
    assert pa.concat_tables(output).equals(expected)


@pytest.mark.parametrize("option", DECISIVE)
@pytest.mark.parametrize("back", [False, True])
def test_options_that_decide_the_answer_do_not_change(
    tmp_path: Path, option: str, back: bool
) -> None:
    values = DECISIVE[option][::-1] if back else DECISIVE[option]
    before, after = ({**FIXED, option: value} for value in values)
    output: list[pa.Table] = []
    with Life(tmp_path, output, **before) as feed:
        feed.apply(0, rows_of(0))
    written = sorted(path.name for path in tmp_path.iterdir())
    with pytest.raises(ss.SnapshotError) as raised:
        Life(tmp_path, output, **after)
    message = str(raised.value)
    assert str(tmp_path) in message
    assert option in message
    if option == "watermark":
        was, now = ("no", "one") if back else ("a", "none")
        assert f"there was {was} watermark= and now there is {now}: start" in message
    for value in values if option != "watermark" else ():
        shown = value.name if isinstance(value, ss.Operator) else value
        assert repr(shown) in message
    assert sorted(path.name for path in tmp_path.iterdir()) == written
    with Life(tmp_path, output, **before) as feed:  # nothing of the checkpoint has changed
        feed.apply(1, rows_of(1))
    undisturbed: list[pa.Table] = []
    with Life(tmp_path / "undisturbed", undisturbed, **before) as feed:
        for batch_id in (0, 1):
            feed.apply(batch_id, rows_of(batch_id))
    assert pa.concat_tables(output).equals(pa.concat_tables(undisturbed))


def test_options_are_in_full_files_and_increments_and_may_be_in_none(tmp_path: Path) -> None:
    with ss.Engine(chain, horizon=0) as engine:  # as before they were recorded
        checkpoint = Checkpoint(engine, tmp_path)
        checkpoint.record("q", 0, engine.process(rows_of(0)))
        checkpoint.close()
    with Life(tmp_path, [], order_by="time") as feed:
        feed.apply(1, rows_of(1))
    with pytest.raises(ss.SnapshotError, match="order_by was 'time' and is now 'other'"):
        Life(tmp_path, [], order_by="other")
    recorded = [
        CheckpointFile.from_bytes(path.read_bytes()).named("settings")
        for path in sorted(tmp_path.glob("0*"))
    ]
    assert [each is not None for each in recorded] == [False, True]


def test_a_first_batch_that_was_not_recorded_settles_nothing(tmp_path: Path) -> None:
    with Life(tmp_path, [], order_by="time") as feed, pytest.raises(ss.InputError):
        feed.apply(0, rows_of(0).drop_columns("x"))
    output: list[pa.Table] = []
    with Life(tmp_path, output, order_by="other") as feed:
        feed.apply(0, rows_of(0))
    assert output[0].num_rows == ROWS


@pytest.mark.parametrize("recorded", [b"", b"{", b"[]", b"\xff", b"null", b'"seed"'])
def test_a_record_that_is_none_is_told(recorded: bytes) -> None:
    with pytest.raises(ss.SnapshotError, match="checkpoint: the record of its options is none"):
        check_settings(recorded, {"seed": 1}, "checkpoint", "start as before")

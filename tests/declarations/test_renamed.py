"""Old names work for one release, and say what the new one is."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import specstream as ss
from specstream.declarations.deprecated import GONE_WITH, NEXT_GONE_WITH


class Seen(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int}, emits={"n": int})
def count(state, event, emit):
    state.n += 1
    emit(state.n)


def test_the_old_names_of_savepoint_and_rollback() -> None:
    with ss.Engine(count, horizon=0) as engine:
        with pytest.warns(DeprecationWarning, match=r"Engine\.savepoint\(\).* 0\.3$") as told:
            mark = engine.mark()
        assert told[0].filename == __file__
        engine.process({"x": [1, 2]})
        with pytest.warns(DeprecationWarning, match=r"Engine\.rollback\(\)"):
            engine.rewind(mark)
        assert engine.state.n == 0


def test_the_old_name_of_what_is_restored() -> None:
    with ss.Engine(count, horizon=0) as engine:
        engine.process({"x": [1, 2]})
        snapshot = engine.snapshot()
        engine.process({"x": [3]})
        with pytest.warns(DeprecationWarning, match=r"restore\(snapshot=\)") as told:
            engine.restore(image=snapshot)
        assert told[0].filename == __file__
        assert engine.state.n == 2
        engine.restore(snapshot=snapshot)
        with pytest.raises(ss.SnapshotError, match="0 bytes"):
            engine.restore()


def test_the_old_names_of_rejected_rows() -> None:
    rows: dict[str, Any] = {"x": [1, None]}
    with pytest.warns(DeprecationWarning, match=r"rejected_rows=") as told:
        engine = ss.Engine(count, horizon=0, bad_rows="side")
    assert told[0].filename == __file__
    with engine:
        engine.process(rows)
        with pytest.warns(DeprecationWarning, match=r"stats\.rejected_rows"):
            assert engine.stats.bad_rows == engine.stats.rejected_rows == 1
        assert engine.stats.to_dict()["bad_rows"] == 1
        with pytest.warns(DeprecationWarning, match=r"Engine\.rejected_rows\(\)"):
            rejected = engine.bad_rows()
    with pytest.warns(DeprecationWarning, match="rejected_rows="):
        sequential = count.run_sequential(rows, bad_rows="side")
    with pytest.warns(DeprecationWarning, match=r"SequentialRun\.rejected_rows"):
        assert sequential.bad_rows is not None
    assert sequential.rejected_rows is not None
    assert rejected is not None
    assert rejected.equals(sequential.rejected_rows)


@contextmanager
def both_names() -> Iterator[None]:
    """The old name is warned of, and the call is refused."""
    with (
        pytest.warns(DeprecationWarning, match="is now called"),
        pytest.raises(ss.ConfigurationError, match="both are given"),
    ):
        yield


def test_old_and_new_name_of_an_option_are_not_both_given() -> None:
    for policy in ("side", "error"):
        both: dict[str, Any] = {"rejected_rows": policy, "bad_rows": "side"}
        with both_names():
            ss.Engine(count, horizon=0, **both)
        with both_names():
            count.run_sequential({"x": [1]}, **both)
    with ss.Engine(count, horizon=0) as engine:
        snapshot = engine.snapshot()
        with both_names():
            engine.restore(snapshot, image=snapshot)


def test_the_old_names_of_sinks() -> None:
    for name in ss.sinks.__all__:
        with pytest.warns(DeprecationWarning, match=rf"ss\.sinks\.{name}; .* 0\.4$") as told:
            assert getattr(ss.spark, name) is getattr(ss.sinks, name)
        assert told[0].filename == __file__
    with pytest.warns(DeprecationWarning, match=r"ss\.spark\.parquet_sink is now called"):
        from specstream.spark import parquet_sink
    assert parquet_sink is ss.sinks.parquet_sink


@pytest.mark.parametrize("with_", [GONE_WITH, NEXT_GONE_WITH])
def test_the_version_that_old_names_go_with_has_not_come(with_: str) -> None:
    here, goes = (
        tuple(int(part) for part in version.split(".")[:2]) for version in (ss.__version__, with_)
    )
    assert here < goes, "take the old names out, or name a later version"

"""Durability is not Spark's: checkpoints, sinks and sources run without PySpark."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

BLOCKED = """
    import sys
    sys.modules["pyspark"] = sys.modules["py4j"] = None
"""


def run(code: str, *arguments: str) -> str:
    """What a process prints that has no PySpark."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(BLOCKED) + textwrap.dedent(code), *arguments],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


@pytest.mark.parametrize(
    ("room", "some"),
    [
        ("checkpoint", {"run.batch_runner", "run.checkpoint", "run.prefetch", "inspect.replay"}),
        ("sinks", {"compaction", "delta", "memory", "parquet", "postgres"}),
        ("sources", {"datasets", "jetstream", "kafka", "running"}),
    ],
)
def test_every_module_of_the_room_is_imported_without_pyspark(room: str, some: set[str]) -> None:
    code = """
        import importlib, pkgutil
        room = importlib.import_module(f"specstream.{sys.argv[1]}")
        for module in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            importlib.import_module(module.name)
            print(module.name.removeprefix(f"{room.__name__}."))
        assert not [name for name in sys.modules if name.startswith("specstream.spark")]
    """
    assert some <= set(run(code, room).split())


@pytest.mark.slow
def test_a_stream_is_run_recorded_continued_and_replayed_without_pyspark(tmp_path: Path) -> None:
    module = tmp_path / "sums.py"
    module.write_text(
        textwrap.dedent(
            """
            import specstream as ss

            class Seen(ss.State):
                total = ss.scalar(int)

            @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
            def sums(state, event, emit):
                state.total += event.x
                emit(state.total)
            """
        )
    )
    code = """
        sys.path.insert(0, sys.argv[1])
        import pyarrow as pa
        import specstream as ss
        from specstream.checkpoint.run.batch import Batch
        from specstream.checkpoint.run.batch_runner import BatchRunner
        from specstream.checkpoint.run.prefetch import Prefetch
        from specstream.checkpoint.inspect.replay import replay
        from specstream.checkpoint.run.stream_options import StreamOptions
        from sums import sums

        checkpoint = sys.argv[1] + "/checkpoint"
        options = StreamOptions(
            to=lambda rows, batch_id: print(batch_id, rows["total"].to_pylist()),
            checkpoint=checkpoint, keep_batches=9, prefetch=True, order_by="x",
        )
        for start in (0, 2):
            with ss.Engine(sums, threads=2, horizon=2) as engine:
                runner = BatchRunner(engine, options)
                prefetch = Prefetch(runner)
                for batch_id in (start, start + 1):
                    prefetch.take(Batch(batch_id, "q", pa.table({"x": [batch_id, 1]})))
                prefetch.wait()
                runner.close()
                runner.checkpoint.close()
        print(replay(checkpoint, 3).difference)
    """
    assert run(code, str(tmp_path)).splitlines() == [
        "0 [0, 1]",
        "1 [2, 3]",
        "2 [4, 6]",
        "3 [7, 10]",
        "None",
    ]

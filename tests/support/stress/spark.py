"""Kills a streaming query at random instants and counts what it has lost: ``make stress-spark``.

One stream is started again after each kill, until it comes to its end; then another one begins.
Most kills fall among the micro-batches, some before the first one, while files are read. What
Spark and the checkpoint have on disk afterwards tells what a kill has cut short.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from support.spark import crash_driver
from support.spark.crash_driver import begin, end

FILES, ROWS = 120, 400
EARLY = 0.15  # of the kills
EARLY_SECONDS = 8.0
BATCH_SECONDS = 2.5
# Long, because a busy machine is no finding.
STUCK_SECONDS = 900


def wait_for_a_batch(process: subprocess.Popen[bytes], directory: Path) -> None:
    """Returns when the process has brought a batch forward, or has ended."""

    def progress() -> tuple[int, ...]:
        names = ("calls", "batches")
        return tuple(
            (directory / name).stat().st_size if (directory / name).exists() else 0
            for name in names
        )

    before, since = progress(), time.monotonic()
    while process.poll() is None and progress() == before:
        if time.monotonic() - since > STUCK_SECONDS:
            raise TimeoutError(f"no batch in {STUCK_SECONDS} s: {directory}/errors")
        time.sleep(0.002)


def cut_short(directory: Path) -> str:
    """What a kill has interrupted."""

    def last(path: Path) -> int:
        return max((int(name.name[:10]) for name in path.glob("[0-9]*")), default=-1)

    begun, acknowledged = (last(directory / "spark" / name) for name in ("offsets", "commits"))
    if begun == acknowledged:
        return "between two batches"
    recorded = last(directory / "recorded") == begun
    return "in flight, recorded" if recorded else "in flight, not recorded"


def one_life(directory: Path, kill: bool, chance: random.Random) -> str:
    """Starts the query; "killed", or "end" if it came to its end."""
    process = begin(directory)
    try:
        if kill:
            if chance.random() < EARLY:
                delay = chance.uniform(0, EARLY_SECONDS)
            else:
                wait_for_a_batch(process, directory)
                delay = chance.uniform(0, BATCH_SECONDS)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            process.kill()  # nothing, where it has ended
        process.wait(STUCK_SECONDS)
    finally:
        process.kill()
        status = end(process)
    if status == 0:
        return "end"
    if status != -signal.SIGKILL:
        raise RuntimeError((directory / "errors").read_text()[-4000:])
    return "killed"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=100, help="kills (default 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--pipelines",
        action="store_true",
        help="every stream is of a pipeline with two sinks, not every third one",
    )
    options = parser.parse_args()
    chance = random.Random(options.seed)
    kills, streams, wrong = 0, 0, 0
    cut: Counter[str] = Counter()
    while kills < options.count:
        with tempfile.TemporaryDirectory(prefix="stress-spark-") as scratch:
            directory = Path(scratch)
            seed = chance.randrange(1000)
            # Every second stream with a watermark, every third of a pipeline with two sinks; of
            # those of both every second one takes all events of a time together.
            crash_driver.write_events(
                directory / "events",
                FILES,
                ROWS,
                seed,
                watermark=streams % 2 == 1,
                pipeline=options.pipelines or streams % 3 == 2,
                phases="time" if streams % 12 == 5 else "event",
            )
            while one_life(directory, kills < options.count, chance) == "killed":
                kills += 1
                cut[cut_short(directory)] += 1
                print(f"{kills} of {options.count} kills: {dict(cut)}", flush=True)
            streams += 1
            found = crash_driver.compare(directory)
            wrong += any(found.values())
            print(f"stream {streams}: {kills} kills so far; {found}", flush=True)
    in_flight = sum(count for what, count in cut.items() if what.startswith("in flight"))
    print(f"{kills} kills, {in_flight} of them in flight; {streams} streams, {wrong} of them wrong")
    # Kills that hit nothing prove nothing.
    return 1 if wrong or 2 * in_flight < kills else 0


if __name__ == "__main__":
    sys.exit(main())

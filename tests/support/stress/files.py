"""Gives every reader of bytes crafted ones, by the hundred thousand: ``make stress-files``.

The readers run in processes of their own, with the native runtime under AddressSanitizer and all of
Python's, NumPy's and Arrow's memory in its allocator. An input is made of the seed, the reader's
name and a number alone, so that one that kills its process, hangs, or raises what is not
specstream's own is found again by ``--only NAME --first NUMBER --count 1 --seed SEED``.
"""

from __future__ import annotations

import argparse
import faulthandler
import mmap
import random
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path

from support import processes
from support.stress import sanitizers

# A hang is one that no busy machine explains.
STUCK_SECONDS = 300
NUMBER = slice(0, 8)
TAKEN = slice(8, 16)
WRONG = 3  # exit status: a finding that was told


def work(arguments: argparse.Namespace) -> int:
    """Tries inputs, one after the other; where it is stands in a file that outlives it."""
    faulthandler.enable()
    from support.checkpoint import readers

    with open(arguments.progress, "r+b") as file:
        progress = mmap.mmap(file.fileno(), 16)
    taken = 0
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        reader = readers.make(arguments.only, Path(directory))
        for number in range(arguments.first, arguments.first + arguments.count):
            progress[NUMBER] = number.to_bytes(8, "little")
            faulthandler.dump_traceback_later(STUCK_SECONDS, exit=True)
            try:
                taken += reader.attempt(
                    random.Random(f"{arguments.only} {arguments.seed} {number}")
                )
            except Exception:
                print(traceback.format_exc())
                return WRONG
            progress[TAKEN] = taken.to_bytes(8, "little")
        reader.close()
    return 0


def try_all(name: str, arguments: argparse.Namespace, progress: Path) -> int:
    """Runs one reader's inputs, on after each that ends its process; how many those are."""
    first, last, wrong, taken = arguments.first, arguments.first + arguments.count, 0, 0
    began = time.monotonic()
    while first < last:
        progress.write_bytes(bytes(16))
        command = processes.command("support.stress.files", "--work", progress, "--only", name)
        command += ["--seed", str(arguments.seed), "--first", str(first)]
        command += ["--count", str(last - first), "--directory", str(arguments.directory)]
        done = subprocess.run(
            command,
            env=sanitizers.environment("address", arguments.address),
            capture_output=True,
            text=True,
        )
        content = progress.read_bytes()
        taken += int.from_bytes(content[TAKEN], "little")
        if done.returncode == 0:
            break
        number = int.from_bytes(content[NUMBER], "little")
        wrong += 1
        print(f"{name}, seed {arguments.seed}, input {number}: status {done.returncode}")
        said = (done.stdout + done.stderr).strip().split("\n")
        said = [line for line in said if line and not line.startswith("Extension modules: ")]
        print("\n".join(said[-arguments.lines :]))
        sys.stdout.flush()
        first = number + 1
        if wrong >= arguments.findings:
            break
    seconds = time.monotonic() - began
    print(f"{name}: {arguments.count} inputs in {seconds:.0f} s, {taken} taken, {wrong} wrong")
    sys.stdout.flush()
    return wrong


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=25_000, help="inputs for each reader")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--only", help="one reader's name")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--address", type=Path, help="where the package is, built with ASan")
    parser.add_argument("--directory", default="/dev/shm" if Path("/dev/shm").is_dir() else None)
    parser.add_argument("--findings", type=int, default=10, help="stop a reader after so many")
    parser.add_argument("--lines", type=int, default=40, help="shown of what a worker has said")
    parser.add_argument("--work", dest="progress", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.progress:
        return work(arguments)
    if arguments.address:
        arguments.address = arguments.address.resolve()
    from support.checkpoint.readers import NAMES

    with tempfile.NamedTemporaryFile() as progress:
        wrong = sum(
            try_all(name, arguments, Path(progress.name))
            for name in NAMES
            if arguments.only in (None, name)
        )
    print(f"seed {arguments.seed}: {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

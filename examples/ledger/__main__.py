"""``python -m examples.ledger FILE``: transfers as a Parquet file, to run the ledger on."""

from __future__ import annotations

import argparse
from pathlib import Path

import pyarrow.parquet

from examples.ledger.ledger import events
from specstream.files.writing import writing


def main() -> None:
    """Writes the file and says how to go on."""
    parser = argparse.ArgumentParser(prog="python -m examples.ledger", description=__doc__)
    parser.add_argument("file", type=Path, metavar="FILE", help="the Parquet file to write")
    parser.add_argument("--count", type=int, default=200_000, help="of transfers; 200,000")
    parser.add_argument("--seed", type=int, default=7, help="of the random numbers; 7")
    arguments = parser.parse_args()
    if arguments.count < 1:
        parser.error(f"--count {arguments.count}: at least 1 transfer")
    with writing(arguments.file):
        pyarrow.parquet.write_table(events(arguments.count, arguments.seed), arguments.file)
    print(f"{arguments.count:,} transfers in {arguments.file}")


if __name__ == "__main__":
    main()

"""``python -m bench micro [OPTION ...]``: with options of pytest and of pytest-benchmark."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


def main() -> int:
    """Runs the benchmarks of this folder."""
    shown = ["--benchmark-only", "--benchmark-columns=min,median,iqr,rounds", "-q"]
    return pytest.main([str(Path(__file__).parent), *shown, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())

"""``python -m bench catalogue``: writes the part about operators of docs/catalogue.md.

Its pictures are drawn with all others, by ``python -m bench pictures``.
"""

from __future__ import annotations

import argparse
import sys

from bench.catalogue.page import PAGE, page
from bench.catalogue.pictures import CAPTIONS


def main() -> int:
    """Writes the page."""
    argparse.ArgumentParser(prog="python -m bench catalogue", description=__doc__).parse_args()
    PAGE.write_text(page(CAPTIONS))
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""``python -m bench.catalogue``: writes the part about operators of docs/catalogue.md.

Its pictures are drawn with all others, by ``python -m bench.pictures``.
"""

from __future__ import annotations

from bench.catalogue.page import PAGE, page
from bench.catalogue.pictures import CAPTIONS

if __name__ == "__main__":
    PAGE.write_text(page(CAPTIONS))

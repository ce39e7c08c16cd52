"""``python -m specstream.cli``, as ``specstream``."""

from specstream.cli import main

main()

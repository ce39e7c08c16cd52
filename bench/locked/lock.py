"""The one global lock."""

from specstream.locks import acquire, release

__all__ = ["GLOBAL", "acquire", "release"]

GLOBAL = 0

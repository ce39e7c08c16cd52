"""What an error says that comes while a file is written: which file, how far, what room is left.

The operating system's own error of a full disk has none of these, because a write knows no name.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path

__all__ = ["writing"]

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], length: int | None = None) -> Iterator[None]:
    """What is raised inside names the file, its directory and the bytes; it stays the same type.

    Args:
        path: the file, which need not be there.
        length: how long it is to be, in bytes, where that is known.

    >>> with writing("/dev/full", 12), open("/dev/full", "w") as file:
    ...     _ = file.write("twelve bytes")
    Traceback (most recent call last):
    OSError: [Errno 28] No space left on device (0 of 12 bytes are written): '/dev/full'
    """
    try:
        yield
    except OSError as error:
        path = Path(path)
        done = path.stat().st_size if path.exists() else 0
        found = f"{done:,}{'' if length is None else f' of {length:,}'} bytes are written"
        if error.errno in _NO_ROOM and path.is_file():
            room = os.statvfs(path.parent)
            free = room.f_bavail * room.f_frsize
            found += f", {free:,} are free in {str(path.parent)!r}; make room there"
        # Of Arrow's errors not all have a number.
        text = str(error) if error.errno is None else os.strerror(error.errno)
        raise OSError(error.errno or errno.EIO, f"{text} ({found})", str(path)) from error

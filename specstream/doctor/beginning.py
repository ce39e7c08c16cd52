"""What ``specstream doctor`` does before anything is imported that can end the process.

A damaged library crashes when it is loaded, and one that gets no memory or no threads may end the
process by itself. So a second process goes on, and the first one looks how that one ends.
"""

from __future__ import annotations

import os
import signal
import sys

__all__ = ["began", "begin", "is_asked_for", "is_command", "name_the_doctor"]

_NOTE = "`specstream doctor` says what is missing on this machine"
_USAGE = 2
_writer: int | None = None  # where the second process says that all is imported


def is_asked_for() -> bool:
    """Whether this process is ``specstream doctor``."""
    return sys.argv[1:2] == ["doctor"] and is_command()


def is_command() -> bool:
    """Whether this process is the command line of specstream."""
    by_name = os.path.basename(sys.argv[0]) == "specstream" if sys.argv else False
    return by_name or "specstream.cli" in sys.orig_argv


def name_the_doctor(error: BaseException) -> None:
    """Adds to an error of an import, once, who says what is missing."""
    note = _NOTE
    if isinstance(error, ModuleNotFoundError) and error.name == "specstream._native":
        sources = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        note = (
            f"specstream is imported from its sources in {sources}, and its C extension is not "
            f"built there: pip install -e {sources}, or run in another directory"
        )
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)


def begin() -> bool:
    """Starts the second process; true in the first one, if the second has crashed.

    In the second process, and in any that is not the doctor's, it is false.

    Raises:
        SystemExit: in the first process, when the second has ended by itself; with its status.
    """
    global _writer
    if not is_asked_for():
        return False
    reader, writer = os.pipe()
    try:
        child = os.fork()
    except OSError as error:
        sys.exit(f"specstream doctor: no process can be started: {error}: ulimit -u 1024")
    if child == 0:
        os.close(reader)
        _writer = writer
        # Without the traceback of an import: :func:`began` puts it back.
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        return False
    os.close(writer)
    # A terminal sends it to both, OpenBLAS to itself where it gets no threads.
    interrupts: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: interrupts.append(number))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if status == -signal.SIGTERM or interrupts:
        sys.exit(128 - status if status < 0 else status)
    if status in (0, _USAGE) or (status > 0 and os.read(reader, 1)):
        sys.exit(status)
    return True


def began() -> None:
    """Called by the second process: all is imported, and it tells itself what is wrong."""
    global _writer
    if _writer is not None:
        os.write(_writer, b"1")
        os.close(_writer)
        _writer = None
        signal.signal(signal.SIGINT, signal.default_int_handler)

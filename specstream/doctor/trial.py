"""Running a part of the package in a process of its own, which may crash, hang, or not start."""

from __future__ import annotations

import contextlib
import json
import os
import re
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

__all__ = ["TrialFailed", "attempt"]

# The module is the one that this process would import, wherever it was started.
_CODE = "import importlib, sys; sys.path[:] = {path!r}; importlib.import_module({module!r}).main()"

# The last line of a traceback, which notes may follow.
_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b")
# After so many seconds without a word something is said.
_PATIENCE = 10.0


class TrialFailed(Exception):
    """The process has not come to its end; the text says why."""


def attempt(module: str, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """What the ``main`` of a module prints, a JSON object; its other lines are for ``say``.

    Neither it nor what it has started is left running. No thread is needed, as there may be none.

    Raises:
        TrialFailed: it has raised or crashed, or took longer than ``seconds``.
        OSError: no process can be started.
    """
    code = _CODE.format(path=sys.path, module=module)
    last = ""
    with tempfile.TemporaryFile("w+", errors="replace") as errors:
        process = subprocess.Popen(
            [sys.executable, "-P", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            start_new_session=True,
        )
        try:
            for line in _lines(process, seconds, say):
                if line.startswith("{"):
                    last = line
                elif line.strip():
                    say(line.strip())
        finally:
            with contextlib.suppress(ProcessLookupError):  # of its session nobody is left
                os.killpg(process.pid, signal.SIGKILL)
            assert process.stdout is not None
            process.stdout.close()
            status = process.wait()
        errors.seek(0)
        lines = [line.strip() for line in errors if line.strip()] or ["nothing was said"]
    if status < 0:
        raise TrialFailed(f"crashed: {signal.Signals(-status).name}")
    if status or not last:
        raise TrialFailed(next(filter(_ERROR.match, reversed(lines)), lines[-1]))
    answer: dict[str, Any] = json.loads(last)
    return answer


def _lines(
    process: subprocess.Popen[bytes], seconds: float, say: Callable[[str], None]
) -> Iterator[str]:
    """The lines that a process prints, until it has ended.

    Raises:
        TrialFailed: it has not, after ``seconds``.
    """
    assert process.stdout is not None
    began = heard = time.monotonic()
    content = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while True:
            if selector.select(0.2):
                part = os.read(process.stdout.fileno(), 1 << 16)
                if not part:
                    break
                *lines, content = (content + part).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
                heard = time.monotonic()
            elif process.poll() is not None:
                break  # who still has the pipe is what it has started, and left
            now = time.monotonic()
            if now > began + seconds:
                raise TrialFailed(f"not done after {seconds:.0f} s")
            if now > heard + _PATIENCE:
                say(f"not done after {now - began:.0f} s, of {seconds:.0f}")
                heard = now
    try:
        process.wait(max(1.0, began + seconds - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise TrialFailed(f"not done after {seconds:.0f} s") from None

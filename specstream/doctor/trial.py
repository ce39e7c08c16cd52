"""Running a part of the package in a process of its own, which may crash, hang, or not start."""

from __future__ import annotations

import contextlib
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["TrialFailed", "attempt"]

# The module is the one that this process would import, wherever it was started.
_CODE = "import importlib, sys; sys.path[:] = {path!r}; importlib.import_module({module!r}).main()"

# The last line of a traceback, which notes may follow.
_ERROR = re.compile(r"[\w.]*(Error|Exception|Exit|Interrupt)\b")


class TrialFailed(Exception):
    """The process has not come to its end; the text says why."""


def attempt(module: str, seconds: float, say: Callable[[str], None]) -> dict[str, Any]:
    """What the ``main`` of a module prints, a JSON object; its other lines are for ``say``.

    Raises:
        TrialFailed: it has raised or crashed, or took longer than ``seconds``.
    """
    code = _CODE.format(path=sys.path, module=module)
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", code],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
    )
    late = threading.Event()

    def end() -> None:
        late.set()
        process.kill()

    errors: list[str] = []
    assert process.stdout is not None
    assert process.stderr is not None

    def read(stream: Iterable[str]) -> None:
        with contextlib.suppress(ValueError):  # closed, as the process was given up
            errors.extend(stream)

    reader = threading.Thread(target=read, args=(process.stderr,))
    reader.start()
    clock = threading.Timer(seconds, end)
    clock.start()
    last = ""
    try:
        with process:
            for line in process.stdout:
                if line.startswith("{"):
                    last = line
                elif line.strip():
                    say(line.strip())
    except BaseException:
        process.kill()
        raise
    finally:
        clock.cancel()
        reader.join(5)
    if late.is_set():
        raise TrialFailed(f"not done after {seconds:.0f} s")
    if process.returncode < 0:
        raise TrialFailed(f"crashed: {signal.Signals(-process.returncode).name}")
    if process.returncode or not last:
        told = [line.strip() for line in errors if line.strip()] or ["nothing was said"]
        raise TrialFailed(next(filter(_ERROR.match, reversed(told)), told[-1]))
    answer: dict[str, Any] = json.loads(last)
    return answer

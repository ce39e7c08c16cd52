"""Finding the Java runtime that Spark will start, before Spark does.

Spark's own answer to a missing or old Java is a stack trace from a child process, or none at all.
The rule here is Spark's: ``JAVA_HOME`` where it is set, otherwise ``java`` on ``PATH``.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from specstream.declarations.options import refuses_unknown
from specstream.errors import ConfigurationError

__all__ = ["Java", "NoJava", "find_java", "look_for_java"]

OLDEST = 17
# A Java on a file system that does not answer would keep the caller for ever.
SECONDS = 60
PATIENCE = 5
# Spark 4 resolves this module at start-up; runtimes cut down to a few modules lack it.
VECTOR_MODULE = "jdk.incubator.vector"
WAY_OUT = (
    "install Java 17 or 21 (on Debian or Ubuntu: apt-get install openjdk-17-jre-headless) "
    "or set JAVA_HOME to a full JDK of such a version"
)


@dataclass(frozen=True)
class NoJava:
    """Why there is no Java that Spark can use.

    Attributes:
        reason: what was looked at, and what is wrong with it.
        hint: what to do.
    """

    reason: str
    hint: str = WAY_OUT


@dataclass(frozen=True)
class Java:
    """A Java runtime that Spark can use.

    Attributes:
        executable: the ``java`` program.
        version: its feature release, 17 for "17.0.15".
    """

    executable: Path
    version: int


def parse_version(text: str) -> int | None:
    """The feature release in the output of ``java -version``, or None where there is none.

    >>> parse_version('openjdk version "17.0.15" 2025-04-15')
    17
    >>> parse_version('java version "1.8.0_392"')
    8
    """
    match = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(match.group(1)) if match else None


def _output(command: list[str], say: Callable[[str], None]) -> tuple[int, str]:
    """Exit status and output of a command, of which nothing is left running."""
    try:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
        )
    except OSError as error:
        return -1, str(error)
    try:
        patience = min(PATIENCE, SECONDS)
        try:
            output, _ = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            say(f"{command[0]} has not answered within {patience} s, and gets {SECONDS} s")
            output, _ = process.communicate(timeout=SECONDS - patience)
        return process.returncode, output.decode(errors="replace")
    except subprocess.TimeoutExpired:
        return -1, f"no answer within {SECONDS} s"
    finally:
        # A wrapper may have started the Java that hangs.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        assert process.stdout is not None
        process.stdout.close()
        process.wait()


def look_for_java(
    environment: Mapping[str, str] | None = None, say: Callable[[str], None] = lambda text: None
) -> Java | NoJava:
    """The Java runtime that Spark will start, checked, or why there is none.

    Args:
        environment: where ``JAVA_HOME`` and ``PATH`` are looked up; ``os.environ`` by default.
        say: is told what is waited for.
    """
    environment = os.environ if environment is None else environment
    on_path = shutil.which("java", path=environment.get("PATH", os.defpath))
    home = environment.get("JAVA_HOME")
    if not home:
        if on_path is None:
            return NoJava("Spark needs Java; JAVA_HOME is not set and there is no java on PATH")
        return _checked(Path(on_path), "found on PATH", say)
    found = _checked(Path(home) / "bin" / "java", f"JAVA_HOME={home}", say)
    if isinstance(found, NoJava) and on_path is not None:
        other = _checked(Path(on_path), "found on PATH", say)
        if isinstance(other, Java):
            way = f"unset JAVA_HOME, as {on_path} is Java {other.version}; or {WAY_OUT}"
            return NoJava(found.reason, way)
    return found


@refuses_unknown
def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java runtime that Spark will start, checked.

    Args:
        environment: where ``JAVA_HOME`` and ``PATH`` are looked up; ``os.environ`` by default.

    Raises:
        ConfigurationError: there is no Java, it does not start, it is older than 17, or it lacks
            a module that Spark needs.
    """
    found = look_for_java(environment)
    if isinstance(found, NoJava):
        raise ConfigurationError(f"{found.reason}: {found.hint}")
    return found


def _checked(executable: Path, where: str, say: Callable[[str], None]) -> Java | NoJava:
    if not executable.is_file():
        return NoJava(f"no Java at {executable} ({where})")
    named = f"{executable} ({where})"
    status, text = _output([str(executable), "-version"], say)
    version = parse_version(text)
    if status != 0 or version is None:
        return NoJava(f"{named} does not start: {_reason(text)}")
    if version < OLDEST:
        return NoJava(f"{named} is Java {version}; Spark 4 needs {OLDEST} or newer")
    status, text = _output([str(executable), "--add-modules", VECTOR_MODULE, "-version"], say)
    if status != 0:
        return NoJava(
            f"{named} is Java {version} without the module {VECTOR_MODULE}, which Spark needs"
        )
    return Java(executable, version)


def _reason(text: str) -> str:
    """The line of an output that says most.

    >>> _reason("# There is insufficient memory for the JRE to continue.\\n# /tmp/hs_err.log")
    'There is insufficient memory for the JRE to continue.'
    """
    lines = [line.strip("# ") for line in text.splitlines() if line.strip("# ")]
    short_of = (line for line in lines if "insufficient memory" in line)
    return next(short_of, lines[-1] if lines else "no output")

"""Finding the Java runtime that Spark will start, before Spark does.

Spark's own answer to a missing or old Java is a stack trace from a child process, or none at all.
The rule here is Spark's: ``JAVA_HOME`` where it is set, otherwise ``java`` on ``PATH``.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from specstream.errors import ConfigurationError

__all__ = ["Java", "find_java"]

OLDEST = 17
# A Java on a file system that does not answer would keep the caller for ever.
SECONDS = 60
# Spark 4 resolves this module at start-up; runtimes cut down to a few modules lack it.
VECTOR_MODULE = "jdk.incubator.vector"
WAY_OUT = (
    "install Java 17 or 21 (on Debian or Ubuntu: apt-get install openjdk-17-jre-headless) "
    "or set JAVA_HOME to a full JDK of such a version"
)


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


def _output(*command: str) -> tuple[int, str]:
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=SECONDS,
            check=False,
        )
    except OSError as error:
        return -1, str(error)
    except subprocess.TimeoutExpired:
        return -1, f"no answer within {SECONDS} s"
    return done.returncode, done.stdout


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """The Java runtime that Spark will start, checked.

    Args:
        environment: where ``JAVA_HOME`` and ``PATH`` are looked up; ``os.environ`` by default.

    Raises:
        ConfigurationError: there is no Java, it does not start, it is older than 17, or it lacks
            a module that Spark needs.
    """
    environment = os.environ if environment is None else environment
    home = environment.get("JAVA_HOME")
    if home:
        executable = Path(home) / "bin" / "java"
        where = f"JAVA_HOME={home}"
        if not executable.is_file():
            other = shutil.which("java", path=environment.get("PATH", os.defpath))
            way = f"unset JAVA_HOME, as there is {other}, or {WAY_OUT}" if other else WAY_OUT
            raise ConfigurationError(f"no Java at {executable} ({where}): {way}")
    else:
        found = shutil.which("java", path=environment.get("PATH", os.defpath))
        if found is None:
            raise ConfigurationError(
                f"Spark needs Java; JAVA_HOME is not set and there is no java on PATH: {WAY_OUT}"
            )
        executable = Path(found)
        where = "found on PATH"
    status, text = _output(str(executable), "-version")
    version = parse_version(text)
    if status != 0 or version is None:
        last = text.strip().splitlines()[-1] if text.strip() else "no output"
        raise ConfigurationError(f"{executable} ({where}) does not start: {last}: {WAY_OUT}")
    if version < OLDEST:
        raise ConfigurationError(
            f"{executable} ({where}) is Java {version}; Spark 4 needs {OLDEST} or newer: {WAY_OUT}"
        )
    status, text = _output(str(executable), "--add-modules", VECTOR_MODULE, "-version")
    if status != 0:
        raise ConfigurationError(
            f"{executable} ({where}) is Java {version} without the module {VECTOR_MODULE}, which "
            f"Spark needs: {WAY_OUT}"
        )
    return Java(executable, version)

"""Checks of Spark: PySpark and its companions, Java, the workers' Python, names, a session."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from specstream.doctor.finding import Check, Finding
from specstream.doctor.installation import has_spark, install
from specstream.doctor.limits import hint
from specstream.doctor.requirements import installed, pip_install, version_of
from specstream.doctor.trial import TrialFailed, attempt

__all__ = ["CHECKS", "SESSION", "WITHOUT"]

SECONDS = 240
# Those that Spark 4 is made for.
TRIED = (17, 21)


def _without(say: Callable[[str], None]) -> Finding:
    found = "PySpark is not installed; the engine runs without"
    return Finding("Spark", "ok", found, "")


def _pyspark(say: Callable[[str], None]) -> Finding:
    name = "PySpark"
    needed = list(installed("spark"))
    found = ", ".join(map(str, needed))
    if not has_spark():
        return Finding(name, "missing", found, install("spark"))
    if wrong := [package for package in needed if not package.fits]:
        advice = f"{pip_install(wrong)}; on a cluster, Spark has to be of that version too"
        return Finding(name, "missing", found, advice)
    if home := os.environ.get("SPARK_HOME"):
        own = version_of("pyspark")
        jars = [path.name for path in Path(home, "jars").glob("spark-core_*.jar")]
        other = re.search(r"-(\d[^-]*)\.jar$", jars[0]) if jars else None
        if other is None or other[1] != own:
            found += f"; SPARK_HOME={home} has {f'Spark {other[1]}' if other else 'no Spark'}"
            advice = f"unset SPARK_HOME, or let it name a Spark {own}: both must be one version"
            return Finding(name, "missing", found, advice)
    for variable in ("SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"):
        if value := os.environ.get(variable):
            advice = f"unset {variable}: Spark Connect cannot hand batches to an engine"
            return Finding(name, "missing", f"{found}; {variable}={value}", advice)
    return Finding(name, "ok", found)


def _java(say: Callable[[str], None]) -> Finding:
    from specstream.spark import java

    found = java.look_for_java(say=say)
    if isinstance(found, java.NoJava):
        limit = hint(found.reason) if "does not start" in found.reason else ""
        return Finding("Java", "missing", found.reason, limit or found.hint)
    text = f"{found.version}, {found.executable}"
    if found.version not in TRIED:
        return Finding("Java", "warning", text, "Spark 4 is made for Java 17 and 21: take one")
    return Finding("Java", "ok", text)


def _workers(say: Callable[[str], None]) -> Finding:
    name = "workers' Python"
    own = ".".join(map(str, sys.version_info[:2]))
    named = os.environ.get("PYSPARK_PYTHON")
    executable = named or shutil.which("python3") or "python3"
    version = _version_of_python(executable)
    source = "PYSPARK_PYTHON" if named else "python3 of PATH, as PYSPARK_PYTHON is not set"
    found = f"{version or 'does not start'}, {executable} ({source})"
    if version == own:
        return Finding(name, "ok", found)
    advice = (
        f"driver and workers need one minor version, here {own}: export PYSPARK_PYTHON="
        f"{sys.executable}, or another {own} that has specstream (global mode needs none)"
    )
    # Nobody has asked for the default one, and sessions of specstream's own do not take it.
    return Finding(name, "missing" if named else "warning", found, advice)


def _version_of_python(executable: str) -> str | None:
    """Its minor version, as it says itself; None: it does not."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run(
            [executable, "-c", code], capture_output=True, text=True, timeout=20, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _host(say: Callable[[str], None]) -> Finding:
    name = "host name"
    host = socket.gethostname()
    address = os.environ.get("SPARK_LOCAL_IP")
    what = f"SPARK_LOCAL_IP={address}" if address else host
    try:
        found = socket.gethostbyname(address or host)
        with socket.socket() as bound:
            bound.bind((found, 0))
    except OSError as error:
        reason = error.strerror or str(error)
        advice = "export SPARK_LOCAL_IP=127.0.0.1 where Spark runs on this machine alone"
        if not address:
            advice += f", or enter {host} in /etc/hosts"
        return Finding(name, "warning", f"{what} is no address of this machine: {reason}", advice)
    return Finding(name, "ok", f"{what}, {found}" if found != address else what)


def _session(say: Callable[[str], None]) -> Finding:
    name = "Spark session"
    try:
        found = attempt("specstream.doctor.spark_trial", SECONDS, say)
    except TrialFailed as failed:
        advice = hint(str(failed)) or (
            "correct first what is missing above; the message is the last line of Spark's"
        )
        return Finding(name, "missing", str(failed), advice)
    if not found["same"]:
        advice = "this is a bug: report it, with all of this table"
        return Finding(name, "missing", "the rows differ from the sequential run", advice)
    text = f"Spark {found['version']}: {found['batches']} micro-batches through foreachBatch"
    return Finding(name, "ok", f"{text}, with a checkpoint; {found['rows']} rows as in sequence")


WITHOUT = (Check("Spark", _without),)
CHECKS = (
    Check("PySpark", _pyspark),
    Check("Java", _java),
    Check("workers' Python", _workers),
    Check("host name", _host),
)
SESSION = Check("Spark session", _session)

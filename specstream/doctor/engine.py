"""Checks of the engine: it gives the right answer, and what it compiles can be kept."""

from __future__ import annotations

import os
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from specstream.doctor.filesystem import existing, kind
from specstream.doctor.finding import Check, Finding
from specstream.doctor.installation import install
from specstream.doctor.limits import hint
from specstream.doctor.machine import gigabytes
from specstream.doctor.trial import TrialFailed, attempt

__all__ = ["CHECKS"]

SECONDS = 120
LEAST_ROOM = 64 << 20


def _engine(say: Callable[[str], None]) -> Finding:
    try:
        found = attempt("specstream.doctor.engine_trial", SECONDS, say)
    except TrialFailed as failed:
        return Finding("engine", "missing", str(failed), _hint(str(failed)))
    if not found["same"]:
        advice = "this is a bug, or a defect of the machine: report it, with all of this table"
        return Finding("engine", "missing", "two threads differ from the sequential run", advice)
    text = f"two threads give the sequential run's {found['rows']} rows; {found['native']}"
    return Finding("engine", "ok", f"{text}, interface {found['abi']}")


def _hint(told: str) -> str:
    if "GLIBC" in told:
        return (
            "the package was built on a newer system than this: build it on the oldest one "
            "that you have (pip wheel), or take a newer system"
        )
    if "_native" in told:
        return "the C extension is not there, or is of another version: " + install(
            again=True
        ).replace("reinstall .", "reinstall -e .")
    if os.environ.get("NUMBA_DISABLE_JIT"):
        return "unset NUMBA_DISABLE_JIT: operators are compiled by Numba"
    if told.startswith("crashed") and not hint(told):
        return (
            "a library is damaged, or not made for this processor (SIGILL): "
            f"{install(again=True)}; if that does not help, report it"
        )
    return hint(told) or (
        f"correct first what else is missing here; if nothing is, {install(again=True)}; if that "
        "does not help, report it"
    )


def _cache(say: Callable[[str], None]) -> Finding:
    name = "compile cache"
    from specstream.compiler import cache

    path = cache.directory()
    if path is None:
        if "SPECSTREAM_CACHE_DIR" in os.environ:
            return Finding(name, "ok", "none, as SPECSTREAM_CACHE_DIR is empty")
        advice = "each start compiles: name a directory in SPECSTREAM_CACHE_DIR"
        return Finding(name, "warning", "none, as this user has no home", advice)
    instead = "or name another directory in SPECSTREAM_CACHE_DIR; until then each start compiles"
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            what = f"{path} is a symbolic link"
            return Finding(name, "warning", what, f"name the directory itself, {instead}")
        if problem := cache.not_ours(status):
            advice = instead.removeprefix("or ")
            # What is another's, or shared by all as /tmp, is not to be changed.
            if status.st_uid == os.getuid() and not status.st_mode & stat.S_ISVTX:
                advice = f"look at what is in it, and then chmod go-w {path}, {instead}"
            return Finding(name, "warning", f"{path} {problem}", advice)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"specstream")
            file.flush()
    except OSError as error:
        found = f"{path} cannot be written: {error.strerror}, {existing(path)}"
        return Finding(name, "warning", found, f"make it a directory of yours, {instead}")
    entries, size, refused = _entries(path, cache.not_ours)
    free = shutil.disk_usage(path).free
    found = f"{path} ({kind(path)}, {gigabytes(free)} free), {entries} entries, {gigabytes(size)}"
    if refused:
        advice = f"{refused} entries are not used, as others may write them: remove them"
        return Finding(name, "warning", found, advice)
    if free < LEAST_ROOM:
        return Finding(name, "warning", found, f"make room there, {instead}")
    return Finding(name, "ok", found)


def _entries(path: Path, problem: Callable[[os.stat_result], str | None]) -> tuple[int, int, int]:
    """How many entries there are, their bytes, and how many of them are refused."""
    count = size = refused = 0
    with os.scandir(path) as found:
        for entry in found:
            try:
                status = entry.stat(follow_symlinks=False)
            except FileNotFoundError:
                continue  # another process has removed it
            count += 1
            size += status.st_size
            refused += problem(status) is not None
    return count, size, refused


CHECKS = (Check("engine", _engine), Check("compile cache", _cache))

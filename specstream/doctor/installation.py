"""Checks of what is installed: Python, the system, packages and extras."""

from __future__ import annotations

import platform
import sys
import sysconfig
from collections.abc import Callable
from importlib import metadata, util
from pathlib import Path

from specstream.doctor.finding import Check, Finding
from specstream.doctor.requirements import PACKAGE, installed, pip_install, satisfies, version_of

__all__ = ["CHECKS", "has_spark", "install"]

# Those that a user may want; the others are for working on specstream.
EXTRAS = (
    *("spark", "cli", "nats", "kafka", "xml", "json", "plot", "metrics", "delta", "postgres"),
    *("testing", "verify"),
)
MACHINES = ("x86_64", "aarch64")


def install(*extras: str, again: bool = False) -> str:
    """The command that installs specstream with extras; ``again``: and all that it needs, anew.

    >>> install("spark")
    'pip install "specstream[spark]" (in a checkout: pip install ".[spark]")'
    >>> install(again=True)
    'pip install --force-reinstall specstream (in a checkout: pip install --force-reinstall .)'
    """
    listed = f"[{','.join(extras)}]" if extras else ""
    here, there = (f'"{name}{listed}"' if listed else name for name in (".", PACKAGE))
    command = "pip install --force-reinstall" if again else "pip install"
    return f"{command} {there} (in a checkout: {command} {here})"


def has_spark() -> bool:
    """Whether PySpark is there to be imported."""
    return util.find_spec("pyspark") is not None


def _python(say: Callable[[str], None]) -> Finding:
    version = platform.python_version()
    found = f"{platform.python_implementation()} {version}, {sys.executable}"
    needed = metadata.distribution(PACKAGE).metadata["Requires-Python"] or ""
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        advice = "take CPython, not PyPy and not a free-threaded build: Numba needs it"
    elif not satisfies(version, needed):
        advice = f"specstream needs Python {needed}: make an environment with such a one"
    else:
        return Finding("Python", "ok", found)
    return Finding("Python", "missing", found, advice)


def _system(say: Callable[[str], None]) -> Finding:
    library = " ".join(platform.libc_ver())
    found = f"{platform.system()}, {platform.machine()}, {library.strip() or 'C library unknown'}"
    if platform.system() != "Linux":
        advice = "specstream runs on Linux only; on others, in a container or a virtual machine"
    elif platform.machine() not in MACHINES or sys.byteorder != "little":
        advice = "specstream runs on x86-64 and on little-endian AArch64 only"
    elif not library.startswith("glibc"):
        advice = "take a system with glibc (Debian, Ubuntu, RHEL ...): Numba is not made for musl"
    else:
        return Finding("system", "ok", found)
    return Finding("system", "missing", found, advice)


def _package(say: Callable[[str], None]) -> Finding:
    here = Path(__file__).resolve().parents[1]
    version = version_of(PACKAGE)
    if version is None:
        advice = (
            f"Python sees a copy of the sources only (PYTHONPATH, working directory): {install()}"
        )
        return Finding(PACKAGE, "missing", f"{here}, not installed", advice)
    native = util.find_spec(f"{PACKAGE}._native")
    if native is None:
        advice = f"the C extension is not there: {install(again=True)}"
        if (here.parent / "stm_native").is_dir():
            advice = (
                "the C extension is not built: this is a checkout (working directory, PYTHONPATH). "
                "Go to another directory, or build in place: pip install -e ."
            )
        return Finding(PACKAGE, "missing", f"{version}, {here}, without _native", advice)
    return Finding(PACKAGE, "ok", f"{version}, {here}")


def _packages(say: Callable[[str], None]) -> Finding:
    needed = list(installed(None))
    versions = [str(package) for package in needed]
    if version := version_of("llvmlite"):
        versions.append(f"llvmlite {version}")
    found = ", ".join(versions)
    if wrong := [package for package in needed if not package.fits]:
        return Finding("packages", "missing", found, pip_install(wrong))
    return Finding("packages", "ok", found)


def _extras(say: Callable[[str], None]) -> Finding:
    needed = {extra: list(installed(extra)) for extra in EXTRAS}
    absent = [extra for extra in EXTRAS if any(p.version is None for p in needed[extra])]
    found = ", ".join(extra for extra in EXTRAS if extra not in absent) or "none"
    if absent:
        found += f"; not installed: {', '.join(absent)}"
    there = [package for extra in EXTRAS for package in needed[extra] if package.version]
    if wrong := [package for package in there if not package.fits]:
        found += f"; {', '.join(map(str, dict.fromkeys(wrong)))}"
        return Finding("extras", "warning", found, pip_install(wrong))
    return Finding("extras", "ok", found)


CHECKS = (
    Check("Python", _python),
    Check("system", _system),
    Check(PACKAGE, _package),
    Check("packages", _packages),
    Check("extras", _extras, is_required=False),
)

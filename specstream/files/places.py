"""The places that a user names: a path, or a URI; and no path that was meant as a URI.

A name like ``dbfs:/cp`` or ``s3:/bucket/cp`` would be a directory of that name here, on a disk that
may go with the machine. So whatever looks like a URI is one that can be reached, or is refused with
what to write. A local directory that is really called so can be written ``./dbfs:/cp``.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from specstream.errors import ConfigurationError

__all__ = ["check_place", "is_uri", "local_path", "not_local", "spelling"]

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# One letter may be a drive's, and is no scheme.
_LIKE_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(/?)")
# Of what systems around Spark write, by what Arrow reads it as.
_CALLED = {
    **{name: name for name in ("file", "s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs")},
    **dict.fromkeys(("s3a", "s3n"), "s3"),
    **dict.fromkeys(("az", "azure", "adl", "wasb", "wasbs"), "abfss"),
}
_DBFS = "dbfs"
_SUPPORTED = "a path where it is mounted, or a URI of file, s3, gs, abfss or hdfs (://)"


def is_uri(text: str) -> bool:
    """Whether a place is a URI; else it is a local path.

    >>> is_uri("s3://bucket/rows"), is_uri("/data/s3://x"), is_uri("rows")
    (True, False, False)
    """
    return _URI.match(text) is not None


def check_place(option: str, text: str, *, is_path: bool = False) -> None:
    """Looks at a place that may be a path or a URI.

    Args:
        option: names it in the error.
        text: the place.
        is_path: whether it was given as a path of ``pathlib``.

    Raises:
        ConfigurationError: it is a path that looks like a URI, or begins with ``~`` or ``$``.

    >>> check_place("path", "s3://bucket/rows"), check_place("path", "./dbfs:/rows")
    (None, None)
    >>> check_place("path", "s3:/bucket/rows")
    Traceback (most recent call last):
    specstream.errors.ConfigurationError: path='s3:/bucket/rows' looks like a URI, and would be a \
local directory of that name: write 's3://bucket/rows'; or './s3:/bucket/rows' for such a directory
    """
    if text[:1] == "~" or text[:1] == "$":
        written = "os.path.expanduser" if text[:1] == "~" else "os.path.expandvars"
        raise ConfigurationError(
            f"{option}={text!r} would be a directory of that name, as no shell looks at it: write "
            f"{written}({text!r}); or './{text}' for such a directory"
        )
    if is_uri(text) or not _looks_like_uri(text):
        return
    advice = f"write {spelling(text) or _SUPPORTED}; or './{text}' for such a directory"
    if is_path:
        advice += " (pathlib makes one slash of two: give a text)"
    raise ConfigurationError(
        f"{option}={text!r} looks like a URI, and would be a local directory of that name: {advice}"
    )


def not_local(text: str) -> str | None:
    """What is wrong with a place that has to be local; None: nothing.

    >>> not_local("file:/rows")
    "it looks like a URI, and local paths are read here: write '/rows', or './file:/rows' for a \
directory of that name"
    """
    if not (is_uri(text) or _looks_like_uri(text)):
        return None
    scheme, _, rest = text.partition(":")
    name = "/" + rest.lstrip("/")
    local = {"file": repr(name), _DBFS: repr(f"/dbfs{name}")}.get(scheme.lower())
    return (
        "it looks like a URI, and local paths are read here: write "
        f"{local or 'a path where it is mounted'}, or './{text}' for a directory of that name"
    )


def local_path(path: str | os.PathLike[str]) -> Path:
    """A local path as Arrow and Spark take it for one, whatever its name is.

    ``pathlib`` has dropped the ``./`` that told it from a URI.

    >>> local_path("rows"), local_path("./dbfs:/rows").is_absolute()
    (PosixPath('rows'), True)
    """
    found = Path(path)
    return Path.cwd() / found if found.parts and ":" in found.parts[0] else found


def spelling(text: str) -> str | None:
    """How a place is written that was meant by what looks like a URI; None: it is not known.

    >>> spelling("s3a://bucket/x"), spelling("file:/x"), spelling("dbfs:/x")
    ("'s3://bucket/x'", "'/x' or 'file:///x'", "'/dbfs/x', where Databricks mounts it")
    """
    scheme, _, rest = text.partition(":")
    name, called = rest.lstrip("/"), _CALLED.get(scheme.lower())
    if scheme.lower() == _DBFS:
        return f"'/dbfs/{name}', where Databricks mounts it"
    if called == "file":
        return f"{'/' + name!r} or {'file:///' + name!r}"
    if called in ("hdfs", "viewfs") and not rest.startswith("//"):
        return repr(f"{called}://HOST:PORT/{name}")
    return None if called is None else repr(f"{called}://{name}")


def _looks_like_uri(text: str) -> bool:
    """Whether it begins with a scheme and a slash, or with one that is known."""
    found = _LIKE_URI.match(text)
    return found is not None and (bool(found[2]) or found[1].lower() in (*_CALLED, _DBFS))

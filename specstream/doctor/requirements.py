"""What the installed package declares that it needs, against what is installed.

The declaration is the package's own metadata, so that it is written once. Of the language of
requirements (PEP 508) this reads what the package uses: names, extras, and comparisons of
releases.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib import metadata

__all__ = ["Requirement", "parse", "required", "satisfies", "version_of"]

PACKAGE = "specstream"
_REQUIREMENT = re.compile(r"\s*([\w.-]+)\s*(?:\[([^]]*)\])?\s*\(?([^;)]*)\)?\s*(?:;\s*(.*))?")
_CLAUSE = re.compile(r"\s*(~=|===?|!=|<=|>=|<|>)\s*(\d+(?:\.\d+)*)(\.\*)?")
_EXTRA = re.compile(r"""extra\s*==\s*["']([\w.-]+)["']""")


@dataclass(frozen=True)
class Requirement:
    """One line of the declaration.

    Attributes:
        name: the package that is needed.
        versions: which of it, as ``>=1.26,<3``.
        extra: of specstream, that needs it; None: specstream itself does.
        extras: of that package, that are needed as well.
    """

    name: str
    versions: str
    extra: str | None
    extras: tuple[str, ...]


def parse(text: str) -> Requirement:
    """A line of ``Requires-Dist``.

    >>> parse('pandas<3,>=2.2; extra == "spark"')
    Requirement(name='pandas', versions='<3,>=2.2', extra='spark', extras=())
    """
    match = _REQUIREMENT.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no requirement that is understood")
    name, extras, versions, marker = match.groups()
    extra = _EXTRA.search(marker or "")
    inner = tuple(part.strip() for part in (extras or "").split(",") if part.strip())
    return Requirement(name, versions.strip(), extra[1] if extra else None, inner)


def required(extra: str | None) -> list[Requirement]:
    """What specstream itself, or one of its extras, needs, without its other extras.

    Raises:
        PackageNotFoundError: specstream has no metadata, as it is not installed.
    """
    lines = map(parse, metadata.distribution(PACKAGE).requires or [])
    return [line for line in lines if line.extra == extra and line.name != PACKAGE]


def version_of(name: str) -> str | None:
    """The installed version of a package; None: it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def satisfies(version: str, versions: str) -> bool:
    """Whether a version is one of those that are asked for, by its release number.

    >>> satisfies("4.3.1", "==4.3.*"), satisfies("4.4.0", "==4.3.*"), satisfies("0.69.0", "<0.69")
    (True, False, False)
    """
    return all(_holds(version, clause) for clause in versions.split(",") if clause.strip())


def _holds(version: str, clause: str) -> bool:
    match = _CLAUSE.match(clause)
    if match is None:
        raise ValueError(f"{clause!r} is no comparison of versions that is understood")
    operator, text, is_prefix = match.groups()
    own, other = _release(version), _release(text)
    if operator == "~=":
        return own >= other and own[: len(other) - 1] == other[:-1]
    if is_prefix:
        return (own[: len(other)] == other) == (operator == "==")
    length = max(len(own), len(other))
    own, other = (part + (0,) * (length - len(part)) for part in (own, other))
    return {
        "==": own == other,
        "===": own == other,
        "!=": own != other,
        "<=": own <= other,
        ">=": own >= other,
        "<": own < other,
        ">": own > other,
    }[operator]


def _release(version: str) -> tuple[int, ...]:
    numbers = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, numbers[0].split("."))) if numbers else ()

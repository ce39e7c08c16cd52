"""What the installed package declares that it needs, against what is installed.

The declaration is the package's own metadata, so that it is written once. ``packaging`` is
imported where it is used: where it is missing, the doctor's other checks run all the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata

__all__ = ["PACKAGE", "Installed", "installed", "pip_install", "requirement",
           "satisfies", "version_of"]  # fmt: skip

PACKAGE = "specstream"


@dataclass(frozen=True)
class Installed:
    """A package that is needed, and what there is of it.

    Attributes:
        name: the package.
        versions: which of it are asked for, as ``<3,>=1.26``.
        version: the one that is installed; None: none is.
    """

    name: str
    versions: str
    version: str | None

    @property
    def fits(self) -> bool:
        """Whether it is installed, in a version that is asked for."""
        return self.version is not None and satisfies(self.version, self.versions)

    def __str__(self) -> str:
        return f"{self.name} {self.version or 'not installed'}"


def installed(extra: str | None) -> Iterator[Installed]:
    """What specstream itself, or one of its extras, needs, without its other extras.

    Raises:
        PackageNotFoundError: specstream has no metadata, as it is not installed.
    """
    from packaging.requirements import Requirement

    def is_asked(needed: Requirement, by: str) -> bool:
        return needed.marker is None or needed.marker.evaluate({"extra": by})

    for needed in map(Requirement, metadata.distribution(PACKAGE).requires or []):
        always = is_asked(needed, "")
        is_wanted = always if extra is None else is_asked(needed, extra) and not always
        if is_wanted and needed.name != PACKAGE:
            yield Installed(needed.name, str(needed.specifier), version_of(needed.name))


def version_of(name: str) -> str | None:
    """The installed version of a package; None: it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def satisfies(version: str, versions: str) -> bool:
    """Whether a version, which may be a preliminary one, is one of those that are asked for.

    >>> satisfies("4.3.1", "==4.3.*"), satisfies("4.4.0", "==4.3.*"), satisfies("0.69.0", "<0.69")
    (True, False, False)
    """
    from packaging.specifiers import SpecifierSet

    return SpecifierSet(versions).contains(version, prereleases=True)


def requirement(module: str) -> str:
    """What pip is to be asked for where a module is missing, in a version that fits.

    >>> requirement("packaging")
    '"packaging>=22"'
    >>> requirement("click_of_another")
    'click_of_another'
    """
    for asking in (PACKAGE, "pyspark"):
        try:
            declared = metadata.requires(asking) or []
        except metadata.PackageNotFoundError:
            continue
        for text in declared:
            name = re.match(r"[\w.-]+", text)
            if name is not None and name[0] == module:
                return f'"{text.partition(";")[0].strip()}"'
    return module


def pip_install(packages: list[Installed]) -> str:
    """The command that installs packages in versions that fit.

    >>> pip_install([Installed("numba", "<0.69,>=0.61", "0.60.0")])
    'pip install "numba<0.69,>=0.61"'
    """
    return " ".join(["pip install", *dict.fromkeys(f'"{p.name}{p.versions}"' for p in packages)])

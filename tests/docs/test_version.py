"""The version is said in one place, and the changelog knows it."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import specstream as ss

ROOT = Path(__file__).parents[2]


def test_the_version_is_that_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert ss.__version__ == project["version"]


def test_the_changelog_goes_back_from_what_is_to_come_version_by_version() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    versions = [heading.split(" (")[0] for heading in headings[1:]]
    assert ss.__version__ in versions
    assert all(re.fullmatch(r"\S+ \(\d{4}-\d\d-\d\d\)", heading) for heading in headings[1:])
    assert versions == sorted(
        versions, key=lambda version: [int(n) for n in version.split(".")], reverse=True
    )

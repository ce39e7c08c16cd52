"""The findings as one JSON object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from specstream.doctor.finding import Finding, is_complete
from specstream.doctor.requirements import PACKAGE, version_of

__all__ = ["as_json"]


def as_json(findings: Sequence[Finding]) -> dict[str, Any]:
    """What ``--json`` prints."""
    return {
        "specstream": version_of(PACKAGE),
        "complete": is_complete(findings),
        "checks": [asdict(finding) for finding in findings],
    }

"""What a check has found, and running checks so that none stops the others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from specstream.doctor.limits import hint
from specstream.doctor.requirements import requirement

__all__ = ["LOOK_ABOVE", "Check", "Finding", "Verdict", "is_complete", "run", "summary"]

LOOK_ABOVE = "look at what is missing above; if nothing is, report it as a bug"
Verdict = Literal["ok", "warning", "missing"]


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        name: of the check.
        verdict: ``missing`` is for what is required and is not there, or does not work.
        found: versions, paths and numbers.
        advice: what to do; empty where there is nothing to do.
    """

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


@dataclass(frozen=True)
class Check:
    """A check that can be run.

    Attributes:
        name: of its finding.
        look: does it; by the function that it is given it may say what it waits for.
        is_required: what it looks at is needed: that it cannot be looked at is a fault, too.
    """

    name: str
    look: Callable[[Callable[[str], None]], Finding]
    is_required: bool = True


def run(checks: Iterable[Check], say: Callable[[str], None]) -> Iterator[Finding]:
    """The findings, one by one; of a check that raises, that it does.

    >>> list(run([Check("x", lambda say: Finding("x", "ok", str(1 / 0)))], say=print))
    x
    [Finding(name='x', verdict='missing', found='cannot be looked at: ZeroDivisionError: ...
    """
    for check in checks:
        name = check.name
        say(name)
        try:
            yield check.look(lambda text, name=name: say(f"{name}: {text}"))  # type: ignore[misc]
        except Exception as error:
            what = f"cannot be looked at: {type(error).__name__}: {error}"
            verdict: Verdict = "missing" if check.is_required else "warning"
            yield Finding(check.name, verdict, what, _hint(error))


def _hint(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"pip install {requirement(error.name.partition('.')[0])}"
    text = f"{type(error).__name__}: {error}"
    return hint(text) or LOOK_ABOVE


def is_complete(findings: Iterable[Finding]) -> bool:
    """Whether all that is required is there."""
    return all(finding.verdict != "missing" for finding in findings)


def summary(findings: Iterable[Finding]) -> str:
    """The findings in one sentence.

    >>> summary([Finding("Java", "missing", "none"), Finding("cores", "warning", "1")])
    'Missing or broken: Java; 1 warning.'
    >>> summary([])
    'All that is required is there.'
    """
    findings = list(findings)
    missing = [finding.name for finding in findings if finding.verdict == "missing"]
    warned = sum(finding.verdict == "warning" for finding in findings)
    first = f"Missing or broken: {', '.join(missing)}" if missing else (
        "All that is required is there"
    )  # fmt: skip
    return first + (f"; {warned} warning{'s' * (warned > 1)}." if warned else ".")

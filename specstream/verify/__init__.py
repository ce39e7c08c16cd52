"""What an operator can do on any stream: raise, wrap, break an invariant, or never do so.

The model is the operator: the oracle's own code runs over unknown values, and solvers answer. A
"no" is a table of events that has been run.
"""

from __future__ import annotations

try:
    from specstream.verify.checking import check
    from specstream.verify.covering import Cover, cover
    from specstream.verify.questions import Within, within
    from specstream.verify.report import Finding, Refuted, Report, Verdict
    from specstream.verify.rerun import rerun
    from specstream.verify.same import same
    from specstream.verify.smallest import smallest
    from specstream.verify.smv import to_smv
except ModuleNotFoundError as missing:
    if (missing.name or "").partition(".")[0] not in ("z3", "bitwuzla"):
        raise
    raise ImportError(
        f'specstream.verify needs {missing.name}: pip install "specstream[verify]"'
    ) from missing

__all__ = [
    "Cover",
    "Finding",
    "Refuted",
    "Report",
    "Verdict",
    "Within",
    "check",
    "cover",
    "rerun",
    "same",
    "smallest",
    "to_smv",
    "within",
]

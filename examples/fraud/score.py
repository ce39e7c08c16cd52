"""How good the decisions are, where it is known which payments were frauds."""

from __future__ import annotations

from typing import Any

import pandas as pd

__all__ = ["score"]


def score(payments: pd.DataFrame, decisions: pd.DataFrame) -> dict[str, Any]:
    """Precision and recall; None where nothing was found, or nothing was to be found.

    Args:
        payments: with the columns number and fraud, the kind or ``""``.
        decisions: with the columns number and reason.

    Returns:
        precision (of the decisions, how many are frauds) and recall (of the frauds, how many are
        found), from 0 to 1; kinds: by kind of fraud, how many there were and how many are found;
        reasons: by reason, how many decisions there are and how many of them are frauds.

    >>> payments = pd.DataFrame({"number": [0, 1, 2], "fraud": ["", "ring", "ring"]})
    >>> decisions = pd.DataFrame({"number": [0, 2], "reason": ["amount", "merchant"]})
    >>> found = score(payments, decisions)
    >>> found["precision"], found["recall"], found["kinds"]
    (0.5, 0.5, {'ring': {'frauds': 2, 'found': 1}})
    """
    joined = payments[["number", "fraud"]].merge(decisions[["number", "reason"]], "left", "number")
    is_fraud, is_found = joined["fraud"] != "", joined["reason"].notna()
    right = int((is_fraud & is_found).sum())
    kinds, reasons = {}, {}
    for kind, of in joined[is_fraud].groupby("fraud", sort=True):
        kinds[str(kind)] = {"frauds": len(of), "found": int(of["reason"].notna().sum())}
    for reason, of in joined[is_found].groupby("reason", sort=True):
        reasons[str(reason)] = {"decisions": len(of), "right": int((of["fraud"] != "").sum())}
    return {
        "precision": right / int(is_found.sum()) if is_found.any() else None,
        "recall": right / int(is_fraud.sum()) if is_fraud.any() else None,
        "kinds": kinds,
        "reasons": reasons,
    }

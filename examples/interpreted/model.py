"""Payments scored by a small network, whose scores change what the next payments meet.

The network sees a card's last payments, and how much trouble there has lately been at the merchant.
That trouble is what it has scored before, of all cards: no key divides the state, and the order
decides.

It is trained by scikit-learn, and evaluated with NumPy. For so few rows more than half of what
scikit-learn's ``predict_proba`` takes are its checks, which hold the interpreter lock; products of
matrices release it.
"""

# Operators carry no types, nor does scikit-learn.
# mypy: allow-untyped-defs, allow-untyped-calls, ignore-missing-imports

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss

__all__ = ["Network", "classifier", "payments", "scoring", "trained"]

CARDS, MERCHANTS = 5_000, 800
KEPT = 64  # payments of a card that the model looks at
HIDDEN = 384
REVIEW = 0.8  # a score from which a payment goes to review
WEIGHT = 0.05  # of one score in the trouble of its merchant
RECENCY = np.arange(1, KEPT + 1) / (KEPT * (KEPT + 1) / 2)  # the latest payment counts most


class Book(ss.State):
    amounts = ss.array(float, (CARDS, KEPT))  # of each card, the latest one last
    trouble = ss.array(float, MERCHANTS)
    reviews = ss.array(int, MERCHANTS)


def features(amounts: Any, trouble: float) -> Any:
    """What the model sees: a row for each of the payments, the latest one last."""
    before = np.concatenate([amounts[:1], amounts[:-1]])
    spread = np.full(len(amounts), amounts.std())
    return np.column_stack([amounts, amounts - before, spread, np.full(len(amounts), trouble)])


class Network:
    """A trained classifier of scikit-learn, evaluated with NumPy.

    Args:
        model: an ``MLPClassifier`` of two classes, with rectified units.
    """

    def __init__(self, model: Any) -> None:
        *self._hidden, self._last = zip(model.coefs_, model.intercepts_, strict=True)

    def __call__(self, seen: Any) -> Any:
        """How likely each row is a bad payment."""
        for weights, bias in self._hidden:
            seen = seen @ weights
            seen += bias
            np.maximum(seen, 0.0, out=seen)
        weights, bias = self._last
        return 1.0 / (1.0 + np.exp(-(seen @ weights + bias)[:, 0]))


def classifier(seed: int = 0) -> Any:
    """A small network of scikit-learn, trained on payments that are made up."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier
    from sklearn.utils._testing import ignore_warnings

    rng = np.random.default_rng(seed)
    amounts = rng.lognormal(0.0, 1.0, (60, KEPT))
    trouble = rng.uniform(0.0, 1.0, 60)
    seen = np.concatenate([features(*one) for one in zip(amounts, trouble, strict=True)])
    is_bad = seen[:, 1] + 2 * seen[:, 3] + rng.normal(0.0, 0.5, len(seen)) > 2.5
    model = MLPClassifier((HIDDEN, HIDDEN), max_iter=4, random_state=seed)
    return ignore_warnings(category=ConvergenceWarning)(model.fit)(seen, is_bad)


def trained(seed: int = 0) -> Network:
    """The same as the operator has it."""
    return Network(classifier(seed))


def scoring(model: Callable[[Any], Any]) -> ss.Operator:
    """The operator: a score for each payment, of the card's latest ones together, and whether it
    goes to review.

    Args:
        model: gives a number for each row of features.
    """

    @ss.operator(
        state=Book,
        event={"time": int, "card": int, "merchant": int, "amount": float},
        emits={"card": int, "merchant": int, "score": float, "review": bool},
        interpreted=True,
    )
    def scored(state, event, emit):
        card, merchant = event.card, event.merchant
        amounts = np.append(state.amounts[card][1:], np.log1p(event.amount))
        state.amounts[card] = amounts
        score = float(model(features(amounts, state.trouble[merchant])) @ RECENCY)
        is_review = score >= REVIEW
        state.trouble[merchant] += WEIGHT * (score - state.trouble[merchant])
        if is_review:
            state.reviews[merchant] += 1
        emit(card, merchant, score, is_review)

    return scored


def payments(count: int, seed: int = 0) -> pa.Table:
    """Payments, some merchants seeing far more of them than others."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "time": np.arange(count),
            "card": rng.integers(0, CARDS, count),
            "merchant": np.minimum(rng.zipf(1.3, count), MERCHANTS) - 1,
            "amount": rng.lognormal(3.0, 1.0, count).round(2),
        }
    )

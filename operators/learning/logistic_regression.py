"""Probabilities of yes and no, by a step down the gradient for each event.

The probability is ``1 / (1 + exp(-z))`` with ``z`` linear in the features. Its log loss has the
gradient (probability - label) * feature; each event is one step of stochastic gradient descent
(Robbins and Monro 1951; Bottou 2010), after it has been predicted: so all predictions are of events
that the model has not seen.
"""

from __future__ import annotations

import math

import specstream as ss
from specstream.declarations.chosen_columns import column_name
from specstream.declarations.options import number, refuses_unknown
from specstream.operators.learning.features import check_features, column_names

__all__ = ["logistic", "logistic_regression"]


@refuses_unknown
def logistic_regression(
    features: tuple[str, ...] = ("x",),
    rate: float = 0.1,
    penalty: float = 0.0,
    label: str = "label",
) -> ss.Operator:
    """Predicts the probability that an event's label is true, then learns from the label.

    Events have the columns named by ``features``, floats, and ``label``, a bool, or null where it
    is not known: such an event is predicted and nothing learned. Each event emits one row
    ``(probability,)``. Before the first label it is 0.5.

    Features should be of about the same size, like 1: a step goes down the gradient at one rate for
    all, so that one that is a thousand times as large is learned a million times as fast.

    Args:
        features: names of the columns, 1 to 256.
        rate: of the steps, more than 0, at most 1e6. A larger one learns faster, and stays farther
            from the best weights.
        penalty: 0 or more: half of it times the sum of the squared weights, the intercept excepted,
            is added to each event's loss; ``rate * penalty`` is less than 1.
        label: name of the column ``label``.

    State: ``weights``, in the order of ``features``, then the intercept. Every event reads them,
    and one that learns changes them all: these run one after the other. Events without a label
    conflict with those that learn just before them.

    The operator raises ValueError for a feature that is NaN or larger than 1e100 (or less than
    -1e100).

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.learning import logistic_regression
    >>> events = {"x": [1.0, -1.0] * 50, "label": [True, False] * 49 + [None, None]}
    >>> with ss.Engine(logistic_regression(), threads=2) as engine:
    ...     probability = engine.process(events)["probability"].to_pylist()
    >>> probability[0], round(probability[98], 2), round(probability[99], 2)
    (0.5, 0.9, 0.1)
    """
    # One piece: state and operator are read together, and close over the same numbers.
    label = column_name("logistic_regression: label", label)
    names = column_names("logistic_regression: features", features, (label,))
    expected = "a number above 0, at most 1e6"
    rate = float(number("logistic_regression: rate", rate, 5e-324, 1e6, expected))
    expected = "a number of at least 0"
    penalty = float(number("logistic_regression: penalty", penalty, 0.0, 1.7e308, expected))
    if not rate * penalty < 1.0:
        raise ss.ConfigurationError(
            f"logistic_regression: rate={rate} and penalty={penalty}; expected a product below 1: "
            "each step would shrink a weight by more than there is of it"
        )
    shrink = 1.0 - rate * penalty
    n = len(names)

    class LogisticRegressionState(ss.State):
        weights = ss.array(float, n + 1)

    @ss.operator(
        state=LogisticRegressionState,
        event={**dict.fromkeys(names, float), label: ss.nullable(bool)},
        emits={"probability": float},
        name="logistic_regression",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = [getattr(event, name) for name in names]
        check_features(x, "logistic_regression", names)

        z = state.weights[n]
        for i in range(n):
            z += state.weights[i] * x[i]
        probability = logistic(z)
        emit(probability)

        if getattr(event, label) is None:
            return
        step = rate * ((1.0 if getattr(event, label) else 0.0) - probability)
        for i in range(n):
            state.weights[i] = shrink * state.weights[i] + step * x[i]
        state.weights[n] += step

    return process


def logistic(z: float) -> float:
    """``1 / (1 + exp(-z))``, of which no part overflows."""
    small = math.exp(-abs(z))
    return 1.0 / (1.0 + small) if z >= 0.0 else small / (1.0 + small)

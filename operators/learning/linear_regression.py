"""Least squares from event to event: the coefficients are those of a fit to all events so far.

Kept is the triangle R of the QR decomposition of all rows so far, with Q' times the targets as one
more column. A new row is rotated into it, element by element (Gentleman 1973), and the coefficients
follow by back substitution. That takes as long as recursive least squares, which keeps the inverse
of X'X instead, and is exact in the same sense; but the condition of the problem is not squared, and
the triangle cannot lose what makes it valid, as that inverse loses its symmetry and then its sign.
Steps down a gradient would be cheaper, and right only after many events, at a rate to be tuned.
"""

from __future__ import annotations

import math

import specstream as ss
from specstream.declarations.chosen_columns import column_name
from specstream.declarations.options import number, refuses_unknown
from specstream.operators.learning.features import check_features, column_names

__all__ = ["linear_regression"]


@refuses_unknown
def linear_regression(
    features: tuple[str, ...] = ("x",),
    ridge: float = 1e-6,
    forgetting: float = 1.0,
    target: str = "target",
) -> ss.Operator:
    """Predicts a number from each event's features, then learns from the true one.

    Events have the columns named by ``features``, floats, and ``target``, a float, or null where it
    is not known: such an event is predicted and nothing learned. Each event emits one row
    ``(predicted, error)``: the prediction by a fit to all earlier events, null before the first
    target, and the target less it, null where either is missing.

    The fit is the one with the least sum of squared errors plus ``ridge`` times the sum of the
    squared coefficients, the intercept excepted. It is what ``numpy.linalg.lstsq`` finds, up to
    rounding.

    Args:
        features: names of the columns, 1 to 256.
        ridge: 1e-100 to 1e100. It decides as long as there are fewer events than features, or
            features that are sums of others; it should be small beside the squares of the features
            where it is not meant to shrink coefficients.
        forgetting: the factor by which the weight of all earlier events, and the ridge with them,
            shrinks with each event that learns; more than 0, at most 1. With 0.99 an event has half
            of its weight 69 events later.
        target: name of the column ``target``.

    State: ``weights``, the coefficients in the order of ``features``, then the intercept;
    ``triangle`` (features + 1, features + 2); and ``learned``, how many events had a target. An
    event that learns changes all of it, so that these run one after the other. The others only read
    ``weights``, and conflict with those that learn just before them.

    The operator raises ValueError for a feature or target that is NaN or larger than 1e100 (or less
    than -1e100).

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.learning import linear_regression
    >>> events = {"x": [0.0, 1.0, 2.0, 3.0], "target": [1.0, 3.0, 5.0, None]}
    >>> with ss.Engine(linear_regression(ridge=1e-12), threads=2) as engine:
    ...     output = engine.process(events)
    ...     print([round(weight, 6) for weight in engine.state.weights.tolist()])
    [2.0, 1.0]
    >>> [one and round(one, 6) for one in output["predicted"].to_pylist()]
    [None, 1.0, 5.0, 7.0]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    target = column_name("linear_regression: target", target)
    names = column_names("linear_regression: features", features, (target,))
    expected = "a number from 1e-100 to 1e100"
    root_of_ridge = math.sqrt(number("linear_regression: ridge", ridge, 1e-100, 1e100, expected))
    expected = "a number above 0, at most 1"
    decay = math.sqrt(
        number("linear_regression: forgetting", forgetting, 5e-324, 1.0, expected)
    )  # of rows, whose squares count
    n = len(names)

    class LinearRegressionState(ss.State):
        weights = ss.array(float, n + 1)
        triangle = ss.array(float, (n + 1, n + 2))
        learned = ss.scalar(int)
        row = ss.scratch(float, n + 2)

    @ss.operator(
        state=LinearRegressionState,
        event={**dict.fromkeys(names, float), target: ss.nullable(float)},
        emits={"predicted": ss.nullable(float), "error": ss.nullable(float)},
        name="linear_regression",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = [getattr(event, name) for name in names]
        check_features(x, "linear_regression", names)

        y = getattr(event, target)
        predicted = state.weights[n]
        for i in range(n):
            predicted += state.weights[i] * x[i]
        if state.learned == 0:
            emit()
        elif y is None:
            emit(predicted)
        else:
            emit(predicted, y - predicted)

        if y is None:
            return
        if not -1e100 <= y <= 1e100:
            raise ValueError(f"linear_regression: {target}={y}; expected a number up to 1e100")
        triangle, row, weights = state.triangle, state.row, state.weights
        if state.learned == 0:
            for i in range(n):
                triangle[i, i] = root_of_ridge
        state.learned += 1

        # A rotation of row i of the triangle and the new row makes the i-th of the latter 0.
        row[:n] = x
        row[n] = 1.0
        row[n + 1] = y
        for i in range(n + 1):
            old = decay * triangle[i, i]
            length = math.hypot(old, row[i])
            cosine = old / length if length > 0.0 else 1.0
            sine = row[i] / length if length > 0.0 else 0.0
            for j in range(i, n + 2):
                old = decay * triangle[i, j]
                triangle[i, j] = cosine * old + sine * row[j]
                row[j] = cosine * row[j] - sine * old

        for i in range(n, -1, -1):
            left = triangle[i, n + 1]
            for j in range(i + 1, n + 1):
                left -= triangle[i, j] * weights[j]
            # What was forgotten down to nothing has no say; a little above that the digits go.
            weights[i] = left / triangle[i, i] if triangle[i, i] > 1e-290 else 0.0

    return process

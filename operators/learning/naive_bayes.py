"""A Gaussian naive Bayes classifier that learns from event to event.

The features of a class are taken for independent and normally distributed. Of each class and
feature the operator keeps the mean and the sum of squared deviations from it, updated by Welford's
step (1962); with the number of events of the class that is all that Bayes' rule needs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import specstream as ss
from specstream.declarations.chosen_columns import named_column
from specstream.declarations.options import integer, number, refuses_unknown
from specstream.operators.learning.features import check_features, column_names

__all__ = ["naive_bayes"]

_LOG_OF_2_PI = math.log(2.0 * math.pi)


@refuses_unknown
def naive_bayes(
    features: tuple[str, ...] = ("x", "y"),
    label: type | Mapping[str, type] = str,
    smoothing: float = 1e-9,
    classes: int = 1000,
) -> ss.Operator:
    """Predicts the class of each event, then learns from its label.

    Events have the columns named by ``features``, floats, and ``label``, the class, or null where
    it is not known: such an event is predicted and nothing learned. Each event emits one row
    ``(predicted, probability)``: the class that is most probable after all earlier events, and its
    probability by Bayes' rule. Of equally probable ones it is the class that came first. Before the
    first label both are null.

    Args:
        features: names of the columns, 1 to 256.
        label: type of the column ``label``, ``int`` or ``str``; with another name for it
            ``{"species": str}``.
        smoothing: added to each variance, 1e-100 to 1e100, in squares of the units of the features:
            without it a feature that was always the same would exclude all else. A class of one
            event has this variance only.
        classes: at most, 1 to 2**20. The operator raises OverflowError for one more.

    State: ``counts``, a dict by class; and ``moments``, a dict by class and number of the feature,
    of ``mean`` and ``squares``. An event that learns changes the entries of its class, and each
    event reads those of all classes: it conflicts with those that learn just before it. Where it is
    rare that one of those that run at once has a label, few conflict.

    The operator raises ValueError for a feature that is NaN or larger than 1e100 (or less than
    -1e100).

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.learning import naive_bayes
    >>> events = {
    ...     "height": [1.0, 1.2, 4.0, 4.4, 1.1, 4.1],
    ...     "label": ["low", "low", "high", "high", None, None],
    ... }
    >>> with ss.Engine(naive_bayes(("height",)), threads=2) as engine:
    ...     engine.process(events)["predicted"].to_pylist()
    [None, 'low', 'low', 'low', 'low', 'high']
    """
    # One piece: state and operator are read together, and close over the same numbers.
    labelled, label = named_column("naive_bayes: label", label, "label")
    names = column_names("naive_bayes: features", features, (labelled,))
    smoothing = float(
        number("naive_bayes: smoothing", smoothing, 1e-100, 1e100, "a number from 1e-100 to 1e100")
    )
    classes = integer("naive_bayes: classes", classes, 1, 2**20)
    n = len(names)

    class Moments(ss.Record):
        mean: float = 0.0
        squares: float = 0.0

    class NaiveBayesState(ss.State):
        counts = ss.dict(label, int, limit=classes)
        moments = ss.dict((label, int), Moments, limit=classes * n)

    @ss.operator(
        state=NaiveBayesState,
        event={**dict.fromkeys(names, float), labelled: ss.nullable(label)},
        emits={"predicted": ss.nullable(label), "probability": ss.nullable(float)},
        name="naive_bayes",
    )
    def process(state, event, emit):  # type: ignore[no-untyped-def]
        x = [getattr(event, name) for name in names]
        check_features(x, "naive_bayes", names)

        # The sum of all classes' densities is kept as a multiple of the largest one, as they may be
        # too small for floats.
        predicted = None
        best = -math.inf
        multiple = 0.0
        seen = sum(state.counts.values())
        for one, count in state.counts.items():
            score = math.log(count / seen)
            for i in range(n):
                moments = state.moments[one, i]
                variance = moments.squares / count + smoothing
                off = x[i] - moments.mean
                score -= 0.5 * (_LOG_OF_2_PI + math.log(variance) + off * off / variance)
            if score > best:
                multiple = multiple * math.exp(best - score) + 1.0
                predicted, best = one, score
            else:
                multiple += math.exp(score - best)
        if predicted is None:
            emit()
        else:
            emit(predicted, 1.0 / multiple)

        known = getattr(event, labelled)
        if known is None:
            return
        count = state.counts.get(known, 0) + 1
        if count == 1 and len(state.counts) == classes:
            raise OverflowError(f"naive_bayes: one more class than classes={classes}")
        state.counts[known] = count
        for i in range(n):
            moments = state.moments.get((known, i))
            if moments is None:
                moments = Moments()
                state.moments[known, i] = moments
            off = x[i] - moments.mean
            moments.mean += off / count
            moments.squares += off * (x[i] - moments.mean)

    return process

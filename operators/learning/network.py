"""The score of each event by a small neural network that was trained elsewhere.

A dense network of one output: each layer multiplies by its weights, adds its biases and, but for
the last one, applies tanh or relu. Weights come as NumPy arrays, as scikit-learn's ``coefs_`` and
``intercepts_`` or Keras's ``get_weights`` give them. They are constants of the operator, which has
no state: its events never conflict, and what speculation gains is all of their time. A running
calibration, where it is asked for, is a state of three numbers.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import specstream as ss
from specstream.declarations.options import flag, items, one_of, refused, refuses_unknown
from specstream.operators.learning.features import (
    MOST,
    check_features,
    column_names,
)
from specstream.operators.learning.logistic_regression import logistic

__all__ = ["network"]


@refuses_unknown
def network(
    layers: Any,
    features: tuple[str, ...] = ("x", "y"),
    activation: str = "tanh",
    output: str = "linear",
    standardise: bool = False,
) -> ss.Operator:
    """The score that a dense network gives each event.

    Events have the columns named by ``features``, floats. Each emits one row ``(score,)``; with
    ``standardise`` it is ``(score, standard)``, where ``standard`` says by how many standard
    deviations the score is above the mean of all earlier scores, null as long as these are fewer
    than two or all equal.

    Products are added in the order of the features, and of the nodes of a layer, the bias last. A
    library that multiplies matrices adds in an order of its own, so that its scores differ in the
    last digits: at a node with ``i`` inputs by at most ``(i + 1) * 2**-52`` times the sum of the
    products' absolute values (to first order).

    Args:
        layers: of each layer a pair: the weights, an array (inputs, outputs), and the biases, an
            array (outputs,). The last layer has one output, and none more than 256. The arrays are
            copied, and are part of the operator: another network is another operator.
        features: names of the columns, as many as the first layer has inputs.
        activation: of all layers but the last one, ``"tanh"`` or ``"relu"``.
        output: of the last layer, ``"linear"`` or ``"logistic"``, a number between 0 and 1.
        standardise: whether scores are compared with those before.

    State: none. With ``standardise`` it is ``count``, ``mean`` and ``squares``, the sum of squared
    deviations, which every event reads and changes: events then run one after the other.

    The operator raises ValueError for a feature or a score that is NaN or larger than 1e100 (or
    less than -1e100).

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import numpy as np
    >>> import specstream as ss
    >>> from specstream.operators.learning import network
    >>> exclusive_or = [
    ...     (np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([0.0, -1.0])),
    ...     (np.array([[1.0], [-2.0]]), np.array([0.0])),
    ... ]
    >>> with ss.Engine(network(exclusive_or, activation="relu"), threads=2) as engine:
    ...     points = {"x": [0.0, 0.0, 1.0, 1.0], "y": [0.0, 1.0, 0.0, 1.0]}
    ...     engine.process(points)["score"].to_pylist()
    [0.0, 1.0, 1.0, 0.0]
    """
    # One piece: state and operator are read together, and close over the same numbers.
    names = column_names("network: features", features)
    sizes, weights = _checked(layers, len(names))
    is_tanh = one_of("network: activation", activation, ("tanh", "relu")) == "tanh"
    is_logistic = one_of("network: output", output, ("linear", "logistic")) == "logistic"
    last = len(sizes) - 2

    def score_of(event: Any) -> float:
        x = [getattr(event, name) for name in names]
        check_features(x, "network", names)
        at = 0  # in the weights: of each node those of its inputs, then its bias
        for layer in range(last + 1):
            outputs = [0.0] * sizes[layer + 1]
            for node in range(len(outputs)):
                total = 0.0
                for i in range(len(x)):
                    total += weights[at + i] * x[i]
                total += weights[at + len(x)]
                at += len(x) + 1
                if layer < last:
                    total = math.tanh(total) if is_tanh else max(total, 0.0)
                outputs[node] = total
            x = outputs
        score: float = logistic(x[0]) if is_logistic else x[0]
        if not -1e100 <= score <= 1e100:
            raise ValueError(f"network: the score is {score}; expected a number up to 1e100")
        return score

    columns = dict.fromkeys(names, float)

    if not flag("network: standardise", standardise):

        @ss.operator(event=columns, emits={"score": float}, name="network")
        def process(event, emit):  # type: ignore[no-untyped-def]
            emit(score_of(event))

        return process

    class NetworkState(ss.State):
        count = ss.scalar(int)
        mean = ss.scalar(float)
        squares = ss.scalar(float)

    @ss.operator(
        state=NetworkState,
        event=columns,
        emits={"score": float, "standard": ss.nullable(float)},
        name="network",
    )
    def process_standardised(state, event, emit):  # type: ignore[no-untyped-def]
        score = score_of(event)
        off = score - state.mean
        if state.count >= 2 and state.squares > 0.0:
            emit(score, off / math.sqrt(state.squares / state.count))
        else:
            emit(score)
        state.count += 1
        state.mean += off / state.count
        state.squares += off * (score - state.mean)

    return process_standardised


def _checked(layers: Any, features: int) -> tuple[list[int], np.ndarray]:
    """How many values go into each layer, and out; and of each node its weights and its bias."""
    sizes = [features]
    nodes: list[np.ndarray] = []
    for number, layer in enumerate(items("network: layers", layers, "pairs of arrays")):
        option = f"network: layers[{number}]"
        pair = items(option, layer, "a pair: weights and biases")
        if len(pair) != 2:
            raise refused(option, layer, "a pair: weights and biases")
        try:
            given = [np.asarray(one) for one in pair]
            if any(one.dtype.kind not in "biufO" for one in given):
                raise TypeError
            weights, biases = (one.astype(np.float64) for one in given)
        except (TypeError, ValueError):
            raise refused(option, layer, "arrays of real numbers") from None
        if weights.ndim != 2 or weights.shape[0] != sizes[-1]:
            raise ss.ConfigurationError(
                f"{option}: weights of the shape {weights.shape}; expected ({sizes[-1]}, outputs), "
                + ("as there are so many features" if number == 0 else "as the layer before gives")
            )
        if biases.shape != (weights.shape[1],) or not 1 <= weights.shape[1] <= MOST:
            raise ss.ConfigurationError(
                f"{option}: {weights.shape[1]} outputs and biases of the shape {biases.shape}; "
                f"expected one bias for each of 1 to {MOST} outputs"
            )
        if not (np.isfinite(weights).all() and np.isfinite(biases).all()):
            raise refused(option, layer, "finite numbers")
        nodes.append(np.vstack([weights, biases]).T.ravel())
        sizes.append(weights.shape[1])
    if len(sizes) == 1 or sizes[-1] != 1:
        raise ss.ConfigurationError(
            f"network: layers of {sizes[1:]} outputs; expected at least one layer, the last of one "
            "output"
        )
    return sizes, np.concatenate(nodes)

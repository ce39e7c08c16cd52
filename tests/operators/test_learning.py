"""Operators that learn: against NumPy on the events so far."""

import itertools
import math
import pickle
from collections import Counter, defaultdict, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.operators import library

import specstream as ss
from specstream.operators.learning import (
    k_nearest,
    linear_regression,
    logistic_regression,
    naive_bayes,
    network,
)

X = ("x", "y")


def blobs(count: int = 150, seed: int = 1) -> pa.Table:
    """Points around a centre for each class; a third has no label, some have equal features."""
    generator = np.random.default_rng(seed)
    kind = generator.integers(0, 3, count)
    x = generator.normal(size=count) + kind
    y = generator.normal(size=count) - 2.0 * kind
    y[10:20] = 0.5
    label = np.array(["red", "green", "blue"])[kind]
    return pa.table({"x": x, "y": y, "label": pa.array(label, mask=generator.random(count) < 0.3)})


def features_of(table: pa.Table, names: tuple[str, ...] = X) -> np.ndarray:
    return np.column_stack([table[name].to_numpy() for name in names])


@pytest.mark.parametrize(
    ("factory", "options"),
    [
        (naive_bayes, {"features": ()}),
        (naive_bayes, {"features": "x"}),
        (naive_bayes, {"features": ("x", "x")}),
        (naive_bayes, {"features": ("x", "class")}),
        (naive_bayes, {"features": ("x", "label")}),
        (naive_bayes, {"features": ("timestamp",)}),
        (naive_bayes, {"features": ("x; import os",)}),
        (naive_bayes, {"features": 3}),
        (naive_bayes, {"label": float}),
        (naive_bayes, {"smoothing": 0.0}),
        (naive_bayes, {"classes": 0}),
        (k_nearest, {"features": ("x", "label")}),
        (k_nearest, {"k": 0}),
        (k_nearest, {"label": bool}),
        (k_nearest, {"cells": 1000, "per_cell": 1000}),
        (k_nearest, {"low": 1.0, "high": 1.0}),
        (k_nearest, {"high": math.inf}),
        (linear_regression, {"features": ("target",)}),
        (linear_regression, {"ridge": 0.0}),
        (linear_regression, {"forgetting": 1.5}),
        (logistic_regression, {"features": ("x", "")}),
        (logistic_regression, {"rate": 0.0}),
        (logistic_regression, {"penalty": math.nan}),
        (logistic_regression, {"rate": 2.0, "penalty": 0.5}),
    ],
)
def test_wrong_options_are_refused(factory: Callable[..., ss.Operator], options: Any) -> None:
    with pytest.raises(ss.ConfigurationError, match=f"^{factory.__name__}: "):
        factory(**options)


ONE = (np.ones((2, 1)), np.zeros(1))


@pytest.mark.parametrize(
    "options",
    [
        {"layers": ()},
        {"layers": 5},
        {"layers": [np.ones((2, 1))]},
        {"layers": [(np.ones((2, 1)),)]},
        {"layers": [("ab", "c")]},
        {"layers": [(np.array([["1"], ["2"]]), np.zeros(1))]},
        {"layers": [(np.array([[1j], [2]]), np.zeros(1))]},
        {"layers": [(np.ones((3, 1)), np.zeros(1))]},
        {"layers": [(np.ones((2, 2)), np.zeros(2))]},
        {"layers": [(np.ones((2, 2)), np.zeros(3)), ONE]},
        {"layers": [ONE, ONE, ONE]},
        {"layers": [(np.array([[1.0], [math.nan]]), np.zeros(1))]},
        {"layers": [ONE], "features": ("x",)},
        {"layers": [ONE], "features": ("x", "random")},
        {"layers": [ONE], "activation": "sigmoid"},
        {"layers": [ONE], "output": "tanh"},
        {"layers": [ONE], "standardise": 1},
    ],
)
def test_wrong_networks_are_refused(options: Any) -> None:
    with pytest.raises(ss.ConfigurationError, match=r"^network: "):
        network(**options)


@pytest.mark.parametrize(
    "factory", [k_nearest, linear_regression, logistic_regression, naive_bayes]
)
def test_a_feature_that_is_no_number_is_refused(factory: Callable[..., ss.Operator]) -> None:
    operator = factory(features=("height",))
    columns: dict[str, Any] = {name: pa.nulls(4, of.arrow) for name, of in operator.event}
    columns["height"] = [math.nan, 1.0, -math.inf, 2e100]
    run = operator.run_sequential(pa.table(columns), on_error="skip")
    assert [row for row, _ in run.raised] == [0, 2, 3]
    assert str(run.raised[1][1]).startswith(f"{factory.__name__}: height=-inf; ")


@pytest.mark.parametrize(
    "factory", [k_nearest, linear_regression, logistic_regression, naive_bayes]
)
def test_no_event_no_row(factory: Callable[..., ss.Operator]) -> None:
    operator = factory(features=("height", "width"))
    columns: dict[str, list[Any]] = {name: [] for name, _ in operator.event}
    assert operator.run_sequential(columns).output.num_rows == 0


def test_naive_bayes_has_no_more_classes_than_there_may_be() -> None:
    events = {"x": [1.0, 2.0, 3.0], "y": [0.0] * 3, "label": ["a", "b", "a"]}
    run = naive_bayes(classes=1).run_sequential(events, on_error="skip")
    assert [row for row, _ in run.raised] == [1]
    with pytest.raises(OverflowError, match="naive_bayes: one more class than classes=1"):
        raise run.raised[0][1]
    assert dict(run.state.counts) == {"a": 2}


def test_an_operator_with_named_features_can_be_pickled() -> None:
    table = blobs(20)
    operator = naive_bayes()
    again = pickle.loads(pickle.dumps(operator))
    assert again.run_sequential(table).output == operator.run_sequential(table).output


# ---- naive Bayes ----


def bayes(x: np.ndarray, labels: list[Any], smoothing: float) -> list[tuple[Any, float] | None]:
    """Before each event: the probable class by means and variances of all events so far."""
    rows: list[tuple[Any, float] | None] = []
    for at in range(len(x)):
        classes = list(dict.fromkeys(one for one in labels[:at] if one is not None))
        if not classes:
            rows.append(None)
            continue
        joint = []
        for one in classes:
            of_class = x[:at][[label == one for label in labels[:at]]]
            variance = of_class.var(axis=0) + smoothing
            log_density = -((x[at] - of_class.mean(axis=0)) ** 2) / (2 * variance)
            log_density -= np.log(2 * np.pi * variance) / 2
            known = sum(label is not None for label in labels[:at])
            joint.append(math.log(len(of_class) / known) + log_density.sum())
        best = int(np.argmax(joint))
        rows.append((classes[best], float(1.0 / np.exp(np.array(joint) - joint[best]).sum())))
    return rows


def test_naive_bayes_is_bayes_rule_on_the_events_so_far() -> None:
    table = blobs()
    run = library.agrees(naive_bayes(smoothing=1e-3), table, are_none=True)
    expected = bayes(features_of(table), table["label"].to_pylist(), 1e-3)
    assert expected.count(None) == run.output["predicted"].null_count >= 1
    assert run.output["predicted"].to_pylist() == [one and one[0] for one in expected]
    found = run.output["probability"].to_pylist()[expected.count(None) :]
    np.testing.assert_allclose(found, [one[1] for one in expected if one], rtol=1e-9)


def test_naive_bayes_of_integers_and_far_points() -> None:
    table = pa.table(
        {
            "height": [0.0, 1.0, 1e100, -1e100, 0.2, 1e-300],
            "label": pa.array([7, -7, None, None, 7, None], pa.int64()),
        }
    )
    run = naive_bayes(("height",), label=int, smoothing=1e-100).run_sequential(table)
    assert run.output["predicted"].to_pylist() == [None, 7, 7, 7, 7, 7]
    assert run.output["probability"].to_pylist()[2:4] == [0.5, 0.5]
    assert run.raised == ()


# ---- regression ----


def line(count: int = 120, seed: int = 2) -> pa.Table:
    """Numbers that are linear in the features, with noise; every fourth has no target."""
    generator = np.random.default_rng(seed)
    x, y = generator.normal(size=count), generator.normal(100.0, 20.0, count)
    x[30:35] = 0.0
    target = 3.0 * x - 0.5 * y + 7.0 + generator.normal(size=count)
    return pa.table({"x": x, "y": y, "target": pa.array(target, mask=np.arange(count) % 4 == 3)})


def fits(table: pa.Table, ridge: float, forgetting: float) -> list[np.ndarray | None]:
    """Before each event: least squares over all rows so far, and rows that stand for the ridge."""
    x = np.column_stack([features_of(table), np.ones(len(table))])
    target = table["target"].to_numpy(zero_copy_only=False)
    found: list[np.ndarray | None] = []
    for at in range(len(table)):
        known = np.flatnonzero(~np.isnan(target[:at]))
        age = np.arange(len(known))[::-1]
        weight = np.append(forgetting ** (age / 2), np.full(2, forgetting ** (len(known) / 2)))
        rows = np.vstack([x[known], np.eye(2, 3) * math.sqrt(ridge)]) * weight[:, None]
        values = np.append(target[known], [0.0, 0.0]) * weight
        found.append(np.linalg.lstsq(rows, values, rcond=None)[0] if len(known) else None)
    return found


@pytest.mark.parametrize(("ridge", "forgetting"), [(1e-6, 1.0), (25.0, 0.95)])
def test_a_linear_regression_is_least_squares_on_the_events_so_far(
    ridge: float, forgetting: float
) -> None:
    table = line()
    operator = linear_regression(X, ridge, forgetting)
    if forgetting < 1.0:
        run = library.agrees(operator, table, are_none=True)
    else:
        run = operator.run_sequential(table)
    expected = fits(table, ridge, forgetting)
    assert expected[0] is None
    assert all(fit is not None for fit in expected[1:])
    points = zip(features_of(table), expected, strict=True)
    numbers = [fit @ [*point, 1.0] for point, fit in points if fit is not None]
    predicted = run.output["predicted"].to_numpy(zero_copy_only=False)
    assert np.isnan(predicted[0])
    np.testing.assert_allclose(predicted[1:], numbers, rtol=1e-9, atol=1e-9)
    error = run.output["error"].to_pylist()
    target = table["target"].to_pylist()
    assert error[0] is None
    for at in range(1, len(table)):
        one = target[at]
        assert error[at] == (None if one is None else one - predicted[at])


def test_a_linear_regression_stays_right_where_features_are_nearly_equal() -> None:
    generator = np.random.default_rng(3)
    x = generator.normal(size=400)
    y = x + 1e-6 * generator.normal(size=400)
    target = 2.0 * x - 3.0 * y + 1.0
    table = pa.table({"x": x, "y": y, "target": target})
    weights = linear_regression(X, ridge=1e-30).run_sequential(table).state.weights
    np.testing.assert_allclose(weights, [2.0, -3.0, 1.0], rtol=1e-7)


def test_a_linear_regression_of_few_events_and_of_what_is_forgotten() -> None:
    target = pa.array([5.0, 5.0, None, *[1.0] * 3000])
    x = [2.0, 2.0, 2.0, *[0.0] * 3000]
    run = linear_regression(forgetting=0.5).run_sequential({"x": x, "target": target})
    assert run.output["predicted"].to_pylist()[:2] == [None, pytest.approx(5.0)]
    assert run.state.weights[1] == 1.0
    assert math.isfinite(run.state.weights[0])
    spoilt = {"x": [1.0, 1.0], "target": [math.inf, math.nan]}
    run = linear_regression().run_sequential(spoilt, on_error="skip")
    assert [type(error) for _, error in run.raised] == [ValueError, ValueError]
    assert run.state.learned == 0


def test_a_coefficient_is_right_until_it_is_forgotten() -> None:
    quiet = 1100
    x = [1.0, 2.0, 3.0, 5.0, *[0.0, 1.0] * quiet]
    target = pa.array([1003.0, 1006.0, 1009.0, 1015.0, *[1000.0, None] * quiet])
    run = linear_regression(forgetting=0.25).run_sequential({"x": x, "target": target})
    steps = [round(one - 1000.0, 6) for one in run.output["predicted"].to_pylist()[5::2]]
    forgotten = steps.index(0.0)
    assert 900 < forgotten < quiet
    assert steps == [3.0] * forgotten + [0.0] * (quiet - forgotten)


def yes_or_no(count: int, seed: int = 4) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(count, 2))
    z = x @ [1.5, -1.0] + 0.5
    return x, generator.random(count) < 1.0 / (1.0 + np.exp(-z))


def test_a_logistic_regression_is_gradient_descent() -> None:
    x, label = yes_or_no(160)
    x[7], x[8] = (1e3, -1e3), (-1e6, 1e6)  # where a probability is 0 or 1
    unknown = np.arange(160) % 5 == 2
    columns = {"x": x[:, 0], "y": x[:, 1], "label": pa.array(label, mask=unknown)}
    table = pa.table(columns)
    run = library.agrees(logistic_regression(X, 0.3, 0.01), table, are_none=True)

    weights, expected = np.zeros(3), []
    with np.errstate(over="ignore"):
        for row, one, is_unknown in zip(x, label, unknown, strict=True):
            point = np.append(row, 1.0)
            expected.append(1.0 / (1.0 + np.exp(-(weights @ point))))
            if not is_unknown:
                gradient = (expected[-1] - one) * point + 0.01 * weights * [1.0, 1.0, 0.0]
                weights = weights - 0.3 * gradient
    found = run.output["probability"].to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(run.state.weights, weights, rtol=1e-9)


def test_a_logistic_regression_comes_near_the_most_probable_weights() -> None:
    x, label = yes_or_no(3000)
    rows = np.column_stack([x, np.ones(len(x))])
    best = np.zeros(3)
    for _ in range(20):  # Newton's method on all events at once
        p = 1.0 / (1.0 + np.exp(-rows @ best))
        best += np.linalg.solve((rows.T * (p * (1.0 - p))) @ rows, rows.T @ (label - p))
    columns = {"x": x[:, 0], "y": x[:, 1], "label": label}
    run = logistic_regression(X, 0.02).run_sequential(columns)
    assert np.abs(run.state.weights - best).max() < 0.2


# ---- nearest neighbours ----


def votes(
    x: np.ndarray, labels: list[Any], k: int, cells: int, per_cell: int, low: float, high: float
) -> list[tuple[Any, float | None]]:
    """Before each event: a vote of the nearest of all points that are kept, by a full search."""
    kept: defaultdict[tuple[int, ...], deque[Any]] = defaultdict(lambda: deque(maxlen=per_cell))
    rows: list[tuple[Any, float | None]] = []
    for at, (point, label) in enumerate(zip(x, labels, strict=True)):
        every = sorted(
            (sum((point - other) ** 2), number, one)
            for cell in kept.values()
            for number, other, one in cell
        )[:k]
        count = Counter(one for _, _, one in every)
        best = max(count.values(), default=0)
        first = next((one for _, _, one in every if count[one] == best), None)
        rows.append((first, best / len(every) if every else None))
        if label is not None:
            cell = np.clip((point[:2] - low) // ((high - low) / cells), 0, cells - 1)
            kept[tuple(cell.astype(int))].append((at, point, label))
    return rows


@pytest.mark.parametrize("names", [("x",), ("x", "y"), ("x", "y", "z")])
def test_the_nearest_vote_as_in_a_search_through_all_points(names: tuple[str, ...]) -> None:
    count = 160
    generator = np.random.default_rng(6)
    x = generator.normal(size=(count, len(names)))
    x[40:80] = x[40:80].round()  # at the same distance, and on edges of cells
    x[100:110] = x[0]
    x[120] *= 1e50
    label = generator.integers(0, 3, count)
    unknown = generator.random(count) < 0.2
    columns = dict(zip(names, x.T, strict=True))
    table = pa.table({**columns, "label": pa.array(label, mask=unknown)})
    options: dict[str, Any] = {"k": 4, "cells": 5, "per_cell": 6, "low": -1.5, "high": 1.0}
    operator = k_nearest(names, label=int, **options)
    if len(names) == 3:
        run = library.agrees(operator, table, are_none=True)
    else:
        run = operator.run_sequential(table)
    expected = votes(x, table["label"].to_pylist(), **options)
    assert run.output["predicted"].to_pylist() == [one for one, _ in expected]
    assert run.output["share"].to_pylist() == [share for _, share in expected]


def test_classes_far_apart_are_told_apart() -> None:
    generator = np.random.default_rng(7)
    kind = generator.integers(0, 2, 300)
    x = 0.3 + 0.4 * kind + generator.normal(scale=0.05, size=300)
    columns = {"x": x, "y": generator.random(300), "label": np.array(["no", "yes"])[kind]}
    run = k_nearest().run_sequential(columns)
    wrong = [
        a != b for a, b in zip(run.output["predicted"].to_pylist(), columns["label"], strict=True)
    ]
    assert sum(wrong[20:]) == 0


# ---- networks ----


def layers_of(*sizes: int, seed: int = 11) -> list[tuple[np.ndarray, np.ndarray]]:
    generator = np.random.default_rng(seed)
    return [
        (generator.normal(size=(a, b)), generator.normal(size=b))
        for a, b in itertools.pairwise(sizes)
    ]


def scores(layers: Any, x: np.ndarray, activation: Callable[[np.ndarray], Any]) -> np.ndarray:
    for weights, biases in layers[:-1]:
        x = activation(x @ weights + biases)
    weights, biases = layers[-1]
    return np.asarray(x @ weights + biases)[:, 0]


def relu(x: np.ndarray) -> Any:
    return np.maximum(x, 0.0)


@pytest.mark.parametrize(("activation", "by_numpy"), [("tanh", np.tanh), ("relu", relu)])
def test_a_network_scores_as_in_numpy(
    activation: str, by_numpy: Callable[[np.ndarray], Any]
) -> None:
    table = blobs(60).select(X)
    layers = layers_of(2, 7, 5, 1)
    operator = network(layers, X, activation)
    run = (
        library.agrees(operator, table) if activation == "tanh" else operator.run_sequential(table)
    )
    expected = scores(layers, features_of(table), by_numpy)
    np.testing.assert_allclose(run.output["score"].to_numpy(), expected, rtol=0, atol=1e-12)


def test_a_network_of_one_layer_and_its_logistic_score() -> None:
    table = pa.table({"x": [0.0, 1.0, -800.0, 800.0, 1e100], "y": [0.0] * 5})
    layers = [(np.array([[1.0], [0.5]]), np.array([0.25]))]
    run = network(layers, output="logistic").run_sequential(table)
    expected = [1.0 / (1.0 + math.exp(-0.25)), 1.0 / (1.0 + math.exp(-1.25)), 0.0, 1.0, 1.0]
    assert run.output["score"].to_pylist() == pytest.approx(expected, rel=1e-15, abs=1e-300)


def test_a_score_that_is_not_finite_is_refused() -> None:
    steep = [(np.full((2, 2), 1e300), np.zeros(2)), (np.array([[1.0], [-1.0]]), np.zeros(1))]
    table = pa.table({"x": [1.0, 1e50, -1e50], "y": [0.0] * 3})
    run = library.agrees(network(steep, activation="relu"), table)
    assert [row for row, _ in run.raised] == [1]
    assert str(run.raised[0][1]).startswith("network: the score is nan; ")
    assert run.output["score"].to_pylist() == [0.0, 0.0]


def test_standardised_scores_are_those_of_the_scores_so_far() -> None:
    table = blobs(80).select(X)
    columns = {name: np.append([1.0, 1.0, 1.0], table[name].to_numpy()) for name in X}
    layers = layers_of(2, 4, 1)
    run = library.agrees(network(layers, standardise=True), pa.table(columns))
    score = run.output["score"].to_numpy()
    standard = run.output["standard"].to_pylist()
    assert standard[:4] == [None] * 4
    expected = [(score[at] - score[:at].mean()) / score[:at].std() for at in range(4, len(score))]
    np.testing.assert_allclose(standard[4:], expected, rtol=1e-9)


def test_the_weights_are_those_at_the_declaration() -> None:
    layers = layers_of(2, 3, 1)
    point = {"x": [1.0], "y": [2.0]}
    operator = network(layers)
    before = operator.run_sequential(point).output
    layers[0][0][:] = 0.0
    assert operator.run_sequential(point).output == before
    assert pickle.loads(pickle.dumps(operator)).run_sequential(point).output == before


@pytest.mark.parametrize(
    ("factory", "option", "name", "of", "values"),
    [
        (k_nearest, "label", {"kind": str}, "kind", ["a", "b", None]),
        (naive_bayes, "label", {"kind": str}, "kind", ["a", "b", None]),
        (linear_regression, "target", "price", "price", [1.0, 2.5, None]),
        (logistic_regression, "label", "clicked", "clicked", [True, False, None]),
    ],
)
def test_the_column_to_learn_from_may_have_another_name(
    factory: Callable[..., ss.Operator], option: str, name: Any, of: str, values: list[Any]
) -> None:
    table = {"u": [0.1, 0.9, 0.2], option: values}
    expected = factory(features=["u"]).run_sequential(table).output
    with ss.Engine(factory(features=["u"], **{option: name})) as engine:
        assert engine.process({"u": table["u"], of: values}).equals(expected)
    with pytest.raises(ss.ConfigurationError, match=f"^{factory.__name__}: {option}='def'; exp"):
        factory(**{option: "def" if isinstance(name, str) else {"def": str}})
    with pytest.raises(ss.ConfigurationError, match=f"^{factory.__name__}: features='{of}'; exp"):
        factory(features=["u", of], **{option: name})

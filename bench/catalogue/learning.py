"""Pictures of the models that learn from a stream."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, ListedColormap
from matplotlib.figure import Figure

import specstream as ss
from bench.catalogue.runs import CAME, LOOKS, ONE, THREE, TWO, dots, lines, panel, ran
from specstream.figures.style import in_style, legend
from specstream.operators import learning

__all__ = ["k_nearest", "linear_regression", "logistic_regression", "naive_bayes", "network"]

_CLASSES = {"a": ONE, "b": TWO, "c": THREE}
_MARKERS = {"a": "o", "b": "s", "c": "^"}
# Of the map behind the points, along each side.
_CELLS = 30


def _after(counts: tuple[int, ...], learned: Any, asked: Any, unknown: str) -> dict[str, list[Any]]:
    """The events, among which the same questions are asked after so many of them."""
    table: dict[str, list[Any]] = {name: [] for name in learned}
    for first, last in zip((0, *counts), counts, strict=False):
        for name, column in table.items():
            column += list(learned[name][first:last])
            column += [None] * len(asked) if name == unknown else list(asked)
    return table


def _answers(found: Any, column: str, counts: tuple[int, ...], asked: int) -> list[Any]:
    """What was predicted where the questions were."""
    ends = [count + asked * (number + 1) for number, count in enumerate(counts)]
    return [found[column][end - asked : end] for end in ends]


@in_style
def linear_regression() -> Figure:
    """What is predicted after 3, after 10 and after 200 events."""
    rng = np.random.default_rng(4)
    x = rng.uniform(0.0, 10.0, 200)
    events = {"x": x.tolist(), "target": (2.0 + 0.7 * x + rng.normal(0.0, 1.5, 200)).tolist()}
    asked, counts = np.linspace(0.0, 10.0, 11).tolist(), (3, 10, 200)
    found = ran(learning.linear_regression(), _after(counts, events, asked, "target"))
    figure, axes = panel("x", "target")
    dots(axes, x, events["target"], "the events", CAME, ".")
    names = [f"after {count}" for count in counts]
    answers = _answers(found, "predicted", counts, len(asked))
    for name, of, look in zip(names, answers, (TWO, THREE, ONE), strict=True):
        lines(axes, asked, of, name, look)
    legend(figure, ["the events", *names], LOOKS)
    return figure


@in_style
def logistic_regression() -> Figure:
    """The probability that is predicted after 20, after 100 and after 1,000 events."""
    rng = np.random.default_rng(5)
    x = rng.normal(0.0, 2.0, 1000)
    truth = 1.0 / (1.0 + np.exp(-(1.5 * x - 1.0)))
    labels = (rng.random(1000) < truth).tolist()
    asked, counts = np.linspace(-5.0, 5.0, 51).tolist(), (20, 100, 1000)
    table = _after(counts, {"x": x.tolist(), "label": labels}, asked, "label")
    found = ran(learning.logistic_regression(), table)
    figure, axes = panel("x", "probability")
    exact = 1.0 / (1.0 + np.exp(-(1.5 * np.array(asked) - 1.0)))
    axes.plot(asked, exact, color=CAME.colour, linewidth=4.0, alpha=0.6, label="the true one")
    LOOKS.setdefault("the true one", CAME)
    names = [f"after {count:,}" for count in counts]
    answers = _answers(found, "probability", counts, len(asked))
    for name, of, look in zip(names, answers, (TWO, THREE, ONE), strict=True):
        lines(axes, asked, of, name, look)
    legend(figure, ["the true one", *names], LOOKS)
    return figure


def _clouds() -> dict[str, list[Any]]:
    """Points of three classes, which overlap."""
    rng = np.random.default_rng(12)
    table: dict[str, list[Any]] = {"x": [], "y": [], "label": []}
    for number in rng.integers(0, 3, 150):
        middle = ((0.3, 0.3), (0.65, 0.4), (0.45, 0.75))[number]
        x, y = np.clip(rng.normal(middle, (0.1, 0.12)), 0.02, 0.98)
        for name, value in zip(table, (float(x), float(y), "abc"[number]), strict=True):
            table[name].append(value)
    return table


def _map(operators: dict[str, tuple[ss.Operator, int]]) -> Figure:
    """The class that is predicted at each place after so many points."""
    at = (np.arange(_CELLS) + 0.5) / _CELLS
    x, y = (one.ravel().tolist() for one in np.meshgrid(at, at))
    figure, panels = panel("x", "y", 3.2, len(operators))
    for axes, (title, (operator, count)) in zip(
        np.atleast_1d(panels), operators.items(), strict=True
    ):
        table = {name: column[:count] for name, column in _clouds().items()}
        events = {"x": table["x"] + x, "y": table["y"] + y}
        events["label"] = table["label"] + [None] * len(x)
        found = ran(operator, events)["predicted"][-len(x) :]
        classes = np.array(["abc".index(str(one)) for one in found]).reshape(_CELLS, _CELLS)
        colours = ListedColormap([look.colour for look in _CLASSES.values()])
        axes.imshow(
            classes, cmap=colours, vmin=0, vmax=2, alpha=0.25, origin="lower", extent=(0, 1, 0, 1)
        )
        axes.set_title(title)
        for name, look in _CLASSES.items():
            which = [number for number, label in enumerate(table["label"]) if label == name]
            across, along = ([table[column][one] for one in which] for column in ("x", "y"))
            dots(axes, across, along, f"class {name}", look, _MARKERS[name])
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
    legend(figure, [f"class {name}" for name in _CLASSES], LOOKS)
    return figure


@in_style
def k_nearest() -> Figure:
    """The class that is predicted at each place after 150 points, by one neighbour and by 15."""
    return _map({f"k={k}": (learning.k_nearest(k=k, cells=8), 150) for k in (1, 15)})


@in_style
def naive_bayes() -> Figure:
    """The class that is predicted at each place after 15 and after 150 points."""
    return _map({f"after {count}": (learning.naive_bayes(), count) for count in (15, 150)})


@in_style
def network() -> Figure:
    """The score at each place, by a network of two nodes that tells two corners from the rest."""
    hidden = np.array([[6.0, 6.0], [6.0, 6.0]])
    layers = [(hidden, np.array([-3.0, -9.0])), (np.array([[3.0], [-3.0]]), np.array([-3.0]))]
    at = (np.arange(_CELLS) + 0.5) / _CELLS
    x, y = (one.ravel() for one in np.meshgrid(at, at))
    operator = learning.network(layers, output="logistic")
    score = ran(operator, {"x": x, "y": y})["score"].reshape(_CELLS, _CELLS)
    figure, axes = panel("x", "y")
    colours = LinearSegmentedColormap.from_list("scores", ["white", ONE.colour])
    shown = axes.imshow(
        score, cmap=colours, vmin=0, vmax=1, aspect="auto", origin="lower", extent=(0, 1, 0, 1)
    )
    figure.colorbar(shown, ax=axes, label="score")
    return figure

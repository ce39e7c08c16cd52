"""Pictures of the summaries of a long stream."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.catalogue.runs import CAME, LOOKS, ONE, THREE, TWO, dots, lines, panel, ran
from specstream.figures.style import from_zero, in_style, legend, line_at, plain_ticks
from specstream.operators import synopses

__all__ = [
    "adaptive_histogram",
    "count_min",
    "count_sketch",
    "haar_wavelet",
    "histogram",
    "hyper_log_log",
    "quantiles",
    "reservoir",
    "space_saving",
]


def _two_hills(count: int, seed: int) -> Any:
    rng = np.random.default_rng(seed)
    narrow = rng.random(count) < 0.4
    return np.where(narrow, rng.normal(2.0, 0.15, count), rng.normal(6.0, 1.5, count))


def _items(count: int, seed: int) -> list[int]:
    """Items of which few are frequent, by Zipf's law."""
    return [int(one) for one in np.random.default_rng(seed).zipf(1.5, count) % 500]


@in_style
def histogram() -> Figure:
    """40 bins of equal width over 2,000 values."""
    values = _two_hills(2000, 1)
    found = ran(synopses.histogram(0.0, 10.0, bins=40, every=2000), {"value": values})
    known = np.isfinite(found["low"]) & np.isfinite(found["high"])
    low, high = found["low"][known], found["high"][known]
    figure, axes = panel("value", "count")
    axes.bar(low, found["count"][known], (high - low) * 0.92, align="edge", color=ONE.colour)
    from_zero([axes])
    return figure


@in_style
def adaptive_histogram() -> Figure:
    """The centres of 24 bins, each at the share of values that are below it."""
    values = np.sort(_two_hills(2000, 1))
    shuffled = np.random.default_rng(2).permutation(values)
    found = ran(synopses.adaptive_histogram(bins=24, every=2000), {"value": shuffled})
    centres, counts = found["centre"], found["count"]
    figure, axes = panel("value", "share of values below")
    lines(axes, values, np.arange(2000) / 2000, "all 2,000 values", CAME)
    dots(axes, centres, (np.cumsum(counts) - counts / 2) / 2000, "bins", ONE)
    legend(figure, ["all 2,000 values", "bins"], LOOKS)
    return figure


@in_style
def haar_wavelet() -> Figure:
    """256 values, and what 16 of their 256 coefficients make of them."""
    rng = np.random.default_rng(6)
    base = np.concatenate([np.full(90, 2.0), np.linspace(6.0, 4.0, 80), np.full(86, 1.0)])
    values = base + rng.normal(0.0, 0.4, 256)
    found = ran(synopses.haar_wavelet(block=256, k=16), {"value": values})
    back = np.zeros(256)
    for index, coefficient in zip(found["index"], found["coefficient"], strict=True):
        if index == 0:
            back += coefficient / 16
            continue
        scale = 1 << (int(index).bit_length() - 1)
        length = 256 // scale
        start = (int(index) - scale) * length
        back[start : start + length // 2] += coefficient / np.sqrt(length)
        back[start + length // 2 : start + length] -= coefficient / np.sqrt(length)
    figure, axes = panel("event", "value")
    lines(axes, range(256), values, "what came", CAME)
    lines(axes, range(256), back, "from 16 coefficients", ONE)
    legend(figure, ["what came", "from 16 coefficients"], LOOKS)
    return figure


@in_style
def quantiles() -> Figure:
    """Quantiles of all values so far, every 50 events, where the values grow after event 500."""
    rng = np.random.default_rng(3)
    values = rng.lognormal(3.0, 0.5, 1000) * np.where(np.arange(1000) < 500, 1.0, 2.0)
    wanted = [0.5, 0.9, 0.99]
    found = ran(synopses.quantiles(wanted, every=50), {"value": values})
    figure, axes = panel("event", "value")
    dots(axes, range(1000), values, "each value", CAME, ".")
    for p, look in zip(wanted, (ONE, THREE, TWO), strict=True):
        which = found["probability"] == p
        lines(axes, found["sequence"][which], found["value"][which], f"p = {p}", look)
    from_zero([axes])
    legend(figure, ["each value", *(f"p = {p}" for p in wanted)], LOOKS)
    return figure


@in_style
def hyper_log_log() -> Figure:
    """The error of the estimate as different items come, with 256 and with 4,096 registers."""
    count = 10_000
    figure, axes = panel("different items so far", "error (%)")
    for precision, look in ((8, TWO), (12, ONE)):
        found = ran(synopses.hyper_log_log(precision), {"item": range(count)})
        ends = np.unique(np.geomspace(10, count, 120).astype(int))
        last = np.searchsorted(found["sequence"], ends - 1, "right") - 1
        error = 100 * (found["distinct"][last] / ends - 1)
        lines(axes, ends, error, f"precision={precision}", look)
    line_at(axes, 0.0)
    axes.set_xscale("log")
    plain_ticks(axes.xaxis, [10, 100, 1000, 10_000])
    legend(figure, ["precision=8", "precision=12"], LOOKS)
    return figure


@in_style
def count_min() -> Figure:
    """Estimates beside the true counts, 3,000 events in 3 rows of 64 counters: never too low."""
    items = _items(3000, 8)
    true = Counter(items)
    figure, axes = panel("how often an item came", "estimate")
    most = max(true.values())
    lines(axes, [1, most], [1, most], "exact", CAME)
    for conservative, name, look, marker in (
        (False, "as they are", TWO, "o"),
        (True, "conservative=True", ONE, "^"),
    ):
        operator = synopses.count_min(width=64, rows=3, conservative=conservative)
        found = ran(operator, {"item": items})
        last = dict(zip(found["item"].tolist(), found["count"].tolist(), strict=True))
        dots(axes, [true[item] for item in last], list(last.values()), name, look, marker)
    for axis in ("x", "y"):
        getattr(axes, f"set_{axis}scale")("log")
        plain_ticks(getattr(axes, f"{axis}axis"), [1, 10, 100, 1000])
    legend(figure, ["exact", "as they are", "conservative=True"], LOOKS)
    return figure


@in_style
def count_sketch() -> Figure:
    """Errors of 5 rows of 64 counters, 3,000 events of 500 items, none of which is dominant."""
    chances = 1 / np.sqrt(np.arange(1, 501))
    items = np.random.default_rng(8).choice(500, 3000, p=chances / chances.sum()).tolist()
    true = Counter(items)
    figure, axes = panel("how often an item came", "error of the estimate")
    for name, of, look, marker in (
        ("count_min", synopses.count_min, TWO, "o"),
        ("count_sketch", synopses.count_sketch, ONE, "^"),
    ):
        found = ran(of(width=64, rows=5), {"item": items})
        last = dict(zip(found["item"].tolist(), found["count"].tolist(), strict=True))
        errors = [count - true[item] for item, count in last.items()]
        dots(axes, [true[item] for item in last], errors, name, look, marker)
    line_at(axes, 0.0)
    legend(figure, ["count_min", "count_sketch"], LOOKS)
    return figure


@in_style
def reservoir() -> Figure:
    """400 values, and the sample of 25 that is left of them."""
    rng = np.random.default_rng(9)
    values = np.cumsum(rng.normal(0.0, 1.0, 400))
    found = ran(synopses.reservoir(25), {"value": values}, seed=2)
    last = dict(zip(found["place"].tolist(), found["sequence"].tolist(), strict=True))
    kept = sorted(last.values())
    figure, axes = panel("event", "value")
    lines(axes, range(400), values, "what came", CAME)
    dots(axes, kept, values[kept], "in the sample", ONE)
    legend(figure, ["what came", "in the sample"], LOOKS)
    return figure


@in_style
def space_saving() -> Figure:
    """The counts of the most frequent of 3,000 items, 30 counters: at least, at most, and true."""
    items = _items(3000, 8)
    true = Counter(items)
    found = ran(synopses.space_saving(k=30), {"item": items})
    rows = zip(found["item"], found["count"], found["error"], strict=True)
    last = {int(item): (int(count), int(error)) for item, count, error in rows}
    first = [item for item, _ in true.most_common(14)]
    figure, axes = panel("item, the most frequent first", "count")
    places = range(1, 15)
    most = np.array([last[item][0] for item in first])
    least = most - [last[item][1] for item in first]
    axes.vlines(places, least, most, color=ONE.colour, linewidth=3.0)
    dots(axes, places, most, "at most", ONE, "v")
    dots(axes, places, least, "at least", THREE, "^")
    dots(axes, places, [true[item] for item in first], "true", TWO)
    axes.set_yscale("log")
    plain_ticks(axes.yaxis, [1, 10, 100, 1000])
    legend(figure, ["at most", "at least", "true"], LOOKS)
    return figure

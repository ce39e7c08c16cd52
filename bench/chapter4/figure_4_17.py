"""Figure 4.17: dynamic and static horizons over the sinusoidal load."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.margin import above, quartiles, shown
from bench.chapter4.sinusoid import (
    EVERY,
    LIMIT,
    PREDICTORS,
    STRETCHES,
    THREADS,
    WORK,
    Stretches,
    by_horizon,
    follow,
    mean_of,
    parameters,
    predictors,
    why_not_by_horizon,
)
from specstream.figures.style import bars_height, draw_bars, in_style, legend, new_figure

SECONDS = 3.0
ROUNDS = 5
STATIC = ("static 5", "static 10")


def measure(effort: Effort, say: Say) -> Data:
    """Dropped runs and throughput, quartiles of some periods, by protocol and predictor."""
    found: dict[str, Any] = {"means": {}, "control": {}, "sleep": {}}
    for protocol in TRANSACTIONAL:
        say(protocol)
        wanted = {**predictors(), STRETCHES: Stretches(LIMIT, 1)}
        points, slept = follow(wanted, protocol, SECONDS * effort.scale, effort.times(ROUNDS))
        found["means"][protocol] = {
            name: {
                "horizon": statistics.fmean(mean_of(period, "horizon") for period in periods),
                **{
                    what: quartiles([mean_of(period, what) for period in periods])
                    for what in ("per transaction", "per run", "throughput")
                },
            }
            for name, periods in points.items()
        }
        found["sleep"][protocol] = slept.ratio
        say(f"{protocol}, control")
        found["control"][protocol] = by_horizon(protocol, effort)
    return found


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 1.2 + 2 * (0.6 + bars_height(len(PREDICTORS), 2)), rows=2)
    for axes, what, scale, label in zip(
        panels[:, 0],
        ("per transaction", "throughput"),
        (100, 0.001),
        ("dropped runs per 100 transactions", "throughput (1000 events/s)"),
        strict=True,
    ):
        groups: dict[str, dict[str, float | tuple[float, float, float]]] = {}
        for name in PREDICTORS:
            groups[name] = {}
            for protocol in TRANSACTIONAL:
                low, middle, high = data["means"][protocol][name][what]
                groups[name][protocol] = (scale * low, scale * middle, scale * high)
        draw_bars(axes, groups, "{:.1f}")
        axes.set_xlabel(label)
    real = ", ".join(f"{1e6 * WORK * data['sleep'][p]:.0f} ({p})" for p in TRANSACTIONAL)
    panels[0, 0].set_title(f"A sleep of {1e6 * WORK:.0f} µs took {real} µs")
    legend(figure, TRANSACTIONAL, bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        means, control = data["means"][protocol], data["control"][protocol]
        dropped = {name: means[name]["per transaction"] for name in PREDICTORS}
        driven = means["throughput-driven"]
        others = [name for name in PREDICTORS if name != "abort-driven"]
        findings.append(
            Finding(
                f"the abort-driven predictor drops the fewest runs ({protocol})",
                f"{_list(dropped, '{:.2f}')} per transaction",
                all(above(dropped[name], dropped["abort-driven"]) for name in others),
                _why_not_fewest(means, others),
            )
        )
        fastest = max(STATIC, key=lambda name: means[name]["throughput"][1])
        rates = {
            name: means[name]["throughput"] for name in ("throughput-driven", *STATIC, STRETCHES)
        }
        findings.append(
            Finding(
                f"the throughput-driven one is as fast as static, within a tenth ({protocol})",
                f"{_list(rates, '{:,.0f}')} events/s",
                driven["throughput"][1] > 0.9 * means[fastest]["throughput"][1],
                _why_slower(means),
            )
        )
        findings += [
            Finding(
                f"the throughput-driven one drops fewer runs than {name} ({protocol})",
                f"{shown(driven['per transaction'])} against {shown(dropped[name])} per "
                f"transaction ({driven['per run'][1]:.0%} against "
                f"{means[name]['per run'][1]:.0%} of the speculative runs)",
                above(dropped[name], driven["per transaction"]),
                _why_not_fewer(means, name, control),
            )
            for name in STATIC
        ]
    return findings


def _list(values: Mapping[str, Any], form: str) -> str:
    return ", ".join(f"{name} {shown(quartiles, form)}" for name, quartiles in values.items())


def _why_not_fewest(means: Mapping[str, Any], others: list[str]) -> str:
    """The reason would be that those who drop as few stand at a horizon that is no longer."""
    mine = means["abort-driven"]
    rivals = [
        name
        for name in others
        if not above(means[name]["per transaction"], mine["per transaction"])
    ]
    seen = ", ".join(f"{name} {means[name]['horizon']:.1f}" for name in ("abort-driven", *rivals))
    if rivals and all(means[name]["horizon"] <= mine["horizon"] for name in rivals):
        return f"those who drop no more have no longer a horizon, on the mean: {seen}."
    return f"Not explained: mean horizons were {seen}."


def _why_not_fewer(means: Mapping[str, Any], name: str, control: Mapping[str, Any]) -> str:
    """The reasons would be that its stretches end, or that dropped runs do not slow it down."""
    driven, cut, rival = (means[one] for one in ("throughput-driven", STRETCHES, name))
    what = "per transaction"
    told, blind = why_not_by_horizon(control)
    seen = (
        f"the mean horizon was {driven['horizon']:.1f}; static 10 that ends its stretches every "
        f"{EVERY} transactions dropped {shown(cut[what])} runs per transaction; {told}"
    )
    if above(driven[what], rival[what]) and driven["horizon"] <= rival["horizon"]:
        # More, though it runs no farther ahead.
        if not above(driven[what], cut[what]) and above(cut[what], rival[what]):
            return f"the end of a stretch makes runs conflict: {seen}."
        return f"Not explained: {seen}."
    if blind:
        return f"dropped runs do not slow it down, so it does not avoid them: {seen}."
    return f"Not explained: {seen}."


def _why_slower(means: Mapping[str, Any]) -> str:
    """The reason would be that its stretches end: a static horizon with the same stretches says."""
    whole, cut, driven = (
        means[name]["throughput"][1] for name in ("static 10", STRETCHES, "throughput-driven")
    )
    seen = (
        f"static 10 runs at {cut / whole:.0%} of its speed where its stretches end every {EVERY} "
        f"transactions, and the throughput-driven predictor at {driven / cut:.0%} of that, at a "
        f"mean horizon of {means['throughput-driven']['horizon']:.1f}"
    )
    if driven > 0.9 * cut:
        return f"a decision ends a stretch: {seen}."
    if means["throughput-driven"]["horizon"] < means["static 5"]["horizon"]:
        return f"it did not stay at a long horizon: {seen}."
    return f"Not explained: {seen}."


EXPERIMENT = Experiment(
    name="figure_4_17",
    title="Figure 4.17: dynamic and static horizons",
    section="4.5.3",
    claim=(
        "The abort-driven predictor reruns least; the throughput-driven one is about as fast as a "
        "static horizon, with fewer reruns."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "dropped runs": (
            "speculative runs that were dropped, per committed transaction as in the text; a "
            "transaction can lose several. Lines at the ends of bars are quartiles"
        ),
        STRETCHES: (
            f"a control, not drawn: static 10 whose threads wait for each other every {EVERY} "
            "transactions, as those of the dynamic predictors do"
        ),
        **parameters(),
    },
    notes=(
        f"The load of Figure 4.16: {THREADS} threads, {1e6 * WORK:.0f} µs of sleep after the "
        f"increment. {ROUNDS} periods of {SECONDS:.0f} seconds for each, which take turns batch by "
        "batch."
    ),
)

"""Figure 4.16: the two predictors of the text, over a load whose parallelism comes and goes."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.margin import above, quartiles, shown
from bench.chapter4.sinusoid import (
    THREADS,
    THRESHOLD,
    WORDS,
    WORK,
    by_horizon,
    follow,
    mean_of,
    parameters,
    predictors,
)
from specstream.figures.palette import look
from specstream.figures.style import from_zero, in_style, legend, new_figure

SECONDS = 9.0
ROUNDS = 5
WANTED = ("abort-driven", "throughput-driven")
# What a panel shows, with the digits of its values that can be seen; seconds have two.
PANELS = {"size": 0, "per transaction": 3, "throughput": -1}
# A panel is some two hundred pixels high: of a series what is nearer than one is left out.
UNSEEN = 0.005
# Words in use where there is little to run in parallel, and where there is much.
NARROW, WIDE = 3, 15


def measure(effort: Effort, say: Say) -> Data:
    """Size of the state, share of dropped runs and throughput, over a period, by protocol."""
    found: dict[str, Any] = {"series": {}, "means": {}, "control": {}, "sleep": {}}
    for protocol in TRANSACTIONAL:
        say(protocol)
        wanted = {name: one for name, one in predictors().items() if name in WANTED}
        points, slept = follow(wanted, protocol, SECONDS * effort.scale, effort.times(ROUNDS))
        found["series"][protocol] = {name: _series(points[name][-1]) for name in WANTED}
        found["means"][protocol] = {name: _means(points[name]) for name in WANTED}
        found["sleep"][protocol] = slept.ratio
        say(f"{protocol}, control")
        found["control"][protocol] = by_horizon(protocol, effort)
    return found


def _series(points: Sequence[Mapping[str, float]]) -> dict[str, dict[str, list[float]]]:
    """What the panels show: each point the median of some, and no more than can be seen."""
    found = {}
    for what, digits in PANELS.items():
        at = [point["at"] for point in points]
        values = _smooth([point[what] for point in points])
        kept = visible(at, values, UNSEEN * (max(values) - min(values)))
        found[what] = {
            "at": [round(at[number], 2) for number in kept],
            "values": [round(values[number], digits) for number in kept],
        }
    return found


def visible(at: Sequence[float], values: Sequence[float], unseen: float) -> list[int]:
    """The points of a line that can stand for all: nowhere is it farther off than ``unseen``.

    >>> visible([0, 1, 2, 3, 4], [5.0, 5.0, 5.0, 5.2, 9.0], 0.1)
    [0, 2, 3, 4]
    """
    kept = {0, len(values) - 1}
    pieces = [(0, len(values) - 1)]
    while pieces:
        first, last = pieces.pop()
        slope = (values[last] - values[first]) / max(at[last] - at[first], 1e-9)
        apart = [
            abs(values[n] - values[first] - slope * (at[n] - at[first])) for n in range(first, last)
        ]
        if apart and max(apart) > unseen:
            farthest = first + apart.index(max(apart))
            kept.add(farthest)
            pieces += [(first, farthest), (farthest, last)]
    return sorted(kept)


def _smooth(series: list[float], window: int = 2) -> list[float]:
    return [
        statistics.median(series[max(0, at - window) : at + window + 1])
        for at in range(len(series))
    ]


def _means(periods: Sequence[Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """Quartiles of the periods: of all, and where the state is narrow, and where it is wide."""
    narrow = [[p for p in period if p["size"] <= NARROW] or period[:1] for period in periods]
    wide = [[p for p in period if p["size"] >= WIDE] for period in periods]
    return {
        "throughput": quartiles([mean_of(period, "throughput") for period in periods]),
        "horizon": statistics.fmean(mean_of(period, "horizon") for period in periods),
        **{
            f"{place}, {what}": quartiles([mean_of(part, what) for part in parts])
            for place, parts in (("narrow", narrow), ("wide", wide))
            for what in ("per transaction", "per run", "horizon")
        },
    }


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("", 6.8, 3, 2, sharex=True)
    for column, protocol in enumerate(TRANSACTIONAL):
        for name in WANTED:
            series = data["series"][protocol][name]
            for axes, what, scale in zip(panels[:, column], PANELS, (1, 100, 0.001), strict=True):
                shown = [scale * value for value in series[what]["values"]]
                colour = look(name).colour
                axes.plot(series[what]["at"], shown, label=name, color=colour, linewidth=1.2)
                axes.grid(axis="y")
        panels[0, column].set_title(protocol)
        real = 1e6 * WORK * data["sleep"][protocol]
        panels[2, column].set_xlabel(f"time (s); a sleep of {1e6 * WORK:.0f} took {real:.0f} µs")
    for axes, label in zip(
        panels[:, 0],
        ("words in use", "dropped runs per\n100 transactions", "throughput\n(1000 events/s)"),
        strict=True,
    ):
        axes.set_ylabel(label)
    # Not so the dropped runs: of the two protocols one has by far more of them.
    for row in (panels[0], panels[2]):
        row[1].sharey(row[0])
    from_zero(panels.flat)
    looks = {name: replace(look(name), marker="", line="-") for name in WANTED}
    legend(figure, WANTED, looks)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for protocol in TRANSACTIONAL:
        means = data["means"][protocol]
        fast, careful = means["throughput-driven"], means["abort-driven"]
        findings.append(
            Finding(
                f"the throughput-driven predictor reaches the higher throughput ({protocol})",
                " against ".join(
                    f"{shown(means[name]['throughput'], '{:,.0f}')} events/s ({name})"
                    for name in reversed(WANTED)
                ),
                above(fast["throughput"], careful["throughput"]),
                _why_not_faster(fast, careful, data["control"][protocol]["wide"]),
            )
        )
        for name in WANTED:
            narrow, wide = (means[name][f"{of}, per transaction"] for of in ("narrow", "wide"))
            findings.append(
                Finding(
                    f"more is dropped where there is less to run in parallel ({protocol}, {name})",
                    f"{shown(narrow)} runs per transaction at 1 to {NARROW} words, {shown(wide)} "
                    f"at {WIDE} to {WORDS}; {_per_run(means[name])} per speculative run",
                    above(narrow, wide),
                    _why_not_more(means[name], data["control"][protocol]["narrow"]),
                )
            )
    return findings


def _per_run(means: Mapping[str, Any]) -> str:
    return " and ".join(f"{means[f'{place}, per run'][1]:.0%}" for place in ("narrow", "wide"))


def _why_not_faster(
    fast: Mapping[str, Any], careful: Mapping[str, Any], wide: Mapping[str, Mapping[str, Any]]
) -> str:
    """The reason would be a horizon that is no longer, or that longer ones gain nothing."""
    seen = f"the mean horizons were {fast['horizon']:.1f} and {careful['horizon']:.1f}"
    rates = {horizon: row["throughput"] for horizon, row in wide.items()}
    static = (
        f"with {WORDS} words static horizons of {', '.join(rates)} ran at "
        f"{', '.join(shown(rate, '{:,.0f}') for rate in rates.values())} events/s"
    )
    shorter = max((h for h in rates if int(h) <= max(careful["horizon"], 1)), key=int)
    longer = min((h for h in rates if int(h) >= fast["horizon"]), key=int, default=list(rates)[-1])
    if fast["horizon"] < careful["horizon"] + 0.5:
        return f"{seen}: it did not run farther ahead."
    if not above(rates[longer], rates[shorter]):
        return f"{seen}, and {static}: farther ahead there was nothing to gain."
    return f"Not explained: {seen}, and {static}."


def _why_not_more(means: Mapping[str, Any], narrow: Mapping[str, Mapping[str, Any]]) -> str:
    """The reason would be that the predictor has gone down in time."""
    short, long = (means[f"{place}, horizon"] for place in ("narrow", "wide"))
    most = list(narrow)[-1]
    seen = (
        f"the mean horizon was {shown(short, '{:.1f}')} where the state is narrow, "
        f"{shown(long, '{:.1f}')} where it is wide, and the threshold is {THRESHOLD:.0%}; with "
        f"one word a static horizon of {most} dropped {narrow[most]['per transaction']:.2f} runs "
        "per transaction"
    )
    return f"{seen}: it has gone down by then." if above(long, short) else f"Not explained: {seen}."


EXPERIMENT = Experiment(
    name="figure_4_16",
    title="Figure 4.16: abort-driven and throughput-driven predictor over time",
    section="4.5.3",
    claim=(
        "Without parallelism there are many aborts, also with the abort-driven predictor, which "
        "keeps trying; the throughput-driven one reaches the higher throughput."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "words in use": f"events increment one of so many words; 1 to {WORDS}, by a sinusoid",
        "dropped runs": (
            "speculative runs that were dropped, per committed transaction as in the text; a "
            "transaction can lose several"
        ),
        **parameters(),
    },
    notes=(
        f"{THREADS} threads; the work of {1e6 * WORK:.0f} µs follows the increment, as in Listing "
        "4.2, and is sleep, as there are fewer cores. The predictors take turns batch by batch; "
        f"{ROUNDS} periods of {SECONDS:.0f} seconds each instead of one of 100, of which the last "
        "is drawn."
    ),
)

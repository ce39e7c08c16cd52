"""Figure 4.20: latency out of order of the two ready operators."""

from __future__ import annotations

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.margin import above, shown
from bench.chapter4.paced_sources import (
    DEFINITIONS,
    DIFFERENCES,
    HALF,
    RATE,
    SETTINGS,
    SPECULATIVE,
    Curves,
    Load,
    Values,
    draw_panels,
    measure_curves,
    peaks_at_equal_rates,
    speculation_is_below,
)
from bench.chapter4.ready import READY, Ready

# Seconds that an event takes in the text: top-k on its faster machine, nearest neighbours on the
# slower one, where the right-hand panel comes from.
TOP_K = 12.42e-6
NEAR = 732.54e-6
# The text does not say how fast the sources of that panel were. Where the figure resembles Figure
# 4.15, as it says, the work was slightly less than half of A's period there as well.
NEAR_RATE = HALF / NEAR
PANELS = {
    "top-k": f"top-k, {1e6 * TOP_K:.1f} µs",
    "top-k today": "top-k as compiled here",
    "nearest neighbours": f"nearest neighbours, {1e6 * NEAR:.0f} µs",
}


def _values(ready: Ready) -> Values:
    return lambda generator, count: ready.events(count, int(generator.integers(2**31))).to_pylist()


def measure(effort: Effort, say: Say) -> Data:
    """Curves by operator and length."""
    top, near = READY
    loads = {
        "top-k": Load(top.operator(), _values(top), TOP_K, share=1 / 3),
        "top-k today": Load(top.operator(), _values(top), 0.0, share=1 / 3),
        "nearest neighbours": Load(near.operator(), _values(near), NEAR, NEAR_RATE),
    }
    curves = {name: measure_curves(load, name, effort, say) for name, load in loads.items()}
    return {"differences": list(DIFFERENCES), "curves": curves}


def draw(data: Data) -> Figure:
    return draw_panels(data, PANELS, columns=1)


def judge(data: Data) -> list[Finding]:
    differences, curves = data["differences"], data["curves"]
    near = curves["nearest neighbours"]
    findings = [
        _no_gain(differences, curves["top-k"], curves["top-k today"], protocol)
        for protocol in SPECULATIVE
    ]
    findings += [
        peaks_at_equal_rates(
            f"latency of nearest neighbours is highest at equal rates ({setting})",
            differences,
            near,
            setting,
        )
        for setting in SETTINGS
    ]
    findings += [
        speculation_is_below(
            f"elsewhere nearest neighbours gain by speculation ({protocol})",
            differences,
            near,
            protocol,
        )
        for protocol in SPECULATIVE
    ]
    return findings


def _no_gain(differences: list[float], curves: Curves, today: Curves, protocol: str) -> Finding:
    """Whether speculation is nowhere below, by more than the rounds differ."""
    ratios = curves["ratio"][protocol]
    gains = [place for place, ratio in enumerate(ratios) if above([1.0] * 3, ratio)]
    saved = [
        1000 * curves["milliseconds"]["no speculation"][place][1] * (1 - ratios[place][1])
        for place in gains
    ]
    seen = (
        f"{1e6 * TOP_K:.1f} µs of work, and what waits behind it, save up to "
        f"{max(saved, default=0.0):.0f} µs; without that work the ratios are "
        + ", ".join(shown(today["ratio"][protocol][place]) for place in gains)
    )
    still = any(above([1.0] * 3, today["ratio"][protocol][place]) for place in gains)
    return Finding(
        f"top-k is too cheap for a gain ({protocol})",
        ", ".join(
            f"{100 * d:.0f} %: {shown(ratio)}" for d, ratio in zip(differences, ratios, strict=True)
        )
        + " of the latency without speculation",
        not gains,
        f"Not explained: {seen}."
        if still
        else f"the overhead does not mask what that work gains by running ahead: {seen}.",
    )


EXPERIMENT = Experiment(
    name="figure_4_20",
    title="Figure 4.20: latency out of order of the ready operators",
    section="4.5.4",
    claim=(
        "For top-k the overhead masks the gain of running early; for nearest neighbours, where an "
        "event takes longer, there is a gain as in Figure 4.15."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions=DEFINITIONS,
    notes=(
        f"One thread, two sources. Top-k with the {1e6 * TOP_K:.1f} µs that an event took in the "
        "text, and as compiled here, far below a microsecond; source A sends "
        f"{RATE:.0f} events a second. Nearest neighbours with the {1e6 * NEAR:.0f} µs that an "
        "event took on the text's slower machine, where its panel comes from. That is more than "
        f"half of A's period at {RATE:.0f} events a second, and the text names no rate: A sends "
        f"{NEAR_RATE:.0f} a second, so that it is slightly less than half, as in Figure 4.15. The "
        "work is a busy loop after the accesses."
    ),
)

"""Sequential, fine-grained locks, speculation: three ratios side by side, at two costs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.figure_4_18 import count_of
from bench.chapter4.margin import above, shown
from bench.chapter4.ready import (
    BEFORE,
    COUNTS,
    DISTINCT,
    READY,
    SEQUENTIAL,
    Ready,
    Variant,
    by_length,
    held_back_by_cores,
    meanings,
    pace_of,
    why_no_faster,
)
from bench.chapter4.slowed import busy_rounds
from specstream.figures.style import bars_height, draw_bars, in_style, legend, line_at, new_figure

LENGTHS = ("today's length", "the text's length")
# The control between the two: work added to today's event.
ADDED = 3e-6
LONGER = "3 µs longer"
CONTESTANTS = ("sequential", "fine-grained locks", "speculation")
NAMES = dict(zip(CONTESTANTS, (*CONTESTANTS[:2], "speculation (Auto)"), strict=True))
THREADS = 2
WANTED = 1.8
SECONDS = 0.08
ROUNDS = 15
# The automatic setting is given time to find itself.
SETTLE = 10


def measure(effort: Effort, say: Say) -> Data:
    """Speed relative to the sequential run by operator, length and contestant; two threads."""
    lengths = (*LENGTHS, LONGER)
    return {
        "rows": {
            ready.name: by_length(ready, lengths, variants, effort, ROUNDS, say) for ready in READY
        }
    }


def variants(ready: Ready, length: str, effort: Effort) -> dict[str, Variant]:
    common: dict[str, Any]
    if length == LONGER:
        how = {"rounds": round(ADDED * busy_rounds()), "before": BEFORE}
        common = {"how": how, "count": max(int(effort.scale * SECONDS / ADDED), 100)}
    else:
        common = {"how": pace_of(ready, length)[1], "count": count_of(ready, length, effort)}
    chunk = 1 if length == "the text's length" else 64
    locks = {"execution": "locked", "threads": THREADS, "chunk": chunk}
    made = {
        "sequential": Variant(ready, SEQUENTIAL, **common),
        "fine-grained locks": Variant(ready, locks, **common, fine=True),
        "speculation": Variant(ready, {"threads": THREADS}, **common, settle=SETTLE),
    }
    if length == "today's length":
        # What the automatic setting keeps away from, and what it would cost one thread.
        for threads in (1, THREADS):
            forced = {"threads": threads, "horizon": 4, "chunk": 64, "execution": "speculate"}
            made[f"forced {threads}"] = Variant(ready, forced, **common)
    if ready.name == "top-k" and length == "the text's length":
        base = "sequential, distinct items"
        made[base] = Variant(DISTINCT, SEQUENTIAL, **common, base=base)
        made["speculation, distinct items"] = Variant(
            DISTINCT, {"threads": THREADS}, **common, base=base, settle=SETTLE
        )
    return made


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure(
        "", 1.3 + bars_height(len(READY), len(CONTESTANTS)), columns=2, sharex=True
    )
    for axes, length in zip(panels[0], LENGTHS, strict=True):
        groups = {
            ready.name: {
                NAMES[one]: tuple(data["rows"][ready.name][length][one]["speed"])
                for one in CONTESTANTS
            }
            for ready in READY
        }
        draw_bars(axes, groups)
        axes.set_title(length)
        line_at(axes, 1, "y")
        axes.set_xlabel("speed, sequential = 1")
    # The panels share their axis: the longest bar of both decides.
    panels[0][0].set_xlim(0, 1.25 * max(axes.dataLim.x1 for axes in panels[0]))
    legend(figure, NAMES.values(), bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    for ready in READY:
        rows = data["rows"][ready.name]
        today, text = (rows[length] for length in LENGTHS)
        auto, locks = today["speculation"], today["fine-grained locks"]
        findings.append(
            Finding(
                f"today speculation is at least as fast as fine-grained locks ({ready.name})",
                f"{shown(auto['speed'])} against {shown(locks['speed'])}",
                not above(locks["speed"], auto["speed"]),
                _why_locks(rows),
            )
        )
        findings.append(
            Finding(
                f"and never below 0.95 of sequential ({ready.name})",
                shown(auto["speed"]),
                auto["speed"][1] >= 0.95,
                f"not explained: it ran {auto['ahead']:.1%} of the transactions ahead",
            )
        )
        mine, locks = text["speculation"], text["fine-grained locks"]
        findings.append(
            Finding(
                f"at the text's length speculation reaches {WANTED} ({ready.name})",
                f"{shown(mine['speed'])}; fine-grained locks {shown(locks['speed'])}",
                mine["speed"][1] >= WANTED,
                _why_not_two(text),
            )
        )
    return findings


def _why_locks(rows: Mapping[str, Any]) -> str:
    today, longer = rows["today's length"], rows[LONGER]
    auto, one, two = (today[name] for name in ("speculation", "forced 1", "forced 2"))
    locks = today["fine-grained locks"]
    event = today["sequential"]["microseconds"]
    seen = (
        f"the automatic setting ran {auto['ahead']:.1%} of the transactions ahead; made to "
        f"speculate, chunks of 64, one thread reaches {shown(one['speed'])} and two "
        f"{shown(two['speed'])} of an event of {event:.2f} µs: log, check and commit in order are "
        f"too large a part of it, and locks pay for no order. With {1e6 * ADDED:.0f} µs of work "
        f"more it reaches {shown(longer['speculation']['speed'])}, locks "
        f"{shown(longer['fine-grained locks']['speed'])}"
    )
    short = above(locks["speed"], two["speed"]) and above(
        longer["speculation"]["speed"], auto["speed"]
    )
    return f"too short an event: {seen}" if short else f"not explained: {seen}"


def _why_not_two(text: Mapping[str, Any]) -> str:
    mine, locks = text["speculation"], text["fine-grained locks"]
    if locks["speed"][1] < WANTED:
        return held_back_by_cores(locks, mine)
    free = text.get("speculation, distinct items")
    return why_no_faster(mine, free, WANTED, "distinct items")


EXPERIMENT = Experiment(
    name="three_ratios",
    title="Sequential, fine-grained locks, speculation",
    section="4.5.4, 4.6",
    claim=(
        "The text's summary: speculation gains as much as fine-grained locks where events are long "
        "and conflicts few, without any knowledge of concurrency."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        **meanings("speed", "sequential"),
        "fine-grained locks": (
            "one for each counter of the sketch and one for the list; one for each bucket; two "
            "threads, which keep no order of events"
        ),
        "speculation (Auto)": (
            "two threads with the automatic setting, which runs plain where events are too short"
        ),
        "today's length": "as compiled here, no work added",
        **meanings("the text's length"),
    },
    notes=(
        "Half of the work stands before the accesses, half after them. Thin lines are quartiles. "
        f"{COUNTS}"
    ),
)

"""Table 4.3: from dequeuing to commit, and conflicts, for the two ready operators."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import TRANSACTIONAL
from bench.chapter4.ready import READY, engine_of, rounds_for
from specstream.figures.palette import PUBLISHED
from specstream.figures.style import bars_height, draw_bars, in_style, legend, line_at, new_figure

# The text's numbers: microseconds and percent of conflicts by threads.
TEXT = {
    "top-k": {"1": (12.42, None), "2": (25.69, 1.25), "6": (144.81, 16.46)},
    "nearest neighbours": {"1": (26.68, None), "2": (49.72, 0.06), "6": (159.27, 0.64)},
}
# Six threads on two cores: the work is sleep, ten times as long, as sleep is coarse.
SLEEP = 10
LOOKS = {"the text": PUBLISHED}
EVENTS = 3000
EVENTS_ASLEEP = 1500
ROUNDS = 5


def measure(effort: Effort, say: Say) -> Data:
    """Microseconds and share of dropped runs, by operator, protocol and threads."""
    rows: dict[str, Any] = {}
    for ready in READY:
        rows[ready.name] = {}
        busy = {"rounds": rounds_for(ready)}
        asleep = {"sleep": SLEEP * ready.seconds}
        for protocol in TRANSACTIONAL:
            say(f"{ready.name}, {protocol}")
            rows[ready.name][protocol] = {
                # The sequential run: nothing waits, an event's time is all there is.
                "1": _sequential(ready, effort, busy),
                "2": _measured(ready, protocol, 2, effort.times(EVENTS, 100), effort, busy),
                "1 asleep": _sequential(ready, effort, asleep),
                "6 asleep": _measured(
                    ready, protocol, 6, effort.times(EVENTS_ASLEEP, 100), effort, asleep
                ),
            }
    return {"rows": rows}


def _sequential(ready: Any, effort: Effort, how: dict[str, Any]) -> dict[str, Any]:
    with engine_of(ready, threads=1, horizon=0) as slowed:
        events = ready.events(effort.times(1000, 100), 1)
        took = [slowed.run(events, **how) for _ in range(effort.times(ROUNDS, 2))]
    return {"microseconds": 1e6 * statistics.median(took) / events.num_rows, "conflicts": None}


def _measured(
    ready: Any, protocol: str, threads: int, count: int, effort: Effort, how: dict[str, Any]
) -> dict[str, Any]:
    waits, conflicts = [], []
    with engine_of(
        ready, threads=threads, horizon=2 * threads, chunk=1, protocol=protocol
    ) as slowed:
        for number in range(effort.times(ROUNDS, 2)):
            runs, dropped = slowed.dropped()
            taken = slowed.waits(ready.events(count, 1 + number), **how)
            waits.append(float(np.mean(taken)) / 1000)
            more_runs, more_dropped = slowed.dropped()
            conflicts.append((more_dropped - dropped) / max(more_runs - runs, 1))
    return {"microseconds": statistics.median(waits), "conflicts": statistics.median(conflicts)}


@in_style
def draw(data: Data) -> Figure:
    kinds = {"2 threads": ("2", "1", "2"), "6 threads": ("6 asleep", "1 asleep", "6")}
    figure, panels = new_figure("", 2.4 + 2 * bars_height(len(kinds), 3), 2, 2)
    for (above, below), (name, rows) in zip(panels.T, data["rows"].items(), strict=True):
        text = TEXT[name]
        slower: dict[str, dict[str, float]] = {}
        conflicts: dict[str, dict[str, float]] = {}
        for title, (kind, alone, published) in kinds.items():
            slower[title] = {
                p: rows[p][kind]["microseconds"] / rows[p][alone]["microseconds"]
                for p in TRANSACTIONAL
            } | {"the text": text[published][0] / text["1"][0]}
            conflicts[title] = {p: 100 * rows[p][kind]["conflicts"] for p in TRANSACTIONAL} | {
                "the text": text[published][1] or 0.0
            }
        draw_bars(above, slower, looks=LOOKS, room=1.35)
        draw_bars(below, conflicts, looks=LOOKS, room=1.35)
        line_at(above, 1, "y")
        above.set_title(name)
        above.set_xlabel("dequeuing to commit,\nsequential time = 1")
        below.set_xlabel("dropped runs (%)")
    legend(figure, (*TRANSACTIONAL, "the text"), LOOKS, bars=True)
    return figure


def judge(data: Data) -> list[Finding]:
    findings = []
    rows = data["rows"]
    for protocol in TRANSACTIONAL:
        top, near = (rows[ready.name][protocol] for ready in READY)
        six = [mine["6 asleep"]["conflicts"] for mine in (top, near)]
        findings.append(
            Finding(
                f"conflicts of top-k are well above those of nearest neighbours ({protocol})",
                f"two threads {top['2']['conflicts']:.2%} against {near['2']['conflicts']:.2%}, "
                f"six {six[0]:.2%} against {six[1]:.2%}",
                six[0] > 2 * six[1],
            )
        )
        for ready in READY:
            mine = rows[ready.name][protocol]
            two, six = (
                mine["2"]["microseconds"] / mine["1"]["microseconds"],
                mine["6 asleep"]["microseconds"] / mine["1 asleep"]["microseconds"],
            )
            findings.append(
                Finding(
                    f"both rise with threads ({ready.name}, {protocol})",
                    f"time to commit {mine['1']['microseconds']:.1f} µs, two threads {two:.2f} "
                    f"times, six {six:.2f} times; conflicts {mine['2']['conflicts']:.2%} and "
                    f"{mine['6 asleep']['conflicts']:.2%}",
                    six > two and mine["6 asleep"]["conflicts"] >= mine["2"]["conflicts"],
                )
            )
    return findings


EXPERIMENT = Experiment(
    name="table_4_3",
    title="Table 4.3: from dequeuing to commit",
    claim=(
        "Top-k: 12.42, 25.69, 144.81 µs with 1, 2, 6 threads, 0, 1.25, 16.46 % conflicts; nearest "
        "neighbours: 26.68, 49.72, 159.27 µs, 0, 0.06, 0.64 %."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    notes=(
        "Events take what they took in the text: the compiled operator behind a busy loop. With "
        "six threads the work is sleep, ten times as long, and the time is relative to one thread "
        "with the same sleep. Chunks of one event, a horizon of twice the threads."
    ),
)

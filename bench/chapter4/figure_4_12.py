"""Figure 4.12: what an abort and the second run cost, relative to the first."""

from __future__ import annotations

import itertools
import statistics
from dataclasses import replace
from typing import Any

from matplotlib.figure import Figure

from bench.chapter4.experiment import Data, Effort, Experiment, Finding, Say
from bench.chapter4.lab import CONTROLS, TRANSACTIONAL, Lab, opened_all, random_words
from bench.chapter4.margin import above, quartiles
from specstream.figures.palette import look
from specstream.figures.style import from_zero, in_style, legend, line_at, new_figure, plot_line

SIZES = (100, 200, 300, 500, 700, 1000)
CHANGED = (1, 100)
# What the first thread does, by interference and protocol. With `value` two that only write do not
# conflict; hence it increments.
INTERFERENCE = {
    "read-write": {"value": "read", "eager": "read"},
    "write-write": {"value": "increment", "eager": "write"},
}
# Lost locks whose abort is timed alone, of a transaction that has written LOST[-1] words.
LOST = (0, 1, 25, 50, 100)
BATCHES = 30
ROUNDS = 31
LOCK_ARRAY = CONTROLS[2]


def measure(effort: Effort, say: Say) -> Data:
    """Overheads and their parts by protocol, interference, words changed and words accessed."""
    batches = effort.times(BATCHES, 3)
    runs: dict[str, dict[str, dict[str, dict[int, list[dict[str, float]]]]]] = {
        p: {
            kind: {which: {size: [] for size in SIZES} for which in (*map(str, CHANGED), "fetched")}
            for kind in INTERFERENCE
        }
        for p in TRANSACTIONAL
    }
    lost: dict[str, list[float]] = {str(changed): [] for changed in LOST}
    unsearched: dict[str, list[float]] = {str(changed): [] for changed in LOST[1:]}
    swaps: dict[str, list[float]] = {"own": [], "moved": []}
    with opened_all((*TRANSACTIONAL, LOCK_ARRAY)) as labs:
        for number in range(effort.times(ROUNDS, 3)):
            say(f"round {number + 1}")
            for size, kind, protocol in itertools.product(SIZES, INTERFERENCE, TRANSACTIONAL):
                for which, taken in runs[protocol][kind].items():
                    taken[size].append(_rerun(labs[protocol], kind, protocol, which, size, batches))
            for changed in LOST:
                lost[str(changed)].append(_abort(labs["eager"], batches, changed))
                if changed:
                    took = _abort(labs["eager"], batches, changed, unsearched=True)
                    unsearched[str(changed)].append(took)
            for where, changed in (("own", 0), ("moved", LOST[-1])):
                words = random_words(LOST[-1], batches)
                swaps[where].append(labs[LOCK_ARRAY].swaps(words, LOST[-1], changed))
    return {
        "overhead": _of_all(runs, lambda run: (run["abort"] + run["again"]) / run["first"]),
        "abort": _of_all(runs, lambda run: run["abort"] / run["first"]),
        "lost": {changed: quartiles(took) for changed, took in lost.items()},
        "unsearched": {changed: quartiles(took) for changed, took in unsearched.items()},
        "swap": {where: quartiles(took) for where, took in swaps.items()},
    }


def _rerun(
    lab: Lab, kind: str, protocol: str, which: str, size: int, batches: int
) -> dict[str, float]:
    """A first run, its abort and a second one; ``which``: so many words changed, or "fetched"."""
    fetched = which == "fetched"
    words = random_words(size, batches)
    access = INTERFERENCE[kind][protocol]
    return lab.rerun(access, words, size, 1 if fetched else int(which), fetched)


def _abort(eager: Lab, batches: int, changed: int, unsearched: bool = False) -> float:
    """Of a transaction that has written so many words, and lost the locks of some."""
    words = random_words(LOST[-1], batches)
    if changed == 0:
        return eager.undo("write", words, LOST[-1])
    return eager.rerun("write", words, LOST[-1], changed, unsearched=unsearched)["abort"]


def _of_all(runs: Any, of: Any) -> dict[str, Any]:
    """By protocol, interference and words changed: by size, and "all", the means of the rounds."""
    made: dict[str, Any] = {}
    for protocol, kinds in runs.items():
        made[protocol] = {}
        for kind, cases in kinds.items():
            made[protocol][kind] = {}
            for which, sizes in cases.items():
                values = {size: [of(run) for run in rounds] for size, rounds in sizes.items()}
                means = [
                    statistics.fmean(of_round) for of_round in zip(*values.values(), strict=True)
                ]
                made[protocol][kind][which] = {
                    **{str(size): quartiles(v) for size, v in values.items()},
                    "all": quartiles(means),
                }
    return made


@in_style
def draw(data: Data) -> Figure:
    figure, panels = new_figure("Abort and second run", 4.2, columns=2, sharey=True)
    looks = {}
    for axes, kind in zip(panels[0], INTERFERENCE, strict=True):
        for protocol in TRANSACTIONAL:
            own = look(protocol)
            others = (own, replace(own, line=":", marker="X"))
            for changed, other in zip(CHANGED, others, strict=True):
                name = f"{protocol}, {changed} changed"
                looks[name] = other
                overheads = data["overhead"][protocol][kind][str(changed)]
                values = [100 * overheads[str(size)][1] for size in SIZES]
                plot_line(axes, SIZES, values, name, other)
        line_at(axes, 100)
        axes.grid(axis="y")
        axes.set_title(kind)
        axes.set_xlabel("words accessed")
    panels[0, 0].set_ylabel("overhead (%), first run = 100 %")
    from_zero(panels[0])
    top = max(axes.get_ylim()[1] for axes in panels[0])
    panels[0, 0].set_ylim(0, max(top, 106))
    legend(figure, looks, looks)
    return figure


def _parts(data: Data, protocol: str, kind: str, which: str) -> tuple[float, float]:
    """Of the first run: the abort, and the second run."""
    abort = data["abort"][protocol][kind][which]["all"][1]
    return abort, data["overhead"][protocol][kind][which]["all"][1] - abort


def _moderate(data: Data, protocol: str, kind: str) -> Finding:
    one = data["overhead"][protocol][kind]["1"]["all"]
    abort, again = _parts(data, protocol, kind, "1")
    return Finding(
        f"one changed word costs much less than a whole run, below 80 % ({protocol}, {kind})",
        f"{one[1]:.0%} of the first run (quartiles {one[0]:.0%} to {one[2]:.0%})",
        one[2] < 0.8,
        f"the abort takes {abort:.0%} of the first run, the second run {again:.0%}; where the "
        "first run finds its data in the cache as well, both together "
        f"{data['overhead'][protocol][kind]['fetched']['all'][1]:.0%}.",
    )


def _more_cost_more(data: Data, protocol: str, kind: str) -> Finding:
    one, many = (data["overhead"][protocol][kind][str(c)]["all"] for c in CHANGED)
    parts = [_parts(data, protocol, kind, str(changed)) for changed in CHANGED]
    told = (
        f"the abort takes {parts[0][0]:.1%} and {parts[1][0]:.1%} of the first run, the second run "
        f"{parts[0][1]:.1%} and {parts[1][1]:.1%}"
    )
    if not above(one, many):
        why = (
            f"the rounds differ by more, quartiles {one[0]:.1%} to {one[2]:.1%} and {many[0]:.1%} "
            f"to {many[2]:.1%}."
        )
    elif one[1] - many[1] < 2 * (parts[0][0] - parts[1][0]):
        why = "most of it is the abort, which is cheaper where more has changed."
    else:
        why = "not explained by the abort."
    return Finding(
        f"a hundred changed words cost more than one ({protocol}, {kind})",
        f"{one[1]:.1%}, {many[1]:.1%}",
        above(many, one),
        f"{told}: {why}",
    )


def _cache_is_the_reason(data: Data, protocol: str, kind: str) -> Finding:
    cases = data["overhead"][protocol][kind]
    cold, fetched = cases["1"]["all"], cases["fetched"]["all"]
    return Finding(
        f"because the second run finds its data in the cache ({protocol}, {kind})",
        f"{cold[1]:.0%}; {fetched[1]:.0%} where the first run finds them there as well",
        above(fetched, cold),
        f"the overhead is {fetched[0]:.0%} to {fetched[2]:.0%} (quartiles) where the first run "
        "finds its data there as well: not explained by the cache.",
    )


def _stolen_locks(data: Data) -> Finding:
    """The text's reason for what it saw on its second machine."""
    lost, unsearched, swap = data["lost"], data["unsearched"], data["swap"]
    one, last = "1", str(LOST[-1])
    more = lost[last][1] - lost[one][1]
    search = more - (unsearched[last][1] - unsearched[one][1])
    moved = LOST[-1] * (swap["moved"][1] - swap["own"][1])
    because = (
        f"of the {more / 1000:.2f} µs that {last} stolen locks take more than one, "
        f"{search / 1000:.2f} are for looking in the redo log for the word of each, which the "
        f"profile of conflicts names: without that {unsearched[one][1] / 1000:.2f} and "
        f"{unsearched[last][1] / 1000:.2f} µs. An entry is given back by an exchange, also where "
        f"it was stolen; a bare exchange takes {swap['own'][1]:.1f} ns, and {swap['moved'][1]:.1f} "
        f"of an entry that the other core has written, {moved / 1000:.2f} µs more for {last}"
    )
    if more > 0 and search + moved < more / 2:
        because += ": together less than half, the rest is not explained"
    return Finding(
        f"stolen locks make the abort cheaper (eager; {last} words written)",
        ", ".join(f"{changed} stolen {took[1] / 1000:.2f} µs" for changed, took in lost.items()),
        above(lost[one], lost[last]),
        because + ".",
    )


def judge(data: Data) -> list[Finding]:
    findings = []
    for finding in (_moderate, _more_cost_more, _cache_is_the_reason):
        for kind in INTERFERENCE:
            findings += [finding(data, protocol, kind) for protocol in TRANSACTIONAL]
    return [*findings, _stolen_locks(data)]


EXPERIMENT = Experiment(
    name="figure_4_12",
    section="4.5.2",
    title="Figure 4.12: overhead of an abort and a second run",
    claim=(
        "With one changed word much less than 100 %: the second run finds its data in the cache. "
        "More changed words cost more; on the second machine a write-write interference costs "
        "less where all words have changed, as stolen locks need not be given back."
    ),
    measure=measure,
    draw=draw,
    judge=judge,
    definitions={
        "overhead": (
            "%, (abort + second run) / first run, as in equation 4.2; the abort includes finding "
            "out; median of the rounds"
        ),
        "words accessed": "by the first thread, random ones of 512 MB, the same in both runs",
        "changed": "how many of them an earlier transaction on the other core has incremented",
        "read-write": "the first thread has read the words",
        "write-write": (
            "the first thread has written them (`eager`), or incremented them (`value`, in which "
            "transactions that only write do not conflict)"
        ),
    },
    notes=(
        "The findings take the mean over all sizes, round by round. Controls, not in the picture: "
        "a first run whose data an earlier one has brought into the cache; the abort alone, by "
        "stolen locks, also without looking for their words; bare exchanges of entries of a lock "
        "array."
    ),
)

"""The page: its tables and sentences come from the data, and what has not been measured says so."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bench.chapter4.margin import MARGIN, Quartiles, shown
from bench.monitors.differences import DIFFERENCES, Known
from bench.pages import disturbed, duration, measured_on, table, wrapped

__all__ = ["PARTS", "PUBLISHED", "TABLES", "Judged", "judged", "page"]

PARTS = (
    *("verbs", "past", "future", "robustness", "data", "by_hand", "twenty", "others", "threads"),
    "spark",
)
# What is asked for: at least so many times as fast, or at most so much of the other's time.
REELAY, GROWTH, MSTLO, ROBUST, RTAMT, DATA, HAND, SUM, CONCERN, TWO, SPARK = (
    *(20.0, 1.25, 15.0, 5.0, 200.0, 30.0),
    *(0.8, 1.0, 1.2, 1.85, 5.0),
)
PEERS = {"mstlo": MSTLO, "rtamt": RTAMT}
ROBUST_PEERS = {"mstlo": ROBUST, "rtamt": RTAMT}
# What each says of itself, in its own best mode.
PUBLISHED = {
    "reelay": "0.16 to 0.6 µs an event from C++ (its page)",
    "mstlo": "0.24 to 0.38 µs an event, U over [0, 1000] 4.4 µs (its page, Apple M4)",
    "rtamt": "none that we know of",
    "transformWithState": "none that we know of",
    "DejaVu": "its own run of fifo with 10,000 events took minutes (Havelund 2018)",
    "MonPoly": "a few thousand events a second (Schneider 2018); not measured here",
}
WORDS = {
    "reelay": "past MTL, in C++",
    "mstlo": "bounded STL, in Rust",
    "rtamt": "STL, in Python",
    "transformWithState": "Spark's operators with state and timers, in Python",
}
# ``report=``, as far as it matters: what an event takes where only violations are told, or all is.
PAST_HEAD = (
    *("property", "form", "bound", "events", "rounds", "ours", "all told"),
    *("reelay (published: 0.16 to 0.6 µs)", "its events", "times", ""),
)
PEERS_HEAD = (
    *("mstlo (published: 0.24 to 0.38 µs)", "its events", "times", ""),
    *("rtamt", "its events", "times", ""),
)
FUTURE_HEAD = ("property", "bound", "events", "rounds", "ours", "all told", *PEERS_HEAD)
ROBUST_HEAD = ("formula", "bound", "events", "rounds", "ours", *PEERS_HEAD)
GROWTH_HEAD = ("property", "form", "events", "rounds", "highest to lowest bound", "")
DATA_HEAD = (
    *("property", "values", "events", "rounds", "ours", "to fewer events", "", "reelay"),
    *("its events", "times", ""),
)
HAND_HEAD = ("rule", "events", "rounds", "violations", "rule", "by hand", "ratio", "")
VERBS_HEAD = (
    *("verb", "events", "rounds", "verb takes", "by hand", "ratio", ""),
    *("two threads, M/s", "asked", ""),
)
AGREEMENT_HEAD = ("beside", "formulas", "compiled, too", "verdicts", "formulas that differ")
DIFFERENCES_HEAD = ("", "formula", "trace", "at", "rules", "the other one", "why")
OTHERS_HEAD = ("what", "events", "rounds", "ours", "other", "ratio", "asked", "")


@dataclass(frozen=True)
class Judged:
    """A row with a target.

    Attributes:
        part: of the run.
        what: in words.
        bound: what the ratio is held against.
        least: it was to be at least that; False: at most.
        seen: the ratio; None: there is none.
        because: why there is none.
    """

    part: str
    what: str
    bound: float
    least: bool
    seen: float | None
    because: str = ""

    @property
    def holds(self) -> bool:
        if self.seen is None:
            return False
        return self.seen >= self.bound if self.least else self.seen <= self.bound


def judged(data: Mapping[str, Any]) -> list[Judged]:
    """All rows that have a target: whose ratio was seen, or whose measurement has stopped."""
    return list(_judged(data["parts"]))


def _judged(parts: Mapping[str, Any]) -> Iterator[Judged]:
    for row in _rows(parts, "verbs"):
        yield _one("verbs", row["name"], HAND, True, row, row.get("ratio"))
        if row.get("least"):
            what = f"{row['name']}, million events a second on two threads"
            yield Judged("verbs", what, row["least"], True, row.get("millions"))
    for row in _rows(parts, "past"):
        what = f"{row['name']}, {row['form']}, bound {row['bound']:,}, to reelay"
        yield from _to_peer("past", what, REELAY, row, "reelay")
    for row in _rows(parts, "past", "growth"):
        what = f"{row['name']}, {row['form']}, the highest bound to the lowest"
        yield _one("past", what, GROWTH, False, row, row.get("ratio"))
    for row in _rows(parts, "future"):
        for peer, bound in PEERS.items():
            what = f"{row['name']}, future, bound {row['bound']:,}, to {peer}"
            yield from _to_peer("future", what, bound, row, peer)
    for row in _rows(parts, "robustness"):
        for peer, bound in ROBUST_PEERS.items():
            what = f"robustness of {row['name']}, bound {row['bound']:,}, to {peer}"
            yield from _to_peer("robustness", what, bound, row, peer)
    for row in _rows(parts, "robustness", "growth"):
        what = f"robustness of {row['name']}, the highest bound to the lowest"
        yield _one("robustness", what, GROWTH, False, row, row.get("ratio"))
    for row in _rows(parts, "data"):
        what = f"{row['name']}, {row['size']:,} events, {row['values']:,} values"
        yield from _to_peer("data", f"{what}, to reelay", DATA, row, "reelay")
        if "ours" in row:
            full = row["events"] >= row["size"]
            seen = row["grown"] if full else None
            because = "" if full else f"it took too long for more than {row['events']:,} events"
            yield Judged("data", f"{what}, to fewer events", GROWTH, False, seen, because)
    for row in _rows(parts, "by_hand"):
        yield _one("by_hand", f"{row['name']}, by hand", HAND, True, row, row.get("ratio"))
    for row in _rows(parts, "twenty"):
        what = f"{row['name']}, in a pipeline, to the sum of them alone"
        yield _one("twenty", what, SUM, True, row, row.get("ratio"))
    if of := parts.get("threads"):
        yield _one("threads", "two threads to one", TWO, True, of, of.get("ratio"))
    for row in _rows(parts, "others"):
        what = f"{row['name']}, events that do not concern it, to a filter"
        yield _one("others", what, CONCERN, False, row, row.get("ratio"))
    for row in _rows(parts, "spark"):
        what = f"{row['name']}, to transformWithState"
        yield _one("spark", what, SPARK, True, row, row.get("ratio"))


def _rows(parts: Mapping[str, Any], part: str, rows: str = "rows") -> Sequence[Mapping[str, Any]]:
    found: Sequence[Mapping[str, Any]] = parts.get(part, {}).get(rows, ())
    return found


def _one(
    part: str,
    what: str,
    bound: float,
    least: bool,
    row: Mapping[str, Any],
    ratio: Quartiles | None,
) -> Judged:
    seen = None if ratio is None else ratio[1]
    return Judged(part, what, bound, least, seen, row.get("stopped", ""))


def _to_peer(
    part: str, what: str, bound: float, row: Mapping[str, Any], peer: str
) -> Iterator[Judged]:
    """Nothing where the peer was not there."""
    if peer in row or "stopped" in row:
        yield _one(part, what, bound, True, row, row.get(peer, {}).get("ratio"))


# ---- tables ----


def _yes(one: float | None, bound: float, least: bool = True) -> str:
    if one is None:
        return "**no**"
    return "yes" if (one >= bound if least else one <= bound) else "**no**"


def _times(ratio: Quartiles) -> str:
    return shown(ratio, "{:.0f}" if ratio[1] >= 20 else "{:.1f}")


def _stopped(row: Mapping[str, Any], before: Sequence[str], width: int) -> list[str]:
    return [*before, f"stopped: {row['stopped']}", *[""] * (width - len(before) - 1)]


def _ours(row: Mapping[str, Any]) -> list[str]:
    return [f"{row['events']:,}", str(row["rounds"]), duration(row["ours"])]


def _theirs(row: Mapping[str, Any], peers: Mapping[str, float]) -> list[str]:
    cells = []
    for peer, bound in peers.items():
        there = row.get(peer)
        if there is None:
            cells += ["not installed", "", "", ""]
        else:
            ratio = there["ratio"]
            cells += [duration(there["takes"]), f"{there['events']:,}"]
            cells += [_times(ratio), _yes(ratio[1], bound)]
    return cells


def past_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``PAST_HEAD``."""
    rows = []
    for row in of["rows"]:
        first = [row["name"], row["form"], f"{row['bound']:,}"]
        if "stopped" in row:
            rows.append(_stopped(row, first, len(PAST_HEAD)))
            continue
        rows.append([*first, *_ours(row), duration(row["all"]), *_theirs(row, {"reelay": REELAY})])
    return rows


def future_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``FUTURE_HEAD``."""
    rows = []
    for row in of["rows"]:
        first = [row["name"], f"{row['bound']:,}"]
        if "stopped" in row:
            rows.append(_stopped(row, first, len(FUTURE_HEAD)))
            continue
        rows.append([*first, *_ours(row), duration(row["all"]), *_theirs(row, PEERS)])
    return rows


def robust_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``ROBUST_HEAD``."""
    rows = []
    for row in of["rows"]:
        first = [row["name"], f"{row['bound']:,}"]
        if "stopped" in row:
            rows.append(_stopped(row, first, len(ROBUST_HEAD)))
        else:
            rows.append([*first, *_ours(row), *_theirs(row, ROBUST_PEERS)])
    return rows


def growth_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``GROWTH_HEAD``."""
    rows = []
    for row in of["growth"]:
        first = [row["name"], row.get("form", "future")]
        if "stopped" in row:
            rows.append(_stopped(row, first, len(GROWTH_HEAD)))
        else:
            ratio = row["ratio"]
            told = _yes(ratio[1], GROWTH, False)
            rows.append([*first, f"{row['events']:,}", str(row["rounds"]), shown(ratio), told])
    return rows


def data_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``DATA_HEAD``."""
    rows = []
    for row in of["rows"]:
        first = [row["name"], f"{row['values']:,}"]
        if "stopped" in row:
            rows.append(_stopped(row, first, len(DATA_HEAD)))
            continue
        full = row["events"] >= row["size"]
        events, *own = _ours(row)
        events += "" if full else f" of {row['size']:,}"
        grown = [f"{row['grown']:.2f}", _yes(row["grown"] if full else None, GROWTH, False)]
        rows.append([*first, events, *own, *grown, *_theirs(row, {"reelay": DATA})])
    return rows


def hand_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``HAND_HEAD``."""
    return [
        _stopped(row, [row["name"]], len(HAND_HEAD))
        if "stopped" in row
        else [
            row["name"],
            f"{row['events']:,}",
            str(row["rounds"]),
            f"{row['violations']:,}",
            duration(row["ours"]),
            duration(row["other"]),
            shown(row["ratio"]),
            _yes(row["ratio"][1], HAND),
        ]
        for row in of["rows"]
    ]


def verbs_rows(of: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``VERBS_HEAD``."""
    rows = []
    for row in of["rows"]:
        millions, least = row.get("millions"), row.get("least")
        rows.append(
            [
                row["name"],
                *_ours(row),
                duration(row["other"]),
                shown(row["ratio"]),
                _yes(row["ratio"][1], HAND),
                f"{millions:.1f}" if millions else "",
                f"{least:g}" if least else "",
                _yes(millions, least) if least else "",
            ]
        )
    return rows


def others_rows(parts: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``OTHERS_HEAD``, of four parts."""
    rows = []
    for part, what, bound, least in (
        ("twenty", "in a pipeline, beside the sum of them alone", SUM, True),
        ("others", "events that do not concern it, beside a filter", CONCERN, False),
        ("threads", "beside one", TWO, True),
        ("spark", "beside `transformWithState`", SPARK, True),
    ):
        of = parts.get(part)
        for row in () if of is None else of.get("rows", [of]):
            first = f"{row['name']}, {what}"
            if "stopped" in row:
                rows.append(_stopped(row, [first], len(OTHERS_HEAD)))
                continue
            rows.append(
                [
                    first,
                    *_ours(row),
                    duration(row["other"]),
                    shown(row["ratio"]),
                    f"at {'least' if least else 'most'} {bound:g}",
                    _yes(row["ratio"][1], bound, least),
                ]
            )
    return rows


def agreement_rows(compared: Mapping[str, Any]) -> list[list[str]]:
    """Rows below ``AGREEMENT_HEAD``."""
    counts = ("formulas", "compiled", "verdicts", "wrong")
    return [[name, *(f"{of[count]:,}" for count in counts)] for name, of in compared.items()]


def _difference(one: Known) -> list[str]:
    trace = "; ".join(
        f"{name}: {', '.join('yes' if v is True else 'no' if v is False else f'{v:g}' for v in of)}"
        for name, of in one.columns.items()
    )
    theirs = "nothing" if one.said is None else str(one.said)
    formula = f"`{one.text}`, `{one.theirs}`" + (", robustness" if one.robust else "")
    return [one.peer, formula, trace, str(one.at), str(one.ours), theirs, one.because]


TABLES = {
    "verbs": (("Verbs beside the same by hand", VERBS_HEAD, verbs_rows),),
    "past": (
        ("Timescales, past", PAST_HEAD, past_rows),
        ("Timescales, past: by the bound", GROWTH_HEAD, growth_rows),
    ),
    "future": (
        ("Timescales, future", FUTURE_HEAD, future_rows),
        ("Timescales, future: by the bound", GROWTH_HEAD, growth_rows),
    ),
    "robustness": (
        ("Robustness", ROBUST_HEAD, robust_rows),
        ("Robustness: by the bound", GROWTH_HEAD, growth_rows),
    ),
    "data": (("DejaVu, with data", DATA_HEAD, data_rows),),
    "by_hand": (("Rules beside operators by hand", HAND_HEAD, hand_rows),),
}


# ---- the page ----

NOT_YET = "*Not measured yet.*"


def _table(parts: Mapping[str, Any], part: str, number: int = 0) -> str:
    if part not in parts:
        return NOT_YET
    _, head, rows = TABLES[part][number]
    return table(head, *rows(parts[part]))


def page(data: Mapping[str, Any], seen: Mapping[str, Any] | None = None) -> str:
    """The page as Markdown.

    Args:
        data: as ``--json`` writes it, of all parts; without ``parts``: what is measured, and how.
        seen: what ``python -m bench agreement --json`` has written.
    """
    parts = data.get("parts", {})
    versions = data.get("peers", {})
    blocks = [
        "# Rules and verbs",
        *([_summary(data)] if parts else []),
        *(disturbed(data["machine"]) if parts else []),
        wrapped(
            "`make bench-rules` measures it and writes this page: tables, picture and sentences "
            "come from what it has measured. An event's time is that of `process` of an Arrow "
            "table, all rows out, on one thread unless it is said, in an engine that is new each "
            "time, whose code was compiled before. Events of the other monitors are made before, "
            "as each takes them best. Verdicts are compared before times, those of every event: "
            "where one differs, the row has no time and says which. Where a monitor or a rule "
            "would take too long for all events it gets fewer, and a row that takes long has fewer "
            "rounds, five at least: both numbers stand there."
        ),
        *(
            ["![Times of an event beside reelay, mstlo, rtamt and operators by hand](rules.png)"]
            if parts
            else []
        ),
        "## Who is beside us",
        table(
            ("", "what it is", "version", "what it has published"),
            *(
                (
                    name,
                    WORDS.get(name, ""),
                    versions.get(name, "not installed" if name in WORDS and parts else ""),
                    said,
                )
                for name, said in PUBLISHED.items()
            ),
        ),
        wrapped(
            "Each in its best mode. reelay: its discrete-time monitor, events as dicts of what has "
            "changed, answers that have changed. mstlo: one batch, delayed verdicts. rtamt: its "
            "offline evaluation of a whole trace, a bounded `until` written with an unbounded one. "
            "transformWithState: rows rather than data frames, on two cores, state in RocksDB. "
            "All are called from Python here, as our rules are; what reelay needs from C++ it says "
            "itself. Published numbers are of other machines and other properties."
        ),
        "## Past properties, beside reelay",
        wrapped(
            "The ten properties of *Timescales* (Ulus 2019): *each* is true or false at each "
            "event, and *published* says whether it has held at all events so far. Traces end with "
            "a violation. *Ours* tells violations, as reelay tells changes; *all told* has a row "
            "for each event. Verdicts are compared on that trace, and on two at random. At least "
            f"{REELAY:g} times as fast is asked for."
        ),
        _table(parts, "past"),
        wrapped(
            "An event of the highest bound to one of the lowest, each on the trace of its bound, "
            f"in rounds of their own: at most {GROWTH:g} is asked for."
        ),
        _table(parts, "past", 1),
        "## Future properties, beside mstlo and rtamt",
        wrapped(
            "Their bounded future forms. mstlo tells no verdict whose window is open at the end, "
            "and its `until` asks for the left side at the end, too: its formula says the same on "
            "these traces, and where it is compared on traces at random it is written so that it "
            f"says ours. At least {MSTLO:g} times as fast as mstlo is asked for, and {RTAMT:g} "
            "times as fast as rtamt."
        ),
        _table(parts, "future"),
        _table(parts, "future", 1),
        "## Robustness, beside mstlo and rtamt",
        wrapped(
            "By how much `always`, `eventually` and `until` hold up to a bound, of two random "
            "walks. Values are compared in every bit. mstlo's `until` is timed as it is, and "
            "compared in words that ask for the left side as ours does. At least "
            f"{ROBUST:g} times as fast as mstlo is asked for, {RTAMT:g} times as fast as rtamt, "
            f"and an event of the highest bound that takes at most {GROWTH:g} of one of the lowest."
        ),
        _table(parts, "robustness"),
        _table(parts, "robustness", 1),
        "## Data, beside reelay with quantifiers",
        wrapped(
            "Four properties of the DejaVu benchmark (Havelund 2018), with so many values live at "
            "a time, at most a fifth of the events. For access and file every verdict is compared; "
            "fifo and lock, said from the other end, agree in where they are first violated. "
            f"reelay gets the largest trace that it does in {_seconds(parts)}, of no more values. "
            f"At least {DATA:g} times as fast is asked for, and an event that takes at most "
            f"{GROWTH:g} of what it takes of fewer events with as many values."
        ),
        _table(parts, "data"),
        "## Where they differ",
        *_agreement(seen),
        "## Beside operators by hand",
        wrapped(
            "The same as an operator that one would write: the ratio is its time to that of the "
            f"rule, and at least {HAND:g} is asked for. The rows are equal, but for the reason "
            "that only a rule gives. Those called *sentence* are twenty that people say, of one "
            "stream."
        ),
        _table(parts, "by_hand"),
        _table(parts, "verbs"),
        "## Together, of no concern, on two threads, through Spark",
        wrapped(
            "Twenty rules of one stream as vertices of a pipeline, beside the sum of what they "
            "take alone, each over the same table: the ratio is the sum to the pipeline. Events of "
            "a kind that a rule does not ask for, beside a filter that asks for the same kinds: "
            "the ratio is the rule to the filter. A rule with a key whose condition takes five "
            "microseconds, on two threads beside one. `paid_in_time` of a million orders, of which "
            "one in twenty is paid late or never, through Spark to Parquet: a streaming query over "
            "files, with a watermark and written exactly once, beside `transformWithState` in "
            "Python with a timer of event time for each order. What counts is the query from its "
            "start to its end, and both write the same alarms."
        ),
        table(OTHERS_HEAD, *others_rows(parts)),
        "## What was missed",
        _missed(data) if parts else NOT_YET,
        wrapped(MARGIN),
        *([measured_on(data["machine"])] if parts else []),
    ]
    return "\n\n".join(blocks) + "\n"


def _agreement(seen: Mapping[str, Any] | None) -> Iterator[str]:
    yield wrapped(
        "`python -m bench agreement` draws formulas of what a monitor and rules can both say, and "
        "compares all verdicts on two random traces each, and the robustness in every bit. The "
        "rule runs as plain Python, and some of them as compiled code, too."
    )
    if seen is None:
        yield NOT_YET
    else:
        yield table(AGREEMENT_HEAD, *agreement_rows(seen["compared"]))
        said = ", ".join(f"{name} {version}" for name, version in seen["peers"].items())
        yield wrapped(f"Traces have {seen['events']} events; seed {seen['seed']}; {said}.")
    yield wrapped(
        "What they do not share is left out there. Of each, the smallest formula and trace; rules "
        "say what the definition says. reelay and rtamt count events where rules measure time, "
        "which is the same where the n-th event has time n."
    )
    yield table(DIFFERENCES_HEAD, *map(_difference, DIFFERENCES))


def _seconds(parts: Mapping[str, Any]) -> str:
    of = parts.get("data")
    return f"{of['seconds']:g} s" if of else "a few seconds"


def _summary(data: Mapping[str, Any]) -> str:
    found = judged(data)
    reached = sum(one.holds for one in found)
    told = [f"**{reached} of {len(found)} rows reach what was asked for."]
    for part, peer in (("past", "reelay"), ("future", "mstlo"), ("future", "rtamt")):
        ratios = sorted(row[peer]["ratio"][1] for row in _rows(data["parts"], part) if peer in row)
        if ratios:
            told.append(
                f"To {peer}, {part}: {ratios[0]:.2g} to {ratios[-1]:.3g} times as fast, median "
                f"{ratios[len(ratios) // 2]:.3g}."
            )
    return wrapped(" ".join(told) + "**")


def _missed(data: Mapping[str, Any]) -> str:
    missed = [one for one in judged(data) if not one.holds]
    if not missed:
        return "Nothing."
    rows = [
        [
            one.what,
            f"{'at least' if one.least else 'at most'} {one.bound:g}",
            one.because if one.seen is None else f"{one.seen:.3g}",
        ]
        for one in missed
    ]
    return table(("", "asked for", "seen"), *rows)

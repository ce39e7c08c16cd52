"""The page: the paper's figures beside ours, its claims, and which of them hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.pages import disturbed, measured_on, table, wrapped
from bench.verify.paper import COMPARED, GRID, PROPERTIES, QUEUES

__all__ = ["TABLES", "claims", "page"]

Rows = list[list[str]]
KINDS = ("no full queues", "liveness", "bounded liveness")
SHORT = {"proved": "yes", "refuted": "no", "holds": "open", "undecided": "open"}
PROPERTIES_HEAD = (
    *("pipeline", "property", "holds", "states", "ours, ms", "all 64-bit values", "ms"),
    *("NuSMV, ms", "paper, ms"),
)
QUEUES_HEAD = (
    *("pipeline", "Q", "no full queue", "all states", "ms", "ours, ms", "NuSMV, ms", "paper, ms"),
)
CATALOGUE_HEAD = (
    "operator",
    "paths",
    "states of two values a column",
    "what is not known, and why",
)
COMPARED_HEAD = (
    *("comparison", "rows", "the same", "states", "ours, ms", "all 64-bit values", "ms"),
    *("NuSMV, ms", "paper, ms"),
)


def _ms(of: Mapping[str, Any]) -> str:
    if "ms" not in of:
        return "-"
    return f"{of['ms']:.1f}" if of["ms"] < 10 else f"{of['ms']:,.0f}"


def _said(of: Mapping[str, Any] | None) -> str:
    """A verdict in a word or two: with the events of a shortest stream."""
    if of is None:
        return "-"
    if of["said"] == "refuted":
        return f"no, {of['events']}"
    if of["said"] == "holds":
        return f"up to {of['events']}"
    return SHORT.get(str(of["said"]), str(of["said"]))


def properties_rows(part: Mapping[str, Any]) -> Rows:
    """Of Figure 7a."""
    found = []
    for row in part["rows"]:
        symbolic = row.get("symbolic")
        paper = PROPERTIES[row["name"]][KINDS.index(row["kind"])]
        found.append(
            [
                *(f"`{row['name']}`", row["kind"], _said(row["explicit"])),
                *(f"{row['explicit']['states']:,}", _ms(row["explicit"])),
                *(_said(symbolic), _ms(symbolic or {})),
                *(_ms(row["nusmv"]), f"{paper:,}"),
            ]
        )
    return found


def queues_rows(part: Mapping[str, Any]) -> Rows:
    """Of Figure 7b."""
    found = []
    for row in part["rows"]:
        paper = QUEUES[row["name"]][row["size"] - 1]
        found.append(
            [
                *(f"`{row['name']}`", str(row["size"]), _said(row["explicit"])),
                *(f"{row['states']:,}", _ms({"ms": row["all ms"]}), _ms(row["explicit"])),
                *(_ms(row["nusmv"]), f"{paper:,}"),
            ]
        )
    return found


def compared_rows(part: Mapping[str, Any]) -> Rows:
    """Of Figure 7c."""
    found = []
    for row in part["rows"]:
        paper = COMPARED.get(row["name"])
        at = ("stepwise", "sequence").index(row["rows"])
        found.append(
            [
                *(row["name"], row["rows"], _said(row["explicit"])),
                *(f"{row['explicit']['states']:,}", _ms(row["explicit"])),
                *(_said(row["symbolic"]), _ms(row["symbolic"])),
                *(_ms(row["nusmv"]), "-" if paper is None else f"{paper[at]:,}"),
            ]
        )
    return found


def catalogue_rows(part: Mapping[str, Any]) -> Rows:
    """Of the ready operators."""
    found = []
    for row in part["rows"]:
        paths, states = row["paths"], row["states"]
        told = str(paths.get("count", "-"))
        closed = "-"
        if "count" in states:
            closed = f"{states['count']:,}{'' if states['closed'] else ' and more'}"
        why = "; ".join(
            f"{what}: {of['why']}"
            for what, of in (("paths", paths), ("states", states))
            if of.get("why")
        )
        found.append([f"`{row['name']}`", told, closed, why.replace("|", "\\|") or "-"])
    return found


TABLES = {
    "properties": ("Figure 7a: N = 4, Q = 3", PROPERTIES_HEAD, properties_rows),
    "queues": ("Figure 7b: no full queues, N = 5", QUEUES_HEAD, queues_rows),
    "comparisons": ("Figure 7c: N = 2, Q = 2", COMPARED_HEAD, compared_rows),
    "catalogue": ("The ready operators", CATALOGUE_HEAD, catalogue_rows),
}


# ---- claims ----


def claims(parts: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """What the paper says, whether it holds here, and what the numbers are."""
    cells = parts["properties"]["rows"]
    below = [
        one
        for one in cells
        if one["explicit"]["ms"] < PROPERTIES[one["name"]][KINDS.index(one["kind"])]
    ]
    longest = max(one["explicit"]["ms"] for one in cells)
    yield (
        "guarantees can be checked in reasonable time",
        "holds" if len(below) == len(cells) else "does not, everywhere",
        f"{len(below)} of {len(cells)} cells are below the paper's; the longest takes "
        f"{longest:,.0f} ms",
    )
    yield from _claims_of_queues(parts["queues"])
    yield from _claims_of_properties(cells)
    yield from _claims_of_comparisons(parts["comparisons"]["rows"])
    grid = parts["grid"]
    yield (
        f"162 problems, at most {GRID:,} ms each",
        "holds",
        f"{grid['problems']} problems in {grid['seconds']:.0f} s together; the longest, "
        f"{grid['longest']['name']}, takes {grid['longest']['ms']:,.0f} ms",
    )


def _claims_of_queues(part: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    product = [one for one in part["rows"] if one["name"] == "product"]
    states = [one["states"] for one in product] + [one["states"] for one in part["more"]]
    grows = all(later > 1.5 * one for one, later in itertools.pairwise(states))
    flat = [
        name
        for name in QUEUES
        if name not in ("product", "sum_of_odds")
        and len({one["states"] for one in part["rows"] if one["name"] == name}) == 1
    ]
    yield (
        "exponential in Q with queues, flat without",
        "holds" if grows and len(flat) == len(QUEUES) - 2 else "does not",
        f"all states of `product`: {', '.join(f'{one:,}' for one in states)} for Q = 1 to "
        f"{len(states)}; the {len(flat)} without a queue have the same number for each Q",
    )
    last = part["beyond"][-1]
    yield (
        "(for all 64-bit values)",
        "does not: no state is counted out",
        f"`product` at Q = {last['size']}: a stream of {last['events']} events after "
        f"{last['ms']:,.0f} ms, then run",
    )
    lengths = [one["events"] for one in part["beyond"]]
    shortest = [_shortest(one["size"]) for one in part["beyond"]]
    yield (
        "counterexamples are the shortest",
        "holds" if lengths == shortest else "does not",
        f"{', '.join(map(str, lengths))} events for Q = "
        f"{', '.join(str(one['size']) for one in part['beyond'])}",
    )


def _shortest(size: int) -> int:
    """Events until so many wait in the product: one of three is taken out at once."""
    count = waiting = 0
    while waiting < size:
        waiting += count % 3 != 0
        count += 1
    return count


def _claims_of_properties(cells: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    for who, name in (("explicit", "ours"), ("nusmv", "NuSMV")):
        most = []
        for pipeline in PROPERTIES:
            times = {one["kind"]: one[who].get("ms") for one in cells if one["name"] == pipeline}
            if None not in times.values():
                most.append(max(times, key=lambda kind: times[kind]) == "bounded liveness")
        because = (
            "; one graph of the states answers all three, and looking through it takes less than "
            "making it"
            if name == "ours"
            else ""
        )
        yield (
            f"bounded liveness dominates ({name})",
            "holds" if most and sum(most) > len(most) / 2 else "does not",
            f"it takes longest for {sum(most)} of {len(most)} pipelines{because}",
        )


def _claims_of_comparisons(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, str, str]]:
    for who, name in (("explicit", "ours"), ("symbolic", "64-bit values"), ("nusmv", "NuSMV")):
        faster = several = 0
        for one in COMPARED:
            times = {row["rows"]: row[who].get("ms") for row in rows if row["name"] == one}
            if None in times.values():
                continue
            several += 1
            faster += times["stepwise"] < times["sequence"]
        yield (
            f"stepwise is easier than by sequence ({name})",
            "holds" if several and faster >= 0.75 * several else "does not, everywhere",
            f"{faster} of {several} are faster",
        )
    for name in ("5a and 5b", "5a with odd numbers, and 5c"):
        both = {row["rows"]: row for row in rows if row["name"] == name}
        step, sequence = both["stepwise"]["symbolic"], both["sequence"]["symbolic"]
        held = step["said"] == "refuted" and sequence["said"] in ("proved", "holds")
        yield (
            f"Figures {name}: the same sequence, at other steps",
            "holds" if held else "does not",
            f"x = {', '.join(map(str, step['stream']))}: {step['expected']}; by sequence "
            f"{_said(sequence)} events of all 64-bit values, and up to "
            f"{both['sequence']['explicit']['events']} of two",
        )


def _of_catalogue(rows: Sequence[Mapping[str, Any]]) -> str:
    stepped = sum("count" in row["paths"] and not row["paths"].get("why") for row in rows)
    states = sum("count" in row["states"] for row in rows)
    closed = sum(bool(row["states"].get("closed")) for row in rows)
    return (
        f"Of {len(rows)} ready operators, as their docstrings make them, {stepped} have all paths "
        f"over unknown values within ten seconds, and {states} run from any state; the states of "
        f"{closed} are counted out over two values of each column (at most 5,000 were looked at)."
    )


def _of_capacity(part: Mapping[str, Any]) -> str:
    return (
        f"All {part['states']:,} states of an operator with one word, and two events from each, "
        f"were looked at in {part['seconds']:.0f} s, with a property of each state: "
        f"{part['transitions per second']:,.0f} events a second, where the sequential run has "
        f"{part['events per second']:,.0f}. The process took {part['megabytes']:,.0f} MB."
    )


# ---- all of it ----


def page(data: Mapping[str, Any]) -> str:
    """The text of ``docs/research/verify.md``."""
    parts = data["parts"]
    lines = [
        "# Verify: the paper's experiments",
        "",
        wrapped(
            "Bédard and Hallé, *Model Checking of Stream Processing Pipelines* (2021), export "
            "BeepBeep's pipelines to NuXmv and time it. Here are their pipelines, by the text of "
            "their appendix (`examples/verify/pipelines.py`), and their questions, put to "
            "`ss.verify` over a finite `domain=`, to `ss.verify` over all 64-bit values, and to "
            "NuSMV 2.5.4 on what `ss.verify.to_smv` exports."
        ),
        "",
        wrapped(
            "`make verify-paper`, which is `make bench-verify` with its page, measures it and "
            "writes this page. " + measured_on(data["machine"])
        ),
        "",
        *disturbed(data["machine"]),
        wrapped(
            "*ours* is the time until all states are known or a stream is found, the median of "
            "three runs; the stream is then run, which takes as long as compiling the pipeline "
            "does and is not in it. *all 64-bit values* is the whole question, with that. "
            "*NuSMV* is its process. *no, 5* is a shortest stream of five events; *up to 8* is "
            "not proved for longer ones. The paper's times are NuXmv's, on another machine, for "
            "models that differ from its text in places."
        ),
        "",
        "![Time by property, and by the size of queues](verify.png)",
        "",
        "## Claims",
        "",
        table(("the paper says", "here", "numbers"), *claims(parts)),
        "",
    ]
    for name, (title, head, rows) in TABLES.items():
        lines += [f"## {title}", ""]
        if name == "catalogue":
            lines += [wrapped(_of_catalogue(parts[name]["rows"])), ""]
        lines += [table(head, *rows(parts[name])), ""]
    lines += ["## Many states", "", wrapped(_of_capacity(parts["capacity"])), ""]
    smallest = [
        f"- `{one['name']}`: {one['said']}; {one['reason']}" for one in parts["queues"]["smallest"]
    ]
    lines += [
        "## The smallest queue",
        "",
        wrapped(
            "The paper tries one Q after the other. `ss.verify.smallest` says how long a queue "
            "gets, or how it grows:"
        ),
        "",
        *smallest,
        "",
        "## What is different",
        "",
        wrapped(
            "- A queue that is full raises, and does so for ever after: with `limit=3` the "
            "liveness of the product is refuted by that trap. The paper leaves a full queue "
            "undefined.",
            "  ",
        ),
        wrapped(
            "- The paper's picture and code of *smaller than k* have a counter modulo N, which "
            "begins again; by its text there are k events and then none, as here.",
            "  ",
        ),
        wrapped(
            "- *Sum of odds* is Figure 5a as its text describes it; the drawn one has a branch "
            "more, and BeepBeep gives sums of even numbers for it.",
            "  ",
        ),
        wrapped(
            "- NuSMV's counterexample of bounded liveness is a loop, and may be longer than the "
            "shortest stream.",
            "  ",
        ),
        "",
    ]
    return "\n".join(lines)

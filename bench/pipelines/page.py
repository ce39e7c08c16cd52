"""The page: what was expected beside what was seen. Its tables and sentences come from the data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.chapter4.margin import shown
from bench.pages import (
    Expectation,
    compared,
    disturbed,
    duration,
    expected,
    measured_on,
    table,
    wrapped,
)
from bench.pipelines.graphs import GRAPHS
from bench.pipelines.vertices import CHEAP

__all__ = ["expectations", "page"]

# As specstream/compiler/phases/phase_body.py has it.
IN_LINE = 64
# How many times the source's own work a quiet phase may cost, and what one vertex may lose.
QUIET = 1.2
ONE_VERTEX = 0.98

_COLUMNS = {
    "pipeline, 1 thread": "pipeline, 1 thread",
    "pipeline, 2 threads": "2 threads",
    "pipeline, Auto, 2 threads": "Auto",
    "function, 2 threads": "one function, 2 threads",
    "engines, 1 thread": "engines, 1 thread",
    "engines, 2 threads": "2 threads",
}
_RUNS = {"pipeline": "pipeline", "function": "one function", "engines": "engines"}


def expectations(data: Mapping[str, Any]) -> list[Expectation]:
    """All that was measured and about which something was expected."""
    return list(_expectations(data["parts"]))


def _expectations(parts: Mapping[str, Any]) -> Iterator[Expectation]:
    for graph in GRAPHS:
        if graph.target is not None and graph.name in parts:
            of = parts[graph.name]
            who, bound = graph.target
            what = f"{of['title']}: {who}"
            because = _edge_cost(of) if who.endswith("1 thread") else _two_threads(of)
            yield Expectation(what, bound, True, of["contestants"][who]["speed"], because)
    quiet = parts.get("quiet", [])
    for source in dict.fromkeys(one["source"] for one in quiet):
        alone, *_, largest = _by_size(quiet, source)
        more = largest["nanoseconds"] - alone["nanoseconds"]
        yield Expectation(
            f"a quiet phase of {largest['vertices']:,} vertices, to the source's own work, "
            f"{source}",
            QUIET,
            False,
            largest["ratio"],
            f"it takes {more:.1f} ns more than the source's vertex alone, which takes "
            f"{alone['nanoseconds']:.1f} ns",
        )
    for one in parts.get("one-vertex", []):
        more = one["nanoseconds"] * (1 / one["speed"][1] - 1)
        yield Expectation(
            f"a pipeline of one vertex, to the operator alone, {one['operator']}, {one['threads']}",
            ONE_VERTEX,
            True,
            one["speed"],
            f"it takes {more:.1f} ns more for an event, which takes {one['nanoseconds']:.1f} ns",
        )


def _by_size(quiet: Sequence[Mapping[str, Any]], source: str) -> list[Mapping[str, Any]]:
    return sorted(
        (one for one in quiet if one["source"] == source), key=lambda one: one["vertices"]
    )


def _speed(of: Mapping[str, Any], who: str) -> str:
    """The median, as tables have it."""
    return f"{of['contestants'][who]['speed'][1]:.2f}"


def _two_threads(of: Mapping[str, Any]) -> str:
    told = (
        f"the one function reached {_speed(of, 'function, 2 threads')}, and two threads that share "
        f"nothing {of['capacity']:.2f}"
    )
    dropped = of["contestants"]["pipeline, 2 threads"]["dropped"]
    return (
        told if dropped is None else f"{told}; {dropped:.1%} of the speculative runs were dropped"
    )


def _edge_cost(of: Mapping[str, Any]) -> str:
    takes, function = (
        of["contestants"][who]["nanoseconds"]
        for who in ("pipeline, 1 thread", "function, 1 thread")
    )
    more = (takes - function) / CHEAP
    if more < 0.1:
        return "a vertex takes no longer than its part of the function"
    return f"a vertex takes {more:.1f} ns more than its part of the function"


# ---- the page ----


def page(data: Mapping[str, Any]) -> str:
    """The page as Markdown.

    Args:
        data: as ``--json`` writes it, of all parts.
    """
    parts = data["parts"]
    blocks = [
        "# Pipelines: how fast",
        _summary(parts),
        *disturbed(data["machine"]),
        wrapped(
            "`make bench-pipelines` measures it and writes this page: tables, picture and "
            "sentences come from what it has measured. Each graph runs as a "
            "[pipeline](../guides/pipelines.md); as *engines*, one for each vertex, chained by "
            "hand, each of which gets what others have emitted for the whole batch; and as *one "
            "function*, written by hand, that does what all vertices do. All give the rows of "
            "plain Python, which is looked at before and with every batch."
        ),
        "## Busy",
        _busy(parts),
        "![Speed by graph, and by number of sleeping threads](pipelines.png)",
        wrapped(
            "1 is the one function on one thread, in the same round, by the clock around the call, "
            "and *event* is what it took for an event. Two threads have the best of five settings "
            "of horizon and chunk; *Auto* is what one gets who chooses nothing. The engines have "
            "the same setting for all, or Auto where that was faster. *plain Python* is "
            f"`run_sequential`. {_capacity(parts)}"
        ),
        _remarks(parts),
        "## What was expected",
        _expected(data),
        "## Asleep",
        _asleep(parts),
        "## Quiet phases",
        _quiet(parts["quiet"]),
        "## One vertex",
        _one_vertex(parts["one-vertex"]),
        measured_on(data["machine"]),
    ]
    return "\n\n".join(blocks) + "\n"


def _summary(parts: Mapping[str, Any]) -> str:
    edges, heavy, cheap = (
        _speed(parts[name], who)
        for name, who in (
            ("edges", "pipeline, 2 threads"),
            ("heavy", "pipeline, 2 threads"),
            ("cheap", "pipeline, 1 thread"),
        )
    )
    return wrapped(
        f"On two cores, two threads ran a pipeline of ten vertices of 10 µs at {edges} times the "
        f"speed of one function on one thread, and a heavy vertex of 20 µs between two cheap ones "
        f"at {heavy}. Twenty cheap vertices had {cheap} of the speed of that function where both "
        "have one thread."
    )


def _busy(parts: Mapping[str, Any]) -> str:
    rows = [["graph", "event", *_COLUMNS.values(), "plain Python"]]
    for graph in GRAPHS:
        of = parts[graph.name]
        found = of["contestants"]
        cells = [of["title"], duration(found["function, 1 thread"]["nanoseconds"])]
        cells += [_speed(of, name) for name in _COLUMNS]
        rows.append([*cells, f"{found['sequential check']['speed'][1]:.2g}"])
    return table(*rows)


def _capacity(parts: Mapping[str, Any]) -> str:
    low, *_, high = sorted(parts[graph.name]["capacity"] for graph in GRAPHS)
    return (
        f"Two threads that share nothing reached {low:.2f} to {high:.2f} times the speed of one in "
        "these rounds, which is what the machine gave."
    )


def _chained(of: Mapping[str, Any]) -> str:
    beside = of["engines to pipeline"]
    return (
        f"The engines take {beside['1 thread'][1]:.2f} times as long as the pipeline on one "
        f"thread, and {beside['2 threads'][1]:.2f} times on two."
    )


def _dropped(of: Mapping[str, Any]) -> str:
    best = of["contestants"]["pipeline, 2 threads"]
    told = str(best["setting"])
    if best["dropped"] is not None:
        told += f", {best['dropped']:.1%} of the speculative runs dropped"
    return told


def _remarks(parts: Mapping[str, Any]) -> str:
    edges, heavy, cheap, hot, trading = (parts[graph.name] for graph in GRAPHS)
    two, auto = "pipeline, 2 threads", "pipeline, Auto, 2 threads"
    of_hot, of_engines = (hot["contestants"][who]["speed"] for who in (two, "engines, 2 threads"))
    one = trading["contestants"]["pipeline, 1 thread"]["speed"]
    remarks = [
        f"*Random edges*: {_speed(edges, two)} on two threads ({_dropped(edges)}). Zimmerman and "
        "Chandy saw 1.5 with two threads on two processors, with a prototype in which vertices run "
        f"side by side, also those of one phase; their vertices were others. {_chained(edges)}",
        f"*A heavy one between two cheap ones*: {_speed(heavy, two)} on two threads "
        f"({_dropped(heavy)}). {_chained(heavy)}",
        f"*Cheap ones*: {_edge_cost(cheap)}. {_chained(cheap)} {_overlap(cheap['alone'])}",
        f"*A hot one beside a free one*: {_speed(hot, two)} on two threads ({_dropped(hot)}), and "
        f"{_speed(hot, auto)} with Auto. All phases change the same word, and a phase that "
        "conflicts runs again as a whole, with the free vertex, which had no conflict. The engines "
        f"reach {_speed(hot, 'engines, 2 threads')} on two threads, as that of the free vertex has "
        f"no conflicts, and are {compared(of_engines, of_hot, 'the pipeline')}. Running the "
        "vertices of a phase apart, which pipelines do not do, would be for this.",
        "*Trading*, the running example of Brito (2010, 1.2), whose sources are three: one thread "
        f"of the pipeline is {compared(one, [1.0] * 3, 'one of the function')} "
        f"({_speed(trading, 'pipeline, 1 thread')}). Two reach {_speed(trading, two)} "
        f"({_dropped(trading)}), Auto {_speed(trading, auto)}, the function on two "
        f"{_speed(trading, 'function, 2 threads')}. {_chained(trading)} {_reading(trading)}",
    ]
    return "\n".join(wrapped(f"- {one}", "  ") for one in remarks)


def _overlap(alone: Mapping[str, float]) -> str:
    """What a short loop over a batch gains, from the control."""
    loop, turn = alone["as it is"], alone["one after the other"]
    told = (
        f"A vertex alone in an engine takes {loop:.1f} ns, and {turn:.1f} ns where each event "
        "needs what the one before has come to"
    )
    if loop < 0.9 * turn:
        return (
            f"{told}: in a loop so short a core works at several events at once, for which a phase "
            "of all vertices is too long. Against that stands what handing over tables costs."
        )
    return f"{told}: what the engines take beside that is handing over tables."


def _reading(of: Mapping[str, Any]) -> str:
    """What of an event's time is not the engine's."""

    def told(who: str) -> str:
        one = of["contestants"][who]
        return (
            f"{duration(one['nanoseconds'] - one['in engines'])} of {duration(one['nanoseconds'])}"
        )

    return (
        "The rest of an event's time, beside the engines' own, is reading tables and writing them: "
        f"{told('pipeline, 1 thread')} with the pipeline, {told('function, 1 thread')} with the "
        f"function, {told('engines, 1 thread')} with the engines. Inside, the pipeline's table has "
        "the columns of all three sources for each event."
    )


def _expected(data: Mapping[str, Any]) -> str:
    return expected(
        expectations(data), lambda one: "{:.3f}" if one.bound == ONE_VERTEX else "{:.2f}"
    )


def _asleep(parts: Mapping[str, Any]) -> str:
    found = [parts[f"{one.name}-asleep"] for one in GRAPHS if f"{one.name}-asleep" in parts]
    threads = sorted({int(one.split()[1]) for of in found for one in of["speed"]})
    rows = [["an event sleeps", "", *(f"{count} threads" for count in threads)]]
    for of in found:
        title = f"{of['title']}, {of['milliseconds']:g} ms"
        for name, told in _RUNS.items():
            speeds = [of["speed"][f"{name}, {count} threads"][1] for count in threads]
            rows.append([title, told, *(f"{one:.2f}" for one in speeds)])
    text = wrapped(
        "Vertices sleep in place of working, half of it before they access their state and half "
        "after it, so that more threads than cores can be looked at. A phase of the pipeline "
        "sleeps as long as its vertices do together. Speed relative to one thread of the function:"
    )
    return f"{text}\n\n{table(*rows)}"


def _quiet(found: Sequence[Mapping[str, Any]]) -> str:
    sizes = sorted({one["vertices"] for one in found})
    rows = [["the source's vertex does", *(f"{size:,}" for size in sizes)]]
    for source in dict.fromkeys(one["source"] for one in found):
        of = _by_size(found, source)
        cells = [f"{one['nanoseconds']:.1f} ns ({one['ratio'][1]:.2f})" for one in of]
        rows.append([source, *cells])
    text = wrapped(
        "The source's vertex compares each event with the one before, and lets one in 100,000 "
        "through, for which all others run. Time of a phase by the number of vertices, on one "
        "thread, by the engine's own clock; in brackets relative to the source's vertex alone:"
    )
    took = {one["vertices"]: one["nanoseconds"] for one in _by_size(found, found[0]["source"])}
    few, many = [n for n in sizes if n <= IN_LINE], [n for n in sizes if n > IN_LINE]
    each = (took[few[-1]] - took[few[0]]) / max(few[-1] - few[0], 1)
    more = " and ".join(f"{took[size] - took[1]:.1f} ns with {size:,}" for size in many)
    means = wrapped(
        f"Up to {IN_LINE} vertices are looked at one after the other, until nothing can have a "
        f"message any more: {_at_least(each)} ns for each that has none. Of more, those that have "
        f"one are found by bits: {more}."
    )
    return f"{text}\n\n{table(*rows)}\n\n{means}"


def _at_least(nanoseconds: float) -> str:
    return f"{nanoseconds:.2f}" if nanoseconds >= 0.01 else "less than 0.01"


def _one_vertex(found: Sequence[Mapping[str, Any]]) -> str:
    text = wrapped(
        "A pipeline of one vertex beside the same operator alone, by the engine's own clock. Speed "
        "relative to the operator with as many threads:"
    )
    rows = [["operator", "", "event", "speed"]]
    for one in found:
        took, speed = duration(one["nanoseconds"]), shown(one["speed"], "{:.3f}")
        rows.append([one["operator"], one["threads"], took, speed])
    return f"{text}\n\n{table(*rows)}"

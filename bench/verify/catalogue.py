"""The ready operators, each as its docstring makes it: which of the engines can look at it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

import specstream as ss
from bench.catalogue.example import Example, example_of
from bench.catalogue.page import every, name_of
from bench.options import Say
from specstream.verify.domain import Domain
from specstream.verify.paths import Cut, NotModelled, OutOfTime
from specstream.verify.reads import read_by_operator
from specstream.verify.states import Bounds, Graph
from specstream.verify.step import Model
from specstream.verify.transitions import Transitions

__all__ = ["catalogue"]

SECONDS = 10.0
STATES = 5_000
_VALUES = 2  # of each column


def catalogue(say: Say) -> dict[str, Any]:
    """Of each ready operator: its paths over unknown values, and its states over two values of each
    column, as far as both go."""
    rows = []
    for factory in every():
        name = name_of(factory)
        say(name)
        rows.append({"name": name} | _looked_at(example_of(factory)))
    return {"rows": rows}


def _looked_at(example: Example) -> dict[str, Any]:
    operator = example.operator
    try:
        operator.check_alone()
    except ss.DeclarationError:
        why = {"why": "it takes inputs of a pipeline, no events by itself"}
        return {"paths": why, "states": why}
    return {"paths": _paths(operator), "states": _states(operator, example)}


def _paths(operator: ss.Operator) -> dict[str, Any]:
    """The paths of an event over unknown values, or why there are none."""
    began = time.monotonic()
    try:
        ways = Model(operator, 4, began + SECONDS).ways
    except OutOfTime:
        return {"why": f"its paths take more than {SECONDS:.0f} s"}
    except (NotModelled, Cut) as stop:
        return {"why": getattr(stop, "what", str(stop))}
    stopped = next((one.stopped for one in ways if one.stopped), "")
    took = {"count": len(ways), "seconds": time.monotonic() - began}
    return took | ({"why": stopped.partition("; ")[0]} if stopped else {})


def _states(operator: ss.Operator, example: Example) -> dict[str, Any]:
    """The states that events of two values of each column lead to, or why there are none."""
    try:
        domain = _domain(operator, example.tables)
        graph = Graph(Transitions(operator, domain, frozenset()))
    except NotModelled as stop:
        return {"why": stop.what}
    graph.explore([], Bounds(None, STATES, None, time.monotonic() + SECONDS))
    return {
        "count": len(graph),
        "closed": graph.is_closed,
        "per second": len(graph.targets) / max(graph.seconds, 1e-9),
        "why": "" if graph.is_closed else graph.of.unclosed or graph.stopped,
    }


def _domain(operator: ss.Operator, tables: Mapping[str, pa.Table]) -> Domain:
    given: dict[str, Any] = {}
    for source, table in tables.items():
        names = operator.sources.get(source, operator.event.names)
        columns = {
            name: list(dict.fromkeys(table[name].to_pylist()))[:_VALUES]
            for name in names
            if name in table.column_names
        }
        given[source] = columns
    whole = given if len(operator.sources) > 1 else next(iter(given.values()))
    by_time = operator.layout.goes_by_time or "timestamp" in read_by_operator(operator)
    return Domain(operator, whole, [], (0, 1) if by_time else (0,))

"""Every public entry with options, called in a way that works; the options are its signature's.

So an option that is added to one of them is looked at without being named anywhere.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

import specstream as ss
from specstream import structures
from specstream.predictors.predictor import Setting
from specstream.structures.sorted_list import sorted_contains


class Seen(ss.State):
    count = ss.scalar(int)


@ss.operator(state=Seen, event={"x": int}, emits={"total": int})
def running_total(state, event, emit):  # type: ignore[no-untyped-def]
    state.count += event.x
    emit(state.count)


TABLE = {"x": [1, 2], "time": [1, 2]}


class Hostile:
    """Whatever one may ask an object, it raises."""

    def _raise(self, *_: object) -> Any:
        raise RuntimeError("of no use")

    __eq__ = __bool__ = __len__ = __iter__ = __index__ = __float__ = __repr__ = _raise
    __hash__ = __contains__ = __getitem__ = __array__ = __fspath__ = _raise


# What no option takes.
ABSURD: tuple[object, ...] = (
    [[]],
    {(): []},
    np.array([[1.5, 2], [3, 4]]),
    np.array(2),
    object(),
    Hostile(),
    1j,
    float("nan"),
)


@dataclass(frozen=True)
class Entry:
    """A public entry.

    Attributes:
        name: of the entry.
        signature: has its options.
        call: calls it, with the given options in place of the others.
        given: arguments that it cannot do without, or by which an option is looked at.
        named: what messages call an option otherwise.
        no_texts: types that have texts elsewhere, and not here.
    """

    name: str
    signature: Callable[..., Any]
    call: Callable[..., object]
    given: dict[str, Any] = field(default_factory=dict)
    named: dict[str, str] = field(default_factory=dict)
    no_texts: frozenset[str] = frozenset()

    def options(self) -> dict[str, inspect.Parameter]:
        parameters = inspect.signature(self.signature).parameters.values()
        return {
            one.name: one
            for one in parameters
            if one.kind not in (one.VAR_KEYWORD, one.VAR_POSITIONAL) and one.name != "self"
        }

    def __call__(self, **options: object) -> object:
        # By an option's old name it is given instead of by its new one.
        instead = {self.named.get(name) for name in options}
        given = {name: value for name, value in self.given.items() if name not in instead}
        return self.call(**{**given, **options})


def types_of(option: inspect.Parameter) -> set[str]:
    """The names of the types that an option may have."""
    annotation, before = str(option.annotation), ""
    while annotation != before:  # those of arguments and elements are not its own
        annotation, before = re.sub(r"\[[^\[\]]*\]", "", annotation), annotation
    return set(re.findall(r"\w+", annotation))


def value_of(option: inspect.Parameter, entry: Entry) -> Any:
    """A value that it takes."""
    if option.name in entry.given:
        return entry.given[option.name]
    return option.default


def _engine(**options: Any) -> None:
    ss.Engine(**options).close()


def _of_engine(method: str, **engine_options: Any) -> Callable[..., object]:
    def call(**options: Any) -> object:
        with ss.Engine(running_total, threads=1, **engine_options) as engine:
            return getattr(engine, method)(**options)

    return call


def _of_state(declare: Callable[..., Any]) -> Callable[..., object]:
    def call(**options: Any) -> object:
        fields = {"declared": declare(**options), "other": ss.scalar(int)}
        return type("Declared", (ss.State,), fields).layout()  # type: ignore[attr-defined]

    return call


def _operator(**options: Any) -> object:
    function = running_total.function
    return ss.operator(**options)(function)


def _watch(**options: Any) -> None:
    prometheus = pytest.importorskip("prometheus_client")
    with ss.Engine(running_total, threads=1) as engine:
        ss.metrics.watch(
            **{"watched": engine, "registry": prometheus.CollectorRegistry(), **options}
        )


def _snapshot() -> bytes:
    with ss.Engine(running_total, threads=1) as engine:
        return engine.snapshot()


def _savepoint() -> Any:
    with ss.Engine(running_total, threads=1) as engine:
        return engine.savepoint()


def _entries() -> list[Entry]:
    """All public entries: a list of them, whose length says nothing."""
    declared = {"state": Seen, "event": {"x": int}, "emits": {"total": int}}
    state, submitted = structures, {"table": TABLE, "order_by": "time"}
    shape = {"count": "shape"}
    table = {"table": "[Tt]able"}
    renamed = {"bad_rows": "rejected_rows"}
    amounts = frozenset({"Amount"})
    return [
        Entry("Engine", ss.Engine, _engine, {"operator": running_total}, renamed, amounts),
        Entry(
            "Engine with a snapshot",
            ss.Engine,
            _engine,
            {"operator": running_total, "restore": _snapshot()},
            renamed,
            amounts,
        ),
        Entry("process", ss.Engine.process, _of_engine("process"), {"table": TABLE}, table),
        Entry("submit", ss.Engine.submit, _of_engine("submit"), submitted, table),
        Entry(
            "submit_event",
            ss.Engine.submit_event,
            _of_engine("submit_event", early=True),
            {"timestamp": 1, "x": 1, "final": False},
            {"timestamp": "time"},
        ),
        Entry("advance", ss.Engine.advance, _of_engine("advance"), {"source": 0}, {"to": "time"}),
        Entry("poll", ss.Engine.poll, _of_engine("poll")),
        Entry("poll_rows", ss.Engine.poll_rows, _of_engine("poll_rows")),
        Entry(
            "restore",
            ss.Engine.restore,
            _of_engine("restore"),
            {"snapshot": _snapshot()},
            {"image": "snapshot"},
        ),
        Entry("rollback", ss.Engine.rollback, _of_engine("rollback"), {"to": _savepoint()}),
        Entry(
            "run_sequential",
            ss.Operator.run_sequential,
            running_total.run_sequential,
            {"table": TABLE},
            {**table, **renamed},
        ),
        Entry("operator", ss.operator, _operator, declared),
        Entry(
            "array", ss.array, _of_state(ss.array), {"dtype": int, "shape": 2}, {"dtype": "type"}
        ),
        Entry("scalar", ss.scalar, _of_state(ss.scalar), {"dtype": int}, {"dtype": "type"}),
        Entry(
            "scratch",
            ss.scratch,
            _of_state(ss.scratch),
            {"dtype": int, "shape": 2},
            {"dtype": "type"},
        ),
        Entry("locks", ss.locks, _of_state(ss.locks), {"count": 2}, shape),
        Entry("heap", ss.heap, _of_state(ss.heap), {"blocks": 2, "words": 2}),
        Entry("hash_map", state.hash_map, _of_state(state.hash_map), {"capacity": 2}),
        Entry("hash_set", state.hash_set, _of_state(state.hash_set), {"capacity": 2}),
        Entry("sorted_list", state.sorted_list, _of_state(state.sorted_list), {"capacity": 2}),
        Entry("boosted_set", state.boosted_set, _of_state(state.boosted_set), {"capacity": 2}),
        Entry(
            "boosted",
            state.boosted,
            _of_state(lambda field: state.boosted(field, contains=sorted_contains)),
            {"field": state.sorted_list(2)},
            {"field": "boosted"},
        ),
        Entry("timestamp", ss.timestamp, ss.timestamp),
        Entry("decimal", ss.decimal, ss.decimal, {"scale": 2}),
        Entry("nullable", ss.nullable, ss.nullable, {"declared": int}, {"declared": "nullable"}),
        Entry("Limits", ss.Limits, ss.Limits),
        Entry("Fixed", ss.Fixed, ss.Fixed, {"horizon": 1, "chunk": 1}),
        Entry("AbortDriven", ss.AbortDriven, ss.AbortDriven),
        Entry("ThroughputDriven", ss.ThroughputDriven, ss.ThroughputDriven),
        Entry("Auto", ss.Auto, ss.Auto),
        Entry("top_k", ss.operators.top_k, ss.operators.top_k),
        Entry(
            "nearest_neighbours", ss.operators.nearest_neighbours, ss.operators.nearest_neighbours
        ),
        Entry(
            "watch",
            ss.metrics.watch,
            _watch,
            named={"watched": "watch"},
        ),
    ]


ENTRIES = _entries()


class Asking(ss.Fixed):
    """A predictor that asks for what it is told to."""

    def __init__(self, asked: str, value: object) -> None:
        super().__init__(2, 2)
        self._asked, self._value = asked, value

    def _ask(self, what: str, otherwise: Any) -> Any:
        return self._value if what == self._asked else otherwise

    @property
    def speculates(self) -> bool:
        return self._ask("speculates", True)  # type: ignore[no-any-return]

    def next(self) -> Setting:
        return self._ask("next", super().next())  # type: ignore[no-any-return]

    def current(self) -> tuple[int, int]:
        return self._ask("current", super().current())  # type: ignore[no-any-return]

    def open(self) -> tuple[int, int]:
        return self._ask("open", (2, 2))  # type: ignore[no-any-return]

    def least(self) -> int:
        return self._ask("least", super().least())  # type: ignore[no-any-return]


def look_at_absurd_values(entry: Entry, option: inspect.Parameter) -> None:
    """An option refuses by its name what it cannot mean."""
    for value in ABSURD:
        look_at_refusal(entry, option.name, value)
    types = types_of(option)
    if option.default is not None and not types & {"None", "Any"}:
        look_at_refusal(entry, option.name, None)
    if not types & {"str", "Name", "Amount", "Any", "PathLike"} - entry.no_texts:
        look_at_refusal(entry, option.name, "absurd")


def look_at_integers(entry: Entry, option: inspect.Parameter) -> None:
    """An option of type int takes those of NumPy, and no bools; one of another type is passed."""
    if not types_of(option) & {"int", "Amount"}:
        return
    value = value_of(option, entry)
    if not isinstance(value, int):
        value = 1 << 30 if option.name == "memory" else 2
    entry(**{option.name: np.int64(value)})
    entry(**{option.name: np.uint64(value)})
    if "bool" not in types_of(option):
        look_at_refusal(entry, option.name, True)
        look_at_refusal(entry, option.name, np.True_)


def look_at_bools(entry: Entry, option: inspect.Parameter) -> None:
    """An option of type bool takes those of NumPy, and nothing by its truth."""
    if types_of(option) - {"None"} != {"bool"}:
        return
    entry(**{option.name: np.bool_(value_of(option, entry))})
    wrong: list[object] = [0, 1, "yes", []]
    for value in wrong:
        look_at_refusal(entry, option.name, value)


def look_at_refusal(entry: Entry, option: str, value: object) -> None:
    """The message names the option, and says what was expected."""
    try:
        entry(**{option: value})
    except ss.SpecstreamError as error:
        said = str(error)
    else:
        raise AssertionError(f"{entry.name}({option}=<{type(value).__name__}>) was taken")
    assert re.search(rf"\b{entry.named.get(option, option)}\b", said), said
    assert re.search(r"expected|\bgive\b|\bwrite\b", said), said
    assert len(said) < 800

"""``check`` and ``same`` over a finite domain: what is asked of the graph of all states."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from specstream.definition.operator import Operator
from specstream.verify.counterexample import Replay, Table, events_seen, replay
from specstream.verify.domain import Domain
from specstream.verify.properties import Property
from specstream.verify.questions import Within, holds, is_late, property_or_none
from specstream.verify.reads import read_by
from specstream.verify.report import Finding, Report, Verdict
from specstream.verify.same_question import Question
from specstream.verify.states import TIME_IS_OVER, Bounds, Graph, Watcher
from specstream.verify.transitions import Outcome, Pair, Transitions

__all__ = ["Asked", "explore", "explore_pair"]

_SHOWN = 4  # states of a trap


class _Question(Watcher):
    """Something that is asked of all streams.

    Attributes:
        found: the events of a shortest stream on which it fails; None: there is none so far.
        seconds: after which it was found.
    """

    kind = ""

    def __init__(self, name: str) -> None:
        self.name = name
        self.found: list[int] | None = None
        self.seconds = 0.0

    def is_wrong(self, table: Table, run: Replay) -> bool:
        """Whether it fails of what came out when the stream was run."""
        return True

    @property
    def raised(self) -> str:
        """What the property itself has raised where it fails; "": nothing."""
        return ""

    def known_up_to(self, graph: Graph) -> int:
        """Of streams of how many events it holds, where more states may come."""
        return graph.depth

    def _fails(self, graph: Graph, source: int, at: int | None) -> bool:
        self.found, self.seconds = graph.stream(source), graph.seconds
        self.found += [] if at is None else [at]
        return True


class _Always(_Question):
    """A property of every state."""

    kind = "always"

    def __init__(self, of: Property, graph: Graph) -> None:
        super().__init__(of.name)
        self.of, self._graph = of, graph

    @property
    def raised(self) -> str:
        return self.of.raised

    def state(self, number: int, seen: Callable[[], Any]) -> bool:
        return not holds(self.of, state=seen()) and self._fails(self._graph, number, None)

    def is_wrong(self, table: Table, run: Replay) -> bool:
        return not any(holds(self.of, state=one) for one in (run.states[-1], run.engine_state))


class _OfEvents(_Question):
    """What asks about events: it knows them as properties see them."""

    def __init__(self, name: str, graph: Graph) -> None:
        super().__init__(name)
        assert isinstance(graph.of, Transitions)
        self._graph, self._of = graph, graph.of
        self._before: tuple[int, Any] = (-1, None)

    def _says(self, of: Property | None, source: int, at: int, outcome: Outcome) -> bool:
        """Whether a property holds of an event; None: whether it emits a row."""
        if of is None:
            return bool(outcome.rows)
        values: dict[str, Any] = {}
        for name in of.parameters:
            values[name] = getattr(self, f"_{name}_of")(source, at, outcome)
        return holds(of, **values)

    def _before_of(self, source: int, at: int, outcome: Outcome) -> Any:
        if self._before[0] != source:
            self._before = source, self._of.seen(self._of.loaded)
        return self._before[1]

    def _after_of(self, source: int, at: int, outcome: Outcome) -> Any:
        return self._of.seen(outcome.after)

    def _event_of(self, source: int, at: int, outcome: Outcome) -> Any:
        return self._of.event(at)

    def _rows_of(self, source: int, at: int, outcome: Outcome) -> Any:
        return self._of.rows(outcome)


class _Each(_OfEvents):
    """A property of every event."""

    kind = "each"

    def __init__(self, of: Property, graph: Graph) -> None:
        super().__init__(of.name, graph)
        self.of = of

    @property
    def raised(self) -> str:
        return self.of.raised

    def event(self, source: int, at: int, target: int, outcome: Outcome) -> bool:
        if self._says(self.of, source, at, outcome):
            return False
        return self._fails(self._graph, source, at)

    def is_wrong(self, table: Table, run: Replay) -> bool:
        *_, last = events_seen(table, run)
        return not holds(self.of, **last)


class _Labelled(_OfEvents, ABC):
    """What is answered by the graph, of what each event is called there."""

    def __init__(self, name: str, graph: Graph) -> None:
        super().__init__(name, graph)
        self._next = 64

    def _label(self, labels: bytearray, source: int, at: int, label: bool) -> None:
        """Of states that are left out there are no events, and no label is set."""
        place = source * len(self._of) + at
        labels.extend(bytes(place - len(labels)))
        labels.append(label)

    def layer(self, graph: Graph, is_last: bool) -> bool:
        if not is_last and graph.looked_at < self._next:
            return False
        self._next = 2 * graph.looked_at
        return self.answer(graph, is_last)

    @abstractmethod
    def answer(self, graph: Graph, is_last: bool) -> bool:
        """Looks through the graph; whether the question is answered."""


class _Deadline(_Labelled):
    """Something is answered within so many events."""

    kind = "within"

    def __init__(self, of: Within, name: str, graph: Graph, operator: Operator) -> None:
        super().__init__(name, graph)
        self.events = of.events
        self.response = property_or_none(of.response, operator, "response=")
        self.trigger = property_or_none(of.trigger, operator, "trigger=")
        self._answers, self._asks = bytearray(), bytearray()

    def event(self, source: int, at: int, target: int, outcome: Outcome) -> bool:
        asks = self.trigger is None or self._says(self.trigger, source, at, outcome)
        self._label(self._answers, source, at, self._says(self.response, source, at, outcome))
        self._label(self._asks, source, at, asks)
        return False

    def answer(self, graph: Graph, is_last: bool) -> bool:
        if is_last and graph.is_closed and self.trigger is not None and not any(self._asks):
            self.trigger.refuse_all("no event asks for an answer", "ask for what may happen")
        many, most = len(graph.of), self.events
        # A node is a state, and how many events something has waited there.
        came: dict[int, tuple[int, int]] = {0: (-1, -1)}
        layer = [0]
        while layer:
            following = []
            for node in layer:
                state, waited = divmod(node, most)
                if not graph.is_known(state):
                    continue
                for at in range(many):
                    edge = state * many + at
                    waits = 0
                    if not self._answers[edge]:
                        waits = waited + 1 if waited else self._asks[edge]
                    if waits >= most:
                        self.found, self.seconds = [*_way(came, node), at], graph.seconds
                        return True
                    target = graph.targets[edge] * most + waits
                    if target not in came:
                        came[target] = node, at
                        following.append(target)
            layer = following
        return False

    def is_wrong(self, table: Table, run: Replay) -> bool:
        return is_late(self.events, self.trigger, self.response, events_seen(table, run))


def _way(came: dict[int, tuple[int, int]], node: int) -> list[int]:
    found = []
    while came[node][0] >= 0:
        node, at = came[node]
        found.append(at)
    return found[::-1]


class _CanAlways(_Labelled):
    """From every state some stream gets to an answer."""

    kind = "can_always"

    def __init__(self, of: Property | None, name: str, graph: Graph) -> None:
        super().__init__(name, graph)
        self.of, self.trap = of, list[int]()
        self._answers, self._up_to = bytearray(), 0

    def event(self, source: int, at: int, target: int, outcome: Outcome) -> bool:
        self._label(self._answers, source, at, self._says(self.of, source, at, outcome))
        return False

    def answer(self, graph: Graph, is_last: bool) -> bool:
        states, many = graph.looked_at, len(graph.of)
        edges = states * many
        targets = np.array(graph.targets[:edges], np.int64).reshape(states, many)
        known = np.array([graph.is_known(one) for one in range(len(graph))])
        at_once = np.zeros(len(graph), bool)
        labels = np.zeros(edges, np.uint8)
        labels[: len(self._answers)] = self._answers[:edges]
        at_once[:states] = labels.reshape(states, many).any(axis=1)
        maybe = _gets_to(at_once | ~known, targets)
        surely = _gets_to(at_once, targets)
        traps, unsure = np.flatnonzero(~maybe), np.flatnonzero(~surely)
        # Of a state before it, more may be known later: it is not the shortest stream yet.
        if len(traps) and (is_last or graph.depths[traps[0]] == graph.depths[unsure[0]]):
            self.found, self.seconds = graph.stream(int(traps[0])), graph.seconds
            self.trap = _reached_from(int(traps[0]), targets)
            return True
        self._up_to = graph.depth if not len(unsure) else graph.depths[unsure[0]] - 1
        return False

    def known_up_to(self, graph: Graph) -> int:
        return max(self._up_to, 0)


def _gets_to(goal: Any, targets: Any) -> Any:
    """The states from which some stream gets to a goal."""
    found, states = goal.copy(), len(targets)
    is_edge = targets >= 0
    while True:
        more = found.copy()
        more[:states] |= (found[targets] & is_edge).any(axis=1)
        if (more == found).all():
            return found
        found = more


def _reached_from(state: int, targets: Any) -> list[int]:
    found = {state: None}
    todo = [state]
    for one in todo:
        for target in targets[one].tolist():
            if target not in found:
                found[target] = None
                todo.append(target)
    return list(found)


class _Findings(Watcher):
    """Which exceptions there are."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self.found: dict[tuple[str, int], list[int]] = {}

    def event(self, source: int, at: int, target: int, outcome: Outcome) -> bool:
        for name, place in outcome.raised:
            if (name, place.line) not in self.found:
                self.found[name, place.line] = [*self._graph.stream(source), at]
        return False


class _Same(_Question):
    """Two operators give the same, or what was asked of both."""

    kind = "same"

    def __init__(self, asked: Question, graph: Graph, pair: Pair) -> None:
        super().__init__(asked.name)
        self._graph, self._pair, self._asked = graph, pair, asked
        self.expected = ""

    def event(self, source: int, at: int, target: int, outcome: Outcome) -> bool:
        is_so = outcome.is_same
        if self._asked.of is not None:
            one, other = outcome.raised
            old, new = self._pair.rows(outcome)
            is_so = one == other and self._asked.is_so(self._pair.new.event(at), old, new)
        return not is_so and self._fails(self._graph, source, at)

    def is_wrong(self, table: Table, run: Replay) -> bool:
        old = replay(self._pair.old.operator, table)
        self.expected = self._asked.difference(table, old, run)
        return old.agrees and bool(self.expected)


@dataclass
class Asked:
    """What is asked of all states.

    Attributes:
        always, each: properties.
        within: deadlines, with their names.
        can_always: what can always come, with its name; None: a row.
    """

    always: list[Property] = field(default_factory=list)
    each: list[Property] = field(default_factory=list)
    within: list[tuple[Within, str]] = field(default_factory=list)
    can_always: list[tuple[Property | None, str]] = field(default_factory=list)

    def functions(self) -> Iterator[Any]:
        """All that are asked."""
        for one in (*self.always, *self.each, *(of for of, _ in self.can_always if of)):
            yield one.function
        for deadline, _ in self.within:
            yield from (one for one in (deadline.trigger, deadline.response) if one is not None)

    def reads(self) -> frozenset[str]:
        return frozenset().union(*map(read_by, self.functions()))


def explore(domain: Domain, asked: Asked, bounds: Bounds, report: Report) -> None:
    """Looks at every state of an operator, and answers what is asked; without a question, which
    exceptions there are, and which lines never run."""
    of = Transitions(domain.operator, domain, asked.reads())
    graph = Graph(of)
    questions: list[_Question] = [
        *(_Always(one, graph) for one in asked.always),
        *(_Each(one, graph) for one in asked.each),
        *(_Deadline(one, name, graph, domain.operator) for one, name in asked.within),
        *(_CanAlways(one, name, graph) for one, name in asked.can_always),
    ]
    findings = _Findings(graph)
    if not questions:
        of.look_at_lines()
    graph.explore([*questions] if questions else [findings], bounds)
    _note(report, graph)
    for one in questions:
        report.verdicts.append(_verdict(one, graph, report))
    if questions:
        return
    for (name, line), stream in findings.found.items():
        table = domain.table(stream)
        run = replay(domain.operator, table)
        if run.agrees and (name, line) in run.raised[-1]:
            report.findings.append(Finding(f"raises {name}", line, table))
        else:
            report.undecided.append(f"{name} in line {line} does not come when the stream is run")
    report.findings.sort(key=lambda one: one.line)
    dead = of.dead_lines()
    files = {one.file for one in dead}
    report.unreached = [
        f"line {one.line}" if len(files) == 1 else f"{one.file}:{one.line}" for one in dead
    ]
    report.deepest = graph.depth


def explore_pair(old: Domain, new: Domain, asked: Question, bounds: Bounds, report: Report) -> None:
    """Looks at every state of two operators over the same events, and whether they give the
    same."""
    reads = frozenset[str]() if asked.of is None else read_by(asked.of.function)
    runs = [Transitions(one.operator, one, reads) for one in (old, new)]
    pair = Pair(runs[0], runs[1], asked.in_sequence)
    graph = Graph(pair)
    question = _Same(asked, graph, pair)
    graph.explore([question], bounds)
    _note(report, graph)
    report.verdicts.append(_verdict(question, graph, report))


def _note(report: Report, graph: Graph) -> None:
    report.states, report.transitions = len(graph), len(graph.targets)
    report.closed = graph.is_closed
    report.cut_short = graph.stopped == TIME_IS_OVER


def _verdict(of: _Question, graph: Graph, report: Report) -> Verdict:
    seconds = graph.seconds if of.found is None else of.seconds
    made = Verdict(of.name, "proved", kind=of.kind, seconds=seconds)
    if of.found is not None:
        return _refuted(of, of.found, graph, made)
    if graph.is_closed:
        return made
    made.events = of.known_up_to(graph)
    made.said = "holds" if made.events else "undecided"
    unclosed = f": {graph.of.unclosed}" if graph.of.unclosed else ""
    made.reason = f"not proved: {graph.stopped}{unclosed}"
    return made


def _refuted(of: _Question, stream: list[int], graph: Graph, made: Verdict) -> Verdict:
    """The verdict of a stream on which it fails, which is run first."""
    operator = graph.of.operator
    table = graph.of.domain.table(stream)
    run = replay(operator, table)
    if not run.agrees or not of.is_wrong(table, run):
        made.said, made.events = "undecided", max(len(stream) - 1, 0)
        made.reason = "a stream that was found does not do it when it is run"
        return made
    made.said, made.events, made.table = "refuted", len(stream), table
    made.reason = of.raised
    if not stream and of.kind == "always":
        made.reason = of.raised or "it does not hold before the first event"
    if isinstance(of, _Same):
        made.expected = of.expected
    if isinstance(of, _CanAlways):
        states = [graph.state_after(graph.stream(one)) for one in of.trap[:_SHOWN]]
        made.trap = list(map(graph.of.shown, states))
        many = len(of.trap)
        made.reason = f"no stream gets from there to {of.name}: {many} state{'s'[: many != 1]}"
    return made

"""By how much a rule holds: a number for each event in place of a verdict.

A condition like ``a >= b`` gives ``a - b``; connectives are minima and maxima, and operators about
other events those over what they ask. What looks back has its value with the event. What looks
ahead is a stage of :mod:`~specstream.rules.stages`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from specstream.declarations.chosen_columns import kept_as
from specstream.declarations.schema import Schema
from specstream.rules.formula import Formula, Temporal, has_future, walk
from specstream.rules.generate import Written
from specstream.rules.margin_stages import Margins
from specstream.rules.margins import Conditions
from specstream.rules.queues import Queue
from specstream.rules.text import Options
from specstream.rules.writing import Stored, plain
from specstream.verbs.counting import END
from specstream.verbs.writing import entry, indented

__all__ = ["robust"]


def robust(
    name: str,
    formula: Formula,
    names: Mapping[str, Any],
    columns: Schema,
    key: tuple[str, ...],
    options: Options,
) -> Written:
    """The operator that tells by how much a rule holds, as text.

    Args:
        name: of its function.
        formula: what the rule says.
        names: what names in conditions stand for.
        columns: of the event.
        key: names of the columns whose values are traces of their own.
        options: how it is told.

    Raises:
        DeclarationError: there is no such number, or nothing tells when it is known.
    """
    return _Robustness(name, formula, names, columns, key, options).write()


class _Robustness(Conditions):
    """The operator in the making."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.timers_by_key = bool(self.key)
        self.stages = Margins(self)
        has_next = any(
            isinstance(one, Temporal) and one.name == "next_event" for one in walk(self.formula)
        )
        self.stages.is_closed = has_next and self.options.at_end == "closed"

    # ---- the whole ----

    def write(self) -> Written:
        stages = self.stages
        self.check()
        self.needs_time = any(isinstance(one, Temporal) for one in walk(self.formula))
        if not has_future(self.formula):
            told = self.row_of_event(stages.value(self.formula))
            body = stages.event_held.around([*stages.first, *told])
            return self.text(["now = event.timestamp", *body], None)
        return self.text(*self.later())

    def row_of_event(self, value: str) -> list[str]:
        values = [self.column(self.event, one) for one in self.key]
        values += ["now", value, "now"]
        values += [self.column(self.event, one) for one in self.options.keep]
        return [f"emit({', '.join(values)})"]

    def later(self) -> tuple[list[str], list[str]]:
        """Statements of the event, and of the function that settles what waits."""
        stages = self.stages
        top = stages.taker(self.fresh("row"), [self.formula])
        if top.is_sole:
            (leaf,) = top.later
            assert isinstance(leaf, Temporal)
            has_time = leaf.name != "next_event"
            rows = self.rows(has_time)
            # Kept in the order in which the text reads: rows last.
            name = top.leaves[leaf][1]

            def sink(value: str, at: str, time: str | None) -> list[str]:
                found = stages.value(top.formula[0], {leaf: name})
                given = [] if found == name else [f"{name} = {value}"]
                return [*given, *self.told(rows, found if given else value, at, time)]

            stages.stage(leaf, sink)
        else:
            rows = self.rows(False)
            stages.feed(top)
            (found,) = top.values()
            stages.lines += [
                f"while {top.comes()}:",
                *indented([*top.take(), *self.told(rows, found, top.known(), None)]),
            ]
        if rows is not None:
            stages.pending = rows
        return self.event_lines(), stages.settle_lines()

    def rows(self, has_time: bool) -> Queue | None:
        """What is kept of an event until its row is told."""
        stages = self.stages
        keep, record = self.options.keep, self.waiting
        if has_time and not keep:
            return None
        if not keep:
            return stages.times("rows")
        if not has_time:
            record.keep("v0.timestamp", "time", int)
        for name in keep:
            Stored(record, "one").attribute("v0", name)
        rows = stages.queue("rows", record.name)
        stages.event_held.add(rows)
        stages.settle_held.add(rows)
        stages.pushes += rows.push(record.made({"v0": self.event}, {}))
        return rows

    def told(self, rows: Queue | None, value: str, known: str, time: str | None) -> list[str]:
        """Statements that send the row of the next event."""
        stages = self.stages
        lines: list[str] = []
        place = Stored(self.waiting, "one")
        if rows is not None and self.options.keep:
            lines += rows.take("one")
            time = time or "one.time"
        elif rows is not None:
            time = "time"
            lines += rows.take(time)
        assert time is not None
        decided = known
        if stages.is_closed:
            lines.append(f"decided = {known}")
            decided = f"None if decided == {END} else decided"
        values = [*self.key_parts(), time, value, decided]
        values += [plain(place.attribute("v0", one)) for one in self.options.keep]
        return [*lines, f"emit({', '.join(values)})"]

    def event_lines(self) -> list[str]:
        stages = self.stages
        call = f"settle(state, {'key, ' if self.key else ''}now, emit)"
        lines = [*stages.first, *stages.pushes]
        if not stages.is_moved_by_events:
            # Time alone settles, and its timer has fired before this event.
            wake = stages.wake()
            stages.event_held.add(wake)
            soon = min(within for _, _, within in stages.timed) + 1
            lines += [
                f"if now + {soon} < {wake.name}:",
                *indented(stages.set_timer(f"now + {soon}")),
            ]
        body = stages.event_held.around(lines)
        if stages.is_moved_by_events:
            body.append(call)
        begun = []
        if stages.timed or stages.is_closed:
            self.fields["is_begun"] = "ss.scalar(bool)"
            end = self.timer("0", of_key=False)
            begun = [
                "if not state.is_begun:",
                "    state.is_begun = True",
                f"    state.timers.set({end}, {END})",
            ]
        return ["now = event.timestamp", *begun, *body]

    def text(self, body: list[str], settle: list[str] | None) -> Written:
        """The module."""
        has_timers = "is_begun" in self.fields
        lines: list[str] = []
        if self.waiting.fields:
            lines += [*self.waiting.declared(), "", ""]
        state = [f"{name} = {of}" for name, of in self.fields.items()]
        if has_timers:
            of = [kept_as(self.columns[one]).__name__ for one in self.key]
            state.append(f"timers = ss.timers({entry(['int', *of])})")
        if state:
            lines += ["class State(ss.State):", *indented(state), "", ""]
        for helper in self.needed([*body, *(settle or [])]):
            lines += [*helper.splitlines(), "", ""]
        if settle is not None:
            key = "key, " if self.key else ""
            lines += [f"def settle(state, {key}at, emit):", *indented(settle), "", ""]
        if has_timers:
            lines += ["def on_timer(state, timer, emit):", *indented(self.fired()), "", ""]
        parameters = "state, event, emit" if state else "event, emit"
        lines += [f"def {self.name}({parameters}):", *indented(self.keyed(body))]
        return Written("\n".join(lines) + "\n", self.names, has_timers, self.needs_time, self.notes)

    def fired(self) -> list[str]:
        """Statements of timers: that of the end, and that of the time that is next to pass."""
        stages = self.stages
        if not self.key:
            lines = ["if timer.key == 0:", "    state.is_begun = False"]
            if stages.timed:
                lines += ["    state.timers.cancel(1)", f"state.{stages.wake().name} = {END}"]
            return [*lines, "settle(state, timer.at, emit)"]
        assert stages.pending is not None
        lines = [
            "if timer.key[0] == 0:",
            "    state.is_begun = False",
            f"    for key in list(state.{stages.pending.name}_ends):",
            f"        settle(state, key, {END}, emit)",
        ]
        if stages.timed:
            timer = self.timer("1")
            forget = [
                f"state.timers.cancel({timer})",
                f"state.{stages.wake().name}.pop(key, {END})",
            ]
            lines[-1:-1] = indented(indented(forget))
            key = entry([f"timer.key[{at + 1}]" for at in range(len(self.key))])
            lines += [
                "else:",
                f"    key = {key}",
                f"    state.{stages.wake().name}.pop(key, {END})",
                "    settle(state, key, timer.at, emit)",
            ]
        return lines

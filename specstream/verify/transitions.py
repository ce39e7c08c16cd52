"""One event from a known state: the sequential run itself, put into any state and taken back.

A state is bytes: what the fields hold, in their order. Times are counted from the event before,
where nothing reads them. There is no model: whatever runs sequentially has transitions.
"""

from __future__ import annotations

import ast
import marshal
import struct
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from specstream.columns.events import read_events, rows_to_table
from specstream.columns.lifetimes import settle_unit
from specstream.columns.strings import StringTable
from specstream.compiler.language.user_code import is_own
from specstream.declarations.containers import Container
from specstream.declarations.state_content import StateContent
from specstream.declarations.state_layout import Layout
from specstream.declarations.state_view import StateView
from specstream.definition.operator import Operator, pack_rows, sequential
from specstream.errors import CompileError, is_of_signal_handler
from specstream.verify.counterexample import Seen, plain_value, rows_seen, tables_of
from specstream.verify.domain import Domain
from specstream.verify.paths import Place, refuse
from specstream.verify.reads import DRAWS, all_programs, read_by_operator
from specstream.verify.step import raised_at

__all__ = ["Outcome", "Pair", "Transitions"]

_MOST_KEPT = 100_000  # rows of events, as properties see them


@dataclass
class Outcome:
    """What an event did.

    Attributes:
        rows: that it emitted, as words; of two operators those of each.
        raised: the classes, by name, and places of all exceptions: of the timers that it let fire,
            and its own; likewise.
        fails: whether it has raised itself, and so is not applied.
        after: the state behind it.
        is_same: of two operators, whether both did the same.
    """

    rows: Any
    raised: Any = ()
    fails: bool = False
    after: bytes = b""
    is_same: bool = True


class Transitions:
    """An operator over the events of a domain.

    Args:
        operator: any, also a pipeline, an interpreted one, or one with timers.
        domain: its events.
        reads: what the questions read of an event beside its columns.

    Attributes:
        start: the state before the first event.
        loaded: the state that the run is in.
        unclosed: why new states may always come, though the fields hold the same; "": no reason.
        reached: lines that ran, by file; None: nobody looks.

    Raises:
        NotModelled: it draws random numbers, so that one run does not stand for all; or its phases
            are all events of one time.
    """

    def __init__(self, operator: Operator, domain: Domain, reads: frozenset[str]) -> None:
        self.operator, self.domain, layout = operator, domain, operator.layout
        own = read_by_operator(operator)
        drawn = [name for name in DRAWS if name in own]
        if drawn:
            refuse(
                f"operator {operator.name!r} draws random numbers ({drawn[0]}), other ones for "
                "every seed",
                "leave domain= out, and they are any",
            )
        if operator.event.phases:
            refuse(
                f"the phases of pipeline {operator.name!r} are all events of one time, which has "
                "no meaning here yet",
                'verify it with phases="event", or its operators one by one',
            )
        if any(one.is_on_timer and "sequence" in one.attributes for one in all_programs(operator)):
            refuse(
                f"operator {operator.name!r} reads the number of a timer, which counts all that "
                "have fired",
                "leave timer.sequence out",
            )
        order_by = domain.at_once(0).order_by
        self._is_timed = order_by is not None
        known = own | reads
        self._reads_time = "timestamp" in known and self._is_timed
        self._reads_number = "sequence" in known or ("timestamp" in known and not self._is_timed)
        self._is_put_back = layout.goes_by_time or self._reads_time or self._reads_number
        self.unclosed = ""
        if self._reads_time or self._reads_number:
            name = "the time" if self._reads_time else "event.sequence"
            self.unclosed = f"{name} is read, which may be another one with every event"
        self._strings = StringTable(operator.program.strings)
        words = layout.allocate()
        self._run = sequential(operator.program, layout, words)
        self._now = self._count = 0
        self._memory = words
        self._begin()
        self._stores = [self._run.store(field) for field in layout.containers]
        self._fixed = [words[first:end] for first, end in layout.stretches]
        self._rows_seen: dict[Any, list[Any]] = {}
        self.reached: dict[str, set[int]] | None = None
        self.start = self.loaded = self._packed()

    def __len__(self) -> int:
        return len(self.domain)

    def _begin(self) -> None:
        """Sets the columns of the domain's events, all at the time that it is."""
        operator, values = self.operator, self.domain.values
        what = f"operator {operator.name!r}"
        table = self.domain.at_once(self._now)
        source = operator.source_column(None)
        events = read_events(
            operator.events_table(table.table, what, (table.order_by, source)),
            operator.event,
            self._strings,
            what,
            0,
            order_by=table.order_by,
            source=source,
            reads_timestamp=operator.program.reads_timestamp,
        )
        settle_unit(operator.layout, self._memory, events.keys[0].type)
        self._columns = [events.columns[0].copy(), *events.columns[1:]]
        self._row_of = np.argsort(events.positions).tolist()
        self._sequences = np.zeros(len(values), np.int64)
        self._run.begin(
            operator.event,
            operator.emits,
            self._columns,
            0,
            0,
            sequences=self._sequences,
            strings=self._strings,
        )

    # ---- states as bytes ----

    def _packed(self) -> bytes:
        """The state that the run is in."""
        parts = [one.tobytes() for one in self._fixed]
        parts += [one.packed(self._now) for one in self._stores]
        if self._reads_time:
            parts.append(self._now.to_bytes(8, "little"))
        if self._reads_number:
            parts.append(self._count.to_bytes(8, "little"))
        self._lengths = struct.Struct(f"<{len(parts)}I")
        return self._lengths.pack(*map(len, parts)) + b"".join(parts)

    def _parts(self, state: bytes) -> list[bytes]:
        at, parts = self._lengths.size, []
        for length in self._lengths.unpack_from(state):
            parts.append(state[at : at + length])
            at += length
        return parts

    def load(self, state: bytes) -> None:
        """Puts the run into a state."""
        parts = self._parts(state)
        if self._reads_number:
            self._count = int.from_bytes(parts.pop(), "little")
        self._now = int.from_bytes(parts.pop(), "little") if self._reads_time else 0
        first = len(self._fixed)
        for words, part in zip(self._fixed, parts, strict=False):
            words[:] = np.frombuffer(part, np.int64)
        for store, part in zip(self._stores, parts[first:], strict=True):
            store.unpack(part, self._now)
        self.loaded = state

    def seen(self, state: bytes) -> Any:
        """A state as properties see it; its fields are made when they are asked for."""
        return _SeenState(self.operator.layout, self._view(state))

    def shown(self, state: bytes) -> str:
        """A state in a line."""
        view, fields = self._view(state), self.operator.layout.fields
        names = [one.name for one in fields if one.space == "state"]
        return ", ".join(f"{name} = {plain_value(getattr(view, name))!r}" for name in names)

    def _view(self, state: bytes) -> StateView:
        layout, parts, first = self.operator.layout, self._parts(state), len(self._fixed)
        rows = [
            _rows_of(one.of, part) for one, part in zip(self._stores, parts[first:], strict=False)
        ]
        fixed = np.frombuffer(b"".join(parts[:first]), np.int64)
        content = StateContent(layout, fixed, tuple(rows))
        return StateView(layout, content, self._strings.objects)

    # ---- events ----

    def step(self, at: int) -> Outcome:
        """What an event does, by its number; the run stays in the state that it is in."""
        domain = self.domain
        row = self._row_of[at // len(domain.steps)]
        if self._is_put_back:
            self._now += domain.step(at)
            if self._reads_time:
                self._begin()
            self._columns[0][row] = self._now
            self._sequences[row] = self._count
            self._count += 1
        outcome = self._ran(row) if self.reached is None else self._traced(row)
        if self._is_put_back:
            outcome.after = self._packed()
            self.load(self.loaded)
        elif outcome.fails or not self._run.has_changed:
            outcome.after = self.loaded
        else:
            outcome.after = self._packed()
            self._run.take_back()
        return outcome

    def _ran(self, row: int) -> Outcome:
        run, fails = self._run, False
        raised: list[tuple[str, Place]] = []
        while True:
            try:
                run.run(row)
                break
            except CompileError:
                raise
            except Exception as error:
                if is_of_signal_handler(error):
                    raise
                raised.append((type(error).__name__, raised_at(error)))
                if run.failed_timer is None:
                    fails = True
                    break
        rows = tuple([one[1:] for one in run.rows])
        run.rows.clear()
        return Outcome(rows, tuple(raised), fails)

    def rows(self, outcome: Outcome) -> list[Any]:
        """What an event emitted, as properties see it."""
        found = self._rows_seen.get(outcome.rows)
        if found is None:
            operator = self.operator
            packed = pack_rows([(0, *one) for one in outcome.rows], operator.emits)
            table = operator.rows(rows_to_table(packed, operator.emits, self._strings, None))
            found = [
                Seen("a row", row)
                for sink, one in tables_of(table)
                for row in rows_seen(sink, one, operator)
            ]
            if len(self._rows_seen) < _MOST_KEPT:
                self._rows_seen[outcome.rows] = found
        return found

    def event(self, at: int) -> Any:
        """An event as properties see it, in the state that the run is in."""
        time = self._now + self.domain.step(at) if self._is_timed else self._count
        own = {"timestamp": time, "sequence": self._count}
        return Seen("the event", self.domain.value(at) | own)

    # ---- lines ----

    def _traced(self, row: int) -> Outcome:
        assert self.reached is not None
        reached = self.reached

        def line(frame: types.FrameType, kind: str, _: Any) -> Any:
            if kind == "line":
                reached[frame.f_code.co_filename].add(frame.f_lineno)
            return line

        def call(frame: types.FrameType, kind: str, _: Any) -> Any:
            return line if frame.f_code.co_filename in reached else None

        before = sys.gettrace()
        sys.settrace(call)
        try:
            return self._ran(row)
        finally:
            sys.settrace(before)

    def look_at_lines(self) -> None:
        """From now on notes which lines run."""
        self.reached = {file: set() for file, _ in self._trees()}

    def dead_lines(self) -> list[Place]:
        """Lines of the operator that have not run; of a block that has not, the first."""
        assert self.reached is not None
        found = {
            Place(file, line)
            for file, tree in self._trees()
            for line in _dead([tree], self.reached[file])
        }
        return sorted(found, key=lambda one: (one.file, one.line))

    def _trees(self) -> list[tuple[str, ast.AST]]:
        """The user's own functions, each with its file."""
        programs = all_programs(self.operator)
        return [one for of in programs for one in of.trees() if not is_own(one[0])]


class _SeenState:
    """A state as properties see it; of a pipeline, ``state.vertex.field``."""

    def __init__(self, layout: Layout, view: StateView, prefix: str = "") -> None:
        vars(self).update(__layout=layout, __view=view, __prefix=prefix)

    def __getattr__(self, name: str) -> Any:
        layout, view, prefix = (vars(self)[f"__{one}"] for one in ("layout", "view", "prefix"))
        whole = prefix + name
        if layout.field(whole) is None and layout.has_part(whole):
            found: Any = _SeenState(layout, view, f"{whole}.")
        elif layout.field(whole) is None:
            raise AttributeError(name)
        else:
            found = plain_value(getattr(view, whole))
        vars(self)[name] = found
        return found


def _rows_of(of: Container, data: bytes) -> npt.NDArray[np.int64]:
    """The rows of a container, as :class:`StateContent` has them."""
    count = len(data) // (8 * of.row_words)
    words = np.array(struct.unpack(f"<{count * of.row_words}q", data), np.int64)
    if not of.is_keyed:
        return words.reshape(count, of.row_words)
    ends = [count * of.key.words, count * (of.key.words + of.value.words)]
    blocks = [one.reshape(count, -1) for one in np.split(words, ends) if len(one)]
    return np.concatenate(blocks, axis=1) if blocks else words.reshape(0, of.row_words)


def _dead(block: Iterable[ast.AST], reached: set[int]) -> Iterator[int]:
    """Lines of statements that have not run, the first of each block."""
    for node in block:
        if not _has_run(node, reached):
            yield node.lineno  # type: ignore[attr-defined]
            return
        for name in ("body", "orelse", "finalbody"):
            inner = getattr(node, name, ())
            yield from _dead(inner if isinstance(inner, list) else (), reached)
        for name in ("handlers", "cases"):
            for one in getattr(node, name, ()):
                yield from _dead(one.body, reached)


def _has_run(node: ast.AST, reached: set[int]) -> bool:
    is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    silent = ast.Module | ast.FunctionDef | ast.Pass | ast.Global | ast.Nonlocal
    if is_text or isinstance(node, silent):
        return True
    first, last = node.lineno, node.end_lineno  # type: ignore[attr-defined]
    return any(line in reached for line in range(first, last + 1))


# ---- two operators ----


class Pair:
    """Two operators over the same events, as one.

    Args:
        old: of the one.
        new: of the other.
        in_sequence: the rows are compared one by one, whenever they come; those that one of the two
            is ahead are part of the state.
    """

    def __init__(self, old: Transitions, new: Transitions, in_sequence: bool) -> None:
        self.old, self.new, self._in_sequence = old, new, in_sequence
        self.domain, self.operator = new.domain, new.operator
        self.unclosed = old.unclosed or new.unclosed
        self.start = self._joined(old.start, new.start, (0, ()))
        self.reached = None

    def __len__(self) -> int:
        return len(self.domain)

    def _joined(self, old: bytes, new: bytes, ahead: tuple[int, Any]) -> bytes:
        return marshal.dumps((old, new, ahead), 2)

    def load(self, state: bytes) -> None:
        """Puts both into a state."""
        old, new, self._ahead = marshal.loads(state)
        self.old.load(old)
        self.new.load(new)

    def seen(self, state: bytes) -> Any:
        """The state of the new one, as properties see it."""
        return self.new.seen(marshal.loads(state)[1])

    def shown(self, state: bytes) -> str:
        """A state in a line."""
        return self.new.shown(marshal.loads(state)[1])

    def rows(self, outcome: Outcome) -> tuple[list[Any], list[Any]]:
        """What an event emitted of both, as properties see it."""
        old, new = outcome.rows
        return self.old.rows(Outcome(old)), self.new.rows(Outcome(new))

    def step(self, at: int) -> Outcome:
        """What an event does to both, by its number."""
        one, other = self.old.step(at), self.new.step(at)
        side, ahead = self._ahead
        left, right = one.rows, other.rows
        count, rest = max(len(left), len(right)), (0, ())
        if self._in_sequence:
            left, right = (ahead if side == 0 else ()) + left, (ahead if side else ()) + right
            count = min(len(left), len(right))
            rest = (0, left[count:]) if len(left) > count else (1, right[count:])
        names = [[name for name, _ in of.raised] for of in (one, other)]
        is_same = names[0] == names[1] and _bits(left[:count]) == _bits(right[:count])
        after = self._joined(one.after, other.after, rest if rest[1] else (0, ()))
        return Outcome((one.rows, other.rows), tuple(names), False, after, is_same)


def _bits(rows: Any) -> bytes:
    """Rows by their bits."""
    return marshal.dumps(rows, 2)

"""What was found out of an operator: verdicts, findings, and how they are told."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from specstream.declarations.options import refuses_unknown
from specstream.errors import SpecstreamError
from specstream.verify.counterexample import Table, shown

__all__ = ["Finding", "Refuted", "Report", "Said", "Verdict"]

Said = Literal["proved", "holds", "refuted", "undecided"]
EXIT: dict[Said, int] = {"proved": 0, "holds": 0, "refuted": 1, "undecided": 3}
_HELPERS_SHOWN = 6
_ORDER: tuple[Said, ...] = ("proved", "holds", "undecided", "refuted")


class Refuted(SpecstreamError, AssertionError):
    """What was asked of an operator is not so, or not known to be so."""


@refuses_unknown
@dataclass
class Verdict:
    """What is known of one property.

    Attributes:
        name: of the property.
        said: "proved", "holds", "refuted" or "undecided".
        events: up to how many events it holds, or of a refutation the length of the stream.
        reason: of "undecided", where and why; else what else there is to say.
        table: of a refutation: the stream.
        helpers: what was proved along with it and nobody asked for.
        seconds: that it took.
        kind: "always", "each", "within", "can_always", "same" or "smallest".
        expected: of "same", what was expected and what was found.
        bound: of "smallest", the greatest number that a stream reaches.
        trap: of "can_always", states from which no stream gets to an answer; the stream leads to
            the first.
    """

    name: str
    said: Said
    events: int = 0
    reason: str = ""
    table: Table | None = None
    helpers: list[str] = field(default_factory=list)
    seconds: float = 0.0
    kind: str = "always"
    expected: str = ""
    bound: int | None = None
    trap: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        if self.said == "holds":
            return f"holds up to {self.events} events"
        return self.said


@refuses_unknown
@dataclass
class Finding:
    """What some stream does to an operator: an exception, a wrapped result, a full container.

    Attributes:
        what: in a few words, like "raises IndexError" or "wraps -".
        line: of the operator's file.
        table: the shortest stream that does it, which has been run.
    """

    what: str
    line: int
    table: Table


@refuses_unknown
@dataclass
class Report:
    """What :func:`specstream.verify.check` found out.

    Attributes:
        operator: its name.
        verdicts: one for each property.
        findings: where no property was asked for.
        paths: of the operator.
        validated: paths of which a table was run, and did what the model said.
        undecided: why nothing more is known; empty: all that was asked is answered.
        unreached: over a finite domain, without a question: lines that no stream reaches, as far as
            was looked, like "line 12", with the file where they are of several; of a block the
            first.
        seconds: that it took.
        cut_short: whether the time has ended it, so that another machine may find more.
        deepest: length of the longest streams that findings were looked for in.
        confirmed: whether a second solver has repeated each step of the proofs.
        states: over a finite domain, how many there are, as far as was looked.
        transitions: events that were run from one of them.
        closed: whether these are all states that there are.
    """

    operator: str
    verdicts: list[Verdict] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    paths: int = 0
    validated: int = 0
    undecided: list[str] = field(default_factory=list)
    seconds: float = 0.0
    cut_short: bool = False
    deepest: int = 0
    confirmed: bool = False
    unreached: list[str] = field(default_factory=list)
    states: int = 0
    transitions: int = 0
    closed: bool = False

    @property
    def said(self) -> Said:
        """The least of its verdicts."""
        found = [one.said for one in self.verdicts]
        if self.undecided and not found:
            found.append("undecided")
        return max(found, key=_ORDER.index, default="holds")

    def exit_status(self, require: str | None = None) -> int:
        """0, 1 where something is refuted, 3 where it is not known.

        Args:
            require: "proved": 3 as well where something holds only as far as was looked.
        """
        if self.said == "holds" and require == "proved":
            return 3
        return EXIT[self.said]

    def raise_unless(self, said: str = "holds") -> None:
        """Raises unless the verdicts are good enough.

        Args:
            said: "proved", or "holds", which is enough as far as was looked.

        Raises:
            Refuted: with the report as its text.
            ValueError: another word.
        """
        if said not in ("proved", "holds"):
            raise ValueError(f"raise_unless({said!r}); expected 'proved' or 'holds'")
        if self.exit_status(said) != 0:
            raise Refuted(str(self))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data."""
        return {
            "operator": self.operator,
            "verdict": self.said,
            "paths": self.paths,
            "validated": self.validated,
            "undecided": self.undecided,
            "cut_short": self.cut_short,
            "confirmed": self.confirmed,
            "states": self.states,
            "transitions": self.transitions,
            "closed": self.closed,
            "unreached": self.unreached,
            "seconds": round(self.seconds, 3),
            "properties": [
                {
                    "name": one.name,
                    "verdict": one.said,
                    "events": one.events,
                    "reason": one.reason,
                    "helpers": one.helpers,
                    "bound": one.bound,
                    "trap": one.trap,
                    "stream": _stream(one.table),
                }
                for one in self.verdicts
            ],
            "findings": [
                {"what": one.what, "line": one.line, "stream": _stream(one.table)}
                for one in self.findings
            ],
        }

    def __str__(self) -> str:
        return os.linesep.join(self._lines())

    def _lines(self) -> Iterator[str]:
        for one in self.verdicts:
            how = f"   {_events(one.events)}, replayed" if one.said == "refuted" else ""
            yield f"{one!s:<10} {one.name}{how}   {one.seconds:.1f} s"
            if one.table is not None:
                yield from (f"  {line}" for line in shown(one.table.values))
            if one.expected:
                yield f"  {one.expected}"
            if one.reason:
                yield f"  {one.reason}"
            yield from (f"  there: {state}" for state in one.trap)
            if one.helpers:
                more = len(one.helpers) - _HELPERS_SHOWN
                also = [f"and {more} more"] if more > 0 else []
                yield f"  with: {'; '.join([*one.helpers[:_HELPERS_SHOWN], *also])}"
        width = max((len(one.what) for one in self.findings), default=0)
        for found in self.findings:
            values = "   ".join(shown(found.table.values))
            where = f"{found.what:<{width}}  line {found.line:<4}"
            yield f"  {where} {values}   {_events(len(found.table))}"
        for line in self.unreached:
            yield f"  no stream gets to {line}"
        for reason in self.undecided:
            yield f"undecided  {reason}"
        if not self.verdicts and not self.findings and not self.undecided:
            what = "raises" if self.states else "raises, wraps or is full"
            how = "" if self.closed else f" within {_events(self.deepest)}"
            yield f"  nothing {what}{how}"
        ran = f"{self.validated} of {self.paths} paths ran as the model says"
        is_same = any(one.kind == "same" for one in self.verdicts)
        if self.states:
            ran = f"{self.states:,} states, {self.transitions:,} transitions"
            ran += ", all that there are" if self.closed else ""
        elif is_same:
            ran = f"{self.paths} pairs of paths"
        yield (
            f"{self.operator}: {ran}, {self.seconds:.1f} s. Not covered: memory, time, rejected "
            "rows, effects outside."
        )
        if self.confirmed:
            yield "A second solver has repeated each step of the proofs."
        if self.cut_short:
            yield "The time ended it: another machine may find more, or less; try a larger time."


def _events(count: int) -> str:
    return f"{count} event{'' if count == 1 else 's'}"


def _stream(table: Table | None) -> Any:
    return None if table is None else table.table.to_pylist()

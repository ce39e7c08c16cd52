"""A profile: what :meth:`specstream.Engine.profile` returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from specstream.display.sheet import Sheet
from specstream.display.values import reasons_of
from specstream.profiling.hot_words import HotWord

__all__ = ["Profile"]


@dataclass(frozen=True, kw_only=True)
class Profile:
    """Why speculative runs were dropped, since the engine was made.

    Attributes:
        operator: its name.
        protocol: "value" or "eager".
        events: that were applied.
        speculative_runs: runs ahead of their turn. A transaction that is dropped while it waits
            runs so once more, so that there may be more runs than transactions.
        aborts: how many of them were dropped, by reason.
        conflicts: how many of them were dropped because a word conflicted.
        horizon: transactions that may start ahead of the head, as it stands.
        chunk: events of a transaction, as it stands.
        lines_counted: whether the lines are those that were executed, with
            ``Engine(..., profile=True)``; else they are all that name the field.
        words: that conflicted, those that cost the most first.
        shapes: of the fields that they are in.
        advice: what may help, in sentences.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     total = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def running_total(state, event, emit):
    ...     state.total += event.x
    ...     emit(state.total)
    >>> with ss.Engine(running_total, horizon=4, chunk=1, execution="speculate",
    ...                profile=True) as engine:
    ...     while engine.stats.aborts["conflict"] == 0:
    ...         _ = engine.process({"x": range(1000)})
    ...     hottest = engine.profile().words[0]
    >>> hottest.name, hottest.lines[0].text
    ('total', 'state.total += event.x')
    """

    operator: str
    protocol: str
    events: int
    speculative_runs: int
    aborts: Mapping[str, int]
    conflicts: int
    horizon: int
    chunk: int
    lines_counted: bool
    words: tuple[HotWord, ...]
    shapes: Mapping[str, tuple[int, ...]]
    advice: tuple[str, ...] = ()

    @property
    def abort_rate(self) -> float:
        """Dropped speculative runs per speculative run; 0.0 before the first."""
        return sum(self.aborts.values()) / self.speculative_runs if self.speculative_runs else 0.0

    @property
    def by_vertex(self) -> dict[str, float]:
        """Of a pipeline: the share of the conflicts, 0 to 1, by vertex, the largest first."""
        shares: dict[str, float] = {}
        for word in self.words:
            if word.vertex:
                shares[word.vertex] = shares.get(word.vertex, 0.0) + word.share
        return dict(sorted(shares.items(), key=lambda one: -one[1]))

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data, for JSON."""
        plain = asdict(replace(self, aborts=dict(self.aborts), shapes=dict(self.shapes)))
        for word, own in zip(plain["words"], self.words, strict=True):
            word["name"] = own.name
        more = {"by_vertex": self.by_vertex} if self.by_vertex else {}
        return {**plain, "abort_rate": self.abort_rate, **more}

    def plot(self, path: str | Path) -> None:
        """Draws the hottest words and where in their fields they lie, into a file.

        Args:
            path: the file; its suffix says the format, as matplotlib knows it (``.png``, ``.svg``).

        Raises:
            ImportError: matplotlib is not installed.
        """
        from specstream.profiling.plot import save_plot

        title = (
            f"{self.operator}: what {self.conflicts:,} of {self.speculative_runs:,} "
            f"speculative runs were dropped for (protocol {self.protocol}, "
            f"chunk {self.chunk}, horizon {self.horizon})"
        )
        save_plot(self.words, self.shapes, title, Path(path))

    def text(self, most: int = 10) -> str:
        """For people: the hottest words with their lines, and the advice.

        Args:
            most: the most words to show; it says how many more there are.
        """
        reasons = ", ".join(f"{n:,} {name}" for name, n in self.aborts.items() if n) or "none"
        rows = [
            f"operator {self.operator!r}, protocol {self.protocol!r}: {self.events:,} events, "
            f"{self.speculative_runs:,} speculative runs",
            f"aborts: {reasons}",
        ]
        if self.by_vertex:
            shares = ", ".join(f"{name} {share:.1%}" for name, share in self.by_vertex.items())
            rows.append(f"conflicts by vertex: {shares}")
        for word in self.words[:most]:
            aborts = "1 abort" if word.aborts == 1 else f"{word.aborts:,} aborts"
            rows.append(f"{word.share:7.1%}  {word.name}  ({aborts})")
            rows += [f"{'':9}{line}" for line in word.lines[:3]]
        if len(self.words) > most:
            rows.append(f"{'':9}... and {len(self.words) - most} more words")
        return "\n".join(rows + [f"- {sentence}" for sentence in self.advice])

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return self.text(3)

    def _repr_html_(self) -> str:
        facts = [
            ("events", f"{self.events:,}"),
            ("speculative runs", f"{self.speculative_runs:,}, {self.abort_rate:.1%} dropped"),
            ("aborts", reasons_of(self.aborts)),
            *(
                (f"vertex {name}", f"{share:.1%} of the conflicts")
                for name, share in self.by_vertex.items()
            ),
            ("setting", f"protocol {self.protocol}, horizon {self.horizon}, chunk {self.chunk}"),
        ]
        lines = "lines, counted" if self.lines_counted else "lines that name the field"
        words = [
            ("share", "word", "aborts", lines),
            *(
                (
                    f"{word.share:.1%}",
                    word.name,
                    f"{word.aborts:,}",
                    "; ".join(
                        f"{one.function}, line {one.line}: {one.text}" for one in word.lines[:3]
                    ),
                )
                for word in self.words[:10]
            ),
        ]
        title = f"Profile of operator {self.operator}"
        about = f"words that conflict: {len(self.words):,}"
        return Sheet(title, facts, notes=self.advice, more=(about, words), opened=True).html()

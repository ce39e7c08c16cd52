"""The picture of one late event among ten that are applied, drawn from what an engine answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

import specstream as ss
from specstream.figures.palette import Look
from specstream.figures.style import bar_look, in_style, legend, new_figure

__all__ = ["LOOKS", "Course", "course", "late_event"]

ACCOUNTS = "ABCBACBAAC"  # of the ten events, at 10, 20, ...
LATE = 35, "B"
HALF = 60  # where the frontiers come to stand first

NOT_RUN, AGAIN = "published again, not run", "run, or run again"
APPLIED, BACK, FINAL = "applied", "revoked", "final"
LOOKS = {
    APPLIED: Look("#9cc9e8"),
    BACK: Look("#dddddd", hatch="///"),
    NOT_RUN: Look("#9cc9e8", hatch="..."),
    AGAIN: Look("#e69f00"),
    FINAL: Look("#7cc7a8"),
}


class Accounts(ss.State):
    balance = ss.array(int, 3)


@ss.operator(
    state=Accounts,
    event={"account": int, "amount": int},
    emits={"account": int, "balance": int},
)
def book(state: Any, event: Any, emit: Any) -> None:
    state.balance[event.account] += event.amount
    emit(event.account, state.balance[event.account])


@dataclass(frozen=True)
class Course:
    """What the engine told and counted; rows by the times of their events.

    Attributes:
        first: balances of the ten.
        told: of those whose rows are told when the late one has come.
        revoked: how many were.
        republished: of these, how many were applied again without running.
        half: balances of those that are final at first.
        rest: of those that are final in the end.
    """

    first: dict[int, int]
    told: dict[int, int]
    revoked: int
    republished: int
    half: dict[int, int]
    rest: dict[int, int]

    @property
    def back(self) -> list[int]:
        """Those that were revoked: they are later than the late one."""
        return [time for time in self.first if time > LATE[0]]


def course() -> Course:
    """Runs it."""

    def rows(changes: pa.Table, change: str) -> dict[int, int]:
        assert set(changes["change"].to_pylist()) == {change}
        return dict(
            zip(changes["timestamp"].to_pylist(), changes["balance"].to_pylist(), strict=True)
        )

    with ss.Engine(book, threads=1, sources=["branch", "post"], early=True) as engine:
        engine.poll_early()
        for number, account in enumerate(ACCOUNTS):
            engine.submit_event(
                10 * (number + 1), "branch", account="ABC".index(account), amount=10
            )
        first = rows(engine.poll_early(timeout=None).changes, "early")
        engine.submit_event(LATE[0], "post", account="ABC".index(LATE[1]), amount=5)
        told = rows(engine.poll_early(timeout=None).changes, "early")
        figures = engine.parts.native.early_figures()
        final = []
        for to in (HALF, None):
            for source in ("branch", "post"):
                engine.advance(source, to)
            engine.poll(timeout=None)
            final.append(rows(engine.poll_early(timeout=None).changes, "final"))
    return Course(first, told, int(figures.revoked), int(figures.republished), *final)


@in_style
def late_event() -> Figure:
    """Ten events are applied, an earlier one comes; two of those behind it run again."""
    run = course()
    times = sorted([*run.first, LATE[0]])
    accounts = dict(zip(run.first, ACCOUNTS, strict=True)) | {LATE[0]: LATE[1]}
    now = run.first | run.told
    again = set(run.told)
    # What is drawn is what was counted: a row that changed is of an event that ran.
    assert len(run.back) == run.revoked
    assert len(run.back) - len(again - {LATE[0]}) == run.republished
    half, whole = now | run.half, now | run.half | run.rest
    steps: list[tuple[str, dict[int, tuple[str, int | None]]]] = [
        (
            "Ten events are applied; the balances are told as early rows",
            {time: (APPLIED, run.first[time]) for time in run.first},
        ),
        (
            f"An event of {LATE[0]} comes; those behind it are revoked",
            {time: (BACK if time in run.back else APPLIED, run.first[time]) for time in run.first},
        ),
        (
            "It runs; of those behind it, those that read what it wrote run again",
            {
                time: (
                    AGAIN if time in again else NOT_RUN if time in run.back else APPLIED,
                    now[time],
                )
                for time in times
            },
        ),
        (
            f"Both sources have passed {HALF}",
            {time: (FINAL if time in run.half else APPLIED, half[time]) for time in times},
        ),
        ("Both sources have ended", {time: (FINAL, whole[time]) for time in times}),
    ]
    figure, panels = new_figure("", 4.6)
    axes = panels[0, 0]
    axes.set_axis_off()
    axes.set_xticks([])
    axes.set_yticks([])
    for at, time in enumerate(times):
        axes.text(at + 0.5, 0.0, str(time), ha="center", va="center")
        axes.text(at + 0.5, 0.38, accounts[time], ha="center", va="center", fontweight="bold")
    axes.text(-0.1, 0.0, "time", ha="right", va="center")
    axes.text(-0.1, 0.38, "account", ha="right", va="center")
    for number, (title, boxes) in enumerate(steps):
        top = 0.75 + 1.15 * number
        axes.text(0.05, top + 0.2, title, va="center")
        for at, time in enumerate(times):
            if time not in boxes:
                continue
            name, balance = boxes[time]
            axes.add_patch(
                Rectangle((at + 0.05, top + 0.42), 0.9, 0.5, **bar_look(LOOKS[name]), label=name)
            )
            axes.text(
                at + 0.5, top + 0.67, str(balance), ha="center", va="center",
                bbox={"facecolor": LOOKS[name].colour, "edgecolor": "none", "pad": 1.2},
            )  # fmt: skip
    axes.text(-0.1, 0.75 + 0.67, "balance", ha="right", va="center")
    axes.set_xlim(-1.3, len(times))
    axes.set_ylim(0.75 + 1.15 * len(steps), -0.25)
    legend(figure, LOOKS, LOOKS, bars=True)
    return figure

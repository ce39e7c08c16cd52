"""The auctions example: its pipeline beside rows by hand and pandas, its events, its command."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow.json
import pytest

import specstream as ss
from examples.auctions import __main__ as command
from examples.auctions.bids import WRONG, made, write
from examples.auctions.check import expected
from examples.auctions.picture import draw
from examples.auctions.pipeline import BIDS, auction, auctions

FOLDER = Path(__file__).parents[2] / "examples" / "auctions"
WRITTEN = {"create": ("item", "least", "period"), "bid": ("item", "amount"), "sold": ("item",)}


def table(*events: tuple[Any, ...]) -> dict[str, list[Any]]:
    """Of events that are written as their day, their kind, and what belongs to the kind."""
    rows = [
        {"day": day, "kind": kind, **dict(zip(WRITTEN.get(kind, ()), rest, strict=True))}
        for day, kind, *rest in events
    ]
    return {column: [row.get(column) for row in rows] for column in BIDS}


def answer(events: Any) -> tuple[list[Any], list[Any]]:
    """Days, and what is wrong."""
    with ss.Engine(auctions(), threads=2) as engine:
        found = engine.process(events, order_by="day", end=True)
    wrong = found["wrong"].select(["item", "day", "kind"]).to_pylist()
    return [tuple(row.values()) for row in found["days"].to_pylist()], [
        tuple(row.values()) for row in wrong
    ]


# ---- rows by hand ----


def test_an_auction_counts_until_it_is_sold_or_its_days_are_over() -> None:
    days, wrong = answer(
        table(
            (1, "create", "a", 10, 3),
            (1, "bid", "a", 9),
            (1, "create", "b", 10, 9),
            (1, "day"),
            (2, "create", "c", 0, 2),
            (2, "day"),
            (3, "bid", "b", 10),
            (3, "sold", "b"),  # in its last bid there is enough
            (3, "day"),  # the third of a, the second of c
            (4, "day"),  # nothing is open, and nothing changes: no row
            (5, "create", "d", 1, 2),
            (5, "day"),
        )
    )
    assert days == [(1, 2, 1.0), (2, 3, 5 / 3), (3, 0, 0.0), (5, 1, 1.0)]
    assert wrong == []


def test_what_is_sold_or_over_stays_so_and_what_is_wrong_is_told_once() -> None:
    begin = [(1, "create", name, 10, 2) for name in "abcdefgh"]
    bids = [(1, "bid", name, 10) for name in "abcdefg"]
    days, wrong = answer(
        table(
            *begin,
            *bids,
            *((1, "sold", name) for name in "abc"),
            (1, "day"),
            (2, "bid", "d", 10),
            (2, "sold", "h"),
            (2, "create", "e", 1, 9),
            (2, "bid", "new", 1),
            (2, "bid", "d", 11),  # it was wrong before
            (2, "day"),
            (3, "bid", "a", 20),
            (3, "sold", "b"),
            (3, "create", "c", 10, 2),
            (3, "sold", "f"),  # too late, as the next one
            (3, "bid", "g", 20),
            (3, "sold", "a"),
            (3, "day"),
            (4, "day"),
        )
    )
    assert days == [(1, 5, 1.0), (2, 0, 0.0), (3, 0, 0.0), (4, 0, 0.0)]
    kinds = {2: "d bid, h sold, e create, new bid", 3: "a bid, b sold, c create, f sold, g bid"}
    told = [(day, *one.split()) for day, of in kinds.items() for one in of.split(", ")]
    assert [(day, item, kind) for item, day, kind in wrong] == told


# ---- rows by pandas ----


@pytest.mark.parametrize("seed", [2, 3])
def test_the_pipeline_gives_what_pandas_gives_of_a_file(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "bids.jsonl"
    planted = write(file, 4000, 30, seed, 40)
    found = command.stream(file, threads=2)
    for name, frame in expected(file).items():
        assert found[name].select(list(frame)).to_pylist() == frame.to_dict("records")
    assert found["days"].num_rows == 30
    told = [(one["item"], one["day"], one["kind"]) for one in planted]
    assert [(one["item"], one["day"], one["kind"]) for one in found["wrong"].to_pylist()] == told
    assert len(told) == 40


def test_the_pipeline_on_all_settings(tmp_path: Path) -> None:
    file = tmp_path / "bids.jsonl"
    write(file, 600, 20, 4, 20)
    settings = ss.testing.settings()[1::4]
    events = pyarrow.json.read_json(file)
    run = ss.testing.check(auctions(), events, order_by="day", settings=settings)
    assert (run.output["days"].num_rows, run.output["wrong"].num_rows) == (20, 20)


# ---- events ----


def test_events_are_made_from_their_seed() -> None:
    events = list(made(2000, 25, 1, 16))
    assert events == list(made(2000, 25, 1, 16))
    assert events != list(made(2000, 25, 2, 16))
    assert len(events) == 2000
    assert sum(is_wrong for _, is_wrong in events) == 16
    assert not any(is_wrong for _, is_wrong in made(2000, 25, 1, 0))
    days = [event["day"] for event, _ in events]
    assert days == sorted(days)
    ends = [event["day"] for event, _ in events if event["kind"] == "day"]
    assert ends == list(range(1, 26))
    assert events[-1][0] == {"day": 25, "kind": "day"}


def test_events_are_as_frequent_as_in_the_benchmark() -> None:
    """484,416 create, 12,846,793 bid and 98,199 sold, of 13,430,408."""
    kinds = Counter(event["kind"] for event, _ in made(40_000, 50, 1, 0))
    assert kinds["create"] / 40_000 == pytest.approx(0.036, rel=0.1)
    assert kinds["sold"] / 40_000 == pytest.approx(0.0073, rel=0.3)


def test_every_kind_of_wrong_event_is_made() -> None:
    found = set()
    state: dict[str, str] = {}
    for event, is_wrong in made(20_000, 40, 1, 80):
        item, kind = event.get("item", ""), event["kind"]
        if is_wrong:
            found.add((state.get(item, "unknown"), kind))
        elif kind in ("create", "sold"):
            state[item] = {"create": "open", "sold": "sold"}[kind]
    # This loop counts no days: those that are over are open for it.
    assert found == {(state.replace("over", "open"), kind) for state, kind in WRONG}


# ---- pictures, page, command ----


def test_the_picture_shows_every_day() -> None:
    days = pd.DataFrame({"day": [1, 2, 3], "open": [2, 0, 5], "average": [1.0, 0.0, 1.4]})
    lines: list[Any] = [axes.lines[0] for axes in draw(days).axes]
    shown = [line.get_ydata().tolist() for line in lines]
    assert shown == [days["average"].tolist(), days["open"].tolist()]


def test_the_pictures_of_the_page_are_those_of_the_program(tmp_path: Path) -> None:
    drawn: dict[str, Any] = {"auctions-machine.svg": auction, "auctions-pipeline.svg": auctions()}
    for name, one in drawn.items():
        one.draw(tmp_path / name)
        assert (FOLDER / name).read_bytes() == (tmp_path / name).read_bytes()


def test_the_code_of_the_page_is_that_of_the_program() -> None:
    program = "".join((FOLDER / f"{name}.py").read_text() for name in ("pipeline", "__main__"))
    blocks = re.findall(r"```python\n(.*?)```", (FOLDER / "README.md").read_text(), re.DOTALL)
    assert blocks
    for block in blocks:
        assert block in program


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--events", "10"], "--events 10: at least 1000"),
        (["--days", "1"], "--days 1: at least 2"),
        (["--violations", "-1"], "--violations -1: at least 0"),
        (["--events", "1000", "--violations", "101"], "--violations 101: at most a tenth"),
        (["--threads", "0"], "--threads 0: at least 1"),
    ],
)
def test_an_option_that_cannot_be_is_refused(
    given: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as refused:
        command.main(given)
    assert refused.value.code == 2
    assert message in capsys.readouterr().err


SMALL = ["--events", "1200", "--days", "12", "--sequential", "300", "--violations", "8"]


def test_the_command_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main([*SMALL, "--output", str(tmp_path / "new")]) == 0
    printed = capsys.readouterr().out
    assert "1,200 events of 12 days" in printed
    assert "8 of them are wrong" in printed
    assert printed.count(": yes\n") == 4
    assert "identical to the sequential run of the first 300: yes" in printed
    assert (tmp_path / "new" / "auctions.png").read_bytes().startswith(b"\x89PNG")
    assert {path.suffix for path in (tmp_path / "new").iterdir()} == {".png", ".svg"}


def test_the_command_says_that_an_answer_is_another(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def other(file: Path) -> dict[str, pd.DataFrame]:
        found = expected(file)
        found["days"].loc[3, "open"] += 1
        return found

    monkeypatch.setattr(command, "expected", other)
    given = [*SMALL, "--violations", "0", "--threads", "1", "--json"]
    assert command.main([*given, "--output", str(tmp_path)]) == 1
    result = json.loads(capsys.readouterr().out)
    assert list(result["checks"].values()) == [False, True, True]
    assert (len(result["days"]), result["wrong"]) == (12, [])

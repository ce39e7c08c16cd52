"""The profile: a planted hot word is named first, as field, index and source line."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import inspect
import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import specstream as ss
from specstream.cli import main
from specstream.profiling.advice import advise

EVENTS = 64
PROTOCOLS = ("value", "eager")


class Words(ss.State):
    cold = ss.array(int, (40, 3))
    total = ss.scalar(float)
    grid = ss.array(int, (5, 7))
    narrow = ss.array(np.uint16, (2, 9))
    shared = ss.array(int, 64, share=8)


EVENT = {"x": int, "at": int}
EMITS = {"seen": int}


def bump(grid: Any, row: int, column: int) -> Any:
    before = grid[row, column]
    # Nobody but this line reads it first: planted in a helper
    grid[row, column] = before + 1
    return before


@ss.operator(state=Words, event=EVENT, emits=EMITS)
def hot_scalar(state, event, emit):
    state.cold[event.x % 40, 1] = event.x
    seen = state.cold[event.x % 40, 1]
    state.total += float(event.x)  # planted: scalar
    emit(seen)


@ss.operator(state=Words, event=EVENT, emits=EMITS)
def hot_element(state, event, emit):
    state.cold[event.x % 40, 2] += 1
    emit(bump(state.grid, 3, 4) + state.cold[event.x % 40, 2])


@ss.operator(state=Words, event=EVENT, emits=EMITS)
def hot_narrow(state, event, emit):
    state.narrow[
        1,
        event.at,
    ] += 1
    emit(0)


@ss.operator(state=Words, event=EVENT, emits=EMITS)
def hot_row(state, event, emit):
    total = sum(state.grid[2])
    state.grid[2, 6] = event.x + 1
    emit(total)


@ss.operator(state=Words, event=EVENT, emits=EMITS)
def hot_walk(state, event, emit):
    total = 0
    for value in state.grid[2]:
        total += value
    state.grid[2, 6] = event.x + 1
    emit(total)


@ss.operator(state=Words, event=EVENT, emits=EMITS)
def neighbours(state, event, emit):
    state.shared[event.x % 8] += 1
    emit(0)


def profiled(operator: ss.Operator, protocol: str, **options: Any) -> ss.Profile:
    """Events that have all read before the first of them commits: those after it must conflict.

    Nothing may commit before the frontier moves; so many run ahead of it as the horizon lets.
    """
    options = {"horizon": 16, "chunk": 1, "profile": True, **options}
    with ss.Engine(operator, threads=2, protocol=protocol, sources=[0], **options) as engine:
        engine.submit(
            {"time": range(EVENTS), "x": range(EVENTS), "at": [5] * EVENTS}, order_by="time"
        )
        while engine.stats.speculative_runs < 3:
            engine.poll(timeout=0.01)
        engine.advance(0, EVENTS)
        rows = 0
        while rows < EVENTS:
            rows += engine.poll(timeout=1).num_rows
        found = engine.profile()
        assert engine.stats.abort_rate == found.abort_rate
    assert engine.profile().words == found.words  # after close
    assert found.conflicts > 0
    assert sum(word.aborts for word in found.words) <= found.conflicts
    return found


def line_of(operator: ss.Operator, planted: str) -> tuple[int, str]:
    """Number and text of the line of this file that contains ``planted``."""
    with open(__file__) as file:
        lines = list(enumerate(file, start=1))
    start = inspect.getsourcelines(operator.function)[1]
    number, text = next((n, t) for n, t in lines if planted in t and n >= start)
    return number, text.strip()


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hot_scalar_is_named_first_with_its_line(protocol: str) -> None:
    found = profiled(hot_scalar, protocol)
    hottest = found.words[0]
    assert (hottest.field, hottest.index, hottest.name) == ("total", (), "total")
    line = hottest.lines[0]
    assert (line.line, line.text) == line_of(hot_scalar, "planted: scalar")
    assert line.function == "hot_scalar"
    assert line.filename == __file__
    assert line.aborts is not None
    assert 0 < line.aborts <= found.conflicts
    assert found.lines_counted
    assert "commutative add" in found.advice[0]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hot_element_is_named_with_the_line_of_the_helper(protocol: str) -> None:
    hottest = profiled(hot_element, protocol).words[0]
    assert hottest.name == "grid[3, 4]"
    assert hottest.index == (3, 4)
    texts = {line.text for line in hottest.lines}
    # Under eager a run may also lose the lock that the store has taken.
    assert texts <= {"before = grid[row, column]", "grid[row, column] = before + 1"}
    if protocol == "value":
        assert texts == {"before = grid[row, column]"}
    assert {line.function for line in hottest.lines} == {"bump"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hot_element_of_two_bytes_is_told_from_its_neighbours(protocol: str) -> None:
    hottest = profiled(hot_narrow, protocol).words[0]
    assert hottest.name == "narrow[1, 5]"


@pytest.mark.parametrize(
    ("operator", "line"),
    [(hot_row, "total = sum(state.grid[2])"), (hot_walk, "for value in state.grid[2]:")],
)
def test_reads_of_a_row_belong_to_the_line_that_walks_it(operator: ss.Operator, line: str) -> None:
    hottest = profiled(operator, "value").words[0]
    assert hottest.name == "grid[2, 6]"
    assert [found.text for found in hottest.lines] == [line]


def test_lines_that_name_the_field_stand_in_where_lines_are_not_counted() -> None:
    found = profiled(hot_scalar, "value", profile=False)
    assert not found.lines_counted
    assert [(line.text, line.aborts) for line in found.words[0].lines] == [
        ("state.total += float(event.x)  # planted: scalar", None)
    ]
    several = profiled(hot_element, "value", profile=False)
    assert [line.text for line in several.words[0].lines] == [
        "emit(bump(state.grid, 3, 4) + state.cold[event.x % 40, 2])"
    ]


def test_elements_under_one_ownership_record_are_told_by_the_advice() -> None:
    found = profiled(neighbours, "eager")
    assert len(found.words) > 1
    assert {word.record for word in found.words} == {found.words[0].record}
    assert any("share=" in sentence for sentence in found.advice)
    apart = profiled(neighbours, "value")
    assert not any("share=" in sentence for sentence in apart.advice)


class Balanced(ss.State):
    """What is taken from one is given to the other."""

    left = ss.scalar(int)
    right = ss.scalar(int)


@ss.operator(state=Balanced, event={"x": int}, emits={"total": int})
def loops_on_a_mixture(state, event, emit):
    left = state.left
    total = 0
    for i in range(20_000):
        total += i * event.x % 7
    right = state.right
    while left + right != 0:
        total += 1
    if event.x % 50 == 0:
        state.left = left - 1
        state.right = right + 1
    emit(total)


def test_runs_that_kept_the_head_waiting_are_among_the_conflicts() -> None:
    for _ in range(30):
        with ss.Engine(loops_on_a_mixture, threads=8, horizon=20, chunk=1) as engine:
            engine.process({"x": range(1_000)})
            found = engine.profile()
        assert sum(word.aborts for word in found.words) <= found.conflicts
        assert sum(word.share for word in found.words) < 1 + 1e-9
        if found.aborts["runaway"] > 0:
            return
    pytest.fail("no run ever ran away: the test proves nothing")


def test_profiling_does_not_change_the_answer() -> None:
    rng = np.random.default_rng(3)
    table = {"x": rng.integers(0, 100, 4000), "at": rng.integers(0, 9, 4000)}
    for operator in (hot_element, hot_narrow, hot_row):
        expected = operator.run_sequential(table)
        for protocol in PROTOCOLS:
            with ss.Engine(
                operator, threads=3, horizon=8, chunk=3, protocol=protocol, profile=True
            ) as engine:
                assert engine.process(table).equals(expected.output)
                assert engine.state.to_dict().keys() == expected.state.to_dict().keys()
                for name, words in expected.state.to_dict().items():
                    np.testing.assert_array_equal(engine.state.to_dict()[name], words)


def test_an_engine_that_never_speculated_says_so() -> None:
    with ss.Engine(hot_scalar, horizon=0) as engine:
        engine.process({"x": [1], "at": [0]})
        found = engine.profile()
    assert found.words == ()
    assert "Nothing ran speculatively" in found.advice[0]
    assert "Nothing ran speculatively" in str(found)


# ---- the advice ----

# Rates of dropped runs that one operator had in five runs over the same events, on a busy machine;
# and the same for a chunk of 32 events.
RECORDED = (
    (8, (0.0046, 0.0040, 0.0026, 0.0124, 0.0087)),
    (32, (0.2646, 0.3798, 0.3878, 0.3255, 0.3146)),
)


def advised(rate: float, chunk: int, nanoseconds: float) -> str:
    runs = 100_000
    profile = ss.Profile(
        operator="op", protocol="value", events=runs * chunk, speculative_runs=runs,
        aborts={"conflict": round(rate * runs), "shadow": 0, "log_full": 0}, conflicts=0,
        horizon=8, chunk=chunk, lines_counted=True, words=(), shapes={},
    )  # fmt: skip
    return " ".join(advise(profile, hot_scalar.program, nanoseconds * 1e-9))


def direction(said: str) -> int:
    return ("raise the chunk" in said) - ("lower the chunk" in said)


@pytest.mark.parametrize(("chunk", "rates"), RECORDED)
def test_recorded_runs_of_one_operator_are_never_advised_in_opposite_ways(
    chunk: int, rates: tuple[float, ...]
) -> None:
    for nanoseconds in (20.0, 200.0, 8_000.0):
        found = [direction(advised(rate, chunk, nanoseconds)) for rate in rates]
        assert not {-1, 1} <= set(found), found


def test_between_few_and_many_aborts_the_advice_says_that_it_cannot_know() -> None:
    for rate in (0.01, 0.0124, 0.1, 0.19):
        said = advised(rate, 8, 50.0)
        assert "no clear gain" in said
        assert direction(said) == 0
    # A rate that is five times another is not advised the opposite, wherever the two lie.
    for rate in (0.0001 * 1.1**step for step in range(80)):
        pair = {direction(advised(one, 8, 50.0)) for one in (rate, 5 * rate)}
        assert not {-1, 1} <= pair
    assert direction(advised(0.001, 8, 50.0)) == 1
    assert direction(advised(0.3, 8, 50.0)) == -1


# ---- the picture ----


@pytest.mark.parametrize("operator", [hot_scalar, hot_element])
def test_the_picture_shows_words_and_fields(operator: ss.Operator, tmp_path: Path) -> None:
    from matplotlib import image

    found = profiled(operator, "value")
    found.plot(tmp_path / "hot.png")
    drawn = image.imread(tmp_path / "hot.png")
    assert drawn.shape[1] > 800
    assert drawn[..., :3].std() > 0.02  # it is not blank


def test_the_heat_of_a_field_lies_where_its_words_are() -> None:
    from specstream.profiling.plot import heat

    found = profiled(hot_element, "value")
    drawn = heat(found.words, "grid", found.shapes["grid"])
    assert drawn.shape == (5, 7)
    assert divmod(int(drawn.argmax()), 7) == (3, 4)
    assert drawn.sum() == pytest.approx(
        100 * sum(word.share for word in found.words if word.field == "grid")
    )


# ---- the command ----

OPERATOR = """
import specstream as ss


class Sums(ss.State):
    total = ss.array(int, 4)


@ss.operator(state=Sums, event={"x": int}, emits={"total": int})
def running(state, event, emit):
    mixed = event.x
    for k in range(3000):
        mixed = (mixed * 1103515245 + 12345) ^ (mixed >> 3)
    state.total[2] += mixed & 1
    emit(total=state.total[2])
"""


def test_the_command_names_the_word_and_its_line(tmp_path: Path) -> None:
    (tmp_path / "sums.py").write_text(OPERATOR)
    (tmp_path / "stream").mkdir()
    pq.write_table(pa.table({"time": range(3000), "x": range(3000)}), tmp_path / "stream/0.parquet")

    def invoke(*more: object) -> str:
        arguments = [
            "profile", f"{tmp_path}/sums.py:running", "--input", tmp_path / "stream",
            "--order-by", "time", "--chunk", 4, *more,
        ]  # fmt: skip
        result = CliRunner().invoke(main, [str(argument) for argument in arguments])
        assert result.exit_code == 0, result.output
        return result.output

    plot = tmp_path / "hot.png"
    for _ in range(20):  # whether two threads meet is up to the machine
        found = json.loads(invoke("--json", "--plot", plot))
        if found["conflicts"] > 0:
            break
    assert plot.read_bytes().startswith(b"\x89PNG")
    assert found["events"] == 3000
    assert found["words"][0]["name"] == "total[2]"
    assert found["words"][0]["lines"][0]["text"] == "state.total[2] += mixed & 1"
    text = invoke("--events", 100)
    assert "100 events" in text
    usage = CliRunner().invoke(main, ["profile", "--help"])
    assert "--plot" in usage.output

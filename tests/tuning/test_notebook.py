"""`ss.tune` and `ss.profile`: what the commands do, on a table in a notebook."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import specstream as ss


class Seen(ss.State):
    total = ss.array(int, 64)


@ss.operator(state=Seen, event={"x": int}, emits={"total": int})
def totals(state: Any, event: Any, emit: Any) -> None:
    state.total[event.x % 64] += event.x
    emit(state.total[event.x % 64])


@ss.operator(state=Seen, event={"x": int}, emits={}, speculate=False)
def in_turn(state: Any, event: Any, emit: Any) -> None:
    state.total[0] += event.x


# The later event stands first, and with ties that a source breaks.
TABLE = pa.table({"x": range(4000), "t": [7] * 2000 + [6] * 2000, "s": ["a", "b"] * 2000})


def test_tune_gives_options_a_table_and_a_picture(tmp_path: Path) -> None:
    found = ss.tune(totals, TABLE, order_by="t", source="s", threads=2, seconds=0.2)
    assert found.stream.table["t"].to_pylist()[:1] == [6]
    with ss.Engine(totals, **found.options) as engine:
        rows = engine.process(TABLE, order_by="t", source="s")
    assert rows.equals(totals.run_sequential(TABLE, order_by="t", source="s").output)
    assert found.line in str(found)
    assert found.answer in repr(found)
    assert json.loads(json.dumps(found.to_dict()))["engine"] == found.line
    html = found._repr_html_()
    assert "2 threads, Auto" in html
    picture = re.search("base64,([^']+)'", html)
    assert picture is not None
    assert base64.b64decode(picture[1]).startswith(b"\x89PNG")
    found.plot(tmp_path / "found.svg")
    assert "<svg" in (tmp_path / "found.svg").read_text()


def test_profile_gives_the_words_that_conflict() -> None:
    found = ss.profile(totals, TABLE, order_by="t", horizon=4, chunk=1)
    assert (found.events, found.horizon, found.chunk) == (4000, 4, 1)
    assert found.speculative_runs > 0


@pytest.mark.parametrize(
    ("call", "options", "error", "text"),
    [
        ("tune", {"threads": 0}, ss.ConfigurationError, "threads=0; expected an integer from 1"),
        ("tune", {"seconds": 0}, ss.ConfigurationError, "seconds=0; expected at least 0.1"),
        ("tune", {"protocols": ["lazy"]}, ss.ConfigurationError, "one of value, eager"),
        ("tune", {"cores": 1}, ss.ConfigurationError, "cores=1; expected an integer from 2"),
        ("tune", {"order_by": "T"}, ss.InputError, r"no column 'T'.*did you mean 't'"),
        ("profile", {"source": "S"}, ss.InputError, r"no column 'S'.*did you mean 's'"),
        ("profile", {"thread": 2}, ss.ConfigurationError, "did you mean threads="),
        ("profile", {"horizon": -1}, ss.ConfigurationError, "horizon=-1; expected"),
    ],
)
def test_what_is_refused_says_what_was_expected(
    call: str, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        getattr(ss, call)(totals, TABLE, **options)


@pytest.mark.parametrize("call", [ss.tune, ss.profile])
def test_operators_and_events_that_cannot_be_measured_are_refused(call: Any) -> None:
    with pytest.raises(ss.ConfigurationError, match="speculate=False"):
        call(in_turn, TABLE)
    with pytest.raises(ss.InputError, match="operator 'totals': there are no events"):
        call(totals, TABLE.slice(0, 0))
    with pytest.raises(ss.ConfigurationError, match="expected an operator or a pipeline"):
        call(totals.function, TABLE)

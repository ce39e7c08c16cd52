"""The experiments of the paper on model checking: the page says what was measured."""

import json
from typing import Any

import pytest
from support.pages import ROOT

import specstream as ss
from bench.verify import measure
from bench.verify.__main__ import FOLDER
from bench.verify.page import TABLES, claims, page, properties_rows
from bench.verify.paper import COMPARED, PROPERTIES, QUEUES
from bench.verify.plot import draw_verify
from examples.verify import pipelines


def stored() -> Any:
    return json.loads((ROOT / FOLDER / "verify.json").read_text())


def test_the_page_says_what_its_data_say() -> None:
    assert page(stored()) == (ROOT / FOLDER / "verify.md").read_text()


def test_it_has_every_cell_of_the_paper() -> None:
    parts = stored()["parts"]
    assert len(parts["properties"]["rows"]) == 3 * len(PROPERTIES) == 21
    assert len(parts["queues"]["rows"]) == 4 * len(QUEUES) == 28
    named = {one["name"] for one in parts["comparisons"]["rows"]}
    assert named > set(COMPARED)
    assert parts["grid"]["problems"] == 162
    assert len(draw_verify(stored()).axes) == 2
    assert len(list(claims(parts))) > 10


def test_nusmv_and_all_states_say_the_same() -> None:
    parts = stored()["parts"]
    for part in ("properties", "queues", "comparisons"):
        for row in parts[part]["rows"]:
            ours, other = row["explicit"], row["nusmv"]
            if row["name"].startswith("5a") and row["rows"] == "sequence":
                # There the queue of rows has a limit, and what is beyond raises.
                assert (ours["said"], other["said"]) == ("holds", "proved")
                continue
            assert ours["said"] == other["said"], row
            if ours["said"] == "refuted" and row.get("kind", "no full queues") == "no full queues":
                assert ours["events"] == other["events"], row


def test_the_grid_has_as_many_problems_as_the_paper() -> None:
    assert len(list(measure._problems())) == 162


@pytest.mark.parametrize("k", [2, 4])
def test_another_k_is_another_line_of_the_table(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    """Nothing in the table is written down: of the product, another k fills queues otherwise."""
    monkeypatch.setattr(measure, "SEVEN", ("product",))
    monkeypatch.setattr(measure, "exported", lambda *given: {"said": "proved"})
    monkeypatch.setattr(measure, "symbolic", lambda *given: {"said": "proved", "ms": 0.0})
    monkeypatch.setattr(measure, "ROUNDS", 1)
    usual = properties_rows(measure.properties(lambda text: None))
    own = pipelines.product
    monkeypatch.setattr(pipelines, "product", lambda **given: own(k=k, **given))
    changed = properties_rows(measure.properties(lambda text: None))
    assert [row[:2] for row in usual] == [row[:2] for row in changed]
    assert usual[0][2] == "no, 5"
    assert [row[2:4] for row in usual] != [row[2:4] for row in changed]


def test_the_tables_have_a_column_for_each_head() -> None:
    parts = stored()["parts"]
    for name, (_, head, rows) in TABLES.items():
        assert {len(row) for row in rows(parts[name])} == {len(head)}


def test_states_are_as_many_as_a_prototype_had() -> None:
    """Counted by another program, over dicts of Python's own."""
    for limit, states in ((1, 31), (2, 156), (3, 306), (4, 931)):
        report = ss.verify.check(pipelines.product(modulo=5, limit=limit), domain={"x": range(5)})
        assert (report.states, report.closed) == (states, True)
    seven = {"passthrough": 1, "ones_on_window": 4, "sum_of_doubles": 2, "smaller_than": 4}
    for name, states in (seven | {"window": 85}).items():
        operator = getattr(pipelines, name)(modulo=4, limit=4)
        assert ss.verify.check(operator, domain={"x": range(4)}).states == states
    assert (
        ss.verify.check(pipelines.product(modulo=4, limit=4), domain={"x": range(4)}).states == 421
    )

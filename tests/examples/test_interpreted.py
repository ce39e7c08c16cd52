"""The examples of interpreted operators: a model and a look-up, through Spark and beside models."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import specstream as ss
from examples.interpreted import __main__ as command
from examples.interpreted.lookup import MOST, checking, limit_of, orders, serving
from examples.interpreted.model import REVIEW, payments, scoring

SETTINGS = [
    {"threads": 2, "horizon": 4, "chunk": 1},
    {"threads": 3, "horizon": 4, "chunk": 1, "protocol": "eager"},
]


class Weighing:
    """In the place of a trained network: what it gives is known."""

    def predict_proba(self, seen: Any) -> Any:
        score = 1 / (1 + np.exp(-(seen[:, 0] + 4 * seen[:, 3] - 4)))
        return np.column_stack([1 - score, score])


@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_are_those_of_a_loop_over_the_payments(setting: dict[str, Any]) -> None:
    table = payments(300, seed=3)
    trouble: dict[int, float] = {}
    amounts: dict[int, float] = {}
    expected = []
    for one in table.to_pylist():
        merchant = one["merchant"]
        amount = np.log1p(one["amount"])
        score = 1 / (1 + np.exp(-(amount + 4 * trouble.get(merchant, 0.0) - 4)))
        trouble[merchant] = trouble.get(merchant, 0.0) + 0.05 * (score - trouble.get(merchant, 0.0))
        amounts[one["card"]] = amount
        expected.append((one["card"], bool(score >= REVIEW)))
    operator = scoring(Weighing())
    sequential = operator.run_sequential(table)
    with ss.Engine(operator, **setting) as engine:
        output = engine.process(table)
        assert output.equals(sequential.output)
        assert (engine.state.trouble == sequential.state.trouble).all()
        found = {at: value for at, value in enumerate(engine.state.trouble) if value}
        assert found == pytest.approx(trouble)
    rows = list(zip(output["card"].to_pylist(), output["review"].to_pylist(), strict=True))
    assert rows == expected


@pytest.mark.parametrize("setting", SETTINGS)
def test_orders_are_taken_as_a_loop_takes_them(setting: dict[str, Any]) -> None:
    table = orders(200, seed=3)
    owes: dict[int, int] = {}
    expected = []
    for one in table.to_pylist():
        customer = one["customer"]
        after = owes.get(customer, 0) + one["amount"]
        taken = after <= limit_of(customer) and sum(owes.values()) + one["amount"] <= MOST
        if taken:
            owes[customer] = after
        expected.append(taken)
    with serving(0.001) as address, ss.Engine(checking(address), **setting) as engine:
        assert engine.process(table)["taken"].to_pylist() == expected
        assert dict(engine.state.owes) == owes
        assert engine.state.all_owe == sum(owes.values())


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.slow
def test_both_go_through_spark_and_are_drawn(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--events", "80", "--threads", "1", "4", "--rounds", "1", "--latency", "1", "--json"]
    assert command.main([*given, "--output", str(tmp_path)]) == 0
    results = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "{" in line]
    assert [one["program"] for one in results] == ["model", "lookup"]
    for one in results:
        assert one["identical"] is True
        assert one["rows"] == 80
        assert set(one["speeds"]) == {"1", "4"}
        assert Path(one["picture"]).read_bytes().startswith(b"\x89PNG")

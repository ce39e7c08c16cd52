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
from examples.interpreted.model import (
    KEPT,
    REVIEW,
    Network,
    classifier,
    features,
    payments,
    scoring,
)

SETTINGS = [
    {"threads": 2, "horizon": 4, "chunk": 1},
    {"threads": 3, "horizon": 4, "chunk": 1, "protocol": "eager"},
]


def weighing(seen: Any) -> Any:
    """In the place of a trained network: what it gives is known."""
    return 1 / (1 + np.exp(-(seen[:, 0] + 4 * seen[:, 3] - 3)))


@pytest.mark.parametrize("setting", SETTINGS)
def test_scores_are_those_of_a_loop_over_the_payments(setting: dict[str, Any]) -> None:
    table = payments(300, seed=3)
    trouble: dict[int, float] = {}
    amounts: dict[int, list[float]] = {}
    expected = []
    for one in table.to_pylist():
        merchant, last = one["merchant"], amounts.setdefault(one["card"], [0.0] * KEPT)
        last[:] = [*last[1:], float(np.log1p(one["amount"]))]
        before = trouble.get(merchant, 0.0)
        scores = [1 / (1 + np.exp(-(amount + 4 * before - 3))) for amount in last]
        score = sum(at * of for at, of in enumerate(scores, 1)) / sum(range(1, KEPT + 1))
        trouble[merchant] = before + 0.05 * (score - before)
        expected.append((one["card"], bool(score >= REVIEW)))
    operator = scoring(weighing)
    sequential = operator.run_sequential(table)
    with ss.Engine(operator, **setting) as engine:
        output = engine.process(table)
        assert output.equals(sequential.output)
        assert (engine.state.trouble == sequential.state.trouble).all()
        found = {at: value for at, value in enumerate(engine.state.trouble) if value}
        assert found == pytest.approx(trouble)
    rows = list(zip(output["card"].to_pylist(), output["review"].to_pylist(), strict=True))
    assert rows == expected


@pytest.mark.long
def test_the_network_is_the_one_that_was_trained() -> None:
    model = classifier(1)
    seen = features(np.random.default_rng(1).lognormal(0.0, 1.0, KEPT), 0.3)
    assert Network(model)(seen) == pytest.approx(model.predict_proba(seen)[:, 1])


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

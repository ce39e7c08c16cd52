"""The program of the first page: its commands without Spark, beside plain Python."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow.dataset
import pyarrow.parquet
from support.commands import invoke

import specstream as ss
from bench.ledger import answer, verdict
from examples.ledger.ledger import events, locked_transfers, receipt, transfers

ROOT = Path(__file__).parents[2]
OPERATOR = f"{ROOT}/examples/ledger/ledger.py:transfers"


class Plain:
    """Rows and balances of the function itself, over a list."""

    def __init__(self, table: Any) -> None:
        self.balance = [100] * 10_000
        self.rows: list[tuple[int, bool, int]] = []
        for row in table.to_pylist():
            event = SimpleNamespace(**row)
            transfers.function(self, event, lambda *row: self.rows.append(row))


def test_the_commands_of_the_first_page_give_what_plain_python_gives(tmp_path: Path) -> None:
    table = events(400, seed=11)
    pyarrow.parquet.write_table(table, tmp_path / "transfers.parquet")
    run = ["run", OPERATOR, "--from", f"{tmp_path}/transfers.parquet", "--output"]
    run += [f"{tmp_path}/rows", "--checkpoint", f"{tmp_path}/checkpoint"]
    for _ in range(2):  # the second time it continues, and nothing is left
        done = invoke(*run)
        assert done.exit_code == 0, done.output
    rows = pyarrow.dataset.dataset(tmp_path / "rows").to_table().to_pylist()
    expected = Plain(table)
    assert [tuple(row.values()) for row in rows] == expected.rows
    assert sum(expected.balance) == 1_000_000


def test_one_core_two_threads_and_locks_on_one_thread_agree() -> None:
    table = events(3_000)
    found = []
    for operator, options in (
        (transfers, {"threads": 1, "horizon": 0}),
        (transfers, {"threads": 2, "horizon": 8, "chunk": 4, "execution": "speculate"}),
        (locked_transfers, {"threads": 1, "execution": "locked"}),
    ):
        with ss.Engine(operator, **options) as engine:
            found.append(answer(engine.process(table), engine.state.balance))
    expected = Plain(table)
    assert found[0] == found[1] == found[2]
    assert found[0][1] == expected.balance
    assert sum(expected.balance) == 1_000_000
    assert 0 < sum(paid for _, paid, _ in expected.rows) < 3_000
    assert verdict(3, 3).startswith("same answer: yes")


def test_a_negative_amount_makes_no_money() -> None:
    with ss.Engine(transfers, errors="side") as engine:
        table = {"payer": [1, 1, -1], "payee": [2, 2, 2], "amount": [-5, 5, 5]}
        assert engine.process(table).num_rows == 1
        assert np.asarray(engine.state.balance).sum() == 1_000_000


def test_the_receipt_depends_on_account_and_balance() -> None:
    digest: Any = receipt
    assert len({digest(payer, balance) for payer in range(20) for balance in range(20)}) == 400


def test_rows_and_checkpoint_have_a_directory_each(tmp_path: Path) -> None:
    pyarrow.parquet.write_table(events(10), tmp_path / "transfers.parquet")
    run = ["run", OPERATOR, "--from", f"{tmp_path}/transfers.parquet"]
    done = invoke(*run, "--output", f"{tmp_path}/rows", "--checkpoint", f"{tmp_path}/./rows")
    assert done.exit_code == 1
    assert "--output and --checkpoint are the same directory" in done.output
    assert [path.name for path in tmp_path.iterdir()] == ["transfers.parquet"]
    done = invoke("replay", tmp_path, OPERATOR, "--batch", "0")
    assert done.exit_code == 1
    assert "has no checkpoint files; expected the directory that" in done.output

"""``specstream verify``: what it prints, its exit status, and the directory of a counterexample."""

import json
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from specstream.cli import main

BANK = "examples/verify/bank_before.py"


def run(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(main, ["verify", *arguments])
    return done.exit_code, done.output


def test_findings_and_their_json() -> None:
    status, output = run(f"{BANK}:transfers")
    assert status == 0
    assert "wraps -" in output
    assert "amount = -9223372036854775708   1 event" in output
    status, output = run(f"{BANK}:transfers", "--json")
    found = json.loads(output)["findings"]
    assert {"payer": 10000, "payee": 0, "amount": 0} in [one["stream"][0] for one in found]


def test_proved_is_0_refuted_1_not_known_3() -> None:
    asked = ("--always", "solvent", "--always", "conserved")
    status, output = run(f"{BANK}:transfers", *asked, "--assume", "positive", "--require", "proved")
    assert (status, output.count("proved")) == (0, 2)
    status, output = run(f"{BANK}:transfers", *asked)
    assert (status, output.count("refuted")) == (1, 2)
    status, output = run(f"{BANK}:transfers", "--always", "no_such")
    assert status == 2
    assert "has no function 'no_such'" in output


def test_smallest_and_cover(tmp_path: Path) -> None:
    file = tmp_path / "cover.parquet"
    status, output = run(f"{BANK}:transfers", "--cover", str(file))
    assert status == 0, output
    assert "every line is reached" in output
    assert pq.read_table(file).column_names == ["payer", "payee", "amount"]
    averages = "examples/verify/average.py:new"
    status, output = run(averages, "--smallest", "state.values", "--json")
    verdict = json.loads(output)["properties"][0]
    assert (status, verdict["name"], verdict["verdict"]) == (0, "len(state.values)", "proved")
    module = tmp_path / "grows.py"
    module.write_text(
        "import specstream as ss\n"
        "class Waiting(ss.State):\n"
        "    queue = ss.deque(int)\n"
        '@ss.operator(state=Waiting, event={"x": int}, emits={})\n'
        "def waits(state, event, emit):\n"
        "    state.queue.append(event.x)\n"
    )
    found = tmp_path / "found"
    asked = ("--smallest", "state.queue", "--counterexample", str(found))
    status, output = run(f"{module}:waits", *asked)
    assert (status, "grows by 1 every 1 event" in output) == (1, True)
    assert sorted(one.name for one in found.iterdir()) == ["events.parquet", "verdict.json"]
    status, output = run(averages, "--smallest", "state.")
    assert (status, "expected an expression" in output) == (2, True)
    status, output = run(averages, "--smallest", "state.values", "--cover", str(file))
    assert (status, "--smallest is a question of its own" in output) == (2, True)


@pytest.mark.slow
def test_a_counterexample_fails_as_a_test_until_the_operator_is_mended(tmp_path: Path) -> None:
    module = tmp_path / "flows.py"
    module.write_text(Path(BANK).read_text())
    directory = tmp_path / "counterexample"
    status, _ = run(
        f"{module}:transfers", "--always", "solvent", "--counterexample", str(directory)
    )
    assert status == 1
    assert pq.read_table(directory / "events.parquet").num_rows == 1
    verdict = json.loads((directory / "verdict.json").read_text())
    assert verdict["properties"][0]["verdict"] == "refuted"
    assert "Refuted" in result_of(directory)
    mended = module.read_text().replace(
        "    paid = event.amount <=", "    paid = 0 < event.amount <="
    )
    module.write_text(mended)
    assert "1 passed" in result_of(directory)


def result_of(directory: Path) -> str:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=directory)
    return done.stdout

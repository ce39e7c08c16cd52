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


PIPELINES = "examples/verify/pipelines.py"


def test_every_state_over_a_domain() -> None:
    few = ("--arg", "modulo=4", "--arg", "limit=3", "--domain", "x=0..3")
    status, output = run(f"{PIPELINES}:product", *few, "--can-always", "rows")
    assert (status, "no stream gets from there to a row" in output) == (1, True)
    assert "there: decimate.n = 1" in output
    status, output = run(f"{PIPELINES}:window", "--domain", "x=0..3", "--json")
    found = json.loads(output)
    assert (status, found["states"], found["closed"]) == (0, 85, True)
    doors = ("--domain", "turn=false,true", "--domain", "push=false,true", "--each", "silent")
    assert run(f"{PIPELINES}:door", *doors)[0] == 0
    status, output = run(f"{PIPELINES}:door", "--arg", "wrong=True", *doors)
    assert (status, "turn = True, True\n  push = True, False" in output) == (1, True), output
    turns = ("--domain", "turn=false,true", "--each", "silent")
    assert run(f"{PIPELINES}:watched", *turns)[0] == 0
    status, output = run(f"{PIPELINES}:watched", "--arg", "wrong=True", *turns)
    assert (status, "turn = True, False" in output) == (1, True)
    status, output = run(f"{PIPELINES}:window", "--domain", "x=0..9", "--within-states", "20")
    assert (status, "within 1 event" in output) == (0, True)


def test_rows_in_sequence_and_against() -> None:
    asked = ("--against", f"{PIPELINES}:passthrough", "--domain", "x=0,1")
    assert run(f"{PIPELINES}:delayed", *asked)[0] == 1
    assert run(f"{PIPELINES}:delayed", *asked, "--rows", "sequence")[0] == 0


def test_a_model_of_nusmv(tmp_path: Path) -> None:
    file = tmp_path / "product.smv"
    status, output = run(f"{PIPELINES}:product", "--smv", str(file), "--width", "4")
    assert (status, output) == (0, f"{file}: a model of product\n")
    assert "s_pair_right_6 : signed word[4];" in file.read_text()
    asked = ("--smv", str(file), "--can-always", "rows")
    assert run(f"{PIPELINES}:window", *asked)[0] == 0
    assert "CTLSPEC AG EF op.out_b" in file.read_text()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (["--domain", "x=0..b"], "'0..b' is no value of a column that is declared int"),
        (["--domain", "x"], "--domain x: expected COLUMN=VALUES"),
        (["--domain", "x=1", "--domain", "x=2"], "each column once"),
        (["--domain", "y=1"], "has no values of column 'x'"),
        (["--domain", "x=1", "--time-steps", "1,b"], "--time-steps 1,b: expected ints"),
        (["--domain", "x=1", "--time-steps", "1"], "does not go by time"),
        (["--can-always", "rows"], "give domain= as well"),
        (["--width", "4"], "--width is for --smv"),
        (["--smv", "a.smv", "--domain", "x=1"], "--smv is asked of every value"),
        (["--smv", "no/such/a.smv"], "there is no directory"),
    ],
)
def test_wrong_options_of_states_and_models(asked: list[str], said: str) -> None:
    status, output = run(f"{PIPELINES}:window", *asked)
    assert (status, said in output) == (2, True), output

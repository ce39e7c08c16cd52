"""``specstream new`` writes a project in which every command of its README works."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow.dataset
import pytest
from support.commands import invoke


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def files_of(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file()}


def in_project(project: Path, *command: str) -> str:
    """What a command writes in the directory of a project, as its user runs it."""
    done = subprocess.run(
        [sys.executable, *command],
        cwd=project,
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def blocks(readme: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", readme, re.DOTALL | re.MULTILINE)


@pytest.mark.slow
def test_everything_that_the_readme_shows_runs(here: Path) -> None:
    made = invoke("new", "spikes")
    assert made.exit_code == 0, made.output
    project = here / "spikes"
    assert files_of(project) == {"spikes.py", "test_spikes.py", "README.md", "events/1.parquet"}
    assert all(f"spikes/{name}" in made.stdout for name in files_of(project))

    in_project(project, "-m", "ruff", "check", "--isolated", ".")
    in_project(project, "-m", "ruff", "format", "--check", "--isolated", ".")

    readme = (project / "README.md").read_text()
    (shell,), (program,) = blocks(readme, "sh"), blocks(readme, "python")
    install, *commands = [shlex.split(line) for line in shell.splitlines()]
    assert install[:2] == ["pip", "install"]
    modules = {"pytest": "pytest", "specstream": "specstream.cli"}
    said = {words[1] if len(words) > 1 else words[0]: words for words in commands}
    assert list(said) == ["pytest", "explain", "run"]
    shown = [in_project(project, "-m", modules[first], *rest) for first, *rest in commands]
    assert "3 passed" in shown[0]
    assert "state.total[event.user]" in shown[1]

    rows = pyarrow.dataset.dataset(project / "rows", format="parquet").to_table().to_pylist()
    assert [row["user"] for row in rows] == ["eve", "bob"]
    assert in_project(project, "-c", program).strip() == str(rows)

    # The same command goes on with the checkpoint: nothing comes twice.
    first, *rest = commands[-1]
    in_project(project, "-m", modules[first], *rest)
    again = pyarrow.dataset.dataset(project / "rows", format="parquet").to_table()
    assert again.to_pylist() == rows


def test_the_name_may_be_any_identifier_of_letters(here: Path) -> None:
    made = invoke("new", "größe_2", "--json")
    assert made.exit_code == 0, made.output
    files = json.loads(made.stdout)["files"]
    assert {str(Path(name).relative_to("größe_2")) for name in files} == files_of(here / "größe_2")
    assert "def größe_2(state, event, emit):" in (here / "größe_2" / "größe_2.py").read_text()


@pytest.mark.parametrize(
    ("name", "similar"),
    [
        ("my-project", "my_project"),
        ("a/b", "b"),
        ("../up", "up"),
        ("1st", "my_1st"),
        ("class", "my_class"),
        ("ss", "my_ss"),
        ("__main__", "main"),
        ("", "my_operator"),
    ],
)
def test_what_is_no_name_is_refused_with_one_that_is(here: Path, name: str, similar: str) -> None:
    refused = invoke("new", "--", name)
    assert refused.exit_code == 2
    assert repr(name) in refused.stderr
    assert f"for example {similar!r}" in refused.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("name", ["json", "numpy", "specstream"])
def test_the_name_of_an_installed_module_is_refused(here: Path, name: str) -> None:
    """The test of the project would import that one."""
    refused = invoke("new", name)
    assert refused.exit_code == 1
    assert f"{name!r} is the name of an installed module" in refused.stderr
    assert list(here.iterdir()) == []


@pytest.mark.parametrize("kind", ["directory", "file", "link"])
def test_what_is_there_already_is_left_alone(here: Path, kind: str) -> None:
    path = here / "spikes"
    if kind == "directory":
        path.mkdir()
        (path / "mine.py").write_text("kept")
    elif kind == "file":
        path.write_text("kept")
    else:
        path.symlink_to(here / "nowhere")
    refused = invoke("new", "spikes")
    assert refused.exit_code == 1
    assert "there is already a 'spikes' here" in refused.stderr
    assert files_of(path) == {"mine.py"} if kind == "directory" else not path.is_dir()
    if kind == "file":
        assert path.read_text() == "kept"

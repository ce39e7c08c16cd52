"""``specstream doctor``: it says what is missing, in conditions in which something is."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from support.checkpoint.fed import Fed
from support.commands import invoke

import specstream as ss
from specstream.doctor import checkpoint, engine, installation, limits, machine, spark, trial
from specstream.doctor.finding import Check, Finding, run
from specstream.doctor.requirements import satisfies


def look(name: str) -> Finding:
    """What one of the checks says."""
    rooms = (installation.CHECKS, engine.CHECKS, machine.CHECKS, spark.CHECKS)
    (check,) = (check for checks in rooms for check in checks if check.name == name)
    return check.look(lambda text: None)


def look_at(place: object) -> Finding:
    """What the check of a checkpoint says."""
    return checkpoint.check(str(place)).look(lambda text: None)


def command(
    *arguments: str, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "specstream.cli", "doctor", *arguments],
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def by_name(text: str) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in json.loads(text)["checks"]}


def program(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


# ---- the command ----


def test_a_machine_on_which_the_tests_run_lacks_nothing(tmp_path: Path) -> None:
    done = invoke("doctor", "--json", "--checkpoint", tmp_path / "checkpoint")
    report = json.loads(done.stdout)
    wrong = [check for check in report["checks"] if check["verdict"] == "missing"]
    # Java need not be where tests without Spark run.
    assert {check["name"] for check in wrong} <= {"Java"}
    assert report["complete"] == (not wrong)
    assert done.exit_code == (1 if wrong else 0)
    assert report["specstream"] == ss.__version__
    checks = by_name(done.stdout)
    assert ss._native.__file__ in checks["engine"]["found"]
    assert checks["checkpoint"]["found"].endswith("not there yet, and can be made")
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_what_is_missing_is_in_the_table_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    done = invoke("doctor")
    assert done.exit_code == 1
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ["missing", "Java", "no", "Java", "at"] in [words[:5] for words in lines]
    assert any(words[:2] in (["Java", "unset"], ["Java", "install"]) for words in lines)
    assert done.stdout.splitlines()[-1].startswith("Missing or broken: Java")


@pytest.mark.slow
def test_what_a_check_itself_needs_is_missing(tmp_path: Path) -> None:
    for module in ("packaging", "py4j"):
        text = f'raise ModuleNotFoundError("No module named {module!r}", name="{module}")\n'
        (tmp_path / f"{module}.py").write_text(text)
    done = command("--json", PYTHONPATH=str(tmp_path))
    assert done.returncode == 1
    checks = by_name(done.stdout)
    assert checks["packages"]["verdict"] == "missing"
    assert checks["packages"]["advice"] == 'pip install "packaging>=22"'
    assert checks["extras"]["verdict"] == "warning"
    if installation.has_spark():
        assert checks["Java"]["verdict"] == "missing"
        assert checks["Java"]["advice"].startswith('pip install "py4j')


@pytest.mark.slow
def test_warnings_do_not_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "java", "#!/bin/sh\necho 'openjdk version \"23.0.1\"'\n")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setattr(spark, "has_spark", lambda: True)
    done = invoke("doctor", "--json")
    assert by_name(done.stdout)["Java"]["verdict"] == "warning"
    assert done.exit_code == 0


def test_a_check_that_raises_says_so_and_the_next_is_made() -> None:
    def crash(say: Any) -> Finding:
        raise OSError("no /proc here")

    fine = Finding("second", "ok", "1")
    found = list(run([Check("first", crash), Check("second", lambda say: fine)], say=print))
    assert found[0].verdict == "missing"
    assert found[0].found == "cannot be looked at: OSError: no /proc here"
    assert found[1] == fine
    beside = Check("third", crash, is_required=False)
    assert [one.verdict for one in run([beside], say=print)] == ["warning"]


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["numba", "click", "rich"])
def test_it_runs_where_the_package_or_the_command_line_does_not(
    broken: str, tmp_path: Path
) -> None:
    (tmp_path / f"{broken}.py").write_text(
        f'raise ModuleNotFoundError("No module named {broken!r}", name="{broken}")\n'
    )
    done = command("--json", PYTHONPATH=str(tmp_path))
    checks = by_name(done.stdout)
    expected = "missing" if broken == "numba" else "ok"
    assert checks["engine"]["verdict"] == expected, checks["engine"]
    assert checks["Python"]["verdict"] == "ok"
    if broken == "numba":
        assert done.returncode == 1
        assert "No module named 'numba'" in checks["engine"]["found"]
        plain = command(PYTHONPATH=str(tmp_path))
        assert "\nmissing engine: ModuleNotFoundError: No module named 'numba'\n" in plain.stdout
        assert "\n        -> " in plain.stdout


def test_a_failed_import_names_the_doctor(tmp_path: Path) -> None:
    (tmp_path / "numba.py").write_text("raise ImportError('Numba needs another NumPy')\n")
    done = subprocess.run(
        [sys.executable, "-c", "from specstream import operator"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "ImportError: Numba needs another NumPy\n" in done.stderr
    assert "specstream doctor" in done.stderr.splitlines()[-1]


def test_the_version_needs_no_click(tmp_path: Path) -> None:
    (tmp_path / "click.py").write_text("raise ModuleNotFoundError('no click', name='click')\n")
    done = subprocess.run(
        [sys.executable, "-m", "specstream.cli", "--version"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, f"specstream, version {ss.__version__}\n")


# ---- where it is printed, and what ends it ----

# The command, with other checks than the usual, which take their time.
WITH = {
    "click": """
from specstream import cli
from specstream.cli import doctor as printing
run = lambda: cli.main(["doctor"], prog_name="specstream")
""",
    "alone": """
import sys
from specstream.doctor import alone as printing
run = lambda: sys.exit(printing.main([]))
""",
}
ONE = """
from specstream.doctor.finding import Check, Finding
def look(say):
    return Finding("x", "ok", "caf\\xe9-\\udcff " + 100_000 * "y")
printing.checks = lambda *_: [Check("x", look)]
run()
"""
WAITING = """
from specstream.doctor.finding import Check
from specstream.doctor.trial import attempt
printing.checks = lambda *_: [Check("x", lambda say: attempt("waiting_module", 1000, say))]
run()
"""
WAITING_MODULE = """
import subprocess, time
def main():
    print(subprocess.Popen(["sleep", "1000"]).pid, flush=True)
    time.sleep(1000)  # it hangs: nothing but a signal ends it
"""


@pytest.mark.long
@pytest.mark.parametrize("way", WITH)
def test_nobody_reads_what_it_prints(way: str) -> None:
    """The pipe holds less than what is printed, and its other end is closed."""
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [sys.executable, "-c", WITH[way] + ONE], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.long
@pytest.mark.parametrize("way", WITH)
def test_there_is_no_standard_output(way: str) -> None:
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >&-', sys.executable, WITH[way] + ONE],
        stderr=subprocess.PIPE,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.long
@pytest.mark.parametrize("way", WITH)
def test_standard_output_is_full(way: str) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", WITH[way] + ONE],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "standard output: No space left on device" in line


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
@pytest.mark.parametrize("way", WITH)
def test_what_cannot_be_shown_is_escaped(way: str, encoding: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITH[way] + ONE],
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    accented = "caf\\xe9" if encoding == "ascii" else "caf\xe9"
    assert f"{accented}-\\udcff".encode() in done.stdout


def interrupted(command: list[str], line: str, **environment: str) -> tuple[int, str, str]:
    """Ctrl-C after a line: the status, that line, and what follows on standard error."""
    with subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stderr is not None
        told = next(told for told in process.stderr if told.startswith(line))
        os.killpg(process.pid, signal.SIGINT)
        _, rest = process.communicate(timeout=60)
    return process.returncode, told.strip(), rest


@pytest.mark.long
@pytest.mark.parametrize("way", WITH)
def test_interrupted_while_it_waits(way: str, tmp_path: Path) -> None:
    (tmp_path / "waiting_module.py").write_text(WAITING_MODULE)
    code = [sys.executable, "-c", WITH[way] + WAITING]
    status, told, rest = interrupted(code, "x: ", PYTHONPATH=str(tmp_path))
    assert (status, rest) == (130, "interrupted\n")
    assert is_gone(int(told.removeprefix("x: ")))


def test_interrupted_while_it_imports(tmp_path: Path) -> None:
    # The import hangs: nothing but the signal ends it.
    text = "import sys, time\nprint('importing', file=sys.stderr, flush=True)\ntime.sleep(1000)\n"
    (tmp_path / "numpy.py").write_text(text)
    code = [sys.executable, "-m", "specstream.cli", "doctor"]
    status, _, rest = interrupted(code, "importing", PYTHONPATH=str(tmp_path))
    assert (status, rest) == (130, "")


def is_gone(process: int) -> bool:
    """Whether a process is no more, or will not be in a moment: its parent may reap it late."""
    for _ in range(500):
        try:
            state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return True
        if state == "Z":
            return True
        time.sleep(0.01)  # nobody is told when the process of another parent ends
    return False


def test_a_trial_that_is_given_up_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "waiting_module.py").write_text(WAITING_MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(trial, "_PATIENCE", 0.5)
    said: list[str] = []
    with pytest.raises(trial.TrialFailed, match="not done after 3 s"):
        trial.attempt("waiting_module", 3, said.append)
    process, *waited = said
    assert is_gone(int(process))
    assert waited
    assert waited[0].startswith("not done after 1 s, of 3")


def test_it_needs_no_thread(tmp_path: Path) -> None:
    """Stacks of threads are larger than all that may be addressed: none can be started."""
    (tmp_path / "quick_module.py").write_text("def main(): print('{}')\n")
    code = """
import resource, threading
from specstream.doctor.finding import Check, Finding
from specstream.doctor.trial import attempt
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
threading.stack_size(8 << 30)
def look(say):
    return Finding("x", "ok", str(attempt("quick_module", 60, say)))
printing.checks = lambda *_: [Check("x", look)]
run()
"""
    done = subprocess.run(
        [sys.executable, "-c", WITH["click"] + code],
        env={**os.environ, "PYTHONPATH": str(tmp_path), "FORCE_COLOR": "1", "TERM": "xterm"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "{}" in done.stdout


def test_limits_that_something_has_run_into() -> None:
    assert limits.hint("OSError: [Errno 24] Too many open files") == (
        "lift the limit: ulimit -n 1024"
    )
    none = [Check("x", lambda say: Finding("x", "ok", str(os.open("/nowhere", os.O_RDONLY))))]
    (found,) = run(none, say=print)
    assert found.advice == "look at what is missing above; if nothing is, report it as a bug"

    def start(say: Any) -> Finding:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    (found,) = run([Check("x", start)], say=print)
    assert found.advice == "lift the limit: ulimit -u 1024"


@pytest.mark.slow
def test_where_no_library_gets_memory() -> None:
    """Libraries end the process then, some of them by themselves."""
    code = [sys.executable, "-m", "specstream.cli", "doctor", "--json"]
    done = subprocess.run(
        ["sh", "-c", 'ulimit -v 100000; exec "$@"', "sh", *code],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    checks = by_name(done.stdout)
    assert "ulimit -v unlimited" in checks["limits"]["advice"]
    assert checks["engine"]["advice"] == "lift the limit: ulimit -v unlimited"


@pytest.mark.slow
def test_a_damaged_library_is_a_finding(tmp_path: Path) -> None:
    """Of a file that ends too early, the pages behind its end are a bus error."""
    package = Path(ss.__file__).parent
    ignored = shutil.ignore_patterns("_native*")
    shutil.copytree(package, tmp_path / "specstream", ignore=ignored)
    native = Path(ss._native.__file__)
    (tmp_path / "specstream" / native.name).write_bytes(native.read_bytes()[:4096])
    done = command("--json", cwd=tmp_path)
    assert done.returncode == 1
    checks = by_name(done.stdout)
    assert checks["engine"]["found"] == "crashed: SIGBUS"
    assert "pip install --force-reinstall specstream (" in checks["engine"]["advice"]
    assert checks["compile cache"]["verdict"] == "missing"
    assert checks["limits"]["verdict"] != "missing"

    (tmp_path / "specstream" / native.name).unlink()
    # Without `site`, by which an editable installation finds the library of its checkout.
    packages = Path(np.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-S", "-m", "specstream.cli", "doctor", "--json"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    checks = by_name(done.stdout)
    assert checks["specstream"]["verdict"] == "missing"
    assert "pip install --force-reinstall specstream (" in checks["specstream"]["advice"]


# ---- the installation ----


def test_a_requirement_that_does_not_hold(monkeypatch: pytest.MonkeyPatch) -> None:
    assert look("packages").verdict == "ok"
    versions = {"numba": "0.60.0", "pandas": "3.0.1"}
    real = metadata.version
    monkeypatch.setattr(metadata, "version", lambda name: versions.get(name) or real(name))
    found = look("packages")
    assert found.verdict == "missing"
    assert "numba 0.60.0" in found.found
    assert found.advice == 'pip install "numba<0.69,>=0.61"'
    assert look("extras").advice == 'pip install "pandas<3,>=2.2"'
    assert look("PySpark").verdict == "missing"


def test_an_extra_that_is_not_installed_is_no_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    real = metadata.version

    def version(name: str) -> str:
        if name == "matplotlib":
            raise metadata.PackageNotFoundError
        return real(name)

    monkeypatch.setattr(metadata, "version", version)
    found = look("extras")
    assert found.verdict == "ok"
    assert "plot" in found.found.split("not installed:")[1]


def test_all_extras_that_users_install_are_looked_at() -> None:
    for_developers = {"demo", "test", "docs", "dev"}
    declared = metadata.metadata("specstream").get_all("Provides-Extra")
    assert set(installation.EXTRAS) == set(declared or ()) - for_developers


def test_python_below_what_is_declared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.python_version", lambda: "3.10.4")
    found = look("Python")
    assert found.verdict == "missing"
    assert "specstream needs Python >=3.11" in found.advice


@pytest.mark.parametrize(
    ("version", "versions", "holds"),
    [
        ("1.26", ">=1.26.0", True),
        ("0.69.0rc1", ">=0.68,<0.69", False),
        ("0.68.1", ">=0.68,<0.69", True),
        ("4.3.0.dev1", "==4.3.*", True),
        ("4.30.0", "==4.3.*", False),
        ("4.2.0", "!=4.3.*", True),
        ("2.10", ">2.9", True),
        ("3", "<=2", False),
        ("1.4.5", "~=1.4.2", True),
        ("1.5.0", "~=1.4.2", False),
        ("6.0", "", True),
    ],
)
def test_versions_are_compared_by_numbers(version: str, versions: str, holds: bool) -> None:
    assert satisfies(version, versions) == holds


# ---- the engine and what it compiles ----


@pytest.mark.slow
def test_a_compiler_that_is_switched_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", "")
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    found = look("engine")
    assert found.verdict == "missing"
    assert found.advice.startswith("unset NUMBA_DISABLE_JIT")


def test_a_crash_of_the_engine_is_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    crashing = "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n"
    (tmp_path / "pyarrow.py").write_text(crashing)
    monkeypatch.syspath_prepend(str(tmp_path))
    found = look("engine")
    assert (found.verdict, found.found) == ("missing", "crashed: SIGSEGV")


def test_a_trial_that_hangs_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sleep stands for an import that never ends; its process is ended long before."""
    (tmp_path / "pyarrow.py").write_text("import time\ntime.sleep(1000)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(engine, "SECONDS", 0.5)
    assert look("engine").found.startswith("not done after")


def test_a_cache_in_its_usual_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPECSTREAM_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = look("compile cache")
    assert found.verdict == "ok"
    assert found.found.startswith(f"{tmp_path}/specstream (")
    assert ", 0 entries" in found.found
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", "")
    assert look("compile cache") == Finding(
        "compile cache", "ok", "none, as SPECSTREAM_CACHE_DIR is empty"
    )


def test_a_cache_that_cannot_be_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def of(path: Path) -> Finding:
        monkeypatch.setenv("SPECSTREAM_CACHE_DIR", str(path))
        found = look("compile cache")
        assert found.verdict == "warning"
        assert "SPECSTREAM_CACHE_DIR" in found.advice
        return found

    file = tmp_path / "file"
    file.write_text("")
    assert "cannot be written: Not a directory" in of(file / "cache").found
    assert "cannot be written: File exists" in of(file).found
    common = tmp_path / "common"
    common.mkdir()
    common.chmod(0o777)
    found = of(common)
    assert "can be written by its group or others (mode 777)" in found.found
    assert f"chmod go-w {common}" in found.advice
    (tmp_path / "link").symlink_to(common)
    assert "is a symbolic link" in of(tmp_path / "link").found


def test_a_cache_that_is_not_this_users_to_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As /tmp, which all may write to; and, where a test may make one, another user's."""
    common = tmp_path / "common"
    common.mkdir()
    common.chmod(0o1777)
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", str(common))
    kinds = ["shared", "another's"] if os.geteuid() == 0 else ["shared"]
    for kind in kinds:
        if kind == "another's":
            common.chmod(0o755)
            os.chown(common, 65534, -1)
        found = look("compile cache")
        assert found.verdict == "warning"
        assert found.advice.startswith("name another directory in SPECSTREAM_CACHE_DIR")


def test_an_entry_that_others_may_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "cache"
    cache.mkdir(mode=0o700)
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", str(cache))
    entry = cache / ("0" * 64)
    entry.write_bytes(b"x")
    entry.chmod(0o600)
    assert look("compile cache").verdict == "ok"
    entry.chmod(0o666)
    assert look("compile cache").advice.startswith("1 entries are not used")


# ---- the machine ----


def groups(root: Path, files: dict[str, str], line: str) -> Path:
    """A tree with control groups, as a container has it."""
    for name, text in {"proc/self/cgroup": line, **files}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")
    return root


VERSION_1 = {
    "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "50000",
    "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000",
    "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712",
    "sys/fs/cgroup/memory/docker/1/memory.limit_in_bytes": "536870912",
}
VERSION_2 = {
    "sys/fs/cgroup/a/cpu.max": "150000 100000",
    "sys/fs/cgroup/a/b/cpu.max": "max 100000",
    "sys/fs/cgroup/a/memory.max": "max",
    "sys/fs/cgroup/a/b/memory.max": "1073741824",
}


@pytest.mark.parametrize(
    ("files", "line", "quota", "limit"),
    [
        (VERSION_1, "4:memory:/docker/1\n3:cpu,cpuacct:/docker/1", 0.5, 512 << 20),
        (VERSION_2, "0::/a/b", 1.5, 1 << 30),
    ],
    ids=["version 1", "version 2"],
)
def test_quota_and_limit(
    files: dict[str, str], line: str, quota: float, limit: int, tmp_path: Path
) -> None:
    root = groups(tmp_path, files, line)
    assert machine.quota(root) == quota
    assert machine.memory_limit(root) == limit


def test_no_limits(tmp_path: Path) -> None:
    assert machine.quota(tmp_path) is None
    root = groups(tmp_path, {"sys/fs/cgroup/cpu.max": "max 100000"}, "0::/")
    assert machine.quota(root) is None
    assert machine.memory_limit(root) is None


def test_limits_of_the_process_are_named() -> None:
    code = (
        "from specstream.doctor import machine; import resource as r;"
        "r.setrlimit(r.RLIMIT_NOFILE, (300, 300)); r.setrlimit(r.RLIMIT_AS, (64 << 30, 64 << 30));"
        "(check,) = (c for c in machine.CHECKS if c.name == 'limits'); print(check.look(str))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "verdict='warning'" in done.stdout
    assert "ulimit -n 1024" in done.stdout
    assert "limited to 64.0 GiB" in done.stdout


def test_no_place_for_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert look("temporary files").verdict == "ok"
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
    found = look("temporary files")
    assert found.verdict == "missing"
    assert "TMPDIR" in found.advice


# ---- Spark ----


def test_java_of_another_version_on_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path / "java", "#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = look("Java")
    assert found.verdict == "missing"
    assert f"{tmp_path}/java (found on PATH) is Java 11" in found.found
    assert "install Java 17 or 21" in found.advice
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert "JAVA_HOME is not set and there is no java on PATH" in look("Java").found
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "gone"))
    assert f"JAVA_HOME={tmp_path}/gone" in look("Java").found


def test_a_wrong_java_home_beside_a_good_java(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = program(tmp_path / "java", "#!/bin/sh\necho 'openjdk version \"17.0.2\"'\n")
    program(tmp_path / "old" / "bin" / "java", "#!/bin/sh\necho 'version \"11.0.2\"'\n")
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.defpath}")
    for home in ("gone", "old"):
        monkeypatch.setenv("JAVA_HOME", str(tmp_path / home))
        found = look("Java")
        assert found.verdict == "missing"
        assert found.advice.startswith(f"unset JAVA_HOME, as {good} is Java 17; or install Java")
    good.unlink()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert look("Java").advice.startswith("install Java")


def test_workers_of_another_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    assert look("workers' Python").verdict == "ok"
    other = program(tmp_path / "python3", "#!/bin/sh\necho 3.9\n")
    monkeypatch.setenv("PYSPARK_PYTHON", str(other))
    found = look("workers' Python")
    assert found.verdict == "missing"
    assert found.found.startswith(f"3.9, {other}")
    assert f"export PYSPARK_PYTHON={sys.executable}" in found.advice
    monkeypatch.setenv("PYSPARK_PYTHON", "./environment/bin/python")
    assert look("workers' Python").found.startswith("does not start")
    # What nobody has asked for matters only where a session of the user's own takes it.
    monkeypatch.delenv("PYSPARK_PYTHON")
    monkeypatch.setenv("PATH", f"{tmp_path}")
    assert look("workers' Python").verdict == "warning"


def test_an_address_that_is_not_this_machines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    assert look("host name").verdict == "ok"
    monkeypatch.setenv("SPARK_LOCAL_IP", "192.0.2.1")  # for documentation only (RFC 5737)
    found = look("host name")
    assert found.verdict == "warning"
    assert "SPARK_LOCAL_IP=192.0.2.1 is no address of this machine" in found.found


def test_a_spark_beside_pyspark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.delenv("SPARK_REMOTE", raising=False)
    assert look("PySpark").verdict == "ok"
    jar = tmp_path / "jars" / "spark-core_2.13-3.5.1.jar"
    jar.parent.mkdir()
    jar.write_bytes(b"")
    monkeypatch.setenv("SPARK_HOME", str(tmp_path))
    found = look("PySpark")
    assert found.verdict == "missing"
    assert f"SPARK_HOME={tmp_path} has Spark 3.5.1" in found.found
    jar.rename(jar.with_name(f"spark-core_2.13-{metadata.version('pyspark')}.jar"))
    assert look("PySpark").verdict == "ok"
    monkeypatch.setenv("SPARK_REMOTE", "sc://localhost")
    assert "unset SPARK_REMOTE" in look("PySpark").advice


def test_pyspark_that_is_asked_for_and_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark, "has_spark", lambda: False)
    found = look("PySpark")
    assert found.verdict == "missing"
    assert 'pip install "specstream[spark]"' in found.advice


@pytest.mark.spark
@pytest.mark.slow
def test_a_session_is_started_and_its_rows_are_compared() -> None:
    done = command("--spark", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = by_name(done.stdout)["Spark session"]
    assert found["verdict"] == "ok"
    assert f"Spark {metadata.version('pyspark')}: 2 micro-batches" in found["found"]


@pytest.mark.slow
def test_a_session_that_does_not_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    found = spark.SESSION.look(lambda text: None)
    assert found.verdict == "missing"
    assert "no Java at" in found.found


# ---- a checkpoint ----


class Total(ss.State):
    total = ss.scalar(int)


@ss.operator(state=Total, event={"x": int}, emits={"total": int})
def totals(state, event, emit):  # type: ignore[no-untyped-def]
    state.total += event.x
    emit(state.total)


def test_a_directory_that_checkpoints_can_have(tmp_path: Path) -> None:
    found = look_at(tmp_path)
    assert found.found.endswith(": empty")
    assert not list(tmp_path.iterdir())
    assert look_at(tmp_path / "a" / "b").found.endswith("not there yet, and can be made")
    assert not list(tmp_path.iterdir())


def test_a_place_where_there_can_be_none(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    assert look_at(file).found == f"{file} is no directory"
    below = look_at(file / "checkpoint")
    assert below.verdict == "missing"
    assert "Not a directory" in below.found
    proc = look_at("/proc/self")
    assert proc.verdict == "missing"
    assert "making a file does not work in" in proc.found
    for name in ("offsets", "commits", "metadata"):
        (tmp_path / "spark" / name).mkdir(parents=True)
    inside = look_at(tmp_path / "spark" / "checkpoint")
    assert inside.verdict == "missing"
    assert "is inside the checkpointLocation" in inside.found
    assert look_at("dbfs:///cp").verdict == "missing"
    assert look_at("s3://bucket/cp").verdict == "warning"


def test_a_directory_of_something_else(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("")
    found = look_at(tmp_path)
    assert found.verdict == "warning"
    assert "others (notes.txt)" in found.found


def test_whose_files_are_there(tmp_path: Path) -> None:
    with ss.Engine(totals) as engine:
        feed = Fed(engine, to=lambda table, batch_id: None, checkpoint=tmp_path)
        for batch_id in range(3):
            feed.send(batch_id, pa.table({"x": [1, 2]}))
        feed.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    found = look_at(tmp_path)
    assert found.verdict == "ok"
    assert "operator 'totals', state 'Total', after batch 2, 3 checkpoint file(s)" in found.found
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before

    uri = tmp_path.as_uri()
    assert look_at(uri) == found
    newest = max(tmp_path.glob("*2.*"))
    newest.write_bytes(newest.read_bytes()[:-1])
    found = look_at(tmp_path)
    assert found.verdict == "missing"
    assert "after batch 1" in found.found
    assert f"not usable: {newest.name}, because " in found.found
    assert "begins after batch 1" in found.advice
    newest.unlink()
    assert look_at(tmp_path).verdict == "ok"
    # The increment that is left cannot be used without the file that it builds on.
    (tmp_path / "0000000000.full").write_bytes(b"")
    found = look_at(tmp_path)
    assert found.verdict == "missing"
    assert "2 checkpoint file(s), none of which can be used: 0000000000.full" in found.found
    assert found.advice.startswith("put a copy of the directory back")


def test_a_uri_of_this_machine(tmp_path: Path) -> None:
    assert str(tmp_path / "a b") in look_at(f"{tmp_path.as_uri()}/a%20b").found
    found = look_at("file://elsewhere/cp")
    assert found.verdict == "missing"
    assert "'file://elsewhere/cp'" in found.found


def test_what_has_the_name_of_a_file_and_is_none(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    lock.mkdir()
    found = look_at(tmp_path)
    assert (found.verdict, found.advice) == ("missing", f"remove {lock}")
    lock.rmdir()
    full = tmp_path / "0000000003.full"
    os.mkfifo(full)  # nobody will write to it
    found = look_at(tmp_path)
    assert (found.verdict, found.advice) == ("missing", f"remove {full}")
    full.unlink()
    full.mkdir()
    assert look_at(tmp_path) == found


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_of_another_user(tmp_path: Path) -> None:
    for name in ("lock", "0000000003.full"):
        (tmp_path / name).write_bytes(b"")
        (tmp_path / name).chmod(0)
        found = look_at(tmp_path)
        assert found.verdict == "missing"
        assert f"{name}: Permission denied" in found.found
        assert "chown" in found.advice


def test_who_uses_it(tmp_path: Path) -> None:
    code = (
        "import sys; from specstream.checkpoint.format.store import LocalStore;"
        "store = LocalStore(sys.argv[1]); store.open();"
        "print('locked', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdin is not None
        assert holder.stdout.readline() == "locked\n"
        found = look_at(tmp_path)
        assert found.verdict == "warning"
        assert f"in use by process {holder.pid}" in found.found
        holder.stdin.close()
    # The file that is left means nothing.
    assert (tmp_path / "lock").exists()
    assert look_at(tmp_path).verdict == "ok"

"""The Java that Spark is to run on: found, or what is wrong with it."""

import os
import time
from pathlib import Path

import pytest

import specstream as ss

pyspark = pytest.importorskip("pyspark")
java = pytest.importorskip("specstream.spark.java")


def java_that(directory: Path, script: str) -> dict[str, str]:
    """An environment whose only Java is a shell script."""
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\n{script}\n")
    executable.chmod(0o755)
    return {"JAVA_HOME": str(directory), "PATH": os.defpath}


def test_java_is_found_and_a_wrong_one_is_explained(tmp_path: Path) -> None:
    assert ss.spark.find_java().version >= 17
    with pytest.raises(ss.ConfigurationError, match=r"no java on PATH.*openjdk-17"):
        ss.spark.find_java({"PATH": str(tmp_path)})
    with pytest.raises(ss.ConfigurationError, match="no Java at"):
        ss.spark.find_java({"JAVA_HOME": str(tmp_path)})
    old = java_that(tmp_path / "old", """echo 'openjdk version "1.8.0_392"' >&2""")
    with pytest.raises(ss.ConfigurationError, match="is Java 8; Spark 4 needs 17"):
        ss.spark.find_java(old)
    broken = java_that(tmp_path / "broken", "echo 'Illegal option' >&2; exit 1")
    with pytest.raises(ss.ConfigurationError, match="does not start: Illegal option"):
        ss.spark.find_java(broken)
    small = java_that(
        tmp_path / "small",
        """[ "$1" = -version ] || exit 1; echo 'openjdk version "21.0.2"' >&2""",
    )
    with pytest.raises(ss.ConfigurationError, match=r"without the module jdk\.incubator\.vector"):
        ss.spark.find_java(small)


def test_a_java_that_does_not_answer_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("specstream.spark.java.SECONDS", 0.2)
    # Stands for a Java on a file system that hangs; it is ended after the time above.
    with pytest.raises(ss.ConfigurationError, match=r"does not start: no answer within 0\.2 s"):
        ss.spark.find_java(java_that(tmp_path, "exec sleep 1000"))


def test_the_java_behind_a_wrapper_ends_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(java, "SECONDS", 2)
    monkeypatch.setattr(java, "PATIENCE", 0.5)
    said: list[str] = []
    environment = java_that(tmp_path, f"sleep 1000 & echo $! >{tmp_path}/process; wait")
    environment["PATH"] = str(tmp_path)
    found = java.look_for_java({**os.environ, **environment}, said.append)
    assert isinstance(found, java.NoJava)
    assert found.reason.endswith("does not start: no answer within 2 s")
    assert said == [f"{tmp_path}/bin/java has not answered within 0.5 s, and gets 2 s"]
    stat = Path("/proc", (tmp_path / "process").read_text().strip(), "stat")
    # It has got SIGKILL, and ends when it is scheduled; whoever it belongs to then reaps it.
    until = time.monotonic() + 20
    while not has_ended(stat):
        assert time.monotonic() < until
        time.sleep(0.01)  # nobody tells when a process of others has ended


def has_ended(stat: Path) -> bool:
    try:
        return stat.read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_wrong_java_home_beside_a_good_java(tmp_path: Path) -> None:
    wrong = java_that(tmp_path, "exit 1")
    good = java_that(tmp_path / "good", """echo 'openjdk version "21.0.2"'""")
    path = f"{good['JAVA_HOME']}/bin:{os.defpath}"
    with pytest.raises(ss.ConfigurationError, match=r"start: .*: unset JAVA_HOME, as .* Java 21"):
        ss.spark.find_java({**wrong, "PATH": path})


def test_a_java_that_crashes_says_why(tmp_path: Path) -> None:
    script = "printf '#\\n# There is insufficient memory.\\n# /tmp/hs_err.log\\n'; exit 1"
    with pytest.raises(ss.ConfigurationError, match=r"start: There is insufficient memory\.:"):
        ss.spark.find_java(java_that(tmp_path, script))

"""The sdist holds all that is under version control, and what the wheel holds fits any machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler"),
]

ROOT = Path(__file__).parents[2]
EXTENSIONS = ("_native", "_forecast")
MADE = ("PKG-INFO", "setup.cfg")  # by setuptools, and specstream.egg-info
JUNK = [
    "build/lib/specstream/old.py",
    "dist/old.whl",
    ".venv/bin/python",
    "docs/__pycache__/conf.cpython-311.pyc",
    "specstream/_native.abi3.so",
    "stm_native/build/x.o",
    "stm_native/tests/build/none/x.c",
    "demo-output/demo.png",
]


def under_version_control() -> list[str]:
    if not (ROOT / ".git").exists():
        pytest.skip("needs the checkout, to know what belongs to the project")
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    return [name for name in os.fsdecode(listed.stdout).split("\0") if (ROOT / name).is_file()]


def built(kind: str, source: Path, into: Path, **environment: str) -> Path:
    program = f"from setuptools import build_meta as b; b.build_{kind}({str(into)!r})"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    (made,) = into.iterdir()
    return made


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Made of a checkout in which somebody worked."""
    names = under_version_control()
    checkout = tmp_path_factory.mktemp("checkout")
    for name in names:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, checkout / name)
    for name in JUNK:
        (checkout / name).parent.mkdir(parents=True, exist_ok=True)
        (checkout / name).write_text("junk")
    return built("sdist", checkout, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def unpacked(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    elsewhere = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(elsewhere, filter="data")
    (folder,) = elsewhere.iterdir()
    return folder


@pytest.fixture(scope="module")
def wheel(unpacked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", unpacked, tmp_path_factory.mktemp("wheel"), CFLAGS="")


def test_the_sdist_has_all_files_of_the_project_and_no_other(sdist: Path) -> None:
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    made = {name for name in names if name in MADE or name.startswith("specstream.egg-info/")}
    assert names - made == set(under_version_control())


def failed_build(source: Path, into: Path, **environment: str) -> list[str]:
    """What a build says that must fail."""
    done = subprocess.run(
        [sys.executable, "setup.py", "build", "--build-base", str(into)],
        cwd=source,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
    )
    assert done.returncode != 0
    return done.stderr.strip().splitlines()


def test_a_missing_compiler_is_named_and_how_to_get_one(unpacked: Path, tmp_path: Path) -> None:
    """Before anything is compiled, and as the last thing that is said."""
    said = failed_build(unpacked, tmp_path, CC="no-such-compiler")
    assert "no C compiler: 'no-such-compiler' is not on PATH" in said[-1]
    assert "apt-get install gcc" in said[-1]


def test_a_compiler_that_fails_is_followed_by_what_it_needs(unpacked: Path, tmp_path: Path) -> None:
    said = failed_build(unpacked, tmp_path, CFLAGS="-include no-such-header.h")
    assert "no-such-header.h: No such file" in "\n".join(said)
    assert "headers of the C library and of Python" in said[-1]


@pytest.mark.long
def test_one_wheel_serves_every_python_from_3_11_on(wheel: Path) -> None:
    assert re.fullmatch(r"specstream-[\d.]+-cp311-abi3-linux_\w+\.whl", wheel.name)


def test_the_wheel_has_the_package_and_nothing_beside_it(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    kept = {name for name in names if ".dist-info/" not in name}
    sources = {name for name in under_version_control() if name.startswith("specstream/")}
    operators = {
        f"specstream/{name}" for name in under_version_control() if name.startswith("operators/")
    }
    assert kept == sources | operators | {f"specstream/{name}.abi3.so" for name in EXTENSIONS}


@pytest.mark.parametrize("name", EXTENSIONS)
def test_an_extension_is_stripped_and_says_nothing_of_where_it_was_built(
    wheel: Path, unpacked: Path, tmp_path: Path, name: str
) -> None:
    extension = Path(zipfile.ZipFile(wheel).extract(f"specstream/{name}.abi3.so", tmp_path))
    shown = subprocess.run(
        ["readelf", "--wide", "--sections", "--dynamic", str(extension)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert ".dynsym" in shown
    assert "BIND_NOW" in shown
    for absent in (".debug_", ".symtab", "RPATH", "RUNPATH"):
        assert absent not in shown, absent
    content = extension.read_bytes()
    for place in (unpacked, ROOT, Path.home(), Path(sys.base_prefix)):
        assert f"{place}/".encode() not in content, place


def test_the_metadata_have_the_readme_as_an_index_shows_it(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    metadata = archive.read(name).decode()
    assert "Description-Content-Type: text/markdown" in metadata
    assert "](docs/" not in metadata
    assert "## Quickstart" in metadata

"""The compile cache holds code: nobody else may have written it, and without it all goes on."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import pwd
import resource
import stat
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.daily import share_of

from specstream.compiler import cache

NAMES = [f"{number:064x}" for number in range(40)]
ENTRY = cache.Stored("symbol", b"code" * 100)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    chosen = tmp_path / "somewhere" / "cache"
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", str(chosen))
    monkeypatch.setattr(cache, "_said", set())
    monkeypatch.setattr(cache, "_pruned", False)
    return chosen


def refused(pattern: str) -> Any:
    return pytest.warns(RuntimeWarning, match=pattern)


# ---- where it is ----


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({"SPECSTREAM_CACHE_DIR": "/given", "XDG_CACHE_HOME": "/xdg"}, "/given"),
        ({"SPECSTREAM_CACHE_DIR": ""}, None),
        ({"XDG_CACHE_HOME": "/xdg", "HOME": "/home/me"}, "/xdg/specstream"),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, "/home/me/.cache/specstream"),
        # The specification says that a relative path is to be ignored.
        ({"XDG_CACHE_HOME": "xdg", "HOME": "/home/me"}, "/home/me/.cache/specstream"),
        ({"HOME": "/home/me"}, "/home/me/.cache/specstream"),
        ({"HOME": ""}, "/of/passwd/.cache/specstream"),
        ({"HOME": "here"}, "/of/passwd/.cache/specstream"),
        ({}, "/of/passwd/.cache/specstream"),
    ],
)
def test_where_it_is(
    environment: dict[str, str], expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_user = pwd.struct_passwd(("me", "x", 1, 1, "", "/of/passwd", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: of_user)
    for name in ("SPECSTREAM_CACHE_DIR", "XDG_CACHE_HOME", "HOME"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert cache.directory() == (None if expected is None else Path(expected))


WITHOUT_A_HOME = """
import pwd
def unknown(uid):
    raise KeyError(uid)
pwd.getpwuid = unknown
import specstream as ss
class S(ss.State):
    n = ss.scalar(int)
@ss.operator(state=S, event={"i": int}, emits={"n": int})
def op(state, event, emit):
    state.n += event.i
    emit(state.n)
with ss.Engine(op, horizon=0) as engine:
    print(engine.process({"i": [1, 2]})["n"].to_pylist())
"""


@pytest.mark.slow
def test_an_engine_needs_no_home(tmp_path: Path) -> None:
    """Nor an entry in passwd: in many containers the user has neither."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ("HOME", "XDG_CACHE_HOME", "SPECSTREAM_CACHE_DIR")
    }
    (tmp_path / "script.py").write_text(WITHOUT_A_HOME)
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(tmp_path / "script.py")],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("[1, 3]\n", "")
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]


@pytest.mark.parametrize("home", ["/proc/nobody", "/proc", "/dev/null"])
def test_a_home_that_cannot_be_written_is_as_good_as_none(
    home: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("SPECSTREAM_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store(NAMES[0], ENTRY)
        assert cache.load(NAMES[0]) is None


def test_a_chosen_directory_that_cannot_be_written_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPECSTREAM_CACHE_DIR", "/proc/nobody")
    with refused("/proc/nobody, cannot be written: No such file"):
        cache.store(NAMES[0], ENTRY)


def test_a_misspelt_variable_of_the_environment_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPECSTREAM_CACHE_DIRR", "/tmp")
    cache.check_environment.cache_clear()
    with refused("SPECSTREAM_CACHE_DIRR, .* did you mean SPECSTREAM_CACHE_DIR?"):
        cache.directory()


# ---- who may write to it ----


def test_what_it_makes_is_its_owners_alone(folder: Path) -> None:
    before = os.umask(0)
    try:
        cache.store(NAMES[0], ENTRY)
    finally:
        os.umask(before)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    (entry,) = folder.iterdir()
    assert stat.S_IMODE(entry.stat().st_mode) == 0o600
    assert cache.load(NAMES[0]) == ENTRY


def lead_elsewhere(path: Path) -> None:
    path.rename(path.with_name("other"))
    path.symlink_to(path.with_name("other"))


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o720, 0o777, 0o1777])
def test_a_directory_that_others_may_write_to_is_refused(folder: Path, mode: int) -> None:
    cache.store(NAMES[0], ENTRY)
    folder.chmod(mode)
    with refused(f"{folder}.*group or others.*chmod go-w.*SPECSTREAM_CACHE_DIR"):
        assert cache.load(NAMES[0]) is None
    # Said once; and nothing is put there either.
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cache.store(NAMES[1], ENTRY)
        assert cache.load(NAMES[1]) is None
    assert [path.name for path in folder.iterdir()] == [NAMES[0]]


def test_a_directory_of_somebody_else_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(NAMES[0], ENTRY)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    with refused(
        f"{folder}.*belongs to user {os.getuid()}, not to user 4321.*SPECSTREAM_CACHE_DIR"
    ):
        assert cache.load(NAMES[0]) is None


def test_a_directory_that_is_a_link_is_refused(folder: Path) -> None:
    cache.store(NAMES[0], ENTRY)
    lead_elsewhere(folder)
    with refused(f"{folder}.*is a symbolic link.*SPECSTREAM_CACHE_DIR"):
        assert cache.load(NAMES[0]) is None
    cache.store(NAMES[1], ENTRY)
    assert [path.name for path in folder.iterdir()] == [NAMES[0]]


def test_a_file_in_the_place_of_the_directory_is_refused(folder: Path) -> None:
    folder.parent.mkdir()
    folder.write_text("")
    with refused(f"{folder}.*is no directory"):
        assert cache.load(NAMES[0]) is None
    cache.store(NAMES[0], ENTRY)
    assert folder.read_text() == ""


def test_a_parent_may_be_anybodys(folder: Path) -> None:
    """Who may swap the directory can only offer another one that is ours."""
    folder.parent.mkdir()
    folder.parent.chmod(0o777)
    cache.store(NAMES[0], ENTRY)
    assert cache.load(NAMES[0]) == ENTRY


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_an_entry_that_others_may_write_to_is_refused(folder: Path, mode: int) -> None:
    cache.store(NAMES[0], ENTRY)
    (folder / NAMES[0]).chmod(mode)
    with refused(f"{folder}/{NAMES[0]}.*group or others.*remove it"):
        assert cache.load(NAMES[0]) is None
    # The compilation that follows puts a good one in its place.
    cache.store(NAMES[0], ENTRY)
    assert cache.load(NAMES[0]) == ENTRY


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_an_entry_of_somebody_else_is_refused(folder: Path) -> None:
    cache.store(NAMES[0], ENTRY)
    os.chown(folder / NAMES[0], 4321, 4321)
    with refused(f"{folder}/{NAMES[0]}.*belongs to user 4321, not to user 0.*remove it"):
        assert cache.load(NAMES[0]) is None


def test_an_entry_that_is_no_file_is_refused(folder: Path, tmp_path: Path) -> None:
    for name in NAMES[:4]:
        cache.store(name, ENTRY)
    (folder / NAMES[0]).rename(tmp_path / "elsewhere")
    (folder / NAMES[0]).symlink_to(tmp_path / "elsewhere")
    with refused(f"{NAMES[0]}.*symbolic link"):
        assert cache.load(NAMES[0]) is None
    (folder / NAMES[1]).unlink()
    os.mkfifo(folder / NAMES[1])  # who opens one to read waits for a writer
    with refused(f"{NAMES[1]}.*no file"):
        assert cache.load(NAMES[1]) is None
    (folder / NAMES[2]).unlink()
    (folder / NAMES[2]).mkdir()
    with refused(f"{NAMES[2]}.*no file"):
        assert cache.load(NAMES[2]) is None
    with refused("cannot be written: Is a directory"):
        cache.store(NAMES[2], ENTRY)
    assert cache.load(NAMES[3]) == ENTRY


def test_what_is_checked_is_what_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody swaps the directory, and the entry, right after they were looked at."""
    hostile = cache.Stored("hostile", b"")
    cache.store(NAMES[0], hostile)
    evil = folder.rename(folder.with_name("evil"))
    cache.store(NAMES[0], ENTRY)
    look = os.fstat
    swapped: list[str] = []

    def look_and_swap(file: int) -> os.stat_result:
        found = look(file)
        if stat.S_ISDIR(found.st_mode) and not swapped:
            swapped.append("directory")
            folder.rename(folder.with_name("good"))
            evil.rename(folder)
        elif stat.S_ISREG(found.st_mode) and len(swapped) == 1:
            swapped.append("entry")
            os.replace(folder / NAMES[0], folder.with_name("good") / NAMES[0])
        return found

    monkeypatch.setattr(os, "fstat", look_and_swap)
    assert cache.load(NAMES[0]) == ENTRY
    assert swapped == ["directory", "entry"]


# ---- what is in it ----


class Trap:
    """Unpickling it runs code."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["TRAP"],)


def test_an_entry_under_another_name_is_no_entry(folder: Path) -> None:
    cache.store(NAMES[0], ENTRY)
    (folder / NAMES[0]).rename(folder / NAMES[1])
    assert cache.load(NAMES[1]) is None


@settings(max_examples=share_of(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    damage=st.one_of(
        st.tuples(st.just("flip"), st.integers(0, 400), st.integers(1, 255)),
        st.tuples(st.just("cut"), st.integers(0, 400), st.just(0)),
        st.tuples(st.just("more"), st.integers(1, 50), st.integers(0, 255)),
        st.tuples(st.just("other"), st.binary(max_size=200), st.just(0)),
        st.tuples(st.just("pickle"), st.binary(min_size=32, max_size=32), st.just(0)),
    )
)
def test_a_damaged_entry_is_no_entry(
    folder: Path, monkeypatch: pytest.MonkeyPatch, damage: tuple[str, Any, int]
) -> None:
    monkeypatch.setenv("TRAP", str(folder / "sprung"))
    cache.store(NAMES[0], ENTRY)
    path = folder / NAMES[0]
    whole = path.read_bytes()
    kind, what, value = damage
    if kind == "flip":
        at = what % len(whole)
        damaged = whole[:at] + bytes([whole[at] ^ value]) + whole[at + 1 :]
    elif kind == "cut":
        damaged = whole[: what % len(whole)]
    elif kind == "more":
        damaged = whole + bytes([value]) * what
    elif kind == "other":
        damaged = what
    else:
        damaged = what + pickle.dumps(Trap())
    path.write_bytes(damaged)
    assert cache.load(NAMES[0]) is None
    assert not (folder / "sprung").exists()


def test_what_cannot_be_written_leaves_nothing(folder: Path) -> None:
    cache.store(NAMES[0], ENTRY)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, before[1]))
    try:
        with refused("cannot be written: File too large"):
            cache.store(NAMES[1], ENTRY)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert [path.name for path in folder.iterdir()] == [NAMES[0]]


# ---- how much there is of it ----


def be_a_new_process() -> None:
    """One that has not looked for entries to remove."""
    cache._pruned = False


def used_days_ago(path: Path, days: float) -> None:
    at = path.stat().st_mtime - 24 * 3600 * days
    os.utime(path, (at, at))


def test_what_was_not_used_for_long_goes(folder: Path) -> None:
    for name in NAMES[:3]:
        cache.store(name, ENTRY)
    leftover = folder / f"{NAMES[5]}.{16 * 'a'}"  # of a process that was killed
    others = [folder / "notes", folder / "tmpabc"]
    for path in (leftover, *others):
        path.write_text("")
    for path in folder.iterdir():
        used_days_ago(path, cache.DAYS_KEPT + 1)
    assert cache.load(NAMES[1]) == ENTRY  # is used by this
    be_a_new_process()
    cache.store(NAMES[3], ENTRY)
    left = {path.name for path in folder.iterdir()}
    assert left == {NAMES[1], NAMES[3], "notes", "tmpabc"}


def test_what_is_too_much_goes_the_oldest_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for at, name in enumerate(NAMES[:8]):
        cache.store(name, ENTRY)
        used_days_ago(folder / name, 8 - at)
    monkeypatch.setattr(cache, "MOST_BYTES", 4 * (folder / NAMES[0]).stat().st_size)
    be_a_new_process()
    cache.store(NAMES[8], ENTRY)
    assert {path.name for path in folder.iterdir()} == set(NAMES[5:9])
    # Not at each store: one in a process is enough.
    cache.store(NAMES[9], ENTRY)
    assert len(list(folder.iterdir())) == 5


def test_a_pruned_directory_is_searched_by_its_own_names_only(folder: Path, tmp_path: Path) -> None:
    """A directory of ours that somebody has led us to loses nothing but entries."""
    cache.store(NAMES[0], ENTRY)
    precious = [NAMES[1][:-1], f"{NAMES[1]}.txt", "id_ed25519", NAMES[1].upper() + "0"]
    for name in precious:
        (folder / name).write_text("precious")
        used_days_ago(folder / name, 10 * cache.DAYS_KEPT)
    be_a_new_process()
    cache.store(NAMES[2], ENTRY)
    assert {path.name for path in folder.iterdir()} == {NAMES[0], NAMES[2], *precious}


def _store_and_load(first: int) -> int:
    found = 0
    for turn in range(60):
        name = NAMES[(first + turn) % len(NAMES)]
        be_a_new_process()
        cache.store(name, cache.Stored(name, b"code" * 100))
        stored = cache.load(NAMES[turn % len(NAMES)])
        assert stored is None or stored.symbol == NAMES[turn % len(NAMES)]
        found += stored is not None
    return found


def test_processes_store_load_and_prune_at_once(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache.store(NAMES[0], ENTRY)
    size = (folder / NAMES[0]).stat().st_size
    (folder / NAMES[0]).unlink()
    monkeypatch.setattr(cache, "MOST_BYTES", 6 * size)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert sum(pool.map(_store_and_load, range(0, 40, 10))) > 0
    assert all(len(path.name) == 64 for path in folder.iterdir())


# ---- what an entry depends on ----


def test_the_key_covers_every_file_that_decides_machine_code() -> None:
    own = {path.resolve() for path in cache._files_that_decide()}
    package = Path(cache.__file__).parents[1]
    for room in ("compiler", "structures", "declarations"):
        assert {path.resolve() for path in package.joinpath(room).rglob("*.py")} <= own
    assert package.joinpath("columns", "strings.py").resolve() in own
    assert all(path.is_file() for path in own)

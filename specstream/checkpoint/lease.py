"""Who may write to a directory in a store that has no locks: whoever holds its lease.

A lock ends with its process, because the operating system sees to that. A store sees no processes.
So the holder says again and again that it is there, and who wants the directory takes it over when
that has stopped for as long as a lease lasts. That is measured by the taker's own clock: clocks of
two hosts need not agree.

A directory ``lease`` beside the files that it is about has one file for each holder there was,
numbered; the one with the highest number holds the lease. In it are host, process, how long it
lasts, when it ends (for people), and a count that each renewal moves on. Who takes the lease makes
the next file:

- in a filesystem of this machine, or one that is mounted, by a link, which exactly one of several
  can make;
- in a store that has no such thing for Arrow (S3, GCS, Azure): it writes the file, waits, and reads
  it back. The last of several who write it has it, if a write takes no longer than that wait.

Before each file of a checkpoint gets its name, and once more behind that, the holder looks whether
it still has the lease. One that was stopped for longer than a lease lasts, and goes on, finds the
next file, and fails. Between the last look and the name is an instant in which it could be stopped:
then its file comes late, and the look behind it fails, before any sink is called. It is the file of
a batch that the new holder runs as well, over the same rows.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import socket
import threading
import time
import uuid
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import pyarrow as pa
from pyarrow import fs

from specstream.errors import ConfigurationError
from specstream.files.untrusted import Malformed, made_of, object_of

__all__ = ["SECONDS", "Holder", "Lease"]

SECONDS = 30.0
DIRECTORY = "lease"
_ERRORS = (OSError, pa.ArrowException)
# Of its time, how often a lease is renewed, and looked at by who waits for its end.
_RENEWALS = 3
_LOOKS = 20
# How long a write may take where the last one to write has the lease: of that time, or in seconds.
_SETTLES = 5, 5.0


@dataclass(frozen=True)
class Holder:
    """Who has a lease, as its file says it.

    Attributes:
        owner: no other holder has the same.
        host: its host's name.
        process: its process there.
        machine: the running system and its table of processes, between which numbers of processes
            mean nothing.
        began: when the process began, by the system's clock.
        seconds: how long the lease lasts behind a renewal.
        renewals: how many there were.
        expires: when it ends if it is not renewed, by the host's clock.
        released: whether the holder has given it back.
    """

    owner: str
    host: str
    process: int
    machine: str
    began: str
    seconds: float
    renewals: int
    expires: str
    released: bool = False

    @classmethod
    def here(cls, seconds: float) -> Holder:
        """This process."""
        return cls(
            uuid.uuid4().hex,
            socket.gethostname(),
            os.getpid(),
            _machine(),
            _began(os.getpid()) or "",
            seconds,
            0,
            _time(seconds),
        )

    def __str__(self) -> str:
        return f"process {self.process} of host {self.host}"

    @property
    def has_ended(self) -> bool:
        """Whether it is known to be no more: only of a process of this machine."""
        return self.machine == _machine() != "" and _began(self.process) != self.began


class Lease:
    """The lease of a directory.

    Args:
        filesystem: where it is.
        path: the directory.
        what: names it in errors, as in ``checkpoint='s3://bank/checkpoint'``.
        seconds: how long the lease lasts.
    """

    def __init__(
        self, filesystem: fs.FileSystem, path: str, what: str, seconds: float = SECONDS
    ) -> None:
        self._filesystem = filesystem
        self._path = f"{path}/{DIRECTORY}"
        self._what = what
        self._seconds = seconds
        self._guard = threading.Lock()
        self._ended = threading.Event()
        self._own: tuple[int, Holder] | None = None
        self._renewed = 0.0
        self._lost: Holder | None = None

    def take(self) -> None:
        """Takes it, and renews it from now on, on a thread.

        Where its last holder has not given it back, that takes as long as a lease lasts.

        Raises:
            ConfigurationError: somebody else has it; names who.
            OSError, ArrowException: the store cannot be reached.
        """
        self._filesystem.create_dir(self._path, recursive=True)
        last = self._newest()
        if last is not None:
            self._await_end(last)
        with self._guard:
            self._make((0 if last is None else last[0]) + 1)
        threading.Thread(target=self._renew_on, name="specstream-lease", daemon=True).start()

    def check(self, *, look: bool = True) -> None:
        """Whether it is still held.

        Args:
            look: at the store, in any case; False: only where it may have ended since it was
                renewed.

        Raises:
            ConfigurationError: somebody else has it now; names who.
            OSError, ArrowException: the store cannot be reached.
        """
        with self._guard:
            is_sure = self._own is not None and self._lost is None
            if look or not is_sure or _now() - self._renewed >= self._seconds:
                self._look()

    def release(self) -> None:
        """Gives it back, so that nobody needs to wait for its end."""
        self._ended.set()
        with self._guard:
            own, self._own = self._own, None
            if own is None or self._lost is not None or own[1].process != os.getpid():
                return  # also in a child that was forked
            with contextlib.suppress(*_ERRORS):  # then it ends by itself
                if self._is_newest(own):
                    self._write(own[0], replace(own[1], released=True))

    # ---- taking ----

    def _await_end(self, last: tuple[int, Holder]) -> None:
        """Returns when the lease of another holder has ended."""
        holder = last[1]
        until = _now() + holder.seconds
        while not holder.released and not holder.has_ended and _now() < until:
            time.sleep(holder.seconds / _LOOKS)  # a store tells of no change: it is looked at again
            now = self._newest()
            if now is not None and now != last and not (now[0] == last[0] and now[1].released):
                raise ConfigurationError(
                    f"{self._what} is in use by another process ({now[1]}, which renews its lease "
                    "of the directory): stop it there, or give each a directory of its own; where "
                    "this is to take over when that one has gone, start it again"
                )
            holder = holder if now is None else now[1]

    def _make(self, number: int) -> None:
        """Takes the lease by the file of the next number; the guard is held."""
        own = Holder.here(self._seconds)
        began = _now()
        if not self._write(number, own, is_new=True):
            found = self._read(number)
            who = "somebody else" if found is None else str(found)
            raise ConfigurationError(
                f"{self._what} is in use by another process ({who}, which has taken the lease of "
                "the directory at this moment): stop it there, or give each a directory of its "
                "own"
            )
        self._own, self._renewed = (number, own), began
        for older in self._numbers():
            if older < number:
                with contextlib.suppress(*_ERRORS):
                    self._filesystem.delete_file(self._at(older))

    # ---- holding ----

    def _renew_on(self) -> None:
        while not self._ended.wait(self._seconds / _RENEWALS):
            with self._guard, contextlib.suppress(ConfigurationError, *_ERRORS):
                if self._own is not None:
                    self._look(renew=True)

    def _look(self, *, renew: bool = False) -> None:
        """Looks whether it is held, and perhaps renews it; the guard is held."""
        if self._lost is not None:
            raise self._is_lost(self._lost)
        own = self._own
        if own is None:
            raise ConfigurationError(f"{self._what}: its lease was given back: open it again")
        if not self._is_newest(own):
            newest = self._newest()
            self._lost = own[1] if newest is None else newest[1]
            raise self._is_lost(self._lost)
        began = _now()
        if began - self._renewed >= self._seconds:
            # Ended, and nobody has it yet: somebody may be about to. One of the two gets it.
            try:
                self._make(own[0] + 1)
            except ConfigurationError:
                newest = self._newest()
                self._lost = own[1] if newest is None else newest[1]
                raise self._is_lost(self._lost) from None
        elif renew:
            next_ = replace(own[1], renewals=own[1].renewals + 1, expires=_time(self._seconds))
            self._write(own[0], next_)
            self._own, self._renewed = (own[0], next_), began

    def _is_lost(self, holder: Holder) -> ConfigurationError:
        return ConfigurationError(
            f"{self._what}: {holder} has the lease of the directory now; this process had not "
            f"renewed its own for {self._seconds:g} s (it was stopped, or the store was out of "
            "reach). It writes nothing more there: end it, the query goes on with the other one"
        )

    def _is_newest(self, own: tuple[int, Holder]) -> bool:
        if max(self._numbers(), default=0) != own[0]:
            return False
        found = self._read(own[0])
        return found is None or found.owner == own[1].owner

    # ---- files ----

    def _at(self, number: int) -> str:
        return f"{self._path}/{number:010d}"

    def _numbers(self) -> list[int]:
        found = self._filesystem.get_file_info(fs.FileSelector(self._path, allow_not_found=True))
        return sorted(int(info.base_name) for info in found if info.base_name.isdigit())

    def _newest(self) -> tuple[int, Holder] | None:
        for number in reversed(self._numbers()):
            if (found := self._read(number)) is not None:
                return number, found
        return None

    def _read(self, number: int) -> Holder | None:
        """What a file says; None: it is gone, or is none that was written whole."""
        try:
            with self._filesystem.open_input_file(self._at(number)) as file:
                return made_of(object_of(file.read(), "the lease"), Holder, "the lease")
        except (FileNotFoundError, Malformed):
            return None

    def _write(self, number: int, holder: Holder, *, is_new: bool = False) -> bool:
        """Writes a file, whole; False: it was to be new, and is somebody else's."""
        content = json.dumps(asdict(holder)).encode()
        hidden = f"{self._path}/.{number:010d}.{holder.owner}"
        with self._filesystem.open_output_stream(hidden) as file:
            file.write(content)
        local = _local_path(self._filesystem, hidden)
        if is_new and local is not None:
            try:
                os.link(local, local.with_name(f"{number:010d}"))
            except FileExistsError:
                return False
            finally:
                local.unlink()
            return True
        if is_new and self._read(number) is not None:
            self._filesystem.delete_file(hidden)
            return False
        self._filesystem.move(hidden, self._at(number))
        if not is_new:
            return True
        # Another one may have written at the same moment; by then the last one of them is there.
        time.sleep(min(holder.seconds / _SETTLES[0], _SETTLES[1]))
        found = self._read(number)
        return found is not None and found.owner == holder.owner


def _local_path(filesystem: fs.FileSystem, path: str) -> Path | None:
    """A file's path in this machine's own filesystem, if it is there."""
    if isinstance(filesystem, fs.SubTreeFileSystem):
        base = filesystem.base_path.rstrip("/")
        return _local_path(filesystem.base_fs, f"{base}/{path.lstrip('/')}")
    return Path(path) if isinstance(filesystem, fs.LocalFileSystem) else None


def _now() -> float:
    """Seconds since some instant; goes on while the process is stopped or the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _time(seconds: float) -> str:
    at = datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
    return at.isoformat(timespec="seconds")


def _machine() -> str:
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _began(process: int) -> str | None:
    """When a process began, in the system's ticks; None: there is no such."""
    try:
        said = Path(f"/proc/{process}/stat").read_text()
    except OSError:
        return None
    state, *rest = said.rpartition(")")[2].split()
    return None if state in ("Z", "X") else rest[18]

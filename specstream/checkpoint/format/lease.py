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
  it back. The last of several who write it has it; one whose write took longer than that wait may
  have come too late to be seen, and gives way.

Who takes it may be stopped between its last look and that file, in which time the holder goes on.
So it looks once more behind the file, and gives way where that is so.

Before rows are prepared for a sink, before a file of the checkpoint gets its name or is deleted,
and before each sink, the holder looks whether it still has the lease. One that was stopped for
longer than a lease lasts, and goes on, finds the next file, and fails. Between a look and what
follows it is an instant in which it could be stopped: then it does that one thing late, and the
next look fails. It is the file, or are the rows, of a batch that the new holder runs as well, over
the same events.
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
        self._settles = min(seconds / _SETTLES[0], _SETTLES[1])
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
            OSError, ArrowException: the store cannot be reached, or is too slow.
        """
        self._filesystem.create_dir(self._path, recursive=True)
        last = self._newest()
        if last is not None:
            last = self._await_end(last)
        with self._guard:
            if not self._make((0 if last is None else last[0]) + 1, last):
                found = self._newest()
                who = "somebody else" if found is None else str(found[1])
                raise ConfigurationError(
                    f"{self._what} is in use by another process ({who}, which has the lease of "
                    "the directory at this moment): stop it there, or give each a directory of "
                    "its own"
                )
        threading.Thread(target=self._renew_on, name="specstream-lease", daemon=True).start()

    def check(self) -> None:
        """Looks whether it is still held.

        Raises:
            ConfigurationError: somebody else has it now; names who.
            OSError, ArrowException: the store cannot be reached.
        """
        with self._guard:
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

    def _await_end(self, last: tuple[int, Holder]) -> tuple[int, Holder]:
        """The file of another holder, as it is when the lease has ended."""
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
        return last[0], holder

    def _make(self, number: int, last: tuple[int, Holder] | None = None) -> bool:
        """Takes the lease by the file of the next number, the guard held; False: somebody else has
        it.

        Args:
            number: of the file.
            last: the file of the last holder, as it was seen last; None: there was none, or it is
                this one's own.
        """
        own = Holder.here(self._seconds)
        began = _now()
        if not (self._write_new(number, own) and self._has_it(number, own, last)):
            return False
        self._own, self._renewed = (number, own), began
        for older in self._numbers():
            if older < number:
                with contextlib.suppress(*_ERRORS):
                    self._filesystem.delete_file(self._at(older))
        return True

    def _has_it(self, number: int, own: Holder, last: tuple[int, Holder] | None) -> bool:
        """Whether a file that was just made has the lease; if not, it is taken away again."""
        is_next = max(self._numbers(), default=0) == number
        if not is_next or (last is not None and self._read(last[0]) != last[1]):
            # Since the last look the other one has gone on, or somebody else was faster.
            with contextlib.suppress(*_ERRORS):
                self._filesystem.delete_file(self._at(number))
            return False
        if _local_path(self._filesystem, self._path) is None:
            time.sleep(self._settles)  # others may have written it at the same moment
        return self._is_newest((number, own))

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
        began = _now()  # before the look: behind it the process may be stopped
        if not self._is_newest(own):
            raise self._lose(own)
        if began - self._renewed >= self._seconds:
            # Ended, and nobody has it yet: somebody may be about to. One of the two gets it.
            if not self._make(own[0] + 1):
                raise self._lose(own)
        elif renew:
            next_ = replace(own[1], renewals=own[1].renewals + 1, expires=_time(self._seconds))
            # No count comes twice, whatever becomes of the write: who waits sees a new one.
            self._own = own[0], next_
            self._write(own[0], next_)
            self._renewed = began

    def _lose(self, own: tuple[int, Holder]) -> ConfigurationError:
        """It is lost for good, to whoever has the newest file."""
        newest = self._newest()
        self._lost = own[1] if newest is None else newest[1]
        return self._is_lost(self._lost)

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
        return found is not None and found.owner == own[1].owner

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

    def _write(self, number: int, holder: Holder) -> None:
        """Writes a file, whole, in place of the one that is there."""
        self._filesystem.move(self._hidden(number, holder), self._at(number))

    def _write_new(self, number: int, holder: Holder) -> bool:
        """Writes a file, whole; False: there is one, of somebody else."""
        hidden = self._hidden(number, holder)
        local = _local_path(self._filesystem, hidden)
        if local is not None:
            try:
                os.link(local, local.with_name(f"{number:010d}"))
            except FileExistsError:
                return False
            finally:
                local.unlink()
            return True
        began = _now()
        if self._read(number) is not None:
            self._filesystem.delete_file(hidden)
            return False
        self._filesystem.move(hidden, self._at(number))
        took = _now() - began
        if took > self._settles:
            with contextlib.suppress(*_ERRORS):
                self._filesystem.delete_file(self._at(number))
            raise TimeoutError(
                f"its lease was not taken, because a write took {took:.3g} s, and others who want "
                f"it wait {self._settles:g} s for one: try again; give a longer lease= where the "
                "store is as slow as that"
            )
        return True

    def _hidden(self, number: int, holder: Holder) -> str:
        """A file under a name of which only its holder knows."""
        hidden = f"{self._path}/.{number:010d}.{holder.owner}"
        with self._filesystem.open_output_stream(hidden) as file:
            file.write(json.dumps(asdict(holder)).encode())
        return hidden


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

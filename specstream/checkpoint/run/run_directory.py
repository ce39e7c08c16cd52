"""The directory of a run that can be started again: ``specstream run --checkpoint DIRECTORY``.

A stream has two checkpoints that belong together, Spark's and ours. Here they lie beside each
other, with a record of what the run was begun with::

    DIRECTORY/run.json       options that a start cannot change, and where the rows go
    DIRECTORY/specstream/    checkpoint files: state, and the rows of the last batch
    DIRECTORY/spark/         Spark's checkpointLocation: which batches it has planned and done

A run that was killed before Spark had planned a batch has done nothing: whatever it has left is
begun anew, with other options as well. Commands that read a checkpoint take either directory.
"""

from __future__ import annotations

import json
import os
import shutil
import warnings
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from specstream.checkpoint.format.checkpoint_files import names_of
from specstream.checkpoint.format.settings import check_settings
from specstream.checkpoint.format.store import SPARKS, LocalStore, Store, store_of
from specstream.errors import ConfigurationError, SnapshotError
from specstream.files.places import is_uri
from specstream.files.untrusted import Malformed, made_of, object_of

__all__ = ["RECORD", "RunDirectory", "RunRecord", "recorded_store", "run_directory_of"]

RECORD = "run.json"
FILES = "specstream"
SPARK = "spark"
_VERSION = 1
# What a run may be given later on, as when it has ended with an event that fails; and not any more.
_LATER = ("--errors",)
_NO_BATCH = -1  # whose steps no failpoint names


@dataclass(frozen=True)
class RunRecord:
    """What a run was begun with.

    Attributes:
        settings: options that each start has to have, by their names on the command line.
        outputs: directories of Parquet files, one for each batch, that the run writes.
        version: of the record's format.
        checksum: of the rest; None: it is not looked at.
    """

    settings: list[tuple[str, str | None]]
    outputs: list[str] = field(default_factory=list)
    version: int = _VERSION
    checksum: int | None = None

    def summed(self) -> RunRecord:
        """The same with its checksum."""
        without = replace(self, checksum=None)
        return replace(self, checksum=zlib.crc32(json.dumps(asdict(without)).encode()))


class RunDirectory:
    """Such a directory, which need not be there yet.

    Args:
        path: the directory.

    Attributes:
        path: the directory.
        files: where our checkpoint files are.
        spark: Spark's ``checkpointLocation``.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.files = self.path / FILES
        self.spark = self.path / SPARK

    @property
    def is_there(self) -> bool:
        """Whether a run was begun in it."""
        return (self.path / RECORD).is_file()

    @property
    def has_batches(self) -> bool:
        """Whether Spark has planned a batch, or one is recorded."""
        planned = any((self.spark / "offsets").glob("[0-9]*"))
        return planned or (self.files.is_dir() and bool(names_of(LocalStore(self.files))))

    def record(self) -> RunRecord:
        """What the run was begun with.

        Raises:
            SnapshotError: it is not there, or none.
        """
        what = f"{RECORD} in {str(self.path)!r}"
        try:
            told = object_of((self.path / RECORD).read_bytes(), "the record")
            version = made_of(told.get("version"), int, "the record: version")
            if version > _VERSION:
                raise SnapshotError(
                    f"{what} has version {version}, and this specstream reads {_VERSION}: use the "
                    "version that has written it"
                )
            record = made_of(told, RunRecord, "the record")
            if record.checksum is not None and record != record.summed():
                raise Malformed("its checksum is wrong, so something in it has changed")
            return record
        except FileNotFoundError:
            raise SnapshotError(
                f"{what} is not there, and batches of a run are: put it back; or start the run "
                "with the options that it had, which writes it anew"
            ) from None
        except Malformed as error:
            raise SnapshotError(
                f"{what} cannot be used: {error}: put a copy of it back; or remove it, and start "
                "the run with the options that it had, which writes it anew"
            ) from None

    @property
    def trouble(self) -> str | None:
        """What is wrong with the record; None: nothing."""
        try:
            self.record()
        except SnapshotError as error:
            return str(error).removeprefix(f"{RECORD} in {str(self.path)!r} ")
        return None

    def check(self, settings: Mapping[str, str | None]) -> bool:
        """Whether a run with these settings may begin or go on here; True: it goes on, with
        options that it :meth:`changes`, or with those of this start where the record is gone.

        Raises:
            ConfigurationError: the directory is somebody else's.
            SnapshotError: the run in it was begun with other settings; names them.
        """
        for option, value in settings.items():
            try:
                (value or "").encode()
            except UnicodeEncodeError:  # no start could read it from the record again
                raise ConfigurationError(
                    f"--checkpoint {self.path}: {option} {value!r} is no UTF-8, as the record of a "
                    "run is: rename it"
                ) from None
        if self.has_batches and not self.is_there:
            warnings.warn(
                f"--checkpoint {self.path}: {RECORD} is not there; the options of this start are "
                "taken for those that the run was begun with",
                stacklevel=2,
            )
            return True
        if self.has_batches:
            changed = {option: settings[option] for option in self.changes(settings)}
            check_settings(
                json.dumps({**dict(self.record().settings), **changed}),
                settings,
                f"--checkpoint {self.path}",
                "a run goes on with the options that it has: give those, or a new "
                "--checkpoint and a new --output, to have the whole stream run in the new way",
            )
            return True
        if all((self.path / name).exists() for name in SPARKS):
            raise ConfigurationError(
                f"--checkpoint {self.path}: it is a checkpointLocation of Spark, of another query "
                "or of a run of an earlier version, whose operator state is gone: name a new or "
                "empty directory"
            )
        if self.path.is_dir() and not self.is_there:
            strange = [
                one.name
                for one in sorted(self.path.iterdir())
                if one.name != FILES and not one.name.startswith(".")
            ]
            if strange:
                raise ConfigurationError(
                    f"--checkpoint {self.path}: there is {strange[0]!r} in it, which is of no run: "
                    "name a new or empty directory"
                )
        return False

    def changes(self, settings: Mapping[str, str | None]) -> list[str]:
        """The options of a run that goes on which it has not had, or has no more, and may."""
        if not self.is_there:
            return []
        before = dict(self.record().settings)
        return [
            option
            for option in _LATER
            if before.get(option) != settings.get(option)
            and None in (before.get(option), settings.get(option))
        ]

    def writes(self, directory: Path | None) -> bool:
        """Whether a directory is one that the run, which goes on, has written to."""
        known = self.record().outputs if self.is_there else []
        return directory is not None and os.path.realpath(directory) in known

    def begin(self, settings: Mapping[str, str | None], outputs: Iterable[object]) -> None:
        """Makes it that of a new run; the caller holds the lock of :attr:`files`."""
        if self.has_batches:
            raise ConfigurationError(
                f"--checkpoint {self.path}: another run has begun in it meanwhile: give every run "
                "a directory of its own"
            )
        # Of a run that was begun here, or it was refused: what somebody else calls so stays. Killed
        # while it planned its first batch, Spark cannot go on from what it has left there.
        shutil.rmtree(self.spark, ignore_errors=True)
        self.note(settings, outputs)

    def note(self, settings: Mapping[str, str | None], outputs: Iterable[object]) -> None:
        """Records what a run is begun with, or goes on with; the lock is held likewise. Where it
        has written before stays with it: a rollback takes rows out of there as well."""
        before = self.record().outputs if self.has_batches and self.is_there else []
        written = dict.fromkeys([*(os.path.realpath(str(one)) for one in outputs), *before])
        record = RunRecord(list(settings.items()), list(written))
        said = json.dumps(asdict(record.summed()), indent=2).encode()
        LocalStore(self.path).write(RECORD, [said, b"\n"], _NO_BATCH)


def run_directory_of(checkpoint: str | os.PathLike[str]) -> RunDirectory | None:
    """The directory of a run, if it is one.

    >>> run_directory_of("nowhere") is None
    True
    """
    if is_uri(text := os.fspath(checkpoint)):
        return None
    found = RunDirectory(text)
    # Without its record it is one all the same, if no checkpoint file is in the directory itself.
    is_one = found.is_there or (found.has_batches and not names_of(LocalStore(text)))
    return found if is_one else None


def recorded_store(checkpoint: str | os.PathLike[str]) -> Store:
    """Where the files of a checkpoint are that is only read.

    Args:
        checkpoint: what ``foreach_batch(checkpoint=...)`` or ``specstream run --checkpoint`` got.

    Raises:
        ConfigurationError: it is neither a path nor a URI.

    >>> recorded_store("top").key.endswith("/top")
    True
    """
    store = store_of(checkpoint)
    found = run_directory_of(checkpoint)
    return store if found is None else LocalStore(found.files)

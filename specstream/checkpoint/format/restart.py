"""What a restart goes on from: the newest chain of checkpoint files that can be had.

A file that is damaged, missing, or of an abandoned history ends the chain before it; what was found
wrong is told, because the batches after it have to come again. A file that is whole and still does
not fit is an error: nobody can say what else has changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from specstream.checkpoint.format.chain import Chain
from specstream.checkpoint.format.checkpoint_files import CheckpointFiles, FileName
from specstream.checkpoint.format.file_format import CheckpointFile
from specstream.files.container import DamagedFile

__all__ = ["Newest", "newest_chain"]


@dataclass
class Newest:
    """What can be gone on from.

    Attributes:
        chain: the newest files that can be had; None: there are none.
        full: name of the file that the chain begins with.
        files: how many checkpoint files there are.
        newest: the last batch of which one is there, whole or not; None: none is.
        damaged: the files that cannot be used, each with the reason.
    """

    chain: Chain | None = None
    full: FileName | None = None
    files: int = 0
    newest: int | None = None
    damaged: list[str] = field(default_factory=list)


def newest_chain(files: CheckpointFiles) -> Newest:
    """Looks for it, from the newest full file on backwards.

    Raises:
        OSError: a file cannot be read; it may be whole at the next try.
        SnapshotError: a file is whole, and still cannot be used; names it.
    """
    names = files.names()
    newest = Newest(files=len(names), newest=names[-1].batch_id if names else None)
    for full in reversed([name for name in names if name.is_full]):
        try:
            found = files.read(full)
        except DamagedFile as error:
            newest.damaged.append(f"{full}, because {error}")
            continue
        newest.full, newest.chain = full, Chain(found, files.what(full))
        while (following := _following(files, newest.chain, newest.damaged)) is not None:
            name = FileName(following.about.batch_id, "increment")
            newest.chain.add(following, files.what(name))
        break
    return newest


def _following(files: CheckpointFiles, chain: Chain, damaged: list[str]) -> CheckpointFile | None:
    """The increment on a chain, if there is one that can be had."""
    at = chain.batch_id
    name = FileName(at + 1, "increment")
    try:
        following = files.read(name)
    except DamagedFile as error:
        damaged.append(f"{name}, because {error}")
        return None
    except FileNotFoundError:
        later = [name for name in files.names() if name.batch_id > at]
        if later and not later[0].is_full:
            damaged.append(f"{later[0]}, because the file of batch {at + 1} is not there")
        return None
    if not chain.is_built_on_by(following):
        damaged.append(f"{name}, because it builds on another file of batch {at}")
        return None
    return following

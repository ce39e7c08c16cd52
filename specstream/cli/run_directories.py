"""Where a run reads and writes, and which options each start of it has to be given again."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import specstream as ss

__all__ = ["directories_of", "leaving_none_empty", "settings_of", "sinks_in"]


def settings_of(
    operator: ss.Operator,
    arguments: Iterable[str],
    columns: Mapping[str, str | None],
    inputs: Mapping[str, Path],
    outputs: Mapping[str, Path | None],
    *,
    is_in_time: bool,
) -> dict[str, str | None]:
    """What each start of a run has to be given again, by option.

    The operator's own file is not in it: what it does may change, as in any query.
    """
    names = ("--input" if not name else f"--input {name}" for name in inputs)
    return {
        "operator": operator.name,
        "--arg": " ".join(sorted(arguments)) or None,
        **columns,
        **dict(zip(names, map(os.path.realpath, inputs.values()), strict=True)),
        **{
            option: None if path is None else os.path.realpath(path)
            for option, path in outputs.items()
        },
        "watermark": "given" if is_in_time else None,
    }


def directories_of(operator: ss.Operator, output: Path) -> dict[str, Path]:
    """Where rows go, by sink; of an operator, or of a pipeline with one, under an empty name."""
    sinks = operator.sinks
    return {name: output / name for name in sinks} if len(sinks) > 1 else {"": output}


@contextmanager
def leaving_none_empty(directories: Iterable[Path]) -> Iterator[None]:
    """What is refused, or fails before the first batch, leaves no directories behind."""
    new = [one for one in dict.fromkeys(directories) if not one.exists()]
    try:
        yield
    except BaseException:
        for one in reversed(new):  # those inside first
            with suppress(OSError):
                one.rmdir()
        raise


def sinks_in(directories: dict[str, Path]) -> Any:
    """What writes them there."""
    found = {name: ss.sinks.parquet_sink(directory) for name, directory in directories.items()}
    return found.get("", found)

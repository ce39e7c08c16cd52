"""What goes wrong in a command, as a message and an exit status."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

import click

from specstream.columns.failed_events import user_traceback
from specstream.errors import SpecstreamError

__all__ = ["needs", "reported_errors"]


@contextmanager
def reported_errors() -> Iterator[None]:
    """Turns what a command raises into a message and an exit status."""
    try:
        yield
    except click.ClickException:
        raise
    except KeyboardInterrupt:
        click.echo("interrupted", err=True)
        sys.exit(130)
    except Exception as error:
        if isinstance(error, OSError) and _writer_of(error) in ("click", "rich"):
            raise click.ClickException(
                f"standard output: {error.strerror}: the report could not be written there; "
                "redirect it elsewhere"
            ) from error
        ours = isinstance(error, SpecstreamError | ImportError) or _is_of_our_file(error)
        if ours and not hasattr(error, "specstream_partial"):
            raise click.ClickException(str(error)) from error
        # Of the user's own error, the user's own lines; of a defect of ours, all of them.
        is_users = hasattr(error, "specstream_partial") and _packages(error)[-1] != "specstream"
        text = user_traceback(error) if is_users else traceback.format_exc()
        click.echo(text, err=True, nl=False)
        raise click.ClickException(f"{type(error).__name__}: {error}") from error


def _writer_of(error: OSError) -> str:
    """The package whose code was at work; those that write the report write nothing else."""
    return _packages(error)[-1]


def _packages(error: Exception) -> list[str]:
    """Those whose code was at work, from the outermost call on."""
    walked = traceback.walk_tb(error.__traceback__)
    return [str(frame.f_globals.get("__name__", "")).partition(".")[0] for frame, _ in walked]


def _is_of_our_file(error: Exception) -> bool:
    """Whether a file that specstream reads or writes is in the way, and not one of the user's code.

    Such an error has the file's name, and its traceback would lead into specstream only.
    """
    if not isinstance(error, OSError) or error.filename is None:
        return False
    *_, last = (one for one in _packages(error) if one not in sys.stdlib_module_names)
    return last == "specstream"


def needs(extra: str, *modules: str) -> None:
    """Says which extra to install when a module is missing.

    Raises:
        click.ClickException: one of ``modules`` is not installed.
    """
    for module in modules:
        if importlib.util.find_spec(module) is None:
            raise click.ClickException(
                f'this command needs {module}: pip install "specstream[{extra}]"'
            )

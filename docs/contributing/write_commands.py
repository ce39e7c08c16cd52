"""Writes the reference of the command line: what ``--help`` says of each command.

Run it after a change of a command or an option; a test compares the page with the commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from specstream.cli import main

PAGE = Path(__file__).parents[1] / "reference" / "command-line.md"
WIDTH = 100

HEAD = """# Command line

`pip install "specstream[cli]"`, and `[spark]` for `run` and `demo`. What each command is for:
[the catalogue](../catalogue.md#command-line). Results go to stdout, progress and messages to
stderr. Exit status: 0; 1 for what went wrong while running, or was found to be wrong; 2 for a
command that cannot be understood; 130 for Ctrl-C, 143 for SIGTERM.

The page is what `--help` says, written by `docs/contributing/write_commands.py`.
"""


def commands(group: click.Group, name: str) -> Iterator[tuple[str, click.Command]]:
    """The commands of a group and of those in it, by what is typed."""
    for word in sorted(group.commands):
        command, typed = group.commands[word], f"{name} {word}"
        if isinstance(command, click.Group):
            yield from commands(command, typed)
        else:
            yield typed, command


def page() -> str:
    """The text of the page."""
    parts = [HEAD]
    for typed, command in commands(main, "specstream"):
        # A context of its own: no parent's name stands before the one that is given.
        context = click.Context(command, info_name=typed, terminal_width=WIDTH)
        context.help_option_names = ["-h", "--help"]
        parts.append(f"\n## `{typed}`\n\n```text\n{command.get_help(context)}\n```\n")
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page())

"""The command line, called in this process."""

from __future__ import annotations

from click.testing import CliRunner, Result

from specstream.cli import main


def invoke(
    *arguments: object, env: dict[str, str] | None = None, input: str | None = None
) -> Result:
    """What ``specstream`` with these arguments writes, and its status."""
    return CliRunner().invoke(main, list(map(str, arguments)), env=env, input=input)

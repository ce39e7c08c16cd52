"""The reference of the command line says what the commands say of themselves."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from support.commands import invoke

WRITER = Path(__file__).parents[2] / "docs" / "contributing" / "write_commands.py"


def test_the_page_is_what_help_says() -> None:
    spec = importlib.util.spec_from_file_location("write_commands", WRITER)
    assert spec is not None
    assert spec.loader is not None
    writer = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(writer)
    page = writer.PAGE.read_text()
    assert page == writer.page(), f"run .venv/bin/python {WRITER.name}"
    for option in ("--to N", "--keep-batches K", "--parquet FILE"):
        assert option in page
    assert "--dry-run" in invoke("checkpoint", "rollback", "--help").stdout

"""The cheat sheet has the whole interface, and its PDF is one sheet of A4, drawn from the page."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

import specstream as ss
from specstream.cli import main

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "cheat-sheet.md").read_text()


def section(heading: str) -> str:
    (found,) = re.findall(rf"^## [^\n]*\[{heading}\].*?(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE)
    return str(found)


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    path = ROOT / "docs" / "contributing" / "draw_cheat_sheet.py"
    spec = importlib.util.spec_from_file_location("draw_cheat_sheet", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_it_has_every_command() -> None:
    typed = " ".join(re.findall(r"^\| (.+?) \|", section("Commands"), re.MULTILINE))
    assert set(main.commands) == set(re.findall(r"`(\w+)", typed)) - {"specstream"}


@pytest.mark.parametrize(("heading", "module"), [("Sources", ss.sources), ("Sinks", ss.sinks)])
def test_it_has_every_source_and_sink(heading: str, module: ModuleType) -> None:
    functions = {name for name in module.__all__ if name[0].islower()}
    # `arun` is `run` in an event loop.
    assert functions - {"arun"} == {name for name in functions if name in section(heading)}


@pytest.mark.parametrize("container", ["dict", "set", "list", "deque", "priority queue"])
def test_it_has_every_method_of_a_container(container: str) -> None:
    """Those of the reference, which is written from what the compiler has."""
    language = (ROOT / "docs" / "reference" / "language.md").read_text()
    _, _, after = language.partition(f"\nA {container}:\n")
    table = after.strip().split("\n\n")[0]
    methods = set(re.findall(r"^\| `(\w+)\(", table, re.MULTILINE))
    assert methods
    rows = dict(re.findall(r"^\| ([\w ]+) \| (.+) \|$", section("Containers"), re.MULTILINE))
    text = rows["all"] + rows[container] + (rows["list"] if container == "deque" else "")
    named = set(re.findall(r"\w+", text))
    assert {name for name in methods - named if not name.endswith("_update")} == set()


def test_the_pdf_is_drawn_from_the_page(drawing: ModuleType) -> None:
    sheet = drawing.SHEET.read_bytes()
    assert drawing.digest().encode() in sheet, "run make cheat-sheet"


def test_it_is_one_sheet_of_a4(drawing: ModuleType, tmp_path: Path) -> None:
    for sheet in (drawing.SHEET, tmp_path / "sheet.pdf"):
        if sheet != drawing.SHEET:
            drawing.save(sheet)
        content = sheet.read_bytes()
        assert content.count(b"/Type /Page\n") + content.count(b"/Type /Page ") == 1
        (box,) = re.findall(rb"/MediaBox \[([^]]*)\]", content)
        _, _, width, height = map(float, box.split())
        assert (round(width), round(height)) == (842, 595)


def test_a_page_that_does_not_fit_is_refused(
    drawing: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    longer = tmp_path / "longer.md"
    rows = "".join(f"| `call{number}()` | what it does |\n" for number in range(80))
    longer.write_text(PAGE + "\n## More\n\n| call | meaning |\n| --- | --- |\n" + rows)
    monkeypatch.setattr(drawing, "PAGE", longer)
    with pytest.raises(ValueError, match="'More' no longer fits on the sheet"):
        drawing.draw()
    longer.write_text(PAGE.replace("| `event.price` |", f"| `{'x' * 200}` |"))
    with pytest.raises(ValueError, match="does not fit into a column"):
        drawing.draw()

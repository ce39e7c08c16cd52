"""Draws rooms.svg, and fills in what files.md lists of rooms and files.

    python docs/contributing/draw_packages.py            writes both
    python docs/contributing/draw_packages.py --check    says what is not as it would be written

The order of the rooms is the layer contract of pyproject.toml, the way of a batch a paragraph of
architecture.md, and what a file is about its own first sentence. So picture and lists follow from
what lint and readers see anyway.
"""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path
from xml.sax.saxutils import escape

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
PAGE = HERE / "architecture.md"
FILES = HERE / "files.md"
PICTURE = HERE / "rooms.svg"
PACKAGE = ROOT / "specstream"
NATIVE = ROOT / "stm_native" / "src"
WAY = re.compile(r"<!-- way -->\n(.*?)<!-- end -->", re.DOTALL)
LISTED = re.compile(r"(<!-- (rooms|runtime) -->\n).*?(<!-- end -->)", re.DOTALL)
UNMET = "#f4f5f7"  # the colour of a room that a batch does not go through
FILLS = ("#fde0b6", "#cfe6c8", "#c9dcf2", "#f6cdd5", "#ded0ee", "#fbf0a8")
FILE = re.compile(r"`((?:[a-z_]+/)*[a-z_0-9]+\.(?:py|c|h))`")


def layers() -> list[list[str]]:
    """The rooms from the top to the bottom; those side by side do not use each other."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layered = next(one for one in contracts["contracts"] if one["type"] == "layers")
    return [[room.strip() for room in layer.split("|")] for layer in layered["layers"]]


def files_of(room: str) -> list[Path]:
    """The modules of a room; what says something, so no bare package file."""
    if not (PACKAGE / room).is_dir():
        return [PACKAGE / f"{room}.py"]
    return sorted(p for p in (PACKAGE / room).rglob("*.py") if not p.name.startswith("__"))


def about(path: Path) -> str:
    """The first sentence of a file."""
    text = path.read_text()
    if path.suffix == ".py":
        head = ast.get_docstring(ast.parse(text)) or ""
    else:
        head = re.sub(r"^ ?\*+ ?", "", text.removeprefix("/*").split("*/")[0], flags=re.MULTILINE)
    head = " ".join(head.strip().split("\n\n")[0].split())
    return re.split(r"(?<=\w)\.(?: |$)", re.sub(r":\w+:`~?([^`]+)`", r"`\1`", head))[0]


def way() -> list[str]:
    """The files that the page says a batch goes through, in the order of its paragraph."""
    found = WAY.search(PAGE.read_text())
    return list(dict.fromkeys(FILE.findall(found[1]))) if found else []


def list_of_rooms() -> str:
    lines = []
    for layer in reversed(layers()):
        for room in layer:
            package = PACKAGE / room / "__init__.py"
            lines.append(f"**`{room}`**" + (f": {about(package)}\n" if package.exists() else "\n"))
            lines.append("| file | its idea |\n| --- | --- |")
            lines += [
                f"| `{path.relative_to(PACKAGE)}` | {about(path).replace('|', chr(92) + '|')} |"
                for path in files_of(room)
            ]
            lines.append("")
    return "\n".join(lines)


def list_of_runtime() -> str:
    rows = [
        f"| `{path.relative_to(NATIVE)}` | {about(path)} |"
        for path in sorted(NATIVE.glob("*/*"))
        if path.suffix == ".c" or (path.suffix == ".h" and not path.with_suffix(".c").exists())
    ]
    return "\n".join(["| file | its idea |", "| --- | --- |", *rows, ""])


def files() -> str:
    """The page of all files with its lists as they are to be."""
    lists = {"rooms": list_of_rooms, "runtime": list_of_runtime}
    return LISTED.sub(lambda found: found[1] + lists[found[2]]() + found[3], FILES.read_text())


def room_of(name: str, runtime: str) -> str:
    """The room that a file of the way stands in."""
    return name.split("/")[0] if name.endswith(".py") else runtime


def box(x: float, y: float, width: float, height: float, text: str, fill: str) -> str:
    return (
        f'<rect x="{x:.0f}" y="{y:.0f}" width="{width:.0f}" height="{height:.0f}" rx="4" '
        f'fill="{fill}" stroke="#5f6b7a"/>'
        f'<text x="{x + width / 2:.0f}" y="{y + height / 2 + 5:.0f}" text-anchor="middle">'
        f"{escape(text)}</text>"
    )


def picture() -> str:
    """At the left the rooms from the top to the bottom, at the right the way of a batch."""
    tall, wide, stop = 34, 300, 46
    rows = [*layers(), ["_native (stm_native/src)"]]
    names = way()
    height = 70 + max(len(rows) * tall, len(names) * stop)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 760 {height}" '
        'font-family="sans-serif" font-size="13">',
        f'<rect width="760" height="{height}" fill="white"/>',
        '<text x="20" y="28" font-weight="bold">Rooms: each uses only those below it</text>',
        '<text x="400" y="28" font-weight="bold">The way of a batch, coloured by room</text>',
    ]
    met = list(dict.fromkeys(room_of(name, rows[-1][0]) for name in names))
    colours = dict(zip(met, FILLS, strict=False))
    for number, row in enumerate(rows):
        y = 45 + number * tall
        part = wide / len(row)
        for column, room in enumerate(row):
            x = 20 + column * part
            out.append(box(x, y, part - 6, tall - 6, room, colours.get(room, UNMET)))
    for number, name in enumerate(names):
        y = 45 + number * stop
        if number:
            out.append(f'<path d="M560 {y - 16} v13 m-4 -6 l4 6 l4 -6" fill="none" stroke="#333"/>')
        out.append(box(420, y, 300, 30, name, colours[room_of(name, rows[-1][0])]))
    return "\n".join([*out, "</svg>", ""])


def differences() -> list[str]:
    """What is not as it would be written."""
    wrong = [FILES.name] if files() != FILES.read_text() else []
    if not PICTURE.exists() or picture() != PICTURE.read_text():
        wrong.append(PICTURE.name)
    return wrong


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(", ".join(differences()) or 0)
    FILES.write_text(files())
    PICTURE.write_text(picture())

"""Random texts, well-formed and broken, against Python's own parsers and the rules written anew."""

from __future__ import annotations

import json
import math
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from typing import Any

import pytest

import specstream as ss

pytest.importorskip("lxml", reason='pip install "specstream[xml]"')
pytest.importorskip("msgspec", reason='pip install "specstream[json]"')
pytest.importorskip("jmespath", reason='pip install "specstream[json]"')

COLUMNS: dict[str, Any] = {
    "i": ss.nullable(int),
    "x": ss.nullable(float),
    "s": ss.nullable(str),
    "b": ss.nullable(bool),
}
RIGHT = {"i": 5, "x": 2.5, "s": "t&", "b": True}
OTHERS = [
    1,
    -7,
    2**63,
    2**63 - 1,
    2**53 + 1,
    -0.0,
    1e300,
    "a",
    'é"\\',
    "",
    None,
    [],
    {},
    "😀",
    "\n",
]
PIECES = [
    *(b"<", b">", b"&", b"{", b"}", b"[", b"]", b'"', b",", b":", b"0", b"\\", b"\xc3", b"\xff"),
    *(b"\0", b"-", b"e9", b"\\ud800", b"]]>", b"<!--", b"&lt;", b"/", b"nul", b"xmlns='u'", b"NaN"),
]
WHOLE = re.compile(r"[+-]?[0-9]+")
REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Refused(Exception):
    """A text that has no rows."""


def checked(kind: str, value: Any) -> Any:
    """A value as its column has it."""
    fits = {
        "i": lambda: type(value) is int and -(2**63) <= value < 2**63,
        "x": lambda: (
            (type(value) is int and abs(value) <= 2**53)
            or (type(value) is float and not math.isinf(value))
        ),
        "s": lambda: type(value) is str,
        "b": lambda: type(value) is bool,
    }
    if value is not None and not fits[kind]():
        raise Refused
    return float(value) if kind == "x" and value is not None else value


def of_json(text: bytes) -> list[tuple[Any, ...]]:
    def constant(name: str) -> Any:
        raise Refused

    try:
        found = json.loads(text.decode(), parse_constant=constant)
        json.dumps(found, ensure_ascii=False).encode()  # no half of a surrogate pair
    except ValueError:
        raise Refused from None
    rows = found.get("o") if isinstance(found, dict) else None
    rows = [] if rows is None else rows if isinstance(rows, list) else [rows]
    if not all(isinstance(row, dict) for row in rows):
        raise Refused
    return [tuple(checked(kind, row.get(kind)) for kind in COLUMNS) for row in rows]


def of_xml(text: bytes) -> list[tuple[Any, ...]]:
    try:
        root = ElementTree.fromstring(text.decode())
    except (ValueError, ElementTree.ParseError):
        raise Refused from None
    rows = []
    for node in root.iter("o"):
        row = []
        for kind in COLUMNS:
            found = [value for name, value in node.items() if name == kind]
            found += ["".join(child.itertext()) for child in node.findall(kind)]
            if len(found) > 1:
                raise Refused
            row.append(checked(kind, read(kind, found[0])) if found else None)
        rows.append(tuple(row))
    return rows


def read(kind: str, text: str) -> Any:
    """What a text of XML is, for a column of that kind."""
    trimmed = text.strip(" \t\r\n")
    if kind == "s":
        return text
    if kind == "b":
        return {"true": True, "1": True, "false": False, "0": False}.get(trimmed, text)
    if WHOLE.fullmatch(trimmed):
        return int(trimmed)
    return float(trimmed) if kind == "x" and REAL.fullmatch(trimmed) else text


def json_text(rng: random.Random) -> bytes:
    rows = [
        {
            kind: rng.choice(OTHERS) if rng.random() < 0.2 else RIGHT[kind]
            for kind in COLUMNS
            if rng.random() < 0.8
        }
        for _ in range(rng.randrange(4))
    ]
    found = {"o": rng.choice([rows, rows, rows, rng.choice(OTHERS)]), "z": rng.choice(OTHERS)}
    return json.dumps(found, ensure_ascii=rng.random() < 0.5, indent=rng.choice([None, 1])).encode()


def xml_text(rng: random.Random) -> bytes:
    rows = []
    for _ in range(rng.randrange(4)):
        attributes, children = "", ""
        for kind in COLUMNS:
            value = str(rng.choice(OTHERS)) if rng.random() < 0.2 else str(RIGHT[kind]).lower()
            value = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
            inside = rng.choice(["", "", "", "<!--c-->", "<q>z</q>", "<![CDATA[<]]>", "<?p?>"])
            if rng.random() < 0.4:
                attributes += f' {kind}="{value}"'
            elif rng.random() < 0.7:
                children += f"<{kind}>{value}{inside}</{kind}>"
        rows.append(f"<o{attributes}>{children}</o>")
    return "\n".join(["<r>", *rows, "</r>"]).encode()


def broken(text: bytes, rng: random.Random) -> bytes:
    """The text, half of the time with a few bytes changed."""
    made = bytearray(text)
    for _ in range(rng.choice([0, 0, 0, 1, 1, 3])):
        at = rng.randrange(len(made) + 1)
        made[at : at + rng.randrange(3)] = rng.choice([b"", *PIECES])
    return bytes(made)


@pytest.mark.parametrize(
    ("function", "model", "text"),
    [
        (ss.formats.json("o", **COLUMNS), of_json, json_text),
        (ss.formats.xml("//o", **COLUMNS), of_xml, xml_text),
    ],
    ids=["json", "xml"],
)
def test_random_texts_have_the_rows_of_the_rules(
    function: Any,
    model: Callable[[bytes], list[tuple[Any, ...]]],
    text: Callable[[random.Random], bytes],
) -> None:
    rng = random.Random(3)
    accepted = 0
    for _ in range(1500):
        given = broken(text(rng), rng)
        try:
            expected: Any = model(given)
        except Refused:
            expected = None
        forms: list[Any] = [given]
        if "\ufffd" not in given.decode(errors="replace"):
            forms.append(given.decode())
        for form in forms:
            try:
                found: Any = list(map(tuple, function(form)))
            except ValueError:
                found = None
            assert repr(found) == repr(expected), given
        accepted += expected is not None
    assert 300 < accepted < 1200

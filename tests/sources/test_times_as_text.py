"""Times that messages have as text: exact in the unit of the column, or set aside."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any

import pytest

import specstream as ss

NOON = 1_709_208_000  # 2024-02-29T12:00:00Z
DIGITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
FRACTIONS = ["", ".0", ".5", ".25", ".000", ".120", ".123", ".1230", ".123000", ".123456"]
FRACTIONS += [".1234560", ".123456000", ".123456789", ".000000000", ".000000001"]
ZONES = {"": 0, "Z": 0, "z": 0, "+00:00": 0, "+05:30": -19_800, "-0100": 3_600}


def read(texts: list[str], type_: Any) -> tuple[list[int], list[str]]:
    @ss.operator(event={"t": type_}, emits={"t": int})
    def show(event: Any, emit: Any) -> None:
        emit(event.t)

    rows: list[int] = []
    aside: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"".join(json.dumps({"t": t}).encode() + b"\n" for t in texts))

        threading.Thread(target=send, daemon=True).start()
        with ss.Engine(show, rejected_rows="side") as engine:
            ss.sources.run(
                engine,
                ss.sources.tcp("127.0.0.1", server.getsockname()[1]),
                to=lambda table, _: rows.extend(table["t"].to_pylist()),
                rejected_rows_to=lambda table, _: aside.extend(table["error"].to_pylist()),
            )
    return rows, aside


@pytest.mark.parametrize("unit", DIGITS)
def test_zeros_beyond_the_unit_are_no_rounding(unit: str) -> None:
    expected, refused, texts = [], [], []
    for fraction in FRACTIONS:
        for zone, seconds in ZONES.items():
            texts.append(
                f"2024-02-29{'t' if zone == 'z' else 'T' if zone else ' '}12:00:00{fraction}{zone}"
            )
            whole, rest = divmod(int(fraction[1:].ljust(9, "0")), 10 ** (9 - DIGITS[unit]))
            if rest:
                refused.append(texts[-1])
            else:
                expected.append((NOON + seconds) * 10 ** DIGITS[unit] + whole)
    rows, aside = read(texts, ss.timestamp(unit, "UTC"))
    assert rows == expected
    assert len(aside) == len(refused)
    for told, text in zip(aside, refused, strict=True):
        assert repr(text) in told
        assert f"to the {unit}, or a whole number of {unit}" in told

"""Messages of which ``decode=`` makes several events: each beside the columns of its message."""

from __future__ import annotations

import pyarrow as pa
import pytest

import specstream as ss
from specstream.sources.decoding import Decoder
from specstream.sources.source import Wanted


@ss.operator(event={"price": float, "offset": int}, emits={})
def priced(event: object, emit: object) -> None:
    pass


def decoder(sets_aside: bool) -> Decoder:
    wanted = Wanted("'priced'", priced, dict(priced.event), {}, sets_aside, False, 100)

    def prices(content: bytes) -> list[dict[str, object]]:
        return [{"price": float(one)} if one != b"?" else {} for one in content.split()]

    return Decoder(wanted, own=("offset",), decode=prices)


def test_columns_of_a_message_stand_beside_each_of_its_events() -> None:
    own = {"offset": pa.array([7, 8, 9])}
    table = decoder(True).messages([b"1 2", b"", b"3 ?"], own, str)
    assert table["offset"].to_pylist() == [7, 7, 9, 9]
    assert table["price"].to_pylist() == [1.0, 2.0, 3.0, None]
    assert table["raw"].to_pylist() == [None, None, None, b"3 ?"]
    assert decoder(True).messages([b""], {"offset": pa.array([7])}, str).num_rows == 0


def test_an_event_that_is_wrong_is_placed_by_its_message() -> None:
    own = {"offset": pa.array([7, 8])}
    with pytest.raises(ss.InputError, match="'priced': message 1: column 'price' is missing"):
        decoder(False).messages([b"1 2", b"3 ?"], own, lambda at: f"message {at}")

"""What compiled code and the C runtime have in common without one calling the other."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import specstream as ss
from specstream._native import ffi, lib
from specstream.compiler.entry_points import compile_entry
from stm_native.build import ABI, HEADERS, ROOT, abi

WORDS = 1 << 14
SLOTS = 1 << 13
EPOCH = 6 << 32


class Words(ss.State):
    x = ss.array(int, WORDS)


@ss.operator(state=Words, event={"at": int}, emits={"nothing": int})
def store(state, event, emit):  # type: ignore[no-untyped-def]
    state.x[event.at] = 7


@pytest.mark.parametrize("at", [0, 5, 2047, 2048, 2049, 6149, 8191, 8192, WORDS - 1])
def test_compiled_code_and_c_look_for_a_word_at_the_same_place_of_the_index(at: int) -> None:
    entry = compile_entry(store.program, store.layout, store.event, store.emits, "transactional")
    state = np.zeros(WORDS, np.uint64)
    slots, redo = ffi.new("struct ss_slot[]", SLOTS), ffi.new("struct ss_write[4]")
    reads, undo = ffi.new("struct ss_read[4]"), ffi.new("struct ss_undo[4]")
    rows = ffi.new("uint64_t[4]")
    # Timestamp, source and sequence come from elsewhere; the event has one column of its own.
    column = np.array([at], np.int64)
    columns = ffi.new("void *[4]", [ffi.cast("void *", column.ctypes.data)] * 4)
    run = ffi.new("struct ss_run *")
    run.state = ffi.cast("uint64_t *", state.ctypes.data)
    run.columns = columns
    run.emit_top = run.emit_mark = rows
    run.emit_end = rows + 4
    run.undo_top = run.undo_base = undo
    run.undo_end = undo + 4
    run.read_top, run.read_end = reads, reads + 4
    run.slots, run.slot_mask = slots, SLOTS - 1
    run.epoch_key = EPOCH
    run.redo, run.redo_limit = redo, 4
    run.speculative = 1
    following, fault = ffi.new("int64_t *"), ffi.new("void **")
    assert ffi.cast("ss_entry", entry.address)(following, fault, run, 0, 1) == 0
    assert following[0] == 1
    assert run.redo_count == 1
    word = redo[0].word
    assert redo[0].value == 7
    assert slots[lib.ss_index_hash(word) & (SLOTS - 1)].key == EPOCH | word


def test_the_number_of_the_abi_is_that_of_the_headers() -> None:
    headers = {name: (ROOT / "include" / name).read_bytes() for name in HEADERS}
    assert lib.SS_ABI == ABI == abi(headers)
    assert set(HEADERS) == {path.name for path in Path(ROOT, "include").glob("*.h")}
    for name, text in headers.items():
        assert abi(headers | {name: text + b"\n"}) != ABI


def test_the_page_about_evidence_names_every_stepped_test() -> None:
    page = (ROOT.parent / "docs/research/evidence.md").read_text()
    programs = sorted(path.name for path in (ROOT / "tests").glob("test_*.c"))
    assert len(programs) > 15
    assert [name for name in programs if f"| `{name}` |" not in page] == []

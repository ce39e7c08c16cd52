"""Machine code that tells a sanitizer of its accesses."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from numba.core.codegen import CPUCodeLibrary
from support.stress import instrumented

import specstream as ss

CODE = """\
define i64 @f(ptr %a, ptr %b) {
  %x = load i64, ptr %a, align 8, !noalias !0
  store i16 %y, ptr %b, align 2
  %z = load atomic i64, ptr %a monotonic, align 8
  store atomic i64 %z, ptr %b release, align 8
  call void @llvm.memset.p0.i64(ptr nonnull align 8 %a, i8 0, i64 24, i1 false)
"""


def test_machine_code_tells_its_accesses() -> None:
    counted: Counter[str] = Counter()
    told = instrumented.instrumented(CODE, "thread", counted).split("\n")
    assert counted == {"read": 1, "write": 1, "atomic": 2, "block": 1}
    assert told[1] == "  call void @__tsan_read8(ptr %a)"
    assert told[3] == "  call void @__tsan_write2(ptr %b)"
    assert told[5] == "  %z = call i64 @__tsan_atomic64_load(ptr %a, i32 0)"
    assert told[6] == "  call void @__tsan_atomic64_store(ptr %b, i64 %z, i32 3)"
    assert told[7] == "  call void @__tsan_write_range(ptr %a, i64 24)"
    told = instrumented.instrumented(CODE, "address").split("\n")
    assert [line for line in told if "__asan" in line and "declare" not in line] == [
        "  call void @__asan_load8(ptr %a)",
        "  call void @__asan_store2(ptr %b)",
        "  call void @__asan_load8(ptr %a)",
        "  call void @__asan_store8(ptr %b)",
        "  call void @__asan_storeN(ptr %a, i64 24)",
    ]


def test_what_is_compiled_has_no_access_that_is_not_told() -> None:
    """But Numba's own atomics, which count references."""
    counted: Counter[str] = Counter()
    before = CPUCodeLibrary._finalize_final_module
    texts: list[str] = []

    def noted(self: Any) -> None:
        texts.append(str(self._final_module))
        before(self)

    class State(ss.State):
        cells = ss.array(int, 8)
        small = ss.array(bool, 8)
        keyed = ss.dict(int, float)

    @ss.operator(state=State, event={"x": int}, emits={"x": int})
    def fresh(state, event, emit):  # type: ignore[no-untyped-def]
        state.cells[event.x % 8] += 1
        state.small[event.x % 8] = True
        state.keyed[event.x] = 0.5
        emit(state.cells[0])

    CPUCodeLibrary._finalize_final_module = noted
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SPECSTREAM_CACHE_DIR", "")
            with ss.Engine(fresh, threads=2, horizon=4, chunk=1) as engine:
                engine.process({"x": [1, 2]})
    finally:
        CPUCodeLibrary._finalize_final_module = before
    for text in texts:
        instrumented.instrumented(text, "thread", counted)
    assert counted["left"] == 0
    assert min(counted[what] for what in ("read", "write", "atomic")) > 10

"""Machine code that tells a sanitizer what it reads and writes, as instrumented C does.

Numba has no way to run LLVM's own passes for it. So a library's text, as LLVM has optimised it,
gets a call before each access; the functions are those of the sanitizer's runtime, which is loaded
before Python. Atomic accesses become calls as well for ThreadSanitizer, which has to order them.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import llvmlite.binding as llvm
from numba.core.codegen import CPUCodeLibrary

from support.stress.sanitizers import Sanitizer

__all__ = ["install", "instrumented"]

_ADDRESS = r"([%@][\w.$\-]+|[%@]\"[^\"]+\"|getelementptr [^()]*\([^()]*\))"
_LOAD = re.compile(
    rf"^  (?P<to>%\S+) = load (?P<atomic>atomic )?(?P<type>\S+|<[^>]+>), ptr (?P<at>{_ADDRESS})"
)
_STORE = re.compile(
    rf"^  store (?P<atomic>atomic )?(?P<type>i\d+|double|float|ptr|<[^>]+>) "
    rf"(?P<value>.+), ptr (?P<at>{_ADDRESS})"
)
_COPY = re.compile(
    rf"call void @llvm\.mem(?P<how>cpy|move)[^(]*\(ptr [^%@,]*(?P<to>{_ADDRESS}), "
    rf"ptr [^%@,]*(?P<at>{_ADDRESS}), i64 (?P<bytes>[^,]+),"
)
_FILL = re.compile(
    rf"call void @llvm\.memset[^(]*\(ptr [^%@,]*(?P<to>{_ADDRESS}), i8 [^,]+, "
    r"i64 (?P<bytes>[^,]+),"
)
_LOCAL = re.compile(rf"^  (?P<to>{_ADDRESS}) = alloca ")
_ORDERS = {"unordered": 0, "monotonic": 0, "acquire": 2, "release": 3, "seq_cst": 5}
_WORD = {"ptr": 8, "double": 8, "float": 4}


def _bytes(type_: str) -> int:
    vector = re.fullmatch(r"<(\d+) x (\S+)>", type_)
    if vector:
        return int(vector[1]) * _bytes(vector[2])
    return _WORD[type_] if type_ in _WORD else (int(type_[1:]) + 7) // 8


def _told(sanitizer: Sanitizer, what: str, at: str, size: int | str) -> str:
    """The call that says what the next instruction does."""
    if sanitizer == "thread":
        if size in (1, 2, 4, 8, 16):
            return f"  call void @__tsan_{what}{size}(ptr {at})"
        return f"  call void @__tsan_{what}_range(ptr {at}, i64 {size})"
    what = {"read": "load", "write": "store"}[what]
    if size in (1, 2, 4, 8, 16):
        return f"  call void @__asan_{what}{size}(ptr {at})"
    return f"  call void @__asan_{what}N(ptr {at}, i64 {size})"


# Bytes behind each access that are told as well, where a defect is planted.
BEYOND = 256


def instrumented(
    text: str,
    sanitizer: Sanitizer,
    counted: Counter[str] | None = None,
    planted: bool = False,
) -> str:
    """The text of a module with its accesses told.

    Args:
        text: as LLVM prints it.
        sanitizer: whom they are told.
        counted: what was told; under ``"local"`` accesses to a function's own variables, which
            nobody has to be told of, and under ``"left"`` others that were not: of Numba's structs.
        planted: tell what has to be reported: atomic accesses as if they were none, or more bytes
            than there are.
    """
    counted = Counter() if counted is None else counted
    lines: list[str] = []
    own: set[str] = set()
    for line in text.split("\n"):
        access = _LOAD.match(line) or _STORE.match(line)
        if line.startswith("define "):
            own.clear()
        elif local := _LOCAL.match(line):
            own.add(local["to"])
        elif access and access["at"] in own:
            counted["local"] += 1
        elif access:
            what = "write" if line.startswith("  store") else "read"
            size = _bytes(access["type"])
            if access["atomic"]:
                counted["atomic"] += 1
                if sanitizer == "thread" and not planted:
                    lines.append(_atomic(line, access, size))
                    continue
            counted[what] += 1
            more = BEYOND if planted and sanitizer == "address" else 0
            lines.append(_told(sanitizer, what, access["at"], size + more))
        elif copied := _COPY.search(line) or _FILL.search(line):
            counted["block"] += 1
            lines.append(_told(sanitizer, "write", copied["to"], copied["bytes"]))
            if "at" in copied.groupdict():
                lines.append(_told(sanitizer, "read", copied["at"], copied["bytes"]))
        elif re.match(r"^  (%\S+ = load|store) ", line):
            counted["left"] += 1
        lines.append(line)
    names = set(re.findall(r"call \S+ @(__[at]san_\w+)\(", "\n".join(lines)))
    return "\n".join([*lines, *(_declaration(name) for name in sorted(names)), ""])


def _atomic(line: str, access: re.Match[str], size: int) -> str:
    order = next(_ORDERS[word] for word in line[access.end() :].replace(",", "").split())
    called, at, of = f"@__tsan_atomic{8 * size}", access["at"], access["type"]
    if not of.startswith("i"):
        raise ValueError(f"no call for {line}")
    if "value" in access.groupdict():
        return f"  call void {called}_store(ptr {at}, {of} {access['value']}, i32 {order})"
    return f"  {access['to']} = call {of} {called}_load(ptr {at}, i32 {order})"


def _declaration(name: str) -> str:
    atomic = re.fullmatch(r"__tsan_atomic(\d+)_(load|store)", name)
    if atomic is None:
        more = ", i64" if name.endswith(("_range", "N")) else ""
        return f"declare void @{name}(ptr{more})"
    of = f"i{atomic[1]}"
    if atomic[2] == "load":
        return f"declare {of} @{name}(ptr, i32)"
    return f"declare void @{name}(ptr, {of}, i32)"


def install(sanitizer: Sanitizer, planted: bool = False) -> Counter[str]:
    """From now on machine code of this process tells ``sanitizer``; what it tells is counted."""
    counted: Counter[str] = Counter()
    finalize = CPUCodeLibrary._finalize_final_module

    def finalized(self: Any) -> None:
        if self.name.startswith("__"):  # Numba's own helpers
            finalize(self)
            return
        name, plain = self._final_module.name, self._final_module.clone()
        self._final_module = llvm.parse_assembly(
            instrumented(str(self._final_module), sanitizer, counted, planted)
        )
        self._final_module.name = name
        self._final_module.verify()
        finalize(self)
        # What others link and inline is told once, in them.
        told, self._final_module = self._final_module, plain
        self._get_module_for_linking()
        self._final_module = told

    CPUCodeLibrary._finalize_final_module = finalized
    return counted

"""Writes what mypy knows of the C runtime: ``specstream/_native.pyi`` and ``_forecast.pyi``.

    python stm_native/stub.py            writes both
    python stm_native/stub.py --check    says which is not as it would be written

Both follow from the declarations that build.py hands to cffi: the types of each function's
arguments and result, the members of each structure, the names of the constants. A structure and a
pointer to it are two classes, as cffi gives members through either and an item through the pointer
alone. ``ffi.new`` and the like take a type as a text, which mypy does not read: their results are
``Any``, and whoever calls them annotates the variable.
"""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pycparser import c_ast, c_parser

if __package__:
    from stm_native import build
else:
    import build  # type: ignore[no-redef]

PACKAGE = Path(__file__).resolve().parents[1] / "specstream"
INTEGERS = (
    *("int8_t", "int16_t", "int32_t", "int64_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"),
    *("int", "size_t", "intptr_t", "uintptr_t"),
)
BYTES = ("char", "int8_t", "uint8_t")  # pointers to them take a bytes object
HEAD = """\
# Written by stm_native/stub.py from the C headers: change those, and run it.
"""
COMMON = '''
from collections.abc import Callable, Iterator
from typing import Any, Generic, Self, SupportsFloat, SupportsIndex, TypeVar, overload

T = TypeVar("T", covariant=True)
C = TypeVar("C", bound="CData")
F = TypeVar("F", bound=Callable[..., Any])

class CData:
    """Anything of C: a pointer, an array, a structure."""
    def __int__(self) -> int: ...

class Pointer(CData, Generic[T]):
    @overload
    def __getitem__(self, at: SupportsIndex) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> Array[T]: ...
    def __setitem__(self, at: SupportsIndex | slice, value: Any) -> None: ...
    def __add__(self, count: int) -> Self: ...

class Array(Pointer[T]):
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[T]: ...

class FFI:
    NULL: Any  # a pointer of every type
    def new(self, cdecl: str | CType, init: Any = ...) -> Any: ...
    def cast(self, cdecl: str | CType, source: Any) -> Any: ...
    def typeof(self, cdecl: str | CData | Callable[..., Any]) -> CType: ...
    def sizeof(self, cdecl: str | CType | CData) -> int: ...
    def offsetof(self, cdecl: str | CType, *members: str | int) -> int: ...
    def addressof(self, of: Any, *members: str | int) -> Any: ...
    def buffer(self, of: CData, size: int = ...) -> memoryview: ...
    def from_buffer(self, cdecl: Any, of: Any = ..., require_writable: bool = ...) -> Any: ...
    def unpack(self, of: Pointer[Any], length: int) -> Any: ...
    def string(self, of: CData, maxlen: int = ...) -> bytes: ...
    def gc(self, of: C, destructor: Callable[[C], Any] | None, size: int = ...) -> C: ...
    def new_handle(self, of: object) -> CData: ...
    def from_handle(self, handle: CData) -> Any: ...
    def def_extern(
        self, name: str = ..., error: Any = ..., onerror: Callable[..., Any] | None = ...
    ) -> Callable[[F], F]: ...
    def list_types(self) -> tuple[list[str], list[str], list[str]]: ...

class CType:
    cname: str
'''


class Declared:
    """What a text of C declares, in its order."""

    def __init__(self, text: str) -> None:
        self.constants = re.findall(r"^#define (\w+) \.\.\.$", text, re.MULTILINE)
        self.structures: dict[str, list[Any]] = {}
        self.functions: dict[str, Any] = {}
        self.callbacks: dict[str, Any] = {}
        # What Python defines and C calls, such as the hooks; by cffi a pointer to a function.
        self.externs = re.findall(r'extern "Python" \w+ (\w+)\(', text)
        text = text.replace('extern "Python" ', "")
        text = re.sub(r"^#.*$", "", text, flags=re.MULTILINE)
        known = "".join(f"typedef int {name};\n" for name in (*INTEGERS, "bool") if name != "int")
        for node in c_parser.CParser().parse(known + text).ext:
            self._take(node)
        # Of some there is nothing but pointers.
        for name in re.findall(r"\bstruct (\w+)", text):
            self.structures.setdefault(name, [])

    def _take(self, node: Any) -> None:
        if isinstance(node, c_ast.Typedef):
            if node.name not in (*INTEGERS, "bool"):
                self.callbacks[node.name] = node.type.type
        elif isinstance(node.type, c_ast.FuncDecl):
            self.functions[node.name] = node.type
        elif isinstance(node.type, c_ast.Struct):
            # An earlier `struct ss_engine;` says no more than the name.
            if node.type.decls or node.type.name not in self.structures:
                self.structures[node.type.name] = node.type.decls or []
        elif isinstance(node.type, c_ast.Enum):
            self.constants += [one.name for one in node.type.values.enumerators]
        else:
            raise ValueError(f"{node.name}: stub.py knows functions, structures, enums, constants")


def name_of(node: Any) -> str:
    """The name of a type that is neither a pointer nor an array."""
    named = node.type
    return named.name if isinstance(named, c_ast.Struct) else " ".join(getattr(named, "names", ()))


def given(node: Any) -> str:
    """The type that Python gets: of a result, a member, an item."""
    if isinstance(node, c_ast.ArrayDecl):
        return f"Array[{item(node.type)}]"
    if isinstance(node, c_ast.PtrDecl):
        if isinstance(node.type, c_ast.TypeDecl) and isinstance(node.type.type, c_ast.Struct):
            return f"{node.type.type.name}_p"
        return "CData" if is_void(node.type) else f"Pointer[{item(node.type)}]"
    name = name_of(node)
    plain = {"void": "None", "bool": "bool", "double": "float", "float": "float", "char": "bytes"}
    if isinstance(node.type, c_ast.Enum) or name in INTEGERS:
        return "int"
    return plain.get(name, name)


def item(node: Any) -> str:
    """What a pointer or an array is of; integers by their width."""
    if isinstance(node, c_ast.TypeDecl) and name_of(node) in INTEGERS:
        return {"int": "int32_t"}.get(name_of(node), name_of(node))
    return given(node)


def taken(node: Any) -> str:
    """The type that Python gives: of an argument."""
    if isinstance(node, c_ast.PtrDecl | c_ast.ArrayDecl):
        if is_void(node.type):
            return "CData | bytes"
        of = item(node.type)
        is_bytes = isinstance(node.type, c_ast.TypeDecl) and name_of(node.type) in BYTES
        return f"Pointer[{of}]" + (" | bytes" if is_bytes else "")
    wider = {"int": "SupportsIndex", "bool": "SupportsIndex", "float": "SupportsFloat"}
    return wider.get(given(node), given(node))


def is_void(node: Any) -> bool:
    return isinstance(node, c_ast.TypeDecl) and name_of(node) == "void"


def signature(function: Any) -> tuple[list[str], str]:
    """The arguments, each with its name, and the result."""
    arguments = function.args.params if function.args else []
    if len(arguments) == 1 and is_void(arguments[0].type):
        arguments = []
    names = [one.name or f"argument_{at}" for at, one in enumerate(arguments)]
    names = [f"{name}_" if keyword.iskeyword(name) else name for name in names]
    said = [f"{name}: {taken(one.type)}" for name, one in zip(names, arguments, strict=True)]
    return said, given(function.type)


def method(name: str, function: Any) -> Iterator[str]:
    arguments, result = signature(function)
    said = ", ".join(["self", *arguments, "/"] if arguments else ["self"])
    line = f"    def {name}({said}) -> {result}: ..."
    if len(line) <= 100:
        yield line
        return
    yield f"    def {name}("
    inner = f"        {said}"
    if len(inner) <= 100:
        yield inner
    else:
        yield from (f"        {one}," for one in ["self", *arguments, "/"])
    yield f"    ) -> {result}: ..."


def shape(function: Any) -> list[str]:
    """Arguments and result without their names."""
    arguments, result = signature(function)
    return [*(one.split(": ")[1] for one in arguments), result]


def body(declared: Declared) -> Iterator[str]:
    """The classes of the structures, and the functions and constants of ``lib``."""
    for name, members in declared.structures.items():
        yield f"class {name}(CData):" + ("" if members else " ...")
        for member in members:
            if not keyword.iskeyword(member.name):
                yield f"    {member.name}: {given(member.type)}"
        yield ""
        yield f"class {name}_p({name}, Pointer[{name}]): ..."
        yield ""
    for name, callback in declared.callbacks.items():
        yield f"class {name}(CData):"
        yield from method("__call__", callback)
        yield ""
    yield "class Lib:"
    for name, function in declared.functions.items():
        if name in declared.externs:
            (same,) = [
                one for one, of in declared.callbacks.items() if shape(of) == shape(function)
            ]
            yield f"    {name}: {same}"
        else:
            yield from method(name, function)
    yield from (f"    {name}: int" for name in declared.constants)
    yield ""
    yield "ffi: FFI"
    yield "lib: Lib"


def stubs() -> dict[str, str]:
    """The text of each file, by its name."""
    lines = list(body(Declared(build.INTERFACE)))
    widths = [f"class {name}(int): ..." for name in INTEGERS if f"[{name}]" in "\n".join(lines)]
    native = "\n".join([HEAD + COMMON, *widths, "", *lines, ""])
    lines = list(body(Declared(build.FORECAST_INTERFACE)))
    named = [
        "CData",
        "FFI",
        "Pointer",
        *(one for one in INTEGERS if f"[{one}]" in "\n".join(lines)),
    ]
    head = f"from specstream._native import {', '.join(named)}\n"
    return {"_native.pyi": native, "_forecast.pyi": "\n".join([HEAD + "\n" + head, *lines, ""])}


def differences() -> list[str]:
    """The files that are not as they would be written."""
    return [name for name, text in stubs().items() if (PACKAGE / name).read_text() != text]


if __name__ == "__main__":
    if "--check" in sys.argv:
        sys.exit(", ".join(differences()) or 0)
    for name, text in stubs().items():
        (PACKAGE / name).write_text(text)

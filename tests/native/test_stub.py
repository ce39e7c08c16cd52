"""What mypy is told of the C runtime is what the headers declare and the extension has."""

from __future__ import annotations

import ast
import contextlib
import importlib
from pathlib import Path
from typing import Any

import pytest
from mypy import api

from stm_native import stub

PACKAGE = Path(__file__).parents[2] / "specstream"
EXTENSIONS = ("_native", "_forecast")


def classes(name: str) -> dict[str, list[str]]:
    """The classes of a stub, with the names of their members."""
    found = {}
    for node in ast.parse((PACKAGE / f"{name}.pyi").read_text()).body:
        if isinstance(node, ast.ClassDef):
            found[node.name] = [
                one.name if isinstance(one, ast.FunctionDef) else ast.unparse(one.target)
                for one in node.body
                if isinstance(one, ast.FunctionDef | ast.AnnAssign)
            ]
    return found


def test_the_stubs_are_those_of_the_headers() -> None:
    assert stub.differences() == [], "run: python stm_native/stub.py"


@pytest.mark.parametrize("name", EXTENSIONS)
def test_the_stub_names_what_the_extension_has(name: str) -> None:
    extension: Any = importlib.import_module(f"specstream.{name}")
    told = classes(name)
    assert sorted(told["Lib"]) == sorted(dir(extension.lib))
    callbacks, structures, unions = extension.ffi.list_types()
    assert not unions
    assert set(structures) == {one.removesuffix("_p") for one in told if f"{one}_p" in told}
    assert set(callbacks) <= set(told)
    for structure in structures:
        for member in told[structure]:
            # A bit field has no offset; of a member that is not there this is a KeyError.
            with contextlib.suppress(TypeError):
                extension.ffi.offsetof(f"struct {structure}", member)


def test_a_declaration_says_its_types() -> None:
    text = """
    #define SS_ONE ...
    struct ss_opaque;
    enum ss_kind { SS_TWO, SS_THREE };
    struct ss_made { double share; bool is_last; uint8_t *octets; int64_t words[4]; int from; };
    typedef int32_t (*ss_told)(void *context, const struct ss_made *made);
    enum ss_kind ss_ask(struct ss_opaque *of, const char *text, int from, struct ss_made made);
    extern "Python" int32_t ss_python_told(void *context, const struct ss_made *made);
    """.replace("    ", "")
    lines = "\n".join(stub.body(stub.Declared(text)))
    for line in (
        "class ss_opaque(CData): ...",
        "class ss_made(CData):",
        "    share: float",
        "    is_last: bool",
        "    octets: Pointer[uint8_t]",
        "    words: Array[int64_t]",
        "class ss_made_p(ss_made, Pointer[ss_made]): ...",
        "    def __call__(self, context: CData | bytes, made: Pointer[ss_made], /) -> int: ...",
        "        of: Pointer[ss_opaque],",
        "        text: Pointer[bytes] | bytes,",
        "        from_: SupportsIndex,",
        "        made: ss_made,",
        "    ) -> int: ...",
        "    ss_python_told: ss_told",
        "    SS_ONE: int",
        "    SS_THREE: int",
    ):
        assert line in lines.splitlines(), lines
    assert "    from:" not in lines


@pytest.mark.slow
def test_mypy_finds_a_wrong_call(tmp_path: Path) -> None:
    (tmp_path / "native.pyi").write_text((PACKAGE / "_native.pyi").read_text())
    calls = {
        "lib.ss_engine_wait(engine, 50)": None,
        "lib.ss_engine_free(ffi.NULL)": None,
        "lib.ss_engine_start(engine, ffi.new('struct ss_job *', {}))": None,
        "lib.ss_engine_wait(engine)": "call-arg",
        "lib.ss_engine_wait(engine, 'long')": "arg-type",
        "lib.ss_engine_wait(config, 50)": "arg-type",
        "lib.ss_engine_no_such(engine)": "attr-defined",
        "lib.ss_engine_outcome(engine).no_such": "attr-defined",
        "lib.ss_engine_advance(engine, 7)": "arg-type",
        "lib.SS_NO_SUCH": "attr-defined",
    }
    head = [
        "from native import ffi, lib, ss_config_p, ss_engine_p",
        "config: ss_config_p = ffi.new('struct ss_config *')",
        "engine: ss_engine_p = lib.ss_engine_new(config)",
    ]
    program = tmp_path / "program.py"
    program.write_text("\n".join([*head, *calls, ""]))
    arguments = ["--strict", "--config-file=", "--cache-dir", str(tmp_path / "cache"), str(program)]
    said, _, _ = api.run(arguments)
    found = {int(line.split(":")[1]): line for line in said.splitlines() if ": error:" in line}
    for number, (call, kind) in enumerate(calls.items(), start=len(head) + 1):
        assert (number in found) == (kind is not None), (call, said)
        assert kind is None or f"[{kind}]" in found[number], (call, said)
    assert len(found) == sum(kind is not None for kind in calls.values()), said

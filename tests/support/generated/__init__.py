"""Random operators: well-typed programs over the whole language that operators may use.

The text is written to a file and imported, as a user's module would be.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

from support.generated.arithmetic import Arithmetic
from support.generated.arrays import Arrays
from support.generated.attempts import Attempts
from support.generated.containers import Containers
from support.generated.drawing import BOOL, FLOAT, INT, TEXT, Option
from support.generated.header import HEADER
from support.generated.kept import ROWS, TABLES, Kept
from support.generated.loops import Loops
from support.generated.nulls import Nulls
from support.generated.records import RECORDS, Records
from support.generated.statements import Statements
from support.generated.syntax import Syntax
from support.generated.values import Values

__all__ = ["HEADER", "Writer", "load"]

DECLARED = """@ss.operator(
    state={state},
    event={{"key": int, "value": ss.nullable(float), "on": bool, "code": ss.nullable(str),
           "when": ss.timestamp("ms"), "price": ss.decimal(3)}},
    emits={{"x": int, "y": float, "z": bool, "u": ss.nullable(float), "s": ss.nullable(str)}},{more}
)
def generated(state, event, emit):"""


# Those that draw what others call come first.
class Writer(
    Syntax,
    Loops,
    Attempts,
    Containers,
    Kept,
    Records,
    Nulls,
    Arrays,
    Arithmetic,
    Values,
    Statements,
):
    """Writes whole operators."""

    def more_ints(self, depth: int) -> list[Option]:
        return [
            *([lambda: self.read(INT)] * 2 if self.holds() else []),
            *([lambda: self.kept_value(INT)] if self.kept() else []),
            *([lambda: self.unless(INT)] if self.has("nulls") else []),
            *([self.array_int] if self.has("arrays") else []),
            *([self.computed_int] if self.has("numbers") else []),
            *([lambda: self.pick(*self.kept_int())] if self.has("frozen") else []),
        ]

    def more_floats(self, depth: int) -> list[Option]:
        return [
            *([lambda: self.read(FLOAT)] * 2 if self.holds() else []),
            *([lambda: self.kept_value(FLOAT)] if self.kept() else []),
            *([lambda: self.unless(FLOAT)] if self.has("nulls") else []),
            *([self.array_float] if self.has("arrays") else []),
            *([self.computed_float] if self.has("numbers") else []),
            *([lambda: self.pick(*self.kept_float())] if self.has("frozen") else []),
        ]

    def more_bools(self) -> list[Option]:
        return [
            *([lambda: self.read(BOOL)] * 2 if self.holds() else []),
            *([lambda: self.kept_value(BOOL)] if self.kept() else []),
            *([self.asked_none] if self.has("nulls") else []),
            *([self.array_bool] if self.has("arrays") else []),
            *([self.computed_bool] if self.has("numbers") else []),
            *([lambda: self.pick(*self.kept_bool())] if self.has("frozen") else []),
        ]

    def more_texts(self) -> list[Option]:
        return [
            *([lambda: self.read(TEXT)] if self.holds() else []),
            *([lambda: self.kept_value(TEXT)] if self.kept() else []),
            *(["CONFIG.name", "CODES[0]"] if self.has("frozen") else []),
        ]

    def holds(self) -> bool:
        return bool(self.known())

    def begin(self) -> None:
        """What every function begins with that is given ``i0``."""
        self.put(1, "name = str(event.key)[-3:]")
        self.put(1, "k0 = 2")
        if self.has("nulls"):
            self.put(1, "o0 = None")
            self.put(1, "q0 = None")
        self.put(1, "def inner(v, w=3):")
        self.put(2, "i1 = v ^ i0")
        self.put(2, "return i1 - w * k0")
        if self.has("containers"):
            for _ in range(self.rng.randint(1, 3)):
                self.declare(1)
            if self.chance(0.4):
                self.put(1, "noted = [3]")
                self.put(1, "def note(v):")
                self.put(2, "if len(noted) < 9:")
                self.put(3, "noted.append(v & 7)")
                self.put(2, "return noted[-1] + len(noted)")
                self.functions.append("note")

    def end(self) -> None:
        if self.has("containers"):
            self.show(1)
        self.functions.clear()

    def helper(self) -> None:
        """A function in which things are caught, or not: its caller catches them as well."""
        self.put(0, "def part(state, event, emit, i0, f0):")
        self.put(1, "i1 = 3")
        self.put(1, "f1 = -1.5")
        with self.scope():
            self.begin()
            self.leave = "return i1"
            for _ in range(self.rng.randint(1, 4)):
                self.statement(1, 2)
            self.functions.clear()
        self.put(1, "return i0 ^ i1")
        self.put(0, "")
        self.put(0, "")
        self.leave = "return"

    def operator(self, statements: int) -> str:
        has_helper = self.has("catches") and self.chance(0.6)
        if has_helper:
            self.helper()
        state = "Rows" if self.has("rows") else "Tables" if self.has("tables") else "State"
        records = RECORDS.format(base=state) if self.has("records") else ""
        state = "Held" if records else state
        last, state, more = self.more_declared(state)
        self.put(0, DECLARED.format(state=state, more=more))
        self.put(1, "i0 = event.key")
        self.put(1, "i1 = 1")
        self.put(1, f"f0 = {self.value()}")
        self.put(1, "f1 = 0.5")
        self.begin()
        for _ in range(statements):
            self.statement(1, 2)
        if has_helper:
            self.put(1, "try:")
            self.put(2, "i1 = part(state, event, emit, i0, f1)")
            self.clause(1, 1)
            self.put(1, "except Exception:")
            self.put(2, "state.n += 1")
        self.end()
        self.put(1, "emit(i0, f0, event.on)")
        tables = TABLES if self.has("tables") else ""
        rows = ROWS.format(base="Tables" if tables else "State") if self.has("rows") else ""
        return HEADER + tables + rows + records + last + "\n".join(self.lines) + "\n"

    def more_declared(self, state: str) -> tuple[str, str, str]:
        """The text of one more class, the state then, and more arguments of the operator."""
        return "", state, ""


def load(text: str, folder: Path, number: int) -> Any:
    """The operator that the text defines."""
    name = f"generated_{number}"
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.generated

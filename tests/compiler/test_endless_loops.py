"""``while True``, left by break: random loops beside Python.

What is assigned before the only break of such a loop is assigned in a block that every run comes
through, but that stands above code which runs before it (numba/numba#5273).
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pyarrow as pa
from test_invalid import load

import specstream as ss

LOOPS = 24
NAMES = ("x", "y", "z")


def expression(rng: random.Random) -> str:
    one, other = rng.choice(NAMES), rng.choice((*NAMES, "n"))
    return rng.choice([f"{one} + {other}", f"({one} * 3 - {other}) % 97", f"{one} ^ n", "n", one])


def assignment(rng: random.Random) -> str:
    name = rng.choice(NAMES)
    return f"{name} {rng.choice(['=', '=', '+='])} {expression(rng)}"


def block(rng: random.Random, indent: int, depth: int) -> Iterator[str]:
    for _ in range(rng.randint(1, 3)):
        if depth and rng.random() < 0.4:
            yield f"{'    ' * indent}if {expression(rng)} > {rng.randint(-5, 90)}:"
            yield from block(rng, indent + 1, depth - 1)
            if rng.random() < 0.5:
                yield f"{'    ' * indent}else:"
                yield from block(rng, indent + 1, depth - 1)
        else:
            yield f"{'    ' * indent}{assignment(rng)}"


def loop(rng: random.Random, number: int) -> str:
    """A function whose loop has one way out, somewhere in its body, or two."""
    lines = [f"def loop_{number}(x, y):", "    z = n = 0", "    while True:", "        n += 1"]
    leave = [f"        if n > {rng.randint(1, 12)}:", *block(rng, 3, 1), "            break"]
    before = list(block(rng, 2, 2)) if rng.random() < 0.5 else []
    after = list(block(rng, 2, 2))
    if rng.random() < 0.3:
        after += [f"        if {expression(rng)} == 7:", f"            {assignment(rng)}"]
        after += ["            " + rng.choice(["break", "return x * 5 + n", "continue"])]
    return "\n".join([*lines, *before, *leave, *after, "    return x * 10000 + y * 100 + z + n"])


def module_of(seed: int, folder: Path) -> ModuleType:
    rng = random.Random(seed)
    body = "".join(
        f"    emit({number}, loop_{number}(event.x, event.y))\n" for number in range(LOOPS)
    )
    text = "\n\n\n".join(loop(rng, number) for number in range(LOOPS))
    return load(f"{text}\n\n\ndef process(event, emit):\n{body}", f"loops_{seed}", folder)


def test_endless_loops_are_left_with_the_values_that_python_has(tmp_path: Path) -> None:
    table = pa.table({"x": [0, 3, -8, 41], "y": [1, -2, 30, 0]})
    for seed in range(3):
        module = module_of(seed, tmp_path)
        expected = [
            {"number": number, "v": getattr(module, f"loop_{number}")(row["x"], row["y"])}
            for row in table.to_pylist()
            for number in range(LOOPS)
        ]
        operator = ss.operator(event={"x": int, "y": int}, emits={"number": int, "v": int})(
            module.process
        )
        assert operator.run_sequential(table).output.to_pylist() == expected
        with ss.Engine(operator, horizon=0) as engine:
            assert engine.process(table).to_pylist() == expected

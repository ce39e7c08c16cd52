"""``make same-code``: what the compiler makes of the project's operators, written and compared.

A file for each operator: its fingerprint, the functions that Numba compiles and those that the
oracle runs, as text, or the refusal. The first run writes them below ``.same-code``; each
later one says what has become another. So a change of the compiler that is to change no code can be
seen to change none, and of any other change the difference can be read.

The operators are those of ``tests/corpus``, ``operators``, ``examples``, what a beginner writes by
mistake (``support.compiler.mistakes``, each with what he should have written), and random ones.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import difflib
import doctest
import importlib
import importlib.util
import pkgutil
import random
import re
import shutil
import sys
import tempfile
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import corpus

import specstream as ss
from specstream.compiler.frontend.operator_analysis import FunctionSource
from support import generated
from support.compiler import mistakes

PLACE = Path(".same-code")
RANDOM = 150
EVENT = {"key": int, "x": float, "on": bool, "name": str, "maybe": ss.nullable(int)}
EMITS = {"n": int, "x": ss.nullable(float)}


class Recorder:
    """Remembers the tree of each function that the compiler makes."""

    def __init__(self) -> None:
        self.texts: dict[types.FunctionType, str] = {}
        compiles = FunctionSource.compile

        def compile_and_remember(
            source: FunctionSource, tree: ast.FunctionDef, namespace: dict[str, Any]
        ) -> types.FunctionType:
            text = ast.unparse(ast.fix_missing_locations(tree))
            made = compiles(source, tree, namespace)
            self.texts[made] = text
            return made

        FunctionSource.compile = compile_and_remember  # type: ignore[method-assign, assignment]

    def reached_from(self, function: Any) -> list[str]:
        """The texts of a function and of all that it calls, callers first."""
        waiting, seen = [function], list[types.FunctionType]()
        while waiting:
            one = getattr(waiting[0], "py_func", waiting[0])
            del waiting[0]
            if one in self.texts and one not in seen:
                seen.append(one)
                named = sorted(one.__globals__.items(), key=lambda item: item[0])
                waiting += [value for _, value in named if callable(value)]
        return [self.texts[one] for one in seen]


def described(operator: ss.Operator, recorder: Recorder) -> str:
    """What has become of an operator."""
    program = operator.program
    programs = [("", program)]
    if program.on_timer is not None:
        programs.append(("timer ", program.on_timer))
    parts = []
    for what, one in programs:
        made = [("native", one.native), ("oracle", one.oracle)]
        for operation in one.operations:
            made += [(f"{operation.field} native", operation.native)]
            made += [(f"{operation.field} oracle", operation.oracle)]
        for number, derived in enumerate(one.derived):
            made.append((f"derived {number} {derived!r}", derived.function))
        for title, function in made:
            parts += [f"# {what}{title}", *recorder.reached_from(function)]
        facts = [
            *("helpers", "strings", "reads_timestamp", "attributes", "catches", "unentered"),
            *("forms", "look_ups", "uses_arena", "reads_frozen"),
        ]
        for fact in facts:
            value = getattr(one, fact)
            parts.append(f"# {what}{fact}: {sorted(value) if fact == 'attributes' else value!r}")
        parts += [f"# {what}fingerprint", one.fingerprint]
    return "\n".join(parts)


def refusal(make: Callable[[], ss.Operator], recorder: Recorder, compiles: bool) -> str:
    """What is made, or why it is not.

    Args:
        compiles: whether Numba is asked as well.
    """
    try:
        operator = make()
        if compiles:
            ss.Engine(operator, horizon=0).close()
    except ss.SpecstreamError as error:
        return f"{type(error).__name__}: {error}"
    return described(operator, recorder)


def loaded(text: str, name: str, folder: Path) -> Any:
    path = folder / f"{name}.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def as_documented(module: Any, name: str) -> Any:
    """What the first call of a function in its own examples gives; None: there is none."""
    names = {**vars(module), "ss": ss}
    examples = doctest.DocTestParser().get_examples(vars(module)[name].__doc__ or "")
    trees = [ast.parse(example.source) for example in examples]
    for node in (node for tree in trees for node in ast.walk(tree)):
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name:
            call = ast.Call(ast.Name(name, ast.Load()), node.args, node.keywords)
            code = ast.fix_missing_locations(ast.Expression(call))
            with contextlib.suppress(NameError, TypeError):
                return eval(compile(code, name, "eval"), names)
    return None


def of_package(package: Any) -> Iterator[tuple[str, ss.Operator]]:
    """The operators of a package: those that it has, and those that its functions make, of nothing
    or as their own examples call them."""
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if found.name.rpartition(".")[2].startswith("__main__"):
            continue
        module = importlib.import_module(found.name)
        for name, value in sorted(vars(module).items()):
            if isinstance(value, types.FunctionType):
                if value.__module__ != found.name or name not in getattr(module, "__all__", ()):
                    continue
                try:
                    value = value()
                except TypeError:
                    value = as_documented(module, name)
            if isinstance(value, ss.Operator) and value.function is not None:
                yield f"{found.name}.{name}", value


def all_of_them(folder: Path) -> Iterator[tuple[str, str]]:
    """Each operator's name, and what has become of it."""
    recorder = Recorder()
    for found in pkgutil.iter_modules(corpus.__path__):
        importlib.import_module(f"corpus.{found.name}")
    from corpus.case import CASES

    for case in CASES:
        yield f"corpus/{case.name}", refusal(partial(getattr, case, "operator"), recorder, False)
    for package in ("operators", "examples"):
        for name, operator in of_package(importlib.import_module(package)):
            yield f"{package}/{name}", described(operator, recorder)
    for number, (name, mistake) in enumerate(mistakes.MISTAKES.items()):
        short = re.sub(r"\W+", "-", name)
        for kind, text in (("wrong", mistake.wrong), ("right", mistake.right)):

            def declared(text: str = text, title: str = f"{kind}_{number}") -> ss.Operator:
                module = loaded(mistakes.module(text), title, folder)
                return ss.operator(state=module.State, event=EVENT, emits=EMITS)(module.process)

            yield f"mistakes/{short}-{kind}", refusal(declared, recorder, kind == "wrong")
    for number in range(RANDOM):
        writer = generated.Writer(random.Random(number), is_python=number % 4 > 0)
        text = writer.operator(1 + number % 6)
        yield (
            f"generated/{number:03}",
            refusal(partial(generated.load, text, folder, number), recorder, False),
        )


def write(into: Path) -> int:
    """Writes all files; how many."""
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        for name, text in all_of_them(Path(folder)):
            text = re.sub(r" at 0x[0-9a-f]+", "", text.replace(folder, "."))
            path = into / f"{name}.txt"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text + "\n")
            count += 1
            if sys.stderr.isatty():
                print(f"\r{count} operators", end="", file=sys.stderr)
    return count


def differences(before: Path, now: Path) -> Iterator[str]:
    """What has become another, as a diff of each operator."""
    names = {str(path.relative_to(root)) for root in (before, now) for path in root.rglob("*.txt")}
    for name in sorted(names):
        one, other = (
            (root / name).read_text().splitlines() if (root / name).exists() else []
            for root in (before, now)
        )
        if one != other:
            lines = difflib.unified_diff(one, other, name, name, lineterm="", n=1)
            yield "\n".join(line[:400] for line in lines)


def main() -> int:
    """Writes, or compares; exit 1 if something has become another."""
    parser = argparse.ArgumentParser(prog="make same-code", description=__doc__)
    parser.add_argument("--again", action="store_true", help="take what is made now for right")
    again = parser.parse_args().again
    before, now = PLACE / "before", PLACE / "now"
    shutil.rmtree(now, ignore_errors=True)
    count = write(now)
    if again or not before.exists():
        shutil.rmtree(before, ignore_errors=True)
        now.rename(before)
        print(f"{count} operators are written down in {before}")
        return 0
    found = list(differences(before, now))
    print("\n".join(found))
    print(f"{count} operators, {len(found)} of them made otherwise than in {before}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

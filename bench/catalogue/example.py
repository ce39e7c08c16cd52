"""The example of a docstring, run by plain Python: the operator, what went in, what came out.

Tests run the same examples as doctests, by an engine; `run_sequential` gives the same rows.
"""

from __future__ import annotations

import ast
import doctest
import linecache
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

import specstream as ss

__all__ = ["Example", "example_of"]


@dataclass(frozen=True)
class Example:
    """What a docstring shows.

    Attributes:
        call: the call that makes the operator, as it is written there.
        definitions: what is defined there for this call, as it is written there.
        operator: what it makes.
        tables: what goes in; of a pipeline by source.
        options: those of ``process``.
        output: what comes out.
    """

    call: str
    definitions: str
    operator: ss.Operator
    tables: Mapping[str, pa.Table]
    options: Mapping[str, Any]
    output: pa.Table


class _Calls(ast.NodeTransformer):
    """Has what the calls of a function give noted."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source = name, source
        self.found: list[str] = []
        self.used: set[str] = set()

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name != self.name:
            return node
        self.found.append(ast.get_source_segment(self.source, node) or "")
        self.used.update(one.id for one in ast.walk(node) if isinstance(one, ast.Name))
        noted = ast.Call(ast.Name("_noted", ast.Load()), [node], [])
        return ast.fix_missing_locations(ast.copy_location(noted, node))


class _Package:
    """``ss`` in an example: the package, with another class of engines."""

    def __init__(self, engine: type[Any]) -> None:
        self.Engine = engine

    def __getattr__(self, name: str) -> Any:
        return getattr(ss, name)


def example_of(function: Callable[..., Any]) -> Example:
    """Runs the example of a function that makes operators.

    Raises:
        ValueError: its docstring has no example that makes one and runs it, once.

    >>> from specstream.operators import top_k
    >>> found = example_of(top_k)
    >>> found.call, found.tables[""]["item"].to_pylist()
    ('top_k(k=2)', [7, 7, 3, 9, 7])
    """
    name = getattr(function, "__name__", str(function))
    examples = doctest.DocTestParser().get_examples(function.__doc__ or "")
    source = "".join(one.source for one in examples)
    file = f"<example of {name}>"
    # Where operators look for the source of a function that an example defines.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    tree = ast.parse(source, file)
    calls = _Calls(name, source)
    tree = calls.visit(tree)
    definitions = [
        ast.get_source_segment(source, node) or ""
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef) or _assigned(node) & calls.used
    ]
    made: list[Any] = []
    runs: list[tuple[Any, Any, Mapping[str, Any]]] = []

    def noted(operator: Any) -> Any:
        made.append(operator)
        return operator

    class Engine:
        def __init__(self, operator: Any, threads: int = 1, seed: int = 0) -> None:
            self._operator, self._seed = operator, seed

        def __enter__(self) -> Engine:
            return self

        def __exit__(self, *_: object) -> None: ...

        def process(self, table: Any, **options: Any) -> Any:
            run = self._operator.run_sequential(table, seed=self._seed, **options)
            self.state = run.state
            runs.append((table, run.output, options))
            return run.output

    scope: dict[str, Any] = {
        "_noted": noted,
        "__name__": function.__module__,
        "print": lambda *_: None,
    }
    for node in tree.body:
        exec(compile(ast.Module([node], []), file, "exec"), scope)
        scope["ss"] = _Package(Engine)
    if len(made) != 1 or len(runs) != 1:
        raise ValueError(f"{name}: the docstring makes {len(made)} operators, {len(runs)} runs")
    table, output, options = runs[0]
    whole = isinstance(table, dict) and all(isinstance(one, dict) for one in table.values())
    tables = {source: _table(of) for source, of in (table if whole else {"": table}).items()}
    return Example(calls.found[0], "\n\n".join(definitions), made[0], tables, options, output)


def _assigned(node: ast.stmt) -> set[str]:
    """The names that a statement assigns to."""
    targets = node.targets if isinstance(node, ast.Assign) else []
    return {one.id for of in targets for one in ast.walk(of) if isinstance(one, ast.Name)}


def _table(given: Any) -> pa.Table:
    if isinstance(given, list):
        return pa.Table.from_pylist(given)
    return pa.table({name: pa.array(list(of)) for name, of in given.items()})

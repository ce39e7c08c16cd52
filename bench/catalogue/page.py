"""The part of docs/catalogue.md about ready operators, windows and verbs, made of docstrings."""

from __future__ import annotations

import functools
import inspect
import re
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pyarrow as pa

from bench.catalogue.example import Example, example_of
from bench.pages import table, wrapped
from specstream import operators, verbs, windows

__all__ = ["PAGE", "WANTS", "every", "name_of", "page"]

PAGE = Path(__file__).parents[2] / "docs" / "catalogue.md"
_PART = re.compile(r"(<!-- made by bench\.catalogue -->\n).*?(<!-- end -->)", re.DOTALL)

# What is wanted, and what does it; whatever is not here is not found at the top of the page.
WANTS: dict[str, Sequence[str]] = {
    "drop duplicates": ("distinct", "distinct_bloom"),
    "join two streams, or a stream and a table": ("join", "enrich"),
    "count, add up, average each key": ("running_aggregate", "by_time"),
    "cut a stream into windows": ("by_time", "by_count", "by_session", "by_landmark", "by_column"),
    "find the most frequent items": ("top_k", "space_saving"),
    "count items, or different items": ("count_min", "count_sketch", "hyper_log_log"),
    "know how values are distributed": (
        *("histogram", "adaptive_histogram", "quantiles"),
        *("reservoir", "haar_wavelet"),
    ),
    "smooth a series": ("moving_average", "exponential_average"),
    "see that a series leaves its usual range": ("bollinger_bands", "crossing"),
    "be told that a mean has changed": ("cusum", "adwin"),
    "predict a class": ("naive_bayes", "k_nearest", "logistic_regression"),
    "predict a number": ("linear_regression",),
    "apply a model that was trained elsewhere": ("network",),
    "find what is near": ("nearest_neighbours", "k_nearest"),
    "limit a rate, or notice what exceeds it": ("token_bucket", "velocity"),
    "keep accounts or stock": ("bank_transfers", "inventory"),
    "match orders, price options": ("order_book", "option_price"),
    "keep a ranking": ("leaderboard", "top_routes"),
    "compute a row of each event": ("map", "with_columns"),
    "take some of the events": ("filter", "every", "skip", "take"),
    "keep a running value": ("accumulate", "keyed"),
    "look at the last rows, or the first": ("window", "last", "freeze", "start_with"),
    "follow each item from state to state": ("machine",),
    "sum up the latest row of each key": ("across",),
}
# Packages and headings, in the order of the page.
_TITLES = {
    "operators": "The most frequent, the nearest",
    "basic": "Filters, joins, aggregates",
    "synopses": "A long stream in little memory",
    "signals": "Series of numbers",
    "learning": "Models",
    "business": "Accounts, limits, orders, prices",
}
# A longer table shows its first and last rows.
_MOST, _FIRST, _LAST = 8, 4, 2

# They have a guide of their own, and no part of the package of operators.
_APART = (windows, verbs)

_Factory = Callable[..., Any]
_example = functools.cache(example_of)


def _groups() -> dict[ModuleType, list[_Factory]]:
    """What makes operators, by package, in the order in which it is wanted."""
    order = dict.fromkeys(name for names in WANTS.values() for name in names)
    wanted = {name: number for number, name in enumerate(order)}
    packages = {
        name: of for name in operators.__all__ if inspect.ismodule(of := getattr(operators, name))
    }
    missing = set(packages) - set(_TITLES)
    if missing:
        raise ValueError(f"the catalogue has no heading for {', '.join(sorted(missing))}: _TITLES")
    found: dict[ModuleType, list[_Factory]] = {}
    titled = ({"operators": operators, **packages}[name] for name in _TITLES)
    for package in (*titled, windows, verbs):
        names = sorted(package.__all__, key=lambda name: (wanted.get(name, len(wanted)), name))
        values = [getattr(package, name) for name in names]
        # Those that make operators by themselves: a verb of several streams is in the guide.
        found[package] = [
            one
            for one in values
            if not inspect.ismodule(one) and (package is not verbs or _makes_an_operator(one))
        ]
    return found


def _makes_an_operator(verb: Any) -> bool:
    return inspect.isfunction(verb) and "ss.Engine(" in (verb.__doc__ or "")


def name_of(factory: _Factory) -> str:
    """Its name, without those of its packages."""
    return str(getattr(factory, "__name__", factory))


def every() -> Iterator[_Factory]:
    """All that has an entry."""
    for of in _groups().values():
        yield from of


def page(pictures: Mapping[str, str]) -> str:
    """The page with its part about operators as it is to be.

    Args:
        pictures: by the name of what they show, what is seen in them.
    """
    part = "\n\n".join(_part(pictures))
    return _PART.sub(lambda found: f"{found[1]}\n{part}\n\n{found[2]}", PAGE.read_text())


def _part(pictures: Mapping[str, str]) -> Iterator[str]:
    wants = [
        (want, ", ".join(f"[{name}](#{name})" for name in names)) for want, names in WANTS.items()
    ]
    yield table(("what you want to do", "take"), *wants)
    groups = _groups()
    imports = [
        f"from {package.__name__} import {name_of(one)}"
        for package, factories in groups.items()
        for one in factories
        if package not in _APART and _example(one).definitions
    ]
    yield "\n".join(
        ["<!-- python", "import numpy as np", "import specstream as ss", *imports, "-->"]
    )
    yield "## Operators"
    yield wrapped(
        "Each of these functions makes an operator, which is a page of plain Python to start from. "
        "An entry has the columns of its events, an arrow, and those of the rows that it emits, "
        "with the types of the example, which is that of its "
        "[reference](reference/ready-operators.md). Pictures are drawn from what the operators "
        "emit for streams with a fixed seed."
    )
    for package, factories in groups.items():
        if package is windows:
            yield "## Windows"
            yield wrapped(
                "[Functions](guides/windows.md) that make an operator of a record and of "
                "`add(window, event)`."
            )
            yield _picture("windows", pictures)
        elif package is verbs:
            yield "## Verbs"
            yield wrapped(
                "[What a stream does by itself](guides/verbs.md): functions that make an operator "
                "of given columns, and methods of streams, which know theirs."
            )
        else:
            yield f"### {_TITLES[package.__name__.rpartition('.')[2]]}"
        for factory in factories:
            yield from _entry(package, factory, pictures)


def _entry(package: ModuleType, factory: _Factory, pictures: Mapping[str, str]) -> Iterator[str]:
    name, example = name_of(factory), _example(factory)
    level = "###" if package in _APART else "####"
    yield f"{level} {name}"
    yield wrapped(_markdown((inspect.getdoc(factory) or "").partition("\n\n")[0]))
    took, gave = _columns(example)
    yield f"{{py:obj}}`{_signature(name, factory)} <{package.__name__}.{name}>`\n: {took} → {gave}"
    if name in pictures:
        yield _picture(name, pictures)
    shown = "\n\n".join(_shown(example))
    if name in pictures:
        yield f"::::::{{dropdown}} Example\n{shown}\n::::::"
    else:
        yield shown


def _picture(name: str, pictures: Mapping[str, str]) -> str:
    caption = " ".join(pictures[name].split())
    options = f":alt: {caption}\n:figclass: catalogue"
    return f"```{{figure}} catalogue/{name}.png\n{options}\n\n{caption}\n```"


def _shown(example: Example) -> Iterator[str]:
    """An example: how the operator is made, what goes in, what comes out."""
    order = example.options.get("order_by")
    ordered = f", ordered by `{order}`" if order else ""
    ordered += ", after which none follows" if example.options.get("end") else ""
    if example.definitions:
        code = _formatted(f"{example.definitions}\n\n{example.call}\n")
        yield f"```python\n{code}```"
        yield f"gives for these events{ordered}"
    else:
        yield f"`{example.call}` gives for these events{ordered}"
    tables = {source or "in": of for source, of in example.tables.items()}
    items = [
        f":::{{grid-item}}\n:columns: auto\n\n{label}\n\n{_rows(of)}\n:::"
        for label, of in {**tables, "out": example.output}.items()
    ]
    body = "\n\n".join(items)
    yield f"::::{{grid}}\n:gutter: 2\n:class-container: catalogue\n\n{body}\n::::"


def _formatted(code: str) -> str:
    """As `make lint` wants it, in pages as well."""
    ruff = [sys.executable, "-m", "ruff", "format", "--stdin-filename", "page.py", "-"]
    root = PAGE.parents[1]
    return subprocess.run(
        ruff, input=code, cwd=root, check=True, text=True, stdout=subprocess.PIPE
    ).stdout


def _rows(of: pa.Table) -> str:
    """A table, without what is between its first and last rows if it is long."""
    rows = [[_cell(value) for value in row.values()] for row in of.to_pylist()]
    if len(rows) > _MOST:
        left = len(rows) - _FIRST - _LAST
        between = [f"… {left} more", *["…"] * (len(of.column_names) - 1)]
        rows = [*rows[:_FIRST], between, *rows[-_LAST:]]
    return table([f"`{name}`" for name in of.column_names], *rows)


def _cell(value: Any) -> str:
    if value is None:
        return "*null*"
    return repr(round(value, 3)) if isinstance(value, float) else str(value)


def _signature(name: str, factory: _Factory) -> str:
    """The call with all parameters and their defaults."""
    told: list[str] = []
    for parameter in inspect.signature(factory).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in told:
            told.append("*")
        default = parameter.default
        if parameter.kind is parameter.VAR_KEYWORD:
            told.append(f"**{parameter.name}")
        elif default is parameter.empty:
            told.append(parameter.name)
        else:
            shown = default.__name__ if isinstance(default, type) else repr(default)
            told.append(f"{parameter.name}={shown}".replace("'", '"'))
    return f"{name}({', '.join(told)})"


def _columns(example: Example) -> tuple[str, str]:
    """The columns of the operator's events and of its rows, with their types."""
    operator = example.operator
    took = [
        (name, of)
        for name, of in zip(operator.event.names, operator.event.columns, strict=True)
        if not name.startswith(("changed.", "known."))
    ]
    return _listed(took), _listed(zip(operator.emits.names, operator.emits.columns, strict=True))


def _listed(columns: Iterable[tuple[str, Any]]) -> str:
    return ", ".join(f"`{name}` {_type(of)}" for name, of in columns)


def _type(column: Any) -> str:
    kind = "decimal" if pa.types.is_decimal(column.arrow) else column.kind
    return f"{kind} or null" if column.nullable else str(kind)


def _markdown(text: str) -> str:
    """Prose of a docstring, for a page."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", " ".join(text.split()))
    return text.replace("``", "`")

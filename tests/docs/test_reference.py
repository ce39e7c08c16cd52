"""The reference explains every parameter of what is public."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

from support.public import MODULES

import specstream as ss
from specstream import predictors

# They are made by functions, whose parameters are explained, or called by Spark.
MADE_ELSEWHERE = (
    *("BatchFeed", "DeltaSink", "ProgressListener", "PulledRows"),
    *("DatasetSource", "IteratorSource", "KafkaSource", "NatsSource", "TcpSource", "UnionSource"),
)
# Old names, and what is not on the pages.
LEFT_OUT = (
    *("rewind", "of_layout", "process_whole", "poll_whole"),
    *("check_alone", "compiled_as", "events_table", "rows", "source_column"),
)


def public() -> Iterator[tuple[str, Any, str]]:
    """Every public function and method, with what is said of it; of a class its own."""
    for module in (ss, predictors, *MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if name in MADE_ELSEWHERE or inspect.ismodule(value):
                continue
            if not inspect.isclass(value):
                yield name, value, inspect.getdoc(value) or ""
            elif not issubclass(value, Exception):
                yield name, value, f"{inspect.getdoc(value)} {inspect.getdoc(value.__init__)}"
                for method in vars(value).keys() - set(LEFT_OUT):
                    of = getattr(value, method)
                    if not method.startswith("_") and callable(of):
                        yield f"{name}.{method}", of, inspect.getdoc(of) or ""


def parameters(value: Any) -> list[str]:
    try:
        found = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):  # types, and classes of C
        return []
    return [name for name in found if name not in ("self", "args", "kwargs")]


def test_every_parameter_is_explained() -> None:
    asked = 0
    missing = []
    for name, value, text in public():
        for parameter in parameters(value):
            asked += 1
            if not re.search(rf"(?<!\w){re.escape(parameter)}(?!\w)", text):
                missing.append(f"{name}({parameter})")
    assert not missing
    assert asked > 200

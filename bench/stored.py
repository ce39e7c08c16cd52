"""What was measured, as a file: small, and as a person would write it."""

from __future__ import annotations

import json
import textwrap
from typing import Any

__all__ = ["to_text"]

# More than a measurement has to say, and than a picture can show.
DIGITS = 7
WIDTH = 100


def to_text(value: Any) -> str:
    """JSON with as much on a line as fits, and numbers of seven digits.

    >>> print(to_text({"speed": 1.23456789, "count": 12345678, "rows": [[1, 2.5], [3]]}), end="")
    {"speed": 1.234568, "count": 12345678, "rows": [[1, 2.5], [3]]}
    """
    return _text(_rounded(value), 0) + "\n"


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _rounded(of) for name, of in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(of) for of in value]
    return float(f"{value:.{DIGITS}g}") if isinstance(value, float) else value


def _text(value: Any, depth: int, before: int = 0) -> str:
    """A value that starts ``before`` columns behind its indentation."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or depth + before + len(line) < WIDTH:
        return line
    indent = " " * (depth + 1)
    if isinstance(value, list) and not any(isinstance(of, dict | list) for of in value):
        body = textwrap.fill(
            line[1:-1], WIDTH, initial_indent=indent, subsequent_indent=indent,
            break_long_words=False, break_on_hyphens=False,
        )  # fmt: skip
        return f"[\n{body}\n{' ' * depth}]"
    if isinstance(value, list):
        body = ",\n".join(indent + _text(of, depth + 1) for of in value)
        return f"[\n{body}\n{' ' * depth}]"
    keys = {name: json.dumps(name, ensure_ascii=False) + ": " for name in value}
    body = ",\n".join(
        indent + keys[name] + _text(of, depth + 1, len(keys[name])) for name, of in value.items()
    )
    return f"{{\n{body}\n{' ' * depth}}}"

"""Source text as a tree, also where several threads parse at once.

While CPython 3.11 makes the nodes of a tree, it counts their depth in one place for all threads.
Its garbage collector may run a finalizer there, and then another thread. If one of these parses as
well, the count is wrong, and a ``SystemError`` comes out that has nothing to do with the text. So
one thread at a time parses here. A finalizer of the same thread, or a thread that parses by itself,
may still come in between; then the text is parsed again. Compiling a tree counts nothing of this.
"""

from __future__ import annotations

import ast
import threading
from typing import Any, Literal, overload

__all__ = ["parse"]

_ATTEMPTS = 20
# A finalizer that runs in the midst may parse as well.
_guard = threading.RLock()


@overload
def parse(text: str, mode: Literal["exec"] = "exec") -> ast.Module: ...
@overload
def parse(text: str, mode: Literal["eval"]) -> ast.Expression: ...
def parse(text: str, mode: Literal["exec", "eval"] = "exec") -> Any:
    """The tree of a text.

    Args:
        text: statements; with ``mode="eval"`` an expression.

    Raises:
        SyntaxError: it is no Python.

    >>> ast.unparse(parse("x = 1 +  2")), ast.unparse(parse("(x)", "eval").body)
    ('x = 1 + 2', 'x')
    """
    with _guard:
        for _ in range(_ATTEMPTS - 1):
            try:
                return _parsed(text, mode)
            except SystemError as error:
                if "recursion depth mismatch" not in str(error):
                    raise
        return _parsed(text, mode)


def _parsed(text: str, mode: str) -> Any:
    return ast.parse(text, mode=mode)

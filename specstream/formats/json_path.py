"""JMESPath as it is written, with arguments: ``orders[?symbol == $symbol]``.

JMESPath has no variables. So what stands for one is made a literal before the path is parsed, and
for each call the literal's value is put into the tree: never into the text, where it could be more
than a value.
"""

from __future__ import annotations

import re
from typing import Any

from specstream.declarations.options import meant, shown
from specstream.errors import DeclarationError
from specstream.formats.rows import short

__all__ = ["JsonPath"]

# Quoted text, in which no argument is, and arguments.
_PART = re.compile(
    r"""'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|`(?:\\.|[^`\\])*`|(?P<argument>\$(?P<name>\w*))""",
    re.DOTALL,
)
_MARK = "__specstream_argument_"


class JsonPath:
    """A path that was read.

    Args:
        path: as it is written.
        what: it is called in errors.
        arguments: names of those of all paths of one function, to which it adds its own.

    Raises:
        DeclarationError: it is no path of JMESPath; says where.
        ImportError: jmespath is not installed.

    >>> names = []
    >>> path = JsonPath("orders[?id > $least].id", "path", names)
    >>> path.search({"orders": [{"id": 1}, {"id": 2}]}, (1,)), names
    ([2], ['least'])
    >>> JsonPath("orders[", "path", [])
    Traceback (most recent call last):
    specstream.errors.DeclarationError: path 'orders[' ends too early, at character 8
    """

    def __init__(self, path: str, what: str, arguments: list[str]) -> None:
        jmespath = _jmespath()
        self._what = f"{what} {path!r}"
        text = self._with_literals(path, arguments)
        try:
            self._tree: Any = jmespath.compile(text).parsed
        except jmespath.exceptions.EmptyExpressionError:
            raise DeclarationError(
                f"{self._what} is empty; expected a path, like orders[*], or @ for all of it"
            ) from None
        except jmespath.exceptions.ParseError as error:
            raise DeclarationError(self._problem(error, path, jmespath)) from None
        except RecursionError:
            raise DeclarationError(
                f"{what} {shown(path)} has too many parts in one another; write a shorter path"
            ) from None
        self._visit = jmespath.visitor.TreeInterpreter().visit
        self._error = jmespath.exceptions.JMESPathError
        self._has_arguments = _MARK in text
        self._check_functions(self._tree, jmespath.functions.Functions.FUNCTION_TABLE)

    def search(self, value: Any, given: tuple[Any, ...]) -> Any:
        """What the path selects of a value; None: nothing.

        Raises:
            ValueError: a function cannot take what it is given.
        """
        tree = _filled(self._tree, given) if self._has_arguments else self._tree
        try:
            return self._visit(tree, value)
        except self._error as error:
            raise ValueError(f"{self._what}: {short(str(error))}") from None

    def _with_literals(self, path: str, arguments: list[str]) -> str:
        """The path with a literal for each argument."""
        self._moved: list[tuple[int, int]] = []  # from where on, by how much
        longer = 0

        def literal(found: re.Match[str]) -> str:
            nonlocal longer
            if found["argument"] is None:
                return found[0]
            name = found["name"]
            if not name:
                raise DeclarationError(
                    f"{self._what}: expected a name behind $, at character {found.start() + 1}"
                )
            if name not in arguments:
                arguments.append(name)
            made = f'`"{_MARK}{arguments.index(name)}"`'
            longer += len(made) - len(found[0])
            self._moved.append((found.end() + longer, longer))
            return made

        return _PART.sub(literal, path)

    def _problem(self, error: Any, path: str, jmespath: Any) -> str:
        if isinstance(error, jmespath.exceptions.IncompleteExpressionError):
            return f"{self._what} ends too early, at character {len(path) + 1}"
        is_of_lexer = isinstance(error, jmespath.exceptions.LexerError)
        at: int = error.lexer_position if is_of_lexer else error.lex_position
        at -= next((longer for place, longer in reversed(self._moved) if place <= at), 0)
        rest = path[max(at, 0) :]
        found = f"finds {rest!r}" if rest else "ends"
        return f"{self._what} is no path of JMESPath: it {found} at character {at + 1}"

    def _check_functions(self, tree: Any, known: Any) -> None:
        if tree["type"] == "function_expression" and tree["value"] not in known:
            name = tree["value"]
            raise DeclarationError(
                f"{self._what}: JMESPath has no function {name!r}{meant(name, known)}"
            )
        for child in tree["children"]:
            if isinstance(child, dict):
                self._check_functions(child, known)


def _filled(tree: Any, given: tuple[Any, ...]) -> Any:
    """A tree with the values of the arguments; parts without them are not copied."""
    if tree["type"] == "literal":
        value = tree["value"]
        if not isinstance(value, str) or not value.startswith(_MARK):
            return tree
        return tree | {"value": given[int(value.removeprefix(_MARK))]}
    children = [_filled(one, given) if isinstance(one, dict) else one for one in tree["children"]]
    if all(new is old for new, old in zip(children, tree["children"], strict=True)):
        return tree
    return tree | {"children": children}


def _jmespath() -> Any:
    try:
        import jmespath
        import jmespath.functions
        import jmespath.visitor
    except ImportError as missing:
        raise ImportError(
            'ss.formats.json needs jmespath: pip install "specstream[json]"'
        ) from missing
    return jmespath

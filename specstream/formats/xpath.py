"""XPath 1.0 as it is written: read once, and made what libxml2 takes.

libxml2 says of a path that it is wrong, but not where; and that there is no such function or prefix
only when it gets there, which may be never. So a path is read here first, by the grammar of the
recommendation (W3C 1999), with three additions: a path begins at the document, ``a/b`` is ``/a/b``;
``{uri}name`` is a name in a namespace; ``$name`` is an argument of the function. What comes out has
a prefix for each namespace and a number for each argument, so that no name that somebody has
chosen is one of lxml's.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NoReturn

from specstream.declarations.options import meant
from specstream.errors import DeclarationError

__all__ = ["Names", "read_path", "variable"]

# Arguments of the functions of XPath: the fewest and the most.
_FUNCTIONS = {
    **dict.fromkeys(("last", "position", "true", "false"), (0, 0)),
    **dict.fromkeys(("count", "id", "boolean", "not", "lang", "sum"), (1, 1)),
    **dict.fromkeys(("floor", "ceiling", "round"), (1, 1)),
    **dict.fromkeys(("local-name", "namespace-uri", "name", "string", "number"), (0, 1)),
    **dict.fromkeys(("string-length", "normalize-space"), (0, 1)),
    **dict.fromkeys(("starts-with", "contains", "substring-before", "substring-after"), (2, 2)),
    "substring": (2, 3),
    "translate": (3, 3),
    "concat": (2, 1000),
}
_NODE_TYPES = ("comment", "text", "processing-instruction", "node")
_AXES = (
    *("ancestor", "ancestor-or-self", "attribute", "child", "descendant", "descendant-or-self"),
    *("following", "following-sibling", "namespace", "parent", "preceding", "preceding-sibling"),
    "self",
)
_OPERATORS = frozenset(("|", "+", "-", "*", "=", "!=", "<", "<=", ">", ">="))
_WORDS = frozenset(("and", "or", "mod", "div"))
_DEEPEST = 100

# Names of XML (1.0, 5th edition) without colons.
_START = (
    "A-Z_a-z\xc0-\xd6\xd8-\xf6\xf8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
    "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_NAME = f"[{_START}][{_START}\\-.0-9\xb7\u0300-\u036f\u203f\u2040]*"
_TOKEN = re.compile(
    rf"""(?P<space>[ \t\r\n]+)
    |(?P<literal>"[^"]*"|'[^']*')
    |(?P<number>[0-9]+(?:\.[0-9]*)?|\.[0-9]+)
    |(?P<variable>\${_NAME})
    |(?P<clark>\{{[^{{}}]*\}}(?:{_NAME}|\*))
    |(?P<name>{_NAME}(?::(?!:)(?:{_NAME}|\*))?)
    |(?P<sign>::|//|\.\.|!=|<=|>=|[/.@,()\[\]|+\-=<>*])""",
    re.VERBOSE,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str
    at: int


class Names:
    """What the paths of one function name in common.

    Args:
        namespaces: by their prefixes.

    Attributes:
        namespaces: the same, with those of which a path has the URI.
        arguments: names of the function's arguments, in the order in which paths have them.
    """

    def __init__(self, namespaces: Mapping[str, str]) -> None:
        self.namespaces = dict(namespaces)
        self.arguments: list[str] = []
        self._own: dict[str, str] = {}

    def prefix(self, uri: str) -> str:
        """A prefix for a namespace that a path has by its URI."""
        if uri not in self._own:
            number = len(self._own)
            while f"ns{number}" in self.namespaces:
                number += 1
            self._own[uri] = f"ns{number}"
            self.namespaces[f"ns{number}"] = uri
        return self._own[uri]

    def argument(self, name: str) -> str:
        """The variable that stands for an argument."""
        if name not in self.arguments:
            self.arguments.append(name)
        return variable(self.arguments.index(name))


def variable(number: int) -> str:
    """The variable that stands for the argument of that number."""
    return f"argument{number}"


def read_path(path: str, what: str, names: Names, of_document: bool = False) -> str:
    """A path as libxml2 takes it.

    Args:
        path: as it is written.
        what: it is called in errors.
        names: those of all paths of one function.
        of_document: a relative path begins at the document.

    Raises:
        DeclarationError: it is no path of XPath 1.0; says where.

    >>> names = Names({})
    >>> read_path("shop/{urn:a}order[@id = $id]", "path", names, of_document=True)
    '/ shop / ns0:order [ @ id = $argument0 ]'
    >>> names.arguments, names.namespaces
    (['id'], {'ns0': 'urn:a'})
    >>> read_path("//a[", "path", names)
    Traceback (most recent call last):
    specstream.errors.DeclarationError: path '//a[': expected a path, a value or a function at
    character 5, and it ends there
    """
    return _Reader(path, what, names, of_document).read()


class _Reader:
    """Reads one path."""

    def __init__(self, path: str, what: str, names: Names, of_document: bool) -> None:
        self.path, self.what = path, what
        self.names = names
        self.of_document = of_document
        self.tokens = list(self.tokenized())
        self.place = 0
        self.written: list[str] = []
        self.inside = 0  # so many predicates

    def read(self) -> str:
        self.expression(0)
        if not self.is_over:
            self.wrong("an operator, or the end")
        if self.of_document and [one.text for one in self.tokens] in (["/"], ["."]):
            self.refuse(
                self.tokens[0], "the document is no node with a value; write /* for its root"
            )
        return " ".join(self.written)

    def wrong(self, expected: str, token: _Token | None = None) -> NoReturn:
        token = self.token if token is None else token
        found = f", and finds {token.text!r}" if token.text else ", and it ends there"
        raise DeclarationError(
            f"{self.what} {self.path!r}: expected {expected} at character {token.at + 1}{found}"
        )

    def refuse(self, token: _Token, problem: str) -> NoReturn:
        raise DeclarationError(f"{self.what} {self.path!r}: {problem}, at character {token.at + 1}")

    # ---- tokens ----

    def tokenized(self) -> list[_Token]:
        tokens, at = [], 0
        while at < len(self.path):
            found = _TOKEN.match(self.path, at)
            if found is None:
                rest = _Token("", self.path[at], at)
                if rest.text in "'\"":
                    self.refuse(rest, "a text that does not end begins")
                self.wrong("a part of a path", rest)
            if found.lastgroup != "space":
                tokens.append(_Token(str(found.lastgroup), found[0], at))
            at = found.end()
        return tokens

    @property
    def is_over(self) -> bool:
        return self.place >= len(self.tokens)

    @property
    def token(self) -> _Token:
        return self.ahead(0)

    def ahead(self, count: int) -> _Token:
        at = self.place + count
        return self.tokens[at] if at < len(self.tokens) else _Token("", "", len(self.path))

    def is_sign(self, *texts: str) -> bool:
        return self.token.kind == "sign" and self.token.text in texts

    def take(self, written: str | None = None) -> _Token:
        token = self.token
        self.place += 1
        self.written.append(token.text if written is None else written)
        return token

    def close(self, text: str) -> None:
        if not self.is_sign(text):
            self.wrong(f"{text!r}")
        self.take()

    # ---- the grammar ----

    def expression(self, depth: int) -> None:
        """Operands with operators between; which of these binds more strongly, libxml2 knows."""
        if depth > _DEEPEST:
            self.refuse(self.token, f"more than {_DEEPEST} expressions lie in one another")
        self.operand(depth)
        while self.is_sign(*_OPERATORS) or (
            self.token.kind == "name" and self.token.text in _WORDS
        ):
            self.take()
            self.operand(depth)

    def operand(self, depth: int) -> None:
        while self.is_sign("-"):
            self.take()
        if self.primary(depth):
            self.predicates(depth)
            if self.is_sign("/", "//"):
                self.take()
                self.relative(depth)
        elif self.is_sign("/", "//"):
            is_short = self.take().text == "/"
            if not is_short or self.is_step:
                self.relative(depth)
        elif self.is_step:
            if self.of_document and not self.inside:
                self.written.append("/")
            self.relative(depth)
        else:
            self.wrong("a path, a value or a function")

    def primary(self, depth: int) -> bool:
        """A value, something in parentheses or a call; False: there is none."""
        token = self.token
        if token.kind in ("literal", "number"):
            self.take()
        elif token.kind == "variable":
            self.take(f"${self.names.argument(token.text[1:])}")
        elif self.is_sign("("):
            self.take()
            self.expression(depth + 1)
            self.close(")")
        elif self.is_call and token.text not in _NODE_TYPES:
            self.call(depth)
        else:
            return False
        return True

    @property
    def is_call(self) -> bool:
        return self.token.kind == "name" and self.ahead(1).text == "("

    def call(self, depth: int) -> None:
        name = self.take()
        if name.text not in _FUNCTIONS:
            near = meant(name.text, _FUNCTIONS)
            self.refuse(name, f"XPath 1.0 has no function {name.text!r}{near}")
        self.take()
        count = 0
        while not self.is_sign(")"):
            if count:
                self.close(",")
            self.expression(depth + 1)
            count += 1
        self.take()
        least, most = _FUNCTIONS[name.text]
        if not least <= count <= most:
            takes = str(least) if least == most else f"{least} to {most}"
            self.refuse(name, f"{name.text}() takes {takes} argument(s), and has {count}")

    @property
    def is_step(self) -> bool:
        return self.token.kind in ("name", "clark") or self.is_sign(".", "..", "@", "*")

    def relative(self, depth: int) -> None:
        self.step(depth)
        while self.is_sign("/", "//"):
            self.take()
            self.step(depth)

    def step(self, depth: int) -> None:
        if self.is_sign(".", ".."):
            self.take()
            return
        if self.is_sign("@"):
            self.take()
        elif self.ahead(1).text == "::":
            axis = self.take()
            if axis.text not in _AXES:
                near = meant(axis.text, _AXES)
                self.refuse(axis, f"XPath has no axis {axis.text!r}{near}")
            self.take()
        self.node_test()
        self.predicates(depth)

    def node_test(self) -> None:
        token = self.token
        if self.is_sign("*"):
            self.take()
        elif token.kind == "clark":
            uri, _, name = token.text[1:].partition("}")
            self.take(f"{self.names.prefix(uri)}:{name}" if uri else name)
        elif self.is_call and token.text in _NODE_TYPES:
            self.take()
            self.take()
            if token.text == "processing-instruction" and self.token.kind == "literal":
                self.take()
            self.close(")")
        elif self.is_call:
            self.refuse(token, f"a function, {token.text}(), is no step of a path")
        elif token.kind == "name":
            prefix, colon, _ = token.text.partition(":")
            if colon and prefix != "xml" and prefix not in self.names.namespaces:
                self.refuse(
                    token,
                    f"the prefix {prefix!r} stands for no namespace: give it one, "
                    f"namespaces={{{prefix!r}: 'the URI'}}, or write {{the URI}}name",
                )
            self.take()
        else:
            self.wrong("a name, * or a node type")

    def predicates(self, depth: int) -> None:
        while self.is_sign("["):
            self.take()
            self.inside += 1
            self.expression(depth + 1)
            self.inside -= 1
            self.close("]")

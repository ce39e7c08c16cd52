"""Rows out of texts of XML, by paths of XPath (Clark and DeRose 1999).

What a stranger sends may do harm: entities that grow, files and addresses that are read for them, a
tree that is deeper than the stack. So nothing is fetched, no entity is resolved but the five of XML
itself, and a text with a document type, which only defines entities and defaults here, is refused;
libxml2's own limits hold for depth, names and the length of a text.

lxml lets other threads run while it parses. A parser, and a compiled path, serve one caller at a
time, and would make threads wait: each thread has its own.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from specstream.declarations.options import shown
from specstream.declarations.schema import Column
from specstream.errors import DeclarationError
from specstream.formats.columns import Field
from specstream.formats.rows import Malformed, Rows, has, short, utf8
from specstream.formats.texts import value_of, wanted
from specstream.formats.xpath import Names, read_path, variable

__all__ = ["XmlRows", "xml"]

_WHOLE = 2**53  # the integers up to here are numbers of XPath
_WHERE = re.compile(r",? line \d+, column \d+.*$", re.DOTALL)
_PREFIX = re.compile(r"[A-Za-z_][\w.-]*")
_SAFE = {
    "resolve_entities": False,
    "no_network": True,
    "load_dtd": False,
    "dtd_validation": False,
    "attribute_defaults": False,
    "huge_tree": False,
}


def xml(
    path: str,
    of: Any = None,
    /,
    *,
    malformed: str = "raise",
    namespaces: Mapping[str, str] | None = None,
    **columns: Any,
) -> XmlRows:
    """A function of a text of XML, which gives a row for each element that a path selects.

    Operators call it with what depends on the event alone, as a function marked ``@ss.pure``, and
    loop over the rows; a source takes it as ``decode=``; anybody else calls it with a text.

    Args:
        path: of XPath 1.0. It begins at the document: ``a/b`` is ``/a/b``, and ``//b`` is every
            ``b``. ``{uri}b`` is a name in a namespace. ``$name`` is an argument of the function, a
            number, bool or text, by name or in the order of the names.
        of: the type of the values, where the function gives the texts of the nodes themselves, and
            not rows.
        malformed: ``"raise"`` raises ValueError for a text that is not well-formed XML, or has a
            document type; for ``"null"`` it has no rows.
        namespaces: by the prefixes that paths have.
        columns: of a row, the type by the name of an attribute or of a child element, whose text is
            the value; or a pair of a path from the element on and the type. Types are those of an
            event's columns; of a time, date or decimal a row has the int that operators see.
            Columns that are called like an option have to be renamed by a pair.

    Returns:
        A function ``f(text, **arguments)``, text a str or bytes, that gives a list of named tuples,
        or of values. It can be pickled. ``f.Row`` is the class of the named tuples. It raises
        ValueError, with the place, for a text that is malformed; a value that is missing, unless
        its column is ``ss.nullable``; a value that does not fit its column; and where a column has
        several.

    Raises:
        DeclarationError: a path is wrong, and where; a column has no type of an event's; a
            namespace is none.
        ImportError: lxml is not installed: ``pip install "specstream[xml]"``.

    >>> import specstream as ss
    >>> pingus = ss.formats.xml("//character[@x > $above]", id=int, x=float, status=str)
    >>> text = "<s><character id='1' x='2.5'><status>WALKER</status></character></s>"
    >>> pingus(text, above=2)
    [Row(id=1, x=2.5, status='WALKER')]
    >>> ss.formats.xml("//@id", int)(text)
    [1]
    """
    return XmlRows(path, of, malformed, namespaces, columns)


def _etree() -> Any:
    try:
        from lxml import etree
    except ImportError as missing:
        raise ImportError('ss.formats.xml needs lxml: pip install "specstream[xml]"') from missing
    return etree


class _Tools(threading.local):
    """What a thread reads texts with.

    Args:
        path: selects the nodes.
        paths: of the columns; None: the column is an attribute or a child.
        namespaces: by their prefixes.
    """

    def __init__(
        self, path: str, paths: Sequence[str | None], namespaces: Mapping[str, str]
    ) -> None:
        etree = _etree()

        def compiled(text: str) -> Any:
            return etree.XPath(text, namespaces=namespaces, regexp=False, smart_strings=False)

        self.etree = etree
        self.of_bytes = etree.XMLParser(**_SAFE)
        # A text has been decoded already, whatever it says of its encoding.
        self.of_text = etree.XMLParser(encoding="utf-8", **_SAFE)
        self.path = compiled(path)
        self.paths = [None if one is None else compiled(one) for one in paths]
        self.string = compiled("string()")


class _Context(NamedTuple):
    """What the values of nodes are asked with."""

    tools: _Tools
    arguments: dict[str, Any]
    root: Any


class XmlRows(Rows):
    """A function of a text of XML; see :func:`xml`."""

    format = "xml"

    def __init__(
        self,
        path: str,
        of: Any,
        malformed: str,
        namespaces: Mapping[str, str] | None,
        columns: Mapping[str, Any],
    ) -> None:
        super().__init__(path, of, malformed, columns)
        self._namespaces = _checked(namespaces)
        names = Names(self._namespaces)
        of_path = "ss.formats.xml: path"
        self._text = read_path(path, of_path, names, of_document=True)
        self._paths = [
            None if one.path is None else read_path(one.path, f"{of_path} of {one.shown}", names)
            for one in self._fields
        ]
        self._named_in_paths(names.arguments)
        self._tools = _Tools(self._text, self._paths, names.namespaces)
        self._all_namespaces = names.namespaces
        self._try_out()

    def _try_out(self) -> None:
        """Asks an empty document: what a path is, a text, a number or nodes, depends on nothing.

        Raises:
            DeclarationError: the path selects no nodes; or libxml2 takes one for wrong.
        """
        etree = _etree()
        empty = etree.fromstring("<a/>")
        given = {variable(number): "" for number in range(len(self.arguments))}
        texts = [self._path, *(one.path for one in self._fields)]
        for text, path in zip(texts, [self._tools.path, *self._tools.paths], strict=True):
            try:
                found = [] if path is None else path(empty, **given)
            except etree.XPathError as error:
                raise DeclarationError(
                    f"ss.formats.xml: path {text!r} is none of XPath 1.0: {error}"
                ) from None
            if text is self._path and not isinstance(found, list):
                kind = {float: "a number", bool: "a bool"}.get(type(found), "a text")
                raise DeclarationError(
                    f"ss.formats.xml: path {text!r} computes {kind}; expected one that selects "
                    "nodes: compute it in the path of a column"
                )

    def __reduce__(self) -> Any:
        of, columns = self._declared
        return XmlRows, (self._path, of, self._malformed, self._namespaces, columns)

    @property
    def _options(self) -> list[str]:
        return [f"namespaces={self._namespaces!r}"] if self._namespaces else []

    def _argument(self, name: str, value: Any) -> Any:
        if isinstance(value, int) and abs(value) > _WHOLE:
            raise ValueError(
                self._refused(
                    name, value, "an int that is a number of XPath, up to 2**53; give a text"
                )
            )
        if isinstance(value, str) and not _is_of_xml(value):
            raise ValueError(
                self._refused(name, value, "a text without characters that XML has not")
            )
        if not isinstance(value, bool | int | float | str):
            raise TypeError(self._refused(name, value, "a number, a bool or a text"))
        return value

    def _select(self, text: Any, given: tuple[Any, ...]) -> tuple[Sequence[Any], _Context]:
        tools = self._tools
        content = utf8(text)
        parser = tools.of_text if isinstance(text, str) else tools.of_bytes
        etree = tools.etree
        try:
            root = etree.fromstring(content, parser)
        except etree.LxmlError as error:
            line, column = getattr(error, "position", None) or (1, 1)
            problem = _WHERE.sub("", getattr(error, "msg", None) or str(error))
            raise Malformed(problem, max(line, 1), max(column, 1)) from None
        if root.getroottree().docinfo.internalDTD is not None:
            raise Malformed("it has a document type, <!DOCTYPE: take it out", *_doctype(content))
        arguments = {variable(number): value for number, value in enumerate(given)}
        try:
            nodes: list[Any] = tools.path(root, **arguments)
        except etree.XPathError as error:
            raise ValueError(f"{self._what}: the path cannot be followed: {error}") from None
        context = _Context(tools, arguments, root)
        if self.Row is not None:
            for at, node in enumerate(nodes):
                if not etree.iselement(node) or not isinstance(node.tag, str):
                    raise ValueError(
                        f"{self._what} selects {self._place(at, nodes, context)}; expected an "
                        "element, which has columns: for values themselves write one type"
                    )
        return nodes, context

    def _value(self, number: int, node: Any, context: _Context) -> Any:
        field = self._fields[number]
        path = context.tools.paths[number]
        if path is not None:
            try:
                found = path(node, **context.arguments)
            except context.tools.etree.XPathError as error:
                raise ValueError(f"{self._what}: {field.shown}: {error}") from None
            if isinstance(found, list):
                if len(found) > 1:
                    raise ValueError(
                        f"{self._what}: {field.shown}: {field.path!r} selects {len(found)} nodes "
                        f"in {_named(node)}; expected one: write ({field.path})[1] for the first"
                    )
                found = self._string(found[0], context.tools) if found else None
        elif field.name:
            found = self._own(field, node, context.tools)
        else:
            found = self._string(node, context.tools)
        if isinstance(found, str):
            return value_of(found, field.of)
        if isinstance(found, float) and field.of.kind == "int" and found.is_integer():
            return int(found) if abs(found) <= _WHOLE else found
        return found

    def _own(self, field: Field, node: Any, tools: _Tools) -> str | None:
        """The text of the attribute or child of a column's name."""
        found: str | None = node.get(field.name)
        if len(node):
            for child in node.iterchildren(field.name):
                if found is not None:
                    raise ValueError(
                        f"{self._what}: {field.shown}: {_named(node)} has {field.name!r} more than "
                        f"once, as attributes and children; expected one: write the path, "
                        f"{field.name}=('@{field.name}', ...) or ('{field.name}[1]', ...)"
                    )
                found = self._string(child, tools)
        return found

    def _string(self, node: Any, tools: _Tools) -> str:
        """The text of a node, with that of what is in it, and without comments."""
        if isinstance(node, str):
            return node
        if isinstance(node, tuple):  # of the axis of namespaces: prefix and URI
            return str(node[1])
        if not len(node):  # also a comment, of which XPath's string() wants nothing to know
            return node.text or ""
        found: str = tools.string(node)
        return found

    def _place(self, at: int, nodes: Sequence[Any], context: _Context) -> str:
        node = nodes[at]
        if isinstance(node, str):
            # Those that know where they are take longer.
            etree = context.tools.etree
            path = etree.XPath(self._text, namespaces=self._all_namespaces)
            node = path(context.root, **context.arguments)[at]
            kind = f"attribute {short(node.attrname)!r}" if node.is_attribute else "a text"
            return f"{kind} of {_named(node.getparent())}"
        return _named(node)

    def _has(self, field: Field, node: Any) -> str:
        if field.path is not None or not field.name:
            return ""
        children = (one.tag for one in node if isinstance(one.tag, str))
        return has(field.name, itertools.chain(node.keys(), children))

    def _wanted(self, of: Column) -> str:
        return wanted(of)


def _named(node: Any) -> str:
    """An element, for a message."""
    if isinstance(node, tuple) or node is None:
        return "a namespace"
    line = node.sourceline
    if not isinstance(node.tag, str):
        kind = {"Comment": "a comment"}.get(getattr(node.tag, "__name__", ""), "an instruction")
        return f"{kind} in line {line}"
    return f"<{short(node.tag)}> in line {line}"


def _doctype(content: bytes) -> tuple[int, int]:
    """The line and column in which the document type is."""
    at = max(content.find(b"<!DOCTYPE"), 0)
    return content.count(b"\n", 0, at) + 1, at - content.rfind(b"\n", 0, at)


def _is_of_xml(text: str) -> bool:
    """Whether all characters of a text are XML's.

    >>> _is_of_xml("a b"), _is_of_xml("a\\0b"), _is_of_xml(chr(0xD800))
    (True, False, False)
    """
    return (
        re.search("[^\\t\\n\\r\\x20-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]", text) is None
    )


def _checked(namespaces: object) -> dict[str, str]:
    if namespaces is None:
        return {}
    what = "ss.formats.xml: namespaces"
    if not isinstance(namespaces, Mapping):
        raise DeclarationError(
            f"{what}={shown(namespaces)}; expected URIs by their prefixes, like {{'a': 'urn:a'}}"
        )
    for prefix, uri in namespaces.items():
        if not isinstance(prefix, str) or not _PREFIX.fullmatch(prefix):
            raise DeclarationError(
                f"{what} has prefix {shown(prefix)}; expected a name without a colon: in paths of "
                "XPath 1.0 names without a prefix are in no namespace"
            )
        if not isinstance(uri, str) or not uri:
            raise DeclarationError(f"{what}: {prefix!r} is {shown(uri)}; expected a URI")
    return dict(namespaces)

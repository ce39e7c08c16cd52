"""Rows out of XML: each text gives what is written beside it, or ValueError that says where."""

from __future__ import annotations

import copy
import datetime
import pickle
import re
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import specstream as ss

pytest.importorskip("lxml", reason='pip install "specstream[xml]"')

xml = ss.formats.xml
ROWS = xml("/s/c", id=int, x=ss.nullable(float), n=ss.nullable(str))
INTS, FLOATS, BOOLS, STRS = (xml("//v", of) for of in (int, float, bool, str))
TIMES, NS = xml("//v", datetime.datetime), xml("//v", ss.timestamp("ns"))
DAYS, PAID = xml("//v", datetime.date), xml("//v", ss.decimal(2))


def v(text: str) -> str:
    return f"<r><v>{text}</v></r>"


def short(one: object) -> str:
    """Names a case: pytest puts the name into the environment."""
    return ascii(one)[:40]


def wrong(function: Callable[[Any], Any], text: Any) -> str:
    """What a text is refused with, quickly and by ValueError itself."""
    began = time.process_time()
    with pytest.raises(ValueError, match=r"xml\('") as caught:
        function(text)
    assert type(caught.value) is ValueError
    assert time.process_time() - began < 2
    return str(caught.value)


MALFORMED: list[tuple[Any, str]] = [
    ("", "line 1, column 1"),
    (" \n ", "line 2"),
    (None, "it is null"),
    ("<s><c>", "line 1, column"),
    ("<s>\n<c>\n</s>", "line 3, column"),
    ("<s/><s/>", "line 1, column 5"),
    ("<s/>x", "line 1, column 5"),
    ("<s a=1/>", "line 1"),
    ("<s><c id='1' id='2'/></s>", "redefined"),
    ("<s xmlns:a='u' xmlns:b='u'><c a:i='1' b:i='2'/></s>", "redefined"),
    ("<a:s/>", "prefix a"),
    ("<s>&</s>", "line 1"),
    ("<s>&nbsp;</s>", "nbsp"),
    ("<s a='<'/>", "line 1"),
    ("<s>\0</s>", "line 1"),
    ("<s>\x01</s>", "line 1"),
    ("<s>\uffff</s>", "line 1"),
    ("<s>&#0;</s>", "line 1"),
    ("<s>&#xD800;</s>", "line 1"),
    ("<s>&#x110000;</s>", "line 1"),
    ("<s>\n \ud800</s>", "line 2, column 2: half of a surrogate pair"),
    ("<s><!-- a -- b --></s>", "line 1"),
    ("<s><![CDATA[</s>", "line 1"),
    (" <?xml version='1.0'?><s/>", "line 1"),
    ("<html><br></html>", "line 1"),
    ('{"a": 1}', "line 1"),
    (v("é").encode("latin-1"), "line 1, column"),
    (v("é").encode("utf-16-le"), "line 1"),
    (b"<?xml version='1.0' encoding='utf-8'?>" + v("é").encode("latin-1"), "line 1"),
    (b"<?xml version='1.0' encoding='nonsense'?><r/>", "nonsense"),
    (b"<r><v>\xc0\xaf</v></r>", "line 1"),
    (b"<r><v>\xed\xa0\x80</v></r>", "line 1"),
]


@pytest.mark.parametrize(("text", "says"), MALFORMED, ids=short)
def test_a_malformed_text_is_refused_with_its_place(text: Any, says: str) -> None:
    assert re.search(f"the text is malformed.*{says}|{says}", wrong(ROWS, text))
    assert xml("/s/c", str, malformed="null")(text) == []
    assert xml("/s/c", malformed="null", id=int)(text) == []


def bomb(use: str) -> str:
    entities = "".join(
        f'<!ENTITY a{at} "{(f"&a{at - 1};" if at else "l") * 10}">' for at in range(10)
    )
    return f"<!DOCTYPE s [{entities}]>{use}"


DOCUMENT_TYPES = {
    "billion laughs": bomb("<s>&a9;</s>"),
    "in an attribute": bomb("<s a='&a9;'/>"),
    "not used": bomb("<s/>"),
    "quadratic": f"<!DOCTYPE s [<!ENTITY a '{'x' * 50_000}'>]><s>{'&a;' * 50_000}</s>",
    "recursive": "<!DOCTYPE s [<!ENTITY a '&b;'><!ENTITY b '&a;'>]><s>&a;</s>",
    "default attribute": "<!DOCTYPE s [<!ATTLIST c id CDATA '7'>]><s><c/></s>",
    "empty": "<!DOCTYPE s><s/>",
}


@pytest.mark.parametrize("text", DOCUMENT_TYPES.values(), ids=list(DOCUMENT_TYPES))
def test_a_document_type_is_refused_before_it_grows(text: str) -> None:
    says = wrong(ROWS, text)
    assert re.search("document type|amplification|loop|malformed", says)
    assert len(says) < 1000


def test_a_document_type_is_named_with_its_line() -> None:
    assert "line 2, column 2: it has a document type" in wrong(ROWS, "<?p?>\n <!DOCTYPE s><s/>")
    assert STRS(v("<![CDATA[<!DOCTYPE x>]]><!-- <!DOCTYPE y> -->")) == ["<!DOCTYPE x>"]


def test_nothing_is_fetched(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hunter2 <")  # what is read of it is a mistake of another kind
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/x"
        texts = [
            f'<!DOCTYPE s [<!ENTITY x SYSTEM "{place}">]><s><v>&x;</v></s>'
            for place in (url, secret.as_uri())
        ]
        texts += [
            f'<!DOCTYPE s [<!ENTITY % x SYSTEM "{url}"> %x;]><s/>',
            f'<!DOCTYPE s SYSTEM "{url}"><s/>',
        ]
        for text in texts:
            says = wrong(STRS, text)
            assert "it has a document type" in says
            assert "hunter2" not in says
        harmless = [
            "<r xmlns:xi='http://www.w3.org/2001/XInclude'><v>"
            f"<xi:include href='{secret}' parse='text'/></v></r>",
            f"<?xml-stylesheet href='{url}'?><r><v/></r>",
            f"<r xmlns:i='http://www.w3.org/2001/XMLSchema-instance' i:schemaLocation='{url}'>"
            "<v/></r>",
        ]
        for text in harmless:
            assert STRS(text) == [""]
        server.setblocking(False)
        with pytest.raises(BlockingIOError):  # nobody has come
            server.accept()


def test_what_is_too_large_is_refused_and_what_is_large_read() -> None:
    assert "epth" in wrong(STRS, "<v>" * 3_400_000)
    assert STRS("<v>" * 200 + "</v>" * 200) == [""] * 200
    assert len(STRS(v("x" * 9_000_000))[0]) == 9_000_000
    assert "malformed" in wrong(STRS, v("x" * 11_000_000))
    assert "malformed" in wrong(STRS, f"<r a='{'x' * 11_000_000}'/>")
    assert "malformed" in wrong(STRS, f"<{'x' * 1_000_000}/>")
    assert INTS("<r>" + "<v>1</v>" * 50_000 + "</r>") == [1] * 50_000


TEXTS: list[tuple[Any, list[str]]] = [
    (v("é").encode(), ["é"]),
    (b"\xef\xbb\xbf" + v("é").encode(), ["é"]),
    ("\ufeff" + v("é"), ["é"]),
    (v("é").encode("utf-16"), ["é"]),
    (b"\xfe\xff" + v("é").encode("utf-16-be"), ["é"]),
    (b"<?xml version='1.0' encoding='iso-8859-1'?>" + v("é").encode("latin-1"), ["é"]),
    ("<?xml version='1.0' encoding='iso-8859-1'?>" + v("é"), ["é"]),
    ("<?xml version='1.0' encoding='utf-16'?>" + v("é"), ["é"]),
    ("<?xml version='1.0' encoding='nonsense'?>" + v("é"), ["é"]),
    (bytearray(v("a").encode()), ["a"]),
    (v("😀&#x1F600;"), ["😀😀"]),
    (v("1<!-- c -->2<?p x?>3"), ["123"]),
    (v("<![CDATA[<&>]]>x"), ["<&>x"]),
    (v("a<b>b<i>c</i></b>d"), ["abcd"]),
    (v("&lt;&amp;&gt;&quot;&apos;"), ["<&>\"'"]),
    (v(" a\tb\r\n"), [" a\tb\n"]),
    (v("e\u0301\x85\u202e"), ["e\u0301\x85\u202e"]),
    ("<r><v/><v></v></r>", ["", ""]),
    ("<v>a<v>b</v></v>", ["ab", "b"]),
    ("<r/>", []),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS, ids=short)
def test_a_value_is_the_text_of_its_node(text: Any, expected: list[str]) -> None:
    assert STRS(text) == expected


VALUES: list[tuple[Any, str, Any]] = [
    (INTS, " \n-007\t", -7),
    (INTS, "+7", 7),
    (INTS, str(2**63 - 1), 2**63 - 1),
    (INTS, str(-(2**63)), -(2**63)),
    (FLOATS, "3", 3.0),
    (FLOATS, "-.5e1", -5.0),
    (FLOATS, "1e-400", 0.0),
    (FLOATS, str(2**53), 2.0**53),
    (FLOATS, "INF", float("inf")),
    (FLOATS, "-inf", float("-inf")),
    (BOOLS, " true ", True),
    (BOOLS, "0", False),
    (TIMES, "2024-01-01T01:00:00+01:00", 1_704_067_200_000_000),
    (TIMES, " 2024-01-01 00:00:00.123456000 ", 1_704_067_200_123_456),
    (TIMES, "1970-01-02", 86_400_000_000),
    (NS, "1970-01-01T00:00:00.000000001Z", 1),
    (DAYS, "1970-01-02", 1),
    (PAID, "1.5000", 150),
    (PAID, "-.5", -50),
    (PAID, "1e2", 10_000),
    (PAID, "0e-999999999", 0),
]


@pytest.mark.parametrize(("function", "text", "expected"), VALUES, ids=short)
def test_a_text_is_read_exactly(function: Any, text: str, expected: Any) -> None:
    (found,) = function(v(text))
    assert (found, type(found)) == (expected, type(expected))


def test_floats_have_nan_and_a_negative_zero() -> None:
    (nan,) = FLOATS(v("NaN"))
    assert nan != nan
    assert str(FLOATS(v("-0.0"))[0]) == "-0.0"


MISFITS: list[tuple[Any, str, str]] = [
    (INTS, "abc", "a value is 'abc'; expected int, in <v> in line 1"),
    (INTS, "", "is ''; expected int"),
    (INTS, "1_0", "is '1_0'; expected int"),
    (INTS, "\u0661", "expected int"),
    (INTS, "\uff11", "expected int"),
    (INTS, "1.0", "expected int"),
    (INTS, "1e3", "expected int"),
    (INTS, "0x10", "expected int"),
    (INTS, "\xa07", "expected int"),
    (INTS, "true", "expected int"),
    (INTS, str(2**63), "is 9223372036854775808, which does not fit int64"),
    (INTS, str(2**70), "does not fit int64"),
    (INTS, "1" * 5000, "expected int"),
    (FLOATS, "1e400", "does not fit double"),
    (FLOATS, str(2**53 + 1), "does not fit double"),
    (FLOATS, "1,5", "is '1,5'; expected float"),
    (FLOATS, "0x1p3", "expected float"),
    (FLOATS, ".", "expected float"),
    (FLOATS, "", "expected float"),
    (BOOLS, "True", "is 'True'; expected true, false, 1 or 0"),
    (BOOLS, "", "expected true"),
    (TIMES, "1704067200", r"is '1704067200'; expected a time in ISO 8601 to the us, in"),
    (TIMES, "1970-01-01T00:00:00.000000001Z", "ISO 8601 to the us"),
    (TIMES, "2024-02-30", "ISO 8601"),
    (TIMES, "", "ISO 8601"),
    (NS, "9999-01-01", "ISO 8601 to the ns"),
    (DAYS, "19700102", "a date in ISO 8601"),
    (DAYS, "1970-01-02T00:00:00", "a date"),
    (PAID, "1.005", "2 digits after its point"),
    (PAID, "NaN", "2 digits"),
    (PAID, "1_0", "2 digits"),
    (PAID, "1e999999999", "2 digits"),
]


@pytest.mark.parametrize(("function", "text", "says"), MISFITS, ids=short)
def test_what_does_not_fit_is_refused_with_value_and_type(
    function: Any, text: str, says: str
) -> None:
    assert re.search(says, wrong(function, v(text)))


def test_a_column_is_an_attribute_or_a_child() -> None:
    assert ROWS("<s><c id='1' x='2' n=''/></s>") == [(1, 2.0, "")]
    assert ROWS("<s><c><id>1</id><x> 2.5 </x><n> a </n></c></s>") == [(1, 2.5, " a ")]
    assert ROWS("<s><c id='2'/><d id='9'/><c id='1'><y><x>5</x></y></c></s>") == [
        (2, None, None),
        (1, None, None),
    ]
    assert ROWS("<s xmlns='u'><c id='1'/></s>") == []
    assert ROWS("<s xmlns:a='u'><c a:id='2' id='1'><a:x>7</a:x></c></s>") == [(1, None, None)]
    row = ROWS("<s><c id='1'/></s>")[0]
    assert (row.id, row.n, repr(row)) == (1, None, "Row(id=1, x=None, n=None)")
    assert isinstance(row, ROWS.Row)


def test_what_is_missing_or_there_twice_is_named() -> None:
    assert "column 'id' is missing in <c> in line 2 (it has x); expected int: declare it" in wrong(
        ROWS, "<s>\n<c x='1'/></s>"
    )
    assert "did you mean 'ID'" in wrong(ROWS, "<s><c ID='1'/></s>")
    assert "column 'x' is ''; expected float" in wrong(ROWS, "<s><c id='1' x=''/></s>")
    assert "in <c> in line 3" in wrong(ROWS, "<s><c id='1'/>\n<c id='2'/>\n<c id='?'/></s>")
    many = " ".join(f"a{at}=''" for at in range(20_000))
    assert len(wrong(ROWS, f"<s><c {many}/></s>")) < 400
    assert len(wrong(ROWS, "<s><c><" + "x" * 40_000 + "/></s>")) < 500
    for text in ("<c id='1'><id>1</id></c>", "<c><id>1</id><id>2</id></c>"):
        assert "<c> in line 1 has 'id' more than once" in wrong(ROWS, f"<s>{text}</s>")


DOCUMENT = (
    "<a z='0'><b i='1'><c>x</c></b><b i='2'><c>y</c><d/></b><e xmlns='urn:e' xmlns:p='urn:p'"
    " p:k='9'>t</e><a><b i='3'/></a><!-- c --><?p i?></a>"
)
PATHS: list[tuple[str, list[str]]] = [
    ("a/b/@i", ["1", "2"]),
    ("/a/b/@i", ["1", "2"]),
    ("./a/b/@i", ["1", "2"]),
    ("b/@i", []),
    ("//b/@i", ["1", "2", "3"]),
    ("a//b/@i", ["1", "2", "3"]),
    ("*/b[c]/@i", ["1", "2"]),
    ("a/b[2]/@i", ["2"]),
    ("(a/b | a/a/b)[last()]/@i", ["3"]),
    ("a/b[c='y']/@i", ["2"]),
    ("child::a/child::b/attribute::i", ["1", "2"]),
    ("//c/text()", ["x", "y"]),
    ("//comment() | //processing-instruction('p')", [" c ", "i"]),
    ("//{urn:e}e/@{urn:p}k", ["9"]),
    ("a/{urn:e}*", ["t"]),
    ("//{}b/@i", ["1", "2", "3"]),
    ("//c[.='$t']", []),
]


@pytest.mark.parametrize(("path", "expected"), PATHS, ids=short)
def test_a_path_begins_at_the_document(path: str, expected: list[str]) -> None:
    assert xml(path, str)(DOCUMENT) == expected


def test_a_column_may_have_a_path() -> None:
    function = xml(
        "a/b",
        i=("@i", int),
        c=("c[. = $kept]", ss.nullable(str)),
        count=("count(*)", int),
        has=("boolean(d)", bool),
        first=("../@z", int),
        half=("count(*) + 0.5", float),
    )
    assert function(DOCUMENT, "y") == [(1, None, 1, False, 0, 1.5), (2, "y", 2, True, 0, 2.5)]
    texts = xml("//x", text=("text()", ss.nullable(float)))
    assert texts("<r><x/><x>1</x></r>") == [(None,), (1.0,)]
    assert "'*' selects 2 nodes in <b> in line 1" in wrong(xml("a/b", c=("*", str)), DOCUMENT)
    assert "is 1.0; expected str" in wrong(xml("a/b", c=("count(*)", str)), DOCUMENT)
    assert "selects attribute 'i' of <b> in line 1; expected an element" in wrong(
        xml("a/b/@i", x=str), DOCUMENT
    )
    assert "a value is '2'; expected true" in wrong(xml("//@i", bool), DOCUMENT)
    assert "attribute 'i' of <b> in line 1" in wrong(xml("//@i", bool), DOCUMENT)


def test_namespaces_have_prefixes_or_braces() -> None:
    text = "<a xmlns='u'><b xmlns='v' x='1'/></a>"
    assert xml("p:a/q:b", namespaces={"p": "u", "q": "v"}, x=int)(text) == [(1,)]
    assert xml("ns0:a/{v}b", namespaces={"ns0": "u"}, x=int)(text) == [(1,)]


def test_an_argument_is_a_value_and_no_part_of_the_path() -> None:
    one = xml("a/b[@i = $i]/@i", str)
    assert one(DOCUMENT, 2) == one(DOCUMENT, "2") == one(DOCUMENT, i=2.0) == ["2"]
    two = xml("//b[@i = $x or c = $y or c = $x]/@i", str)
    assert two.arguments == ("x", "y")
    assert two(DOCUMENT, 3, "x") == two(DOCUMENT, y="x", x=3) == ["1", "3"]
    text = xml("//c[. = $self or . = $_etree_or_element]", str)
    assert text(DOCUMENT, "' or '1'='1", "x'] | //@i | //c['") == []
    assert text(DOCUMENT, "x", "y") == ["x", "y"]
    assert xml("//b[$on]/@i", str)(DOCUMENT, True) == ["1", "2", "3"]


@pytest.mark.parametrize(
    ("given", "named", "error", "says"),
    [
        ((), {}, TypeError, r"needs 'i', which a path has as \$i"),
        ((1, 2), {}, TypeError, "got 2 by position"),
        ((1,), {"i": 1}, TypeError, "got i="),
        ((), {"j": 1}, TypeError, "got j="),
        ((None,), {}, TypeError, r"\$i is None; expected a number, a bool or a text"),
        ((2**53 + 1,), {}, ValueError, "up to 2"),
        (("\0",), {}, ValueError, "characters"),
    ],
)
def test_arguments_are_those_of_the_path(
    given: tuple[Any, ...], named: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        xml("a/b[@i = $i]", str)(DOCUMENT, *given, **named)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "character 1"),
        ("/", "the document is no node with a value"),
        ("a[", "character 3, and it ends there"),
        ("a]", "character 2"),
        ("a//", "character 4"),
        ("a b", "character 3, and finds 'b'"),
        ("a[b and]", "character 8"),
        ("a[1", "']' at character 4"),
        ("a['x]", "a text that does not end begins, at character 3"),
        ("a[foo()]", "no function 'foo'"),
        ("a[starts-wiht(., 'x')]", "did you mean 'starts-with'"),
        ("a[contains(.)]", r"takes 2 argument\(s\), and has 1"),
        ("childs::b", "did you mean 'child'"),
        ("a/count(b)", "is no step"),
        ("a[@p:b]", "'p' stands for no namespace.*character 4"),
        ("a[$class]", "cannot be an argument"),
        ("a[$]", "character 3"),
        ("$x/a", "none of XPath 1.0"),
        ("count(//a)", "computes a number"),
        ("string(a)", "computes a text"),
        ("a = b", "computes a bool"),
        ("(" * 5000, "lie in one another"),
        ("a;b", "character 2"),
        (5, "path is 5; expected a text"),
    ],
    ids=short,
)
def test_a_wrong_path_is_refused_with_its_position(path: Any, says: str) -> None:
    with pytest.raises(ss.DeclarationError, match=says):
        xml(path, str)


@pytest.mark.parametrize(
    ("given", "columns", "says"),
    [
        ((), {}, "has no columns; expected some, like id=int"),
        ((int,), {"x": int}, "has a type.*and columns"),
        ((), {"x": "int"}, "column 'x' has type 'int'.*write int, without quotation marks"),
        ((), {"x": complex}, "column 'x' has type complex; expected one of int"),
        ((), {"x": list[int]}, "column 'x'"),
        ((), {"x": ("b",)}, "expected a type, or a path and a type"),
        ((), {"x": (int, "b")}, "expected a type, or a path and a type"),
        ((), {"x": ("b[", int)}, r"path of column 'x' 'b\[': .*character 3"),
        ((), {"_x": int}, "column '_x'"),
        ((), {"x y": int}, "column 'x y'"),
        ((), {"class": int}, "column 'class'"),
        ((), {"x": ss.decimal}, "not called"),
        ((), {"malfromed": "null"}, "did you mean 'malformed'"),
        ((), {"namespace": {"p": "u"}, "x": int}, "did you mean 'namespaces'"),
        ((int,), {"malformed": "ignore"}, "malformed='ignore'"),
        ((int,), {"namespaces": {"": "u"}}, "expected a name without a colon"),
        ((int,), {"namespaces": {"p": ""}}, "expected a URI"),
        ((int,), {"namespaces": ["p"]}, "expected URIs by their prefixes"),
    ],
)
def test_what_cannot_be_declared_is_refused(
    given: tuple[Any, ...], columns: dict[str, Any], says: str
) -> None:
    with pytest.raises(ss.DeclarationError, match=says):
        xml("a", *given, **columns)


def test_function_and_rows_are_copied_and_pickled() -> None:
    function = xml("//{urn:e}e | a/b", malformed="null", k=("@*", ss.nullable(int)))
    for made in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
        assert made(DOCUMENT) == function(DOCUMENT) == [(1,), (2,), (9,)]
        assert made.Row is function.Row
        assert repr(made) == repr(function)
        assert made("<") == []
    assert repr(xml("a", d=ss.nullable(ss.decimal(2)), t=("@t", datetime.datetime))) == (
        "ss.formats.xml('a', d=ss.nullable(ss.decimal(2)), t=('@t', ss.timestamp('us', 'UTC')))"
    )
    (row, *_) = function(DOCUMENT)
    again = pickle.loads(pickle.dumps(row))
    assert (again, type(again)) == (row, type(row))


def test_what_is_no_text_is_a_mistake_of_the_program() -> None:
    with pytest.raises(TypeError, match="expected a text or its bytes, got 5"):
        ROWS(5)

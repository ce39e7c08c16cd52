"""Rows out of JSON: each text gives what is written beside it, or ValueError that says where."""

from __future__ import annotations

import copy
import datetime
import pickle
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

import specstream as ss

pytest.importorskip("msgspec", reason='pip install "specstream[json]"')
pytest.importorskip("jmespath", reason='pip install "specstream[json]"')

json = ss.formats.json
ROWS = json("o", id=int, x=ss.nullable(float), n=ss.nullable(str))
INTS, FLOATS, BOOLS, STRS = (json("v", of) for of in (int, float, bool, str))
MAYBE = json("v", ss.nullable(int))
TIMES, MS = json("v", datetime.datetime), json("v", ss.timestamp("ms"))
DAYS, PAID = json("v", datetime.date), json("v", ss.decimal(2))


def v(value: object) -> str:
    return f'{{"v": {value}}}'


def short(one: object) -> str:
    """Names a case: pytest puts the name into the environment."""
    return ascii(one)[:40]


def wrong(function: Callable[[Any], Any], text: Any) -> str:
    """What a text is refused with, quickly and by ValueError itself."""
    began = time.process_time()
    with pytest.raises(ValueError, match=r"json\('|path '") as caught:
        function(text)
    assert type(caught.value) is ValueError
    assert time.process_time() - began < 2
    return str(caught.value)


MALFORMED: list[tuple[Any, str]] = [
    ("", "line 1, column 1: it is empty"),
    (" \n", "it is empty"),
    ("\ufeff", "it is empty"),
    (None, "it is null"),
    ('{\n "o": [\n', "line 3, column 1"),
    ('{"o" 1}', "line 1, column 6: expected ':'"),
    ('{"o": [1,]}', "line 1, column 10"),
    ('{"o": 1,\n}', "line 2, column 1"),
    ("{} {}", "line 1, column 4"),
    ("{'o': 1}", "line 1, column 2"),
    ("{} // x", "line 1, column 4"),
    ("True", "line 1, column 1"),
    (v("NaN"), "line 1, column 7"),
    (v("-Infinity"), "line 1"),
    (v("01"), "line 1"),
    (v("+1"), "line 1"),
    (v(".5"), "line 1"),
    (v("1."), "line 1"),
    (v("1_0"), "line 1"),
    ("<a/>", "line 1, column 1"),
    (v('"a\x01"'), "line 1"),
    (v('"a\nb"'), "line 1"),
    (v('"\\x"'), "line 1"),
    (v('"\\u12g4"'), "line 1"),
    (v('"\\ud800"'), "line 1"),
    (v('"\\udc00"'), "line 1"),
    (v('"\\ude00\\ud83d"'), "surrogate pair"),
    ('{"é😀": x}', "line 1, column 8"),
    ('{\n"v": "\ud800"}', "line 2, column 7: half of a surrogate pair"),
    (b'{"v": "\xed\xa0\x80"}', "line 1, column 8: .*UTF-8"),
    (b'{"a": "\xc3\xbc",\n"v": "\xe9"}', "line 2, column 7: .*UTF-8"),
    (b'{"v": "\xc0\xaf"}', "UTF-8"),
    (v('"a"').encode("utf-16"), "line 1"),
    ("\xa0{}", "line 1, column 1"),
    (v("1" * 5000), "line 1, column 7: .*range"),
    ('{"t": "' + "1" * 5000 + '", "w": ' + "1" * 5000 + "}", "column 5016: .*range"),
    (
        '{"t": "[[[",\n"a":' + "[" * 256 + "]" * 256 + "}",
        "line 2, column 260: it is nested more than",
    ),
    ("[" * 3_000_000, "nested more than 256 deep"),
    ('{"a":' * 3000 + "1" + "}" * 3000, "nested more than 256 deep"),
]


@pytest.mark.parametrize(("text", "says"), MALFORMED, ids=short)
def test_a_malformed_text_is_refused_with_its_place(text: Any, says: str) -> None:
    assert re.search(f"the text is malformed.*{says}", wrong(ROWS, text))
    assert json("o", str, malformed="null")(text) == []
    assert json("o", malformed="null", id=int)(text) == []


def test_depth_is_counted_and_not_how_much_stack_is_left() -> None:
    deep = v("5")[:-1] + ', "d": ' + "[" * 255 + "]" * 255 + "}"
    assert INTS(deep) == [5]

    def below(frames: int) -> list[Any]:
        return INTS(deep) if not frames else below(frames - 1)

    assert below(400) == [5]
    assert STRS(v('"' + "[" * 1000 + '"')) == ["[" * 1000]
    assert len(INTS(v(f"[{','.join(['1'] * 100_000)}]"))) == 100_000
    assert len(ROWS('{"o": [' + ", ".join(['{"id": 1}'] * 1000) + "]}")) == 1000


VALUES: list[tuple[Any, Any, list[Any]]] = [
    (INTS, 2**63 - 1, [2**63 - 1]),
    (INTS, -(2**63), [-(2**63)]),
    (INTS, "-0", [0]),
    (INTS, "null", []),
    (INTS, "[]", []),
    (INTS, "[1, 2]", [1, 2]),
    (MAYBE, f"[null, {2**63 - 1}]", [None, 2**63 - 1]),
    (FLOATS, 3, [3.0]),
    (FLOATS, "[1, 2.5]", [1.0, 2.5]),
    (FLOATS, "1e-400", [0.0]),
    (FLOATS, 2**53, [2.0**53]),
    (BOOLS, "[true, false]", [True, False]),
    (STRS, '["", "\\u0000", "\\ud83d\\ude00", "\\uffff", "\\/"]', ["", "\0", "😀", "\uffff", "/"]),
    (TIMES, '["1970-01-01T00:00:00.000005Z", 5, "1970-01-01"]', [5, 5, 0]),
    (MS, '["1970-01-01T01:00:00.005+01:00", 5]', [5, 5]),
    (DAYS, '"1970-01-02"', [1]),
    (PAID, '[1.10, "1.1", 1, 1e1, 92233720368547758.07]', [110, 110, 100, 1000, 2**63 - 1]),
]


@pytest.mark.parametrize(("function", "value", "expected"), VALUES, ids=short)
def test_a_value_is_read_exactly(function: Any, value: Any, expected: list[Any]) -> None:
    found = function(v(value))
    assert [(one, type(one)) for one in found] == [(one, type(one)) for one in expected]
    for text in (v(value).encode(), b"\xef\xbb\xbf" + v(value).encode(), "\ufeff" + v(value)):
        assert function(text) == expected


MISFITS: list[tuple[Any, Any, str]] = [
    (INTS, 2**63, "a value is 9223372036854775808, which does not fit int64, in what is selected"),
    (INTS, 2**70, "does not fit int64"),
    (INTS, "1" * 4000, "does not fit int64"),
    (INTS, "1.0", "is 1.0; expected int"),
    (INTS, "1e3", "is 1000.0; expected int"),
    (INTS, '"5"', "is '5'; expected int"),
    (INTS, "true", "is True; expected int"),
    (INTS, "[1, [2]]", r"is \[2\]; expected int, in element 1 of those selected"),
    (INTS, "[1, null]", "a value is missing in element 1"),
    (MAYBE, f"[null, {2**63}]", "does not fit int64, in element 1"),
    (FLOATS, 2**53 + 1, "does not fit double"),
    (FLOATS, "1e400", "does not fit double"),
    (FLOATS, "-1e99999999999999999999", "expected float"),
    (FLOATS, '"1.5"', "is '1.5'; expected float"),
    (FLOATS, "true", "expected float"),
    (BOOLS, "1", "is 1; expected bool"),
    (STRS, "5", "is 5; expected str"),
    (TIMES, "5.0", "is 5.0; expected a time in ISO 8601 to the us, or a whole number of us"),
    (MS, '"1970-01-01T00:00:00.0055Z"', "to the ms"),
    (DAYS, "1", "a date in ISO 8601"),
    (PAID, "1.005", r"is Decimal\('1.005'\); expected a decimal with 2 digits"),
    (PAID, "0.10000000000000000555", "2 digits"),
    (PAID, "92233720368547758.08", "does not fit"),
    (PAID, "1e999999999", "fit|2 digits"),
    (PAID, "1e-99999999999999999999", "2 digits"),
    (PAID, '"NaN"', "2 digits"),
]


@pytest.mark.parametrize(("function", "value", "says"), MISFITS, ids=short)
def test_what_does_not_fit_is_refused_with_value_and_type(
    function: Any, value: Any, says: str
) -> None:
    assert re.search(says, wrong(function, v(value)))


def test_a_number_that_nobody_reads_may_be_any() -> None:
    assert FLOATS('{"v": 1.5, "w": 1e400}') == [1.5]
    assert INTS('{"v": 1, "w": ' + "1" * 400 + "}") == [1]


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    """As in Python's json, and so in messages of sources."""
    assert INTS('{"v": 1, "\\u0076": 2}') == [2]
    assert ROWS('{"o": [{"id": 1, "id": 2}]}') == [(2, None, None)]


def test_a_row_is_an_object() -> None:
    two = ROWS('{"o": [{"id": 1, "x": 2, "n": "a", "z": []}, {"id": 2, "x": null}]}')
    assert two == [(1, 2.0, "a"), (2, None, None)]
    assert (two[0].id, repr(two[1])) == (1, "Row(id=2, x=None, n=None)")
    assert isinstance(two[0], ROWS.Row)
    assert ROWS('{"o": {"id": 1}}') == [(1, None, None)]
    for nothing in ('{"o": []}', '{"o": null}', "{}", "[]", "5"):
        assert ROWS(nothing) == []
    for text, says in (
        ('{"o": [5]}', "selects 5 as what is selected; expected an object"),
        ('{"o": [{"id": 1}, null]}', "selects None as element 1"),
        ('{"o": [[{"id": 1}]]}', "expected an object"),
        (
            '{"o": [{"id": 1}, {"x": 1}]}',
            "column 'id' is missing in element 1 of those selected (it has x)",
        ),
        ('{"o": {"id": null}}', "is missing in what is selected, where it is null; expected int"),
        ('{"o": {"Id": 1}}', "did you mean 'Id'"),
        ('{"o": {"id": 1, "x": {"y": 1}}}', "column 'x' is {'y': 1}; expected float"),
    ):
        assert says in wrong(ROWS, text)


def test_a_message_is_short_whatever_the_text_has() -> None:
    keys = ", ".join(f'"k{at}": 1' for at in range(100_000))
    assert len(wrong(ROWS, f'{{"o": {{{keys}}}}}')) < 400
    assert len(wrong(ROWS, f'{{"o": {{"{"k" * 100_000}": 1}}}}')) < 600
    assert len(wrong(json("abs(v)", int), v('"' + "x" * 100_000 + '"'))) < 500


DOCUMENT = (
    '{"a": [{"i": 1, "c": "x", "p": 1.5}, {"i": 2, "c": "y\'", "d": {"e": [1, 2]}, "p": 0.1}],'
    ' "n": null, "t": "$i", "k v": 5, "b": true}'
)
PATHS: list[tuple[str, tuple[Any, ...], list[int]]] = [
    ("a[].i", (), [1, 2]),
    ("a[-1].i", (), [2]),
    ("a[5].i", (), []),
    ('"k v"', (), [5]),
    ("length(a)", (), [2]),
    ("a[].d.e[]", (), [1, 2]),
    ("a[?i == `2`].i", (), [2]),
    ("a[?i > $n].i", (1,), [2]),
    ("a[?i == $i || c == $c || i == $i].i", (9, "x"), [1]),
    ("a[?c == $c].i", ("' || `true` || '",), []),
    ("a[?c == $c].i", ("x`",), []),
    ("a[?c == $c].i", ("y'",), [2]),
    ("a[?c == '$c'].i", (), []),
    ("a[?d == $v].i", (None,), [1]),
    ("a[?i == $v].i", (True,), []),
    ("a[?i == $v].i", ("1",), []),
    ("a[?p == $v].i", (0.1,), [2]),
    ("t == $v && `[1]`", ("$i",), [1]),
]


@pytest.mark.parametrize(("path", "given", "expected"), PATHS, ids=short)
def test_an_argument_is_a_value_and_no_part_of_the_path(
    path: str, given: tuple[Any, ...], expected: list[int]
) -> None:
    function = json(path, int)
    assert function(DOCUMENT, *given) == expected
    assert function(DOCUMENT, **dict(zip(function.arguments, given, strict=True))) == expected


def test_a_column_may_have_a_path_and_decimals_keep_their_digits() -> None:
    function = json(
        "a", e=("d.e | [0]", ss.nullable(int)), n=("length(keys(@))", int), q=("$q", str)
    )
    assert function(DOCUMENT, "q") == [(None, 3, "q"), (1, 4, "q")]
    # Functions and comparisons of JMESPath take the exact numbers for floats.
    exact = json("a[?p == $p]", p=ss.decimal(2), sum=("sum([p, p])", float))
    assert exact(DOCUMENT, 0.1) == [(10, 0.2)]
    assert "In function sum()" in wrong(json("sum(a[].c)", float), DOCUMENT)


@pytest.mark.parametrize(
    ("given", "named", "says"),
    [
        ((), {}, r"needs 'i', which a path has as \$i"),
        ((1, 2), {}, "got 2 by position"),
        ((), {"j": 1}, "got j="),
        (([1],), {}, r"\$i is \[1\]; expected a number"),
    ],
)
def test_arguments_are_those_of_the_path(
    given: tuple[Any, ...], named: dict[str, Any], says: str
) -> None:
    with pytest.raises(TypeError, match=says):
        json("a[?i == $i]", str)(DOCUMENT, *given, **named)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "is empty"),
        ("a[", "ends too early, at character 3"),
        ("a]", "at character 2"),
        ("a..b", "at character 3"),
        ("a b", "finds 'b' at character 3"),
        ("a[?b == 1]", "at character 9"),
        ("a[?b == $x c", "finds 'c' at character 12"),
        ("a[?b == $x", "ends too early, at character 11"),
        ("$x $y", r"finds '\$y' at character 4"),
        ("lenght(a)", "no function 'lenght'.*did you mean 'length'"),
        ("sort_by(a, &nofn(b))", "no function 'nofn'"),
        ("a[?b == $]", r"a name behind \$, at character 9"),
        ("a[?b == $class]", "cannot be an argument"),
        ("a.$x", "at character 3"),
        ("/a/b", "at character 1"),
        ("(" * 3000, "too many parts"),
        (None, "path is None; expected a text"),
    ],
    ids=short,
)
def test_a_wrong_path_is_refused_with_its_position(path: Any, says: str) -> None:
    with pytest.raises(ss.DeclarationError, match=says):
        json(path, str)


def test_what_cannot_be_declared_is_refused() -> None:
    for columns, says in (
        ({}, "has no columns"),
        ({"x": dict}, "column 'x' has type dict"),
        ({"x": ("b[", int)}, r"path of column 'x' 'b\[' ends too early"),
        ({"malformd": "null"}, "did you mean 'malformed'"),
    ):
        with pytest.raises(ss.DeclarationError, match=says):
            json("a", **columns)


def test_function_and_rows_are_copied_and_pickled() -> None:
    function = json("a[?i > $i]", malformed="null", c=str, d=("d.e[0]", ss.nullable(int)))
    for made in (copy.deepcopy(function), pickle.loads(pickle.dumps(function))):
        assert made(DOCUMENT, 1) == function(DOCUMENT, i=1) == [("y'", 1)]
        assert (made.Row, repr(made), made("{", 1)) == (function.Row, repr(function), [])
    (row,) = function(DOCUMENT, 1)
    again = pickle.loads(pickle.dumps(row))
    assert (again, type(again)) == (row, type(row))

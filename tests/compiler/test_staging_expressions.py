"""Expressions of an event as people write them: each is what Python makes of it.

An operator is made of many of them, each for events of its own; Python evaluates the same texts on
plain values. Each value, and the class of each exception, is the same. Nothing is annotated: the
types are inferred, of methods, of what the standard library gives, of helpers and of classes.
"""

from __future__ import annotations

import random
import runpy
import types
import uuid
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle

from specstream.columns.instants import Instant

HEAD = """
import base64, binascii, bisect, calendar, collections, datetime, decimal, difflib, fractions
import functools, hashlib, html, ipaddress, itertools, json, math, os, re, statistics, string
import textwrap, unicodedata, urllib.parse, zlib
from collections import Counter
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from enum import Enum, IntEnum
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qs, unquote, urlparse, urlsplit
from uuid import UUID

import specstream as ss

BOUNDS = [1.0, 2.5, 10.0]
CUTS = (3, 5, 8)
LIMITS = [1, 2, 3, 4, 5, 6, 7, 8]
NAMES = {"EU": "Europe", "US": "States"}
WEIGHTS = {"a": 1, "b": 2}
BLOCKED = {"spam", "eggs"}
FROZEN = frozenset({"spam", "eggs"})
CODE = re.compile(r"(\\w+)-(\\d+)")


class Color(Enum):
    RED = 1
    BLUE = 2


class Level(IntEnum):
    LOW = 1
    HIGH = 2


class Side(str, Enum):
    BUY = "buy"
    SELL = "sell"


class Point(NamedTuple):
    x: int
    name: str


Pair = collections.namedtuple("Pair", "a b")


@dataclass(frozen=True)
class Quote:
    price: float
    name: str = "none"

    @property
    def label(self):
        return self.name.upper()

    def twice(self):
        return self.price * 2


def region(code):
    return code[:2].upper()


def kind(code):
    if code.startswith("E"):
        return "europe"
    elif code:
        return "other"
    return "none"


def full(code):
    return NAMES.get(code[:2], "unknown")


def tagged(code, n=3, *, sep="-"):
    return f"{code}{sep}{n}"


def outer(code):
    return region(code) + kind(code)


def both(code):
    head, _, tail = code.partition("-")
    return head, tail


def cleaned(code):
    code = code.strip()
    code = code.lower()
    if not code:
        code = "none"
    return code


def titles(text):
    found = []
    for word in text.split():
        found.append(word.title())
    return " ".join(found)


def most_frequent(text):
    counts = {}
    for c in text:
        counts[c] = counts.get(c, 0) + 1
    return max(counts, key=counts.get) if counts else ""


def longest(text):
    best = None
    for word in text.split():
        if best is None or len(word) > len(best):
            best = word
    if best is None:
        return "none"
    return best


def by_match(text):
    match text.split("-"):
        case ["EU", number]:
            return "e" + number
        case [x]:
            return x
        case _:
            return "?"


def nested(text):
    def inner(c):
        return c.upper()

    return "".join(inner(c) for c in text)


def mixed(text, n):
    return text[n % 3 :] if n > 0 else text


def label(n):
    return f"n{n:03d}"


def vowels(text):
    total = 0
    for c in text:
        if c in "aeiou":
            total += 1
    return total


def first_digit(text):
    for c in text:
        if c.isdigit():
            return int(c)
    return None


def whole(text):
    try:
        return int(text)
    except ValueError:
        return -1


def stripped(text):
    n = 0
    while text.startswith("E"):
        text = text[1:]
        n += 1
    return n


def recursive(s):
    return 0 if not s else (1 if s[0] == "a" else 0) + recursive(s[1:])


def differences(a, b):
    return sum(x != y for x, y in zip(a, b))


def bucket(key, buckets=16):
    return int(hashlib.md5(key.encode()).hexdigest(), 16) % buckets


def weekday(y, m, d):
    return date(y, 1 + m % 12, 1 + d % 20).weekday()


def lengths(text):
    found = {}
    for word in text.split():
        found.setdefault(word[:1], []).append(len(word))
    return {first: sum(all_of) / len(all_of) for first, all_of in found.items()}


def mean_length(text):
    found = lengths(text)
    if not found:
        return 0
    return max(found.values())


@functools.lru_cache
def cached(text):
    return text.swapcase()


class S(ss.State):
    n = ss.scalar(int)


EVENT = {
    "key": str, "text": str, "url": str, "t": str, "ip": str, "payload": str, "hex": str,
    "id": str, "c": str, "note": ss.nullable(str), "time": ss.timestamp("ms"),
    "number": int, "code": int, "a": int, "b": int, "status": int, "x": float, "y": float,
}
"""

EXPRESSIONS = {
    "str": r"""
region(event.key)
kind(event.key)
full(event.key)
tagged(event.key)
tagged(event.key, sep="+")
both(event.key)[1]
titles(event.text)
outer(event.key)
cleaned(event.key)
most_frequent(event.text)
longest(event.text)
by_match(event.key)
nested(event.key)
mixed(event.key, event.a)
label(event.a)
cached(event.text)
urlparse(event.url).netloc
urlparse(event.url).path
urlparse(event.url).hostname or "none"
urlsplit(event.url).scheme
urllib.parse.quote(event.text)
unquote(event.text)
parse_qs(event.url).get("q", [""])[0]
datetime.datetime.fromisoformat(event.t).date().isoformat()
datetime.datetime.strptime(event.t[:10], "%Y-%m-%d").strftime("%A")
datetime.date.fromisoformat(event.t[:10]).strftime("%b")
(ss.when(event.time) + timedelta(days=1)).isoformat()
str(ss.when(event.time).date() - timedelta(days=3))
f"{ss.when(event.time):%Y-%m-%d}"
re.match(r"(\w*)", event.key).group(1)
CODE.sub(r"\2", event.key)
re.findall(r"\w", event.key + "a")[0]
str(ipaddress.ip_address(event.ip))
str(Decimal(event.hex) + 1)
str(fractions.Fraction(event.a, 7))
HTTPStatus(event.status).phrase
HTTPStatus(event.status).name
UUID(event.id).hex
hashlib.sha1(event.key.encode()).hexdigest()
hashlib.md5(event.key.encode("utf-8")).hexdigest()[:4]
collections.Counter(event.text + "a").most_common(1)[0][0]
unicodedata.normalize("NFC", event.text)
unicodedata.category(event.c)
unicodedata.name(event.c)
html.escape(event.text)
base64.b64encode(event.key.encode()).decode()
base64.b64decode("YQ==").decode() + event.key
calendar.month_name[1 + event.status % 12]
calendar.day_name[ss.when(event.time).weekday()]
event.text.strip().title()
event.text[::-1]
chr(event.code % 100 + 40)
max(event.text)
min(event.text, event.key)
event.text or "none"
f"{event.a:>5}"
"%s-%d" % (event.key, event.a)
"{}:{:>3}".format(event.key, event.a)
"-".join([event.key, event.text])
sorted(event.text)[0]
"".join(c for c in event.text if c.isalpha())
"".join(map(str, [event.a, event.b]))
"".join(filter(str.isdigit, event.text))
string.ascii_lowercase[event.code % 26]
event.text.translate(str.maketrans("ab", "xy"))
textwrap.shorten(event.text, 5)
Color(1 + event.status % 2).name
Color["RED" if event.a > 0 else "BLUE"].name
Side(("buy", "sell")[event.status % 2]).value
Point(event.a, event.key).name
Quote(event.x, event.key).name
Quote(event.x, event.key).label
Pair(event.key, event.text).b
NAMES.get(event.key[:2], event.key)
NAMES[event.key].upper()
event.key if event.key.startswith("E") else event.text.upper()
event.key.split("-")[-1]
json.dumps({"a": event.a, "k": event.key})
(event.note or "none").upper()
next((c for c in event.text if c.isdigit()), "none")
max(event.text.split(), key=len, default="")
sorted({event.key, event.text})[0]
difflib.get_close_matches(event.key, ["EU-1", "US"], 1, 0.0)[0]
os.path.basename(event.url)
", ".join(f"{k}={v}" for k, v in NAMES.items()) + event.key
"".join(itertools.chain(event.key, event.text))
""",
    "int": r"""
first_digit(event.text) or 0
vowels(event.text)
whole(event.hex)
stripped(event.key)
recursive(event.text)
differences(event.key, event.text)
bucket(event.key)
bucket(event.key, buckets=5)
weekday(2020, event.a, event.b)
len(both(event.key)[0])
urlparse(event.url).port or 80
datetime.datetime.fromisoformat(event.t).hour
(datetime.datetime.fromisoformat(event.t) - datetime.datetime(2020, 1, 1)).days
date(2020, 1 + event.status % 12, 1).weekday()
ss.when(event.time).hour
ss.when(event.time).isocalendar().week
ss.when(event.time).timetuple().tm_yday
len(re.findall(r"\d", event.key))
ipaddress.ip_address(event.ip).version
HTTPStatus(event.status).value
UUID(event.id).version
UUID(event.id).int % 7
int(hashlib.sha1(event.key.encode()).hexdigest(), 16) % 16
int(hashlib.md5(event.key.encode()).hexdigest(), 16) * 31 % 1000 + 1
int.from_bytes(hashlib.sha1(event.key.encode()).digest()[:4], "big")
hashlib.sha1(event.key.encode()).digest()[0]
zlib.crc32(event.key.encode())
binascii.crc32(event.key.encode())
calendar.monthrange(2020, 1 + event.status % 12)[1]
bisect.bisect(BOUNDS, event.x)
bisect.bisect_right(CUTS, event.a)
int(event.hex, 16)
event.text.count("a")
len(event.text)
ord(event.c)
string.ascii_lowercase.find(event.c)
sum(c.isdigit() for c in event.text)
sum(map(ord, event.text))
max(map(len, event.text.split()), default=0)
Color(1 + event.status % 2).value
Color["RED" if event.a > 0 else "BLUE"].value
Level(1 + event.status % 2).value
Level(1 + event.status % 2) + 1
Point(event.a, event.key).x
unicodedata.digit(event.c, -1)
len(event.key.encode())
(event.a * 20 + event.b).bit_length()
event.key.index("E")
next((i for i, c in enumerate(event.text) if c.isdigit()), -1)
next((i for i, bound in enumerate(BOUNDS) if event.x <= bound), len(BOUNDS))
next((len(v) for k, v in NAMES.items() if event.key.startswith(k)), 0)
next(i for i in range(8) if LIMITS[i] > event.a)
statistics.mode([event.a, event.b, event.a])
0 if event.note is None else len(event.note)
sorted([event.a, event.b, event.status])[1]
int("".join(c for c in event.text if c.isdigit()) or "0")
round(mean_length(event.text) * 100)
sum(WEIGHTS.get(c, 0) for c in event.text)
LIMITS[len(event.text) % 8]
""",
    "float": r"""
float(event.hex)
statistics.mean((event.x, event.y))
statistics.median((event.x, event.y, 1.0))
statistics.pstdev((event.x, event.y))
float(Decimal(event.hex))
Quote(event.x, event.key).price
Quote(event.x, event.key).twice()
timedelta(hours=event.a).total_seconds()
difflib.SequenceMatcher(None, event.key, event.text).ratio()
mean_length(event.text)
unicodedata.numeric(event.c, -1.0)
ss.when(event.time).timestamp()
sum(float(p) for p in event.t[:4].split("-"))
""",
    "bool": r"""
ipaddress.ip_address(event.ip).is_private
ipaddress.ip_address(event.ip) in ipaddress.ip_network("10.0.0.0/8")
"x" in event.text
event.text.isdigit()
all(c.isdigit() for c in event.text)
any(event.key.startswith(p) for p in NAMES)
any(w in event.text for w in BLOCKED)
event.key.lower() in BLOCKED
event.key in FROZEN
event.key in NAMES
calendar.isleap(ss.when(event.time).year)
HTTPStatus(event.status) is HTTPStatus.OK
Color(1 + event.status % 2) is Color.RED
Level(1 + event.status % 2) > Level.LOW
re.fullmatch(r"\w+", event.key) is None
ss.when(event.time).date() > date(2020, 1, 1)
event.c in string.ascii_letters
json.loads(event.payload)["x"] > 3
(event.key, event.a) in {("EU", 1), ("US", 2)}
event.a > 0 and event.key.startswith("E") or not event.text
Decimal(event.hex) > 3
""",
}


def rows(count: int = 24) -> list[dict[str, Any]]:
    draw = random.Random(3)
    chosen: dict[str, list[Any]] = {
        "key": ["EU-1", "US-22", "spam", "euro", "a b c", "", "x-y-z", "EU"],
        "text": ["17", "x", "a bc d", "abcba", "Hello World", "", "7e"],
        "url": ["http://a.b:80/p?q=1", "https://u:p@Host.com/x", "oops", "http://a:x/"],
        "t": ["2021-03-04T05:06:07", "2020-02-29T23:59:59", "soon"],
        "ip": ["10.0.0.1", "8.8.8.8", "::1", "127.0.0.1", "?"],
        "payload": ['{"x": 5, "name": "a"}', '{"x": 1, "y": 2, "name": ""}', "{}"],
        "hex": ["10", "7", "255", "ff"],
        "c": list("aZ7 é"),
        "note": [None, "n", "abc"],
        "status": [200, 404, 500, 299],
    }
    made = []
    for _ in range(count):
        row = {name: draw.choice(values) for name, values in chosen.items()}
        row |= {name: draw.randrange(-5, 9) for name in "ab"} | {"code": draw.randrange(100)}
        row |= {"x": round(draw.uniform(-2, 12), 2), "y": round(draw.uniform(0, 5), 2)}
        row["id"] = str(uuid.UUID(int=draw.getrandbits(128), version=4))
        row["time"] = draw.randrange(1000, 10**12)
        made.append(row)
    return made


ROWS = rows()


def table(event: dict[str, Any], count: int) -> pa.Table:
    """The rows for each of so many expressions."""
    kinds: dict[Any, Any] = {str: pa.string(), int: pa.int64(), float: pa.float64()}
    kinds |= {event["note"]: pa.string(), event["time"]: pa.timestamp("ms")}
    schema = pa.schema([(name, kinds[of]) for name, of in event.items()])
    every = [row | {"number": number} for number in range(count) for row in ROWS]
    return pa.Table.from_pylist(every, schema)


def outcome(text: str, names: dict[str, Any], row: dict[str, Any]) -> tuple[Any, str]:
    """What Python makes of an expression, and which exception it raises."""
    event = types.SimpleNamespace(**row | {"time": Instant.of(row["time"], "ms", None)})
    try:
        value = eval(text, names | {"event": event})
    except Exception as error:
        return None, type(error).__name__
    return str(value) if isinstance(value, str) else value, ""


@pytest.mark.slow
@pytest.mark.parametrize("of", EXPRESSIONS)
def test_an_expression_of_an_event_is_what_python_makes_of_it(of: str, tmp_path: Path) -> None:
    texts = EXPRESSIONS[of].strip().splitlines()
    lines = [HEAD, "", f"@ss.operator(state=S, event=EVENT, emits={{'e': ss.nullable({of})}})"]
    lines += ["def f(state, event, emit):"]
    for number, text in enumerate(texts):
        lines += [f"    if event.number == {number}:", f"        e = {text}", "        emit(e)"]
    path = tmp_path / f"expressions_of_{of}.py"
    path.write_text("\n".join([*lines, ""]))
    names = runpy.run_path(str(path))
    events = table(names["EVENT"], len(texts))
    expected = run_oracle(names["f"], events)
    assert_identical(run_engine(names["f"], events, threads=1, horizon=0), expected)
    raised = {row: kind for row, kind, _ in expected.raised}
    emitted = iter(expected.output["e"].to_pylist())
    for at, row in enumerate(events.to_pylist()):
        value, why = outcome(texts[row["number"]], names, ROWS[at % len(ROWS)])
        assert raised.get(at, "") == why, (texts[row["number"]], row)
        assert why or next(emitted) == value, (texts[row["number"]], row)
    failing = {texts[at // len(ROWS)] for at in raised}
    assert failing
    for number, text in enumerate(texts):
        places = range(number * len(ROWS), (number + 1) * len(ROWS))
        assert not raised.keys() >= set(places), f"{text} never gives a value"

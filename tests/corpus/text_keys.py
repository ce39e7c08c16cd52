"""Keys, log lines and codes."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import hashlib
import ipaddress
import re
from collections import Counter

import pandas as pd
import pyarrow as pa

import specstream as ss
from corpus.case import case

LEVELS = {"DEBUG": 0, "INFO": 1, "WARNING": 2, "ERROR": 3}
HOSTS = ["10.0.0.7", "10.1.2.3", "192.168.1.1", "8.8.8.8", "::1", "not an address"]


def lines(rng):
    n = 200
    level = rng.choice(["DEBUG", "INFO", "WARNING", "ERROR", "Info"], n)
    code = rng.integers(1, 40, n)
    lines = [
        f"{a} [app-{c % 3}] took {c} ms: {'ok' if c % 4 else ''}"
        for a, c in zip(level, code, strict=True)
    ]
    lines[7], lines[8], lines[9] = "", "garbage", "ERROR [app-x] took many ms: "
    return pa.table(
        {
            "line": lines,
            "host": rng.choice(HOSTS, n),
            "key": [
                f"{r}-{p}-{i:03d}"
                for r, p, i in zip(
                    rng.choice(["EU", "US", "eu"], n),
                    rng.choice(["gold", "free"], n),
                    rng.integers(0, 20, n),
                    strict=True,
                )
            ],
            "word": rng.choice(["Anna", "otto", "Straße", "", "Été", "level", "x"], n),
            "tags": rng.choice(["a,b", "b", "", "c,a,,a", "b,c"], n),
            "n": rng.integers(-5, 1000, n),
            "when": rng.choice(["2024-02-29", "1999-12-31", "2024-13-01", "soon"], n),
        }
    )


LINE = {"line": str, "host": str, "key": str, "word": str, "tags": str, "n": int, "when": str}


class Levels(ss.State):
    count = ss.array(int, 4)
    other = ss.scalar(int)


def levels_by_pandas(table):
    level = table["line"].to_pandas().str.split(" ").str[0]
    n = level.groupby(level).cumcount() + 1
    return [(a, int(b)) for a, b in zip(level, n, strict=True) if a in LEVELS]


@case(
    "log lines by level",
    lines,
    levels_by_pandas,
    state=Levels,
    event=LINE,
    emits={"level": str, "count": int},
)
def log_levels(state, event, emit):
    level = event.line.split(" ")[0]
    if level not in LEVELS:
        state.other += 1
        return
    state.count[LEVELS[level]] += 1
    emit(level, state.count[LEVELS[level]])


LINE_FORMAT = re.compile(r"(?P<level>[A-Z]+) \[app-(?P<app>\d)\] took (?P<ms>\d+) ms: (?P<rest>.*)")


class Latency(ss.State):
    total = ss.array(int, 3)
    n = ss.array(int, 3)
    bad = ss.scalar(int)


def latency_by_pandas(table):
    d = (
        table["line"]
        .to_pandas()
        .str.extract(r"^[A-Z]+ \[app-(\d)\] took (\d+) ms: ")
        .dropna()
        .astype(int)
    )
    total = d.groupby(0)[1].cumsum()
    n = d.groupby(0).cumcount() + 1
    return [(int(a), int(t) / int(k)) for a, t, k in zip(d[0], total, n, strict=True)]


@case(
    "mean latency of each app, from log lines by a regular expression",
    lines,
    latency_by_pandas,
    state=Latency,
    event=LINE,
    emits={"app": int, "mean": float},
)
def latency(state, event, emit):
    match = LINE_FORMAT.match(event.line)
    if match is None:
        state.bad += 1
        return
    app = int(match["app"])
    state.total[app] += int(match["ms"])
    state.n[app] += 1
    emit(app, state.total[app] / state.n[app])


class Regions(ss.State):
    gold = ss.scalar(int)
    free = ss.scalar(int)


def regions_by_pandas(table):
    key = table["key"].to_pandas().str.split("-", expand=True)
    eu = key[key[0].str.upper() == "EU"]
    gold = (eu[1] == "gold").cumsum()
    free = (eu[1] != "gold").cumsum()
    return [(k, int(g), int(f)) for k, g, f in zip(eu[2], gold, free, strict=True)]


@case(
    "parts of a key",
    lines,
    regions_by_pandas,
    state=Regions,
    event=LINE,
    emits={"number": str, "gold": int, "free": int},
)
def regions(state, event, emit):
    region, plan, number = event.key.split("-")
    if region.upper() != "EU":
        return
    if plan == "gold":
        state.gold += 1
    else:
        state.free += 1
    emit(number, state.gold, state.free)


class Private(ss.State):
    private = ss.scalar(int)
    invalid = ss.scalar(int)


def private_by_hand(table):
    rows, private, invalid = [], 0, 0
    for h in table["host"].to_pylist():
        private += h.startswith(("10.", "192.168.", "::1"))
        invalid += " " in h
        rows.append((h, private, invalid))
    return rows


@ss.pure
def is_private(host: str) -> bool:
    return ipaddress.ip_address(host).is_private


@case(
    "private addresses, by a pure function that may raise",
    lines,
    private_by_hand,
    state=Private,
    event=LINE,
    emits={"host": str, "private": int, "invalid": int},
)
def private_hosts(state, event, emit):
    try:
        if is_private(event.host):
            state.private += 1
    except ValueError:
        state.invalid += 1
    emit(event.host, state.private, state.invalid)


class Buckets(ss.State):
    counts = ss.array(int, 16)


def bucket_of(key, buckets=16):
    return int(hashlib.md5(key.encode()).hexdigest(), 16) % buckets


def buckets_by_hand(table):
    counts = Counter()
    rows = []
    for key in table["key"].to_pylist():
        bucket = int.from_bytes(hashlib.md5(key.encode()).digest(), "big") % 16
        counts[bucket] += 1
        rows.append((key, bucket, counts[bucket]))
    return rows


@case(
    "stable buckets by a hash of the key, in a helper without annotations",
    lines,
    buckets_by_hand,
    state=Buckets,
    event=LINE,
    emits={"key": str, "bucket": int, "count": int},
)
def buckets(state, event, emit):
    bucket = bucket_of(event.key)
    state.counts[bucket] += 1
    emit(event.key, bucket, state.counts[bucket])


class Palindromes(ss.State):
    found = ss.scalar(int)


def palindromes_by_hand(table):
    rows, n = [], 0
    for w in table["word"].to_pylist():
        low = list(w.casefold())
        if w and low == low[::-1]:
            n += 1
            rows.append((w.title(), len(low), n))
    return rows


@case(
    "palindromes, the empty word left out",
    lines,
    palindromes_by_hand,
    state=Palindromes,
    event=LINE,
    emits={"word": str, "letters": int, "found": int},
)
def palindromes(state, event, emit):
    word = event.word.casefold()
    if word and word == word[::-1]:
        state.found += 1
        emit(event.word.title(), len(word), state.found)


class Tags(ss.State):
    a = ss.scalar(int)
    b = ss.scalar(int)
    rest = ss.scalar(int)


def tags_by_pandas(table):
    tags = table["tags"].to_pandas().str.split(",")
    out = pd.DataFrame({t: tags.map(lambda x, t=t: x.count(t)).cumsum() for t in "ab"})
    rest = tags.map(lambda x: sum(t not in ("a", "b") for t in x)).cumsum()
    return [tuple(map(int, row)) for row in zip(out.a, out.b, rest, strict=True)]


@case(
    "a loop over the parts of a string",
    lines,
    tags_by_pandas,
    state=Tags,
    event=LINE,
    emits={"a": int, "b": int, "rest": int},
)
def tags(state, event, emit):
    for tag in event.tags.split(","):
        if tag == "a":
            state.a += 1
        elif tag == "b":
            state.b += 1
        else:
            state.rest += 1
    emit(state.a, state.b, state.rest)


class Longest(ss.State):
    length = ss.scalar(int)


def longest_by_hand(table):
    rows, best = [], 0
    for w in table["word"].to_pylist():
        if len(w) > best:
            best = len(w)
            rows.append((w, best, w < "m"))
    return rows


@case(
    "a longer word than all before",
    lines,
    longest_by_hand,
    state=Longest,
    event=LINE,
    emits={"word": str, "length": int, "early": bool},
)
def longest(state, event, emit):
    if len(event.word) > state.length:
        state.length = len(event.word)
        emit(event.word, state.length, event.word < "m")


class Dates(ss.State):
    leap = ss.scalar(int)
    bad = ss.scalar(int)


def dates_by_pandas(table):
    d = pd.to_datetime(table["when"].to_pandas(), format="%Y-%m-%d", errors="coerce")
    return [
        (int(leap), int(bad))
        for leap, bad in zip(d.dt.is_leap_year.cumsum(), d.isna().cumsum(), strict=True)
    ]


@case(
    "dates as text, some of them wrong",
    lines,
    dates_by_pandas,
    state=Dates,
    event=LINE,
    emits={"leap": int, "bad": int},
)
def text_dates(state, event, emit):
    try:
        year, month, day = map(int, event.when.split("-"))
    except ValueError:
        state.bad += 1
    else:
        if not 1 <= month <= 12 or not 1 <= day <= 31:
            state.bad += 1
        elif year % 4 == 0 and (year % 100 != 0 or year % 400 == 0):
            state.leap += 1
    emit(state.leap, state.bad)


class Numbered(ss.State):
    n = ss.scalar(int)
    sum = ss.scalar(float)


def labels_by_hand(table):
    rows, total = [], 0
    for i, (k, n) in enumerate(zip(table["key"].to_pylist(), table["n"].to_pylist(), strict=True)):
        total += n
        rows.append((f"{k:>12}|{i + 1:05d}|{total / (i + 1):.3f}|{n:+x}|{n > 0}",))
    return rows


@case(
    "labels with formats",
    lines,
    labels_by_hand,
    state=Numbered,
    event=LINE,
    emits={"label": str},
)
def labels(state, event, emit):
    state.n += 1
    state.sum += event.n
    emit(f"{event.key:>12}|{state.n:05d}|{state.sum / state.n:.3f}|{event.n:+x}|{event.n > 0}")


class Seen(ss.State):
    first = ss.array(str, 20)


@case(
    "the first key of each number, strings in a field",
    lines,
    lambda table: [
        (first, key, first == key)
        for first, key in zip(
            table["key"].to_pandas().groupby(table["key"].to_pandas().str[-3:]).transform("first"),
            table["key"].to_pylist(),
            strict=True,
        )
    ],
    state=Seen,
    event=LINE,
    emits={"first": str, "key": str, "same": bool},
)
def first_key(state, event, emit):
    at = int(event.key[-3:])
    if not state.first[at]:
        state.first[at] = event.key
    emit(state.first[at], event.key, state.first[at] == event.key)


class Vowels(ss.State):
    vowels = ss.scalar(int)
    others = ss.scalar(int)


def vowels_by_pandas(table):
    word = table["word"].to_pandas()
    vowels = word.str.count("[aeiouAEIOU]")
    return [
        (int(v), int(o))
        for v, o in zip(vowels.cumsum(), (word.str.len() - vowels).cumsum(), strict=True)
    ]


@case(
    "letters counted one by one",
    lines,
    vowels_by_pandas,
    state=Vowels,
    event=LINE,
    emits={"vowels": int, "others": int},
)
def vowels(state, event, emit):
    for letter in event.word.lower():
        if letter in "aeiou":
            state.vowels += 1
        else:
            state.others += 1
    emit(state.vowels, state.others)

"""Dates, times and decimals of an event meet Python's own, and give what Python gives.

What is expected is computed by Python over dates, times and decimals, not over the numbers that an
operator has of them: neither the oracle nor the third witness knows these.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import datetime
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from conftest import assert_identical, run_engine, run_oracle
from test_invalid import load

import specstream as ss

HEADER = """
import bisect
import datetime
import decimal
import enum
import functools
from decimal import Decimal

import specstream as ss

DAY = datetime.date(2024, 2, 29)
DAYS = {DAY, datetime.date(2024, 12, 25)}
IN_ORDER = (datetime.date(2024, 1, 1), DAY)
LISTED = [DAY, datetime.date(2025, 1, 1)]
NAMES = {DAY: "leap", datetime.date(2024, 12, 25): "free"}
CUT = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.timezone.utc)
PLAIN = datetime.datetime(2024, 2, 29, 12, 30)
HOUR = datetime.timedelta(hours=1)
FREE = Decimal("0.50")
PRICES = {Decimal("0.5"): 1, Decimal("12.25"): 2}
MIXED = {"day": DAY, "n": 3}


class Kind(enum.Enum):
    LEAP = datetime.date(2024, 2, 29)


class Limits:
    CUT = CUT


def is_free(day):
    return day in DAYS


def is_late(at, limit=CUT):
    return at > limit


def next_free(day):
    return is_free(day + datetime.timedelta(days=1))


def month(day):
    return day.month


def shown(value):
    return f"<{value}> {value!r}"


def shown_in_turn(value):
    return shown(value) + "!"


def positive(value):
    if value <= 0:
        raise ValueError(f"not positive: {value}")


def tell(emit, value, n):
    emit(f"{value} {n}")


@ss.pure
def pure_shown(day, paid) -> str:
    return f"{day} {paid:.1f} " + str(paid)


@ss.pure
def pure_free(day) -> bool:
    return day in DAYS


@ss.pure
def pure_year(day: datetime.date) -> int:
    return day.year


@ss.pure
def pure_number(day) -> int:
    return day % 7


@functools.lru_cache
def cached(day) -> bool:
    return day == DAY


class State(ss.State):
    n = ss.scalar(int)
    last = ss.scalar(int)
    seen = ss.dict(int, int)


"""

EVENT = {
    "day": datetime.date,
    "other": ss.nullable(datetime.date),
    "at": datetime.datetime,
    "local": ss.timestamp("us", "Europe/Berlin"),
    "plain": ss.timestamp("ms"),
    "fine": ss.timestamp("ns", "UTC"),
    "paid": ss.decimal(2),
    "exact": ss.decimal(4),
    "k": int,
    "w": str,
}
AT = datetime.datetime(2024, 2, 29, 12, 30, tzinfo=datetime.UTC)
HOUR = datetime.timedelta(hours=1)
ROWS: list[dict[str, Any]] = [
    {
        "day": AT.date() + datetime.timedelta(days=300 * at),
        "other": None if at == 1 else datetime.date(2024, 12, 25),
        "at": AT + (at - 1) * HOUR,
        # Over the night in which clocks go forward.
        "local": datetime.datetime(2024, 3, 30, 12 + at, tzinfo=ZoneInfo("Europe/Berlin")),
        "plain": datetime.datetime(2024, 2, 29, 12, 29 + at),
        "fine": AT + (at - 1) * HOUR,
        "paid": (Decimal(at * 25) / 100).quantize(Decimal("0.01")),
        "exact": (Decimal(at * 5000) / 10000).quantize(Decimal("0.0001")),
        "k": at,
        "w": "2024-02-29",
    }
    for at in range(4)
]
TABLE = pa.Table.from_pylist(
    ROWS,
    pa.schema(
        [
            ("day", pa.date32()),
            ("other", pa.date32()),
            ("at", pa.timestamp("us", "UTC")),
            ("local", pa.timestamp("us", "Europe/Berlin")),
            ("plain", pa.timestamp("ms")),
            ("fine", pa.timestamp("ns", "UTC")),
            ("paid", pa.decimal128(10, 2)),
            ("exact", pa.decimal128(10, 4)),
            ("k", pa.int64()),
            ("w", pa.string()),
        ]
    ),
)

EXPRESSIONS = """
event.day == DAY
event.day != DAY
DAY == event.day
event.day < DAY
IN_ORDER[0] < event.day <= DAY
event.day in DAYS
event.day not in DAYS
event.day in IN_ORDER
event.day in LISTED
event.day in NAMES
event.day in (DAY, datetime.date(2025, 1, 1))
event.day in MIXED.values()
event.day == MIXED["day"]
NAMES.get(event.day, "-")
LISTED.count(event.day)
event.day == datetime.date(2024, 2, 29)
event.day == datetime.date.fromisoformat(event.w)
event.day == Kind.LEAP.value
event.at == Limits.CUT
event.other == DAY
event.other is not None and event.other > DAY
(event.day, event.k) == (DAY, 0)
(event.day, event.k) in {(DAY, 0), (DAY, 1)}
DAY in [event.day]
DAY in {event.day, event.day}
any(event.day == one for one in DAYS)
sum(event.day > one for one in IN_ORDER)
min((event.day, DAY), key=lambda day: day - datetime.timedelta(days=2)).year
sorted([event.at + HOUR, event.at], key=lambda at: at - CUT)[0] == event.at
min([event.paid, FREE], key=lambda paid: paid * 2 - Decimal(1)) == FREE
min(event.day, DAY) == DAY
max(event.day, DAY) == event.day
sorted([event.day, DAY])[0] == DAY
max([DAY, event.day]).year
(event.day if event.k else DAY) == DAY
event.at - event.at > HOUR
max(event.at - event.at, HOUR) == HOUR
sorted([event.at - event.at, HOUR])[1] == HOUR
(HOUR if event.k else event.at - event.at) == HOUR
is_free(event.day)
is_late(event.at)
is_late(event.at, CUT + HOUR)
next_free(event.day)
month(event.day)
pure_free(event.day)
pure_year(event.day)
cached(event.day)
event.day.year
event.day.weekday() >= 5
event.day.isoformat()
event.day.strftime("%d.%m.%Y")
event.day.replace(day=1) == datetime.date(2024, 2, 1)
event.day.isocalendar()[1]
event.at.hour
event.at.date() == DAY
event.at.date() in DAYS
event.at.time() == datetime.time(12, 30)
event.at > CUT
event.at == CUT
event.at >= CUT - HOUR
event.at in {CUT, CUT + HOUR}
event.at + HOUR > CUT
event.at - CUT > HOUR
(event.at - CUT).total_seconds()
(CUT - event.at) // HOUR
event.at - CUT == datetime.timedelta(0)
(event.day - DAY).days
event.day + datetime.timedelta(days=1) == datetime.date(2024, 3, 1)
(event.at + datetime.timedelta(minutes=event.k)).minute
datetime.datetime.combine(event.day, datetime.time(1)).hour
event.local.hour
event.local > CUT
(event.local + datetime.timedelta(days=1)).hour
(event.local + datetime.timedelta(days=1)).isoformat()
event.plain == PLAIN
event.plain > PLAIN
event.plain.minute
event.fine == CUT
event.fine < CUT
event.paid == FREE
event.paid == Decimal("0.25")
event.paid >= FREE
event.paid in PRICES
PRICES.get(event.paid, 0)
event.paid in {FREE}
int(event.paid * Decimal(100))
float(event.paid + FREE)
event.paid * Decimal("2") == Decimal("1.00")
(event.paid - Decimal("0.1")).quantize(Decimal("0.1")) == Decimal("0.4")
event.exact == event.paid + Decimal(0) + event.paid
isinstance(event.day, datetime.date)
str(event.at - CUT)
"""

# Texts, of the event alone and beside the state.
TEXTS = """
str(event.day)
str(event.other)
str(event.at)
str(event.local)
str(event.plain)
str(event.fine)
str(event.paid)
repr(event.day)
repr(event.at)
repr(event.local)
repr(event.exact)
format(event.paid)
format(event.day, "")
f"{event.day} {event.other} {event.at} {event.paid}"
f"{event.paid:.1f} {event.paid:>8} {event.paid:,} {event.exact:08.3f} {event.day:%d.%m.}"
f"{event.day!r:>30} {event.paid!s:>6} {event.paid=}"
f"{event.day} {event.paid:.1f} {event.other} {state.n} {event.at:%H:%M} {event.plain}"
"{} {:>8} {}".format(event.day, event.paid, event.other)
"{0} {n}".format(event.paid, n=state.n)
"%s %.1f %d %s" % (event.day, event.paid, event.paid, event.k)
"%s %s %d" % (event.at, event.paid, state.n)
"%.2f" % event.paid
" ".join(map(str, (event.day, event.paid)))
",".join(f"{one:>8}" for one in sorted([event.paid, event.paid + Decimal(1)]))
" ".join([repr(one) for one in (event.day, event.other)])
str((event.day, event.k, event.paid))
str({"day": event.day, "paid": [event.paid]})
"on " + str(event.day) + "!"
"on " + str(event.day) + ", " + str(state.n)
str(event.paid).replace(".", ",")
str(event.other or event.day)
f"{event.other if event.other is not None else event.day} {state.n}"
f"{event.paid if event.k > 1 else 0}"
f"{min(event.day, DAY)} {max(event.paid, FREE)}"
shown(event.day)
shown(event.paid)
shown_in_turn(event.at)
pure_shown(event.day, event.paid)
"""
TEXT_STATEMENTS = """
day, paid = event.day, event.paid
emit(f"{day} {paid}")
emit(f"{day} {paid} {state.n}")
text = f"{event.at:%H} {paid} {state.n}"
emit(text)
for n in range(2):
    emit(f"{day} {n} {state.n}")
for one in (str(event.day), str(event.other)):
    emit(f"{one} {state.n}")
if event.k > 1:
    chosen = str(event.paid)
else:
    chosen = f"{event.day}"
emit(f"{chosen} {state.n}")
try:
    if event.k:
        raise ValueError(f"no {event.day} {event.paid:.1f} {state.n}")
    emit("none")
except ValueError as error:
    emit(str(error))
try:
    positive(event.paid)
    emit("positive")
except ValueError as error:
    emit(f"{error}")
"""

STATEMENTS = """
d = event.day
emit(1, int(d == DAY))
e, k = event.day, event.k
emit(2, int(e in DAYS) + k)
y = event.day.year
emit(3, y)
key = (event.day.year, event.day.month)
emit(4, key[0] * 100 + key[1])
if event.day == DAY:
    emit(5, 1)
elif event.day > DAY:
    emit(5, 2)
late = event.at > CUT
if late and state.n >= 0:
    emit(6, event.k)
until = event.at + HOUR
if until > CUT:
    emit(7, until.hour)
limit = CUT if event.k > 1 else CUT - HOUR
emit(8, int(event.at > limit))
try:
    emit(9, PRICES[event.paid])
except KeyError:
    emit(9, -1)
days = [event.day, DAY]
emit(10, days.index(DAY) if event.k else 7)
span = event.at - CUT
emit(11, span.days)
first = min(event.day, DAY)
if first in DAYS:
    emit(12, first.day)
cents = event.paid * Decimal(100)
emit(13, int(cents))
"""

# What is refused, the column or constant that the message names, and what it says to write, which
# gives what Python gives.
REFUSED = [
    (
        "event.at > PLAIN",
        "PLAIN has none",
        "event.at > PLAIN.replace(tzinfo=datetime.timezone.utc)",
    ),
    (
        "event.at == PLAIN",
        "PLAIN has none",
        "event.at == PLAIN.replace(tzinfo=datetime.timezone.utc)",
    ),
    ("event.plain > CUT", "take it in UTC, ss.when(event.plain)", None),
    (
        "max([event.day, event.day], key=month).day",
        "write out in a lambda what month does, like key=lambda x: x.year",
        "max([event.day, event.day], key=lambda x: x.month).day > 3",
    ),
    ("sorted([(event.day, 1)], key=lambda x: x[0].year)", "like (event.day.year, 1)", None),
    ("event.at == DAY", "take its date, event.at.date()", "event.at.date() == DAY"),
    ("event.day == CUT", "take its date, CUT.date()", "event.day == CUT.date()"),
    ("event.k == DAY", "event.k, an int, is never equal to a date", None),
    ("event.timestamp > CUT", 'ss.when(event.timestamp, "us")', None),
    ("event.w == DAY", "event.w, a str, is never equal to a date", None),
    ("event.day == event.at", "convert both to times", None),
    ("event.at < event.plain", "one of milliseconds", None),
    (
        "event.paid == event.exact",
        "convert both to Decimals",
        "event.paid + Decimal(0) == event.exact + Decimal(0)",
    ),
    ("event.at - event.fine > 0", "one of nanoseconds", None),
    (
        "state.n + bisect.bisect_right(LISTED, event.day)",
        "give it Python's own value, ss.when(event.day).date()",
        None,
    ),
    ("abs(event.day - event.day).days", "ss.when(event.x) - ss.when(event.y)", None),
    (
        "event.at - event.at > event.day - event.day",
        "convert both to durations",
        "ss.when(event.at) - ss.when(event.at) > ss.when(event.day) - ss.when(event.day)",
    ),
    ("sum([event.at - event.at], HOUR) > HOUR", "ss.when(event.x) - ss.when(event.y)", None),
    ("(-event.day if event.k else DAY) == DAY", "-event.day is a number", None),
    (
        "event.paid * 2 == Decimal(1)",
        "convert the columns to Decimals",
        "(event.paid + Decimal(0)) * 2 == Decimal(1)",
    ),
    (
        "-event.paid == Decimal(1)",
        "convert the columns to Decimals",
        "-(event.paid + Decimal(0)) == Decimal(1)",
    ),
    (
        "abs(event.paid) == FREE",
        "convert the columns to Decimals",
        "abs(event.paid + Decimal(0)) == FREE",
    ),
    ("event.day // 7 == DAY", "made of the number that a date is", None),
    ("event.paid * 0.5 > FREE", "convert the columns to Decimals", None),
    ("event.paid * FREE * 0.5 > FREE", "write a Decimal for the float", None),
    (
        "event.k + HOUR > HOUR",
        "datetime.timedelta(seconds=event.k)",
        "datetime.timedelta(seconds=event.k) + HOUR > HOUR",
    ),
    ("state.last == DAY", "N = (x - datetime.date(1970, 1, 1)).days", None),
    ("state.last in DAYS", "combine it with a value that depends on the event alone", None),
    ("state.last > CUT", "combine it with a value that depends on the event alone", None),
    ("state.last == FREE", "of cents", None),
    ("DAY in state.seen", "(x - datetime.date(1970, 1, 1)).days", None),
    (
        "(event.day, state.n) == (DAY, 0)",
        "combine it with a value that depends on the event alone",
        None,
    ),
]


# What shows a text that compiled code would have to choose, and what the message says to write.
NOT_SHOWN = [
    (
        "for x in (event.day, event.other):\n    emit(f'{x} {state.n}')",
        "like str(event.x), or write x + 0",
        "for x in (str(event.day), str(event.other)):\n    emit(f'{x} {state.n}')",
    ),
    (
        "if state.n > 3:\n    x = event.paid\nelse:\n    x = event.paid\nemit(f'{x}')",
        "x may be a Decimal of the event",
        "if state.n > 3:\n    x = str(event.paid)\nelse:\n    x = str(event.paid)\nemit(f'{x}')",
    ),
    (
        "emit(f'{event.day if state.n > 3 else DAY}')",
        "may be a date of the event where it is shown",
        "emit(f'{str(event.day) if state.n > 3 else str(DAY)}')",
    ),
    (
        "rows = [(event.day, 1)]\nfor day, n in rows:\n    emit(f'{day} {n}')",
        "day may be a date of the event",
        "rows = [(str(event.day), 1)]\nfor day, n in rows:\n    emit(f'{day} {n}')",
    ),
    (
        "tell(emit, event.paid, state.n)",
        "tell() shows 'value' as a text, and event.paid is a Decimal",
        "tell(emit, str(event.paid), state.n)",
    ),
    (
        "def say(x, n):\n    emit(f'{x} {n}')\nsay(event.day, state.n)",
        "give it the text, str(event.day)",
        "def say(x, n):\n    emit(f'{x} {n}')\nsay(str(event.day), state.n)",
    ),
    (
        "emit('%d %d' % (event.paid, state.n))",
        "text = '%d' % event.paid",
        "text = '%d' % event.paid\nemit(f'{text} {state.n}')",
    ),
    (
        "try:\n    if event.k:\n        raise ValueError(event.day)\n    emit('-')\n"
        "except ValueError as error:\n    emit(str(error))",
        "make it from the text, str(event.day)",
        "try:\n    if event.k:\n        raise ValueError(str(event.day))\n    emit('-')\n"
        "except ValueError as error:\n    emit(str(error))",
    ),
]


def lines(text: str) -> list[str]:
    return [one for one in text.strip().split("\n") if one]


def python_rows(namespace: dict[str, Any], text: str) -> list[Any]:
    """What the lines emit, over dates, times and decimals."""
    rows: list[Any] = []

    def emit(*values: Any) -> None:
        rows.append(values[0] if len(values) == 1 else values)

    scope = {**namespace, "state": SimpleNamespace(n=0), "emit": emit}
    body = "".join(f"    {line}\n" for line in text.split("\n"))
    exec(f"def process(event):\n{body}", scope)
    for row in ROWS:
        scope["process"](SimpleNamespace(**row))
    return rows


def compile_operator(module: Any) -> None:
    operator = ss.operator(state=module.State, event=EVENT, emits={"v": bool})(module.process)
    ss.Engine(operator, horizon=0).close()


def given(operator: ss.Operator) -> list[Any]:
    result = run_engine(operator, TABLE, horizon=0)
    assert_identical(result, run_oracle(operator, TABLE))
    return list(result.output.to_pylist())


@pytest.mark.parametrize("part", range(3))
def test_expressions_of_an_event_give_what_python_gives(part: int, tmp_path: Path) -> None:
    written = lines(EXPRESSIONS)[part::3]
    text = "def process(state, event, emit):\n    emit(\n"
    text += "".join(f"        {one},\n" for one in written) + "    )\n"
    module = load(HEADER + text, "own_values", tmp_path)
    wanted = [python_rows(vars(module), f"emit({one})") for one in written]
    emits = {f"c{at}": type(rows[0]) for at, rows in enumerate(wanted)}
    operator = ss.operator(state=module.State, event=EVENT, emits=emits)(module.process)
    found = given(operator)
    for at, one in enumerate(written):
        assert [row[f"c{at}"] for row in found] == wanted[at], one


def test_statements_give_what_python_gives(tmp_path: Path) -> None:
    text = STATEMENTS.strip()
    body = "".join(f"    {line}\n" for line in text.split("\n"))
    source = f"{HEADER}def process(state, event, emit):\n{body}"
    module = load(source, "own_statements", tmp_path)
    emits = {"at": int, "v": int}
    operator = ss.operator(state=module.State, event=EVENT, emits=emits)(module.process)
    found = [(row["at"], row["v"]) for row in given(operator)]
    assert found == python_rows(vars(module), text)


def test_texts_of_an_event_are_those_of_python(tmp_path: Path) -> None:
    written = lines(TEXTS)
    text = "def process(state, event, emit):\n    emit(\n"
    text += "".join(f"        {one},\n" for one in written) + "    )\n"
    module = load(HEADER + text, "own_texts", tmp_path)
    emits = {f"c{at}": str for at in range(len(written))}
    operator = ss.operator(state=module.State, event=EVENT, emits=emits)(module.process)
    found = given(operator)
    for at, one in enumerate(written):
        wanted = python_rows(vars(module), f"emit({one})")
        assert [row[f"c{at}"] for row in found] == wanted, one


def test_texts_under_names_and_in_exceptions_are_those_of_python(tmp_path: Path) -> None:
    found = of_statements(TEXT_STATEMENTS.strip(), "own_text_statements", tmp_path)
    assert found[0] == found[1]


def of_statements(text: str, name: str, folder: Path) -> tuple[list[Any], list[Any]]:
    """What an operator emits, and what Python does."""
    body = "".join(f"    {line}\n" for line in text.split("\n"))
    module = load(f"{HEADER}def process(state, event, emit):\n{body}", name, folder)
    made = ss.operator(state=module.State, event=EVENT, emits={"v": str})(module.process)
    return [row["v"] for row in given(made)], python_rows(vars(module), text)


def test_a_number_that_was_worked_with_is_shown_as_one() -> None:
    """As it is an int, and so is one that is kept; so are formats of ints."""

    def worked(state, event, emit):
        state.n = event.day
        x = event.paid
        x += 1
        tomorrow = event.day + 1
        emit(f"{event.day + 1} {tomorrow} {event.paid * 2} {-event.paid} {event.day - event.day}")
        emit(f"{state.n} {x} {event.paid:05d} {event.day:d} {event.day:.1f} {tomorrow} {state.n}")

    event = {"day": datetime.date, "paid": ss.decimal(2)}
    operator = ss.operator(state=Shown, event=event, emits={"v": str})(worked)
    table = {"day": [datetime.date(2024, 2, 29)], "paid": [Decimal("-1.50")]}
    with ss.Engine(operator, threads=2) as engine:
        rows = [row["v"] for row in engine.process(table).to_pylist()]
    assert rows == ["19783 19783 -300 150 0", "19782 -149 -0150 19782 19782.0 19783 19782"]
    assert [row["v"] for row in operator.run_sequential(table).output.to_pylist()] == rows


def test_what_is_raised_of_dates_says_what_python_says() -> None:
    def raising(state, event, emit):
        if event.k == 1:
            raise KeyError(event.day, event.paid)
        if event.k == 2:
            raise ValueError("%s %.1f %d" % (event.day, event.paid, state.n))  # noqa: UP031
        assert event.k == 3, f"{event.paid} {state.n}"
        raise ValueError(event.paid)

    event = {"day": datetime.date, "paid": ss.decimal(2), "k": int}
    operator = ss.operator(state=Shown, event=event, emits={"v": str})(raising)
    count = 4
    table = {
        "day": [datetime.date(2024, 2, 29)] * count,
        "paid": [Decimal("-1.50")] * count,
        "k": [1, 2, 3, 4],
    }
    with ss.Engine(operator, threads=2, errors="side") as engine:
        engine.process(table)
        failed = engine.failed_events()
    assert failed is not None
    assert failed["message"].to_pylist() == [
        "(datetime.date(2024, 2, 29), Decimal('-1.50'))",
        "2024-02-29 -1.5 0",
        "-1.50",
        "-1.50 0",
    ]
    sequential = operator.run_sequential(table, errors="side").failed_events
    assert sequential is not None
    assert sequential["message"].to_pylist() == failed["message"].to_pylist()


def test_texts_that_compiled_code_would_choose_are_refused(tmp_path: Path) -> None:
    advised = []
    for at, (wrong, said, right) in enumerate(NOT_SHOWN):
        with pytest.raises(ss.CompileError) as caught:
            of_statements(wrong, f"not_shown{at}", tmp_path)
        assert said in str(caught.value), wrong
        advised.append(right)
    found, wanted = of_statements("\n".join(advised), "shown_instead", tmp_path)
    assert found == wanted


def test_what_has_no_answer_is_refused_with_what_to_write(tmp_path: Path) -> None:
    advised = []
    for at, (wrong, said, right) in enumerate(REFUSED):
        source = f"{HEADER}def process(state, event, emit):\n    emit({wrong})\n"
        module = load(source, f"refused{at}", tmp_path)
        with pytest.raises(ss.CompileError) as caught:
            compile_operator(module)
        assert said in str(caught.value), wrong
        advised += [right] if right else []
    text = "def process(state, event, emit):\n    emit(" + ", ".join(advised) + ")\n"
    module = load(HEADER + text, "advised", tmp_path)
    emits = {f"c{at}": bool for at in range(len(advised))}
    operator = ss.operator(state=module.State, event=EVENT, emits=emits)(module.process)
    found = given(operator)
    for at, one in enumerate(advised):
        expected = python_rows(vars(module), f"emit({one})")
        assert [row[f"c{at}"] for row in found] == expected, one


def test_numbers_of_columns_are_what_they_were(tmp_path: Path) -> None:
    """Arithmetic and comparisons with numbers, what a function marked as pure is given."""
    expressions = {
        "event.day // 7": [(one["day"] - datetime.date(1970, 1, 1)).days // 7 for one in ROWS],
        "event.paid": [int(one["paid"] * 100) for one in ROWS],
        "event.paid * 2 + 1": [int(one["paid"] * 200) + 1 for one in ROWS],
        "event.at - event.at + event.k": [0, 1, 2, 3],
        "pure_number(event.day)": [
            (one["day"] - datetime.date(1970, 1, 1)).days % 7 for one in ROWS
        ],
        "int(f'{event.paid:d}')": [int(one["paid"] * 100) for one in ROWS],
    }
    text = f"def process(state, event, emit):\n    emit({', '.join(expressions)})\n"
    module = load(HEADER + text, "numbers_of_columns", tmp_path)
    emits = {f"c{at}": int for at in range(len(expressions))}
    operator = ss.operator(state=module.State, event=EVENT, emits=emits)(module.process)
    found = given(operator)
    for at, (one, wanted) in enumerate(expressions.items()):
        assert [row[f"c{at}"] for row in found] == wanted, one


def test_nanoseconds_tell_times_apart() -> None:
    when = ss.when(1_709_209_800_000_000_500, "ns", "UTC")
    same = ss.when(1_709_209_800_000_000_500, "ns", "UTC")
    assert when == same
    assert when != AT
    assert when > AT
    assert when >= AT
    assert not when <= AT
    assert when + HOUR > AT + HOUR
    assert (when + HOUR).nanosecond == 500
    assert (when - HOUR) != AT - HOUR
    assert ss.when(1_709_209_800_000_000, "us", "UTC") == AT


def test_when_takes_what_is_a_date_or_time_already() -> None:
    assert ss.when(datetime.date(2024, 2, 29)) == AT.replace(hour=0, minute=0)  # type: ignore[arg-type]
    assert ss.when(AT, zone="Europe/Berlin").hour == 13  # type: ignore[arg-type]


def test_a_zone_may_be_an_offset() -> None:
    at = 1_709_209_800
    assert ss.when(at, "s", "+05:30").isoformat() == "2024-02-29T18:00:00+05:30"
    assert ss.when(at, "s", "-05:30").isoformat() == "2024-02-29T07:00:00-05:30"


class Shown(ss.State):
    n = ss.scalar(int)
    seen = ss.dict(str, int)


def test_formats_of_dates_and_times_are_pythons() -> None:
    """Not those of the numbers that they are to an operator, which have no such formats."""

    def shown(state, event, emit):
        state.n += 1
        key = f"{event.day:%Y-%m}"
        state.seen[key] = state.seen.get(key, 0) + 1
        if event.x == 13:
            raise ValueError(f"no {event.day:%A} {state.n}")
        emit(f"{event.day:%d.%m.%Y}", f"{key} {state.seen[key]}", "{:%H:%M}".format(event.at))  # noqa: UP032
        emit(format(event.day, "%Y"), f"{event.at:%H} {event.day:%d} {event.x}", "")

    days = [datetime.date(2024, 2, 29), datetime.date(1969, 12, 31), datetime.date(2024, 2, 1)]
    times = [datetime.datetime(2024, 5, 1, hour, 5) for hour in (0, 13, 23)]
    operator = ss.operator(
        state=Shown,
        event={"x": int, "day": datetime.date, "at": datetime.datetime},
        emits={"a": str, "b": str, "c": str},
    )(shown)
    table = {"x": [1, 2, 13], "day": days, "at": times}
    expected = []
    for day, at, x in list(zip(days, times, (1, 2), strict=False)):
        expected.append((f"{day:%d.%m.%Y}", f"{day:%Y-%m} 1", f"{at:%H:%M}"))
        expected.append((f"{day:%Y}", f"{at:%H} {day:%d} {x}", ""))
    with ss.Engine(operator, threads=2, horizon=4, chunk=1, errors="side") as engine:
        rows = engine.process(table).to_pylist()
        failed = engine.failed_events()
    assert [tuple(row.values()) for row in rows] == expected
    assert failed is not None
    assert failed["message"].to_pylist() == ["no Thursday 3"]
    sequential = operator.run_sequential(table, errors="side")
    assert sequential.output.to_pylist() == rows


def test_what_two_columns_give_is_asked_as_in_python() -> None:
    """Their difference is a number, unless it is asked for what only a timedelta or Decimal has."""

    def asked(state, event, emit):
        seconds = (event.later - event.day).total_seconds()
        if (event.paid - event.back).quantize(Decimal("0.1")) > Decimal("1"):
            state.n += (event.later - event.day).days
        emit(f"{seconds} {state.n}", f"{(event.later - event.day).days}", f"{event.x}")

    operator = ss.operator(
        state=Shown,
        event={
            "x": int,
            "day": datetime.date,
            "later": datetime.date,
            "paid": ss.decimal(2),
            "back": ss.decimal(2),
        },
        emits={"a": str, "b": str, "c": str},
    )(asked)
    table = {
        "x": [1, 2],
        "day": [datetime.date(2024, 1, 1)] * 2,
        "later": [datetime.date(2024, 1, 3), datetime.date(2023, 12, 31)],
        "paid": [Decimal("3.25"), Decimal("1.25")],
        "back": [Decimal("1.00")] * 2,
    }
    expected = [("172800.0 2", "2", "1"), ("-86400.0 2", "-1", "2")]
    with ss.Engine(operator, threads=2) as engine:
        rows = [tuple(row.values()) for row in engine.process(table).to_pylist()]
    assert rows == expected
    assert [
        tuple(row.values()) for row in operator.run_sequential(table).output.to_pylist()
    ] == rows

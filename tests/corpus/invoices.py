"""Invoices: days, times and amounts, shown, compared and counted."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import datetime
from decimal import Decimal

import pyarrow as pa

import specstream as ss
from corpus.case import case

FIRST = datetime.date(2024, 1, 1)
CLOSED = {datetime.date(2024, 1, 1), datetime.date(2024, 2, 29)}
LARGE = Decimal("80.00")
NOON = datetime.datetime(2024, 1, 1, 12, tzinfo=datetime.UTC)


def invoices(rng):
    n = 150
    days = [FIRST + datetime.timedelta(days=int(one)) for one in rng.integers(0, 90, n)]
    paid = [
        None if one < 25 else day + datetime.timedelta(days=int(one) - 40)
        for one, day in zip(rng.integers(0, 100, n), days, strict=True)
    ]
    return pa.table(
        {
            "day": pa.array(days, pa.date32()),
            "paid": pa.array(paid, pa.date32()),
            "at": pa.array(
                [NOON + datetime.timedelta(minutes=int(one)) for one in rng.integers(-900, 900, n)],
                pa.timestamp("us", "UTC"),
            ),
            "amount": pa.array(
                [Decimal(int(one)).scaleb(-2) for one in rng.integers(-500, 12000, n)],
                pa.decimal128(19, 2),
            ),
            "who": rng.choice(["Anna", "Otto", "Sofie"], n),
        }
    )


INVOICE = {
    "day": datetime.date,
    "paid": ss.nullable(datetime.date),
    "at": datetime.datetime,
    "amount": ss.decimal(2),
    "who": str,
}


class Ledger(ss.State):
    cents = ss.dict(str, int)
    months = ss.dict(str, int)
    last = ss.scalar(int)


def lines_by_hand(table):
    cents, rows = {}, []
    for one in table.to_pylist():
        who, amount = one["who"], one["amount"]
        cents[who] = cents.get(who, 0) + int(amount * 100)
        rows.append((who, f"{one['day']} {one['at']:%H:%M} {amount} {cents[who]}", f"{amount:>10}"))
    return rows


@case(
    "account lines with the day, the time and the amount, and cents that are added up",
    invoices,
    lines_by_hand,
    state=Ledger,
    event=INVOICE,
    emits={"who": str, "line": str, "amount": str},
)
def account_lines(state, event, emit):
    state.cents[event.who] = state.cents.get(event.who, 0) + event.amount
    total = state.cents[event.who]
    emit(event.who, f"{event.day} {event.at:%H:%M} {event.amount} {total}", f"{event.amount:>10}")


def label(day, amount):
    return f"{day:%b %d}: {amount:.1f}"


def reminders_by_hand(table):
    months, rows = {}, []
    for one in table.to_pylist():
        day, amount = one["day"], one["amount"]
        months[f"{day:%Y-%m}"] = months.get(f"{day:%Y-%m}", 0) + 1
        if one["paid"] is None and (amount > LARGE or day in CLOSED):
            text = f"{day:%b %d}: {amount:.1f} {months[f'{day:%Y-%m}']}"
            rows.append((text, str(day), repr(amount), "None"))
        elif one["paid"] is not None and one["paid"] < day:
            rows.append(("early", str(day), str(amount).replace(".", ","), str(one["paid"])))
    return rows


@case(
    "reminders of large invoices nobody has paid, numbered by month, and what was paid early",
    invoices,
    reminders_by_hand,
    are_none=True,
    state=Ledger,
    event=INVOICE,
    emits={"text": str, "day": str, "amount": str, "paid": str},
)
def reminders(state, event, emit):
    month = f"{event.day:%Y-%m}"
    state.months[month] = state.months.get(month, 0) + 1
    paid = str(event.paid)
    if event.paid is None:
        if event.amount > LARGE or event.day in CLOSED:
            text = label(event.day, event.amount)
            number = state.months[month]
            emit(f"{text} {number}", f"{event.day}", repr(event.amount), paid)
    elif event.paid < event.day:
        emit("early", str(event.day), str(event.amount).replace(".", ","), paid)


def refused_by_hand(table):
    last, rows = 0, []
    for one in table.to_pylist():
        day, amount = one["day"], one["amount"]
        if amount < 0:
            rows.append(("refused", f"{amount} on {day} after {last}"))
            continue
        last = (day - datetime.date(1970, 1, 1)).days
        rows.append(("taken", f"{last} {int(amount * 100) * 2}"))
    return rows


@case(
    "amounts below nothing raise, with day and amount in the message; numbers that are kept",
    invoices,
    refused_by_hand,
    state=Ledger,
    event=INVOICE,
    emits={"what": str, "told": str},
)
def refused_amounts(state, event, emit):
    try:
        if event.amount < 0:
            raise ValueError(f"{event.amount} on {event.day} after {state.last}")
    except ValueError as error:
        emit("refused", str(error))
        return
    state.last = event.day
    emit("taken", f"{state.last} {event.amount * 2}")

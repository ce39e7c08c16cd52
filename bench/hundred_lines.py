"""An operator of a hundred lines, as people write them: what :mod:`bench.compile_time` compiles."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls, no-check-untyped-defs

from __future__ import annotations

import math

import specstream as ss

FEES = {"card": 0.03, "transfer": 0.001, "cash": 0.0}
LIMITS = [100.0, 1_000.0, 10_000.0]
ACCOUNTS, RECENT = 256, 8


class Refused(ValueError):
    """A payment that is none."""


class Accounts(ss.State):
    balance = ss.array(float, ACCOUNTS)
    recent = ss.array(float, (ACCOUNTS, RECENT))
    times = ss.array(int, (ACCOUNTS, RECENT))
    seen = ss.array(int, ACCOUNTS)
    alarms = ss.array(int, ACCOUNTS)
    refused = ss.scalar(int)
    largest = ss.scalar(float)


# ---- the hundred lines begin here ----


def fee_of(way, amount, *, least=0.5):
    rate = FEES.get(way, 0.05)
    return max(least, round(amount * rate, 2))


def level_of(amount):
    level = 0
    for limit in LIMITS:
        if amount > limit:
            level += 1
    return level


def remember(state, account, amount, time):
    row, times = state.recent[account], state.times[account]
    row[1:] = row[:-1]
    times[1:] = times[:-1]
    row[0] = amount
    times[0] = time
    state.seen[account] += 1


def deviation(values, count):
    mean = sum(values[:count]) / count
    total = 0.0
    for value in values[:count]:
        total += (value - mean) ** 2
    return mean, math.sqrt(total / count)


def checked(state, account, amount):
    if not math.isfinite(amount) or amount <= 0.0:
        raise Refused(f"account {account} pays {amount}")
    if amount > 1e9:
        raise OverflowError(f"{amount} of account {account}")
    return amount


@ss.operator(
    state=Accounts,
    event={"time": int, "from_": int, "to": int, "amount": float, "way": str, "note": str},
    emits={"account": int, "kind": str, "score": float, "text": ss.nullable(str)},
)
def payments(state, event, emit):
    sender, receiver = event.from_ % ACCOUNTS, event.to % ACCOUNTS
    try:
        amount = checked(state, sender, event.amount)
    except Refused:
        state.refused += 1
        emit(sender, "refused", 0.0)
        return
    finally:
        state.seen[receiver] += 0

    fee = fee_of(event.way, amount)
    match event.way, level_of(amount):
        case "cash", level if level > 1:
            emit(sender, "cash", float(level), text="too much of it")
        case (("card" | "transfer"), _):
            state.balance[sender] -= fee
        case _:
            pass

    count = min(state.seen[sender], RECENT)
    if count > 2:
        mean, spread = deviation(state.recent[sender], count)
        score = (amount - mean) / spread if spread > 0.0 else 0.0
        if abs(score) > 3.0:
            state.alarms[sender] += 1
            emit(sender, "unusual", score, text=f"{amount:.2f} after {mean:.2f}")

    quick = [i for i in range(count) if event.time - state.times[sender, i] < 60]
    by_level = {}
    for i in quick:
        level = level_of(state.recent[sender, i])
        by_level[level] = by_level.get(level, 0) + 1
    for level, times in sorted(by_level.items()):
        if times >= 3:
            emit(sender, "burst", float(level))

    best = None
    for i, other in enumerate(state.recent[receiver]):
        if other > 0.0 and (best is None or other < state.recent[receiver, best]):
            best = i
    if best is not None and any(x > amount for x in state.recent[receiver]):
        emit(receiver, "between", state.recent[receiver, best])

    if event.note.lower().startswith("urgent") and not event.note.endswith("!"):
        emit(sender, "note", float(len(event.note)))

    state.balance[sender] -= amount
    state.balance[receiver] += amount - fee
    remember(state, sender, amount, event.time)
    while state.balance[sender] < 0.0 and state.alarms[sender] < 10:
        state.balance[sender] += 100.0
        state.alarms[sender] += 1
    if amount > state.largest:
        state.largest = amount
        emit(sender, "largest", amount)

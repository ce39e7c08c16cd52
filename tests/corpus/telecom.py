"""Calls, packets and cells."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import numpy as np
import pandas as pd
import pyarrow as pa

import specstream as ss
from corpus.case import case

CELLS = 7


def calls(rng):
    n = 220
    seconds = rng.exponential(90, n).astype(int)
    seconds[11] = 0
    return pa.table(
        {
            "caller": rng.integers(0, 20, n),
            "callee": rng.integers(0, 20, n),
            "cell": rng.integers(0, CELLS, n),
            "start": rng.integers(0, 40, n).cumsum(),
            "seconds": seconds,
            "number": rng.choice(["+49 40 1234", "0049891", "110", "+1-555-0100", "(030) 22"], n),
            "dropped": rng.random(n) < 0.1,
            "bytes": rng.integers(0, 2**40, n),
            "rtt": rng.gamma(2, 20, n),
            "sequence_number": np.concatenate([np.arange(n - 20), rng.integers(0, 250, 20)]),
        }
    )


CALL = {
    "caller": int,
    "callee": int,
    "cell": int,
    "start": int,
    "seconds": int,
    "number": str,
    "dropped": bool,
    "bytes": int,
    "rtt": float,
    "sequence_number": int,
}


class Rating(ss.State):
    minutes = ss.array(int, 20)
    cents = ss.array(int, 20)


def billing_by_pandas(table):
    d = table.to_pandas()
    minutes = -(-d.seconds // 60)
    rows, used = [], dict.fromkeys(range(20), 0)
    total = dict.fromkeys(range(20), 0)
    for c, m in zip(d.caller, minutes, strict=True):
        free = max(0, 5 - used[c])
        total[c] += 9 * max(0, m - free)
        used[c] += m
        rows.append((c, used[c], total[c] / 100))
    return rows


def whole_minutes(seconds):
    return -(-seconds // 60)


@case(
    "bills by whole minutes, the first five free",
    calls,
    billing_by_pandas,
    state=Rating,
    event=CALL,
    emits={"caller": int, "minutes": int, "euros": float},
)
def billing(state, event, emit):
    caller = event.caller
    minutes = whole_minutes(event.seconds)
    free = max(0, 5 - state.minutes[caller])
    if minutes > free:
        state.cents[caller] += 9 * (minutes - free)
    state.minutes[caller] += minutes
    emit(caller, state.minutes[caller], state.cents[caller] / 100)


class Lines(ss.State):
    until = ss.array(int, (CELLS, 4))
    blocked = ss.array(int, CELLS)


def blocked_by_hand(table):
    busy, blocked, rows = {c: [] for c in range(CELLS)}, [0] * CELLS, []
    for t in table.to_pylist():
        c = t["cell"]
        busy[c] = [end for end in busy[c] if end > t["start"]]
        if len(busy[c]) < 2:
            busy[c].append(t["start"] + 20 * t["seconds"])
            rows.append((c, len(busy[c]), blocked[c]))
        else:
            blocked[c] += 1
    return rows


@case(
    "calls that find all lines of a cell busy; for and else",
    calls,
    None,
    state=Lines,
    event=CALL,
    emits={"cell": int, "busy": int, "blocked": int},
)
def lines(state, event, emit):
    until = state.until[event.cell]
    for i, end in enumerate(until):
        if end <= event.start:
            until[i] = event.start + 20 * event.seconds
            break
    else:
        state.blocked[event.cell] += 1
        return
    busy = sum(end > event.start for end in until)
    emit(event.cell, busy, state.blocked[event.cell])


class Kinds(ss.State):
    emergency = ss.scalar(int)
    national = ss.scalar(int)
    abroad = ss.scalar(int)


def numbers_by_hand(table):
    rows, n = [], {"emergency": 0, "national": 0, "abroad": 0}
    for number in table["number"].to_pylist():
        plain = "".join(c for c in number if c in "+0123456789").replace("+", "00")
        kind = (
            "emergency"
            if plain == "110"
            else "national"
            if plain[:4] == "0049" or plain[:2] != "00"
            else "abroad"
        )
        n[kind] += 1
        rows.append((plain, kind, n[kind]))
    return rows


def normalised(number):
    digits = "".join(c for c in number if c.isdigit() or c == "+")
    return digits.replace("+", "00", 1)


@case(
    "kinds of numbers, normalised by string methods in a helper",
    calls,
    numbers_by_hand,
    state=Kinds,
    event=CALL,
    emits={"number": str, "kind": str, "count": int},
)
def kinds(state, event, emit):
    number = normalised(event.number)
    if number in ("110", "112"):
        state.emergency += 1
        emit(number, "emergency", state.emergency)
    elif number.startswith("00") and not number.startswith("0049"):
        state.abroad += 1
        emit(number, "abroad", state.abroad)
    else:
        state.national += 1
        emit(number, "national", count=state.national)


class Rto(ss.State):
    srtt = ss.scalar(float)
    rttvar = ss.scalar(float)


def rto_by_hand(table):
    rows, srtt, var = [], None, None
    for r in table["rtt"].to_pylist():
        if srtt is None:
            srtt, var = r, r / 2
        else:
            var = 0.75 * var + 0.25 * abs(srtt - r)
            srtt = 0.875 * srtt + 0.125 * r
        rows.append((max(200.0, min(srtt + 4 * var, 60000.0)),))
    return rows


@case(
    "TCP's retransmission timeout (RFC 6298)",
    calls,
    rto_by_hand,
    state=Rto,
    event=CALL,
    emits={"rto": float},
)
def retransmission_timeout(state, event, emit):
    first = state.srtt == 0
    if first:
        state.srtt, state.rttvar = event.rtt, event.rtt / 2
    else:
        state.rttvar += 0.25 * (abs(state.srtt - event.rtt) - state.rttvar)
        state.srtt += 0.125 * (event.rtt - state.srtt)
    emit(min(max(state.srtt + 4 * state.rttvar, 200), 60_000))


class Gaps(ss.State):
    expected = ss.scalar(int)
    lost = ss.scalar(int)
    late = ss.scalar(int)


def gaps_by_hand(table):
    rows, nxt, lost, late = [], 0, 0, 0
    for s in table["sequence_number"].to_pylist():
        if s < nxt:
            late += 1
        else:
            if s > nxt:
                rows.append((nxt, s - 1, f"{s - nxt} lost"))
            lost += s - nxt
            nxt = s + 1
    return [*rows]


@case(
    "gaps in sequence numbers",
    calls,
    gaps_by_hand,
    state=Gaps,
    event=CALL,
    emits={"first": int, "last": int, "text": str},
)
def gaps(state, event, emit):
    match event.sequence_number - state.expected:
        case 0:
            pass
        case gap if gap > 0:
            emit(state.expected, event.sequence_number - 1, f"{gap} lost")
            state.lost += gap
        case _:
            state.late += 1
            return
    state.expected = event.sequence_number + 1


class Bucket(ss.State):
    tokens = ss.array(float, CELLS, fill=10.0)
    last = ss.array(int, CELLS)


def bucket_by_hand(table):
    tokens, last, rows = [10.0] * CELLS, [0] * CELLS, []
    for t in table.to_pylist():
        c = t["cell"]
        tokens[c] = min(10.0, tokens[c] + (t["start"] - last[c]) * 0.01)
        last[c] = t["start"]
        ok = tokens[c] >= 1
        tokens[c] -= ok
        rows.append((c, ok, tokens[c]))
    return rows


@case(
    "a token bucket for each cell",
    calls,
    bucket_by_hand,
    state=Bucket,
    event=CALL,
    emits={"cell": int, "allowed": bool, "tokens": float},
)
def token_bucket(state, event, emit):
    c = event.cell
    elapsed, state.last[c] = event.start - state.last[c], event.start
    state.tokens[c] = min(10, state.tokens[c] + elapsed * 0.01)
    if allowed := state.tokens[c] >= 1:
        state.tokens[c] -= 1
    emit(c, allowed, state.tokens[c])


class Histogram(ss.State):
    counts = ss.array(int, 41)


def histogram_by_numpy(table):
    sizes = [int(b).bit_length() for b in table["bytes"].to_pylist()]
    rows = []
    for i, size in enumerate(sizes):
        seen = np.sort(sizes[: i + 1])
        rows.append((size, int(seen[-(-(i + 1) * 95 // 100) - 1])))
    return rows


@case(
    "powers of two of sizes, and their 95th percentile",
    calls,
    histogram_by_numpy,
    state=Histogram,
    event=CALL,
    emits={"power": int, "p95": int},
)
def size_histogram(state, event, emit):
    power = event.bytes.bit_length()
    state.counts[power] += 1
    total = sum(state.counts)
    seen = 0
    for i, n in enumerate(state.counts):
        seen += n
        if seen * 100 >= total * 95:
            emit(power, i)
            break


class Circles(ss.State):
    parent = ss.array(int, 20, fill=-1)


def circles_by_hand(table):
    groups, rows = [{i} for i in range(20)], []
    for a, b in zip(table["caller"].to_pylist(), table["callee"].to_pylist(), strict=True):
        one = next(g for g in groups if a in g)
        other = next(g for g in groups if b in g)
        if one is not other:
            groups.remove(other)
            one |= other
        rows.append((len(groups), max(map(len, groups))))
    return rows


def find(state, node):
    while state.parent[node] >= 0:
        node = state.parent[node]
    return node


@case(
    "circles of people who call each other (union and find)",
    calls,
    circles_by_hand,
    state=Circles,
    event=CALL,
    emits={"circles": int, "largest": int},
)
def circles(state, event, emit):
    a, b = find(state, event.caller), find(state, event.callee)
    if a != b:
        if state.parent[a] > state.parent[b]:
            a, b = b, a
        state.parent[a] += state.parent[b]
        state.parent[b] = a
    sizes = [-p for p in state.parent if p < 0]
    emit(len(sizes), max(sizes))


class Sketch(ss.State):
    registers = ss.array(np.uint8, 16)


@case(
    "how many different pairs call (a log-log sketch over random bits)",
    calls,
    None,
    state=Sketch,
    event=CALL,
    emits={"estimate": float},
)
def distinct_pairs(state, event, emit):
    pair = event.caller * 20 + event.callee
    hashed = (pair * 2654435761) % 2**32
    index = hashed & 15
    rest = hashed >> 4
    rank = 28 - rest.bit_length() + 1
    state.registers[index] = max(state.registers[index], rank)
    harmonic = sum(2.0**-r for r in state.registers)
    emit(round(0.673 * 256 / harmonic, 1))


class Dropped(ss.State):
    calls = ss.array(int, CELLS)
    dropped = ss.array(int, CELLS)


def worst_by_pandas(table):
    d = table.to_pandas()
    rows = []
    for i in range(29, len(d), 30):
        rate = d.iloc[: i + 1].groupby("cell").dropped.mean().sort_index()
        rows.append((int(rate.idxmax()), float(rate.max())))
    return rows


@case(
    "the cell that drops most, every thirty calls",
    calls,
    worst_by_pandas,
    state=Dropped,
    event=CALL,
    emits={"cell": int, "rate": float},
)
def worst_cell(state, event, emit):
    state.calls[event.cell] += 1
    state.dropped[event.cell] += event.dropped
    if (event.sequence + 1) % 30:
        return
    rates = {c: state.dropped[c] / state.calls[c] for c in range(CELLS) if state.calls[c]}
    worst = max(rates, key=lambda c: rates[c])
    emit(worst, rates[worst])


class Peaks(ss.State):
    last = ss.scratch(float, 4)
    window = ss.array(float, 4)


def peaks_by_pandas(table):
    rtt = table["rtt"].to_pandas()
    p = rtt[(rtt > rtt.shift(1)) & (rtt > rtt.shift(-1))]
    return [(float(x),) for x in p if not pd.isna(x)]


@case(
    "local peaks of the round-trip time",
    calls,
    peaks_by_pandas,
    state=Peaks,
    event=CALL,
    emits={"peak": float},
)
def peaks(state, event, emit):
    *_, before, middle = state.window
    after = event.rtt
    if event.sequence >= 2 and before < middle > after:
        emit(middle)
    state.window[:-1] = state.window[1:]
    state.window[-1] = after

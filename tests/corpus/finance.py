"""Prices, trades and accounts."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import enum
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa

import specstream as ss
from corpus.case import case

SYMBOLS = ["AAPL", "MSFT", "BRK.B", "SAP.DE", "7203.T"]


def trades(rng):
    n = 200
    price = np.round(100 * np.exp(np.cumsum(rng.normal(0, 0.01, n))), 2)
    price[17] = 0.01
    quantity = rng.integers(1, 500, n)
    quantity[40] = 1
    return pa.table(
        {
            "symbol": rng.integers(0, 5, n),
            "price": price,
            "quantity": quantity,
            "buy": rng.random(n) < 0.5,
            "ticker": rng.choice(SYMBOLS, n),
        }
    )


TRADE = {"symbol": int, "price": float, "quantity": int, "buy": bool, "ticker": str}


class Vwap(ss.State):
    volume = ss.array(int, 5)
    turnover = ss.array(float, 5)


def vwap_by_pandas(table):
    d = table.to_pandas()
    d["turnover"] = d.price * d.quantity
    d["vwap"] = d.groupby("symbol").turnover.cumsum() / d.groupby("symbol").quantity.cumsum()
    return list(zip(d.symbol, d.vwap, strict=True))


@case(
    "volume-weighted average price",
    trades,
    vwap_by_pandas,
    state=Vwap,
    event=TRADE,
    emits={"symbol": int, "vwap": float},
)
def vwap(state, event, emit):
    s = event.symbol
    state.volume[s] += event.quantity
    state.turnover[s] += event.quantity * event.price
    emit(s, state.turnover[s] / state.volume[s])


class Ema(ss.State):
    value = ss.array(float, 5)
    seen = ss.array(bool, 5)


def smooth(old, new, *, span=20):
    alpha = 2 / (span + 1)
    return alpha * new + (1 - alpha) * old


def ema_by_pandas(table):
    d = table.to_pandas()
    fast, slow = (
        d.groupby("symbol").price.transform(lambda p, s=s: p.ewm(span=s, adjust=False).mean())
        for s in (5, 20)
    )
    return list(zip(d.ticker, fast - slow, strict=True))


class Macd(ss.State):
    fast = ss.array(float, 5)
    slow = ss.array(float, 5)
    seen = ss.array(bool, 5)


@case(
    "difference of two exponential averages",
    trades,
    ema_by_pandas,
    state=Macd,
    event=TRADE,
    emits={"ticker": str, "macd": float},
)
def macd(state, event, emit):
    s = event.symbol
    if not state.seen[s]:
        state.seen[s] = True
        state.fast[s] = state.slow[s] = event.price
    else:
        state.fast[s] = smooth(state.fast[s], event.price, span=5)
        state.slow[s] = smooth(state.slow[s], event.price)
    emit(event.ticker, state.fast[s] - state.slow[s])


class Bollinger(ss.State):
    window = ss.array(float, 20)
    n = ss.scalar(int)


def bollinger_by_pandas(table):
    price = table["price"].to_pandas()
    mean = price.rolling(20).mean()
    std = price.rolling(20).std(ddof=0)
    d = pd.DataFrame({"low": mean - 2 * std, "high": mean + 2 * std}).iloc[19:]
    return list(zip(d.low, d.high, strict=True))


@case(
    "Bollinger bands of the last twenty prices",
    trades,
    bollinger_by_pandas,
    state=Bollinger,
    event=TRADE,
    emits={"low": float, "high": float},
)
def bollinger(state, event, emit):
    state.window[state.n % 20] = event.price
    state.n += 1
    if state.n < 20:
        return
    mean = sum(state.window) / 20
    std = math.sqrt(sum((x - mean) ** 2 for x in state.window) / 20)
    emit(mean - 2 * std, high=mean + 2 * std)


class Drawdown(ss.State):
    peak = ss.scalar(float, fill=-math.inf)
    worst = ss.scalar(float)


def drawdown_by_numpy(table):
    price = table["price"].to_numpy()
    worst = np.maximum.accumulate(1 - price / np.maximum.accumulate(price))
    return [(round(float(w), 4),) for w in worst]


@case(
    "largest loss since a peak",
    trades,
    drawdown_by_numpy,
    state=Drawdown,
    event=TRADE,
    emits={"drawdown": float},
)
def drawdown(state, event, emit):
    state.peak = max(state.peak, event.price)
    state.worst = max(state.worst, 1 - event.price / state.peak)
    emit(round(state.worst, 4))


class Position(ss.State):
    held = ss.array(int, 5)
    cost = ss.array(float, 5)
    profit = ss.scalar(float)


class InsufficientPosition(Exception):
    pass


def sell(state, symbol, quantity, price):
    if quantity > state.held[symbol]:
        raise InsufficientPosition(f"{quantity} of {state.held[symbol]}")
    average = state.cost[symbol] / state.held[symbol]
    state.held[symbol] -= quantity
    state.cost[symbol] -= average * quantity
    return quantity * (price - average)


def positions_by_hand(table):
    held: dict[int, tuple[int, float]] = {}
    profit, rows = 0.0, []
    for t in table.to_pylist():
        have, cost = held.get(t["symbol"], (0, 0.0))
        if t["buy"]:
            held[t["symbol"]] = have + t["quantity"], cost + t["quantity"] * t["price"]
            rows.append((t["symbol"], "bought", profit))
        elif t["quantity"] > have:
            rows.append((t["symbol"], "short", profit))
        else:
            part = cost / have * t["quantity"]
            held[t["symbol"]] = have - t["quantity"], cost - part
            profit += t["quantity"] * t["price"] - part
            rows.append((t["symbol"], "sold", profit))
    return rows


@case(
    "positions at average cost, without short sales",
    trades,
    positions_by_hand,
    state=Position,
    event=TRADE,
    emits={"symbol": int, "what": str, "profit": float},
)
def positions(state, event, emit):
    s = event.symbol
    if event.buy:
        state.held[s] += event.quantity
        state.cost[s] += event.quantity * event.price
        what = "bought"
    else:
        try:
            state.profit += sell(state, s, event.quantity, event.price)
            what = "sold"
        except InsufficientPosition:
            what = "short"
    emit(s, what, state.profit)


class Side(enum.IntEnum):
    BUY = 1
    SELL = -1


class Flow(ss.State):
    net = ss.array(int, 5)


def flow_by_pandas(table):
    d = table.to_pandas()
    d["signed"] = np.where(d.buy, d.quantity, -d.quantity)
    d["net"] = d.groupby("symbol").signed.cumsum()
    return [
        (s, int(n), "long" if n > 0 else "short" if n < 0 else "flat")
        for s, n in zip(d.symbol, d.net, strict=True)
    ]


@case(
    "net order flow with an enum",
    trades,
    flow_by_pandas,
    state=Flow,
    event=TRADE,
    emits={"symbol": int, "net": int, "label": str},
)
def order_flow(state, event, emit):
    side = Side.BUY if event.buy else Side.SELL
    state.net[event.symbol] += side * event.quantity
    net = state.net[event.symbol]
    label = "long" if net > 0 else "short" if net < 0 else "flat"
    emit(event.symbol, net, label)


FEES = {"AAPL": 0.001, "MSFT": 0.001, "BRK.B": 0.002, "SAP.DE": 0.0015}


class Fees(ss.State):
    paid = ss.scalar(float)


def fees_by_pandas(table):
    d = table.to_pandas()
    fee = d.ticker.map(FEES).fillna(0.005) * d.price * d.quantity
    return list(zip(d.ticker, fee, fee.cumsum(), strict=True))


@case(
    "fees from a dict of the module",
    trades,
    fees_by_pandas,
    state=Fees,
    event=TRADE,
    emits={"ticker": str, "fee": float, "total": float},
)
def fees(state, event, emit):
    fee = FEES.get(event.ticker, 0.005) * event.price * event.quantity
    state.paid += fee
    emit(event.ticker, fee, state.paid)


class Book(ss.State):
    bids = ss.array(float, 10)
    sizes = ss.array(int, 10)


def book_by_hand(table):
    bids: list[tuple[float, int]] = []
    rows = []
    for t in table.to_pylist():
        bids = sorted([*bids, (t["price"], t["quantity"])], key=lambda b: -b[0])[:10]
        rows.append((bids[0][0], sum(q for _, q in bids)))
    return rows


@case(
    "ten best bids, kept in order by insertion",
    trades,
    book_by_hand,
    state=Book,
    event=TRADE,
    emits={"best": float, "depth": int},
)
def best_bids(state, event, emit):
    at = 10
    while at > 0 and state.bids[at - 1] < event.price:
        at -= 1
    if at < 10:
        state.bids[at + 1 :] = state.bids[at:-1]
        state.sizes[at + 1 :] = state.sizes[at:-1]
        state.bids[at], state.sizes[at] = event.price, event.quantity
    emit(state.bids[0], sum(state.sizes))


class Bars(ss.State):
    n = ss.scalar(int)
    open = ss.scalar(float)
    high = ss.scalar(float)
    low = ss.scalar(float)


def bars_by_pandas(table):
    p = table["price"].to_pandas()
    bars = p.groupby(p.index // 15).agg(["first", "max", "min", "last", "size"])
    bars = bars[bars["size"] == 15]
    return [tuple(map(float, row[:4])) for row in bars.itertuples(index=False)]


@case(
    "open, high, low, close of fifteen trades",
    trades,
    bars_by_pandas,
    state=Bars,
    event=TRADE,
    emits={"open": float, "high": float, "low": float, "close": float},
)
def bars(state, event, emit):
    price = event.price
    if state.n == 0:
        state.open = state.high = state.low = price
    state.high, state.low = max(state.high, price), min(state.low, price)
    state.n += 1
    if state.n == 15:
        emit(open=state.open, high=state.high, low=state.low, close=price)
        state.n = 0


@dataclass(frozen=True)
class Band:
    limit: float
    rate: float


BANDS = (Band(1_000.0, 0.01), Band(10_000.0, 0.005), Band(math.inf, 0.002))


def commission_by_hand(table):
    rows = []
    total = 0.0
    for p, q in zip(table["price"].to_pylist(), table["quantity"].to_pylist(), strict=True):
        value = p * q
        total += value * (0.01 if value <= 1000 else 0.005 if value <= 10000 else 0.002)
        rows.append((total,))
    return rows


@case(
    "commission by bands, frozen dataclasses in a tuple",
    trades,
    commission_by_hand,
    state=Fees,
    event=TRADE,
    emits={"total": float},
)
def commission(state, event, emit):
    value = event.price * event.quantity
    for band in BANDS:
        if value <= band.limit:
            state.paid += value * band.rate
            break
    emit(state.paid)


class Rsi(ss.State):
    last = ss.scalar(float)
    gain = ss.scalar(float)
    loss = ss.scalar(float)
    n = ss.scalar(int)


def rsi_by_pandas(table):
    change = table["price"].to_pandas().diff()
    gain = change.clip(lower=0).fillna(0).ewm(alpha=1 / 14, adjust=False).mean()
    loss = (-change).clip(lower=0).fillna(0).ewm(alpha=1 / 14, adjust=False).mean()
    return [
        (100.0 if b == 0 else 100 - 100 / (1 + a / b),) for a, b in zip(gain, loss, strict=True)
    ][1:]


@case(
    "relative strength index",
    trades,
    rsi_by_pandas,
    state=Rsi,
    event=TRADE,
    emits={"rsi": float},
)
def rsi(state, event, emit):
    previous, state.last = state.last, event.price
    state.n += 1
    if state.n == 1:
        return
    change = event.price - previous
    state.gain += (max(change, 0.0) - state.gain) / 14
    state.loss += (max(-change, 0.0) - state.loss) / 14
    try:
        strength = state.gain / state.loss
    except ZeroDivisionError:
        emit(100.0)
    else:
        emit(100 - 100 / (1 + strength))


class Last(ss.State):
    price = ss.array(float, 5, fill=math.nan)


@case(
    "log returns, nothing before the first price",
    trades,
    lambda table: [
        (t, r)
        for t, r in zip(
            table["ticker"].to_pylist(),
            table.to_pandas().groupby("symbol").price.transform(lambda p: np.log(p).diff()),
            strict=True,
        )
        if r == r
    ],
    state=Last,
    event=TRADE,
    emits={"ticker": str, "log_return": float},
)
def log_returns(state, event, emit):
    if not math.isnan(last := state.price[event.symbol]):
        emit(event.ticker, math.log(event.price / last))
    state.price[event.symbol] = event.price


class Exposure(ss.State):
    long = ss.array(float, 5)
    short = ss.array(float, 5)


def exposure_by_pandas(table):
    d = table.to_pandas()
    value = (d.price * d.quantity).cumsum()
    bought = (d.price * d.quantity * d.buy).cumsum()
    return [(float(v), float(2 * b - v)) for v, b in zip(value, bought, strict=True)]


@case(
    "gross and net exposure, summed over a local dict",
    trades,
    exposure_by_pandas,
    state=Exposure,
    event=TRADE,
    emits={"gross": float, "net": float},
)
def exposure(state, event, emit):
    side = state.long if event.buy else state.short
    side[event.symbol] += event.price * event.quantity
    gross = {s: state.long[s] + state.short[s] for s in range(5)}
    net = {s: state.long[s] - state.short[s] for s in range(5)}
    emit(sum(gross.values()), net=sum(net.values()))

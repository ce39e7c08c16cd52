"""The running example of Brito 2010, 1.2 (Figure 1.1): ticks of three exchanges become orders.

Filters drop what is not of interest and convert currencies; the first processor keeps moving
averages of each stock and how often it is traded, and lets those pass that are traded often and
have left their averages; the second one values an option on the stock, which is most of the work;
then fees are added. What they do is written as functions of their state, so that the pipeline, the
engines of their own and the one function do the same.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss

__all__ = [
    "EXCHANGES",
    "averages_of_rows",
    "billing",
    "filter_of",
    "options",
    "pipeline",
    "ticks",
    "trading_function",
]

EXCHANGES = {"bovespa": 0.18, "dax": 1.08, "nasdaq": 1.0}  # dollars of what prices are quoted in
SYMBOLS = tuple(f"S{number:02}" for number in range(48))  # the first half is of interest
STEPS = 250  # of the tree by which an option is valued

TICK = {"symbol": str, "price": float, "size": int}
QUOTE = {"symbol": str, "price": float}
SIGNAL = {"symbol": str, "price": float, "volatility": float}
DECISION = {"symbol": str, "buy": bool, "value": float}
ORDER = {"symbol": str, "buy": bool, "value": float, "fee": float, "number": int}


# ---- what the stages do ----


def has_left_its_averages(state, symbol, price, time):
    """Also keeps the averages, the variance and the decayed number of trades of a stock."""
    fast, slow, variance, rate, last = state.stocks.get(symbol, (price, price, 0.0, 0.0, time))
    change = price / fast - 1.0
    fast += 0.2 * (price - fast)
    slow += 0.02 * (price - slow)
    variance += 0.1 * (change * change - variance)
    rate = 1.0 + rate * math.exp((last - time) / 20_000.0)
    state.stocks[symbol] = (fast, slow, variance, rate, time)
    return rate > 2.0 and abs(price - slow) > 0.004 * slow and abs(price - fast) > 0.002 * fast


def value_of_option(state, price, strike, volatility):
    """A call by a binomial tree, American style."""
    up = math.exp(volatility / math.sqrt(STEPS))
    chance = (1.0 - 1.0 / up) / (up - 1.0 / up)
    at = price * up ** (-STEPS)
    for step in range(STEPS + 1):
        state.tree[step] = max(at - strike, 0.0)
        at *= up * up
    for left in range(STEPS, 0, -1):
        for step in range(left):
            state.tree[step] = chance * state.tree[step + 1] + (1.0 - chance) * state.tree[step]
    return state.tree[0]


def fee_of(state, value):
    state.number += 1
    return max(0.01, 0.001 * value)


# ---- as vertices ----


class Nothing(ss.State):
    word = ss.scalar(int)


class Stocks(ss.State):
    stocks = ss.dict(str, (float, float, float, float, int))


class Options(ss.State):
    tree = ss.scratch(float, STEPS + 1)
    values = ss.dict(str, float)


class Orders(ss.State):
    number = ss.scalar(int)


def filter_of(exchange: str) -> ss.Operator:
    """The filter of an exchange."""
    dollars = EXCHANGES[exchange]

    @ss.operator(state=Nothing, event=TICK, emits=QUOTE)
    def filtered(state, event, emit):
        if event.symbol < "S24" and event.size >= 100:
            emit(event.symbol, event.price * dollars)

    return filtered


@ss.operator(state=Stocks, inputs=dict.fromkeys(EXCHANGES, QUOTE), emits=SIGNAL)
def averages(state, event, emit):
    if event.changed("nasdaq"):
        symbol, price = event.nasdaq.symbol, event.nasdaq.price
    elif event.changed("dax"):
        symbol, price = event.dax.symbol, event.dax.price
    else:
        symbol, price = event.bovespa.symbol, event.bovespa.price
    if has_left_its_averages(state, symbol, price, event.timestamp):
        emit(symbol, price, math.sqrt(state.stocks[symbol][2]))


@ss.operator(state=Stocks, event=QUOTE, emits=SIGNAL)
def averages_of_rows(state, event, emit):
    symbol, price = event.symbol, event.price
    if has_left_its_averages(state, symbol, price, event.timestamp):
        emit(symbol, price, math.sqrt(state.stocks[symbol][2]))


@ss.operator(state=Options, event=SIGNAL, emits=DECISION)
def options(state, event, emit):
    value = value_of_option(state, event.price, 100.0, 0.05 + event.volatility)
    last = state.values.get(event.symbol, value)
    state.values[event.symbol] = value
    if abs(value - last) > 0.01 * last:
        emit(event.symbol, value > last, value)


@ss.operator(state=Orders, event=DECISION, emits=ORDER)
def billing(state, event, emit):
    emit(event.symbol, event.buy, event.value, fee_of(state, event.value), state.number)


def pipeline() -> ss.Pipeline:
    """From the exchanges to the orders."""
    p = ss.Pipeline("trading")
    quotes: dict[str, Any] = {
        name: p.add(filter_of(name), p.source(name, TICK), name=f"filter_{name}")
        for name in EXCHANGES
    }
    signals = p.add(averages, **quotes)
    p.sink("orders", p.add(billing, p.add(options, signals)))
    return p


# ---- as one function ----


class Everything(ss.State):
    stocks = ss.dict(str, (float, float, float, float, int))
    tree = ss.scratch(float, STEPS + 1)
    values = ss.dict(str, float)
    number = ss.scalar(int)


@ss.operator(state=Everything, event={"exchange": str, **TICK}, emits=ORDER)
def trading_function(state, event, emit):
    if event.symbol >= "S24" or event.size < 100:
        return
    symbol, price = event.symbol, event.price
    if event.exchange == "bovespa":
        price *= 0.18
    elif event.exchange == "dax":
        price *= 1.08
    if not has_left_its_averages(state, symbol, price, event.timestamp):
        return
    volatility = 0.05 + math.sqrt(state.stocks[symbol][2])
    value = value_of_option(state, price, 100.0, volatility)
    last = state.values.get(symbol, value)
    state.values[symbol] = value
    if abs(value - last) > 0.01 * last:
        emit(symbol, value > last, value, fee_of(state, value), state.number)


# ---- ticks ----


def ticks(count: int, seed: int, first: int = 0) -> dict[str, pa.Table]:
    """Ticks by exchange, with the column ``time``; no two have the same.

    Args:
        count: of all exchanges together.
        seed: of prices, sizes and gaps.
        first: a time before that of all of them.
    """
    rng = np.random.default_rng(seed)
    symbol = rng.integers(0, len(SYMBOLS), count)
    exchange = rng.integers(0, len(EXCHANGES), count)
    steps = rng.normal(0.0, 0.004, count)
    # Each stock's price is a random walk around 100 dollars that does not run away.
    price = np.empty(count)
    for number in range(len(SYMBOLS)):
        own = np.flatnonzero(symbol == number)
        price[own] = 100.0 * np.exp(0.05 * np.sin(np.cumsum(steps[own]) / 0.05))
    price /= np.array(list(EXCHANGES.values()))[exchange]
    columns: dict[str, Any] = {
        "time": first + np.cumsum(rng.integers(1, 400, count)),
        "symbol": np.array(SYMBOLS, object)[symbol],
        "price": price,
        "size": rng.integers(1, 10, count) * 50,
    }
    return {
        name: pa.table({column: of[exchange == at] for column, of in columns.items()})
        for at, name in enumerate(EXCHANGES)
    }

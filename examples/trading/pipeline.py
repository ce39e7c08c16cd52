"""The pipeline: from the ticks of two exchanges to orders, in six stages.

They are those of the running example of Brito's dissertation (2010, section 1.2 and figure 1.1):
producers, filters, two processors, a distributor, consumers.
"""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import specstream as ss
from specstream.operators.signals import moving_average

__all__ = [
    "BAND",
    "BUSY",
    "DECAY",
    "DRAWS",
    "HIGHEST_COST",
    "LONG",
    "MINUTE",
    "SHORT",
    "trading",
]

SHORT, LONG = 20, 100  # trades in the two moving averages
MINUTE = 60_000_000  # microseconds
BUSY = 5.0  # trades a minute, below which a symbol is not looked at any further
DECAY = 0.98  # how much a squared return counts for one trade later
BAND = 0.0005  # the averages have crossed when they differ by so much of the price
HIGHEST_COST = 0.0006  # of the price: an order that costs more to insure is not given

# Random paths of a price: so many of them, of so many trades. All options are valued with the same
# ones, so that two values differ only if the options do.
PATHS, STEPS = 32, 10
DRAWS = np.random.default_rng(2010).normal(size=(PATHS, STEPS))

# Exchanges send ticks without a price, too.
TICK = {"symbol": str, "price": ss.nullable(float), "size": int}
# The columns that moving_average of specstream.operators reads are called so.
CLEAN = {"key": str, "value": float}
AVERAGES = {
    "time": ss.timestamp("us"),
    "symbol": str,
    "price": float,
    "short": float,
    "long": float,
}
ORDER = {"time": ss.timestamp("us"), "symbol": str, "side": str, "price": float, "cost": float}


# ---- stage 2: filters ----


def only(symbols):
    """Drops ticks of other symbols, and those that cannot be right."""

    @ss.operator(event=TICK, emits=CLEAN)
    def filter(event, emit):
        price = event.price
        if price is None or not 0.0 < price < math.inf or event.size <= 0:
            return
        if event.symbol in symbols:
            emit(event.symbol, price)

    return filter


@ss.operator(inputs={"a": CLEAN, "b": CLEAN}, emits=CLEAN)
def merge(event, emit):
    if event.changed("a"):
        emit(event.a.key, event.a.value)
    else:  # an event comes from one of them
        emit(event.b.key, event.b.value)


# ---- stage 3, processor 1: averages, frequency, volatility ----


@ss.operator(
    inputs={"tick": CLEAN, "short": {"mean": float}, "long": {"mean": float}}, emits=AVERAGES
)
def averages(event, emit):
    if event.changed("long"):  # the symbol has had enough trades
        price = event.tick.value
        emit(event.timestamp, event.tick.key, price, event.short.mean, event.long.mean)


class Pace(ss.Record):
    trades: float = 0.0
    time: int = 0


class Paces(ss.State):
    by_symbol = ss.dict(str, Pace)


@ss.operator(state=Paces, event=CLEAN, emits={"per_minute": float}, time_unit="us")
def frequency(state, event, emit):
    """Trades a minute, in which a trade counts for less the longer it is ago."""
    pace = state.by_symbol.setdefault(event.key, Pace())
    pace.trades *= math.exp((pace.time - event.timestamp) / MINUTE)
    pace.trades += 1.0
    pace.time = event.timestamp
    emit(pace.trades)


class Spread(ss.Record):
    price: float = 0.0
    variance: float = 0.0


class Spreads(ss.State):
    by_symbol = ss.dict(str, Spread)


@ss.operator(state=Spreads, event=CLEAN, emits={"per_trade": float})
def volatility(state, event, emit):
    """The standard deviation of a symbol's return from one trade to the next."""
    spread = state.by_symbol.setdefault(event.key, Spread(event.value, 0.0))
    step = math.log(event.value / spread.price)
    spread.variance = DECAY * spread.variance + (1.0 - DECAY) * step * step
    spread.price = event.value
    emit(math.sqrt(spread.variance))


# ---- stage 4, processor 2: what it costs to insure an order ----


@ss.operator(
    inputs={
        "averages": {"price": float},
        "frequency": {"per_minute": float},
        "volatility": {"per_trade": float},
    },
    emits={"value": float},
)
def option(event, emit):
    """An option on the mean price of the next trades, by Monte Carlo: there is no closed form.

    It is the right to sell at that mean and to be paid today's price. This is the expensive stage;
    it has no state, so it runs on all cores.
    """
    if event.changed("averages") and event.frequency.per_minute >= BUSY:
        deviation = event.volatility.per_trade
        drift = -0.5 * deviation * deviation
        paid = 0.0
        for path in range(PATHS):
            price, total = 1.0, 0.0
            for step in range(STEPS):
                price *= math.exp(drift + deviation * DRAWS[path, step])
                total += price
            paid += max(1.0 - total / STEPS, 0.0)
        emit(event.averages.price * paid / PATHS)


# ---- stage 5: the distributor ----


class Sides(ss.State):
    above = ss.dict(str, bool)


@ss.operator(state=Sides, inputs={"averages": AVERAGES, "option": {"value": float}}, emits=ORDER)
def distributor(state, event, emit):
    """An order where the short average has crossed the long one, if it is cheap to insure."""
    symbol, price = event.averages.symbol, event.averages.price
    difference = event.averages.short - event.averages.long
    if abs(difference) > BAND * price:
        above = difference > 0.0
        has_crossed = above != state.above.get(symbol, above)
        state.above[symbol] = above
        if has_crossed and event.changed("option") and event.option.value <= HIGHEST_COST * price:
            side = "buy" if above else "sell"
            emit(event.averages.time, symbol, side, price, event.option.value)


def only_side(side):
    """What goes to one of the consumers."""

    @ss.operator(event=ORDER, emits=ORDER)
    def orders(event, emit):
        if event.side == side:
            emit(event.time, event.symbol, event.side, event.price, event.cost)

    return orders


# ---- the graph ----


def trading(
    exchanges: Sequence[str] = ("NASDAQ", "XETRA"),
    symbols: Sequence[str] = ("AAPL", "MSFT", "SAP", "SIE"),
    short: int = SHORT,
    long: int = LONG,
) -> ss.Pipeline:
    """The pipeline, new; its sinks are ``buys``, ``sells`` and ``averages``.

    Args:
        exchanges: names of the two sources.
        symbols: those of interest; all others are dropped.
        short: trades in the short average.
        long: trades in the long one.
    """
    p = ss.Pipeline("trading")
    one, other = (p.source(exchange, TICK) for exchange in exchanges)  # stage 1: producers
    a = p.add(only(symbols), one, name=f"filter_{exchanges[0]}")
    b = p.add(only(symbols), other, name=f"filter_{exchanges[1]}")
    ticks = p.add(merge, a=a, b=b)

    of_short = p.add(moving_average(short), ticks, name="short")
    of_long = p.add(moving_average(long), ticks, name="long")
    means = p.add(averages, tick=ticks, short=of_short, long=of_long)
    pace = p.add(frequency, ticks)
    spread = p.add(volatility, ticks)

    cost = p.add(option, averages=means, frequency=pace, volatility=spread)
    orders = p.add(distributor, averages=means, option=cost)

    p.sink("buys", p.add(only_side("buy"), orders, name="buys"))  # stage 6: consumers
    p.sink("sells", p.add(only_side("sell"), orders, name="sells"))
    p.sink("averages", means)  # for the picture
    return p

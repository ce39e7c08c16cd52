"""Prices of options by simulation: much computing for each event, and nothing shared.

In the model of Black and Scholes (1973) the logarithm of a price is a random walk. Its paths are
drawn, and the mean payoff, discounted, is the price (Boyle 1977). Each path is taken with its
mirror image (antithetic variates, Hammersley and Morton 1956): a pair costs the draws of one path,
and as the errors of the two tend to cancel, their mean varies less than that of two independent
ones.

The draws are those of the event, ``event.normal``: each event's are its own, and the same in every
run. There is no state, so no event ever waits for another one.
"""

from __future__ import annotations

import math

import specstream as ss
from specstream.declarations.options import integer, one_of, refuses_unknown

__all__ = ["option_price"]

_INFINITY = math.inf
_MOST_STEPS = 2**32


@refuses_unknown
def option_price(paths: int = 10_000, dates: int = 1, payoff: str = "call") -> ss.Operator:
    """The price of a European or Asian option for each event, with its standard error.

    Events have the columns ``spot``, the price now; ``strike``; ``rate``, the riskless interest,
    and ``volatility``, both a year and continuously compounded (0.05 is five per cent); and
    ``years``, the time to maturity: all floats. Each emits one row ``(price, error)``: the
    estimate, and its standard error, estimated from the same paths. About 95 of 100 estimates are
    within two standard errors of the model's price, if there are enough paths that some end in the
    money. The error goes down with the square root of ``paths``.

    Args:
        paths: simulated for each event, an even number from 4 to 2**24.
        dates: over which the price is averaged, equally spaced, the last at maturity: 1 is a
            European option, more an Asian one with an arithmetic mean; 1 to 10000, and with
            ``paths`` at most 2**32 steps for each event.
        payoff: "call", of what the mean is above the strike, or "put", of what it is below.

    State: none. An event draws ``paths * dates / 2`` normal numbers.

    The operator raises ValueError for a spot or strike that is not positive, a volatility or time
    that is negative, and for all that is not finite; and OverflowError where a path, or the square
    of what it pays, leaves the floats.

    Raises:
        ConfigurationError: an argument has a value that it cannot have.

    >>> import specstream as ss
    >>> from specstream.operators.business import option_price
    >>> quotes = {"spot": 100.0, "strike": 95.0, "rate": 0.03, "volatility": 0.2, "years": 0.5}
    >>> with ss.Engine(option_price(paths=20_000), threads=2, seed=1) as engine:
    ...     row = engine.process([quotes]).to_pylist()[0]
    >>> black_scholes = 9.2511
    >>> abs(row["price"] - black_scholes) < 3 * row["error"] < 0.2
    True
    """
    # One piece: the operator closes over these numbers.
    paths = integer("option_price: paths", paths, 4, 2**24)
    if paths % 2 == 1:
        raise ss.ConfigurationError(
            f"option_price: paths={paths}; expected an even number: they are drawn in pairs, "
            f"try {paths + 1}"
        )
    pairs = paths // 2
    dates = integer("option_price: dates", dates, 1, 10_000)
    if paths * dates > _MOST_STEPS:
        raise ss.ConfigurationError(
            f"option_price: paths={paths} of dates={dates} are {paths * dates:,} steps for each "
            f"event; expected at most {_MOST_STEPS:,}: give fewer of one of them"
        )
    sign = 1.0 if one_of("option_price: payoff", payoff, ("call", "put")) == "call" else -1.0

    @ss.operator(
        event={"spot": float, "strike": float, "rate": float, "volatility": float, "years": float},
        emits={"price": float, "error": float},
        name="option_price",
    )
    def process(event, emit):  # type: ignore[no-untyped-def]
        spot, strike = event.spot, event.strike
        rate, volatility, years = event.rate, event.volatility, event.years
        if not (0.0 < spot < _INFINITY and 0.0 < strike < _INFINITY):
            raise ValueError(f"option_price: spot={spot}, strike={strike}; expected above 0")
        if not (0.0 <= volatility < _INFINITY and 0.0 <= years < _INFINITY):
            raise ValueError(
                f"option_price: volatility={volatility}, years={years}; expected at least 0"
            )
        if not -_INFINITY < rate < _INFINITY:
            raise ValueError(f"option_price: rate={rate}; expected a finite number")

        step = years / dates
        drift = (rate - 0.5 * volatility * volatility) * step
        spread = volatility * math.sqrt(step)
        mean = 0.0
        squares = 0.0  # of deviations from the mean (Welford 1962)
        for pair in range(pairs):
            walk = 0.0
            total = 0.0
            mirrored = 0.0
            for date in range(dates):
                walk += spread * event.normal(pair * dates + date)
                drifted = drift * (date + 1)
                total += math.exp(drifted + walk)
                mirrored += math.exp(drifted - walk)
            one = max(sign * (spot * total / dates - strike), 0.0)
            other = max(sign * (spot * mirrored / dates - strike), 0.0)
            value = 0.5 * (one + other)
            deviation = value - mean
            mean += deviation / (pair + 1)
            squares += deviation * (value - mean)
        discount = math.exp(-rate * years)
        error = discount * math.sqrt(squares / (pairs * (pairs - 1)))
        if not error < _INFINITY:
            raise OverflowError("option_price: the squares of the payoffs leave the floats")
        emit(discount * mean, error)

    return process

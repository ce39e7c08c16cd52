"""Money, orders, stock and games: operators with the rules of a business.

=============================== =================================================================
:func:`bank_transfers`          payments between accounts, none of which is overdrawn
:func:`inventory`               stock with reservations that expire
:func:`leaderboard`             the best players, whose scores change
:func:`option_price`            Monte-Carlo prices of European and Asian options
:func:`order_book`              the trades of a limit order book, by price and time
:func:`token_bucket`            which requests of each key are within its rate
:func:`top_routes`              the most frequent routes of the last half hour
:func:`velocity`                too many payments of a card, or too much money, within a time
=============================== =================================================================
"""

from specstream.operators.business.bank_transfers import bank_transfers
from specstream.operators.business.inventory import inventory
from specstream.operators.business.leaderboard import leaderboard
from specstream.operators.business.option_price import option_price
from specstream.operators.business.order_book import order_book
from specstream.operators.business.token_bucket import token_bucket
from specstream.operators.business.top_routes import top_routes
from specstream.operators.business.velocity import velocity

__all__ = [
    "bank_transfers",
    "inventory",
    "leaderboard",
    "option_price",
    "order_book",
    "token_bucket",
    "top_routes",
    "velocity",
]

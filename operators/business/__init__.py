"""Money, orders, stock and games: operators with the rules of a business.

=============================== =================================================================
:func:`bank_transfers`          payments between accounts, none of which is overdrawn
=============================== =================================================================
"""

from specstream.operators.business.bank_transfers import bank_transfers

__all__ = ["bank_transfers"]

"""Ticks of two exchanges become orders to buy and to sell: see README.md."""

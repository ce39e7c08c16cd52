"""The catalogue of ready operators: its entries, made of docstrings, and its pictures."""

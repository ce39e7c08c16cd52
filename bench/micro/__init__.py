"""Costs of the primitives, one by one: ``python -m pytest bench --benchmark-only``."""

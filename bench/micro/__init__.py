"""Costs of the primitives, one by one: ``python -m bench micro``."""

"""Servers that events come from, and runs of them."""

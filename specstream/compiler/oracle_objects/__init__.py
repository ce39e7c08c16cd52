"""State, event and emit as Python objects: what the oracle's functions are given."""

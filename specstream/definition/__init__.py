"""The operator: a function with its declarations."""

"""What Python computes before the operator runs (binding-time analysis, staged computation).

An expression that depends on the event alone and cannot be compiled becomes a function, which
Python calls when a batch is read; the operator reads a hidden column.
"""

"""Operators written by hand, and what an operator is tested by."""

"""Whole programs, to be read, run and changed. They are not installed."""

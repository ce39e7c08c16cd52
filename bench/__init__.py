"""Benchmarks: ``python -m bench`` lists them, and ``python -m bench NAME`` runs one."""

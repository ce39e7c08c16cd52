"""Speculation against the plain operator, locks and pure Python: ``python -m bench``."""

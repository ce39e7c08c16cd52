"""Operators with a defect each, for ``specstream verify``."""

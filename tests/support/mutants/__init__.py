"""Defects that are planted on purpose, to see whether the tests notice: ``make mutants``."""

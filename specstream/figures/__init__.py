"""Figures: the one palette and the one style of all pictures, also of those of the benchmarks."""

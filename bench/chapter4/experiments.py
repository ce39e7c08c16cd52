"""All experiments, in the order of the text."""

from __future__ import annotations

from bench.chapter4 import (
    figure_4_5,
    figure_4_6,
    figure_4_9,
    figure_4_11,
    figure_4_12,
    figure_4_15,
    figure_4_16,
    figure_4_17,
    figure_4_18,
    figure_4_19,
    figure_4_20,
    figures_4_7_4_8,
    figures_4_13_4_14,
    table_4_3,
    table_4_4,
    three_ratios,
)

__all__ = ["EXPERIMENTS"]

EXPERIMENTS = tuple(
    module.EXPERIMENT
    for module in (
        figure_4_5,
        figure_4_6,
        figures_4_7_4_8,
        figure_4_9,
        figure_4_11,
        figure_4_12,
        figures_4_13_4_14,
        figure_4_15,
        figure_4_16,
        figure_4_17,
        table_4_3,
        figure_4_18,
        figure_4_19,
        figure_4_20,
        table_4_4,
        three_ratios,
    )
)

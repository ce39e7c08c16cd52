"""What was measured, as pictures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.containers.measure import Skewed, Speed

__all__ = ["save_skew", "save_speed"]

_COLOURS = {"ss.dict": "#1f77b4", "by hand": "#7f7f7f", "typed dict": "#2ca02c"}


def save_speed(found: Sequence[Speed], processor: str, path: Path) -> None:
    """Time of an event by the number of keys, on one thread and on two."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
    for panel, ending, title in zip(
        panels, ("", ", 2 threads"), ("one thread", "two threads"), strict=True
    ):
        for name, colour in _COLOURS.items():
            points = [one for one in found if one.contestant == name + ending]
            if points:
                panel.plot(
                    [one.keys for one in points],
                    [one.nanoseconds for one in points],
                    marker="o",
                    color=colour,
                    label=name,
                )
        panel.set_xscale("log")
        panel.set_xlabel("keys")
        panel.set_title(title)
        panel.set_ylim(bottom=0)
        panel.legend()
    panels[0].set_ylabel("nanoseconds an event")
    figure.suptitle(f"Number and sum by key\n{processor}")
    figure.savefig(path, dpi=110)
    plt.close(figure)


def save_skew(found: Sequence[Skewed], processor: str, path: Path) -> None:
    """Speed-up and dropped runs by the exponent of Zipf's law."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    kinds = list(dict.fromkeys((one.kind, one.threads) for one in found))
    figure, panels = plt.subplots(2, len(kinds), figsize=(10, 6), sharex=True, layout="constrained")
    for column, (kind, threads) in enumerate(kinds):
        points = [one for one in found if one.kind == kind]
        at = [one.exponent for one in points]
        panels[0][column].plot(at, [one.speedup for one in points], marker="o", color="#1f77b4")
        panels[0][column].axhline(threads, color="black", linewidth=0.5, linestyle=":")
        panels[0][column].set_title(f"{threads} threads, {kind}")
        panels[0][column].set_ylim(bottom=0)
        panels[1][column].plot(
            at, [100 * one.aborts for one in points], marker="o", color="#d62728"
        )
        panels[1][column].set_ylim(bottom=0)
        panels[1][column].set_xlabel("exponent of Zipf's law over 10,000 keys (0: all alike)")
    panels[0][0].set_ylabel("speed, one thread = 1")
    panels[1][0].set_ylabel("dropped speculative runs, %")
    figure.suptitle(f"A dict of the state under skew\n{processor}")
    figure.savefig(path, dpi=110)
    plt.close(figure)

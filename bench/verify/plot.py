"""What was measured, as a picture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure

from bench.verify.paper import PROPERTIES, QUEUES
from specstream.figures.palette import SPARE
from specstream.figures.style import in_style, legend, new_figure

__all__ = ["draw_verify"]

KINDS = ("no full queues", "liveness", "bounded liveness")
NAMES = ("all states", "NuSMV on the export", "all 64-bit values", "the paper's")
LOOKS = dict(zip(NAMES, SPARE, strict=False))


@in_style
def draw_verify(data: Mapping[str, Any]) -> Figure:
    """Left, each cell of Figure 7a, the paper's time against ours; right, time by queue size.

    Args:
        data: as ``--json`` writes it.
    """
    figure, panels = new_figure(
        "Model checking pipelines: the paper's questions\n" + data["machine"]["processor"],
        4.2,
        columns=2,
    )
    cells, sizes = panels[0, 0], panels[0, 1]
    for name, who in zip(NAMES, ("explicit", "nusmv"), strict=False):
        look = LOOKS[name]
        points = [
            (PROPERTIES[one["name"]][KINDS.index(one["kind"])], one[who]["ms"])
            for one in data["parts"]["properties"]["rows"]
            if "ms" in one[who]
        ]
        cells.plot(
            [paper for paper, _ in points],
            [ours for _, ours in points],
            color=look.colour,
            marker=look.marker,
            linestyle="",
            markeredgecolor="white",
        )
    cells.axline((1, 1), (10, 10), color="0.7", zorder=0)
    cells.set(xscale="log", yscale="log", xlabel="paper, ms", ylabel="here, ms")
    cells.set_title("Figure 7a, each cell")
    part = data["parts"]["queues"]
    product = [one for one in part["rows"] if one["name"] == "product"]
    drawn = {
        "the paper's": [(at + 1, one) for at, one in enumerate(QUEUES["product"])],
        "all states": [
            *((one["size"], one["all ms"]) for one in product),
            *((one["size"], one["all ms"]) for one in part["more"]),
        ],
        "NuSMV on the export": [
            (one["size"], one["nusmv"]["ms"]) for one in product if "ms" in one["nusmv"]
        ],
        "all 64-bit values": [(one["size"], one["ms"]) for one in part["beyond"]],
    }
    for name, points in drawn.items():
        look = LOOKS[name]
        sizes.plot(
            [size for size, _ in points],
            [took for _, took in points],
            color=look.colour,
            marker=look.marker,
        )
    sizes.set(xscale="log", yscale="log", xlabel="size of the queues, Q", ylabel="ms")
    sizes.set_xticks([1, 2, 4, 8, 16, 32], ["1", "2", "4", "8", "16", "32"])
    sizes.set_title("No full queues of the product")
    legend(figure, NAMES, LOOKS)
    return figure

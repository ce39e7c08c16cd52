"""What the paper measured with NuXmv 2.0.0 on a Xeon of 3.6 GHz, in milliseconds (Figure 7)."""

from __future__ import annotations

__all__ = ["COMPARED", "GRID", "PROPERTIES", "QUEUES"]

# No full queues, liveness, bounded liveness; N = 4, Q = 3.
PROPERTIES = {
    "smaller_than": (53, 56, 88),
    "passthrough": (24, 25, 26),
    "product": (387, 342, 1139),
    "ones_on_window": (1317, 1330, 5231),
    "sum_of_doubles": (1269, 1116, 11220),
    "sum_of_odds": (612, 526, 2075),
    "window": (4842, 4948, 15641),
}
# No full queues for Q = 1, 2, 3, 4; N = 5.
QUEUES = {
    "sum_of_odds": (719, 2992, 2249, 8207),
    "ones_on_window": (4761, 4525, 4513, 4458),
    "passthrough": (23, 23, 24, 23),
    "sum_of_doubles": (175, 1694, 17012, 95619),
    "product": (78, 206, 823, 4158),
    "window": (23216, 23385, 22901, 23018),
    "smaller_than": (49, 58, 67, 95),
}
# Stepwise, and by sequence; N = 2, Q = 2.
COMPARED = {
    "passthrough": (26, 34),
    "passthrough and delay": (31, 44),
    "product": (176, 450),
    "ones_on_window": (2085, 10868),
    "sum_of_odds": (1259, 1423),
    "window": (468, 10966),
    "window sum of 2, two ways": (488, 963),
    "window sum of 3, two ways": (16107, 116959),
}
GRID = 275_057
"""The longest of its 162 problems."""

"""The pictures of docs/catalogue/, by name, and what is seen in them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from bench.catalogue import business, learning, near, signals, synopses, windows

__all__ = ["CAPTIONS", "PICTURES", "lessen"]

PICTURES: dict[str, Callable[[], Figure]] = {
    name: getattr(module, name)
    for module in (near, synopses, signals, learning, business, windows)
    for name in module.__all__
}
CAPTIONS: dict[str, str] = {name: draw.__doc__ or "" for name, draw in PICTURES.items()}


def lessen(path: Path) -> None:
    """Writes a picture with 64 colours, which nobody tells from all: a third of the bytes."""
    with Image.open(path) as picture:
        fewer = picture.convert("RGB").quantize(64, dither=Image.Dither.NONE)
    fewer.save(path, optimize=True)

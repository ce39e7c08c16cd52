"""What all pictures promise: one palette, units, nothing covered or cut off, legible on a phone."""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import pyarrow as pa
import pytest
from matplotlib import image
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text
from matplotlib.transforms import Bbox

from bench import pictures
from bench.catalogue.runs import LOOKS as CATALOGUE
from bench.chapter4.figures_4_7_4_8 import APART, APART_LOOK
from bench.chapter4.paced_sources import LOOKS as WAITING
from bench.containers.plot import LOOKS as CONTAINERS
from bench.cores.plot import LOOKS as CORES
from bench.early.plot import LOOKS as EARLY
from bench.interpreted.plot import LOOKS as INTERPRETED
from bench.late_event import LATE, course
from bench.late_event import LOOKS as LATE_EVENT
from bench.latency.plot import LOOKS as LATENCY
from bench.pipelines.plot import LOOKS as PIPELINES
from bench.spark.plot import LOOKS as SPARK
from bench.transactional.plot import LOOKS as TRANSACTIONAL
from specstream.demo.plot import Batch, Compared, draw_demo
from specstream.figures import palette
from specstream.figures.palette import LOOKS, SPARE, look
from specstream.figures.style import draw_bars, from_zero, in_style, legend, new_figure, save
from specstream.profiling.hot_words import HotWord, Line
from specstream.profiling.plot import draw_profile

PHONE = 350  # pixels that a phone shows a picture wide
LEAST = 7.0  # pixels of letters that can be read there
ROOT = Path(__file__).parents[2]

Other = dict[str, palette.Look]


def demo() -> Figure:
    rng, count = np.random.default_rng(1), 900
    start = np.datetime64("2013-01-01", "us")
    times = start + np.arange(count) * np.timedelta64(9 * 3600, "s")
    tails = [f"N{number}MQ" for number in (725, 722, 723, 711, 713)]
    counts = {"timestamp": times, "item": rng.choice(tails, count), "count": np.arange(count)}
    near = {"timestamp": times, "rank": rng.integers(1, 4, count), "distance": rng.random(count)}
    batches = {
        name: [Batch(20_000, rng.uniform(0.01, 0.1), 1000, 50) for _ in range(17)]
        for name in ("top_k", "nearest_neighbours")
    }
    compared = [
        Compared("most frequent aircraft", 40.2, 0.41, 0.3, 2, True),
        Compared("similar earlier flights", 104.0, 0.8, 0.5, 2, False),
    ]
    return draw_demo(compared, pa.table(counts), tails, pa.table(near), batches)


def profile() -> Figure:
    line = Line("sums.py", 12, "process", "state.total[event.key % 4] += mixed" * 3, 4)
    words = [
        HotWord("grid", (3, 4), 9, 0.5, -1, (line,)),
        HotWord("grid", (2, 1), 5, 0.2, -1, (line,)),
        HotWord("total", (), 2, 0.1, -1, ()),
    ]
    title = "sums: what 1,234 of 5,678 speculative runs were dropped for (chunk 4, horizon 16)"
    return draw_profile(words, {"grid": (5, 7), "total": ()}, title)


DRAWN: dict[str, Callable[[], Figure]] = {
    **{
        name: lambda name=name: pictures.drawn(name)  # type: ignore[misc]
        for name in (*pictures.PICTURES, *pictures.RUN)
    },
    "demo": demo,
    "profile": profile,
}


def painted(figure: Any) -> None:
    """Has everything placed where it will stand."""
    canvas: Any = FigureCanvasAgg(figure)
    canvas.draw()


# Every third one each day: they are drawn from stored data.
@pytest.fixture(
    params=[
        pytest.param(name, marks=pytest.mark.long) if number % 3 else name
        for number, name in enumerate(DRAWN)
    ],
    scope="module",
)
def figure(request: pytest.FixtureRequest) -> Figure:
    drawn = DRAWN[request.param]()
    painted(drawn)
    return drawn


def renderer(figure: Any) -> Any:
    return figure.canvas.get_renderer()


def texts(figure: Any) -> Iterator[tuple[Any, Bbox]]:
    """All that is to be read, with the place where it stands."""
    beyond: set[int] = set()
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = {id(tick.label1): tick for tick in (*axis.majorTicks, *axis.minorTicks)}
            drawn = {id(tick.label1) for tick in axis._update_ticks()}
            beyond |= set(ticks) - drawn
            if not (axes.axison and axis.get_visible()):
                beyond |= set(ticks)
    for text in figure.findobj(Text):
        if text.get_text().strip() and text.get_visible() and id(text) not in beyond:
            yield text, text.get_window_extent(renderer(figure))


def row_of(axes: Any) -> Any:
    place = axes.get_subplotspec()
    return axes if place is None else place.rowspan.start


def legends(figure: Any) -> list[Any]:
    return [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]


def test_every_picture_of_the_documentation_is_drawn_from_data_or_a_run() -> None:
    kept = {
        str(path.relative_to(ROOT / "docs").with_suffix(""))
        for path in (ROOT / "docs").rglob("*.png")
    }
    assert kept == {*pictures.PICTURES, *pictures.RUN}


def test_the_late_event_is_drawn_from_what_the_engine_counted() -> None:
    run = course()
    # 40 and 70 are of the account of the late event; all seven behind it were revoked.
    assert run.told == {LATE[0]: 15, 40: 25, 70: 35}
    assert (run.revoked, run.republished) == (7, 5)
    assert run.half | run.rest == run.first | run.told
    assert max(run.half) == 60


def test_what_has_a_name_has_the_colour_of_that_name(figure: Any) -> None:
    others: Other = {"dropped runs": palette.CONFLICTS, "the text": palette.PUBLISHED}
    others |= {**CONTAINERS, **PIPELINES, **TRANSACTIONAL, **SPARK, **WAITING, APART: APART_LOOK}
    others |= {**CATALOGUE, **LATE_EVENT, **EARLY, **LATENCY, **CORES, **INTERPRETED}
    spare = {one.colour for one in SPARE}
    for one in legends(figure):
        handles = dict(
            zip([text.get_text() for text in one.texts], one.legend_handles, strict=True)
        )
        for name, handle in handles.items():
            colour = handle.get_color() if isinstance(handle, Line2D) else handle.get_facecolor()
            if name in ("quartiles", "target", "one for each core"):
                assert to_hex(colour) == "#000000"
                continue
            try:
                expected = (others.get(name) or look(name)).colour
            except KeyError:
                assert to_hex(colour) in spare, name
            else:
                assert to_hex(colour) == expected, name
    for axes in figure.axes:
        for bars in axes.containers:
            name = str(bars.get_label())
            for bar in getattr(bars, "patches", ()):
                colour = to_hex(bar.get_facecolor())
                try:
                    assert colour == (others.get(name) or look(name)).colour, name
                except KeyError:
                    assert colour in {*spare, palette.CONFLICTS.colour}, name


def test_no_legend_covers_a_panel(figure: Any) -> None:
    for one in legends(figure):
        box = one.get_window_extent(renderer(figure))
        for axes in figure.axes:
            assert not box.overlaps(axes.get_window_extent(renderer(figure)))


def test_nothing_is_cut_off(figure: Any) -> None:
    for axes in figure.axes:
        (left, right), (low, high) = sorted(axes.get_xlim()), sorted(axes.get_ylim())
        wide, tall = 1e-9 * (right - left), 1e-9 * (high - low)
        for line in axes.lines:
            if line.get_transform() != axes.transData:
                continue  # a line across the panel
            x, y = (np.asarray(line.convert_xunits(line.get_xdata()), float), line.get_ydata())
            assert (x >= left - wide).all(), axes.get_title()
            assert (x <= right + wide).all(), axes.get_title()
            assert (np.asarray(y, float) >= low - tall).all(), axes.get_title()
            assert (np.asarray(y, float) <= high + tall).all(), axes.get_title()
        for patch in axes.patches:
            assert isinstance(patch, Rectangle)
            assert left - wide <= patch.get_x()
            assert patch.get_x() + patch.get_width() <= right + wide
            assert low - tall <= patch.get_y()
            assert patch.get_y() + patch.get_height() <= high + tall


def test_texts_do_not_cover_each_other_and_are_all_there(figure: Any) -> None:
    found = list(texts(figure))
    assert len(found) > 3
    for text, box in found:
        at = text.get_text()
        assert box.x0 >= -0.5, at
        assert box.y0 >= -0.5, at
        assert box.x1 <= figure.bbox.width + 0.5, at
        assert box.y1 <= figure.bbox.height + 0.5, at
    for (one, here), (other, there) in itertools.combinations(found, 2):
        across = min(here.x1, there.x1) - max(here.x0, there.x0)
        along = min(here.y1, there.y1) - max(here.y0, there.y0)
        # Boxes have room for letters that hang down.
        assert across <= 1 or along <= 3.5, (one.get_text(), other.get_text())


def test_letters_can_be_read_on_a_phone(figure: Any) -> None:
    for text, _ in texts(figure):
        pixels = text.get_fontsize() / 72 * PHONE / figure.get_figwidth()
        assert pixels >= LEAST, text.get_text()


def test_axes_say_what_they_are_and_speed_is_linear_with_a_line_at_one(figure: Any) -> None:
    for axes in figure.axes:
        if not axes.axison:
            continue
        for name, axis in (("x", axes.xaxis), ("y", axes.yaxis)):
            shared = getattr(axes, f"get_shared_{name}_axes")().get_siblings(axes)
            # What stands at the left of a row is said of the whole row.
            row = [one for one in figure.axes if name == "y" and row_of(one) == row_of(axes)]
            labels = [getattr(one, f"get_{name}label")() for one in (axes, *shared, *row)]
            ticks = [label.get_text() for label in axis.get_ticklabels()]
            label = next(filter(None, labels), "")
            assert label or not any(ticks), (axes.get_title(), ticks)
            if label.startswith("speed"):
                assert axis.get_scale() == "linear"
                across = [
                    line
                    for line in axes.lines
                    if list(line.get_xdata() if name == "x" else line.get_ydata()) == [1, 1]
                ]
                assert across, f"{label}: no line at 1"
                assert min(getattr(axes, f"get_{name}lim")()) == 0


def test_pictures_are_opaque_whatever_the_user_has_set(tmp_path: Path) -> None:
    with mpl.rc_context({"savefig.transparent": True, "font.size": 3, "axes.facecolor": "black"}):
        drawn = demo()
        save(drawn, tmp_path / "demo.png")
    painted(drawn)
    pixels = image.imread(tmp_path / "demo.png")
    assert pixels.shape[2] == 3 or (pixels[..., 3] == 1).all()
    assert (pixels[2, 2, :3] == 1).all()
    assert {text.get_fontsize() >= 10 for text, _ in texts(drawn)} == {True}


def test_the_demo_shows_time_and_equality() -> None:
    drawn = demo()
    painted(drawn)
    said = {text.get_text() for text, _ in texts(drawn)}
    assert "most frequent aircraft   (same answer: yes)" in said
    assert "similar earlier flights   (same answer: NO)" in said
    assert {"0.41 s", "0.30 s", "0.80 s", "0.50 s"} <= said
    assert any("the sequential check in Python takes 40 s and 104 s" in one for one in said)


def test_limits_hold_all_panels_that_share_an_axis() -> None:
    """Once the last of them was cut off, as the limit of the first one was set before."""

    @in_style
    def drawn() -> Any:
        _, panels = new_figure("", 2.0, columns=3, sharey=True)
        for axes, top in zip(panels[0], (1.9, 1.0, 5.7), strict=True):
            axes.plot([1, 2], [1, top])
        from_zero(panels[0])
        return panels[0]

    for axes in drawn():
        assert axes.get_ylim() == pytest.approx((0.0, 1.06 * 5.7))


def test_a_long_legend_takes_several_lines() -> None:
    @in_style
    def drawn() -> Figure:
        figure, _ = new_figure("", 3.0)
        legend(figure, [name for name in LOOKS if name != "ideal"], bars=True)
        return figure

    found = drawn()
    painted(found)
    (box,) = [one.get_window_extent(renderer(found)) for one in found.legends]
    assert 0.5 * found.bbox.width < box.width <= found.bbox.width


def test_bars_stand_in_their_groups_with_their_numbers() -> None:
    @in_style
    def drawn() -> Any:
        _, panels = new_figure("", 3.0)
        draw_bars(
            panels[0, 0], {"a": {"value": (1.0, 1.5, 2.0), "plain": 1.0}, "b": {"eager": 3.0}}
        )
        return panels[0, 0]

    axes = drawn()
    assert [bar.get_width() for bar in axes.patches] == [1.5, 1.0, 3.0]
    said = [text.get_text() for text in axes.texts]
    assert said == ["a", "1.50", "1.00", "b", "3.00"]
    (quartiles,) = (line for line in axes.lines if line.get_label() == "_quartiles")
    assert list(quartiles.get_xdata()) == [1.0, 2.0]


# ---- the palette ----

# Machado, Oliveira, Fernandes 2009, complete colour blindness, over linear RGB.
EYES = {
    "usual": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
CONTESTANTS = ("value", "eager", "plain", "locks", "Auto", "Numba", "sequential check", "atomic")


def linear(colour: str) -> Any:
    rgb = np.array([int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def cielab(rgb: Any) -> Any:
    to_xyz = np.array(
        [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    )
    xyz = to_xyz @ np.clip(rgb, 0, 1) / np.array([0.9505, 1.0, 1.089])
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("eye", EYES)
def test_colours_can_be_told_apart_by_everybody(eye: str) -> None:
    for names in (
        [look(name).colour for name in CONTESTANTS],
        [look(name).colour for name in ("abort-driven", "throughput-driven")],
        [one.colour for one in SPARE],
    ):
        seen = {colour: cielab(EYES[eye] @ linear(colour)) for colour in names}
        for one, other in itertools.combinations(names, 2):
            assert np.linalg.norm(seen[one] - seen[other]) > 12, (one, other)


def test_colours_stand_out_from_white() -> None:
    for one in (*LOOKS.values(), *SPARE, palette.CONFLICTS):
        luminance = float(linear(one.colour) @ [0.2126, 0.7152, 0.0722])
        assert 1.05 / (luminance + 0.05) > 2.0, one


def test_what_is_none_of_the_contestants_has_none_of_their_colours() -> None:
    taken = {one.colour for one in LOOKS.values()}
    assert not taken & {one.colour for one in (*SPARE, palette.PUBLISHED)}


def test_contestants_differ_by_hatch_and_marker_too() -> None:
    looks = [look(name) for name in CONTESTANTS]
    assert len({one.marker for one in looks}) == len(looks)
    filled = [one.hatch for one in looks if one.hatch]
    assert len(set(filled)) == len(filled)
    assert dataclasses.replace(look("mutex"), marker="P") != look("spin lock")


def test_the_data_of_pictures_are_small_and_say_where_they_were_measured() -> None:
    for name in pictures.PICTURES:
        text = pictures.data_of(name).read_text()
        assert len(text) < 60_000  # of some 270 rules and verbs the most
        if name != "guides/tuning-cores":
            assert json.loads(text)["machine"]["processor"]


def test_the_table_of_the_page_is_what_the_picture_shows() -> None:
    page = (ROOT / "docs" / "research" / "threads.md").read_text()
    rows = json.loads((ROOT / "docs" / "speed" / "threads.json").read_text())["rows"]
    for row in rows:
        if row["kind"] == "compiled":
            took = row["nanoseconds"]
            cells = [f"{took:.0f} ns" if took < 1000 else f"{took / 1000:.1f} µs"]
            for name in ("value", "eager", "plain", "lock", "Auto"):
                of = row["results"].get(name)
                cells.append("" if of is None else f"{of['speed']:.2f}")
            assert f"| {row['title']} | {' | '.join(cells)} |" in page
    (forced,) = (
        row["results"]
        for row in rows
        if row["kind"] == "compiled" and row["title"].endswith("forced")
    )
    slower = forced["plain"]["speed"] / forced["value"]["speed"]
    assert f"is {slower:.1f} times slower than plain" in page


def test_the_table_of_containers_is_what_the_picture_shows() -> None:
    page = (ROOT / "docs" / "research" / "containers.md").read_text()
    rows = json.loads((ROOT / "docs" / "research" / "containers.json").read_text())["speed"]
    took = {(row["keys"], row["contestant"]): f"{row['nanoseconds']:.0f} ns" for row in rows}
    for keys in sorted({keys for keys, _ in took}):
        cells = (took[keys, one] for one in ("ss.dict", "by hand", "typed dict"))
        assert f"| {keys:,} | {' | '.join(cells)} |" in page


def test_the_gallery_has_every_picture() -> None:
    page = (ROOT / "docs" / "research" / "figures.md").read_text()
    for path in (*(ROOT / "docs").rglob("*.png"), *(ROOT / "docs").rglob("*.svg")):
        # The catalogue shows its own.
        if not {"_static", "catalogue"} & set(path.parts):
            assert f" {os.path.relpath(path, ROOT / 'docs' / 'research')}\n" in page

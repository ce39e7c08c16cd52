"""``python -m bench containers [--json FILE] [--plot [FOLDER]] [--from FILE] [--quick]``."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bench.containers.measure import large, skewed, speeds
from bench.containers.plot import draw_skew, draw_speed
from bench.options import draws, earlier
from bench.report import print_table, progress
from bench.stored import to_text
from specstream.figures.style import save
from specstream.tuning.machine import describe

FOLDER = Path("docs/research")
PARTS = ("speed", "large", "skew")
# Names of the files of a part that is drawn.
PICTURES = {"speed": "containers", "skew": "containers-skew"}


def main() -> int:
    """Measures, prints the tables, writes the files that were asked for."""
    parser = draws(
        "python -m bench containers",
        __doc__,
        FOLDER,
        f"draw it, and keep the data as JSON beside the pictures; {FOLDER}",
        several=True,
    )
    parser.add_argument("--only", action="append", choices=PARTS, help="this part")
    arguments = parser.parse_args()
    kept_earlier = earlier(parser, arguments)
    for one in kept_earlier:
        _draw(one, arguments.plot)
    if kept_earlier:
        return 0
    wanted, quick = arguments.only or PARTS, arguments.quick
    about = describe()
    measured: dict[str, Any] = {"machine": about}
    print(", ".join(f"{name} {value}" for name, value in about.items()))
    if "speed" in wanted:
        sizes = (1_000, 10_000) if quick else (1_000, 10_000, 100_000, 1_000_000)
        found = speeds(sizes, 3 if quick else 15, progress)
        progress("")
        print_table(
            "Number and sum by key",
            ("keys", "", "ns/event", "time to ss.dict's"),
            [
                [f"{one.keys:,}", one.contestant, f"{one.nanoseconds:.1f}", f"{one.ratio:.2f}"]
                for one in found
            ],
            (0, 2, 3),
        )
        measured["speed"] = [asdict(one) for one in found]
    if "large" in wanted:
        taken = large(100_000 if quick else 10_000_000, progress)
        progress("")
        print_table(
            "A large dict",
            ("", ""),
            [[name, f"{x:,.4g}"] for name, x in asdict(taken).items()],
            (1,),
        )
        measured["large"] = asdict(taken)
    if "skew" in wanted:
        exponents = (0.0, 1.2) if quick else (0.0, 0.8, 0.9, 1.0, 1.1, 1.2, 1.3, 1.4, 1.5)
        points = skewed(exponents, 1 if quick else 7, progress)
        progress("")
        print_table(
            "Under skew: 10,000 keys by Zipf's law",
            ("exponent", "threads", "speed-up", "dropped runs"),
            [
                [
                    f"{one.exponent:.1f}",
                    f"{one.threads} {one.kind}",
                    f"{one.speedup:.2f}",
                    f"{one.aborts:.1%}",
                ]
                for one in points
            ],
            (0, 2, 3),
        )
        measured["skew"] = [asdict(one) for one in points]
    if arguments.json:
        arguments.json.write_text(to_text(measured))
    if arguments.plot:
        _draw(measured, arguments.plot)
        for part, name in PICTURES.items():
            if part in measured:
                kept = {name: measured[name] for name in ("machine", part)}
                (arguments.plot / f"{name}.json").write_text(to_text(kept))
    return 0


def _draw(measured: dict[str, Any], folder: Path) -> None:
    """The pictures of the parts that were measured."""
    for part, draw in (("speed", draw_speed), ("skew", draw_skew)):
        if part in measured:
            save(draw(measured), folder / f"{PICTURES[part]}.png")


if __name__ == "__main__":
    sys.exit(main())

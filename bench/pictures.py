"""``python -m bench pictures [NAME ...] [--folder FOLDER]``: every picture of docs/ once more.

They are drawn from what was measured and is kept beside them; nothing is measured. Those of the
catalogue are drawn from what its operators emit.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from bench.catalogue import pictures as catalogue
from bench.chapter4.experiments import EXPERIMENTS
from bench.containers.plot import draw_skew, draw_speed
from bench.cores.plot import draw_cores
from bench.early.plot import draw_early
from bench.interpreted.plot import draw_interpreted
from bench.late_event import late_event
from bench.latency.plot import draw_latency
from bench.ledger import draw_ledger
from bench.pipelines.plot import draw_pipelines
from bench.rules.plot import draw_rules
from bench.spark.plot import draw_rates
from bench.speed.plot import draw_short, draw_table
from bench.transactional.plot import draw_transactional
from bench.verify.plot import draw_verify
from specstream.figures.style import save
from specstream.tuning.candidates import Candidate
from specstream.tuning.contest import Measurement
from specstream.tuning.forecast.costs import Costs
from specstream.tuning.forecast.forecast import Check, Expected, Forecast
from specstream.tuning.picture import draw_forecast, draw_measurements

__all__ = ["DOCS", "PICTURES", "RUN", "data_of", "drawn"]

DOCS = Path(__file__).parents[1] / "docs"


def _measurement(one: dict[str, Any]) -> Measurement:
    """What a picture shows of it."""
    nothing = float("nan")
    return Measurement(one["speed"], one["low"], one["high"], nothing, None, 0, nothing)


def _title(data: dict[str, Any]) -> str:
    machine = data["machine"]
    return (
        f"{data['operator']}: {data['events']:,} events; {data['plain_nanoseconds']:,} ns/event "
        f"plain\n{machine['processor']}, {machine['cores']} cores"
    )


def _bench(data: dict[str, Any]) -> Figure:
    rows = [(one["name"], _measurement(one)) for one in data["contestants"]]
    return draw_measurements(_title(data), "speed relative to plain", rows)


def _tune(data: dict[str, Any]) -> Figure:
    def name(one: dict[str, Any]) -> str:
        return str(Candidate(one["threads"], one["horizon"], one["chunk"], one["protocol"]))

    rows = [(name(one), _measurement(one)) for one in data["candidates"]]
    return draw_measurements(_title(data), "speed relative to plain", rows, name(data["best"]))


def _forecast(data: dict[str, Any]) -> Figure:
    model = data["model"]
    best = [Expected(**one) for one in model["best"]]
    checks = [Check(forecast=one.pop("predicted"), **one) for one in map(dict, model["checks"])]
    title = f"{data['operator']}: forecast for more cores"
    return draw_forecast(title, Forecast(best, best, checks, Costs(), 0))


# By the name of the picture below docs/, without its ending.
PICTURES: dict[str, Callable[[dict[str, Any]], Figure]] = {
    "speed/threads": draw_table,
    "speed/threads-short": draw_short,
    "speed/ledger": draw_ledger,
    "research/spark": draw_rates,
    "research/containers": draw_speed,
    "research/containers-skew": draw_skew,
    "research/pipelines": draw_pipelines,
    "research/transactional": draw_transactional,
    "research/early": draw_early,
    "research/latency": draw_latency,
    "research/interpreted": draw_interpreted,
    "research/cores": draw_cores,
    "research/rules": draw_rules,
    "research/verify": draw_verify,
    "guides/benchmarking": _bench,
    "guides/tuning": _tune,
    "guides/tuning-cores": _forecast,
    **{
        f"research/chapter4/{one.name}": lambda stored, one=one: one.draw(stored["data"])  # type: ignore[misc]
        for one in EXPERIMENTS
    },
}

# What no data are kept for: operators run when it is drawn.
RUN: dict[str, Callable[[], Figure]] = {
    "research/late-event": late_event,
    **{f"catalogue/{name}": draw for name, draw in catalogue.PICTURES.items()},
}


def data_of(name: str) -> Path:
    """The JSON beside a picture; a short version has that of the long one."""
    return DOCS / f"{name.removesuffix('-short')}.json"


def drawn(name: str) -> Figure:
    """A picture of docs/, drawn from its data, or from what an operator emits."""
    if name in RUN:
        return RUN[name]()
    return PICTURES[name](json.loads(data_of(name).read_text()))


def main() -> int:
    """Draws all pictures, or those that are named."""
    parser = argparse.ArgumentParser(prog="python -m bench pictures", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="such as speed/threads")
    parser.add_argument("--folder", type=Path, default=DOCS, help="where to; docs")
    arguments = parser.parse_args()
    every = [*PICTURES, *RUN]
    unknown = set(arguments.names) - set(every)
    if unknown:
        parser.error(f"no picture is called {', '.join(sorted(unknown))}; {', '.join(every)}")
    for name in arguments.names or every:
        path = arguments.folder / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        save(drawn(name), path)
        if name in RUN:
            catalogue.lessen(path)
        print(path)
    return 0


if __name__ == "__main__":
    sys.exit(main())

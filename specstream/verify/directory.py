"""The directory of a counterexample: the events, the verdict, and a test that fails."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from specstream.verify.report import Report, Verdict
from specstream.verify.rerun import RERUN

__all__ = ["write_counterexample"]

_TEST = '''"""A stream on which {name} does not hold. It passes once the operator is mended."""

from pathlib import Path

import pyarrow.parquet as pq

from specstream.verify import rerun

HERE = Path(__file__).parent


def test_counterexample():
    events = pq.read_table(HERE / "events.parquet")
    rerun(
        {target!r},
        {name!r},
        events,
        arguments={arguments!r},
        kind={kind!r},
        against={against!r},
        order_by={order_by!r},
    )
'''


def write_counterexample(
    report: Report,
    directory: Path,
    target: str,
    arguments: tuple[str, ...],
    names: Mapping[str, Any],
) -> Verdict | None:
    """Writes the first refutation of a report; None: there is none, and nothing is written.

    Of a number that grows there are the events and the verdict, and no test.
    """
    found = next((one for one in report.verdicts if one.said == "refuted"), None)
    if found is None or found.table is None:
        return None
    directory.mkdir(parents=True, exist_ok=True)
    pq.write_table(found.table.table, directory / "events.parquet")
    (directory / "verdict.json").write_text(json.dumps(report.to_dict(), indent=2) + "\n")
    if found.kind not in RERUN:
        return found
    where, _, name = target.rpartition(":")
    if where.endswith(".py"):
        target = f"{Path(where).resolve()}:{name}"
    against = names.get("against")
    if against and against.rpartition(":")[0].endswith(".py"):
        file, _, old = against.rpartition(":")
        against = f"{Path(file).resolve()}:{old}"
    text = _TEST.format(
        name=found.name,
        target=target,
        arguments=arguments,
        kind=found.kind,
        against=against,
        order_by=found.table.order_by,
    )
    (directory / "test_counterexample.py").write_text(text)
    return found

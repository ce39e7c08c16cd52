"""A table of early results, and what is said of one that cannot be made."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

import specstream as ss

LOG = [
    pa.table(
        {
            "account": ["a", "b"],
            "timestamp": [1, 2],
            "source": ["x", "x"],
            "sequence": [0, 1],
            "n": [0, 0],
            "version": [version, version],
            "change": changes,
        }
    )
    for version, changes in ((1, ["early", "early"]), (2, ["final", "withdrawn"]))
]


@pytest.mark.parametrize("log", [LOG, LOG[::-1], [*LOG, *LOG], tuple(LOG), pa.concat_tables(LOG)])
@pytest.mark.parametrize("by", [None, (), "account", ["account"]])
def test_the_newest_version_stands_unless_it_is_withdrawn(log: Any, by: Any) -> None:
    for given in (log, iter(log)) if isinstance(log, list) else (log,):
        stands = ss.early.latest(given, by=by).select(["account", "change"])
        assert stands.to_pylist() == [{"account": "a", "change": "final"}]


@pytest.mark.parametrize(
    ("changes", "by", "said"),
    [
        (3, None, "changes is of type int; expected a table"),
        ([LOG[0], "x"], None, r"changes\[1\] is of type str; expected a table"),
        ([], None, "there is none"),
        (LOG, 3, "by=3; expected a column's name, or several"),
        (LOG, [3], r"by=\[3\]; expected a column's name, or several"),
        (LOG, "name", r"changes\[0\] has no column 'name' \(it has account, timestamp"),
        (LOG[0].drop_columns("n"), None, "changes has no column 'n'"),
        (
            LOG[0].set_column(6, "change", pa.array([1, -1], pa.int8())),
            None,
            'was polled with changes="retract", whose rows add up',
        ),
    ],
)
def test_what_is_no_log_is_refused(changes: Any, by: Any, said: str) -> None:
    with pytest.raises(ss.InputError, match=said):
        ss.early.latest(changes, by=by)

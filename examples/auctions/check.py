"""The same answers by pandas, from the whole file at once."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

__all__ = ["expected"]


def expected(path: Path) -> dict[str, pd.DataFrame]:
    """What the sinks ``days`` and ``wrong`` are to have."""
    lines = pd.read_json(path, lines=True)
    events = lines[lines["kind"] != "day"]
    wrong = events[is_wrong(events)].drop_duplicates("item")

    created = events.drop_duplicates("item").set_index("item").query("kind == 'create'")
    begin, last = created["day"], created["day"] + created["period"] - 1
    others = [wrong, events[events["kind"] == "sold"].drop_duplicates("item")]
    ends = pd.concat([last, *(of.set_index("item")["day"] for of in others)], axis=1).min(axis=1)
    # An auction counts when a day ends, from its first one to the one before its last.
    counts = (ends - begin).reindex(created.index).astype(int)
    age = counts.loc[counts.index.repeat(counts)].groupby(level=0).cumcount() + 1
    by_day = age.groupby((begin.loc[age.index] + age - 1).to_numpy()).agg(["size", "sum"])
    by_day = by_day.reindex(pd.RangeIndex(1, lines["day"].max() + 1, name="day"), fill_value=0)
    average = by_day["sum"] / by_day["size"].clip(lower=1)
    days = pd.DataFrame({"open": by_day["size"], "average": average}).reset_index()
    return {"days": days, "wrong": wrong[["item", "day", "kind"]].reset_index(drop=True)}


def is_wrong(events: pd.DataFrame) -> pd.Series:
    """Whether each event is, if all those of the same item before it are right."""
    items, kind = events["item"], events["kind"]
    by_item = events.groupby("item")
    created = by_item[["day", "least", "period"]].transform("first")
    is_sold = (kind == "sold").groupby(items).cumsum() > (kind == "sold")
    bid = by_item["amount"].cummax().groupby(items).ffill().groupby(items).shift().fillna(0)
    return (
        ((kind == "create") != (by_item.cumcount() == 0))
        | (events["day"] >= created["day"] + created["period"])
        | is_sold
        | ((kind == "bid") & (events["amount"] <= bid))
        | ((kind == "sold") & (bid < created["least"]))
    )

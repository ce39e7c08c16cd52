"""The same alarms by pandas, from the whole day at once."""

from __future__ import annotations

import pandas as pd

__all__ = ["expected"]


def expected(day: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """By rule, the orders that violate it, with ``time`` and ``decided``, in that order."""
    events = day.reset_index(names="position")
    found = {
        "paid_in_time": _unpaid(events),
        "four_eyes": _alone(events),
        "sent_when_paid": _sent_unpaid(events),
        "back_before_refund": _refunded_early(events),
    }
    columns = ["order", "time", "decided"]
    return {
        name: of.sort_values(["decided", "position"])[columns].reset_index(drop=True)
        for name, of in found.items()
    }


def _of(events: pd.DataFrame, *kinds: str) -> pd.DataFrame:
    return events[events["kind"].isin(kinds)]


def _unpaid(events: pd.DataFrame) -> pd.DataFrame:
    both = _of(events, "placed").merge(
        _of(events, "paid", "cancelled"), "left", "order", suffixes=("", "_end")
    )
    both["decided"] = both["time"] + pd.Timedelta(minutes=30)
    is_met = (both["position_end"] > both["position"]) & (both["time_end"] <= both["decided"])
    return both[~is_met.groupby(both["position"]).transform("any")].drop_duplicates("position")


def _alone(events: pd.DataFrame) -> pd.DataFrame:
    refunds = _of(events, "refunded").query("amount > 100")
    both = refunds.merge(_of(events, "approved"), "left", "order", suffixes=("", "_before"))
    age = both["time"] - both["time_before"]
    is_met = (
        (both["position_before"] < both["position"])
        & (both["by_before"] != both["by"])
        & (age <= pd.Timedelta(days=7))
    )
    alone = both[~is_met.groupby(both["position"]).transform("any")].drop_duplicates("position")
    return alone.assign(decided=alone["time"])


def _sent_unpaid(events: pd.DataFrame) -> pd.DataFrame:
    last = {
        kind: events["position"].where(events["kind"] == kind).groupby(events["order"]).ffill()
        for kind in ("paid", "cancelled")
    }
    is_paid = last["paid"].fillna(-1) > last["cancelled"].fillna(-1)
    sent = events[(events["kind"] == "sent") & ~is_paid]
    return sent.assign(decided=sent["time"])


def _refunded_early(events: pd.DataFrame) -> pd.DataFrame:
    later = events.iloc[::-1]
    next_of = {
        kind: later["position"].where(later["kind"] == kind).groupby(later["order"]).ffill()
        for kind in ("refunded", "back")
    }
    never = len(events)
    refunded = next_of["refunded"].sort_index()
    is_early = refunded.fillna(never) < next_of["back"].sort_index().fillna(never)
    sent = events[(events["kind"] == "sent") & is_early]
    at = events["time"].loc[refunded[sent.index].astype(int)].to_numpy()
    return sent.assign(decided=pd.DatetimeIndex(at))

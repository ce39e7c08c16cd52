"""No option of any public entry takes what it cannot mean, and each takes NumPy's numbers."""

from __future__ import annotations

import inspect

import pytest
from support.options import (
    ABSURD,
    ENTRIES,
    TABLE,
    Asking,
    Entry,
    look_at_absurd_values,
    look_at_bools,
    look_at_integers,
    running_total,
)

import specstream as ss


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("entry", "option"),
    [
        pytest.param(entry, option, id=f"{entry.name}: {name}")
        for entry in ENTRIES
        for name, option in entry.options().items()
    ],
)
def test_an_option_takes_what_it_means_and_refuses_the_rest_by_its_name(
    entry: Entry, option: inspect.Parameter
) -> None:
    entry()
    look_at_absurd_values(entry, option)
    look_at_integers(entry, option)
    look_at_bools(entry, option)


@pytest.mark.parametrize("asked", ["speculates", "next", "current", "open", "least"])
def test_what_a_predictor_asks_for_is_looked_at(asked: str) -> None:
    def use(predictor: ss.Fixed) -> None:
        with ss.Engine(running_total, predictor=predictor, threads=2, memory=1 << 40) as engine:
            engine.process(TABLE)
            engine.stats  # noqa: B018
            engine.submit(TABLE, order_by="time")

    for value in (*ABSURD, None, "absurd"):
        with pytest.raises(ss.ConfigurationError, match=rf"Asking: {asked}\b.*; expected"):
            use(Asking(asked, value))

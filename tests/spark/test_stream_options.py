"""The options of a stream are listed once, and whoever calls foreach_batch sees all of them."""

from __future__ import annotations

import dataclasses
import inspect
import re
from typing import Any

import pytest

import specstream as ss
from specstream.checkpoint.run.stream_options import StreamOptions


def test_the_signature_lists_the_options_with_their_defaults() -> None:
    engine, *options = inspect.signature(ss.spark.foreach_batch).parameters.values()
    assert engine.name == "engine"
    assert engine.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert options == list(inspect.signature(StreamOptions).parameters.values())
    assert all(option.kind is inspect.Parameter.KEYWORD_ONLY for option in options)


def test_the_page_of_help_explains_every_option() -> None:
    text = inspect.getdoc(ss.spark.foreach_batch) or ""
    explained = re.findall(
        r"^    (\w+): ", text.split("Args:")[1].split("Returns:")[0], re.MULTILINE
    )
    assert sorted(explained) == sorted(
        ["engine", *(field.name for field in dataclasses.fields(StreamOptions))]
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, r"foreach_batch\(\) missing a required argument: 'to'"),
        (
            {"to": print, "orderby": "x"},
            r"foreach_batch has no option orderby=: did you mean order_by=",
        ),
    ],
)
def test_a_wrong_call_is_told_of_the_function_that_was_called(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        ss.spark.foreach_batch(None, **given)

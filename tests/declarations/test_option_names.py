"""An option that is misspelt, or given without its name, is refused by what it may have meant."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.public import MODULES

import specstream as ss
from specstream import predictors
from specstream.declarations.options import refuses_unknown
from specstream.errors import OptionNameError

# What operators call is compiled, and its errors are the compiler's.
IN_OPERATORS = (
    *("add", "allocate", "approximate_count", "contains", "find", "get", "increment", "insert"),
    *("maximum", "minimum", "offer", "put", "release", "remove", "size", "sorted_contains"),
    *("sorted_insert", "sorted_remove", "unique_id"),
)
# The package makes them; users read them, or derive their own from them.
MADE_ELSEWHERE = (
    *("Applied", "Arrival", "BatchFeed", "CheckpointState", "Compaction", "Decision", "FeedStats"),
    *("ForeachSink", "Java", "Measurement", "Notification", "Operator", "Partial", "Profile"),
    *(
        "ProgressListener",
        "PulledRows",
        "Replay",
        "Rows",
        "SequentialRun",
        "SnapshotDescription",
        "Statistics",
    ),
    *("StopOnSignal", "UnionSource", "Wanted"),
)


def entries() -> Iterator[Any]:
    """Every public function and class that is called with options by their names."""
    for module in (ss, predictors, *MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if not callable(value) or inspect.ismodule(value) or inspect.isgeneratorfunction(value):
                continue
            if name in (*IN_OPERATORS, *MADE_ELSEWHERE):
                continue
            if inspect.isclass(value) and issubclass(value, Exception):
                continue
            if any(one.kind is not one.VAR_POSITIONAL for one in parameters(value)):
                yield pytest.param(value, id=f"{module.__name__}.{name}")
    yield from (ss.Engine.process, ss.Engine.submit, ss.Engine.poll_early, ss.Pipeline.add)
    yield ss.Operator.run_sequential


def parameters(value: Callable[..., Any]) -> list[inspect.Parameter]:
    try:
        return list(inspect.signature(value).parameters.values())
    except ValueError:  # a type of C
        return []


def misspelt(name: str) -> str:
    return f"{name[:-1]}{name[-1] * 2}"


@pytest.mark.parametrize("entry", list(entries()))
def test_an_unknown_option_is_refused_by_the_nearest_one(entry: Any) -> None:
    told = parameters(entry)
    if any(one.kind is one.VAR_KEYWORD for one in told):
        pytest.skip("takes all names: they are options of something else")
    named = [one.name for one in told if one.kind is not one.POSITIONAL_ONLY]
    name = next(one for one in reversed(named) if one not in ("self", "bad_rows"))
    said = rf"has no option {misspelt(name)}=: did you mean {name}=\? It has .*\b{name}\b"
    with pytest.raises(ss.ConfigurationError, match=said):
        entry(**{misspelt(name): 1})
    # As Python's own error of such a call.
    with pytest.raises(TypeError, match=said):
        entry(**{misspelt(name): 1})


def test_an_option_without_its_name_is_refused_by_all_names() -> None:
    @ss.operator(event={"x": int}, emits={"x": int})
    def passes(event: Any, emit: Any) -> None:
        emit(event.x)

    engine: Any = ss.Engine
    said = r"Engine got 2 arguments without a name; expected operator, and by name threads=, hor"
    with pytest.raises(OptionNameError, match=said):
        engine(passes, 2)
    with ss.Engine(passes) as made:
        process: Any = made.process
        said = r"Engine\.process got 2 arguments without a name; expected table, and by name order"
        with pytest.raises(OptionNameError, match=said):
            process({"x": [1]}, "x")


def test_an_option_that_is_like_none_is_refused_by_all_that_there_are() -> None:
    with pytest.raises(OptionNameError, match=r"^Limits has no option zzz=; it has reads, writes"):
        ss.Limits(zzz=1)  # type: ignore[call-arg]


def test_what_is_refused_is_what_was_given_and_not_what_the_function_raises() -> None:
    @refuses_unknown
    def fails(one: int, *, other: int = 0) -> None:
        raise TypeError(f"{one}{other} got an unexpected keyword argument")

    with pytest.raises(TypeError, match=r"^12 got an unexpected") as caught:
        fails(1, other=2)
    assert not isinstance(caught.value, OptionNameError)


def test_signature_and_documentation_are_those_of_the_function() -> None:
    for entry in (ss.operator, ss.dict, ss.windows.by_time, ss.sinks.parquet_sink):
        assert inspect.getdoc(entry)
        assert entry.__name__ in str(entry)
        assert inspect.signature(entry) == inspect.signature(inspect.unwrap(entry))
    assert str(inspect.signature(ss.Fixed)) == "(horizon: 'int', chunk: 'int') -> 'None'"


def op(event: Any, emit: Any) -> None:
    emit(event.x)


def test_operator_without_parentheses_is_refused() -> None:
    bare: Any = ss.operator
    said = r"operator is written without its options above 'op'; expected .*@ss\.operator\(state="
    with pytest.raises(OptionNameError, match=said):
        bare(op)
    with pytest.raises(OptionNameError, match=said):
        bare(op, event={"x": int})


def state_with(**fields: Any) -> Any:
    return type("Mine", (ss.State,), fields)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"x": ss.scalar}, r"'x': ss\.scalar is not called; expected .* x = ss\.scalar\(\.\.\.\)"),
        ({"x": ss.timers}, r"ss\.timers is not called"),
        ({"x": ss.heap}, r"ss\.structures\.heap is not called"),
        ({"x": {}}, r"which is no field; .*write x = ss\.dict\(str, int\), with your types"),
        ({"x": []}, r"write x = ss\.list\(int\), with your types"),
        ({"x": 5}, r"constants belong into the operator's module or closure"),
        ({"__annotations__": {"x": int}}, r"has x by annotation alone.*write x = ss\.scalar"),
    ],
)
def test_what_is_no_field_is_refused_by_what_it_may_have_meant(
    fields: dict[str, Any], said: str
) -> None:
    with pytest.raises(ss.DeclarationError, match=said):
        ss.operator(state=state_with(**fields), event={"x": int}, emits={"x": int})(op)


@pytest.mark.parametrize(
    ("of", "name"),
    list(itertools.product(("event", "emits"), ("nullable", "timestamp", "decimal"))),
)
def test_a_column_type_that_is_not_called_is_refused(of: str, name: str) -> None:
    options: dict[str, Any] = {"event": {"x": int}, "emits": {"x": int}}
    options[of] = {"x": getattr(ss, name)}
    said = rf"{of} column 'x' has type ss\.{name}, which is not called: write ss\.{name}\("
    with pytest.raises(ss.DeclarationError, match=said):
        ss.operator(**options)(op)


@pytest.mark.parametrize("base", [ss.State, ss.Record])
def test_a_base_class_that_is_written_as_a_decorator_is_refused(base: Any) -> None:
    class Mine:
        x: int

    with pytest.raises(ss.DeclarationError, match=r"is the base of .*: write class My\w+\(ss\."):
        base(Mine)


def test_pure_takes_no_option_by_its_truth() -> None:
    pure: Any = functools.partial(ss.pure, batch="no")
    with pytest.raises(ss.ConfigurationError, match="pure: batch='no'; expected True or False"):
        pure(op)

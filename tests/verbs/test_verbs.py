"""What each verb is defined to do, beyond the random graphs; names; what is refused."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import functools
import pickle
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import specstream as ss
from specstream import verbs as of_streams
from specstream.compiler.language import hints

# Without its types: they know what the tests give in vain.
verbs: Any = of_streams
X = {"x": int}
ROW = {"k": str, "x": int}


class Total(ss.Record):
    sum: int = 0
    count: int = 0


class Bare(ss.Record):
    sum: int


def add(total, row):
    total.sum += row.x


def rows(operator: Any, values: Any, **options: Any) -> list[Any]:
    table = {"x": values} if isinstance(values, list) else values
    found: list[Any] = operator.run_sequential(table, **options).output.to_pylist()
    return found


def pipeline() -> tuple[Any, Any]:
    p = ss.Pipeline("p")
    return p, p.source("x", X)


# ---- values ----


def test_nulls_of_all_kinds_pass_through_functions_and_queues() -> None:
    columns = {
        "i": ss.nullable(int),
        "f": ss.nullable(float),
        "b": ss.nullable(bool),
        "s": ss.nullable(str),
    }
    p = ss.Pipeline("nulls")
    x = p.source("x", columns)
    same = x.map(lambda e: (e.i, e.f, e.b, e.s), emits=columns)
    p.sink("out", same.zip(x).map(lambda a, b: (a.i, b.f, a.b, b.s), emits=columns))
    table = {
        "i": [None, 1, 2],
        "f": [1.5, None, 2.5],
        "b": [True, False, None],
        "s": ["a", None, "c"],
    }
    run = ss.testing.check(p, table)
    assert run.output.to_pydict() == table


def test_more_columns_than_a_record_has_fields() -> None:
    columns = {f"c{at}": int for at in range(20)}
    p = ss.Pipeline("wide")
    x = p.source("x", columns)
    wide = x.zip(x.skip(1)).map(lambda a, b: a.c0 + b.c19, sum=int)
    p.sink("out", wide)
    table = {name: [at, at + 1, at + 2] for at, name in enumerate(columns)}
    assert ss.testing.check(p, table).output["sum"].to_pylist() == [0 + 20, 1 + 21]


def test_a_float_that_begins_as_an_int_is_a_float() -> None:
    p, x = pipeline()
    p.sink("out", x.accumulate(lambda sum, e: sum + e.x / 2, 0, sum=float))
    assert ss.testing.check(p, {"x": [1, 2]}).output["sum"].to_pylist() == [0.5, 1.5]


@pytest.mark.parametrize("start", [float("inf"), float("nan"), -0.0])
def test_any_float_may_be_the_start(start: float) -> None:
    made = verbs.accumulate(lambda least, e: least if e.x > 5 else 0.0, start, event=X, y=float)
    found = rows(made, [9, 1])
    assert repr(found[0]["y"]) == repr(start)
    assert found[1] == {"y": 0.0}


def test_a_verb_is_pickled_with_its_functions() -> None:
    made = verbs.keyed(
        Total, functools.partial(_counted, 2), event=ROW, key="k", forget=_is_four, n=int
    )
    again = pickle.loads(pickle.dumps(made))
    table = {"k": ["a", "a", "b", "a", "a"], "x": [1, 2, 3, 4, 5]}
    assert rows(again, table) == rows(made, table)
    assert again.sign == made.sign


def _counted(step, total, event):
    total.count += step
    return total.count


def _is_four(row):
    return row.n == 4


# ---- streams that end, or have nothing ----


def test_of_an_empty_stream_comes_nothing() -> None:
    p, x = pipeline()
    p.sink("last", x.last())
    p.sink("first", x.start_with({"x": 1}))
    p.sink("every", x.every(2, last=True))
    p.sink("window", x.window(2, lambda rows: rows[0].x, x=int))
    run = p.run_sequential({"x": [], "time": []}, order_by="time", end=True)
    assert {name: of.num_rows for name, of in run.output.items()} == {
        "last": 0,
        "first": 0,
        "every": 0,
        "window": 0,
    }


def test_the_last_event_is_not_given_twice() -> None:
    made = verbs.every(2, last=True, event=X)
    given = {"x": [1, 2, 3], "time": [1, 2, 3]}
    assert rows(made, given, order_by="time", end=True) == [{"x": 1}, {"x": 3}]
    given = {"x": [1, 2, 3, 4], "time": [1, 2, 3, 4]}
    assert rows(made, given, order_by="time", end=True) == [{"x": 1}, {"x": 3}, {"x": 4}]


def test_what_is_left_of_the_longer_stream_stays_in_the_state() -> None:
    p = ss.Pipeline("left")
    x = p.source("x", {"value": float})
    n = 4
    p.sink("out", x.zip(x.every(n)).map(lambda a, b: a.value + b.value, sum=float))
    with ss.Engine(p) as engine:
        engine.process({"value": [float(at) for at in range(20)]})
        i = 4  # the number of the last row
        assert len(engine.state.x_zip_map.a_value) - (20 - 1 - n * i) == (n - 1) * i
        assert len(engine.state.x_zip_map.b_value) == 0


def test_settled_verbs_write_nothing() -> None:
    p, x = pipeline()
    for at, stream in enumerate((x.skip(1), x.take(1), x.freeze(), x.start_with({"x": 0}))):
        p.sink(f"s{at}", stream)
    options: dict[str, Any] = {"threads": 2, "horizon": 8, "chunk": 1}
    with ss.Engine(p, **options) as engine:
        engine.process({"x": [1]})
        before = engine.stats.aborts
        engine.process({"x": list(range(2000))})
        assert engine.stats.aborts == before


def test_a_counter_of_every_is_predicted_and_the_answer_exact() -> None:
    made = verbs.every(3, event=X)
    with ss.Engine(made, threads=2, horizon=16, chunk=1) as engine:
        output = engine.process({"x": list(range(5000))})
    assert output["x"].to_pylist() == list(range(0, 5000, 3))


def test_runs_that_are_aborted_give_the_same_rows() -> None:
    p, source = pipeline()
    # Long enough that others run meanwhile, also on a busy machine.
    x = source.map(_after_a_while, x=int)
    graphs = [
        x.accumulate(lambda sum, e: sum + e.x, 0, x=int),
        x.accumulate(lambda row, e: (row.x + e.x, e.x), (0, 1), x=int, y=int),
        x.window(3, lambda rows: rows[0].x - rows[2].x, x=int),
        x.zip(x.every(3)).map(lambda a, b: a.x - b.x, x=int),
        x.zip(x.skip(2)).filter(lambda a, b: a.x < b.x),
        x.keyed(Total, _summed, x=int),
        x.add(machine(event=X)),
        ss.rules.eventually(x.map(lambda e: e.x % 4 == 0, value=bool)),
        x.merge(x.every(2)).start_with({"x": 1}).every(2, last=True),
    ]
    for at, one in enumerate(graphs):
        p.sink(f"s{at}", one)
    values = [at % 7 + 1 if at % 2 == 0 else -(at % 5) - 1 for at in range(400)]
    table = {"x": values, "time": list(range(400))}
    expected = p.run_sequential(table, order_by="time", end=True).output
    aborts = 0
    with ss.Engine(p, threads=2, horizon=16, chunk=1) as engine:
        begun = engine.snapshot()
        for _ in range(200):
            engine.restore(begun)
            assert engine.process(table, order_by="time", end=True) == expected
            aborts += sum(engine.stats.aborts.values())
            if aborts:
                break
    assert aborts > 0


def _after_a_while(event):
    mixed = event.x
    for _ in range(2000):
        mixed = (mixed * 6364136223846793005 + 1442695040888963407) ^ (mixed >> 7)
    return event.x if mixed != 0 else 0


def _summed(total, event):
    total.sum = (total.sum * 3 + event.x) % 1000
    return total.sum


# ---- names and pictures ----


def test_vertices_are_called_after_stream_and_verb() -> None:
    _, x = pipeline()
    first, second = x.every(2), x.every(3)
    assert (first.name, second.name) == ("x_every", "x_every_2")
    assert first.skip(1).name == "x_every_skip"
    assert second.skip(1).name == "x_every_2_skip"
    assert first.zip(second).filter(lambda a, b: a.x > b.x).name == "x_every_zip_filter"
    assert x.map(lambda e: e.x, x=int, name="copied").name == "copied"


def test_pictures_and_descriptions_show_the_sign(tmp_path: Any) -> None:
    p, x = pipeline()
    for at in range(30):
        x = (
            x.skip(at)
            if at % 3
            else x.accumulate(lambda sum, e: sum + e.x, 0, x=int, name=f"n{at}")
        )
    p.sink("out", x)
    p.draw(tmp_path / "p.svg")
    text = (tmp_path / "p.svg").read_text()
    assert text.count(">Σ<") == 10
    assert ">1…<" in text
    assert 'label="n0\\nΣ' in p.to_dot()


def test_a_machine_is_drawn(tmp_path: Any) -> None:
    door = machine()
    door.draw(tmp_path / "door.svg")
    text = (tmp_path / "door.svg").read_text()
    assert "closed → open: e.x &gt; 0 / _bump" in text
    assert pickle.loads(pickle.dumps(door)).drawn == door.drawn
    door.draw(tmp_path / "door.dot")
    assert '"closed" -> "open" [label="e.x > 0 / _bump"];' in (tmp_path / "door.dot").read_text()
    with pytest.raises(ss.ConfigurationError, match=r"draw: path=.*; expected a name that ends in"):
        door.draw(tmp_path / "door.xyz")


def _bump(total, event):
    total.count += 1


def machine(**options: Any) -> Any:
    way = [
        ("closed", lambda v, e: e.x > 0, "open", _bump),
        ("open", lambda v, e: e.x < 0, "closed"),
    ]
    given: dict[str, Any] = {
        "event": X,
        "output": {"open": lambda v: v.count},
        "count": int,
        "name": "door",
        **options,
    }
    return verbs.machine(Total, "closed", way, **given)


def test_a_machine_without_a_transition_fails_the_event_with_its_names() -> None:
    with ss.Engine(machine(), errors="side") as engine:
        assert engine.process({"x": [1, 2, -1, 3]}).to_pylist() == [{"count": 1}, {"count": 2}]
        failed = engine.failed_events()
    assert failed is not None
    assert failed["message"].to_pylist() == [
        "machine 'door' is in state 'open', and no transition from it holds"
    ]


# ---- what is refused ----


def _nothing(*_):
    return None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: verbs.skip(-1, event=X), "skip: n=-1"),
        (lambda: verbs.take("2", event=X), "take: n='2'"),
        (lambda: verbs.every(0, event=X), "every: n=0"),
        (lambda: verbs.every("1 parsec", event=X), "every: n='1 parsec'"),
        (lambda: verbs.every("-1 s", event=X), "a duration above zero"),
        (lambda: verbs.every("1 us", event=X, unit="s"), "no whole number of s: give a finer"),
        (lambda: verbs.every(2, event=X, last=1), "every: last=1"),
        (lambda: verbs.map(lambda e: e.x, event=X), "map: there are no columns"),
        (lambda: verbs.map(3, event=X, y=int), "map: f=3; expected a function"),
        (lambda: verbs.map(abs, event=X, y=int), "map: f=.*is a builtin"),
        (lambda: verbs.map(lambda e: e.x, event=X, emits={"y": int}, z=int), "and with emits="),
        (lambda: verbs.filter(lambda e: e.x, event=X, key="y"), "filter: key='y'"),
        (lambda: verbs.filter(lambda e: e.x, event=X, forget=_nothing), "there is no key="),
        (lambda: verbs.accumulate(lambda s, e: s, "a", event=X, y=int), "expected an int"),
        (lambda: verbs.accumulate(lambda s, e: s, 2**63, event=X, y=int), "expected an int"),
        (lambda: verbs.accumulate(lambda s, e: s, 1, event=X, y=int, z=int), "a tuple of 2 values"),
        (lambda: verbs.start_with({"y": 1}, event=X), "lacks 'x'; expected the columns x"),
        (lambda: verbs.start_with({"x": 1}, times=-1, event=X), "start_with: times=-1"),
        (lambda: verbs.window(0, _nothing, event=X, y=int), "window: n=0"),
        (lambda: verbs.window(2, _nothing, event={"x": ss.nullable(int)}, y=int), "is nullable"),
        (lambda: verbs.window(2, _nothing, event=X, add=add, y=int), "add= is about a record"),
        (lambda: verbs.window(2, _nothing, event=X, record=Total, y=int), "record= goes with add="),
        (lambda: verbs.keyed(int, _nothing, event=X, y=int), "keyed: record=.*a class of records"),
        (lambda: verbs.keyed(Bare, _nothing, event=X, y=int), "field 'sum' has no default"),
        (lambda: verbs.zip(X), "zip gets 1 streams"),
        (lambda: verbs.zip(X, X).rows(), "two columns are called 'x'"),
        (lambda: verbs.zip(X, X, limit=0), "zip: limit=0"),
        (lambda: verbs.merge(1, event=X), "merge: count=1"),
        (lambda: verbs.skip(1, event=X, limt=3), "no option limt=: did you mean limit="),
        (lambda: verbs.machine(Total, "a", [], event=X), "transitions="),
        (lambda: machine(output={"opne": _nothing}), "'opne', which is no state"),
        (
            lambda: verbs.machine(None, "a", [("a", _nothing, "a"), ("b", _nothing, "c")], event=X),
            "state 'b' is never reached from 'a'",
        ),
        (
            lambda: verbs.machine(None, "opne", [("open", _nothing, "open")], event=X),
            "start='opne', and no transition is from it; expected one of open: did you mean 'open'",
        ),
        (
            lambda: verbs.machine(
                None, "a", [("a", verbs.OTHERWISE, "a"), ("a", _nothing, "a")], event=X
            ),
            "transition 1, from 'a', is never taken: transition 0 is OTHERWISE",
        ),
    ],
)
def test_options_that_cannot_be_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ss.ConfigurationError, match=message):
        make()


def test_a_filter_that_gives_no_bool_fails_the_event() -> None:
    p, x = pipeline()
    p.sink("out", x.filter(lambda e: e.x, name="chosen"))
    with ss.Engine(p) as engine, pytest.raises(TypeError, match="chosen: the function of a filter"):
        engine.process({"x": [1]})


def test_a_full_queue_names_the_vertex_and_the_stream() -> None:
    p, x = pipeline()
    p.sink("out", x.zip(x.every(3), limit=2).map(lambda a, b: a.x + b.x, sum=int))
    with ss.Engine(p) as engine:
        message = "x_zip_map: limit=2 rows of x wait already, for rows of the other streams"
        with pytest.raises(OverflowError, match=message):
            engine.process({"x": list(range(10))})


def test_one_key_too_many_names_the_vertex_and_what_to_do() -> None:
    p = ss.Pipeline("p")
    x = p.source("x", ROW).by("k", limit=2)
    p.sink("out", x.accumulate(lambda sum, e: sum + e.x, 0, x=int))
    message = "x_accumulate: limit=2 keys are there already: give a larger limit=, or let some go"
    with ss.Engine(p) as engine, pytest.raises(OverflowError, match=message):
        engine.process({"k": ["a", "b", "c"], "x": [1, 2, 3]})


def test_streams_that_do_not_go_together_are_refused() -> None:
    p, x = pipeline()
    other = ss.Pipeline("other").source("y", X)
    with pytest.raises(ss.DeclarationError, match="zip of 'x' gets the stream 'y' of pipeline"):
        x.zip(other)
    with pytest.raises(ss.DeclarationError, match="zip of 'x' gets no other stream"):
        x.zip()
    with pytest.raises(ss.DeclarationError, match="merge of 'x' gets 3; expected streams"):
        x.merge(3)
    with pytest.raises(ss.DeclarationError, match="merge gets 'x' with the columns x, and"):
        x.merge(x.map(lambda e: e.x, y=int))
    with pytest.raises(ss.DeclarationError, match="eventually gets the stream 'x', with x: int"):
        ss.rules.eventually(x)
    with pytest.raises(ss.ConfigurationError, match="the stream of flags has the columns x: int"):
        x.filter(x)
    with pytest.raises(ss.ConfigurationError, match="across: the rows of 'x' have no key"):
        x.across(Total, add, add, lambda t: t.sum, y=int)
    p.sink("out", x.last().last())
    with pytest.raises(ss.DeclarationError, match="waits for the end of the stream, and is behind"):
        ss.Engine(p)


def test_an_operator_behind_a_key_has_to_be_a_verb() -> None:
    p = ss.Pipeline("p")
    x = p.source("x", ROW).by("k")

    @ss.operator(event=ROW, emits=ROW)
    def plain(event, emit):
        emit(event.k, event.x)

    with pytest.raises(
        ss.ConfigurationError, match="'plain' stands behind by\\('k'\\) and has one"
    ):
        x.add(plain)
    made = verbs.keyed(Total, _counting, event=ROW, n=int, name="counted")
    p.sink("out", x.add(made))
    assert rows(p, {"k": ["a", "b", "a"], "x": [1, 1, 1]})[-1] == {"k": "a", "n": 2}
    keyed = verbs.keyed(Total, _counting, event=ROW, key="k", n=int, name="counted")
    with pytest.raises(ss.ConfigurationError, match="is made with key=, and stands behind"):
        x.add(keyed)


def _counting(total, event):
    total.count += 1
    return total.count


def test_functions_of_installed_packages_are_taken(monkeypatch: Any) -> None:
    """As those of this package are, where it is installed: rules are made of some."""
    root = str(Path(ss.__file__).parents[1])
    monkeypatch.setattr(sysconfig, "get_path", lambda _: root)
    assert hints.is_of_a_library(_summed)
    assert hints.is_of_a_library(ss.rules.both)
    p = ss.Pipeline("p")
    x = p.source("x", {"a": bool, "b": bool})
    a, b = x.map(lambda e: e.a, value=bool), x.map(lambda e: e.b, value=bool)
    for name in ("both", "either", "implies", "until"):
        p.sink(name, getattr(ss.rules, name)(a, b))
    p.sink("summed", x.map(lambda e: 1, x=int).keyed(Total, _summed, x=int))
    table = {"a": [True, True, False], "b": [True, False, False]}
    found = ss.testing.check(p, table).output
    assert found["both"]["value"].to_pylist() == [True, False, False]
    assert found["implies"]["value"].to_pylist() == [True, False, True]
    assert found["summed"]["x"].to_pylist() == [1, 4, 13]
    assert verbs.map(_after_a_while, event=X, x=int).emits.names == ("x",)


@pytest.mark.parametrize("option", ["to_all", "forget"])
def test_what_is_no_bool_about_keys_fails_the_event(option: str) -> None:
    given: dict[str, Any] = {option: lambda row: row.x}
    made = verbs.accumulate(lambda sum, e: sum + e.x, 0, event=ROW, key="k", x=int, **given)
    with pytest.raises(TypeError, match=f"accumulate: {option}= gives neither True nor False"):
        rows(made, {"k": ["a"], "x": [1]})

"""NuSMV takes what is exported, and says what all states of the operator say."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import platform
import random
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

import specstream as ss
from bench.verify.measure import SEVEN, below, no_full
from bench.verify.nusmv import Answer, MissingError, ask, library
from examples.verify import pipelines
from specstream.compiler.language.definitions import keep_text


@pytest.fixture(scope="module", autouse=True)
def nusmv() -> None:
    """On Linux on x86-64 it has to be there."""
    try:
        library()
    except MissingError as error:
        if (sys.platform, platform.machine()) == ("linux", "x86_64"):
            raise
        pytest.skip(str(error))


def answers(text: str) -> dict[str, Answer]:
    """Its answers, by what they are about."""
    return {one.text: one for one in ask(text).answers}


def silent(rows):
    return len(rows) == 0


# ---- the same verdicts and lengths as all states ----

STATEMENTS = (
    *("state.n += 1", "state.n = 0", "state.n = event.x", "state.flag = not state.flag"),
    *("state.n = (state.n + event.x) % 5", "state.q.append(event.x)", "emit(state.n)"),
    *("if len(state.q) > 0:\n    emit(state.q.popleft())", "state.a[event.x] = state.n"),
    *("if state.n > 3:\n    raise ValueError('big')", "state.best = Best(event.x, 1)"),
    *("if state.best.x == 2:\n    emit(state.best.count)", "emit(state.a[event.x])"),
    *("state.long.append(event.x)", "if len(state.long) > 4:\n    state.long.popleft()"),
    *("if len(state.long) > 2:\n    emit(state.long[1])", "state.n = -state.n"),
)
CONDITIONS = ("event.x == 1", "state.flag", "event.y is None", "state.n > 2", "state.a[0] > 0")
TEXT = """import specstream as ss


class Best(ss.Record):
    x: int
    count: int


class S(ss.State):
    n = ss.scalar(int)
    flag = ss.scalar(bool)
    q = ss.deque(int, maxlen=2)
    long = ss.deque(int, limit=6)
    best = ss.scalar(Best)
    a = ss.array(int, 3)


@ss.operator(state=S, event={{"x": int, "y": int | None}}, emits={{"a": int}})
def op(state, event, emit):
{body}
    state.n = min(max(state.n, -4), 4)
"""


def program(seed: int) -> Any:
    rng = random.Random(seed)
    lines: list[str] = []
    for _ in range(rng.randint(2, 4)):
        some = rng.choice(STATEMENTS).split("\n")
        if rng.random() < 0.5:
            some = [f"if {rng.choice(CONDITIONS)}:", *(f"    {line}" for line in some)]
        lines += some
    text = TEXT.format(body="\n".join(f"    {line}" for line in lines))
    file = f"<random export {seed}>"
    keep_text(file, text)
    names: dict[str, Any] = {"__name__": "random_export"}
    exec(compile(text, file, "exec"), names)
    return names["op"]


def low(state):
    return state.n < 4


def every(state):
    return all(v < 3 for v in state.a) and len(state.q) < 3


def fits(event):
    return event.x >= 0 and event.x <= 2 and (event.y is None or event.y == 1)


def compare(seed: int) -> None:
    operator = program(seed)
    asked: dict[str, Any] = {"always": [low, every], "each": silent, "can_always": "rows"}
    report = ss.verify.check(operator, domain={"x": range(3), "y": [None, 1]}, **asked)
    model = ss.verify.to_smv(operator, width=5, assume=fits, **asked)
    found = answers(f"{model}INVARSPEC !op.no_path\n")
    assert report.closed, seed
    assert found["!op.no_path"].holds, seed
    for verdict in report.verdicts:
        name = f"op.p_{verdict.name}"
        answer = found["AG (EF op.out_b)"] if verdict.kind == "can_always" else found[name]
        assert verdict.said == ("proved" if answer.holds else "refuted"), (seed, str(report))
        if answer.holds:
            continue
        more = answer.states - verdict.events
        if verdict.kind == "can_always":  # it searches backwards, and may take a detour
            assert more >= 0, (seed, str(report))
        else:  # a state is seen behind its last event
            assert more == (verdict.kind == "always"), (seed, str(report))


@pytest.mark.parametrize("seed", range(8))
def test_random_operators_have_the_same_verdicts_and_lengths(seed: int) -> None:
    compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(100, 300, 20))
def test_many_random_operators(first: int) -> None:
    for seed in range(first, first + 20):
        compare(seed)


@pytest.mark.parametrize("name", SEVEN)
def test_pipelines_of_the_paper(name: str) -> None:
    operator = getattr(pipelines, name)(modulo=3, limit=3)
    asked: dict[str, Any] = {"always": no_full(operator, 2), "can_always": "rows"}
    report = ss.verify.check(operator, domain={"x": range(3)}, within=ss.verify.within(3), **asked)
    model = ss.verify.to_smv(
        operator, width=5, assume=below(3), within=ss.verify.within(3), **asked
    )
    found = answers(model)
    full, late, live = report.verdicts
    assert (full.said == "proved") == found["op.p_no_full"].holds
    assert full.said == "proved" or full.events == found["op.p_no_full"].states - 1
    assert (live.said == "proved") == found["AG (EF op.out_b)"].holds
    assert live.said == "proved" or found["AG (EF op.out_b)"].states >= live.events
    (ltl,) = [one for text, one in found.items() if text.startswith("G ")]
    assert (late.said == "proved") == ltl.holds


def test_two_side_by_side() -> None:
    """Figure 4: one that is a step behind is the same by sequence."""
    for rows, same in (("stepwise", False), ("sequence", True)):
        both = pipelines.side_by_side(
            pipelines.of_passthrough(), pipelines.of_delay(), rows=rows, limit=2
        )
        found = answers(ss.verify.to_smv(both, width=4, each=pipelines.silent, assume=below(2)))
        assert found["op.p_silent"].holds is same


# ---- arithmetic ----

OPERATIONS: dict[str, Callable[[int, int], int]] = {
    "event.x + event.y": lambda x, y: x + y,
    "event.x - event.y": lambda x, y: x - y,
    "event.x * event.y": lambda x, y: x * y,
    "event.x // event.y if event.y != 0 else 0": lambda x, y: x // y if y else 0,
    "event.x % event.y if event.y != 0 else 0": lambda x, y: x % y if y else 0,
    "event.x & event.y": lambda x, y: x & y,
    "event.x | event.y": lambda x, y: x | y,
    "event.x ^ event.y": lambda x, y: x ^ y,
    "-event.x": lambda x, y: -x,
    "~event.x": lambda x, y: ~x,
    "abs(event.x)": lambda x, y: abs(x),
    "event.x << 1": lambda x, y: x << 1,
    "event.x >> 2": lambda x, y: x >> 2,
    "event.x >> 3": lambda x, y: x >> 3,
    "event.x >> (event.y & 3)": lambda x, y: x >> (y & 3),
    "event.x << (event.y & 3)": lambda x, y: x << (y & 3),
    "min(event.x, event.y)": min,
    "1 if event.x < event.y else 0": lambda x, y: int(x < y),
    "1 if event.x >= event.y else 0": lambda x, y: int(x >= y),
    "1 if event.x > 1_000_000 else 2": lambda x, y: 2,
    "1 if event.x == -1_000_000 or event.x > -1_000_000 else 2": lambda x, y: 1,
}


@pytest.mark.parametrize("width", [4, 3])
def test_arithmetic_is_pythons_and_wraps_at_the_width(width: int) -> None:
    columns = ", ".join(f'"r{at}": int' for at in range(len(OPERATIONS)))
    text = (
        "import specstream as ss\n\n\n"
        f"@ss.operator(event={{'x': int, 'y': int}}, emits={{{columns}}})\n"
        "def op(event, emit):\n    emit(\n"
        + "".join(f"        {one},\n" for one in OPERATIONS)
        + "    )\n"
    )
    file = f"<arithmetic {width}>"
    keep_text(file, text)
    names: dict[str, Any] = {"__name__": "arithmetic"}
    exec(compile(text, file, "exec"), names)
    half = 2 ** (width - 1)

    def number(value: int) -> str:
        wrapped = (value + half) % (2 * half) - half
        return f"{'-' * (wrapped < 0)}0sd{width}_{abs(wrapped)}"

    model = ss.verify.to_smv(names["op"], width=width)
    for at, of in enumerate(OPERATIONS.values()):
        cases = [
            f"(x = {number(x)} & y = {number(y)} -> op.out_r{at} = {number(of(x, y))})"
            for x in range(-half, half)
            for y in range(-half, half)
        ]
        model += f"INVARSPEC {' & '.join(cases)}\n"
    wrong = [
        one for one, answer in zip(OPERATIONS, ask(model).answers, strict=True) if not answer.holds
    ]
    assert wrong == []


# ---- names, nulls, rows, sinks ----


class Awkward(ss.State):
    next = ss.scalar(int)
    a_b = ss.array(int, 2)
    a_b_0 = ss.scalar(int, fill=1)
    out = ss.scalar(bool, fill=True)


@ss.operator(
    state=Awkward,
    event={"next": int, "s_next": int, "out_b": bool, "G": int | None, "path_1": int},
    emits={"next": int | None, "word": bool},
)
def awkward(state, event, emit):
    if event.out_b:
        emit(event.next, state.out)
    emit(None if event.G is None else event.G, event.path_1 == 1)
    state.a_b[1] = state.a_b[0] + event.s_next
    state.a_b[0] = state.a_b_0 + 1
    state.next = event.next


def is_zero(state):
    return state.next == 0


def second(rows):
    return len(rows) < 2 or rows[1].next is None or rows[1].next != 3


def test_names_of_the_language_and_names_that_are_used_twice() -> None:
    model = ss.verify.to_smv(awkward, width=4, always=is_zero, each=second)
    found = answers(model)
    assert [one.states for one in found.values()] == [2, 1]
    assert "out2_next_null := " in model
    declared = re.findall(r"^  (\w+) : ", model.partition("MODULE main")[0], re.MULTILINE)
    assert len(declared) == len(set(declared)) == 5


class Keyed(ss.State):
    seen = ss.set(int)
    counts = ss.dict(int, int)
    text = ss.scalar(str)


@ss.operator(state=Keyed, event={"k": int, "s": str}, emits={"n": int})
def keyed(state, event, emit):
    state.counts[event.k] = min(state.counts.get(event.k, 0) + 1, 3)
    if event.k in state.seen and event.s == "stop":
        state.text = "stop"
        emit(len(state.seen))
    state.seen.add(event.k)


def never_two(state):
    return all(count < 3 for count in state.counts.values())


def no_stop(state):
    return state.text != "stop"


def test_sets_dicts_and_strings() -> None:
    found = answers(ss.verify.to_smv(keyed, width=3, always=[never_two, no_stop]))
    assert [(one.holds, one.states) for one in found.values()] == [(False, 4), (False, 3)]


# ---- as a part of another system ----

K = """
MODULE main
VAR
  a : boolean;
  before : array 1..{k} of boolean;
  op : operator(a, b);
DEFINE
  b := {b};
ASSIGN
{steps}
INVARSPEC !op.out_b
"""


@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_a_monitor_of_another_system(k: int) -> None:
    """b is how often a was true in the last k steps; a system by hand says so, and one is wrong."""
    module = ss.verify.to_smv(pipelines.counts_last(k), width=5).partition("MODULE main")[0]
    steps = ["  init(before[1]) := FALSE;", "  next(before[1]) := a;"]
    for at in range(2, k + 1):
        steps += [f"  init(before[{at}]) := FALSE;", f"  next(before[{at}]) := before[{at - 1}];"]
    told = ["a", *(f"before[{at}]" for at in range(1, k))]
    for known, holds in ((told, True), ([*told[:-1], f"before[{k}]"], False)):
        count = " + ".join(f"({one} ? 0sd5_1 : 0sd5_0)" for one in known)
        text = module + K.format(k=k, b=count, steps="\n".join(steps))
        (answer,) = ask(text).answers
        assert answer.holds is holds


@pytest.mark.parametrize("wrong", [False, True])
def test_a_system_and_its_monitor_as_one_pipeline(wrong: bool) -> None:
    for k in (2, 3):
        whole = pipelines.watched(k, wrong=wrong)
        (answer,) = ask(ss.verify.to_smv(whole, width=4, each=silent)).answers
        report = ss.verify.check(whole, domain={"turn": [False, True]}, each=silent)
        assert answer.holds is not wrong
        assert report.said == ("refuted" if wrong else "proved")
        assert report.verdicts[0].events == answer.states


# ---- what has no meaning there ----


class Many(ss.State):
    pairs = ss.dict((int, int), int)
    price = ss.scalar(float)
    many = ss.array(int, 100)
    going = ss.dict(int, int, expire_after=3)
    n = ss.scalar(int)


def no_floats(state, event, emit):
    state.price = 1.0


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        ({"pairs": ss.dict((int, int), int)}, "state.pairs with keys of several parts"),
        ({"price": ss.scalar(float)}, "a float; NuSMV has none"),
        ({"many": ss.array(int, 100)}, "state.many with 100 elements"),
        ({"going": ss.dict(int, int, expire_after=3)}, "state.going, whose entries expire"),
        ({"timers": ss.timers(int)}, "has timers"),
        ({"long": ss.deque(int, maxlen=20)}, "state.long may hold 20 elements"),
    ],
)
def test_what_has_no_meaning_there_is_refused_with_a_way_out(
    declared: dict[str, Any], said: str
) -> None:
    state = type("S", (ss.State,), {"n": ss.scalar(int), **declared})

    def process(state, event, emit):
        state.n = event.x

    def on_timer(state, timer, emit):
        state.n = 0

    fires: dict[str, Any] = {"on_timer": on_timer} if "timers" in declared else {}
    operator = ss.operator(state=state, event={"x": int}, emits={}, **fires)(process)
    with pytest.raises(ss.ConfigurationError, match=r"verify\.to_smv: 'process'") as refused:
        ss.verify.to_smv(operator, width=4)
    assert said in str(refused.value)
    assert ";" in str(refused.value)


def test_a_number_that_does_not_fit_is_refused() -> None:
    @ss.operator(event={"x": int}, emits={"y": int})
    def far(event, emit):
        emit(event.x + 100)

    with pytest.raises(ss.ConfigurationError, match="100 does not fit into 4 bits"):
        ss.verify.to_smv(far, width=4)
    assert "0sd8_100" in ss.verify.to_smv(far, width=8)


# ---- found from outside ----


class Short(ss.State):
    q = ss.deque(int, limit=2)
    n = ss.scalar(int)


@ss.operator(state=Short, event={"x": int, "fill": bool}, emits={})
def fills(state, event, emit):
    if event.fill and len(state.q) < 2:
        state.q.append(event.x)


def has_no_one(state):
    return 1 not in state.q


def differ(state):
    return len(state.q) < 2 or state.q[0] != state.q[1]


def first_is_not_one(state):
    return len(state.q) < 1 or state.q[-1] != 1


def test_properties_that_look_into_short_sequences() -> None:
    """Their lengths are counted out, on each path anew."""
    asked = [has_no_one, differ, first_is_not_one]
    report = ss.verify.check(fills, always=asked)
    assert [(one.said, one.events) for one in report.verdicts] == [
        ("refuted", 1),
        ("refuted", 2),
        ("refuted", 1),
    ]
    found = ask(ss.verify.to_smv(fills, width=3, always=asked)).answers
    assert [one.states - 1 for one in found] == [1, 2, 1]


class Said(ss.State):
    text = ss.scalar(str)
    n = ss.scalar(int)


@ss.operator(state=Said, event={"w": str}, emits={})
def says(state, event, emit):
    state.text = event.w
    if event.w == "a" or event.w == "b" or event.w == "c":
        return
    if event.w == "d":
        state.n = 1


def never_z(state):
    return state.text != "z"


def never_d(state):
    return state.n == 0


def test_strings_that_only_a_property_names_and_many_of_them() -> None:
    found = ask(ss.verify.to_smv(says, width=4, always=[never_z, never_d])).answers
    assert [one.holds for one in found] == [False, False]
    with pytest.raises(ss.ConfigurationError, match="5 strings are named, which are more than"):
        ss.verify.to_smv(says, width=3, always=never_d)


@ss.operator(state=Short, event={"x": int, "y": int}, emits={"n": int})
def divides(state, event, emit):
    state.n = -1 // (event.x >> (event.y & 1))


def small(state):
    return state.n < 7


def test_divisors_that_are_zero_on_another_path() -> None:
    (answer,) = ask(ss.verify.to_smv(divides, width=4, always=small)).answers
    assert answer.holds


@ss.operator(
    event={"toint": int, "READ": int, "größe": int, "out_y": int},
    emits={"y": int | None, "y_null": bool, "y_": int, "b": bool},
)
def named(event, emit):
    emit(None, event.toint == 1, event.READ, event.größe == event.out_y)


def same(rows):
    return len(rows) == 1


def test_more_names() -> None:
    def also(rows):
        return rows[0].y is None

    also.__name__ = "same"
    model = ss.verify.to_smv(named, width=3, always=(), each=[same, also, same])
    assert [one.holds for one in ask(model).answers] == [True, True, True]
    assert "out_y_null := " in model
    assert "out_y := 0sd3_0;" in model


def half(state):
    return state.n / 2 < 9.0


def test_floats_of_properties_are_refused() -> None:
    with pytest.raises(ss.ConfigurationError, match="a float; NuSMV has none"):
        ss.verify.to_smv(fills, width=4, always=half)

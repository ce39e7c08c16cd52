"""Every state over a finite domain: beside a search of a few lines over the sequential run, and
beside what is said of every value."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

import importlib
import itertools
import linecache
import pkgutil
import random
from typing import Any

import corpus
import numpy as np
import pyarrow as pa
import pytest
from corpus.case import CASES
from support.daily import share_of

import specstream as ss
from specstream.compiler.language.definitions import keep_text
from specstream.verify.counterexample import plain_state
from specstream.verify.domain import Domain
from specstream.verify.paths import NotModelled
from specstream.verify.reads import read_by_operator
from specstream.verify.rerun import event_values
from specstream.verify.transitions import Transitions

VALUES = [(x, y) for x in (0, 1, 2) for y in (None, 1)]
DOMAIN: dict[str, Any] = {"x": range(3), "y": [None, 1]}
STATEMENTS = (
    *("state.n += 1", "state.n = 0", "state.n = event.x", "state.flag = not state.flag"),
    *("state.n = (state.n * 3 + event.x) % 5", "state.q.append(event.x)", "state.d[event.x] = 1"),
    *("if len(state.q) > 0:\n    emit(state.q.popleft())", "state.d.pop(event.x, 0)"),
    *("emit(state.n)", "if state.n > 3:\n    raise ValueError('big')", "state.queue.push(event.x)"),
    *("if len(state.queue) > 2:\n    emit(state.queue.pop())", "state.best = Best(event.x, 1)"),
    *("if state.best.x == 2:\n    emit(state.best.count)", "state.seen.add(event.x)"),
    *("state.a[event.x] = state.n", "if len(state.seen) == 3:\n    state.seen.clear()"),
)
CONDITIONS = ("event.x == 1", "state.flag", "event.y is None", "state.n > 2", "event.x in state.d")
TEXT = """import specstream as ss


class Best(ss.Record):
    x: int
    count: int


class S(ss.State):
    n = ss.scalar(int)
    flag = ss.scalar(bool)
    q = ss.deque(int, maxlen=2)
    d = ss.dict(int, int)
    queue = ss.priority_queue(int, limit=3)
    best = ss.scalar(Best)
    seen = ss.set(int)
    a = ss.array(int, 3)


@ss.operator(state=S, event={{"x": int, "y": int | None}}, emits={{"a": int}})
def op(state, event, emit):
{body}
    state.n = min(max(state.n, 0), 4)
"""


def program(seed: int) -> Any:
    """A random operator of a few states; None: it is none."""
    rng = random.Random(seed)
    lines: list[str] = []
    for _ in range(rng.randint(2, 4)):
        some = rng.choice(STATEMENTS).split("\n")
        if rng.random() < 0.5:
            some = [f"if {rng.choice(CONDITIONS)}:", *(f"    {line}" for line in some)]
        lines += some
    text = TEXT.format(body="\n".join(f"    {line}" for line in lines))
    file = f"<random states {seed}>"
    keep_text(file, text)
    names: dict[str, Any] = {"__name__": "random_states"}
    exec(compile(text, file, "exec"), names)
    return names["op"]


class Searched:
    """The states that streams lead to, each found by running its stream from the beginning."""

    def __init__(self, operator: Any, most: int) -> None:
        self.operator = operator
        self.streams: dict[str, tuple[Any, ...]] = {self.run(())[0]: ()}
        self.edges: dict[str, list[tuple[str, int]]] = {}
        for state in (found := list(self.streams)):
            for one in VALUES:
                after, rows = self.run((*self.streams[state], one))
                self.edges.setdefault(state, []).append((after, rows))
                if after not in self.streams:
                    self.streams[after] = (*self.streams[state], one)
                    found.append(after)
            if len(found) > most:
                break
        self.is_whole = len(self.edges) == len(self.streams)

    def run(self, stream: Any) -> tuple[str, int]:
        """The state behind a stream, and the number of rows of its last event."""
        columns = {name: [one[at] for one in stream] for at, name in enumerate("xy")}
        table = pa.table({name: pa.array(of, pa.int64()) for name, of in columns.items()})
        run = self.operator.run_sequential(table, keys=True, on_error="skip")
        rows = run.output["sequence"].to_pylist().count(len(stream) - 1)
        return repr(plain_state(self.operator, run.state)), rows

    def late(self, most: int) -> int | None:
        """Length of the shortest stream whose last events emit no row; None: there is none."""
        first = next(iter(self.streams))
        layer, seen = {(first, 0)}, {(first, 0)}
        for count in itertools.count(1):
            following = {
                (after, 0 if rows else silent + 1)
                for state, silent in layer
                for after, rows in self.edges[state]
            }
            if any(silent >= most for _, silent in following):
                return count
            layer = following - seen
            seen |= following
            if not layer:
                return None
        raise AssertionError

    def traps(self) -> list[int]:
        """Lengths of the shortest streams to states from which no stream emits."""
        good = {state for state, edges in self.edges.items() if any(rows for _, rows in edges)}
        while True:
            more = {
                one for one, edges in self.edges.items() if any(after in good for after, _ in edges)
            }
            if more <= good:
                return [len(of) for state, of in self.streams.items() if state not in good]
            good |= more


def silent(rows):
    return len(rows) == 0


def low(state):
    return state.n < 4


def compare(seed: int) -> bool:
    """Compares what is said of a random operator with the search; whether all is known."""
    operator = program(seed)
    searched = Searched(operator, 150)
    if not searched.is_whole:
        return False
    within = random.Random(seed).randint(1, 4)
    report = ss.verify.check(
        operator,
        domain=DOMAIN,
        always=low,
        each=silent,
        within=ss.verify.within(within),
        can_always="rows",
    )
    found = {one.kind: one for one in report.verdicts}
    wrong = {
        "always": [len(of) for state, of in searched.streams.items() if "n=4" in state],
        "each": [
            len(searched.streams[state]) + 1
            for state, edges in searched.edges.items()
            if any(rows for _, rows in edges)
        ],
        "within": [one for one in [searched.late(within)] if one is not None],
        "can_always": searched.traps(),
    }
    for kind, lengths in wrong.items():
        assert found[kind].said == ("refuted" if lengths else "proved"), (seed, kind, str(report))
        assert not lengths or found[kind].events == min(lengths), (seed, kind, str(report))
    whole = ss.verify.check(operator, domain=DOMAIN)
    # A priority queue may lie in memory in several ways, which nobody sees.
    heaps = "queue" in operator.program.attributes
    assert whole.closed, seed
    assert whole.states == len(searched.streams) or (heaps and whole.states > 0), seed
    return True


@pytest.mark.parametrize("first", [0, 100])
def test_verdicts_and_lengths_are_those_of_a_search_by_hand(first: int) -> None:
    assert sum(map(compare, range(first, first + share_of(18)))) > 1


@pytest.mark.parametrize("seed", [1133, 1165])
def test_a_trap_of_which_a_shorter_stream_comes_to_light_later(seed: int) -> None:
    assert compare(seed)


@pytest.mark.long
@pytest.mark.parametrize("first", range(1000, 1400, 20))
def test_of_many_operators(first: int) -> None:
    assert sum(map(compare, range(first, first + 20))) > 5


# ---- states as bytes, of every operator of the corpus ----


def cases() -> list[Any]:
    for one in pkgutil.iter_modules(corpus.__path__):
        importlib.import_module(f"corpus.{one.name}")
    return [one for one in CASES if not one.pending and not one.defect]


def domain_of(operator: Any, table: pa.Table, rows: list[int], steps: tuple[int, ...]) -> Domain:
    found = Domain.__new__(Domain)
    found.operator, found.steps = operator, steps
    several = table.take(rows).combine_chunks()
    found.values = event_values(operator, several, None)
    return found


def walk(operator: Any, table: pa.Table, events: int) -> None:
    """Random events, each from the state as bytes, beside the sequential run of all of them."""
    rng = random.Random(operator.name)
    rows = [rng.randrange(table.num_rows) for _ in range(12)]
    steps = (0, 1, 1000) if operator.program.reads_timestamp else (0,)
    domain = domain_of(operator, table, rows, steps)
    of, other = (Transitions(operator, domain, frozenset()) for _ in range(2))
    state, stream, emitted, errors = of.start, [], [], 0
    for _ in range(events):
        for _ in range(2):  # what an event does not, and one after it does
            at = rng.randrange(len(of))
            of.load(state)
            outcome = of.step(at)
        other.load(state)
        assert other.step(at) == outcome
        assert of.step(at) == outcome  # it is back in the state that it was in
        stream.append(at)
        state = outcome.after
        emitted += of.rows(outcome)
        errors += outcome.fails
    whole = domain.table(stream)
    run = operator.run_sequential(whole.table, on_error="skip", order_by=whole.order_by)
    failed = [one for row, one in run.raised if row is not None]
    assert (errors, len(emitted)) == (len(failed), run.output.num_rows)
    assert repr([vars(one)["_values"] for one in emitted]) == repr(run.output.to_pylist())
    seen = of.seen(state)
    expected = plain_state(operator, run.state)
    for one in operator.layout.fields:
        is_timed = one.container is not None and one.is_timers
        if one.space == "state" and not is_timed:
            assert repr(getattr(seen, one.name)) == repr(getattr(expected, one.name)), one.name


@pytest.mark.parametrize("part", range(4))
def test_any_operator_runs_from_any_state(part: int) -> None:
    ran = 0
    for one in cases()[part::4]:
        table = one.stream(np.random.default_rng(one.number))
        try:
            walk(one.operator, table, share_of(60, 4))
        except NotModelled:  # it draws
            continue
        ran += 1
    assert ran > 10


@pytest.mark.parametrize("part", range(4))
def test_interpreted_ones_do_as_well(part: int) -> None:
    ran = 0
    for one in cases()[part::4]:
        table = one.stream(np.random.default_rng(one.number))
        try:
            operator = ss.operator(**one.options, interpreted=True)(one.function)
        except ss.SpecstreamError:  # a field has operations, which are compiled
            continue
        try:
            walk(operator, table, share_of(40, 4))
        except NotModelled:
            continue
        ran += 1
    assert ran > 10


# ---- time ----


class Visits(ss.State):
    counts = ss.dict(str, int, expire_after=5)
    waiting = ss.timers(str)
    rung = ss.scalar(int)


def ring(state, timer, emit):
    if state.rung == 2:
        raise ValueError("rung too often")
    state.rung += 1
    emit(timer.key)


@ss.operator(state=Visits, event={"user": str}, emits={"user": str}, on_timer=ring, time_unit="us")
def visits(state, event, emit):
    state.counts[event.user] = min(state.counts.get(event.user, 0) + 1, 2)
    if state.counts[event.user] == 2 and event.user not in state.waiting:
        state.waiting.set(event.user, event.timestamp + 3)


def table_of(verdict: Any) -> pa.Table:
    return verdict.table.table


def one_at_a_time(state):
    return len(state.waiting) < 2


def never_rings(rows):
    return len(rows) == 0


def test_timers_fire_and_entries_expire_between_events() -> None:
    """By hand: two visits of each of two users at once; a timer needs two visits and a step."""
    asked: dict[str, Any] = {"domain": {"user": ["a", "b"]}, "time_steps": (0, 3), "events": 7}
    report = ss.verify.check(visits, always=one_at_a_time, each=never_rings, **asked)
    several, rings = report.verdicts
    assert (several.said, several.events) == ("refuted", 4)
    assert sorted(table_of(several)["user"].to_pylist()) == ["a", "a", "b", "b"]
    assert (rings.said, rings.events) == ("refuted", 3)
    assert np.diff(table_of(rings)["time"].to_numpy()).tolist() == [0, 3]
    assert not report.closed  # it stopped when all was answered


def test_a_time_that_is_kept_is_read() -> None:
    @ss.operator(state=Visits, event={"user": str}, emits={"user": str}, on_timer=ring)
    def keeps(state, event, emit):
        state.rung = event.timestamp
        state.waiting.set(event.user, event.timestamp + state.rung)

    def again(state, timer, emit):
        state.waiting.set(timer.key, timer.at + 5 - 1)

    @ss.operator(state=Visits, event={"user": str}, emits={}, on_timer=again)
    def sets(state, event, emit):
        state.waiting.set(event.user, event.timestamp + state.rung)

    assert "timestamp" in read_by_operator(keeps)
    assert "timestamp" not in read_by_operator(sets)
    report = ss.verify.check(sets, domain={"user": ["a", "b"]}, time_steps=(0, 1))
    assert report.closed


def test_timers_that_raise_have_fired() -> None:
    """The third one raises; the event that lets it fire is run all the same."""
    report = ss.verify.check(
        visits, domain={"user": ["a"]}, time_steps=(0, 3), always=lambda state: state.rung < 3
    )
    (verdict,) = report.verdicts
    assert (verdict.said, report.closed) == ("proved", True)


class Ages(ss.State):
    last = ss.dict(int, int, expire_after=4)


@ss.operator(state=Ages, event={"k": int}, emits={"n": int})
def recent(state, event, emit):
    state.last[event.k] = 1
    emit(len(state.last))


def test_states_hold_times_relative_to_now() -> None:
    """What is written now is 0 ago, the other key 1 to 3 ago, or gone; and either came first."""
    report = ss.verify.check(
        recent, domain={"k": [0, 1]}, time_steps=(1,), always=lambda state: len(state.last) < 3
    )
    assert (report.said, report.closed) == ("proved", True)
    assert report.states == 1 + 2 + 2 * 3 * 2


def test_what_reads_the_time_or_the_number_has_ever_new_states() -> None:
    @ss.operator(event={"k": int}, emits={"n": int})
    def third(event, emit):
        if event.sequence % 3 == 2:
            emit(event.k)

    report = ss.verify.check(third, domain={"k": [0]}, events=9, within=ss.verify.within(3))
    (verdict,) = report.verdicts
    assert (verdict.said, verdict.events) == ("holds", 9)
    assert "event.sequence is read" in verdict.reason
    (verdict,) = ss.verify.check(third, domain={"k": [0]}, within=ss.verify.within(2)).verdicts
    assert (verdict.said, verdict.events) == ("refuted", 2)


# ---- how far it goes ----


class Up(ss.State):
    n = ss.scalar(int)


@ss.operator(state=Up, event={"x": int}, emits={"n": int})
def up(state, event, emit):
    state.n += event.x
    if event.x == 2 and state.n > 40:
        raise ValueError("high")
    if state.n % 2 == 0:
        emit(state.n)


def test_streams_end_where_somebody_says() -> None:
    few: dict[str, Any] = {"domain": {"x": [1, 2]}, "always": lambda state: state.n < 10}
    (verdict,) = ss.verify.check(up, events=4, **few).verdicts
    assert (verdict.said, verdict.events) == ("holds", 4)
    (verdict,) = ss.verify.check(up, events=5, **few).verdicts
    assert (verdict.said, verdict.events) == ("refuted", 5)
    within = ss.verify.check(up, within_states=lambda state: state.n < 6, **few)
    (verdict,) = within.verdicts
    assert (verdict.said, verdict.events) == ("holds", 3)  # the third event may lead to 6
    assert (within.states, within.closed) == (8, False)
    (verdict,) = ss.verify.check(up, within_states=5, **few).verdicts
    assert (verdict.said, verdict.events) == ("holds", 2)


def test_without_a_question_there_are_exceptions_and_dead_lines() -> None:
    report = ss.verify.check(up, domain={"x": [0, 1]}, events=30)
    assert not report.findings
    (dead,) = report.unreached
    line = int(dead.removeprefix("line "))
    assert "raise" in linecache.getline(__file__, line)
    (found,) = ss.verify.check(up, domain={"x": [1, 2]}, events=30).findings
    assert (found.what, len(found.table), found.line) == ("raises ValueError", 21, line)


def test_an_event_that_raises_is_silent_and_stays() -> None:
    @ss.operator(state=Up, event={"x": int}, emits={"n": int})
    def fails(state, event, emit):
        state.n = 1 - state.n
        emit(state.n)
        if event.x == 1:
            raise ValueError("no")

    report = ss.verify.check(
        fails, domain={"x": [0, 1]}, within=ss.verify.within(5), can_always="rows"
    )
    late, live = report.verdicts
    assert (late.said, late.events) == ("refuted", 5)
    assert table_of(late)["x"].to_pylist() == [1] * 5
    assert (live.said, report.states) == ("proved", 2)


# ---- two operators ----


@ss.operator(event={"x": int}, emits={"y": int})
def at_once(event, emit):
    emit(event.x)


class Kept(ss.State):
    x = ss.list(int, limit=3)


@ss.operator(state=Kept, event={"x": int}, emits={"y": int})
def three_at_a_time(state, event, emit):
    state.x.append(event.x)
    if len(state.x) == 3:
        for one in state.x:
            emit(one)
        state.x.clear()


@ss.operator(state=Kept, event={"x": int}, emits={"y": int})
def with_a_defect(state, event, emit):
    state.x.append(event.x)
    if len(state.x) == 3:
        for one in state.x:
            emit(one if one != 1 or state.x[0] != 1 else 0)
        state.x.clear()


@ss.operator(event={"x": int}, emits={"y": int})
def refuses(event, emit):
    if event.x == 2:
        raise ValueError("no")
    emit(event.x)


@pytest.mark.parametrize("domain", [None, {"x": range(3)}])
def test_rows_one_after_the_other(domain: Any) -> None:
    def ask(new: Any, rows: Any) -> Any:
        return ss.verify.same(at_once, new, rows=rows, domain=domain, events=6).verdicts[0]

    assert ask(three_at_a_time, "stepwise").said == "refuted"
    found = ask(three_at_a_time, "sequence")
    assert found.said == ("holds" if domain is None else "proved"), found.reason
    found = ss.verify.same(
        three_at_a_time, at_once, rows="sequence", domain=domain, events=6
    ).verdicts[0]
    assert found.said == ("holds" if domain is None else "proved"), found.reason
    found = ask(with_a_defect, "sequence")
    assert (found.said, found.events) == ("refuted", 3)
    assert table_of(found)["x"].to_pylist()[0] == 1
    for rows in ("stepwise", "sequence"):  # what raises is no row, and counts
        found = ask(refuses, rows)
        assert (found.said, found.events) == ("refuted", 1)


@pytest.mark.parametrize("domain", [None, {"x": range(3)}])
def test_something_else_of_both(domain: Any) -> None:
    def no_more(old, new):
        return len(new) <= len(old)

    def not_two(event, old, new):
        return event.x != 2 or len(old) != len(new)

    def ask(each: Any) -> Any:
        found = ss.verify.same(at_once, at_once, each=each, domain=domain)
        return found.verdicts[0].said, found.verdicts[0].name, found.verdicts[0].events

    assert ask(no_more) == ("proved", "no_more", 0)
    assert ask(not_two) == ("refuted", "not_two", 1)
    with pytest.raises(ss.ConfigurationError, match="each=no_more is about the rows of one event"):
        ss.verify.same(at_once, at_once, each=no_more, rows="sequence", domain=domain)


# ---- several sources and sinks ----


def test_pipelines_with_several_sources() -> None:
    @ss.operator(inputs={"left": {"x": int}, "right": {"ok": bool}}, emits={"x": int}, name="gate")
    def gate(event, emit):
        if event.known("right") and event.right.ok and event.changed("left"):
            emit(event.left.x)

    p = ss.Pipeline("gated")
    numbers, doors = p.source("numbers", {"x": int}), p.source("doors", {"ok": bool})
    p.sink("out", p.add(gate, left=numbers, right=doors))
    domain = {"numbers": {"x": [1, 2]}, "doors": {"ok": [False, True]}}
    report = ss.verify.check(p, domain=domain, each=never_rings, can_always="rows")
    rows, live = report.verdicts
    assert (rows.said, rows.events) == ("refuted", 2)
    assert (live.said, report.closed) == ("proved", True)
    with pytest.raises(ss.ConfigurationError, match=r"expected the columns of each source"):
        ss.verify.check(p, domain={"x": [1]})


# ---- wrong questions ----


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"domain": {}}, "has no values of column 'x'; expected values of x"),
        ({"domain": {"x": [1], "y": [1]}}, "has 'y', which is no column; expected values of x"),
        ({"domain": {"x": [1.5]}}, "column 'x' is declared int and cannot be 1.5"),
        ({"domain": {"x": ["a"]}}, "column 'x' is declared int and cannot be 'a'"),
        ({"domain": {"x": [None]}}, "column 'x' is declared int and cannot be None"),
        ({"domain": {"x": [True]}}, "column 'x' is declared int and cannot be True"),
        ({"domain": {"x": []}}, "column 'x' has no value, and so there is no event"),
        ({"domain": {"x": 3}}, "column 'x': 3; expected its values"),
        ({"domain": {"x": itertools.count()}}, "expected at most 100,000"),
        ({"domain": [1]}, "expected the values of each column by its name"),
        ({"domain": {"x": [1]}, "time_steps": (1,)}, "'up' does not go by time; leave it out"),
        ({"domain": {"x": [1]}, "within_states": 0}, "within_states=0; expected"),
        ({"domain": {"x": [1]}, "assume": lambda event: event.x > 1}, "no event of domain= fits"),
        ({"can_always": "rows"}, "can_always= asks about all states of a finite domain"),
        ({"time_steps": (1,)}, "time_steps= asks about all states of a finite domain"),
        ({"domain": {"x": [1]}, "can_always": "row"}, "can_always="),
    ],
)
def test_wrong_questions_say_what_is_expected(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ss.ConfigurationError) as refused:
        ss.verify.check(up, **given, events=3 if "domain" in given else None)
    assert said in str(refused.value), str(refused.value)


def test_a_trigger_that_never_comes_is_a_wrong_question() -> None:
    with pytest.raises(ss.ConfigurationError, match="no event asks for an answer"):
        ss.verify.check(
            at_once, domain={"x": [1]}, within=ss.verify.within(2, lambda event: event.x == 2)
        )


def test_steps_of_time_are_asked_for() -> None:
    with pytest.raises(ss.ConfigurationError, match=r"as in time_steps=\(0, 1, 10\)"):
        ss.verify.check(visits, domain={"user": ["a"]})
    with pytest.raises(ss.ConfigurationError, match=r"time_steps=\(-1,\); expected ints from 0"):
        ss.verify.check(visits, domain={"user": ["a"]}, time_steps=(-1,))


def test_random_numbers_are_those_of_one_seed_only() -> None:
    @ss.operator(event={"x": int}, emits={"y": float})
    def draws(event, emit):
        emit(event.random(0))

    (verdict,) = ss.verify.check(draws, domain={"x": [1]}, each=never_rings).verdicts
    assert verdict.said == "undecided"
    assert "draws random numbers" in verdict.reason


# ---- what timers raise, what properties raise, what never ends ----


class Rings(ss.State):
    timers = ss.timers(int)


def raises_value(state, timer, emit):
    raise ValueError("a")


def raises_key(state, timer, emit):
    raise KeyError("a")


def is_silent(state, timer, emit):
    pass


def ringing(on_timer: Any, interpreted: bool = False) -> Any:
    def op(state, event, emit):
        state.timers.set(event.a, event.timestamp + 2)

    return ss.operator(
        state=Rings,
        event={"a": int},
        emits={"y": int},
        on_timer=on_timer,
        interpreted=interpreted,
    )(op)


@pytest.mark.parametrize("interpreted", [False, True])
def test_what_a_timer_raises_is_found_and_differs(interpreted: bool) -> None:
    asked: dict[str, Any] = {"domain": {"a": [0]}, "time_steps": (2,)}
    (found,) = ss.verify.check(ringing(raises_value, interpreted), **asked).findings
    assert (found.what, len(found.table)) == ("raises ValueError", 2)
    assert 'raise ValueError("a")' in linecache.getline(__file__, found.line)
    for other in (is_silent, raises_key):
        for rows in ("stepwise", "sequence"):
            report = ss.verify.same(
                ringing(raises_value, interpreted),
                ringing(other, interpreted),
                rows=rows,
                **asked,
            )
            assert (report.said, report.verdicts[0].events) == ("refuted", 2)
            assert "expected ValueError" in report.verdicts[0].expected


@pytest.mark.parametrize("domain", [None, {"x": [0, 1]}])
def test_a_property_that_raises_says_so(domain: Any) -> None:
    few: dict[str, Any] = {"domain": domain, "events": 2}
    (verdict,) = ss.verify.check(up, always=lambda state: 1 // state.n > 0, **few).verdicts
    assert (verdict.said, verdict.events) == ("refuted", 0)
    assert "raises ZeroDivisionError there" in verdict.reason
    with pytest.raises(ss.ConfigurationError, match=r"a row has no column 'q'; it has n"):
        ss.verify.check(up, each=lambda rows: len(rows) == 0 or rows[0].q > 0, **few)
    with pytest.raises(ss.ConfigurationError, match=r"the event has no column 'source'"):
        ss.verify.check(up, each=lambda event: event.source == 0, **few)


def test_rows_are_asked_by_their_columns() -> None:
    few: dict[str, Any] = {"domain": {"x": [0, 1]}, "events": 2}
    with pytest.raises(ss.ConfigurationError, match=r"its columns are attributes, like n"):
        ss.verify.check(up, each=lambda rows: len(rows) == 0 or rows[0]["n"] > 0, **few)
    with pytest.raises(ss.ConfigurationError, match=r"assume=|reads the time"):
        ss.verify.check(up, assume=lambda event: event.sequence < 3, **few)


@pytest.mark.parametrize("domain", [None, {"a": {"v": [0, 1]}, "b": {"w": [0, 1]}}])
def test_columns_of_sources_and_sinks_are_asked_for_by_both_names(domain: Any) -> None:
    @ss.operator(event={"v": int}, emits={"y": int}, name="twice")
    def twice(event, emit):
        emit(2 * event.v)

    @ss.operator(event={"w": int}, emits={"z": int}, name="less")
    def less(event, emit):
        emit(event.w - 1)

    p = ss.Pipeline("two")
    p.sink("f", p.add(twice, p.source("a", {"v": int})))
    p.sink("g", p.add(less, p.source("b", {"w": int})))

    def doubled(event, rows):
        return all(row.sink != "f" or row.f.y == 2 * event.a.v for row in rows)

    def no_zero(rows):
        return all(row.sink != "g" or row.g.z != 0 for row in rows)

    def few(event):
        return event.stream != "a" or (event.a.v >= 0 and event.a.v < 5)

    report = ss.verify.check(p, each=[doubled, no_zero], assume=few, domain=domain, events=2)
    first, second = report.verdicts
    assert first.said in ("proved", "undecided"), str(report)
    assert second.said in ("refuted", "undecided"), str(report)
    if domain is not None:
        assert [first.said, second.said, second.events] == ["proved", "refuted", 1]


def test_what_means_nothing_here_is_refused() -> None:
    for given, said in (
        ({"confirm": True, "domain": {"x": [1]}}, "confirm=True asks a second solver"),
        ({"time": "5"}, "time='5'; expected seconds above 0"),
        ({"effort": 0}, "effort=0; expected a number above 0"),
        ({"always": "inv"}, "always= is 'inv'"),
        ({"domain": {"x": [2**64]}}, "it has more bits"),
    ):
        with pytest.raises(ss.ConfigurationError) as refused:
            ss.verify.check(up, **given)
        assert said in str(refused.value)
    assert ss.verify.check(up, domain={"x": pa.array([1, 2])}, events=2).states == 5

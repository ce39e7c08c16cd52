"""Why a rule says what it says: proofs are sound, as small as can be, and read well."""

from __future__ import annotations

import datetime
import itertools
import json
import linecache
import pickle
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any
from xml.etree import ElementTree

import pyarrow as pa
import pytest
from support.daily import share_of
from support.proof_checker import Checker, core
from support.random_rules import EVENT, OPERATORS, Event, random_rule, random_trace
from support.verdicts import NAMES, verdicts

import specstream as ss
from specstream.declarations.schema import Schema
from specstream.rules import eventually, implies, once
from specstream.rules import formula as f
from specstream.rules.parse import Parsed, parsed
from specstream.rules.proofs import Node, Proof, proof_of

WORDS = {name: getattr(ss.rules, name) for name in (*OPERATORS, "implies")}
_numbers = itertools.count()


def function_of(text: str, names: dict[str, Any]) -> Any:
    """The function ``rule`` of a module, whose source can be read."""
    filename = f"<rule of a test {next(_numbers)}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    scope = {"__name__": "rules_of_tests", **names}
    exec(compile(text, filename, "exec"), scope)
    return scope["rule"]


def rule_of(text: str, event: Any, **options: Any) -> ss.rules.Rule:
    text = text if "def rule" in text else f"def rule(e):\n    return {text}\n"
    made: ss.rules.Rule = ss.rule(event=event, **options)(function_of(text, WORDS))
    return made


# Reads the tables of all rules about these columns.
READER = rule_of("e.p", EVENT)


def proof(read: Parsed, events: list[Event], at: int, at_end: str, key: str = "") -> Proof:
    keys = (key,) if key else ()
    return proof_of(READER, read.formula, read.names, keys, at_end, events, "time", at, None)


# A part may be open, and what is made of it not.
EITHER_WAY = [
    f"\ndef rule(e):\n    return {text}\n"
    for text in (
        "part(e) or not part(e)",
        "part(e) == part(e)",
        "(part(e) and e.p) or (not part(e) and e.q)",
        "implies(part(e), e.p) and implies(not part(e), once(lambda b: b.q))",
        "any(part(e) != e.p for n in (1, 2)) and next_event(part)",
    )
]


class Case:
    """A rule and a trace at random.

    Args:
        seed: of both.
        depth: of the rule, at most.
        length: of the trace.
    """

    def __init__(self, seed: int, depth: int, length: int) -> None:
        random = Random(seed)
        self.text = random_rule(random, 1 + seed % depth, captured=seed % 2 == 1)
        if seed % 5 == 0:
            self.text = self.text.replace("def rule(", "def part(") + random.choice(EITHER_WAY)
        self.events = random_trace(random, length)
        self.end = random.choice(("open", "closed"))
        columns = Schema.of(EVENT, "event")
        self.read = parsed("rule", function_of(self.text, WORDS), columns, lambda _, bound: bound)

    def checker(self, rows: list[int] | None = None) -> Checker:
        rows = list(range(len(self.events))) if rows is None else rows
        return Checker(self.read.names, [self.events[row] for row in rows], rows, self.end)

    def accepted(self, node: Node, rows: list[int] | None = None) -> bool:
        rows = list(range(len(self.events))) if rows is None else rows
        return self.checker(rows).accepts(node, {"v0": rows.index(node.event.row)})

    def expected(self, key: str | None = None) -> list[bool | None]:
        return verdicts(function_of(self.text, NAMES), self.events, at_end=self.end, key=key)


def cases(count: int, depth: int, length: int) -> Iterator[Case]:
    for seed in range(share_of(count)):
        yield Case(seed, depth, length)


def test_proofs_have_the_verdicts_of_the_definitions_and_follow() -> None:
    split = 0
    for case in cases(900, 4, 7):
        for at, verdict in enumerate(case.expected()):
            found = proof(case.read, case.events, at, case.end)
            assert found.verdict is verdict, case.text
            assert found.root.part in (case.read.formula, f.Not(core(case.read.formula)[0]))
            assert case.accepted(found.root), f"{case.text}\n{found}"
            assert json.loads(json.dumps(found.to_dict()))["verdict"] is verdict
            assert str(found).startswith(("true", "false", "open"))
            split += any(one.cases is not None for one in found.walk())
    assert split


def test_each_key_is_a_trace_of_its_own() -> None:
    for case in cases(60, 3, 9):
        for at, verdict in enumerate(case.expected("k")):
            k = case.events[at].k
            rows = [row for row, event in enumerate(case.events) if event.k == k]
            found = proof(case.read, case.events, at, case.end, "k")
            assert found.verdict is verdict, case.text
            assert {one.event.row for one in found.walk()} <= set(rows)
            assert case.accepted(found.root, rows), case.text


def tampered(node: Node) -> Iterator[Node]:
    """Proofs that say something else somewhere, or leave a step out."""
    if node.verdict is not None:
        yield replace(node, verdict=not node.verdict)
        if node.children:
            yield replace(node, verdict=None)
        for at in range(len(node.children)):
            yield replace(node, children=node.children[:at] + node.children[at + 1 :])
    for at, one in enumerate(node.children):
        for other in tampered(one):
            yield replace(node, children=(*node.children[:at], other, *node.children[at + 1 :]))


def test_the_checker_refuses_what_does_not_follow() -> None:
    count = 0
    for case in cases(120, 3, 5):
        for at in range(len(case.events)):
            found = proof(case.read, case.events, at, case.end)
            if found.verdict is None:
                continue
            for wrong in tampered(found.root):
                assert not case.accepted(wrong), f"{case.text}\n{found}\n{wrong.to_dict()}"
                count += 1
    assert count > 1000


class Smallest:
    """The size of the smallest proof, by trying all sets of steps from which something could
    follow; only the checker knows whether it does."""

    def __init__(self, checker: Checker) -> None:
        self.checker = checker
        self.known: dict[Any, int | None] = {}

    def size(
        self, part: Any, verdict: bool, env: dict[str, Any], row: int, supposed: Any = ()
    ) -> int | None:
        part, way = core(part)
        verdict = verdict is way
        asked = id(part), verdict, row, self.checker.told(part, env), supposed
        if asked not in self.known:
            self.known[asked] = self.found(part, verdict, env, row, dict(supposed))
        return self.known[asked]

    def found(
        self, part: Any, verdict: bool, env: dict[str, Any], row: int, supposed: Any
    ) -> int | None:
        told = part, self.checker.told(part, env)
        if told in supposed:
            return 1 if supposed[told] is verdict else None
        own = () if isinstance(part, f.Temporal) else tuple(supposed.items())
        steps = []
        for one, inside, at in self.below(part, env, row):
            one, _ = core(one)
            for way in (True, False):
                size = self.size(one, way, inside, at, own)
                if size is not None:
                    claim = one, self.checker.told(one, inside), at
                    steps.append((size, claim, way))
        sizes = []
        if self.follows(part, verdict, env, row, steps):
            sets = [
                (sum(size for size, _, _ in some), some)
                for count in range(len(steps) + 1)
                for some in itertools.combinations(steps, count)
            ]
            in_order = sorted(sets, key=lambda one: one[0])
            sizes.append(
                next(
                    1 + size
                    for size, some in in_order
                    if self.follows(part, verdict, env, row, some)
                )
            )
        if not isinstance(part, f.Temporal | f.Atom):
            sizes += self.by_cases(part, verdict, env, row, supposed)
        return min(sizes, default=None)

    def follows(self, part: Any, verdict: bool, env: dict[str, Any], row: int, steps: Any) -> bool:
        claims = {claim: way for _, claim, way in steps}
        return self.checker.follows(part, env, row, claims) is verdict

    def below(self, part: Any, env: dict[str, Any], row: int) -> Iterator[Any]:
        """All parts that a step about one may be followed from."""
        match part:
            case f.Temporal():
                for one, j in itertools.product(part.parts, range(len(self.checker.events))):
                    yield one, {**env, f.variable(part.depth): j}, self.checker.rows[j]
            case f.Quantifier():
                for value in self.checker.run(part.domain, env):
                    yield part.part, {**env, part.variable: value}, row
            case f.Not(part=f.Atom()):
                return
            case _:
                for one in f.parts(part):
                    yield one, env, row

    def open_parts(self, part: Any, env: dict[str, Any], row: int) -> Iterator[tuple[Any, str]]:
        if isinstance(part, f.Temporal):
            if all(self.size(part, way, env, row) is None for way in (True, False)):
                yield part, self.checker.told(part, env)
            return
        for below in self.below(part, env, row):
            yield from self.open_parts(*below)

    def by_cases(
        self, part: Any, verdict: bool, env: dict[str, Any], row: int, supposed: Any
    ) -> Iterator[int]:
        for told in set(self.open_parts(part, env, row)) - set(supposed):
            both = [
                self.size(part, verdict, env, row, tuple({**supposed, told: way}.items()))
                for way in (True, False)
            ]
            if None not in both:
                yield 1 + sum(size for size in both if size is not None)


@pytest.mark.parametrize(
    ("count", "depth", "length"),
    [(500, 3, 4), (120, 2, 6), pytest.param(9000, 3, 5, marks=pytest.mark.long)],
)
def test_proofs_are_the_smallest(count: int, depth: int, length: int) -> None:
    for case in cases(count, depth, length):
        smallest = Smallest(case.checker())
        for at in range(length):
            found = proof(case.read, case.events, at, case.end)
            sizes = {
                way: smallest.size(found.root.part, way, {"v0": at}, at) for way in (True, False)
            }
            expected = {way: found.size if found.verdict is way else None for way in (True, False)}
            assert sizes == expected, f"{case.text}\n{found}"


# ---- how they read ----


def trace(text: str) -> list[dict[str, Any]]:
    """``a b7 c``: events one after another, from time 0, or at a time of their own."""
    events: list[dict[str, Any]] = []
    for word in text.split():
        time = events[-1]["time"] + 1 if events else 0
        events.append({"what": word[0], "time": int(word[1:] or time)})
    return events


HELPERS = """
def a(e):
    return e.what == "a"

def b(e):
    return e.what == "b"

def rule(e):
    return """

EXAMPLES = {
    "implies(a(e), eventually(b, within=3)) | c a b | 0 | open": """
true at row 0 (time=0, what='c'): implies(a(e), eventually(b, within=3)): which asks nothing of \
this event
  a(e): false
""",
    "once(b, within=2) | b a6 | 1 | open": """
false at row 1 (time=6, what='a'): once(b, within=2): only row 1 lies from time 4 to 6; row 0 \
would, at time 0
  row 1 itself: e.what == 'b': false
""",
    "a(e) | a b | 0 | open": """
true at row 0 (time=0, what='a'): a(e)
""",
    "once(b) | a b a | 2 | open": """
true at row 2 (time=2, what='a'): once(b)
  row 1 (time=1, what='b'): e.what == 'b': true
""",
    "once(b) | a c a b | 2 | open": """
false at row 2 (time=2, what='a'): once(b): none of rows 0 to 2 does
  rows 0 to 2: e.what == 'b': false
""",
    "historically(a, within=2) | b a3 a a | 3 | open": """
true at row 3 (time=5, what='a'): historically(a, within=2): all of rows 1 to 3 do, from time 3 to 5
  rows 1 to 3: e.what == 'a': true
""",
    "not once(b) | a c b a | 3 | open": """
false at row 3 (time=3, what='a'): not once(b)
  once(b): true
    row 2 (time=2, what='b'): e.what == 'b': true
""",
    "implies(a(e), eventually(b, within=3)) | a c c b9 | 0 | open": """
false at row 0 (time=0, what='a'): implies(a(e), eventually(b, within=3))
  a(e): true
  eventually(b, within=3): false, none of rows 0 to 2 does, from time 0 to 3; row 3 would, at time 9
    rows 0 to 2: e.what == 'b': false
""",
    "implies(a(e), eventually(b)) | a c | 0 | open": """
open at row 0 (time=0, what='a'): implies(a(e), eventually(b))
  eventually(b): open, an event to come may do
""",
    "implies(a(e), eventually(b)) | a c | 0 | closed": """
false at row 0 (time=0, what='a'): implies(a(e), eventually(b))
  a(e): true
  eventually(b): false, none of rows 0 and 1 does
    rows 0 and 1: e.what == 'b': false
""",
    "always(lambda x: implies(a(x), next_event(b))) | a b a c | 0 | open": """
false at row 0 (time=0, what='a'): always(lambda x: implies(a(x), next_event(b)))
  row 2 (time=2, what='a'): implies(a(x), next_event(b)): false
    a(x): true
    next_event(b): false
      row 3 (time=3, what='c'): e.what == 'b': false
""",
    "since(a, b) | b a c a a | 4 | open": """
false at row 4 (time=4, what='a'): since(a, b)
  rows 2 to 4: e.what == 'b': false
  row 2 (time=2, what='c'): e.what == 'a': false, which ends it
""",
    "since(a, b) | c b a a | 3 | open": """
true at row 3 (time=3, what='a'): since(a, b)
  row 1 (time=1, what='b'): e.what == 'b': true
  rows 2 and 3: e.what == 'a': true
""",
    "until(a, b) | a a c b | 0 | open": """
false at row 0 (time=0, what='a'): until(a, b)
  rows 0 to 2: e.what == 'b': false
  row 2 (time=2, what='c'): e.what == 'a': false, which ends it
""",
    "unless(a, b) | a a | 0 | closed": """
true at row 0 (time=0, what='a'): unless(a, b)
  rows 0 and 1: e.what == 'a': true
""",
    "next_event(a, 2) and previous_event(b) | a b a | 1 | closed": """
false at row 1 (time=1, what='b'): next_event(a, 2) and previous_event(b)
  next_event(a, 2): false, there are fewer than 2 events after it
""",
    "eventually(b) or not eventually(b) | a a | 0 | open": """
true at row 0 (time=0, what='a'): eventually(b) or not eventually(b): whatever eventually(b) is
  if it is true:
    eventually(b): true, in this case
  if it is false:
    not eventually(b): true
      eventually(b): false, in this case
""",
    "any(once(lambda x: x.what == w) for w in ('b', 'c')) | a c a | 2 | open": """
true at row 2 (time=2, what='a'): any((once(lambda x: x.what == w) for w in ('b', 'c')))
  with w='c': once(lambda x: x.what == w): true
    row 1 (time=1, what='c'): x.what == w: true
""",
    "once(a) if a(e) else once(b) | a c | 1 | open": """
false at row 1 (time=1, what='c'): once(a) if a(e) else once(b)
  a(e): false
  once(b): false, none of rows 0 and 1 does
    rows 0 and 1: e.what == 'b': false
""",
    "once(a) == once(b) | c a | 1 | open": """
false at row 1 (time=1, what='a'): once(a) == once(b)
  once(a): true
    row 1 itself: e.what == 'a': true
  once(b): false, none of rows 0 and 1 does
    rows 0 and 1: e.what == 'b': false
""",
    "once(lambda x: a(x) and next_event(b)) | b c a a c | 4 | open": """
false at row 4 (time=4, what='c'): once(lambda x: a(x) and next_event(b)): none of rows 0 to 4 does
  rows 0 and 1: a(x) and next_event(b): false
    a(x): false
  row 2 (time=2, what='a'): a(x) and next_event(b): false
    next_event(b): false
      row 3 (time=3, what='a'): e.what == 'b': false
  row 3 (time=3, what='a'): a(x) and next_event(b): false
    next_event(b): false
      row 4 (time=4, what='c'): e.what == 'b': false
  row 4 itself: a(x) and next_event(b): false
    a(x): false
""",
}


@pytest.mark.parametrize("example", EXAMPLES)
def test_a_proof_reads_well(example: str) -> None:
    text, events, at, at_end = (part.strip() for part in example.split("|"))
    rule = rule_of(HELPERS + text, {"what": str}, at_end=at_end)
    found = rule.why(trace(events), order_by="time", at=int(at))
    assert str(found).splitlines() == EXAMPLES[example].strip("\n").splitlines()


@ss.rule(event={"what": str, "payment": str, "by": str, "amount": float})
def four_eyes(e: Any) -> Any:
    return implies(
        e.what == "release" and e.amount > 10_000,
        once(
            lambda x: x.what == "approve" and x.payment == e.payment and x.by != e.by,
            within="7 days",
        ),
    )


@ss.rule(event={"order": str, "kind": str}, key="order")
def paid_in_time(e: Any) -> Any:
    return implies(e.kind == "placed", eventually(lambda x: x.kind == "paid", within=30))


MARCH = datetime.datetime(2026, 3, 1)
PAYMENTS = [
    {"what": what, "payment": "p1", "by": by, "amount": 2e4, "at": MARCH + datetime.timedelta(days)}
    for days, what, by in [
        (0, "approve", "bob"),
        (1, "note", "eve"),
        (2, "note", "eve"),
        (6, "approve", "ann"),
        (8, "release", "ann"),
    ]
]
ORDERS = {
    "order": ["a", "b", "b", "a", "b"],
    "kind": ["placed", "placed", "paid", "paid", "placed"],
    "time": [0, 5, 35, 40, 40],
}


def test_two_events_compared() -> None:
    found = four_eyes.why(PAYMENTS, order_by="at", at=4)
    assert str(found).splitlines()[1:] == [
        "  e.what == 'release' and e.amount > 10000: true",
        "    e.what == 'release': true",
        "    e.amount > 10000: true",
        "  once(lambda x: x.what == 'approve' and x.payment == e.payment and (x.by != e.by), "
        "within='7 days'): false, none of rows 1 to 4 does, from time 2026-03-02 00:00:00 to "
        "2026-03-09 00:00:00; row 0 would, at time 2026-03-01 00:00:00",
        "    rows 1 and 2: "
        "x.what == 'approve' and x.payment == e.payment and (x.by != e.by): false",
        "      x.what == 'approve': false",
        "    row 3 (at=2026-03-07 00:00:00, what='approve', payment='p1', by='ann', "
        "amount=20000.0): x.what == 'approve' and x.payment == e.payment and (x.by != e.by): false",
        "      x.by != e.by: false ('ann' and 'ann')",
        "    row 4 itself: "
        "x.what == 'approve' and x.payment == e.payment and (x.by != e.by): false",
        "      x.what == 'approve': false",
    ]
    assert found.event.time == MARCH + datetime.timedelta(8)
    assert found.event.columns["by"] == "ann"
    assert repr(found) == "Proof(rule 'four_eyes' is false at row 4, 13 steps)"


def test_an_event_by_its_time_and_key() -> None:
    by_row = paid_in_time.why(ORDERS, order_by="time", at=1)
    assert str(paid_in_time.why(ORDERS, order_by="time", at=5, key="b")) == str(by_row)
    assert str(paid_in_time.why(ORDERS, order_by="time", at=5, key=("b",))) == str(by_row)
    last = MARCH + datetime.timedelta(8)
    assert four_eyes.why(PAYMENTS, order_by="at", at=last, key=()).event.row == 4
    # Rows of a rule that counts microseconds have them.
    (row,) = four_eyes.run_sequential(PAYMENTS, order_by="at").output.to_pylist()
    assert four_eyes.why(PAYMENTS, order_by="at", at=row["time"], key=()).event.row == 4


@pytest.mark.parametrize("kind", ["dict", "rows", "arrow", "pandas"])
def test_tables_of_all_kinds_in_any_order(kind: str) -> None:
    order = [4, 2, 0, 3, 1]
    table = pa.table(ORDERS).take(order)
    given = {
        "dict": table.to_pydict(),
        "rows": table.to_pylist(),
        "arrow": table,
        "pandas": table.to_pandas(),
    }[kind]
    for row, place in enumerate(order):
        found = paid_in_time.why(given, order_by="time", at=row)
        same = paid_in_time.why(ORDERS, order_by="time", at=place)
        assert (found.verdict, found.size) == (same.verdict, same.size)
        assert found.event.row == row
        assert found.event.columns == same.event.columns


def test_the_verdicts_are_those_of_the_operator() -> None:
    rows = paid_in_time.run_sequential(ORDERS, order_by="time", end=True).output.to_pylist()
    times = [(row["order"], row["time"]) for row in rows]
    found = [paid_in_time.why(ORDERS, order_by="time", at=row) for row in range(5)]
    said = [(one.event.columns["order"], one.event.time) for one in found if one.verdict is False]
    assert said == times


def test_values_of_quantifiers_are_shown() -> None:
    rule = rule_of(
        "all(eventually(lambda x: x.n == k * m) for k in range(e.n) for m in (1, 2))", {"n": int}
    )
    found = rule.why({"n": [2, 0, 2]}, at=0)
    assert str(found).splitlines()[1:] == [
        "  with k=1, m=1: eventually(lambda x: x.n == k * m): open, an event to come may do"
    ]
    assert found.root.children[0].to_dict()["where"] == {"k": 1}
    closed = rule.why({"n": [2, 0, 1]}, at=0)
    assert str(closed).splitlines()[3:5] == [
        "  with k=0, m=2: eventually(lambda x: x.n == k * m): true",
        "    row 1 (n=0): x.n == k * m: true",
    ]


def test_an_event_at_which_a_condition_raises_did_not_come() -> None:
    rule = rule_of("once(lambda x: 10 // x.n > 3)", {"n": int})
    found = rule.why({"n": [20, 0, 10]}, at=2)
    assert found.verdict is False
    assert set(found.failed) == {1}
    assert str(found).endswith(
        "row 1 raised ZeroDivisionError and does not count: integer division or modulo by zero"
    )
    with pytest.raises(ZeroDivisionError) as raised:
        rule.why({"n": [20, 0, 10]}, at=1)
    assert raised.value.__notes__ == ["raised by rule 'rule' at row 1, so that it has no verdict"]


def test_what_stands_behind_a_part_that_decides_is_not_looked_at() -> None:
    rule = rule_of("once(lambda x: x.n != 0 and 10 // x.n > 3)", {"n": int})
    assert rule.why({"n": [20, 0]}, at=1).verdict is False
    guarded = rule_of("once(lambda x: x.n > 9) and 10 // e.n > 0", {"n": int})
    assert guarded.why({"n": [1, 0]}, at=1).verdict is False


def test_nulls_are_none() -> None:
    rule = rule_of("once(lambda x: x.n is None) and e.n is not None", {"n": ss.nullable(int)})
    assert [rule.why({"n": [1, None, 2]}, at=at).verdict for at in range(3)] == [False, False, True]


def test_a_proof_as_json_has_all_of_it() -> None:
    found = four_eyes.why(PAYMENTS, order_by="at", at=4).to_dict()
    assert found["rule"] == "four_eyes"
    top = found["proof"]
    assert top["time"] == "2026-03-09T00:00:00"
    assert top["columns"]["amount"] == 2e4
    assert [one["verdict"] for one in top["children"]] == [True, False]
    assert [one["row"] for one in top["children"][1]["children"]] == [1, 2, 3, 4]
    json.dumps(found)


def test_a_proof_as_picture_and_in_a_notebook(tmp_path: Path) -> None:
    found = four_eyes.why(PAYMENTS, order_by="at", at=4)
    found.draw(tmp_path / "why.svg")
    picture = ElementTree.parse(tmp_path / "why.svg").getroot()
    marks = [one for one in picture.iter() if one.tag.endswith("circle")]
    assert len(marks) == len({(one.formula, one.event.row) for one in found.walk()})
    shown = ElementTree.fromstring(f"<div>{found._repr_html_()}</div>")
    texts = [(one.text or "").strip() for one in shown.iter("li")]
    assert texts == [line.strip() for line in str(found).splitlines()]
    with pytest.raises(ss.ConfigurationError, match=r"draw: path='why.png'; expected a name"):
        found.draw("why.png")


def test_events_without_times_stand_side_by_side() -> None:
    rule = rule_of("previous_event(lambda x: x.n == 1)", {"n": int})
    found = rule.why({"n": [1, 2]}, at=1)
    assert found.order_by is None
    assert "row 1 (n=2): previous_event" in str(found)
    ElementTree.fromstring(found.svg())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"at": 5}, "at=5; expected an integer from 0 to 4"),
        ({"at": "x"}, "at='x'; expected an integer"),
        ({"at": MARCH}, "is a time; expected the number of a row"),
        ({"at": 0, "order_by": None}, 'order_by="time"'),
        ({"at": 5, "key": "c"}, "key='c' is the key of no row"),
        ({"at": 6, "key": "b"}, "is the time of no row with this key; expected one of 5, 35, 40"),
        ({"at": 5, "key": ("b", 1)}, "expected a value for each of order"),
    ],
)
def test_an_event_that_is_not_there_is_refused(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ss.ConfigurationError) as raised:
        paid_in_time.why(ORDERS, **{"order_by": "time", **options})
    assert said in str(raised.value)


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(ss.InputError, match="has no column 'kind'"):
        paid_in_time.why({"order": ["a"], "time": [0]}, order_by="time", at=0)
    with pytest.raises(ss.InputError, match="has no column 'when'"):
        paid_in_time.why(ORDERS, order_by="when", at=0)
    with pytest.raises(ss.ConfigurationError, match="a table without rows"):
        paid_in_time.why({"order": [], "kind": [], "time": []}, order_by="time", at=0)
    twice = {"order": ["a", "a"], "kind": ["placed", "paid"], "time": [0, 0]}
    with pytest.raises(ss.ConfigurationError, match="is the time of rows 0, 1 with this key"):
        paid_in_time.why(twice, order_by="time", at=0, key="a")
    with pytest.raises(ss.ConfigurationError, match="has been pickled"):
        pickle.loads(pickle.dumps(paid_in_time)).why(ORDERS, order_by="time", at=0)


def test_a_long_trace_is_read_at_once() -> None:
    count = 20_000
    rule = rule_of("historically(lambda x: x.n >= 0)", {"n": int})
    found = rule.why({"n": list(range(count))}, at=count - 1)
    assert found.size == count + 1
    assert str(found).splitlines()[1:] == ["  rows 0 to 19999: x.n >= 0: true"]
    mixed = rule_of("once(lambda x: x.n % 2 == 0 and x.n < 0)", {"n": int})
    found = mixed.why({"n": list(range(count))}, at=count - 1)
    assert [line.strip().split(": ")[0] for line in str(found).splitlines()[1:]] == [
        *("10,000 events of rows 0 to 19998", "x.n < 0"),
        *("10,000 events of rows 1 to 19999", "x.n % 2 == 0"),
    ]

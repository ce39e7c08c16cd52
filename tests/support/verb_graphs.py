"""Random pipelines of verbs, and the same graph for the model."""

# Functions given to verbs carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import specstream as ss
from support.verbs_model import ANY, OTHERWISE, Node

__all__ = ["EVENT", "Graph", "events_of", "graph"]

EVENT = {"k": ss.nullable(str), "v": int, "n": ss.nullable(int), "b": ss.nullable(bool)}
FULL, VALUES, TRUTH = "full", "values", "truth"
VERBS = [
    *("map", "map_full", "truth", "with_columns", "filter", "accumulate", "pair", "skip", "take"),
    *("every", "every_last", "period", "freeze", "last", "start_with", "zip_map", "zip3"),
    *("zip_filter", "filter_by", "merge", "window", "across", "keyed", "machine", "always"),
    *("eventually", "until", "both", "either", "implies", "negated"),
]
N, B = ss.nullable(int), ss.nullable(bool)


class Total(ss.Record):
    sum: int = 0
    count: int = 0


class Bag:
    """A record of the model."""

    def __init__(self) -> None:
        self.sum, self.count = 0, 0


@dataclass
class Known:
    """A stream of both, with the kind of its columns."""

    stream: Any
    kind: str


@dataclass
class Graph:
    """A pipeline and the nodes of the model."""

    pipeline: Any
    sources: list[str]
    nodes: list[Node] = field(default_factory=list)

    def ordered(self) -> list[Node]:
        """The nodes in the order of the vertices' numbers."""
        place = {one.name: at for at, one in enumerate(self.pipeline.describe().vertices)}
        return sorted(self.nodes, key=lambda node: place[node.name])


# ---- functions, each made anew with its numbers ----


def value_of(a, b):
    return lambda e: (e.v * a + b) % 97


def full_of(a):
    return lambda e: (
        "c" if e.v % 3 == 0 else e.k,
        e.v * a % 89,
        e.n,
        None if e.v % 4 == 1 else e.b,
    )


def full_of_value(a):
    return lambda e: (
        "a" if e.v % 3 == 0 else ("b" if e.v % 3 == 1 else None),
        (e.v + a) % 71,
        None if e.v % 2 == 0 else e.v,
        None if e.v % 5 == 0 else e.v % 2 == 1,
    )


def full_of_key(a):
    """Likewise, without the key, which is there."""
    return lambda e: (
        (e.v + a) % 71,
        None if e.v % 2 == 0 else e.v,
        None if e.v % 5 == 0 else e.v % 2 == 1,
    )


def truth_of(a):
    return lambda e: None if e.v % 7 == a else e.v % 2 == 0


def remainder_is(m, r):
    return lambda e: e.v % m == r


def sum_of(m):
    return lambda total, e: (total + e.v) % m


def pair_of(m):
    return lambda row, e: ((row.v + e.v) % m, row.v if e.v % 2 == 0 else None)


def joined_of(a):
    return lambda one, other: (one.v * a + other.v) % 83


def joined_of_three(a):
    return lambda one, other, third: (one.v * a + other.v - third.v) % 83


def is_less(a):
    return lambda one, other: one.v % a <= other.v % a


def last_sum(m):
    return lambda rows: sum(row.v for row in rows) % m


def last_odd(m):
    return lambda rows: None if rows[0].v % 2 == 0 else (rows[0].v * 3 + rows[-1].v) % m


def add(total, row):
    total.sum += row.v
    total.count += 1


def remove(total, row):
    total.sum -= row.v
    total.count -= 1


def sum_and_count(total):
    return (total.sum * 3 + total.count) % 101


def counted(m):
    def step(total, event):
        total.count += 1
        total.sum = (total.sum + event.v) % 79
        return None if total.count % m == 1 else total.sum

    return step


def bumped(total, event):
    total.count += 1
    total.sum = (total.sum + event.v) % 67


def guard_of(m, r):
    return lambda total, event: (event.v + total.count) % m == r


def shown(total):
    return total.sum * 2 + total.count


# ---- graphs ----


class _Making:
    def __init__(self, rng: random.Random, pipeline: Any, graph: Graph) -> None:
        self.rng, self.p, self.graph = rng, pipeline, graph
        self.known: list[Known] = []
        self.count = 0

    def some(self, *kinds: str, alone: bool = False) -> Known | None:
        fit = [one for one in self.known if one.kind in kinds and not (alone and one.stream.key)]
        # The later ones, so that graphs are deep as well.
        return self.rng.choice(fit[-4:] if self.rng.random() < 0.7 else fit) if fit else None

    def added(self, made: Any, kind: str, verb: str, inputs: Any, **options: Any) -> None:
        names = tuple(one.stream.name for one in inputs)
        self.graph.nodes.append(Node(made.name, verb, names, options))
        self.known.append(Known(made, kind))
        self.p.sink(f"of_{made.name}", made)

    def keyed(self, of: Known, *, forgets: bool = True) -> tuple[Any, dict[str, Any]]:
        """The stream, perhaps by its key, and the options of the model."""
        rng, stream = self.rng, of.stream
        if stream.key:
            return stream, {"key": stream.key}
        if of.kind != FULL or rng.random() < 0.6:
            return stream, {}
        options: dict[str, Any] = {}
        if rng.random() < 0.4:
            options["to_all"] = remainder_is(5, rng.randrange(5))
        if forgets and rng.random() < 0.4:
            options["forget"] = remainder_is(6, rng.randrange(6))
        return stream.by("k", **options), {"key": ("k",), **options}

    def name(self) -> str:
        self.count += 1
        return f"n{self.count}"

    def step(self) -> None:
        rng = self.rng
        verb = rng.choice(VERBS)
        getattr(self, f"do_{verb}", self.plain)(verb)

    # ---- verbs of one stream ----

    def plain(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        rng, name = self.rng, self.name()
        if verb in ("last", "every_last") and self.has_spoken(of.stream.name):
            return self.do_filter(verb)
        if verb == "last":
            stream, options = self.keyed(of, forgets=False)
        else:
            stream, options = self.keyed(of)
        if verb in ("skip", "take"):
            n = rng.randrange(4)
            made, options = getattr(stream, verb)(n, name=name), {**options, "n": n}
        elif verb in ("every", "every_last"):
            n = rng.randint(1, 4)
            keeps = verb == "every_last"
            made = stream.every(n, last=keeps, name=name)
            verb, options = "every", {**options, "n": n, "last": keeps}
        elif verb == "period":
            n = rng.randint(1, 9)
            made = stream.every(f"{n} us", name=name)
            verb, options = "every", {**options, "period": n}
        elif verb == "start_with":
            given: dict[str, Any] = {"v": 5, "n": None, "b": True, "k": "z", "m": 3}
            row = {one: given[one] for one in stream.columns.names if one not in stream.key}
            times = rng.randrange(3)
            made = stream.start_with(row, times=times, name=name)
            options = {**options, "row": row, "times": times}
        else:
            made = getattr(stream, verb)(name=name)
        return self.added(made, of.kind, verb, [of], **options)

    def has_spoken(self, name: str) -> bool:
        """Whether something on the way to a stream sends rows at the end."""
        node = next((one for one in self.graph.nodes if one.name == name), None)
        if node is None:
            return False
        speaks = node.verb == "last" or bool(node.options.get("last"))
        return speaks or any(map(self.has_spoken, node.inputs))

    def do_filter(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        stream, options = self.keyed(of)
        f = remainder_is(self.rng.randint(2, 3), self.rng.randrange(2))
        self.added(stream.filter(f, name=self.name()), of.kind, "filter", [of], f=f, **options)

    def do_map(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        stream, options = self.keyed(of)
        f = value_of(self.rng.randint(1, 9), self.rng.randrange(9))
        made = stream.map(f, v=int, name=self.name())
        self.added(made, VALUES, "map", [of], f=f, columns=("v",), **options)

    def do_map_full(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        columns = {"k": ss.nullable(str), "v": int, "n": N, "b": B}
        if of.stream.key:
            f: Any = full_of_key(self.rng.randrange(9))
            del columns["k"]
        elif of.kind == FULL:
            f = full_of(self.rng.randint(1, 5))
        else:
            f = full_of_value(self.rng.randrange(9))
        key = {"key": of.stream.key} if of.stream.key else {}
        made = of.stream.map(f, emits=columns, name=self.name())
        self.added(made, FULL, "map", [of], f=f, columns=tuple(columns), **key)

    def do_truth(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        f = truth_of(self.rng.randrange(9))
        made = of.stream.map(f, value=B, name=self.name())
        key = {"key": of.stream.key} if of.stream.key else {}
        self.added(made, TRUTH, "map", [of], f=f, columns=("value",), **key)

    def do_with_columns(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        stream, options = self.keyed(of)
        f = value_of(self.rng.randint(1, 9), self.rng.randrange(9))
        made = stream.with_columns(f, v=int, name=self.name())
        self.added(made, of.kind, "with_columns", [of], f=f, columns=("v",), **options)

    def do_accumulate(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        stream, options = self.keyed(of)
        f, start = sum_of(self.rng.randint(5, 99)), self.rng.randrange(5)
        made = stream.accumulate(f, start, v=int, name=self.name())
        options |= {"f": f, "start": start, "columns": ("v",)}
        self.added(made, VALUES, "accumulate", [of], **options)

    def do_pair(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        stream, options = self.keyed(of)
        f = pair_of(self.rng.randint(5, 99))
        name = self.name()
        made = stream.accumulate(f, (3, None), v=int, m=N, name=name)
        options |= {"f": f, "start": (3, None), "columns": ("v", "m")}
        self.added(made, VALUES, "accumulate", [of], **options)

    def do_window(self, verb: str) -> None:
        of = self.some(VALUES)
        if of is None or of.stream.columns.nullable:
            return self.do_map(verb)
        n, step = self.rng.randint(1, 4), self.rng.randint(1, 3)
        f = self.rng.choice([last_sum, last_odd])(self.rng.randint(5, 99))
        made = of.stream.window(n, f, step=step, v=int, name=self.name())
        options: dict[str, Any] = {"key": of.stream.key} if of.stream.key else {}
        options |= {"n": n, "step": step, "f": f, "columns": ("v",)}
        return self.added(made, VALUES, "window", [of], **options)

    def do_across(self, verb: str) -> None:
        of = self.some(FULL)
        assert of is not None
        leave = remainder_is(4, 1) if self.rng.random() < 0.5 else None
        key = of.stream.key or ("k",)
        made = of.stream.by(*key).across(
            Total, add, remove, sum_and_count, leave=leave, v=int, name=self.name()
        )
        options = {"add": add, "remove": remove, "result": sum_and_count, "make": Bag}
        self.added(made, VALUES, "across", [of], **options, leave=leave, columns=("v",), key=key)

    def do_keyed(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        stream, options = self.keyed(of)
        step = counted(self.rng.randint(2, 4))
        made = stream.keyed(Total, step, v=int, name=self.name())
        self.added(made, VALUES, "keyed", [of], step=step, make=Bag, columns=("v",), **options)

    def do_machine(self, verb: str) -> None:
        of = self.some(FULL, VALUES)
        assert of is not None
        rng = self.rng
        stream, options = self.keyed(of)
        guards = [guard_of(rng.randint(2, 4), rng.randrange(2)) for _ in range(3)]
        way: list[Any] = [
            ("new", guards[0], "open", bumped),
            ("open", guards[1], "open", bumped),
            ("open", guards[2], "done", None),
            ("done", guards[0], "new", None),
        ]
        rng.shuffle(way)
        if not any(one[0] == "new" for one in way[:1]):
            way.sort(key=lambda one: one[0] != "new")
        output = {"open": shown, "done": sum_and_count}
        name = self.name()
        of_product = ss.verbs.machine(
            Total,
            "new",
            [*way, (ss.verbs.ANY, ss.verbs.OTHERWISE, "new")],
            event=dict(stream.columns),
            output=output,
            v=int,
        )
        made = stream.add(of_product, name=name)
        rules = [*way, (ANY, OTHERWISE, "new", None)]
        options |= {"start": "new", "transitions": rules, "output": output, "make": Bag}
        self.added(made, VALUES, "machine", [of], columns=("v",), **options)

    # ---- verbs of several ----

    def two(self, count: int = 2) -> tuple[list[Known], dict[str, Any]]:
        """Streams to be zipped, all by a key or none, and the options of the model."""
        fit = [one for one in self.known if one.kind in (FULL, VALUES)]
        by_key = [one for one in fit if one.stream.key]
        alone = [one for one in fit if not one.stream.key]
        is_by_key = bool(by_key) and self.rng.random() < 0.4
        found = [self.rng.choice(by_key if is_by_key else alone) for _ in range(count)]
        return found, {"key": found[0].stream.key} if is_by_key else {}

    def do_zip_map(self, verb: str) -> None:
        of, key = self.two()
        f = joined_of(self.rng.randint(1, 5))
        zipped = of[0].stream.zip(of[1].stream)
        made = zipped.map(f, v=int, name=self.name())
        self.added(made, VALUES, "zip_map", of, f=f, columns=("v",), **key)

    def do_zip3(self, verb: str) -> None:
        of, key = self.two(3)
        f = joined_of_three(self.rng.randint(1, 5))
        made = of[0].stream.zip(of[1].stream, of[2].stream).map(f, v=int, name=self.name())
        self.added(made, VALUES, "zip_map", of, f=f, columns=("v",), **key)

    def do_zip_filter(self, verb: str) -> None:
        of, key = self.two()
        f = is_less(self.rng.randint(2, 9))
        made = of[0].stream.zip(of[1].stream).filter(f, name=self.name())
        self.added(made, of[0].kind, "zip_filter", of, f=f, **key)

    def do_filter_by(self, verb: str) -> None:
        of, flags = self.some(FULL, VALUES, alone=True), self.some(TRUTH, alone=True)
        if of is None or flags is None:
            return self.do_truth(verb)
        made = of.stream.filter(flags.stream, name=self.name())
        return self.added(made, of.kind, "filter_by", [of, flags])

    def do_merge(self, verb: str) -> None:
        one = self.some(FULL, VALUES, TRUTH, alone=True)
        if one is None:
            return None
        names = list(one.stream.columns.names)
        fit = [
            other
            for other in self.known
            if list(other.stream.columns.names) == names and not other.stream.key
        ]
        other = self.rng.choice(fit)
        made = one.stream.merge(other.stream, name=self.name())
        return self.added(made, one.kind, "merge", [one, other])

    # ---- truth ----

    def do_always(self, verb: str) -> None:
        of = self.some(TRUTH)
        if of is None:
            return self.do_truth(verb)
        made = getattr(ss.rules, verb)(of.stream, name=self.name())
        key = {"key": of.stream.key} if of.stream.key else {}
        return self.added(made, TRUTH, verb, [of], columns=("value",), **key)

    do_eventually = do_negated = do_always

    def do_both(self, verb: str) -> None:
        one, other = self.some(TRUTH, alone=True), self.some(TRUTH, alone=True)
        if one is None or other is None:
            return self.do_truth(verb)
        made = getattr(ss.rules, verb)(one.stream, other.stream, name=self.name())
        return self.added(made, TRUTH, verb, [one, other], columns=("value",))

    do_either = do_implies = do_both

    def do_until(self, verb: str) -> None:
        # Two vertices here, and a level more: rows of several levels may meet otherwise, so that
        # it comes last.
        self.do_both("both")


def graph(seed: int, most: int = 12) -> Graph:
    """A pipeline of random verbs, all of whose vertices have a sink."""
    rng = random.Random(seed)
    sources = ["x", "y"][: rng.randint(1, 2)]
    p = ss.Pipeline(f"random_{seed}")
    found = Graph(p, sources)
    making = _Making(rng, p, found)
    making.known = [Known(p.source(name, EVENT), FULL) for name in sources]
    for _ in range(rng.randint(1, most)):
        making.step()
    for name in sources:
        p.sink(f"of_{name}", p._stream(name))
    return found


def events_of(
    seed: int, sources: list[str], count: int = 40
) -> list[tuple[str, dict[str, Any], int]]:
    """Events with their sources and times, in order."""
    rng = random.Random(seed)
    found, now = [], 0
    for _ in range(count):
        now += rng.choice([0, 1, 1, 2, 5]) if len(sources) == 1 else rng.choice([1, 1, 2, 5])
        row = {
            "k": rng.choice(["a", "b", "c", None]),
            "v": rng.randrange(50),
            "n": rng.choice([None, 1, 2]),
            "b": rng.choice([None, True, False]),
        }
        found.append((rng.choice(sources), row, now))
    return found

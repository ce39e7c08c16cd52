"""Dicts, sets, lists, deques and priority queues of the state."""

from __future__ import annotations

from typing import NamedTuple

from support.generated.containers import dict_of, has, list_of, set_of, tuple_of
from support.generated.drawing import BOOL, FLOAT, INT, TEXT, Drawing, Kind, Option

__all__ = ["ROWS", "TABLES", "Kept"]

TABLES = """
class Tables(State):
    counts = ss.dict(int, int, limit=6)
    rates = ss.dict(str, float)
    pairs = ss.dict((int, str), int, limit=9)
    places = ss.dict(int, tuple[int, float])
    marks = ss.dict(bool, bool)
    seen = ss.set(int, limit=5)
    names = ss.set(str)
    spots = ss.set((int, bool))


"""
ROWS = """
class Rows({base}):
    queue = ss.list(int, limit=10)
    steps = ss.list(float, limit=7)
    book = ss.list((int, str), limit=12)
    last = ss.deque(int, maxlen=3)
    trail = ss.deque((int, float), limit=6)
    words = ss.deque(str, maxlen=5)
    waiting = ss.priority_queue((int, int), limit=7)
    costs = ss.priority_queue(float, limit=9)


"""


class Field(NamedTuple):
    name: str
    kind: Kind


def deque_of(kind: Kind) -> Kind:
    return Kind("deque", (kind,))


def heap_of(kind: Kind) -> Kind:
    return Kind("heap", (kind,))


KEYED = [
    *(Field("counts", dict_of(INT, INT)), Field("rates", dict_of(TEXT, FLOAT))),
    *(Field("pairs", dict_of(tuple_of(INT, TEXT), INT)), Field("marks", dict_of(BOOL, BOOL))),
    *(Field("places", dict_of(INT, tuple_of(INT, FLOAT))), Field("seen", set_of(INT))),
    *(Field("names", set_of(TEXT)), Field("spots", set_of(tuple_of(INT, BOOL)))),
]
SEQUENCES = [
    *(Field("queue", list_of(INT)), Field("steps", list_of(FLOAT))),
    *(Field("book", list_of(tuple_of(INT, TEXT))), Field("last", deque_of(INT))),
    *(Field("trail", deque_of(tuple_of(INT, FLOAT))), Field("words", deque_of(TEXT))),
    *(Field("waiting", heap_of(tuple_of(INT, INT))), Field("costs", heap_of(FLOAT))),
]


class Kept(Drawing):
    """What is done to containers of the state."""

    def stored(self, kind: Kind) -> str:
        """What a container takes: no name that may be None."""
        if kind.name == "tuple":
            return f"({', '.join(map(self.stored, kind.of))},)"
        value = self.value_of(kind, 0)
        return f"float({value})" if value in self.floats else value

    def kept(self) -> list[Field]:
        tables = KEYED if self.has("tables") else []
        return tables + (SEQUENCES if self.has("rows") else [])

    def field(self, *kinds: str) -> Field:
        return self.rng.choice([one for one in self.kept() if not kinds or one.kind.name in kinds])

    def near(self) -> str:
        return self.pick("0", "-1", "1", f"{self.pick(*self.ints)} % 5", "-2")

    # ---- expressions ----

    def kept_value(self, wanted: Kind) -> str:
        """An expression of a wanted kind, of what some container holds."""
        name, kind = self.field()
        of, first = f"state.{name}", kind.of[0]
        options: list[Option] = []
        if kind.name == "dict":
            key, value = kind.of
            if value == wanted:
                options += [lambda: f"{of}.get({self.key(key)}, {self.stored(value)})"] * 3
                found = self.key(key)
                options += [f"({of}[{found}] if {found} in {of} else {self.of_kind(value, 0)})"]
                options += [lambda: f"{of}[{self.key(key)}]"] if self.chance(0.2) else []
            elif value.name == "tuple":
                absent = self.stored(value)
                at = next((at for at, one in enumerate(value.of) if one == wanted), 0)
                found = f"{of}.get({self.key(key)}, {absent})[{at}]"
                options += [lambda: self.turned(found, value.of[at], wanted)]
        elif kind.name == "heap":
            options += [lambda: self.part(f"{of}.peek()", first, wanted)]
        elif kind.name != "set":
            options += [
                lambda: self.part(f"{of}[{self.pick('0', '-1', self.near)}]", first, wanted)
            ]
        if wanted == INT:
            options += [f"len({of})", f"len({of})", *self.totals(of, kind)]
        if wanted == BOOL:
            options += [f"bool({of})", f"(not {of})", *self.questions(of, kind)]
        if not options:
            options = [
                lambda: f"({self.of_kind(wanted, 0)} if {of} else {self.of_kind(wanted, 0)})"
            ]
        return self.pick(*options)

    def part(self, found: str, kind: Kind, wanted: Kind) -> str:
        """A number of an element; rarely where there is none."""
        whole = found
        while kind.name == "tuple":
            whole, kind = f"{whole}[0]", kind.of[0]
        if self.chance(0.1):
            return self.turned(whole, kind, wanted)
        owner = found.partition("[")[0].partition(".peek")[0]
        return f"({self.turned(whole, kind, wanted)} if {owner} else {self.of_kind(wanted, 0)})"

    def totals(self, of: str, kind: Kind) -> list[Option]:
        first = kind.of[0]
        found: list[Option] = []
        if first == INT:
            found += [f"sum({of})", lambda: f"max({of}, default={self.int_(0)})"]
            found += [f"sum(one ^ 1 for one in {of})"]
        if kind == dict_of(INT, INT):
            found += [f"sum({of}.values())", f"sum(k - v for k, v in {of}.items())"]
        if kind.name in ("list", "deque") and not (self.is_python and has(first, FLOAT)):
            found += [lambda: f"{of}.count({self.value_of(first, 0)})"]
            found += [f"({of}.index({of}[-1]) if {of} else -1)"]
        if kind.name in ("list", "dict", "set") and first == INT:
            found += [f"sum(sorted({of})[:2])"]
        return found

    def questions(self, of: str, kind: Kind) -> list[Option]:
        first = kind.of[0]
        if kind.name in ("dict", "set"):
            asked: list[Option] = [lambda: f"({self.key(first)} {self.pick('in', 'not in')} {of})"]
            if kind.name == "set":
                asked += [
                    lambda: f"({of} {self.pick('<=', '>', '==')} {self.value_of(kind, 0)})",
                    lambda: f"{of}.isdisjoint({self.value_of(kind, 0)})",
                ]
            return asked
        if kind.name == "heap" or (self.is_python and has(first, FLOAT)):
            return []
        return [lambda: f"({self.value_of(first, 0)} in {of})"]

    # ---- statements ----

    def kept_statement(self, indent: int, nesting: int) -> None:
        name, kind = self.field()
        if name in self.busy:
            return self.put(indent, f"i1 = len(state.{name})")
        if nesting > 0 and self.turns <= 16 and self.chance(0.25):
            return self.kept_loop(indent, nesting, name, kind)
        if self.chance(0.1):
            return self.taken_along(indent, name, kind)
        changes = self.kept_changes(name, kind)
        if self.chance(0.4):
            changes = changes[:1]  # which puts something in
            if self.chance(0.7):
                self.put(indent, f"if len(state.{name}) < 4:")
                indent += 1
        elif self.chance(0.85):
            self.put(indent, f"if {self.pick(f'len(state.{name}) > 1', self.bool_(0))}:")
            indent += 1
        return self.put(indent, self.pick(*changes))

    def taken_along(self, indent: int, name: str, kind: Kind) -> None:
        """A copy that is the event's own."""
        of = f"state.{name}"
        if kind.name in ("heap", "deque"):
            made, copied = list_of(kind.of[0]), self.pick(f"list({of})", f"[one for one in {of}]")
        else:
            made = kind
            copied = self.pick(f"{kind.name}({of})", f"{of}.copy()")
            if kind.name == "list":
                copied = self.pick(copied, f"{of}[{self.near()} :]", f"{of}[::-1]")
            if kind.name == "dict":
                copied = self.pick(copied, f"({of} | {self.value_of(kind, 0)})")
            if kind.name == "set":
                sign = self.pick("|", "&", "-", "^")
                copied = self.pick(copied, f"({of} {sign} {self.value_of(kind, 0)})")
        own = self.new("h")
        self.put(indent, f"{own} = {copied}")
        if self.has("containers"):
            self.held.append((own, made))
        else:
            self.put(indent, f"i1 = len({own})")

    def kept_changes(self, name: str, kind: Kind) -> list[Option]:
        of, first = f"state.{name}", kind.of[0]
        changes = {
            "dict": self.dict_change,
            "set": self.set_change,
            "list": self.list_change,
            "deque": self.deque_change,
            "heap": self.heap_change,
        }
        return changes[kind.name](of, first, kind)

    def dict_change(self, of: str, key: Kind, kind: Kind) -> list[Option]:
        value = kind.of[1]
        at = self.key(key)

        def one() -> str:
            return self.stored(value)

        options: list[Option] = [
            *[lambda: f"{of}[{at}] = {one()}"] * 2,
            lambda: f"{of}.setdefault({at}, {one()})",
            lambda: f"{of}.update({{{at}: {one()}, {self.key(key)}: {one()}}})",
            lambda: f"{of} |= {{{at}: {one()}}}",
            f"{of}.pop({at})",
            lambda: f"{of}.pop({at}, {one()})",
            f"del {of}[{at}]",
            f"{of}.popitem()",
            f"{of}.clear()",
        ]
        if value in (INT, FLOAT):
            own = "i0" if value == INT else "f0"
            options += [
                lambda: f"{of}[{at}] += {one()}",
                lambda: f"{of}[{at}] = {of}.get({at}, 0) + {one()}",
                lambda: f"{own} = {of}.setdefault({at}, {one()})",
                lambda: f"{own} = {of}.pop({at}, {one()})",
                f"{own} = {of}.popitem()[1]",
            ]
        return options

    def set_change(self, of: str, key: Kind, kind: Kind) -> list[Option]:
        one, other = self.key(key), self.key(key)
        # Python goes through a set in an order of its own, and what is new comes in that order.
        both = f"[{one}, {other}]"
        method = self.pick("update", "difference_update", "symmetric_difference_update")
        return [
            *[f"{of}.add({one})"] * 3,
            f"{of}.discard({one})",
            f"{of}.remove({one})",
            f"{of}.pop()",
            f"{of}.clear()",
            f"{of}.{method}({both})",
            f"{of} {self.pick('|', '^')}= {{{one}}}",
            f"{of} {self.pick('-', '&')}= {{{one}, {other}}}",
        ]

    def list_change(self, of: str, kind: Kind, whole: Kind) -> list[Option]:
        def one() -> str:
            return self.stored(kind)

        near, other = self.near(), self.near()
        options: list[Option] = [
            *[lambda: f"{of}.append({one()})"] * 3,
            lambda: f"{of}.insert({near}, {one()})",
            lambda: f"{of}.extend([{one()}, {one()}])",
            lambda: f"{of} += [{one()}]",
            lambda: f"{of}[{near}] = {one()}",
            lambda: f"{of}[{near}:{other}] = [{one()}, {one()}]",
            *(f"{of}.pop()", f"{of}.pop({near})", f"{of}.pop(0)", f"del {of}[{near}]"),
            *(f"del {of}[{near}:{other}]", f"del {of}[::2]", f"{of}.reverse()", f"{of}.clear()"),
        ]
        if not (self.is_python and has(kind, FLOAT)):
            options.append(lambda: f"{of}.remove({one()})")
        if kind == INT:
            options += [
                *(
                    f"{of}.sort()",
                    f"{of}.sort(reverse=True)",
                    f"{of}.sort(key=lambda one: one % 3)",
                ),
                lambda: f"heapq.heappush({of}, {one()})",
                lambda: f"bisect.insort({of}, {one()})",
                *(f"i0 = heapq.heappop({of})", f"heapq.heapify({of})"),
                lambda: f"i0 = heapq.heappushpop({of}, {one()})",
                lambda: f"i1 = bisect.bisect_left({of}, {one()})",
                lambda: f"{of}[{near}] {self.pick('+', '-', '^')}= {one()}",
            ]
        return options

    def deque_change(self, of: str, kind: Kind, whole: Kind) -> list[Option]:
        def one() -> str:
            return self.stored(kind)

        near = self.near()
        options: list[Option] = [
            *[lambda: f"{of}.append({one()})"] * 3,
            *[lambda: f"{of}.appendleft({one()})"] * 2,
            lambda: f"{of}.extend([{one()}, {one()}])",
            lambda: f"{of}.extendleft([{one()}, {one()}])",
            lambda: f"{of}[{near}] = {one()}",
            *(f"{of}.pop()", f"{of}.popleft()", f"{of}.clear()", f"{of}.reverse()"),
            lambda: f"{of}.rotate({self.pick('1', '-2', f'{self.pick(*self.ints)} % 7')})",
            f"{of}.rotate()",
        ]
        if not (self.is_python and has(kind, FLOAT)):
            options.append(lambda: f"{of}.remove({one()})")
        if kind == INT:
            options += [
                f"i0 = {of}.popleft()",
                f"i0 = 0 if {of}.maxlen is None else {of}.maxlen - len({of})",
            ]
        return options

    def heap_change(self, of: str, kind: Kind, whole: Kind) -> list[Option]:
        # A NaN has no order: what is where would still be the same, but nothing is told by it.
        def one() -> str:
            return self.stored(kind)

        own = "f0 = " if kind == FLOAT else ""
        return [
            *[lambda: f"{of}.push({one()})"] * 3,
            f"{own}{of}.pop()",
            f"{own}{of}.peek()",
            lambda: f"{own}{of}.pushpop({one()})",
            f"{of}.clear()",
        ]

    def kept_loop(self, indent: int, nesting: int, name: str, kind: Kind) -> None:
        of, first = f"state.{name}", kind.of[0]
        over, target = of, None
        with self.scope(), self.loop(8):
            if kind.name == "dict":
                value = kind.of[1]
                form = self.rng.randrange(4)
                over = (of, f"{of}.keys()", f"{of}.values()", f"{of}.items()")[form]
                if form == 3:
                    pair = [self.target(first), self.target(value)]
                    target = ", ".join(f"({one})" if "," in one else one for one in pair)
                first = value if form == 2 else first
            elif kind.name in ("list", "deque"):
                over = self.pick(of, of, f"reversed({of})", f"list({of})")
                if kind.name == "list" and self.chance(0.3):
                    over = f"{of}[{self.near()} :]"
            self.put(indent, f"for {target or self.target(first)} in {over}:")
            # One kind of change: who does both is not found out by Python.
            if kind.name in ("dict", "set"):
                self.busy.add(name)
                if self.chance(0.5):
                    at = self.key(kind.of[0])
                    put = f"{of}.add({at})"
                    if kind.name == "dict":
                        put = f"{of}[{at}] = {self.stored(kind.of[1])}"
                    removed = f"{of}.discard({at})"
                    if kind.name == "dict":
                        removed = f"{of}.pop({at}, {self.stored(kind.of[1])})"
                    self.put(indent + 1, self.pick(f"if {self.bool_(0)}:", "if True:"))
                    self.put(indent + 2, self.pick(put, removed))
            elif kind.name == "heap":
                self.busy.add(name)
            for _ in range(self.rng.randint(1, 2)):
                self.statement(indent + 1, nesting - 1)
            if self.chance(0.3):
                self.put(indent + 1, f"if {self.bool_(0)}:")
                self.put(indent + 2, self.pick("break", "continue"))
            self.busy.discard(name)

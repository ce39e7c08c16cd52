"""Random programs about which number is what: ints, floats, bools and literals under one name, in
helpers, lists and dicts, looked at by their texts and by all of their digits.

Many are refused, as nothing keeps them to types; what is taken has to be Python's.
"""

from __future__ import annotations

import random

__all__ = ["Writer"]

HEADER = '''"""Made by number_programs.py."""

import specstream as ss


class State(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    on = ss.scalar(bool)
    d = ss.dict(int, float, limit=64)
    c = ss.dict(int, int, limit=64)
    f = ss.array(float, 2)


def outer(a, b):
{outer}

@ss.operator(
    state=State,
    event={{"n": int, "x": float, "on": bool, "k": int}},
    emits={{"text": str, "y": float, "is_so": bool}},
)
def generated(state, event, emit):
'''
LEAVES = {
    "int": (
        "event.n",
        "event.n",
        "state.n",
        "event.k",
        "2",
        "len(str(event.k))",
        "state.c.get(event.k, 0)",
    ),
    "float": (
        "event.x",
        "state.x",
        "event.x",
        "0.5",
        "state.d.get(event.k, 0.0)",
        "state.d.get(event.k, 0)",
        "-state.d.get(event.k, 0)",
        "-state.d.pop(event.k, 0)",
        "state.f[0]",
    ),
    "bool": ("event.on", "state.on", "event.n > 3", "event.x > state.x", "True"),
}
LITERALS = ("0", "0", "0", "1", "3", "-2")
NAMES = {"int": ("i", "j"), "float": ("v", "w"), "bool": ("p",)}


class Writer:
    """Writes one program."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.lines: list[str] = []
        self.known: dict[str, list[str]] = {"int": [], "float": [], "bool": []}
        self.in_helper = False

    def program(self, statements: int) -> str:
        rng = self.rng
        self.in_helper, self.known = True, {"int": ["a"], "float": ["b"], "bool": []}
        outer = "\n".join([*self.body(rng.randint(0, 2), 1), f"    return {self.some()}"])
        self.known = {"int": ["a"], "float": [], "bool": []}
        inner = [f"    {line}" for line in self.body(rng.randint(0, 2), 1)]
        inner = ["    def inner(a):", *inner, f"        return {self.expression('int', 1)}"]
        self.in_helper, self.known = False, {"int": [], "float": [], "bool": []}
        body = self.body(statements, 1)
        last = [
            "    state.n += event.k",
            "    state.x = event.x",
            "    state.on = event.on",
            "    state.d[event.k] = event.x",
            "    state.c[event.k] = event.n",
        ]
        return HEADER.format(outer=outer) + "\n".join([*inner, *body, *last]) + "\n"

    def body(self, count: int, depth: int) -> list[str]:
        before, self.lines = self.lines, []
        for _ in range(count):
            self.statement(depth)
        made, self.lines = self.lines, before
        return made

    def put(self, depth: int, line: str) -> None:
        self.lines.append("    " * depth + line)

    def kind(self) -> str:
        return self.rng.choice(("int", "float", "float", "bool", "int"))

    def statement(self, depth: int) -> None:
        rng = self.rng
        what = rng.random()
        if what < 0.4 or (self.in_helper and what > 0.8):
            self.assign(depth)
        elif what < 0.55 and depth < 3:
            self.put(depth, f"if {self.condition()}:")
            self.branch(depth + 1)
            if rng.random() < 0.5:
                self.put(depth, "else:")
                self.branch(depth + 1)
        elif what < 0.65 and depth < 3:
            kind = self.kind()
            items = ", ".join(self.expression(kind, 1) for _ in range(rng.randint(1, 3)))
            bracket = rng.choice(("[{}]", "({},)"))
            self.put(
                depth,
                rng.choice(
                    (
                        f"for t in {bracket.format(items)}:",
                        f"for t in range({rng.choice(('event.k', '3', 'state.n % 3'))}):",
                    )
                ),
            )
            self.known["int"].append("t")
            self.branch(depth + 1)
            self.known["int"].remove("t")
        elif (what < 0.8 and not self.in_helper) or not self.in_helper:
            self.look(depth)
        else:
            self.assign(depth)

    def branch(self, depth: int) -> None:
        known = {kind: list(names) for kind, names in self.known.items()}
        self.lines += self.body(self.rng.randint(1, 2), depth)
        self.known = known

    def assign(self, depth: int) -> None:
        rng = self.rng
        kind = self.kind()
        name = rng.choice(NAMES[kind])
        is_known = name in self.known[kind]
        if is_known and rng.random() < 0.5 and kind != "bool":
            self.put(depth, f"{name} {rng.choice('+-*+')}= {self.expression(kind, 2)}")
            return
        given = kind if rng.random() < 0.8 else self.kind()
        value = rng.choice(LITERALS) if rng.random() < 0.35 else self.expression(given, 2)
        self.put(depth, f"{name} = {value}")
        if not is_known:
            self.known[kind].append(name)

    def look(self, depth: int) -> None:
        rng = self.rng
        one = self.some()
        what = rng.random()
        if what < 0.55:
            shown = rng.choice(
                (
                    "{ %s} {state.n}",
                    "{ %s}",
                    "{ %s:.2f} {state.n}",
                    "{ %s!r} {state.x}",
                    "{ %s:>8}{state.on}",
                )
            )
            self.put(
                depth,
                'emit(f"' + shown % one + f'", {self.expression("float", 1)}, {self.condition()})',
            )
        elif what < 0.65:
            self.put(depth, f'emit("%s|%s" % ({one}, state.n), 0.0, {self.condition()})')
        elif what < 0.75:
            self.put(depth, f'emit(str({one}) + "/" + str(state.n), 0.0, {self.condition()})')
        elif what < 0.85:
            self.put(depth, f'emit("", {one}, {self.expression("int", 2)} % 2 == 1)')
        else:
            self.put(depth, f'emit("", {self.expression("float", 2)}, {one} == {self.some()})')

    def some(self) -> str:
        return self.expression(self.kind(), 2)

    def condition(self) -> str:
        rng = self.rng
        kind = rng.choice(("int", "float"))
        return rng.choice(
            (
                f" {rng.choice(('<', '>', '==', '!='))} ".join(
                    self.expression(kind, 1) for _ in "ab"
                ),
                self.expression("bool", 1),
            )
        )

    def leaf(self, kind: str) -> str:
        rng = self.rng
        if self.known[kind] and (rng.random() < 0.6 or self.in_helper):
            return rng.choice(self.known[kind])
        if self.in_helper:
            return rng.choice(
                {"int": ("2", "a", "0"), "float": ("0.5", "a", "0"), "bool": ("a > 1",)}[kind]
            )
        return rng.choice(LEAVES[kind])

    def expression(self, kind: str, depth: int) -> str:
        rng = self.rng
        if rng.random() < 0.12 and kind != "bool":
            return rng.choice(LITERALS)
        if depth == 0 or rng.random() < 0.3:
            return self.leaf(kind)
        one, other = self.expression(kind, depth - 1), self.expression(kind, depth - 1)
        if kind == "bool":
            number = self.expression(rng.choice(("int", "float")), depth - 1)
            return rng.choice(
                (f"(not {one})", f"({one} or {other})", f"({one} and {other})", f"({number} > 2)")
            )
        ways = [
            f"({one} + {other})",
            f"({one} - {other})",
            f"({one} * {other})",
            f"max({one}, {other})",
            f"min({one}, {other})",
            f"max(0, {one})",
            f"abs({one})",
            f"({one} if {self.expression('bool', depth - 1)} else {other})",
            f"({one} or {other})",
            f"sum([{one}, {other}])",
            f"max([{one}, {other}])",
            f"[{one}, {other}][{rng.randint(0, 1)}]",
            f"{{1: {one}}}.get({rng.choice('12')}, {other})",
        ]
        if kind == "int":
            ways += [
                f"({one} // 2)",
                f"({one} % 3)",
                f"({one} & 255)",
                f"int({self.expression('float', depth - 1)})",
                f"round({self.expression('float', depth - 1)})",
                f"({one} + {self.leaf('bool')})",
            ]
        else:
            number = self.expression("int", depth - 1)
            ways += [
                f"({one} / 4)",
                f"({number} / 4)",
                f"float({number})",
                f"round({one}, 1)",
                f"({one} + {number})",
                f"({one} // 2)",
                f"({one} % 3)",
                f"max({number}, {one})",
                f"({one} * {number})",
            ]
        if not self.in_helper:
            ways += [f"outer({one}, {other})", f"inner({one})"] * 2
        return rng.choice(ways)

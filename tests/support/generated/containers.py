"""Tuples, lists, dicts and sets: an event's own, and those that a module holds."""

from __future__ import annotations

from collections.abc import Callable

from support.generated.drawing import BOOL, FLOAT, INT, TEXT, Drawing, Kind, Option

__all__ = ["Containers"]


def list_of(kind: Kind) -> Kind:
    return Kind("list", (kind,))


def tuple_of(*kinds: Kind) -> Kind:
    return Kind("tuple", kinds)


def dict_of(key: Kind, value: Kind) -> Kind:
    return Kind("dict", (key, value))


def set_of(key: Kind) -> Kind:
    return Kind("set", (key,))


PAIR = tuple_of(INT, FLOAT)
OWN = [
    *(list_of(INT), list_of(INT), list_of(FLOAT), list_of(BOOL), list_of(PAIR)),
    *(list_of(list_of(INT)), list_of(tuple_of(TEXT, INT)), tuple_of(INT, FLOAT, BOOL)),
    *(dict_of(INT, INT), dict_of(TEXT, INT), dict_of(INT, FLOAT), dict_of(INT, list_of(INT))),
    *(dict_of(tuple_of(INT, BOOL), INT), dict_of(TEXT, PAIR), dict_of(INT, tuple_of(INT, TEXT))),
    *(set_of(INT), set_of(TEXT), set_of(tuple_of(INT, INT)), tuple_of(TEXT, tuple_of(INT, INT))),
    *(list_of(TEXT), list_of(set_of(INT)), tuple_of(INT, list_of(INT)), list_of(dict_of(INT, INT))),
    *(dict_of(INT, dict_of(INT, FLOAT)), dict_of(BOOL, set_of(INT)), tuple_of(INT, INT, INT)),
]
FROZEN = [
    ("LEVELS", list_of(INT)),
    ("WEIGHTS", list_of(FLOAT)),
    ("RATES", dict_of(INT, INT)),
    ("FEES", dict_of(TEXT, FLOAT)),
    ("ODD", set_of(INT)),
    ("WORDS", set_of(TEXT)),
    ("NESTED", dict_of(TEXT, list_of(INT))),
    ("GRID", list_of(list_of(INT))),
    ("PAIRS", list_of(PAIR)),
    ("SPANS", dict_of(tuple_of(INT, BOOL), INT)),
    ("CODES", tuple_of(TEXT, INT, FLOAT)),
]
# No more elements than that: loops over lists to which the loop appends come to an end.
ROOM = 12


class Containers(Drawing):
    # ---- expressions ----

    def value_of(self, kind: Kind, depth: int = 1) -> str:
        """An expression of any kind; nobody else has what it gives."""
        if kind in (INT, FLOAT, BOOL, TEXT):
            return self.of_kind(kind, depth)
        if kind.name == "tuple":
            return f"({', '.join(self.value_of(one, depth - 1) for one in kind.of)},)"
        # The lists of a module's lists are no lists of the event.
        same = [
            name for name, other in self.known() if other == kind and name not in ("GRID", "NESTED")
        ]
        if kind.name == "list":
            return self.list_(kind.of[0], same, depth)
        return self.dict_(kind, same) if kind.name == "dict" else self.set_(kind.of[0], same)

    def known(self) -> list[tuple[str, Kind]]:
        return self.held + (FROZEN if self.has("frozen") else [])

    def list_(self, kind: Kind, same: list[str], depth: int) -> str:
        def one() -> str:
            return self.value_of(kind, depth - 1)

        options: list[Option] = [
            lambda: f"[{one()}]",
            lambda: f"[{one()}, {one()}, {one()}]",
            lambda: f"[{one()} for {self.new('v')} in {self.few()}]",
            lambda: self.comprehension("[", kind, "]"),
        ]
        is_deep = kind.name in ("list", "dict", "set") or any(
            each.name == "list" for each in kind.of
        )
        if not is_deep:
            options.append(lambda: f"[{one()}] * {self.pick('2', f'({self.int_(0)} & 3)')}")
        if same and not is_deep:
            options += self.made_of(self.pick(*same), kind, one)
        if kind == INT:
            options += [
                lambda: f"list(range({self.int_(0)} & 7))",
                "state.t.tolist()",
                lambda: f"list({self.ints_iterable()})",
                *(self.in_order(name) for name, one in self.known() if one == set_of(INT)),
                *(f"list({name})" for name, one in self.known() if one == dict_of(INT, INT)),
                *(f"list({name}.values())" for name, one in self.known() if _has_ints(one)),
            ]
        if kind == tuple_of(INT, INT):
            options.append(lambda: f"list(zip({self.ints_iterable()}, state.t))")
        return self.pick(*options)

    def made_of(self, name: str, kind: Kind, one: Callable[[], str]) -> list[Option]:
        """Lists that are made of another one."""
        return [
            *(f"{name}[:]", f"{name}[::-1]", f"list(reversed({name}))", f"{name}[-3:]"),
            lambda: f"{name}[{self.small()} : {self.small()}]",
            lambda: f"{name}[:3] + [{one()}]",
            f"[one for one in {name}]",
            f"[one for at, one in enumerate({name}) if at & 1]",
            lambda: self.ordered(name, kind),
        ]

    def comprehension(self, left: str, kind: Kind, right: str, key: Kind | None = None) -> str:
        name = self.new("v")
        iterable = self.iterable()
        with self.scope():
            self.ints.append(name)
            first = "" if key is None else f"{self.key(key)}: "
            element = self.value_of(kind, 0) if key is not None or left == "[" else self.key(kind)
            condition = self.pick("", f" if {self.bool_(0)}")
        return f"{left}{first}{element} for {name} in {iterable}{condition}{right}"

    def iterable(self) -> str:
        self.in_iterable += 1
        iterable = self.ints_iterable()
        self.in_iterable -= 1
        return iterable

    def few(self) -> str:
        return self.pick("range(3)", "PRIMES[:2]", f"range({self.pick(*self.ints)} & 3)")

    def ints_iterable(self) -> str:
        lists = [name for name, kind in self.known() if kind == list_of(INT)]
        dicts = [name for name, kind in self.known() if kind == dict_of(INT, INT)]
        return self.pick(
            "state.t",
            "state.m[1]",
            lambda: f"state.a[{self.int_(0)} & 7 :]",
            lambda: f"range({self.int_(0)} & 7)",
            lambda: f"range({self.int_(0)} & 3, 5)",
            lambda: f"({self.int_(0)}, {self.int_(0)})",
            *lists,
            *lists,
            *dicts,
            *(f"{name}.values()" for name in dicts),
            *(self.in_order(name) for name, kind in self.known() if kind == set_of(INT)),
            *(f"reversed({name})" for name in lists),
        )

    def dict_(self, kind: Kind, same: list[str]) -> str:
        key, value = kind.of

        def entry() -> str:
            return f"{self.key(key)}: {self.value_of(value, 0)}"

        options: list[Option] = [
            lambda: f"{{{entry()}}}",
            lambda: f"{{{entry()}, {entry()}, {entry()}}}",
            lambda: self.comprehension("{", value, "}", key),
        ]
        if value in (INT, FLOAT, PAIR):
            options.append(lambda: f"dict(zip([{self.key(key)}], [{self.value_of(value, 0)}]))")
            name = self.pick(*same) if same else "{}"
            if same:
                options += [f"dict({name})", lambda: f"({name} | {{{entry()}}})"]
            if (name, kind) in self.held:
                options.append(f"{name}.copy()")
        return self.pick(*options)

    def set_(self, key: Kind, same: list[str]) -> str:
        options: list[Option] = [
            lambda: f"{{{self.key(key)}, {self.key(key)}}}",
            lambda: self.comprehension("{", key, "}"),
            lambda: f"set([{self.key(key)}, {self.key(key)}])",
        ]
        if same:
            name = self.pick(*same)
            sign = self.pick("|", "&", "-", "^")
            options += [f"set({name})", lambda: f"({name} {sign} {{{self.key(key)}}})"]
        return self.pick(*options)

    def key(self, kind: Kind) -> str:
        """Such that keys meet each other."""
        if kind == INT:
            return self.pick(f"({self.int_(0)} % 5)", "3", f"({self.int_(0)} & 3)")
        if kind.name == "tuple":
            return f"({', '.join(map(self.key, kind.of))},)"
        return self.of_kind(kind, self.rng.randint(0, 1))

    def in_order(self, name: str) -> str:
        """A set's elements: Python has an order of its own."""
        return f"sorted({name})" if self.is_python else self.pick(f"sorted({name})", name)

    def ordered(self, name: str, kind: Kind) -> str:
        backwards = self.pick("", ", reverse=True", f", reverse={self.bool_(0)}")
        if not has(kind, FLOAT, TEXT, BOOL) or (not self.is_python and not has(kind, TEXT)):
            return f"sorted({name}{backwards})"
        by = {"int": "one", "float": "one > 0.5", "bool": "not one", "str": "one == 'two'"}
        return f"sorted({name}, key=lambda one: {by.get(kind.name, 'len(one)')}{backwards})"

    def small(self) -> str:
        return self.pick("1", "-2", "0", f"{self.pick(*self.ints)} % 4", "-1")

    def read(self, wanted: Kind) -> str:
        """What some container gives that is of a wanted kind; it goes down to it."""
        found, kind = self.rng.choice(self.known())
        while kind != wanted:
            if kind.name == "list":
                element, at = kind.of[0], self.small()
                if wanted == INT and self.chance(0.5):
                    return self.counted(found, kind)
                if wanted == BOOL and self.chance(0.7):
                    return self.asked(found, kind)
                if self.chance(0.8):
                    at = f"{at} % len({found})"
                    return self.guarded(found, f"{found}[{at}]", element, wanted)
                found, kind = f"{found}[{at}]", element
            elif kind.name == "tuple":
                at_ = self.rng.randrange(len(kind.of))
                found, kind = f"{found}[{at_ - self.rng.choice([0, len(kind.of)])}]", kind.of[at_]
            elif kind.name == "dict":
                key, value = kind.of
                if wanted == INT and self.chance(0.4):
                    return self.counted(found, kind)
                if wanted == BOOL and self.chance(0.7):
                    return self.asked(found, kind)
                if value in (INT, FLOAT, TEXT, BOOL):
                    got = f"{found}.get({self.key(key)}, {self.of_kind(value, 0)})"
                    found, kind = self.pick(got, got, f"{found}[{self.key(key)}]"), value
                else:
                    chosen = self.key(key)
                    at = f"{found}[{chosen}]"
                    return self.guarded(f"{chosen} in {found}", at, value, wanted)
            elif kind.name == "set":
                if wanted == BOOL:
                    return self.asked(found, kind)
                return self.counted(found, kind) if wanted == INT else self.of_kind(wanted, 0)
            else:
                return self.turned(found, kind, wanted)
        return found

    def guarded(self, test: str, found: str, kind: Kind, wanted: Kind) -> str:
        """As far as a scalar, where a test says that there is one."""
        while kind.name == "tuple":
            found, kind = f"{found}[0]", kind.of[0]
        if kind.name in ("list", "dict", "set"):
            found, kind = f"len({found})", INT
        return f"({self.turned(found, kind, wanted)} if {test} else {self.of_kind(wanted, 0)})"

    def turned(self, found: str, kind: Kind, wanted: Kind) -> str:
        if kind == wanted:
            return found
        if wanted == BOOL:
            return f"({found} == {self.of_kind(kind, 0)})"
        if wanted == TEXT or kind == TEXT:
            return f"({self.of_kind(wanted, 0)} if {found} else {self.of_kind(wanted, 0)})"
        if wanted == FLOAT or kind == BOOL:
            return f"{wanted}({found})"
        return f"int({found} % 99)"

    def counted(self, found: str, kind: Kind) -> str:
        element = kind.of[0]
        options: list[Option] = [f"len({found})"]
        if element == INT:
            options += [
                f"sum({found})",
                lambda: f"min({found}, default={self.int_(0)})",
                lambda: f"max({found}, default=-1)",
                lambda: (
                    f"sum(one {self.pick('^', '*', '-')} {self.int_(0)} for one in {found})"
                    if kind.name != "set"
                    else f"sum({found})"
                ),
            ]
        is_deep = found.startswith(("NESTED", "GRID"))
        if kind.name == "list" and not is_deep and (not self.is_python or not has(element, FLOAT)):
            options.append(lambda: f"{found}.count({self.value_of(element, 0)})")
            options.append(
                lambda: f"({found}.index({found}[-1]) if {found} else -1)",
            )
        if kind.name == "dict" and kind.of[1] == INT:
            options += [f"sum({found}.values())", f"max({found}.values(), default=0)"]
            options.append(f"sum(v for {self.pick('k', '_')}, v in {found}.items())")
        if kind == list_of(list_of(INT)):
            options += [f"sum(sum(one) for one in {found})", f"sum(len(one) for one in {found})"]
        return self.pick(*options)

    def asked(self, found: str, kind: Kind) -> str:
        element = kind.of[0]
        options: list[Option] = [f"(not {found})", f"bool({found})"]
        # The lists of a module's lists are no lists of the event.
        is_deep = found.startswith(("NESTED", "GRID"))
        if not is_deep and (not self.is_python or not has(kind, FLOAT)):
            options += [lambda: f"({found} {self.pick('==', '!=')} {self.value_of(kind, 0)})"]
        if kind.name != "list":
            options += [lambda: f"({self.key(element)} {self.pick('in', 'not in')} {found})"]
        elif not is_deep and (not self.is_python or not has(kind, FLOAT)):
            options += [lambda: f"({self.value_of(element, 0)} in {found})"]
        if kind == list_of(INT):
            options += [
                lambda: f"({found} {self.pick('<', '>=')} {self.value_of(kind, 0)})",
                lambda: f"{self.pick('any', 'all')}(one > {self.int_(0)} for one in {found})",
            ]
        if kind.name == "set":
            options += [
                lambda: f"({found} {self.pick('<=', '>', '<')} {self.value_of(kind, 0)})",
                lambda: f"{found}.isdisjoint({self.value_of(kind, 0)})",
            ]
        return self.pick(*options)

    # ---- statements ----

    def declare(self, indent: int) -> None:
        """A new name of a new container, or of one that has a name."""
        kind = self.rng.choice(OWN)
        same = [name for name, other in self.held if other == kind]
        name = self.new("h")
        if same and self.chance(0.2):
            self.put(indent, f"{name} = {self.pick(*same)}")
        elif kind.name != "tuple" and self.chance(0.3):
            empty = "set()" if kind.name == "set" else {"list": "[]", "dict": "{}"}[kind.name]
            self.put(indent, f"{name}: {kind} = {empty}")
        else:
            self.put(indent, f"{name} = {self.value_of(kind)}")
        self.held.append((name, kind))

    def container_statement(self, indent: int, nesting: int) -> None:
        own = [one for one in self.held if one[1].name != "tuple"]
        kind = self.rng.random()
        if kind < 0.2 or not self.known():
            self.declare(indent)
        elif kind < 0.45 and nesting > 0 and self.turns <= 16 and self.held:
            self.go_through(indent, nesting)
        elif own and kind < 0.95:
            name, what = self.rng.choice(own)
            draw = {"list": self.change_list, "dict": self.change_dict, "set": self.change_set}
            draw[what.name](indent, name, what)
        else:
            self.match_tuple(indent, nesting)

    def change_list(self, indent: int, name: str, kind: Kind) -> None:
        element = kind.of[0]

        def one() -> str:
            return self.value_of(element, 0)

        growing = [
            lambda: f"{name}.append({one()})",
            lambda: f"{name}.append({one()})",
            lambda: f"{name}.insert({self.small()}, {one()})",
            lambda: f"{name}.extend([{one()}, {one()}])",
            lambda: f"{name} += [{one()}]",
            lambda: f"{name}[{self.small()} : {self.small()}] = [{one()}, {one()}]",
        ]
        if element in (INT, FLOAT, BOOL, TEXT):
            growing += [lambda: f"{name}.extend({name}[:2])", lambda: f"{name} *= 2"]
        if element == INT:
            growing.append(lambda: f"push({name}, {one()})")
        if element.name == "list" and self.chance(0.5):
            self.put(indent, f"if {name} and len({name}[-1]) < {ROOM}:")
            self.put(indent + 1, f"{name}[-1].append({self.value_of(element.of[0], 0)})")
        elif element.name == "dict" and self.chance(0.5):
            self.put(indent, f"if {name}:")
            self.put(indent + 1, f"{name}[0][{self.key(element.of[0])}] = {self.int_(0)}")
        elif self.chance(0.5):
            self.put(indent, f"if len({name}) < {ROOM}:")
            self.put(indent + 1, self.rng.choice(growing)())
        elif self.chance(0.7):
            changing: list[Option] = [
                f"{name}.pop()",
                lambda: f"{name}.pop({self.small()} % len({name}))",
                lambda: f"{name}[{self.small()} % len({name})] = {one()}",
                lambda: f"del {name}[{self.small()} % len({name})]",
                f"{name}[0], {name}[-1] = {name}[-1], {name}[0]",
                f"{name}.remove({name}[-1])"
                if not self.is_python or not has(element, FLOAT)
                else f"{name}.pop(0)",
            ]
            if element == INT:
                changing += [lambda: f"i1 = {name}.pop() + {self.int_(0)}"]
                changing += [lambda: f"{name}[0] {self.pick('+', '-', '^')}= {self.int_(0)}"]
            test = name if self.chance(0.9) else self.bool_(0)
            self.put(indent, f"if {test}:")
            self.put(indent + 1, self.pick(*changing))
        else:
            other = self.pick(
                f"{name}.reverse()",
                f"{name}.clear()",
                lambda: f"del {name}[{self.small()} : {self.small()}]",
                lambda: f"{name} = {self.value_of(kind)}",
                lambda: (
                    f"{name}.sort({'reverse=True' if element == INT else ''})"
                    if element == INT or (not self.is_python and element == FLOAT)
                    else f"{name}.reverse()"
                ),
                *([f"{name}.sort(key=lambda one: one % 3)"] if element == INT else []),
                *([f"{name}.sort(key=inner)"] if element == INT else []),
            )
            self.put(indent, other)

    def change_dict(self, indent: int, name: str, kind: Kind) -> None:
        key, value = kind.of
        chosen = self.key(key)
        options: list[Option] = [
            lambda: f"{name}[{chosen}] = {self.value_of(value, 0)}",
            lambda: f"{name}[{chosen}] = {self.value_of(value, 1)}",
            lambda: f"{name}.update({{{chosen}: {self.value_of(value, 0)}}})",
            lambda: f"{name} |= {{{chosen}: {self.value_of(value, 0)}}}",
            lambda: f"{name}.setdefault({chosen}, {self.value_of(value, 0)})",
            f"{name}.clear()",
        ]
        if value in (INT, FLOAT):
            names = "i0" if value == INT else "f0"
            options += [
                lambda: f"{name}[{chosen}] = {name}.get({chosen}, 0) + {self.of_kind(value, 0)}",
                lambda: f"{name}[{chosen}] += {self.of_kind(value, 0)}",
                lambda: f"{names} = {name}.pop({chosen}, {self.of_kind(value, 0)})",
                lambda: f"{names} = {name}.setdefault({chosen}, {self.of_kind(value, 0)})",
            ]
        if value == list_of(INT):
            grown = f"{name}.setdefault({chosen}, [])"
            options += [f"{grown}.append({self.int_(0)})"] * (1 if self.in_loop else 3)
        if self.chance(0.2):
            self.put(indent, f"if {self.pick(f'{chosen} in {name}', name)}:")
            last = f"i1 = {self.length_of(kind)} + len({name})".replace("$", name)
            self.put(indent + 1, self.pick(f"del {name}[{chosen}]", f"{name}.popitem()", last))
            return
        self.put(indent, self.pick(*options))

    def length_of(self, kind: Kind) -> str:
        return "max($)" if kind.of[0] == INT else "len($)"

    def change_set(self, indent: int, name: str, kind: Kind) -> None:
        (key,) = kind.of
        one, other = self.key(key), self.key(key)
        text = self.pick(
            f"{name}.add({one})",
            f"{name}.add({one})",
            f"{name}.discard({one})",
            f"{name}.update({{{one}, {other}}})",
            lambda: f"{name} {self.pick('|', '&', '-', '^')}= {{{one}, {other}}}",
            f"{name}.difference_update({{{one}}})",
            f"{name}.remove({one})" if self.chance(0.3) else f"{name}.discard({one})",
        )
        self.put(indent, text)

    def go_through(self, indent: int, nesting: int) -> None:
        """A loop over a container, which now and then changes in it."""
        # What lists of a module's lists give cannot be changed.
        name, kind = self.rng.choice(
            [one for one in self.known() if one[0] not in ("GRID", "NESTED")]
        )
        with self.scope(), self.loop(ROOM):
            if kind.name == "list":
                over = self.pick(name, name, f"reversed({name})", f"{name}[1:]")
                if kind.of[0].name in ("list", "dict", "set"):
                    over = name
                first = self.target(kind.of[0])
                if self.chance(0.3):
                    at = self.new("n")
                    self.ints.append(at)
                    over = f"enumerate({name})"
                    first = f"{at}, {first}" if "," not in first else f"{at}, ({first})"
            elif kind.name == "dict":
                key, value = kind.of
                # A dict that is changed while it is gone through raises, by its size in Python.
                changed = {one for one, other in self.held if other.name in ("dict", "set")}
                if self.is_python:
                    self.held = [one for one in self.held if one[0] not in changed]
                form = self.rng.randrange(3)
                over = (name, f"{name}.items()", f"{name}.values()")[form]
                if form == 1:
                    left, right = self.target(key), self.target(value)
                    left = f"({left})" if "," in left else left
                    first = f"{left}, {right}" if "," not in right else f"{left}, ({right})"
                else:
                    first = self.target(key if form == 0 else value)
            elif kind.name == "set":
                over = f"sorted({name})"
                if self.is_python and has(kind, TEXT):
                    self.put(indent, f"i1 = len({name})")
                    return
                if has(kind, TEXT) or (not self.is_python and self.chance(0.6)):
                    over = name
                first = self.target(kind.of[0])
            elif any(one != kind.of[0] for one in kind.of):
                self.put(indent, f"i1 = len({name})")
                return
            else:
                over, first = name, self.target(kind.of[0])
            self.put(indent, f"for {first} in {over}:")
            for _ in range(self.rng.randint(1, 2)):
                self.statement(indent + 1, nesting - 1)

    def target(self, kind: Kind) -> str:
        """Names of what a loop gives."""
        if kind.name == "tuple" and self.chance(0.7):
            return ", ".join(
                f"({inner})" if "," in inner else inner for inner in map(self.target, kind.of)
            )
        name = self.new("p")
        if kind == INT:
            self.ints.append(name)
        elif kind == FLOAT:
            self.floats.append(name)
        elif kind not in (BOOL, TEXT):
            self.held.append((name, kind))
        return name

    def match_tuple(self, indent: int, nesting: int) -> None:
        first, second = self.new("p"), self.new("p")
        pairs = [one for one, kind in self.held if kind == PAIR]
        subject = self.pick(f"({self.int_(0)} & 7, {self.float_(0)})", *pairs)
        self.put(indent, f"match {subject}:")
        self.put(indent + 1, f"case (1 | 2 | {self.rng.randint(3, 5)}) as {first}, _:")
        with self.scope():
            self.ints.append(first)
            self.block(indent + 2, 1, nesting - 1)
        guard = self.pick("", f" if {second} < {self.float_(0)}")
        self.put(indent + 1, f"case {first}, {second}{guard}:")
        with self.scope():
            self.ints.append(first)
            self.floats.append(second)
            self.block(indent + 2, 1, nesting - 1)

    def show(self, indent: int) -> None:
        """Emits what the containers hold in the end."""
        for name, kind in self.held:
            if kind.name == "tuple":
                continue
            if kind.of[0] == INT and kind.name == "set":
                self.put(indent, f"for one in {self.in_order(name)}:")
                self.put(indent + 1, "emit(one, 0.25, False)")
            elif kind.of[0] == INT:
                value = f"float({name}[one])" if kind == dict_of(INT, INT) else "0.75"
                self.put(indent, f"for one in {name}:")
                self.put(indent + 1, f"emit(one, {value}, True)")
            elif kind.of[0] == FLOAT:
                self.put(indent, f"for two in {name}:")
                self.put(indent + 1, f"emit(len({name}), two, True)")
            elif kind.of[0] == TEXT and kind.name != "set":
                self.put(indent, f"for text in {name}:")
                self.put(indent + 1, "emit(1, 0.125, True, s=text)")
            else:
                self.put(indent, f"emit(len({name}), 0.0, not {name})")


def has(kind: Kind, *kinds: Kind) -> bool:
    return kind in kinds or any(has(one, *kinds) for one in kind.of)


def _has_ints(kind: Kind) -> bool:
    return kind.name == "dict" and kind.of[1] == INT

"""Containers of the state, as interpreted operators have them, beside Python's own.

Each form is evaluated with both: value, type and text, or the exception and what it says, are the
same. A set that operators make keeps its order, and is of a class of its own.
"""

from __future__ import annotations

import copy
import re
import types
from collections import deque
from collections.abc import Callable
from operator import delitem, iadd, iand, imul, ior, isub, ixor, setitem
from typing import Any

import specstream as ss

USED = (copy, deque, delitem, iadd, iand, imul, ior, isub, ixor, setitem)  # by the forms


class Held(ss.State):
    last = ss.deque(int, maxlen=3)
    all = ss.deque(int)
    none = ss.deque(int, maxlen=0)
    items = ss.list(int)
    counts = ss.dict(str, int)
    seen = ss.set(int)


def fresh() -> Any:
    return types.SimpleNamespace(
        last=deque([1, 2, 3], 3),
        all=deque([1, 2, 3]),
        none=deque(maxlen=0),
        items=[1, 2, 3],
        counts={"a": 1, "b": 2},
        seen={1, 2, 3},
    )


def after(container: Any, change: Callable[[Any], object]) -> list[Any]:
    """What an iterator gives after a change."""
    walk = iter(container)
    next(walk)
    change(container)
    return list(walk)


OF_ALL_SEQUENCES = """
d.append(7), len(d), list(d)
d.extend([7, 8, 9, 10]), list(d)
repr(d), str(d), f"{d}"
d * 2
2 * d
d + d
d + (1,)
copy.copy(d)
copy.deepcopy(d)
copy.copy(d) is d
d.copy()
d.insert(-9, 5), list(d)
d[9]
d[-1]
d.index(2)
d.index(99)
d.index(2, 0, 1)
d.remove(99)
d.remove(2), list(d)
d.count(2)
d.pop(), d.pop()
d.reverse(), list(d)
list(reversed(d))
2 in d, bool(d), len(d), sum(d), sorted(d), [*d]
max(d, default=None)
[setitem(d, 0, x + 1) for x in d], list(d)
setitem(d, 9, 1)
delitem(d, 0), list(d)
iadd(d, (4, 5)), list(d)
imul(d, 2), list(d)
d.extend(d), list(d)
d.clear(), len(d)
d == [1, 2, 3], d == deque([1, 2, 3]), d != [1], d == (1, 2, 3)
list(zip(d, d))
"""
OF_DEQUES = """
d.appendleft(7), list(d)
d.extendleft([7, 8, 9, 10]), list(d)
d + deque([1])
d + [1]
[1] + d
deque([1], 2) + d
d < deque([1, 2, 4])
d.maxlen
d.insert(1, 5), list(d)
d.rotate(), list(d)
d.rotate(-2), list(d)
d[1:]
d.insert(1.5, 5)
d.rotate(0.5)
(lambda begun: ([next(begun) for _ in d], d.append(1), list(begun)))(reversed(d))
(lambda begun: (next(begun, 0), d.append(1), list(begun)))(reversed(d))
d.popleft()
d.sort()
[d.append(x) for x in d]
[d.pop() for x in d]
[d.clear() for x in d]
[d.rotate() for x in d]
[d.reverse() for x in d]
after(d, lambda d: d.append(1))
after(d, lambda d: d.append(1) or d.popleft())
after(d, lambda d: setitem(d, 0, 5))
deque(d, 2)
"""
OF_LISTS = """
d + [1]
[1] + d
d < [1, 2, 4]
d[1:], d[::-1]
d.pop(0), d.pop(-2)
d.pop(9)
d.insert(1.5, 5)
d.index(2, -2)
setitem(d, slice(None), d), list(d)
setitem(d, slice(2, 0), [7]), list(d)
delitem(d, slice(None, None, -2)), list(d)
d.sort(reverse=True), list(d)
d.sort(key=lambda x: -x), list(d)
delitem(d, slice(0, 2)), list(d)
setitem(d, slice(0, 2), [8, 8, 8]), list(d)
setitem(d, slice(0, 3, 2), [8, 8]), list(d)
setitem(d, slice(0, 3, 2), [8]), list(d)
[d.append(x) for x in d if len(d) < 9], list(d)
[d.pop() for x in d], list(d)
after(d, lambda d: d.append(1))
"""
OF_DICTS = """
d["a"]
d["z"]
d.get("z"), d.get("z", 3)
d.pop("z")
d.pop("z", 4), d.pop("a"), dict(d)
d.popitem(), dict(d)
d.setdefault("q", 5), d.setdefault("a", 5), dict(d)
d.update({"z": 1}), d.update(y=1), d.update([("x", 1)]), dict(d)
repr(d), f"{d}"
d == {"a": 1, "b": 2}, d != {}
d | {"c": 3}
{"c": 3} | d
ior(d, {"c": 3}), dict(d)
list(d), list(d.items()), list(d.keys()), list(d.values()), list(reversed(d))
"a" in d, len(d), bool(d), ("a", 1) in d.items(), 1 in d.values(), len(d.items())
d.copy()
copy.copy(d)
copy.deepcopy(d)
delitem(d, "z")
delitem(d, "a"), dict(d)
[setitem(d, k, 9) for k in d], dict(d)
[setitem(d, "n" + k, 1) for k in d]
[d.pop(k) for k in d]
d.keys() == {"a", "b"}, d.items() == {"a": 1, "b": 2}.items()
repr(d.keys()), repr(d.values()), repr(d.items())
{**d}
max(d, key=d.get), sorted(d.items(), key=lambda kv: -kv[1])
after(d, lambda d: setitem(d, "new", 1))
after(d, lambda d: d.pop("a"))
after(d, lambda d: setitem(d, "a", 7))
(lambda begun: (setitem(d, "new", 1), list(begun)))(iter(d))
(lambda begun: (setitem(d, "new", 1), list(begun)))(iter(d.values()))
list(reversed(d.items())), list(reversed(d.values()))
("a", 2) in d.items(), ("z", 1) in d.items(), ("a",) in d.items(), 9 in d.values()
d.update((k, d.get(k, 0) + 5) for k in ["z", "a", "z"]), dict(d)
[{**d} == d, d == {"a": 1.0, "b": 2}, d == {1: 1, 2: 2}, d == [("a", 1)]]
d.clear(), len(d)
"""
OF_SETS = """
1 in d, len(d), sum(d), bool(d)
d.add(4), sorted(d)
d.remove(9)
d.discard(9), d.discard(1), sorted(d)
sorted(d | {9}), sorted({9} | d), sorted(d & {1, 9}), sorted({1, 9} & d)
sorted(d - {1}), sorted({1, 9} - d), sorted(d ^ {1, 9}), sorted({1, 9} ^ d)
isinstance(frozenset([9, 1]) & d, frozenset), sorted(frozenset([9]) | d)
d == {1, 2, 3}, d <= {1, 2, 3, 4}, d < {1, 2, 3}, {1} <= d, d | {1} == d
sorted(d.union([5], [6])), d.isdisjoint([9]), d.issubset([1, 2, 3, 4])
ior(d, {7}) is d, sorted(d)
isub(d, {1}) is d, sorted(d)
iand(d, {1}) is d, sorted(d)
ixor(d, {1, 9}) is d, sorted(d)
d | [1]
[1] | d
d & [1]
d - [1]
d ^ [1]
ior(d, [1])
iand(d, [1])
isub(d, [1])
ixor(d, [1])
repr(d), f"{d}"
sorted(copy.copy(d)), copy.copy(d) is d, sorted(copy.deepcopy(d)), sorted(d.copy())
[d.add(x + 10) for x in d]
[d.remove(x) for x in d]
after(d, lambda d: d.add(99))
(lambda begun: (d.add(99), list(begun)))(iter(d))
d.clear(), len(d)
"""


def forms() -> list[str]:
    of = dict.fromkeys(("last", "all", "none"), OF_ALL_SEQUENCES + OF_DEQUES)
    of |= {"items": OF_ALL_SEQUENCES + OF_LISTS, "counts": OF_DICTS, "seen": OF_SETS}
    return [
        f"(lambda d: ({line}))(state.{name})"
        for name, lines in of.items()
        for line in lines.strip().splitlines()
    ]


FORMS = forms()
CODE = [compile(form, form, "eval") for form in FORMS]


def outcome(form: int, state: Any) -> str:
    try:
        value = eval(CODE[form], globals(), {"state": state})
    except Exception as error:
        said = re.sub(r"'(StateSet|OrderedSet)'", "'set'", str(error))
        return f"{type(error).__name__}: {said}"
    kind = type(value).__name__
    return f"{'set' if kind == 'OrderedSet' else kind} {value!r}"


@ss.operator(state=Held, event={"form": int}, emits={"outcome": str}, interpreted=True)
def evaluate(state: Any, event: Any, emit: Any) -> None:
    for name, value in vars(fresh()).items():
        container = getattr(state, name)
        container.clear()
        if name == "seen":
            for one in sorted(value):
                container.add(one)
        elif name == "counts":
            container.update(value)
        else:
            container.extend(value)
    emit(outcome(event.form, state))


def test_each_form_does_what_it_does_with_pythons_own() -> None:
    expected = [outcome(form, fresh()) for form in range(len(FORMS))]
    with ss.Engine(evaluate, threads=2, horizon=2) as engine:
        found = engine.process({"form": range(len(FORMS))})["outcome"].to_pylist()
    differ = {
        form: (python, ours)
        for form, python, ours in zip(FORMS, expected, found, strict=True)
        if python != ours
    }
    assert not differ

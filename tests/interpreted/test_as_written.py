"""Ten operators as people write them: an engine's answer is that of the function on plain objects.

The plain run shares nothing with the library but the record classes: its state is dicts, lists,
sets, deques and NumPy's arrays, its event an object with attributes, its ``emit`` a list.
"""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import collections
import copy
import dataclasses
import functools
import heapq
import itertools
import json
import random
import re
import statistics
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import optimize
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

import specstream as ss


class Timers:
    """Timers on plain objects: by their key, when each is due and which was set first."""

    def __init__(self) -> None:
        self.due: dict[Any, tuple[int, int]] = {}
        self.stamps = itertools.count()

    def set(self, key: Any, at: int) -> None:
        self.due[key] = at, next(self.stamps)

    def cancel(self, key: Any) -> None:
        self.due.pop(key, None)

    def __contains__(self, key: Any) -> bool:
        return key in self.due


class Queue(list[Any]):
    """A priority queue on plain objects."""

    def push(self, item: Any) -> None:
        heapq.heappush(self, item)

    def pop(self) -> Any:  # type: ignore[override]
        return heapq.heappop(self)


@dataclasses.dataclass
class Case:
    """An operator, and what its function runs on without the library.

    Attributes:
        plain: makes the state.
        row: makes the values of an event, of its number and of what draws.
        on_timer: what runs where a timer is due.
    """

    function: Callable[..., None]
    state: type[ss.State]
    plain: Callable[[], SimpleNamespace]
    emits: dict[str, Any]
    event: dict[str, Any]
    row: Callable[[int, random.Random], dict[str, Any]]
    on_timer: Callable[..., None] | None = None

    @functools.cached_property
    def operator(self) -> ss.Operator:
        declared: dict[str, Any] = {"on_timer": self.on_timer} if self.on_timer else {}
        return ss.operator(
            state=self.state, event=self.event, emits=self.emits, interpreted=True, **declared
        )(self.function)

    def rows(self, count: int, seed: int) -> list[dict[str, Any]]:
        draw = random.Random(seed)
        return [{"time": at // 2, **self.row(at, draw)} for at in range(count)]

    def expected(self, rows: list[dict[str, Any]]) -> tuple[list[dict[str, Any]], SimpleNamespace]:
        state, found = self.plain(), []

        def emit(*values: Any, **named: Any) -> None:
            given = dict(zip(self.emits, values, strict=False)) | named
            found.append({name: given.get(name) for name in self.emits})

        for row in rows:
            timers = getattr(state, "timers", None)
            while timers is not None and timers.due:
                key, (at, _) = min(timers.due.items(), key=lambda item: item[1])
                if at > row["time"]:
                    break
                timers.cancel(key)
                assert self.on_timer is not None
                self.on_timer(state, SimpleNamespace(key=key, at=at), emit)
            self.function(state, SimpleNamespace(**row), emit)
        return found, state


CASES: dict[str, Case] = {}


def case(**of: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    def made(function: Callable[..., None]) -> Callable[..., None]:
        CASES[function.__name__] = Case(function, **of)
        return function

    return made


# ---- a model, with what threads cannot share ----

_DRAW = np.random.default_rng(3)
_SEEN = _DRAW.normal(size=(200, 3))
MODEL = LogisticRegression().fit(_SEEN, _SEEN @ [1.0, -2.0, 0.5] > 0.2)
SCALER = StandardScaler().fit(_SEEN)


class Buffer:
    def __init__(self) -> None:
        self.row = np.empty((1, 3))

    def filled(self, values):
        self.row[0] = values
        return self.row


buffer = ss.per_worker(Buffer)


class Fraud(ss.State):
    last = ss.array(float, (8, 3))
    scores = ss.dict(int, float)
    alarms = ss.scalar(int)


@case(
    state=Fraud,
    plain=lambda: SimpleNamespace(last=np.zeros((8, 3)), scores={}, alarms=0),
    event={"time": int, "card": int, "amount": float},
    emits={"card": int, "score": float, "alarm": bool},
    row=lambda at, draw: {"card": draw.randrange(8), "amount": draw.gauss(0, 2)},
)
def fraud(state, event, emit):
    history = state.last[event.card]
    history[:-1] = history[1:].copy()
    history[-1] = event.amount - state.alarms / 100
    features = SCALER.transform(buffer().filled(history))
    score = MODEL.predict_proba(features)[0, 1]
    if score > 0.8:
        state.alarms += 1
    state.scores[event.card] = max(score, state.scores.get(event.card, 0.0))
    emit(card=event.card, score=score, alarm=score > 0.8)


# ---- statistics of a window ----


class Sensors(ss.State):
    window = ss.deque(float, maxlen=9)
    rolled = ss.array(float, 16)
    count = ss.scalar(int)
    worst = ss.array(float, 4)


@case(
    state=Sensors,
    plain=lambda: SimpleNamespace(
        window=collections.deque(maxlen=9), rolled=np.zeros(16), count=0, worst=np.zeros(4)
    ),
    event={"time": int, "value": float},
    emits={"median": float, "spread": ss.nullable(float), "place": int},
    row=lambda at, draw: {"value": draw.gauss(at % 7, 3)},
)
def outliers(state, event, emit):
    state.window.append(event.value)
    state.rolled[:] = np.roll(state.rolled, 1)
    state.rolled[0] = event.value
    state.count += 1
    if len(state.window) < 3:
        emit(event.value, place=-1)
        return
    median = np.median(state.window)
    spread = np.median(np.abs(np.array(state.window) - median))
    if spread > 0 and abs(event.value - median) / spread > 2.5:
        state.worst[0] = event.value
        state.worst.sort()
    low, high = np.percentile(state.rolled, [25, 75])
    place = int(np.searchsorted(np.sort(state.rolled), event.value))
    emit(median, float(high - low) + statistics.fmean(state.window), place)


# ---- a look-up by a class from outside ----


class Directory:
    """Stands for a service, with a cache of its own."""

    def __init__(self, limits):
        self._limits = limits
        self.asked = functools.lru_cache(maxsize=4)(self._ask)

    def _ask(self, customer):
        return self._limits.get(customer)

    def __contains__(self, customer):
        return self.asked(customer) is not None

    @property
    def everyone(self):
        return sorted(self._limits)


DIRECTORY = Directory({"ann": 30.0, "bob": 60.0, "cyd": 12.5})


class Credit(ss.State):
    owed = ss.dict(str, float)
    refused = ss.set(str)
    total = ss.scalar(float)


@case(
    state=Credit,
    plain=lambda: SimpleNamespace(owed={}, refused=set(), total=0.0),
    event={"time": int, "who": str, "amount": float},
    emits={"who": str, "ok": bool, "left": ss.nullable(float)},
    row=lambda at, draw: {
        "who": draw.choice(["ann", "bob", "cyd", "dan"]),
        "amount": draw.randrange(1, 9) / 2,
    },
)
def credit(state, event, emit):
    who = event.who
    if who not in DIRECTORY:
        state.refused |= {who}
        emit(who, False)
        return
    limit, owed = DIRECTORY.asked(who), state.owed.setdefault(who, 0.0)
    if owed + event.amount > limit:
        if owed and state.total > 40:
            state.total -= state.owed.pop(who)
        emit(who, False, limit - owed)
    else:
        state.owed[who] += event.amount
        state.total = sum(state.owed.values())
        emit(who, True, limit - state.owed[who])
    if len(state.owed) == len(DIRECTORY.everyone) and event.time % 10 == 0:
        poorest, least = min(state.owed.items(), key=lambda item: (item[1], item[0]))
        emit(poorest + "!", least < 10, least)


# ---- linear algebra ----


class Track(ss.State):
    x = ss.array(float, 2)
    p = ss.array(float, (2, 2), fill=1.0)
    rejected = ss.array(int, 3)


STEP = np.array([[1.0, 1.0], [0.0, 1.0]])


@case(
    state=Track,
    plain=lambda: SimpleNamespace(
        x=np.zeros(2), p=np.ones((2, 2)), rejected=np.zeros(3, dtype=int)
    ),
    event={"time": int, "seen": float, "sensor": int},
    emits={"place": float, "speed": float, "trace": float},
    row=lambda at, draw: {"seen": at + draw.gauss(0, 1), "sensor": draw.randrange(3)},
)
def kalman(state, event, emit):
    x, p = STEP @ state.x, STEP @ state.p @ STEP.T + 0.01 * np.eye(2)
    gap = event.seen - x[0]
    if abs(gap) > 40 * np.sqrt(p[0, 0] + 1):
        state.rejected[event.sensor] += 1
    else:
        gain = p[:, 0] / (p[0, 0] + 1.0)
        x = x + gain * gap
        p = p - np.outer(gain, p[0])
    state.x[...] = x
    state.p[:] = (p + p.T) / 2
    emit(*state.x, trace=np.trace(state.p) + np.prod(state.p[..., 0]))


# ---- sessions with timers ----


class Session(ss.Record):
    first: int
    clicks: int = 0
    longest: str = ""

    def clicked(self, page):
        self.clicks += 1
        if len(page) > len(self.longest):
            self.longest = page


class Visits(ss.State):
    open = ss.dict(int, Session)
    timers = ss.timers(int)
    pages = ss.dict(str, int)


def session_over(state, timer, emit):
    session = state.open.pop(timer.key)
    for page, count in state.pages.items():
        if count == max(state.pages.values()):
            emit(timer.key, session.clicks, f"{session.longest}/{page}", timer.at - session.first)
            break


@case(
    state=Visits,
    plain=lambda: SimpleNamespace(open={}, timers=Timers(), pages={}),
    event={"time": int, "user": int, "page": str},
    emits={"user": int, "clicks": int, "page": str, "lasted": int},
    row=lambda at, draw: {"user": draw.randrange(6), "page": "p" * draw.randrange(1, 9)},
    on_timer=session_over,
)
def sessions(state, event, emit):
    session = state.open.get(event.user)
    if session is None:
        state.open[event.user] = session = Session(event.time)
    session.clicked(event.page)
    state.pages[event.page] = state.pages.get(event.page, 0) + 1
    state.timers.set(event.user, event.time + 5)
    if session.clicks > 12:
        state.timers.cancel(event.user)
        emit(event.user, session.clicks, session.longest, -1)
        del state.open[event.user]


# ---- an order book ----


class Order(ss.Record):
    number: int
    price: int
    quantity: int


class Book(ss.State):
    asks = ss.priority_queue((int, int))
    orders = ss.dict(int, Order)
    trades = ss.list(int)
    best = ss.scalar(Order)


@case(
    state=Book,
    plain=lambda: SimpleNamespace(asks=Queue(), orders={}, trades=[], best=Order(0, 0, 0)),
    event={"time": int, "number": int, "sells": bool, "price": int, "quantity": int},
    emits={"kind": str, "number": int, "quantity": int},
    row=lambda at, draw: {
        "number": at,
        "sells": draw.random() < 0.55,
        "price": draw.randrange(90, 110),
        "quantity": draw.randrange(1, 6),
    },
)
def matches(state, event, emit):
    def take(quantity):
        while quantity and state.asks:
            price, number = state.asks.pop()
            if price > event.price:
                state.asks.push((price, number))
                break
            order = state.orders[number]
            taken = min(order.quantity, quantity)
            order.quantity -= taken
            quantity -= taken
            yield order, taken
            if order.quantity == 0:
                del state.orders[number]
            else:
                state.asks.push((price, number))

    if event.sells:
        state.orders[event.number] = Order(event.number, event.price, event.quantity)
        state.asks.push((event.price, event.number))
        emit("new", event.number, event.quantity)
    for order, taken in take(0 if event.sells else event.quantity):
        state.trades.append(taken * order.price)
        emit("trade", order.number, taken)
    if state.trades and state.trades[-1] > state.best.price * state.best.quantity:
        state.best.price, state.best.quantity = state.trades[-1], 1
    match state.trades[-2:]:
        case [a, b] if a == b:
            state.trades.clear()
            emit("cleared", len(state.orders), a)
        case [_, b]:
            state.trades[:] = [one for one in state.trades if one >= b // 2][-20:]


# ---- texts ----

CODE = re.compile(r"^(?P<land>[a-z]{2})-(?P<number>\d+)$")


class Seen(ss.State):
    codes = ss.set((str, int))
    lands = ss.dict(str, int)
    words = ss.array(str, 3)
    bad = ss.scalar(int)


@case(
    state=Seen,
    plain=lambda: SimpleNamespace(
        codes=set(), lands={}, words=np.array(["", "", ""], object), bad=0
    ),
    event={"time": int, "payload": str},
    emits={"text": str, "first": bool},
    row=lambda at, draw: {
        "payload": draw.choice(
            [
                json.dumps({"code": f"{draw.choice(['de', 'fr'])}-{draw.randrange(9)}"}),
                json.dumps({"code": "?"}),
                "{",
            ]
        )
    },
)
def deduplicates(state, event, emit):
    try:
        found = CODE.match(json.loads(event.payload)["code"])
        if not found:
            raise LookupError("no code")
    except json.JSONDecodeError as error:
        state.bad += 1
        emit(f"{error.msg} ({state.bad})", False)
        return
    except LookupError as error:
        emit(str(error).upper(), False)
        return
    finally:
        state.words[state.bad % 3] = event.payload[:4] + state.words[(state.bad + 1) % 3][:2]
    if (key := (found["land"], int(found["number"]))) in state.codes:
        emit("-".join(map(str, key)), False)
    else:
        state.codes.add(key)
        counts = collections.Counter(land for land, _ in state.codes)
        state.lands.update(counts)
        emit(", ".join(f"{land}:{state.lands[land]}" for land in sorted(state.lands)), True)
        german = {("de", number) for number in range(9)} & state.codes
        both = german | {("fr", number) for number in range(9)}
        emit(f"{len(german)} {german < state.codes}", both >= state.codes == german | state.codes)


# ---- a histogram, by all ways in which NumPy changes an array ----


class Histogram(ss.State):
    counts = ss.array(int, 12)
    small = ss.array(np.int16, (2, 6))
    single = ss.array(np.float32, 5)
    flags = ss.array(np.bool_, 12)


@case(
    state=Histogram,
    plain=lambda: SimpleNamespace(
        counts=np.zeros(12, np.int64),
        small=np.zeros((2, 6), np.int64),
        single=np.zeros(5, np.float32),
        flags=np.zeros(12, bool),
    ),
    event={"time": int, "x": int, "y": float},
    emits={"peak": int, "level": float, "text": str},
    row=lambda at, draw: {"x": draw.randrange(12), "y": draw.random() * 4},
)
def histogram(state, event, emit):
    np.add.at(state.counts, [event.x, (event.x * 7) % 12, event.x], 1)
    np.add(state.small, np.arange(6) % 2, out=state.small, where=np.array([[True], [event.x > 6]]))
    np.clip(state.small, 0, 9, out=state.small)
    state.flags[:] = state.counts > np.mean(state.counts)
    if event.x % 3 == 0:
        np.copyto(state.counts[2:4], [event.x, 1])
        state.counts[4:8] //= 2
        state.small[1, ::2] = state.small[0, 1::2]
    state.single[event.x % 5] = event.y
    state.single[:-1] += np.float32(0.5) * state.single[1:]
    if event.x == 11:
        state.counts[6:].sort()
        state.single *= 0.25
    shown = np.where(state.flags, state.counts, 0)
    q, r = np.divmod(state.counts, 3)
    total = int((q * 3 + r).sum()) + state.counts.size + state.small.T.shape[0]
    emit(int(np.argmax(state.counts)), float(state.single[-2]), f"{shown.tolist()} {total}")


# ---- records, and copies of them ----


class Item(ss.Record):
    name: str
    stock: int = 0
    price: float = 1.0

    @property
    def worth(self):
        return self.stock * self.price

    @worth.setter
    def worth(self, value):
        self.price = value / max(self.stock, 1)


class Inventory(ss.State):
    shelf = ss.array(Item, 4)
    items = ss.dict(str, Item)
    log = ss.list(Item)


@case(
    state=Inventory,
    plain=lambda: SimpleNamespace(shelf=[Item("", 0, 0.0) for _ in range(4)], items={}, log=[]),
    event={"time": int, "name": str, "by": int},
    emits={"name": str, "before": int, "after": int, "worth": float},
    row=lambda at, draw: {"name": draw.choice("abcde"), "by": draw.randrange(-3, 6)},
)
def inventory(state, event, emit):
    item = state.items.setdefault(event.name, Item(event.name, 10))
    before = copy.copy(item)
    item.stock += event.by
    if item.stock < 5:
        state.items[event.name] = dataclasses.replace(item, stock=20, price=item.price * 1.5)
    item = state.items[event.name]
    item.worth = item.worth + 1
    place = event.by % 4
    state.shelf[place] = copy.deepcopy(item)
    state.shelf[place].stock += 1
    state.log.append(before)
    before.stock -= 1  # which is in the state by now
    if len(state.log) > 5:
        state.log.sort(key=lambda one: (one.stock, one.name, one.price))
        gone = state.log.pop(1)
        emit(gone.name, gone.stock, len(state.log), gone.worth)
    dearest = max(state.items.values(), key=lambda one: (one.price, one.name))
    cheap = heapq.nsmallest(2, state.items, key=lambda name: (state.items[name].price, name))
    same = sum(one == state.shelf[0] for one in state.shelf)
    emit(dearest.name + "".join(cheap), before.stock, item.stock + same, item.worth)


# ---- recursion, an optimizer, a decorated helper ----


def traced(function):
    @functools.wraps(function)
    def wrapper(*given, depth=0, **named):
        return function(*given, depth=depth + 1, **named)

    return wrapper


@traced
def collatz(n, steps, depth):
    """As far as it is known, or in a loop."""
    if n == 1 or depth > 40:
        return depth
    if n in steps:
        return depth + steps[n]
    return collatz(n // 2 if n % 2 == 0 else 3 * n + 1, steps, depth=depth)


def root_of(target, start):
    for _ in range(3):
        start = optimize.brentq(lambda x: x * x * x - target, -1, start + 1)
    return start


class Steps(ss.State):
    steps = ss.dict(int, int)
    guess = ss.scalar(float, fill=9.0)
    last = ss.deque(int)


@case(
    state=Steps,
    plain=lambda: SimpleNamespace(steps={}, guess=9.0, last=collections.deque()),
    event={"time": int, "n": int},
    emits={"n": int, "steps": int, "root": float},
    row=lambda at, draw: {"n": draw.randrange(1, 60)},
)
def recursion(state, event, emit):
    found = state.steps[event.n] = collatz(event.n, state.steps)
    state.guess = root_of(event.n, state.guess + 4)
    state.last.appendleft(found)
    kept = collections.deque([found, found])
    most = max(state.steps.values())
    with_most = {n for n, steps in reversed(state.steps.items()) if steps == most}
    assert list(reversed(state.steps.values())) == list(state.steps.values())[::-1]
    assert next(reversed(state.steps.keys())) == list(state.steps)[-1]
    while len(state.last) > 3 and (state.last[-1] > state.last[0] or len(state.last) > 8):
        state.last.pop()
    for total in itertools.accumulate(itertools.islice(state.last, 2)):
        emit(min(with_most), total, round(state.guess, 6))
    else:
        emit(n=event.n, steps=sum(state.last), root=float(state.last == kept))


# ---- the comparison ----


def same(found: Any, expected: Any) -> bool:
    """Whether a field holds what a plain object does."""
    if isinstance(expected, Timers):
        return True  # what they do is seen in the rows
    if isinstance(expected, Queue):
        return bool(found == sorted(expected))
    if isinstance(found, np.ndarray) and found.dtype.names:
        return [tuple(one) for one in found] == [dataclasses.astuple(one) for one in expected]
    if isinstance(expected, np.ndarray):
        return np.array_equal(np.asarray(found), expected.astype(np.asarray(found).dtype))
    if isinstance(expected, dict):
        return list(found.items()) == list(expected.items())
    if isinstance(expected, collections.deque | list):
        return list(found) == list(expected)
    if isinstance(expected, set):
        return set(found) == expected
    return bool(found == expected)


ENGINES: list[dict[str, Any]] = [
    {"threads": 1},
    {"threads": 2, "horizon": 4, "chunk": 1},
    {"threads": 2, "horizon": 6, "chunk": 2, "protocol": "eager"},
    {"threads": 4, "horizon": 8, "chunk": 1, "execution": "speculate"},
]


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_that_of_the_function_on_plain_objects(name: str) -> None:
    one = CASES[name]
    rows = one.rows(150, seed=len(name))
    expected, state = one.expected(rows)
    assert len(expected) > 20, "the stream has something to say"
    table = pa.Table.from_pylist(rows)
    run = one.operator.run_sequential(table, order_by="time")
    assert run.output.to_pylist() == expected
    for field in vars(state):
        assert same(getattr(run.state, field), getattr(state, field)), field
    for options in ENGINES:
        with ss.Engine(one.operator, **options) as engine:
            assert engine.process(table, order_by="time").equals(run.output), options
            found = engine.state.to_dict()
            told = run.state.to_dict()
            assert found.keys() == told.keys()
            for field in told:
                assert repr(found[field]) == repr(told[field]), (field, options)

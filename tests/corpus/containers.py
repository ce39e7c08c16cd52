"""Tables, queues and heaps that grow with what comes."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc, index"

import bisect
import heapq
import itertools
import statistics
from collections import Counter, OrderedDict

import numpy as np
import pyarrow as pa

import specstream as ss
from corpus.case import case


def rows(table):
    return table.to_pylist()


def visits(rng):
    n = 250
    return pa.table(
        {
            "at": np.cumsum(rng.integers(0, 12, n)),
            "user": rng.choice(
                ["anna", "otto", "li", "eva", "sam"], n, p=[0.4, 0.3, 0.1, 0.1, 0.1]
            ),
            "page": rng.choice(["/", "/buy", "/help", "/buy/now"], n),
            "size": rng.integers(1, 5000, n),
        }
    )


VISIT = {"at": int, "user": str, "page": str, "size": int}


class Words(ss.State):
    count = ss.dict(str, int)


def words_by_counter(table):
    seen, found = Counter(), []
    for page in table["page"].to_pylist():
        seen[page] += 1
        found.append((page, seen[page], len(seen)))
    return found


@case(
    "how often each page was seen",
    visits,
    words_by_counter,
    state=Words,
    event=VISIT,
    emits={"page": str, "times": int, "pages": int},
)
def page_counts(state, event, emit):
    state.count[event.page] = state.count.get(event.page, 0) + 1
    emit(event.page, state.count[event.page], len(state.count))


GAP = 30


class Sessions(ss.State):
    open = ss.dict(str, (int, int, int))


def sessions_by_groups(table):
    """A session of each user begins where the gap before is too long."""
    d = table.to_pandas()
    before = d.groupby("user")["at"].shift()
    d["number"] = (d["at"] - before > GAP).groupby(d["user"]).cumsum()
    found = []
    for (user, _), part in d.groupby(["user", "number"], sort=False):
        later = d[(d["user"] == user) & (d.index > part.index[-1])]
        if len(later):
            ends = (int(part["at"].iloc[0]), int(part["at"].iloc[-1]))
            found.append((later.index[0], user, *ends, len(part)))
    return [row[1:] for row in sorted(found)]


@case(
    "session windows, closed by the first visit behind the gap",
    visits,
    sessions_by_groups,
    state=Sessions,
    event=VISIT,
    emits={"user": str, "start": int, "end": int, "visits": int},
)
def session_windows(state, event, emit):
    if event.user in state.open:
        start, last, count = state.open[event.user]
        if event.at - last <= GAP:
            state.open[event.user] = (start, event.at, count + 1)
            return
        emit(event.user, start, last, count)
    state.open[event.user] = (event.at, event.at, 1)


class Expiring(ss.State):
    open = ss.dict(str, (int, int))


def expired_by_scan(table):
    found, open = [], {}
    for row in rows(table):
        for user in [user for user, at in open.items() if row["at"] - at[-1] > GAP]:
            at = open.pop(user)
            found.append((user, len(at), at[-1]))
        open.setdefault(row["user"], []).append(row["at"])
    return found


@case(
    "sessions that are looked for at each event, and removed",
    visits,
    expired_by_scan,
    state=Expiring,
    event=VISIT,
    emits={"user": str, "visits": int, "last": int},
)
def expired_sessions(state, event, emit):
    gone = [user for user, (_, last) in state.open.items() if event.at - last > GAP]
    for user in gone:
        count, last = state.open.pop(user)
        emit(user, count, last)
    count, _ = state.open.get(event.user, (0, 0))
    state.open[event.user] = (count + 1, event.at)


class Pairs(ss.State):
    seen = ss.set((str, str))
    pages = ss.dict(str, int)


def visitors_by_pandas(table):
    d = table.to_pandas()
    first = ~d.duplicated(["page", "user"])
    count = first.groupby(d["page"]).cumsum()
    return [(p, int(n)) for p, n, is_first in zip(d["page"], count, first, strict=True) if is_first]


@case(
    "distinct visitors of each page",
    visits,
    visitors_by_pandas,
    state=Pairs,
    event=VISIT,
    emits={"page": str, "visitors": int},
)
def distinct_visitors(state, event, emit):
    if (event.page, event.user) in state.seen:
        return
    state.seen.add((event.page, event.user))
    state.pages[event.page] = state.pages.setdefault(event.page, 0) + 1
    emit(event.page, state.pages[event.page])


class Traffic(ss.State):
    by = ss.dict((str, int), int)


def traffic_by_pandas(table):
    d = table.to_pandas()
    d["hour"] = d["at"] // 200
    total = d.groupby(["user", "hour"])["size"].cumsum()
    found = []
    for at in range(9, len(d), 10):
        last = d.assign(total=total).iloc[: at + 1].groupby(["user", "hour"], sort=False)["total"]
        most = last.last().max()
        found.append((int(most), len(last)))
    return found


@case(
    "the most that one user loads in an hour, told at every tenth event",
    visits,
    traffic_by_pandas,
    state=Traffic,
    event=VISIT,
    emits={"most": int, "kept": int},
)
def heaviest_hour(state, event, emit):
    key = (event.user, event.at // 200)
    if key not in state.by:
        state.by[key] = 0
    state.by[key] += event.size
    if event.sequence % 10 == 9:
        emit(max(state.by.values()), len(state.by))


def orders(rng):
    n = 260
    return pa.table(
        {
            "id": np.arange(n),
            "buy": rng.random(n) < 0.5,
            "price": (100 + rng.normal(0, 1.5, n)).round(1),
            "quantity": rng.integers(1, 20, n),
        }
    )


ORDER = {"id": int, "buy": bool, "price": float, "quantity": int}


class Book(ss.State):
    bids = ss.list((float, int, int))
    asks = ss.list((float, int, int))


def trades_by_sorting(table):
    """Each side is a list that is sorted anew each time."""
    sides, found = {True: [], False: []}, []
    for row in rows(table):
        mine, other = sides[row["buy"]], sides[not row["buy"]]
        other.sort(key=lambda one: ((one[0] if row["buy"] else -one[0]), one[1]))
        left = row["quantity"]
        while left and other:
            price, number, quantity = other[0]
            if (price > row["price"]) if row["buy"] else (price < row["price"]):
                break
            traded = min(left, quantity)
            pair = (row["id"], number) if row["buy"] else (number, row["id"])
            found.append((*pair, price, traded))
            left -= traded
            other[0] = (price, number, quantity - traded)
            if traded == quantity:
                del other[0]
        if left:
            mine.append((row["price"], row["id"], left))
    return found


@case(
    "a limit order book: price, then time",
    orders,
    trades_by_sorting,
    state=Book,
    event=ORDER,
    emits={"buyer": int, "seller": int, "price": float, "quantity": int},
)
def order_book(state, event, emit):
    left = event.quantity
    if event.buy:
        while left > 0 and state.asks and state.asks[0][0] <= event.price:
            price, seller, quantity = state.asks[0]
            traded = min(left, quantity)
            emit(event.id, seller, price, traded)
            left -= traded
            if traded == quantity:
                heapq.heappop(state.asks)
            else:
                state.asks[0] = (price, seller, quantity - traded)
        if left > 0:
            heapq.heappush(state.bids, (-event.price, event.id, left))
    else:
        while left > 0 and state.bids and -state.bids[0][0] >= event.price:
            price, buyer, quantity = state.bids[0]
            traded = min(left, quantity)
            emit(buyer, event.id, -price, traded)
            left -= traded
            if traded == quantity:
                heapq.heappop(state.bids)
            else:
                state.bids[0] = (price, buyer, quantity - traded)
        if left > 0:
            heapq.heappush(state.asks, (event.price, event.id, left))


class Lots(ss.State):
    lots = ss.deque((int, float))
    profit = ss.scalar(float)


def profit_by_units(table):
    """One element for each unit that is held."""
    units, profit, found = [], 0.0, []
    for row in rows(table):
        if row["buy"]:
            units += [row["price"]] * row["quantity"]
            continue
        sold, units = units[: row["quantity"]], units[row["quantity"] :]
        profit += sum(row["price"] - price for price in sold)
        lacking = row["quantity"] - len(sold)
        found.append((row["id"], profit, lacking))
    return found


@case(
    "profit of what is sold, first in first out",
    orders,
    profit_by_units,
    state=Lots,
    event=ORDER,
    emits={"id": int, "profit": float, "short": int},
)
def first_in_first_out(state, event, emit):
    if event.buy:
        state.lots.append((event.quantity, event.price))
        return
    left = event.quantity
    while left > 0 and len(state.lots) > 0:
        quantity, price = state.lots.popleft()
        sold = min(left, quantity)
        state.profit += sold * (event.price - price)
        left -= sold
        if sold < quantity:
            state.lots.appendleft((quantity - sold, price))
    emit(event.id, state.profit, left)


class Halves(ss.State):
    low = ss.priority_queue(float)
    high = ss.priority_queue(float)


def medians_by_sorting(table):
    prices = table["price"].to_pylist()
    return [(statistics.median(prices[: at + 1]),) for at in range(len(prices))]


@case(
    "the median of all prices so far, by two heaps",
    orders,
    medians_by_sorting,
    state=Halves,
    event=ORDER,
    emits={"median": float},
)
def running_median(state, event, emit):
    state.high.push(-state.low.pushpop(-event.price))
    if len(state.high) > len(state.low):
        state.low.push(-state.high.pop())
    if len(state.low) > len(state.high):
        emit(-state.low.peek())
    else:
        emit((state.high.peek() - state.low.peek()) / 2)


class Ranked(ss.State):
    prices = ss.list(float)


def ranks_by_counting(table):
    prices = table["price"].to_pylist()
    return [
        (sum(one < price for one in prices[:at]), min(prices[: at + 1]), max(prices[: at + 1]))
        for at, price in enumerate(prices)
    ]


@case(
    "the rank of each price among all before it",
    orders,
    ranks_by_counting,
    state=Ranked,
    event=ORDER,
    emits={"rank": int, "least": float, "most": float},
)
def price_ranks(state, event, emit):
    rank = bisect.bisect_left(state.prices, event.price)
    state.prices.insert(rank, event.price)
    emit(rank, state.prices[0], state.prices[-1])


def payments(rng):
    n = 240
    card = rng.zipf(1.6, n) % 12
    kinds = rng.choice(["order", "payment"], n)
    return pa.table(
        {
            "at": np.cumsum(rng.exponential(4.0, n)),
            "card": card,
            "key": [f"K-{one}" for one in rng.integers(0, 60, n)],
            "kind": kinds,
            "amount": rng.gamma(2.0, 30.0, n).round(2),
        }
    )


PAYMENT = {"at": float, "card": int, "key": str, "kind": str, "amount": float}


class Velocity(ss.State):
    last = ss.deque((float, int), limit=500)
    count = ss.dict(int, int)


def velocity_by_numpy(table):
    at, card = table["at"].to_numpy(), table["card"].to_numpy()
    found = []
    for i in range(len(at)):
        n = int(((card[: i + 1] == card[i]) & (at[: i + 1] > at[i] - 60)).sum())
        if n > 3:
            found.append((int(card[i]), n))
    return found


@case(
    "cards that are used more than three times in a minute",
    payments,
    velocity_by_numpy,
    state=Velocity,
    event=PAYMENT,
    emits={"card": int, "times": int},
)
def card_velocity(state, event, emit):
    while state.last and state.last[0][0] <= event.at - 60:
        _, card = state.last.popleft()
        state.count[card] -= 1
        if state.count[card] == 0:
            del state.count[card]
    state.last.append((event.at, event.card))
    state.count[event.card] = state.count.get(event.card, 0) + 1
    if state.count[event.card] > 3:
        emit(event.card, state.count[event.card])


RATE, BURST = 0.1, 3.0


class Buckets(ss.State):
    tokens = ss.dict(int, tuple[float, float])


def buckets_by_card(table):
    """One card after the other."""
    at, card = table["at"].to_numpy(), table["card"].to_numpy()
    passed = np.zeros(len(at), bool)
    left = np.zeros(len(at))
    for one in set(card.tolist()):
        tokens, last = BURST, None
        for i in np.flatnonzero(card == one):
            tokens = BURST if last is None else min(BURST, tokens + (at[i] - last) * RATE)
            last = at[i]
            passed[i] = tokens >= 1
            tokens -= passed[i]
            left[i] = tokens
    return list(zip(card.tolist(), passed.tolist(), left.tolist(), strict=True))


@case(
    "a token bucket for each card",
    payments,
    buckets_by_card,
    state=Buckets,
    event=PAYMENT,
    emits={"card": int, "passed": bool, "left": float},
)
def token_buckets(state, event, emit):
    tokens, last = state.tokens.get(event.card, (BURST, event.at))
    tokens = min(BURST, tokens + (event.at - last) * RATE)
    passed = tokens >= 1.0
    if passed:
        tokens -= 1.0
    state.tokens[event.card] = (tokens, event.at)
    emit(event.card, passed, tokens)


class Waiting(ss.State):
    orders = ss.dict(str, (float, float))
    payments = ss.dict(str, (float, float))


def joined_by_search(table):
    """The last of the other kind under the same key that is not used up."""
    found, waiting = [], []
    for row in rows(table):
        mine = [one for one in waiting if one["key"] == row["key"]]
        other = [one for one in mine if one["kind"] != row["kind"]]
        same = [one for one in mine if one["kind"] == row["kind"]]
        if other:
            waiting.remove(other[0])
            pair = (row, other[0]) if row["kind"] == "order" else (other[0], row)
            found.append(
                (row["key"], pair[0]["amount"] - pair[1]["amount"], row["at"] - other[0]["at"])
            )
            continue
        for one in same:
            waiting.remove(one)
        waiting.append(row)
    return found


@case(
    "orders and payments that wait for each other by a text key",
    payments,
    joined_by_search,
    state=Waiting,
    event=PAYMENT,
    emits={"key": str, "open": float, "waited": float},
)
def join_by_key(state, event, emit):
    if event.kind == "order":
        if event.key in state.payments:
            at, amount = state.payments.pop(event.key)
            emit(event.key, event.amount - amount, event.at - at)
        else:
            state.orders[event.key] = (event.at, event.amount)
    elif event.key in state.orders:
        at, amount = state.orders.pop(event.key)
        emit(event.key, amount - event.amount, event.at - at)
    else:
        state.payments[event.key] = (event.at, event.amount)


class Once(ss.State):
    seen = ss.set(str)
    order = ss.deque(str)


def once_by_slices(table):
    """Of what passed, the last twenty are remembered."""
    passed = []
    for row in rows(table):
        if row["key"] not in [one[0] for one in passed[-20:]]:
            passed.append((row["key"], row["amount"]))
    return passed


@case(
    "leaves out keys that were among the last twenty that passed",
    payments,
    once_by_slices,
    state=Once,
    event=PAYMENT,
    emits={"key": str, "amount": float},
)
def deduplicated(state, event, emit):
    if event.key in state.seen:
        return
    state.seen.add(event.key)
    state.order.append(event.key)
    if len(state.order) > 20:
        state.seen.remove(state.order.popleft())
    emit(event.key, event.amount)


class Cache(ss.State):
    held = ss.dict(str, float)
    hits = ss.scalar(int)


def cache_by_ordered_dict(table):
    held, hits, found = OrderedDict(), 0, []
    for row in rows(table):
        key, gone = row["key"], None
        if key in held:
            hits += 1
            held.move_to_end(key)
        else:
            held[key] = row["amount"]
            if len(held) > 15:
                gone, _ = held.popitem(last=False)
        found.append((key, held[key], hits, gone))
    return found


@case(
    "a cache that drops what was not used for longest, by the order of a dict",
    payments,
    cache_by_ordered_dict,
    state=Cache,
    event=PAYMENT,
    emits={"key": str, "amount": float, "hits": int, "dropped": ss.nullable(str)},
)
def least_recently_used(state, event, emit):
    if event.key in state.held:
        state.hits += 1
        amount = state.held.pop(event.key)
        state.held[event.key] = amount
        emit(event.key, amount, state.hits)
        return
    state.held[event.key] = event.amount
    if len(state.held) > 15:
        oldest = next(iter(state.held))
        del state.held[oldest]
        emit(event.key, event.amount, state.hits, oldest)
    else:
        emit(event.key, event.amount, state.hits)


class Board(ss.State):
    score = ss.dict(int, float)


def board_by_pandas(table):
    d = table.to_pandas()
    found = []
    for at in range(19, len(d), 20):
        total = d.iloc[: at + 1].groupby("card", sort=False)["amount"].sum()
        best = total.sort_values(ascending=False, kind="stable").head(3)
        found += [(at, place, int(card), score) for place, (card, score) in enumerate(best.items())]
    return found


@case(
    "the three cards that have spent most, at every twentieth event",
    payments,
    board_by_pandas,
    state=Board,
    event=PAYMENT,
    emits={"at": int, "place": int, "card": int, "score": float},
)
def leaderboard(state, event, emit):
    state.score[event.card] = state.score.get(event.card, 0.0) + event.amount
    if event.sequence % 20 == 19:
        best = sorted(state.score.items(), key=lambda pair: pair[1], reverse=True)
        for place, (card, score) in enumerate(best[:3]):
            emit(event.sequence, place, card, score)


class Moving(ss.State):
    last = ss.deque(float, maxlen=8)


def moving_by_pandas(table):
    amount = table["amount"].to_pandas()
    mean, most = amount.rolling(8, 1).mean(), amount.rolling(8, 1).max()
    return [(float(a), float(b)) for a, b in zip(mean, most, strict=True)]


@case(
    "mean and largest of the last eight amounts",
    payments,
    moving_by_pandas,
    state=Moving,
    event=PAYMENT,
    emits={"mean": float, "most": float},
)
def moving_mean(state, event, emit):
    state.last.append(event.amount)
    emit(sum(state.last) / len(state.last), max(state.last))


WHAT = ["arrive", "reserve", "ship", "cancel"]


def stock_moves(rng):
    n = 220
    return pa.table(
        {
            "what": rng.choice(
                ["arrive", "reserve", "ship", "cancel"], n, p=[0.15, 0.45, 0.2, 0.2]
            ),
            "item": rng.choice(["bolt", "nut", "pin"], n),
            "order": rng.integers(0, 70, n),
            "quantity": rng.integers(1, 15, n),
        }
    )


class Stock(ss.State):
    free = ss.dict(str, int)
    reserved = ss.dict(int, (str, int))
    refused = ss.set(int)


def stock_by_ledger(table):
    """What is free follows from all that has been done."""
    ledger, held, refused, found = [], {}, set(), []

    def free(item):
        return sum(quantity for one, quantity in ledger if one == item)

    for row in rows(table):
        what, order = row["what"], row["order"]
        if what == "arrive":
            ledger.append((row["item"], row["quantity"]))
        elif what == "reserve":
            if order in held or row["quantity"] > free(row["item"]):
                refused.add(order)
                found.append((order, -1, len(refused)))
                continue
            held[order] = row["item"], row["quantity"]
            ledger.append((row["item"], -row["quantity"]))
            found.append((order, free(row["item"]), len(refused)))
        elif order in held:
            item, quantity = held.pop(order)
            if what == "cancel":
                ledger.append((item, quantity))
            refused.discard(order)
            found.append((order, free(item), len(held)))
    return found


@case(
    "stock with reservations that are shipped or cancelled",
    stock_moves,
    stock_by_ledger,
    state=Stock,
    event={"what": str, "item": str, "order": int, "quantity": int},
    emits={"order": int, "free": int, "count": int},
)
def reservations(state, event, emit):
    if event.what == "arrive":
        state.free[event.item] = state.free.get(event.item, 0) + event.quantity
    elif event.what == "reserve":
        if event.order in state.reserved or event.quantity > state.free.get(event.item, 0):
            state.refused.add(event.order)
            emit(event.order, -1, len(state.refused))
            return
        state.free[event.item] -= event.quantity
        state.reserved[event.order] = (event.item, event.quantity)
        emit(event.order, state.free[event.item], len(state.refused))
    else:
        try:
            item, quantity = state.reserved.pop(event.order)
        except KeyError:
            return
        if event.what == "cancel":
            state.free[item] += quantity
        state.refused.discard(event.order)
        emit(event.order, state.free[item], len(state.reserved))


def jobs(rng):
    n = 200
    return pa.table(
        {
            "now": np.cumsum(rng.integers(0, 4, n)),
            "delay": rng.integers(1, 60, n),
            "job": rng.permutation(n),
            "other": rng.integers(0, n, n),
        }
    )


JOB = {"now": int, "delay": int, "job": int, "other": int}


class Due(ss.State):
    due = ss.priority_queue((int, int))


def due_by_scan(table):
    waiting, found = [], []
    for row in rows(table):
        ready = sorted(one for one in waiting if one[0] <= row["now"])
        waiting = [one for one in waiting if one[0] > row["now"]]
        waiting.append((row["now"] + row["delay"], row["job"]))
        found += [(job, at, len(waiting) - 1) for at, job in ready]
    return found


@case(
    "jobs that come back when they are due",
    jobs,
    due_by_scan,
    state=Due,
    event=JOB,
    emits={"job": int, "at": int, "waiting": int},
)
def due_jobs(state, event, emit):
    ready = []
    while state.due and state.due.peek()[0] <= event.now:
        ready.append(state.due.pop())
    for at, job in ready:
        emit(job, at, len(state.due))
    state.due.push((event.now + event.delay, event.job))


class Joined(ss.State):
    parent = ss.dict(int, int)
    size = ss.dict(int, int)


def components_by_flooding(table):
    """Each edge is looked at anew, until nothing more is reached."""
    edges = list(zip(table["job"].to_pylist(), table["other"].to_pylist(), strict=True))
    found = []
    for at, (one, _) in enumerate(edges):
        reached, more = {one}, True
        while more:
            near = {two for pair in edges[: at + 1] if reached & set(pair) for two in pair}
            more = not near <= reached
            reached |= near
        found.append((one, len(reached)))
    return found


def root_of(parent, one):
    while parent[one] != one:
        parent[one] = parent[parent[one]]
        one = parent[one]
    return one


@case(
    "how many are joined to each other, by union and find",
    jobs,
    components_by_flooding,
    state=Joined,
    event=JOB,
    emits={"one": int, "joined": int},
)
def joined_components(state, event, emit):
    for one in (event.job, event.other):
        if one not in state.parent:
            state.parent[one] = one
            state.size[one] = 1
    left, right = root_of(state.parent, event.job), root_of(state.parent, event.other)
    if left != right:
        if state.size[left] < state.size[right]:
            left, right = right, left
        state.parent[right] = left
        state.size[left] += state.size.pop(right)
    emit(event.job, state.size[left])


class Recent(ss.State):
    items = ss.list(int, limit=12)


def recent_by_search(table):
    job = (table["job"].to_numpy() % 20).tolist()
    found = []
    for at in range(len(job)):
        newest = list(dict.fromkeys(reversed(job[: at + 1])))[:12]
        found.append((newest[0], newest[-1], len(newest)))
    return found


@case(
    "the last twelve different items, the newest first",
    jobs,
    recent_by_search,
    state=Recent,
    event=JOB,
    emits={"newest": int, "oldest": int, "count": int},
)
def recently_seen(state, event, emit):
    item = event.job % 20
    if item in state.items:
        state.items.remove(item)
    elif len(state.items) == 12:
        state.items.pop()
    state.items.insert(0, item)
    emit(state.items[0], state.items[-1], len(state.items))


class Runs(ss.State):
    streak = ss.list((int, int))


def runs_by_groupby(table):
    """The runs of equal numbers so far, and the longest of them."""
    value = (table["delay"].to_numpy() % 3).tolist()
    found = []
    for at in range(len(value)):
        lengths = [len(list(part)) for _, part in itertools.groupby(value[: at + 1])]
        found.append((len(lengths), max(lengths)))
    return found


@case(
    "runs of equal readings, all kept",
    jobs,
    runs_by_groupby,
    state=Runs,
    event=JOB,
    emits={"runs": int, "longest": int},
)
def runs(state, event, emit):
    value = event.delay % 3
    if state.streak and state.streak[-1][0] == value:
        state.streak[-1] = (value, state.streak[-1][1] + 1)
    else:
        state.streak.append((value, 1))
    emit(len(state.streak), max(length for _, length in state.streak))

"""Operators over containers of the state: hot and rare keys, removal, order, both ends."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import heapq

import specstream as ss

EVENT = {"key": int, "value": float, "on": bool, "name": str}


class Counts(ss.State):
    words = ss.dict(str, int)
    pairs = ss.dict((int, str), tuple[int, float], limit=500)
    rare = ss.set((str, bool))


@ss.operator(
    state=Counts, event=EVENT, emits={"name": str, "times": int, "sum": float, "size": int}
)
def word_counts(state, event, emit):
    """Keys that stay. Two events conflict over the same key, or where one counts them all."""
    times = state.words.get(event.name, 0) + 1
    state.words[event.name] = times
    key = (event.key % 7, event.name)
    if key not in state.pairs:
        state.pairs[key] = (0, 0.0)
    n, total = state.pairs[key]
    state.pairs[key] = (n + 1, total + event.value)
    if times < 3:
        state.rare.add((event.name, event.on))
    if event.on and times % 4 == 0:
        emit(event.name, times, total, len(state.pairs) + len(state.rare))


class Table(ss.State):
    open = ss.dict(int, (int, float), limit=28)
    users = ss.set(int)
    closed = ss.scalar(int)


@ss.operator(state=Table, event=EVENT, emits={"user": int, "events": int, "value": float})
def session_table(state, event, emit):
    """Keys that come and go, in the order of their insertion; a table that is full at times."""
    user = (event.key ^ (event.key >> 7)) % 64
    if event.on and user in state.open:
        n, total = state.open.pop(user)
        state.closed += 1
        emit(user, n, total)
        return
    n, total = state.open.get(user, (0, 0.0))
    state.open[user] = (n + 1, total + event.value)
    state.users.add(user)
    if event.value > 90.0:
        for other, (n, total) in state.open.items():
            if n > 2:
                state.users.discard(other)
                emit(other, n, total)
                break
        if len(state.open) > 9:
            for other in [one for one in state.open if one % 4 == event.key % 4]:
                del state.open[other]
    elif event.value < 5.0:
        user, (n, total) = state.open.popitem()
        emit(user, -n, total)
        state.users ^= {user, event.key % 64}
    if event.key % 41 == 11:
        raise ValueError(f"{len(state.open)} are open")


class Book(ss.State):
    bids = ss.list((int, int, int))
    asks = ss.list((int, int, int))
    traded = ss.scalar(int)


def best(side):
    return side[0][0]


@ss.operator(state=Book, event=EVENT, emits={"price": int, "quantity": int, "of": int, "by": int})
def order_book(state, event, emit):
    """Two heaps, of which all events want the first; what fails half way is taken back."""
    price = int(event.value * 4.0)
    left = event.key % 9 + 1
    if event.on:
        while left > 0 and state.asks and best(state.asks) <= price:
            at, of, quantity = heapq.heappop(state.asks)
            traded = min(left, quantity)
            emit(at, traded, of, event.sequence)
            state.traded += traded
            left -= traded
            if quantity > traded:
                heapq.heappush(state.asks, (at, of, quantity - traded))
        if left > 0:
            heapq.heappush(state.bids, (-price, event.sequence, left))
    else:
        while left > 0 and state.bids and -best(state.bids) >= price:
            at, of, quantity = state.bids[0]
            traded = min(left, quantity)
            emit(-at, traded, of, event.sequence)
            state.traded += traded
            left -= traded
            if quantity > traded:
                state.bids[0] = (at, of, quantity - traded)
            else:
                heapq.heappop(state.bids)
        if left > 0:
            heapq.heappush(state.asks, (price, event.sequence, left))
    if event.key % 61 == 7:
        raise ValueError(f"{len(state.bids)} and {len(state.asks)} wait")


class Ends(ss.State):
    last = ss.deque(int, maxlen=8)
    window = ss.deque((float, str), limit=40)
    held = ss.dict(str, int)
    due = ss.priority_queue((int, int), limit=64)
    log = ss.list(float)


@ss.operator(
    state=Ends, event=EVENT, emits={"name": str, "n": int, "mean": ss.nullable(float), "of": int}
)
def recent_ends(state, event, emit):
    """Deques at both ends, a queue of what is due, a list that grows."""
    key = event.key % 1000
    if event.on:
        state.last.appendleft(key)
    elif key not in state.last:
        state.last.append(key)
    state.window.append((event.value, event.name))
    state.held[event.name] = state.held.get(event.name, 0) + 1
    while len(state.window) > 12:
        _, name = state.window.popleft()
        state.held[name] -= 1
        if state.held[name] == 0:
            del state.held[name]
    while state.due and state.due.peek()[0] <= event.sequence:
        _, of = state.due.pop()
        emit(event.name, len(state.due), None, of)
        if of % 5 == 0:
            break
    state.due.push((event.sequence + key % 29, key))
    if event.value > 80.0:
        state.log.append(event.value)
        state.last.rotate(key % 5 - 2)
        if len(state.log) > 30:
            del state.log[::2]
        emit(event.name, len(state.log), sum(state.log[-4:]) / 4.0, state.last[-1])


CONTAINERS = [word_counts, session_table, order_book, recent_ends]

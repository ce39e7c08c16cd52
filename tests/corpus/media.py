"""Songs, adverts and posts."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import math
import string
from collections import Counter, OrderedDict, deque

import numpy as np
import pyarrow as pa

import specstream as ss
from corpus.case import case

TITLES = ["Für Elise", "Hey Jude", "hey jude ", "99 Luftballons", "", "Ümläut!"]


def plays(rng):
    n = 200
    return pa.table(
        {
            "user": rng.integers(0, 15, n),
            "song": np.minimum(rng.zipf(1.6, n), 30) - 1,
            "title": rng.choice(TITLES, n),
            "seconds": rng.integers(0, 300, n),
            "bid": rng.gamma(2, 0.5, n).round(3),
            "campaign": rng.integers(0, 4, n),
            "clicked": rng.random(n) < 0.2,
            "text": rng.choice(
                ["so good!!!", "bad, bad song", "meh", "GOOD good", "", "not bad @dj #tune #Tune"],
                n,
            ),
            "rating": pa.array(rng.integers(1, 6, n), mask=rng.random(n) < 0.3),
        }
    )


PLAY = {
    "user": int,
    "song": int,
    "title": str,
    "seconds": int,
    "bid": float,
    "campaign": int,
    "clicked": bool,
    "text": str,
    "rating": ss.nullable(int),
}


class Charts(ss.State):
    plays = ss.array(int, 30)


def charts_by_hand(table):
    count, rows = Counter(), []
    for i, song in enumerate(table["song"].to_pylist()):
        count[song] += 1
        if i % 20 == 19:
            best = sorted(count.items(), key=lambda one: (-one[1], one[0]))[:3]
            rows += [(place, s, n) for place, (s, n) in enumerate(best, 1)]
    return rows


@case(
    "charts of three, every twenty plays",
    plays,
    charts_by_hand,
    state=Charts,
    event=PLAY,
    emits={"place": int, "song": int, "plays": int},
)
def charts(state, event, emit):
    state.plays[event.song] += 1
    if event.sequence % 20 != 19:
        return
    best = sorted(range(30), key=lambda song: state.plays[song], reverse=True)
    for place, song in enumerate(best[:3], start=1):
        emit(place, song, state.plays[song])


class Cache(ss.State):
    songs = ss.array(int, 5, fill=-1)
    hits = ss.scalar(int)


def lru_by_hand(table):
    cache, hits, rows = OrderedDict(), 0, []
    for song in table["song"].to_pylist():
        dropped = -1
        if song in cache:
            cache.move_to_end(song)
            hits += 1
        else:
            cache[song] = True
            if len(cache) > 5:
                dropped, _ = cache.popitem(last=False)
        rows.append((song, dropped, hits))
    return rows


@case(
    "a cache of the five songs used last; a list made, changed and put back",
    plays,
    lru_by_hand,
    state=Cache,
    event=PLAY,
    emits={"song": int, "dropped": int, "hits": int},
)
def lru(state, event, emit):
    songs = list(state.songs)
    if event.song in songs:
        songs.remove(event.song)
        songs.insert(0, event.song)
        state.hits += 1
        dropped = -1
    else:
        songs.insert(0, event.song)
        dropped = songs.pop()
    for i, song in enumerate(songs):
        state.songs[i] = song
    emit(event.song, dropped, state.hits)


class Titles(ss.State):
    seen = ss.scalar(int)
    digits = ss.scalar(int)


def titles_by_hand(table):
    rows, digits = [], 0
    for i, title in enumerate(table["title"].to_pylist()):
        digits += any(c in string.digits for c in title)
        words = title.lower().split()
        rows.append(("-".join(words), sum(map(len, words)), i + 1, digits))
    return rows


def slug(title):
    return "-".join(title.lower().split())


@case(
    "slugs of titles, through a helper and a generator over letters",
    plays,
    titles_by_hand,
    state=Titles,
    event=PLAY,
    emits={"slug": str, "letters": int, "seen": int, "digits": int},
)
def slugs(state, event, emit):
    state.seen += 1
    if any(letter.isdigit() for letter in event.title):
        state.digits += 1
    letters = sum(len(word) for word in event.title.split())
    emit(slug(event.title), letters, state.seen, state.digits)


class Auctions(ss.State):
    budget = ss.array(float, 4, fill=20.0)
    won = ss.array(int, 4)


def second_price_by_hand(table):
    budget, rows = [20.0] * 4, []
    for bid, c in zip(table["bid"].to_pylist(), table["campaign"].to_pylist(), strict=True):
        bids = [bid * (1 + 0.1 * ((k - c) % 4)) if budget[k] >= bid else 0.0 for k in range(4)]
        order = sorted(range(4), key=lambda k, b=bids: -b[k])
        if bids[order[0]] > 0:
            price = max(bids[order[1]], 0.05)
            budget[order[0]] -= price
            rows.append((order[0], price, budget[order[0]]))
    return rows


@case(
    "auctions at the second price, with budgets",
    plays,
    second_price_by_hand,
    state=Auctions,
    event=PLAY,
    emits={"campaign": int, "price": float, "left": float},
)
def second_price(state, event, emit):
    bids = []
    for k in range(4):
        if state.budget[k] < event.bid:
            continue
        bids.append((event.bid * (1 + 0.1 * ((k - event.campaign) % 4)), -k))
    if not bids:
        return
    bids.sort(reverse=True)
    winner = -bids[0][1]
    price = max(bids[1][0] if len(bids) > 1 else 0.0, 0.05)
    state.budget[winner] -= price
    state.won[winner] += 1
    emit(winner, price, left=state.budget[winner])


class Bandit(ss.State):
    shown = ss.array(int, 4)
    clicks = ss.array(int, 4)


def ucb_by_numpy(table):
    shown, clicks, rows = np.zeros(4), np.zeros(4), []
    for clicked in table["clicked"].to_pylist():
        with np.errstate(divide="ignore", invalid="ignore"):
            score = clicks / shown + np.sqrt(2 * np.log(max(shown.sum(), 1)) / shown)
        k = int(np.argmax(np.where(shown == 0, np.inf, score)))
        shown[k] += 1
        clicks[k] += clicked
        rows.append((k, int(clicks.sum())))
    return rows


@case(
    "which advert to show (UCB1)",
    plays,
    ucb_by_numpy,
    state=Bandit,
    event=PLAY,
    emits={"shown": int, "clicks": int},
)
def ucb(state, event, emit):
    total = max(sum(state.shown), 1)

    def score(k):
        if state.shown[k] == 0:
            return math.inf
        return state.clicks[k] / state.shown[k] + math.sqrt(2 * math.log(total) / state.shown[k])

    best = max(range(4), key=score)
    state.shown[best] += 1
    state.clicks[best] += event.clicked
    emit(best, sum(state.clicks))


class Mood(ss.State):
    score = ss.scalar(float)


GOOD = frozenset({"good", "great"})
BAD = frozenset({"bad", "meh"})


@ss.pure
def mood_of(text: str) -> int:
    words = [w.strip(string.punctuation).lower() for w in text.split()]
    return sum(w in GOOD for w in words) - sum(w in BAD for w in words)


def mood_by_pandas(table):
    text = table["text"].to_pandas().str.lower()
    points = text.str.count(r"\bgood\b") - text.str.count(r"\b(?:bad|meh)\b")
    level, rows = 0.0, []
    for p in points:
        level = 0.9 * level + p
        rows.append((int(p), "good" if level > 0.5 else "bad" if level < -0.5 else "even"))
    return rows


@case(
    "the mood of comments, smoothed",
    plays,
    mood_by_pandas,
    state=Mood,
    event=PLAY,
    emits={"points": int, "mood": str},
)
def mood(state, event, emit):
    points = mood_of(event.text)
    state.score = 0.9 * state.score + points
    if -0.5 <= state.score <= 0.5:
        emit(points, "even")
    else:
        emit(points, "good" if state.score > 0 else "bad")


class Together(ss.State):
    last = ss.array(int, (15, 3), fill=-1)
    pairs = ss.array(int, (30, 30))


def together_by_hand(table):
    last = {u: deque(maxlen=3) for u in range(15)}
    pairs, rows = Counter(), []
    for u, s in zip(table["user"].to_pylist(), table["song"].to_pylist(), strict=True):
        others = set(last[u]) - {s}
        for other in others:
            pairs[frozenset((s, other))] += 1
        last[u].append(s)
        rows.append(
            (len(others), max((pairs[frozenset((s, o))] for o in range(30) if o != s), default=0))
        )
    return rows


@case(
    "songs heard one after the other, each pair once: a set and a sorted pair",
    plays,
    together_by_hand,
    state=Together,
    event=PLAY,
    emits={"others": int, "most": int},
)
def together(state, event, emit):
    song = event.song
    others = {s for s in state.last[event.user] if s >= 0} - {song}
    for other in others:
        a, b = min(song, other), max(song, other)
        state.pairs[a, b] += 1
    slot = 0
    while slot < 3 and state.last[event.user, slot] >= 0:
        slot += 1
    if slot == 3:
        state.last[event.user, :2] = state.last[event.user, 1:]
        slot = 2
    state.last[event.user, slot] = song
    emit(
        len(others),
        max(state.pairs[min(song, o), max(song, o)] for o in range(30) if o != song),
    )


class Ratings(ss.State):
    stars = ss.array(int, 6)


def ratings_by_pandas(table):
    rating = table["rating"].to_pandas()
    mean = rating.expanding().mean()
    n = rating.notna().cumsum()
    return [(None if m != m else float(m), int(k)) for m, k in zip(mean, n, strict=True)]


@case(
    "mean of the ratings that were given, null before the first",
    plays,
    ratings_by_pandas,
    are_none=True,
    state=Ratings,
    event=PLAY,
    emits={"mean": ss.nullable(float), "given": int},
)
def ratings(state, event, emit):
    if (rating := event.rating) is not None:
        state.stars[rating] += 1
    given = sum(state.stars)
    total = sum(stars * n for stars, n in enumerate(state.stars))
    emit(total / given if given else None, given)


class Skips(ss.State):
    skips = ss.array(int, 15)
    plays = ss.array(int, 15)


class TooManySkips(Exception):
    pass


def check(skips, plays):
    if skips > 3 and skips > plays / 2:
        raise TooManySkips(f"{skips} of {plays}")


def skips_by_pandas(table):
    d = table.to_pandas()
    skips = (d.seconds < 90).groupby(d.user).cumsum()
    n = d.groupby("user").cumcount() + 1
    return [
        (int(u), f"{s} of {k}")
        for u, s, k in zip(d.user, skips, n, strict=True)
        if s > 3 and s > k / 2
    ]


@case(
    "the text of an exception that was caught",
    plays,
    skips_by_pandas,
    state=Skips,
    event=PLAY,
    emits={"user": int, "text": str},
)
def skips(state, event, emit):
    user = event.user
    state.plays[user] += 1
    if event.seconds < 90:
        state.skips[user] += 1
    try:
        check(state.skips[user], state.plays[user])
    except TooManySkips as error:
        emit(user, f"{error}")


class Hashtags(ss.State):
    posts = ss.scalar(int)
    tags = ss.scalar(int)


def hashtags_by_hand(table):
    rows, posts, tags = [], 0, 0
    for text in table["text"].to_pylist():
        found = {w for w in text.lower().split() if w[0] == "#"}
        if found:
            posts += 1
            tags += len(found)
            rows.append((sorted(found)[0], posts, tags))
    return rows


@case(
    "different hashtags of a post",
    plays,
    hashtags_by_hand,
    state=Hashtags,
    event=PLAY,
    emits={"first": str, "posts": int, "tags": int},
)
def hashtags(state, event, emit):
    found = {word.lower() for word in event.text.split() if word.startswith("#")}
    if not found:
        return
    state.posts += 1
    state.tags += len(found)
    emit(min(found), state.posts, state.tags)

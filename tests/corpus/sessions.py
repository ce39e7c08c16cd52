"""Clicks, visits and pages."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import datetime
import re
from urllib.parse import parse_qs, urlparse

import pyarrow as pa

import specstream as ss
from corpus.case import case

GAP = 30 * 60
PAGES = [
    "/",
    "/cart",
    "/checkout",
    "/item/12",
    "/item/977",
    "/search?q=red+shoes&page=2",
    "/Search?q=",
]


def clicks(rng):
    n = 250
    return pa.table(
        {
            "user": rng.integers(0, 8, n),
            "at": rng.integers(0, 400, n).cumsum(),
            "page": rng.choice(PAGES, n, p=[0.2, 0.2, 0.1, 0.2, 0.1, 0.1, 0.1]),
            "agent": rng.choice(["Mozilla/5.0 (Android)", "curl/8.1", "Googlebot/2.1", ""], n),
            "time": pa.array(
                [
                    datetime.datetime(2024, 3, 30, 20, tzinfo=datetime.UTC)
                    + datetime.timedelta(minutes=int(m))
                    for m in rng.integers(0, 15, n).cumsum()
                ],
                pa.timestamp("us", "UTC"),
            ),
            "referrer": pa.array(
                rng.choice(["https://a.example/x", "http://b.example:8080/", "oops"], n),
                mask=rng.random(n) < 0.3,
            ),
        }
    )


CLICK = {
    "user": int,
    "at": int,
    "page": str,
    "agent": str,
    "time": ss.timestamp("us", "Europe/Berlin"),
    "referrer": ss.nullable(str),
}


class Sessions(ss.State):
    last = ss.array(int, 8, fill=-(10**9))
    length = ss.array(int, 8)
    number = ss.array(int, 8)


def sessions_by_pandas(table):
    d = table.to_pandas()
    d["new"] = d.groupby("user")["at"].diff().fillna(1e9) > GAP
    d["number"] = d.groupby("user").new.cumsum()
    d["length"] = d.groupby(["user", "number"]).cumcount() + 1
    return list(zip(d.user, d.number, d.length, strict=True))


@case(
    "sessions that end after half an hour of silence",
    clicks,
    sessions_by_pandas,
    state=Sessions,
    event=CLICK,
    emits={"user": int, "session": int, "length": int},
)
def sessionize(state, event, emit):
    user = event.user
    if event.at - state.last[user] > GAP:
        state.number[user] += 1
        state.length[user] = 0
    state.last[user] = event.at
    state.length[user] += 1
    emit(user, state.number[user], state.length[user])


class Funnel(ss.State):
    step = ss.array(int, 8)
    reached = ss.array(int, 4)


def funnel_by_hand(table):
    steps = dict.fromkeys(range(8), 0)
    rows = []
    for t in table.to_pylist():
        page, step = t["page"], steps[t["user"]]
        wanted = ("/item/", "/cart", "/checkout")
        if step < 3 and (page.startswith(wanted[step]) if step == 0 else page == wanted[step]):
            steps[t["user"]] = step + 1
            rows.append((t["user"], step + 1))
        if steps[t["user"]] == 3:
            steps[t["user"]] = 0
    return rows


@case(
    "a funnel of three pages",
    clicks,
    funnel_by_hand,
    state=Funnel,
    event=CLICK,
    emits={"user": int, "step": int},
)
def funnel(state, event, emit):
    match state.step[event.user], event.page:
        case 0, page if page.startswith("/item/"):
            step = 1
        case 1, "/cart":
            step = 2
        case 2, "/checkout":
            step = 3
        case _:
            return
    state.step[event.user] = step % 3
    state.reached[step] += 1
    emit(event.user, step)


class Views(ss.State):
    views = ss.array(int, 1000)
    robots = ss.scalar(int)


def items_by_pandas(table):
    d = table.to_pandas()
    item = d.page.str.extract(r"^/item/(\d+)$")[0]
    good = d[item.notna() & ~d.agent.str.lower().str.contains("bot|curl")]
    count = good.groupby("page").cumcount() + 1
    return [(int(page.split("/")[2]), int(c)) for page, c in zip(good.page, count, strict=True)]


ITEM = re.compile(r"/item/(\d+)")


def is_robot(agent):
    agent = agent.lower()
    return "bot" in agent or "curl" in agent


@case(
    "views of items by people, not robots",
    clicks,
    items_by_pandas,
    state=Views,
    event=CLICK,
    emits={"item": int, "views": int},
)
def item_views(state, event, emit):
    if is_robot(event.agent):
        state.robots += 1
        return
    if m := ITEM.fullmatch(event.page):
        item = int(m[1])
        state.views[item] += 1
        emit(item, state.views[item])


class Words(ss.State):
    searches = ss.scalar(int)
    empty = ss.scalar(int)


def query_of(url: str) -> str:
    return parse_qs(urlparse(url).query).get("q", [""])[0]


def search_by_pandas(table):
    pages = table["page"].to_pandas()
    searches = pages[pages.str.lower().str.startswith("/search")]
    words = searches.map(lambda p: "red shoes" if "red" in p else "")
    return [(w, i + 1, bool(w)) for i, w in enumerate(words)]


@case(
    "search terms, by a pure function of the standard library",
    clicks,
    search_by_pandas,
    state=Words,
    event=CLICK,
    emits={"query": str, "number": int, "has_words": bool},
)
def search_terms(state, event, emit):
    path, *_ = event.page.split("?")
    if path.lower() != "/search":
        return
    state.searches += 1
    query = query_of(event.page)
    if not query:
        state.empty += 1
    emit(query, state.searches, len(query) > 0)


class Hours(ss.State):
    by_hour = ss.array(int, 24)
    weekend = ss.scalar(int)


def hours_by_pandas(table):
    local = table["time"].to_pandas().dt.tz_convert("Europe/Berlin")
    hour, day = local.dt.hour, local.dt.weekday
    count = hour.groupby(hour).cumcount() + 1
    weekend = (day >= 5).cumsum()
    return [tuple(map(int, row)) for row in zip(hour, count, weekend, strict=True)]


@case(
    "clicks by hour of the day in Berlin, over the change to summer time",
    clicks,
    hours_by_pandas,
    state=Hours,
    event=CLICK,
    emits={"hour": int, "clicks": int, "weekend": int},
)
def by_hour(state, event, emit):
    when = ss.when(event.time)
    state.by_hour[when.hour] += 1
    if when.weekday() >= 5:
        state.weekend += 1
    emit(when.hour, state.by_hour[when.hour], state.weekend)


class Hosts(ss.State):
    direct = ss.scalar(int)
    broken = ss.scalar(int)


def referrers_by_hand(table):
    rows = []
    direct = 0
    for r in table["referrer"].to_pylist():
        direct += r is None
        host = {None: "(direct)", "oops": "(broken)"}.get(r) or r.split("/")[2].split(":")[0]
        rows.append((host, direct))
    return rows


@case(
    "referring hosts, null when somebody came directly",
    clicks,
    referrers_by_hand,
    are_none=True,
    state=Hosts,
    event=CLICK,
    emits={"host": str, "direct": int},
)
def referrers(state, event, emit):
    if event.referrer is None:
        state.direct += 1
        emit("(direct)", state.direct)
        return
    host = urlparse(event.referrer).hostname
    if host is None:
        state.broken += 1
        host = "(broken)"
    emit(host, state.direct)


class Active(ss.State):
    last = ss.array(int, 8, fill=-1)


def active_by_pandas(table):
    d = table.to_pandas()
    rows = []
    for i, at in enumerate(d["at"]):
        recent = d.iloc[: i + 1]
        rows.append((int(recent[recent["at"] > at - 600].user.nunique()),))
    return rows


@case(
    "users seen in the last ten minutes",
    clicks,
    active_by_pandas,
    state=Active,
    event=CLICK,
    emits={"active": int},
)
def active_users(state, event, emit):
    state.last[event.user] = event.at
    active = {u for u in range(8) if state.last[u] >= 0 and state.last[u] > event.at - 600}
    emit(len(active))


class Path(ss.State):
    previous = ss.array(str, 8)
    moves = ss.scalar(int)


def moves_by_pandas(table):
    d = table.to_pandas()
    d["before"] = d.groupby("user").page.shift()
    d = d[d.before.notna() & (d.before != d.page)]
    return [
        (b, p, f"{i + 1}: {b} -> {p}")
        for i, (b, p) in enumerate(zip(d.before, d.page, strict=True))
    ]


@case(
    "moves from page to page; strings kept in the state",
    clicks,
    moves_by_pandas,
    state=Path,
    event=CLICK,
    emits={"before": str, "page": str, "text": str},
)
def moves(state, event, emit):
    before = state.previous[event.user]
    state.previous[event.user] = event.page
    if before and before != event.page:
        state.moves += 1
        emit(before, event.page, f"{state.moves}: {before} -> {event.page}")


class Experiment(ss.State):
    views = ss.array(int, (2, 2))


def variants_by_pandas(table):
    d = table.to_pandas()
    d["variant"] = d.user.map(lambda u: "AB"[u % 2])
    d["seen"] = d.groupby("variant").cumcount() + 1
    d["bought"] = (d.page == "/checkout").groupby(d.variant).cumsum()
    return list(zip(d.variant, d.bought / d.seen, strict=True))


VARIANTS = ["A", "B"]


@case(
    "conversion of two variants, their names in a list of the module",
    clicks,
    variants_by_pandas,
    state=Experiment,
    event=CLICK,
    emits={"variant": str, "conversion": float},
)
def experiment(state, event, emit):
    v = event.user % len(VARIANTS)
    state.views[v, 0] += 1
    state.views[v, 1] += event.page == "/checkout"
    emit(VARIANTS[v], state.views[v, 1] / state.views[v, 0])


class Bounce(ss.State):
    last = ss.array(int, 8)
    pages = ss.array(int, 8)


@case(
    "how long each visit took when the next one begins",
    clicks,
    None,
    state=Bounce,
    event=CLICK,
    emits={"user": int, "label": str},
)
def visits(state, event, emit):
    u = event.user

    def silence():
        return event.at - state.last[u]

    if state.pages[u] and silence() > GAP:
        minutes = silence() // 60
        kind = "bounce" if state.pages[u] == 1 else "visit"
        emit(u, f"{kind} of {state.pages[u]} pages, {minutes:d} min ago")
        state.pages[u] = 0
    state.pages[u] += 1
    state.last[u] = event.at

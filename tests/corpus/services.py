"""Requests, deployments and queues of a service."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"
# mypy: disable-error-code="assignment, no-untyped-def, no-any-return, index"

import datetime
from collections import defaultdict
from http import HTTPStatus

import numpy as np
import pyarrow as pa

import specstream as ss
from corpus.case import case

HOSTS = 6


def requests(rng):
    n = 210
    day = datetime.date(2024, 1, 1)
    return pa.table(
        {
            "host": rng.integers(0, HOSTS, n),
            "status": rng.choice([200, 200, 204, 301, 404, 429, 500, 503], n),
            "ms": rng.gamma(2, 30, n),
            "path": rng.choice(["/api/v1/users", "/api/v2/users/7", "/", "/health", "/API/v1"], n),
            "method": rng.choice(["GET", "POST", "get", "DELETE"], n),
            "version": rng.choice(["1.2.3", "1.10.0", "2.0.0-rc1", "latest"], n),
            "day": [day + datetime.timedelta(days=int(d)) for d in np.sort(rng.integers(0, 40, n))],
            "job": rng.integers(0, 100, n),
            "priority": rng.integers(1, 6, n),
        }
    )


REQUEST = {
    "host": int,
    "status": int,
    "ms": float,
    "path": str,
    "method": str,
    "version": str,
    "day": datetime.date,
    "job": int,
    "priority": int,
}


class Breaker(ss.State):
    failures = ss.array(int, HOSTS)
    opened = ss.array(int, HOSTS, fill=-1)


def breaker_by_hand(table):
    failures, opened, rows = [0] * HOSTS, {}, []
    for i, (h, s) in enumerate(
        zip(table["host"].to_pylist(), table["status"].to_pylist(), strict=True)
    ):
        if h in opened:
            if i - opened[h] < 15:
                rows.append((h, "open"))
                continue
            del opened[h]
        failures[h] = failures[h] + 1 if s >= 500 else 0
        if failures[h] == 3:
            opened[h], failures[h] = i, 0
            rows.append((h, "trip"))
        else:
            rows.append((h, "closed"))
    return rows


class CircuitOpen(Exception):
    """The host is left alone for a while."""


@case(
    "a circuit breaker, by raising and catching",
    requests,
    breaker_by_hand,
    state=Breaker,
    event=REQUEST,
    emits={"host": int, "state": str},
)
def breaker(state, event, emit):
    h = event.host

    def check():
        if state.opened[h] >= 0:
            if event.sequence - state.opened[h] < 15:
                raise CircuitOpen
            state.opened[h] = -1

    try:
        check()
        if not 500 <= event.status < 600:
            state.failures[h] = 0
        else:
            state.failures[h] += 1
        assert state.failures[h] < 3, "too many"
    except CircuitOpen:
        emit(h, "open")
    except AssertionError:
        state.opened[h], state.failures[h] = event.sequence, 0
        emit(h, "trip")
    else:
        emit(h, "closed")


class Statuses(ss.State):
    counts = ss.array(int, 6)


def statuses_by_hand(table):
    n, rows = defaultdict(int), []
    for s in table["status"].to_pylist():
        n[s // 100] += 1
        rows.append((f"{s // 100}xx", n[s // 100], HTTPStatus(s).phrase))
    return rows


@case(
    "classes of status codes, and phrases from the standard library's enum",
    requests,
    statuses_by_hand,
    state=Statuses,
    event=REQUEST,
    emits={"kind": str, "count": int, "phrase": str},
)
def statuses(state, event, emit):
    kind = event.status // 100
    state.counts[kind] += 1
    phrase: str = HTTPStatus(event.status).phrase
    emit(f"{kind}xx", state.counts[kind], phrase)


class Versions(ss.State):
    newest = ss.array(int, 3)
    ignored = ss.scalar(int)


def versions_by_hand(table):
    newest, ignored, rows = (0, 0, 0), 0, []
    for v in table["version"].to_pylist():
        try:
            parts = tuple(int(p) for p in v.split("."))
        except ValueError:
            ignored += 1
            continue
        newest = max(newest, parts)
        rows.append((".".join(map(str, newest)), ignored))
    return rows


def parse(version: str) -> tuple[int, int, int]:
    major, minor, patch = version.split(".")
    return int(major), int(minor), int(patch)


@case(
    "the newest version, compared as tuples",
    requests,
    versions_by_hand,
    state=Versions,
    event=REQUEST,
    emits={"newest": str, "ignored": int},
)
def versions(state, event, emit):
    try:
        version = parse(event.version)
    except ValueError:
        state.ignored += 1
        return
    if version > tuple(state.newest):
        for i, part in enumerate(version):
            state.newest[i] = part
    a, b, c = state.newest
    emit(f"{a}.{b}.{c}", state.ignored)


class Queue(ss.State):
    jobs = ss.array(int, 8)
    priorities = ss.array(int, 8)
    size = ss.scalar(int)


def queue_by_hand(table):
    waiting, rows = [], []
    for job, p in zip(table["job"].to_pylist(), table["priority"].to_pylist(), strict=True):
        waiting.append((-p, len(waiting), job))
        if len(waiting) == 8:
            waiting.sort()
            rows += [(j, -q) for q, _, j in waiting[:4]]
            waiting = [(q, i, j) for i, (q, _, j) in enumerate(waiting[4:])]
    return rows


@case(
    "batches of jobs by priority; a local list of tuples",
    requests,
    queue_by_hand,
    state=Queue,
    event=REQUEST,
    emits={"job": int, "priority": int},
)
def job_queue(state, event, emit):
    state.jobs[state.size] = event.job
    state.priorities[state.size] = event.priority
    state.size += 1
    if state.size < len(state.jobs):
        return
    waiting = [(-state.priorities[i], i, state.jobs[i]) for i in range(state.size)]
    waiting.sort()
    for priority, _, job in waiting[:4]:
        emit(job, -priority)
    del waiting[:4]
    for i, (priority, _, job) in enumerate(waiting):
        state.jobs[i], state.priorities[i] = job, -priority
    state.size = len(waiting)


class Digest(ss.State):
    counts = ss.array(int, 12)


BOUNDS = (5.0, 10.0, 20.0, 35.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 500.0)


def digest_by_numpy(table):
    at = np.searchsorted(BOUNDS, table["ms"].to_numpy(), side="left")
    return [(int(k), int((at[: i + 1] <= k).sum())) for i, k in enumerate(at)]


@case(
    "a histogram with bounds, found by next()",
    requests,
    digest_by_numpy,
    state=Digest,
    event=REQUEST,
    emits={"bucket": int, "cumulative": int},
)
def histogram(state, event, emit):
    bucket = next((i for i, bound in enumerate(BOUNDS) if event.ms <= bound), len(BOUNDS))
    state.counts[bucket] += 1
    emit(bucket, sum(state.counts[: bucket + 1]))


class Routes(ss.State):
    api = ss.scalar(int)
    writes = ss.scalar(int)


def routes_by_pandas(table):
    d = table.to_pandas()
    parts = d.path.str.lower().str.strip("/").str.split("/")
    api = parts.map(lambda p: p[0] == "api")
    writes = d.method.str.upper().isin(["POST", "DELETE"]).cumsum()
    version = parts.map(lambda p: int(p[1][1:]) if p[0] == "api" else 0)
    return [tuple(map(int, row)) for row in zip(version, api.cumsum(), writes, strict=True)]


@case(
    "routes, by match over the parts of a path",
    requests,
    routes_by_pandas,
    state=Routes,
    event=REQUEST,
    emits={"version": int, "api": int, "writes": int},
)
def routes(state, event, emit):
    if event.method.upper() in {"POST", "PUT", "DELETE"}:
        state.writes += 1
    version = 0
    match event.path.lower().strip("/").split("/"):
        case ["api", "v1", *_]:
            version = 1
        case ["api", "v2", *_]:
            version = 2
    if version:
        state.api += 1
    emit(version, state.api, state.writes)


class Weeks(ss.State):
    week = ss.scalar(int)
    n = ss.scalar(int)


def weeks_by_pandas(table):
    day = table["day"].to_pandas()
    week = day.map(lambda d: "{}-W{:02}".format(*d.isocalendar()[:2]))
    return [(w, int(n)) for w, n in zip(week, week.groupby(week).cumcount() + 1, strict=True)]


@case(
    "weeks of the calendar",
    requests,
    weeks_by_pandas,
    state=Weeks,
    event=REQUEST,
    emits={"week": str, "requests": int},
)
def by_week(state, event, emit):
    year, week, _ = ss.when(event.day).isocalendar()
    if week != state.week:
        state.week, state.n = week, 0
    state.n += 1
    emit(f"{year}-W{week:02}", state.n)


class Slow(ss.State):
    slowest = ss.array(float, HOSTS)


def slow_by_hand(table):
    slowest, rows = {}, []
    for h, ms in zip(table["host"].to_pylist(), table["ms"].to_pylist(), strict=True):
        slowest[h] = max(slowest.get(h, 0.0), ms)
        over = sorted(k for k, v in slowest.items() if v > 150)
        rows.append((h, len(over), over[0] if over else -1))
    return rows


@case(
    "hosts that were slow; min of what may be empty",
    requests,
    slow_by_hand,
    state=Slow,
    event=REQUEST,
    emits={"host": int, "slow": int, "first": int},
)
def slow_hosts(state, event, emit, /):
    state.slowest[event.host] = max(state.slowest[event.host], event.ms)
    slow = {h for h in range(HOSTS) if state.slowest[h] > 150}
    emit(event.host, len(slow), min(slow, default=-1))


@ss.pure(batch=True)
def anomaly(ms, status) -> float:
    return np.log1p(ms) + np.asarray(status) / 1000


class Scores(ss.State):
    highest = ss.scalar(float)


def scores_by_numpy(table):
    score = np.log1p(table["ms"].to_numpy()) + table["status"].to_numpy() / 1000
    return [(float(a), float(b)) for a, b in zip(score, np.maximum.accumulate(score), strict=True)]


@case(
    "a score that NumPy computes for whole columns",
    requests,
    scores_by_numpy,
    replaced={anomaly: lambda *row: float(anomaly(*np.array([row]).T)[0])},
    state=Scores,
    event=REQUEST,
    emits={"score": float, "highest": float},
)
def scores(state, event, emit):
    score = anomaly(event.ms, event.status)
    state.highest = max(state.highest, score)
    emit(score, state.highest)


class Retries(ss.State):
    attempts = ss.array(int, 100)
    given_up = ss.scalar(int)


def retries_by_hand(table):
    attempts, given_up, rows = defaultdict(int), 0, []
    for job, s in zip(table["job"].to_pylist(), table["status"].to_pylist(), strict=True):
        if s in (429, 500, 503):
            attempts[job] += 1
            if attempts[job] > 2:
                given_up += 1
                attempts[job] = 0
            else:
                rows.append((job, min(60.0, 2.0 ** attempts[job]), given_up))
        else:
            attempts[job] = 0
    return rows


def backoff(attempt, *, base=2.0, cap=60.0):
    return min(cap, base**attempt)


@case(
    "retries that wait twice as long each time; emits in a helper",
    requests,
    retries_by_hand,
    state=Retries,
    event=REQUEST,
    emits={"job": int, "wait": float, "given_up": int},
)
def retries(state, event, emit):
    match event.status:
        case 429 | 500 | 503:
            retry(state, event.job, emit)
        case _:
            state.attempts[event.job] = 0


def retry(state, job, emit):
    state.attempts[job] += 1
    if state.attempts[job] > 2:
        state.given_up += 1
        state.attempts[job] = 0
        return
    emit(job, backoff(state.attempts[job]), state.given_up)

"""Stock, parcels and routes."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls
# mypy: disable-error-code="attr-defined, var-annotated, operator, misc"

import math

import numpy as np
import pyarrow as pa

import specstream as ss
from corpus.case import case

DEPOTS = ["HAM", "BER", "MUC", "CGN"]


def parcels(rng):
    n = 200
    return pa.table(
        {
            "parcel": rng.integers(0, 40, n),
            "sku": rng.integers(0, 12, n),
            "change": rng.integers(-20, 25, n),
            "depot": rng.choice(DEPOTS, n),
            "scan": rng.choice(["picked", "sorted", "loaded", "delivered", "lost"], n),
            "weight": np.abs(rng.normal(4, 3, n)).round(2),
            "x": rng.uniform(0, 100, n),
            "y": rng.uniform(0, 100, n),
            "time": rng.integers(0, 60, n).cumsum(),
            "postcode": rng.choice(["20095", "10115", "80331", "5o667", "", " 01067"], n),
            "size": rng.choice(["30x20x10", "60x60x60", "1x2", "120x40x20"], n),
        }
    )


PARCEL = {
    "parcel": int,
    "sku": int,
    "change": int,
    "depot": str,
    "scan": str,
    "weight": float,
    "x": float,
    "y": float,
    "time": int,
    "postcode": str,
    "size": str,
}


class Stock(ss.State):
    level = ss.array(int, 12, fill=10)
    ordered = ss.array(bool, 12)


class OutOfStock(Exception):
    pass


def take(state, sku, amount):
    if amount > state.level[sku]:
        raise OutOfStock(f"{sku}: {amount} wanted")
    state.level[sku] -= amount
    return state.level[sku]


def stock_by_hand(table):
    level, rows = [10] * 12, []
    for sku, change in zip(table["sku"].to_pylist(), table["change"].to_pylist(), strict=True):
        if level[sku] + change < 0:
            rows.append((sku, level[sku], "refused"))
        else:
            level[sku] += change
            rows.append((sku, level[sku], "ok" if level[sku] >= 5 else "low"))
    return rows


@case(
    "stock that never goes below zero",
    parcels,
    stock_by_hand,
    state=Stock,
    event=PARCEL,
    emits={"sku": int, "level": int, "status": str},
)
def stock(state, event, emit):
    status = "ok"
    try:
        if event.change < 0:
            take(state, event.sku, -event.change)
        else:
            state.level[event.sku] += event.change
        if state.level[event.sku] < 5:
            status = "low"
    except OutOfStock:
        status = "refused"
    finally:
        emit(event.sku, state.level[event.sku], status)


class Parcels(ss.State):
    status = ss.array(np.int8, 40)
    wrong = ss.scalar(int)


ORDER = ["picked", "sorted", "loaded", "delivered"]


def scans_by_hand(table):
    status, wrong, rows = [0] * 40, 0, []
    for p, s in zip(table["parcel"].to_pylist(), table["scan"].to_pylist(), strict=True):
        step = ["picked", "sorted", "loaded", "delivered", "lost"].index(s)
        if step < 4 and step == status[p]:
            status[p] = (step + 1) % 4
            rows.append((p, s, wrong))
        else:
            wrong += 1
    return rows


@case(
    "scans of parcels in their order, which is a list of the module",
    parcels,
    scans_by_hand,
    state=Parcels,
    event=PARCEL,
    emits={"parcel": int, "scan": str, "wrong": int},
)
def scans(state, event, emit):
    if event.scan in ORDER and ORDER.index(event.scan) == state.status[event.parcel]:
        state.status[event.parcel] = (state.status[event.parcel] + 1) % len(ORDER)
        emit(event.parcel, event.scan, state.wrong)
    else:
        state.wrong += 1


class Depots(ss.State):
    x = ss.array(float, 4)
    y = ss.array(float, 4)
    n = ss.array(int, 4)


CENTRES = [(20.0, 20.0), (80.0, 20.0), (20.0, 80.0), (80.0, 80.0)]


def depots_by_numpy(table):
    p = np.column_stack([table["x"], table["y"]])
    c = np.array([(20.0, 20.0), (80.0, 20.0), (20.0, 80.0), (80.0, 80.0)])
    d = np.linalg.norm(p[:, None] - c[None], axis=2)
    near = d.argmin(axis=1)
    return [(int(k), float(d[i, k]), int((near[: i + 1] == k).sum())) for i, k in enumerate(near)]


@case(
    "the nearest depot, by math.hypot over a list of the module",
    parcels,
    depots_by_numpy,
    state=Depots,
    event=PARCEL,
    emits={"depot": int, "distance": float, "parcels": int},
)
def nearest_depot(state, event, emit):
    distances = [math.hypot(event.x - x, event.y - y) for x, y in CENTRES]
    k = distances.index(min(distances))
    state.n[k] += 1
    emit(k, distances[k], state.n[k])


class KMeans(ss.State):
    x = ss.array(float, 4)
    y = ss.array(float, 4)
    n = ss.array(int, 4)


def kmeans_by_numpy(table):
    c, n, rows = np.zeros((4, 2)), np.zeros(4, int), []
    for i, p in enumerate(np.column_stack([table["x"], table["y"]])):
        k = i if i < 4 else int(((c - p) ** 2).sum(axis=1).argmin())
        n[k] += 1
        c[k] += (p - c[k]) / n[k]
        rows.append((k, *map(float, c[k])))
    return rows


@case(
    "k-means, one point after the other",
    parcels,
    kmeans_by_numpy,
    state=KMeans,
    event=PARCEL,
    emits={"cluster": int, "x": float, "y": float},
)
def kmeans(state, event, emit):
    if event.sequence < 4:
        k = event.sequence
    else:
        k = min(range(4), key=lambda i: (state.x[i] - event.x) ** 2 + (state.y[i] - event.y) ** 2)
    state.n[k] += 1
    state.x[k] += (event.x - state.x[k]) / state.n[k]
    state.y[k] += (event.y - state.y[k]) / state.n[k]
    emit(k, x=state.x[k], y=state.y[k])


class Trucks(ss.State):
    free = ss.array(float, 5, fill=20.0)
    tours = ss.scalar(int)


def trucks_by_hand(table):
    free, tours, rows = [20.0] * 5, 0, []
    for w in table["weight"].to_pylist():
        fitting = [(f - w, k) for k, f in enumerate(free) if f >= w]
        if not fitting:
            tours += 1
            free[:] = [20.0] * 5
            fitting = [(20.0 - w, 0)]
        rest, k = min(fitting)
        free[k] = rest
        rows.append((k, rest, tours))
    return rows


@case(
    "best fit of parcels into trucks",
    parcels,
    trucks_by_hand,
    state=Trucks,
    event=PARCEL,
    emits={"truck": int, "free": float, "tours": int},
)
def best_fit(state, event, emit):
    fitting = [t for t in range(5) if state.free[t] >= event.weight]
    if not fitting:
        state.tours += 1
        state.free[:] = 20.0
        fitting.append(0)
    truck = min(fitting, key=lambda t: state.free[t])
    state.free[truck] -= event.weight
    emit(truck, state.free[truck], state.tours)


class Postcodes(ss.State):
    zones = ss.array(int, 10)
    invalid = ss.scalar(int)


def postcodes_by_pandas(table):
    code = table["postcode"].to_pandas().str.strip()
    good = code.str.fullmatch(r"\d{5}")
    zone = code.where(good).str[0]
    n = zone.groupby(zone).cumcount() + 1
    invalid = (~good).cumsum()
    return [
        (int(z), int(k), int(i)) for z, k, i, g in zip(zone, n, invalid, good, strict=True) if g
    ]


@case(
    "zones of postcodes",
    parcels,
    postcodes_by_pandas,
    state=Postcodes,
    event=PARCEL,
    emits={"zone": int, "parcels": int, "invalid": int},
)
def zones(state, event, emit):
    code = event.postcode.strip()
    if len(code) != 5 or not code.isdigit():
        state.invalid += 1
        return
    zone = int(code[0])
    state.zones[zone] += 1
    emit(zone, state.zones[zone], state.invalid)


class Volume(ss.State):
    total = ss.scalar(int)
    odd = ss.scalar(int)


def volume_by_numpy(table):
    rows, total, odd = [], 0, 0
    for s in table["size"].to_pylist():
        sides = np.array(s.split("x"), int)
        if len(sides) == 3:
            total += int(sides.prod())
        else:
            odd += 1
        rows.append((total, odd))
    return rows


def parse_size(text: str) -> tuple[int, int, int]:
    a, b, c = text.split("x")
    return int(a), int(b), int(c)


@case(
    "volumes of sizes like 30x20x10",
    parcels,
    volume_by_numpy,
    state=Volume,
    event=PARCEL,
    emits={"total": int, "odd": int},
)
def volumes(state, event, emit):
    try:
        a, b, c = parse_size(event.size)
        state.total += a * b * c
    except ValueError:
        state.odd += 1
    emit(state.total, state.odd)


class Late(ss.State):
    picked = ss.array(int, 40, fill=-1)
    n = ss.scalar(int)
    total = ss.scalar(int)
    worst = ss.scalar(int)


def lead_by_hand(table):
    picked, times, rows = {}, [], []
    for t in table.to_pylist():
        if t["scan"] == "picked":
            picked[t["parcel"]] = t["time"]
        elif t["scan"] == "delivered" and t["parcel"] in picked:
            times.append(t["time"] - picked.pop(t["parcel"]))
            rows.append((*divmod(times[-1], 60), sum(times) / len(times), max(times)))
    return rows


@case(
    "lead times in hours and minutes",
    parcels,
    lead_by_hand,
    state=Late,
    event=PARCEL,
    emits={"hours": int, "minutes": int, "mean": float, "worst": int},
)
def lead_times(state, event, emit):
    p = event.parcel
    if event.scan == "picked":
        state.picked[p] = event.time
    elif event.scan == "delivered" and state.picked[p] >= 0:
        took = event.time - state.picked[p]
        state.picked[p] = -1
        state.n += 1
        state.total += took
        state.worst = max(state.worst, took)
        hours, minutes = divmod(took, 60)
        emit(hours, minutes, state.total / state.n, state.worst)


class Loads(ss.State):
    weight = ss.array(float, 4)


def loads_by_pandas(table):
    d = table.to_pandas()
    total, rows = dict.fromkeys(DEPOTS, 0.0), []
    for depot, w in zip(d.depot, d.weight, strict=True):
        total[depot] += w
        rows.append((depot, total[depot] / sum(total.values())))
    return rows


@case(
    "share of each depot; a local dict of names",
    parcels,
    loads_by_pandas,
    state=Loads,
    event=PARCEL,
    emits={"depot": str, "share": float},
)
def shares(state, event, emit):
    index = {"HAM": 0, "BER": 1, "MUC": 2, "CGN": 3}[event.depot]
    state.weight[index] += event.weight
    emit(event.depot, state.weight[index] / sum(state.weight))


class Recent(ss.State):
    depots = ss.array(int, 6)
    weights = ss.array(float, 6)


def recent_by_pandas(table):
    d = table.to_pandas()
    rows = []
    for i in range(5, len(d)):
        sums = d.iloc[i - 5 : i + 1].groupby("depot").weight.sum()
        n = d.iloc[i - 5 : i + 1].depot.nunique()
        rows.append((n, float(sums.max())))
    return rows


@case(
    "weights of the last six parcels by depot, in a local dict",
    parcels,
    recent_by_pandas,
    state=Recent,
    event=PARCEL,
    emits={"depots": int, "heaviest": float},
)
def recent_weights(state, event, emit):
    at = event.sequence % 6
    state.depots[at] = DEPOTS.index(event.depot)
    state.weights[at] = event.weight
    if event.sequence < 5:
        return
    by_depot = {}
    for depot, weight in zip(state.depots, state.weights):  # noqa: B905
        by_depot[depot] = by_depot.get(depot, 0.0) + weight
    emit(len(by_depot), max(by_depot.values()))


class Journey(ss.State):
    stage = ss.array(str, 40)


MOVES = {
    ("", "picked"): "at the depot",
    ("at the depot", "sorted"): "sorted",
    ("sorted", "loaded"): "on the road",
    ("on the road", "delivered"): "home",
}
ENDS = ["home"]


def journeys_by_hand(table):
    stages = dict.fromkeys(range(40), "")
    rows = []
    for parcel, scan in zip(table["parcel"].to_pylist(), table["scan"].to_pylist(), strict=True):
        reached = MOVES.get((stages[parcel], scan))
        if reached is not None:
            stages[parcel] = reached
            rows.append((parcel, reached))
    return rows


@case(
    "a state machine from a table of the module, with an exception for what is no move",
    parcels,
    journeys_by_hand,
    raises=True,
    state=Journey,
    event=PARCEL,
    emits={"parcel": int, "stage": str},
)
def journeys(state, event, emit):
    stage = state.stage[event.parcel]
    if stage == ENDS[0]:
        raise ValueError(f"parcel {event.parcel} is {ENDS[0]}: " + event.scan)
    if (stage, event.scan) not in MOVES:
        known = [after for before, after in MOVES if before == stage]
        raise ValueError(f"{stage or 'new'} and {event.scan}", known, stage.upper())
    reached = MOVES[stage, event.scan]
    state.stage[event.parcel] = reached
    emit(event.parcel, reached)

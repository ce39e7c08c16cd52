"""The model of the verbs does what their definitions say."""

# ruff: noqa: PT017, PT018, C408, E731, B905, B023, E501
# mypy: ignore-errors

import copy
import itertools
import random
from types import SimpleNamespace

from support.verbs_model import ANY, OTHERWISE, Model, Node


def N(name, verb, inputs, **options):
    return Node(name, verb, tuple(inputs.split()), options)


def play(nodes, events, end=True, sources=("x",), of=None):
    """Per event the rows of the node `of` (default: the last node), then those of the end."""
    model, of = Model(sources, nodes), of or nodes[-1].name
    out = []
    for i, event in enumerate(events):
        source, row, time = event if isinstance(event, tuple) else ("x", event, i)
        out.append(model.event(source, row, time)[of])
    return out + ([model.end()[of]] if end else [])


def V(*values):
    return [{"v": v} for v in values]


def vals(phases, c="v"):
    return [[r[c] for r in rows] for rows in phases]


def flat(phases):
    return [r for rows in phases for r in rows]


def raises(error, f, *texts):
    try:
        f()
    except error as e:
        assert all(t in str(e) for t in texts), e
    else:
        raise AssertionError("nothing raised")


def test_v1():
    assert play([N("m", "map", "x", f=lambda e: (e.v, None), columns=("a", "b"))], V(1)) == [
        [{"a": 1, "b": None}],
        [],
    ]
    [[row], _] = play(
        [N("m", "with_columns", "x", f=lambda e: (e.v + 1, 9), columns=("v", "n"))],
        [{"v": 1, "w": 2}],
    )
    assert list(row.items()) == [("v", 2), ("w", 2), ("n", 9)]
    assert vals(play([N("m", "filter", "x", f=lambda e: e.v > 1)], V(1, 2))) == [[], [2], []]
    raises(TypeError, lambda: play([N("m", "filter", "x", f=lambda e: e.v)], V(1)))
    raises(TypeError, lambda: play([N("m", "filter", "x", f=lambda e: None)], V(1)))


def test_v2_v3():
    assert vals(
        play(
            [N("s", "accumulate", "x", f=lambda s, e: s + e.v, start=0, columns=("v",))], V(1, 2, 3)
        )
    ) == [[1], [3], [6], []]
    two = N(
        "s", "accumulate", "x", f=lambda s, e: (s.b, s.a + e.v), start=(0, 1), columns=("a", "b")
    )
    assert flat(play([two], V(1, 2))) == [{"a": 1, "b": 1}, {"a": 1, "b": 3}]
    for n in range(5):
        assert flat(play([N("s", "skip", "x", n=n)], V(1, 2, 3))) == V(1, 2, 3)[n:]
        assert flat(play([N("s", "take", "x", n=n)], V(1, 2, 3))) == V(1, 2, 3)[:n]
    assert vals(play([N("s", "freeze", "x")], V(1, 2, 3))) == [[1], [1], [1], []]


def test_v4():
    for size, n in itertools.product(range(9), range(1, 5)):
        values = list(range(size))
        assert [
            r["v"] for r in flat(play([N("e", "every", "x", n=n, last=False)], V(*values)))
        ] == values[::n]
        got = play([N("e", "every", "x", n=n, last=True)], V(*values))
        assert [r["v"] for r in flat(got)] == sorted({*values[::n], *values[-1:]})
        assert len(got[-1]) == (size > 0 and (size - 1) % n > 0)
    events = [("x", {"v": t}, t) for t in (0, 30, 59, 60, 100, 125, 184, 185)]
    assert [r["v"] for r in flat(play([N("e", "every", "x", period=60)], events))] == [
        0,
        60,
        125,
        185,
    ]


def test_v5():
    assert vals(play([N("l", "last", "x")], V(1, 2))) == [[], [], [2]]
    assert play([N("l", "last", "x")], []) == [[]]
    assert vals(play([N("s", "start_with", "x", row={"v": 0}, times=2)], V(1, 2))) == [
        [0, 0, 1],
        [2],
        [],
    ]
    assert play([N("s", "start_with", "x", row={"v": 0}, times=2)], []) == [[]]
    chain = [
        N("l", "last", "x"),
        N("s", "start_with", "l", row={"v": 0}, times=1),
        N("e", "every", "s", n=5, last=True),
    ]
    assert vals(play(chain, V(1, 2))) == [[], [], [0, 2]]


def test_figure_1_and_v6():
    for n in range(1, 5):
        nodes = [
            N("e", "every", "x", n=n, last=False),
            N("z", "zip_map", "x e", f=lambda a, b: a.v + b.v, columns=("v",)),
        ]
        model, got = Model(["x"], nodes), []
        for i in range(25):
            got += [r["v"] for r in model.event("x", {"v": i * i}, i)["z"]]
            if i % n == 0:
                assert len(model.states["z"][()].queues[0]) == (n - 1) * (i // n)
        assert got == [i * i + (n * i) ** 2 for i in range(24 // n + 1)]
    two = [N("z", "zip_map", "x y", f=lambda a, b: (a.v, b.v), columns=("a", "b"), limit=2)]
    x, y = [("x", {"v": i}, 0) for i in range(3)], [("y", {"v": -i}, 0) for i in range(3)]
    for order in ([*x[:2], *y[:2]], [*y[:2], *x[:2]], [x[0], y[0], y[1], x[1]]):
        assert flat(play(two, order, sources=("x", "y"))) == [{"a": 0, "b": 0}, {"a": 1, "b": -1}]
    raises(OverflowError, lambda: play(two, x, sources=("x", "y")), "z:", "rows of x")
    raises(OverflowError, lambda: play(two, y, sources=("x", "y")), "z:", "rows of y")
    assert flat(
        play([N("z", "zip_map", "x x", f=lambda a, b: a.v * b.v, columns=("v",), limit=0)], V(2, 3))
    ) == V(4, 9)


def test_moment():
    def moment(n):
        return [
            N(
                f"power{n}",
                "accumulate",
                "x",
                f=lambda s, e: s + e.v**n,
                start=0.0,
                columns=("sum",),
            ),
            N(f"count{n}", "accumulate", "x", f=lambda c, e: c + 1, start=0, columns=("count",)),
            N(
                f"moment{n}",
                "zip_map",
                f"power{n} count{n}",
                f=lambda a, b: a.sum / b.count,
                columns=("v",),
            ),
        ]

    far = N(
        "far",
        "zip_map",
        "x moment1 moment2",
        f=lambda x, m, s: abs(x.v - m.v) > s.v**0.5,
        columns=("far",),
    )
    nodes = [
        *moment(1),
        *moment(2),
        far,
        N("next", "skip", "far", n=1),
        N("twice", "zip_filter", "far next", f=lambda a, b: a.far and b.far),
    ]
    values = [random.Random(1).choice((0.0, 1.0, 9.0)) for _ in range(3)] + [
        9.0,
        1.0,
        30.0,
        40.0,
        2.0,
        90.0,
        95.0,
        99.0,
    ]
    flags = [
        abs(v - sum(values[: i + 1]) / (i + 1))
        > (sum(w * w for w in values[: i + 1]) / (i + 1)) ** 0.5
        for i, v in enumerate(values)
    ]
    assert [r["far"] for r in flat(play(nodes[:-2], V(*values)))] == flags
    expected = (
        [[]] + [[{"far": True}] if a and b else [] for a, b in itertools.pairwise(flags)] + [[]]
    )
    assert play(nodes, V(*values)) == expected and any(expected)


def test_v7():
    flags = [N("f", "filter_by", "x y")]
    order = [
        ("x", {"v": 1}, 0),
        ("x", {"v": 2}, 0),
        ("x", {"v": 3}, 0),
        ("y", {"t": True}, 0),
        ("y", {"t": None}, 0),
        ("y", {"t": True}, 0),
    ]
    assert vals(play(flags, order, sources=("x", "y"))) == [[], [], [], [1], [], [3], []]


def test_v8():
    [row] = flat(play([N("z", "zip_rows", "x x", suffixes=("_a", "_b"))], [{"v": 1}]))
    assert list(row.items()) == [("v_a", 1), ("v_b", 1)]
    nodes = [
        N("m", "map", "x", f=lambda e: -e.v, columns=("w",)),
        N("z", "zip_rows", "x m x", suffixes=("", "_m", "_2")),
    ]
    assert flat(play(nodes, V(1))) == [{"v": 1, "w": -1, "v_2": 1}]
    nodes = [
        N("s", "start_with", "x", row={"v": 0}, times=2),
        N("z", "zip_map", "s s", f=lambda a, b: (a.v, b.v), columns=("a", "b")),
    ]
    assert play(nodes, V(1)) == [[{"a": 0, "b": 0}, {"a": 0, "b": 0}, {"a": 1, "b": 1}], []]


def test_v9():
    s = N("s", "start_with", "x", row={"v": 0}, times=1)  # rows at paths (0, 0, 0), (0, 1, 0)
    assert vals(play([s, N("m", "merge", "x s")], V(1))) == [[1, 0, 1], []]
    assert vals(play([s, N("m", "merge", "s x")], V(1))) == [[0, 1, 1], []]  # path before argument
    n = N("n", "map", "s", f=lambda e: e.v + 5, columns=("v",))
    assert vals(play([s, n, N("m", "merge", "n s")], V(1))) == [[5, 0, 6, 1], []]


def test_v10():
    w = N("w", "window", "x", n=3, step=1, f=lambda rows: sum(r.v for r in rows), columns=("v",))
    assert (
        vals(play([w], V(1, 2, 3, 4))) == [[], [], [6], [9], []] and flat(play([w], V(1, 2))) == []
    )
    w = N(
        "w", "window", "x", n=2, step=3, f=lambda rows: (rows[0].v, rows[1].v), columns=("a", "b")
    )
    assert [len(rows) for rows in play([w], V(*range(9)))] == [0, 1, 0, 0, 1, 0, 0, 1, 0, 0]
    w = N(
        "w",
        "window",
        "x",
        n=1,
        f=lambda rows: None if rows[0].v == 2 else rows[0].v,
        columns=("v",),
    )
    assert vals(play([w], V(1, 2, 3))) == [[1], [], [3], []]


def K(*pairs):
    return [{"v": v, "k": k} for k, v in pairs]


def test_v11_v12_v13():
    count = dict(f=lambda c, e: c + 1, start=0, columns=("n",), key=("k",))
    [[row], *_] = play([N("c", "accumulate", "x", **count)], K(("a", 1)))
    assert list(row.items()) == [("k", "a"), ("n", 1)]
    got = play([N("c", "accumulate", "x", **count)], K(("a", 1), ("b", 1), (None, 1), ("a", 1)))
    assert vals(got, "n") == [[1], [1], [], [2], []]
    day = lambda e: e.v == "day"
    got = play(
        [N("c", "accumulate", "x", to_all=day, **count)],
        K((None, "day"), ("b", 1), ("a", 1), ("new", "day"), (None, "day"), ("new", 1)),
    )
    assert [[(r["k"], r["n"]) for r in rows] for rows in got] == [
        [],
        [("b", 1)],
        [("a", 1)],
        [("b", 2), ("a", 2)],
        [("b", 3), ("a", 3)],
        [("new", 1)],
        [],
    ]
    got = play(
        [N("c", "accumulate", "x", to_all=day, forget=lambda r: r.n == 2, **count)],
        K(("b", 1), ("a", 1), ("b", 1), ("b", 1), (None, "day"), (None, "day"), ("a", 1)),
    )
    assert [[(r["k"], r["n"]) for r in rows] for rows in got] == [
        [("b", 1)],
        [("a", 1)],
        [("b", 2)],
        [("b", 1)],
        [("a", 2), ("b", 2)],
        [],
        [("a", 1)],
        [],
    ]
    last = play([N("l", "last", "x", key=("k",))], K(("b", 1), ("a", 2), ("b", 3)))
    assert last[-1] == K(("b", 3), ("a", 2)) and list(last[-1][0]) == ["k", "v"]
    got = play(
        [N("e", "every", "x", n=2, last=True, key=("k",))],
        K(("b", 1), ("a", 2), ("b", 3), ("c", 4), ("a", 5), ("a", 6)),
    )
    assert got[-1] == K(("b", 3)) and [len(rows) for rows in got] == [1, 1, 0, 1, 0, 1, 1]
    got = play(
        [N("s", "start_with", "x", row={"v": 0}, times=1, key=("k",))],
        K(("b", 1), ("a", 2), ("b", 3)),
    )
    assert got == [K(("b", 0), ("b", 1)), K(("a", 0), ("a", 2)), K(("b", 3)), []]


def test_v14():
    rng, leave = random.Random(2), lambda e: e.v == 0
    node = N(
        "s",
        "across",
        "x",
        key=("k",),
        columns=("n", "sum"),
        make=lambda: SimpleNamespace(n=0, sum=0),
        leave=leave,
        add=lambda r, e: r.__dict__.update(n=r.n + 1, sum=r.sum + e.v),
        remove=lambda r, e: r.__dict__.update(n=r.n - 1, sum=r.sum - e.v),
        result=lambda r: (r.n, r.sum),
    )
    events, latest = K(*[(rng.choice("abc"), rng.randrange(4)) for _ in range(99)]), {}
    for event, rows in zip(events, play([node], events, end=False)):
        latest[event["k"]] = event["v"]
        latest = {k: v for k, v in latest.items() if v}
        assert rows == [{"n": len(latest), "sum": sum(latest.values())}]


def test_v15():
    def step(record, e):
        record.sum += e.v
        return record.sum if record.sum > 2 else None

    node = N(
        "s",
        "keyed",
        "x",
        key=("k",),
        columns=("sum",),
        make=lambda: SimpleNamespace(sum=0),
        step=step,
    )
    assert play([node], K(("a", 1), ("b", 3), ("a", 2))) == [
        [],
        [{"k": "b", "sum": 3}],
        [{"k": "a", "sum": 3}],
        [],
    ]


def auction(**more):
    def begin(a, e):
        a.least, a.period, a.bid, a.days = e.v, 2, 0, 0

    def bid(a, e):
        a.bid = e.v

    def day(a, e):
        a.days += 1

    return N(
        "auction",
        "machine",
        "x",
        key=("item",),
        to_all=lambda e: e.kind == "day",
        make=SimpleNamespace,
        start="new",
        transitions=[
            ("new", lambda a, e: e.kind == "create", "open", begin),
            ("open", lambda a, e: e.kind == "bid" and e.v > a.bid, "open", bid),
            ("open", lambda a, e: e.kind == "sold" and a.bid >= a.least, "sold", None),
            ("open", lambda a, e: e.kind == "day" and a.days < a.period, "open", day),
            (ANY, OTHERWISE, "wrong", None),
        ],
        output={"open": lambda a: a.days},
        columns=("days",),
        **more,
    )


def test_machine():
    def e(item, kind, v=None):
        return {"item": item, "kind": kind, "v": v}

    got = play(
        [auction()],
        [
            e(None, "day"),
            e("p", "create", 10),
            e("q", "create", 5),
            e(None, "day"),
            e("p", "bid", 12),
            e("q", "bid", 0),
            e("p", "sold"),
            e(None, "day"),
        ],
    )
    p = lambda days: {"item": "p", "days": days}
    q = lambda days: {"item": "q", "days": days}
    assert got == [[], [p(0)], [q(0)], [p(1), q(1)], [p(1)], [], [], [], []]
    node = auction()
    node.options["transitions"].pop()
    raises(ValueError, lambda: play([node], [e("p", "bid", 1)]), "auction", "'new'", "bid")


CELLS = (True, False, None)


def test_tables():
    for a, b in itertools.product(CELLS, CELLS):
        rank = {False: 0, None: 1, True: 2}
        low, high = min((a, b), key=rank.get), max((a, b), key=rank.get)
        no_a = {True: False, False: True, None: None}[a]
        for verb, value in (
            ("both", low),
            ("either", high),
            ("implies", max((no_a, b), key=rank.get)),
        ):
            nodes = [
                N("a", "map", "x", f=lambda e: e.a, columns=("t",)),
                N("b", "map", "x", f=lambda e: e.b, columns=("t",)),
                N("o", verb, "a b", columns=("t",)),
            ]
            assert play(nodes, [{"a": a, "b": b}]) == [[{"t": value}], []]
        assert play([N("o", "negated", "x", columns=("t",))], [{"t": a}]) == [[{"t": no_a}], []]


def test_a_c_c_b():
    nodes = [
        N("a", "map", "x", f=lambda e: e.v == "a", columns=("t",)),
        N("b", "map", "x", f=lambda e: e.v == "b", columns=("t",)),
        N("soon", "eventually", "b", columns=("t",)),
        N("i", "implies", "a soon", columns=("t",)),
        N("f", "filter_by", "x i"),
    ]
    assert vals(play(nodes, V(*"accb"))) == [[], [], [], list("accb"), []]
    assert vals(play(nodes, V(*"bcb"))) == [["b"], [], ["c", "b"], []]


def definition(verb, a, b):
    """On a prefix with an unknown future: a value, or "?" while it is open (streams without nulls)."""
    n, out = len(a), []
    for i in range(n):
        hits = [
            j
            for j in range(i, n)
            if {"always": not a[j], "eventually": a[j], "until": b[j] or not a[j]}[verb]
        ]
        out.append(
            {"always": False, "eventually": True, "until": bool(hits) and b[hits[0]]}[verb]
            if hits
            else "?"
        )
    return [v for v in out if v != "?"]  # what is open is a tail: once i is open, so is all behind


def test_truth_streams_up_to_length_6():
    for size in range(7):
        for bits in itertools.product((True, False), repeat=2 * size):
            a, b = bits[:size], bits[size:]
            nodes = [
                N("a", "map", "x", f=lambda e: e.a, columns=("t",)),
                N("b", "map", "x", f=lambda e: e.b, columns=("t",)),
                N("always", "always", "a", columns=("t",)),
                N("eventually", "eventually", "a", columns=("t",)),
                N("until", "until", "a b", columns=("t",)),
                N("never", "eventually", "always", columns=("t",)),
            ]
            model, got = Model(["x"], nodes), {node.name: [] for node in nodes}
            for i in range(size):
                for name, rows in model.event("x", {"a": a[i], "b": b[i]}, i).items():
                    got[name] += [r["t"] for r in rows]
                for verb in ("always", "eventually", "until"):
                    assert got[verb] == definition(verb, a[: i + 1], b[: i + 1]), (verb, a, b)
            assert got["never"] == [] and not any(model.end().values())


def test_savepoint():
    nodes = [
        auction(),
        N(
            "w",
            "window",
            "auction",
            n=2,
            f=lambda r: r[0].days + r[1].days,
            columns=("days",),
            key=("item",),
        ),
        N("z", "zip_map", "w auction", f=lambda a, b: (a.days, b.days), columns=("a", "b")),
        N("l", "last", "z"),
    ]
    rng = random.Random(3)
    events = [
        {"item": rng.choice("pqr"), "kind": rng.choice(("create", "bid", "day")), "v": i}
        for i in range(60)
    ]
    for cut in range(0, 60, 7):
        model = Model(["x"], nodes)
        for event in events[:cut]:
            model.event("x", event, 0)
        saved = copy.deepcopy(model)

        def rest(m):
            return [m.event("x", event, 0) for event in events[cut:]] + [m.end()]

        assert rest(model) == rest(copy.deepcopy(saved)) == rest(saved)

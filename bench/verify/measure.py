"""Measures what the paper measured: both engines of ``ss.verify``, and NuSMV on its export."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from typing import Any

import specstream as ss
from bench.options import Say
from bench.verify.nusmv import MissingError, ask
from examples.verify import pipelines
from specstream.compiler.language.definitions import keep_text

__all__ = ["comparisons", "grid", "no_full", "properties", "queue_sizes", "width_of"]

SEVEN = (
    *("smaller_than", "passthrough", "product", "ones_on_window", "sum_of_doubles"),
    *("sum_of_odds", "window"),
)
WITH_K = ("smaller_than", "product", "ones_on_window", "window")
KINDS = ("no full queues", "liveness", "bounded liveness")
ROUNDS = 3
_NUSMV_SECONDS = 300.0


def no_full(operator: Any, size: int) -> Callable[..., Any]:
    """The property that no queue, in which one stream waits for another, has so many elements."""
    fields = [one.name for one in operator.layout.fields if one.container is not None]
    queues = [one for one in fields if one.rpartition(".")[2] in ("left", "right")]
    said = " and ".join(f"len(state.{one}) < {size}" for one in queues) or "True"
    text, file = f"def no_full(state):\n    return {said}\n", f"<no full queues: {said}>"
    keep_text(file, text)
    names: dict[str, Any] = {}
    exec(compile(text, file, "exec"), names)
    found: Callable[..., Any] = names["no_full"]
    return found


def silent(rows: Any) -> Any:
    return len(rows) == 0


def below(modulo: int) -> Callable[..., Any]:
    """Events are from 0 on and below a number."""

    def fits(event: Any) -> Any:
        return 0 <= event.x < modulo

    return fits


def width_of(modulo: int) -> int:
    """Bits that hold the products and sums of three of such numbers, and lengths up to 7."""
    return max((modulo - 1) ** 2, 3 * (modulo - 1), 8).bit_length() + 1


def made(name: str, **options: Any) -> Any:
    return getattr(pipelines, name)(**options)


def asked(kind: str, operator: Any, full: int, k: int = 3) -> dict[str, Any]:
    """A property of the paper's, as options."""
    if kind == "no full queues":
        return {"always": no_full(operator, full)}
    if kind == "liveness":
        return {"can_always": "rows"}
    return {"within": ss.verify.within(k)}


def _median(run: Callable[[], float], rounds: int) -> float:
    return statistics.median(run() for _ in range(rounds))


def explicit(operator: Any, domain: dict[str, Any], question: dict[str, Any]) -> dict[str, Any]:
    """What all states say."""
    reports = [ss.verify.check(operator, domain=domain, **question) for _ in range(ROUNDS)]
    (verdict,) = reports[0].verdicts
    return {
        "said": verdict.said,
        "events": verdict.events,
        "states": reports[0].states,
        "ms": 1e3 * statistics.median(one.verdicts[0].seconds for one in reports),
    }


def symbolic(operator: Any, question: dict[str, Any], seconds: float = 60.0) -> dict[str, Any]:
    """What is said of all 64-bit values; the time is that of the whole question, with the stream
    that was run."""
    began = time.perf_counter()
    report = ss.verify.check(operator, time=seconds, **question)
    took = time.perf_counter() - began
    (verdict,) = report.verdicts
    return {"said": verdict.said, "events": verdict.events, "ms": 1e3 * took}


def exported(
    operator: Any, question: dict[str, Any], width: int, assume: Any, rounds: int = ROUNDS
) -> dict[str, Any]:
    """What NuSMV says of the export; the time is that of its process."""
    model = ss.verify.to_smv(operator, width=width, assume=assume, **question)
    try:
        runs = [ask(model, _NUSMV_SECONDS) for _ in range(rounds)]
    except MissingError as error:
        return {"said": "not there", "why": str(error)}
    except subprocess.TimeoutExpired:
        return {"said": "no answer", "ms": 1e3 * _NUSMV_SECONDS}
    (answer,) = runs[0].answers
    # Its last state is the one behind the stream; what is said of an event is said before it.
    events = answer.states - (0 if "within" in question or "each" in question else 1)
    return {
        "said": "proved" if answer.holds else "refuted",
        "events": 0 if answer.holds else events,
        "ms": 1e3 * statistics.median(one.seconds for one in runs),
    }


def properties(say: Say) -> dict[str, Any]:
    """Figure 7a: seven pipelines, three properties; N = 4, Q = 3."""
    rows = []
    for name in SEVEN:
        for kind in KINDS:
            say(f"{name}, {kind}")
            # A queue of Q is full, and may be: it has room for one more.
            operator, wide = made(name, modulo=4, limit=4), made(name)
            row: dict[str, Any] = {"name": name, "kind": kind}
            question = asked(kind, operator, 3)
            row["explicit"] = explicit(operator, {"x": range(4)}, question)
            if kind != "liveness":
                row["symbolic"] = symbolic(wide, asked(kind, wide, 3))
            row["nusmv"] = exported(operator, question, width_of(4), below(4))
            rows.append(row)
    return {"rows": rows}


def queue_sizes(say: Say) -> dict[str, Any]:
    """Figure 7b: no full queues for Q = 1 to 4, N = 5; and beyond."""
    rows = []
    for name in SEVEN:
        for size in (1, 2, 3, 4):
            say(f"{name}, Q = {size}")
            operator = made(name, modulo=5, limit=size)
            question = asked("no full queues", operator, size)
            whole = ss.verify.check(operator, domain={"x": range(5)}, always=no_full(operator, 99))
            rows.append(
                {
                    "name": name,
                    "size": size,
                    "states": whole.states,
                    "all ms": 1e3 * whole.verdicts[0].seconds,
                    "explicit": explicit(operator, {"x": range(5)}, question),
                    "nusmv": exported(operator, question, width_of(5), below(5)),
                }
            )
    beyond = []
    for size in (1, 2, 3, 4, 8, 16, 32):
        say(f"product, 64 bits, Q = {size}")
        operator = made("product")
        question = {"always": no_full(operator, size), "events": 2 * size + 2}
        found = ss.verify.check(operator, time=60.0, **question)
        (verdict,) = found.verdicts
        told = {"said": verdict.said, "events": verdict.events, "ms": 1e3 * verdict.seconds}
        beyond.append({"size": size} | told)
    more = []
    for size in (5, 6):
        say(f"product, all states, Q = {size}")
        operator = made("product", modulo=5, limit=size)
        whole = ss.verify.check(operator, domain={"x": range(5)}, always=no_full(operator, 99))
        more.append(
            {"size": size, "states": whole.states, "all ms": 1e3 * whole.verdicts[0].seconds}
        )
    smallest: list[dict[str, Any]] = []
    for name, queue in (("product", "right"), ("sum_of_odds", "left"), ("squares", "left")):
        say(f"{name}, smallest")
        operator = made(name)
        text = f"def size(state):\n    return len(state.pair.{queue})\n"
        keep_text(f"<{name}.{queue}>", text)
        names: dict[str, Any] = {}
        exec(compile(text, f"<{name}.{queue}>", "exec"), names)
        (verdict,) = ss.verify.smallest(operator, names["size"], time=60.0).verdicts
        smallest.append({"name": name, "said": str(verdict), "reason": verdict.reason})
    return {"rows": rows, "beyond": beyond, "more": more, "smallest": smallest}


def compared() -> Iterator[tuple[str, Callable[..., Any], Callable[..., Any]]]:
    """The comparisons of Figure 7c: of each its name, and what builds either side."""
    for name in ("passthrough", "product", "ones_on_window", "sum_of_odds", "window"):
        build = getattr(pipelines, f"of_{name}")
        yield name, build, build
    yield "passthrough and delay", pipelines.of_passthrough, pipelines.of_delay
    for k in (2, 3):
        yield (
            f"window sum of {k}, two ways",
            lambda k=k, **options: pipelines.of_window(k, **options),
            lambda k=k, **options: pipelines.of_window_of_trimmed(k, **options),
        )
    yield "5a and 5b", pipelines.of_sum_of_odds, pipelines.of_squares
    yield (
        "5a with odd numbers, and 5c",
        lambda **options: pipelines.of_sum_of_odds(condition="odd", **options),
        pipelines.of_sum_of_evens,
    )


def comparisons(say: Say) -> dict[str, Any]:
    """Figure 7c: the same rows, stepwise and by sequence; N = 2, Q = 2."""
    rows = []
    for name, one, other in compared():
        for how in ("stepwise", "sequence"):
            say(f"{name}, {how}")
            row: dict[str, Any] = {"name": name, "rows": how}
            sides = [
                pipelines.whole(of, build(modulo=2, limit=2))
                for of, build in (("old", one), ("new", other))
            ]
            began = [
                ss.verify.same(*sides, rows=how, domain={"x": range(2)}, events=200)
                for _ in range(ROUNDS)
            ]
            (verdict,) = began[0].verdicts
            row["explicit"] = {
                "said": verdict.said,
                "events": verdict.events,
                "states": began[0].states,
                "ms": 1e3 * statistics.median(of.verdicts[0].seconds for of in began),
            }
            wide = [pipelines.whole(of, build()) for of, build in (("old", one), ("new", other))]
            start = time.perf_counter()
            (verdict,) = ss.verify.same(*wide, rows=how, time=60.0).verdicts
            row["symbolic"] = {
                "said": verdict.said,
                "events": verdict.events,
                "ms": 1e3 * (time.perf_counter() - start),
                "expected": verdict.expected,
                "stream": [] if verdict.table is None else verdict.table.table["x"].to_pylist(),
            }
            both = pipelines.side_by_side(one(modulo=2, limit=2), other(modulo=2, limit=2), how, 2)
            row["nusmv"] = exported(both, {"each": silent}, 4, below(2))
            rows.append(row)
    return {"rows": rows}


def grid(say: Say) -> dict[str, Any]:
    """162 problems: N from 2 to 5, Q from 1 to 4, k from 2 to 5, comparisons, and one pipeline of
    22 vertices."""
    problems = list(_problems())
    began = time.perf_counter()
    longest, total = ("", 0.0), {"proved": 0, "refuted": 0, "holds": 0, "undecided": 0}
    for number, (name, run) in enumerate(problems):
        say(f"{number + 1} of {len(problems)}: {name}")
        start = time.perf_counter()
        total[run()] += 1
        longest = max(longest, (name, time.perf_counter() - start), key=lambda one: one[1])
    return {
        "problems": len(problems),
        "seconds": time.perf_counter() - began,
        "longest": {"name": longest[0], "ms": 1e3 * longest[1]},
        "said": total,
    }


def _problems() -> Iterator[tuple[str, Callable[[], str]]]:
    def check(name: str, kind: str, modulo: int, full: int, **options: Any) -> Callable[[], str]:
        def run() -> str:
            operator = made(name, modulo=modulo, limit=full + 1, **options)
            question = asked(kind, operator, full)
            report = ss.verify.check(operator, domain={"x": range(modulo)}, **question)
            found: str = report.said
            return found

        return run

    for name in SEVEN:
        for kind in KINDS:
            for modulo in (2, 3, 4, 5):
                yield f"{name}, {kind}, N = {modulo}, Q = 3", check(name, kind, modulo, 3)
        for full in (1, 2, 4):
            yield f"{name}, {KINDS[0]}, N = 5, Q = {full}", check(name, KINDS[0], 5, full)
    for name in WITH_K:
        for k in (2, 4, 5):
            for kind in KINDS:
                yield f"{name}, {kind}, k = {k}", check(name, kind, 3, 2, k=k)
    several = [one for one in compared() if not one[0].startswith("5a")]
    for name, one, other in several:
        for how in ("stepwise", "sequence"):
            yield f"{name}, {how}", _comparison(one, other, how)
    for kind in KINDS:
        yield f"22 vertices, {kind}", check("chain", kind, 2, 2)
    for how in ("stepwise", "sequence"):
        yield f"22 vertices, {how}", _comparison(pipelines.of_chain, pipelines.of_chain, how)


def _comparison(one: Any, other: Any, how: Any) -> Callable[[], str]:
    def run() -> str:
        sides = [
            pipelines.whole(of, build(modulo=2, limit=3))
            for of, build in (("old", one), ("new", other))
        ]
        found: str = ss.verify.same(*sides, rows=how, domain={"x": range(2)}).said
        return found

    return run

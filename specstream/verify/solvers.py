"""Questions to the solvers, within one budget of work and time.

What is dear is left out at first: products of unknowns, divisions, and what floats compute become
functions of which only that equal arguments give equal results is known. What cannot be then cannot
be at all. Else z3 is asked the whole question, and then bitwuzla.
"""

# Neither solver carries types.
# mypy: allow-untyped-calls

from __future__ import annotations

import functools
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import bitwuzla
import z3

__all__ = ["Budget", "OutOfMemory", "solve", "solvers_within"]

# Of z3's own count of work, per unit of effort: about a second on a machine of 2025.
_WORK = 4_000_000
_PER_CHEAP = 4
_LITTLE = 0.2
_SECONDS_OF_BITWUZLA = 2.0
_SLOW = frozenset(
    (
        *(z3.Z3_OP_BSDIV, z3.Z3_OP_BUDIV, z3.Z3_OP_BSREM, z3.Z3_OP_BUREM, z3.Z3_OP_BSMOD),
        *(z3.Z3_OP_BSDIV_I, z3.Z3_OP_BUDIV_I, z3.Z3_OP_BSREM_I, z3.Z3_OP_BUREM_I),
        *(z3.Z3_OP_FPA_ADD, z3.Z3_OP_FPA_SUB, z3.Z3_OP_FPA_MUL, z3.Z3_OP_FPA_DIV),
        *(z3.Z3_OP_FPA_SQRT, z3.Z3_OP_FPA_ROUND_TO_INTEGRAL, z3.Z3_OP_FPA_TO_SBV),
        *(z3.Z3_OP_FPA_TO_FP, z3.Z3_OP_BMUL),
    )
)


@dataclass
class Budget:
    """How much may be done.

    Attributes:
        effort: for one question, in units of about a second.
        deadline: of all, by ``time.monotonic``.
        cut_short: whether the deadline, and not the effort, has ended a question.
    """

    effort: float
    deadline: float
    cut_short: bool = False

    @property
    def left(self) -> float:
        return self.deadline - time.monotonic()


class OutOfMemory(Exception):
    """The solvers may take no more."""

    def __init__(self) -> None:
        super().__init__("the solvers have no more memory: try a larger memory=, or fewer events=")


@contextmanager
def solvers_within(memory: int | None) -> Iterator[None]:
    """Limits what the solvers take meanwhile.

    Args:
        memory: megabytes; None: as many as they need.

    Raises:
        OutOfMemory: the terms of a question took more. A search that does is "unknown".
    """
    if memory is None:
        yield
        return
    z3.set_param("memory_max_size", memory)
    _memory.append(memory)
    try:
        yield
    except z3.Z3Exception as error:
        if not _is_of_memory(error):
            raise
        raise OutOfMemory from None
    finally:
        _memory.pop()
        z3.set_param("memory_max_size", 0)


_memory: list[int] = []


def _is_of_memory(error: Exception) -> bool:
    return "memory" in str(error)


def solve(
    conditions: list[Any], budget: Budget, effort: float | None = None, confirm: bool = False
) -> tuple[str, Any]:
    """Whether conditions can hold at once: "sat" and a model, "unsat", or "unknown".

    Of bitwuzla only an "unsat" is taken.

    Args:
        conditions: that are to hold.
        budget: of the whole search.
        effort: for this question; by default the budget's.
        confirm: "unsat" is only what both solvers find.
    """
    effort = budget.effort if effort is None else effort
    try:
        said, model, by_z3 = _answer(conditions, budget, effort)
    except z3.Z3Exception as error:
        if not _is_of_memory(error):
            raise
        return "unknown", None
    if said == "unsat" and confirm and not (by_z3 and _bitwuzla(conditions, budget, effort)):
        return "unknown", None
    return said, model


def _answer(conditions: list[Any], budget: Budget, effort: float) -> tuple[str, Any, bool]:
    """The answer, the model, and whether it is z3's."""
    if budget.left <= 0:
        budget.cut_short = True
        return "unknown", None, True
    goal = z3.Goal()
    goal.add(*conditions)
    simple = _tactic()(goal)[0]
    if simple.inconsistent():
        return "unsat", None, True
    whole = simple.as_expr()
    coarse, is_coarse = _without_slow(whole)
    if is_coarse:
        solver = _solver(coarse, budget, effort / _PER_CHEAP)
        if solver.check() == z3.unsat:
            return "unsat", None, True
    # What one of them answers at once the other may not answer at all: both get little, then more.
    for share in (_LITTLE, 1.0):
        solver = _solver(whole, budget, share * effort)
        found = solver.check()
        if found == z3.sat:
            return "sat", simple.convert_model(solver.model()), True
        if found == z3.unsat:
            return "unsat", None, True
        if _bitwuzla(conditions, budget, share * effort):
            return "unsat", None, False
    return "unknown", None, True


@functools.cache
def _tactic() -> Any:
    """What makes a question simple: what is equal is put in, sums get one form, and a choice whose
    condition is known is made."""
    sums = z3.With("simplify", som=True, pull_cheap_ite=True)
    contextual = z3.OrElse(z3.TryFor("ctx-simplify", 500), "skip")
    return z3.Then(sums, "propagate-values", "solve-eqs", contextual, "solve-eqs", sums)


def _solver(condition: Any, budget: Budget, effort: float) -> Any:
    solver = z3.Solver()
    solver.set("rlimit", max(1, int(effort * _WORK)))
    solver.set("timeout", max(1, int(min(budget.left, 20 * effort) * 1000)))
    solver.add(condition)
    return solver


def _without_slow(term: Any) -> tuple[Any, bool]:
    """A term whose slow operations are functions of which nothing else is known."""
    done: dict[int, Any] = {}
    functions: dict[tuple[Any, ...], Any] = {}
    waiting = [(term, False)]
    while waiting:
        one, has_children = waiting.pop()
        if one.get_id() in done:
            continue
        children = one.children()
        if not has_children:
            waiting.append((one, True))
            waiting += [(child, False) for child in children if child.get_id() not in done]
            continue
        new = [done[child.get_id()] for child in children]
        kind = one.decl().kind() if z3.is_app(one) else None
        is_product = kind == z3.Z3_OP_BMUL and any(map(z3.is_bv_value, children))
        if kind in _SLOW and not is_product and children:
            sorts = tuple(child.sort() for child in new)
            key = (kind, one.sort(), *sorts, tuple(one.params()))
            if key not in functions:
                functions[key] = z3.Function(f"slow!{len(functions)}", *sorts, one.sort())
            done[one.get_id()] = functions[key](*new)
        elif children and any(a is not b for a, b in zip(new, children, strict=True)):
            done[one.get_id()] = one.decl()(*new) if z3.is_app(one) else one
        else:
            done[one.get_id()] = one
    return done[term.get_id()], bool(functions)


def _bitwuzla(conditions: list[Any], budget: Budget, effort: float) -> bool:
    """Whether bitwuzla finds that conditions cannot hold at once."""
    left = min(budget.left, _SECONDS_OF_BITWUZLA * effort)
    if left <= 0:
        budget.cut_short = True
        return False
    solver = z3.Solver()
    # Simplified first: it takes no (and x) of one operand.
    solver.add(*(z3.simplify(one) for one in conditions))
    text = solver.to_smt2().replace("(check-sat)", "")
    options = bitwuzla.Options()
    options.set(bitwuzla.Option.TIME_LIMIT_PER, int(left * 1000))
    if _memory:
        options.set(bitwuzla.Option.MEMORY_LIMIT, _memory[-1])
    try:
        parser = bitwuzla.Parser(bitwuzla.TermManager(), options)
        parser.parse("(set-logic ALL)\n" + text, True, False)
        return bool(parser.bitwuzla().check_sat() == bitwuzla.Result.UNSAT)
    except Exception:  # whatever it does not read is not answered
        return False

"""The operator of the sharded tests: every order of the same events gives another hash."""

# Operators carry no types, as those of users do not.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import specstream as ss

FACTOR = 6364136223846793005


class TooHeavy(ValueError):
    pass


class Chain(ss.State):
    hash = ss.scalar(int)
    sums = ss.array(float, 7)


class Other(ss.State):
    hash = ss.scalar(int)
    sums = ss.array(float, 9)


def mixed(hash, x):
    return hash * FACTOR + x


def make(state: type[ss.State] = Chain, heaviest: int = 10**9) -> ss.Operator:
    @ss.operator(
        state=state,
        event={"x": int, "weight": float, "account": str},
        emits={"x": int, "hash": int, "sum": float, "account": str, "number": int},
        name="chain",
    )
    def chain(state, event, emit):
        # Every order of the same events gives another hash.
        if event.x > heaviest:
            raise TooHeavy(f"{event.x} is too heavy")
        state.hash = mixed(state.hash, event.x)
        at = event.x % 7
        state.sums[at] += event.weight * event.random(1)
        account = f"{event.account}"  # which Python computes before, in the executors as well
        emit(event.x, state.hash, state.sums[at], account, event.sequence)

    return chain


chain = make()

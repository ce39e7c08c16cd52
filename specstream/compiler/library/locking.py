"""Locks of the state in Numba's terms: fields of them, one of them, taking and giving back.

Only the *locked* variant takes them; the others check the index and do nothing. A lock's value is
its number among all locks of the state. The mutexes are C's (``locks.c``).
"""

from __future__ import annotations

import operator
from typing import Any

from llvmlite import ir
from numba.core import types
from numba.core.typing.templates import AbstractTemplate, infer_global, signature
from numba.extending import intrinsic, lower_builtin, models, register_model

from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.numba_types import RunType
from specstream.compiler.backend.scalar_kinds import scalar_kind
from specstream.compiler.language.typing_refusals import refuse
from specstream.declarations.state_layout import Field

__all__ = ["METHODS", "LocksType"]


class LocksType(types.Type):
    """A field of locks; its value is the pointer to the run."""

    def __init__(self, field: Field) -> None:
        self.first = field.offset
        self.count = field.size
        super().__init__(f"specstream.locks({self.first}, {self.count})")


class LockType(types.Type):
    """One lock; its value is its number."""

    def __init__(self) -> None:
        super().__init__("specstream.lock")


LOCK = LockType()
register_model(LocksType)(models.OpaqueModel)


@register_model(LockType)
class _LockModel(models.PrimitiveModel):
    def __init__(self, manager: object, lock: LockType) -> None:
        super().__init__(manager, lock, I64)


@infer_global(operator.getitem)
class _LockOfField(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        locks, index = args
        if not isinstance(locks, LocksType):
            return None
        index = types.unliteral(index)
        if scalar_kind(index) != "int64":
            raise refuse(f"a lock is indexed with {index}: write int(x)")
        return signature(LOCK, locks, index)


@lower_builtin(operator.getitem, LocksType, types.Any)
def _lock_of_field(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    locks = sig.args[0]
    negative = builder.icmp_signed("<", args[1], I64(0))
    at = builder.select(negative, builder.add(args[1], I64(locks.count)), args[1])
    Run(context, builder, args[0]).fault_if(
        builder.icmp_unsigned(">=", at, I64(locks.count)), IndexError
    )
    return builder.add(at, I64(locks.first))


@infer_global(len)
class _NumberOfLocks(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        (locks,) = args
        return signature(types.intp, locks) if isinstance(locks, LocksType) else None


@lower_builtin(len, LocksType)
def _number_of_locks(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    return I64(sig.args[0].count)


def _change(name: str, symbol: str, why: str) -> Any:
    def rule(typing_context: Any, run: types.Type, lock: types.Type) -> Any:
        assert isinstance(run, RunType)
        if lock != LOCK:
            raise refuse(
                f"{lock} is not a lock: declare locks = ss.locks(n), and write with state.locks[i]"
            )

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            if run.variant == "locked":
                current = Run(context, builder, args[0])
                done = current.call(symbol, ir.IntType(1), *args)
                current.leave_if(builder.not_(done))
            return context.get_dummy_value()

        return types.void(run, lock), code

    rule.__name__ = name
    rule.__doc__ = why
    return intrinsic(rule)


lock_acquire = _change("lock_acquire", "ss_lock", "Waits until nobody holds the lock; takes it.")
lock_release = _change("lock_release", "ss_unlock", "Gives the lock back.")

METHODS: dict[str, Any] = {"acquire": lock_acquire, "release": lock_release}
"""Methods of a lock."""

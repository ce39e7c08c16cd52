"""Where compiled code goes when it raises: out of its function, or to a handler within it.

A function returns the number of the exception's class
(:mod:`specstream.compiler.language.error_classes`) as its status. Where the instructions of a
statement inside of a ``try`` are written, there is a *landing* right behind them: the number is put
down, and the code goes on there, with a branch to the handler
(:mod:`specstream.compiler.backend.try_regions`). The status LEAVES passes every landing.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils
from numba.core.callconv import CPUCallConv
from numba.core.cpu import CPUContext

from specstream.compiler.language.error_classes import CLASSES, LEAVES, number_of

__all__ = [
    "STATUS",
    "TELLS",
    "Landing",
    "OperatorContext",
    "end_landing",
    "landed_status",
    "raise_if",
    "raise_known",
    "raise_status",
    "without_site",
]

STATUS = ir.IntType(32)  # of Numba's calling convention
TELLS = "__ss_tells_texts"
"""A global of the functions of an operator that emits the texts of caught exceptions."""

Value = Any
"""An LLVM value."""


class Landing:
    """Behind one statement inside of a ``try``; stays the function's until :func:`end_landing`."""

    def __init__(self, builder: Any) -> None:
        function = builder.function
        if not hasattr(function, "_specstream_status"):
            function._specstream_status = cgutils.alloca_once(builder, STATUS)
        self.status = function._specstream_status
        self.block = function.append_basic_block("landing")
        builder.store(STATUS(0), self.status)
        function._specstream_landing = self


def end_landing(builder: Any) -> None:
    """The statement's instructions are written; what follows stands at its landing."""
    landing = builder.function._specstream_landing
    builder.function._specstream_landing = None
    builder.branch(landing.block)
    builder.position_at_end(landing.block)


def _landing_of(builder: Any) -> Landing | None:
    return getattr(builder.function, "_specstream_landing", None)


def landed_status(builder: Any) -> Value:
    """The status with which a landing was reached; 0: the statement has come to its end."""
    return builder.load(builder.function._specstream_status)


def raise_status(builder: Any, status: Value) -> None:
    """Ends the block: the status, of an exception, goes to the handler or out of the function."""
    landing = _landing_of(builder)
    if landing is None:
        builder.ret(status)
        return
    builder.store(status, landing.status)
    builder.branch(landing.block)


def raise_known(builder: Any, status: Value) -> None:
    """The same with a status that may be LEAVES, or one of Numba's that is none of an exception."""
    if _landing_of(builder) is not None:
        leaves = builder.icmp_signed("<=", status, STATUS(LEAVES))
        with builder.if_then(leaves, likely=False):
            builder.ret(status)
    raise_status(builder, status)


def without_site(builder: Any, status: Value) -> Value:
    """The status to land or return with, cut down to the number of the exception's class.

    It says no site any more. A status that is none of an exception stays as it is.
    """
    says = builder.icmp_signed(">", status, STATUS(LEAVES))
    return builder.select(says, builder.and_(status, STATUS(CLASSES - 1)), status)


def raise_if(
    context: Any, builder: Any, condition: Value, error: type[Exception], site: int = 0
) -> None:
    """Goes there with a class's number if ``condition``, which is rare; ``site`` says its text."""
    after = builder.append_basic_block("sound")
    branch = builder.cbranch(condition, _fault_block(context, builder, error, site), after)
    branch.set_weights([1, 99])
    builder.position_at_end(after)


def _fault_block(context: Any, builder: Any, error: type[Exception], site: int) -> Any:
    # One per place to go to: a loop body of ten checks would otherwise hold ten copies.
    number = number_of(error)
    landing = None if number == LEAVES else _landing_of(builder)
    number += CLASSES * site
    owner = builder.function if landing is None else landing
    blocks: dict[int, Any] = vars(owner).setdefault("_specstream_faults", {})
    if number not in blocks:
        blocks[number] = builder.function.append_basic_block("fault")
        with builder.goto_block(blocks[number]):
            if landing is None:
                if not isinstance(context, OperatorContext):  # what Python may call, and @overload
                    context.call_conv.set_static_user_exc(builder, error)
                builder.ret(STATUS(number))
            else:
                raise_status(builder, STATUS(number))
    return blocks[number]


class _OperatorCallConv(CPUCallConv):
    """Numba's calling convention, whose status is the number of the exception's class."""

    def return_user_exc(
        self,
        builder: Any,
        exc: Any,
        exc_args: Any = None,
        loc: Any = None,
        func_name: Any = None,
    ) -> None:
        number = number_of(exc)
        if number == LEAVES:
            builder.ret(STATUS(LEAVES))
        else:
            raise_status(builder, STATUS(number))

    def return_status_propagate(self, builder: Any, status: Any) -> None:
        raise_known(builder, status.code)


class OperatorContext(CPUContext):
    """Numba's context while the code of an operator is written.

    Attributes:
        tells_texts: whether the operator emits the texts of exceptions that it catches.
    """

    tells_texts = False

    @property
    def call_conv(self) -> Any:
        return _OperatorCallConv(self)

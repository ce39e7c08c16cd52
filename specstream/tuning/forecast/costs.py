"""What the cores of the virtual machine take, in nanoseconds."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from specstream._native import ffi, lib
from specstream.declarations.options import number

if TYPE_CHECKING:
    from specstream._native import ss_transfer_p

__all__ = ["Costs", "measured_costs"]

# Lines that a core has asked for at once, at most, where it reads some anywhere.
AT_ONCE = 8
# Nanoseconds that any of it may take: a second.
MOST = 1e9


@dataclass(frozen=True)
class Costs:
    """As ``struct costs`` of ``stm_native/forecast/machine.h`` has them, in its order.

    By default those of a server whose cores share a cache.

    Attributes:
        access: to a line that the core has, with the instructions around it.
        transfer: a line that another core has written.
        bulk: the same, right behind another one that is on its way.
        shared: a line that nobody has written since the core last had it, or ever.
        store: to a line of others: it waits in the store buffer.
        atomic: a locked instruction, or a fence.
        pause: of a waiting loop.
        call: waking somebody, for who wakes.
        wake: until who is woken runs.
        sleep: going to sleep.

    Raises:
        ConfigurationError: one of them is no such number.

    >>> Costs(wake=-1.0)
    Traceback (most recent call last):
    specstream.errors.ConfigurationError: wake=-1.0; expected nanoseconds, from 0 to 1e+09
    """

    access: float = 0.5
    transfer: float = 60.0
    bulk: float = 10.0
    shared: float = 8.0
    store: float = 2.0
    atomic: float = 6.0
    pause: float = 14.0
    call: float = 2_000.0
    wake: float = 5_000.0
    sleep: float = 2_000.0

    def __post_init__(self) -> None:
        for name, cost in asdict(self).items():
            number(name, cost, 0.0, MOST, f"nanoseconds, from 0 to {MOST:g}")


def measured_costs() -> Costs:
    """With lines that take as long as between two cores here, where there are two."""
    found: ss_transfer_p = ffi.new("struct ss_transfer *")
    if not lib.ss_measure_transfer(found):
        return Costs()
    latency = float(found.latency)
    return replace(Costs(), transfer=latency, bulk=max(float(found.bulk), latency / AT_ONCE))

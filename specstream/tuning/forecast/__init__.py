"""What more cores would bring: the user's events, replayed on a simulated scheduler.

``recording`` runs the events on one thread and takes down how long each took and what it read and
wrote. ``costs`` measures what a transaction and a cache line cost on this machine. ``workload``
makes transactions of events. ``simulation`` is the scheduler of ``scheduler.c`` as discrete events,
for any number of threads; ``eager`` is what that protocol does differently, with ``accesses`` to
records. ``forecast`` puts them together and compares itself with real runs.

What it leaves out is listed in ``report``, and with every answer.
"""

from specstream.tuning.forecast.costs import Costs
from specstream.tuning.forecast.eager import simulate_eager
from specstream.tuning.forecast.simulation import Outcome, simulate
from specstream.tuning.forecast.workload import Transactions, Workload

__all__ = ["Costs", "Outcome", "Transactions", "Workload", "simulate", "simulate_eager"]

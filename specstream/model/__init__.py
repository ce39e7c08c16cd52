"""What more cores would bring: a model of the scheduler, fed with what the user's events do here.

``recording`` runs the events on one thread and takes down how long each took and what it read and
wrote. ``costs`` measures what a transaction and a cache line cost on this machine. ``workload``
makes transactions of events. ``simulation`` is the scheduler of ``scheduler.c`` as discrete events,
for any number of threads; ``eager`` is what that protocol does differently, with ``accesses`` to
records. ``prediction`` puts them together and compares the model with real runs.

What it leaves out is listed in ``report``, and with every answer.
"""

from specstream.model.costs import Costs
from specstream.model.eager import simulate_eager
from specstream.model.simulation import Outcome, simulate
from specstream.model.workload import Transactions, Workload

__all__ = ["Costs", "Outcome", "Transactions", "Workload", "simulate", "simulate_eager"]

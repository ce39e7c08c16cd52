"""What more cores would bring: a model of the scheduler, fed with what the user's events do here.

``recording`` runs the events on one thread and takes down how long each took and what it read and
wrote. ``costs`` measures what a transaction and a cache line cost on this machine. ``workload``
makes transactions of events. ``simulation`` is the scheduler of ``scheduler.c`` as discrete events,
for any number of threads. ``prediction`` puts them together and compares the model with real runs.

What it leaves out: that cores share caches, memory bandwidth, power and execution units, and that
sockets are farther apart than cores; that a run which read too early may do something else, and
take longer, than the one that counts; the order of stores inside a run in place, which the model
shows to others at its end; when within a run a word is read, which is taken to be spread evenly;
other processes. Most of it makes real machines
slower than the model.
"""

from specstream.model.costs import Costs
from specstream.model.simulation import Outcome, simulate
from specstream.model.workload import Transactions, Workload

__all__ = ["Costs", "Outcome", "Transactions", "Workload", "simulate"]

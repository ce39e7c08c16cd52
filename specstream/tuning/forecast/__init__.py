"""What more cores would bring: the user's events, replayed on a virtual machine of so many cores.

``recording`` runs the events on one thread and takes down how long each took and what it read and
wrote; ``trace`` is what they do, as the machine reads it. ``machine`` replays them: the runtime's
own C code, compiled for a virtual machine (``stm_native/forecast/``), schedules, validates, commits
and parks on cores with clocks of their own. ``costs`` says what lines and waking cost there, and
``held`` how long events that Python runs hold the lock of the interpreter.
``forecast`` puts them together and compares itself with real runs.

What it leaves out is listed in ``report``, and with every answer.
"""

from specstream.tuning.forecast.costs import Costs
from specstream.tuning.forecast.events import Access, Event
from specstream.tuning.forecast.machine import Outcome, replay
from specstream.tuning.forecast.trace import Trace

__all__ = ["Access", "Costs", "Event", "Outcome", "Trace", "replay"]

"""Windows over a stream: aggregates of its latest events, by key (Brito 2010, 2.1.1).

=========================== =====================================================================
:func:`by_time`             windows of a length, one every so often: hopping, sliding, tumbling
:func:`by_count`            the last so many events, every so many
:func:`by_session`          events with no longer gap between them
:func:`by_landmark`         from an event that begins it to one that ends it
:func:`by_column`           by times that do not come in order: rows early, on time and late
=========================== =====================================================================

Each makes an operator from plain functions: a record that says what is known of a window, and
``add(window, event)``, which takes one more event in.
"""

from specstream.windows.counted import by_count
from specstream.windows.landmark import by_landmark
from specstream.windows.session import by_session
from specstream.windows.timed import by_time
from specstream.windows.unordered import by_column

__all__ = ["by_column", "by_count", "by_landmark", "by_session", "by_time"]

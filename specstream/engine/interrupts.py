"""Exceptions that signal handlers raise in the middle of our own calls.

Python runs a signal handler between two steps of the main thread's code: where a function begins,
where a call has returned, where a loop goes round. Whatever it raises comes out there: after a lock
was taken and before anybody noted it, or at the first step of an ``__exit__`` written in Python. So

- what must be given back is given back by one call into C, in ``finally`` or by an ``__exit__`` of
  C;
- what belongs together changes by plain assignments with no call between them;
- what takes more than that is a *step that may be begun anew*: it goes by what it finds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from specstream.errors import Partial

__all__ = ["LatePartial", "insist"]

# Handlers raise now and then. What fails so often fails by itself.
_TRIES = 10


def insist(step: Callable[[], object]) -> None:
    """Takes a step that may be begun anew to its end, whatever signal handlers raise meanwhile.

    Raises:
        BaseException: the first that was raised; once the step is done, or has failed each time.
    """
    raised: BaseException | None = None
    for _ in range(_TRIES):
        try:
            step()
            break
        except BaseException as error:
            raised = raised or error
    if raised is not None:
        raise raised


class LatePartial(Partial):
    """A :class:`Partial` whose values are made when somebody asks for them, or told before.

    It exists before anything is done, so that no call stands between an exception and what it
    carries.
    """

    def __init__(self, make: Callable[[], Partial]) -> None:
        self.__dict__["_make"] = make

    def tell(self, output: Any, consumed: int) -> None:
        """The values, as they are known now."""
        self.__dict__.update(output=output, consumed=consumed, _make=None)

    def of(self, rows: Callable[[pa.Table], Any]) -> LatePartial:
        """The same with its output as a user gets it."""
        return LatePartial(lambda: Partial(rows(self.output), self.consumed))

    def __getattr__(self, name: str) -> Any:  # of those that are not there yet
        if name not in ("output", "consumed"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        made = self.__dict__["_make"]()
        self.tell(made.output, made.consumed)
        return self.__dict__[name]

    def __reduce__(self) -> Any:
        return Partial, (self.output, self.consumed)

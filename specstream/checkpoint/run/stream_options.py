"""What a stream of batches is to be run with, and whether that can be."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import PurePath
from typing import Any

from specstream.checkpoint.format.lease import SECONDS
from specstream.checkpoint.run.delivery import (
    Sink,
    To,
    check_apart,
    check_to,
    checked_sink,
    of_pipeline,
)
from specstream.checkpoint.run.early_changes import EarlyTo, check_early, checked_early_sink
from specstream.checkpoint.run.event_time import Amount, Delay
from specstream.columns.events import column
from specstream.declarations.deprecated import by_old_name
from specstream.declarations.options import (
    flag,
    function,
    instance,
    integer,
    number,
    options_check,
    refused,
    shown,
)
from specstream.definition.operator import Operator
from specstream.engine.engine import Engine
from specstream.engine.snapshot import Migrate
from specstream.engine.sources import Late, Name, checked_late, checked_sources
from specstream.errors import ConfigurationError

__all__ = ["StreamOptions", "listing"]


@dataclass(frozen=True, kw_only=True)
class StreamOptions:
    """The options of ``foreach_batch``, which says what each of them means.

    They are listed here, with types and defaults, and nowhere else: its signature is this one.

    Raises:
        ConfigurationError: one of them has a value that it cannot have; names it.
    """

    to: To
    order_by: str | None = None
    source: str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    keep_batches: int = 0
    rejected_rows_to: Sink | None = None
    errors_to: Sink | None = None
    errors_limit: int | None = None
    migrate: Migrate | None = None
    rename: Mapping[str, str] | None = None
    prefetch: bool = False
    watermark: Amount | None = None
    idle_timeout: Amount | None = None
    sources: Iterable[Name] = ()
    late: Late | None = None
    late_to: Sink | None = None
    early_to: EarlyTo | None = None
    lease: float = SECONDS

    def __post_init__(self) -> None:
        column("order_by", self.order_by)
        column("source", self.source)
        for option, check in (("to", checked_sink), ("early_to", checked_early_sink)):
            given = getattr(self, option)
            if isinstance(given, Mapping):
                for name, sink in given.items():
                    check(f"{option}[{name!r}]", sink)
                object.__setattr__(self, option, dict(given))
            elif option == "to" or given is not None:
                check(option, given)
        for option in ("rejected_rows_to", "errors_to", "late_to"):
            if getattr(self, option) is not None:
                checked_sink(option, getattr(self, option))
        if self.migrate is not None:
            function("migrate", self.migrate, "a function from the old fields' values to new ones")
        if self.rename is not None:
            object.__setattr__(self, "rename", _checked_rename(self.rename))
        if self.watermark is not None:
            Delay("watermark", self.watermark)
        if self.idle_timeout is not None:
            Delay("idle_timeout", self.idle_timeout)
        checked = {
            "keep_batches": integer(
                "keep_batches",
                self.keep_batches,
                0,
                other=", so many batches are kept; 0 keeps those of a batch that fails",
            ),
            "prefetch": flag("prefetch", self.prefetch),
            "lease": number("lease", self.lease, 0.1, 3600, "seconds, from 0.1 to 3600"),
            "errors_limit": None
            if self.errors_limit is None
            else integer(
                "errors_limit",
                self.errors_limit,
                0,
                other=", so many events of a batch may fail, or None for all of them",
            ),
            "sources": checked_sources(self.sources),
            "late": None if self.late is None else checked_late(self.late),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def check(self, engine: Engine) -> None:
        """Whether they go together, and with the engine; the rest is told by who uses it.

        Raises:
            ConfigurationError: they do not.
        """
        if self.migrate is not None and self.checkpoint is None:
            raise ConfigurationError(
                "migrate= converts the fields of a checkpoint: give checkpoint= as well"
            )
        self._check_keep()
        self._check_rename(engine)
        self._check_rejected(engine)
        self._check_errors(engine)
        if self.prefetch and self.checkpoint is None:
            raise ConfigurationError(
                "prefetch=True lets Spark go on before a batch has run, and keeps its rows beside "
                "the checkpoint until then: give checkpoint= as well"
            )
        self._check_event_time(engine.operator)
        if self.early_to is not None:
            check_early(engine, self.early_to, watermark=self.watermark, checkpoint=self.checkpoint)
        if engine.operator.event.phases and self.watermark is None:
            time = "" if self.order_by else "order_by=, the column of the event time, and "
            raise ConfigurationError(
                f"pipeline {engine.name!r} has phases by time, and a batch could cut a timestamp "
                f"in two: give {time}watermark= (specstream run: --watermark)"
            )
        check_to(engine.operator, self.to)
        # What is none of these is refused when it is opened.
        named = isinstance(self.checkpoint, str | PurePath)
        own = _Checkpoint(str(self.checkpoint)) if named else None
        check_apart(
            {
                "checkpoint=": own,
                **_by_option("to", self.to),
                "late_to=": self.late_to,
                "rejected_rows_to=": self.rejected_rows_to,
                "errors_to=": self.errors_to,
                **_by_option("early_to", self.early_to),
            }
        )

    def of(self, operator: Operator) -> StreamOptions:
        """As they are meant for an operator.

        Of a pipeline with several sources the events' own column names their sources, and of one
        with one sink that may be given by its name.
        """
        to, early_to = self.to, self.early_to
        if len(operator.sinks) == 1:
            if isinstance(to, Mapping):
                (to,) = to.values()
            if isinstance(early_to, Mapping):
                (early_to,) = early_to.values()
        source = operator.source_column(self.source)
        return replace(self, source=source, to=to, early_to=early_to)

    def _check_keep(self) -> None:
        if self.keep_batches and self.checkpoint is None:
            raise ConfigurationError(
                f"keep_batches={self.keep_batches} keeps rows beside a checkpoint: give "
                "checkpoint= as well"
            )

    def _check_rename(self, engine: Engine) -> None:
        if not self.rename:
            return
        if self.checkpoint is None:
            raise ConfigurationError(
                "rename= says how the operator was called when a checkpoint was written: give "
                "checkpoint= as well"
            )
        for old, new in self.rename.items():
            if new != engine.name:
                give = f"give rename={{{old!r}: {engine.name!r}}}"
                if old == engine.name:
                    give = "give the names the other way round, the former one first"
                raise ConfigurationError(
                    f"rename={{{old!r}: {new!r}}}: the operator is called {engine.name!r} now: "
                    f"{give}"
                )

    def _check_rejected(self, engine: Engine) -> None:
        if self.rejected_rows_to is None:
            return
        if engine.durable.rejected.policy != "side":
            raise ConfigurationError(
                f"rejected_rows_to= gets the rows that the engine of {engine.name!r} leaves out, "
                'and it leaves out none: make it with rejected_rows="side"'
            )

    def _check_errors(self, engine: Engine) -> None:
        for option, given in (("errors_to", self.errors_to), ("errors_limit", self.errors_limit)):
            if given is not None and not engine.durable.failed.sets_aside:
                raise ConfigurationError(
                    f"{option}= is about events that the engine of {engine.name!r} sets aside when "
                    'they fail, and it sets aside none: make it with errors="side"'
                )

    def _check_event_time(self, operator: Operator) -> None:
        nobody = [name for name in self.sources if name != 0]
        if self.watermark is not None:
            if nobody and self.source is None and not operator.sources:
                raise ConfigurationError(
                    f"sources={shown(list(self.sources))} without source=: all rows are of source "
                    f"0 then, and would wait for {nobody[0]!r} for ever: give source=, the column "
                    "that names each row's source, or leave sources= out"
                )
            if self.order_by is None:
                raise ConfigurationError(
                    f"watermark={self.watermark!r} without order_by: give order_by=, the column of "
                    "the event time, as well"
                )
        elif (
            self.idle_timeout is not None
            or self.sources
            or self.late is not None
            or self.late_to is not None
        ):
            raise ConfigurationError(
                "idle_timeout, sources, late and late_to are about events that wait for a "
                "watermark: give watermark= as well, or leave them out"
            )


def _checked_rename(given: object) -> dict[str, str]:
    """A copy of what the option gives.

    Raises:
        ConfigurationError: it is no dict of names.
    """
    expected = 'the operator\'s name by its former one: rename={"old": "new"}'
    names = dict(instance("rename", given, Mapping, expected))
    if not all(isinstance(name, str) for pair in names.items() for name in pair):
        raise refused("rename", given, expected)
    return names


@dataclass(frozen=True)
class _Checkpoint:
    """A checkpoint's directory, to be compared with those of sinks."""

    path: str

    @property
    def place(self) -> str:
        return self.path if "://" in self.path else os.path.realpath(self.path)


def _by_option(option: str, given: object) -> dict[str, object]:
    """What an option gives, by what a message calls it."""
    if isinstance(given, Mapping):
        return {of_pipeline(name, option): sink for name, sink in given.items()}
    return {f"{option}=": given}


def listing(
    function: Callable[..., Any],
    options: Callable[..., Any],
    former: Mapping[str, str] | None = None,
) -> Callable[..., Any]:
    """A function that takes, one by one, the options of what lists them.

    ``help()`` and the errors of a wrong call see its own first arguments and all the options; what
    is called has these as keywords.

    Args:
        function: what is called.
        options: the class, or whatever has them as its own.
        former: names that options had, with those that they have.

    >>> def feed(engine, **options):
    ...     return sorted(options)
    >>> listing(feed, StreamOptions)("engine", to=print, order_by="time")
    ['order_by', 'to']
    """
    signature = inspect.signature(function)
    own = [one for one in signature.parameters.values() if one.kind is not one.VAR_KEYWORD]
    taken = inspect.signature(options).parameters.values()
    listed = signature.replace(parameters=[*own, *taken])
    check = options_check(function.__name__, listed)

    @functools.wraps(function)
    def call(*args: Any, **given: Any) -> Any:
        for old, new in (former or {}).items():
            if old in given:
                before, now = (f"{function.__name__}({name}=)" for name in (old, new))
                given[new] = by_old_name(before, now, given.pop(old), new in given)
        check(args, given)
        try:
            bound = listed.bind(*args, **given)
        except TypeError as error:
            raise TypeError(f"{function.__name__}() {error}") from None
        return function(**bound.arguments)

    call.__signature__ = listed  # type: ignore[attr-defined]
    return call

"""A stream: what a source or a vertex sends, and the verbs that it offers."""

from __future__ import annotations

import datetime
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from specstream import verbs
from specstream.declarations.options import integer, refuses_unknown, shown
from specstream.declarations.schema import Schema
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError, DeclarationError
from specstream.verbs.writing import Keys, of_each_key
from specstream.verbs.zipping import Zipped

__all__ = ["Stream", "ZippedStreams"]

_LIMIT = 2**24


@dataclass(frozen=True, eq=False)
class Stream:
    """What a source or a vertex sends: the rows of one phase after the other.

    Its methods are verbs: each adds a vertex, an operator of :mod:`specstream.verbs`, and gives the
    stream of what that sends. The vertex is called after the stream and the verb, ``ticks_every``,
    and where it has such a one already ``ticks_every_2``; ``name=`` calls it otherwise, which keeps
    its state in checkpoints when the graph changes.

    Attributes:
        pipeline: name of the pipeline that it belongs to.
        name: of the source or vertex.
        columns: of its rows.
        key: the columns of the key, behind :meth:`by`: a verb has a state for each key.
        to_all: of the next verb, as given to :meth:`by`; None: there is none.
        forget: likewise.
        limit: the most keys.

    >>> import specstream as ss
    >>> p = ss.Pipeline("figure_1")
    >>> x = p.source("x", {"value": float})
    >>> p.sink("out", x.zip(x.every(4)).map(lambda a, b: a.value + b.value, sum=float))
    >>> with ss.Engine(p, threads=2) as engine:
    ...     engine.process({"value": [0.0, 1.0, 2.0, 3.0, 4.0]})["sum"].to_pylist()
    [0.0, 5.0]
    """

    pipeline: str
    name: str
    columns: Schema
    graph: Any = field(repr=False)
    owner: Any = field(default=None, repr=False)
    key: tuple[str, ...] = ()
    to_all: Callable[..., Any] | None = field(default=None, repr=False)
    forget: Callable[..., Any] | None = field(default=None, repr=False)
    limit: int = field(default=_LIMIT, repr=False)

    # ---- rows one by one ----

    @refuses_unknown
    def map(
        self,
        f: Callable[..., Any],
        /,
        *,
        emits: Any = None,
        name: str | None = None,
        **columns: Any,
    ) -> Stream:
        """A row for each one: what a function gives of it; see :func:`specstream.verbs.map`.

        >>> import specstream as ss
        >>> p = ss.Pipeline("squares")
        >>> x = p.source("x", {"value": float})
        >>> p.sink("out", x.map(lambda e: e.value**2, square=float))
        >>> p.run_sequential({"value": [3.0]}).output.to_pylist()
        [{'square': 9.0}]
        """
        return self._verb("map", name, f, emits=emits, **columns)

    @refuses_unknown
    def with_columns(
        self,
        f: Callable[..., Any],
        /,
        *,
        emits: Any = None,
        name: str | None = None,
        **columns: Any,
    ) -> Stream:
        """Each row with more columns; see :func:`specstream.verbs.with_columns`."""
        return self._verb("with_columns", name, f, emits=emits, **columns)

    @refuses_unknown
    def filter(
        self, kept: Callable[..., Any] | Stream, /, *, limit: int = _LIMIT, name: str | None = None
    ) -> Stream:
        """The rows of which a function says True; see :func:`specstream.verbs.filter`. Or those for
        which a stream of truth values has a true one, row by row: the first for the first row, and
        so on, whenever it comes.

        Args:
            kept: the function, or the stream.
            limit: of a stream, the most rows that wait for the other.
            name: of the vertex.

        >>> import specstream as ss
        >>> p = ss.Pipeline("large")
        >>> x = p.source("x", {"value": int})
        >>> p.sink("out", x.filter(x.map(lambda e: e.value > 1, large=bool)))
        >>> p.run_sequential({"value": [1, 2]}).output.to_pylist()
        [{'value': 2}]
        """
        if not isinstance(kept, Stream):
            return self._verb("filter", name, kept)
        zipped = self.zip(kept, limit=limit)
        made = zipped.of.filter_by(name=self._called("filter", name))
        return zipped.added(made)

    # ---- running values ----

    @refuses_unknown
    def accumulate(
        self,
        f: Callable[..., Any],
        start: Any,
        /,
        *,
        emits: Any = None,
        name: str | None = None,
        **columns: Any,
    ) -> Stream:
        """A running value; see :func:`specstream.verbs.accumulate`.

        >>> import specstream as ss
        >>> p = ss.Pipeline("sums")
        >>> x = p.source("x", {"value": float})
        >>> p.sink("out", x.accumulate(lambda sum, e: sum + e.value, 0.0, sum=float))
        >>> p.run_sequential({"value": [1.0, 2.0]}).output["sum"].to_pylist()
        [1.0, 3.0]
        """
        return self._verb("accumulate", name, f, start, emits=emits, **columns)

    @refuses_unknown
    def window(
        self,
        n: int,
        f: Callable[..., Any],
        /,
        *,
        step: int = 1,
        record: Any = None,
        add: Callable[..., Any] | None = None,
        merge: Callable[..., Any] | None = None,
        remove: Callable[..., Any] | None = None,
        emits: Any = None,
        name: str | None = None,
        **columns: Any,
    ) -> Stream:
        """What a function gives of the last n rows; see :func:`specstream.verbs.window`."""
        options = {"record": record, "add": add, "merge": merge, "remove": remove}
        return self._verb("window", name, n, f, step=step, emits=emits, **options, **columns)

    # ---- which rows ----

    @refuses_unknown
    def skip(self, n: int, /, *, name: str | None = None) -> Stream:
        """All rows but the first n; see :func:`specstream.verbs.skip`."""
        return self._verb("skip", name, n)

    @refuses_unknown
    def take(self, n: int, /, *, name: str | None = None) -> Stream:
        """The first n rows; see :func:`specstream.verbs.take`."""
        return self._verb("take", name, n)

    @refuses_unknown
    def every(
        self,
        n: int | str | datetime.timedelta,
        /,
        *,
        last: bool = False,
        unit: str = "us",
        name: str | None = None,
    ) -> Stream:
        """Every n-th row, or one so often; see :func:`specstream.verbs.every`."""
        return self._verb("every", name, n, last=last, unit=unit)

    @refuses_unknown
    def freeze(self, *, name: str | None = None) -> Stream:
        """The first row again and again; see :func:`specstream.verbs.freeze`."""
        return self._verb("freeze", name)

    @refuses_unknown
    def last(self, *, name: str | None = None) -> Stream:
        """The last row, at the end; see :func:`specstream.verbs.last`."""
        if self.forget is not None:
            raise ConfigurationError(
                "last: forget= is about rows, of which last gives none before the end; expected "
                "by(...) without it"
            )
        return self._verb("last", name)

    @refuses_unknown
    def start_with(self, row: Any, /, *, times: int = 1, name: str | None = None) -> Stream:
        """A row before the first one; see :func:`specstream.verbs.start_with`."""
        return self._verb("start_with", name, row, times=times)

    # ---- several streams ----

    @refuses_unknown
    def zip(self, *others: Stream, limit: int = _LIMIT) -> ZippedStreams:
        """Streams side by side, the first row of each, the second of each, and so on.

        Args:
            others: one or more streams of the same pipeline.
            limit: the most rows of one that wait for the others; one more is an error that names
                the vertex and the stream.

        Returns:
            What has ``map``, ``filter`` and ``rows``; see :func:`specstream.verbs.zip`.
        """
        streams = (self, *self._checked("zip", others))
        for one in streams:
            for name in self.key:
                if name not in one.columns.names:
                    self.graph.refuse(
                        f"zip of {self.name!r} by its key {', '.join(self.key)} gets "
                        f"{one.name!r}, which has no column {name!r}",
                        "write by() behind the first stream to zip all rows, whatever their keys",
                    )
        of = verbs.zip(*(dict(one.columns) for one in streams), key=self.key, limit=limit)
        called = {one: stream.name for one, stream in zip_of(of.inputs, streams)}
        return ZippedStreams(streams, of.named(**called))

    @refuses_unknown
    def merge(self, *others: Stream, name: str | None = None) -> Stream:
        """The rows of several streams of the same columns as one; see
        :func:`specstream.verbs.merge`."""
        streams = (self, *self._checked("merge", others))
        columns: dict[str, Any] = {}
        for one in streams:
            if list(one.columns.names) != list(self.columns.names):
                raise DeclarationError(
                    f"pipeline {self.pipeline!r}: merge gets {self.name!r} with the columns "
                    f"{', '.join(self.columns.names)}, and {one.name!r} with "
                    f"{', '.join(one.columns.names)}; expected the same, in the same order: map "
                    "one of them"
                )
            for column, of in one.columns:
                known = columns.setdefault(column, of)
                columns[column] = replace(known, nullable=known.nullable or of.nullable)
        made = verbs.merge(len(streams), event=columns, name=self._called("merge", name))
        sent: Stream = self.owner.add(made, name=made.name, **dict(zip_of(made.inputs, streams)))
        is_keyed = all(one.key == self.key for one in streams)
        return replace(sent, key=self.key if is_keyed else ())

    # ---- keys ----

    @refuses_unknown
    def by(
        self,
        *key: str,
        to_all: Callable[..., Any] | None = None,
        forget: Callable[..., Any] | None = None,
        limit: int = _LIMIT,
    ) -> Stream:
        """The same stream, of which the verbs behind it keep a state for each key.

        Their rows have the key in front. A row whose key is null is dropped.

        Args:
            key: names of the columns of the key; none: one state for all rows again.
            to_all: of the next verb, whether a row goes to every key there is; see
                :func:`specstream.verbs.keyed`.
            forget: of the next verb, whether the key of a row that it sends is gone behind it.
            limit: the most keys of each verb; one more is an error that names the vertex.

        >>> import specstream as ss
        >>> p = ss.Pipeline("sums")
        >>> paid = p.source("paid", {"user": str, "amount": int})
        >>> p.sink("out", paid.by("user").accumulate(lambda s, e: s + e.amount, 0, sum=int))
        >>> p.run_sequential({"user": ["a", "b", "a"], "amount": [1, 2, 3]}).output.to_pylist()
        [{'user': 'a', 'sum': 1}, {'user': 'b', 'sum': 2}, {'user': 'a', 'sum': 4}]
        """
        keys = Keys.of("by", dict(self.columns), key, to_all, forget)
        most = integer("by: limit", limit, 1, 2**31)
        return replace(self, key=keys.columns, to_all=to_all, forget=forget, limit=most)

    @refuses_unknown
    def keyed(
        self,
        record: Any,
        step: Callable[..., Any],
        /,
        *,
        emits: Any = None,
        name: str | None = None,
        **columns: Any,
    ) -> Stream:
        """A record for each key, and a function of it and a row; see
        :func:`specstream.verbs.keyed`."""
        return self._verb("keyed", name, record, step, emits=emits, **columns)

    @refuses_unknown
    def across(
        self,
        record: Any,
        add: Callable[..., Any],
        remove: Callable[..., Any],
        result: Callable[..., Any],
        /,
        *,
        leave: Callable[..., Any] | None = None,
        emits: Any = None,
        name: str | None = None,
        **columns: Any,
    ) -> Stream:
        """What the latest rows of all keys come to; see :func:`specstream.verbs.across`."""
        if not self.key:
            raise ConfigurationError(
                f"across: the rows of {self.name!r} have no key; expected by(...) before it, like "
                'stream.by("item").across(...)'
            )
        alone = replace(self, to_all=None, forget=None)
        given = {"emits": emits, "leave": leave, **columns}
        return replace(alone._verb("across", name, record, add, remove, result, **given), key=())

    # ---- other operators ----

    @refuses_unknown
    def add(self, operator: Operator, /, *, name: str | None = None) -> Stream:
        """Another operator with ``event=`` as a vertex; see :meth:`specstream.Pipeline.add`.

        Behind :meth:`by` the operator is a verb, such as :func:`specstream.verbs.machine`, which
        has a state for each key then.
        """
        if not isinstance(operator, Operator):
            self.graph.refuse(
                f"add takes an operator, and gets {shown(operator)}",
                "expected what @ss.operator(...) or ss.verbs has made",
            )
        if self.key:
            operator = of_each_key(operator, self.key, self.to_all, self.forget, self.limit)
        made = self.owner.add(operator, self, name=self._called(operator.name, name))
        return self._with_key(made)

    def sink(self, name: str, /) -> None:
        """Where its rows leave; see :meth:`specstream.Pipeline.sink`."""
        self.owner.sink(name, self)

    # ---- names ----

    def _verb(self, verb: str, name: str | None, /, *args: Any, **options: Any) -> Stream:
        """The stream of a new vertex."""
        called = self._called(verb, name)
        for option in ("event", "key", "to_all", "forget", "limit"):
            if option in options:
                raise ConfigurationError(
                    f"{verb}: {option}= is no option of a stream's verb, and cannot be a column by "
                    f"this name; expected by(...) for keys, and emits={{{option!r}: ...}} for a "
                    "column"
                )
        if self.key:
            options["key"] = self.key
            if verb not in ("map", "with_columns", "filter"):
                options["limit"] = self.limit
            options |= {
                one: of
                for one, of in (("to_all", self.to_all), ("forget", self.forget))
                if of is not None
            }
        made = getattr(verbs, verb)(*args, event=dict(self.columns), name=called, **options)
        return self._with_key(self.owner.add(made, self, name=called))

    def _with_key(self, made: Stream) -> Stream:
        has_key = all(one in made.columns.names for one in self.key)
        return replace(made, key=self.key if has_key else (), limit=self.limit)

    def _called(self, verb: str, name: str | None) -> str:
        """The name of a vertex: as it is given, or after the stream and the verb."""
        return self.free_name(verb) if name is None else name

    def free_name(self, verb: str) -> str:
        """What the vertex of a verb is called that reads this stream."""
        names, called, count = self.graph.names, f"{self.name}_{verb}", 1
        while called in names:
            count += 1
            called = f"{self.name}_{verb}_{count}"
        return called

    def _checked(self, verb: str, others: Sequence[Any]) -> Sequence[Stream]:
        if not others:
            self.graph.refuse(
                f"{verb} of {self.name!r} gets no other stream", "expected one or more"
            )
        for one in others:
            if not isinstance(one, Stream):
                self.graph.refuse(
                    f"{verb} of {self.name!r} gets {shown(one)}",
                    "expected streams, as source() and the verbs return them",
                )
            if one.graph is not self.graph:
                self.graph.refuse(
                    f"{verb} of {self.name!r} gets the stream {one.name!r} of pipeline "
                    f"{one.pipeline!r}",
                    "streams belong to one pipeline: declare it here as well",
                )
        return others


def zip_of(inputs: Mapping[str, Any], streams: Sequence[Stream]) -> list[tuple[str, Stream]]:
    """The inputs of an operator and what they read."""
    return list(zip(inputs, streams, strict=True))


@dataclass(frozen=True, eq=False)
class ZippedStreams:
    """Streams side by side; made by :meth:`Stream.zip`.

    Attributes:
        streams: in their order.
        of: what makes the operator.
    """

    streams: tuple[Stream, ...]
    of: Zipped

    @refuses_unknown
    def map(
        self,
        f: Callable[..., Any],
        /,
        *,
        emits: Any = None,
        name: str | None = None,
        **columns: Any,
    ) -> Stream:
        """A row for each one: what a function gives of a row of each stream.

        Args:
            f: a function with one argument for each stream, whose columns are its attributes; it
                gives the value of the only column, or a tuple of all.
            emits: the columns of the rows, in place of ``columns``.
            name: of the vertex.
            columns: of the rows, by name.
        """
        called = self._called("zip_map", name)
        return self.added(self.of.map(f, emits=emits, name=called, **columns))

    @refuses_unknown
    def filter(self, f: Callable[..., Any], /, *, name: str | None = None) -> Stream:
        """The rows of the first stream for which a function of a row of each says True.

        Args:
            f: a function with one argument for each stream that gives a bool.
            name: of the vertex.
        """
        return self.added(self.of.filter(f, name=self._called("zip_filter", name)))

    @refuses_unknown
    def rows(self, *, suffix: str | Sequence[str] | None = None, name: str | None = None) -> Stream:
        """A row for each one, with the columns of all.

        Args:
            suffix: of columns that several streams have: a text for each stream, or, of two, one
                for those of the second.
            name: of the vertex.
        """
        return self.added(self.of.rows(suffix=suffix, name=self._called("zip_rows", name)))

    def added(self, made: Operator) -> Stream:
        """The stream of a vertex that reads the streams."""
        first = self.streams[0]
        inputs = dict(zip_of(made.inputs, self.streams))
        return first._with_key(first.owner.add(made, name=made.name, **inputs))

    def _called(self, verb: str, name: str | None) -> str:
        return self.streams[0]._called(verb, name)

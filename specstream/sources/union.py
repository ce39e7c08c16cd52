"""Several sources as the one stream of events that a pipeline with several sources reads."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from specstream.compiler.phases.plan import SOURCE
from specstream.declarations.options import instance, refused, refuses_unknown
from specstream.errors import ConfigurationError
from specstream.pipelines.pipeline import Pipeline
from specstream.sources.source import Position, Rows, Source, Wanted

__all__ = ["UnionSource", "union"]

# Between two rounds in which none of them has a row.
_NAP = 0.0005
_EXAMPLE = 'sources by name: ss.sources.union({"ticks": source, "news": other})'


class UnionSource(Source):
    """Sources by the names that a pipeline has for them; see :func:`union`."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        given = dict(instance("sources", sources, Mapping, _EXAMPLE))
        if not given or not all(isinstance(one, Source) for one in given.values()):
            raise refused("sources", sources, _EXAMPLE)
        if len(set(map(id, given.values()))) < len(given):
            raise ConfigurationError(
                f"sources: two of {', '.join(given)} are the same source: give each its own"
            )
        self._sources = given
        self.name = "; ".join(f"{name}: {source.name}" for name, source in given.items())
        self.can_replay = all(source.can_replay for source in given.values())

    def parts(self, wanted: Wanted) -> dict[str, tuple[Source, Wanted]]:
        """Its sources by their names, each with what is wanted of it.

        Raises:
            ConfigurationError: they are not the sources of the pipeline.
        """
        pipeline = wanted.operator
        names = pipeline.sources
        if not isinstance(pipeline, Pipeline) or set(names) != set(self._sources):
            raise ConfigurationError(
                f"{wanted.what} has the sources {', '.join(names) or 'none'}, and the union those "
                f"of {', '.join(self._sources)}: give one for each, by its name"
            )
        beside = {of: one for of, one in wanted.beside.items() if one != SOURCE}
        return {
            name: (
                source,
                replace(
                    wanted,
                    what=f"{wanted.what}, source {name!r}",
                    columns=dict(pipeline.plan.sources[name].columns),
                    beside=beside,
                ),
            )
            for name, source in self._sources.items()
        }

    def open(self, wanted: Wanted, position: Position | None) -> None:
        parts = self.parts(wanted)
        self._wanted = wanted
        source = wanted.beside.get("source")
        self._beside = (wanted.beside.get("order_by"), None if source == SOURCE else source)
        # A union of one source has one position, as one of several has.
        self._position = dict.fromkeys(self._sources) | (position or {})
        self._open = dict(self._sources)
        self._held: dict[str, Rows] = {}  # what has come, and did not go with what was before it
        for name, (part, own) in parts.items():
            part.open(own, self._position[name])

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        came = {name: [rows] for name, rows in self._held.items()}
        count = sum(parts[0].table.num_rows for parts in came.values())
        self._held = {}
        until = time.monotonic() + (wait if came else idle)
        while self._open.keys() - self._held.keys() and count < rows:
            before = count
            for name, source in list(self._open.items()):
                if name in self._held:
                    continue
                found = source.read(max(rows - count, 1), 0, 0)
                if found is None:
                    del self._open[name]
                elif found.table.num_rows:
                    if not came:
                        until = time.monotonic() + wait
                    parts = came.setdefault(name, [])
                    if parts and found.table.schema != parts[0].table.schema:
                        # To be joined it would be cast; it is a batch's first by itself.
                        self._held[name] = found
                        continue
                    parts.append(found)
                    count += found.table.num_rows
            if time.monotonic() >= until:
                break
            if count == before:
                time.sleep(_NAP)  # there is nothing that all of them would wake
        if not came:
            return Rows(pa.table({})) if self._open else None
        self._position = self._position | {name: parts[-1].position for name, parts in came.items()}
        tables = {
            name: pa.concat_tables([part.table for part in parts]) for name, parts in came.items()
        }
        table = self._wanted.operator.events_table(tables, self._wanted.what, self._beside)
        place = "; ".join(f"{name}: {part.place}" for name, parts in came.items() for part in parts)
        return Rows(table, self._position, place)

    def commit(self, position: Position) -> None:
        for name, source in self._sources.items():
            if position[name] is not None:
                source.commit(position[name])

    def stop(self) -> None:
        for source in self._sources.values():
            source.stop()

    def close(self) -> None:
        for source in self._sources.values():
            source.close()


@refuses_unknown
def union(sources: Mapping[str, Source]) -> UnionSource:
    """Several sources as one, for a pipeline with several.

    A batch has what has come from each of them. Events are put in order within a batch, and with
    ``watermark`` across batches: give it where the order between sources matters, and ``sources``
    for those that the stream is to wait for.

    Args:
        sources: by the names of the pipeline's sources; each of them has the column of
            ``order_by``.

    Raises:
        ConfigurationError: they are no sources by name.

    ::

        events = ss.sources.union({
            "ticks": ss.sources.kafka("broker:9092", "ticks"),
            "news": ss.sources.nats("nats://127.0.0.1:4222", "NEWS"),
        })
        with ss.Engine(pipeline) as engine:
            ss.sources.run(engine, events, order_by="time", watermark="1 second",
                           sources=["ticks", "news"], to={"signals": sink}, checkpoint=path)
    """
    return UnionSource(sources)

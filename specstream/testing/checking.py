"""One operator on all settings: is each answer the sequential one, bit for bit?"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from specstream.checkpoint.inspect.difference import first_difference, first_difference_of_states
from specstream.columns.events import KEY_COLUMNS
from specstream.columns.failed_events import check_names
from specstream.declarations.options import flag, instance, integer, refuses_unknown
from specstream.declarations.state_view import StateView
from specstream.definition.operator import Operator, SequentialRun
from specstream.early import latest
from specstream.engine.engine import Engine
from specstream.engine.options import no_early_results
from specstream.errors import ConfigurationError, DeclarationError
from specstream.testing.arrival import arrivals, ranks

__all__ = ["Setting", "check", "settings"]

# What goes by the number of an event, which is that of its arrival.
_OF_ARRIVAL = ("sequence", "random", "random_bits", "normal", "integer", "choice")
_TIME = "__specstream_time"


# Options that a check gives all engines itself.
_OF_CHECK = ("seed", "initial", "keys", "errors")


@refuses_unknown
@dataclass(frozen=True)
class Setting:
    """One way to run an operator.

    Attributes:
        options: of :class:`specstream.Engine`.
        batches: pieces that the table is cut into, one ``process`` for each, at most 2**16; 0: the
            events are submitted out of order.

    Raises:
        ConfigurationError: an option is one that :func:`check` gives all engines, or ``batches`` is
            no number of pieces.
    """

    options: Mapping[str, Any] = field(default_factory=dict)
    batches: int = 1

    def __post_init__(self) -> None:
        instance("options", self.options, Mapping, "a dict of options of ss.Engine")
        integer("batches", self.batches, 0, 2**16)
        for name in _OF_CHECK:
            if name in self.options:
                raise ConfigurationError(
                    f"Setting: the option {name} is the same for all engines of a check, and for "
                    f"the sequential run: give it to check() instead, or leave it out"
                )

    def __str__(self) -> str:
        options = ", ".join(f"{name}={value!r}" for name, value in self.options.items())
        how = {0: "submitted out of order", 1: "in one batch"}
        return f"Engine({options}), {how.get(self.batches, f'in {self.batches} batches')}"


def settings() -> list[Setting]:
    """Those that :func:`check` tries: plain; threads, horizons and chunks; both protocols; cut into
    batches; out of order, with early results as well.

    >>> import specstream as ss
    >>> print(ss.testing.settings()[0])
    Engine(threads=1, horizon=0), in one batch
    """
    plain: list[dict[str, Any]] = [{"threads": 1, "horizon": 0}, {"threads": 4, "horizon": 0}]
    shapes = [(1, 8, 4), (2, 1, 1), (2, 8, 8), (4, 32, 64)]
    speculating: list[dict[str, Any]] = [
        {"threads": threads, "horizon": horizon, "chunk": chunk, "protocol": protocol}
        for protocol in ("value", "eager")
        for threads, horizon, chunk in shapes
    ]
    forced: dict[str, Any] = {"threads": 3, "horizon": 16, "chunk": 3, "execution": "speculate"}
    eager: dict[str, Any] = {
        "threads": 2,
        "horizon": 4,
        "chunk": 1,
        "protocol": "eager",
        "record_shift": 3,
    }
    whole = [*plain, *speculating, forced, eager, {"threads": 2}]
    return [
        *map(Setting, whole),
        *(Setting(one, 3) for one in (plain[0], speculating[2], forced)),
        *(Setting(one, 0) for one in (plain[0], speculating[1], speculating[3], eager)),
        *(Setting({**one, "early": True}, 0) for one in (speculating[3], {"threads": 2})),
    ]


@dataclass(frozen=True)
class _Answer:
    """What a run made of a table.

    Attributes:
        output: what was emitted, with the events' keys where they are to be compared; of a pipeline
            with several sinks by their names, else under an empty one.
        state: after the last event.
        raised: in order, what events raised: type and text; where they are set aside, nothing.
        failed: the events that were set aside; None: there are none.
    """

    output: dict[str, pa.Table]
    state: StateView
    raised: tuple[str, ...]
    failed: pa.Table | None = None


@refuses_unknown
def check(
    operator: Operator,
    table: Any,
    *,
    order_by: str | None = None,
    source: str | None = None,
    seed: int = 0,
    settings: Iterable[Setting] | None = None,
    initial: Mapping[str, Any] | None = None,
    end: bool = True,
) -> SequentialRun:
    """Runs an operator over a table on all settings, and compares with the sequential run.

    Rows, their order, the state after the last event, and what events raise have to be the same,
    bit for bit. Where some raise, each setting runs once more and sets them aside
    (``errors="side"``): the failed events have to be the same as well. An engine guarantees that,
    whatever the operator: so this finds defects of specstream. Of your operator it finds what a
    sequential run over this table shows, like an exception, or a field that overflows. Only your
    test knows what the numbers ought to be: look at what is returned.

    Your function is not compared with a run on plain Python objects. Where operators differ from
    Python (integers wrap, for example; the page "Arithmetic" has the list) such a run has another
    answer, which is no defect. The tests of specstream itself make that comparison, allowing for
    these differences, for random operators and for a hundred that people would write.

    Args:
        operator: that is tested.
        table: as for :meth:`specstream.Engine.process`; it is run about twenty times.
        order_by: column to order the rows by; ``source`` breaks ties.
        source: column that names each event's source.
        seed: of ``event.random``, of where the table is cut, and of the order of arrival.
        settings: those to try, all of :func:`settings` by default. Early results of an operator
            that can have none are left out.
        initial: values that the state begins with, by field name, as for an engine.
        end: whether the input ends with the table, so that waiting timers fire and waiting windows
            are emitted. What is submitted always ends: with False, an operator with timers is not
            tried on the settings that submit.

    Returns:
        The sequential run. Events that raise are skipped, and listed in ``raised``; and in
        ``failed_events``, unless a column has a name that those columns need.

    Raises:
        AssertionError: an answer differs; says on which setting, and where it differs first.
        ConfigurationError: an argument has a value that it cannot have.
        InputError: the table does not fit.
        CompileError: the operator's types do not fit.

    >>> import specstream as ss
    >>> class Seen(ss.State):
    ...     count = ss.scalar(int)
    >>> @ss.operator(state=Seen, event={"x": int}, emits={"total": int})
    ... def running_total(state, event, emit):
    ...     state.count += event.x
    ...     emit(state.count)
    >>> ss.testing.check(running_total, {"x": [1, 2, 3]}).output["total"].to_pylist()
    [1, 3, 6]
    """
    instance("operator", operator, Operator, "an operator, made with @ss.operator")
    seed = integer("seed", seed, 0, 2**64 - 1)
    tried = _all_settings() if settings is None else list(settings)
    for setting in tried:
        instance("settings", setting, Setting, "settings, as ss.testing.Setting makes them")
    if not tried:
        raise ConfigurationError("settings is empty: expected one at least, or None for all")
    events = operator.events_table(table, f"operator {operator.name!r}", (order_by, source))
    source = operator.source_column(source)
    order: dict[str, Any] = {"order_by": order_by, "source": source}
    # Of what is submitted the input ends: so it does for all, where timers are told of it.
    ends = flag("end", end) and operator.has_timers
    begin: dict[str, Any] = {"seed": seed, "initial": initial}
    sets_aside = _can_set_aside(operator)
    aside: dict[str, Any] = {"errors": "side"} if sets_aside else {"on_error": "skip"}
    run = operator.run_sequential(events, keys=True, end=ends, **aside, **begin, **order)
    output, raised = _joined([run.output]), tuple(_told(error) for _, error in run.raised)
    plain: SequentialRun = _without_keys(run, operator)
    without_keys = _joined([plain.output])
    # How engines begin, and what they have to answer: of what is processed, and of what is
    # submitted. None: numbers of events are those of their arrival, so that the first one counts.
    by_arrival = _goes_by_arrival(operator)
    ways = [(begin, _Answer(output, run.state, raised), _Answer(without_keys, run.state, raised))]
    failed = run.failed_events
    if failed is not None:
        processed = _Answer(output, run.state, (), failed)
        submitted = _Answer(without_keys, run.state, (), _submitted_keys(failed, order))
        ways.append((begin | aside, processed, submitted))
    for options, expected, submitted in ways:
        early = None if by_arrival else submitted
        for setting in tried:
            if not _can_be_tried(operator, setting, options, ends):
                continue
            if setting.batches > 0:
                answer = _processed(operator, setting, events, options, order, ends)
                _compare(operator, setting, answer, expected)
                continue
            found = _submitted(operator, setting, events, options, order)
            early = early or found
            _compare(operator, setting, found, early)
    return plain


_all_settings = settings


def _goes_by_arrival(operator: Operator) -> bool:
    """Whether it may ask for the number of an event."""
    try:
        read = operator.explain().columns_read
    except DeclarationError:  # what has no source says nothing of it
        return True
    return not set(_OF_ARRIVAL).isdisjoint(read)


def _can_set_aside(operator: Operator) -> bool:
    try:
        check_names(f"operator {operator.name!r}", operator.event.names)
    except ConfigurationError:
        return False
    return True


def _can_be_tried(
    operator: Operator, setting: Setting, options: Mapping[str, Any], ends: bool
) -> bool:
    if setting.options.get("early") and no_early_results(operator) is not None:
        return False
    if setting.batches == 0 and operator.has_timers and not ends:
        return False
    undoes = setting.options.get("execution") not in ("log_free", "locked")
    return undoes or "errors" not in options


def _submitted_keys(failed: pa.Table, order: Mapping[str, Any]) -> pa.Table:
    """Failed events with what of their keys is the same where they are submitted."""
    others = {"sequence"}
    others |= {"source"} if order["source"] is None else set()
    others |= {"timestamp"} if order["order_by"] is None else set()
    return failed.drop(sorted(others))


def _failed(engine: Engine) -> pa.Table | None:
    tables = []
    while (failed := engine.failed_events()) is not None:
        tables.append(failed)
    return pa.concat_tables(tables) if tables else None


def _without_keys(run: SequentialRun, operator: Operator) -> SequentialRun:
    output: Any = run.output
    if isinstance(output, dict):
        output = {
            sink: of.drop([name for name in KEY_COLUMNS if name in of.column_names])
            for sink, of in output.items()
        }
    else:
        output = output.select(range(len(operator.emits)))
    return replace(run, output=output)


def _joined(outputs: Iterable[Any]) -> dict[str, pa.Table]:
    """One table of several, of each sink."""
    parts = [of if isinstance(of, dict) else {"": of} for of in outputs]
    return {sink: pa.concat_tables([of[sink] for of in parts]) for sink in parts[0]}


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"


def _processed(
    operator: Operator,
    setting: Setting,
    events: pa.Table,
    begin: dict[str, Any],
    order: dict[str, Any],
    input_ends: bool,
) -> _Answer:
    """By ``process``, in batches; after an event that raises it goes on with the next one."""
    output, raised = [], []
    with Engine(operator, keys=True, **begin, **setting.options) as engine:
        batches = list(_cut(operator, events, setting.batches, begin["seed"], **order))
        for number, batch in enumerate(batches, start=1):
            ends = number == len(batches) and input_ends
            ends = ends or bool(operator.event.phases)  # of each time a batch has all
            at = 0
            while True:
                try:
                    rest = batch.slice(at)
                    output.append(engine.process(rest, **order, end=ends))
                    break
                except Exception as error:
                    partial = getattr(error, "specstream_partial", None)
                    if partial is None:
                        raise
                    output.append(partial.output)
                    is_timer = hasattr(error, "specstream_timer")  # which is no event
                    _, failed = getattr(error, "specstream_phase", (None, 1))
                    at += partial.consumed + (0 if is_timer else failed)
                    raised.append(_told(error))
        return _Answer(_joined(output), engine.state, tuple(raised), _failed(engine))


def _cut(
    operator: Operator,
    events: pa.Table,
    pieces: int,
    seed: int,
    order_by: str | None,
    source: str | None,
) -> Iterator[pa.Table]:
    """Batches that are the table, one behind the other.

    In order, as what is behind an event that raises is given once more.
    """
    if order_by is not None:
        keys = [ranks(events[name]) for name in (source, order_by) if name is not None]
        events = events.take(pa.array(np.lexsort(keys)))
    random = np.random.default_rng(seed)
    inner = random.integers(0, events.num_rows + 1, pieces - 1)
    if order_by is not None and operator.event.phases and events.num_rows:  # no time is cut in two
        times = ranks(events[order_by])
        inner = np.searchsorted(times, times[inner - 1], side="right") * (inner > 0)
    bounds = [0, *sorted(inner.tolist()), events.num_rows]
    for begin, end in itertools.pairwise(bounds):
        yield events.slice(begin, end - begin)


def _submitted(
    operator: Operator,
    setting: Setting,
    events: pa.Table,
    begin: dict[str, Any],
    order: dict[str, Any],
) -> _Answer:
    """By ``submit``, in an order of arrival; after an event that raises it goes on."""
    by = order["order_by"]
    if by is None:
        by = _TIME
        events = events.append_column(_TIME, pa.array(np.arange(events.num_rows)))
    source = order["source"]
    names = [0] if source is None else events[source].unique().to_pylist()
    output, raised = [], []
    changes: list[Any] = []
    with Engine(operator, sources=names, **begin, **setting.options) as engine:
        for number, arrival in enumerate(
            arrivals(events, order_by=by, source=source, seed=begin["seed"])
        ):
            if setting.options.get("early") and number % 3 != 1:
                changes.append(engine.poll_early(None if number % 2 else 0).changes)
            arrival.submit_to(engine)
        while True:
            try:
                output.append(engine.poll(timeout=None))
                break
            except Exception as error:
                partial = getattr(error, "specstream_partial", None)
                if partial is None:
                    raise
                output.append(partial.output)
                raised.append(_told(error))
        failed = _failed(engine)
        if failed is not None:
            failed = _submitted_keys(failed, order)
        found = _Answer(_joined(output), engine.state, tuple(raised), failed)
        if changes:
            changes.append(engine.poll_early(timeout=None).changes)
            for sink, rows in found.output.items():
                log = [of[sink] if isinstance(of, dict) else of for of in changes]
                _compare_changes(operator, setting, log, rows)
        return found


def _compare_changes(
    operator: Operator, setting: Setting, changes: list[pa.Table], output: pa.Table
) -> None:
    """The log of early results of a run that is over: what stands is what came out."""
    rows = latest(changes)
    stands = rows.select(output.column_names)
    if operator.has_timers:
        # By its key a timer comes before the events of its time, also where one of them has set it.
        output, stands = _sorted(output), _sorted(stands)
    difference = first_difference(output, stands)
    early = rows.filter(pa.compute.not_equal(rows["change"], "final")).num_rows
    if difference is not None or early:
        raise AssertionError(
            f"operator {operator.name!r}, {setting}: the changes of poll_early add up "
            f"to other rows than poll gave: {difference or f'{early} rows were never final'}"
        )


def _sorted(table: pa.Table) -> pa.Table:
    rows = sorted(enumerate(table.to_pylist()), key=lambda row: repr(row[1]))
    return table.take(pa.array([at for at, _ in rows], pa.int64()))


def _compare(operator: Operator, setting: Setting, found: _Answer, expected: _Answer) -> None:
    """Raises AssertionError at the first difference."""
    where = f"operator {operator.name!r}, {setting}, is not what the sequential run is:"
    for sink, rows in expected.output.items():
        difference = first_difference(rows, found.output[sink])
        if difference is None:
            continue
        place = f"output row {difference.index[0]}" if difference.index else "the output's columns"
        place = f"sink {sink!r}, {place}" if sink else place
        if difference.name:
            place += f", column {difference.name!r}"
        values = difference.recorded, difference.replayed
        one, other = (
            "no such row" if value is None and not difference.name else repr(value)
            for value in values
        )
        shown = [_row(answer.output[sink], difference.index) for answer in (expected, found)]
        raise AssertionError(
            f"{where} {place}: expected {one}, found {other}\n"
            f"expected row: {shown[0]}\nfound row:    {shown[1]}"
        )
    difference = first_difference_of_states(expected.state, found.state)
    if difference is not None:
        at = f"[{', '.join(map(str, difference.index))}]" if difference.index else ""
        raise AssertionError(
            f"{where} state.{difference.name}{at}: expected {difference.recorded!r}, found "
            f"{difference.replayed!r}"
        )
    _compare_failed(where, found.failed, expected.failed)
    for number, (one, other) in enumerate(zip(expected.raised, found.raised, strict=False)):
        if one != other:
            raise AssertionError(
                f"{where} the exception number {number}: expected {one}, found {other}"
            )
    if len(expected.raised) != len(found.raised):
        longer = max(expected.raised, found.raised, key=len)
        raise AssertionError(
            f"{where} expected {len(expected.raised)} events to raise, found "
            f"{len(found.raised)}; the first that one of them lacks: "
            f"{longer[min(len(expected.raised), len(found.raised))]}"
        )


def _compare_failed(where: str, found: pa.Table | None, expected: pa.Table | None) -> None:
    if found is None or expected is None:
        if found is not expected:
            count = 0 if expected is None else expected.num_rows
            other = 0 if found is None else found.num_rows
            raise AssertionError(
                f'{where} with errors="side": expected {count} failed events, found {other}'
            )
        return
    difference = first_difference(expected, found)
    if difference is not None:
        at = f"failed event {difference.index[0]}" if difference.index else "failed events"
        raise AssertionError(
            f'{where} with errors="side": {at}, column {difference.name!r}: expected '
            f"{difference.recorded!r}, found {difference.replayed!r}"
        )


def _row(output: pa.Table, index: tuple[int, ...]) -> Any:
    row = output.slice(index[0], 1).to_pylist() if index else []
    return row[0] if row else "none"

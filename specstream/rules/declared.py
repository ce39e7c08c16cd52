"""A property of a stream as a plain function: an operator that tells where it is violated."""

from __future__ import annotations

import datetime
import functools
import hashlib
import keyword
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from specstream.compiler.language.definitions import keep_text
from specstream.compiler.language.hints import names_it_has
from specstream.declarations.chosen_columns import key_of
from specstream.declarations.options import (
    flag,
    integer,
    items,
    one_of,
    refused,
    refuses_unknown,
)
from specstream.declarations.record_types import columns_declared
from specstream.declarations.schema import Column, Schema, nullable, timestamp
from specstream.definition.operator import Operator
from specstream.errors import CompileError, ConfigurationError, DeclarationError
from specstream.rules.formula import Formula
from specstream.rules.generate import Options, written
from specstream.rules.parse import parsed
from specstream.rules.proofs import Proof, proof_of
from specstream.rules.robustness import robust
from specstream.rules.source import module_text, names_given
from specstream.windows.declared import Clock, alike, counted_in, ticks

__all__ = ["Rule", "rule"]

_LONGEST = 2**60
_TAKEN = ("time", "verdict", "decided", "because", "robustness")


class Rule(Operator):
    """An operator that has been made of a rule.

    Attributes:
        source: the operator as a module of Python, which can be read and run alone.
        formula: what the rule says.
        names: what names in its conditions stand for.
        at_end: what the end of the input says: "open" or "closed".
        clock: what times are.
        key: columns whose values are traces of their own.
    """

    source: str
    formula: Formula
    names: Mapping[str, Any]
    at_end: str
    clock: Clock
    key: tuple[str, ...]

    def __call__(self, *given: Any, **options: Any) -> Any:
        raise ConfigurationError(
            f"rule {self.name!r} is called; expected ss.Engine(rule), rule.run_sequential(table), "
            "or stream.add(rule)"
        )

    @refuses_unknown
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        # As of an operator: a rule is made by the decorator.
        super().__init__(*args, **kwargs)

    def __getstate__(self) -> dict[str, Any]:
        # What it says is told of its function, which is not kept.
        kept = {"source": self.source, "at_end": self.at_end, "key": self.key}
        return {**super().__getstate__(), "rule": kept}

    def __setstate__(self, state: dict[str, Any]) -> None:
        for name, value in state.pop("rule").items():
            setattr(self, name, value)
        super().__setstate__(state)

    def why(self, table: Any, *, order_by: str | None = None, at: Any, key: Any = None) -> Proof:
        """Why the rule says what it says of an event: the smallest proof, from the events of its
        trace; where the verdict is open, what it waits for.

        The whole table is read as one finished input; nothing is asked of an engine.

        Args:
            table: as for :meth:`specstream.Engine.process`.
            order_by: column to order the rows by; rows of one time keep their order.
            at: the event: the number of its row in the table as it is given, from 0; with ``key``
                its time, as rows of the rule have it.
            key: the value of the rule's key, a tuple if that has several columns; ``()`` of a rule
                without one.

        Raises:
            InputError: the table does not fit.
            ConfigurationError: there is no such event, or it is in no trace as its key is null; the
                rule has lengths of time and there is no ``order_by``; or it has been pickled.
            Exception: whatever a condition raises at the event itself. Another event at which one
                does is left out: to the rule it did not come.

        >>> import specstream as ss
        >>> from specstream.rules import eventually, implies
        >>> @ss.rule(event={"order": str, "kind": str}, key="order")
        ... def paid(e):
        ...     return implies(e.kind == "placed", eventually(lambda x: x.kind == "paid", within=9))
        >>> orders = {
        ...     "order": ["a", "b", "b", "a"],
        ...     "kind": ["placed", "placed", "paid", "paid"],
        ...     "time": [0, 5, 14, 40],
        ... }
        >>> print(paid.why(orders, order_by="time", at=0))
        false at row 0 (time=0, kind='placed'), of the events with order='a': implies(...)
          e.kind == 'placed': true
          eventually(...): false, only row 0 lies from time 0 to 9; row 3 would, at time 40
            row 0 itself: x.kind == 'paid': false
        >>> print(paid.why(orders, order_by="time", at=5, key="b"))
        true at row 1 (time=5, kind='placed'), of the events with order='b': implies(...)
          eventually(lambda x: x.kind == 'paid', within=9): true, from time 5 to 14
            row 2 (time=14, kind='paid'): x.kind == 'paid': true
        """
        if not hasattr(self, "formula"):
            raise ConfigurationError(
                f"rule {self.name!r} has been pickled, and no longer has what it says; expected "
                "the rule as it was declared"
            )
        return proof_of(
            self, self.formula, self.names, self.key, self.at_end, table, order_by, at, key
        )


@refuses_unknown
def rule(
    *,
    event: Any,
    key: str | Sequence[str] = (),
    report: str | None = None,
    at_end: str = "open",
    anchored: bool = False,
    robustness: bool = False,
    keep: Sequence[str] = (),
    unit: Any = None,
    limit: int = 2**24,
    name: str | None = None,
) -> Callable[[Callable[[Any], Any]], Rule]:
    """Makes an operator of a property: a function of one event, which may speak of others.

    The function gives a truth value. It is compiled, not called: conditions are plain Python, and
    about other events speak :func:`~specstream.rules.once`, :func:`~specstream.rules.eventually`
    and so on, with functions of one event. The operator tells for which events the property does
    not hold, as soon as that is settled, once for each.

    Args:
        event: columns of the events.
        key: columns whose values are traces of their own; an event whose key is null is dropped.
        report: "violations" (default), or "all": a row for each event. With ``anchored`` "changes"
            (default) or "all".
        at_end: what the end of the input says of events that wait and that no time settles: "open",
            nothing; "closed", that nothing comes any more: ``eventually``, ``until`` and
            ``next_event`` fail, ``always`` and ``unless`` hold.
        anchored: it is asked of the first event of each trace alone, and told after every event:
            true, false, or null as long as that is open.
        robustness: by how much it holds, for each event, in place of a verdict: ``a >= b`` and
            ``a > b`` give ``a - b``, ``and`` the least, ``or`` the greatest, ``not`` the negative,
            operators the least or the greatest of what they ask; nothing at all is an infinity. Its
            sign is the verdict's. Conditions are comparisons of numbers of one event, and what
            looks ahead has ``within=`` or is ``next_event``.
        keep: columns of the event that rows have as well.
        unit: of times, to which an order column of times is cast: "s", "ms", "us" or "ns"; or the
            type of a column of times, which rows have then. By default microseconds where a
            bound is a duration, and else whatever the order column counts.
        limit: the most events that wait.
        name: of the operator; by default that of the function.

    Returns:
        A decorator, which gives a :class:`Rule`. Its rows have the key, ``time`` of the event,
        ``verdict``, ``decided``: the time at which it was settled, ``because``: the part that
        failed, as it is written, and the columns of ``keep``. With ``robustness`` they have, in
        place of verdict and reason, ``robustness``, a float, and are told in the order of events.

    Raises:
        ConfigurationError: an option is not what it must be; names it.
        DeclarationError: the function does what rules do not; names the line.

    >>> import specstream as ss
    >>> from specstream.rules import eventually, implies
    >>> def is_paid(e):
    ...     return e.kind == "paid"
    >>> @ss.rule(event={"order": str, "kind": str}, key="order")
    ... def paid_in_time(e):
    ...     return implies(e.kind == "placed", eventually(is_paid, within=30))
    >>> kinds = ["placed", "placed", "paid"]
    >>> orders = {"order": ["a", "b", "b"], "kind": kinds, "time": [0, 5, 35]}
    >>> with ss.Engine(paid_in_time) as engine:
    ...     alarms = engine.process(orders, order_by="time", end=True)
    >>> alarms.select(["order", "time", "decided"]).to_pylist()
    [{'order': 'a', 'time': 0, 'decided': 30}]

    How far a machine was from being too hot, within five minutes of each event:

    >>> from specstream.rules import always
    >>> @ss.rule(event={"heat": float}, robustness=True)
    ... def cool(e):
    ...     return always(lambda later: later.heat <= 90, within=5)
    >>> heat = {"heat": [70.0, 85.0, 92.5], "time": [0, 4, 8]}
    >>> with ss.Engine(cool) as engine:
    ...     engine.process(heat, order_by="time", end=True)["robustness"].to_pylist()
    [5.0, -2.5, -2.5]
    """

    def made(function: Callable[[Any], Any]) -> Rule:
        called = getattr(function, "__name__", "rule") if name is None else name
        what = f"rule {called!r}"
        is_first = flag(f"{what}: anchored", anchored)
        is_number = flag(f"{what}: robustness", robustness)
        given = "anchored=True" if is_first else None if report is None else f"report={report!r}"
        if is_number and given is not None:
            raise ConfigurationError(
                f"{what}: robustness=True is given with {given}, and has a row for each event, "
                "without a verdict; expected one of both"
            )
        reports = ("changes", "all") if is_first else ("violations", "all")
        told = one_of(f"{what}: report", reports[0] if report is None else report, reports)
        one_of(f"{what}: at_end", at_end, ("open", "closed"))
        integer(f"{what}: limit", limit, 1, 2**31)
        options = Options(at_end, told, (), is_first, limit)
        found = _made(function, event, key, options, keep, unit, name, is_number)
        found.again = functools.partial(
            _again, function, event=event, key=key, report=report, at_end=at_end,
            anchored=anchored, robustness=robustness, keep=keep, unit=unit, limit=limit, name=name,
        )  # fmt: skip
        return found

    return made


def _again(function: Callable[[Any], Any], **options: Any) -> Rule:
    """The rule of a function with other options."""
    return rule(**options)(function)


def _made(
    function: Any,
    event: Any,
    key: Any,
    options: Options,
    keep: Any,
    unit: Any,
    name: str | None,
    robustness: bool,
) -> Rule:
    called = getattr(function, "__name__", "rule") if name is None else name
    if not isinstance(called, str) or not called.isidentifier() or keyword.iskeyword(called):
        called = "rule" if name is None else called
        if name is not None:
            raise refused("rule: name", name, "a name, a Python identifier")
    what = f"rule {called!r}"
    columns = Schema.of(columns_declared(event, "event"), "event")
    by_name = dict(columns)
    for one in [key] if isinstance(key, str) else key if isinstance(key, list | tuple) else ():
        if isinstance(one, str) and one not in by_name:
            raise ConfigurationError(
                f"{what}: key={key!r}, and there is no column {one!r}; expected "
                + names_it_has(one, by_name).removeprefix("it has ")
            )
    bare = {of: Column(column.kind, column.arrow) for of, column in by_name.items()}
    keys = key_of(f"{what}: key", key, bare, ("int", "bool", "str"), least=0)
    for one in keys:
        if one in _TAKEN:
            raise ConfigurationError(
                f"{what}: key= names {one!r}, and rows have a column of that name; expected "
                "another name for it"
            )
    kept = _kept(what, keep, by_name, keys)
    if options.anchored and kept:
        raise ConfigurationError(
            f"{what}: keep= is given with anchored=True, whose rows are about a trace and not "
            "about an event; expected one of both"
        )
    given: list[tuple[str, Any]] = []
    clock = Clock.counting(f"{what}: unit", unit, 1)

    def length(option: str, value: Any) -> int:
        nonlocal clock
        if unit is None and isinstance(value, str | datetime.timedelta):
            clock = Clock.of("rule: unit", timestamp("us", None))
        given.append((option.split()[-1], value))
        if isinstance(value, bool) or not isinstance(value, int | str | datetime.timedelta):
            raise refused(f"{what}: {option}", value, 'a duration, like "30 minutes", or a number')
        found = ticks(f"{what}: {option}", value, clock, 0)
        if found > _LONGEST:
            raise refused(f"{what}: {option}", value, "less than 2**60 units")
        return found

    options = replace(options, keep=kept)
    write = robust if robustness else written
    taken = {called}
    while True:
        given.clear()
        found = parsed(called, function, columns, length, taken)
        alike(what, given)
        try:
            text = write(called, found.formula, found.names, columns, keys, options)
        except DeclarationError as error:
            if str(error).startswith("rule "):
                raise
            raise DeclarationError(f"{what}: {error}") from None
        # A name of the file that the text gives to something else gets another one.
        own = names_given(text.text)
        if own.isdisjoint(found.names):
            break
        taken |= own
    time = clock.column
    emits: dict[str, Any] = {one: bare[one] for one in keys}
    # What the end settles of a whole trace has no time.
    is_open_time = options.anchored and options.at_end == "closed"
    emits["time"] = nullable(time) if is_open_time else time
    if robustness:
        emits["robustness"] = float
    else:
        emits["verdict"] = nullable(bool) if options.anchored else bool
    if not options.anchored:
        emits["decided"] = nullable(time) if options.at_end == "closed" else time
    if not robustness:
        emits["because"] = nullable(str)
    emits.update({one: by_name[one] for one in kept})
    module = _module(called, text.text, {**text.names})
    _say_when_full(module.get("State"), what, options.limit)
    time_unit = clock.time_unit
    on_timer = module.get("on_timer")
    try:
        made = Rule(
            *(module[called], module.get("State"), by_name, emits, called, on_timer, None),
            time_unit=time_unit,
        )
    except CompileError as error:
        # Its line is one of the text that was made, which the user has not written.
        said = str(error).partition(f":{error.line}: ")[2].partition("\n")[0]
        raise DeclarationError(f"{what}: {said}") from None
    made.source = module_text(called, text.text, text.names, by_name, emits, time_unit)
    made.formula = found.formula
    made.names = found.names
    made.at_end = options.at_end
    made.clock = clock
    made.key = keys
    made.sign = "⊨"
    made.speaks_at_end = text.has_timers
    made.notes = tuple(text.notes)
    made.compares_times = bool(given)
    if given:
        option, value = given[0]
        counted_in(made, clock, option, value)
    return made


def _say_when_full(state: Any, what: str, limit: int) -> None:
    """Containers that are full name the rule and its option."""
    full = f"{what}: limit={limit} events or keys are kept already: give a larger limit="
    for name, value in list(vars(state).items()) if state is not None else ():
        if hasattr(value, "full"):
            setattr(state, name, replace(value, full=full))


def _kept(
    what: str, keep: Any, columns: Mapping[str, Any], keys: tuple[str, ...]
) -> tuple[str, ...]:
    expected = "names of columns of the event, a list or tuple, each once"
    names = (keep,) if isinstance(keep, str) else tuple(items(f"{what}: keep", keep, expected))
    if len(set(names)) < len(names):
        raise refused(f"{what}: keep", keep, expected)
    for one in names:
        if one not in columns:
            raise ConfigurationError(
                f"{what}: keep= names {one!r}, which is no column; expected "
                + names_it_has(str(one), columns).removeprefix("it has ")
            )
        if one in keys or one in _TAKEN:
            raise ConfigurationError(
                f"{what}: keep= names {one!r}, and rows have a column of that name already; "
                "expected others: leave it out"
            )
    return names


def _module(name: str, text: str, names: Mapping[str, Any]) -> dict[str, Any]:
    """What a text defines, which can be read where files and notebook cells are."""
    import specstream

    digest = hashlib.sha256(text.encode()).hexdigest()[:8]
    filename = f"<rule {name} {digest}>"
    keep_text(filename, text)
    namespace: dict[str, Any] = {"__name__": f"specstream.rules.{name}", "ss": specstream, **names}
    exec(compile(text, filename, "exec", dont_inherit=True), namespace)
    return namespace

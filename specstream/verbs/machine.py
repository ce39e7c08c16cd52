"""State machines: states, and transitions with guards and actions, as BeepBeep's Moore machines."""

from __future__ import annotations

import ast
import os
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from specstream.compiler.language.definitions import definition_of
from specstream.compiler.language.hints import names_it_has
from specstream.declarations.options import refused, shown
from specstream.definition.operator import Operator
from specstream.errors import ConfigurationError
from specstream.files.writing import writing
from specstream.verbs.by_key import kept_record, record_given
from specstream.verbs.machine_picture import Drawn, dot_of, svg_of
from specstream.verbs.mapping import results
from specstream.verbs.writing import Keys, Writer, columns_given, indented, own_function, verb

__all__ = ["ANY", "OTHERWISE", "Machine", "machine"]


class Machine(Operator):
    """An operator that is a state machine; made by :func:`machine`.

    Attributes:
        drawn: its states and transitions, as its picture shows them.
    """

    drawn: Drawn

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "drawn": self.drawn}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.drawn = state.pop("drawn")
        super().__setstate__(state)

    def draw(self, path: str | os.PathLike[str]) -> None:
        """Draws its states and transitions into a file.

        Args:
            path: the file, whose name ends in ``.svg``, or in ``.dot`` or ``.gv`` for Graphviz.

        Raises:
            ConfigurationError: its name ends otherwise.
            OSError: it cannot be written; the error names the file.
        """
        path = Path(path)
        if path.suffix not in (".svg", ".dot", ".gv"):
            raise refused("draw: path", str(path), "a name that ends in .svg, .dot or .gv")
        text = svg_of(self.drawn) if path.suffix == ".svg" else dot_of(self.drawn)
        with writing(path):
            path.write_text(text, encoding="utf-8")

    def _repr_svg_(self) -> str:
        return svg_of(self.drawn)


class _Word:
    """A word of its own in transitions."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"ss.verbs.{self.name}"

    def __reduce__(self) -> str:
        return self.name


ANY: Final = _Word("ANY")
"""In place of a state: the transition is from every state."""
OTHERWISE: Final = _Word("OTHERWISE")
"""In place of a guard: the transition is taken where none before it is."""


@verb
def machine(
    variables: Any,
    start: str,
    transitions: Sequence[tuple[Any, ...]],
    /,
    *,
    event: Any,
    output: Mapping[str, Callable[..., Any]] | None = None,
    key: str | Sequence[str] = (),
    to_all: Callable[..., Any] | None = None,
    forget: Callable[..., Any] | None = None,
    emits: Any = None,
    limit: int = 2**24,
    name: str = "machine",
    **columns: Any,
) -> Machine:
    """A state machine with variables, of all events or of each key.

    With an event the first transition from this state whose guard holds is taken: its action runs,
    and the state that it reaches gives a row if it has an output, with every event that reaches it
    or stays in it. Before the first event nothing is given. Where no transition is taken, the event
    fails: ValueError names machine and state. A state all of whose transitions stay, without an
    action, is settled: it writes nothing.

    Args:
        variables: a class of records, whose defaults are what a machine begins with; None: it has
            none, and guards, actions and outputs take no variables.
        start: the first state.
        transitions: in their order ``(state, guard, state reached)``, or with an action behind it.
            A guard and an action are functions of the variables and of the event; an action changes
            the variables. :data:`ANY` in place of the first state and :data:`OTHERWISE` in place of
            a guard come last.
        event: columns of the events.
        output: of states, functions of the variables: what they give, of one column its bare value,
            or None: no row.
        key: as of :func:`keyed`, as are ``to_all``, ``forget``, ``emits``, ``limit``, ``name`` and
            ``columns``.
        to_all: see there.
        forget: see there.
        emits: see there.
        limit: see there.
        name: see there.
        columns: see there.

    Raises:
        ConfigurationError: an option is not what it must be, a state is never reached, or a
            transition never taken; names it.

    >>> import specstream as ss
    >>> door = ss.verbs.machine(
    ...     None, "closed", [
    ...         ("closed", lambda e: e.what == "open", "open"),
    ...         ("open", lambda e: e.what == "close", "closed"),
    ...         (ss.verbs.ANY, ss.verbs.OTHERWISE, "broken"),
    ...     ],
    ...     event={"what": str}, output={"broken": lambda: True}, broken=bool,
    ... )
    >>> with ss.Engine(door) as engine:
    ...     engine.process({"what": ["open", "open"]}).to_pylist()
    [{'broken': True}]
    """
    what = "machine" if name == "machine" else f"machine {name!r}"
    if variables is not None:
        record_given(f"{what}: variables", variables)
    takes = "the event" if variables is None else "the variables and the event"
    rules = _transitions(what, start, transitions, takes)
    states = _states(what, start, rules)
    outputs = _outputs(what, output, states, "" if variables is None else "the variables")
    writer = Writer(what, name, event, sign="◯→", limit=limit)
    writer.keys = Keys.of(what, writer.event, key, to_all, forget)
    given = columns_given(what, emits, columns) if outputs or emits or columns else {}
    writer.emitting(given)
    writer.emits = writer.emits if given else {}
    number = {state: at for at, state in enumerate(states)}
    cell = writer.cell("states", at=(int, 0))
    lines = cell.load()
    writer.names["STATES"] = states
    first = ""
    if variables is not None:
        writer.names["Record"] = record_given(f"{what}: variables", variables)
        lines += kept_record(writer, "variables", "variables")
        first = "variables, "
    lines += _steps(writer, what, rules, number, first)
    lines += ["if reached != at:", *indented(cell.store(at="reached"))]
    if writer.keys.columns and variables is None:
        # The key is there from its first event on, also where the state stays.
        lines[-2] = "if reached != at or key not in state.states:"
    word = "if"
    for state, function in outputs.items():
        called = f"output_{number[state]}"
        writer.names[called] = function
        sent, values = results("row_given", given)
        lines += [
            f"{word} reached == {number[state]}:",
            f"    row_given = {called}({first.rstrip(', ')})",
            "    if row_given is not None:",
            *indented(indented([*sent, *writer.emission(values)])),
        ]
        word = "elif"
    made = writer.made(lines, kind=Machine)
    assert isinstance(made, Machine)
    drawn = tuple(
        (_from(rules, at, states), _written(two, four), three)
        for at, (_, two, three, four) in enumerate(rules)
    )
    made.drawn = Drawn(name, start, states, tuple(outputs), drawn)
    return made


def _from(
    rules: Sequence[tuple[Any, Any, str, Any]], at: int, states: Sequence[str]
) -> tuple[str, ...]:
    """The states from which a transition can be taken."""
    state = rules[at][0]
    if state is not ANY:
        return (str(state),)
    done = {one for one, guard, _, _ in rules[:at] if guard is OTHERWISE}
    return tuple(one for one in states if one not in done)


def _written(guard: Any, action: Any) -> str:
    """A guard, and the name of an action, as they are written."""
    text = "otherwise" if guard is OTHERWISE else _text_of(guard)
    return text if action is None else f"{text} / {getattr(action, '__name__', 'action')}"


def _text_of(function: Any) -> str:
    found = definition_of(function) if isinstance(function, types.FunctionType) else None
    is_alone = found is not None and isinstance(found.tree.body[0], ast.Return)
    value = found.tree.body[0].value if found is not None and is_alone else None  # type: ignore[attr-defined]
    return str(getattr(function, "__name__", "guard")) if value is None else ast.unparse(value)


def _steps(
    writer: Writer,
    what: str,
    rules: Sequence[tuple[Any, Any, str, Any]],
    number: Mapping[str, int],
    first: str,
) -> list[str]:
    """Statements that take a transition: the state that it reaches is ``reached`` then."""
    lines: list[str] = []
    word = "if"
    for at, (state, guard, reached, action) in enumerate(rules):
        tests = [] if state is ANY else [f"at == {number[state]}"]
        if guard is not OTHERWISE:
            writer.names[f"guard_{at}"] = guard
            tests.append(f"guard_{at}({first}event)")
        then = [f"reached = {number[reached]}"]
        if action is not None:
            writer.names[f"action_{at}"] = action
            then.insert(0, f"action_{at}({first}event)")
        test = f"{word} {' and '.join(tests)}:" if tests else ("else:" if lines else "if True:")
        lines += [test, *indented(then)]
        word = "elif"
        if not tests:
            return lines
    called = what if what.startswith("machine '") else f"machine {writer.name!r}"
    error = f'f"{called} is in state {{STATES[at]!r}}, and no transition from it holds"'
    return [*lines, "else:", f"    raise ValueError({error})"]


def _transitions(
    what: str, start: Any, given: Any, takes: str
) -> list[tuple[Any, Any, str, Callable[..., Any] | None]]:
    if not isinstance(start, str) or not start:
        raise refused(f"{what}: start", start, "the name of a state")
    if not isinstance(given, list | tuple) or not given:
        raise refused(f"{what}: transitions", given, "a list of (state, guard, state reached)")
    rules: list[tuple[Any, Any, str, Callable[..., Any] | None]] = []
    for at, one in enumerate(given):
        option = f"{what}: transition {at}"
        if not isinstance(one, tuple | list) or len(one) not in (3, 4):
            raise refused(
                option, one, "(state, guard, state reached), or with an action as a fourth part"
            )
        state, guard, reached, *action = one
        for named in (state, reached):
            if named is ANY and named is state:
                continue
            if not isinstance(named, str) or not named:
                raise refused(option, named, "the name of a state, or ss.verbs.ANY in front")
        if guard is not OTHERWISE:
            own_function(f"{option}: guard", guard, "a function, or ss.verbs.OTHERWISE", takes)
        if action and action[0] is not None:
            own_function(f"{option}: action", action[0], "a function", takes)
        rules.append((state, guard, reached, action[0] if action else None))
    return rules


def _states(what: str, start: str, rules: Sequence[tuple[Any, Any, str, Any]]) -> tuple[str, ...]:
    """All states, the first one in front.

    Raises:
        ConfigurationError: one is never reached, or a transition never taken.
    """
    named = [start, *(one for state, _, reached, _ in rules for one in (state, reached))]
    states = tuple(dict.fromkeys(one for one in named if one is not ANY))
    froms = [state for state, _, _, _ in rules]
    if start not in froms and ANY not in froms:
        raise ConfigurationError(
            f"{what}: start={start!r}, and no transition is from it; expected one of "
            + names_it_has(start, dict.fromkeys(map(str, froms))).removeprefix("it has ")
        )
    reached = {start}
    while True:
        more = {to for state, _, to, _ in rules if state is ANY or state in reached} - reached
        if not more:
            break
        reached |= more
    for one in states:
        if one not in reached:
            raise ConfigurationError(
                f"{what}: state {one!r} is never reached from {start!r}; expected a transition to "
                "it, or none from it: is its name spelt alike everywhere?"
            )
    for at, (state, _, _, _) in enumerate(rules):
        for before, (other, guard, _, _) in enumerate(rules[:at]):
            if guard is OTHERWISE and (other is ANY or other == state):
                raise ConfigurationError(
                    f"{what}: transition {at}, from {shown(state)}, is never taken: transition "
                    f"{before} is OTHERWISE, and comes before it; expected that behind the others"
                )
    return states


def _outputs(
    what: str,
    given: Mapping[str, Callable[..., Any]] | None,
    states: Sequence[str],
    takes: str,
) -> dict[str, Callable[..., Any]]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise refused(f"{what}: output", given, "a dict of states and functions")
    for state, function in given.items():
        if state not in states:
            raise ConfigurationError(
                f"{what}: output= has {shown(state)}, which is no state; expected one of "
                f"{', '.join(states)}"
            )
        own_function(f"{what}: output of {state!r}", function, "a function", takes)
    return dict(given)

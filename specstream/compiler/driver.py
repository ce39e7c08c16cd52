"""From the user's function to two functions: what the oracle runs, and what Numba compiles.

Both are rewritten from one syntax tree, so that they cannot drift apart.

*Native* (:mod:`specstream.compiler.lowering.rewrite_native`). Operators, builtins and access to
state, event and emit become calls of core functions, whose meaning is ours and not Numba's. Every
function gets the running transaction as a hidden first parameter, because loops poll its kill flag.

*Oracle* (:mod:`specstream.compiler.oracle.rewrite_oracle`). The same code, with integer literals as
wrapping integers and the names of builtins and modules bound to
:mod:`specstream.compiler.language.numbers`. Line numbers are those of the file, so that tracebacks
and pdb point into the user's own text.

Globals and closures are read once, at decoration: constants are frozen for both, plain functions
are taken along. What could not mean the same in both is refused here, with its line and a way out.
"""

from __future__ import annotations

import ast
import inspect
import types
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NoReturn

import numpy as np
import pyarrow as pa

from specstream.compiler.backend import operator_lowering
from specstream.compiler.backend.numba_pipeline import compiled
from specstream.compiler.facts.array_use import computes_arrays
from specstream.compiler.facts.call_versions import tell_calls_apart
from specstream.compiler.facts.kept_codes import keeps_codes
from specstream.compiler.facts.literal_promotion import LiteralPromotion
from specstream.compiler.facts.name_bindings import look_up
from specstream.compiler.facts.prefetching import look_ups
from specstream.compiler.facts.promoted_versions import Known
from specstream.compiler.facts.promotion_texts import check_either
from specstream.compiler.facts.refused_constructs import Check
from specstream.compiler.facts.text_use import Unentered, unentered
from specstream.compiler.frontend.desugar_calls import respell
from specstream.compiler.frontend.error_texts import tells_text
from specstream.compiler.frontend.inputs import Events, flatten
from specstream.compiler.frontend.named_attributes import write_out
from specstream.compiler.frontend.nesting import too_deep
from specstream.compiler.frontend.operator_analysis import Analysis, FunctionSource
from specstream.compiler.frontend.program import CompiledOperation, LookUp, Program, Written
from specstream.compiler.frontend.scopes import bound_names, separate
from specstream.compiler.frontend.signatures import parameters_of
from specstream.compiler.frontend.try_and_raise import has_try, trees_reached
from specstream.compiler.language.definitions import is_lambda, read_definition
from specstream.compiler.language.frozen import Frozen, digest_of

# All rules of the library are there before anything is rewritten, which asks what has a rule.
from specstream.compiler.library import (  # noqa: F401
    state_heaps,
    state_sequence_operators,
    state_tables,
    state_timers,
    texts,
)
from specstream.compiler.lowering.rewrite_native import rewrite_native
from specstream.compiler.oracle.rewrite_oracle import OracleRewriter
from specstream.compiler.staging.staging import Staging
from specstream.declarations.derived import Derived
from specstream.declarations.operations import Operation
from specstream.declarations.plain_values import plain
from specstream.declarations.pure import pure_mark
from specstream.declarations.schema import Column, Schema
from specstream.declarations.state_layout import Field, Layout
from specstream.errors import CompileError, DeclarationError

__all__ = ["ALONE", "TIMER", "Place", "analyse", "checked_functions"]

# The parameter that a function without a state is given.
_NO_STATE = "__ss_no_state"
# The columns that a timer has, as an event, but for the words of its key.
TIMER = Schema(("at",), (Column("int", pa.int64()),))


@dataclass(frozen=True)
class Place:
    """Where an operator stands among those that are compiled together.

    Attributes:
        first_site: of its first line; 0 stands for no line.
        derived: values of the event that those before it have derived.
        stages: whether Python sees its events before it runs, so that what depends on the event
            alone can be computed then.
    """

    first_site: int = 1
    derived: tuple[Derived, ...] = ()
    stages: bool = True


ALONE = Place()


def told(value: Any) -> str:
    """A constant in the fingerprint; what is frozen by its digest."""
    return digest_of(value) if isinstance(value, Frozen) else repr(value)


def analyse(
    function: Callable[..., Any],
    operator: str,
    event: Schema,
    emits: Schema,
    layout: Layout,
    on_timer: Any = None,
    inputs: Collection[str] = (),
    place: Place = ALONE,
) -> Program:
    """Checks and rewrites an operator's function, the operations on its boosted fields, and what
    runs when a timer fires.

    Args:
        inputs: names of its inputs, where it has several: the columns of the event are then those
            that :mod:`specstream.compiler.frontend.inputs` says.
        place: among the operators that are compiled together with it.

    Raises:
        CompileError: a function has something that cannot be compiled; names line and way out.
        DeclarationError: one is not a plain function of (state, event, emit), or without a state of
            (event, emit); or there are timers and nothing to run, or the other way round.
    """
    checked, on_timer = checked_functions(function, operator, layout, on_timer)
    timers = layout.timers
    program, analysis = _program(
        lambda: _Analysis(operator, event, emits, layout, tuple(inputs), place), checked
    )
    program.reads_timestamp = program.reads_timestamp or layout.goes_by_time
    if timers is not None and on_timer is not None:

        def of_timer() -> _Analysis:
            made = _Analysis(operator, TIMER, emits, layout)
            made.staging.forms += program.forms
            made.stages, made.is_on_timer = False, True
            made.keeps_codes = analysis.keeps_codes
            return made

        fired, analysis_of_timer = _program(of_timer, on_timer)
        fired.is_on_timer, fired.event = True, analysis_of_timer.event
        program.on_timer, program.forms = fired, fired.forms
        program.strings = tuple(dict.fromkeys((*program.strings, *fired.strings)))
        program.uses_arena = fired.uses_arena = program.uses_arena or fired.uses_arena
    return program


class _Catching(Exception):
    """The operator catches exceptions, or what is compiled along does."""


def _program(
    analysis: Callable[[], _Analysis], function: types.FunctionType
) -> tuple[Program, _Analysis]:
    """What an analysis makes of a function, and the analysis. Whether anything that is compiled
    catches exceptions decides how all of it raises; and which helpers are compiled, and not called
    by Python, is known on the way."""
    made = analysis()
    try:
        return made.checked_program(function), made
    except _Catching:
        made = analysis()
        made.catches = True
        return made.checked_program(function), made


def checked_functions(
    function: Any, operator: str, layout: Layout, on_timer: Any
) -> tuple[types.FunctionType, types.FunctionType | None]:
    """The driver's first check: of an operator's function, and of what its timers run.

    Raises:
        DeclarationError: as of :func:`analyse`.
    """
    what = f"operator {operator!r}"
    parameters = ("state", "event", "emit") if layout.fields else ("event", "emit")
    checked = _checked(function, what, "process", parameters)
    timers = layout.timers
    if on_timer is not None:
        if not layout.fields:
            raise DeclarationError(
                f"{what} has on_timer=, and no state=: give it one that has timers = ss.timers(key)"
            )
        on_timer = _checked(on_timer, f"{what}: on_timer", "on_timer", ("state", "timer", "emit"))
        if timers is None:
            raise DeclarationError(
                f"{what} has on_timer=, and its state {layout.name!r} has no timers: declare a "
                "field timers = ss.timers(key)"
            )
    elif timers is not None:
        raise DeclarationError(
            f"{what} has no on_timer=, and its state has the timers {timers.name!r}: give "
            "@ss.operator(..., on_timer=f) with def f(state, timer, emit), or leave the field out"
        )
    return checked, on_timer


def _checked(
    function: Any, what: str, name: str, parameters: tuple[str, ...]
) -> types.FunctionType:
    expected = f"({', '.join(parameters)})"
    if not isinstance(function, types.FunctionType):
        raise DeclarationError(
            f"{what} is {type(function).__name__}; expected a plain function: def {name}{expected}"
        )
    _, more = parameters_by_use(function, len(parameters))
    names = list(inspect.signature(function).parameters)
    if len(names) - len(more) != len(parameters):
        is_bare = len(parameters) == 2
        raise DeclarationError(
            f"{what} takes ({', '.join(names)}){' and has no state=' if is_bare else ''}; expected "
            f"exactly {'two' if is_bare else 'three'} parameters: {expected}, and others with "
            "defaults that are numbers or strings"
            + ("; give state=, a class derived from ss.State, if there is one" if is_bare else "")
        )
    order = list(parameters)
    if names != order and sorted(names) == sorted(order):
        raise DeclarationError(
            f"{what} takes ({', '.join(names)}); expected {expected}, in this order"
        )
    return function


def parameters_by_use(
    function: types.FunctionType, given: int
) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """For the driver: which parameters an engine passes, and which keep their defaults.

    Args:
        given: how many the engine has values for: without a state one less.
    """
    every = list(inspect.signature(function).parameters.values())
    settled = [
        one
        for one in every[given:]
        if isinstance(one.default, int | float | str) and not isinstance(one.default, np.generic)
    ]
    return [one for one in every if one not in settled], settled


def _settle_defaults(function: types.FunctionType, tree: ast.FunctionDef, given: int) -> None:
    """Turns ``*, rate=0.1`` of the user's function into ``rate = 0.1``, for both functions.

    ``def process(state, event, emit, *, rate=0.1)``: a name that has this value.
    """
    _, settled = parameters_by_use(function, given)
    if not settled:
        return
    names = {one.name for one in settled}
    arguments = tree.args
    arguments.args = [one for one in arguments.args if one.arg not in names]
    arguments.kwonlyargs, arguments.kw_defaults, arguments.defaults = [], [], []
    for one in reversed(settled):
        target = ast.Name(one.name, ast.Store())
        value = ast.Assign([target], ast.Constant(plain(one.default)))
        tree.body.insert(0, ast.fix_missing_locations(ast.copy_location(value, tree)))


def _write_out_chains(tree: ast.AST) -> None:
    """``a = b = 0`` as two statements: each name has a number of its own."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            for at in range(len(block) - 1, -1, -1) if isinstance(block, list) else ():
                assert isinstance(block, list)
                one = block[at]
                is_chain = isinstance(one, ast.Assign) and len(one.targets) > 1
                if is_chain and isinstance(one.value, ast.Constant):
                    value = one.value.value
                    block[at : at + 1] = [
                        ast.copy_location(
                            ast.Assign([to], ast.copy_location(ast.Constant(value), one.value)), one
                        )
                        for to in one.targets
                    ]


class _Analysis(Analysis):
    def __init__(
        self,
        operator: str,
        event: Schema,
        emits: Schema,
        layout: Layout,
        inputs: tuple[str, ...] = (),
        place: Place = ALONE,
    ) -> None:
        super().__init__(operator, event, emits, {one.name for _, one in layout.operations})
        self.layout = layout
        self.inputs = inputs
        self.of_inputs = frozenset(event.names if inputs else ())
        arrays = [one for one in layout.fields if one.container is None and one.record is None]
        fields = [one for one in arrays if one.space != "locks"]
        self.text_fields = {one.name for one in fields if one.storage.number == "str"}
        self.numeric_fields = {one.name for one in fields if one.storage.number != "bool"}
        self.shapes = {one.name: one.shape for one in arrays}
        self.has_records = layout.has_records
        self.record_fields = {
            one.name for one in layout.fields if one.record is not None and len(one.shape) == 1
        }
        self.done: dict[types.FunctionType, tuple[Any, types.FunctionType]] = {}
        self.dispatchers: dict[types.FunctionType, Any] = {}
        self.fingerprint: list[str] = []
        self.written: dict[types.FunctionType, Written] = {}
        self.known = Known(event, layout, lambda one: self.parse(one).tree)
        self.of_operator: types.FunctionType | None = None
        self.next_site = place.first_site
        self.parsed: dict[types.FunctionType, FunctionSource] = {}
        self.staging = Staging(self, self.parse, layout)
        self.staging.derived += place.derived
        self.look_ups: tuple[LookUp, ...] = ()
        self.stages = place.stages
        self.events: Events | None = None
        self.met: list[types.FunctionType] = []

    def checked_program(self, function: types.FunctionType) -> Program:
        """The same as :meth:`program`; refuses what is nested deeper than it can go."""
        try:
            return self.program(function)
        except RecursionError as error:
            met = [
                (one.__code__.co_filename, self.definition_of(one)[0])
                for one in dict.fromkeys([function, *self.met])
            ]
            raise too_deep(error, self.operator, met) from None

    def program(self, function: types.FunctionType) -> Program:
        self.of_operator = function
        event = list(inspect.signature(function).parameters)[1 if self.layout.fields else 0]
        if self.inputs:
            self.events = Events(function, event, self.tree_as_written)
        called: list[Any] = [function]
        for _, one in self.layout.operations:
            called += [of for of in (one.function, one.inverse) if of is not None]
        reached = [tree for one in called for tree in trees_reached(one, self.tree_of)]
        if not self.catches and any(map(has_try, filter(None, map(self.tree_of, called)))):
            raise _Catching
        self.tells = self.catches and any(map(tells_text, reached))
        if any(column.kind == "str" for _, column in self.emits):
            self.keeps_codes |= keeps_codes(reached, self.layout, self.event)
        if self.stages:
            self.staging.begin(function, event)
        operations = tuple(self.operation(*one) for one in self.layout.operations)
        native, oracle = self.function(function)
        self.fingerprint.append(self.errors.described())
        return Program(
            operator=self.operator,
            oracle=oracle,
            native=native,
            helpers=tuple(helper.__name__ for helper in self.done if helper is not function),
            strings=tuple(dict.fromkeys((*self.layout.strings, *self.strings))),
            fingerprint="\n".join(self.fingerprint),
            reads_timestamp=self.reads_timestamp,
            attributes=frozenset(self.attributes),
            written=self.written,
            operations=operations,
            catches=self.catches,
            derived=tuple(
                replace(one, status=self.texts.status_of if self.tells else self.errors.status_of)
                for one in self.staging.derived
            ),
            forms=tuple(self.staging.forms),
            unentered=self.unentered(),
            look_ups=self.look_ups,
            uses_arena=bool(
                self.uses_arena
                or self.has_records
                or self.layout.containers
                or self.makes_arrays(function)
            ),
            reads_frozen=self.reads_frozen,
        )

    def unentered(self) -> Unentered:
        """The string columns that need no codes, of all functions that the driver has analysed.

        There are some only where Python sees the events before.
        """
        if not self.stages or self.inputs:
            return ()
        events = self.staging.events
        functions = {one: (self.parsed[one], events.get(one, frozenset())) for one in self.done}
        frozen = {one: self.written[one].names for one in functions}
        return unentered(self.event, functions, frozen, self.catches)

    def makes_arrays(self, function: types.FunctionType) -> bool:
        axes = {name: len(shape) for name, shape in self.shapes.items() if shape}
        helpers = [one.tree for original, one in self.parsed.items() if original is not function]
        return computes_arrays(axes, [self.parsed[function].tree, *helpers])

    def operation(self, field: Field, one: Operation) -> CompiledOperation:
        """An operation on a boosted field."""
        function: Any = one.function
        inverse: Any = one.inverse
        return CompiledOperation(
            field.name,
            one,
            self.compiled(function),
            None if inverse is None else self.compiled(inverse),
            self.function(function)[1],
        )

    def function(self, original: types.FunctionType) -> tuple[Any, types.FunctionType]:
        """The native and the oracle form of one function; helpers are done on the way."""
        if original in self.done:
            return self.done[original]
        source = self.parse(original)
        if has_try(source.tree) and not self.catches:
            raise _Catching
        self.open.append(original)
        staged = self.staging.stage(source)
        check = Check(self, source)
        check.run()
        if original is self.of_operator:
            self.look_ups = look_ups(source.tree, self.layout, self.event)
        self.join_numbers(source, check)
        native_tree = rewrite_native(self, source, check)
        oracle_tree = OracleRewriter(self, source, check).rewrite()
        self.fingerprint += map(ast.dump, (*source.nested, native_tree))
        self.fingerprint.append(repr(sorted((k, told(v)) for k, v in check.constants.items())))
        native = source.compile(native_tree, source.native_namespace)
        oracle = source.compile(oracle_tree, source.oracle_namespace)
        self.open.pop()
        self.done[original] = (native, oracle)
        line, site = source.tree.lineno, self.next_site
        self.written[original] = Written(
            source.text,
            line,
            source.filename,
            site,
            check.told | check.resolved | staged | source.spelled,
        )
        self.next_site += len(source.text.splitlines())
        for one in (native, *source.lifted):
            operator_lowering.mark(one, site, line)
        return native, oracle

    def join_numbers(self, source: FunctionSource, check: Check) -> None:
        """Makes floats of the int literals that begin floats."""
        known = self.known
        known.open = list(self.open)
        if len(self.open) == 1 and not known.arguments.get(source.original):
            kinds = dict(zip(source.parameters, ("state", "event", "emit"), strict=False))
            known.arguments[source.original] = kinds
        given = known.arguments.get(source.original, {})
        frozen = [name for name, one in check.resolved.items() if isinstance(one, Frozen | tuple)]
        written = {name: look_up(source.original, name) for name in frozen}
        joining = LiteralPromotion(known, source.tree, check.resolved, given, written)
        joining.run()
        while tell_calls_apart(joining, check):
            joining = LiteralPromotion(known, source.tree, check.resolved, given, written)
            joining.run()
        check_either(joining, check.refuse)
        joining.apply()

    def kinds_of(self, original: types.FunctionType) -> dict[str, Any]:
        return self.known.arguments.get(original, {})

    def compiled(self, original: types.FunctionType) -> Any:
        """A helper as something that Numba can call."""
        if original not in self.dispatchers:
            self.dispatchers[original] = compiled(self.function(original)[0])
        return self.dispatchers[original]

    def tree_of(self, function: types.FunctionType) -> ast.FunctionDef | None:
        """The syntax tree of a function; None where it cannot be read."""
        try:
            return self.parse(function).tree
        except CompileError:
            return None

    def tree_as_written(self, function: types.FunctionType) -> ast.FunctionDef | None:
        """Likewise, before anything is done with it."""
        try:
            return self.written_as(function)[0]
        except CompileError:
            return None

    def parse(self, original: types.FunctionType) -> FunctionSource:
        """A function's source; raises CompileError where it cannot be read."""
        if original not in self.parsed:
            self.parsed[original] = self.read(original)
        return self.parsed[original]

    def written_as(
        self, original: types.FunctionType
    ) -> tuple[ast.FunctionDef, str, dict[str, Any]]:
        """A function's syntax tree, its text, and the names that are no longer in the tree."""
        definition, text = self.definition_of(original)
        self.met.append(original)
        look, refuse = partial(look_up, original), partial(self.refuse_at, original)
        return definition, text, write_out(definition, _names_of(definition), look, refuse)

    def definition_of(self, original: types.FunctionType) -> tuple[ast.FunctionDef, str]:
        """A function's syntax tree, with the lines of its file, and its text."""
        code = original.__code__
        try:
            found = read_definition(original)
        except (OSError, TypeError):
            raise CompileError(
                self.operator,
                code.co_filename,
                code.co_firstlineno,
                f"the source of {original.__name__!r} cannot be read",
                "define it in a file or a notebook cell, not with exec or at a bare prompt",
            ) from None
        if inspect.iscoroutinefunction(original) or inspect.isasyncgenfunction(original):
            raise CompileError(
                self.operator,
                code.co_filename,
                code.co_firstlineno,
                f"{original.__name__!r} is an async function",
                "operators, and what they call, are plain functions: leave async out",
            )
        wrapped = inspect.unwrap(original)
        if pure_mark(original) is not None:
            raise CompileError(
                self.operator,
                wrapped.__code__.co_filename,
                wrapped.__code__.co_firstlineno,
                f"{original.__name__!r} is marked @ss.pure, so Python calls it before the operator "
                "runs, and it is called with what is known only inside of a lambda or function",
                "call it with values of the event, in the operator's function or where the event "
                "is passed on, and pass on what it gives",
            )
        if wrapped is not original:
            raise CompileError(
                self.operator,
                wrapped.__code__.co_filename,
                wrapped.__code__.co_firstlineno,
                f"{original.__name__!r} has a decorator that replaces it with another function",
                "leave the decorator out, and call what it does",
            )
        if found is None:
            named = f"{original.__name__!r} is not the only statement of its lines"
            hint = "write it as a def statement of its own"
            if is_lambda(original):
                parameters = ", ".join(inspect.signature(original).parameters)
                named = (
                    f"the lambda of ({parameters}) cannot be told from others: its file has "
                    "changed since it ran, or Python keeps no columns (-X no_debug_ranges) and "
                    "there are two on the line"
                )
                hint += f", or in a line of its own: name = lambda {parameters}: ..."
            raise CompileError(
                self.operator,
                code.co_filename,
                code.co_firstlineno,
                named,
                hint,
            )
        return found.tree, found.text

    def read(self, original: types.FunctionType) -> FunctionSource:
        tree, text, named = self.written_as(original)
        if original is self.of_operator:
            _settle_defaults(original, tree, 3 if self.layout.fields else 2)
            if not self.layout.fields:
                # All behind knows functions of three parameters only.
                tree.args.args.insert(0, ast.copy_location(ast.arg(_NO_STATE), tree))
        parameters = parameters_of(tree.args).names
        if self.events is not None:
            names, refuse = self.events.names(original, tree), partial(self.refuse_at, original)
            flatten(tree, names, self.inputs, self.event, refuse)
        spelled = self.respell(original, tree)
        separate(tree)
        _write_out_chains(tree)
        source = FunctionSource(original, tree, original.__code__.co_filename, parameters, text)
        source.spelled = named | spelled
        return source

    def refuse_at(
        self, original: types.FunctionType, node: ast.AST, problem: str, hint: str
    ) -> NoReturn:
        code = original.__code__
        line = getattr(node, "lineno", code.co_firstlineno)
        raise CompileError(self.operator, code.co_filename, line, problem, hint)

    def respell(self, original: types.FunctionType, tree: ast.FunctionDef) -> dict[str, Any]:
        refuse = partial(self.refuse_at, original)
        names, look = _names_of(tree), partial(look_up, original)
        return respell(tree, names, look, refuse, self.catches, self.deques(original, tree))

    def deques(self, original: types.FunctionType, tree: ast.FunctionDef) -> dict[str, int | None]:
        """What the driver tells the desugaring of the state's deques: names, greatest lengths.

        The names are those by which the function reads them.
        """
        if original is not self.of_operator or not self.layout.fields:
            return {}
        state = [*tree.args.posonlyargs, *tree.args.args][0].arg
        kept = [(one.name, one.container) for one in self.layout.fields if one.container]
        return {f"{state}.{name}": of.maxlen for name, of in kept if of.kind == "deque"}


def _names_of(tree: ast.FunctionDef) -> set[str]:
    """Those that a function binds somewhere."""
    return bound_names(tree) - {tree.name} | set(parameters_of(tree.args).names)

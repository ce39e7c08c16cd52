"""The functions that run a phase, for Numba: of an event, and of a timer that fires."""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import collections
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numba
from numba.core import types
from numba.core.errors import NumbaError
from numba.extending import intrinsic

from specstream.compiler.backend.diagnosis import translate
from specstream.compiler.backend.instructions import Value
from specstream.compiler.backend.numba_pipeline import COMPILE_OPTIONS, OperatorCompiler
from specstream.compiler.backend.numba_types import EventType, MovedStateType, StateType
from specstream.compiler.frontend.program import Program
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.phases.phase_body import write_event_phase, write_timer_phase
from specstream.compiler.phases.plan import MOST_INLINED, Plan, Planned
from specstream.compiler.phases.streams import StreamEmitType
from specstream.compiler.phases.timers import VertexTimerType
from specstream.compiler.phases.vertex import Code, Compiled, VertexWriter
from specstream.compiler.phases.vertex_events import VertexEventType

__all__ = ["phase_functions"]


def phase_functions(plan: Plan) -> tuple[Callable[..., None], Callable[..., None] | None]:
    """Functions for Numba that run one phase: of an event, with the parameters (run, state, event,
    emit), and of a timer that fires, with (run, state, timer, emit), if a vertex has timers."""
    programs = [one.program for one in plan.vertices.values() if one.python is None]
    programs += [one.on_timer for one in programs if one.on_timer is not None]
    uses = collections.Counter(map(id, programs))
    processes: dict[int, Any] = {}
    for program in programs:
        inlines = {"forceinline": True} if uses[id(program)] <= MOST_INLINED else {}
        make = numba.njit(pipeline_class=OperatorCompiler, **inlines, **COMPILE_OPTIONS)
        if id(program) not in processes:
            processes[id(program)] = make(program.native)

    def code_of(
        typing_context: Any, planned: Planned, program: Program, run: Any, event: EventType
    ) -> Code:
        process = processes.get(id(program), program)
        of_state = StateType if planned.moved is None else MovedStateType
        given = (
            run,
            of_state(planned.layout, run.variant, program),
            event,
            StreamEmitType(planned, plan.axes),
        )
        if planned.python is not None:
            return Code(process, given)
        try:
            called = types.Dispatcher(process).get_call_type(typing_context, given, {})
            if called.return_type != types.none:
                raise refuse("the operator returns a value: emit(...) it instead")
        except NumbaError as error:
            message = translate(error, program)
            of = planned.operator, planned.name, plan.pipeline
            raise message.in_vertex(*of) from None
        return Code(process, given)

    def compiled(typing_context: Any, planned: Planned, run: Any, event: EventType) -> Compiled:
        of_vertex = VertexEventType(planned, plan, event, run.variant)
        code = code_of(typing_context, planned, planned.program, run, of_vertex)
        return Compiled(code.process, code.given, planned)

    @intrinsic
    def run_phase(typing_context: Any, run: Any, state: Any, event: Any, emit: Any) -> Any:
        vertices = [compiled(typing_context, one, run, event) for one in plan.vertices.values()]

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            given = context, builder, plan, vertices, args[0], event, emit
            write_event_phase(VertexWriter(*given))
            return context.get_dummy_value()

        return types.void(run, state, event, emit), code

    def phase(run: Any, state: Any, event: Any, emit: Any) -> None:
        run_phase(run, state, event, emit)

    timed, behind = plan.timed, plan.behind_timers
    if not timed:
        return phase, None

    @intrinsic
    def run_timer(typing_context: Any, run: Any, state: Any, timer: Any, emit: Any) -> Any:
        event, vertices = EventType(plan.event), []
        for name, planned in plan.vertices.items():
            if name not in behind and name not in timed:
                continue
            one = compiled(typing_context, planned, run, event)
            fired = planned.program.on_timer
            if fired is not None:
                of_timer = VertexTimerType(planned, fired)
                on_timer = code_of(typing_context, planned, fired, run, of_timer)
                one = replace(one, on_timer=on_timer, place=timed.index(name))
            vertices.append(one)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            given = context, builder, plan, vertices, args[0], event, emit
            write_timer_phase(VertexWriter(*given))
            return context.get_dummy_value()

        return types.void(run, state, timer, emit), code

    def timer_phase(run: Any, state: Any, timer: Any, emit: Any) -> None:
        run_timer(run, state, timer, emit)

    return phase, timer_phase

"""Updates in Numba's terms: ``add``, ``minimum``, ``maximum``, ``increment`` of
:mod:`specstream.structures`.

Where the state is accessed directly, an update is a load, an operation and a store. A speculative
run logs it (``delta.c``): of whole integers in the code generated here, else in C.
"""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from specstream._native import lib
from specstream.compiler.backend.instructions import I64, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import present, unwrapped
from specstream.compiler.backend.numba_types import EAGER, SPECULATIVE, StateType, Variant, ViewType
from specstream.compiler.backend.scalar_kinds import check_kind, convert
from specstream.compiler.language.typing_refusals import refuse
from specstream.compiler.library.array_views import View, index_types, index_values, remaining
from specstream.compiler.library.state_fields import field_of, run_and_start
from specstream.declarations.element_types import Storage
from specstream.declarations.updates import misfit

__all__ = ["UPDATES"]

_OPERATIONS = {"add": lib.SS_ADD, "minimum": lib.SS_MINIMUM, "maximum": lib.SS_MAXIMUM}


def _delta(operation: str, storage: Storage) -> int:
    """The enum ss_delta of an operation on elements of a type."""
    signed = storage.number == "int" and storage.dtype.kind == "i"
    number = lib.SS_FLOAT if storage.number == "float" else lib.SS_UNSIGNED
    if signed:
        number = lib.SS_SIGNED
    return int(lib.SS_FIRST_DELTA + 3 * _OPERATIONS[operation] + number)


def _combined(builder: Any, operation: str, storage: Storage, own: Value, given: Value) -> Value:
    """What the update makes of an element; both are widened."""
    is_float = storage.number == "float"
    if operation == "add":
        return builder.fadd(own, given) if is_float else builder.add(own, given)
    sign = "<" if operation == "minimum" else ">"
    if is_float:
        takes = builder.fcmp_ordered(sign, given, own)
    elif storage.number == "uint":
        takes = builder.icmp_unsigned(sign, given, own)
    else:
        takes = builder.icmp_signed(sign, given, own)
    return builder.select(takes, given, own)


def _update(
    run: Run,
    operation: str,
    place: tuple[str, Variant, Storage],
    at: Value,
    given: Value,
) -> None:
    """Updates element number ``at``; the caller has checked the bounds and the kind."""
    space, variant, storage = place
    if space != "state" or variant not in SPECULATIVE:
        own = run.load(space, variant, storage, at)
        result = _combined(run.builder, operation, storage, own, given)
        run.store(space, variant, storage, at, result)
        return
    number, operand = _delta(operation, storage), run.to_bits(storage.number, given)
    if variant not in EAGER and not storage.is_narrow and storage.number != "float":

        def combined(own: Value, also: Value) -> Value:
            return _combined(run.builder, operation, storage, own, also)

        run.update_transactional(at, number, operand, combined)
        return
    symbol = "ss_eager_delta" if variant in EAGER else "ss_delta"
    run.update_in_c(symbol, at, storage.size, number, operand)


class _Target:
    """What an update is about: a scalar field, or one element of an array."""

    def __init__(self, name: str, container: types.Type, key: types.Type) -> None:
        self.container = container
        self.key = key
        if isinstance(container, StateType):
            field = field_of(container, key.literal_value)
            self.what = f"field {field.name!r}"
            if field.shape != ():
                raise refuse(f"{self.what} is an array: write {name}(state.{field.name}, i, ...)")
            self.place: tuple[str, Variant, Storage]
            self.place = (field.space, container.variant, field.storage)
            self.field = field
        elif isinstance(container, ViewType):
            self.key = types.unliteral(key)
            self.what = "an array"
            if isinstance(remaining(container, index_types(container, self.key)), ViewType):
                raise refuse(f"{name} works on one element: give as many indices as axes")
            self.place = (container.space, container.variant, container.storage)
        else:
            raise refuse(
                f"{name} is given {container}: write {name}(state.array, i, ...), or "
                f'{name}(state, "scalar", ...)'
            )

    @property
    def storage(self) -> Storage:
        return self.place[2]

    def check(self, name: str) -> None:
        found = misfit(name, self.what, self.storage)
        if found is not None:
            raise refuse(str(found))

    def locate(self, context: Any, builder: Any, container: Value, key: Value) -> tuple[Run, Value]:
        """The run, and the number of the element; its index is checked."""
        if isinstance(self.container, StateType):
            run, start = run_and_start(context, builder, self.container, container, self.field)
            return Run(context, builder, run), start
        view = View(context, builder, self.container, container)
        parts = index_types(self.container, self.key)
        at, _, _ = view.select(parts, index_values(builder, self.key, key))
        return view.run, at


def _is_second_try(container: types.Type, key: types.Type) -> bool:
    """Numba tries once more without literals, where the name of a field cannot be known."""
    return isinstance(container, StateType) and not isinstance(key, types.StringLiteral)


def _update_function(operation: str) -> Any:
    def rule(typing_context: Any, container: Any, key: Any, value: Any) -> Any:
        if _is_second_try(container, key):
            return None
        target = _Target(operation, container, key)
        storage = target.storage
        target.check(operation)
        check_kind(present(value), storage.number, target.what, storage.name)

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            run, at = target.locate(context, builder, args[0], args[1])
            there = unwrapped(context, builder, sig.args[2], args[2])
            given = convert(context, builder, there, present(sig.args[2]), storage.number)
            _update(run, operation, target.place, at, given)
            return context.get_dummy_value()

        return types.void(container, target.key, types.unliteral(value)), code

    rule.__name__ = f"update_{operation}"
    rule.__doc__ = f"``specstream.structures.{operation}``."
    return intrinsic(prefer_literal=True)(rule)


update_add = _update_function("add")
update_minimum = _update_function("minimum")
update_maximum = _update_function("maximum")


@intrinsic(prefer_literal=True)
def increment_element(typing_context: Any, container: Any, key: Any) -> Any:
    """``specstream.structures.increment``."""
    if _is_second_try(container, key):
        return None
    target = _Target("increment", container, key)
    target.check("increment")

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        run, at = target.locate(context, builder, args[0], args[1])
        space, variant, storage = target.place
        if space == "state" and variant in SPECULATIVE:
            symbol = "ss_eager_increment" if variant in EAGER else "ss_increment"
            count = run.call(symbol, I64, run.pointer, at)
            run.leave_if_verdict()
            return count
        count = builder.add(run.load(space, variant, storage, at), I64(1))
        run.store(space, variant, storage, at, count)
        return count

    return types.int64(container, target.key), code


UPDATES: dict[str, Any] = {
    "add": update_add,
    "minimum": update_minimum,
    "maximum": update_maximum,
    "increment": increment_element,
}
"""By the name under which a structure marks its function as an update
(:mod:`specstream.declarations.updates`)."""

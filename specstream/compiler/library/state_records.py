"""Records in Numba's terms: made, read and written by their fields, kept in the state.

A record is the address of its object in the worker's arena (``object.c``), which says where its
words are: in the state, loaded and stored as all words of it are, or its own. Where one field of a
record of the state is read or written and nothing else, as in ``state.orders[i].price += x``,
nobody gets to know the record, and there is no object: the rewriting has such expressions give its
*place*.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import lower_constant
from numba.core.typing.templates import (
    AbstractTemplate,
    AttributeTemplate,
    infer_getattr,
    infer_global,
    signature,
)
from numba.extending import (
    lower_builtin,
    lower_getattr_generic,
    models,
    register_model,
    typeof_impl,
)

from specstream._native import ffi, lib
from specstream.compiler.backend.instructions import BIT, I64, POINTER, Value
from specstream.compiler.backend.memory import Run
from specstream.compiler.backend.none_types import (
    may_be_none,
    missing,
    present,
    unwrapped,
    value_or_zero,
)
from specstream.compiler.backend.numba_types import (
    RecordsType,
    RecordType,
    RunType,
    SlotType,
    StateType,
)
from specstream.compiler.backend.overloads import Core, Meaning, also, resolved_call
from specstream.compiler.backend.scalar_kinds import NUMBA_KINDS, check_kind, convert
from specstream.compiler.language.hints import names_it_has
from specstream.compiler.language.typing_refusals import refuse, without_literals
from specstream.compiler.library import arithmetic, conversions
from specstream.compiler.library.array_views import View, index_types, index_values
from specstream.compiler.library.item_assignment import SET_ITEM
from specstream.compiler.library.state_fields import RECORD_FIELD, SET_FIELD, field_of, run_and_word
from specstream.declarations.containers import Shape, record_shape

__all__ = [
    "SLOT_RULES",
    "Records",
    "make_slot",
    "object_there",
    "place_of_field",
    "place_of_item",
    "record_class",
    "record_new",
    "stored_record",
]

NOWHERE = I64(-1)
_VOID = ir.VoidType()
_KINDS = {
    "int": lib.SS_KIND_INT,
    "float": lib.SS_KIND_FLOAT,
    "bool": lib.SS_KIND_BOOL,
    "str": lib.SS_KIND_TEXT,
}
_WORDS = ffi.offsetof("struct ss_object", "words")


class Records(Run):
    """Writes instructions about records of one class; ``pointer`` is the run's."""

    def __init__(
        self, context: Any, builder: Any, of: RecordType | SlotType | RecordsType, pointer: Value
    ) -> None:
        super().__init__(context, builder, pointer)
        self.of = of
        self.shape = of.shape

    @classmethod
    def of_object(cls, context: Any, builder: Any, of: RecordType, record: Value) -> Records:
        """With the run that an object belongs to."""
        made = cls(context, builder, of, record)
        made.pointer = made.object_member(record, "run", POINTER)
        return made

    @property
    def kinds(self) -> Value:
        kinds = 0
        for at, part in enumerate(self.shape.parts):
            kinds |= _KINDS[part.number] << 4 * at
        return I64(kinds)

    def resolved(self, record: Value) -> Value:
        """The object where the words of one are: itself, nearly always."""
        builder = self.builder
        same = self.object_member(record, "same", POINTER)
        before = builder.block
        is_other = builder.not_(cgutils.is_null(builder, same))
        with builder.if_then(is_other, likely=False):
            other = self.call("ss_object_resolved", POINTER, record)
            there = builder.block
        found = builder.phi(POINTER)
        found.add_incoming(record, before)
        found.add_incoming(other, there)
        return found

    def object_member(self, record: Value, name: str, of: ir.Type = I64) -> Value:
        offset = I64(ffi.offsetof("struct ss_object", name))
        address = self.builder.gep(record, [offset], inbounds=True)
        return self.builder.load(self.builder.bitcast(address, of.as_pointer()))

    def own_word(self, record: Value, at: int) -> Value:
        address = self.builder.gep(record, [I64(_WORDS + 8 * at)], inbounds=True)
        return self.builder.bitcast(address, I64.as_pointer())

    # -- in the state --

    def load_at(self, place: Value, at: int) -> Value:
        word = self.builder.add(place, I64(at))
        return self.load("state", self.of.variant, self.shape.parts[at], word)

    def store_at(self, place: Value, at: int, value: Value) -> None:
        word = self.builder.add(place, I64(at))
        self.store("state", self.of.variant, self.shape.parts[at], word, value)

    # -- objects --

    def new(self, values: Sequence[Value]) -> Value:
        made = self.call("ss_object_new", POINTER, self.pointer, self.kinds)
        self.leave_if(cgutils.is_null(self.builder, made))
        for at, (part, value) in enumerate(zip(self.shape.parts, values, strict=True)):
            self.builder.store(self.narrow(part, value), self.own_word(made, at))
        return made

    def object_of(self, place: Value) -> Value:
        """In native code, the object of a record that is kept in the state, by its place."""
        found = self.call("ss_object_of", POINTER, self.pointer, self.kinds, place)
        self.leave_if(cgutils.is_null(self.builder, found))
        return found

    def _forwards(self, record: Value) -> tuple[Value, Value]:
        """Where to, and whether it does."""
        forward = self.object_member(record, "forward")
        return forward, self.builder.icmp_unsigned("!=", forward, NOWHERE)

    def get(self, record: Value, at: int) -> Value:
        return self._get(self.resolved(record), at)

    def _get(self, record: Value, at: int) -> Value:
        builder = self.builder
        forward, forwards = self._forwards(record)
        with builder.if_else(forwards) as (there, own):
            with there:
                of_state = self.load_at(forward, at)
                state_block = builder.block
            with own:
                word = builder.load(self.own_word(record, at))
                of_object = self.widen(self.shape.parts[at], word)
                own_block = builder.block
        value = builder.phi(of_state.type)
        value.add_incoming(of_state, state_block)
        value.add_incoming(of_object, own_block)
        return value

    def set(self, record: Value, at: int, value: Value) -> None:
        builder = self.builder
        record = self.resolved(record)
        forward, forwards = self._forwards(record)
        with builder.if_else(forwards) as (there, own):
            with there:
                self.store_at(forward, at, value)
            with own:
                bits = self.narrow(self.shape.parts[at], value)
                builder.store(bits, self.own_word(record, at))

    def put(self, place: Value, record: Value) -> None:
        """Stores a record: what is there leaves, and it is there from now on."""
        builder = self.builder
        record = self.resolved(record)
        forward = self.object_member(record, "forward")
        with builder.if_then(builder.icmp_unsigned("!=", forward, place)):
            self.leave(place)
            values = [self._get(record, at) for at in range(self.shape.words)]
            for at, value in enumerate(values):
                self.store_at(place, at, value)
            self.leave_if(builder.not_(self.call("ss_object_settle", BIT, record, place)))

    def leave(self, place: Value) -> None:
        """The record at a place is about to go: who has a name for it keeps what it is."""
        self._take_along(self.call("ss_object_leave", POINTER, self.pointer, place))

    def leave_all(self, first: Value, words: Value) -> None:
        """The same for all of them in so many words."""
        self._take_along(self.call("ss_objects_leave", POINTER, self.pointer, first, words))

    def _take_along(self, chain: Value) -> None:
        builder = self.builder
        before = builder.block
        head, body = (builder.append_basic_block(name) for name in ("leaving", "leaves"))
        after = builder.append_basic_block("left")
        builder.branch(head)
        builder.position_at_end(head)
        record = builder.phi(POINTER)
        record.add_incoming(chain, before)
        builder.cbranch(cgutils.is_null(builder, record), after, body)
        builder.position_at_end(body)
        place = builder.load(self.own_word(record, 0))
        for at, part in enumerate(self.shape.parts):
            bits = self.narrow(part, self.load_at(place, at))
            builder.store(bits, self.own_word(record, at))
        record.add_incoming(self.object_member(record, "next", POINTER), builder.block)
        builder.branch(head)
        builder.position_at_end(after)


def stored_record(shape: Shape, given: types.Type, variant: str, what: str) -> RecordType:
    """The type as which a record is kept; refuses what is none of the class. What may be None is
    cast to it, which raises TypeError where it is."""
    wanted = RecordType(shape, variant)
    if present(given) != wanted:
        raise refuse(
            f"{what} holds {wanted.class_name} and gets {_told(present(given))}; give it a "
            f"{wanted.class_name}(...)"
        )
    return wanted


def _told(given: types.Type) -> str:
    if isinstance(given, RecordType | SlotType):
        return f"a record {given.class_name}"
    if given == types.none:
        return "None"
    return f"an array of {given.class_name}" if isinstance(given, RecordsType) else str(given)


# ---- making one ----


class _RecordClass:
    """A record's class for Numba."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape


class _RecordClassType(types.Type):
    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        cls = shape.record
        assert cls is not None
        super().__init__(f"specstream.record_class({cls.__module__}.{cls.__qualname__}, {shape})")


register_model(_RecordClassType)(models.OpaqueModel)


@typeof_impl.register(_RecordClass)
def _typeof(value: _RecordClass, context: object) -> types.Type:
    return _RecordClassType(value.shape)


@lower_constant(_RecordClassType)
def _constant(context: Any, builder: Any, of: types.Type, value: object) -> Value:
    return context.get_dummy_value()


def record_class(cls: type) -> Any:
    """A record's class as a global that Numba knows."""
    return _RecordClass(record_shape(cls))


record_new = Core("record_new", "give its fields")


@record_new.rule
def _new(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """(run, class, names of the fields as they are given, their values)."""
    run, cls, names, *values = args
    if not isinstance(names, types.StringLiteral):
        raise without_literals()
    assert isinstance(run, RunType)
    assert isinstance(cls, _RecordClassType)
    of = RecordType(cls.shape, run.variant)
    order = [cls.shape.names.index(name) for name in names.literal_value.split(",")]
    for at, value in zip(order, values, strict=True):
        _check_field(of, at, value)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        records = Records(context, builder, of, args[0])
        given = {
            at: _converted(records, at, one, value)
            for at, one, value in zip(order, sig.args[3:], args[3:], strict=True)
        }
        return records.new([given[at] for at in range(cls.shape.words)])

    return of, (run, cls, names, *map(types.unliteral, values)), code


def _check_field(of: RecordType | SlotType, at: int, value: types.Type) -> None:
    part, name = of.shape.parts[at], of.shape.names[at]
    what = f"field {name!r} of {of.class_name}"
    check_kind(present(value), part.number, what, part.name, keeps_strings=True)


def _converted(records: Records, at: int, given: types.Type, value: Value) -> Value:
    there = unwrapped(records.context, records.builder, given, value)
    kind = records.shape.parts[at].number
    return convert(records.context, records.builder, there, present(given), kind)


# ---- fields ----


def _field_number(of: RecordType | SlotType, name: str) -> int:
    if name in of.shape.names:
        return of.shape.names.index(name)
    cls = of.shape.record
    if not name.startswith("__") and hasattr(cls, name):
        raise refuse(
            f"{of.class_name}.{name} is no field of the record {of.class_name}, and what else its "
            "class has is not compiled; write a plain function that takes the record"
        )
    raise refuse(
        f"record {of.class_name} has no field {name!r}; {names_it_has(name, list(of.shape.names))}"
    )


class _Attribute(AttributeTemplate):
    def generic_resolve(self, of: Any, name: str) -> types.Type:
        return NUMBA_KINDS[of.shape.parts[_field_number(of, name)].number]


@infer_getattr
class _RecordAttribute(_Attribute):
    key = RecordType


@infer_getattr
class _SlotAttribute(_Attribute):
    key = SlotType


@lower_getattr_generic(RecordType)
def _record_getattr(context: Any, builder: Any, of: RecordType, value: Value, name: str) -> Value:
    records = Records.of_object(context, builder, of, value)
    return records.get(value, _field_number(of, name))


@lower_getattr_generic(SlotType)
def _slot_getattr(context: Any, builder: Any, of: SlotType, value: Value, name: str) -> Value:
    place = cgutils.create_struct_proxy(of)(context, builder, value=value)
    return Records(context, builder, of, place.run).load_at(place.word, _field_number(of, name))


@SET_FIELD.append
def _set_field(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``record.name = value`` and ``state.name = record``, with the value first."""
    value, of, name = args
    if isinstance(of, StateType):
        return _set_scalar(value, of, name)
    if not isinstance(of, RecordType | SlotType):
        return None
    assert isinstance(name, types.StringLiteral)
    at = _field_number(of, name.literal_value)
    _check_field(of, at, value)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        if isinstance(of, SlotType):
            place = cgutils.create_struct_proxy(of)(context, builder, value=args[1])
            records = Records(context, builder, of, place.run)
            records.store_at(place.word, at, _converted(records, at, sig.args[0], args[0]))
        else:
            records = Records.of_object(context, builder, of, args[1])
            records.set(args[1], at, _converted(records, at, sig.args[0], args[0]))
        return context.get_dummy_value()

    return types.void, (types.unliteral(value), of, name), code


def _set_scalar(value: types.Type, state: StateType, name: types.Type) -> Meaning | None:
    """``state.name = record``."""
    field = field_of(state, name.literal_value)
    if field.record is None:
        return None
    if len(field.shape) > 1:
        raise refuse(
            f"field {field.name!r} is an array and cannot be replaced: assign elements, "
            f"like state.{field.name}[i] = x"
        )
    of = stored_record(field.record, value, state.variant, f"field {field.name!r}")

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        run, word = run_and_word(context, builder, state, args[1], field)
        Records(context, builder, of, run).put(word, args[0])
        return context.get_dummy_value()

    return types.void, (of, state, name), code


def _read_scalar(context: Any, builder: Any, of: RecordType, run: Value, word: Value) -> Value:
    return Records(context, builder, of, run).object_of(word)


RECORD_FIELD.append(_read_scalar)


# ---- arrays ----


def _selected_records(
    context: Any, builder: Any, of: RecordsType, value: Value, index: types.Type, at: Value
) -> tuple[View, Value, list[Value], list[Value]]:
    """What an index selects of an array of records in the state, and the view of their words.

    The selection is first word, lengths, strides.
    """
    view = View(context, builder, of.view, value)
    parts = _index_types(of, index)
    return view, *view.select(parts, index_values(builder, index, at))


def _index_types(of: RecordsType, index: types.Type) -> list[types.Type]:
    parts = index_types(of.view, index)
    if len(parts) > of.ndim:
        raise refuse(f"{len(parts)} indices for an array of {of.ndim} axes: use fewer")
    return parts


def _remaining(of: RecordsType, index: types.Type) -> types.Type:
    parts = _index_types(of, index)
    kept = sum(isinstance(part, types.SliceType) for part in parts)
    return of.with_ndim(of.ndim - len(parts) + kept)


def _record_or_array(
    context: Any, builder: Any, of: types.Type, view: View, selected: tuple[Any, ...]
) -> Value:
    """What is selected of an array of records in the state: a record, or an array of fewer."""
    first, lengths, strides = selected
    if isinstance(of, RecordType):
        return Records(context, builder, of, view.run.pointer).object_of(first)
    return view.view(first, lengths, strides)


@infer_global(operator.getitem)
class _Item(AbstractTemplate):
    def generic(self, args: Any, kws: Any) -> Any:
        of, index = args
        if not isinstance(of, RecordsType):
            return None
        index = types.unliteral(index)
        return signature(_remaining(of, index), of, index)


@lower_builtin(operator.getitem, RecordsType, types.Any)
def _item(context: Any, builder: Any, sig: Any, args: Any) -> Value:
    view, *selected = _selected_records(
        context, builder, sig.args[0], args[0], sig.args[1], args[1]
    )
    return _record_or_array(context, builder, sig.return_type, view, tuple(selected))


@SET_ITEM.append
def _set_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """``records[i] = record``, with the value first."""
    value, of, index = args
    if not isinstance(of, RecordsType):
        return None
    index = types.unliteral(index)
    if not isinstance(_remaining(of, index), RecordType):
        raise refuse("a row or slice of records is assigned: assign them one by one, in a loop")
    wanted = stored_record(of.shape, value, of.variant, "an array")

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        view, first, *_ = _selected_records(context, builder, of, args[1], index, args[2])
        Records(context, builder, of, view.run.pointer).put(first, args[0])
        return context.get_dummy_value()

    return types.void, (wanted, of, index), code


def _length(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    (of,) = args
    if not isinstance(of, RecordsType):
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return View(context, builder, of.view, args[0]).shape[0]

    return types.int64, args, code


also(len, _length, RecordsType)


# ---- places: a field is read or written, and nobody gets to know the record ----

place_of_item = Core("place_of_item", "write x[i].name")
place_of_field = Core("place_of_field", "write state.x.name")
SLOT_RULES: list[Callable[[Any, Sequence[types.Type]], Meaning | None]] = []
"""What gives the place of an item, by what has it."""


def make_slot(context: Any, builder: Any, of: SlotType, run: Value, word: Value) -> Value:
    """The place of a record kept in the state, as a value of Numba's: the run, and a word."""
    made = cgutils.create_struct_proxy(of)(context, builder)
    made.run = run
    made.word = word
    return made._getvalue()


@place_of_item.rule
def _slot_of_item(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    for rule in SLOT_RULES:
        found = rule(context, args)
        if found is not None:
            return found
    of, index = args
    if not isinstance(of, RecordsType) or not isinstance(_remaining(of, index), RecordType):
        return _item_without_slot(context, args)
    result, index = SlotType(of.shape, of.variant), types.unliteral(index)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        view, first, *_ = _selected_records(context, builder, of, args[0], index, args[1])
        return make_slot(context, builder, result, view.run.pointer, first)

    return result, (of, index), code


def _item_without_slot(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """In place of a record's place, an item of what is no array of the state's records."""
    known = context.resolve_value_type(operator.getitem)
    sig = context.resolve_function_type(known, tuple(args), {})
    if sig is None:
        return None

    def code(context: Any, builder: Any, of: Any, given: Any) -> Value:
        return resolved_call(context, builder, operator.getitem, of.args, given)[1]

    return sig.return_type, sig.args, code


@place_of_field.rule
def _slot_of_field(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """Of the state, or of something else that has an attribute of that name."""
    of, name = args
    if not isinstance(name, types.StringLiteral):
        raise without_literals()
    if not isinstance(of, StateType):
        return context_attribute(context, of, name)
    field = field_of(of, name.literal_value)
    assert field.record is not None
    result = SlotType(field.record, of.variant)

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        return make_slot(
            context, builder, result, *run_and_word(context, builder, of, args[0], field)
        )

    return result, args, code


def context_attribute(context: Any, of: types.Type, name: types.StringLiteral) -> Meaning | None:
    found = context.resolve_getattr(of, name.literal_value)
    if found is None:
        return None

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        get = context.get_getattr(of, name.literal_value)
        return get(context, builder, of, args[0], name.literal_value)

    return found, (of, name), code


# ---- what may be None, and comparisons ----

object_there = Core("object_there", "write x.name")


@object_there.rule
def _record_there(context: Any, args: Sequence[types.Type]) -> Meaning | None:
    """The record whose field is asked for in native code: AttributeError where it is None."""
    (of,) = args
    if of == types.none:  # or it is not yet known what else: Numba comes by again
        raise refuse("None has no fields; test for it first")
    if not isinstance(of, types.Optional) or not isinstance(present(of), RecordType):
        return of, args, lambda context, builder, sig, args: args[0]

    def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
        run = Run(context, builder, args[0])
        run.fault_if(missing(context, builder, of, args[0]), AttributeError)
        return value_or_zero(context, builder, of, args[0])

    return present(of), (of,), code


def _truth(negated: bool) -> Any:
    """An object is true."""

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], RecordType):
            return None
        return types.boolean, args, lambda context, builder, sig, args: BIT(int(not negated))

    return rule


also(bool, _truth(False), RecordType)
arithmetic.not_.rule(_truth(True))
conversions.bool_.rule(_truth(False))


def _equality(negated: bool) -> Any:
    function = arithmetic.ne if negated else arithmetic.eq

    def rule(context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 2 or not any(isinstance(one, RecordType) for one in args):
            return None
        left, right = args
        if left != right:
            if may_be_none(left) or may_be_none(right):
                return None
            raise refuse(f"{_told(left)} is compared with {_told(right)}: they are never equal")

        def code(context: Any, builder: Any, sig: Any, args: Any) -> Value:
            records = Records.of_object(context, builder, left, args[0])
            same: Value = BIT(1)
            for at, part in enumerate(left.shape.parts):
                of = NUMBA_KINDS[part.number]
                pair = [records.get(one, at) for one in args]
                _, equal = resolved_call(context, builder, arithmetic.eq, (of, of), pair)
                same = builder.and_(same, equal)
            return builder.not_(same) if negated else same

        return types.boolean, args, code

    function.rule(rule)
    return rule


_equality(False)
_equality(True)

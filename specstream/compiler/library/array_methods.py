"""Methods of arrays, rows and slices, most of which NumPy has as functions too.

``sum mean std var min max argmin argmax any all``, as functions (but for ``sum``) of a list of the
event's own as well; ``fill copy tolist``; ``np.dot``, and `math`'s functions of several numbers:
``fsum``, ``prod`` and ``dist``. All go through the elements in the order of their indices, the last
axis first. A sum begins with 0, as NumPy's does; a NaN is the least and the
greatest, and of equal elements the last one is ``min`` and the first one ``argmin``.
"""

# Numba's internals are only partly typed.
# mypy: allow-untyped-calls

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from numba.core import cgutils, types

from specstream._native import ffi, lib
from specstream.compiler.backend.instructions import BIT, F64, I32, I64, Instructions, Value
from specstream.compiler.backend.local_types import ListType, kinds_of
from specstream.compiler.backend.numba_types import ViewType
from specstream.compiler.backend.overloads import Core, Meaning, of_values, resolved_call
from specstream.compiler.backend.scalar_functions import require_scalar, write_bool
from specstream.compiler.backend.scalar_kinds import (
    NUMBA_KINDS,
    SCALARS,
    check_kind,
    convert,
    scalar_kind,
)
from specstream.compiler.language.typing_refusals import no_letters, refuse
from specstream.compiler.library import arithmetic, array_windows
from specstream.compiler.library.arithmetic import write_comparison
from specstream.compiler.library.array_expressions import (
    array_type,
    made_type,
    new_list,
    new_window,
    view_of,
    window_of,
)
from specstream.compiler.library.array_windows import Window
from specstream.compiler.library.iteration import RangeType
from specstream.compiler.library.local_list_methods import reversed_list
from specstream.compiler.library.local_lists import List, element_of
from specstream.compiler.library.math_exact import norm, norm_of
from specstream.compiler.library.method_dispatch import method
from specstream.compiler.library.numpy_functions import OF_ARRAYS

__all__ = ["MATH", "METHODS", "NUMPY"]


class _Listed:
    """A list of numbers, to be gone through like an array of one axis."""

    def __init__(self, run: List, of: ViewType) -> None:
        self.run = run
        self.type = of
        self.shape = [run.count()]

    def load(self, indices: Sequence[Value]) -> Value:
        return self.run.get(indices[0])


Elements = Window | _Listed
Write = Callable[[Any, Any], Value]
"""Of Numba's context and a window, or of a list: the result."""


def _read_whole(window: Window) -> Window:
    """The array, row or slice of a method; read as a whole where reads are logged."""
    if window.type.is_logged and len(window.shape) == 1:
        return array_windows.read_whole(window)
    return window


def _count(window: Elements) -> Value:
    count = I64(1)
    for length in window.shape:
        count = window.run.builder.mul(count, length)
    return count


def _fold(
    window: Elements, first: Value, start: Callable[[Value], Value], step: Callable[..., Value]
) -> Value:
    """The loop of array methods such as ``sum``, ``var`` and ``argmin``, through all elements.

    ``start`` of the first, then ``step(total, element, number)``."""
    builder = window.run.builder
    total = cgutils.alloca_once_value(builder, first)
    at = cgutils.alloca_once_value(builder, I64(0))
    with cgutils.loop_nest(builder, window.shape, I64) as indices:
        element = window.load(indices)
        number = builder.load(at)
        is_first = builder.icmp_signed("==", number, I64(0))
        with builder.if_else(is_first) as (begins, goes_on):
            with begins:
                builder.store(start(element), total)
            with goes_on:
                builder.store(step(builder.load(total), element, number), total)
        builder.store(builder.add(number, I64(1)), at)
    return builder.load(total)


def _kind(view: ViewType) -> str:
    return scalar_kind(NUMBA_KINDS[view.kind]) or "string"


def _zero(kind: str) -> Value:
    return F64(0.0) if kind == "float64" else I64(0)


def sum_of(window: Elements) -> tuple[str, Value]:
    builder = window.run.builder
    kind = _kind(window.type)
    total = "int64" if kind == "bool" else kind

    def start(element: Value) -> Value:
        return builder.zext(element, I64) if kind == "bool" else element

    def step(before: Value, element: Value, number: Value) -> Value:
        add = builder.fadd if kind == "float64" else builder.add
        return add(before, start(element))

    summed = _fold(window, _zero(total), start, step)
    # NumPy begins with 0.0, which shows only where all elements are -0.0.
    return total, builder.fadd(summed, F64(0.0)) if kind == "float64" else summed


def _mean(context: Any, window: Elements) -> Value:
    builder = window.run.builder
    count = _count(window)
    kind, total = sum_of(window)
    none = builder.icmp_signed("==", count, I64(0))
    divisor = builder.select(none, I64(1), count)
    given = SCALARS[kind], (types.uint64 if kind == "uint64" else types.int64)
    _, mean = resolved_call(context, builder, arithmetic.truediv, given, (total, divisor))
    return builder.select(none, F64(float("nan")), mean)


def _variance(context: Any, window: Elements) -> Value:
    """The array methods ``var`` and ``std``: the mean of the squares of distances to the mean.

    As floats; ``std`` is the root."""
    builder = window.run.builder
    code = Instructions(context, builder)
    kind = _kind(window.type)
    mean = _mean(context, window)

    def square(element: Value) -> Value:
        distance = builder.fsub(code.to_float(element, kind), mean)
        return builder.fmul(distance, distance)

    def step(total: Value, element: Value, number: Value) -> Value:
        return builder.fadd(total, square(element))

    count = _count(window)
    total = _fold(window, F64(0.0), square, step)
    none = builder.icmp_signed("==", count, I64(0))
    mean_square = builder.fdiv(total, code.to_float(count, "int64"))
    return builder.select(none, F64(float("nan")), mean_square)


def _deviation(context: Any, window: Elements) -> Value:
    variance = _variance(context, window)
    return Instructions(context, window.run.builder).llvm("llvm.sqrt", variance)


def _extremum(predicate: str, is_place: bool) -> Write:
    compare = write_comparison(predicate)

    def write(context: Any, window: Elements) -> Value:
        run, builder = window.run, window.run.builder
        kind = _kind(window.type)
        run.fault_if(builder.icmp_signed("==", _count(window), I64(0)), ValueError)
        place = cgutils.alloca_once_value(builder, I64(0))

        def step(best: Value, element: Value, number: Value) -> Value:
            wins = compare(run, (kind, kind), (element, best))
            if kind == "float64":
                known = builder.not_(run.is_nan(best))
                wins = builder.and_(known, builder.or_(wins, run.is_nan(element)))
            builder.store(builder.select(wins, number, builder.load(place)), place)
            return builder.select(wins, element, best)

        first = BIT(0) if kind == "bool" else _zero(kind)
        best = _fold(window, first, lambda element: element, step)
        return builder.load(place) if is_place else best

    return write


def _tested(is_any: bool) -> Write:
    def write(context: Any, window: Elements) -> Value:
        run, builder = window.run, window.run.builder
        kind = _kind(window.type)
        join = builder.or_ if is_any else builder.and_

        def truth(element: Value) -> Value:
            return write_bool(run, [kind], [element])

        return _fold(
            window, BIT(not is_any), truth, lambda so_far, one, _: join(so_far, truth(one))
        )

    return write


def _copy(context: Any, window: Window) -> Value:
    kind = _kind(window.type)
    made = new_window(window.run, made_type(window.type, kind, len(window.shape)), window.shape)
    with cgutils.loop_nest(window.run.builder, window.shape, I64) as indices:
        made.store(indices, window.load(indices))
    return view_of(made)


def _tolist(context: Any, window: Window) -> Value:
    run, builder = window.run, window.run.builder
    count = _count(window)
    element = NUMBA_KINDS[window.type.kind]
    head, words = new_list(run, kinds_of(element), count)
    with cgutils.loop_nest(builder, window.shape, I64) as (at,):
        word = run.to_bits(window.type.kind, window.load((at,)))
        builder.store(word, run.address(words, at, 8))
    offset = I64(ffi.offsetof("struct ss_list", "count"))
    place = builder.gep(head, [offset], inbounds=True)
    builder.store(count, builder.bitcast(place, I64.as_pointer()))
    return head


def _same(view: ViewType) -> types.Type:
    return NUMBA_KINDS[view.kind]


def _summed(view: ViewType) -> types.Type:
    return types.int64 if view.kind == "bool" else NUMBA_KINDS[view.kind]


def _copied(view: ViewType) -> types.Type:
    return made_type(view, _kind(view), view.ndim)


def _listed(view: ViewType) -> types.Type:
    if view.ndim != 1:
        raise refuse("tolist of an array of more than one axis: write list(row) for each row")
    return ListType(NUMBA_KINDS[view.kind])


# What there is of strings as well.
_OF_TEXTS = ("any", "all", "copy", "tolist")


def _method(name: str, result: Callable[[ViewType], types.Type], write: Write) -> None:
    @method(name).rule
    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        view = args[0]
        if not isinstance(view, ViewType):
            return None
        if len(args) != 1:
            raise refuse(f"{name} of an array takes nothing: write x.{name}()")
        if view.kind == "str" and name not in _OF_TEXTS:
            raise no_letters(name)

        def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            return write(context, _read_whole(window_of(context, builder, view, values[0])))

        return result(view), [view], code


NUMPY: dict[str, Any] = {}
"""Functions of arrays alone."""


def _reduction(name: str, result: Callable[[ViewType], types.Type], write: Write) -> None:
    """A method of arrays, which NumPy has as a function too."""
    _method(name, result, write)
    function = Core(f"np_{name}", f"np.{name} takes one array, or one list of numbers")
    NUMPY[name] = function

    @function.rule
    def rule(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
        if len(args) != 1 or not isinstance(args[0], ViewType | ListType):
            return None
        (of,) = args
        if name == "sum" and isinstance(of, ListType):
            raise refuse("np.sum of a list: write sum(x)")  # of none, what is it?
        kind = scalar_kind(element_of(of)) if isinstance(of, ListType) else _kind(of)
        if kind is None:
            return None
        if kind == "string" and name not in _OF_TEXTS:
            raise no_letters(f"np.{name}")
        view = of if isinstance(of, ViewType) else array_type(kind, 1, "plain")

        def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            if isinstance(of, ViewType):
                return write(context, _read_whole(window_of(context, builder, of, values[0])))
            return write(context, _Listed(List(context, builder, of, values[0]), view))

        return result(view), [of], code


_reduction("sum", _summed, lambda context, window: sum_of(window)[1])
_reduction("mean", lambda view: types.float64, _mean)
_reduction("var", lambda view: types.float64, _variance)
_reduction("std", lambda view: types.float64, _deviation)
_reduction("min", _same, _extremum("<=", False))
_reduction("max", _same, _extremum(">=", False))
_reduction("argmin", lambda view: types.int64, _extremum("<", True))
_reduction("argmax", lambda view: types.int64, _extremum(">", True))
_reduction("any", lambda view: types.boolean, _tested(True))
_reduction("all", lambda view: types.boolean, _tested(False))
NUMPY |= {"amin": NUMPY["min"], "amax": NUMPY["max"]}
_method("copy", _copied, _copy)
_method("tolist", _listed, _tolist)


@method("fill").rule
@of_values
def _fill(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    view, *given = args
    if not isinstance(view, ViewType):
        return None
    if len(given) != 1:
        raise refuse("fill of an array takes one number: write x.fill(0)")
    check_kind(given[0], view.kind, "an array", view.storage.name, keeps_strings=True)
    value = types.unliteral(given[0])

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        window = window_of(context, builder, view, values[0])
        array_windows.fill(window, convert(context, builder, values[1], value, view.kind))
        return context.get_dummy_value()

    return types.none, [view, value], code


# ---- reversed ----


@reversed_list.rule
def _reversed_view(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 1 or not isinstance(args[0], ViewType):
        return None

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        window = window_of(context, builder, sig.args[0], values[0])
        length, stride = window.shape[0], window.strides[0]
        last = builder.mul(builder.sub(length, I64(1)), stride)
        strides = [builder.neg(stride), *window.strides[1:]]
        offset = builder.add(window.offset, last)
        return view_of(replace(window, offset=offset, strides=strides))

    return args[0], args, code


@reversed_list.rule
def _reversed_range(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 1 or not isinstance(args[0], RangeType):
        return None

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        parts = cgutils.create_struct_proxy(sig.args[0])(context, builder, value=values[0])
        made = cgutils.create_struct_proxy(sig.args[0])(context, builder)
        last = builder.mul(builder.sub(parts.count, I64(1)), parts.step)
        made.start = builder.add(parts.start, last)
        made.step = builder.neg(parts.step)
        made.count = parts.count
        return made._getvalue()

    return args[0], args, code


# ---- np.dot ----

dot = Core("np_dot", "np.dot takes two arrays of one axis, of the same type")


@dot.rule
def _dot(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 2 or not all(isinstance(one, ViewType) and one.ndim == 1 for one in args):
        return None
    kinds = {_kind(one) for one in args}
    if len(kinds) != 1 or kinds <= {"bool", "string"}:
        raise refuse("np.dot takes arrays of the same numbers: write x * 1.0, or a loop")
    (kind,) = kinds
    first, second = args

    def code(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        left = window_of(context, builder, first, values[0])
        right = window_of(context, builder, second, values[1])
        differ = builder.icmp_signed("!=", left.shape[0], right.shape[0])
        left.run.fault_if(differ, ValueError)
        kept = made_type(first, kind, 1)
        # Where both are logged, the first one may lie in the buffer that the second one gets.
        if left.type.is_logged and right.type.is_logged:
            read = _read_whole(left)
            left = new_window(read.run, kept, read.shape)
            with cgutils.loop_nest(builder, read.shape, I64) as indices:
                left.store(indices, read.load(indices))
        right = _read_whole(right)
        multiply = builder.fmul if kind == "float64" else builder.mul
        add = builder.fadd if kind == "float64" else builder.add
        at = cgutils.alloca_once_value(builder, I64(0))

        def product(element: Value) -> Value:
            place = (builder.load(at),)
            builder.store(builder.add(place[0], I64(1)), at)
            return multiply(element, right.load(place))

        return _fold(
            left, _zero(kind), product, lambda total, element, _: add(total, product(element))
        )

    return SCALARS[kind], [first, second], code


# ---- math's functions of several numbers ----

fsum = Core("math_fsum", "math.fsum takes an array, a tuple or a list of numbers")
prod = Core("math_prod", "math.prod takes an array, a tuple or a list of numbers, and a start")
dist = Core("math_dist", "math.dist takes two arrays of one axis, or two tuples of numbers")

Each = Callable[[Value], None]


def _elements(of: types.Type) -> tuple[types.Type, Any] | None:
    """What a method of arrays, as a function, goes through: type of its elements, and a loop.

    ``fsum``, ``prod`` and ``dist`` take a tuple or list as well; None: of something else."""
    if isinstance(of, ViewType) and of.ndim == 1:

        def through_view(context: Any, builder: Any, value: Value, do: Each) -> None:
            window = _read_whole(window_of(context, builder, of, value))
            with cgutils.loop_nest(builder, window.shape, I64) as indices:
                do(window.load(indices))

        return NUMBA_KINDS[of.kind], through_view
    if isinstance(of, types.BaseTuple) and len(of) and _is_uniform(of):

        def through_tuple(context: Any, builder: Any, value: Value, do: Each) -> None:
            for part in cgutils.unpack_tuple(builder, value, len(of)):
                do(part)

        return types.unliteral(of[0]), through_tuple
    if isinstance(of, ListType):
        element = element_of(of)

        def through_list(context: Any, builder: Any, value: Value, do: Each) -> None:
            head = List(context, builder, of, value)
            with cgutils.for_range(builder, head.count(), intp=I64) as loop:
                do(head.get(loop.index))

        return element, through_list
    return None


def _is_uniform(of: types.Type) -> bool:
    return len({types.unliteral(one) for one in of}) == 1


def _float_of(code: Instructions, of: types.Type, value: Value) -> Value:
    kind = scalar_kind(of)
    assert kind is not None
    return code.to_float(value, kind)


@fsum.rule
def _fsum(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    found = _elements(args[0]) if len(args) == 1 else None
    if found is None or scalar_kind(found[0]) is None:
        return None
    element, through = found

    def write(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        code = Instructions(context, builder)
        words = cgutils.alloca_once(builder, F64, size=lib.SS_EXACT_SUM_WORDS)
        for at in range(lib.SS_EXACT_SUM_WORDS):
            builder.store(F64(0.0), builder.gep(words, [I64(at)], inbounds=True))

        def add(value: Value) -> None:
            failed = code.call("ss_math_fsum_add", I32, words, _float_of(code, element, value))
            code.fault_if(builder.icmp_unsigned("!=", failed, I32(0)), OverflowError)

        through(context, builder, values[0], add)
        return code.call_checked("ss_math_fsum_total", words)

    return types.float64, [args[0]], write


@prod.rule
def _prod(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    found = _elements(args[0]) if len(args) == 2 else None
    if found is None or scalar_kind(found[0]) is None or scalar_kind(args[1]) is None:
        return None
    element, through = found
    known = typing_context.resolve_value_type(arithmetic.mul)
    of = typing_context.resolve_function_type(known, (args[1], element), {}).return_type

    def write(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        total = cgutils.alloca_once_value(builder, values[1])

        def multiply(value: Value) -> None:
            _, product = resolved_call(
                context, builder, arithmetic.mul, (of, element), (builder.load(total), value)
            )
            builder.store(product, total)

        through(context, builder, values[0], multiply)
        return builder.load(total)

    return of, [args[0], of], write


@dist.rule
def _dist(typing_context: Any, args: Sequence[types.Type]) -> Meaning | None:
    if len(args) != 2:
        return None
    if all(isinstance(one, types.BaseTuple) for one in args):
        for part in (*args[0], *args[1]):
            require_scalar("math.dist", part)

        def write(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
            code = Instructions(context, builder)
            sides = []
            for of, value in zip(args, values, strict=True):
                parts = cgutils.unpack_tuple(builder, value, len(of))
                sides.append([_float_of(code, *one) for one in zip(of, parts, strict=True)])
            if len(sides[0]) != len(sides[1]):
                code.fault_if(BIT(1), ValueError)
            return norm(code, [builder.fsub(*one) for one in zip(*sides, strict=False)])

        return types.float64, list(args), write
    if not all(isinstance(one, ViewType) and one.ndim == 1 for one in args):
        return None
    first, second = args

    def write_views(context: Any, builder: Any, sig: Any, values: Sequence[Value]) -> Value:
        left = window_of(context, builder, first, values[0])
        right = window_of(context, builder, second, values[1])
        differ = builder.icmp_signed("!=", left.shape[0], right.shape[0])
        left.run.fault_if(differ, ValueError)
        apart = new_window(left.run, made_type(first, "float64", 1), left.shape)
        read = _read_whole(left)
        with cgutils.loop_nest(builder, read.shape, I64) as indices:
            apart.store(indices, _float_of(left.run, _same(first), read.load(indices)))
        read = _read_whole(right)
        with cgutils.loop_nest(builder, read.shape, I64) as indices:
            other = _float_of(left.run, _same(second), read.load(indices))
            apart.store(indices, builder.fsub(apart.load(indices), other))
        words = left.run.element_address("range", apart.type.storage, apart.offset)
        words = builder.bitcast(words, F64.as_pointer())
        return norm_of(left.run, words, apart.shape[0])

    return types.float64, [first, second], write_views


MATH: dict[str, Core] = {"fsum": fsum, "prod": prod, "dist": dist}
"""Of `math`."""
METHODS = ("fill", "sum", "mean", "std", "var", "min", "max", "argmin", "argmax", "any", "all")
"""Methods that need no arena."""
NUMPY["dot"] = dot
assert set(NUMPY) == set(OF_ARRAYS)

"""What unknown numbers compute is what the oracle's numbers compute, in every bit."""

# z3 carries no types.
# mypy: allow-untyped-calls, allow-untyped-defs

import itertools
import math
import operator
import random
import struct

import pytest
import z3

from specstream.columns.strings import string_code
from specstream.compiler.language import numbers
from specstream.compiler.language.bool_operators import OF_BOOLS
from specstream.compiler.language.numbers import Int64, Uint64
from specstream.compiler.language.text import Text
from specstream.compiler.oracle.rewrite_oracle import ORACLE_MATH, ORACLE_NUMPY
from specstream.verify.builtin_functions import BOTH
from specstream.verify.counterexample import known
from specstream.verify.library import OTHERS, SAME, meaning
from specstream.verify.paths import NotModelled, explore
from specstream.verify.values import FLOAT, Bool, Float, Int, String, Symbol, bits

INTS = [
    Int64(of) for of in (0, 1, -1, 2, -2, 3, 7, -7, 63, 64, 2**31, 2**53, 2**53 + 1, -(2**53) - 1)
]
INTS += [Int64(of) for of in (2**62, 2**63 - 1, -(2**63), -(2**63) + 1)]
UINTS = [Uint64(of) for of in (0, 1, 2, 63, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1)]
FLOATS = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    1.5,
    2.5,
    -2.5,
    3.0,
    1e300,
    5e-324,
    2.0**53,
    2.0**63,
    -(2.0**63),
]
FLOATS += [2.0**64, 0.1, -1e17, math.inf, -math.inf, math.nan]
BOOLS = [True, False]
NUMBERS = [*INTS, *UINTS, *FLOATS, *BOOLS]


def unknown(value):
    """A value as something that the solver has to compute with."""
    if isinstance(value, bool):
        return Bool(z3.BoolVal(value))
    if isinstance(value, float):
        return Float(z3.FPVal(value, FLOAT))
    if isinstance(value, Text):
        return String(bits(int(value.code)))
    return Int(bits(int(value)), not isinstance(value, Uint64))


def outcome(function, *values):
    """What the model makes of values: kind and value, or the class of what is raised; None: it is
    any value."""

    def run(path):
        try:
            return function(*values)
        except Exception as error:
            return type(error)
        except NotModelled:
            return None

    ways = [
        (one, found)
        for one, found in explore(run)
        if not z3.is_false(z3.simplify(z3.And(*one.guard, True)))
    ]
    if any(one.free for one, _ in ways):
        return None
    assert len(ways) == 1, "of values that are known there is one way"
    return plain(ways[0][1])


def plain(value):
    if isinstance(value, tuple):
        return tuple(map(plain, value))
    if isinstance(value, Int):
        exact = known(z3.simplify(value.term))
        return ("int", exact) if value.signed else ("uint", exact % 2**64)
    if isinstance(value, Symbol):
        value = known(z3.simplify(value.term))
    if isinstance(value, Uint64):
        return "uint", int(value) % 2**64  # min(-2, u) is a uint64 of -2 in the oracle
    if isinstance(value, bool) or value is None or isinstance(value, type):
        return value
    if isinstance(value, int):
        return "int", int(value)
    if isinstance(value, float):
        return "nan" if value != value else struct.pack("d", value)
    return value


def expected(function, *values):
    try:
        return plain(function(*values))
    except Exception as error:
        return type(error)


BINARY = {
    **{name: getattr(operator, name) for name in ("sub", "mul", "floordiv", "mod", "truediv")},
    **{name: getattr(operator, name) for name in ("add", "and_", "or_", "xor", "lshift", "rshift")},
    **{name: getattr(operator, name) for name in ("lt", "le", "gt", "ge", "eq", "ne")},
}


def compare(name, function, left, right):
    """Both sides unknown, then one of them."""
    if (
        isinstance(left, bool)
        and type(function) is type(operator.add)
        and name not in ("lt", "le", "gt", "ge", "eq", "ne", "truediv")
    ):
        function = next(
            (one for of, one in OF_BOOLS.items() if _NAMES.get(of.__name__) == name), function
        )
        made = meaning(function)
    else:
        made = function
    right_answer = expected(function, left, right)
    for one, other in (
        (unknown(left), unknown(right)),
        (unknown(left), right),
        (left, unknown(right)),
    ):
        found = outcome(made, one, other)
        assert found is None or found == right_answer, (name, left, right, found, right_answer)


_NAMES = {
    "Add": "add",
    "Sub": "sub",
    "Mult": "mul",
    "FloorDiv": "floordiv",
    "Mod": "mod",
    "LShift": "lshift",
    "RShift": "rshift",
    "BitAnd": "and_",
    "BitOr": "or_",
    "BitXor": "xor",
}


@pytest.mark.parametrize("name", BINARY)
def test_operators_on_hard_numbers(name):
    rng = random.Random(name)
    pairs = list(itertools.product(NUMBERS, NUMBERS))
    for left, right in rng.sample(pairs, 250):
        compare(name, BINARY[name], left, right)


def drawn(rng):
    kind = rng.choice(("int", "int", "small", "uint", "float", "near"))
    if kind == "int":
        return Int64(rng.getrandbits(64) - 2**63)
    if kind == "small":
        return Int64(rng.randrange(-70, 70))
    if kind == "uint":
        return Uint64(rng.getrandbits(64))
    if kind == "near":
        return float(rng.randrange(-(2**54), 2**54)) + rng.choice((0.0, 0.5))
    return struct.unpack("d", struct.pack("Q", rng.getrandbits(64)))[0]


def test_operators_on_random_numbers():
    rng = random.Random(7)
    for _ in range(600):
        name = rng.choice(list(BINARY))
        compare(name, BINARY[name], drawn(rng), drawn(rng))


@pytest.mark.long
def test_operators_on_many_random_numbers():
    rng = random.Random(8)
    for _ in range(100_000):
        name = rng.choice(list(BINARY))
        compare(name, BINARY[name], drawn(rng), drawn(rng))


UNARY = [
    *(
        (f"builtin {name}", numbers.ORACLE_BUILTINS[name])
        for name in ("int", "float", "bool", "abs")
    ),
    ("builtin round", numbers.ORACLE_BUILTINS["round"]),
    ("negate", numbers.negate),
    *((f"math.{name}", getattr(ORACLE_MATH, name)) for name in ("floor", "ceil", "trunc", "sqrt")),
    *(
        (f"math.{name}", getattr(ORACLE_MATH, name))
        for name in ("fabs", "isnan", "isinf", "isfinite")
    ),
    *(
        (f"np.{name}", getattr(ORACLE_NUMPY, name))
        for name in ("int64", "float32", "int8", "uint16")
    ),
]


@pytest.mark.parametrize(("name", "function"), UNARY, ids=[name for name, _ in UNARY])
def test_functions_of_one(name, function):
    made = meaning(function)
    rng = random.Random(name)
    for value in [*NUMBERS, *(drawn(rng) for _ in range(40))]:
        found = outcome(made, unknown(value))
        assert found is None or found == expected(function, value), (name, value)


@pytest.mark.parametrize("name", ["min", "max", "divmod"])
def test_functions_of_two(name):
    function = numbers.ORACLE_BUILTINS[name]
    made = meaning(function)
    rng = random.Random(name)
    for left, right in rng.sample(list(itertools.product(NUMBERS, NUMBERS)), 250):
        if isinstance(left, bool) or isinstance(right, bool):
            continue
        found = outcome(made, unknown(left), unknown(right))
        assert found is None or found == expected(function, left, right), (name, left, right)


def test_strings_are_equal_or_not():
    a, b, empty = (Text(string_code(of), of) for of in ("a", "b", ""))
    for left, right in itertools.product((a, b, empty), repeat=2):
        for compare_by in (operator.eq, operator.ne):
            found = outcome(compare_by, unknown(left), unknown(right))
            assert found == compare_by(left, right)
    assert outcome(meaning(bool), unknown(empty)) is False
    assert outcome(meaning(bool), unknown(Text(0))) is False
    assert outcome(meaning(bool), unknown(a)) is True


def test_every_builtin_has_a_meaning_or_keeps_its_own():
    """A new one without either is refused with unknown values, and so by name."""
    refused: set[str] = set()
    for name, function in numbers.ORACLE_BUILTINS.items():
        found = [*BOTH, *SAME, *OTHERS, *(numbers.ORACLE_BUILTINS[one] for one in refused)]
        assert any(function is one for one in found), f"{name} has no meaning: see library.py"

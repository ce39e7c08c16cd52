"""Terms of the solver as expressions of NuSMV, at another width.

Where an operator's integers have 64 bits, the expressions have ``width``. Elements of arrays and
containers are variables of their own, so that no array is left.
"""

# z3 carries no types.
# mypy: allow-untyped-calls

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import z3

from specstream.verify.paths import refuse

__all__ = ["Slots", "Terms"]

_WHOLE = 64
_LONG = 60  # letters of an expression that gets a name

_BINARY = {
    z3.Z3_OP_BADD: "+",
    z3.Z3_OP_BSUB: "-",
    z3.Z3_OP_BMUL: "*",
    z3.Z3_OP_BAND: "&",
    z3.Z3_OP_BOR: "|",
    z3.Z3_OP_BXOR: "xor",
    z3.Z3_OP_AND: "&",
    z3.Z3_OP_OR: "|",
    z3.Z3_OP_XOR: "xor",
    z3.Z3_OP_IMPLIES: "->",
}
_COMPARED = {
    z3.Z3_OP_SLT: "<",
    z3.Z3_OP_SLEQ: "<=",
    z3.Z3_OP_SGT: ">",
    z3.Z3_OP_SGEQ: ">=",
    z3.Z3_OP_ULT: "<",
    z3.Z3_OP_ULEQ: "<=",
    z3.Z3_OP_UGT: ">",
    z3.Z3_OP_UGEQ: ">=",
}
_UNSIGNED = (z3.Z3_OP_ULT, z3.Z3_OP_ULEQ, z3.Z3_OP_UGT, z3.Z3_OP_UGEQ)
_DIVIDED = {
    z3.Z3_OP_BSDIV: "/",
    z3.Z3_OP_BSDIV_I: "/",
    z3.Z3_OP_BUDIV: "/",
    z3.Z3_OP_BUDIV_I: "/",
    z3.Z3_OP_BSREM: "mod",
    z3.Z3_OP_BSREM_I: "mod",
    z3.Z3_OP_BUREM: "mod",
    z3.Z3_OP_BUREM_I: "mod",
}
_OF_UNSIGNED = (z3.Z3_OP_BUDIV, z3.Z3_OP_BUDIV_I, z3.Z3_OP_BUREM, z3.Z3_OP_BUREM_I)
_SHIFTED = {z3.Z3_OP_BSHL: "<<", z3.Z3_OP_BLSHR: ">>", z3.Z3_OP_BASHR: ">>"}


@dataclass
class Slots:
    """The variables that the elements of an array are.

    Attributes:
        names: of the elements, one behind the other.
        first: index of the first; of a dict the keys run on from the least one.
        zero: what lies beyond them, as an expression.
    """

    names: list[str]
    first: int
    zero: str


@dataclass
class Terms:
    """Makes expressions of terms.

    Attributes:
        width: bits of what has 64.
        leaves: expressions of constants of the solver, by name.
        arrays: slots of those that are arrays.
        codes: what codes of strings are printed as.
        defines: names that were given to shared expressions, with these.
    """

    width: int
    leaves: dict[str, str]
    arrays: dict[str, Slots]
    codes: dict[int, int]
    defines: dict[str, str] = field(default_factory=dict)
    # A term is kept with what it is printed as: the number of one that is gone is used again.
    _done: dict[int, tuple[Any, str]] = field(default_factory=dict)
    _elements: dict[tuple[int, int], tuple[Any, str]] = field(default_factory=dict)

    # ---- numbers ----

    def bits(self, size: int) -> int:
        """The width of what has so many bits in the operator."""
        if size > _WHOLE:
            return self.width + size - _WHOLE
        return self.width if size == _WHOLE else min(size, self.width)

    def type_of(self, sort: Any) -> str:
        """The type of a variable."""
        if sort == z3.BoolSort():
            return "boolean"
        if isinstance(sort, z3.BitVecSortRef):
            return f"signed word[{self.bits(sort.size())}]"
        return refuse("a float", "NuSMV has none: leave it out of what is exported")

    def zero_of(self, sort: Any) -> str:
        return "FALSE" if sort == z3.BoolSort() else self.number(0, self.bits(sort.size()))

    @staticmethod
    def number(value: int, width: int) -> str:
        sign = "-" if value < 0 else ""
        return f"{sign}0sd{width}_{abs(value)}"

    def _numeral(self, term: Any) -> int:
        value: int = term.as_signed_long()
        if term.size() == _WHOLE and value in self.codes:
            return self.codes[value]
        return value

    def _fits(self, value: int, size: int) -> bool:
        width = self.bits(size)
        most: int = 2 ** (width - 1)
        return -most <= value < most

    # ---- expressions ----

    def text(self, term: Any) -> str:
        """A term as an expression; one that is long gets a name."""
        known = self._done.get(term.get_id())
        if known is not None:
            return known[1]
        made = self._named(self._made(self._computed(term)))
        self._done[term.get_id()] = term, made
        return made

    def _named(self, text: str) -> str:
        return text if len(text) <= _LONG else self._define(text)

    def _define(self, text: str) -> str:
        for name, other in self.defines.items():
            if other == text:
                return name
        name = f"d_{len(self.defines) + 1}"
        self.defines[name] = text
        return name

    def _computed(self, term: Any) -> Any:
        """A number in place of an expression of numbers, if it fits."""
        children = term.children()
        if not children or not z3.is_bv(term) or not all(map(z3.is_bv_value, children)):
            return term
        found = z3.simplify(term)
        is_number = z3.is_bv_value(found) and self._fits(found.as_signed_long(), found.size())
        return found if is_number else term

    def _made(self, term: Any) -> str:
        if z3.is_true(term) or z3.is_false(term):
            return "TRUE" if z3.is_true(term) else "FALSE"
        if z3.is_bv_value(term):
            value = self._numeral(term)
            if not self._fits(value, term.size()):
                refuse(
                    f"the number {value} does not fit into {self.bits(term.size())} bits",
                    "give a larger width",
                )
            return self.number(value, self.bits(term.size()))
        if z3.is_const(term):
            return self._leaf(term)
        kind = term.decl().kind()
        if z3.is_select(term):
            return self.element(term.arg(0), term.arg(1))
        if kind == z3.Z3_OP_ITE:
            return "({} ? {} : {})".format(*map(self.text, term.children()))
        if kind == z3.Z3_OP_NOT:
            return f"!({self.text(term.arg(0))})"
        if kind in (z3.Z3_OP_EQ, z3.Z3_OP_DISTINCT):
            return self._equal(term, kind == z3.Z3_OP_EQ)
        if kind in _COMPARED:
            return self._compared(term, kind)
        if kind in _DIVIDED:
            return self._divided(term, kind)
        if kind in _BINARY:
            return f"({f' {_BINARY[kind]} '.join(map(self.text, term.children()))})"
        return self._of_bits(term, kind)

    def _leaf(self, term: Any) -> str:
        name = term.decl().name()
        if name not in self.leaves:
            refuse(
                f"{name.partition('!')[0]!r}, which has no finite meaning",
                "leave times, numbers of events, sums and what Python computes out of what is "
                "exported",
            )
        return self.leaves[name]

    def _beyond(self, left: Any, right: Any) -> int:
        """Whether the right one is a number beyond the width: 1 above, -1 below, 0 neither."""
        if not z3.is_bv_value(right) or self._fits(self._numeral(right), right.size()):
            return 0
        return 1 if self._numeral(right) > 0 else -1

    def _equal(self, term: Any, is_equal: bool) -> str:
        left, right = term.children()
        if self._beyond(left, right) or self._beyond(right, left):
            return "FALSE" if is_equal else "TRUE"
        return f"({self.text(left)} {'=' if is_equal else '!='} {self.text(right)})"

    def _compared(self, term: Any, kind: int) -> str:
        left, right = term.children()
        sign, is_less = _COMPARED[kind], _COMPARED[kind].startswith("<")
        for beyond, less in (
            (self._beyond(left, right), is_less),
            (-self._beyond(right, left), is_less),
        ):
            if beyond:
                return "TRUE" if (beyond > 0) == less else "FALSE"
        one, other = self.text(left), self.text(right)
        if kind in _UNSIGNED:
            one, other = f"unsigned({one})", f"unsigned({other})"
        return f"({one} {sign} {other})"

    def _divided(self, term: Any, kind: int) -> str:
        left, right = map(self.text, term.children())
        is_signed = kind not in _OF_UNSIGNED
        if not z3.is_bv_value(term.arg(1)):
            return self._by_hand(left, right, self.bits(term.size()), _DIVIDED[kind], is_signed)
        if is_signed:
            return f"({left} {_DIVIDED[kind]} {right})"
        return f"signed(unsigned({left}) {_DIVIDED[kind]} unsigned({right}))"

    def _by_hand(self, left: str, right: str, width: int, sign: str, is_signed: bool) -> str:
        """A long division: NuSMV ends where a divisor may be 0, also on a path that is not taken.
        What is divided by 0 is some number."""
        zero = self.number(0, width)
        sizes = [
            f"({one} < {zero} ? - {one} : {one})" if is_signed else one for one in (left, right)
        ]
        whole, by = (self._define(f"extend(unsigned({one}), 1)") for one in sizes)
        rest, digits = f"0ud{width + 1}_0", []
        for at in reversed(range(width)):
            taken = self._define(f"(({rest} << 1) | extend({whole}[{at}:{at}], {width}))")
            digits.append(f"word1({taken} >= {by})")
            rest = self._define(f"({taken} >= {by} ? {taken} - {by} : {taken})")
        if sign == "mod":
            found = self._define(f"signed({rest}[{width - 1}:0])")
            return f"({left} < {zero} ? - {found} : {found})" if is_signed else found
        found = self._define(f"signed({' :: '.join(digits)})")
        if not is_signed:
            return found
        return f"(({left} < {zero}) != ({right} < {zero}) ? - {found} : {found})"

    def _of_bits(self, term: Any, kind: int) -> str:
        if not z3.is_bv(term):
            refuse("a float", "NuSMV has none: leave it out of what is exported")
        one = term.arg(0)
        size, own = self.bits(term.size()), self.bits(one.size())
        if kind == z3.Z3_OP_BNEG:
            return f"(- {self.text(one)})"
        if kind == z3.Z3_OP_BNOT:
            return f"(! {self.text(one)})"
        if kind == z3.Z3_OP_SIGN_EXT:
            return self.text(one) if size == own else f"extend({self.text(one)}, {size - own})"
        if kind == z3.Z3_OP_ZERO_EXT:
            if size == own:
                return self.text(one)
            return f"signed(extend(unsigned({self.text(one)}), {size - own}))"
        if kind == z3.Z3_OP_EXTRACT and term.params()[1] == 0:
            if size == own:
                return self.text(one)
            return f"signed(unsigned({self.text(one)})[{size - 1}:0])"
        if kind in _SHIFTED:
            return self._shifted(term, kind)
        return refuse(
            f"{term.decl().name()}, which has no meaning at another width", "write it otherwise"
        )

    def _shifted(self, term: Any, kind: int) -> str:
        of, count = map(self.text, term.children())
        width = self.bits(term.size())
        if kind == z3.Z3_OP_BLSHR:
            of = f"unsigned({of})"
        cases = []
        for at in range(width):
            shifted = f"({of} {_SHIFTED[kind]} {at})"
            if kind == z3.Z3_OP_BLSHR:
                shifted = f"signed{shifted}"
            cases.append(f"{count} = {self.number(at, width)} : {shifted};")
        other = self.zero_of(term.sort())
        if kind == z3.Z3_OP_BASHR:  # the sign is all that is left
            other = f"({of} < {other} ? {self.number(-1, width)} : {other})"
        return f"case {' '.join(cases)} TRUE : {other}; esac"

    # ---- elements ----

    def element(self, array: Any, index: Any) -> str:
        """An element of an array: a variable, what was stored there, or a choice among these."""
        key = array.get_id(), index.get_id()
        known = self._elements.get(key)
        if known is not None:
            return known[1]
        made = self._named(self._element(array, index))
        self._elements[key] = (array, index), made
        return made

    def _element(self, array: Any, index: Any) -> str:
        if z3.is_store(array):
            before, at, value = array.children()
            apart = self._apart(index, at)
            if apart is not None:
                return self.text(value) if apart == 0 else self.element(before, index)
            is_there = f"{self.text(index)} = {self.text(at)}"
            return f"({is_there} ? {self.text(value)} : {self.element(before, index)})"
        if z3.is_const_array(array):
            return self.text(array.arg(0))
        if z3.is_app_of(array, z3.Z3_OP_ITE):
            test, yes, no = array.children()
            one, other = self.element(yes, index), self.element(no, index)
            return f"({self.text(test)} ? {one} : {other})"
        slots = self.arrays.get(array.decl().name())
        if slots is None:
            self._leaf(array)
            raise AssertionError(array)
        known = self._apart(index, None)
        if known is not None:
            at = known - slots.first
            return slots.names[at] if 0 <= at < len(slots.names) else slots.zero
        width, of = self.bits(index.size()), self.text(index)
        cases = [
            f"{of} = {self.number(slots.first + at, width)} : {name};"
            for at, name in enumerate(slots.names)
        ]
        return f"case {' '.join(cases)} TRUE : {slots.zero}; esac"

    def _apart(self, index: Any, other: Any) -> int | None:
        """How far an index is from another, or from 0; None: that depends."""
        given = index if other is None else index - other
        zeros = [
            (one, z3.BitVecVal(0, one.size()))
            for name in self.leaves
            if name.endswith("#start")
            for one in [z3.Const(name, z3.BitVecSort(_WHOLE))]
        ]
        found = z3.simplify(z3.substitute(given, *zeros))
        return found.as_signed_long() if z3.is_bv_value(found) else None

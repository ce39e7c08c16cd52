"""Builtins, math and NumPy over single numbers; random numbers; what a module's records hold."""

from __future__ import annotations

from support.generated.drawing import Drawing, Option

__all__ = ["Arithmetic"]


class Arithmetic(Drawing):
    def computed_int(self) -> str:
        a, b = self.int_(0), self.int_(0)
        x = self.float_(0)
        return self.pick(
            f"divmod({a}, {b} | 1)[{self.rng.randrange(2)}]",
            f"divmod({a}, {b})[0]",
            f"pow({a}, {b} & 3)",
            f"pow({a}, {b} & 63, 1009)",
            f"{self.pick('round', 'int', 'math.floor', 'math.ceil', 'math.trunc')}({x} % 1e6)",
            f"int({x})",
            f"round({a}, -2)",
            f"(({a}) & MASK).bit_count()",
            f"({a}).bit_length()",
            f"math.gcd({a} % 1000, {b} % 77)",
            f"math.lcm({a} % 100, {b} % 77)",
            f"math.isqrt(abs({a} % 100000))",
            f"math.comb({a} & 15, {b} & 7)",
            f"event.integer(-3, 1 + ({a} & 15), {self.rng.randint(0, 2)})",
            f"event.integer({a} % 9, {b} % 99, 1)",
            f"event.choice(5, {self.rng.randint(0, 2)})",
            f"np.{self.pick('abs', 'sign')}({a})",
            f"np.{self.pick('minimum', 'maximum')}({a}, {b})",
            f"np.clip({a}, -5, 70)",
            f"np.int8({a} % 100)",
            f"np.uint16({a})",
            f"sum([1, {a}, {b}])",
            f"max({a}, {b}, 3, key=lambda one: one % 7)",
            f"min({a}, {b}, i1)",
            f"int({x} == {x}) + len(PRIMES)",
            f"sorted(({a}, {b}, i0))[1]",
            f"int(np.isnan({x}))",
        )

    def computed_float(self) -> str:
        a, x, y = self.int_(0), self.float_(0), self.float_(0)
        return self.pick(
            f"round({x}, {self.pick('0', '1', '2', '-1', '5', f'({a} & 3)')})",
            f"divmod({x}, {y})[{self.rng.randrange(2)}]",
            f"pow({x}, 2.0)",
            f"event.normal({self.rng.randint(0, 2)})",
            f"math.{self.pick('hypot', 'remainder', 'nextafter', 'fmod')}({x}, {y})",
            f"math.frexp({x})[0]",
            f"math.modf({x})[{self.rng.randrange(2)}]",
            f"math.fsum(({x}, {y}, 0.1))",
            f"math.prod(({x}, {y}))",
            f"math.dist(({x}, 1.0), ({y}, 2.0))",
            f"math.{self.pick('ulp', 'erf', 'cbrt', 'expm1', 'degrees', 'gamma')}({x})",
            f"np.{self.pick('sqrt', 'rint', 'floor', 'sign', 'abs', 'ceil', 'square')}({x})",
            f"np.{self.pick('minimum', 'maximum')}({x}, {y})",
            f"np.clip({x}, -2.5, 100.0)",
            f"np.float32({x})",
            f"float({a} & 255)",
            f"sum([{x}, {y}, 0.5])",
            f"max({x}, {y}, 0.5)",
            f"min({x}, {y}, 7.0)",
            f"min(state.x, {y}, key=abs)",
        )

    def computed_bool(self) -> str:
        x = self.float_(0)
        return self.pick(
            # Of what is null Python's own says that None has no such method.
            f"({self.pick('state.x', 'f1', 'event.random(0)')}).is_integer()",
            f"math.isclose({x}, {self.float_(0)})",
            f"bool({self.int_(0)})",
            f"np.{self.pick('isnan', 'isfinite', 'isinf')}({x})",
            f"any(({self.bool_(0)}, {self.bool_(0)}))",
            f"all([{self.bool_(0)}, {self.bool_(0)}])",
        )

    def kept_int(self) -> list[Option]:
        """What records, enums and arrays of the module hold."""
        return [
            "CONFIG.limit",
            "Side.SELL.value",
            "POINT.x",
            "int(Tier.HIGH)",
            "Keeper.most",
            lambda: f"SHAPE[{self.at(2, 0)}, {self.at(5, 0)}]",
            lambda: f"{self.pick('min', 'max', 'sum')}(SHAPE[1])",
            lambda: f"RATES.get({self.int_(0)} % 8, -1)",
            lambda: f"LEVELS[{self.int_(0)} % 4]",
            lambda: f"NESTED[{self.pick(chr(39) + 'one' + chr(39), 'ONE', 'event.code')}][0]",
            lambda: f"(1 if {self.pick('event.on', 'i0 > 3')} else 2) * CONFIG.limit",
        ]

    def kept_float(self) -> list[Option]:
        return [
            "CONFIG.rate",
            "POINT.y",
            lambda: f"CURVE[{self.at(4, 0)}]",
            lambda: f"FEES.get({self.text(0)}, {self.float_(0)})",
            lambda: f"WEIGHTS[{self.int_(0)} % 3]",
            "sum(WEIGHTS)",
            "max(CURVE)",
        ]

    def kept_bool(self) -> list[Option]:
        return [
            lambda: f"({self.text(0)} in WORDS)",
            lambda: f"({self.int_(0)} in ODD)",
            lambda: f"({self.int_(0)} {self.pick('in', 'not in')} RATES)",
            lambda: f"(event.code == CONFIG.name and {self.bool_(0)})",
            lambda: f"({self.int_(0)} == Tier.LOW)",
        ]

"""Programs with timers, and with entries that expire."""

from __future__ import annotations

import re

from support.generated import Writer
from support.generated.containers import dict_of, set_of, tuple_of
from support.generated.drawing import BOOL, FLOAT, INT, TEXT, Option
from support.generated.kept import Field

__all__ = ["TimedWriter"]

TIMED = """
class Timed({base}):
    timers = ss.timers((int, str), limit={limit})
    fresh = ss.dict(int, int, limit=7, expire_after={soon})
    heard = ss.set(str, expire_after={later})
    recent = ss.dict((int, str), (int, float), expire_after={later})
    spotted = ss.set((int, bool), limit=6, expire_after={soon})


"""
EXPIRING = [
    *(Field("fresh", dict_of(INT, INT)), Field("heard", set_of(TEXT))),
    Field("recent", dict_of(tuple_of(INT, TEXT), tuple_of(INT, FLOAT))),
    Field("spotted", set_of(tuple_of(INT, BOOL))),
]
# What a function reads of an event, and what the one of a timer has instead.
INSTEAD = {
    "event.is_null('value')": "(i0 == 3)",
    'event.is_null("code")': "(timer.at > 9)",
    "event.is_null('code')": "(timer.at > 9)",
    "event.key": "timer.key[0]",
    "event.code": "timer.key[1]",
    "event.on": "is_on",
    "event.value": "timer.random(7)",
    "event.when": "timer.at",
    "event.price": "timer.at",
}
# They depend on the order in which events came.
OF_ARRIVAL = r"event\.(random|random_bits|integer|choice|normal)\b"
OTHERWISE = """
def of_random(draw):
    return 0.25 * draw


def of_random_bits(draw):
    return np.uint64(77 + draw)


def of_integer(low, high, draw):
    if high <= low:
        raise ValueError("an empty range")
    return low + draw % (high - low)


def of_choice(count, draw):
    return draw % count


def of_normal(draw):
    return draw - 0.5


"""


class TimedWriter(Writer):
    """Writes operators that have timers.

    Attributes:
        fires: it writes what runs when one does.
    """

    fires = False

    def kept(self) -> list[Field]:
        return super().kept() + EXPIRING

    def timer_key(self) -> str:
        code = self.pick("event.code", "ONE", "TEXTS[0]", "name")
        return f"({self.int_(0)} % 4, {code})"

    def timer_time(self) -> str:
        """Rarely one that has passed; and for a timer rarely one that is not later than its own."""
        far = self.pick("1", "2", "9", lambda: f"{self.int_(0)} % 12", lambda: f"{self.int_()} & 7")
        if not self.fires:
            return f"event.timestamp + {self.pick(far, far, far, '-3', '0')}"
        now = self.pick("timer.at", "timer.at", "timer.timestamp")
        return f"{now} + {self.pick(f'1 + ({far})', f'1 + ({far})', far)}"

    def more_ints(self, depth: int) -> list[Option]:
        return [
            *super().more_ints(depth),
            "len(state.timers)",
            "timer.at" if self.fires else "event.timestamp",
        ]

    def more_bools(self) -> list[Option]:
        return [
            *super().more_bools(),
            lambda: f"({self.timer_key()} {self.pick('in', 'not in')} state.timers)",
        ]

    def statement(self, indent: int, nesting: int) -> None:
        if not self.chance(0.3):
            super().statement(indent, nesting)
            return
        kind = self.rng.random()
        if kind < 0.55 and "timers" not in self.busy:
            self.put(indent, f"state.timers.set({self.timer_key()}, {self.timer_time()})")
        elif kind < 0.7 and "timers" not in self.busy:
            self.put(indent, f"state.timers.cancel({self.timer_key()})")
        elif kind < 0.73 and "timers" not in self.busy:
            self.put(indent, "if len(state.timers) > 5:")
            self.put(indent + 1, "state.timers.clear()")
        elif kind < 0.88:
            until = self.new("w")
            self.put(indent, f"{until} = state.timers.get({self.timer_key()})")
            self.put(indent, f"if {until} is not None:")
            self.put(indent + 1, f"i1 = int({until})")
        elif kind < 0.94 and nesting > 0 and self.turns <= 16:
            first, text = self.new("v"), self.new("v")
            with self.scope(), self.loop(8):
                self.put(indent, f"for {first}, {text} in state.timers:")
                self.ints.append(first)
                self.busy.add("timers")
                self.statement(indent + 1, nesting - 1)
                self.busy.discard("timers")
        else:
            # A list of them may be changed while it is gone through.
            if "timers" in self.busy or nesting <= 0:
                self.put(indent, "i1 = len(state.timers)")
                return
            at = self.new("v")
            self.put(indent, f"for {at} in [one for one in state.timers if one[0] & 1]:")
            change = self.pick(f"cancel({at})", lambda: f"set({at}, {self.timer_time()})")
            self.put(indent + 1, f"state.timers.{change}")

    # ---- the function of the timers ----

    def of_the_event(self, otherwise: str, choices: list[str]) -> str:
        return otherwise if self.fires else super().of_the_event(otherwise, choices)

    def more_declared(self, state: str) -> tuple[str, str, str]:
        features, asks_none, before = self.features, self.asks_none, self.lines
        self.features, self.asks_none = features - {"nulls", "texts"}, False
        self.fires, self.lines = True, []
        self.put(0, "def fires(state, timer, emit):")
        self.put(1, "i0, _ = timer.key")
        self.put(1, "is_on = timer.sequence % 2 == 0")
        self.put(1, "i1 = timer.at")
        self.put(1, "f0 = timer.random(0)")
        self.put(1, "f1 = 0.5")
        with self.scope():
            self.begin()
            for _ in range(self.rng.randint(1, 4)):
                self.statement(1, 2)
            self.end()
        self.put(1, "emit(timer.sequence, float(timer.timestamp), is_on, s=timer.key[1])")
        text = "\n".join(self.lines).replace("name = str(event.key)[-3:]", "name = timer.key[1]")
        for one, other in INSTEAD.items():
            text = text.replace(one, other)
        self.features, self.asks_none, self.lines = features, asks_none, before
        self.fires = False
        self.lines += [re.sub(r"\bevent\.", "timer.", text), "", ""]
        sizes = {"limit": self.rng.choice([3, 8, 50]), "soon": self.rng.choice([1, 5, 9])}
        declared = TIMED.format(base=state, later=self.rng.choice([4, 12, 30]), **sizes)
        return declared, "Timed", "\n    on_timer=fires,"

    def operator(self, statements: int, by_arrival: bool = True) -> str:
        """``by_arrival``: it may ask in which order the events came."""
        text = super().operator(statements)
        if by_arrival:
            return text
        made = re.sub(OF_ARRIVAL, r"of_\1", text.replace("event.sequence", "event.timestamp"))
        return made.replace("class Timed", OTHERWISE + "class Timed")

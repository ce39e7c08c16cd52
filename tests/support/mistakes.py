"""Operators as a new user writes them by mistake, and what they should have been.

Each is two functions in a text: the wrong one, whose line ends with ``# <-``, and the one that the
message leads to. Between them stand what the message says is wrong and what to write instead.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = """
import datetime
import math
import os
import random
import time

import numpy as np

import specstream as ss
from specstream.structures import add

COUNT = 0


class Account:
    balance = 3


ACCOUNT = Account()


class State(ss.State):
    total = ss.scalar(int)
    price = ss.scalar(float)
    label = ss.scalar(str)
    counts = ss.array(int, 8)
    grid = ss.array(float, (4, 4))
    work = ss.scratch(float, 4)
    locks = ss.locks(4)


"""
START = "def process(state, event, emit):\n"


@dataclass(frozen=True)
class Mistake:
    """One of them.

    Attributes:
        wrong: lines of the function, or whole functions.
        problem: what the message says is wrong.
        way_out: what it says to write.
        right: lines that do the same, or as near as operators come to it.
    """

    wrong: str
    problem: str
    way_out: str
    right: str


def module(text: str) -> str:
    """The module of an operator's lines."""
    if "def process(" in text:
        return HEADER + text
    return HEADER + START + "".join(f"    {line}\n" for line in text.splitlines())


MISTAKES = {
    "a field that is none": Mistake(
        "state.totl += 1  # <-",
        "state 'State' has no field 'totl'",
        "it has total, price",
        "state.total += 1",
    ),
    "a column that is none": Mistake(
        "state.total += event.qty  # <-",
        "the event has no column 'qty'",
        "it has key, x, on, name",
        "state.total += event.key",
    ),
    "a name that is none": Mistake(
        "total = event.key\nstate.total = totl  # <-",
        "name 'totl' is not defined",
        "write 'total' if that is meant",
        "total = event.key\nstate.total = total",
    ),
    "a new field": Mistake(
        "state.new = 1  # <-",
        "state 'State' has no field 'new'",
        "it has total, price",
        "state.total = 1",
    ),
    "a store into the event": Mistake(
        "event.key = 1  # <-",
        "an attribute of the event cannot be assigned",
        "only fields of the state can",
        "state.total = 1",
    ),
    "a field deleted": Mistake(
        "del state.total  # <-",
        "state.total cannot be deleted",
        "assign another value",
        "state.total = 0",
    ),
    "a global counted up": Mistake(
        "global COUNT  # <-\nCOUNT += 1",
        "a global statement cannot be compiled",
        "keep what changes in state fields",
        "state.total += 1",
    ),
    "print": Mistake(
        "print(event.key)  # <-",
        "print() cannot be used in an operator",
        "emit a row instead",
        "emit(event.key)",
    ),
    "a file": Mistake(
        "file = open('x')  # <-",
        "open() cannot be used",
        "operators do no input or output",
        "emit(event.key)",
    ),
    "a file in a with statement": Mistake(
        "with open('x') as file:  # <-\n    pass",
        "a with statement is for the locks of the state",
        "write with state.locks[i]",
        "with state.locks[1]:\n    pass",
    ),
    "the clock": Mistake(
        "state.total = int(time.time())  # <-",
        "module 'time' cannot be used",
        "use event.timestamp",
        "state.total = event.timestamp",
    ),
    "today": Mistake(
        "state.total = datetime.datetime.now().hour  # <-",
        "module 'datetime' cannot be used",
        "use event.timestamp",
        "state.total = event.timestamp // 3600",
    ),
    "the directory": Mistake(
        "state.total = len(os.listdir('.'))  # <-",
        "module 'os' cannot be used",
        "operators do no input or output",
        "state.total = event.key",
    ),
    "random": Mistake(
        "state.price = random.random()  # <-",
        "module 'random' cannot be used",
        "use event.random(i)",
        "state.price = event.random(0)",
    ),
    "random numbers of NumPy": Mistake(
        "state.price = np.random.rand()  # <-",
        "np.random cannot be used",
        "use event.random(i)",
        "state.price = event.random(0)",
    ),
    "recursion": Mistake(
        "def fact(n):\n    if n <= 1:\n        return 1\n    return n * fact(n - 1)  # <-\n\n\n"
        + START
        + "    state.total = fact(event.key)\n",
        "'fact' calls itself",
        "write the recursion as a loop",
        "product = 1\nfor n in range(2, event.key + 1):\n    product *= n\nstate.total = product",
    ),
    "yield": Mistake(
        "yield event.key  # <-", "yield cannot be compiled", "emit(...)", "emit(event.key)"
    ),
    "a class inside": Mistake(
        "class Point:  # <-\n    x = 1",
        "a class cannot be compiled",
        "keep data in state fields",
        "state.total = 1",
    ),
    "an import inside": Mistake(
        "import math  # <-\nstate.price = math.sqrt(2.0)",
        "an import cannot be compiled",
        "import at the top of the module",
        "state.price = math.sqrt(2.0)",
    ),
    "a column that emits lacks": Mistake(
        "emit(value=1)  # <-",
        "emit has no column 'value'",
        "expected emit(n, x)",
        "emit(n=1)",
    ),
    "too many values": Mistake(
        "emit(1, 0.5, 2)  # <-", "emit takes 2 values, got 3", "expected emit(n, x)", "emit(1, 0.5)"
    ),
    "too few values": Mistake(
        "emit(x=0.5)  # <-", "emit lacks 'n'", "expected emit(n, x)", "emit(x=0.5, n=1)"
    ),
    "a tuple emitted": Mistake(
        "emit((1, 0.5))  # <-",
        "emitted column 'n' gets a tuple",
        "like emit(n, x)",
        "emit(1, 0.5)",
    ),
    "a variable that is a tuple emitted": Mistake(
        "row = (event.key, 0.5)\nemit(row)  # <-",
        "emitted column 'n' gets a tuple",
        "like emit(n, x)",
        "n, x = (event.key, 0.5)\nemit(n, x)",
    ),
    "a float emitted as an int": Mistake(
        "emit(event.x)  # <-",
        "emitted column 'n' is declared int and gets float64",
        "write int(x)",
        "emit(int(event.x))",
    ),
    "a text emitted as an int": Mistake(
        "emit(event.name)  # <-",
        "emitted column 'n' is declared int and gets string",
        "emit it into a column that is declared str",
        "emit(len(event.name))",
    ),
    "None in a column without nulls": Mistake(
        "emit(None)  # <-",
        "is declared int and may get None",
        "ss.nullable(...)",
        "emit(0, None)",
    ),
    "the event emitted": Mistake(
        "emit(event)  # <-",
        "emitted column 'n' is declared int and gets the event",
        "one number",
        "emit(event.key)",
    ),
    "a helper that returns nothing": Mistake(
        "def fee(x):\n    y = x + 1\n\n\n" + START + "    state.total = fee(event.key)  # <-\n",
        "field 'total' is declared int and gets ",
        "store one number",
        "def fee(x):\n    return x + 1\n\n\n" + START + "    state.total = fee(event.key)\n",
    ),
    "a helper without an argument": Mistake(
        "def fee(x, y):\n    return x + y\n\n\n" + START + "    state.total = fee(1)  # <-\n",
        "fee takes (x, y)",
        "each parameter once",
        "def fee(x, y):\n    return x + y\n\n\n" + START + "    state.total = fee(1, 2)\n",
    ),
    "an async helper": Mistake(
        "async def fee(x):  # <-\n    return x\n\n\n" + START + "    state.total = fee(1)\n",
        "'fee' is an async function",
        "leave async out",
        "def fee(x):\n    return x\n\n\n" + START + "    state.total = fee(1)\n",
    ),
    "a text and a number added": Mistake(
        "state.total = event.name + 1  # <-", "", "", "state.total = len(event.name) + 1"
    ),
    "a text compared with a number": Mistake(
        "if event.name > event.key:  # <-\n    state.total += 1",
        "> of a string",
        "event alone",
        "if len(event.name) > event.key:\n    state.total += 1",
    ),
    "a float in an int field": Mistake(
        "state.total = event.key / 2  # <-",
        "field 'total' is declared int and gets float64",
        "write int(x)",
        "state.total = int(event.key / 2)",
    ),
    "half of one added to an int": Mistake(
        "state.total += 0.5  # <-",
        "field 'total' is declared int and gets float64",
        "write int(x)",
        "state.price += 0.5",
    ),
    "a text in a float field": Mistake(
        "state.price = event.name  # <-",
        "field 'price' is declared float and gets string",
        "keep it in a field",
        "state.label = event.name",
    ),
    "a number in a text field": Mistake(
        "state.label = event.key  # <-",
        "field 'label' is declared str and gets int64",
        "keep it in a field of numbers",
        "state.total = event.key",
    ),
    "no text in a text field": Mistake(
        "state.label = None  # <-",
        "field 'label' is declared str and gets none",
        'write "" for no string',
        'state.label = ""',
    ),
    "a method of a text of the state": Mistake(
        "if state.label.startswith('a'):  # <-\n    state.total += 1",
        "startswith of a string",
        "compute what is needed of the event alone",
        "if event.name.startswith('a'):\n    state.label = event.name",
    ),
    "an array replaced": Mistake(
        "state.counts = 0  # <-",
        "field 'counts' is an array and cannot be replaced",
        "state.counts[i] = x",
        "state.counts[:] = 0",
    ),
    "too many indices": Mistake(
        "state.counts[1, 2] = 3  # <-",
        "2 indices for an array of 1 axes",
        "use fewer",
        "state.counts[1] = 3",
    ),
    "a float as an index": Mistake(
        "state.counts[event.x] = 3  # <-",
        "an index has type float64",
        "write int(x)",
        "state.counts[int(event.x) % 8] = 3",
    ),
    "a text as an index": Mistake(
        "state.counts[event.name] += 1  # <-",
        "an index is a string",
        "hash it, like (x & 65535) % n",
        "state.counts[(event.name & 65535) % 8] += 1",
    ),
    "an array as a number": Mistake(
        "state.total = state.counts  # <-",
        "field 'total' is declared int and gets an array",
        "one number",
        "state.total = sum(state.counts)",
    ),
    "the truth of an array": Mistake(
        "if state.counts:  # <-\n    state.total = 1",
        "an array has no truth",
        "test len(x) > 0, or an element",
        "if len(state.counts) > 0:\n    state.total = 1",
    ),
    "a value returned": Mistake(
        "state.total += 1\nif event.on:\n    return state.total  # <-\nreturn 0",
        "the operator returns a value",
        "emit(...) it instead",
        "state.total += 1\nemit(state.total)",
    ),
    "a name that may be undefined": Mistake(
        "if event.on:\n    fee = 1\nstate.total = fee  # <-",
        "'fee' may be undefined here",
        "assign 'fee' on every path before",
        "fee = 0\nif event.on:\n    fee = 1\nstate.total = fee",
    ),
    "a number called": Mistake(
        "state.total = event.key(1)  # <-",
        "'key' cannot be called",
        "plain functions",
        "state.total = event.key",
    ),
    "a function that math has not": Mistake(
        "state.price = math.sqroot(event.x)  # <-",
        "module 'math' has no 'sqroot'",
        "write math.sqrt",
        "state.price = math.sqrt(abs(event.x))",
    ),
    "an attribute by its text": Mistake(
        "state.total = getattr(event, 'key')  # <-",
        "getattr() cannot be used",
        "name the field",
        "state.total = event.key",
    ),
    "a column as an item": Mistake(
        "state.total = event['key']  # <-",
        "an item of the event cannot be read",
        "write event.name",
        "state.total = event.key",
    ),
    "a field as an item": Mistake(
        "state['total'] = 1  # <-",
        "an item of the state cannot be assigned",
        "write state.name = value",
        "state.total = 1",
    ),
    "a product of matrices": Mistake(
        "state.price = state.grid[0] @ state.grid[1]  # <-",
        "the @ operator cannot be compiled",
        "write the loops out",
        "for i in range(4):\n    state.price += state.grid[0, i] * state.grid[1, i]",
    ),
    "a loop over a number": Mistake(
        "for i in event.key:  # <-\n    state.total += i",
        "int64 cannot be gone through",
        "range(...)",
        "for i in range(event.key):\n    state.total += i",
    ),
    "a loop over half": Mistake(
        "for i in range(event.x):  # <-\n    state.total += 1",
        "range takes integers, and gets float64",
        "write int(x)",
        "for i in range(int(event.x)):\n    state.total += 1",
    ),
    "a loop over the state": Mistake(
        "for field in state:  # <-\n    state.total += 1",
        "the state cannot be gone through",
        "an array of the state",
        "for one in state.counts:\n    state.total += one",
    ),
    "the length of a number": Mistake(
        "state.total = len(event.key)  # <-",
        "len does not take (int64)",
        "numbers",
        "state.total = len(state.counts)",
    ),
    "a number taken apart": Mistake(
        "a, b = event.key  # <-\nstate.total = a",
        "int64 cannot be taken apart",
        "a tuple",
        "a, b = event.key, 1\nstate.total = a",
    ),
    "a tuple of another length": Mistake(
        "a, b = (1, 2, 3)  # <-\nstate.total = a",
        "a tuple of 3 is taken apart into 2",
        "as many names as it has values",
        "a, b, c = (1, 2, 3)\nstate.total = a",
    ),
    "bytes": Mistake(
        "mark = b'abc'  # <-\nstate.total = 1",
        "the constant b'abc' cannot be compiled",
        "use int, float, bool or str",
        "if event.name == 'abc':\n    state.total = 1",
    ),
    "a number of more than 64 bits": Mistake(
        "state.total = 100000000000000000000  # <-",
        "does not fit 64 bits",
        "smaller number",
        "state.total = 1000000000000000000",
    ),
    "a null asked of a column without": Mistake(
        "if event.is_null('key'):  # <-\n    state.total = 1",
        "column 'key' is not nullable",
        "ss.nullable(...)",
        "if event.is_null('maybe'):\n    state.total = 1",
    ),
    "an object of a class": Mistake(
        "state.total = ACCOUNT.balance  # <-",
        "'ACCOUNT' is Account, which cannot be compiled",
        "use numbers",
        "state.total = 3",
    ),
    "bits of a float": Mistake(
        "state.total = event.x & 1  # <-",
        "& needs integers",
        "write int(x)",
        "state.total = int(event.x) & 1",
    ),
    "values by a star": Mistake(
        "row = (1, 0.5)\nemit(*row)  # <-",
        "a starred expression cannot be compiled",
        "write the values out",
        "row = (1, 0.5)\nemit(row[0], row[1])",
    ),
    "values by two stars": Mistake(
        "emit(**{'n': 1})  # <-", "a call with **", "write the arguments out", "emit(n=1)"
    ),
    "eval": Mistake(
        "state.total = eval('1')  # <-",
        "eval() cannot be used",
        "write the code out",
        "state.total = 1",
    ),
    "unsigned in signed": Mistake(
        "state.total = event.random_bits(0)  # <-",
        "gets uint64",
        "write np.int64(x)",
        "state.total = np.int64(event.random_bits(0))",
    ),
    "no lock": Mistake(
        "with state.counts[1]:  # <-\n    state.total += 1",
        "int64 is no lock",
        "with state.locks[i]",
        "with state.locks[1]:\n    state.total += 1",
    ),
    "the state counted by a text": Mistake(
        "add(state, 'totl', 1)  # <-", "totl", "total", "add(state, 'total', 1)"
    ),
}

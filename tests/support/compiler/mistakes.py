"""Operators as a new user writes them by mistake, and what they should have been.

Each is two functions in a text: the wrong one, whose line ends with ``# <-``, and the one that the
message leads to. Between them stand what the message says is wrong and what to write instead. It
is one list, in the order in which people get to know the language.
"""

from __future__ import annotations

from dataclasses import dataclass

HEADER = """
import collections
import datetime
import enum
import functools
import itertools
import json
import logging
import math
import os
import random
import statistics
import time
import uuid
from typing import NamedTuple

import numpy as np

import specstream as ss
from specstream.structures import add

COUNT = 0
SEEN = {3: 1}
TEXTS = ["abc"]
now = datetime.datetime.now
log = logging.getLogger("operators")


class Account:
    balance = 3


ACCOUNT = Account()


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


NAMES = {one.value: one.name for one in Level}


class Alert(NamedTuple):
    level: str
    value: float


class Point(ss.Record):
    x: float
    y: float


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
        hint: what it says to write.
        right: lines that do the same, or as near as operators come to it.
        gives: the rows that these emit, by what Python does; None: nobody has said.
    """

    wrong: str
    problem: str
    hint: str
    right: str
    gives: list[tuple[int, float | None]] | None = None


def module(text: str) -> str:
    """The module of an operator's lines."""
    if "def process(" in text:
        return HEADER + text
    return HEADER + START + "".join(f"    {line}\n" for line in text.splitlines())


MISTAKES = {
    "a field that is none": Mistake(
        "state.totl += 1  # <-",
        "state 'State' has no field 'totl'",
        "did you mean 'total'?",
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
        "define it before the operator (did you mean 'total'?)",
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
        "operators cannot do input or output",
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
        "operators cannot do input or output",
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
        "field 'total' is declared int and gets None",
        "a function without return",
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
        "state.total = event.name + 1  # <-",
        "+ between a string and int64",
        "int(x), float(x) or len(x)",
        "state.total = len(event.name) + 1",
    ),
    "a text compared with a number": Mistake(
        "if event.name > event.key:  # <-\n    state.total += 1",
        "> between a string and int64",
        "int(x), float(x) or len(x)",
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
        "if state.label.upper() == 'A':  # <-\n    state.total += 1",
        "upper of a string",
        "compute what you need from the event alone",
        "if event.name.upper() == 'A':\n    state.label = event.name",
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
        "the event has no method 'key'",
        "read a column as event.x",
        "state.total = event.key",
    ),
    "a function that math has not": Mistake(
        "state.price = math.sqroot(event.x)  # <-",
        "module 'math' has no 'sqroot'",
        "write math.sqrt",
        "state.price = math.sqrt(abs(event.x))",
    ),
    "an attribute by its text": Mistake(
        "state.total = getattr(event, 'k' + 'ey')  # <-",
        "getattr(..., 'k' + 'ey') names no attribute",
        "must be known when the operator is declared",
        "state.total = event.key",
    ),
    "a column as an item": Mistake(
        "state.total = event['key']  # <-",
        "the event has no items",
        "write event.key",
        "state.total = event.key",
    ),
    "a field as an item": Mistake(
        "state['total'] = 1  # <-",
        "the state has no items",
        "write state.total",
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
        "int64 cannot be iterated over",
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
        "the state cannot be iterated over",
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
        "int64 cannot be unpacked",
        "a tuple",
        "a, b = event.key, 1\nstate.total = a",
    ),
    "a tuple of another length": Mistake(
        "a, b = (1, 2, 3)  # <-\nstate.total = a",
        "a tuple of 3 is unpacked into 2",
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
        "row = [1, 2]\nemit(max(*row))  # <-",
        "a star in a call of max",
        "max(xs)",
        "row = [1, 2]\nemit(max(row))",
    ),
    "values by two stars": Mistake(
        "rows = [{'n': 1}]\nemit(**rows[0])  # <-",
        "a call with **",
        "write the arguments out",
        "rows = [{'n': 1}]\nemit(n=rows[0]['n'])",
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
        "int64 is not a lock",
        "with state.locks[i]",
        "with state.locks[1]:\n    state.total += 1",
    ),
    "the state counted by a text": Mistake(
        "add(state, 'totl', 1)  # <-", "totl", "total", "add(state, 'total', 1)"
    ),
    "a column that is spelt wrong": Mistake(
        "state.total = event.keys  # <-",
        "the event has no column 'keys'",
        "did you mean 'key'?",
        "state.total = event.key",
    ),
    "a column that is new": Mistake(
        "event.fee = 0.5  # <-",
        "an attribute of the event cannot be assigned",
        "keep the value in a local name",
        "fee = 0.5\nstate.price = fee",
    ),
    "a column asked as of a dict": Mistake(
        "state.total = event.get('key', 0)  # <-",
        "the event has no method 'get'",
        "read a column as event.x",
        "state.total = event.key",
    ),
    "a field asked as of a dict": Mistake(
        "state.total = state.get('price')  # <-",
        "the state has no method 'get'",
        "as state.x",
        "state.price = state.price",
    ),
    "the length of the state": Mistake(
        "state.total = len(state)  # <-",
        "len does not take (the state)",
        "like len(state.x)",
        "state.total = len(state.counts)",
    ),
    "an array that grows": Mistake(
        "state.counts.append(event.key)  # <-",
        "an array of the state has no method 'append'",
        "keep a count in the state",
        "state.counts[state.total % len(state.counts)] = event.key\nstate.total += 1",
    ),
    "an array sorted": Mistake(
        "state.counts.sort()  # <-",
        "an array has no method 'sort'",
        "sorted(x) makes a sorted list",
        "for i, one in enumerate(sorted(state.counts)):\n    state.counts[i] = one",
    ),
    "nothing stored": Mistake(
        "state.total = None  # <-",
        "field 'total' is declared int and gets None",
        "give it a number",
        "state.total = 0",
    ),
    "what emit gives": Mistake(
        "row = emit(1)\nstate.total = row  # <-",
        "gets None",
        "like emit",
        "emit(1)\nstate.total = 1",
    ),
    "a text emitted as a float": Mistake(
        "emit(1, f'{event.x:.2f}')  # <-",
        "emitted column 'x' is declared nullable float and gets string",
        "a column that is declared str",
        "emit(1, round(event.x, 2))",
    ),
    "a text of the state kept": Mistake(
        "text = f'{state.total}'  # <-\nstate.price = float(text)",
        "a formatted string cannot be used here",
        "a column that is declared str",
        "state.price = float(state.total)",
    ),
    "a text compared with less": Mistake(
        "if event.key < 'a':  # <-\n    state.total = 1",
        "< between a string and int64",
        "int(x)",
        "if event.name < 'a':\n    state.total = 1",
    ),
    "a sum of two numbers": Mistake(
        "state.total = sum(event.key)  # <-",
        "sum() of one value takes an array, list, tuple or generator",
        "write a + b",
        "state.total = sum((event.key, 1))",
    ),
    "a sum of a grid": Mistake(
        "state.price = sum(state.grid)  # <-",
        "sum() of an array of 2 axes",
        "write x.sum()",
        "state.price = state.grid.sum()",
    ),
    "an exponential of NumPy": Mistake(
        "state.price = np.exp(event.x)  # <-",
        "np.exp is not compiled: its last bit depends on NumPy's version",
        "write math.exp",
        "state.price = math.exp(event.x)",
    ),
    "an array of NumPy": Mistake(
        "seen = np.zeros(4)  # <-\nstate.price = seen[0]",
        "np.zeros is not compiled",
        "a list, like [0.0] * n",
        "seen = [0.0] * 4\nstate.price = seen[0]",
    ),
    "a choice of NumPy": Mistake(
        "state.price = np.where(event.on, 1.0, 2.0)  # <-",
        "np.where is not compiled",
        "a if condition else b",
        "state.price = 1.0 if event.on else 2.0",
    ),
    "linear algebra": Mistake(
        "state.price = np.linalg.norm(state.grid[0])  # <-",
        "np.linalg is not compiled",
        "write it out as a loop",
        "state.price = math.sqrt(sum(v * v for v in state.grid[0]))",
    ),
    "groups of the library": Mistake(
        "for key, group in itertools.groupby(state.counts):  # <-\n    state.total += key",
        "itertools.groupby cannot be used in an operator",
        "compare with the key before",
        "before = -1\nfor key in state.counts:\n    if key != before:\n"
        "        state.total += key\n    before = key",
    ),
    "a counter that is passed on": Mistake(
        "seen = collections.Counter(state.counts)\nother = seen  # <-\nstate.total = other[0]",
        "'seen' is a Counter only under this name",
        "write dict(seen) to pass it on",
        "seen = collections.Counter(state.counts)\nother = dict(seen)\n"
        "state.total = other.get(0, 0)",
    ),
    "a mean of the library": Mistake(
        "state.price = statistics.mean(state.grid[0])  # <-",
        "'statistics.mean' is from the library 'statistics'",
        "write sum(x) / len(x)",
        "state.price = sum(state.grid[0]) / len(state.grid[0])",
    ),
    "what a type is": Mistake(
        "if type(state.total) is int:  # <-\n    state.total = 1",
        "cannot be compiled",
        "compare with ==",
        "if isinstance(event.key, int):\n    state.total = 1",
    ),
    "the type that a field has": Mistake(
        "if type(state.total) == int:  # <-\n    state.total = 1",
        "'type' is a builtin, and is not compiled",
        "leave the test out: types are fixed by the schema",
        "state.total = 1\nemit(state.total)",
        [(1, None), (1, None)],
    ),
    "whether a field is an int": Mistake(
        "if isinstance(state.total, int):  # <-\n    state.total = 1",
        "isinstance() cannot be used in an operator",
        "leave the test out: types are fixed by the schema",
        "state.total = 1\nemit(state.total)",
        [(1, None), (1, None)],
    ),
    "a function marked as pure inside of a lambda": Mistake(
        "@ss.pure  # <-\ndef size(text: str) -> int:\n    return len(text)\n\n\n"
        + START
        + "    more = lambda text: size(text) + 1\n    emit(more(event.name) + state.total)\n",
        "'size' is marked @ss.pure, so Python calls it before the operator runs, and it is called",
        "call it with values of the event, in the operator's function",
        "@ss.pure\ndef size(text: str) -> int:\n    return len(text)\n\n\n"
        + START
        + "    emit(size(event.name) + 1 + state.total)\n",
        [(4, None), (1, None)],
    ),
    "the clock by another name": Mistake(
        "state.total = now().hour  # <-",
        "'now' is from the library 'datetime'",
        "use event.timestamp",
        "state.total = event.timestamp // 3600",
    ),
    "a text of a number of the state": Mistake(
        "text = str(state.total)  # <-\nstate.total = len(text)",
        "str() cannot stand here",
        "give text of that to a column of str",
        "text = str(event.key)",
    ),
    "an identifier": Mistake(
        "state.total = uuid.uuid4().int  # <-",
        "module 'uuid' cannot be used",
        "event.sequence name an event uniquely",
        "state.total = event.sequence",
    ),
    "a log": Mistake(
        "log.info('seen')  # <-",
        "'log' writes to a log",
        "emit a row instead",
        "emit(1)",
    ),
    "a log by its module": Mistake(
        "logging.info('seen')  # <-",
        "module 'logging' cannot be used",
        "emit a row instead",
        "emit(1)",
    ),
    "a global counted up without saying so": Mistake(
        "COUNT += 1  # <-",
        "'COUNT' is assigned in this function, so it is not the one of the module",
        "a field of the state",
        "state.total += 1",
    ),
    "a global that is kept in": Mistake(
        "SEEN[event.key] = 1  # <-",
        "is frozen, and is changed here",
        "what changes in the state",
        "state.counts[event.key] = 1",
    ),
    "a default that is kept in": Mistake(
        "def seen(x, before=[]):\n    before.append(x)  # <-\n    return len(before)\n\n\n"
        + START
        + "    state.total = seen(event.key)\n",
        "a default, or a list, dict, set or array of a module is frozen",
        "what changes in the state",
        "def seen(state):\n    state.counts[0] += 1\n    return state.counts[0]\n\n\n"
        + START
        + "    state.total = seen(state)\n",
    ),
    "a default that is kept in by an item": Mistake(
        "def seen(x, before={}):\n    before[x] = 1  # <-\n    return len(before)\n\n\n"
        + START
        + "    state.total = seen(event.key)\n",
        "a default, or a list, dict, set or array of a module is frozen",
        "what changes in the state",
        "def seen(state, x):\n    state.counts[x] = 1\n    return sum(state.counts)\n\n\n"
        + START
        + "    state.total = seen(state, event.key)\n",
    ),
    "a global that a text is kept in": Mistake(
        "def seen(text):\n    TEXTS.append(text.lower())  # <-\n    return len(TEXTS)\n\n\n"
        + START
        + "    state.total = seen(event.name)\n",
        "a default, or a list, dict, set or array of a module is frozen",
        "what changes in the state",
        "state.total += 1",
    ),
    "a cache": Mistake(
        "@functools.lru_cache\ndef fee(x):\n    return x + 1\n\n\n"
        + START
        + "    state.total = fee(state.total)  # <-\n",
        "keeps its results in a cache",
        "leave the decorator out",
        "def fee(x):\n    return x + 1\n\n\n" + START + "    state.total = fee(state.total)\n",
    ),
    "a decorator": Mistake(
        "def twice(f):\n    @functools.wraps(f)\n    def inner(x):\n        return 2 * f(x)\n\n"
        "    return inner\n\n\n@twice  # <-\ndef fee(x):\n    return x + 1\n\n\n"
        + START
        + "    state.total = fee(event.key)\n",
        "'fee' has a decorator that replaces it with another function",
        "leave the decorator out",
        "def fee(x):\n    return 2 * (x + 1)\n\n\n" + START + "    state.total = fee(event.key)\n",
    ),
    "a generator of one's own": Mistake(
        "def firsts(n):\n    for i in range(n):\n        yield i  # <-\n\n\n"
        + START
        + "    for i in firsts(event.key):\n        state.total += i\n",
        "yield cannot be compiled",
        "emit(...)",
        "def firsts(n):\n    return [i for i in range(n)]\n\n\n"
        + START
        + "    for i in firsts(event.key):\n        state.total += i\n",
    ),
    "two functions that call each other": Mistake(
        "def even(n):\n    return n == 0 or odd(n - 1)\n\n\n"
        "def odd(n):\n    return n != 0 and even(n - 1)  # <-\n\n\n"
        + START
        + "    state.total = even(event.key)\n",
        "'even' calls itself",
        "write the recursion as a loop",
        "state.total = event.key % 2 == 0",
    ),
    "a document of the event": Mistake(
        "order = json.loads(event.name)\nstate.price += order['price'] * state.total  # <-",
        "the type of its result is not known",
        "annotate it where it is assigned",
        "if event.name == '{}':\n    price: float = json.loads(event.name)['price']\n"
        "    state.price = price",
    ),
    "a list of two types": Mistake(
        "items = [1, 'a']  # <-\nstate.total = len(items)",
        "a list of int64 gets string",
        "values of one type",
        "items = (1, 'a')\nstate.total = len(items)",
    ),
    "a list of nothing": Mistake(
        "best = max([], default=3)  # <-\nstate.total = best",
        "what a list, dict or set holds is not known here",
        "like x: list[float] = []",
        "prices: list[int] = []\nstate.total = max(prices, default=3)",
    ),
    "rows turned into columns": Mistake(
        "rows = [[event.x, 1.0], [2.0, 3.0]]\nfor at, column in enumerate(zip(*rows)):  # <-\n"
        "    emit(at, column[1])",
        "a star in a call of zip",
        "loop over the columns with for i in range(len(rows[0]))",
        "rows = [[event.x, 1.0], [2.0, 3.0]]\n"
        "for i in range(len(rows[0])):\n    emit(i, rows[1][i])",
        [(0, 2.0), (1, 3.0), (0, 2.0), (1, 3.0)],
    ),
    "rows turned into columns in a generator": Mistake(
        "rows = [[event.x, 1.0], [2.0, 3.0]]\n"
        "emit(0, max(a * b for a, b in zip(*rows, strict=True)))  # <-",
        "a star in a call of zip",
        "loop over the columns with for i in range(len(rows[0]))",
        "rows = [[event.x, 1.0], [2.0, 3.0]]\n"
        "emit(0, max(rows[0][i] * rows[1][i] for i in range(len(rows[0]))))",
        [(0, 5.0), (0, 3.0)],
    ),
    "a star of a list that is mapped": Mistake(
        "rows = [[event.x, 1.0], [2.0, 3.0]]\nemit(0, max(map(max, *rows)))  # <-",
        "a star in a call of map",
        "over the columns, with for i in range(len(rows[0]))",
        "rows = [[event.x, 1.0], [2.0, 3.0]]\n"
        "emit(0, max(max(rows[0][i], rows[1][i]) for i in range(len(rows[0]))))",
        [(0, 3.0), (0, 3.0)],
    ),
    "a pattern of str": Mistake(
        "match (event.name, event.key):\n    case (str() as w, k) if k > 0:  # <-\n"
        "        emit(k)\n    case _:\n        emit(-1)",
        "str() is a pattern of a class, which cannot be compiled",
        "write case [w, k] if k > 0: types are fixed",
        "match (event.name, event.key):\n    case [w, k] if k > 0:\n        emit(k)\n"
        "    case _:\n        emit(-1)",
        [(3, None), (-1, None)],
    ),
    "a pattern of a record": Mistake(
        "p = Point(event.x, 1.0)\nmatch p:\n    case Point(x=2.5):  # <-\n        emit(1)\n"
        "    case _:\n        emit(2)",
        "Point(x=2.5) is a pattern of a class",
        "test what it has: if p.x == 2.5: ...",
        "p = Point(event.x, 1.0)\nif p.x == 2.5:\n    emit(1)\nelse:\n    emit(2)",
        [(1, None), (2, None)],
    ),
    "the rest of a dict in a pattern": Mistake(
        "d = {1: event.key, 2: 5}\nmatch d:\n    case {1: k, **rest} if len(rest) > 0:  # <-\n"
        "        emit(k + rest[2])\n    case _:\n        emit(-1)",
        "{1: k, **rest} is a pattern of a dict",
        "for **rest, {k: v for k, v in d.items() if k != 1}",
        "d = {1: event.key, 2: 5}\nrest = {k: v for k, v in d.items() if k != 1}\n"
        "if 1 in d and len(rest) > 0:\n    emit(d[1] + rest[2])\nelse:\n    emit(-1)",
        [(8, None), (5, None)],
    ),
    "a named tuple made of the state": Mistake(
        "a = Alert('high', event.x - state.price)  # <-\nemit(1, a.value)",
        "'Alert' is a named tuple",
        "write a plain tuple, (level, value), whose first part is x[0]",
        "a = ('high', event.x - state.price)\nemit(1, a[1])",
        [(1, 2.5), (1, 1.0)],
    ),
    "a text that is another one on one way": Mistake(
        "s = event.name\nif event.on:\n    s = s + '!'  # <-\nemit(len(s))",
        "'s' is assigned in two places",
        "give each its own name, like t = s.lower() if event.x else s",
        "s = event.name\nt = s + '!' if event.on else s\nemit(len(t))",
        [(4, None), (0, None)],
    ),
    "a text that a loop makes": Mistake(
        "s = ''\nfor c in event.name:\n    if c.isalpha():\n        s += c  # <-\nemit(len(s))",
        "'s' is assigned in two places",
        "make it in a plain function at module level, s = f(event.x)",
        "def letters(text):\n    s = ''\n    for c in text:\n        if c.isalpha():\n"
        "            s += c\n    return s\n\n\n" + START + "    s = letters(event.name)\n"
        "    emit(len(s))\n",
        [(3, None), (0, None)],
    ),
    "a function inside texts": Mistake(
        "def clean(t):\n    return len(t.strip())  # <-\nemit(clean(event.name))",
        "'t' is an argument of 'clean', a function inside 'process'",
        "define it at module level, def clean(t): ...",
        "def clean(t):\n    return len(t.strip())\n\n\n" + START + "    emit(clean(event.name))\n",
        [(3, None), (0, None)],
    ),
    "a list of texts that is joined, and raised": Mistake(
        "names = [event.name, 'x']\nif event.key < 0:\n    raise ValueError(names)\n"
        "emit(len(', '.join(names)))  # <-",
        "needs the texts of 'names', a list that is built while the event runs",
        "write the list there, like ', '.join([event.x, event.y])",
        "if event.key < 0:\n    raise ValueError([event.name, 'x'])\n"
        "emit(len(', '.join([event.name, 'x'])))",
        [(6, None), (3, None)],
    ),
    "a list of texts that is filled, and joined": Mistake(
        "names = []\nif event.on:\n    names.append(event.name)\nemit(len(', '.join(names)))  # <-",
        "needs the texts of 'names', a list that is built while the event runs",
        "make the text in a plain function at module level, text = f(event.x, event.y)",
        "def named(on, name):\n    names = []\n    if on:\n        names.append(name)\n"
        "    return ', '.join(names)\n\n\n"
        + START
        + "    text = named(event.on, event.name)\n    emit(len(text))\n",
        [(3, None), (0, None)],
    ),
    "a name given inside of what Python computes": Mistake(
        "if (text := event.name.strip()).startswith('a'):\n    state.label = text  # <-",
        "'text' is assigned inside an expression that Python computes",
        "assign it first, in its own statement: text = ...",
        "text = event.name.strip()\nif text.startswith('a'):\n    state.label = text",
    ),
    "a text of the state beside one of the event": Mistake(
        "a = event.name\nif event.on:\n    a = event.name.lower()\n"
        "emit(1 if state.label.upper() == a else 0)  # <-",
        "upper of a string: this one does not depend on the event alone",
        "compute what you need from the event alone",
        "a = event.name\nif event.on:\n    a = event.name.lower()\n"
        "emit(1 if state.label == a else 0)",
        [(0, None), (1, None)],
    ),
    "a text under another name": Mistake(
        "a = event.name\nif event.on:\n    a = event.name.lower()\n"
        "z = a\nemit(len(z.strip()))  # <-",
        "'a' is assigned in two places",
        "give each its own name, like t = a.lower() if event.x else a",
        "z = event.name.lower() if event.on else event.name\nemit(len(z.strip()))",
        [(3, None), (0, None)],
    ),
    "one of two texts": Mistake(
        "t = 'Ab' if state.total else 'Bcd'\nstate.total += 1\nemit(len(t.lower()))  # <-",
        "'t' is one of several texts, and which one is known only when the event runs",
        "apply it to each of them where it is chosen, 'Ab'.lower(...) and 'Bcd'.lower(...)",
        "t = len('Ab'.lower()) if state.total else len('Bcd'.lower())\nstate.total += 1\nemit(t)",
        [(3, None), (2, None)],
    ),
    "one of two texts, or that of the event": Mistake(
        "t = 'Ab'\nif state.total:\n    t = 'Bcde'\nstate.total += 1\nemit(int(t.isupper()))  # <-",
        "'t' is one of several texts",
        "'Ab'.isupper(...) and 'Bcde'.isupper(...)",
        "t = 'AB'.isupper()\nif state.total:\n    t = 'Bcde'.isupper()\n"
        "state.total += 1\nemit(int(t))",
        [(1, None), (0, None)],
    ),
    "the text of a caught exception kept": Mistake(
        "try:\n    state.total += 1 // event.key\nexcept ZeroDivisionError as e:\n"
        "    state.label = str(e)  # <-\nemit(len(event.name))",
        "str(e) reads a caught exception, which can only be emitted as text",
        'write a text there, like state.x = "ValueError"',
        "try:\n    state.total += 1 // event.key\nexcept ZeroDivisionError:\n"
        "    state.label = 'ZeroDivisionError'\nemit(1 if state.label else 0)",
        [(0, None), (1, None)],
    ),
    "the class of a caught exception kept": Mistake(
        "try:\n    state.total += 1 // event.key\nexcept ZeroDivisionError as e:\n"
        "    state.label = type(e).__name__  # <-\nemit(len(event.name))",
        "type(e) reads a caught exception",
        "emit it, emit(type(e).__name__), or catch each class in a clause of its own",
        "try:\n    state.total += 1 // event.key\nexcept ZeroDivisionError:\n"
        "    state.label = 'ZeroDivisionError'\nemit(1 if state.label else 0)",
        [(0, None), (1, None)],
    ),
    "the name of a member that is found by a number": Mistake(
        "lv = Level(state.total + 1)\nstate.label = lv.name  # <-",
        "has no attribute 'name' in an operator",
        "NAMES = {one.value: one.name for one in Level}, and write NAMES[x]",
        "lv = Level(state.total + 1)\nstate.label = NAMES[lv]\n"
        "emit(1 if state.label == 'LOW' else 2)",
        [(1, None), (1, None)],
    ),
    "the value of a member that is found by a number": Mistake(
        "lv = Level(state.total + 1)\nstate.counts[0] = lv.value  # <-",
        "has no attribute 'value' in an operator",
        "a member of an IntEnum is the int itself: write x",
        "lv = Level(state.total + 1)\nstate.counts[0] = lv\nemit(state.counts[0])",
        [(1, None), (1, None)],
    ),
    "a default that is an int among floats": Mistake(
        "def most(x, k=2):  # <-\n    if x > k:\n        k = x\n    return k\n\n\n"
        + START
        + "    emit(most(event.key + state.total), most(event.x + state.price))\n",
        "k is int here and float elsewhere",
        "where most() is called with floats, give it a float for its default as well, like "
        "most(x, k=2.0)",
        "def most(x, k=2):\n    if x > k:\n        k = x\n    return k\n\n\n"
        + START
        + "    emit(most(event.key + state.total), most(event.x + state.price, k=2.0))\n",
        [(3, 2.5), (2, 2.0)],
    ),
}

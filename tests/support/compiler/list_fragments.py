"""What people do with lists of an event, as statements of an operator.

Each has the state's `n` (int), `x` (float) and `a` (array of 16 ints), the event's
`text`, `csv` and `pair`, and the locals `out` and `mine` (str).
"""

from __future__ import annotations

FRAGMENTS = r"""
for p in ("a", "bb", "x"):
    if event.text.startswith(p):
        out += 7
        break
else:
    out -= 1

for i, p in enumerate(PIECES):
    if p in event.text:
        state.a[i] += 1
    out += event.csv.count(p[0]) + (p == event.pair)

for w in event.text.split():
    out += len(w)
    if w in ("a", "bb"):
        state.n += 1

for w in event.text.lower().split(" "):
    w = w.strip(".,!")
    if not w:
        continue
    if w.startswith("b") or w[0] == "x":
        state.a[len(w) % 16] += 1

for c in event.text:
    if c in "aeiou":
        out += 1
    elif c.isdigit():
        state.n += int(c)
    elif c == mine:
        out += 100

for i, w in enumerate(event.text.split()):
    state.a[i % 16] += len(w) * i

for i, w in enumerate(event.text.split(), start=1):
    out += i * w.count('a')

for c in reversed(event.pair):
    out = (out * 31 + ord(c)) % 1009

for p in event.csv.split(","):
    state.n += int(p)

for p in event.csv.split(","):
    try:
        state.n += int(p)
    except ValueError:
        state.n += 100
        break
else:
    out += 7

for kv in event.pair.split(";"):
    k, v = kv.split(":")
    state.a[len(k) % 16] += int(v)

for kv in event.pair.split(";"):
    k, _, v = kv.partition(":")
    if k == "a" and v:
        out += int(v)

for kv in event.pair.split(";"):
    parts = kv.split(":")
    if len(parts) == 2:
        out += len(parts[1])
        key = parts[0].upper()
        if key == mine:
            state.n += 1

for w, v in zip(event.text.split(), event.csv.split(',')):
    out += len(w) * len(v)

for w in sorted(event.text.split()):
    out = out * 3 + len(w)
    mine = w

for w in sorted(set(event.text.split()), key=len):
    out += len(w)

for w in event.text.splitlines():
    out += 1

for w in re.findall(r"[a-z]+", event.text):
    out += len(w)

for k, v in re.findall(r"(\w+):(\d+)", event.pair):
    state.a[len(k) % 16] += int(v)

for w in event.text.split():
    if len(w) > state.n % 5:
        state.n += 1
        break

for w in event.text.split():
    for v in event.csv.split(','):
        if w == v:
            out += 1

for w in event.text.split():
    out += 2
for w in event.csv.split(','):
    out += w.isdigit()

for x in map(str.strip, event.csv.split(",")):
    out += len(x)

for kv in event.pair.split(";"):
    match kv.split(":"):
        case ["a", n]:
            out += int(n)
        case [k, *rest] if k.isalpha():
            out += len(rest)
            mine = k

for kv in event.pair.split(";"):
    for part in kv.split(":"):
        out += part == "a"
        mine = part

for w in event.text.split():
    for c in w:
        out += c == "b"

for line in event.text.splitlines():
    for w in line.split():
        w = w.strip("!.").lower()
        if w.startswith("b") or w == mine:
            out += len(line) * len(w)
            mine = w

for kv in event.pair.split(";"):
    state.n += 1
    for part in kv.split(":"):
        try:
            out += int(part) + len(kv)
        except ValueError:
            out += 100
            break

for kv in event.pair.split(";"):
    for i, part in enumerate(kv.split(":")):
        for c in part:
            if c.isalpha():
                out += i + ord(c) + len(part)
        state.n += int(part) if part.isdigit() else 0

for kv in event.pair.split(";"):
    parts = kv.split(":")
    if len(parts) > 1 and parts[1] == mine:
        out += 1
    mine = parts[state.n % len(parts)]
    out += mine in parts

for kv in event.pair.split(";"):
    parts = kv.split(":")
    parts.append("end")
    parts.pop(0)
    mine = parts[0]

for kv in event.pair.split(";"):
    key, *values = kv.split(":")
    for value in values:
        out += value == "1"
    if key.startswith("b"):
        mine = values[-1]

out += sum(part == mine for kv in event.pair.split(";") for part in kv.split(":"))

rows = [kv.split(":") for kv in event.pair.split(";")]
out += len(rows)

words = event.text.split()
out += len(words)
if words:
    out += len(words[0])
for w in words[1:]:
    out += len(w)

words = event.text.split()
if mine in words:
    out += 1
out += words.count(mine)

words = event.text.split()
words.sort()
out += len(words)

words = event.text.split()
words.append('end')
words.reverse()
mine = words[0]
out += len(words)

words = event.text.split()
last = words.pop()
if last == 'a':
    out += len(words)

words = event.text.split()
other = words
other.append('x')
out += len(words)

words = event.text.split()
i = state.n % 4
if i < len(words):
    mine = words[i]
    out += words[i] == words[-1]

words = event.text.split()
mine = words[-1]

words = event.text.split()
mine = words[state.n % 3]

words: list[str] = event.text.split()
out += words.index('a')

words = []
if event.text:
    words = event.text.split()
out += len(words)

nums = [int(p) for p in event.csv.split(',')]
state.n += sum(nums)
out += max(nums)

nums = [int(p) for p in event.csv.split(',') if p]
nums.append(state.n % 7)
nums.sort()
out += nums[0]

nums = list(map(float, event.csv.split(',')))
for i, y in enumerate(nums):
    state.x += y * (i + state.n % 3)

pairs = [(w, len(w)) for w in event.text.split()]
for w, n in pairs:
    if w == mine:
        out += n
    mine = w

words = event.text.split()
for i in range(len(words)):
    out += i * len(words[i])

words = event.text.split()
i = 0
while i < len(words):
    mine = words[i]
    i += 2

words = event.text.split()
while words:
    w = words.pop(0)
    if w == mine:
        out += len(words)

words = event.text.split()
if len(words) > 1:
    words[0] = 'new'
    del words[1]
    mine = words[0]
out += len(words)

words = event.text.split()
more = words + ['end']
mine = more[-1]
out += more == ['a', 'end']

words = event.text.split()
if not words:
    return
mine = ', '.join(words)

words = event.text.split()
word = words[0] if words else 'none'
out += len(word)

words = event.text.split()
if (n := len(words)) > 2:
    out += n + state.n % 2

words = event.text.split()
for a, b in zip(words, words[1:]):
    out += a == b
    mine = b

long = max(event.text.split(), key=len)
out += len(long)

mine = max(event.text.split(), key=len, default='none')

for c in list(event.text):
    out += c == 'a'

for c in str(len(event.text)):
    out += int(c)

for w in event.text.split() + ['end']:
    out += len(w)
    mine = w

for w in event.text.split() if state.n % 2 else event.csv.split(','):
    out += 1
    mine = w

for w in tuple(event.text.split()):
    out += w == 'a'

for w in event.text.split():
    emit(len(w), out, w)
    if w == 'x':
        return

for w in event.text.split():
    if w in words_of(event.csv):
        out += 1

for w in event.text.split():
    out += known(w, state.n)

for w in event.text.split():
    def longer(n):
        return len(w) > n
    out += longer(state.n % 3)

out += len(set(event.text.split()) & set(event.csv.split(',')))

out += state.n % 2 and len(set(event.text.split()))

for w in event.text.split():
    try:
        out += 10 // len(w.strip('a'))
    except ZeroDivisionError:
        out += 1000
    finally:
        state.n += 1

for w in event.text.split():
    match w:
        case 'a' | 'bb':
            out += 1
        case other if other.isdigit():
            out += int(other)

for w in event.text.split():
    word = w.lower()
    if word == mine:
        out += 1
    elif word.endswith('.'):
        mine = word[:-1]

total = 0.0
for p in event.csv.split(','):
    total += float(p)
out += int(total)

xs = []
for p in event.csv.split(','):
    if p.isdigit():
        xs.append(int(p))
out += sum(xs)

keys = [kv.split(':')[0] for kv in event.pair.split(';')]
for k in keys:
    out += k == mine

for k, v in (kv.split(':') for kv in event.pair.split(';')):
    out += len(k) - len(v)

params = {k: v for k, v in (kv.split(':') for kv in event.pair.split(';'))}
out += int(params.get('a', '0'))

lengths = {}
for w in event.text.split():
    lengths.setdefault(len(w), []).append(w)
for n, group in lengths.items():
    out += n * len(group)

a, b = map(int, event.pair.split(':'))
out += a * 2 + b

a, b = (int(p) for p in event.pair.split(':'))
out += a - b

a, b = event.pair.split(':')
mine = b
out += len(a)

first, *rest = event.text.split()
mine = first
for w in rest:
    out += len(w)

*most, last = event.text.split(' ')
if last.isdigit():
    out += len(most)
if 'a' in most:
    out += 3

first, *_, last = event.csv.split(',')
out += len(first) + 10 * len(last)

[a, b, *rest] = event.text.split()
rest.append(a)
out += len(rest)
mine = b

match event.text.split():
    case ["a", n]:
        out += len(n)
    case ["a" | "bb", x, *more]:
        out += len(more) * 10
        mine = x
    case [only]:
        out += only.isdigit()
    case []:
        out -= 1
    case _:
        out += 5

match event.pair.split(":"):
    case [k, v] if v.isdigit():
        out += int(v)
    case [k, *v]:
        out += len(k) + len(v)

words = event.text.split()
match words:
    case [first, *_, last] if first == last:
        out += 1
    case [first, *_]:
        mine = first

match state.n % 2, event.text:
    case 0, text if text.startswith("a"):
        out += 1
    case 1, text:
        out += len(text)

out += sum(state.a[len(w) % 16] for w in event.text.split())

out += sum(state.a[len(w.strip('!')) % 16] for w in event.text.split() if w.isalpha())

seen = {w for w in event.text.split()}
out += len(seen)
out += mine in seen

seen = {w.lower() for w in event.text.split()}
for w in seen:
    out += len(seen)

seen = set(event.text.split())
seen.add('new')
out += len(seen)

counts = {}
for w in event.text.split():
    counts[w] = counts.get(w, 0) + 1
out += max(counts.values(), default=0)

lengths = {w: len(w) for w in event.text.split()}
out += sum(lengths.values())
if mine in lengths:
    out += 1

out += any(w == mine for w in event.text.split())

out += len([w for w in event.text.split() if w != mine])

out += len([c for w in event.text.split() for c in [len(w), state.n] if c > 2])

out += sum(1 for w in event.text.split() if w == mine and w.isalpha())

out += min((len(w) + state.n % 2 for w in event.text.split()), default=-1)

out += sum(i * state.a[i % 16] for i, w in enumerate(event.text.split()) if w)

out += sum(int(p) * state.a[0] for p in event.csv.split(','))

state.n += total_of(event.csv.split(','), state.n)

out += len(parts_of(event)) + state.n % 3

for w in pieces(event.text):
    out += len(w)
""".strip().split("\n\n")

HELPERS = """
import collections
import math
import re
import specstream as ss


PIECES = ["a", "bb", "1", ":"]


class S(ss.State):
    n = ss.scalar(int)
    x = ss.scalar(float)
    a = ss.array(int, 16)


def total_of(parts, start):
    for part in parts:
        if part == "2":
            start += 1
    return start + len(parts)


def parts_of(event):
    return event.text.split("a")


def words_of(text):
    return text.split(",")


def known(word, n):
    return n % 2 if word == "a" else n % 3


@ss.pure
def pieces(text: str) -> list[str]:
    return re.split("[ab]", text)


"""
EVENT = {"text": str, "csv": str, "pair": str}
EMITS = {"out": int, "n": int, "mine": str}


MINE = '    mine = "a" if state.n % 2 else "bb"'


def function(name: str, body: list[str]) -> str:
    """The text of an operator's function that does these, one after the other."""
    lines = [f"def {name}(state, event, emit):", "    out = 0", MINE]
    for fragment in body:
        lines += ["    " + line for line in fragment.splitlines()]
    return "\n".join([*lines, "    emit(out, state.n, mine)", "", ""])

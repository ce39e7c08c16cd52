# Each rule in a few lines, to be read beside its definition; all of it in 200.
# ruff: noqa
# mypy: ignore-errors
# fmt: off
"""An executable model of the stream verbs, from their definitions alone (V-1 to V-15, truth, machines).

A verb is a function of s, its state for one key; o, its options; and one row of each input. It gives the rows it
sends. Keys, queues, paths and phases are the Model's. An error leaves a half-done phase: go back to a deepcopy."""
from collections import Counter, deque
from dataclasses import dataclass
from enum import Enum
from types import SimpleNamespace
Words = Enum("Words", "ANY OTHERWISE")
ANY, OTHERWISE = Words.ANY, Words.OTHERWISE             # enum members stay themselves in a deepcopy
DEFAULTS = dict(key=(), step=1, last=False, period=None, limit=None, leave=None, to_all=None, forget=None,
                start=None, make=lambda: None)
@dataclass
class Node:
    name: str
    verb: str
    inputs: tuple[str, ...]
    options: dict
class State:
    def __init__(self, node, o):
        self.name, self.now, self.queues = node.name, None, [deque() for _ in node.inputs]   # a queue an argument
        self.count, self.kept, self.given = 0, None, None
        self.value, self.record, self.latest = o.start, o.make(), {}
def see(row):                                           # a row as functions of the user get it
    return SimpleNamespace(**row)
def sends(o, value):                                    # one column: a bare value, several: a tuple
    return [dict(zip(o.columns, (value,) if len(o.columns) == 1 else value, strict=True))]

def map_(s, o, *rows):
    """V-1 map, V-8 zip map: one row; f takes one argument a stream."""
    return sends(o, o.f(*map(see, rows)))
def with_columns(s, o, row):
    """V-1: keeps the other columns; those of the same name are replaced in place, new ones come behind."""
    return [row | sends(o, o.f(see(row)))[0]]
def filter_(s, o, *rows):
    """V-1 filter, V-8 zip filter (keeps the first's columns): a result that is no bool is an error."""
    result = o.f(*map(see, rows))
    if not isinstance(result, bool):
        raise TypeError(f"{s.name}: a filter gives a bool, not {result!r}")
    return [rows[0]] if result else []
def accumulate(s, o, row):
    """V-2: row i is f(row i-1, event i), the first f(start, event 0)."""
    before = s.value if len(o.columns) == 1 else see(sends(o, s.value)[0])
    s.value = o.f(before, see(row))
    return sends(o, s.value)
def skip(s, o, row):
    """V-3: all but the first n."""
    s.count += 1
    return [row] if s.count > o.n else []
def take(s, o, row):
    """V-3: the first n."""
    s.count += 1
    return [row] if s.count <= o.n else []
def freeze(s, o, row):
    """V-3: with every event the first event's row."""
    s.kept = row if s.kept is None else s.kept
    return [s.kept]
def every(s, o, row):
    """V-4: events 0, n, 2n; or the first, then the first so long after the last given. kept: what `last` may give."""
    due = s.count % o.n == 0 if o.period is None else s.given is None or s.now - s.given >= o.period
    s.count, s.given, s.kept = s.count + 1, s.now if due else s.given, None if due else row
    return [row] if due else []
def last(s, o, row):
    """V-5: nothing but, at the end, the last row, which is kept."""
    s.kept = row
    return []
def start_with(s, o, row):
    """V-5: the row n times before the first event's, in its phase."""
    s.count += 1
    return [o.row] * (o.times if s.count == 1 else 0) + [row]
def zip_rows(s, o, *rows):
    """V-8: all columns; a column that occurs in more than one input gets its input's suffix."""
    times = Counter(column for row in rows for column in row)
    return [{column + (suffix if times[column] > 1 else ""): value
             for row, suffix in zip(rows, o.suffixes, strict=True) for column, value in row.items()}]
def filter_by(s, o, event, flag):
    """V-7: synchronous as zip; an unknown flag is not true."""
    (value,) = flag.values()
    return [event] if value is True else []
def merge(s, o, row):
    """V-9: rows in order of phase, path, argument: that order is the Model's."""
    return [row]
def window(s, o, row):
    """V-10: at events n-1, n-1+step, ...: f(the last n rows, oldest first); None: no row."""
    s.count, s.value = s.count + 1, [*(s.value or []), row][-o.n:]
    result = o.f([see(r) for r in s.value]) if s.count >= o.n and (s.count - o.n) % o.step == 0 else None
    return [] if result is None else sends(o, result)
def across(s, o, row):
    """V-14: a row for each one, over the latest row of every key; what it replaces is removed first."""
    key = tuple(row[column] for column in o.key)
    if key in s.latest:
        o.remove(s.record, see(s.latest.pop(key)))
    if o.leave is None or not o.leave(see(row)):
        s.latest[key] = row
        o.add(s.record, see(row))
    return sends(o, o.result(s.record))
def keyed(s, o, row):
    """V-15: step(record, event) gives the row or None."""
    result = o.step(s.record, see(row))
    return [] if result is None else sends(o, result)
def machine(s, o, row):
    """Machines: the first transition from this state whose guard holds; its action; the output of the state reached."""
    for source, guard, target, action in o.transitions:
        if source in (ANY, s.value) and (guard is OTHERWISE or guard(s.record, see(row))):
            if action is not None:
                action(s.record, see(row))
            s.value = target
            return sends(o, o.output[target](s.record)) if target in o.output else []
    raise ValueError(f"{s.name}: in state {s.value!r} no transition for {row}")
def truth(o, row):                                      # True, False or None: of columns[0], or of the only column
    (value,) = [row[c] for c in row if c == o.columns[0]] or [row[c] for c in row if c not in o.key]
    return value
def settle(s, o, answered, answer):                     # s.count events wait for an answer, this one included
    waiting = s.count + 1
    s.count = 0 if answered else waiting
    return sends(o, answer) * waiting if answered else []
def always(s, o, row):
    """Truth: on false one false for each event not yet answered; nothing else."""
    return settle(s, o, truth(o, row) is False, False)
def eventually(s, o, row):
    """Truth: on true one true for each event not yet answered; nothing else."""
    return settle(s, o, truth(o, row) is True, True)
def until(s, o, a, b):
    """Truth: on b true for all unanswered, else on not a false for all, else it waits."""
    return settle(s, o, truth(o, b) is True or truth(o, a) is False, truth(o, b) is True)
def sql_not(a): return None if a is None else not a
def sql_and(a, b): return False if a is False or b is False else None if a is None or b is None else True
def sql_or(a, b): return sql_not(sql_and(sql_not(a), sql_not(b)))
def by_table(table):                                    # Truth: negated, both, either, implies are SQL's tables
    return lambda s, o, *rows: sends(o, table(*[truth(o, row) for row in rows]))

VERBS = {"map": map_, "zip_map": map_, "filter": filter_, "zip_filter": filter_, "negated": by_table(sql_not),
         "both": by_table(sql_and), "either": by_table(sql_or), "implies": by_table(lambda a, b: sql_or(sql_not(a), b))}
VERBS |= {f.__name__: f for f in (with_columns, accumulate, skip, take, freeze, every, last, start_with, zip_rows,
                                  filter_by, merge, window, across, keyed, machine, always, eventually, until)}

class Model:
    def __init__(self, sources, nodes):
        self.nodes, self.now, self.level = list(nodes), 0, dict.fromkeys(sources, 0)
        for node in nodes:
            self.level[node.name] = 1 + max(self.level[name] for name in node.inputs)
        self.o = {node.name: SimpleNamespace(**DEFAULTS | node.options) for node in nodes}
        self.states = {node.name: {} for node in nodes}  # of each node: key -> state, in order of first event
        self.zeros = (0,) * (1 + max(self.level.values()))
    def event(self, source, row, time):
        self.now = time
        return self.phase({source: [(self.zeros, dict(row))]})
    def end(self):
        sent, self.now = {node.name: [] for node in self.nodes}, float("inf")   # all time passes
        for node in sorted(self.nodes, key=lambda node: self.level[node.name]):   # stable: then as they are listed
            if node.verb == "last" or node.verb == "every" and self.o[node.name].last:
                states = self.states[node.name].items()
                rows = [self.carry(node, key, s.kept) for key, s in states if s.kept is not None]
                for name, more in self.phase({node.name: self.paths(node, self.zeros, rows)}).items():
                    sent[name] += more
        return sent
    def phase(self, out):                               # out: name -> [(path, row)], at first of what starts it
        for node in self.nodes:
            if node.name not in out:
                runs, out[node.name] = {}, []           # path -> [(argument, row)], by argument
                for argument, name in enumerate(node.inputs):
                    for path, row in out.get(name, ()):
                        runs.setdefault(path, []).append((argument, row))
                for path in sorted(runs):
                    out[node.name] += self.paths(node, path, self.run(node, runs[path]))
        return {node.name: [dict(row) for _, row in out[node.name]] for node in self.nodes}
    def paths(self, node, path, rows):                  # row k of a run: the run's path with k in the node's place
        level = self.level[node.name]
        return [(path[:level] + (k,) + path[level + 1:], row) for k, row in enumerate(rows)]
    def run(self, node, arguments):
        o, states, sent = self.o[node.name], self.states[node.name], []
        for argument, row in arguments:
            for key in self.keys(node, row):
                if key not in states:
                    states[key] = State(node, o)
                s, states[key].now = states[key], self.now
                s.queues[argument].append(row)
                ready = [s.queues[argument]] if node.verb == "merge" else s.queues if all(s.queues) else []
                rows = VERBS[node.verb](s, o, *[queue.popleft() for queue in ready]) if ready else []   # V-6
                rows = [self.carry(node, key, row) for row in rows]
                if o.forget and any(o.forget(see(row)) for row in rows):
                    del states[key]                     # V-13: its next event begins anew
                sent += rows
        for name, queue in [pair for s in states.values() for pair in zip(node.inputs, s.queues)]:
            if o.limit is not None and len(queue) > o.limit:
                raise OverflowError(f"{node.name}: more than {o.limit} rows of {name} wait")
        return sent
    def keys(self, node, row):                          # the keys whose states get the row; across has one state
        o = self.o[node.name]
        if o.to_all and o.to_all(see(row)):
            return list(self.states[node.name])         # V-12: every key there is, makes none
        key = tuple(row[column] for column in o.key)
        return [] if None in key else [()] if node.verb == "across" else [key]   # V-11: a null key is dropped
    def carry(self, node, key, row):                    # V-11: rows carry the key of the state, first
        columns = dict(zip(self.o[node.name].key, key))  # across: key is (), so none
        return columns | {column: value for column, value in row.items() if column not in columns}

"""Checks that no large group of files of the runtime call each other in a circle.

    python3 check_calls.py            says what is wrong; exit 1 if anything is
    python3 check_calls.py --list     every circle, and who calls whom in it

File A calls file B where A, or an inline function that A uses, names a function that B defines.
What is called by way of a table of functions (``struct ss_protocol``, ``struct ss_job_kind``) is no
call: who calls does not know whom. Two or three files that do one thing may call each other.
"""

from __future__ import annotations

import re
import sys

from check_includes import SOURCES, is_template, name_of, with_templates

LARGEST = 3
FUNCTION = re.compile(
    r"^(static inline )?(?!static)\w[^;{}=]*?\b(ss_\w+)\([^;{}]*\)\n\{(.*?)^\}", re.M | re.S
)


def names(text: str) -> set[str]:
    return set(re.findall(r"\bss_\w+", text))


def calls() -> dict[str, dict[str, set[str]]]:
    """Of each source the sources that it calls, and by which functions."""
    texts = {
        path: with_templates(path) for path in SOURCES.rglob("*.[ch]") if not is_template(path)
    }
    home: dict[str, str] = {}
    inlines: dict[str, set[str]] = {}
    for path, text in texts.items():
        for inline, name, body in FUNCTION.findall(text):
            if inline:
                inlines[name] = names(body)
            elif path.suffix == ".c":
                home[name] = name_of(path)
    graph: dict[str, dict[str, set[str]]] = {}
    for path, text in texts.items():
        if path.suffix != ".c":
            continue
        used, more = set(), names(text)
        while more:
            used |= more
            more = set().union(*(inlines.get(name, set()) for name in more)) - used
        graph[name_of(path)] = {}
        for name in used & home.keys():
            if home[name] != name_of(path):
                graph[name_of(path)].setdefault(home[name], set()).add(name)
    return graph


def circles(graph: dict[str, dict[str, set[str]]]) -> list[list[str]]:
    """Groups of files that call each other, perhaps by way of others; the largest first."""
    reached: dict[str, set[str]] = {}
    for start in graph:
        seen: set[str] = set()
        waiting = list(graph[start])
        while waiting:
            name = waiting.pop()
            if name not in seen:
                seen.add(name)
                waiting += graph[name]
        reached[start] = seen
    groups = {
        frozenset(other for other in graph if other in reached[name] and name in reached[other])
        for name in graph
    }
    return sorted((sorted(group) for group in groups if len(group) > 1), key=len, reverse=True)


def shown(graph: dict[str, dict[str, set[str]]], group: list[str]) -> str:
    lines = [f"{len(group)} files call each other in a circle:"]
    for name in group:
        lines += [
            f"  {name} -> {other}: {', '.join(sorted(graph[name][other]))}"
            for other in group
            if other in graph[name]
        ]
    return "\n".join(lines)


if __name__ == "__main__":
    graph = calls()
    groups = circles(graph)
    wrong = [group for group in groups if len(group) > LARGEST]
    for group in groups if "--list" in sys.argv else wrong:
        print(shown(graph, group))
    if not wrong:
        print(f"calls: no more than {LARGEST} files in a circle")
    sys.exit(1 if wrong else 0)

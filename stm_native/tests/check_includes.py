"""Checks the headers of the runtime: each file includes what it uses, and nothing goes in a circle.

    python3 check_includes.py         says what is wrong; exit 1 if anything is

- Each ``src/FOLDER/NAME.c`` has its ``src/FOLDER/NAME.h`` and includes it first; only a file all
  of whose functions are public (``include/``) has none.
- A file includes by itself every header of the project that declares something which it names, and
  none that it has no use for.
- No header includes itself by way of others.
- A file includes headers of its own folder and of those below it: see LAYERS. The sources of
  ``core/`` may include any: they lead, and ask all others. Headers know no exception.

A header without a guard is a template: a part of the file that includes it, as often as it likes.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

NATIVE = Path(__file__).resolve().parent.parent
SOURCES = NATIVE / "src"
# From the bottom to the top; those in one layer do not know each other.
LAYERS = (
    ("processor",),
    ("arithmetic", "local", "strings"),
    ("core",),
    ("containers",),
    ("protocols",),
    ("jobs",),
)
LEADING = "core"
# The members by which a file without any other use of a header shows that it needs the structure.
ACCESSES = {
    "core/engine.h": r"\bengine(->|\.)",
    "core/worker.h": r"\b(worker|owner|shadow_worker)(->|\.)|\bworkers\[|"
    r"sizeof\(struct ss_worker\)",
    "core/transaction.h": r"\b(transaction|victim|owner|other|doomed|ring\[\w+\])(->|\.)",
    "core/job_kind.h": r"\bkind->",
    "core/protocol.h": r"\bprotocol->",
    "jobs/early.h": r"\bearly->",
    "jobs/queue.h": r"\bqueue->",
    "strings/string_table.h": r"\btable->",
    "containers/timer_heap.h": r"\btimers->",
    "containers/keyed.h": r"\bkeyed(->|\[)",
    "strings/octets.h": r"\btexts?(->|\[[^]]+\]\.)(bytes|length)",
    "specstream.h": r"\brun->|\bstruct ss_run\b",
}


def name_of(path: Path) -> str:
    """As others include it."""
    return path.relative_to(SOURCES).as_posix() if SOURCES in path.parents else path.name


def code(path: Path) -> str:
    return re.sub(r"/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


def includes(text: str) -> list[str]:
    return re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)


def is_template(path: Path) -> bool:
    return path.suffix == ".h" and "#ifndef SPECSTREAM_" not in path.read_text()


def with_templates(path: Path) -> str:
    """What a file consists of."""
    text = code(path)
    for template in path.parent.glob("*.h"):
        if is_template(template):
            text = text.replace(f'#include "{name_of(template)}"', code(template))
    return text


def declared(text: str) -> set[str]:
    """The names that a header gives to others; of structures only those that it defines."""
    names = set(re.findall(r"^#define (SS_\w+)", text, re.MULTILINE))
    names |= set(re.findall(r"^(?:struct|enum) (ss_\w+) \{", text, re.MULTILINE))
    names |= set(re.findall(r"\(\*(ss_\w+)\)\(", "\n".join(re.findall(r"^typedef.*", text, re.M))))
    for body in re.findall(r"^enum(?: ss_\w+)? \{(.*?)\};", text, re.DOTALL | re.MULTILINE):
        names |= set(re.findall(r"\b(SS_\w+)", body))
    outermost = text
    while re.search(r"\{[^{}]*\}", outermost):
        outermost = re.sub(r"\{[^{}]*\}", "", outermost)
    names |= set(re.findall(r"\b(ss_\w+)\(", re.sub(r"^typedef.*", "", outermost, flags=re.M)))
    names |= set(re.findall(r"^extern const struct ss_\w+ (ss_\w+);", text, re.MULTILINE))
    return names


def named(text: str) -> set[str]:
    """The names that a file uses; a pointer to a structure needs no definition."""
    text = re.sub(r"\bstruct ss_\w+;", "", text)
    text = re.sub(r"\bstruct ss_\w+(?= (?:const )?\*)", "", text)
    text = re.sub(r"\bstruct ss_\w+(?= \*?_Atomic)", "", text)
    return set(re.findall(r"\b(?:ss|SS)_\w+", text))


def circle(graph: dict[str, list[str]], at: str, way: tuple[str, ...] = ()) -> tuple[str, ...]:
    if at in way:
        return (*way[way.index(at) :], at)
    for to in graph.get(at, ()):
        found = circle(graph, to, (*way, at))
        if found:
            return found
    return ()


def above(path: Path, has: list[str]) -> list[str]:
    """The headers that a file must not include."""
    height = {folder: at for at, layer in enumerate(LAYERS) for folder in layer}
    own = path.parent.name
    if own not in height:
        return [f"{own}/ has no place in LAYERS"]
    if path.suffix == ".c" and own == LEADING:
        return []
    folders = {name: name.split("/")[0] for name in has if "/" in name}
    return [
        name
        for name, folder in folders.items()
        if folder != own and height.get(folder, len(LAYERS)) >= height[own]
    ]


def complaints() -> list[str]:
    public = sorted((NATIVE / "include").glob("*.h"))
    sources = [path for path in SOURCES.rglob("*.[ch]") if not is_template(path)]
    own_headers = [path for path in sources if path.suffix == ".h"]
    headers = {name_of(path): code(path) for path in [*public, *own_headers]}
    offers = {name: declared(text) for name, text in headers.items()}
    of_public = set().union(*(offers[name_of(path)] for path in public))
    wrong = []
    for path in sorted(sources):
        text = with_templates(path)
        this = name_of(path)
        own = name_of(path.with_suffix(".h"))
        has = includes(text)
        if path.suffix == ".c":
            if own in headers and has[:1] != [own]:
                wrong.append(f"{this}: does not include {own} first")
            functions = re.findall(r"^(?!static)\w[^;{}=]*?\b(ss_\w+)\([^;{}]*\)\n\{", text, re.M)
            homeless = {name for name in functions if name not in of_public}
            homeless -= offers.get(own, set())
            wrong += [f"{this}: {name} is declared in no header of it" for name in homeless]
        used = named(text)
        for name, offered in sorted(offers.items()):
            if name == this:
                continue
            access = ACCESSES.get(name)
            needs = bool(offered & used - offers.get(this, set()))
            may = needs or (access is not None and re.search(access, text) is not None)
            if needs and name not in has:
                uses = ", ".join(sorted(offered & used)[:3])
                wrong.append(f"{this}: does not include {name} ({uses})")
            if name in has and not may and name != own:
                wrong.append(f"{this}: has no use for {name}")
        wrong += [f"{this}: {name} is not below it" for name in above(path, has)]
        wrong += [f"{this}: {name} is there twice" for name in set(has) if has.count(name) > 1]
    graph = {name: includes(text) for name, text in headers.items()}
    circles = {frozenset(found): found for name in graph if (found := circle(graph, name))}
    wrong += ["a circle: " + " -> ".join(found) for found in circles.values()]
    return wrong


if __name__ == "__main__":
    found = complaints()
    print("\n".join(found) or "includes: each file has its own, of folders below, in no circle")
    sys.exit(1 if found else 0)

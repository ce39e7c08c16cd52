"""Builds ``specstream._native`` from the C runtime, and ``specstream._forecast``, which is the same
runtime on a virtual machine (``forecast/``): cffi, API mode, limited API.

The declarations come from the public headers themselves, so that there is one description of the
interface and the compiler checks Python's view of it.
"""

import hashlib
import os
import re
import sysconfig
from pathlib import Path

import cffi

ROOT = Path(__file__).resolve().parent
HEADERS = [
    "specstream.h",
    "specstream_arithmetic.h",
    "specstream_local.h",
    "specstream_containers.h",
    "specstream_objects.h",
    "specstream_strings.h",
    "specstream_literals.h",
]


def declarations(header: str, folder: str = "include") -> str:
    """The header's declarations in the C subset that cffi reads: no preprocessor, no comments."""
    text = (ROOT / folder / header).read_text()
    constants = re.findall(r"^#define (SS_\w+) \d+$", text, re.MULTILINE)
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    text = re.sub(r"^\s*#.*$", "", text, flags=re.MULTILINE)
    return "".join(f"#define {name} ...\n" for name in constants) + text


def abi(headers: dict[str, bytes]) -> int:
    """A number for what compiled code relies on: another one for any other text of the headers."""
    digest = hashlib.sha256()
    for name, text in sorted(headers.items()):
        digest.update(f"{name} {len(text)}\n".encode() + text)
    return int.from_bytes(digest.digest()[:8], "big") >> 1


ABI = abi({name: (ROOT / "include" / name).read_bytes() for name in HEADERS})

FLAGS = [
    "-std=gnu11",
    "-O2",
    # A contracted a*b+c rounds once instead of twice and would differ from Python's.
    "-ffp-contract=off",
    "-Wall",
    "-Wextra",
    "-Wundef",
    # CPython's own limited-API headers are not ours to mend.
    *([] if sysconfig.get_config_var("Py_DEBUG") else ["-Wno-missing-field-initializers"]),
]

# What C calls in Python, for all engines: interpreted operators, hooks, and what compiled code does
# not know; see specstream/interpreted/running.py, specstream/engine/hooks.py and answers.py.
CALLED = """
extern "Python" int64_t ss_python_interpreter(void *context, struct ss_run *run,
                                              int32_t variant, int64_t first, int64_t last);
extern "Python" int32_t ss_python_hook(void *context, const struct ss_occasion *occasion);
extern "Python" int64_t ss_python_answering(void *context, int64_t row,
                                            const struct ss_firing *firing,
                                            const struct ss_answer_word **answers);
"""

# All that Python sees; stub.py says it to mypy.
INTERFACE = "".join(map(declarations, HEADERS)) + "#define SS_ABI ...\n" + CALLED
FORECAST_INTERFACE = declarations("replay.h", "forecast")

ffibuilder = cffi.FFI()
ffibuilder.cdef(INTERFACE)

ffibuilder.set_source(
    "specstream._native",
    "".join(f'#include "{name}"\n' for name in HEADERS) + f"#define SS_ABI INT64_C({ABI})\n",
    # Relative to the project's root, where setuptools runs: it refuses absolute paths, and what is
    # built then says nothing of where it was built.
    sources=[
        f"stm_native/{path.relative_to(ROOT)}"
        for folder in ("src", "python")
        for path in sorted((ROOT / folder).rglob("*.c"))
    ],
    include_dirs=["stm_native/include", "stm_native/src"],
    depends=[f"stm_native/include/{name}" for name in HEADERS]
    + [f"stm_native/{path.relative_to(ROOT)}" for path in sorted((ROOT / "src").rglob("*.h"))],
    extra_compile_args=FLAGS,
    # Symbols are looked up at load: a fault is never brought back out of the dynamic linker.
    extra_link_args=["-Wl,-z,now"],
    libraries=["m", "pthread"],
    py_limited_api=True,
)

# Coroutines jump between stacks, which a fortified longjmp takes for an error. All names are the
# extension's own: another runtime is loaded beside it, and perhaps a sanitizer.
FORECAST_FLAGS = [*FLAGS, "-U_FORTIFY_SOURCE", "-fvisibility=hidden"]
# The sources that are not compiled for the machine; setup.py adds the runtime's, which are.
forecast = cffi.FFI()
forecast.cdef(FORECAST_INTERFACE)
forecast.set_source(
    "specstream._forecast",
    '#include "replay.h"\n',
    sources=["stm_native/forecast/machine.c", "stm_native/forecast/replay.c"],
    include_dirs=["stm_native/include", "stm_native/forecast", "stm_native/src"],
    depends=[
        f"stm_native/{path.relative_to(ROOT)}"
        for folder in ("include", "src", "forecast")
        for path in sorted((ROOT / folder).rglob("*.[ch]"))
    ],
    extra_compile_args=FORECAST_FLAGS,
    extra_link_args=["-Wl,-Bsymbolic", "-Wl,-z,now"],
    libraries=["m"],
    py_limited_api=True,
)


def for_the_machine(source: Path) -> list[str]:
    """With these flags a source of the runtime tells the machine of each access."""
    # What asks for names of GNU does so behind machine.h, which is too late.
    asks = ["-D_GNU_SOURCE="] if "#define _GNU_SOURCE" in source.read_text() else []
    machine = ROOT / "forecast" / "machine.h"
    return ["-fsanitize=thread", "-Wno-tsan", *asks, "-include", os.path.relpath(machine)]


if __name__ == "__main__":
    ffibuilder.compile(verbose=True)

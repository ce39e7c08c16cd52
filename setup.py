"""Hooks the build of the native runtime, and the README as a package index shows it.

Everything else stands in pyproject.toml.
"""

import os
import re
import runpy
import shlex
import shutil
import sys
import sysconfig
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext
from setuptools.errors import CompileError, PlatformError

FORECAST = "specstream._forecast"
DEBIAN = "on Debian or Ubuntu: apt-get install gcc libc6-dev python3-dev"


def for_pypi(readme: str) -> str:
    """The README without what an index has not: pictures and links that lead to files beside it.

    Comments go as well: they are set-up of the tests.
    """
    there = r"\((?!https?:)[^)]*\)"
    readme = re.sub(r"^<!--.*?-->\n\n?", "", readme, flags=re.MULTILINE | re.DOTALL)
    readme = re.sub(rf"^!\[[^]]*\]{there}\n\n", "", readme, flags=re.MULTILINE)
    readme = re.sub(rf"\[([^]]*)\]{there}", r"\1", readme)
    beside = "The pages and files named here are in the source distribution, under `docs/`."
    return f"{readme}\n{beside}\n"


def side_by_side(compiled: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """The compiler's method for several sources, which takes one after the other, on all cores."""

    def compiled_on_all_cores(sources: Sequence[str], **options: Any) -> list[str]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            made = pool.map(lambda source: compiled([source], **options), sources)
            return [name for names in made for name in names]

    return compiled_on_all_cores


class BuildNative(build_ext):
    """What is installed has neither debug information nor places of the machine that built it.

    An editable installation keeps the debug information, and so does a build whose ``CFLAGS`` ask
    for it with ``-g``.
    """

    def build_extensions(self) -> None:
        self.look_for_compiler()
        # Some builds of Python hand on where their own library lies. The extension does not load
        # it, and nobody else has that directory.
        rpath = re.compile(r"-Wl,(--?rpath|-R)[,=]")
        of_python = {
            word
            for name in ("LDSHARED", "LDFLAGS", "BLDSHARED")
            for word in shlex.split(sysconfig.get_config_var(name) or "")
            if rpath.match(word)
        }
        linker = [word for word in self.compiler.linker_so if word not in of_python]
        if not self.inplace and "-g" not in shlex.split(os.environ.get("CFLAGS", "")):
            linker.append("-Wl,--strip-all")
        self.compiler.linker_so = linker
        self.compiler.compile = side_by_side(self.compiler.compile)
        # The machine of the forecast is told of accesses by what is a sanitizer's as well. It is
        # the runtime once more, which takes as long: who does not forecast may leave it out.
        is_sanitized = "-fsanitize" in os.environ.get("CFLAGS", "")
        if is_sanitized or os.environ.get("SPECSTREAM_FORECAST") == "0":
            self.extensions = [one for one in self.extensions if one.name != FORECAST]
        try:
            super().build_extensions()
        except CompileError as error:
            raise CompileError(
                f"{error}\nspecstream's C runtime was not compiled; what the compiler said stands "
                f"above. It needs GCC or Clang and the headers of the C library and of Python "
                f"({DEBIAN})."
            ) from error

    def build_extension(self, extension: Extension) -> None:
        """The forecast's runtime is compiled in a way of its own; see stm_native/build.py."""
        if extension.name == FORECAST:
            build = runpy.run_path("stm_native/build.py")
            # Flags differ by source; those with the same are compiled together.
            by_flags: dict[tuple[str, ...], list[str]] = {}
            for source in sorted(Path("stm_native/src").rglob("*.c")):
                by_flags.setdefault(tuple(build["for_the_machine"](source)), []).append(str(source))
            extension.extra_objects = [
                name
                for flags, sources in by_flags.items()
                for name in self.compiler.compile(
                    sources,
                    output_dir=str(Path(self.build_temp) / "machine"),
                    include_dirs=extension.include_dirs,
                    extra_postargs=[*build["FORECAST_FLAGS"], *flags],
                )
            ]
        super().build_extension(extension)

    def look_for_compiler(self) -> None:
        """Say what is missing before a compiler says it in words of its own."""
        needed = (
            f"Installing specstream from source compiles its C runtime ({DEBIAN}); "
            "a wheel needs no compiler."
        )
        compiler = self.compiler.compiler_so[0]
        if shutil.which(compiler) is None:
            raise PlatformError(f"no C compiler: {compiler!r} is not on PATH. {needed}")
        if not any((Path(where) / "Python.h").exists() for where in self.compiler.include_dirs):
            raise PlatformError(
                f"no Python.h in {sysconfig.get_path('include')}, where the headers of "
                f"{sys.executable} should be. {needed}"
            )


if __name__ == "__main__":
    if not sys.platform.startswith("linux"):
        sys.exit(f"specstream runs on Linux only, and this is {sys.platform!r}")
    # The extension uses the limited API only: one wheel serves every Python from 3.11 on. A Python
    # without the interpreter's lock has no such API, and a wheel built there is for it alone.
    has_lock = not sysconfig.get_config_var("Py_GIL_DISABLED")
    setup(
        options={"bdist_wheel": {"py_limited_api": "cp311"}} if has_lock else {},
        cffi_modules=["stm_native/build.py:ffibuilder", "stm_native/build.py:forecast"],
        cmdclass={"build_ext": BuildNative},
        long_description=for_pypi((Path(__file__).parent / "README.md").read_text()),
        long_description_content_type="text/markdown",
    )

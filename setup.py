"""Hooks the build of the native runtime, and the README as PyPI shows it.

Everything else stands in pyproject.toml.
"""

import re
from pathlib import Path

from setuptools import setup


def for_pypi(readme: str) -> str:
    """The README without pictures and links that lead to files beside it: PyPI has none of them."""
    there = r"\((?!https?:)[^)]*\)"
    readme = re.sub(rf"^!\[[^]]*\]{there}\n\n", "", readme, flags=re.MULTILINE)
    return re.sub(rf"\[([^]]*)\]{there}", r"\1", readme)


if __name__ == "__main__":
    setup(
        cffi_modules=["stm_native/build.py:ffibuilder"],
        long_description=for_pypi((Path(__file__).parent / "README.md").read_text()),
        long_description_content_type="text/markdown",
    )

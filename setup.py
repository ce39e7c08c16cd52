"""Hooks the build of the native runtime; everything else stands in pyproject.toml."""

from setuptools import setup

setup(cffi_modules=["stm_native/build.py:ffibuilder"])

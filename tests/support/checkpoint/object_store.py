"""A directory that Arrow takes for a store of objects: no links, and whoever writes last is there.

What is written is there when it is complete, a move is a copy and a deletion, as on S3. Before each
operation a function is called, which may raise, wait, or have the process stopped.
"""

from __future__ import annotations

import io
import os
import shutil
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

__all__ = ["ObjectStore", "object_store"]

# What is called before each operation: its name, and the path that it is about.
Before = Callable[[str, str], None]


def object_store(directory: Path, before: Before = lambda operation, path: None) -> fs.FileSystem:
    """The store that a directory is; other processes may have it as well."""
    return fs.PyFileSystem(ObjectStore(directory, before))


class ObjectStore(fs.FileSystemHandler):
    """What Arrow asks for; see :func:`object_store`."""

    def __init__(self, directory: Path, before: Before) -> None:
        self._directory = directory
        self._uploads = directory / ".uploads"
        self._uploads.mkdir(parents=True, exist_ok=True)
        self._below = fs.SubTreeFileSystem(str(directory), fs.LocalFileSystem())
        self._before = before

    def get_type_name(self) -> str:
        return "objects"

    def normalize_path(self, path: str) -> str:
        return path

    def get_file_info(self, paths: list[str]) -> Any:
        for path in paths:
            self._before("info", path)
        return self._below.get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> Any:
        self._before("list", selector.base_dir)
        return self._below.get_file_info(selector)

    def create_dir(self, path: str, recursive: bool) -> None:
        self._before("create_dir", path)
        self._below.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self._below.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool = False) -> None:
        self._below.delete_dir_contents(path, missing_dir_ok=missing_dir_ok)

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self._before("delete", path)
        (self._directory / path).unlink()

    def move(self, src: str, dest: str) -> None:
        self._before("move", dest)
        self._copy(src, dest)
        (self._directory / src).unlink()

    def copy_file(self, src: str, dest: str) -> None:
        self._before("copy", dest)
        self._copy(src, dest)

    def _copy(self, src: str, dest: str) -> None:
        upload = self._uploads / uuid.uuid4().hex
        shutil.copyfile(self._directory / src, upload)
        os.replace(upload, self._directory / dest)

    def open_input_stream(self, path: str) -> Any:
        return self.open_input_file(path)

    def open_input_file(self, path: str) -> Any:
        self._before("read", path)
        content = (self._directory / path).read_bytes()
        self._before("have read", path)
        return pa.BufferReader(content)

    def open_output_stream(self, path: str, metadata: Any) -> Any:
        return pa.PythonFile(_Upload(self, path), mode="w")

    def open_append_stream(self, path: str, metadata: Any) -> Any:
        raise NotImplementedError

    def put(self, path: str, content: bytes) -> None:
        """Makes or replaces an object."""
        self._before("write", path)
        upload = self._uploads / uuid.uuid4().hex
        upload.write_bytes(content)
        os.replace(upload, self._directory / path)


class _Upload(io.BytesIO):
    """What is written of an object; there when it is closed."""

    def __init__(self, store: ObjectStore, path: str) -> None:
        super().__init__()
        self._store, self._path = store, path

    def close(self) -> None:
        if not self.closed:
            content = self.getvalue()
            super().close()
            self._store.put(self._path, content)

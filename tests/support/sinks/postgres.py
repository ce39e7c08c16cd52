"""A PostgreSQL server for tests: a cluster in a directory of its own, on a port of this machine.

It runs as the user ``postgres`` where the tests run as root, as it refuses to run as that.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

PASSWORD = "s3cr/et pass"
START_SECONDS = 60


def programs() -> Path | None:
    """Where the server's programs are; None: they are not installed. None are installed here."""
    found = shutil.which("initdb")
    if found is not None:
        return Path(found).resolve().parent
    versions = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    newest = max(versions, key=lambda path: float(path.parents[1].name), default=None)
    return None if newest is None else newest.parent


class Server:
    """A cluster that can be started, killed and started again."""

    def __init__(self, bin: Path) -> None:
        self._bin = bin
        user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        self._as_user: dict[str, Any] = user if os.getuid() == 0 else {}
        # Below a test's own directory the user postgres may not go.
        self.directory = Path(tempfile.mkdtemp(prefix="specstream-postgres-"))
        password = self.directory / "password"
        password.write_text(PASSWORD)
        if self._as_user:
            shutil.chown(self.directory, "postgres")
            shutil.chown(password, "postgres")
        self._run(
            *("initdb", "--no-sync", "--auth=scram-sha-256", "--username=postgres"),
            *(f"--pwfile={password}", "--encoding=UTF8", "--locale=C", self.directory / "data"),
        )
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.uri = f"postgresql://postgres:s3cr%2Fet%20pass@127.0.0.1:{self.port}/postgres"
        self.process: subprocess.Popen[bytes] | None = None

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(self._bin / program), *map(str, arguments)]
        done = subprocess.run(
            command, check=False, capture_output=True, text=True, cwd="/", **self._as_user
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self) -> None:
        """Returns when it takes connections."""
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": self.directory,
            "fsync": "off",  # what is killed here is processes, and not the machine
            "max_connections": 20,
            "shared_buffers": "8MB",
        }
        given = [text for name, value in options.items() for text in ("-c", f"{name}={value}")]
        postgres = self._bin / "postgres"
        with (self.directory / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [str(postgres), "-D", str(self.directory / "data"), "-p", str(self.port), *given],
                cwd="/",
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._as_user,
            )
        until = time.monotonic() + START_SECONDS
        while not self._answers():
            said = (self.directory / "log").read_text()
            assert self.process.poll() is None, said
            assert time.monotonic() < until, said
            time.sleep(0.02)

    def _answers(self) -> bool:
        from adbc_driver_postgresql import dbapi

        try:
            dbapi.connect(self.uri).close()
        except dbapi.Error:
            return False
        return True

    def kill(self) -> None:
        """SIGKILL, to it and all its processes."""
        assert self.process is not None
        children = subprocess.run(
            ["ps", "-o", "pid=", "--ppid", str(self.process.pid)],
            check=False,
            capture_output=True,
            text=True,
        )
        for process in (self.process.pid, *map(int, children.stdout.split())):
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        self.process.wait()
        self.process = None

    def stop(self) -> None:
        """Ends it, and removes all of it."""
        if self.process is not None:
            self.kill()
        shutil.rmtree(self.directory, ignore_errors=True)

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """What a query gives."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.uri) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            found: list[tuple[Any, ...]] = cursor.fetchall()
            return found

    def execute(self, *statements: str) -> None:
        """What gives nothing."""
        from adbc_driver_postgresql import dbapi

        with dbapi.connect(self.uri) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            connection.commit()

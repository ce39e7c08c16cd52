"""A NATS server of a test's own, with JetStream, and what tests put into its streams."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

ENSURE = Path(__file__).parents[3] / ".ci" / "ensure-nats"


def server_path() -> str:
    """A nats-server; where there is none and none can be installed, the test is left out."""
    found = subprocess.run([ENSURE], capture_output=True, text=True)
    if found.returncode:
        pytest.skip(f"no nats-server: {found.stderr.strip().splitlines()[-1]}")
    return found.stdout.strip()


class NatsServer:
    """A server at a free port, whose streams outlive its restarts."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = server_path()
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.url = f"nats://127.0.0.1:{self.port}"
        self.start()

    def start(self) -> None:
        streams = str(self._directory / "streams")
        with (self._directory / "nats.log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._path, "-a", "127.0.0.1", "-p", str(self.port), "-js", "-sd", streams],
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + 20
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                self.call(lambda api: api.account_info())
                return
            except Exception:
                assert time.monotonic() < until, (self._directory / "nats.log").read_text()
                time.sleep(0.05)

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()

    def call(self, work: Callable[[Any], Awaitable[Any]]) -> Any:
        """What a coroutine gives that is made of a connection's JetStream."""

        async def connected() -> Any:
            import nats

            client = await nats.connect(self.url, max_reconnect_attempts=1)
            try:
                return await work(client.jetstream())
            finally:
                await client.close()

        return asyncio.run(connected())

    def make_stream(self, name: str, subjects: Iterable[str], **config: Any) -> None:
        self.call(lambda api: api.add_stream(name=name, subjects=list(subjects), **config))

    def publish(self, subject: str, messages: Iterable[Mapping[str, Any] | bytes]) -> None:
        """Puts messages into whichever stream has the subject, in their order."""

        async def put(api: Any) -> None:
            for message in messages:
                content = message if isinstance(message, bytes) else json.dumps(message).encode()
                await api.publish(subject, content)

        self.call(put)

"""A TCP connection as a source: lines of JSON, or a stream of Arrow's.

What is not read stays with the sender: when the buffer here is full nobody receives, and TCP tells
the other side to wait.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import pyarrow as pa

from specstream.declarations.options import flag, integer, one_of, refused, refuses_unknown
from specstream.errors import InputError, SourceError
from specstream.sources.buffer import Buffer
from specstream.sources.decoding import Decode, Decoder
from specstream.sources.iterators import pieces
from specstream.sources.source import Position, Rows, Source, Wanted, made_like

__all__ = ["TcpSource", "tcp"]

CONNECT_SECONDS = 10.0
LONGEST_LINE = 1 << 24
_PART = 1 << 16


class TcpSource(Source):
    """What comes over TCP; see :func:`tcp`."""

    can_replay = False
    needs_thread = True

    @refuses_unknown
    def __init__(
        self,
        host: str,
        port: int,
        *,
        format: str = "json",
        listen: bool = False,
        columns: Mapping[str, Any] | None = None,
        decode: Decode | None = None,
    ) -> None:
        if not isinstance(host, str):
            raise refused("host", host, "the name or address of a host")
        self._address = host, integer("port", port, 0 if listen else 1, 65535)
        self._format = one_of("format", format, ("json", "arrow"))
        self._listens = flag("listen", listen)
        self._columns, self._decode = columns, decode
        self.name = f"tcp://{host}:{port}"
        self._buffer = Buffer(1)
        self._socket: socket.socket | None = None
        self._connections: list[socket.socket] = []
        self._left: deque[tuple[str, int, Any]] = deque()
        self._closed = False

    @property
    def port(self) -> int:
        """Where it listens; of port 0 the one that it has got."""
        return self._address[1] if self._socket is None else int(self._socket.getsockname()[1])

    def open(self, wanted: Wanted, position: Position | None) -> None:
        self._wanted = wanted
        self._buffer = Buffer(wanted.rows)
        if self._format == "json":
            self._decoder = Decoder(wanted, columns=self._columns, decode=self._decode)
        try:
            if self._listens:
                self.listen()
                self._start(self._accept)
            else:
                self._socket = socket.create_connection(self._address, CONNECT_SECONDS)
                self._socket.settimeout(None)
                self._start(partial(self._receive, self._socket, self.name, self._buffer.end))
        except OSError as error:
            verb = "listen at" if self._listens else "be reached at"
            raise SourceError(f"{wanted.what}: nobody can {verb} {self.name}: {error}") from error

    def listen(self) -> None:
        """Takes the port, so that senders may connect before the run begins."""
        if self._socket is None:
            self._socket = socket.create_server(self._address)

    def _start(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name="specstream-source", daemon=True).start()

    def _accept(self) -> None:
        assert self._socket is not None
        while not self._closed:
            try:
                connection, address = self._socket.accept()
            except OSError:  # it was closed
                return
            self._connections.append(connection)
            name = f"{self.name} from {address[0]}:{address[1]}"
            # One that ends, or breaks off, ends nothing but itself.
            self._start(partial(self._receive, connection, name, self._left_by))

    def _left_by(self, error: BaseException | None = None) -> None:
        if error is not None and not isinstance(error, OSError):
            self._buffer.end(error)

    def _receive(self, connection: socket.socket, name: str, end: Callable[..., None]) -> None:
        error: BaseException | None = None
        try:
            with connection:
                parts = self._lines if self._format == "json" else self._tables
                for first, part, rows in parts(connection, name):
                    if not self._buffer.put((name, first, part), rows):
                        return
        except OSError as broken:
            error = broken if self._listens else self._broken(name, broken)
        except BaseException as other:
            error = other
        end(error)

    def _broken(self, name: str, error: OSError) -> SourceError:
        return SourceError(f"{self._wanted.what}: {name} has broken off: {error}")

    def _lines(
        self, connection: socket.socket, name: str
    ) -> Iterator[tuple[int, list[bytes], int]]:
        """Lines that came together, with the number of the first."""
        number, rest = 0, b""
        while True:
            came = connection.recv(_PART)
            *lines, rest = (rest + came).split(b"\n") if came else (rest, b"")
            if len(rest) > LONGEST_LINE:
                raise InputError(
                    f"{self._wanted.what}: {name}: line {number + len(lines)} has more than "
                    f"{LONGEST_LINE:,} bytes: end each message with a newline"
                )
            for at in range(0, len(lines), self._wanted.rows):
                some = lines[at : at + self._wanted.rows]
                kept = [line for line in some if line.strip()]
                if kept:
                    yield number, kept, len(kept)
                number += len(kept)
            if not came:
                return

    def _tables(self, connection: socket.socket, name: str) -> Iterator[tuple[int, pa.Table, int]]:
        number = 0
        try:
            with connection.makefile("rb") as file, pa.ipc.open_stream(file) as reader:
                for batch in reader:
                    batch.validate(full=True)  # whoever sends it may send anything
                    table = self._wanted.chosen(pa.Table.from_batches([batch]))
                    for part in pieces(table, self._wanted.rows):
                        yield number, part, part.num_rows
                        number += part.num_rows
        except pa.ArrowException as error:
            raise InputError(
                f"{self._wanted.what}: {name}: what comes behind row {number} is no stream of "
                f"Arrow's: {error}"
            ) from error

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        if not self._buffer.refill(self._left, rows, wait, idle):
            return None
        if not self._left:
            return Rows(pa.table({}))
        if self._format == "json":
            return self._messages()
        name, first, table = self._left.popleft()
        tables = [table]
        while self._left and self._left[0][0] == name:
            tables.append(self._left.popleft()[2])
        table = pa.concat_tables(tables)
        return Rows(table, None, f"rows {first} to {first + table.num_rows - 1} of {name}")

    def _messages(self) -> Rows:
        contents: list[bytes] = []
        places: list[tuple[str, int]] = []
        while self._left:
            name, first, lines = self._left.popleft()
            contents += lines
            places += [(name, first + at) for at in range(len(lines))]

        def place(at: int) -> str:
            name, number = places[at]
            return f"line {number} of {name}"

        table = self._decoder.messages(contents, {}, place)
        return Rows(table, None, f"{place(0)} to {place(-1)}")

    def stop(self) -> None:
        # Lines that were received cannot be had again: they are run.
        self._buffer.close()
        self._hang_up()

    def close(self) -> None:
        self._buffer.close()
        self._hang_up()

    def _hang_up(self) -> None:
        self._closed = True
        for one in [self._socket, *self._connections]:
            if one is not None:
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)  # wakes who waits in it
                one.close()


@made_like(TcpSource)
def tcp(**arguments: Any) -> TcpSource:
    """What comes over a TCP connection.

    A connection cannot send again: when the process is killed, what had come and was not in a
    recorded batch is lost. When the engine does not keep up, nothing is received, and the sender
    has to wait.

    Args:
        host: to connect to; of ``listen=True`` the address to listen at.
        port: likewise; 0 listens at one that is free, which is the source's ``port`` then.
        format: ``"json"``: a JSON object in each line. ``"arrow"``: a stream of Arrow's, as
            ``pyarrow.ipc.new_stream`` writes it.
        listen: others connect, one or several, until the run is stopped; else the source ends with
            its connection.
        columns: of JSON, types of columns that the operator does not declare, and ``order_by`` or
            ``source`` names.
        decode: turns a line's bytes into a dict of its fields, or into a list of dicts or named
            tuples, an event each, where they are not JSON.

    Raises:
        ConfigurationError: an argument is not what it must be.
    """
    return TcpSource(**arguments)

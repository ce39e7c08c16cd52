"""Messages of a stream of NATS JetStream as a source, by ``nats-py``.

The position is the sequence number in the stream. At each start a consumer of this run's own is
made behind it, which ends with the run: what the server knows of a consumer could not change
together with the checkpoint. Of a stream that keeps messages until they are acknowledged (its
retention is "workqueue") the consumer gets all that are left, and those that the checkpoint has
already are only acknowledged.

Messages are asked for, so many as there is room for. The consumer numbers what it sends: where a
number is missing, because a connection broke or the server was started again, another consumer is
made behind the last message that came.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import zlib
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from specstream.declarations.options import instance, items, one_of, refused, refuses_unknown, text
from specstream.errors import ConfigurationError, SourceError
from specstream.sources.buffer import Buffer
from specstream.sources.decoding import Decode, Decoder
from specstream.sources.loop import LoopThread
from specstream.sources.source import Position, Rows, Source, Wanted, made_like

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg

__all__ = ["NatsSource", "nats"]

SECONDS = 10.0
# What a message has beside its content.
MESSAGE = ("subject", "sequence", "timestamp")
# The server ends a request for messages after so long. It says so, but not always: where messages
# come just then, now and then it does not. So there is another one before that.
_REQUEST_SECONDS = 5.0
_AGAIN_SECONDS = 3.0
# Between two tries to make a consumer, where the server does not answer.
_PAUSE = 0.2


class _Message(NamedTuple):
    sequence: int
    subject: str
    microseconds: int
    content: bytes


class NatsSource(Source):
    """Messages of a stream; see :func:`nats`."""

    needs_thread = True

    @refuses_unknown
    def __init__(
        self,
        servers: str | Sequence[str],
        stream: str,
        subject: str | None = None,
        *,
        start: str = "earliest",
        gone: str = "error",
        columns: Mapping[str, Any] | None = None,
        decode: Decode | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            import nats
            import nats.aio.client
            import nats.js.errors
        except ImportError as missing:
            raise ImportError(
                'ss.sources.nats needs nats-py: pip install "specstream[nats]"'
            ) from missing
        self._nats: Any = nats
        expected = "an address like 'nats://127.0.0.1:4222', or a list of them"
        self._servers = (
            [servers] if isinstance(servers, str) else list(items("servers", servers, expected))
        )
        if not self._servers or not all(isinstance(one, str) for one in self._servers):
            raise refused("servers", servers, expected)
        if not isinstance(stream, str) or not stream:
            raise refused("stream", stream, "the name of a stream")
        self._stream = stream
        self._subject = text("subject", subject, "a subject, like 'orders.>', or None")
        self._start = one_of("start", start, ("earliest", "latest"))
        self._gone = one_of("gone", gone, ("error", "skip"))
        self._columns, self._decode = columns, decode
        self._options = {} if options is None else instance("options", options, Mapping, "a dict")
        known = inspect.signature(nats.aio.client.Client.connect).parameters
        for name in self._options:
            if name not in known or name in ("self", "servers", "reconnected_cb"):
                raise ConfigurationError(
                    f"options: {name!r} is none that the NATS client takes here; expected some of "
                    "those of nats.connect, like user, password, user_credentials or tls"
                )
        of = "" if subject is None else f", subject {subject!r}"
        self.name = f"stream {stream!r} of NATS{of}"
        self._loop: LoopThread | None = None
        self._stopped = False

    # ---- on the thread of the run ----

    def open(self, wanted: Wanted, position: Position | None) -> None:
        self._wanted = wanted
        self._decoder = Decoder(wanted, MESSAGE, self._columns, self._decode)
        self._room = 2 * wanted.rows
        self._buffer = Buffer(self._room)
        self._loop = LoopThread("specstream-nats")
        try:
            self._loop.call(self._begin(position), 3 * SECONDS)
        except (self._nats.errors.Error, OSError, TimeoutError) as error:
            raise self._failed(error) from error

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        if self._stopped:
            return None
        messages = self._buffer.take(rows, wait, idle)
        assert self._loop is not None
        if messages is None:
            return None
        if not messages:
            return Rows(pa.table({}))
        self._loop.post(self._ask())
        return self._rows(messages)

    def _rows(self, messages: list[_Message]) -> Rows:
        own = {
            "subject": pa.array([one.subject for one in messages], pa.string()),
            "sequence": pa.array([one.sequence for one in messages], pa.int64()),
            "timestamp": pa.array(
                [one.microseconds for one in messages], pa.timestamp("us", "UTC")
            ),
        }

        def place(at: int) -> str:
            one = messages[at]
            return f"subject {one.subject!r}, sequence {one.sequence} of stream {self._stream!r}"

        table = self._decoder.messages([one.content for one in messages], own, place)
        return Rows(table, messages[-1].sequence, f"{place(0)} to {place(-1)}")

    def commit(self, position: Position) -> None:
        if self._keeps_until_acknowledged:
            assert self._loop is not None
            self._loop.post(self._acknowledge(position))

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        loop, self._loop = self._loop, None
        if loop is None:
            return
        self._buffer.close()
        with contextlib.suppress(Exception):  # of a server that is gone
            loop.call(self._end(), SECONDS)
        loop.close()

    def _failed(self, error: BaseException) -> SourceError:
        reason = str(error) or type(error).__name__
        if isinstance(error, TimeoutError | OSError | self._nats.errors.NoServersError):
            reason += ": no answer; start the server, or see that it can be reached at this address"
        return SourceError(
            f"{self._wanted.what}: {self.name} at {', '.join(self._servers)}: {reason}"
        )

    # ---- in the event loop ----

    async def _begin(self, position: Position | None) -> None:
        self._client: Client | None = None
        self._watch: asyncio.Task[None] | None = None
        self._subscription: Any = None
        self._generation = 0
        self._broken = asyncio.Event()
        self._replies: dict[int, str] = {}  # of messages that are to be acknowledged
        self._recorded = position or 0
        self._client = await self._nats.connect(
            self._servers,
            **{
                "connect_timeout": SECONDS,
                "allow_reconnect": True,
                "max_reconnect_attempts": -1,
                "error_cb": _ignored,
                **self._options,
                "reconnected_cb": self._reconnected,
            },
        )
        self._api = self._client.jetstream(timeout=SECONDS)
        info = await self._api.stream_info(self._stream)
        retention = getattr(info.config.retention, "value", info.config.retention)
        self._keeps_until_acknowledged = retention == "workqueue"
        if retention == "interest":
            raise SourceError(
                f"{self._wanted.what}: {self.name} keeps messages only as long as somebody is "
                "interested (retention interest), and a start could not go back: give it the "
                "retention limits or workqueue"
            )
        if self._keeps_until_acknowledged and self._start == "latest":
            raise SourceError(
                f"{self._wanted.what}: start='latest' would leave out messages of {self.name}, "
                "which is a work queue and keeps them until they are acknowledged: expected "
                "start='earliest'"
            )
        if self._keeps_until_acknowledged:
            await self._take_over()
        self._last = self._recorded
        if position is None and self._start == "latest":
            self._last = info.state.last_seq
        await self._consume()
        self._watch = asyncio.get_running_loop().create_task(self._look_after())

    async def _take_over(self) -> None:
        """Ends the consumer of a run that was killed: a work queue has one, which has a name.

        Raises:
            SourceError: another run reads with it.
        """
        self._queue_name = f"specstream-{zlib.crc32((self._subject or '').encode()):08x}"
        until = asyncio.get_running_loop().time() + 2 * _REQUEST_SECONDS
        with contextlib.suppress(self._nats.js.errors.NotFoundError):
            while True:
                found = await self._api.consumer_info(self._stream, self._queue_name)
                if not found.num_waiting:
                    break
                # Of a process that was killed the server forgets what it has asked for.
                if asyncio.get_running_loop().time() > until:
                    raise SourceError(
                        f"{self._wanted.what}: {self.name} is a work queue, and another run reads "
                        f"from it (consumer {self._queue_name!r}): end that one first"
                    )
                await asyncio.sleep(_PAUSE)
            await self._api.delete_consumer(self._stream, self._queue_name)

    async def _consume(self) -> None:
        """Makes a consumer behind the last message that has come, and asks it for more."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        assert self._client is not None
        await self._forget()
        info = await self._api.stream_info(self._stream)
        if self._last:
            self._check_there(info.state.first_seq, info.state.last_seq)
        config = ConsumerConfig(
            ack_policy=AckPolicy.NONE,
            deliver_policy=DeliverPolicy.ALL,
            filter_subject=self._subject,
            inactive_threshold=10 * _REQUEST_SECONDS,
            mem_storage=True,
        )
        if self._keeps_until_acknowledged:
            config.durable_name = self._queue_name
            config.ack_policy = AckPolicy.EXPLICIT
            config.ack_wait = 3600.0
            config.max_ack_pending = -1
        elif self._last:
            config.deliver_policy = DeliverPolicy.BY_START_SEQUENCE
            config.opt_start_seq = self._last + 1
        self._consumer = (await self._api.add_consumer(self._stream, config)).name
        self._broken.clear()
        self._generation += 1
        self._number, self._asked, self._requests = 0, 0, 0
        self._heard = asyncio.get_running_loop().time()
        self._inbox = self._client.new_inbox()
        self._subscription = await self._client.subscribe(
            f"{self._inbox}.*", cb=partial(self._came, self._generation)
        )
        await self._ask()

    def _check_there(self, first: int, last: int) -> None:
        what = f"{self._wanted.what}: {self.name} was read up to sequence {self._last}"
        if last < self._last:
            raise SourceError(
                f"{what}, and ends at {last}: it was made anew. Begin with a new checkpoint="
            )
        is_gone = first > self._last + 1 and not self._keeps_until_acknowledged
        if is_gone and self._gone == "error":
            raise SourceError(
                f"{what}, and begins at {first} now: what was in between was deleted before it was "
                'read. Keep it longer (max_age, max_msgs); gone="skip" goes on with what is there'
            )

    async def _ask(self, again: bool = False) -> None:
        """Asks for as many messages as there is room for, unless others are on their way.

        Args:
            again: also then, as what was asked for is about to end. Until it has, both are
                answered, and twice as many may come.
        """
        room = self._room - self._buffer.rows
        if self._asked and not again:
            return
        if room <= 0 or self._broken.is_set() or self._client is None:
            return
        self._asked = room
        self._asked_at = asyncio.get_running_loop().time()
        self._requests += 1
        request = {"batch": room, "expires": int(_REQUEST_SECONDS * 1e9)}
        await self._client.publish(
            f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}",
            json.dumps(request).encode(),
            reply=f"{self._inbox}.{self._requests}",
        )

    async def _came(self, generation: int, message: Msg) -> None:
        """A message, or the server's word that a request is over."""
        if generation != self._generation or self._broken.is_set():
            return
        self._heard = asyncio.get_running_loop().time()
        tokens = message.reply.split(".")
        if tokens[:2] != ["$JS", "ACK"]:
            status = (message.headers or {}).get("Status", "")
            if status in ("404", "408"):
                if message.subject == f"{self._inbox}.{self._requests}":
                    self._asked = 0
                    await self._ask()
            elif status != "100":
                self._broken.set()
            return
        # With the name of a domain and of an account in front, or without.
        parts = tokens[5:8] if len(tokens) == 9 else tokens[7:10]
        sequence, number, nanoseconds = map(int, parts)
        if number != self._number + 1:
            self._broken.set()
            return
        self._number = number
        self._asked = max(0, self._asked - 1)
        if self._keeps_until_acknowledged:
            self._replies[sequence] = message.reply
        if sequence > self._last:
            self._last = sequence
            self._buffer.offer(
                _Message(sequence, message.subject, nanoseconds // 1000, message.data), 1
            )
        elif sequence <= self._recorded and self._client is not None:
            await self._client.publish(self._replies.pop(sequence), b"+ACK")
        await self._ask()

    async def _acknowledge(self, position: int) -> None:
        """Lets the server forget messages that are recorded."""
        self._recorded = position
        done = [sequence for sequence in self._replies if sequence <= position]
        for sequence in done:
            assert self._client is not None
            await self._client.publish(self._replies.pop(sequence), b"+ACK")

    async def _reconnected(self) -> None:
        # What was under way when the connection broke has not come.
        self._broken.set()

    async def _look_after(self) -> None:
        """Makes another consumer whenever the present one has failed."""
        try:
            while True:
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._broken.wait(), 1.0)
                now = asyncio.get_running_loop().time()
                silent = self._asked and now - self._heard > 2 * _REQUEST_SECONDS
                if not self._broken.is_set() and not silent:
                    if self._asked and now - self._asked_at > _AGAIN_SECONDS:
                        await self._ask(again=True)
                    continue
                self._broken.set()
                try:
                    await self._consume()
                except self._nats.js.errors.NotFoundError:
                    raise
                except (TimeoutError, self._nats.errors.Error, OSError):
                    await asyncio.sleep(_PAUSE)  # the client is looking for the server
        except asyncio.CancelledError:
            raise
        except SourceError as error:
            self._buffer.end(error)
        except Exception as error:
            self._buffer.end(self._failed(error))

    async def _forget(self) -> None:
        """Ends the consumer and its subscription, as far as they are there."""
        subscription, self._subscription = self._subscription, None
        if subscription is None:
            return
        with contextlib.suppress(self._nats.errors.Error, asyncio.TimeoutError, OSError):
            await subscription.unsubscribe()
            await self._api.delete_consumer(self._stream, self._consumer)

    async def _end(self) -> None:
        if self._watch is not None:
            self._watch.cancel()
        if self._client is not None:
            if self._client.is_connected:
                await self._client.flush()
                await self._forget()
            await self._client.close()


async def _ignored(error: Exception) -> None:
    """The client logs it, and connects again; what does not pass is an error of a call."""


@made_like(NatsSource)
def nats(**arguments: Any) -> NatsSource:
    """The messages of a stream of NATS JetStream; they are JSON objects.

    With ``pip install "specstream[nats]"``. A column named subject is that of the message. Columns
    named sequence and timestamp, for ``order_by``, are its place and its time in the stream. All
    others are fields of the message. The position is the sequence, which the checkpoint has.

    Args:
        servers: an address, like ``"nats://127.0.0.1:4222"``, or a list.
        stream: name of the stream. Its retention is "limits", or "workqueue": then messages are
            acknowledged when they are recorded and in the sinks.
        subject: only messages of subjects like this one; None: all.
        start: where a run begins that has no checkpoint yet: "earliest" or "latest".
        gone: what to do where the stream has deleted messages before they were read: "error", or
            "skip".
        columns: types of columns that the operator does not declare, and ``order_by`` or ``source``
            names.
        decode: turns a message's bytes into a dict of its fields, or into a list of dicts or named
            tuples, an event each, where they are not JSON.
        options: further arguments of ``nats.connect``, such as ``{"user_credentials": path}``.

    Raises:
        ConfigurationError: an argument is not what it must be.
        ImportError: nats-py is not installed.

    ::

        with ss.Engine(operator) as engine:
            ss.sources.run(
                engine,
                ss.sources.nats("nats://127.0.0.1:4222", "ORDERS", "orders.>"),
                to=sink,
                checkpoint="orders/checkpoint",
            )
    """
    return NatsSource(**arguments)

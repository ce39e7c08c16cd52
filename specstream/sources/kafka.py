"""Records of Kafka as a source, by ``confluent-kafka``.

All partitions of the topics are read by this one consumer, from the offsets that the checkpoint
has. What Kafka keeps of a consumer group is not asked. Where one is given, it is told how far the
sinks are, for whoever watches the lag.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from specstream.columns.message_values import Misfit
from specstream.declarations.options import instance, items, one_of, refused, refuses_unknown, text
from specstream.errors import ConfigurationError, SourceError
from specstream.sources.decoding import Decode, Decoder
from specstream.sources.source import Position, Rows, Source, Wanted, made_like

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Message

__all__ = ["KafkaSource", "kafka"]

SECONDS = 10.0
# What a record has beside its value.
RECORD = ("key", "topic", "partition", "offset", "timestamp", "source")


class KafkaSource(Source):
    """Records of topics; see :func:`kafka`."""

    needs_thread = True

    @refuses_unknown
    def __init__(
        self,
        servers: str,
        topics: str | Sequence[str],
        *,
        start: str = "earliest",
        gone: str = "error",
        group: str | None = None,
        columns: Mapping[str, Any] | None = None,
        decode: Decode | None = None,
        config: Mapping[str, Any] | None = None,
    ) -> None:
        try:
            import confluent_kafka
        except ImportError as missing:
            raise ImportError(
                'ss.sources.kafka needs confluent-kafka: pip install "specstream[kafka]"'
            ) from missing
        self._kafka = confluent_kafka
        if not isinstance(servers, str):
            raise refused("servers", servers, "addresses of brokers, like 'broker:9092'")
        expected = "a topic, or a list of them"
        self._topics = sorted(
            {topics} if isinstance(topics, str) else set(items("topics", topics, expected))
        )
        if not self._topics or not all(isinstance(one, str) for one in self._topics):
            raise refused("topics", topics, expected)
        self._start = one_of("start", start, ("earliest", "latest"))
        self._gone = one_of("gone", gone, ("error", "skip"))
        self._group = text("group", group, "the name of a consumer group, or None")
        self._columns, self._decode = columns, decode
        given = {} if config is None else instance("config", config, Mapping, "a dict")
        self._config = {
            "bootstrap.servers": servers,
            "fetch.queue.backoff.ms": 5,
            **given,
            "group.id": group or "specstream",
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error" if gone == "error" else "earliest",
            "on_commit": self._on_commit,
        }
        self._users_on_commit = given.get("on_commit")
        self.name = f"Kafka's topic(s) {', '.join(self._topics)}"
        self._consumer: Consumer | None = None
        self._next: dict[tuple[str, int], int] = {}
        self._uncommitted: Position | None = None
        self._is_committing = False
        self._stopped = False

    def open(self, wanted: Wanted, position: Position | None) -> None:
        self._wanted = wanted
        self._decoder = Decoder(wanted, RECORD, self._columns, self._decode)
        try:
            self._consumer = self._kafka.Consumer(self._config)
        except (self._kafka.KafkaException, ValueError, TypeError) as error:
            raise ConfigurationError(
                f"{wanted.what}: config= of {self.name} is refused by the client: {error}"
            ) from error
        try:
            self._next = self._first_offsets(position)
            self._consumer.assign(
                [self._kafka.TopicPartition(*of, offset) for of, offset in self._next.items()]
            )
        except self._kafka.KafkaException as error:
            raise self._failed(error.args[0]) from error

    def _first_offsets(self, position: Position | None) -> dict[tuple[str, int], int]:
        """Of each partition the offset to begin with."""
        assert self._consumer is not None
        recorded = {} if position is None else position
        found = {}
        for topic in self._topics:
            metadata = self._consumer.list_topics(topic, SECONDS).topics[topic]
            if metadata.error is not None:
                raise self._failed(metadata.error)
            for partition in sorted(metadata.partitions):
                of = topic, partition
                low, high = self._consumer.get_watermark_offsets(
                    self._kafka.TopicPartition(*of), SECONDS
                )
                offset = recorded.get(topic, {}).get(str(partition))
                if offset is None:
                    # A partition that is new since the checkpoint is read from its beginning.
                    is_new = position is None and self._start == "latest"
                    found[of] = high if is_new else low
                    continue
                if offset > high:
                    raise SourceError(
                        f"{self._wanted.what}: topic {topic!r}, partition {partition} was read up "
                        f"to offset {offset}, and ends at {high}: it was made anew. Begin with a "
                        "new checkpoint="
                    )
                if offset < low and self._gone == "error":
                    raise self._are_gone(topic, partition, offset, low)
                found[of] = max(offset, low)
        return found

    def read(self, rows: int, wait: float, idle: float) -> Rows | None:
        if self._stopped:
            return None
        assert self._consumer is not None
        first = self._consumer.poll(idle)
        self._commit_newest()
        if first is None:
            return Rows(pa.table({}))
        came = [first]
        if rows > 1:
            came += self._consumer.consume(rows - 1, wait)
        messages = [one for one in came if self._is_record(one)]
        if not messages:
            return Rows(pa.table({}))
        return self._rows(messages)

    def _is_record(self, message: Message) -> bool:
        error = message.error()
        if error is None:
            return True
        topic: Any = message.topic()
        partition: Any = message.partition()
        if error.code() in (
            self._kafka.KafkaError._AUTO_OFFSET_RESET,
            self._kafka.KafkaError.OFFSET_OUT_OF_RANGE,
        ):
            raise self._are_gone(topic, partition, self._next.get((topic, partition)), None)
        passing = (
            self._kafka.KafkaError._PARTITION_EOF,
            self._kafka.KafkaError._ALL_BROKERS_DOWN,
            self._kafka.KafkaError._TRANSPORT,
        )
        if error.fatal() or not (error.retriable() or error.code() in passing):
            raise self._failed(error)
        return False  # the client goes on trying

    def _rows(self, messages: list[Any]) -> Rows:
        contents: list[bytes | Misfit | None] = []
        keys: list[str | None] = []
        for message in messages:
            key, content = message.key(), message.value()
            try:
                keys.append(None if key is None else key.decode())
            except UnicodeDecodeError as error:
                keys.append(None)
                content = Misfit(f"its key is no UTF-8 ({error})")
            contents.append(content)
            self._next[message.topic(), message.partition()] = message.offset() + 1
        topics = [message.topic() for message in messages]
        partitions = [message.partition() for message in messages]
        times = [message.timestamp()[1] for message in messages]
        own = {
            "key": pa.array(keys, pa.string()),
            "topic": pa.array(topics, pa.string()),
            "partition": pa.array(partitions, pa.int32()),
            "offset": pa.array([message.offset() for message in messages], pa.int64()),
            "timestamp": pa.array(times, pa.timestamp("ms", "UTC")),
            "source": pa.array(
                [f"{topic}-{number}" for topic, number in zip(topics, partitions, strict=True)]
            ),
        }

        def place(at: int) -> str:
            one = messages[at]
            return f"topic {one.topic()!r}, partition {one.partition()}, offset {one.offset()}"

        table = self._decoder.messages(contents, own, place)
        return Rows(table, self._position(), f"{place(0)} to {place(-1)}")

    def _position(self) -> Position:
        position: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in self._next.items():
            position.setdefault(topic, {})[str(partition)] = offset
        return position

    def _are_gone(
        self, topic: Any, partition: Any, offset: int | None, low: int | None
    ) -> SourceError:
        until = "" if low is None else f" to {low - 1}"
        return SourceError(
            f"{self._wanted.what}: topic {topic!r}, partition {partition}: the records from offset "
            f"{offset}{until} were deleted before they were read: keep them longer "
            '(retention.ms); gone="skip" goes on with what is there'
        )

    def _failed(self, error: Any) -> SourceError:
        return SourceError(
            f"{self._wanted.what}: {self.name} at {self._config['bootstrap.servers']}: {error}"
        )

    def commit(self, position: Position) -> None:
        if self._group is not None:
            self._uncommitted = position
            self._commit_newest()

    def _commit_newest(self) -> None:
        """Has the broker told the newest position, one request at a time.

        Of two requests under way while the client looks for the group's coordinator, the older one
        can arrive last.
        """
        if self._uncommitted is None or self._is_committing or self._consumer is None:
            return
        offsets = [
            self._kafka.TopicPartition(topic, int(partition), offset)
            for topic, partitions in self._uncommitted.items()
            for partition, offset in partitions.items()
        ]
        self._uncommitted, self._is_committing = None, True
        self._consumer.commit(offsets=offsets, asynchronous=True)

    def _on_commit(self, error: Any, offsets: Any) -> None:
        """Called by the client, inside ``poll``, when a request is done. One that failed is not
        repeated: the checkpoint has the position, and the group is for whoever watches."""
        self._is_committing = False
        if self._users_on_commit is not None:
            self._users_on_commit(error, offsets)

    def stop(self) -> None:
        self._stopped = True

    def close(self) -> None:
        if self._consumer is None:
            return
        until = time.monotonic() + SECONDS
        self._commit_newest()
        while self._is_committing and time.monotonic() < until:
            self._consumer.poll(0.01)  # where the answer arrives; rows that come now are not taken
            self._commit_newest()
        consumer, self._consumer = self._consumer, None
        consumer.close()


@made_like(KafkaSource)
def kafka(**arguments: Any) -> KafkaSource:
    """The records of topics of Kafka; their values are JSON objects.

    With ``pip install "specstream[kafka]"``. Columns named key (text), topic, partition and offset
    are the record's own, as well as timestamp and source, the topic with its partition
    (``"orders-3"``), for ``order_by`` and ``source``; all others are fields of the value. Their
    position is the offset in each partition, which the checkpoint has.

    Args:
        servers: addresses of brokers, like ``"broker:9092"``.
        topics: one, or a list. All of their partitions are read.
        start: where a run begins that has no checkpoint yet: "earliest" or "latest".
        gone: what to do where Kafka has deleted records before they were read: "error", or "skip".
        group: name of a consumer group whose offsets follow what the sinks have stored; None: no
            group.
        columns: types of columns that the operator does not declare, and ``order_by`` or ``source``
            names.
        decode: turns a value's bytes into a dict of its fields, or into a list of dicts or named
            tuples, an event each, where they are not JSON.
        config: further settings of librdkafka, such as ``{"security.protocol": "ssl"}``.

    Raises:
        ConfigurationError: an argument is not what it must be.
        ImportError: confluent-kafka is not installed.

    ::

        with ss.Engine(operator) as engine:
            ss.sources.run(
                engine,
                ss.sources.kafka("broker:9092", "orders"),
                order_by="offset",
                source="partition",
                to=sink,
                checkpoint="orders/checkpoint",
            )
    """
    return KafkaSource(**arguments)

"""Kafka for tests: the mock cluster that librdkafka brings, which speaks Kafka's protocol over TCP.

It lives in the client that was told to make it, and so in the test's process; others connect to it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any


class KafkaCluster:
    """One broker."""

    def __init__(self) -> None:
        from confluent_kafka import Producer

        self._producer = Producer({"test.mock.num.brokers": 1, "linger.ms": 0})
        (broker,) = self._producer.list_topics(timeout=10).brokers.values()
        self.servers = f"{broker.host}:{broker.port}"

    def publish(
        self,
        topic: str,
        messages: Iterable[Mapping[str, Any] | bytes | None],
        partition: int = 0,
        key: bytes | None = None,
    ) -> None:
        """Puts records into a partition, in their order; the topic is made by the first."""
        for message in messages:
            content = json.dumps(message).encode() if isinstance(message, Mapping) else message
            self._producer.produce(topic, content, key, partition=partition)
        assert self._producer.flush(10) == 0

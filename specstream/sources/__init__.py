"""Feeding an engine without Spark, where a tenth of a second for each micro-batch is too much.

::

    with ss.Engine(operator) as engine:
        ss.sources.run(
            engine,
            ss.sources.nats("nats://127.0.0.1:4222", "ORDERS"),
            to=ss.sinks.parquet_sink(path),
            checkpoint=checkpoint,
        )
"""

from specstream.sources.datasets import DatasetSource, dataset
from specstream.sources.iterators import IteratorSource, iterate
from specstream.sources.jetstream import NatsSource, nats
from specstream.sources.kafka import KafkaSource, kafka
from specstream.sources.pull import PulledRows, pull
from specstream.sources.running import arun, run
from specstream.sources.sockets import TcpSource, tcp
from specstream.sources.source import Rows, Source, Wanted
from specstream.sources.union import UnionSource, union

__all__ = [
    "DatasetSource",
    "IteratorSource",
    "KafkaSource",
    "NatsSource",
    "PulledRows",
    "Rows",
    "Source",
    "TcpSource",
    "UnionSource",
    "Wanted",
    "arun",
    "dataset",
    "iterate",
    "kafka",
    "nats",
    "pull",
    "run",
    "tcp",
    "union",
]

"""The Java classes that Spark loads, kept in one file as a JVM has them in memory.

Tests start dozens of Sparks, and more than half of a start is reading and checking classes. A JVM
that does not fit to the file (another Java, another Spark) reads its classes as ever.

    python -m support.spark.java_classes    makes the file
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

CLASSES = Path(__file__).parents[3] / ".pytest_cache" / "spark.jsa"

# These JVMs live for seconds: too short for a compiler that optimises, or a collector with threads
# of its own. Half the processor time of a start goes into those.
# Code that nothing has compiled yet needs more stack than Spark's threads have.
_SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xss4m"
# What does not fit is no failure, and nobody wants to read of it.
_QUIET = "-Xlog:disable -Xlog:all=error:stderr"


def options() -> str:
    """For ``SPARK_SUBMIT_OPTS``."""
    if not CLASSES.exists():
        return _SHORT_LIVED
    return f"{_SHORT_LIVED} {_QUIET} -XX:SharedArchiveFile={CLASSES}"


def make() -> None:
    """Starts a Spark that does what most tests do, and keeps what it has loaded."""
    CLASSES.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CLASSES.parent) as scratch:
        kept = Path(scratch, "spark.jsa")
        subprocess.run(
            [
                Path(sys.executable).with_name("spark-submit"),
                *("--conf", "spark.ui.enabled=false"),
                *("--master", "local[2]", __file__, scratch),
            ],
            env=os.environ
            | {
                "PYSPARK_PYTHON": sys.executable,
                "SPARK_SUBMIT_OPTS": f"{_SHORT_LIVED} {_QUIET} -XX:ArchiveClassesAtExit={kept}",
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=True,
        )
        kept.replace(CLASSES)


def _run(scratch: Path) -> None:
    from pyspark.sql import DataFrame, SparkSession

    spark = SparkSession.builder.getOrCreate()
    rows = [(number, float(number), str(number)) for number in range(10)]
    frame = spark.createDataFrame(rows, "key long, value double, name string")
    frame.write.parquet(str(scratch / "events"))

    def take(batch: DataFrame, number: int) -> None:
        batch.orderBy("key").toArrow()

    stream = spark.readStream.schema(frame.schema).parquet(str(scratch / "events"))
    query = (
        stream.writeStream.foreachBatch(take)
        .option("checkpointLocation", str(scratch / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _run(Path(sys.argv[1]))
    else:
        make()

"""Which checks are made, in which order: what others depend on comes first."""

from __future__ import annotations

from specstream.doctor import checkpoint, engine, installation, machine, spark
from specstream.doctor.finding import Check

__all__ = ["checks"]


def checks(with_session: bool, place: str | None) -> list[Check]:
    """The checks of ``specstream doctor``.

    Args:
        with_session: start a Spark session as well.
        place: a directory for checkpoints to look at; None: none.
    """
    chosen = [*installation.CHECKS, *engine.CHECKS, *machine.CHECKS]
    if with_session or installation.has_spark():
        chosen += spark.CHECKS
    else:
        chosen += spark.WITHOUT
    if with_session:
        chosen.append(spark.SESSION)
    if place is not None:
        chosen.append(checkpoint.check(place))
    return chosen

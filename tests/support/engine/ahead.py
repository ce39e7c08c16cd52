"""Events that run ahead of their turn, as many at a time as a horizon holds, on one state.

How many runs overlap in an ordinary batch is the machine's affair. Here events are submitted, and
have all run before the first may commit: so what conflicts does, and what does not never does.
"""

from __future__ import annotations

import time

import pyarrow as pa

import specstream as ss

__all__ = ["AT_A_TIME", "run_ahead"]

AT_A_TIME = 16


def run_ahead(
    operator: ss.Operator, table: pa.Table, protocol: str = "value"
) -> tuple[ss.Statistics, dict[str, object]]:
    """The engine's figures and its last state."""
    horizon = AT_A_TIME - 1
    with ss.Engine(operator, threads=2, horizon=horizon, chunk=1, protocol=protocol) as engine:
        for start in range(0, len(table), AT_A_TIME):
            part = table.slice(start, AT_A_TIME)
            times = pa.array(range(start, start + len(part)))
            ran = engine.stats.speculative_runs
            engine.submit(part.append_column("time", times), order_by="time")
            deadline = time.monotonic() + 20
            # Under eager a run that lost a lock waits for the winner, and has run nonetheless.
            while engine.stats.speculative_runs < ran + len(part):
                assert time.monotonic() < deadline, engine.stats
                time.sleep(0.0005)
            engine.advance(0, start + len(part) - 1)
            while engine.stats.pending:
                engine.poll(timeout=1)
        engine.advance(0)
        return engine.stats, engine.state.to_dict()

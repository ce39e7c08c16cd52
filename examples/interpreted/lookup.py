"""Orders checked against a service over the network, whose answers change a shared state.

The service knows how much a customer may owe, and answers after a while. What all customers
together may owe is in the state: who gets the last of it depends on the order of the orders.
"""

# Operators carry no types.
# mypy: allow-untyped-defs, allow-untyped-calls

from __future__ import annotations

import contextlib
import http.client
import multiprocessing
import time
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pyarrow as pa

import specstream as ss

__all__ = ["checking", "orders", "serving"]

CUSTOMERS = 4_000
MOST = 2_000_000  # that all customers together may owe


def limit_of(customer: int) -> int:
    """What the service knows."""
    return 200 + customer * 7919 % 1_800


class _Limits(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # connections are kept
    disable_nagle_algorithm = True  # a body does not wait until its head was acknowledged
    wbufsize = -1
    seconds = 0.0

    def do_GET(self) -> None:
        time.sleep(self.seconds)
        answer = str(limit_of(int(self.path.removeprefix("/limit/")))).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: object) -> None:
        pass


def _serve(seconds: float, told: Any) -> None:
    handler = type("Limits", (_Limits,), {"seconds": seconds})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    told.send(server.server_address[1])
    server.serve_forever()


@contextlib.contextmanager
def serving(seconds: float) -> Iterator[tuple[str, int]]:
    """The service, in a process of its own on this machine; each answer takes so long. Gives its
    address."""
    context = multiprocessing.get_context("spawn")
    heard, told = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(seconds, told), daemon=True)
    process.start()
    try:
        yield "127.0.0.1", heard.recv()
    finally:
        process.terminate()
        process.join()


class Ledger(ss.State):
    owes = ss.dict(int, int)
    all_owe = ss.scalar(int)
    refused = ss.array(int, 2)  # for the customer's limit, and for that of all


def checking(address: tuple[str, int]) -> ss.Operator:
    """The operator: which orders are taken, and what the customer owes then.

    Args:
        address: of the service.
    """
    # A connection serves one thread at a time.
    connection = ss.per_worker(partial(http.client.HTTPConnection, *address, timeout=60))

    def ask(customer):
        held = connection()
        held.request("GET", f"/limit/{customer}")
        return int(held.getresponse().read())

    @ss.operator(
        state=Ledger,
        event={"time": int, "customer": int, "amount": int},
        emits={"customer": int, "owes": int, "taken": bool},
        interpreted=True,
    )
    def checked(state, event, emit):
        if event.amount <= 0:
            raise ValueError(f"an order of {event.amount} by customer {event.customer}")
        limit = ask(event.customer)
        owes = state.owes.get(event.customer, 0) + event.amount
        if owes > limit:
            state.refused[0] += 1
            emit(event.customer, owes - event.amount, False)
        elif state.all_owe + event.amount > MOST:
            state.refused[1] += 1
            emit(event.customer, owes - event.amount, False)
        else:
            state.owes[event.customer] = owes
            state.all_owe += event.amount
            emit(event.customer, owes, True)

    return checked


def orders(count: int, seed: int = 0) -> pa.Table:
    """Orders of customers, drawn from a seed."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "time": np.arange(count),
            "customer": rng.integers(0, CUSTOMERS, count),
            "amount": rng.integers(1, 600, count),
        }
    )

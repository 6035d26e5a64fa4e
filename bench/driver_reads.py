"""The command `python -m bench.driver_reads`: what do reads by libpq save beside the driver's own?

The PostgreSQL engine sends reads by libpq (`storage/postgresql/pipelined_reads.py`). This measures
one worker in this process, without the HTTP server, with that and with two ways in its place, in
turn: cursors of the driver in its pipeline mode, and cursors of the driver with one read at a time
on each connection. For each request the table has the processor time of the worker.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Final
from unittest.mock import patch

import uvloop

from bench.databases import running_postgresql
from bench.inprocess import Asked, Exchange, Worker, root_settings, running_worker
from bench.installation import scratch_folder
from bench.report import PERFORMANCE_PAGE, write_page
from bench.requests import COUNTED
from bench.rounds import progress
from podstead.app.adapters.root import prepared_root
from podstead.config import Settings
from podstead.storage.postgresql import pipelined_reads, reads
from podstead.storage.postgresql.connecting import ConnectionPool
from podstead.storage.schema import Row

ROUNDS: Final = 5
REQUESTS: Final = 256
AT_ONCE: Final = 16
_KEYS: Final = ("get-public", "get-private", "put-replace", "put-create")


class DriverReads:
    """Reads by cursors of the driver, one at a time on each connection of the pool."""

    def __init__(self, pool: ConnectionPool, *, connections: int) -> None:
        del connections
        self._pool = pool

    async def fetch(self, statement: bytes, values: Sequence[Any], storage: str) -> list[Row]:
        """The rows of a SELECT."""
        del storage
        async with self._pool.connection() as connection:
            cursor = await connection.execute(statement, values, binary=True)
            rows: list[Row] = await cursor.fetchall()
            return rows

    async def close(self) -> None:
        """Nothing is kept."""


class DriverPipeline(DriverReads):
    """Reads by cursors of the driver, however many at once on connections in its pipeline mode."""

    def __init__(self, pool: ConnectionPool, *, connections: int) -> None:
        super().__init__(pool, connections=connections)
        self._wanted = connections
        self._opened: list[tuple[Any, Any]] = []
        self._opening = asyncio.Lock()
        self._next = 0

    async def fetch(self, statement: bytes, values: Sequence[Any], storage: str) -> list[Row]:
        """The rows of a SELECT."""
        del storage
        async with self._opening:
            while len(self._opened) < self._wanted:
                connection = await self._pool.getconn()
                pipeline = connection.pipeline()
                await pipeline.__aenter__()
                self._opened.append((connection, pipeline))
        self._next = (self._next + 1) % self._wanted
        connection, _ = self._opened[self._next]
        cursor = await connection.execute(statement, values, binary=True)
        rows: list[Row] = await cursor.fetchall()
        return rows

    async def close(self) -> None:
        """Give the connections back."""
        for connection, pipeline in self._opened:
            await pipeline.__aexit__(None, None, None)
            await self._pool.putconn(connection)


WAYS: Final[tuple[tuple[str, Callable[..., Any]], ...]] = (
    ("libpq", pipelined_reads.PipelinedReads),
    ("the driver's pipeline", DriverPipeline),
    ("the driver, one at a time", DriverReads),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser("python -m bench.driver_reads", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--write-docs", action="store_true")
    options = parser.parse_args(arguments)
    with ExitStack() as cleanup:
        place = cleanup.enter_context(scratch_folder("driver-reads"))
        server = cleanup.enter_context(running_postgresql())
        settings = root_settings(place / "root", database=server.create_database())
        cleanup.enter_context(prepared_root(settings))
        text = uvloop.run(_measure(settings, options.rounds))
    sys.stdout.write(text + "\n")
    if options.write_docs:
        write_page(text, PERFORMANCE_PAGE, "driver-reads")
    return 0


async def _measure(settings: Settings, rounds: int) -> str:
    cells: dict[tuple[str, str], list[float]] = {}
    counted = [each for each in COUNTED if each.key in _KEYS]
    async with running_worker(settings, seed=1) as worker:
        await worker.make_pod()
        for each in counted:
            for number in range(REQUESTS):
                await worker.ask_all(each.store(worker, number))
    first = 1  # of the resources to create
    for round_number in range(rounds + 1):
        for way, make in WAYS:
            with _instead(make):
                async with running_worker(settings, seed=1000 + first, token=worker.token) as other:
                    for each in counted:
                        start = first if each.key == "put-create" else 0
                        took = await _run(
                            other, [each.ask(other, start + n) for n in range(REQUESTS)]
                        )
                        if round_number:
                            title = each.title.removesuffix(", kept response")
                            cells.setdefault((title, way), []).append(took)
            first += REQUESTS
        progress(f"round {round_number}")
    return _table(cells)


async def _run(worker: Worker, asked: Sequence[Asked]) -> float:
    """The processor time of each, in microseconds."""
    exchanges = [Exchange(each) for each in asked]
    waiting: Iterator[Exchange] = iter(exchanges)
    began_s = time.process_time()

    async def send() -> None:
        for each in waiting:
            await worker.call(each.scope, each.receive, each.send)

    await asyncio.gather(*(send() for _ in range(AT_ONCE)))
    cpu_s = time.process_time() - began_s
    for each in exchanges:
        each.require()
    return cpu_s * 1e6 / len(asked)


@contextmanager
def _instead(make: Callable[..., Any]) -> Iterator[None]:
    with patch.object(reads, "PipelinedReads", make):
        yield


def _table(cells: dict[tuple[str, str], list[float]]) -> str:
    names = [name for name, _ in WAYS]
    rows = [["request", *names], ["---", *("---:" for _ in names)]]
    for title in dict.fromkeys(title for title, _ in cells):
        medians = [statistics.median(cells[title, name]) for name in names]
        rows.append([title, *(f"{each:.0f} µs" for each in medians)])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())

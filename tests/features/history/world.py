"""One server for all examples of a property test, each of which has a folder of its own."""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field

from podstead.app.adapters.root import prepared_root
from podstead.config import Settings
from tests.support.application import Server, new_pods, running, with_two_pods
from tests.support.clock import FakeClock


@dataclass
class World:
    """The server, its clock, and the loop that it runs in."""

    runner: asyncio.Runner
    server: Server
    clock: FakeClock
    numbers: Iterator[int] = field(default_factory=itertools.count)

    def new_folder(self) -> str:
        """The path of a folder that nothing else uses."""
        return f"/alice/private/{next(self.numbers)}/"


@contextmanager
def running_world(settings: Settings) -> Iterator[World]:
    """Start the server on a new data root, and stop it in the end."""
    clock = FakeClock(time_ms=time.time_ns() // 1_000_000)
    with ExitStack() as stack:
        stack.enter_context(prepared_root(settings))
        runner = stack.enter_context(asyncio.Runner())
        running_server = AsyncExitStack()

        async def start() -> Server:
            application = await running_server.enter_async_context(running(settings, clock=clock))
            return await with_two_pods(application, await new_pods(application))

        yield World(runner, runner.run(start()), clock)
        runner.run(running_server.aclose())

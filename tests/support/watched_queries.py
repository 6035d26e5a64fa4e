"""Watching a live query over a WebSocket, and when it is evaluated."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from podstead.notifications import answers
from podstead.notifications.answers import WatchedQuery
from podstead.storage.protocol import ChangeLog
from tests.support.application import BASE, Server
from tests.support.asgi import Client
from tests.support.asgi_sockets import Socket, connected
from tests.support.notification_channels import channel, path_of

DEADLINE_S = 60.0
SOCKETS = "WebSocketChannel2023"


async def state_now(client: Client, topic: str) -> str:
    """The state of the answer, as a new channel has it."""
    return str((await channel(client, SOCKETS, topic))["state"])


@dataclass
class _Progress:
    """How far the evaluations of somebody's live query are: up to which row of the change log the
    last one that began or is over has all changes."""

    log: ChangeLog | None = None
    begun: int = -1
    over: int = -1

    async def reach(self, sequence: int) -> None:
        """Wait until an evaluation with all changes up to a row is over."""
        async with asyncio.timeout(DEADLINE_S):
            while self.over < sequence:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.01)


@dataclass
class Watched:
    """A socket of somebody who watches a live query."""

    topic: str
    state: str
    """The state at the subscription."""
    socket: Socket
    progress: _Progress

    async def is_told(self) -> str:
        """The state of the next message."""
        async with asyncio.timeout(DEADLINE_S):
            said: dict[str, str] = json.loads(await self.socket.receive())
        assert (said["type"], said["object"]) == ("Update", BASE + self.topic)
        return said["state"]

    async def evaluated_after(self, change: Awaitable[object]) -> None:
        """Make a change, and wait until an evaluation with it is over."""
        await change
        assert self.progress.log is not None
        await self.progress.reach(await self.progress.log.newest_sequence())


@dataclass
class Evaluations:
    """Follows the evaluations of live queries, by who asks."""

    by_asker: dict[str, _Progress] = field(default_factory=lambda: defaultdict(_Progress))

    @asynccontextmanager
    async def watched(self, server: Server, who: str, topic: str) -> AsyncIterator[Watched]:
        """A live query that ``alice``, ``bob`` or the ``public`` watches, once it was evaluated."""
        described = await channel(getattr(server, who), SOCKETS, topic)
        web_id = "" if who == "public" else getattr(server, f"{who}_web_id")
        progress = self.by_asker[web_id]
        async with connected(server.application, path_of(described["receiveFrom"])) as socket:
            await progress.reach(0)
            yield Watched(topic, described["state"], socket, progress)


@pytest.fixture
def evaluations(monkeypatch: pytest.MonkeyPatch) -> Evaluations:
    """Has live queries evaluated soon after each change."""
    monkeypatch.setattr(answers, "INTERVAL_S", 0.05)
    noted = Evaluations()
    real = WatchedQuery._answer

    async def counted(self: WatchedQuery) -> None:
        agent = self._subscriber.agent
        progress = noted.by_asker["" if agent is None else agent.iri]
        progress.log = self._with.log
        progress.begun = sequence = await progress.log.newest_sequence()
        await real(self)
        progress.over = sequence

    monkeypatch.setattr(WatchedQuery, "_answer", counted)
    return noted

"""A server with something to share, and its owner."""

from __future__ import annotations

import pytest

from tests.features.links.sharing_links import FOLDER, Owner
from tests.support.application import Server, Start
from tests.support.clock import FakeClock
from tests.support.pod_pages import sign_in_by_token


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock)


@pytest.fixture
async def owner(server: Server) -> Owner:
    for name, content in (("a.txt", "one"), ("sub/b.txt", "two")):
        answer = await server.alice.put(FOLDER + name, content, "text/plain")
        assert answer.status == 201
    assert (await server.alice.put("/alice/secret.txt", "secret", "text/plain")).status == 201
    return Owner(await sign_in_by_token(server, server.alice))

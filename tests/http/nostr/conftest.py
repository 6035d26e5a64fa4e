"""A server for tests of requests that are signed with a Nostr key."""

from __future__ import annotations

import pytest

from tests.http.conftest import Start
from tests.http.nostr.world import World, prepared
from tests.unit.outbound.peer import MovedClock


@pytest.fixture
def clock() -> MovedClock:
    return MovedClock()


@pytest.fixture
async def world(start: Start, clock: MovedClock) -> World:
    return await prepared(start, clock)

"""A server for tests of requests that are signed with a Nostr key."""

from __future__ import annotations

import pytest

from tests.features.nostr.world import World, prepared
from tests.support.application import Start
from tests.support.clock import FakeClock


@pytest.fixture
async def world(start: Start, clock: FakeClock) -> World:
    return await prepared(start, clock)

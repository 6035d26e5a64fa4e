"""A server for tests of requests that are signed with a Nostr key."""

from __future__ import annotations

import pytest

from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.nostr_world import World, prepared


@pytest.fixture
async def world(start: Start, clock: FakeClock) -> World:
    return await prepared(start, clock)

"""A provider with two accounts, and a server for tests of signed requests, in this process."""

from __future__ import annotations

import pytest

from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.nostr_world import World, prepared
from tests.support.provider_fixtures import app, browser, new_browser, server

__all__ = ["app", "browser", "new_browser", "server"]


@pytest.fixture
async def world(start: Start, clock: FakeClock) -> World:
    return await prepared(start, clock)

"""A server for tests of client certificates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.features.webid_tls.world import World, prepared
from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.provider import Provider, running_provider
from tests.support.provider_fixtures import browser, new_browser

__all__ = ["browser", "new_browser"]


@pytest.fixture
async def world(start: Start, clock: FakeClock) -> World:
    return await prepared(start, clock)


@pytest.fixture
def elsewhere() -> Iterator[Provider]:
    """Another server, where WebID documents are."""
    with running_provider() as provider:
        yield provider

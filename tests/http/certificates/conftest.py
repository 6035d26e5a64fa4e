"""A server for tests of client certificates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.http.certificates.world import World, prepared
from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.provider import Provider, running_provider


@pytest.fixture
async def world(start: Start, clock: FakeClock) -> World:
    return await prepared(start, clock)


@pytest.fixture
def elsewhere() -> Iterator[Provider]:
    """Another server, where WebID documents are."""
    with running_provider() as provider:
        yield provider

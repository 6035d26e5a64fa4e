"""A server and the providers around it, for tests of tokens that are bound to a key."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.provider import Provider, running_provider
from tests.support.token_world import World, prepared


@pytest.fixture
def provider() -> Iterator[Provider]:
    with running_provider() as provider:
        yield provider


@pytest.fixture
async def world(start: Start, clock: FakeClock, provider: Provider) -> World:
    return await prepared(start, clock, provider)


@pytest.fixture
def elsewhere() -> Iterator[Provider]:
    """Another server, where a WebID's document is."""
    with running_provider() as provider:
        yield provider

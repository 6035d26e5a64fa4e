"""A server for tests of client certificates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.features.webid_tls.world import World, prepared
from tests.http.idp_pages import conftest as idp_pages
from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.provider import Provider, running_provider

browser, new_browser = idp_pages.browser, idp_pages.new_browser


@pytest.fixture
async def world(start: Start, clock: FakeClock) -> World:
    return await prepared(start, clock)


@pytest.fixture
def elsewhere() -> Iterator[Provider]:
    """Another server, where WebID documents are."""
    with running_provider() as provider:
        yield provider

"""A server for tests of client certificates."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.features.webid_tls.world import World, prepared
from tests.http import conftest as http
from tests.http.idp_pages import conftest as idp_pages
from tests.support.application import Start
from tests.support.clock import FakeClock
from tests.support.provider import Provider, running_provider

settings, start, store = http.settings, http.start, http.store
clock, peer = http.clock, http.peer
key_pairs, _keys = http.key_pairs, http._keys_of_this_test
browser, new_browser = idp_pages.browser, idp_pages.new_browser


@pytest.fixture
async def world(start: Start, clock: FakeClock) -> World:
    return await prepared(start, clock)


@pytest.fixture
def elsewhere() -> Iterator[Provider]:
    """Another server, where WebID documents are."""
    with running_provider() as provider:
        yield provider

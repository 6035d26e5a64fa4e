"""Servers that are providers, as for the provider's own tests, and for those of its pages."""

from __future__ import annotations

import pytest

from podstead.features.access_limits.limits import DETAILS_TYPE as TYPE
from tests.support.application import Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.flow_fixtures import (  # noqa: F401 - fixtures
    app,
    provider,
    provider_root,
    public_app,
    start_provider,
)
from tests.support.idp_pages import App, register

__all__ = ["TYPE"]


@pytest.fixture
async def pages_server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock, idp=True)


@pytest.fixture
def browser(pages_server: Server) -> Browser:
    return Browser(pages_server.application)


@pytest.fixture
async def notes(pages_server: Server) -> App:
    return await register(pages_server)

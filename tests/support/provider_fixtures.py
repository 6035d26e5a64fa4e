"""A provider with two accounts, an application that asks for them, and browsers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.application import Server, Start
from tests.support.browser import Browser
from tests.support.clock import FakeClock
from tests.support.idp_pages import (
    App,
    register,
)


@pytest.fixture
async def server(start: Start, clock: FakeClock) -> Server:
    return await start(clock=clock, idp=True)


@pytest.fixture
def browser(server: Server) -> Browser:
    return Browser(server.application)


@pytest.fixture
def new_browser(server: Server) -> Callable[[], Browser]:
    return lambda: Browser(server.application)


@pytest.fixture
async def app(server: Server) -> App:
    return await register(server)

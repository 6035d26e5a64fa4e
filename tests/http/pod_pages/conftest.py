"""People who use their pods in a browser, with an account and without one."""

from __future__ import annotations

import pytest

from tests.support.application import Server
from tests.support.browser import Browser
from tests.support.pod_pages import sign_in_by_token


@pytest.fixture
def browser(server: Server) -> Browser:
    """A browser in which nobody is signed in."""
    return Browser(server.application)


@pytest.fixture
async def alice(server: Server) -> Browser:
    """The browser of Alice, who is signed in to the pages by her pod's token."""
    return await sign_in_by_token(server, server.alice)


@pytest.fixture
async def bob(server: Server) -> Browser:
    """The browser of Bob."""
    return await sign_in_by_token(server, server.bob)

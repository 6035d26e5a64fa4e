"""A provider in use: a real browser, a server with accounts, and an application."""

import pytest
from playwright.sync_api import BrowserContext

from tests.browser.nostr_extension import Extension
from tests.support.browser_fixtures import (
    app,
    application,
    axe,
    chromium,
    context,
    nothing_stays_open,
    page,
    person,
    provider,
    window,
)
from tests.support.nostr import NostrKey

__all__ = [
    "app",
    "application",
    "axe",
    "chromium",
    "context",
    "nothing_stays_open",
    "page",
    "person",
    "provider",
    "window",
]


@pytest.fixture
def extension(context: BrowserContext) -> Extension:
    """A new Nostr key in a browser that has an extension for it."""
    extension = Extension(NostrKey.new())
    extension.install(context)
    return extension

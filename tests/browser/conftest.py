"""A provider in use: a real browser, a server with accounts, and an application."""

from tests.support.browser_fixtures import (
    app,
    application,
    axe,
    chromium,
    context,
    page,
    person,
    provider,
    window,
)

__all__ = [
    "app",
    "application",
    "axe",
    "chromium",
    "context",
    "page",
    "person",
    "provider",
    "window",
]

"""A provider with two accounts, an application that asks for them, and browsers."""

from tests.support.provider_fixtures import app, browser, new_browser, server

__all__ = ["app", "browser", "new_browser", "server"]

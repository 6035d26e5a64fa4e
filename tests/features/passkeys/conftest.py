"""A provider with two accounts, in this process."""

from tests.support.provider_fixtures import app, browser, new_browser, server

__all__ = ["app", "browser", "new_browser", "server"]

"""A provider with two accounts, in this process."""

from tests.support.http_fixtures import clock, key_pairs, keys_of_this_test, settings, start, store
from tests.support.provider_fixtures import app, browser, new_browser, server

__all__ = [
    "app",
    "browser",
    "clock",
    "key_pairs",
    "keys_of_this_test",
    "new_browser",
    "server",
    "settings",
    "start",
    "store",
]

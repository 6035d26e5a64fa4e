"""A provider with two accounts, in this process."""

from tests.support.http_fixtures import (  # noqa: F401
    _keys_of_this_test,
    clock,
    key_pairs,
    settings,
    start,
    store,
)
from tests.support.provider_fixtures import app, browser, new_browser, server  # noqa: F401

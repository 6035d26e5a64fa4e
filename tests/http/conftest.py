"""The whole application in this process."""

from tests.support.http_fixtures import (  # noqa: F401
    _keys_of_this_test,
    clock,
    key_pairs,
    peer,
    server,
    settings,
    start,
    store,
)

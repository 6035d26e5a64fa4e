"""The fixtures of tests of the application in this process; features have others of their own."""

from __future__ import annotations

from tests.support.http_fixtures import (
    clock,
    key_pairs,
    keys_of_this_test,
    peer,
    server,
    settings,
    start,
    store,
    usual_roots,
)

__all__ = [
    "clock",
    "key_pairs",
    "keys_of_this_test",
    "peer",
    "server",
    "settings",
    "start",
    "store",
    "usual_roots",
]

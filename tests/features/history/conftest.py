"""A clock that begins now, and servers that are providers, for applications with limits."""

from __future__ import annotations

import time

import pytest

from tests.support.clock import FakeClock
from tests.support.flow_fixtures import (  # noqa: F401 - fixtures
    app,
    provider,
    provider_root,
    public_app,
    start_provider,
)


@pytest.fixture
def clock() -> FakeClock:
    """Not in the future: a sweep would take a large body that is being received for an old one."""
    return FakeClock(time_ms=time.time_ns() // 1_000_000)

"""A clock that begins now, servers on each engine, and servers that are providers, for applications
with limits."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from tests.features.history.world import World, running_world
from tests.support.clock import FakeClock
from tests.support.flow_fixtures import (  # noqa: F401 - fixtures
    app,
    provider,
    provider_root,
    public_app,
    start_provider,
)
from tests.support.postgresql import new_database
from tests.support.usual_roots import usual_settings


@pytest.fixture
def clock() -> FakeClock:
    """Not in the future: a sweep would take a large body that is being received for an old one."""
    return FakeClock(time_ms=time.time_ns() // 1_000_000)


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def world(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[World]:
    """A server for the examples of a property test, on each engine."""
    settings = usual_settings(tmp_path_factory.mktemp("world") / "root")
    with ExitStack() as stack:
        if request.param == "postgresql":
            settings = settings.with_values(database=stack.enter_context(new_database()))
        yield stack.enter_context(running_world(settings))

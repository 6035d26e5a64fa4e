"""Fixtures of the outbound tests."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.support.peer import Deployment, Peer


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    """A foreign server on 127.0.0.1."""
    peer = Peer()
    await peer.start()
    yield peer
    await peer.stop()


@pytest.fixture
async def other_peer() -> AsyncIterator[Peer]:
    """A second foreign server on 127.0.0.1."""
    peer = Peer()
    await peer.start()
    yield peer
    await peer.stop()


@pytest.fixture
async def secure_peer() -> AsyncIterator[Peer]:
    """A foreign server on 127.0.0.1 with a certificate for ``localhost``."""
    peer = Peer(secure=True)
    await peer.start()
    yield peer
    await peer.stop()


@pytest.fixture
async def deployment() -> AsyncIterator[Deployment]:
    """Builds fetchers."""
    deployment = Deployment()
    yield deployment
    await deployment.close()

"""A server that is a provider: one account, and clients that go through its flows without pages.

The root, with its keys and account, is made once for a worker and copied for each test.
"""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from podstead.app.adapters.keys import ensure_token_key
from podstead.storage.keys import KeyFiles
from podstead.storage.root import prepare_root
from podstead.storage.sqlite import SqliteStore
from tests.support.application import running
from tests.support.asgi import Client
from tests.support.clock import FakeClock
from tests.support.provider_flows import (
    App,
    Provider,
    StartProvider,
    open_provider,
    provider_settings,
)


@pytest.fixture(scope="session")
def provider_root(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A root with keys and one account, and the id of the account."""
    root = tmp_path_factory.mktemp("provider") / "root"
    ensure_token_key(KeyFiles(prepare_root(root).keys))

    async def make() -> None:
        clock = FakeClock()
        async with running(provider_settings(root), clock=clock) as application:
            body = {"name": "alice", "email": "alice@example.com", "password": "password123"}
            client = Client(application, host="localhost:3000")
            answer = await client.post("/.pods", json.dumps(body), "application/json")
            assert answer.status == 201, answer.text

    asyncio.run(make())
    return root, "alice"


@pytest.fixture
async def start_provider(
    provider_root: tuple[Path, str], tmp_path: Path
) -> AsyncIterator[StartProvider]:
    root = tmp_path / "root"
    shutil.copytree(provider_root[0], root)
    async with AsyncExitStack() as stack:

        async def start(
            *,
            clock: FakeClock | None = None,
            **changes: Any,  # noqa: ANN401
        ) -> Provider:
            clock = clock or FakeClock()
            settings = replace(provider_settings(root), **changes)
            application = await stack.enter_async_context(running(settings, clock=clock))
            store = SqliteStore(root)
            await store.open()
            stack.push_async_callback(store.close)
            return await open_provider(
                Client(application, host="localhost:3000"), store, clock, root
            )

        yield start


@pytest.fixture
async def provider(start_provider: StartProvider) -> Provider:
    return await start_provider()


@pytest.fixture
async def app(provider: Provider) -> App:
    """A client with a secret."""
    return await provider.register(client_name="App", id_token_signed_response_alg="ES256")


@pytest.fixture
async def public_app(provider: Provider) -> App:
    """A client without a secret."""
    return await provider.register(token_endpoint_auth_method="none")
